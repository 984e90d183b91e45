"""New tasks of hierarchical models: the posterior of each with the population held."""

import numpy as np
import pytest

import comtl
from comtl import HierarchicalClassifier, HierarchicalRegressor
from comtl.hierarchical import intervals_mixin
from helpers import likelihood_of

OLD, FEATURES = 25, 4
FOUR = [30, 31, 32, 33]


def draw(tasks, rows, seed, noise=1.0, spread=0.6):
    """Rows of tasks of one population, whose weights depend on the number of the task alone."""
    weights = np.random.default_rng(7).normal(size=(200, FEATURES + 1))
    weights = np.append(np.ones(FEATURES), 0.0) + spread * weights
    rng = np.random.default_rng(seed)
    task = np.repeat(tasks, rows)
    X = rng.normal(size=(len(task), FEATURES)) + 0.5
    score = (X * weights[task, :-1]).sum(axis=1) + weights[task, -1]
    return X, score + noise * rng.normal(size=len(task)), task


def joined(*parts):
    return [np.concatenate(one) for one in zip(*parts, strict=True)]


TRAIN, NEW, TEST = (
    draw(np.arange(OLD), 20, 0),
    draw([30, 31, 32], 8, 1),
    draw([30, 31, 32], 300, 2),
)


@pytest.mark.parametrize("structure", ["intercept", "isotropic", "diagonal", "full", "factor"])
@pytest.mark.parametrize("shrink", [True, False])
def test_one_new_task_is_as_in_a_fit_to_all_rows_that_holds_the_population(structure, shrink):
    model = HierarchicalRegressor(structure, shrink_common=shrink).fit(*TRAIN[:2], task=TRAIN[2])
    X, y, task = (part[NEW[2] == 30] for part in NEW)
    weight = np.random.default_rng(3).uniform(0.5, 2.0, len(y))
    adapted = model.adapt(X, y, task=task, sample_weight=weight)
    # By the normal equations of all effects together: common ones, and those of each task.
    units, prior = model._units, model._priors[0]
    rows, target, code = joined(TRAIN, (X, y, np.full(len(y), OLD)))
    rows = np.column_stack([rows * units.inverse_scale - units.shift, np.ones(len(rows))])
    target = (target - units.target_shift) / units.target_scale
    share = np.append(np.ones(len(TRAIN[1])), weight) / prior.residual_variance
    size, count = rows.shape[1], OLD + 1
    design = np.zeros((len(rows), size * (count + 1)))
    design[:, :size] = rows
    for t in range(count):
        design[code == t, size * (t + 1) : size * (t + 2)] = rows[code == t]
    values, basis = np.linalg.eigh(prior.covariance.matrix)
    root = basis * np.sqrt(np.maximum(values, 0.0))
    spread = np.kron(np.eye(count), root)
    design = np.column_stack([design[:, :size], design[:, size:] @ spread])
    precision = np.ones(design.shape[1])
    precision[:size] = np.append(np.full(size - 1, 1.0 / prior.mean_variance), 0.0)
    inner = design.T @ (share[:, None] * design) + np.diag(precision)
    found = np.linalg.solve(inner, design.T @ (share * target))
    expected = found[:size] + root @ found[size:].reshape(count, -1)[-1]
    coef = adapted.coef_[-1] / (units.target_scale * units.inverse_scale)
    np.testing.assert_allclose(coef, expected[:-1], atol=1e-6)
    level = (adapted.predict(X, task=task) - units.target_shift) / units.target_scale
    np.testing.assert_allclose(level, rows[-len(y) :] @ expected, atol=1e-6)
    # So is what it is not sure of.
    mapped = np.column_stack([np.eye(size), np.zeros((size, size * OLD)), root])
    variance = mapped @ np.linalg.inv(inner) @ mapped.T
    _, deviation = adapted.predict(X, task=task, return_std=True)
    spread = np.einsum("ij,jk,ik->i", rows[-len(y) :], variance, rows[-len(y) :])
    spread = units.target_scale * np.sqrt(spread + prior.residual_variance)
    np.testing.assert_allclose(deviation, spread, rtol=1e-6)


@pytest.mark.parametrize("noise", ["common", "task"])
@pytest.mark.parametrize("rows", [1, 3, 30])
def test_about_as_good_as_a_fit_to_all_rows_and_better_than_the_mean(noise, rows):
    model = HierarchicalRegressor("isotropic", noise=noise).fit(*TRAIN[:2], task=TRAIN[2])
    tasks = np.arange(40, 70)
    few, test = draw(tasks, rows, 4), draw(tasks, 200, 5)
    adapted = model.adapt(few[0], few[1], task=few[2])
    X, y, task = joined(TRAIN, few)
    again = HierarchicalRegressor("isotropic", noise=noise).fit(X, y, task=task)

    def error(model):
        return float(np.sqrt(np.mean((model.predict(test[0], task=test[2]) - test[1]) ** 2)))

    with pytest.warns(UserWarning, match="mean of all tasks"):
        mean = error(model)
    assert error(adapted) < mean
    assert error(adapted) < 1.03 * error(again)
    lower, upper = adapted.predict_interval(test[0], task=test[2])
    assert 0.85 < np.mean((lower < test[1]) & (test[1] < upper)) < 0.95


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(n_classes):
    cuts = [0.5] if n_classes == 2 else [-1.0, 1.5]
    names = np.array(["a", "b", "c"])
    train, few, test = (
        (X, names[np.digitize(y, cuts)], task)
        for X, y, task in (TRAIN, draw(FOUR, 25, 1), draw(FOUR, 400, 2))
    )
    kept = ~((few[2] == 31) & (few[1] == "c"))
    few = tuple(part[kept] for part in few)
    model = HierarchicalClassifier("isotropic").fit(*train[:2], task=train[2])
    adapted = model.adapt(few[0], few[1], task=few[2])
    assert list(adapted.tasks_) == [*range(OLD), *FOUR]
    before, after = (one.predict_proba(train[0], task=train[2]) for one in (model, adapted))
    np.testing.assert_array_equal(before, after)
    X, y, task = joined(train, few)
    again = HierarchicalClassifier("isotropic").fit(X, y, task=task)
    own = test[2] != 31
    rows = {"X": test[0][own], "y": test[1][own], "task": test[2][own]}
    with pytest.warns(UserWarning, match="mean of all tasks"):
        mean = likelihood_of(model, **rows)
    assert likelihood_of(adapted, **rows) > mean
    assert likelihood_of(adapted, **rows) > likelihood_of(again, **rows) - 0.03
    chance = adapted.predict_proba(test[0], task=test[2])
    np.testing.assert_allclose(chance.sum(axis=1), 1.0)
    if n_classes == 3:
        assert (chance[test[2] == 31, 2] == 0.0).all()
        assert adapted.coef_.shape == (OLD + 4, 3, FEATURES)


def test_the_model_itself_stays_and_tasks_may_come_one_after_another():
    model = HierarchicalRegressor("full").fit(*TRAIN[:2], task=TRAIN[2])
    said = model.predict(TRAIN[0], task=TRAIN[2], return_std=True)
    once = model.adapt(*NEW)
    parts = [tuple(part[NEW[2] == t] for part in NEW) for t in (30, 31, 32)]
    twice = model.adapt(*parts[0]).adapt(*parts[1]).adapt(*parts[2])
    np.testing.assert_allclose(once.coef_, twice.coef_, atol=1e-10)
    assert len(model.tasks_) == OLD and once.task_clusters_.shape == (OLD + 3,)
    np.testing.assert_array_equal(once.predict(TRAIN[0], task=TRAIN[2]), said[0])
    for one in (model, once, twice):
        deviations = one.predict(TRAIN[0], task=TRAIN[2], return_std=True)[1]
        np.testing.assert_array_equal(deviations, said[1])
    assert type(once) is HierarchicalRegressor and once.get_params() == model.get_params()


def test_weights_count_as_repetitions():
    model = HierarchicalRegressor(noise="task").fit(*TRAIN[:2], task=TRAIN[2])
    X, y, task = NEW
    times = np.arange(len(y)) % 3 + 1
    again = np.repeat(np.arange(len(y)), times)
    weighted = model.adapt(X, y, task=task, sample_weight=times)
    copied = model.adapt(X[again], y[again], task=task[again])
    np.testing.assert_allclose(weighted.coef_, copied.coef_, atol=1e-8)
    np.testing.assert_allclose(weighted.noise_variance_, copied.noise_variance_)
    assert weighted.noise_variance_.shape == (OLD + 3,)


def test_more_features_than_tasks_and_a_column_for_each():
    """New weights outside the span of the known ones are kept in full."""
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(60, 12)), rng.normal(size=(30, 12))
    W = 1.0 + rng.normal(size=(12, 4))
    Y = X @ W + 0.1 * rng.normal(size=(60, 4))
    model = HierarchicalRegressor("isotropic").fit(X, Y[:, :3])
    adapted = model.adapt(X[:30], Y[:30, 3:])
    assert adapted.predict(X_new).shape == (30, 4)
    np.testing.assert_allclose(adapted.predict(X_new)[:, 3], X_new @ W[:, 3], atol=0.5)
    score = X_new @ adapted.coef_[3] + adapted.intercept_[3]
    np.testing.assert_allclose(adapted.predict(X_new)[:, 3], score)


def test_refused():
    model = HierarchicalRegressor("isotropic").fit(*TRAIN[:2], task=TRAIN[2])
    with pytest.raises(ValueError, match="model knows already: 0, 1"):
        model.adapt(*TRAIN)
    with pytest.raises(ValueError, match="one-dimensional"):
        model.adapt(NEW[0], np.column_stack([NEW[1], NEW[1]]))
    del model._common
    with pytest.raises(ValueError, match="fit it again"):
        model.adapt(*NEW)


@pytest.mark.parametrize("kind", [HierarchicalRegressor, HierarchicalClassifier])
def test_saved_and_loaded(kind, tmp_path):
    def target(y):
        return y > 0.5 if kind is HierarchicalClassifier else y

    model = kind("full").fit(TRAIN[0], target(TRAIN[1]), task=TRAIN[2])
    adapted = model.adapt(NEW[0], target(NEW[1]), task=NEW[2])
    model.save(tmp_path / "old")
    again = comtl.load(tmp_path / "old").adapt(NEW[0], target(NEW[1]), task=NEW[2])
    again.save(tmp_path / "new")
    again = comtl.load(tmp_path / "new")
    said = adapted.predict(TEST[0], task=TEST[2])
    np.testing.assert_array_equal(again.predict(TEST[0], task=TEST[2]), said)


def test_error_bars_by_rows_where_features_are_more(monkeypatch):
    """Of many features they are kept by the rows of tasks: of new ones they are no narrower."""
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(60, 30)), np.repeat(np.arange(12), 5)
    y = X[:, :5].sum(axis=1) + rng.normal(size=12)[task] + rng.normal(size=60)
    old, said = task < 10, []
    for cells in (2**22, 1):
        monkeypatch.setattr(intervals_mixin, "BLOCK_CELLS", cells)
        model = HierarchicalRegressor("isotropic", shrink_common=True)
        model.fit(X[old], y[old], task=task[old])
        adapted = model.adapt(X[~old], y[~old], task=task[~old])
        said.append(adapted.predict(X, task=task, return_std=True)[1])
        kind = type(adapted._spread).__name__
        assert kind == ("PredictiveVariance" if cells > 1 else "WidePredictiveVariance")
    by_squares, by_rows = said
    np.testing.assert_allclose(by_rows[old], by_squares[old], rtol=1e-6)
    assert (by_rows[~old] > by_squares[~old] - 1e-9).all()
    assert (by_rows[~old] < 1.3 * by_squares[~old]).all()
