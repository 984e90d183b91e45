"""Classifiers: labels of any kind, classes that differ between tasks, probabilities."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from comtl import BiFactorClassifier, BiFactorClassifierCV, TriFactorClassifier

MODELS = {
    "bi": BiFactorClassifier(3, random_state=0),
    "tri": TriFactorClassifier(4, 3, random_state=0),
    "bi squared": BiFactorClassifier(3, loss="squared", random_state=0),
    "tri squared": TriFactorClassifier(4, 3, loss="squared", random_state=0),
}
each_model = pytest.mark.parametrize("kind", MODELS)
LETTERS = np.array(["a", "b", "c"])


def fresh(kind, **params):
    model = MODELS[kind]
    return type(model)(**{**model.get_params(), **params})


def problem(n_classes, rows=40, part=0):
    """Five tasks on five features; the class is the cut of a noisy score, tasks have rank two."""
    rng = np.random.default_rng(0)
    slopes = 1.5 * rng.standard_normal((5, 2)) @ rng.standard_normal((2, 5))
    rng = np.random.default_rng([n_classes, part])
    code = rng.permutation(np.repeat(np.arange(5), rows))
    X = rng.standard_normal((5 * rows, 5))
    score = (X * slopes[code]).sum(axis=1) + rng.logistic(size=5 * rows)
    cuts = {2: [0.0], 3: [-1.5, 1.5]}[n_classes]
    return X, np.digitize(score, cuts), code


def check_consistent(model, X, task):
    """Probabilities, decisions and predictions must tell the same story."""
    chance = model.predict_proba(X, task=task)
    decisions = model.decision_function(X, task=task)
    said = model.predict(X, task=task)
    assert chance.shape == (len(X), len(model.classes_))
    assert np.isfinite(decisions).all()
    assert (chance >= 0).all()
    np.testing.assert_allclose(chance.sum(axis=1), 1.0, atol=1e-12)
    if len(model.classes_) == 2:
        assert decisions.shape == (len(X),)
        best = (decisions > 0).astype(int)
        assert (np.diff(chance[np.argsort(decisions), 1]) >= 0).all()
    else:
        assert decisions.shape == chance.shape
        best = decisions.argmax(axis=1)
    np.testing.assert_array_equal(said, model.classes_[best])
    # The predicted class is among the most probable ones (squared loss clips, so ties happen).
    own = chance[np.arange(len(X)), best]
    np.testing.assert_allclose(own, chance.max(axis=1), atol=1e-12)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(model.predict_log_proba(X, task=task), np.log(chance))
    return chance, decisions, said


@each_model
@pytest.mark.parametrize("n_classes", [2, 3])
def test_predictions_agree(kind, n_classes):
    X, y, code = problem(n_classes)
    X_new, _, code_new = problem(n_classes, rows=100, part=1)
    model = fresh(kind).fit(X, y, task=code)
    check_consistent(model, X_new, code_new)
    check_consistent(model, 100.0 * X_new, code_new)
    shape = (5, 5) if n_classes == 2 else (5, 3, 5)
    assert model.coef_.shape == shape
    assert model.intercept_.shape == shape[:-1]
    expected = np.einsum("i...j,ij->i...", model.coef_[code], X) + model.intercept_[code]
    np.testing.assert_allclose(model.decision_function(X, task=code), expected, atol=1e-9)
    assert model.score(X, y, task=code) > (0.78 if n_classes == 2 else 0.6)


@pytest.mark.parametrize("kind", ["bi", "tri"])
def test_probabilities_are_calibrated(kind):
    """The likelihood is modelled, so no other scale of the decisions has a lower log loss."""
    X, y, code = problem(2, rows=200)
    X_new, y_new, code_new = problem(2, rows=400, part=1)
    model = fresh(kind).fit(X, y, task=code)
    chance = model.predict_proba(X_new, task=code_new)[:, 1]
    decisions = model.decision_function(X_new, task=code_new)
    np.testing.assert_allclose(chance, expit(decisions), atol=1e-12)
    losses = [log_loss(y_new, expit(scale * decisions)) for scale in (0.6, 1.0, 1.6)]
    assert losses[1] == min(losses)


@each_model
@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array([False, True]),
        np.array([-1, 1]),
        np.array([7, 3]),
        np.array([0.0, 2.0]),
        np.array(["x", "yy", "zzz"], dtype=object),
        np.array([30, 20, 10]),
    ],
    ids=str,
)
def test_labels_of_any_kind(kind, labels):
    X, y, code = problem(len(labels))
    plain = fresh(kind).fit(X, y, task=code)
    model = fresh(kind).fit(X, labels[y], task=code)
    np.testing.assert_array_equal(model.classes_, np.unique(labels.tolist()))
    assert model.predict(X, task=code).dtype == model.classes_.dtype
    order = np.argsort(labels)
    chance = plain.predict_proba(X, task=code)[:, order]
    np.testing.assert_allclose(model.predict_proba(X, task=code), chance, atol=1e-4)
    assert model.score(X, labels[y], task=code) == pytest.approx(
        plain.score(X, y, task=code), abs=0.01
    )


@each_model
def test_classes_differ_between_tasks(kind):
    X, y, code = problem(3)
    kept = ~((code == 1) & (y == 2)) & ~((code == 3) & (y != 1))  # task 3 has one class only
    X, y, code = X[kept], LETTERS[y[kept]], code[kept]
    model = fresh(kind).fit(X, y, task=code)
    assert list(model.classes_) == ["a", "b", "c"]
    chance, decisions, said = check_consistent(model, X, code)
    for task, unseen in ((1, [2]), (3, [0, 2])):
        rows = code == task
        seen = np.setdiff1d(np.arange(3), unseen)
        assert (chance[rows][:, unseen] == 0).all()
        highest = decisions[rows][:, unseen].max(axis=1)
        assert (highest < decisions[rows][:, seen].min(axis=1)).all()
        assert not np.isin(said[rows], model.classes_[unseen]).any()
        assert (model.coef_[task, unseen] == 0).all()
    assert (said[code == 3] == "b").all()
    huge = model.decision_function(1e25 * X, task=code)
    assert (huge[code == 1, 2] < huge[code == 1, :2].min(axis=1)).all()
    assert model.score(X, y, task=code) > 0.6


@each_model
def test_tasks_of_one_class_among_two(kind):
    X, y, code = problem(2)
    kept = ~((code == 2) & (y == 0)) & ~((code == 4) & (y == 1))
    X, y, code = X[kept], y[kept], code[kept]
    model = fresh(kind).fit(X, y, task=code)
    check_consistent(model, X, code)
    assert model.coef_.shape == (5, 5)
    for own in (code == 2, code == 4):
        assert model.score(X[own], y[own], task=code[own]) > 0.8


@each_model
def test_tasks_of_one_row(kind):
    X, y, code = problem(3)
    code[:20] = np.arange(10, 30)
    model = fresh(kind).fit(X, y, task=code)
    check_consistent(model, X, code)
    np.testing.assert_array_equal(model.predict(X[:20], task=code[:20]), y[:20])
    assert model.coef_.shape == (25, 3, 5)


def test_small_probabilities_are_not_lost():
    X, y, code = problem(2)
    model = fresh("bi").fit(X, y, task=code)
    far = 30.0 * X
    decisions = model.decision_function(far, task=code)
    assert np.abs(decisions).max() > 100.0
    logs = model.predict_log_proba(far, task=code)
    exact = np.column_stack([-np.logaddexp(0.0, decisions), -np.logaddexp(0.0, -decisions)])
    np.testing.assert_allclose(logs, exact, rtol=1e-9, atol=1e-12)


def test_one_class_against_the_rest():
    """A task's row of several classes is the binary fit of each class on that task's rows."""
    X, y, _ = problem(3)
    model = BiFactorClassifier(5, alpha_feature=1e-3, alpha_task=1e-3, tol=1e-9, max_iter=2000)
    model.fit(X, y)
    scores = model.decision_function(X)
    np.testing.assert_allclose(
        model.predict_proba(X), expit(scores) / expit(scores).sum(axis=1, keepdims=True)
    )
    for c in range(3):
        alone = LogisticRegression(C=1e4).fit(X, y == c).decision_function(X)
        assert np.corrcoef(alone, scores[:, c])[0, 1] > 0.97


def test_squared_loss_is_least_squares():
    X, y, code = problem(2)
    X, y = X[code == 0], y[code == 0]
    exactly = {"alpha_feature": 0.0, "alpha_task": 0.0, "tol": 1e-12, "max_iter": 500}
    model = BiFactorClassifier(5, loss="squared", **exactly).fit(X, y)
    A = np.column_stack([X, np.ones(40)])
    found = np.append(model.coef_[0], model.intercept_[0])
    np.testing.assert_allclose(found, np.linalg.lstsq(A, 2.0 * y - 1.0)[0], atol=1e-4)
    chance = np.clip((1 + A @ found) / 2, 0, 1)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], chance, atol=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_one_ridge_task_is_logistic_regression(C, weighted, fit_intercept):
    r"""λ1 f'f + λ2 g² at w = f g is 2√(λ1 λ2) ‖w‖; its gradient at w* is that of ‖w‖²/(2C)."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 6)) * [1, 2, 0.5, 1, 1, 3] + 0.5
    y = X @ rng.standard_normal(6) + rng.logistic(size=150) > 0.5
    weight = rng.uniform(0.2, 3.0, 150) if weighted else None
    exact = LogisticRegression(C=C, fit_intercept=fit_intercept, tol=1e-10, max_iter=10_000)
    exact.fit(X, y, sample_weight=weight)
    alpha = float(np.linalg.norm(exact.coef_)) / (2.0 * C)
    ridge = {"feature_penalty": "ridge", "task_penalty": "ridge", "standardize": False}
    ridge |= {"alpha_feature": alpha, "alpha_task": alpha, "fit_intercept": fit_intercept}
    model = BiFactorClassifier(1, **ridge, tol=1e-13, max_iter=20_000)
    model.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, exact.intercept_, atol=1e-3)
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=1e-3)


def test_tasks_help_each_other():
    """Few rows a task: the joint model beats one logistic regression for each, and one for all."""
    X, y, code = problem(2, rows=15)
    X_new, y_new, code_new = problem(2, rows=400, part=1)
    joint = BiFactorClassifierCV(2, alphas=(0.1, 1.0, 10.0), cv=3, random_state=0)
    joint.fit(X, y, task=code)
    chance = joint.predict_proba(X_new, task=code_new)
    alone, pooled = np.empty_like(chance), LogisticRegression().fit(X, y).predict_proba(X_new)
    for t in range(5):
        own = LogisticRegression().fit(X[code == t], y[code == t])
        alone[code_new == t] = own.predict_proba(X_new[code_new == t])
    losses = [log_loss(y_new, p) for p in (chance, alone, pooled)]
    assert losses[0] < 0.97 * min(losses[1:])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_search_with_rare_classes(loss, n_classes):
    """A class may be absent from a fold, and a task from its training part."""
    X, y, code = problem(n_classes)
    code[0] = 99
    y[0] = n_classes  # seen once, in a task of one row
    model = BiFactorClassifierCV(2, alphas=(0.1, 10.0), cv=3, loss=loss).fit(X, y, task=code)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()
    assert model.predict(X[:1], task=code[:1]) == n_classes
    assert list(model.classes_) == list(range(n_classes + 1))
