"""Small fits through the public interface, by name, and what is kept of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from threadpoolctl import threadpool_limits

import comtl
from comtl import baselines, datasets
from comtl.evaluation import compare

Kept = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A fit, how close a later one must come (see ``test_golden``), and the libraries it needs."""

    make: Callable[[], Kept]
    tolerance: str = "order"
    needs: tuple[str, ...] = ()

    def run(self) -> Kept:
        """Make it on one thread."""
        with threadpool_limits(1):
            return self.make()


@dataclass(frozen=True)
class Sample:
    """Rows of tasks in any order; ``take`` changes the form of all parts alike."""

    X: Any
    y: Any
    task: Any
    weights: Any

    def take(self, form: Callable[[Any], Any]) -> Sample:
        return Sample(form(self.X), form(self.y), form(self.task), form(self.weights))


P, T = 6, 8
KEPT = (
    "coef_",
    "intercept_",
    "log_evidence_",
    "n_iter_",
    "task_clusters_",
    "feature_clusters_",
    "weights_",
    "thresholds_",
    "best_params_",
    "noise_variance_",
    "slope_covariance_",
)
# Tight, so that another way to the same optimum can be told from another optimum.
TIGHT = {"tol": 1e-9, "max_iter": 300, "random_state": 0}
QUICK = {"tol": 0.0, "max_iter": 5, "random_state": 0}


# ---- data -----------------------------------------------------------------------------------


def table(seed: int = 0, n: int = 12, P: int = P, tasks: range = range(T)) -> Sample:
    """Tasks in two groups that share weights, a third of X zero, weights uneven."""
    rng = np.random.default_rng(seed)
    task = rng.permutation(np.repeat(tasks, n))
    X = np.round(rng.normal(size=(len(task), P)), 3) * (rng.random((len(task), P)) < 0.67)
    slopes = np.where(np.arange(P) < P // 2, 1.0, -0.5) * (1 + task[:, None] % 2)
    y = (X * slopes).sum(1) + 0.2 * task * X[:, 0] + 0.3 * task + 0.5 * rng.normal(size=len(task))
    return Sample(X, y, task, rng.integers(1, 4, len(task)).astype(float))


def classes(y: np.ndarray, count: int) -> np.ndarray:
    """Names of equally frequent classes."""
    inner = np.quantile(y, np.arange(1, count) / count)
    return np.array(["high", "low", "middle"])[np.digitize(y, inner)]


def columns(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """One task a column of y, a quarter of it missing."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(30, P)), rng.normal(size=(P, 2)) @ rng.normal(size=(2, T))
    y = X @ W + np.arange(T) + 0.5 * rng.normal(size=(30, T))
    return X, np.where(rng.random(y.shape) < 0.25, np.nan, y)


def frame(seed: int = 0, messy: bool = False) -> Any:
    """Rows as a data frame: names for tasks and, if messy, text, gaps and classes."""
    import pandas as pd

    data = table(seed)
    found = pd.DataFrame(data.X, columns=[f"x{i}" for i in range(P)])
    found["school"] = [f"school {t}" for t in data.task]
    if messy:
        rng = np.random.default_rng(seed)
        found["sex"] = rng.choice(["f", "m", None], len(found))
        found.loc[rng.random(len(found)) < 0.1, "x1"] = np.nan
        found["score"], found["passed"] = data.y, np.where(data.y > 1.0, "yes", "no")
    return found


def cut(array: np.ndarray) -> Any:
    """Dask's array in blocks of rows."""
    import dask.array as da

    return da.from_array(array, chunks=(30,) + (-1,) * (array.ndim - 1))


def tensor(array: np.ndarray) -> Any:
    import torch

    return torch.asarray(array)


# ---- what is kept -----------------------------------------------------------------------------


def keep(model: Any, X: Any, task: Any = None, spread: float = 1.0) -> Kept:
    """What a fitted model says of itself and of rows; ``spread`` is that of y."""
    kept: Kept = {name: getattr(model, name, None) for name in KEPT}
    history = getattr(model, "objective_history_", None)
    if history is not None:
        # Sweeps far on tell nothing that the first and the last do not.
        kept |= {"history": history[:10], "objective": history[-1]}
    if hasattr(model, "cv_results_"):
        kept["scores"] = model.cv_results_["mean_test_score"]
    if is_classifier(model):
        kept["predict"] = np.searchsorted(model.classes_, model.predict(X, task=task))
        kept["decision_function"] = model.decision_function(X, task=task)
        kept["predict_proba"] = model.predict_proba(X, task=task)
    else:
        kept["predict"] = model.predict(X, task=task)
    if hasattr(model, "predict_interval"):
        kept["predict_std"] = model.predict(X, task=task, return_std=True)[1]
        kept["predict_interval"] = np.stack(model.predict_interval(X, 0.8, task=task))
    kept = {name: number(value) for name, value in kept.items() if value is not None}
    return kept | {"spread": np.array(spread)}


def number(value: Any) -> np.ndarray:
    """Numbers as one array, of a dict its values in their order."""
    if isinstance(value, dict):
        value = list(value.values())
    return np.asarray(value, dtype=float)


def fitted(
    model: Any,
    *,
    kinds: int = 0,
    weighted: bool = False,
    form: Callable[[Any], Any] = np.asarray,
    form_x: Callable[[Any], Any] | None = None,
    n: int = 12,
    P: int = P,
) -> Kept:
    """Fit to rows of tasks, and ask for rows of them and of a task never seen."""
    data = table(n=n, P=P)
    spread = data.y.std() if kinds == 0 else 1.0
    y = classes(data.y, kinds) if kinds else data.y
    new = table(seed=1, n=2, P=P, tasks=range(T + 1))
    form_x = form_x or form
    weights = {"sample_weight": form(data.weights)} if weighted else {}
    model.fit(form_x(data.X), y if kinds else form(y), task=form(data.task), **weights)
    return keep(model, form_x(new.X), form(new.task), spread)


def fitted_columns(model: Any) -> Kept:
    X, y = columns()
    return keep(model.fit(X, y), X[:10], spread=np.nanstd(y))


def fitted_frame(model: Any) -> Kept:
    y = table().y
    return keep(model.fit(frame(), y), frame(seed=1)[:20], spread=y.std())


def adapted(model: Any, kinds: int = 0, **options: Any) -> Kept:
    """Four of eight tasks learned after the others."""
    old, new = table(tasks=range(4)), table(seed=1, tasks=range(4, T))
    y = np.concatenate([old.y, new.y])
    spread = y.std() if kinds == 0 else 1.0
    if kinds:
        y = classes(y, kinds)
    model.fit(old.X, y[: len(old.y)], task=old.task)
    told = model.adapt(new.X, y[len(old.y) :], task=new.task, **options)
    return keep(told, new.X[:20], new.task[:20], spread)


def compared(model: Any, kinds: int = 0) -> Kept:
    data = table()
    y = classes(data.y, kinds) if kinds else data.y
    found = compare(model, data.X, y, data.task, data.weights, folds=3)
    names = (
        "overall",
        "accuracy",
        "loss_reduction",
        "loss_reduction_se",
        "coverage",
        "test_weights",
    )
    told = {name: getattr(found, name) for name in names}
    return {name: number(value) for name, value in told.items() if value is not None}


def table_model(target: str, model: str) -> Kept:
    from comtl.tables import fit_table

    rows = frame(messy=True).drop(columns="passed" if target == "score" else "score")
    found = fit_table(rows, task="school", target=target, model=model)
    asked = frame(seed=1, messy=True)[:20]
    kept = {"overall": number(found.comparison.overall), "coef_": number(found.estimator.coef_)}
    if target == "passed":
        return kept | {"predict_proba": found.predict_proba(asked)}
    bounds = np.stack(found.predict_interval(asked))
    return kept | {"predict": found.predict(asked), "predict_interval": bounds}


def drawn() -> Kept:
    """The first targets of the problems with a known truth."""
    makers = (*datasets.SYNTHETIC.values(), datasets.make_coclusters)
    made = {make.__name__: make() for make in makers}
    return {name: number(problem.y[:20]) for name, problem in made.items()}


def split() -> Kept:
    data = table()
    folds = comtl.TaskStratifiedKFold(3).split(data.X, classes(data.y, 2), data.task)
    return {f"test_{i}": number(test) for i, (_, test) in enumerate(folds)}


# ---- cases ------------------------------------------------------------------------------------

BiR, BiC = comtl.BiFactorRegressor, comtl.BiFactorClassifier
TriR, TriC = comtl.TriFactorRegressor, comtl.TriFactorClassifier
Mixed, MixedClasses = comtl.HierarchicalRegressor, comtl.HierarchicalClassifier
RANKED = ("Clustered", "Factored", "GroupOverlap", "SharedPool")


def bifactor() -> dict[str, Case]:
    variants: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "dense": ({}, {}),
        "sparse": ({}, {"form_x": sparse.csr_array}),
        "weights": ({}, {"weighted": True}),
        "shared": ({"shared": True}, {}),
        "no intercept": ({"fit_intercept": False, "standardize": False}, {}),
        "ridge": ({"feature_penalty": "ridge", "task_penalty": "ridge"}, {}),
        "ridge and l1": ({"feature_penalty": "l1", "task_penalty": "ridge"}, {}),
        "nonnegative": ({"task_penalty": "nonnegative"}, {}),
        "random start": ({"init": "random"}, {}),
        "five sweeps": (QUICK, {}),
        "wide": (QUICK, {"n": 3, "P": 60}),
        "wide and sparse": (QUICK, {"n": 3, "P": 60, "form_x": sparse.csr_array}),
    }
    found = {
        f"BiFactorRegressor, {name}": Case(lambda o=o, d=d: fitted(BiR(2, **{**TIGHT, **o}), **d))
        for name, (o, d) in variants.items()
    }
    single = partial(np.asarray, dtype=np.float32)
    return found | {
        "BiFactorRegressor, columns": Case(lambda: fitted_columns(BiR(2, **TIGHT))),
        "BiFactorRegressor, frame": Case(
            lambda: fitted_frame(BiR(2, task_column="school", **TIGHT)), needs=("pandas",)
        ),
        "BiFactorRegressor, float32": Case(
            # Numbers of seven digits: other sums differ by more than 1e-9.
            lambda: fitted(BiR(2, **QUICK), form_x=single),
            "optimum",
        ),
        "BiFactorRegressor, torch": Case(
            lambda: fitted(BiR(2, **TIGHT), form=tensor), needs=("torch",)
        ),
        "BiFactorRegressor, Dask": Case(lambda: fitted(BiR(2, **TIGHT), form=cut), needs=("dask",)),
        "BiFactorClassifier, two": Case(lambda: fitted(BiC(2, **TIGHT), kinds=2)),
        "BiFactorClassifier, three": Case(lambda: fitted(BiC(2, **TIGHT), kinds=3, weighted=True)),
        "BiFactorClassifier, three, sparse": Case(
            lambda: fitted(BiC(2, **TIGHT), kinds=3, form_x=sparse.csr_array)
        ),
        "BiFactorClassifier, squared": Case(
            lambda: fitted(BiC(2, loss="squared", **TIGHT), kinds=2)
        ),
    }


def trifactor() -> dict[str, Case]:
    hard = {"feature_penalty": "clusters", "task_penalty": "clusters"}
    return {
        "TriFactorRegressor, dense": Case(lambda: fitted(TriR(2, 3, **TIGHT))),
        "TriFactorRegressor, clusters": Case(lambda: fitted(TriR(2, 3, **hard, **TIGHT))),
        "TriFactorRegressor, simplex": Case(
            lambda: fitted(TriR(2, 2, task_penalty="simplex", **QUICK))
        ),
        "TriFactorRegressor, core": Case(lambda: fitted(TriR(2, 2, core_penalty="l1", **TIGHT))),
        "TriFactorRegressor, free core": Case(
            lambda: fitted(TriR(2, 2, core_penalty=None, **QUICK))
        ),
        "TriFactorRegressor, columns": Case(lambda: fitted_columns(TriR(2, 2, **TIGHT))),
        "TriFactorClassifier, two": Case(lambda: fitted(TriC(2, 2, **TIGHT), kinds=2)),
        "TriFactorClassifier, three": Case(lambda: fitted(TriC(2, 2, **TIGHT), kinds=3)),
        "TriFactorClassifier, clusters": Case(
            lambda: fitted(TriC(2, 2, **hard, **TIGHT), kinds=2, weighted=True)
        ),
    }


def searches() -> dict[str, Case]:
    options = {"alphas": (0.01, 1.0, 100.0), "cv": 3, "random_state": 0}
    return {
        "BiFactorRegressorCV": Case(
            lambda: fitted(comtl.BiFactorRegressorCV([1, 2], **options), weighted=True)
        ),
        "BiFactorRegressorCV, one by one": Case(
            lambda: fitted(comtl.BiFactorRegressorCV(2, shared=True, warm_path=False, **options))
        ),
        "BiFactorClassifierCV": Case(
            lambda: fitted(comtl.BiFactorClassifierCV(2, **options), kinds=2)
        ),
        "TriFactorRegressorCV": Case(
            lambda: fitted_columns(comtl.TriFactorRegressorCV(2, [1, 2], **options))
        ),
        "TriFactorClassifierCV": Case(
            lambda: fitted(comtl.TriFactorClassifierCV(2, 2, **options), kinds=3)
        ),
    }


def others() -> dict[str, Case]:
    """Every baseline, as a regressor with weights and as a classifier, and some forms of rows."""

    def make(name: str) -> Any:
        ranks = (2,) if name.startswith(RANKED) else ()
        return getattr(baselines, name)(*ranks, random_state=0)

    found = {}
    for name in baselines.__all__:
        kinds = 2 if name.endswith("Classifier") else 0
        found[name] = Case(lambda n=name, k=kinds: fitted(make(n), kinds=k, weighted=not k))
    for kind in ("Pooled", "MeanRegularized", "SharedPool"):
        found[f"{kind}Classifier, three"] = Case(
            lambda n=f"{kind}Classifier": fitted(make(n), kinds=3)
        )
    for kind in ("Independent", "MeanRegularized", "RelationLearning"):
        found[f"{kind}Regressor, sparse"] = Case(
            lambda n=f"{kind}Regressor": fitted(make(n), form_x=sparse.csr_array)
        )
    for kind in ("Factored", "RandomIntercept", "Independent"):
        found[f"{kind}Regressor, columns"] = Case(
            lambda n=f"{kind}Regressor": fitted_columns(make(n))
        )
    # Pools are the best of several starts, and any of equal ones; memberships may be nearly even.
    pools = {name for name in found if name.startswith(("Clustered", "SharedPool"))}
    return found | {name: replace(found[name], tolerance="optimum") for name in sorted(pools)}


def hierarchical() -> dict[str, Case]:
    structures = ("intercept", "isotropic", "diagonal", "full", "factor")
    found = {
        f"HierarchicalRegressor, {s}": Case(lambda s=s: fitted(Mixed(s), weighted=True))
        for s in structures
    }
    return found | {
        "HierarchicalRegressor, noise": Case(lambda: fitted(Mixed(noise="task"))),
        "HierarchicalRegressor, shrunk": Case(
            lambda: fitted(Mixed("isotropic", shrink_common=True, prior_weight=3.0))
        ),
        "HierarchicalRegressor, columns": Case(lambda: fitted_columns(Mixed("diagonal"))),
        "HierarchicalRegressor, sparse": Case(
            lambda: fitted(Mixed("isotropic"), form_x=sparse.csr_array)
        ),
        "HierarchicalRegressor, few rows": Case(
            lambda: fitted(Mixed("isotropic", max_iter=50), n=3, P=20)
        ),
        "HierarchicalRegressor, Dask": Case(
            lambda: fitted(Mixed("isotropic"), form=cut), needs=("dask",)
        ),
        "HierarchicalClassifier, two": Case(lambda: fitted(MixedClasses("diagonal"), kinds=2)),
        "HierarchicalClassifier, full": Case(
            lambda: fitted(MixedClasses("full", max_iter=20), kinds=2, weighted=True)
        ),
        "HierarchicalClassifier, three": Case(lambda: fitted(MixedClasses("isotropic"), kinds=3)),
    }


def stacks() -> dict[str, Case]:
    regressor, classifier = comtl.MultitaskRegressor, comtl.MultitaskClassifier
    found = {
        "MultitaskRegressor": Case(lambda: fitted(regressor(cv=3), weighted=True)),
        "MultitaskRegressor, hinges": Case(lambda: fitted(regressor(cv=3, form="hinges"))),
        "MultitaskRegressor, columns": Case(lambda: fitted_columns(regressor(cv=3))),
        "MultitaskRegressor, frame": Case(
            lambda: fitted_frame(regressor(cv=3, task_column="school")), needs=("pandas",)
        ),
        "MultitaskClassifier, two": Case(lambda: fitted(classifier(cv=3, threshold="f1"), kinds=2)),
        "MultitaskClassifier, three": Case(lambda: fitted(classifier(cv=3), kinds=3)),
    }
    # Weights and error bars are found by steps until little changes: 1e-7 from BLAS to BLAS.
    return {name: replace(case, tolerance="optimum") for name, case in found.items()}


def uses() -> dict[str, Case]:
    """New tasks, comparisons, tables, and data."""
    tables = ("pandas", "pyarrow")
    return {
        "adapt, BiFactorRegressor": Case(lambda: adapted(BiR(2, **TIGHT))),
        "adapt, within the span": Case(lambda: adapted(BiR(2, **TIGHT), residual=False)),
        "adapt, TriFactorClassifier": Case(lambda: adapted(TriC(2, 2, **TIGHT), kinds=2)),
        "adapt, MeanRegularizedRegressor": Case(
            lambda: adapted(baselines.MeanRegularizedRegressor(random_state=0))
        ),
        "adapt, SharedPoolRegressor": Case(
            lambda: adapted(baselines.SharedPoolRegressor(2, random_state=0)), "optimum"
        ),
        # The simpler models start anywhere, and end within their tolerance.
        "compare, values": Case(lambda: compared(Mixed("isotropic")), "optimum"),
        "compare, classes": Case(lambda: compared(MixedClasses("isotropic"), kinds=2), "optimum"),
        "fit_table, values": Case(lambda: table_model("score", "hierarchical"), "optimum", tables),
        "fit_table, classes": Case(lambda: table_model("passed", "pooled"), "optimum", tables),
        "datasets": Case(drawn),
        "TaskStratifiedKFold": Case(split),
    }


CASES = bifactor() | trifactor() | searches() | others() | hierarchical() | stacks() | uses()
