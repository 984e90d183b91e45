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
    """Let messages of level INFO through while a fit runs, if ``verbose`` asks for them.

    They go where the user's logging is set up to send them, else to standard error.
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


@final
class FitProgress:
    """Who looks on at a fit: callbacks of scikit-learn, and the user who may interrupt it.

    Parameters
    ----------
    model : estimator or None
        The outermost model, with its callback context; None for a fit within a longer computation,
        which nobody watches.
    X, y : optional
        Rows and targets, for callbacks that ask for them.
    """

    def __init__(self, model: Any = None, X: Any = None, y: Any = None) -> None:
        self._model = model
        self._rows = {"X": X, "y": y}

    @property
    def is_root(self) -> bool:
        """Whether the model may end early, with what it has, when the user interrupts.

        Within another computation the interruption is that one's to handle.
        """
        return self._model is not None

    def iterate(
        self,
        items: Iterable[Item],
        name: str,
        *,
        more: Callable[[Item], bool] = lambda item: True,
        fitted: Callable[[Item], dict[str, Any]] | None = None,
    ) -> Iterator[Item]:
        """Yield items as they come, each a subtask of the fit; end where a callback asks to stop.

        ``more`` tells whether another item will come after one, ``fitted`` the attributes of the
        model as if the fit had ended there.
        """
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
