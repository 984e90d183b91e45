"""Methods of the leaderboard: comtl's models, all baselines, boosting, boosted mixed models."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
from problems import Problem, Split
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from comtl import (
    HierarchicalClassifier,
    HierarchicalRegressor,
    MultitaskClassifier,
    MultitaskRegressor,
    TaskStratifiedKFold,
)
from comtl.rows.fit_input import FitInput
from comtl_reproduction.cells import Cell
from comtl_reproduction.methods import METHODS, Method
from comtl_reproduction.metrics import choose_cut
from comtl_reproduction.text import held_out_scores
from comtl_reproduction.tuning import tune

OURS = "comtl"
BOOSTING = "LightGBM + task id"
MIXED = "GPBoost"
STRUCTURES = ("isotropic", "full")
OWN = (OURS, *(f"hierarchical {name}" for name in STRUCTURES))
NAMES = (*OWN, BOOSTING, MIXED, *METHODS)


def scores(problem: Problem, split: Split, method: str) -> np.ndarray:
    """Values, or scores that are positive for the second class, of the test rows."""
    rows = FitInput(split.X, split.y, split.task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if method in OWN:
            model = _own(problem, method)._fit_quietly(rows)
        elif method == BOOSTING:
            return boosted(problem, split)
        elif method == MIXED:
            return boosted_mixed(split)
        else:
            text = problem.kind != "values"
            model = tune(_tuned(problem, METHODS[method]), rows, text=text).model
    if problem.kind == "values":
        return model.predict(split.X_test, task=split.task_test)
    found = model.decision_function(split.X_test, task=split.task_test)
    if problem.kind == "text" and method != OURS:
        held = held_out_scores(model, rows)
        _, thresholds = choose_cut(np.asarray(rows.y) > 0, held, np.asarray(rows.task))
        found = found - np.array(
            [thresholds[label] for label in np.asarray(split.task_test).tolist()]
        )
    return found


def _tuned(problem: Problem, method: Method) -> Method:
    """Classes of a few columns go by odds on standard scales, as comtl's own models do."""
    if problem.kind != "classes":
        return method
    few = {"loss": "logistic", "standardize": True, "tol": 1e-4}
    return replace(method, text=few)


def _own(problem: Problem, method: str):
    if method == OURS:
        if problem.kind == "values":
            return MultitaskRegressor()
        return MultitaskClassifier(threshold="macro_f1" if problem.kind == "text" else None)
    structure = method.removeprefix("hierarchical ")
    kind = HierarchicalRegressor if problem.kind == "values" else HierarchicalClassifier
    return kind(structure)


def fits(problem: Problem, method: str) -> bool:
    """Whether a method is meant for a data set at all."""
    if method == MIXED:
        # One random intercept a task; where tasks share their rows every column would be a task.
        return problem.kind == "values" and problem.name != "sarcos_test"
    if problem.kind == "text":
        return method not in OWN[1:] and method != "random-intercept"
    return True


def cells(
    work: Callable[..., dict[str, float]], methods: list[str], sets: list[Problem], repeats: int
) -> list[Cell]:
    """Work for each method, set that it is meant for, and repeat, method by method."""
    return [
        Cell(
            {"data": problem.name, "method": method, "repeat": seed},
            work,
            {"data": problem.name, "method": method, "seed": seed},
        )
        for method in methods
        for problem in sets
        if fits(problem, method)
        for seed in range(repeats)
    ]


LEAVES, RATES, ROUNDS = (4, 8, 16, 31), (0.05,), 400
MIXED_RATES = (0.05, 0.5, 5.0, 50.0)
"""Boosting is tuned over its leaves and, by its own held-out error, its number of trees; GPBoost
also over its rate, since its steps are in units of the noise."""


def boosted(problem: Problem, split: Split) -> np.ndarray:
    """Gradient boosting on the features and the task as a category, tuned by three folds."""
    X, y, task = _long(split.X, split.y, split.task)
    X_test, _, task_test = _long(split.X_test, split.y_test, split.task_test)
    labels, codes = np.unique(task, return_inverse=True)
    known = np.searchsorted(labels, task_test)
    rows, test_rows = _with_task(X, codes), _with_task(X_test, known)
    classes = problem.kind != "values"
    target = (y > 0).astype(int) if classes else y
    best = min((_cv(rows, target, codes, leaves, classes) for leaves in LEAVES), key=lambda f: f[0])
    _, leaves, count = best

    def guess(train, other) -> np.ndarray:
        model = _trees(leaves, count, classes).fit(
            rows[train], target[train], categorical_feature=[rows.shape[1] - 1]
        )
        return 2.0 * model.predict_proba(other)[:, 1] - 1.0 if classes else model.predict(other)

    found = guess(slice(None), test_rows)
    if problem.kind == "text":
        held = np.zeros(len(target))
        for train, test in _folds(codes):
            held[test] = guess(train, rows[test])
        _, thresholds = choose_cut(target > 0, held, codes)
        found = found - np.array([thresholds[code] for code in known.tolist()])
    return found if split.task is not None else found.reshape(len(split.y_test[0]), -1).T


def boosted_mixed(split: Split) -> np.ndarray:
    """Trees and a random intercept for each task fitted together, tuned by three folds."""
    import gpboost

    folds = list(_folds(split.task))

    def effects():
        return gpboost.GPModel(group_data=split.task, num_parallel_threads=1)

    def settings(leaves: int, rate: float) -> dict:
        return {
            "objective": "regression_l2",
            "learning_rate": rate,
            "num_leaves": leaves,
            "min_data_in_leaf": 10,
            "num_threads": 1,
            "verbose": -1,
            "seed": 0,
        }

    def loss(leaves: int, rate: float) -> tuple[float, int, float, int]:
        found = gpboost.cv(
            params=settings(leaves, rate),
            train_set=gpboost.Dataset(split.X, split.y),
            gp_model=effects(),
            num_boost_round=ROUNDS,
            early_stopping_rounds=30,
            folds=folds,
            metric="mse",
        )
        losses = next(iter(found.values()))
        return float(min(losses)), leaves, rate, len(losses)

    _, leaves, rate, count = min(loss(*pair) for pair in product(LEAVES, MIXED_RATES))
    model = gpboost.train(
        params=settings(leaves, rate),
        train_set=gpboost.Dataset(split.X, split.y),
        gp_model=effects(),
        num_boost_round=count,
    )
    guess = model.predict(split.X_test, group_data_pred=split.task_test, pred_latent=False)
    return guess["response_mean"]


def _trees(leaves: int, count: int, classes: bool):
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMClassifier if classes else LGBMRegressor
    return kind(
        num_leaves=leaves,
        learning_rate=RATES[0],
        n_estimators=count,
        min_child_samples=10,
        cat_smooth=10,
        n_jobs=1,
        random_state=0,
        verbose=-1,
    )


def _folds(codes: np.ndarray):
    return TaskStratifiedKFold(3).split(codes[:, None], groups=codes)


def _cv(rows, target: np.ndarray, codes: np.ndarray, leaves: int, classes: bool):
    from lightgbm import early_stopping

    losses, counts = [], []
    for train, test in _folds(codes):
        model = _trees(leaves, ROUNDS, classes).fit(
            rows[train],
            target[train],
            eval_set=[(rows[test], target[test])],
            categorical_feature=[rows.shape[1] - 1],
            callbacks=[early_stopping(30, verbose=False)],
        )
        losses.append(next(iter(model.best_score_["valid_0"].values())))
        counts.append(model.best_iteration_)
    return float(np.mean(losses)), leaves, max(int(np.mean(counts)), 1)


def _long(X, y, task):
    if task is not None:
        return X, y, np.asarray(task)
    return np.tile(X, (y.shape[1], 1)), y.T.ravel(), np.repeat(np.arange(y.shape[1]), len(X))


def _with_task(X, codes: np.ndarray):
    """Rows with the task as their last column."""
    if sparse.issparse(X):
        return sparse.csr_matrix(sparse.hstack([X, sparse.csr_array(codes[:, None] * 1.0)]))
    return np.column_stack([X, codes])
