"""Whether hinges are worth a try, by two mixed models rather than the many fits of a stack."""

import warnings
from dataclasses import replace
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ..hierarchical.hierarchical_estimators import HierarchicalClassifier, HierarchicalRegressor
from ..linear import OutputColumns
from ..rows.fit_input import FitInput
from ..rows.observations import Observations
from ..stacking.default_members import is_wide
from ..stacking.multitask import MultitaskModel
from ..stacking.stack_rows import TargetScaling

MIN_LOG_EVIDENCE = 3.0
"""Log of twenty to one, from which hinges are worth a try; see benchmarks/bench_nonlinearity.md."""
MOST_STEPS = 100
"""Iterations of either model: the marginal likelihood may have no maximum."""


def nonlinearity_evidence(
    model: MultitaskModel, X: Any, y: Any, task: Any = None, sample_weight: Any = None
) -> float:
    """Log marginal likelihood that hinges add: whether ``basis="hinges"`` is worth a try.

    Two mixed models are fitted to all rows, one with the hinges that ``basis="hinges"`` would try,
    which takes a small part of the time of a stack. Above 3 (twenty to one) hinges are worth a try;
    below, they gain little as a rule.

    Parameters
    ----------
    model : MultitaskRegressor or MultitaskClassifier
        Whose kind and task column the rows are read with, fitted or not.
    X, y, task, sample_weight
        As in fit, but that weights are taken in units of their mean.

    Returns
    -------
    float
        Log marginal likelihood with hinges less that without; 0 where no column can have hinges, or
        where there are too many columns for mixed models.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import MultitaskRegressor
    >>> from comtl.evaluation import nonlinearity_evidence
    >>> rng = np.random.default_rng(0)
    >>> task, age = np.repeat(np.arange(8), 50), rng.uniform(20, 60, 400)
    >>> level, noise = rng.normal(size=8)[task], rng.normal(size=400)
    >>> linear, hinge = age + level + noise, np.abs(age - 40) + level + noise
    >>> nonlinearity_evidence(MultitaskRegressor(), age[:, None], linear, task) > 0
    False
    >>> nonlinearity_evidence(MultitaskRegressor(), age[:, None], hinge, task) > 100
    True
    """
    if not isinstance(model, MultitaskModel):
        raise TypeError(
            "model must be a MultitaskRegressor or MultitaskClassifier, which can take hinges, got "
            f"{type(model).__name__}."
        )
    schema = clone(model).set_params(basis="hinges")
    data = FitInput.of(schema, X, y, task, sample_weight).read(schema)
    schema._check_data(data)
    *_, hinges = schema._bases(data)
    width = data.n_features + len(hinges.columns)
    if not len(hinges.columns) or is_wide(width, len(OutputColumns.of(data).task)):
        return 0.0
    # Stacks take weights as they are, but as a number of rows they would decide alone.
    data = replace(data, weights=data.weights / data.weights.mean())
    data = TargetScaling.of(data).transform(data)
    return _evidence(replace(data, X=hinges.expanded(data.X))) - _evidence(data)


def _evidence(data: Observations) -> float:
    """Log marginal likelihood of a mixed model of the observations."""
    kind = HierarchicalRegressor if data.classes is None else HierarchicalClassifier
    mixed = kind("isotropic", shrink_common=True, max_iter=MOST_STEPS)
    with warnings.catch_warnings():
        # Likelihoods may be compared before they are at their top.
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixed._learn(data, OutputColumns.of(data))
    return float(mixed.log_evidence_)
