"""What a worker has of the rows: the validated observations of a partition, and views of them."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

from ..linear import OutputColumns
from ..rows.fit_input import FitInput
from ..rows.observations import Observations
from ..rows.reading import encode_tasks

unique_number = count().__next__
"""What tells objects apart wherever they are sent."""


@dataclass(frozen=True, eq=False)
class LabelEncoding:
    """How the observations of all partitions are encoded together; the same for every partition."""

    tasks: np.ndarray
    classes: np.ndarray | None
    dtype: np.dtype
    columns: OutputColumns | None = None  # for targets -1 and +1
    number: int = field(init=False, default_factory=unique_number)


@dataclass(eq=False)
class Partition:
    """Validated observations of one partition, and what was last made of them."""

    obs: Observations
    columns_in: int
    names: np.ndarray | None
    _made: dict[str, tuple[Any, Any]] = field(default_factory=dict, init=False)

    def __reduce__(self) -> Any:
        return Partition, (self.obs, self.columns_in, self.names)

    def __sizeof__(self) -> int:
        """Bytes by which Dask knows how much memory is in use."""
        X: Any = self.obs.X
        rows = [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]
        parts = [*rows, self.obs.y, self.obs.weights, self.obs.offsets]
        return sum(array.nbytes for array in parts)

    def made(self, name: str, key: Any, make: Callable[[], Any]) -> Any:
        """What was made under a name last, if with the same key; else it is made now."""
        found = self._made.get(name)
        if found is None or found[0] != key:
            self._made.pop(name, None)  # So that it need not be there beside its successor.
            found = self._made[name] = key, make()
        return found[1]

    def encoded(self, encoding: LabelEncoding) -> tuple[Observations, np.ndarray]:
        """Observations in an encoding, and the numbers of their columns among all."""
        return self.made("encoding", encoding.number, lambda: _encode(self.obs, encoding))

    def positions(self, first: np.ndarray) -> np.ndarray:
        """Number of each row of X in one table of all; ``first`` is each task's first (or one)."""
        obs = self.obs
        bounds = np.array([0, obs.X.shape[0]]) if obs.multi_output else obs.offsets
        return np.arange(bounds[-1]) + np.repeat(first - bounds[:-1], np.diff(bounds))


def stacked(parts: Sequence[Any]) -> Any:
    """Rows of several partitions as those of one."""
    if sparse.issparse(parts[0]):
        return sparse.csr_array(sparse.vstack(parts))
    return np.concatenate(parts)


def _encode(obs: Observations, encoding: LabelEncoding) -> tuple[Observations, np.ndarray]:
    task_index = encode_tasks(obs.tasks, encoding.tasks)
    if encoding.classes is not None:
        assert obs.classes is not None
        y = np.searchsorted(encoding.classes, obs.classes)[obs.y]
        obs = replace(obs, y=y, classes=encoding.classes)
    if obs.dtype != encoding.dtype:
        y = obs.y if encoding.classes is not None else obs.y.astype(encoding.dtype)
        weights = obs.weights.astype(encoding.dtype)
        obs = replace(obs, X=obs.X.astype(encoding.dtype), y=y, weights=weights)
    columns = encoding.columns
    if columns is None:
        return obs, task_index
    if columns.index is None:
        return obs.one_vs_rest(columns), task_index
    index = columns.index[task_index]
    return obs.one_vs_rest(OutputColumns.seen(index >= 0)), index[index >= 0]


def read_partition(
    schema: Any, options: dict[str, Any], number: int, chosen: np.ndarray | None, *given: Any
) -> Partition:
    """Validate the rows of a partition, or the ``chosen`` ones; an error names it."""
    rows = FitInput(*given)
    if chosen is not None:
        rows = rows.take(chosen)
    schema = copy.copy(schema)
    try:
        obs = rows.read(schema, **{**options, "partial": True})
    except (ValueError, TypeError) as error:
        raise ValueError(f"Partition {number} (counted from 0): {error}") from error
    names = getattr(schema, "feature_names_in_", None)
    return Partition(obs, schema.n_features_in_, names)


SUMMARIZED = ["tasks", "offsets", "classes", "n_rows", "n_features", "dtype", "nnz"]
SUMMARIZED += ["multi_output", "complete"]


def summarize(piece: Partition) -> SimpleNamespace:
    """What is to be known of a partition where there are others."""
    obs = piece.obs
    summary = SimpleNamespace(**{name: getattr(obs, name) for name in SUMMARIZED})
    summary.seen = None if obs.classes is None else obs.seen
    summary.columns_in, summary.names = piece.columns_in, piece.names
    return summary
