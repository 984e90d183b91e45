"""New tasks of stacks: members take them, trees see their weights, intervals hold."""

import warnings
from functools import partial

import numpy as np
import pytest
from scipy import sparse

import comtl
from comtl import HierarchicalRegressor, MultitaskClassifier, MultitaskRegressor
from helpers import likelihood_of

OLD, FEATURES = 20, 4


def draw(tasks, rows, seed):
    """Rows of tasks that have slopes and levels of their own, and a bent column in common."""
    weights = np.random.default_rng(7).normal(size=(200, FEATURES + 1))
    weights = np.append(np.ones(FEATURES), 0.0) + 0.6 * weights
    rng = np.random.default_rng(seed)
    task = np.repeat(tasks, rows)
    X = rng.normal(size=(len(task), FEATURES))
    score = (X * weights[task, :-1]).sum(axis=1) + weights[task, -1] + 2.0 * np.sin(3.0 * X[:, 0])
    return X, score + 0.5 * rng.normal(size=len(task)), task


TRAIN, TEST = draw(np.arange(OLD), 25, 0), draw(np.arange(30, 36), 200, 2)
FORMS = {"linear": "linear", "hinges": "hinges", "trees": "trees", "auto": "hinges and trees"}


def new_rows(rows):
    return draw(np.arange(30, 36), rows, 1)


@pytest.fixture(scope="module")
def fitted():
    return {
        form: MultitaskRegressor(form=form, cv=3).fit(TRAIN[0], TRAIN[1], task=TRAIN[2])
        for form in FORMS
    }


def error(model):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No task label is known")
        return float(np.sqrt(np.mean((model.predict(TEST[0], task=TEST[2]) - TEST[1]) ** 2)))


@pytest.mark.parametrize("form", FORMS)
def test_better_than_the_mean_and_nearly_as_good_as_a_fit_to_all_rows(fitted, form):
    model = fitted[form]
    assert model.form_ == FORMS[form]
    few = new_rows(10)
    again = MultitaskRegressor(form=form, cv=3)
    again.fit(*(np.concatenate(one) for one in zip(TRAIN, few, strict=True)))
    adapted = model.adapt(*few)
    assert error(adapted) < 0.98 * error(model)
    assert error(adapted) < 1.05 * error(again)


@pytest.mark.parametrize("form", ["linear", "auto"])
def test_more_rows_are_better_and_one_does_next_to_no_harm(fitted, form):
    model = fitted[form]
    errors = [error(model), *(error(model.adapt(*new_rows(n))) for n in (1, 5, 50))]
    assert errors[1] < 1.02 * errors[0]
    assert errors[3] < errors[2] < errors[1]


@pytest.mark.parametrize("form", FORMS)
def test_known_tasks_are_predicted_as_before(fitted, form):
    model, (X, _, task) = fitted[form], TRAIN
    adapted = model.adapt(*new_rows(5))
    assert len(model.tasks_) == OLD and list(adapted.tasks_[-2:]) == [34, 35]
    assert adapted.form_ == model.form_ and adapted.weights_ == model.weights_
    assert set(adapted.members_) == set(model.members_)
    for before, after in zip(
        (model.predict(X, task=task), *model.predict_interval(X, task=task)),
        (adapted.predict(X, task=task), *adapted.predict_interval(X, task=task)),
        strict=True,
    ):
        np.testing.assert_allclose(after, before, rtol=1e-12)
    assert adapted.task_clusters_.shape == (OLD + 6,)


@pytest.mark.parametrize("rows", [1, 5, 50])
@pytest.mark.parametrize("form", ["linear", "auto"])
def test_intervals_hold_their_level(fitted, form, rows):
    model = fitted[form]
    adapted = model.adapt(*new_rows(rows))
    X, y, task = TEST
    lower, upper = adapted.predict_interval(X, task=task)
    assert 0.84 < np.mean((lower < y) & (y < upper)) < 0.97
    with pytest.warns(UserWarning, match="mean of all tasks"):
        before = np.subtract(*model.predict_interval(X, task=task)[::-1])
    assert np.mean(upper - lower) < np.mean(before)


def test_tasks_one_after_another_and_their_weights(fitted):
    model, (X, y, task) = fitted["linear"], new_rows(6)
    first = task < 33
    once = model.adapt(X, y, task=task)
    twice = model.adapt(X[first], y[first], task=task[first])
    twice = twice.adapt(X[~first], y[~first], task=task[~first])
    np.testing.assert_allclose(once.coef_, twice.coef_, atol=1e-9)
    times = np.arange(len(y)) % 3 + 1
    again = np.repeat(np.arange(len(y)), times)
    weighted = model.adapt(X, y, task=task, sample_weight=times, residual=False)
    copied = model.adapt(X[again], y[again], task=task[again], residual=False)
    np.testing.assert_allclose(weighted.coef_, copied.coef_, atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("form", ["linear", "trees"])
def test_classes(form, n_classes):
    cuts = [0.5] if n_classes == 2 else [-1.0, 1.5]
    names = np.array(["a", "b", "c"])
    train, few, test = (
        (X, names[np.digitize(y, cuts)], task) for X, y, task in (TRAIN, new_rows(120), TEST)
    )
    kept = ~((few[2] == 35) & (few[1] == "c"))
    few = tuple(part[kept] for part in few)
    threshold = "f1" if n_classes == 2 else None
    model = MultitaskClassifier(form=form, cv=2, threshold=threshold)
    model.fit(train[0], train[1], task=train[2])
    assert model.form_ == form
    adapted = model.adapt(*few)
    np.testing.assert_allclose(
        model.predict_proba(train[0], task=train[2]),
        adapted.predict_proba(train[0], task=train[2]),
        rtol=1e-12,
    )
    chance = adapted.predict_proba(test[0], task=test[2])
    np.testing.assert_allclose(chance.sum(axis=1), 1.0)
    assert adapted.thresholds_.shape == (OLD + 6,)
    if n_classes == 3:
        assert (chance[test[2] == 35, 2] == 0.0).all()
    own = test[2] < 35
    rows = {"X": test[0][own], "y": test[1][own], "task": test[2][own]}
    with pytest.warns(UserWarning, match="mean of all tasks"):
        mean = likelihood_of(model, **rows)
    assert likelihood_of(adapted, **rows) > mean


@pytest.mark.parametrize("form", ["linear", "auto"])
def test_saved_and_loaded(fitted, form, tmp_path):
    adapted = fitted[form].adapt(*new_rows(5))
    fitted[form].save(tmp_path / "old")
    again = comtl.load(tmp_path / "old").adapt(*new_rows(5))
    again.save(tmp_path / "new")
    again, (X, _, task) = comtl.load(tmp_path / "new"), TEST
    for found, expected in zip(
        again.predict_interval(X, task=task), adapted.predict_interval(X, task=task), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_a_column_for_each_in_units_of_its_own():
    rng = np.random.default_rng(0)
    X, X_few, X_new = (rng.normal(size=(n, 3)) for n in (300, 40, 400))

    def columns(rows):
        slopes = np.array([[1.0, 0.5, 0.7, 0.8], [1.0, 1.2, 1.1, 0.9], [0.0, 0.1, 0.2, 0.1]])
        score = rows @ slopes + 2.0 * np.sin(2.0 * rows[:, :1])
        score += 0.5 * rng.normal(size=score.shape)
        return score * [1.0, 1e3, 1e-3, 1e5] + [0.0, 1e7, 0.0, 0.0]

    model = MultitaskRegressor(form="trees", cv=2).fit(X, columns(X)[:, :3])
    assert model.form_ == "trees"
    adapted = model.adapt(X_few, columns(X_few)[:, 3:])
    guess, truth = adapted.predict(X_new), columns(X_new)
    np.testing.assert_allclose(guess[:, :3], model.predict(X_new), rtol=1e-9)
    assert np.corrcoef(guess[:, 3], truth[:, 3])[0, 1] > 0.9
    lower, upper = adapted.predict_interval(X_new)
    assert 0.8 < np.mean((lower < truth)[:, 3] & (truth < upper)[:, 3]) < 0.97


def test_wide_text_takes_new_tasks_too():
    """Members that take none give what a task never seen gets; the others adapt."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((120, 3000), density=0.02, format="csr", rng=rng)
    task, y = np.repeat(np.arange(4), 30), np.asarray(X[:, :50].sum(axis=1)).ravel() > 0.4
    model = MultitaskClassifier(cv=2).fit(X, y, task=task)
    adapted = model.adapt(X[:20], y[:20], task=np.full(20, 9))
    assert adapted.predict_proba(X, task=np.full(120, 9)).shape == (120, 2)
    assert list(adapted.tasks_) == [0, 1, 2, 3, 9]


def test_refused(fitted, tmp_path):
    model, (X, y, task) = fitted["linear"], new_rows(3)
    with pytest.raises(ValueError, match="model knows already: 0, 1"):
        model.adapt(*TRAIN)
    with pytest.raises(ValueError, match="text or numbers"):
        model.adapt(X, y, task=task.astype(str))
    model.save(tmp_path / "m")
    old = comtl.load(tmp_path / "m")
    old._blend_shift = None
    with pytest.raises(ValueError, match="fit it again"):
        old.adapt(X, y, task=task)


@pytest.mark.parametrize("kind", [HierarchicalRegressor, MultitaskRegressor, MultitaskClassifier])
@pytest.mark.parametrize("library", ["sparse", "dask", "torch", "float32"])
def test_forms_of_rows(kind, library):
    settings = {} if kind is HierarchicalRegressor else {"form": "linear", "cv": 2}
    few = new_rows(6)
    train, few = (
        (X, (y > 0.5).astype(int) if kind is MultitaskClassifier else y, task)
        for X, y, task in (TRAIN, few)
    )
    expected = kind(**settings).fit(train[0], train[1], task=train[2]).adapt(*few)
    if library == "sparse":
        convert = [sparse.csr_array, np.asarray, np.asarray]
    elif library == "dask":
        array = pytest.importorskip("dask.array")
        convert = [partial(array.from_array, chunks=(9, -1))] + 2 * [array.from_array]
    elif library == "torch":
        convert = [pytest.importorskip("torch").asarray] * 2 + [np.asarray]
    else:
        convert = [np.float32, np.asarray, np.asarray]
    # Models of rows on a device take new rows there.
    known = (
        train if library == "dask" else [f(part) for f, part in zip(convert, train, strict=True)]
    )
    model = kind(**settings).fit(known[0], known[1], task=known[2])
    X, y, task = (f(part) for f, part in zip(convert, few, strict=True))
    adapted = model.adapt(X, y, task=task).to_numpy()
    assert list(adapted.tasks_) == list(expected.tasks_)
    tolerance = 1e-3 if library == "float32" else 1e-8
    np.testing.assert_allclose(adapted.coef_, expected.coef_, atol=tolerance)


def test_logarithms():
    X, y, task = TRAIN
    model = MultitaskRegressor(loss="log", form="linear", cv=3).fit(X, np.exp(0.4 * y), task=task)
    few = new_rows(20)
    adapted = model.adapt(few[0], np.exp(0.4 * few[1]), task=few[2])
    straight = MultitaskRegressor(form="linear", cv=3).fit(X, y, task=task).adapt(*few)
    np.testing.assert_allclose(adapted.coef_, 0.4 * straight.coef_, atol=0.02)
    truth = np.exp(0.4 * TEST[1])
    lower, upper = adapted.predict_interval(TEST[0], task=TEST[2])
    assert 0.84 < np.mean((lower < truth) & (truth < upper)) < 0.96
    factor = adapted.predict(TEST[0], task=TEST[2]).mean() / truth.mean()
    assert 0.8 < factor < 1.25
    with pytest.raises(ValueError, match="logarithms of positive targets"):
        model.adapt(few[0], few[1], task=few[2])
