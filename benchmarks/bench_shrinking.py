"""Common slopes as fixed effects, compared with slopes shrunk by marginal likelihood.

`make bench` writes the result beside this file.
"""

from __future__ import annotations

import warnings
from unittest import mock

import numpy as np

from comtl import HierarchicalRegressor, MultitaskRegressor
from comtl.hierarchical import hierarchical_estimators
from comtl.hierarchical.em import fit_em
from small_tables import SEEDS, Split, error, tables


def measured(model, split: Split) -> float:
    """RMSE of a model on the rows that do not train."""
    X, y, task, train = split
    fitted = model.fit(X[train], y[train], task=task[train])
    return error(fitted.predict(X[~train], task=task[~train]), split)


def single(structure: str, split: Split) -> tuple[float, float]:
    """One structure with free and with shrunk common slopes."""
    free, shrunk = (HierarchicalRegressor(structure, shrink_common=on) for on in (False, True))
    return measured(free, split), measured(shrunk, split)


def stacks(split: Split) -> tuple[float, float]:
    """Stacks of members with free and with shrunk common slopes."""
    shrunk = measured(MultitaskRegressor(), split)

    def free(*args, **options):
        return fit_em(*args, **options | {"shrink_common": False})

    with mock.patch.object(hierarchical_estimators, "fit_em", free):
        return measured(MultitaskRegressor(), split), shrunk


def main() -> None:
    """Write the page."""
    warnings.simplefilter("ignore")
    print("# Common slopes without and with shrinkage\n")
    print("Test RMSE: `Hierarchical…` with `shrink_common` False and True, and stacks of")
    print("such members; mean of five splits, in brackets the standard error of the difference.\n")
    print("| set | rows, features, tasks | isotropic | full | stack |")
    print("| --- | --- | --- | --- | --- |")
    for name, size, splits in tables():
        found = [[single("isotropic", it), single("full", it), stacks(it)] for it in splits]
        means, gaps = np.mean(found, axis=0), np.diff(found, axis=2)[..., 0]
        errors = gaps.std(axis=0, ddof=1) / SEEDS**0.5
        pairs = zip(means, errors, strict=True)
        cells = " | ".join(f"{free:.4g} → {shrunk:.4g} ({e:.2g})" for (free, shrunk), e in pairs)
        print(f"| {name} | {size} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
