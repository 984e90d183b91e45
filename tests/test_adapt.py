"""New tasks on frozen factors: how good, how exact, and what must stay as it was."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, RidgeCV

from comtl import (
    BiFactorClassifier,
    BiFactorRegressor,
    BiFactorRegressorCV,
    TriFactorClassifier,
    TriFactorRegressor,
)


def draw(W, rows, rng, first=0, noise=1.0):
    """Rows of every task of the weights W (T, P), tasks numbered from ``first``."""
    code = np.repeat(np.arange(len(W)), rows)
    X = rng.standard_normal((len(code), W.shape[1]))
    return X, (X * W[code]).sum(axis=1) + noise * rng.standard_normal(len(code)), code + first


def errors_on_new_tasks(model, W, rows, rng):
    """RMSE for tasks of weights W: with a residual, without, and of ridge for each by itself."""
    X, y, task = draw(W, rows, rng, first=50)
    X_new, y_new, task_new = draw(W, 500 // len(W), rng, first=50)
    guesses = [
        model.adapt(X, y, task=task, residual=residual).predict(X_new, task=task_new)
        for residual in (True, False)
    ]
    alone = np.empty_like(y_new)
    for t in np.unique(task):
        ridge = RidgeCV(np.logspace(-3, 4, 30)).fit(X[task == t], y[task == t])
        alone[task_new == t] = ridge.predict(X_new[task_new == t])
    return [np.sqrt(np.mean((guess - y_new) ** 2)) for guess in (*guesses, alone)]


both_models = pytest.mark.parametrize(
    "model", [BiFactorRegressor(4), TriFactorRegressor(6, 4)], ids=["bi", "tri"]
)


@both_models
def test_few_rows_of_related_tasks(model):
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        W = rng.standard_normal((35, 3)) @ rng.standard_normal((3, 40))
        found.append(errors_on_new_tasks(model.fit(*draw(W[:30], 30, rng)), W[30:], 10, rng))
    errors, _, alone = np.transpose(found)
    assert np.mean(errors) <= 1.6, errors
    assert max(errors) <= 2.0, errors
    assert min(alone) > 3.0, alone


@pytest.mark.parametrize("rows", [30, 200])
@both_models
def test_unrelated_task_is_not_harmed(model, rows):
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        model.fit(*draw(rng.standard_normal((30, 3)) @ rng.standard_normal((3, 40)), 30, rng))
        found.append(errors_on_new_tasks(model, 2.0 * rng.standard_normal((1, 40)), rows, rng))
    errors, within, alone = np.transpose(found)
    assert np.mean(errors / alone) <= 1.05, found
    if rows == 200:  # the paper's step, which cannot leave the span, does harm here
        assert min(within / alone) > 2.0


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"task_penalty": "ridge", "feature_penalty": "ridge"},
        {"shared": True},
        {"fit_intercept": False},
        {"standardize": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [BiFactorRegressor, TriFactorRegressor])
def test_paper_step_is_the_penalised_optimum(kind, params):
    """Loss + h'h + ρ d² with g = L h and d the intercept's deviation; offset and w0 frozen."""
    rng = np.random.default_rng(0)
    W = rng.standard_normal((12, 2)) @ rng.standard_normal((2, 6)) + rng.standard_normal(6)
    X, y, task = draw(W, 20, rng)
    model = kind(3, **params).fit(X + 1.0, y + 3.0 * rng.standard_normal(12)[task], task=task)
    X, y, task = draw(W[:2] + 0.3, 7, rng, first=50)
    weight = rng.uniform(0.5, 2.0, len(y))
    adapted = model.adapt(X, y, task=task, sample_weight=weight, residual=False)
    state, units = model._state, model._units
    point, lift = state.factors, state.penalties["G"].whitening(state.factors.G)
    rows = X * units.inverse_scale - units.shift
    target = (y - units.target_shift) / units.target_scale
    for t in (50, 51):
        own = task == t
        latent = rows[own] @ point.feature_loadings @ lift
        rest = target[own] - point.offset - rows[own] @ point.shared
        deviates = float(state.has_random_intercepts)
        price = state.intercept_penalty if deviates else 0.0

        def gap(u, latent=latent, rest=rest, deviates=deviates):
            return rest - latent @ u[:-1] - deviates * u[-1]

        def objective(u, gap=gap, own=own, price=price):
            return weight[own] @ gap(u) ** 2 + u[:-1] @ u[:-1] + price * u[-1] ** 2

        best = minimize(objective, np.zeros(lift.shape[1] + 1), options={"gtol": 1e-10}).x
        found = adapted.task_factor_[list(adapted.tasks_).index(t)][: len(lift)]
        np.testing.assert_allclose(found, lift @ best[:-1], atol=1e-5)
        said = adapted.predict(X[own], task=task[own])
        expected = units.target_shift + units.target_scale * (target[own] - gap(best))
        np.testing.assert_allclose(said, expected, atol=1e-4)


@pytest.mark.parametrize("kind", [BiFactorRegressor, TriFactorRegressor])
def test_whitener_is_the_growth_of_the_penalty(kind):
    """A small row g = L h added to G raises λ2 φ(G)² by h'h, φ the smoothed nuclear norm."""
    rng = np.random.default_rng(0)
    X, y, task = draw(rng.standard_normal((12, 2)) @ rng.standard_normal((2, 6)), 20, rng)
    state = kind(3).fit(X, y, task=task)._state
    penalty, G = state.penalties["G"], state.factors.G

    def nuclear(G):
        return np.sqrt(np.maximum(np.linalg.eigvalsh(G.T @ G), 0.0) + penalty.epsilon).sum()

    width = G.shape[1]
    phi = nuclear(G) + (len(G) - width) * np.sqrt(penalty.epsilon)
    h = 1e-3 * rng.standard_normal(width) * np.abs(G).max()
    grown = np.vstack([G, penalty.whitening(G) @ h])
    rise = 2.0 * penalty.strength * phi * (nuclear(grown) - nuclear(G))
    assert rise == pytest.approx(h @ h, rel=1e-3)


@pytest.mark.parametrize(
    ("task_penalty", "holds"),
    [
        ("nonnegative", lambda G: (G >= 0).all()),
        ("simplex", lambda G: (G >= 0).all() and np.allclose(G.sum(axis=1), 1.0)),
        ("l1", lambda G: np.isfinite(G).all()),
    ],
)
def test_constraints_hold_for_new_tasks(task_penalty, holds):
    rng = np.random.default_rng(0)
    W = rng.dirichlet(np.ones(2), 14) @ (3.0 * rng.standard_normal((2, 6)))
    model = BiFactorRegressor(2, task_penalty=task_penalty).fit(*draw(W[:12], 30, rng))
    X, y, task = draw(W[12:], 30, rng, first=20)
    adapted = model.adapt(X, y, task=task, residual=False)
    assert holds(adapted.task_factor_)
    assert adapted.score(X, y, task=task) > 0.6


def labels(n_classes, rows, rng, W, first=0):
    X, score, task = draw(W, rows, rng, first=first, noise=0.5)
    cuts = [0.0] if n_classes == 2 else [-1, 1]
    return X, np.array(["a", "b", "c"])[np.digitize(score, cuts)], task


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", [BiFactorClassifier, TriFactorClassifier])
def test_classifiers(kind, n_classes, residual):
    rng = np.random.default_rng(1)
    W = rng.standard_normal((14, 2)) @ rng.standard_normal((2, 10))
    X, y, task = labels(n_classes, 60, rng, W[:12])
    model = kind(4, alpha_task=1.0).fit(X, y, task=task)
    X_few, y_few, task_few = labels(n_classes, 12, rng, W[12:], first=40)
    kept = ~((task_few == 41) & (y_few == "c"))
    X_few, y_few, task_few = X_few[kept], y_few[kept], task_few[kept]
    adapted = model.adapt(X_few, y_few, task=task_few, residual=residual)
    assert list(adapted.tasks_) == [*range(12), 40, 41]
    before, after = model.predict_proba(X, task=task), adapted.predict_proba(X, task=task)
    np.testing.assert_array_equal(before, after)
    X_new, y_new, task_new = labels(n_classes, 300, rng, W[12:], first=40)
    chance = adapted.predict_proba(X_new, task=task_new)
    np.testing.assert_allclose(chance.sum(axis=1), 1.0)
    if n_classes == 3:
        assert (chance[task_new == 41, 2] == 0).all()
        assert adapted.coef_.shape == (14, 3, 10)
    own = task_new == 40
    alone = LogisticRegression().fit(X_few[task_few == 40], y_few[task_few == 40])
    score = adapted.score(X_new[own], y_new[own], task=task_new[own])
    assert score > alone.score(X_new[own], y_new[own])
    assert score > (0.85 if n_classes == 2 else 0.7)


def fitted(kind=BiFactorRegressor, **params):
    rng = np.random.default_rng(2)
    W = rng.standard_normal((8, 2)) @ rng.standard_normal((2, 5))
    train, new = draw(W[:6], 20, rng), draw(W[6:], 9, rng, first=10)
    if issubclass(kind, BiFactorClassifier):
        train, new = [(X, y > 0, task) for X, y, task in (train, new)]
    if kind is BiFactorRegressorCV:
        params = {"alphas": (0.1, 1.0), "cv": 2}
    return kind(2, random_state=0, **params).fit(*train), train, new


@pytest.mark.parametrize("kind", [BiFactorRegressor, BiFactorClassifier, BiFactorRegressorCV])
def test_the_model_itself_stays(kind):
    model, (X, _, task), new = fitted(kind)
    said, coef = model.predict(X, task=task), model.coef_.copy()
    adapted = model.adapt(*new)
    assert type(adapted) is type(model)
    assert adapted is not model
    assert adapted.get_params() == model.get_params()
    assert len(model.tasks_) == 6
    np.testing.assert_array_equal(model.coef_, coef)
    np.testing.assert_array_equal(adapted.coef_[:6], coef)
    np.testing.assert_array_equal(model.predict(X, task=task), said)
    np.testing.assert_array_equal(adapted.predict(X, task=task), said)
    assert adapted.coef_.shape == (8, 5)
    assert adapted.intercept_.shape == (8,)
    assert adapted.task_clusters_.shape == (8,)
    X, _, task = new
    scores = (X * adapted.coef_[task - 4]).sum(axis=1) + adapted.intercept_[task - 4]
    own = adapted.predict if "Regressor" in kind.__name__ else adapted.decision_function
    np.testing.assert_allclose(own(X, task=task), scores, atol=1e-9)


def test_tasks_one_after_another():
    model, _, (X, y, task) = fitted(unseen_task="raise")
    once = model.adapt(X, y, task=task, residual=False)
    twice = model.adapt(X[:9], y[:9], task=task[:9], residual=False)
    twice = twice.adapt(X[9:], y[9:], task=task[9:], residual=False)
    np.testing.assert_allclose(once.coef_, twice.coef_, atol=1e-10)
    assert twice.predict(X, task=task).shape == (18,)


def test_forms_of_new_rows():
    model, (X_old, y_old, old), (X, y, task) = fitted()
    plain = model.adapt(X, y, task=task)
    packed = model.adapt(sparse.csr_array(X), y, task=task)
    np.testing.assert_allclose(packed.coef_, plain.coef_, atol=1e-8)
    frame = pd.DataFrame(X_old, columns=list("abcde")).assign(who=old.astype(str))
    named = BiFactorRegressor(2, task_column="who", random_state=0).fit(frame, y_old)
    new = pd.DataFrame(X, columns=list("abcde")).assign(who=task.astype(str))
    named = named.adapt(new, y)
    np.testing.assert_allclose(named.coef_, plain.coef_, atol=1e-8)
    np.testing.assert_allclose(named.predict(new), plain.predict(X, task=task), atol=1e-8)
    times = np.arange(18) % 3 + 1
    again = np.repeat(np.arange(18), times)
    weighted = model.adapt(X, y, task=task, sample_weight=times, residual=False)
    copied = model.adapt(X[again], y[again], task=task[again], residual=False)
    np.testing.assert_allclose(weighted.coef_, copied.coef_, atol=1e-8)


def test_refused():
    model, (X, y, task), (X_new, y_new, task_new) = fitted()
    with pytest.raises(ValueError, match=r"model knows already: 0, 1, .*Pass rows of new tasks"):
        model.adapt(X, y, task=task)
    with pytest.raises(ValueError, match="task"):
        model.adapt(X_new, y_new, task=task_new.astype(str))
    with pytest.raises(ValueError, match="features"):
        model.adapt(X_new[:, 1:], y_new, task=task_new)
    with pytest.raises(ValueError, match=r"X contains NaN.*fit_table"):
        model.adapt(np.where(X_new > 1.0, np.nan, X_new), y_new, task=task_new)
    with pytest.raises(ValueError, match="NaN"):
        model.adapt(X_new, np.where(task_new == 10, np.nan, y_new), task=task_new)
    with pytest.raises(ValueError, match="one-dimensional"):
        model.adapt(X_new, np.column_stack([y_new, y_new]))
    labelled, _, (X_new, y_new, task_new) = fitted(BiFactorClassifier)
    words = np.where(y_new, "yes", "perhaps")
    with pytest.raises((ValueError, TypeError), match="y "):
        labelled.adapt(X_new, words, task=task_new)
    with pytest.raises(ValueError, match=r"y holds classes .*\[2\]"):
        labelled.adapt(X_new, y_new.astype(int) + 1, task=task_new)
