"""Estimators on arrays of other libraries: the numbers of NumPy, where the rows lie."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import comtl
from comtl import BiFactorClassifier, BiFactorRegressor, TriFactorClassifier, TriFactorRegressor
from libraries import NAMES, make

N, P, T = 240, 6, 8
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, P)) * np.arange(1, P + 1) + 3.0
TASK = RNG.integers(0, T, N)
W = RNG.normal(size=(P, 2)) @ RNG.normal(size=(2, T))
Y = (X * W.T[TASK]).sum(1) + 0.3 * RNG.normal(size=N)
TWO = np.where(np.median(Y) < Y, 1, 0)
THREE = np.digitize(Y, np.quantile(Y, [0.3, 0.6])) + 4
TABLE = X @ W + RNG.normal(size=(N, T))
HOLES = np.where(RNG.random((N, T)) < 0.3, np.nan, TABLE)
WEIGHT = RNG.uniform(0.2, 2.0, N) * (RNG.random(N) < 0.9)
NEW_X, NEW_TASK = RNG.normal(size=(60, P)) + 3.0, RNG.integers(T, T + 3, 60)
NEW_Y = NEW_X[:, 0] + 0.3 * RNG.normal(size=60)
FIXED = {"max_iter": 4, "tol": 0.0}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(params=NAMES)
def library(request):
    return make(request.param)


@pytest.fixture(params=[(name, width) for name in NAMES for width in (64, 32)])
def typed(request):
    return make(*request.param)


def outcomes(model, to, X, y, task=None, sample_weight=None):
    """All that a model says after a fit, with rows that ``to`` converts."""
    weight = None if sample_weight is None else to(sample_weight)
    model.fit(to(X), to(y), task=task, sample_weight=weight)
    found = [model.coef_, model.intercept_, model.predict(to(X), task=task)]
    if hasattr(model, "predict_proba"):
        found += [model.predict_proba(to(X), task=task), model.decision_function(to(X), task=task)]
    return found, model.score(to(X), to(y), task=task, sample_weight=weight)


def assert_follows(library, make_model, *data, **options):
    """Compare a fit in the library with that in NumPy."""
    (found, score), (expected, goal) = (
        outcomes(make_model(), to, *data, **options) for to in (library, np.asarray)
    )
    for one, other in zip(found, expected, strict=True):
        library.assert_same(one, other)
    assert type(score) is float
    assert_allclose(score, goal, atol=library.rtol)


# ---- factor models ------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [BiFactorRegressor(2), TriFactorRegressor(2, 2)])
@pytest.mark.parametrize("options", [{}, {"shared": True}, {"fit_intercept": False}])
def test_regressors(typed, model, options):
    assert_follows(typed, lambda: model.set_params(**FIXED, **options), X, Y, TASK)


@pytest.mark.parametrize("labels", [None, TWO])
def test_rows_in_several_blocks(library, labels, monkeypatch):
    monkeypatch.setattr("comtl.arrays.blocks.DEVICE_ENTRIES", 30 * P)
    monkeypatch.setattr("comtl.rows.design.DEVICE_ENTRIES", 30 * P)
    kind, y = (BiFactorRegressor, Y) if labels is None else (BiFactorClassifier, labels)
    assert_follows(library, lambda: kind(2, shared=True, **FIXED), X, y, TASK)


@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("model", [BiFactorClassifier(2), TriFactorClassifier(2, 2)])
def test_classifiers(typed, model, labels):
    if typed.width == 32 and labels is THREE:
        pytest.skip("single scores of three classes tie in single precision")
    assert_follows(typed, lambda: model.set_params(**FIXED), X, labels, TASK)


@pytest.mark.parametrize(
    ("y", "task"), [(TABLE, None), (HOLES, None), (Y, TASK)], ids=["complete", "holes", "rows"]
)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["even", "weighted"])
def test_tables_of_targets_and_weights(typed, y, task, weight):
    model = BiFactorRegressor(2, **FIXED)
    assert_follows(typed, lambda: model, X, y, task, sample_weight=weight)


@pytest.mark.parametrize(
    ("model", "y", "task"),
    [
        (BiFactorClassifier(2), (np.median(TABLE) < TABLE).astype(np.int64), None),
        (BiFactorClassifier(2, loss="squared"), THREE, TASK),
        (BiFactorRegressor(2, init="random"), Y, TASK),
        (BiFactorRegressor(2, standardize=False), Y, TASK),
        *[
            (TriFactorRegressor(2, 2, feature_penalty=kind, task_penalty=kind), Y, TASK)
            for kind in ("ridge", "l1", "nonnegative", "simplex", "clusters")
        ],
    ],
)
def test_options(library, model, y, task):
    assert_follows(library, lambda: model.set_params(random_state=0, **FIXED), X, y, task)


def test_more_features_than_grams_have_room_for(library, monkeypatch):
    monkeypatch.setattr("comtl.rows.design.DENSE_SIDE", 4)
    monkeypatch.setattr("comtl.engine.problem.DENSE_SIDE", 4)
    wide = RNG.normal(size=(N, 40))
    assert_follows(library, lambda: BiFactorRegressor(2, **FIXED), wide, Y, TASK)


def test_long_segments_are_summed_in_pieces(library, monkeypatch):
    monkeypatch.setattr("comtl.arrays.segments.PIECE", 7)
    assert_follows(library, lambda: BiFactorClassifier(2, **FIXED), X, TWO, TASK)


# ---- new tasks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize(
    "model,old,new",
    [
        (BiFactorRegressor(2), Y, NEW_Y),
        (BiFactorRegressor(2, task_penalty="l1"), Y, NEW_Y),
        (TriFactorRegressor(2, 2, task_penalty="clusters", random_state=0), Y, NEW_Y),
        (BiFactorClassifier(2), TWO, (np.median(NEW_Y) < NEW_Y).astype(int)),
        (BiFactorClassifier(2), THREE, np.digitize(NEW_Y, np.quantile(NEW_Y, [0.3, 0.6])) + 4),
    ],
    ids=["regressor", "l1", "clusters", "two", "three"],
)
def test_adapt(library, model, old, new, residual):
    def adapted(to):
        grown = model.set_params(**FIXED).fit(to(X), to(old), task=TASK)
        grown = grown.adapt(to(NEW_X), to(new), task=NEW_TASK, residual=residual)
        rows = np.concatenate([X, NEW_X])
        task = np.concatenate([TASK, NEW_TASK])
        unseen = grown.predict(to(NEW_X), task=np.full(60, 99))
        return grown.coef_, grown.intercept_, grown.predict(to(rows), task=task), unseen

    with pytest.warns(UserWarning, match="No task label is known"):
        for found, expected in zip(adapted(library), adapted(np.asarray), strict=True):
            library.assert_same(found, expected)


@pytest.mark.parametrize("residual", [False, True])
def test_adapt_to_further_columns(typed, residual):
    def adapted(to):
        grown = BiFactorRegressor(2, **FIXED).fit(to(X), to(HOLES))
        grown = grown.adapt(to(X), to(np.stack([Y, HOLES[:, 1]], 1)), residual=residual)
        return grown.coef_, grown.predict(to(NEW_X))

    # In single precision rounding moves the choice of the residual's penalty, and so the level.
    rtol = 2e-2 if residual and typed.width == 32 else None
    for found, expected in zip(adapted(typed), adapted(np.asarray), strict=True):
        typed.assert_same(found, expected, rtol)


# ---- reading ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [list, str, float, "device"])
def test_labels_of_tasks_may_be_of_any_kind(library, kind):
    labels = TASK.tolist() if kind is list else TASK if kind == "device" else TASK.astype(kind)
    given = library(TASK) if kind == "device" else labels
    model = BiFactorRegressor(2, **FIXED).fit(library(X), library(Y), task=given)
    assert type(model.tasks_) is np.ndarray
    expected = BiFactorRegressor(2, **FIXED).fit(X, Y, task=labels).predict(X, task=labels)
    library.assert_same(model.predict(library(X), task=given), expected)


def test_a_column_may_hold_the_task_and_numbers_may_be_whole(library):
    rows = np.round(np.concatenate([X[:, :2], TASK[:, None], X[:, 2:]], axis=1)).astype(np.int64)
    given = library(rows)
    model = BiFactorRegressor(2, task_column=2, **FIXED)
    found = model.fit(given, library(Y)).predict(given)
    library.assert_same(found, model.fit(rows, Y).predict(rows))
    library.assert_same(given, rows)  # it stays as it is


def test_targets_and_weights_of_numpy_are_moved(library):
    model = BiFactorRegressor(2, **FIXED).fit(library(X), Y, task=TASK, sample_weight=WEIGHT)
    expected = BiFactorRegressor(2, **FIXED).fit(X, Y, task=TASK, sample_weight=WEIGHT)
    library.assert_same(model.coef_, expected.coef_)
    assert_allclose(
        model.score(library(X), Y.tolist(), task=TASK),
        model.score(library(X), library(Y), task=TASK),
    )


def test_targets_of_another_library_go_to_rows_of_numpy(library):
    model = BiFactorRegressor(2, **FIXED).fit(X, library(Y), task=library(TASK))
    assert_allclose(model.coef_, BiFactorRegressor(2, **FIXED).fit(X, Y, task=TASK).coef_)


def test_classes_of_text_are_predicted_as_numpy_has_them(library):
    names = np.array(["no", "yes"])[TWO]
    model = BiFactorClassifier(2, **FIXED).fit(library(X), names, task=TASK)
    expected = BiFactorClassifier(2, **FIXED).fit(X, names, task=TASK)
    assert model.predict(library(X), task=TASK).tolist() == expected.predict(X, task=TASK).tolist()
    assert model.score(library(X), names, task=TASK) == expected.score(X, names, task=TASK)


def test_rows_in_order_are_not_copied():
    torch = make("torch").module
    from comtl.rows.reading import read_training

    rows = torch.asarray(X)
    data = read_training(BiFactorRegressor(), rows, torch.asarray(Y), np.sort(TASK))
    assert data.X.data_ptr() == rows.data_ptr()


def changed(values, place, value):
    values = values.copy()
    values[place] = value
    return values


@pytest.mark.parametrize(
    ("X", "y", "options", "words"),
    [
        (changed(X, (5, 2), np.nan), Y, {}, "Input X contains NaN"),
        (changed(X, (5, 2), np.inf), Y, {}, "Input X contains infinity"),
        (X, changed(Y, 3, np.nan), {}, "Input y contains NaN"),
        (X, changed(Y, 3, np.inf), {}, "Input y contains infinity"),
        (X, Y[:-1], {}, "inconsistent numbers of samples"),
        (X, Y, {"task": [0, 1, 2]}, "task has 3 labels"),
        (Y, Y, {}, "Expected 2D array"),
        (X, Y, {"sample_weight": -WEIGHT}, "negative"),
        (X, Y, {"sample_weight": WEIGHT[:-1]}, "sample_weight has the shape"),
    ],
)
def test_what_does_not_fit_is_refused(library, X, y, options, words):
    options = {"task": TASK} | options
    if "sample_weight" in options:
        options["sample_weight"] = library(options["sample_weight"])
    with pytest.raises(ValueError, match=words):
        BiFactorRegressor(2).fit(library(X), library(y), **options)


def test_rows_that_cannot_be_predicted_for_are_refused(library):
    model = BiFactorRegressor(2, **FIXED).fit(library(X), library(Y), task=TASK)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.predict(library(changed(X, (5, 2), np.nan)), task=TASK)
    with pytest.raises(ValueError, match="features"):
        model.predict(library(X[:, :-1]), task=TASK)


def test_rows_of_another_place_than_those_of_the_fit_are_refused(library):
    model = BiFactorRegressor(2, **FIXED).fit(library(X), library(Y), task=TASK)
    with pytest.raises(TypeError, match="to_numpy"):
        model.predict(X, task=TASK)
    model.fit(X, Y, task=TASK)
    with pytest.raises(TypeError, match="fitted on numpy"):
        model.predict(library(X), task=TASK)


def test_arrays_of_two_libraries_are_refused():
    torch, strict = (make(name) for name in NAMES)
    with pytest.raises(TypeError, match="two libraries"):
        BiFactorRegressor(2).fit(torch(X), strict(Y), task=TASK)


def test_devices_are_not_mixed():
    strict = make("strict")
    model = BiFactorRegressor(2, **FIXED).fit(strict(X), strict(Y), task=TASK)
    elsewhere = strict.module.asarray(X, device=strict.module.Device("device2"))
    with pytest.raises(TypeError, match="device2"):
        model.predict(elsewhere, task=TASK)
    # Targets are small: they are moved to the rows.
    target = strict.module.asarray(Y, device=strict.module.Device("device2"))
    again = BiFactorRegressor(2, **FIXED).fit(strict(X), target, task=TASK)
    strict.assert_same(again.coef_, BiFactorRegressor(2, **FIXED).fit(X, Y, task=TASK).coef_)


def test_tensors_that_record_gradients(library):
    if library.name != "torch":
        pytest.skip("only torch has gradients")
    rows = library(X).requires_grad_(True)
    model = BiFactorRegressor(2, **FIXED).fit(rows, library(Y).requires_grad_(True), task=TASK)
    assert not model.coef_.requires_grad
    assert not model.predict(rows, task=TASK).requires_grad


# ---- back to NumPy ------------------------------------------------------------------------------


@pytest.mark.parametrize("adapted", [False, True])
def test_a_copy_of_numpy(typed, adapted, tmp_path):
    def fitted(to):
        model = BiFactorClassifier(2, random_state=0, **FIXED).fit(to(X), to(TWO), task=TASK)
        if adapted:
            labels = (np.median(NEW_Y) < NEW_Y).astype(int)
            model = model.adapt(to(NEW_X), to(labels), task=NEW_TASK)
        return model

    model, expected = fitted(typed), fitted(np.asarray)
    copy = model.to_numpy()
    assert type(copy.coef_) is type(copy.feature_factor_) is np.ndarray
    assert type(model.coef_) is not np.ndarray, "the model itself stays where it is"
    options = {"rtol": typed.rtol, "atol": 10 * typed.rtol}
    assert_allclose(copy.coef_, expected.coef_, **options)
    chance = copy.predict_proba(X, task=TASK)
    assert_allclose(chance, expected.predict_proba(X, task=TASK), **options)
    assert copy.tasks_.tolist() == expected.tasks_.tolist()
    model.save(tmp_path / "model.comtl")
    loaded = comtl.load(tmp_path / "model.comtl")
    assert_allclose(loaded.predict_proba(X, task=TASK), chance)
    copy.adapt(NEW_X, np.repeat([0, 1], 30), task=NEW_TASK + 100)


def test_a_model_of_numpy_is_its_own_copy():
    model = BiFactorRegressor(2, **FIXED).fit(X, Y, task=TASK)
    assert model.to_numpy() is model


def test_clusters_and_tables_are_those_of_numpy(library):
    model = TriFactorRegressor(2, 2, random_state=0, **FIXED).fit(library(X), library(Y), task=TASK)
    expected = TriFactorRegressor(2, 2, random_state=0, **FIXED).fit(X, Y, task=TASK)
    assert model.feature_clusters_.tolist() == expected.feature_clusters_.tolist()
    assert model.task_clusters_.tolist() == expected.task_clusters_.tolist()
    assert_allclose(model.coef_frame(), expected.coef_frame())
    assert_allclose(model.task_frame(), expected.task_frame())
    assert model._repr_html_()


def test_a_page_of_the_model_alone(library, tmp_path):
    model = BiFactorRegressor(2, random_state=0, **FIXED).fit(library(X), library(Y), task=TASK)
    assert model.report(tmp_path / "report.html").stat().st_size > 10_000
    with pytest.raises(TypeError, match="pass arrays of NumPy"):
        model.report(tmp_path / "report.html", library(X), library(Y), TASK)


def test_nothing_is_imported_for_those_who_use_numpy():
    code = (
        "import sys, numpy as np, comtl\n"
        "X, task = np.arange(40.0).reshape(20, 2) ** 1.5, np.repeat([0, 1], 10)\n"
        "comtl.BiFactorRegressor(1).fit(X, X[:, 0], task=task).predict(X, task=task)\n"
        "assert not {'torch', 'cupy', 'array_api_strict'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
