"""Row blocks on several threads, with BLAS held to one thread each meanwhile."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Blas:
    """How many threads BLAS may use: a number of the whole process, so kept in one place.

    Several fits may run at once in threads of their own. The first to enter lowers the number to
    one and the last to leave restores it; saving and restoring in each would leave it at one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth, self._before = 0, 1

    @staticmethod
    @lru_cache
    def _libraries() -> list[Any]:
        return ThreadpoolController().select(user_api="blas").lib_controllers

    @property
    def threads(self) -> int:
        """Number of threads that the user allows."""
        if self._depth:
            return self._before
        counts = [library.get_num_threads() or 1 for library in self._libraries()]
        return max(counts, default=1)

    @contextmanager
    def single(self) -> Iterator[None]:
        """Hold BLAS to one thread."""
        with self._lock:
            if not self._depth:
                self._before = self.threads
                self._set(1)
            self._depth += 1
        try:
            yield
        finally:
            with self._lock:
                self._depth -= 1
                if not self._depth:
                    self._set(self._before)

    def _set(self, count: int) -> None:
        for library in self._libraries():
            library.set_num_threads(count)


_blas = _Blas()


@lru_cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="comtl")


# The threads of a pool do not outlive a fork, so the child must make its own.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


def available_threads() -> int:
    """Threads that a product over the rows may use: as many as BLAS may.

    Respects ``OMP_NUM_THREADS`` and the like, ``threadpoolctl.threadpool_limits`` and the limits
    that joblib sets for its workers.

    Examples
    --------
    >>> from threadpoolctl import threadpool_limits
    >>> from comtl.threads import available_threads
    >>> with threadpool_limits(1):
    ...     available_threads()
    1
    """
    return _blas.threads


@contextmanager
def single_blas() -> Iterator[None]:
    """Hold BLAS to one thread for a while, without a say in :func:`available_threads`.

    After each product its threads wait for the next one in a busy loop, which would take the
    cores away from the threads that work through the rows.

    Examples
    --------
    >>> from comtl.threads import available_threads, single_blas
    >>> allowed = available_threads()
    >>> with single_blas():
    ...     available_threads() == allowed
    True
    """
    with _blas.single():
        yield


def in_order(
    work: Callable[[Item], Result], items: Sequence[Item], threads: int | None = None
) -> Iterator[Result]:
    """Yield ``work(item)`` in the order of the items, a few of them at a time.

    At most one result more than there are threads waits to be taken, so that large ones do not
    pile up.

    Examples
    --------
    >>> from comtl.threads import in_order
    >>> list(in_order(lambda n: n * n, [1, 2, 3]))
    [1, 4, 9]
    """
    threads = min(available_threads() if threads is None else threads, len(items))
    if threads <= 1:
        yield from map(work, items)
        return
    with _blas.single():
        pool, waiting = _pool(threads), deque[Future[Result]]()
        rest = iter(items)
        try:
            for item in rest:
                waiting.append(pool.submit(work, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
