"""Held-out losses of many settings on a few folds, fitted in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..alternation import Recipe, Schedule
from ..arrays import DENSE_BYTES, Array, namespace, to_numpy
from ..datafits.gram import GramDatafit
from ..factors import Factors
from .cells import weights_of
from .run import fit_batch


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows of a fold as Grams: those to fit to, and those to predict.

    Parameters
    ----------
    train, test : GramDatafit
        Both in the units of the training rows.
    codes : ndarray of shape (n_test_tasks,)
        Number of each task of the held-out rows among those of the training rows; -1 for one
        that has none there, which is predicted by the mean of all.
    scale : float
        What a squared error of the engine's units is in those of the losses.
    """

    train: GramDatafit
    test: GramDatafit
    codes: np.ndarray
    scale: float = 1.0

    def losses(self, point: Factors) -> Array:
        """Mean squared error of each of many fits, (B,)."""
        xp = namespace(point.F)
        weights = weights_of(point)
        weights = xp.concat([weights, xp.mean(weights, axis=1, keepdims=True)], axis=1)
        codes = np.where(self.codes < 0, weights.shape[1] - 1, self.codes)
        own = xp.permute_dims(xp.take(weights, xp.asarray(codes), axis=1), (1, 0, 2))
        push = own @ self.test.gram - 2.0 * self.test.moment[:, None, :]
        total = self.test.total_energy + xp.sum(own * push, axis=(0, 2))
        return (self.scale / self.test.n_weighted) * total


def batched_losses(
    folds: Sequence[HeldOut],
    recipes: Sequence[Sequence[Recipe]],
    schedule: Schedule,
    *,
    together: bool,
    init: str = "svd",
    seed: int = 0,
) -> np.ndarray:
    """Held-out mean squared error of settings on folds.

    Parameters
    ----------
    folds : sequence of HeldOut
        The folds, in any array library.
    recipes : sequence of sequences of Recipe
        For each fold those of the settings, all :func:`~comtl.batches.start.batchable`.
    schedule : Schedule
        How each fit runs.
    together : bool
        Whether fits of different ranks share a batch, padded to the widest: fewer and larger
        operations, for a GPU. Else only fits of one rank do.
    init, seed
        As for a single fit.

    Returns
    -------
    ndarray of shape (n_folds, n_settings)
        Each as a fit of its own would have it.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.alternation import Recipe, Schedule
    >>> from comtl.batches.losses import HeldOut, batched_losses
    >>> from comtl.datafits.gram import GramDatafit
    >>> rng = np.random.default_rng(0)
    >>> X, w = rng.normal(size=(2, 3, 9, 4)), rng.normal(size=4)
    >>> X[..., -1] = 1.0
    >>> train, test = (GramDatafit(x.mT @ x, x.mT @ x @ w, np.sum((x @ w) ** 2, axis=1)) for x in X)
    >>> recipes = [Recipe({"F": 1e-3, "G": alpha}, (2, 2)) for alpha in (1e-3, 1e3)]
    >>> fold = HeldOut(train, test, np.arange(3))
    >>> losses = batched_losses([fold], [recipes], Schedule(), together=False)
    >>> losses.shape, bool(losses[0, 0] < losses[0, 1])
    ((1, 2), True)
    """
    found = np.empty((len(folds), len(recipes[0])))
    for numbers, places in _batches(folds, recipes, together):
        data = [folds[number] for number in numbers]
        chosen = [recipe for number in numbers for recipe in recipes[number]]
        local = np.searchsorted(numbers, places[0])
        which = np.stack([local, local * len(recipes[0]) + places[1]])
        fits = [fold.train for fold in data]
        step = fit_batch(fits, chosen, which, schedule, init=init, seed=seed)
        xp = namespace(step.objective)
        # Losses of all fits on every fold: few folds, and one product for each.
        losses = xp.stack([fold.losses(step.fits.factors) for fold in data])
        found[places[0], places[1]] = to_numpy(losses)[local, np.arange(len(local))]
    return found


def _batches(
    folds: Sequence[HeldOut], recipes: Sequence[Sequence[Recipe]], together: bool
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds and (fold, setting) pairs of each batch: of one shape and kind, ranks rising."""
    kinds: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    for fold, row in enumerate(recipes):
        for number, recipe in enumerate(row):
            kind = (
                folds[fold].train.moment.shape,
                tuple(recipe.penalties),
                recipe.shared is None,
                recipe.intercept,
                recipe.pooling is None,
                () if together else recipe.ranks,
            )
            kinds.setdefault(kind, []).append((fold, number))
    found = []
    for (shape, *_), pairs in kinds.items():
        pairs.sort(key=lambda pair: (recipes[pair[0]][pair[1]].ranks, pair))
        widest = recipes[pairs[-1][0]][pairs[-1][1]].ranks[0]
        # Of the arrays of a fit the Grams are the largest, or the system of its core.
        size = 8 * (shape[0] * shape[1] ** 2 + widest**4)
        count = max(1, DENSE_BYTES // size)
        for first in range(0, len(pairs), count):
            places = np.array(pairs[first : first + count]).T
            found.append((np.unique(places[0]), places))
    return found
