"""Freed memory that a worker keeps for the next product."""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache

TRIM, MAP = -1, -3
"""What glibc's ``mallopt`` calls the thresholds of giving memory back, and of mapping it apart."""
KEPT = 2**24
"""Bytes; see benchmarks/bench_partitions.md."""


@lru_cache
def keep_freed_memory() -> bool:
    """Let malloc keep some megabytes of what is freed, and tell whether it was told so.

    Dask's nanny has its workers give back all beyond 64 kB at once. The arrays of a block of rows
    are larger, and each would be fetched from the system anew: passes took 1.5 times as long.

    Examples
    --------
    >>> from comtl.partitions.memory import keep_freed_memory
    >>> isinstance(keep_freed_memory(), bool)
    True
    """
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        return False  # No worker of a nanny: malloc has its own way, which serves.
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False  # Not glibc.
    return bool(mallopt(TRIM, KEPT) and mallopt(MAP, KEPT))
