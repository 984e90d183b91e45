"""The rows as the engine sees them: centred and scaled without touching the caller's array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .arrays import DENSE_SIDE, Array, namespace

_BLOCK_CELLS = 2**22


@dataclass(frozen=True)
class Design:
    """Standardised view ``(X - 1 meanᵀ) diag(inverse_scale)`` of dense or sparse rows.

    Centring is implicit, so sparse rows stay sparse. A constant column has inverse scale zero:
    it is a column of zeros here, whatever its size.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.design import Design
    >>> X = np.array([[1.0, 5.0], [3.0, 5.0]])
    >>> design = Design.standardized(X, np.ones(2))
    >>> design @ np.array([[1.0], [1.0]])
    array([[-1.],
           [ 1.]])
    """

    X: Any
    shift: Array
    inverse_scale: Array

    @classmethod
    def plain(cls, X: Any) -> Design:
        """Rows as they are."""
        xp = namespace(X)
        zeros = xp.zeros(X.shape[1], dtype=X.dtype)
        return cls(X, zeros, zeros + 1.0)

    @classmethod
    def standardized(
        cls, X: Any, weights: Array, *, center: bool = True, scale: bool = True
    ) -> Design:
        """Rows centred and scaled to unit (weighted) variance, or unit mean square uncentred."""
        largest = _largest(X)
        if not scale and not np.all(largest < np.finfo(X.dtype).max ** 0.25):
            raise ValueError(
                "X has values too large to square safely; rescale its columns or leave "
                "standardize=True."
            )
        unit = np.where(largest > 0, largest, 1.0)
        mean, second = _moments(X, unit, weights, center)
        # The mean of n equal numbers is off by some roundings of double precision.
        tiny = np.finfo(np.float64).eps * (X.shape[0] + 10)
        constant = second <= (tiny * np.abs(mean)) ** 2
        inverse = np.ones_like(unit)
        if scale:
            with np.errstate(over="ignore", divide="ignore"):
                inverse = 1.0 / np.sqrt(np.where(constant, 1.0, second)) / unit
        if not np.all(np.isfinite(inverse)):
            bad = int(np.flatnonzero(~np.isfinite(inverse))[0])
            raise ValueError(f"Column {bad} of X is too small to scale; multiply it up first.")
        inverse = np.where(constant, 0.0, inverse).astype(X.dtype)
        return cls(X, (mean * (unit * inverse)).astype(X.dtype), inverse)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.X.shape

    @property
    def dtype(self) -> Any:
        """Type of the entries."""
        return self.X.dtype

    def rows(self, start: int, stop: int) -> Design:
        """Return the view of consecutive rows."""
        return Design(self.X[start:stop, ...], self.shift, self.inverse_scale)

    def __matmul__(self, right: Array) -> Array:
        return self.X @ (self.inverse_scale[:, None] * right) - (self.shift @ right)[None, :]

    def transposed_matmul(self, left: Array) -> Array:
        """Product of the transpose with ``left`` of shape (rows, k)."""
        total = namespace(left).sum(left, axis=0)
        back = self.X.T @ left
        return self.inverse_scale[:, None] * back - self.shift[:, None] * total[None, :]

    @property
    def filled(self) -> int:
        """Number of stored entries."""
        return self.X.nnz if sparse.issparse(self.X) else self.shape[0] * self.shape[1]

    def blocks(self, cells: int = _BLOCK_CELLS, *, dense: bool = False) -> list[tuple[int, int]]:
        """Row ranges of about ``cells`` entries each: stored ones, or all where made dense."""
        rows, columns = self.shape
        packed = sparse.issparse(self.X) and not dense
        filled = self.X.nnz / max(rows, 1) if packed else columns
        size = max(1, int(cells / max(filled, 1.0)))
        return [(start, min(start + size, rows)) for start in range(0, rows, size)]

    def dense_rows(self, start: int, stop: int) -> Array:
        """Standardised rows as a dense block: explicit, so that no digits cancel in a Gram."""
        block = self.X[start:stop, ...]
        block = block.toarray() if sparse.issparse(block) else block
        return block * self.inverse_scale[None, :] - self.shift[None, :]

    def take(self, rows: np.ndarray) -> Array:
        """Standardised rows of any numbers as a dense block."""
        return Design(self.X[rows], self.shift, self.inverse_scale).dense_rows(0, len(rows))

    def covariance(self, weights: Array, rank: int = 64, seed: int = 0) -> Covariance:
        """Pooled weighted second moments: exact for few columns, else their leading part."""
        xp = namespace(weights)
        total = float(xp.sum(weights))
        columns = self.shape[1]
        if columns <= DENSE_SIDE:
            moments = xp.zeros((columns, columns), dtype=self.dtype)
            for start, stop in self.blocks(max(_BLOCK_CELLS, columns * columns), dense=True):
                block = self.dense_rows(start, stop)
                moments = moments + block.T @ (weights[start:stop, None] * block)
            values, basis = xp.linalg.eigh(moments / total)
            return Covariance(basis, xp.clip(values, min=0.0), 0.0)
        rng = np.random.default_rng(seed)
        basis = xp.asarray(rng.standard_normal((columns, rank)), dtype=self.dtype)
        for _ in range(3):
            basis, _ = xp.linalg.qr(basis)
            basis = self.transposed_matmul(weights[:, None] * (self @ basis)) / total
        basis, triangle = xp.linalg.qr(basis)
        left, values, _ = xp.linalg.svd(triangle, full_matrices=False)
        rest = max(self._mean_square(weights, total) - float(xp.sum(values)), 0.0)
        return Covariance(basis @ left, values, rest / (columns - rank))

    def _mean_square(self, weights: Array, total: float) -> float:
        """Trace of the pooled second moments."""
        if sparse.issparse(self.X):
            csr = sparse.csr_array(self.X)
            row_weights = np.repeat(weights, np.diff(csr.indptr))
            blank = self.shift[csr.indices]
            gap = csr.data * self.inverse_scale[csr.indices] - blank
            return float(row_weights @ (gap**2 - blank**2)) / total + float(self.shift @ self.shift)
        xp = namespace(weights)
        squares = 0.0
        for start, stop in self.blocks():
            row_squares = xp.sum(self.dense_rows(start, stop) ** 2, axis=1)
            squares += float(xp.sum(weights[start:stop] * row_squares))
        return squares / total


@dataclass(frozen=True)
class Covariance:
    """Symmetric matrix ``V diag(values) Vᵀ + rest (I - V Vᵀ)``.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.design import Covariance
    >>> Covariance(np.eye(2)[:, :1], np.array([3.0]), rest=1.0).toarray()
    array([[3., 0.],
           [0., 1.]])
    """

    basis: Array
    values: Array
    rest: float

    def toarray(self) -> Array:
        """Return the dense matrix: for tests and small sizes."""
        xp = namespace(self.basis)
        eye = xp.eye(self.basis.shape[0], dtype=self.basis.dtype)
        return self.rest * eye + (self.basis * (self.values - self.rest)[None, :]) @ self.basis.T


def _largest(X: Any) -> np.ndarray:
    """Largest absolute value of each column."""
    if sparse.issparse(X):
        return np.asarray(abs(X).max(axis=0).todense()).ravel()
    return np.maximum(X.max(axis=0), -X.min(axis=0))


def _weighted_mean(X: Any, weights: np.ndarray, total: float) -> np.ndarray:
    return (X.T @ weights) / total


def _moments(
    X: Any, unit: np.ndarray, weights: np.ndarray, center: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and central second moment of the columns of ``X / unit``, in two passes.

    Summed up in double precision whatever the type of X, in blocks of rows.
    """
    weights = weights.astype(np.float64)
    total = float(weights.sum())
    size = X.shape[1]
    mean, second = np.zeros(size), np.zeros(size)
    if sparse.issparse(X):
        csr = sparse.csr_array(X)
        row_weights = np.repeat(weights, np.diff(csr.indptr))
        small = csr.data / unit[csr.indices].astype(np.float64)
        if center:
            mean = np.bincount(csr.indices, row_weights * small, minlength=size) / total
        gap = small - mean[csr.indices]
        inside = np.bincount(csr.indices, row_weights * gap**2, minlength=size)
        filled = np.bincount(csr.indices, row_weights, minlength=size)
        # Exactly zero where every row is stored: a difference of sums would leave its rounding.
        stored = np.bincount(csr.indices, row_weights > 0, minlength=size)
        blank = np.where(stored < np.count_nonzero(weights), np.maximum(total - filled, 0.0), 0.0)
        return mean, (inside + blank * mean**2) / total
    blocks = Design.plain(X).blocks()
    for start, stop in blocks if center else ():
        mean += weights[start:stop] @ (X[start:stop] / unit).astype(np.float64) / total
    for start, stop in blocks:
        gap = (X[start:stop] / unit).astype(np.float64) - mean
        second += weights[start:stop] @ gap**2 / total
    return mean, second
