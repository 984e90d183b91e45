"""What all models share once fitted: weights, clusters, reading of rows."""

from __future__ import annotations

import copy
import inspect
import os
import warnings
from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, device_name, namespace, on_device, take, take_pairs, to_numpy
from ..clusters import cluster_rows, embeddings
from ..engine.problem import OutputColumns, Scaling
from ..factors import padded
from ..linear import LinearTasks, numpy_copy
from ..losses import Link, Loss
from ..rows.frames import is_frame
from ..rows.observations import Observations
from ..rows.reading import check_finite, encode_tasks, read_rows
from ..saving import ModelFileError, save
from ..saving.registry import belongs, saved
from .removed import REMOVED
from .shown import Shown

DERIVED = frozenset(
    {"_extended", "_cluster_cache", "task_factor_", "shared_coef_", "_skl_callbacks"}
)
"""What :meth:`FittedTasks._set_linear` makes of the weights, and what belongs to the session."""
NEEDED = {
    "tasks_": np.ndarray,
    "_linear": LinearTasks,
    "_columns": OutputColumns,
    "_units": Scaling,
}
"""What every fitted model has."""


class FittedTasks(Shown):
    """Abstract model with linear weights for each task."""

    __metadata_request__predict = {"task": True}
    __metadata_request__score = {"task": True, "sample_weight": True}

    # Declared for type checkers; constructors and fits set them.
    unseen_task: str
    _on_devices: bool = False
    """Whether the model works on arrays of other libraries than NumPy."""
    _levels_tell: bool = False
    """Whether clusters of tasks count what tasks differ by at the mean of the features."""
    _units: Scaling
    _multi_output: bool
    _seed: int
    _widths: tuple[int, int]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        saved(cls)

    @abstractmethod
    def _loss(self) -> Loss:
        """Loss of an observation."""

    @property
    @abstractmethod
    def _link(self) -> Link:
        """What a score says about the target."""

    @abstractmethod
    def _held_out_loss(self, data: Observations, unit: float) -> float:
        """Weighted mean loss of observations that fit did not see, targets measured in ``unit``."""

    @abstractmethod
    def _clusters(self) -> tuple[int | None, int | None]:
        """How many feature and task clusters to report; None leaves it to the weights."""

    @abstractmethod
    def _binary(self, data: Observations, columns: OutputColumns) -> Observations:
        """Observations as the engine takes them."""

    @property
    @abstractmethod
    def _classification(self) -> bool:
        """Whether y holds class labels."""

    @property
    def _known_classes(self) -> np.ndarray | None:
        """Classes of the fit; None for a regressor."""
        return None

    def _set_linear(self, linear: LinearTasks) -> None:
        """Keep the weights of all columns, and the means that serve unseen tasks."""
        self._linear = linear
        self.task_factor_ = padded(linear.task_factor, self._widths[1])
        self.shared_coef_ = linear.shared
        self._cluster_cache: dict[str, np.ndarray] = {}
        index = self._columns.index
        if index is None:
            groups = np.ones((1, linear.n_tasks), dtype=bool)
        else:
            groups = np.stack([self._columns.label == c for c in range(index.shape[1])])
        self._extended = linear.with_means(groups)

    @property
    def coef_(self) -> Array:
        """Weights: tasks × features, or tasks × classes × features beyond two classes."""
        return self._per_task(self._linear.coef)

    @property
    def intercept_(self) -> Array:
        """Intercepts: one a task, or tasks × classes beyond two classes."""
        return self._per_task(self._linear.intercepts)

    def _per_task(self, values: Array) -> Array:
        index = self._columns.index
        if index is None:
            return values
        if on_device(values):
            xp = namespace(values)
            blank = xp.zeros((1, *values.shape[1:]), dtype=values.dtype)
            flat = take(xp.concat([values, blank], axis=0), index.ravel() % (values.shape[0] + 1))
            return xp.reshape(flat, (*index.shape, *values.shape[1:]))
        table = np.zeros((*index.shape, *values.shape[1:]), dtype=values.dtype)
        table[self._columns.task, self._columns.label] = values
        return table

    @property
    def feature_clusters_(self) -> np.ndarray:
        """Cluster of each feature, from the singular vectors of the weights."""
        return self._cached_clusters("features")

    @property
    def task_clusters_(self) -> np.ndarray:
        """Cluster of each task, from the singular vectors of the weights.

        Of hierarchical models and stacks by their levels too, but for columns of a two-dimensional
        y, whose levels may be of any units.
        """
        return self._cached_clusters("tasks")

    def _cached_clusters(self, side: str) -> np.ndarray:
        if side not in self._cluster_cache:
            # Weights are small, and k-means is that of scikit-learn, on the host.
            scale = to_numpy(self._units.inverse_scale)
            scale = np.where(scale > 0, scale, 1.0)
            directions = to_numpy(self._linear.directions) / scale[:, None]
            features, tasks = embeddings(directions, to_numpy(self._linear.task_factor))
            if self._levels_tell and not self._multi_output:
                # Over rows of independent features the squared gap of two tasks is that of their
                # weights plus that of their levels.
                tasks = np.column_stack([tasks, self._levels(scale)])
            if self._columns.index is not None:
                tasks = self._per_task(tasks).reshape(len(self.tasks_), -1)
            for name, points, count in zip(
                ("features", "tasks"), (features, tasks), self._clusters(), strict=True
            ):
                self._cluster_cache[name] = cluster_rows(points, count, self._seed)
        return self._cluster_cache[side]

    def _levels(self, scale: np.ndarray) -> np.ndarray:
        """Scores of the tasks at the mean of the features, around their own mean."""
        mean = to_numpy(self._units.shift) / scale
        slopes = to_numpy(self._linear.task_factor) @ (mean @ to_numpy(self._linear.directions))
        levels = to_numpy(self._linear.intercepts) + slopes
        return levels - levels.mean()

    def _cell_scores(self, data: Observations, codes: np.ndarray) -> Array:
        """Score of each observation of other data for a column of the extended weights."""
        if data.rows is None:
            return self._extended.scores(data.X, codes)
        return take_pairs(self._extended.table(data.X), data.rows, codes)

    def _scores(self, X: Any, codes: np.ndarray | None) -> Array:
        """Scores of rows for the columns that ``codes`` name, or for all tasks without them."""
        scores = self._linear.table(X) if codes is None else self._extended.scores(X, codes)
        xp = namespace(scores)
        if not bool(xp.all(xp.isfinite(scores))):
            check_finite(X, self)
        return scores

    def _check_device(self, X: Any) -> None:
        """Refuse rows of another library or device than those of the fit."""
        mine, given = device_name(self._linear.shared), device_name(X)
        if mine != given:
            raise TypeError(
                f"X is an array of {given}, but the model was fitted on {mine}. Pass rows that lie "
                "there too, or use model.to_numpy(), which predicts for rows of NumPy."
            )

    def _read_codes(self, X: Any, task: Any) -> tuple[Any, np.ndarray | None]:
        """Validated rows and the task code of each; None where every task is asked for."""
        check_is_fitted(self)
        self._check_device(X)
        X, labels = read_rows(self, X, task)
        if labels is None:
            if self._multi_output:
                return X, None
            if len(self.tasks_) > 1:
                raise ValueError(
                    "This model knows several tasks: pass task= with one label a row, or fit it "
                    "with task_column so that X holds the task."
                )
            return X, np.zeros(X.shape[0], dtype=np.intp)
        codes = encode_tasks(labels, self.tasks_)
        unknown = codes < 0
        if unknown.all() or (self.unseen_task == "raise" and unknown.any()):
            names = np.unique(labels[unknown]).tolist()
            if self.unseen_task == "raise":
                adapts = hasattr(self, "adapt")
                remedy = "Adapt the model to them with adapt()" if adapts else "Fit again"
                raise ValueError(
                    f"task holds labels that fit never saw: {names[:10]}. {remedy}, or set "
                    'unseen_task="mean".'
                )
            if names:
                warnings.warn(
                    f"No task label is known to the model (such as {names[0]!r}); the mean of all "
                    "tasks serves. Are the labels of the same type as in fit?",
                    UserWarning,
                    stacklevel=3,
                )
        return X, codes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return self._is_fitted

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that :func:`comtl.load` reads.

        The file holds arrays and JSON, no pickle; a crash leaves the old file or the new one.

        Parameters
        ----------
        path : path-like
            The file, by custom ``*.comtl``.
        """
        check_is_fitted(self)
        save(numpy_copy(self), path)

    def to_numpy(self) -> Self:
        """Return a copy of the model with all that it learned held by NumPy.

        For a model that was fitted on tensors of torch or arrays of CuPy. Nothing but what was
        learned is copied from the device. The copy predicts for rows of NumPy.

        Returns
        -------
        estimator
            The copy.

        Examples
        --------
        >>> import numpy as np
        >>> from comtl import BiFactorRegressor
        >>> rng = np.random.default_rng(0)
        >>> X, task = rng.normal(size=(40, 2)), np.repeat([0, 1], 20)
        >>> model = BiFactorRegressor(1).fit(X, X[:, 0], task=task)
        >>> type(model.to_numpy().coef_)
        <class 'numpy.ndarray'>
        """
        check_is_fitted(self)
        return numpy_copy(self)

    def to_onnx(self) -> Any:
        """Return the linear prediction as an ONNX model."""
        # Not above: the export knows the kinds of models, which are built on this one.
        from ..show.onnx_graph import to_onnx

        check_is_fitted(self)
        return to_onnx(numpy_copy(self))

    def _saved_state(self) -> dict[str, Any]:
        """What a file keeps: parameters, and all that was learned but what follows from it."""
        return {name: value for name, value in vars(self).items() if name not in DERIVED}

    def _restore(self, state: dict[str, Any]) -> None:
        """Take what a file kept, as far as it belongs together."""
        state = {name: value for name, value in state.items() if name not in REMOVED}
        defaults = inspect.signature(type(self).__init__).parameters
        parameters = {name: defaults[name].default for name in self._get_param_names()}
        allowed = all(
            name.isidentifier() and not name.startswith("__") and name not in dir(type(self))
            for name in state.keys() - parameters.keys()
        )
        if not allowed or not all(belongs(state.get(name), kind) for name, kind in NEEDED.items()):
            raise ModelFileError(f"the parts of a {type(self).__name__} do not belong to it.")
        for name, value in {**parameters, **state}.items():
            setattr(self, name, value)
        linear, columns = self._linear, self._columns
        if len(columns.task) != linear.n_tasks or not linear.consistent:
            raise ModelFileError("the weights of the model do not fit each other.")
        self._set_linear(linear)

    def _read_new(
        self, X: Any, y: Any, task: Any, sample_weight: Any
    ) -> tuple[Observations, OutputColumns]:
        """Validated observations of further tasks, and their columns of weights."""
        check_is_fitted(self)
        self._check_device(X)
        schema = copy.copy(self)
        data = self._read_cells(schema, X, y, task, sample_weight)
        if self._multi_output and not is_frame(y) and self.tasks_.dtype.kind == "i":
            # The columns of an array have no names: they go on counting.
            data = replace(data, tasks=data.tasks + self.tasks_.max() + 1)
        self._refuse_known(data)
        return data, OutputColumns.of(data)

    @abstractmethod
    def _read_cells(self, schema: Any, *cells: Any) -> Observations:
        """Validated observations of further tasks; ``schema`` learns what the fit learned of X."""

    def _refuse_known(self, data: Observations) -> None:
        """Refuse what cannot be joined to the tasks at hand."""
        if data.multi_output != self._multi_output:
            raise ValueError(
                "adapt takes y in the form that fit had: "
                + ("two-dimensional." if self._multi_output else "one-dimensional, with tasks.")
            )
        known = encode_tasks(data.tasks, self.tasks_) >= 0
        if known.any():
            names = data.tasks[known][:10].tolist()
            raise ValueError(
                f"task holds tasks that the model knows already: {names}. "
                "Give new tasks new labels, or fit again with all rows."
            )
        if (data.tasks.dtype.kind == "U") != (self.tasks_.dtype.kind == "U"):
            raise ValueError("task must have labels of the same type as in fit, text or numbers.")

    def _joined(
        self, data: Observations, columns: OutputColumns, new: tuple[Any, Any, Any]
    ) -> Self:
        """Copy of the model with further columns of weights."""
        model = copy.copy(self)
        model.tasks_ = np.concatenate([self.tasks_, data.tasks])
        model._columns = _append_columns(self._columns, columns, len(self.tasks_))
        model._set_linear(self._linear.joined(*new))
        return model


def _append_columns(old: OutputColumns, new: OutputColumns, n_tasks: int) -> OutputColumns:
    task = np.concatenate([old.task, new.task + n_tasks])
    label = np.concatenate([old.label, new.label])
    if old.index is None or new.index is None:
        return OutputColumns(task, label, None)
    shifted = np.where(new.index >= 0, new.index + len(old.task), -1)
    return OutputColumns(task, label, np.concatenate([old.index, shifted]))
