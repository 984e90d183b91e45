"""Rows of a fit as members take them: hinges, and columns of y in units of their own."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from ..arrays import Array, asarray_like, to_numpy
from ..losses.loss import target_units
from ..rows.design import Design
from ..rows.fit_input import FitInput
from ..rows.folds import Split
from ..rows.observations import Observations
from ..rows.reading import encode_tasks
from .hinges import Hinges

MAX_UNCENTRED_SD = 1e3
"""Spreads from zero beyond which a column is measured from its mean: beside such a level nothing
else would count. Nearer ones are left to the members, which pool them as far as that helps."""
ROUNDING = 1e-12
"""Range of values, over the largest, up to which they are one value."""
SMALLEST = 1e-12
"""Variance of a principal component that counts, over the largest."""


@dataclass(frozen=True, eq=False)
class TargetScaling:
    """The zero and the unit that the target of each task is measured in.

    Columns of a two-dimensional y may be of any units, so that each is measured in its spread; a
    one-dimensional y is of one unit, and classes have none.
    """

    tasks: np.ndarray
    shift: np.ndarray
    scale: np.ndarray
    log: bool = False  # whether logarithms of targets are fitted

    @classmethod
    def of(cls, data: Observations) -> TargetScaling:
        """Units that the observations call for."""
        # One number per observation: units are found on the host.
        target, shares = to_numpy(data.y), to_numpy(data.weights)
        mean, scale = np.zeros(data.n_tasks), np.ones(data.n_tasks)
        if data.multi_output and data.classes is None:
            for task, (start, stop) in enumerate(pairwise(data.offsets)):
                y, weights = target[start:stop], shares[start:stop]
                mean[task], scale[task] = target_units(y, weights, center=True, scale=True)
                if np.ptp(y / (np.abs(y).max() or 1.0)) <= ROUNDING:
                    scale[task] = np.nan
            # One value alone does not tell its unit; what is usual among the others will do.
            usual = np.exp(np.log(scale[scale > 0.0]).mean()) if (scale > 0.0).any() else 1.0
            scale = np.where(scale > 0.0, scale, usual)
        shift = np.where(np.abs(mean) > MAX_UNCENTRED_SD * scale, mean, 0.0)
        return cls(data.tasks, shift.astype(shares.dtype), scale.astype(shares.dtype))

    def transform(self, data: Observations) -> Observations:
        """Observations of some of the tasks, with targets in their units."""
        if data.classes is not None:
            return data
        if self.log:
            data = replace(data, y=np.log(data.y))
        task = encode_tasks(data.tasks, self.tasks)[data.codes]
        shift, scale = (asarray_like(unit[task], data.y) for unit in (self.shift, self.scale))
        return replace(data, y=(data.y - shift) / scale)

    def inverse_transform(
        self, coef: Array, intercepts: Array, task: np.ndarray
    ) -> tuple[Array, Array]:
        """Weights and intercepts of columns that belong to tasks, in the user's units."""
        units = self.shift, self.scale
        shift, scale = (asarray_like(unit[task], coef, coef.dtype) for unit in units)
        return coef * scale[:, None], intercepts * scale + shift


def principal_components(X: Any, scale: bool) -> np.ndarray:
    """Scores of all principal components of few rows of many columns, scaled first if asked.

    The rows have the same products in them, which is all that models without a say for single
    columns know of rows.
    """
    ones = np.ones(X.shape[0])
    design = Design.standardized(X, ones, scale="auto")
    inverse = design.inverse_scale if scale else (design.inverse_scale > 0.0).astype(float)
    if sparse.issparse(X):
        rows = sparse.csr_array(X * inverse)
        unit = float(abs(rows).max()) or 1.0
        rows = rows / unit
        kernel = (rows @ rows.T).toarray()
        kernel = kernel - kernel.mean(axis=0)
        kernel = kernel - kernel.mean(axis=1, keepdims=True)
    else:
        rows = (X - X.mean(axis=0)) * inverse
        unit = float(np.abs(rows).max()) or 1.0
        rows = rows / unit
        kernel = rows @ rows.T
    values, basis = eigh(kernel)
    kept = values > SMALLEST * max(float(values[-1]), 1e-300)
    return unit * basis[:, kept] * np.sqrt(values[kept])


@dataclass(frozen=True, eq=False)
class StackRows:
    """Rows as members take them: with hinges, and targets in the units of their columns."""

    given: FitInput  # what the user handed over, or principal components of its columns
    schema: Any  # reads folds of it
    hinges: Hinges
    units: TargetScaling
    classes: np.ndarray | None
    splits: Sequence[Split]
    components: bool = False  # whether columns are principal components, which keep their spread

    @property
    def n_hinges(self) -> int:
        """Columns of hinges, behind those of X."""
        return len(self.hinges.columns)

    @property
    def straight(self) -> StackRows:
        """The rows without hinges."""
        return replace(self, hinges=Hinges.none())

    def prepared(self, data: Observations) -> Observations:
        """Observations with hinges and scaled targets."""
        return replace(self.units.transform(data), X=self.hinges.expanded(data.X))

    def read(self, numbers: np.ndarray) -> Observations:
        """Observations of some rows."""
        part = self.given.take(numbers)
        return self.prepared(part.read(copy.copy(self.schema), classes=self.classes, partial=True))
