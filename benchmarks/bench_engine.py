"""What settled the engine's numerical choices: preconditioner, tolerances, annealing, solvers.

Times are CPU seconds of one run, to be compared within a table only.
`make bench` writes the result beside this file.
"""

import time
import warnings
from dataclasses import replace
from unittest import mock

import numpy as np
from problems import low_rank
from threadpoolctl import threadpool_limits

import comtl.engine.feature_step as feature_steps
import comtl.engine.starts as starts
import comtl.engine.task_steps as task_steps
from comtl.datafits.gram_datafit import GramDatafit
from comtl.datafits.rows_datafit import RowsDatafit
from comtl.engine.alternation import alternate
from comtl.engine.feature_step import FeatureSystem
from comtl.engine.recipe import InnerTolerance, Recipe, Schedule
from comtl.engine.starts import start_state
from comtl.losses import Squared
from comtl.rows.design import Design
from comtl.solvers.conjugate_gradient import conjugate_gradient


def datafit(n_features, n_tasks, rows, rank=5, gram=False, seed=0):
    data = low_rank(seed, n_features, n_tasks, rows, rank)
    weights = np.ones(len(data.y))
    offsets = np.arange(0, len(data.y) + 1, rows)
    design = Design.standardized(data.X, weights)
    y = data.y / data.y.std()
    if gram:
        return GramDatafit.of_rows(design, y, weights, offsets)
    return RowsDatafit(design, y, weights, offsets, Squared())


def fit(data, schedule, K=5, alpha=1.0, init="svd"):
    recipe = Recipe({"F": 0.1, "G": alpha}, (K, K))
    begun = time.process_time()
    like = np.zeros(1)
    start = start_state(data, recipe, schedule, like=like, init=init)
    done = list(alternate(data, start, schedule))
    return time.process_time() - begun, done


def preconditioner():
    print("\n## Preconditioner of the F step\n")
    print("CG iterations to 1e-6, P=200, T=100, 20 rows a task, K=8.\n")
    print("| λ1 | relative ε | none | two-term Sylvester |\n| --- | --- | --- | --- |")
    data = datafit(200, 100, 20)
    for strength in (0.1, 10.0, 1000.0):
        for smoothing in (1e-1, 1e-3):
            recipe = Recipe({"F": strength, "G": 1.0}, (8, 8))
            schedule = Schedule(start_smoothing=smoothing)
            state = start_state(data, recipe, schedule, like=np.zeros(1))
            system = FeatureSystem(data, data.quadratic_at(state.factors), state)
            counts = [
                conjugate_gradient(
                    system.operator, system.right(), preconditioner=p, tol=1e-6, max_iter=2000
                ).iterations
                for p in (None, system.preconditioner())
            ]
            print(f"| {strength:g} | {smoothing:g} | {counts[0]} | {counts[1]} |")


def schedules():
    print("\n## Inner tolerance and annealing\n")
    print("Seconds and sweeps to tol=1e-5. ε never rises, so a fast descent of ε freezes it at an")
    print("early scale of the factors: the last column is where it ends, nominally 0.01.\n")
    problems = {
        "rows P=200 T=100": datafit(200, 100, 20),
        "gram P=40 T=60": datafit(40, 60, 80, gram=True),
    }
    for name, data in problems.items():
        print(f"\n{name}\n\n| inner tol | shrink | seconds | sweeps | objective | relative ε |")
        print("| --- | --- | --- | --- | --- | --- |")
        for tol in (0.3, 0.1, 1e-2):
            for shrink in (0.5, 0.3, 0.1, 0.01):
                schedule = Schedule(
                    tol=1e-5,
                    smoothing=1e-2,
                    shrink=shrink,
                    inner=InnerTolerance(tol, 100),
                    max_iter=200,
                )
                seconds, steps_ = fit(data, schedule)
                last = steps_[-1]
                penalty = last.state.penalties["F"]
                share = penalty.epsilon / (penalty.relation.roots.max() ** 2 - penalty.epsilon)
                print(
                    f"| {tol:g} | {shrink:g} | {seconds:.2f} | {last.sweep} | "
                    f"{last.objective:.3f} | {share:.4f} |"
                )


def beyond_the_sweep():
    print("\n## Extrapolation after each sweep\n")
    print("Seconds and sweeps to tol=1e-5 with the step and without, K=8.\n")
    print("| problem | λ2 | sweeps | objective | s | sweeps without | objective | s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    problems = {
        "rows P=200 T=100, 20 rows": datafit(200, 100, 20),
        "gram P=20 T=30, 25 rows": datafit(20, 30, 25, rank=10, gram=True),
        "rows P=200 T=200, 50 rows": datafit(200, 200, 50),
    }
    schedule = Schedule(tol=1e-5, max_iter=1_000)
    for name, data in problems.items():
        for alpha in (0.01, 0.1, 1.0):
            cells = []
            for allowed in (True, False):
                chosen = replace(schedule, extrapolate=allowed)
                seconds, done = fit(data, chosen, K=8, alpha=alpha)
                cells.append(f"{done[-1].sweep} | {done[-1].objective:.3f} | {seconds:.2f}")
            print(f"| {name} | {alpha:g} | {cells[0]} | {cells[1]} |")


def spectral_starts():
    print("\n## Passes and spare columns of the spectral start\n")
    print("Sweeps to tol=1e-5 for four seeds, K=5, and CPU seconds of start and fit, their mean.\n")
    print("| problem | passes | spare | sweeps | start s | fit s |")
    print("| --- | --- | --- | --- | --- | --- |")
    problems = {
        "P=T=200, 50 rows": datafit(200, 200, 50),
        "P=200 T=100, 20 rows": datafit(200, 100, 20),
    }
    schedule = Schedule(tol=1e-5, max_iter=200)
    recipe = Recipe({"F": 0.1, "G": 0.1}, (5, 5))
    for name, data in problems.items():
        for powers, extra in ((4, 8), (4, 4), (2, 8), (1, 8), (1, 0)):
            sweeps, spent = [], []
            with mock.patch.multiple(starts, POWERS=powers, EXTRA=extra):
                for seed in range(4):
                    begun = time.process_time()
                    state = start_state(data, recipe, schedule, like=np.zeros(1), seed=seed)
                    middle = time.process_time()
                    *_, last = alternate(data, state, schedule)
                    sweeps.append(last.sweep)
                    spent.append((middle - begun, time.process_time() - begun))
            mean = np.mean(spent, axis=0)
            print(f"| {name} | {powers} | {extra} | {sweeps} | {mean[0]:.3f} | {mean[1]:.3f} |")


def covariances():
    print("\n## Rank of the pooled covariance for many features\n")
    print("CG iterations of one F step, P=2,000, T=100, 50 rows a task, K=5, correlated columns")
    print("(60 factors of falling size); from some of the rows, and how long it takes to make.\n")
    print("| rank | s | to 0.3 | to 1e-3 |\n| --- | --- | --- | --- |")
    rng = np.random.default_rng(0)
    sizes = 8.0 / np.arange(1, 61)
    X = rng.standard_normal((5_000, 60)) @ (sizes[:, None] * rng.standard_normal((60, 2_000)))
    design = Design.standardized(X + rng.standard_normal(X.shape), np.ones(5_000))
    y, weights = rng.standard_normal(5_000), np.ones(5_000)
    for rank in (1, 4, 16, 64):
        data = RowsDatafit(design, y, weights, np.arange(0, 5_001, 50), Squared())
        begun = time.process_time()
        data.__dict__["covariance"] = design.covariance(weights, rank=rank)
        spent = time.process_time() - begun
        recipe = Recipe({"F": 0.1, "G": 0.1}, (5, 5))
        state = start_state(data, recipe, Schedule(start_smoothing=0.1), like=y)
        system = FeatureSystem(data, data.quadratic_at(state.factors), state)
        counts = [
            conjugate_gradient(
                system.operator, system.right(), preconditioner=system.preconditioner(), tol=tol
            ).iterations
            for tol in (0.3, 1e-3)
        ]
        print(f"| {rank} | {spent:.2f} | {counts[0]} | {counts[1]} |")


def task_solvers():
    print("\n## Woodbury or CG for the G step\n")
    print("Seconds of ten sweeps, P=40, 60 rows a task.\n")
    print("| T | K | Woodbury | CG |\n| --- | --- | --- | --- |")
    for tasks in (60, 400):
        for K in (4, 8, 12, 16, 24):
            data = datafit(40, tasks, 60, gram=True)
            times = []
            for width in (100, 0):
                with mock.patch.object(task_steps, "WOODBURY_WIDTH", width):
                    times.append(fit(data, Schedule(max_iter=10, tol=0.0), K=K)[0])
            print(f"| {tasks} | {K} | {times[0]:.2f} | {times[1]:.2f} |")


def dense_limit():
    print("\n## Dense or CG for a small F step\n")
    print("Seconds of ten sweeps, T=20, 40 rows a task, K=2.\n")
    print("| unknowns | dense | CG |\n| --- | --- | --- |")
    for features in (5, 10, 20, 40):
        data = datafit(features, 20, 40, rank=2, gram=True)
        times = []
        for limit in (10**6, 0):
            with mock.patch.object(feature_steps, "DENSE_UNKNOWNS", limit):
                times.append(fit(data, Schedule(max_iter=10, tol=0.0), K=2)[0])
        print(f"| {features * 3 + 20} | {times[0]:.3f} | {times[1]:.3f} |")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print("# Engine choices\n\nWritten by `python benchmarks/bench_engine.py`, one thread.")
    with threadpool_limits(1):
        preconditioner()
        schedules()
        beyond_the_sweep()
        spectral_starts()
        covariances()
        task_solvers()
        dense_limit()
