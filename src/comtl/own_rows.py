"""What adapted tasks have beyond the factors, on a device: rows of weights for some tasks only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .arrays import Array, is_packed, namespace, row_dots, taken, to_numpy

_BLOCK_CELLS = 2**24


@dataclass(frozen=True, eq=False)
class OwnRows:
    """Matrix of tasks by features, most of whose rows are zero.

    Parameters
    ----------
    places : ndarray of shape (T,)
        Number of a task's row among ``rows``; -1 for a task without one.
    rows : array of shape (m, P)
        Rows that are not zero.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.own_rows import OwnRows
    >>> OwnRows(np.array([-1, 0]), np.array([[1.0, 2.0]])).toarray()
    array([[0., 0.],
           [1., 2.]])
    """

    places: np.ndarray
    rows: Array

    @classmethod
    def none(cls, tasks: int, features: int, like: Array) -> OwnRows:
        """Tasks without rows."""
        empty = namespace(like).zeros((0, features), dtype=like.dtype)
        return cls(np.full(tasks, -1), empty)

    @property
    def shape(self) -> tuple[int, int]:
        """Tasks and features."""
        return len(self.places), self.rows.shape[1]

    def toarray(self) -> Array:
        """Return the dense matrix."""
        xp = namespace(self.rows)
        blank = xp.zeros((1, self.rows.shape[1]), dtype=self.rows.dtype)
        return taken(xp.concat([self.rows, blank], axis=0), self.places % (self.rows.shape[0] + 1))

    def to_scipy(self) -> sparse.csr_array:
        """Return the same matrix as SciPy holds it."""
        table = np.zeros(self.shape, dtype=to_numpy(self.rows).dtype)
        mine = self.places >= 0
        table[mine] = to_numpy(self.rows)[self.places[mine]]
        return sparse.csr_array(table)

    def below(self, other: OwnRows) -> OwnRows:
        """Further tasks below these."""
        moved = np.where(other.places >= 0, other.places + self.rows.shape[0], -1)
        rows = namespace(self.rows).concat([self.rows, other.rows], axis=0)
        return OwnRows(np.concatenate([self.places, moved]), rows)

    def with_means(self, share: np.ndarray) -> OwnRows:
        """Append means of the tasks, with a share of each."""
        xp = namespace(self.rows)
        mine = np.flatnonzero(self.places >= 0)
        weights = np.zeros((len(share), self.rows.shape[0]))
        weights[:, self.places[mine]] = share[:, mine]
        means = xp.asarray(weights, dtype=self.rows.dtype) @ self.rows
        return self.below(OwnRows(np.arange(len(share)), means))

    def scores(self, X: Array, codes: np.ndarray) -> Array:
        """Product of each row of X with that of its task."""
        xp = namespace(self.rows)
        places = self.places[codes]
        touched = np.flatnonzero(places >= 0)
        step = max(1, _BLOCK_CELLS // X.shape[1])
        parts = [xp.zeros(1, dtype=self.rows.dtype)]
        for start in range(0, len(touched), step):
            some = touched[start : start + step]
            rows = taken(X, some)
            rows = rows.dense(0, len(some)) if is_packed(rows) else rows
            parts.append(row_dots(rows, taken(self.rows, places[some])))
        back = np.zeros(len(codes), dtype=np.intp)
        back[touched] = np.arange(len(touched)) + 1
        return taken(xp.concat(parts), back)
