"""What a fitted model says: values for a regressor, classes for a classifier."""

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score

from ..arrays import Array, asarray_like, namespace, on_device, take_pairs, to_numpy, weighted_mean
from ..linear import OutputColumns
from ..losses import ClassLink, Link
from ..rows.frames import is_partitioned, only_column
from ..rows.observations import Observations, signs
from ..rows.reading import read_classes, read_numbers, refuse_masked
from .task_model import TaskModel


def by_partition(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method of rows take Dask collections: it then returns Dask arrays, not yet computed."""
    signature = inspect.signature(method)

    @wraps(method)
    def either(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        arguments = signature.bind(self, X, *args, **kwargs).arguments
        task = arguments.pop("task", None)
        if not is_partitioned(X, task):
            return method(self, X, *args, **kwargs)
        from ..distributed.dask_collections import call_by_partition

        del arguments["self"], arguments["X"]
        return call_by_partition(partial(_call, method.__name__, arguments), self, X, task)

    return either


def _call(name: str, options: dict[str, Any], model: Any, X: Any, task: Any) -> Any:
    return getattr(model, name)(X, task=task, **options)


def computed(*parts: Any) -> tuple[Any, ...]:
    """Arrays of a score in the memory of this process, where Dask collections are computed."""
    return tuple(to_numpy(one.compute() if is_partitioned(one) else one) for one in parts)


class RegressorOutputs(RegressorMixin, TaskModel):
    """Abstract regressor: the score is the prediction."""

    _classification = False

    @property
    def _link(self) -> Link:
        link = self._loss().regression_link
        assert link is not None
        return link

    def _binary(self, data: Observations, columns: OutputColumns) -> Observations:
        loss = self._loss()
        if not data.partitioned:
            loss.check_target(data.y)
        elif not loss.quadratic:
            raise ValueError(
                "Dask collections take the squared loss only; call compute() on them, or leave "
                'loss="auto".'
            )
        return data

    def _held_out_loss(self, data: Observations, unit: float) -> float:
        codes = self._linear.codes(data.tasks)[data.codes]
        loss = self._loss().held_out(data.y, self._observation_scores(data, codes), unit)
        return weighted_mean(loss, data.weights)

    @by_partition
    def predict(self, X: Any, task: Any = None) -> Array:
        """Predict the target of each row for its task.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.
        task : array-like of shape (n_samples,), optional
            Task of each row, where it is no column of X.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_tasks)
            Predictions; for every task after a two-dimensional ``y``.
        """
        X, codes = self._read_codes(X, task)
        return self._link.mean(self._scores(X, codes))

    def score(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> float:
        """Return R²; for a two-dimensional ``y`` its mean over columns, missing entries left out.

        By Poisson loss D², the share of the deviance that is explained.

        Parameters
        ----------
        X, task
            Rows, as in predict.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            True targets.
        sample_weight : array-like of shape (n_samples,) or that of y, optional
            Weights.

        Returns
        -------
        float
            The score, at best 1.
        """
        guess, y, sample_weight = computed(self.predict(X, task), y, sample_weight)
        if guess.ndim == 1:
            y, sample_weight = only_column(y), only_column(sample_weight)
        truth, missing = read_numbers(y, guess.dtype)
        return mean_over_columns(self._loss().score, truth, guess, missing, sample_weight, least=2)


class ClassifierOutputs(ClassifierMixin, TaskModel):
    """Abstract classifier: the class with the highest score among those its task has seen.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Union of the classes of all tasks.
    """

    __metadata_request__predict_proba = {"task": True}
    __metadata_request__predict_log_proba = {"task": True}
    __metadata_request__decision_function = {"task": True}

    @property
    def classes_(self) -> np.ndarray:
        """Union of the classes of all tasks."""
        assert self._linear.classes is not None
        return self._linear.classes

    _classification = True

    @property
    def _link(self) -> ClassLink:
        link = self._loss().classification_link
        assert link is not None
        return link

    def _binary(self, data: Observations, columns: OutputColumns) -> Observations:
        return data.one_vs_rest(columns)

    @by_partition
    def decision_function(self, X: Any, task: Any = None) -> Array:
        """Return the scores of the classes.

        Parameters
        ----------
        X, task
            Rows, as in predict.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_tasks)
            For two classes the score of the second, positive where it is predicted. A class that
            a task never saw lies below all that it saw. After a two-dimensional ``y``: a column
            for each task.
        """
        X, codes = self._read_codes(X, task)
        return self._decisions(X, codes)[0]

    def _decisions(self, X: Any, codes: np.ndarray | None) -> tuple[Array, Array | None]:
        """Scores, and beyond two classes which of them belong to classes the task saw."""
        columns = self._linear.columns
        if codes is None or columns.index is None:
            return self._scores(X, codes), None
        places = columns.places[codes]
        seen = places >= 0
        scores = self._scores(X, np.maximum(places, 0))
        xp = namespace(scores)
        seen = asarray_like(seen, scores)
        none = xp.full_like(scores, float("inf"))
        lowest = xp.min(xp.where(seen, scores, none), axis=1, keepdims=True)
        below = lowest - xp.maximum(xp.ones_like(lowest), xp.abs(lowest))
        return xp.where(seen, scores, below), seen

    def _thresholds_of(self, codes: np.ndarray | None) -> np.ndarray | None:
        """What scores of two classes were lowered by: one for each code, or task; None: nothing."""
        return None

    @by_partition
    def predict_proba(self, X: Any, task: Any = None) -> Array:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X, task
            Rows, as in predict.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples, n_tasks)
            Probabilities, zero for a class that a task never saw. After a two-dimensional ``y``:
            the probability of the second class for each task.
        """
        X, codes = self._read_codes(X, task)
        scores, seen = self._decisions(X, codes)
        if seen is not None:
            return self._link.class_probabilities(scores, seen)
        thresholds = self._thresholds_of(codes)
        if thresholds is not None:
            scores = scores + asarray_like(thresholds, scores, scores.dtype)
        chance = self._link.mean
        # Of minus the score rather than one minus the chance, which would lose small ones.
        if codes is None:
            return chance(scores)
        return namespace(scores).stack([chance(-scores), chance(scores)], axis=1)

    def predict_log_proba(self, X: Any, task: Any = None) -> Array:
        """Return the logarithm of the probabilities; see :meth:`predict_proba`."""
        chance = self.predict_proba(X, task)
        with np.errstate(divide="ignore"):
            return namespace(chance).log(chance)

    @by_partition
    def predict(self, X: Any, task: Any = None) -> Array:
        """Predict the class of each row for its task.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.
        task : array-like of shape (n_samples,), optional
            Task of each row, where it is no column of X.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_tasks)
            Predicted classes; for every task after a two-dimensional ``y``.
        """
        X, codes = self._read_codes(X, task)
        scores, seen = self._decisions(X, codes)
        xp = namespace(scores)
        best = xp.astype(scores > 0, xp.int64) if seen is None else xp.argmax(scores, axis=1)
        if not on_device(best):
            return self.classes_[best]
        if self.classes_.dtype.kind not in "biuf":
            return self.classes_[to_numpy(best)]  # No library but NumPy has arrays of text.
        flat = xp.take(xp.asarray(self.classes_), xp.reshape(best, (-1,)), axis=0)
        return xp.reshape(flat, best.shape)

    def score(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy; for a two-dimensional ``y`` its mean over columns.

        Parameters
        ----------
        X, task
            Rows, as in predict.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            True classes; missing entries are left out.
        sample_weight : array-like of shape (n_samples,) or that of y, optional
            Weights.

        Returns
        -------
        float
            The accuracy.
        """
        guess, y, sample_weight = computed(self.predict(X, task), y, sample_weight)
        if guess.ndim == 1:
            y, sample_weight = only_column(y), only_column(sample_weight)
        truth, missing = read_classes(y)
        return mean_over_columns(accuracy_score, truth, guess, missing, sample_weight)

    def _held_out_loss(self, data: Observations, unit: float) -> float:
        codes = self._linear.codes(data.tasks)[data.codes]
        if self._linear.columns.index is None:
            scores = self._observation_scores(data, codes)
            value = self._loss().value(signs(data.y == 1, scores, scores.dtype), scores)
        else:
            # Several classes: the Brier score.
            scores, seen = self._decisions(data.X, codes)
            chance = self._link.class_probabilities(scores, seen)
            own = take_pairs(chance, np.arange(len(codes)), data.y)
            value = namespace(chance).sum(chance**2, axis=1) - 2.0 * own + 1.0
        return weighted_mean(value, data.weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags

    def fit(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> Self:
        """Fit all tasks together; see :meth:`BiFactorRegressor.fit` for the arguments.

        ``y`` holds class labels. Tasks may have different classes. With two classes in all,
        every task is a binary problem on them, also one whose rows show only one.
        """
        return super().fit(X, y, task, sample_weight)


def mean_over_columns(
    metric: Any,
    truth: np.ndarray,
    guess: np.ndarray,
    missing: np.ndarray,
    sample_weight: Any,
    least: int = 1,
) -> float:
    """Metric of a column, or its mean over those of a table with ``least`` observations or more."""
    refuse_masked(sample_weight, "sample_weight")
    if truth.ndim == 1:
        return float(metric(truth, guess, sample_weight=sample_weight))
    if truth.shape != guess.shape:
        raise ValueError(
            f"y has shape {truth.shape}, but the model predicts {guess.shape}: one column a task."
        )
    weights = None
    if sample_weight is not None and not np.isscalar(sample_weight):
        weights = np.broadcast_to(np.asarray(sample_weight).reshape(len(truth), -1), truth.shape)
    values = []
    for column, gaps in enumerate(missing.T):
        kept = ~gaps
        if kept.sum() >= least:
            share = None if weights is None else weights[kept, column]
            values.append(metric(truth[kept, column], guess[kept, column], sample_weight=share))
    return float(np.mean(values)) if values else float("nan")
