"""Whether learning all tasks together is worth it, in one sentence."""

from __future__ import annotations

import numpy as np

from ..evaluation import Comparison

MANY_TASKS = 10
"""Tasks from which the spread between them tells how sure a difference is."""


def verdict(comparison: Comparison, model: str = "auto") -> str:
    """One sentence on how the model does on held-out rows against simpler ones.

    ``model`` is the name on the command line: of "pooled" and "separate" something else is said.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import HierarchicalRegressor
    >>> from comtl.evaluation import compare
    >>> from comtl.tables.verdict import verdict
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(300, 3)), np.repeat(np.arange(20), 15)
    >>> y = X[:, 0] + rng.normal(size=20)[task] + 0.5 * rng.normal(size=300)
    >>> verdict(compare(HierarchicalRegressor(), X, y, task))
    'Multitask learning is worth it here: on rows that no model saw, its RMSE is ... %
    below that of the best simpler model (separate, ...).'
    """
    scores, metric = comparison.overall, comparison.metric
    best = min(("pooled", "separate", "mean"), key=lambda name: scores[name])
    own, other = scores["model"], scores[best]
    change = abs(own / other - 1.0) if other > 0 else 0.0
    against = f"the best simpler model ({best}, {other:.4g})"
    if model in ("pooled", "separate"):
        return (
            f"On rows that no model saw, the RMSE of the {model} model is {own:.4g}.".replace(
                "RMSE", metric
            )
            + " Whether multitask learning would do better, a fit with --model auto tells."
        )
    if len(comparison.tasks) == 1:
        return (
            f"With one task there is nothing to share: {metric} {own:.4g} on rows that no model "
            f"saw, against {other:.4g} of {against.split(' (')[0]}."
        )
    sure = _sure(comparison, best)
    if own < other and sure:
        return (
            f"Multitask learning is worth it here: on rows that no model saw, its {metric} is "
            f"{own:.4g}, {100 * change:.1f} % below that of {against}."
        )
    if own > other and sure:
        return (
            f"Multitask learning is not worth it here: on rows that no model saw, its {metric} is "
            f"{own:.4g}, {100 * change:.1f} % above that of {against}."
        )
    return (
        f"Multitask learning makes no clear difference here: on rows that no model saw, its "
        f"{metric} is {own:.4g}, against {other:.4g} of {against.split(', ')[0]})."
    )


def _sure(comparison: Comparison, name: str) -> bool:
    """Whether the difference is beyond twice its standard error."""
    if name not in comparison.gains:
        # Against a constant there is no error of the difference: a tenth must do.
        ratio = comparison.overall["model"] / max(comparison.overall[name], 1e-300)
        return abs(ratio - 1.0) > 0.1
    gains, errors, rows = (
        np.asarray(values, dtype=float)
        for values in (comparison.gains[name], comparison.gain_errors[name], comparison.held_out)
    )
    seen = rows > 0
    gains, errors, rows = gains[seen], errors[seen], rows[seen]
    total = float(rows @ gains) / rows.sum()
    if len(gains) >= MANY_TASKS:
        spread = rows * (gains - total)
    else:
        spread = rows * np.nan_to_num(errors, nan=abs(total))
    return abs(total) > 2.0 * float(np.sqrt(spread @ spread)) / rows.sum()
