"""A fitted model with the encoding of its table."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa

from ..evaluation.comparison import Comparison
from ..evaluation.reference_models import choose_hinges
from ..hierarchical.intervals_mixin import IntervalMixin
from ..models.task_model import TaskModel
from ..phrases import count_noun, some, warn_caller
from ..rows.fit_input import FitInput
from ..rows.reading import encode_tasks
from ..saving import load, save
from ..saving.registry import saved
from .columns import CATEGORY
from .encoder import Encoder
from .labels import CLASSIFICATION, match_target, match_tasks, read_tasks
from .values import TableError, as_table, require_columns

TABLES = frozenset({".csv", ".tsv", ".txt", ".parquet", ".arrow", ".feather", ".gz"})


@dataclass(frozen=True, eq=False)
class PreparedRows:
    """Rows to predict, as the estimator takes them, and notes on them."""

    X: Any
    task: np.ndarray
    notes: tuple[str, ...]


@saved
@final
@dataclass(frozen=True, eq=False, repr=False)
class TableModel:
    """A model of the rows of a table; made by :func:`fit_table`.

    Parameters
    ----------
    encoder : Encoder
        How columns become features.
    estimator : estimator
        The fitted model.
    comparison : Comparison or None
        Errors on held-out rows against reference models.
    task, target : str
        Columns of the task and of the target.
    kind : {"regression", "classification"}
        Kind of problem.
    model : str
        Name of the model on the command line.
    rows : int
        Rows that the model was fitted to.
    task_as_text : bool
        Whether task labels are taken as text, whatever they look like.
    notes : tuple of str
        Notes on the data and on the fit.
    versions : dict of str to str
        Versions of the software that fitted it.

    Examples
    --------
    >>> import pandas as pd
    >>> from comtl.tables import fit_table
    >>> frame = pd.DataFrame({"school": ["a", "b"] * 10, "age": range(20), "score": range(20)})
    >>> model = fit_table(frame, task="school", target="score", model="pooled", score=False)
    >>> model.predict(frame.head(2)).round().tolist()
    [0.0, 1.0]
    """

    encoder: Encoder
    estimator: TaskModel
    comparison: Comparison | None
    task: str
    target: str
    kind: str
    model: str
    rows: int
    task_as_text: bool
    notes: tuple[str, ...]
    versions: dict[str, str]

    def __repr__(self) -> str:
        return (
            f"TableModel({self.target!r} by {self.task!r}: {type(self.estimator).__name__}, "
            f"{len(self.estimator.tasks_)} tasks, {len(self.encoder.names)} features)"
        )

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features of the table, then of their hinges, in the order of weights."""
        names = self.encoder.names
        return (*names, *choose_hinges(self.estimator).names(names))

    @property
    def spreads(self) -> np.ndarray:
        """Standard deviations of ``features`` in training."""
        spreads = self.encoder.spreads
        return np.append(spreads, 1.0 / self.estimator._units.inverse_scale[len(spreads) :])

    @property
    def text_columns(self) -> tuple[str, ...]:
        """Columns that stay text when a CSV file is read, also where they look like numbers."""
        names = tuple(c.name for c in self.encoder.columns if c.kind == CATEGORY)
        return (*names, self.task) if self.estimator.tasks_.dtype.kind == "U" else names

    @property
    def classes(self) -> np.ndarray | None:
        """Classes in the order of their probabilities; None for a regression."""
        return self.estimator._linear.classes

    def prepare(self, frame: Any, unseen: str = "mean") -> PreparedRows:
        """Rows of a table as the estimator takes them, with notes on unknown values.

        Parameters
        ----------
        frame : pandas, polars or Arrow table
            Rows, with the columns of the training table; further ones are ignored.
        unseen : {"mean", "refuse"}
            Whether rows of unknown tasks are predicted by the mean of all tasks.

        Returns
        -------
        PreparedRows
            Features, tasks and notes.
        """
        table = as_table(frame)
        require_columns([self.task], table.column_names, "the model's task")
        tasks = self.estimator.tasks_
        task = match_tasks(table.column(self.task), tasks, self.task_as_text)
        unknown = encode_tasks(task, tasks) < 0
        notes = []
        if unknown.any():
            labels = table.column(self.task).take(pa.array(np.flatnonzero(unknown))).unique()
            count = (
                f"{count_noun(int(unknown.sum()), 'row')} of {len(task):,} with "
                f"{count_noun(len(labels), 'task')} that the model does not know, such as "
                f"{some(labels.to_pylist(), 3)}"
            )
            if unseen == "refuse":
                raise TableError(
                    f"{count}: pass --unseen mean, add them with comtl adapt, or fit again."
                )
            notes.append(f"{count}; predicted by the mean of all tasks.")
        encoded = self.encoder.encode(table)
        return PreparedRows(encoded.X, task, (*notes, *encoded.notes))

    def _prepared(self, frame: Any) -> PreparedRows:
        rows = self.prepare(frame)
        for note in rows.notes:
            warn_caller(note, UserWarning)
        return rows

    def predict(self, frame: Any) -> np.ndarray:
        """Value or class of each row.

        Parameters
        ----------
        frame : pandas, polars or Arrow table
            Rows, with the columns of the training table.

        Returns
        -------
        ndarray of shape (n_rows,)
            Predictions.
        """
        return self.values(self._prepared(frame))

    def predict_interval(self, frame: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Bounds between which the target of each row lies with probability ``level``.

        Parameters
        ----------
        frame : pandas, polars or Arrow table
            Rows, with the columns of the training table.
        level : float, default=0.9
            Probability, between 0 and 1.

        Returns
        -------
        lower, upper : ndarrays of shape (n_rows,)
            The bounds.
        """
        return self.bounds(self._prepared(frame), level)

    def predict_proba(self, frame: Any) -> np.ndarray:
        """Probabilities of the classes, in the order of ``estimator.classes_``.

        Parameters
        ----------
        frame : pandas, polars or Arrow table
            Rows, with the columns of the training table.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities.
        """
        return self.chances(self._prepared(frame))

    def values(self, rows: PreparedRows) -> np.ndarray:
        """Predictions of prepared rows."""
        return np.asarray(self._call("predict", rows))

    def bounds(self, rows: PreparedRows, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Prediction intervals of prepared rows."""
        if not isinstance(self.estimator, IntervalMixin):
            raise TableError(
                f"A {type(self.estimator).__name__} has no intervals: fit a regression with "
                "--model auto or --model hierarchical."
            )
        return self._call("predict_interval", rows, level)

    def chances(self, rows: PreparedRows) -> np.ndarray:
        """Class probabilities of prepared rows."""
        if self.kind != CLASSIFICATION:
            raise TableError(
                "Probabilities are for classes, and this model is a regression: ask for "
                "--interval, or fit with --kind classification."
            )
        return np.asarray(self._call("predict_proba", rows))

    def _call(self, method: str, rows: PreparedRows, *given: Any) -> Any:
        """Call the estimator without its warning on unknown tasks, which the notes count."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "No task label is known")
            return getattr(self.estimator, method)(rows.X, *given, task=rows.task)

    def _read_training(self, frame: Any) -> tuple[FitInput, list[str]]:
        """Rows of a table that have a target, as the estimator is fitted to them, and notes."""
        table = as_table(frame)
        require_columns([self.task, self.target], table.column_names, "the model's table")
        target = match_target(table.column(self.target), self.target, self.classes)
        table, values, notes = target.kept(table, self.target)
        text = self.task_as_text or self.estimator.tasks_.dtype.kind == "U"
        task = read_tasks(table.column(self.task), self.task, text)
        encoded = self.encoder.encode(table)
        return FitInput(encoded.X, values, task), [*notes, *encoded.notes]

    def adapt(self, frame: Any) -> TableModel:
        """Model that knows further tasks as well, learned from a few rows each.

        Parameters
        ----------
        frame : pandas, polars or Arrow table
            Rows of new tasks, with the columns of the training table.

        Returns
        -------
        TableModel
            A copy that knows the old and the new tasks.
        """
        model = self.estimator
        if model._algorithm_class is None:
            raise TableError(
                f"A {type(model).__name__} takes no new tasks once it is fitted: fit again with "
                "the rows of all tasks, or fit with --model bifactor, which does."
            )
        rows, notes = self._read_training(frame)
        if rows.task.dtype.kind != model.tasks_.dtype.kind:
            raise TableError(
                f"Column {self.task!r} held whole numbers in training and now holds text such as "
                f"{rows.task[0]!r}; name the new tasks by numbers."
            )
        adapted, count = model.adapt(rows.X, rows.y, task=rows.task), len(rows.task)
        added = count_noun(len(adapted.tasks_) - len(model.tasks_), "task")
        notes = [*self.notes, f"{added} added by adapt from {count_noun(count, 'row')}.", *notes]
        return replace(self, estimator=adapted, rows=self.rows + count, notes=tuple(notes))

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write one HTML page on the model, with its held-out scores where it has them.

        Parameters
        ----------
        path : path
            Where to.
        """
        from ..show.page import write_report

        write_report(
            Path(path),
            self.estimator,
            comparison=self.comparison,
            notes=self.notes,
            title=f"{self.target} by {self.task}",
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file; :func:`load_model` reads it.

        Parameters
        ----------
        path : path
            Where to.
        """
        save(self, path, **self.versions)


def load_model(path: str | os.PathLike[str]) -> TableModel:
    """Read a model that :meth:`TableModel.save` or ``comtl fit`` wrote.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    TableModel
        The model.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from comtl.tables import fit_table, load_model
    >>> frame = pd.DataFrame({"school": ["a", "b"] * 10, "age": range(20), "score": range(20)})
    >>> model = fit_table(frame, task="school", target="score", model="pooled", score=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.comtl")
    ...     again = load_model(f"{folder}/model.comtl")
    >>> bool((again.predict(frame) == model.predict(frame)).all())
    True
    """
    if Path(path).is_dir():
        raise TableError(f"{path} is a folder; name the model file in it.")
    if Path(path).suffix.lower() in TABLES:
        raise TableError(f"{path} is a table by its name; first comes the model, then the table.")
    try:
        model = load(path)
    except FileNotFoundError as error:
        raise TableError(f"There is no file {path}; make one with comtl fit.") from error
    except PermissionError as error:
        raise TableError(f"{path} may not be read: ask for permission to read it.") from error
    if not isinstance(model, TableModel):
        raise TableError(
            f"{path} holds a {type(model).__name__} without the columns of its table: read it with "
            "comtl.load in Python, or make a model with comtl fit."
        )
    return model
