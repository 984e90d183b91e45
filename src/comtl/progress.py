"""Progress of a fit, through the logger "comtl"."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("comtl")


@contextmanager
def progress_shown(verbose: int) -> Iterator[None]:
    """Let messages of level INFO through while a fit runs, if ``verbose`` asks for them.

    They go where the user's logging is set up to send them, else to standard error.

    Examples
    --------
    >>> import logging
    >>> from comtl.progress import logger, progress_shown
    >>> with progress_shown(1):
    ...     logger.isEnabledFor(logging.INFO)
    True
    """
    if not verbose:
        yield
        return
    level = logger.level
    handler = None if logger.hasHandlers() else logging.StreamHandler()
    logger.setLevel(logging.INFO)
    if handler is not None:
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.setLevel(level)
        if handler is not None:
            logger.removeHandler(handler)
