"""Fits on a real cluster of processes, and what happens when parts of it fail."""

import os
import threading
import time
import warnings

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import psutil
import pytest
from distributed import Client, LocalCluster
from numpy.testing import assert_allclose

import comtl
from comtl import BiFactorClassifier, BiFactorRegressor, BiFactorRegressorCV
from comtl.distributed.executors import LostClusterError
from comtl.engine import problem as problem_module

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*inplace keyword"
)

N, P, T = 4000, 10, 60


@pytest.fixture(autouse=True)
def on_rows(monkeypatch):
    """Without Grams, so that every step of the alternation goes to the cluster."""
    monkeypatch.setattr(problem_module, "DENSE_BYTES", 0)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(N, P)), rng.integers(0, T, N)
    W = rng.normal(size=(P, 2)) @ rng.normal(size=(2, T))
    y = (X * W[:, task].T).sum(1) + rng.normal(size=T)[task] + rng.normal(size=N)
    return X, y, task


def start(workers, **options):
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50, **options}
    return LocalCluster(n_workers=workers, **options)


@pytest.fixture(scope="module")
def client():
    with start(2) as cluster, Client(cluster) as client:
        yield client


def cut(chunks, *arrays):
    return [da.from_array(a, chunks=(chunks,) + (-1,) * (a.ndim - 1)) for a in arrays]


def model(**options):
    return BiFactorRegressor(3, tol=0.0, random_state=0, **{"max_iter": 4, **options})


@pytest.fixture(scope="module")
def expected(table):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(problem_module, "DENSE_BYTES", 0)
        return model().fit(table[0], table[1], task=table[2])


def assert_same(one, other):
    assert other.solver_["rows"] == "partitions"
    assert_allclose(other.coef_, one.coef_, rtol=0.0, atol=1e-8 * np.abs(one.coef_).max())


@pytest.mark.parametrize("by_task", [True, False])
def test_two_workers(table, client, by_task):
    X, y, task = (a[np.argsort(table[2])] for a in table) if by_task else table
    dX, dy, dt = cut(900, X, y, task)
    assert_same(model().fit(X, y, task=task), model().fit(dX, dy, task=dt))


@pytest.mark.parametrize("workers", [1, 4])
def test_other_numbers_of_workers(table, expected, workers):
    with start(workers) as cluster, Client(cluster):
        dX, dy, dt = cut(450, *table)
        assert_same(expected, model().fit(dX, dy, task=dt))


def test_classes_and_predictions(table, client):
    X, y, task = table
    dX, dy, dt = cut(900, X, y > 0, task)
    whole = BiFactorClassifier(2, max_iter=2, random_state=0).fit(X, y > 0, task=task)
    part = BiFactorClassifier(2, max_iter=2, random_state=0).fit(dX, dy, task=dt)
    assert_same(whole, part)
    chances = part.predict_proba(dX, task=dt)
    assert_allclose(chances.compute(), whole.predict_proba(X, task=task), atol=1e-8)
    assert part.score(dX, dy, task=dt) == pytest.approx(whole.score(X, y > 0, task=task))
    new = part.adapt(dX, dy, task=dt + 1000)
    assert_allclose(new.coef_, whole.adapt(X, y > 0, task=task + 1000).coef_, atol=1e-8)


def test_many_settings_run_side_by_side(table, client):
    X, y, task = table
    options = {"n_components": [1, 2], "alphas": [0.1, 10.0], "cv": 2, "random_state": 0}
    dX, dy, dt = cut(900, X, y, task)
    whole = BiFactorRegressorCV(**options).fit(X, y, task=task)
    part = BiFactorRegressorCV(**options).fit(dX, dy, task=dt)
    assert part.best_params_ == whole.best_params_
    assert_allclose(part.coef_, whole.coef_, rtol=1e-8)


# ---- faults -------------------------------------------------------------------------------------


def during(fit, fault, sweep=1):
    """Run a fit, and a fault once a sweep is done."""
    from comtl.engine import problem as base

    steps = base.alternate

    def watched(*args):
        for step in steps(*args):
            if step.sweep == sweep:
                fault()
            yield step

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "alternate", watched)
        return fit()


def pause(process):
    process.suspend()
    threading.Timer(1.0, process.resume).start()


FAULTS = {
    "killed": lambda cluster, worker: worker.kill(),
    "slow": lambda cluster, worker: pause(worker),
    "one more": lambda cluster, worker: cluster.scale(3),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_happens_to_a_worker_changes_nothing(table, expected, fault):
    with start(2) as cluster, Client(cluster) as client:
        worker = psutil.Process(next(iter(client.run(os.getpid).values())))
        dX, dy, dt = cut(450, *table)
        fitted = during(
            lambda: model().fit(dX, dy, task=dt), lambda: FAULTS[fault](cluster, worker)
        )
        assert psutil.pid_exists(worker.pid) == (fault != "killed")
    assert_same(expected, fitted)


def test_a_scheduler_that_goes_away(table, expected, tmp_path, monkeypatch):
    monkeypatch.setattr("comtl.engine.progress.EVERY", 0.0)
    path = str(tmp_path / "fit")
    dX, dy, dt = cut(900, *table)
    with start(2) as cluster, Client(cluster), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(LostClusterError, match="checkpoint="):
            during(
                lambda: model(checkpoint=path).fit(dX, dy, task=dt),
                lambda: (cluster.close(), time.sleep(0.5)),
            )
    with start(2) as cluster, Client(cluster):
        fitted = model(checkpoint=path).fit(dX, dy, task=dt)
    assert_same(expected, fitted)
    assert not os.path.exists(path)


def test_an_interrupted_client_keeps_the_model_and_frees_the_workers(table, client):
    X, y, task = table
    dX, dy, dt = cut(900, X, y, task)

    def interrupt():
        raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="Interrupted after sweep 0"):
        fitted = during(lambda: model().fit(dX, dy, task=dt), interrupt)
    assert fitted.n_iter_ == 0
    deadline = time.time() + 20
    while any(client.has_what().values()) and time.time() < deadline:
        time.sleep(0.1)
    assert not any(client.has_what().values())


def test_a_partition_with_bad_rows_is_named(table, client):
    X, y, task = table
    bad = y.copy()
    bad[2000] = np.inf
    with pytest.raises(ValueError, match=r"Partition 2 \(counted from 0\).*infinity"):
        model().fit(*cut(900, X, bad), task=task)


# ---- memory -------------------------------------------------------------------------------------


def test_workers_hold_their_rows_once(client):
    rng = np.random.default_rng(0)
    rows, features, tasks, chunk = 300_000, 100, 200, 25_000
    X = da.random.default_rng(0).normal(size=(rows, features), chunks=(chunk, features))
    task = da.from_array(rng.integers(0, tasks, rows), chunks=chunk)
    y = da.from_array(rng.normal(size=rows), chunks=chunk)
    size = 8 * rows * features

    def memory():
        return psutil.Process().memory_info().rss

    def held(dask_worker):
        from dask.sizeof import sizeof

        return sum(sizeof(value) for value in dask_worker.data.values())

    most = []

    def measure():
        most.extend([client.run(held), client.run(memory)])

    # What the libraries take once they are imported is not the rows'.
    small = 4_000
    model(max_iter=1).fit(*(a[:small].rechunk({0: 500}) for a in (X, y)), task=task[:small])
    before = client.run(memory)
    during(lambda: model(max_iter=2).fit(X, y, task=task), measure)
    kept, taken = most
    # The rows once, and a few numbers for each row.
    assert size <= sum(kept.values()) < size + 16 * 8 * rows
    # What passes need beside them is freed, though malloc may hold on to it.
    assert sum(taken[name] - before[name] for name in before) < 2.5 * size


def test_partitions_beyond_the_memory_are_read_again(tmp_path):
    rng = np.random.default_rng(0)
    rows, features = 24_000, 30
    frame = pd.DataFrame(
        rng.normal(size=(rows, features)).astype(np.float32),
        columns=[f"x{i}" for i in range(features)],
    )
    frame["task"] = rng.integers(0, 50, rows)
    frame["y"] = frame["x0"] * (frame["task"] % 3 - 1) + rng.normal(size=rows)
    dd.from_pandas(frame, npartitions=12).to_parquet(tmp_path / "rows")
    lazy = dd.read_parquet(tmp_path / "rows")
    estimator = BiFactorRegressor(2, task_column="task", max_iter=2, tol=0.0, random_state=0)
    whole = estimator.fit(frame.drop(columns="y"), frame["y"]).coef_
    with pytest.MonkeyPatch.context() as patch:
        # Room for four of the twelve partitions.
        size = 4 * rows * features / 12
        patch.setattr("comtl.distributed.executors.DaskWorkers._room", lambda self: 4.5 * size)
        with start(2) as cluster, Client(cluster) as client:

            def held():
                keys = [str(key) for keys in client.has_what().values() for key in keys]
                return sum("read_partition" in key for key in keys)

            counts = []
            part = during(
                lambda: estimator.fit(lazy.drop(columns="y"), lazy["y"]),
                lambda: counts.append(held()),
            )
    assert part.solver_["rows"] == "partitions"
    assert_allclose(part.coef_, whole, atol=2e-3 * np.abs(whole).max())
    assert 1 <= counts[0] <= 4


# ---- the command --------------------------------------------------------------------------------


def test_the_command_has_its_fits_done_by_a_cluster(table, client, tmp_path):
    from click.testing import CliRunner

    from comtl.cli.commands import comtl as cli

    X, y, task = table
    frame = pd.DataFrame(X[:600, :2], columns=["a", "b"])
    frame["shop"], frame["sales"] = [f"s{t}" for t in task[:600] % 8], y[:600]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    told = ["fit", str(tmp_path / "rows.csv"), "--task", "shop", "--target", "sales", "--no-score"]
    address = client.scheduler.address
    outs = [str(tmp_path / name) for name in ("here.comtl", "there.comtl")]
    seen = client.run(lambda dask_worker: dask_worker.state.executed_count)
    assert CliRunner().invoke(cli, [*told, "--out", outs[0]]).exit_code == 0
    result = CliRunner().invoke(cli, [*told, "--out", outs[1], "--scheduler", address])
    assert result.exit_code == 0, result.output
    again = client.run(lambda dask_worker: dask_worker.state.executed_count)
    assert sum(again.values()) > sum(seen.values())
    one, other = (comtl.load(path) for path in outs)
    assert_allclose(other.estimator.coef_, one.estimator.coef_, rtol=1e-8)
    result = CliRunner().invoke(cli, [*told, "--out", outs[1], "--scheduler", "tcp://127.0.0.1:1"])
    assert result.exit_code == 1
    assert "No Dask scheduler answers" in result.output
