"""Progress of a fit, through the logger "comtl" and callbacks of scikit-learn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, final

logger = logging.getLogger("comtl")

Item = TypeVar("Item")


@contextmanager
def progress_shown(verbose: int) -> Iterator[None]:
    """Let INFO messages through while a fit runs: to the user's logging, else to standard error."""
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


@final
class FitProgress:
    """Who follows a fit: callbacks of scikit-learn, and the user who may interrupt it."""

    def __init__(self, model: Any = None, X: Any = None, y: Any = None) -> None:
        self._model = model
        self._rows = {"X": X, "y": y}

    @property
    def is_root(self) -> bool:
        """Whether the model may end early, with what it has, when the user interrupts."""
        return self._model is not None

    def iterate(
        self,
        items: Iterable[Item],
        name: str,
        *,
        more: Callable[[Item], bool] = lambda item: True,
        fitted: Callable[[Item], dict[str, Any]] | None = None,
    ) -> Iterator[Item]:
        """Yield subtasks until a callback asks to stop or ``more(item)`` is false."""
        if self._model is None or not vars(self._model).get("_skl_callbacks"):
            yield from items
            return
        rest = iter(items)
        going = True
        while going:
            task = self._model._callback_fit_ctx.subcontext(task_name=name)
            task.call_on_fit_task_begin(estimator=self._model, **self._rows)
            try:
                item = next(rest)
            except StopIteration:
                return
            yield item
            known = None if fitted is None else lambda item=item: fitted(item)
            stop = task.call_on_fit_task_end(
                estimator=self._model, **self._rows, reconstruction_attributes=known
            )
            going = more(item) and not stop


SILENT = FitProgress()
