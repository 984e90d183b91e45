"""Whether learning all tasks together helps, in one sentence."""

from __future__ import annotations

from ..evaluation.comparison import Comparison

TEXTS = {
    "helps": (
        "{who} helps here: on held-out rows its {metric} is {own:.4g}, significantly ({change:.2g} "
        "%) below that of every reference model (best: {reference}, {other:.4g})."
    ),
    "unclear": (
        "{who} makes no clear difference here: on held-out rows its {metric} is {own:.4g}, not "
        "significantly different from that of the reference model {reference} ({other:.4g})."
    ),
    "harms": (
        "{who} does harm here: on held-out rows its {metric} is {own:.4g}, significantly "
        "({change:.2g} %) above that of the reference model {reference} ({other:.4g})."
    ),
}
"""One sentence for each kind of verdict."""


def verdict(comparison: Comparison, model: str = "auto") -> str:
    """One sentence on how the model does on held-out rows against the reference models.

    ``model`` is its name on the command line; "pooled" and "separate" are not multitask learning.
    """
    judged = comparison.verdict
    own, other = comparison.overall["model"], comparison.overall[judged.reference]
    simple = model in ("pooled", "separate")
    text = TEXTS[judged.kind].format(
        who="This model" if simple or len(comparison.tasks) == 1 else "Multitask learning",
        metric=comparison.metric,
        own=own,
        change=100 * abs(own / other - 1.0) if other > 0 else 0.0,
        reference=judged.reference,
        other=other,
    )
    return text + (" Multitask learning is fitted with --model auto." if simple else "")
