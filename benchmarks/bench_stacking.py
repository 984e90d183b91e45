"""Shrinkage of the weights of a stack towards one member, by the noise in their gain over it.

`make bench` writes the result beside this file.
"""

from __future__ import annotations

import warnings
from unittest import mock

import numpy as np

from comtl import MultitaskRegressor
from comtl.losses import Squared
from comtl.stacking import blending as stacking
from comtl.stacking import stack
from small_tables import SEEDS, Split, error, tables

CHANCES = (0.0, 2.0, 4.0, 8.0, 16.0, float("inf"))


def errors(split: Split) -> list[float]:
    """Test RMSE by shrinkage of the weights."""
    X, y, task, train = split
    rows = []

    def all_members(loss, *given):
        rows[:] = given
        count = given[0].shape[1]
        return np.full(count, 1.0 / count), 0.0

    with mock.patch.object(stack, "blend", all_members):
        model = MultitaskRegressor().fit(X[train], y[train], task=task[train])
    members = model.members_.values()
    guesses = np.stack([one.predict(X[~train], task=task[~train]) for one in members], axis=1)
    found = []
    for stacking.CHANCE in CHANCES:
        shares, shift = stacking.blend(Squared(), *rows)
        found.append(error(guesses @ shares + shift, split))
    return found


def main() -> None:
    """Write the page."""
    warnings.simplefilter("ignore")
    print("# Weights of a stack, shrunk towards the mixed model\n")
    print("Test RMSE at `CHANCE` 0 (the best weights on the folds), and how many")
    print(
        "per cent more it is at others; mean of five splits, in brackets the standard error at 4."
    )
    print(
        "At infinity only the mixed model (structure isotropic) is used. The larger shares of exam,"
    )
    print("hsb82 and radon are the splits of the leaderboard, which were used for this choice.\n")
    print(f"| set | rows, features, tasks | {' | '.join(f'{c:g}' for c in CHANCES)} |")
    print("| --- " * (2 + len(CHANCES)) + "|")
    for name, size, splits in tables():
        found = np.array([errors(split) for split in splits])
        more = 100.0 * (found / found[:, :1] - 1.0)
        cells = [f"{value:+.2f}" for value in more.mean(axis=0)[1:]]
        cells[1] += f" ({more[:, 2].std(ddof=1) / SEEDS**0.5:.2f})"
        print(f"| {name} | {size} | {found[:, 0].mean():.4g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
