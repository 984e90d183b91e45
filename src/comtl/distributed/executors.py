"""Who works on the partitions: a Dask cluster, or this process for want of one.

A *handle* stands for a value that may live elsewhere: the outcome of a task whose arguments the
scheduler knows, so that what is lost with a worker is made again from the partition itself.
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

Future = Any
"""A value, or what stands for it: a future, or a recipe that is followed anew at each use."""

BRANCHES = 8
"""Values that one task of a reduction adds up."""
SMALL = 2**16
"""Bytes up to which a value goes along with each task rather than once to every worker."""
ROOM = 0.5
"""Share of the workers' memory that partitions may take up for good."""


class LostClusterError(RuntimeError):
    """The scheduler went away in the middle of a fit."""


class Workers:
    """Work on one partition after the other in this process; the engine has threads of its own."""

    branches = 2**30  # values added up by one task of a reduction

    def scatter(self, value: Any) -> Future:
        """Hand out a value that every partition needs."""
        return value

    def persist(self, recipes: Sequence[Any]) -> list[Future]:
        """Values by their Dask recipes; as many stay in memory as there is room for."""
        return [recipe.compute(scheduler="threads") for recipe in recipes]

    def map(self, work: Callable[..., Any], *columns: Sequence[Any], common: Any = ()) -> list:
        """Futures of ``work(*common, *entry_of_each_column)`` for each partition."""
        return [work(*common, *own) for own in zip(*columns, strict=True)]

    def values(self, handles: list[Future]) -> list[Any]:
        """Bring values here."""
        return handles

    def total(
        self, add: Callable[[list[Any]], Any], handles: list[Future], *, small: bool = False
    ) -> Any:
        """Sum of all, made in a tree; of a few ``small`` values it is made here."""
        while len(handles) > self.branches:
            starts, size = range(0, len(handles), self.branches), self.branches
            handles = self.map(add, [handles[start : start + size] for start in starts])
        if small:
            return add(self.values(handles))
        return self.values(self.map(add, [handles]))[0]


class DaskWorkers(Workers):
    """The workers of a Dask cluster."""

    branches = BRANCHES

    def __init__(self, client: Any) -> None:
        self.client = client

    def scatter(self, value: Any) -> Future:
        if _bytes(value) <= SMALL:
            return value
        # As the outcome of a task, not scattered: the scheduler can make it again.
        with self._watched():
            return self.client.submit(lambda same: same, value, pure=False)

    def persist(self, recipes: Sequence[Any]) -> list[Future]:
        with self._watched():
            first = self.client.compute(recipes[0])
            size = self.client.submit(sys.getsizeof, first, pure=False).result()
            fit = int(min(self._room() / size, len(recipes)))
            return [first, *self.client.compute(list(recipes[1:fit])), *recipes[max(fit, 1) :]]

    def _room(self) -> float:
        """Bytes that partitions may take up for good: any, where Dask puts some of them on disk."""
        import dask

        if dask.config.get("distributed.worker.memory.target", None):
            return float("inf")
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [worker["memory_limit"] or 0 for worker in workers]
        return ROOM * sum(limits) if limits and all(limits) else float("inf")

    def map(self, work: Callable[..., Any], *columns: Sequence[Any], common: Any = ()) -> list:
        from dask.delayed import Delayed, delayed

        rows = list(zip(*columns, strict=True))
        with self._watched():
            if any(isinstance(value, Delayed) for own in rows for value in own):
                todo = delayed(work, pure=False)
                return self.client.compute([todo(*common, *own) for own in rows])
            shared = [[one] * len(rows) for one in common]
            return self.client.map(work, *shared, *columns, pure=False)

    def values(self, handles: list[Future]) -> list[Any]:
        with self._watched():
            return self.client.gather(handles)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Tell a cluster that is gone from an error of ours."""
        from distributed.client import (
            ClosedClientError,
            CommClosedError,
            FutureCancelledError,
            FuturesCancelledError,
        )

        gone = (ClosedClientError, CommClosedError, FutureCancelledError, FuturesCancelledError)
        with warnings.catch_warnings():
            # Factors are small beside the rows, and they must go out somehow.
            warnings.filterwarnings("ignore", "Sending large graph")
            try:
                yield
            except (*gone, OSError) as error:
                if not isinstance(error, gone) and self.client.status == "running":
                    raise
                raise LostClusterError(
                    "The Dask scheduler went away in the middle of the work. Connect to a new "
                    "cluster and fit again; with checkpoint= the fit goes on where it was."
                ) from error


def _bytes(value: Any) -> int:
    """Bytes of the arrays in a value."""
    if isinstance(value, tuple | list):
        return sum(map(_bytes, value))
    if hasattr(value, "__dict__"):
        return sum(map(_bytes, vars(value).values()))
    return getattr(value, "nbytes", 0)
