"""Blocks of rows, and products with them on the threads that BLAS may use."""

from __future__ import annotations

import operator
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from threadpoolctl import ThreadpoolController

from .backends import Array, is_device_sparse, is_sparse, namespace, on_device

Argument = TypeVar("Argument")
Returned = TypeVar("Returned")


class _Blas:
    """Threads that BLAS may use: the first of several fits lowers them, the last restores them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth, self._before = 0, 1

    @cached_property
    def _libraries(self) -> ThreadpoolController:
        return ThreadpoolController()

    def threads(self) -> int:
        """Threads that work may use: as many as BLAS may, or might before it was held to one."""
        if self._depth:
            return self._before
        blas = self._libraries.select(user_api="blas").lib_controllers
        counts = [library.get_num_threads() or 1 for library in blas]
        return max(counts, default=1)

    @contextmanager
    def single(self) -> Iterator[None]:
        """Hold BLAS, and trees, to one thread: others wait in a busy loop and take our cores."""
        with self._lock:
            if not self._depth:
                self._before = self.threads()
                self._limit = self._libraries.limit(limits=1)
            self._depth += 1
        try:
            yield
        finally:
            with self._lock:
                self._depth -= 1
                if not self._depth:
                    self._limit.restore_original_limits()


_blas = _Blas()
available_threads, single_blas = _blas.threads, _blas.single


@lru_cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="comtl")


# The threads of a pool do not outlive a fork, so the child must make its own.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


def in_order(
    work: Callable[[Argument], Returned], items: Sequence[Argument], threads: int | None = None
) -> Iterator[Returned]:
    """Yield ``work(item)`` in the order of the items; only a few results wait at a time."""
    threads = min(available_threads() if threads is None else threads, len(items))
    if threads <= 1:
        yield from map(work, items)
        return
    with single_blas():
        pool, waiting = _pool(threads), deque[Future[Returned]]()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


CACHE_ENTRIES, CACHE_ROWS = 2**18, (512, 4096)
KERNEL_ROWS, KERNEL_PRODUCT = 48, 10**6
CHUNK_ENTRIES, CHUNK_ROWS = {"dense": (2**20, 2**22), "sparse": (2**18, 2**22)}, 2**17
THREAD_WORK = {"dense": 2**24, "sparse": 2**21}
"""Measured in benchmarks/bench_blocks.md and bench_operator.md: entries of a dense block, and its
least and most rows; rows that one call of BLAS takes, and the product of sizes up to which that
pays; entries of a chunk, and its most rows; entries times columns from which threads pay."""
DEVICE_ENTRIES = 2**26
"""Entries of a dense block on a device, which wants larger ones."""


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows of a matrix."""

    obs: slice
    rows: Any

    def forward(self, right: Array) -> Array:
        stack = self._pieces(right.shape[1])
        if stack is None:
            return self.rows @ right
        return (stack @ right).reshape(-1, right.shape[1])

    def backward(self, left: Array) -> Array:
        if is_device_sparse(self.rows):
            return self.rows.backward(left)
        if sparse.issparse(self.rows):
            return across(self.rows) @ left
        stack = self._pieces(left.shape[1])
        if stack is None:
            return self.rows.T @ left
        pieces = left.reshape(stack.shape[0], stack.shape[1], -1)
        return (stack.transpose(0, 2, 1) @ pieces).sum(axis=0)

    def _pieces(self, width: int) -> np.ndarray | None:
        """Rows as a stack of matrices small enough that BLAS applies them without packing."""
        rows = self.rows
        if not isinstance(rows, np.ndarray) or not rows.flags.c_contiguous:
            return None
        count, columns = rows.shape
        if width < 2 or count % KERNEL_ROWS or KERNEL_ROWS * columns * width > KERNEL_PRODUCT:
            return None
        return rows.reshape(-1, KERNEL_ROWS, columns)


class RowBlocks:
    """Rows in chunks, the work of one thread at a time, of blocks that fit its cache."""

    def __init__(self, X: Any) -> None:
        self.X = X
        rows, columns = X.shape
        self.packed = sparse.issparse(X)
        self.on_device = on_device(X)
        self.nnz = int(X.nnz) if is_sparse(X) else rows * columns
        least, most = CHUNK_ENTRIES[self.kind]
        share = max(self.nnz / max(rows, 1), 1.0)
        size = max(1, min(int(max(least, min(self.nnz // 16, most)) / share), CHUNK_ROWS))
        if self.packed:
            # A chunk of sparse rows adds a dense (P, k) array, not to be most of its work.
            size = max(size, int(4 * columns / share))
        else:
            fewest, most = CACHE_ROWS
            self.step = min(max(CACHE_ENTRIES // max(columns, 1), fewest), most)
            self.step -= self.step % KERNEL_ROWS
            size = max(size // self.step, 1) * self.step
        if self.on_device:
            # Other libraries have threads and caches of their own.
            size = self.step = max(rows, 1)
            if not is_sparse(X):
                self.step = max(1, DEVICE_ENTRIES // max(columns, 1))
        self.ranges = [(start, min(start + size, rows)) for start in range(0, rows, size)]
        self._views = [self._view(*span) for span in self.ranges] if self.packed else []

    def __reduce__(self) -> tuple[Any, ...]:
        return RowBlocks, (self.X,)  # Pickled views would hold the rows a second time.

    @property
    def kind(self) -> str:
        return "sparse" if self.packed else "dense"

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    def _view(self, start: int, stop: int) -> Any:
        """Sparse rows without a copy of what they hold."""
        X = self.X
        first, last = int(X.indptr[start]), int(X.indptr[stop])
        ends = (X.indptr[start : stop + 1] - X.indptr[start]).astype(X.indices.dtype)
        parts = X.data[first:last], X.indices[first:last], ends
        return stored(sparse.csr_array, (stop - start, X.shape[1]), *parts)

    def chunk(self, number: int) -> Iterator[Block]:
        start, stop = self.ranges[number]
        if self.packed:
            yield Block(slice(start, stop), self._views[number])
            return
        for first in range(start, stop, self.step):
            obs = slice(first, min(first + self.step, stop))
            whole = obs.stop - first == self.X.shape[0]
            yield Block(obs, self.X if whole else self.X[obs, ...])

    def each(self, work: Callable[[int], Returned], width: int) -> Iterator[Returned]:
        """Yield ``work(number)`` for every chunk in order; ``width`` is that of the factor."""
        threads = available_threads() if self.nnz * width >= THREAD_WORK[self.kind] else 1
        return in_order(work, range(len(self.ranges)), threads)

    def total(self, work: Callable[[Block], Array | None], width: int) -> Array:
        """Sum of ``work(block)`` over all blocks, on the threads of :meth:`each`."""
        return added(self.each(lambda number: added(map(work, self.chunk(number))), width))

    def forward(self, right: Array) -> Array:
        if self.on_device:
            return self.X @ right
        result = namespace(right).empty((self.shape[0], right.shape[1]), dtype=right.dtype)

        def keep(block: Block) -> None:
            result[block.obs, :] = block.forward(right)

        self.total(keep, right.shape[1])
        return result

    def backward(self, left: Array) -> Array:
        return self.total(lambda b: b.backward(left[b.obs, ...]), left.shape[1])


def stored(
    kind: Any, shape: tuple[int, int], data: np.ndarray, indices: np.ndarray, indptr: np.ndarray
) -> Any:
    """Sparse array of these very parts: SciPy copies what is less than half of its base."""
    made = kind(shape, dtype=data.dtype)
    made.data, made.indices, made.indptr = data, indices, indptr
    return made


def across(rows: Any) -> Any:
    """Transpose of sparse rows, of the same parts."""
    return stored(sparse.csc_array, rows.shape[::-1], rows.data, rows.indices, rows.indptr)


def added(parts: Iterable[Array]) -> Array:
    """Sum of arrays made for the purpose, or None of nothing: the first is added to in place."""
    made = (part for part in parts if part is not None)
    first = next(made, None)
    return reduce(operator.iadd, made, first)
