"""Many fits in one batch: each as if it were alone, in any array library."""

import warnings
from functools import partial
from unittest import mock

import array_api_strict as strict
import numpy as np
import pytest

from comtl import BiFactorRegressorCV, TaskStratifiedKFold, TriFactorRegressorCV
from comtl.arrays import namespace, to_numpy
from comtl.batches import batch_run as run
from comtl.batches.batch_run import HeldOutGrams, advance, batched_losses, begin, fit_batch
from comtl.batches.batch_start import batchable, start_fits
from comtl.batches.batch_state import BatchGrams, Plan
from comtl.datafits.gram_datafit import GramDatafit
from comtl.datasets import make_syn1, make_syn4
from comtl.engine import alternation
from comtl.engine import starts as starting
from comtl.engine.recipe import Recipe, Schedule
from comtl.models import grid
from comtl.penalties import L1, Free, Ridge
from comtl.solvers.conjugate_gradient import conjugate_gradient

P, T = 8, 14
RANKS, ALPHAS = (1, 2, 4), (0.01, 1.0, 300.0)
SCHEDULE = Schedule(max_iter=60)


def fold(seed, spread=1.0):
    """Rows of all tasks as Grams, of three latent features, intercepts of their own."""
    rng = np.random.default_rng(seed)
    coef = rng.standard_normal((T, 3)) @ rng.standard_normal((3, P))
    grams, moments, energies = [], [], []
    for weights in coef:
        X = np.column_stack([rng.standard_normal((12, P)), np.ones(12)])
        y = X[:, :-1] @ weights + spread * rng.standard_normal() + rng.standard_normal(12)
        grams.append(X.T @ X)
        moments.append(X.T @ y)
        energies.append(y @ y)
    return GramDatafit(np.array(grams), np.array(moments), np.array(energies))


FOLDS = [fold(0), fold(1, spread=3.0)]


def settings(core=True, ranks=RANKS, alphas=ALPHAS, **options):
    third = {"S": Ridge(1.0)} if core else {}
    return [Recipe({"F": 0.1, **third, "G": a}, (k, k), **options) for k in ranks for a in alphas]


def all_places(recipes, folds=FOLDS):
    pairs = [(fold, number) for number in range(len(recipes)) for fold in range(len(folds))]
    return np.array(pairs).T


def alone(datafit, recipe, schedule=SCHEDULE):
    state = starting.start_state(datafit, recipe, schedule, like=datafit.gram)
    return list(alternation.alternate(datafit, state, schedule))


def in_library(asarray, datafit):
    return GramDatafit(*(asarray(it) for it in (datafit.gram, datafit.moment, datafit.energy)))


@pytest.fixture(params=["both", "direct", "iterative"])
def solvers(request, monkeypatch):
    """Fits of one batch by several solvers, or all by one kind."""
    few, narrow = {"both": (50, 2), "direct": (10**6, 10**6), "iterative": (0, 0)}[request.param]
    for one, many in (("engine.feature_step", "engine.task_steps"), ("batches.batch_state",) * 2):
        monkeypatch.setattr(f"comtl.{one}.DENSE_UNKNOWNS", few)
        monkeypatch.setattr(f"comtl.{many}.WOODBURY_WIDTH", narrow)


# ---- each as if it were alone -------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"core": False},
        {"shared": 0.5},
        {"shared": 0.5, "intercept": False},
        {"core": False, "intercept_penalty": 0.3},
        {"intercept_penalty": float("inf")},
    ],
    ids=str,
)
def test_every_sweep_is_that_of_a_fit_alone(options, solvers):
    recipes = settings(alphas=(0.01, 300.0), **options)
    places = all_places(recipes)
    fits = start_fits(FOLDS, recipes, places, SCHEDULE)
    ranks = np.array([recipes[number].ranks[0] for number in places[1]])
    plan, cells = Plan(ranks, P, T), BatchGrams.of(FOLDS, places[0])
    step = begin(cells, fits)
    single = [alone(FOLDS[fold], recipes[number]) for fold, number in places.T]
    for sweep in range(max(map(len, single))):
        if sweep:
            step = advance(cells, step, plan, SCHEDULE, sweep)
        expected = [steps[min(sweep, len(steps) - 1)] for steps in single]
        objective = np.array([it.objective for it in expected])
        np.testing.assert_allclose(step.objective, objective, rtol=1e-8)
        outside = np.arange(ranks.max()) >= ranks[:, None]
        assert not any(getattr(step.fits.factors, name).mT[outside].any() for name in "FG")
        weights = step.fits.factors.task_weights
        for own, it in zip(weights, expected, strict=True):
            coef = it.state.factors.coef.T
            np.testing.assert_allclose(own[:, :-1], coef, atol=1e-8 * (1 + np.abs(coef).max()))
            np.testing.assert_allclose(own[:, -1], it.state.factors.intercepts, atol=1e-8)
    assert step.converged.tolist() == [steps[-1].converged for steps in single]
    assert step.sweeps.tolist() == [steps[-1].sweep for steps in single]


def test_fits_that_are_done_stay(monkeypatch):
    recipes = settings()
    places = all_places(recipes)
    sizes = []
    advanced = run.advance

    def counted(cells, step, *rest):
        sizes.append(cells.gram.shape[0])
        return advanced(cells, step, *rest)

    monkeypatch.setattr(run, "advance", counted)
    compact = fit_batch(FOLDS, recipes, places, SCHEDULE)
    assert len(set(sizes)) > 2 and sizes == sorted(sizes, reverse=True)
    sizes.clear()
    monkeypatch.setattr(run, "MIN_ACTIVE_SHARE", 0.0)
    whole = fit_batch(FOLDS, recipes, places, SCHEDULE)
    assert set(sizes) == {places.shape[1]}
    np.testing.assert_array_equal(whole.sweeps, compact.sweeps)
    np.testing.assert_allclose(whole.objective, compact.objective, rtol=1e-10)
    assert len(set(whole.sweeps.tolist())) > 2
    short = fit_batch(FOLDS, recipes, places, Schedule(max_iter=2))
    assert not short.converged.any() and (short.sweeps == 2).all()


def test_what_can_share_a_batch():
    assert all(batchable(it) for it in settings() + settings(core=False))
    for penalties in ({"F": Ridge(1.0), "G": 1.0}, {"F": 1.0, "S": Free(), "G": 1.0}):
        assert not batchable(Recipe(penalties, (2, 2)))
    assert not batchable(Recipe({"F": 1.0, "S": L1(1.0), "G": 1.0}, (2, 2)))
    assert not batchable(Recipe({"F": 1.0, "S": Ridge(1.0), "G": 1.0}, (2, 3)))
    assert not batchable(Recipe({"F": 1.0, "G": 1.0}, (2, 2), fixed={"F": np.ones((P, 2))}))


def test_many_systems_by_conjugate_gradients():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((5, 6, 6))
    matrix, right = root @ root.mT + 0.1 * np.eye(6), rng.standard_normal((5, 6))
    matrix[3], right[4] = 0.0, 0.0  # no descent, and nothing to solve
    scale = 1.0 / (np.trace(matrix, axis1=1, axis2=2) + 1.0)
    found = conjugate_gradient(
        lambda x: (matrix @ x[..., None])[..., 0],
        right,
        preconditioner=lambda r: scale[:, None] * r,
        tol=0.05,
        max_iter=50,
        many=True,
    ).value
    for own, other, start, size in zip(found, matrix, right, scale, strict=True):
        scaled = partial(np.multiply, size)
        single = conjugate_gradient(
            other.__matmul__, start, preconditioner=scaled, tol=0.05, max_iter=50
        )
        np.testing.assert_allclose(own, single.value, atol=1e-10)


# ---- libraries ----------------------------------------------------------------------------------


def library(name):
    if name == "strict":
        return strict
    return pytest.importorskip("torch", reason="torch is not installed")


@pytest.mark.parametrize("name", ["torch", "strict"])
@pytest.mark.parametrize("options", [{}, {"core": False, "shared": 0.5}], ids=str)
def test_arrays_stay_in_their_library(name, options, solvers):
    xp = library(name)
    recipes = settings(**options)
    places = all_places(recipes)
    expected = fit_batch(FOLDS, recipes, places, SCHEDULE)
    found = fit_batch([in_library(xp.asarray, it) for it in FOLDS], recipes, places, SCHEDULE)
    kind = type(xp.asarray(np.ones(1)))
    point = found.fits.factors
    parts = point.F, point.S, point.G, point.offset, found.objective, found.fits.intercept_penalty
    assert all(part is None or isinstance(part, kind) for part in parts)
    np.testing.assert_array_equal(to_numpy(found.sweeps), expected.sweeps)
    np.testing.assert_allclose(to_numpy(found.objective), expected.objective, rtol=1e-8)


def test_arrays_stay_on_their_device():
    device = strict.Device("device1")

    def there(values):
        return strict.asarray(values, device=device)

    if namespace(there(0.0)).zeros(1).device != device:
        pytest.skip("namespaces do not follow the device of an array")
    folds = [in_library(there, it) for it in FOLDS]
    recipes = settings(ranks=(1, 2))
    found = fit_batch(folds, recipes, all_places(recipes), SCHEDULE)
    assert found.fits.factors.F.device == found.objective.device == device
    held_out = [HeldOutGrams(it, folds[1], np.arange(T)) for it in folds]
    assert np.isfinite(batched_losses(held_out, 2 * [recipes], SCHEDULE, together=True)).all()


@pytest.mark.parametrize("name", ["torch", "strict"])
def test_losses_of_any_library(name):
    xp, recipes = library(name), settings(ranks=(1, 2))
    test, codes = fold(5), np.where(np.arange(T) == 3, -1, np.arange(T))
    folds = [HeldOutGrams(it, test, codes, 2.0) for it in FOLDS]
    expected = batched_losses(folds, 2 * [recipes], SCHEDULE, together=False)
    held = in_library(xp.asarray, test)
    folds = [HeldOutGrams(in_library(xp.asarray, it), held, codes, 2.0) for it in FOLDS]
    found = batched_losses(folds, 2 * [recipes], SCHEDULE, together=True)
    assert isinstance(found, np.ndarray) and found.shape == (2, 6)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


# ---- searches -----------------------------------------------------------------------------------


def searched(kind, ranks, data, limit=grid.BATCHED, **options):
    options = {"alphas": (0.01, 0.1, 1.0, 100.0), "cv": 3, "random_state": 0, **options}
    with mock.patch.object(grid, "BATCHED", limit), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(*ranks, **options).fit(data.X, data.y, task=data.task)


def assert_same_scores(one, other, rtol):
    scores = [model.cv_results_["mean_test_score"] for model in (one, other)]
    np.testing.assert_allclose(*scores, rtol=rtol)


@pytest.mark.parametrize("make", [make_syn1, make_syn4])
@pytest.mark.parametrize(
    ("kind", "ranks"), [(BiFactorRegressorCV, ([2, 5],)), (TriFactorRegressorCV, ([2, 4], [2, 5]))]
)
def test_the_winner_is_that_of_fits_alone(kind, ranks, make):
    data = make(n_tasks=12, random_state=1)
    batched, one_by_one = (
        searched(kind, ranks, data, limit, warm_path=False) for limit in (grid.BATCHED, 0)
    )
    assert batched.best_params_ == one_by_one.best_params_
    np.testing.assert_array_equal(batched.coef_, one_by_one.coef_)
    assert_same_scores(batched, one_by_one, 1e-7)


def test_rows_of_single_precision():
    data = make_syn1(n_tasks=8, random_state=1)
    exact = searched(BiFactorRegressorCV, ([2, 4],), data)
    data.X, data.y = data.X.astype(np.float32), data.y.astype(np.float32)
    single = searched(BiFactorRegressorCV, ([2, 4],), data)
    assert single.coef_.dtype == np.float32 and single.best_params_ == exact.best_params_
    assert_same_scores(single, exact, 1e-4)


def test_batches_of_memory_size_are_cut(monkeypatch):
    data = make_syn1(n_tasks=6, random_state=1)
    whole = searched(BiFactorRegressorCV, ([1, 3],), data)
    monkeypatch.setattr("comtl.batches.batch_run.DENSE_BYTES", 100_000)
    assert_same_scores(whole, searched(BiFactorRegressorCV, ([1, 3],), data), 1e-10)


def test_other_models_are_fitted_one_by_one(monkeypatch):
    data = make_syn1(n_tasks=6, random_state=1)
    monkeypatch.setattr(grid, "_batch", mock.Mock(side_effect=AssertionError))
    searched(BiFactorRegressorCV, ([2],), data, max_iter=1, task_penalty="ridge")
    searched(BiFactorRegressorCV, ([2],), data, 100, max_iter=1)
    with pytest.raises(AssertionError):
        searched(BiFactorRegressorCV, ([2],), data)


def test_tasks_that_a_fold_has_not_seen():
    data = make_syn4(n_tasks=6, random_state=1)
    rows = np.arange(len(data.y))
    folds = [(rows[data.task != left], rows[data.task == left]) for left in (0, 3)]
    folds += list(TaskStratifiedKFold(2).split(data.X, None, data.task))
    options = {"alphas": (0.1, 10.0), "cv": folds, "warm_path": False}
    batched, one_by_one = (
        searched(BiFactorRegressorCV, ([2, 6],), data, limit, **options)
        for limit in (grid.BATCHED, 0)
    )
    assert_same_scores(batched, one_by_one, 1e-7)
