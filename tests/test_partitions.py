"""Rows in partitions, one after the other in this process: the same models as from one table."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold

import comtl.baselines
from comtl import (
    BiFactorClassifier,
    BiFactorRegressor,
    BiFactorRegressorCV,
    HierarchicalClassifier,
    HierarchicalRegressor,
    MultitaskRegressor,
    TriFactorRegressor,
    TriFactorRegressorCV,
)
from comtl.distributed import partitioned_input as partitioned_rows
from comtl.distributed import partitioned_problem
from comtl.distributed.dask_collections import partitions
from comtl.engine import problem as problem_module
from comtl.rows import design
from comtl.rows.fit_input import FitInput

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N, P, T = 600, 7, 15


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(N, P)), rng.integers(0, T, N)
    W = rng.normal(size=(P, 2)) @ rng.normal(size=(2, T))
    y = (X * W[:, task].T).sum(1) + rng.normal(size=T)[task] + rng.normal(size=N)
    return X, y, task, rng.uniform(0.5, 2.0, N)


def cut(chunks, *arrays):
    return [da.from_array(a, chunks=(chunks,) + (-1,) * (a.ndim - 1)) for a in arrays]


def assert_same(one, other, rtol=1e-8):
    size = np.abs(one.coef_).max()
    assert_allclose(other.coef_, one.coef_, rtol=0.0, atol=rtol * size)
    assert_allclose(other.intercept_, one.intercept_, rtol=0.0, atol=rtol * max(size, 1.0))
    assert_allclose(other.tasks_, one.tasks_)


def on_rows(monkeypatch):
    """Without Grams, so that the alternation works on the partitions to the end."""
    monkeypatch.setattr(problem_module, "DENSE_BYTES", 0)


ORDERS = {
    "by task": lambda task: np.argsort(task, kind="stable"),
    "by row": lambda task: np.arange(len(task)),
    "random": lambda task: np.random.default_rng(1).permutation(len(task)),
}


def both(model, chunks, X, y, rtol=1e-8, **others):
    """The same model of one table and of its partitions, and what ``predict`` takes of these."""
    whole = clone(model).fit(X, y, **others)
    dX, dy, *lazy = cut(chunks, X, y, *others.values())
    lazy = dict(zip(others, lazy, strict=True))
    part = clone(model).fit(dX, dy, **lazy)
    assert_same(whole, part, rtol)
    return whole, part, (dX, lazy.get("task"))


def classes_of(y, kinds):
    return np.digitize(y, [0.0] if kinds == 2 else [-1.0, 1.0])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("chunks", [N, 170, 40])
@pytest.mark.parametrize("grams", [True, False])
def test_any_partitioning_gives_the_model_of_one_table(table, order, chunks, grams, monkeypatch):
    if not grams:
        on_rows(monkeypatch)
    X, y, task, weights = (a[ORDERS[order](table[2])] for a in table)
    model = BiFactorRegressor(3, max_iter=5, tol=0.0, random_state=0)
    whole, part, _ = both(model, chunks, X, y, task=task, sample_weight=weights)
    assert part.solver_["rows"] == ("gram" if grams else "partitions")
    assert_allclose(part.objective_history_, whole.objective_history_, rtol=1e-10)


@pytest.mark.parametrize(
    "model",
    [
        TriFactorRegressor(2, 3, max_iter=4, random_state=0),
        TriFactorRegressor(3, 2, shared=True, fit_intercept=False, max_iter=4, random_state=0),
        BiFactorRegressor(14, max_iter=4, random_state=0),
        comtl.baselines.FactoredRegressor(2, max_iter=4, random_state=0),
        comtl.baselines.GroupOverlapRegressor(2, max_iter=4, random_state=0),
        comtl.baselines.MeanRegularizedRegressor(),
    ],
)
def test_any_model_without_grams(table, model, monkeypatch):
    on_rows(monkeypatch)
    X, y, task, weights = (a[ORDERS["random"](table[2])] for a in table)
    whole, part, _ = both(model, 130, X, y, task=task, sample_weight=weights)
    assert part.solver_["rows"] == "partitions"
    # The start of weights without factors has signs of singular vectors, which are anyone's.
    assert_allclose(part.objective_history_[1:], whole.objective_history_[1:], rtol=1e-8)


@settings(max_examples=15, deadline=None)
@given(
    cuts=st.lists(st.integers(1, N - 1), max_size=6, unique=True),
    shared=st.booleans(),
    intercept=st.booleans(),
)
def test_any_cuts(table, cuts, shared, intercept):
    X, y, task, _ = table
    sizes = tuple(np.diff([0, *sorted(cuts), N]).tolist())
    kind = {"shared": shared, "fit_intercept": intercept, "random_state": 0, "max_iter": 3}
    both(TriFactorRegressor(2, 3, **kind), sizes, X, y > 1.0, task=task)


@pytest.mark.parametrize("name", comtl.baselines.__all__)
def test_every_baseline(table, name):
    X, y, task, _ = table
    model = getattr(comtl.baselines, name)(max_iter=4)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    both(model, 250, X, y > 0 if name.endswith("Classifier") else y, rtol=1e-7, task=task)


@pytest.mark.parametrize("kinds", [2, 3])
def test_classes(table, kinds):
    X, y, task, _ = table
    names = np.array(["low", "high"] if kinds == 2 else ["low", "middle", "high"])
    labels = names[classes_of(y, kinds)]
    # A task that never saw a class, and a partition that has one class only.
    labels[task == 3] = "low"
    order = np.argsort(labels, kind="stable")
    X, labels, task = X[order], labels[order], task[order]
    model = BiFactorClassifier(2, max_iter=4, random_state=0)
    whole, part, (dX, dt) = both(model, 90, X, labels, task=task)
    assert list(part.classes_) == list(whole.classes_)
    assert_allclose(part.predict_proba(dX, task=dt).compute(), whole.predict_proba(X, task=task))
    assert (part.predict(dX, task=dt).compute() == whole.predict(X, task=task)).all()
    (dy,) = cut(90, labels)
    assert part.score(dX, dy, task=dt) == pytest.approx(whole.score(X, labels, task=task))


@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize("kind", [BiFactorRegressor, HierarchicalRegressor])
def test_targets_of_two_dimensions(gaps, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    Y = np.where(rng.random((200, 6)) < gaps, np.nan, rng.normal(size=(200, 6)))
    dX, dY = da.from_array(X, chunks=(60, 2)), da.from_array(Y, chunks=(50, 3))
    whole, part = kind(max_iter=4).fit(X, Y), kind(max_iter=4).fit(dX, dY)
    assert_same(whole, part)
    assert part.predict(dX).shape == (200, 6)
    assert part.score(dX, dY) == pytest.approx(whole.score(X, Y))


def test_scores_are_those_of_the_loss(table):
    X, y, task, weights = table
    counts = np.floor(np.exp(0.3 * y))
    model = BiFactorRegressor(2, loss="poisson", max_iter=4, random_state=0)
    expected = model.fit(X, counts, task=task).score(X, counts, task=task, sample_weight=weights)
    dX, dy, dt, dw = cut(130, X, counts, task, weights)
    assert model.score(dX, dy, task=dt, sample_weight=dw) == pytest.approx(expected)


@pytest.mark.parametrize("structure", ["intercept", "isotropic", "diagonal", "full", "factor"])
def test_hierarchical(table, structure):
    X, y, task, weights = table
    model = HierarchicalRegressor(structure, max_iter=8)
    whole, part, (dX, dt) = both(model, 130, X, y, task=task, sample_weight=weights)
    assert part.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-10)
    low, high = part.predict_interval(dX, task=dt)
    assert_allclose(low.compute(), whole.predict_interval(X, task=task)[0])
    assert (high > low).all().compute()


@pytest.mark.parametrize("kinds", [2, 3])
def test_hierarchical_classes(table, kinds):
    X, y, task, _ = table
    model = HierarchicalClassifier("isotropic", max_iter=5)
    whole, part, _ = both(model, 130, X, classes_of(y, kinds), task=task)
    assert part.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-10)


@pytest.mark.parametrize("nearby", [True, False])
@pytest.mark.parametrize("kind", [BiFactorRegressorCV, TriFactorRegressorCV])
def test_searches(table, kind, nearby, monkeypatch):
    if not nearby:
        monkeypatch.setattr(partitioned_rows, "DENSE_BYTES", 0)
    X, y, task, _ = table
    ranks = {"n_components": [1, 2]} if kind is BiFactorRegressorCV else {}
    model = kind(**ranks, alphas=[0.1, 10.0], cv=3, random_state=0)
    whole, part, _ = both(model, 250, X, y, task=task)
    assert part.best_params_ == whole.best_params_
    scores = [m.cv_results_["mean_test_score"] for m in (part, whole)]
    assert_allclose(scores[0], scores[1], rtol=1e-8)


def test_stacks_come_together_here(table, monkeypatch):
    X, y, task, _ = table
    both(MultitaskRegressor(cv=2), 250, X[:, :2], y, task=task)
    monkeypatch.setattr(partitioned_rows, "MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="brings its rows together in one process"):
        MultitaskRegressor(cv=2).fit(*cut(250, X, y), task=task)


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("kinds", [0, 2, 3])
def test_new_tasks_that_straddle_partitions(table, residual, kinds):
    X, y, task, _ = table
    target = classes_of(y, kinds) if kinds else y
    kind = BiFactorClassifier if kinds else BiFactorRegressor
    model = kind(2, max_iter=4, random_state=0).fit(X, target, task=task)
    dX, dy, dt = cut(130, X, target, task + 100)
    whole = model.adapt(X, target, task=task + 100, residual=residual)
    assert_same(whole, model.adapt(dX, dy, task=dt, residual=residual))
    with pytest.raises(ValueError, match="knows already"):
        model.adapt(dX, dy, task=dt - 100)
    with pytest.raises(ValueError, match="the same ones in the same order"):
        model.adapt(dX[:, :3], dy, task=dt)


def test_frames(table, tmp_path):
    X, y, task, _ = table
    rows = pd.DataFrame(X, columns=[f"x{i}" for i in range(P)])
    rows["store"] = np.array([f"store {t:02}" for t in task])
    # Not by Dask, whose writer calls what pandas will take away.
    for number, some in enumerate(np.array_split(np.arange(len(rows)), 4)):
        rows.assign(sales=y).iloc[some].to_parquet(tmp_path / f"part.{number}.parquet")
    lazy = dd.read_parquet(tmp_path / "part.*.parquet")
    lazy, sales = lazy.drop(columns="sales"), lazy["sales"]
    model = BiFactorRegressor(2, task_column="store", max_iter=4, random_state=0)
    whole, part = clone(model).fit(rows, y), model.fit(lazy, sales)
    assert list(part.tasks_) == list(whole.tasks_)
    assert list(part.feature_names_in_) == list(whole.feature_names_in_)
    assert_allclose(part.coef_, whole.coef_, rtol=1e-8)
    guess = part.predict(lazy)
    assert isinstance(guess, da.Array)
    assert_allclose(guess.compute(), whole.predict(rows))
    assert part.score(lazy, sales) == pytest.approx(whole.score(rows, y))


@pytest.mark.parametrize("wide", [False, True])
def test_sparse_rows(wide, monkeypatch):
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 60), density=0.1, rng=rng, format="csr")
    y, task = rng.normal(size=300), rng.integers(0, 6, 300)
    for module in (design, problem_module, partitioned_problem) if wide else ():
        monkeypatch.setattr(module, "DENSE_SIDE", 20)
    dX = da.from_array(X.toarray(), chunks=(90, 60)).map_blocks(sparse.csr_array, dtype=float)
    whole, part = (
        BiFactorRegressor(2, max_iter=4, random_state=0).fit(rows, y, task=task) for rows in (X, dX)
    )
    assert_same(whole, part)


def test_float32_stays(table):
    X, y, task, _ = table
    model = BiFactorRegressor(2, max_iter=4, random_state=0)
    _, part, _ = both(model, 250, X.astype(np.float32), y, rtol=1e-3, task=task)
    assert part.coef_.dtype == np.float32


# ---- what is refused ----------------------------------------------------------------------------


def test_bad_rows_are_named_by_partition(table):
    X, y, task, _ = table
    bad = X.copy()
    bad[300, 2] = np.nan
    with pytest.raises(ValueError, match=r"Partition 2 \(counted from 0\).*NaN"):
        BiFactorRegressor().fit(*cut(120, bad, y), task=task)


def test_what_does_not_go_together(table):
    X, y, task, _ = table
    dX, dy, dt = cut(120, X, y, task)
    with pytest.raises(TypeError, match="y is a Dask collection, but X is ndarray"):
        BiFactorRegressor().fit(X, dy, task=task)
    with pytest.raises(ValueError, match="X has 5 partitions and task has 3"):
        BiFactorRegressor().fit(dX, dy, task=dd.from_pandas(pd.Series(task), npartitions=3))
    with pytest.raises(ValueError, match="task has 10 entries, but X has 600 rows"):
        BiFactorRegressor().fit(dX, dy, task=task[:10])
    with pytest.raises(ValueError, match="requires y to be passed"):
        BiFactorRegressor().fit(dX, None, task=dt)
    with pytest.raises(ValueError, match="only one class"):
        BiFactorClassifier().fit(dX, da.zeros(N, chunks=120), task=dt)
    with pytest.raises(TypeError, match="compute_chunk_sizes"):
        BiFactorRegressor().fit(dX[dX[:, 0] > 0], y, task=task)
    with pytest.raises(ValueError, match="columns without any observed value"):
        BiFactorRegressor().fit(*cut(120, X, np.stack([y, np.full(N, np.nan)], axis=1)))
    halves = task[:300].astype(object), task[300:].astype(str).astype(object)
    labels = da.concatenate([da.from_array(half, chunks=300) for half in halves])
    with pytest.raises(ValueError, match="labels of different types"):
        BiFactorRegressor().fit(*cut(300, X, y), task=labels)


def test_columns_in_several_chunks_are_put_together(table):
    X = da.from_array(table[0], chunks=(120, 3))
    parts = partitions(X, y=table[1], task=None, sample_weight=1.0)
    assert len(parts) == 5
    assert parts[0]["X"].compute().shape == (120, P)
    assert parts[1]["sample_weight"] == 1.0


def test_nothing_of_dask_is_imported_for_other_rows():
    import subprocess
    import sys

    code = (
        "import sys, numpy as np; from comtl import BiFactorRegressor;"
        "BiFactorRegressor(1).fit(np.eye(8), np.arange(8.0), task=np.arange(8) % 2);"
        "assert not {'dask', 'distributed', 'torch'} & set(sys.modules), 'imported'"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


@pytest.mark.parametrize("cv", [4, KFold(3)], ids=["number", "splitter"])
def test_folds_leave_out_rows_of_weight_zero_as_those_of_one_table_do(table, cv):
    X, y, task, weights = table
    weights = np.where(np.arange(N) % 3, weights, 0.0)
    schema = MultitaskRegressor()
    parted = partitioned_rows.PartitionedInput(*cut(130, X, y, task, weights))
    found, expected = (rows.splits(schema, cv) for rows in (parted, FitInput(X, y, task, weights)))
    assert np.all(weights[np.concatenate([test for _, test in found])] > 0.0)
    for one, other in zip(found, expected, strict=True):
        assert_allclose(np.concatenate(one), np.concatenate(other))
