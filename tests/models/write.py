"""Write models of the installed comtl, and what they say of some rows, into a new folder.

Each folder is named after the commit whose script wrote it. It is never written again: later
versions must read it. A new folder is due where the format changes.
"""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import comtl
from comtl import baselines
from comtl.hierarchical.coregionalised import (
    CoregionalisedRidgeClassifier,
    CoregionalisedRidgeRegressor,
)
from comtl.tables import TableModel, fit_table

rng = np.random.default_rng(0)
X, TASK = rng.normal(size=(60, 3)), np.repeat(["a", "b", "c", "d"], 15)
Y = X @ rng.normal(size=3) + np.repeat(rng.normal(size=4), 15) + 0.3 * rng.normal(size=60)
BENT = Y + np.abs(X[:, 0])
CROSSED = 0.2 * Y + 4.0 * np.sign(X[:, 0]) * (X[:, 1] > 0.0)
TWO, THREE = np.where(Y > 0.0, "yes", "no"), np.digitize(Y, [-1.0, 1.0])
FRAME = pd.DataFrame(X, columns=["u", "v", "w"]).assign(
    school=TASK, kind=np.where(X[:, 0] > 0.5, "big", "small"), result=Y, passed=TWO
)
ROWS = slice(None, None, 7)


def estimators() -> dict[str, tuple[Any, Any]]:
    """Estimators by name, each with its target."""
    found: dict[str, tuple[Any, Any]] = {}
    for name in (*comtl.__all__, *baselines.__all__):
        kind = getattr(comtl, name, None) or getattr(baselines, name)
        if not name.endswith(("Regressor", "Classifier", "CV")):
            continue
        options: dict[str, Any] = {"cv": 2} if name.startswith("Multitask") else {}
        if name.endswith("CV"):
            sizes = ([1, 2],) if name.startswith("Bi") else ([2], [2])
            model = kind(*sizes, alphas=(0.1, 1.0), cv=2, random_state=0)
        else:
            model = kind(**options)
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        found[name] = model, TWO if "Classifier" in name else Y
    two, tri = comtl.BiFactorRegressor, comtl.TriFactorRegressor
    folds = comtl.TaskStratifiedKFold(2, random_state=0)
    return found | {
        "CoregionalisedRidgeRegressor": (CoregionalisedRidgeRegressor(), Y),
        "CoregionalisedRidgeClassifier": (CoregionalisedRidgeClassifier(), TWO),
        "columns": (two(2, random_state=0), np.column_stack([Y, BENT, -Y])),
        "three-classes": (comtl.BiFactorClassifier(2, random_state=0), THREE),
        "three-classes-stacked": (comtl.MultitaskClassifier(cv=2), THREE),
        "shared": (tri(2, 2, shared=True, core_penalty=None, random_state=0), Y),
        "clusters": (tri(2, 2, task_penalty="clusters", random_state=0), Y),
        "l1": (two(2, feature_penalty="l1", task_penalty="nonnegative", random_state=0), Y),
        "simplex": (tri(2, 2, core_penalty="l1", task_penalty="simplex", random_state=0), Y),
        "hinges": (comtl.MultitaskRegressor(cv=2, form="hinges"), BENT),
        "hinges-threshold": (
            comtl.MultitaskClassifier(cv=2, form="hinges", threshold="macro_f1"),
            np.where(BENT > 1.0, "yes", "no"),
        ),
        "trees": (comtl.MultitaskRegressor(cv=2, form="trees"), CROSSED),
        "trees-columns": (
            comtl.MultitaskRegressor(cv=2, form="trees"),
            np.column_stack([CROSSED, -CROSSED]),
        ),
        "folds": (comtl.BiFactorRegressorCV([1, 2], alphas=(0.1, 1.0), cv=folds), Y),
        **{
            f"hierarchical-{structure}": (comtl.HierarchicalRegressor(structure), Y)
            for structure in ("intercept", "isotropic", "diagonal", "full", "factor")
        },
    }


def said(model: Any, rows: Any, **task: Any) -> dict[str, Any]:
    """What a model says of rows, by method."""
    found = {"predict": model.predict(rows, **task).tolist()}
    classes = model.classes if isinstance(model, TableModel) else model._linear.classes
    if classes is not None:
        found["predict_proba"] = model.predict_proba(rows, **task).tolist()
    elif "predict_interval" in dir(model):
        found["predict_interval"] = [b.tolist() for b in model.predict_interval(rows, 0.9, **task)]
    return found


def main(folder: Path) -> None:
    folder.mkdir(parents=True)
    facts: dict[str, Any] = {"rows": X[ROWS].tolist(), "task": TASK[ROWS].tolist(), "said": {}}
    models = {}
    for name, (model, target) in estimators().items():
        models[name] = model.fit(X, target, task=TASK) if target.ndim == 1 else model.fit(X, target)
    models["adapted"] = models["BiFactorRegressor"].adapt(X[:9], Y[:9] + 1.0, task=["e"] * 9)
    for name, model in models.items():
        task = {} if "columns" in name else {"task": TASK[ROWS]}
        facts["said"][name] = said(model, X[ROWS], **task)
        model.save(folder / f"{name}.comtl")
    options: dict[str, Any] = {"task": "school", "model": "hierarchical", "seed": 0}
    facts["frame"] = FRAME[ROWS].to_dict(orient="list")
    facts["tables"] = {}
    for target, other in (("result", "passed"), ("passed", "result")):
        table = fit_table(FRAME, target=target, drop=[other], **options)
        facts["tables"][f"table-{target}"] = said(table, FRAME[ROWS])
        table.save(folder / f"table-{target}.comtl")
    (folder / "said.json").write_text(json.dumps(facts) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
