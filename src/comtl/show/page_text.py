"""A comparison in sentences."""

import numpy as np

from ..evaluation.comparison import SIGNIFICANCE, Comparison
from ..phrases import count_noun

MODEL_PHRASES = {
    "model": "this model",
    "separate": "a separate model for each task",
    "pooled": "one model for all tasks",
    "mean": "the mean of the target",
}
SIMPLE = ("separate", "pooled")
MOST_HIGHER, LEAST_ERROR = 9.0, 1e-6
"""Share beyond which nobody asks how much higher an error is, and error over the largest one up to
which others are not compared with it."""
HEADLINES = {
    "helps": "Yes: this model predicts significantly better here than every reference model.",
    "unclear": "Not clearly: no significant difference from {}.",
    "harms": "No: {} predicts significantly better here.",
}
"""One headline for each kind of verdict."""


def headline(comparison: Comparison) -> str:
    """Return the headline of the verdict."""
    verdict = comparison.verdict
    return HEADLINES[verdict.kind].format(MODEL_PHRASES[verdict.reference])


def sentences(comparison: Comparison) -> list[str]:
    """Return the sentences below the headline: errors, tasks, and the mean."""
    tasks = [_tasks(comparison, name) for name in SIMPLE]
    return [text for text in (_errors(comparison), *tasks, _beside_mean(comparison)) if text]


def percent(share: float, digits: int = 1) -> str:
    """Return a share in percent."""
    return f"{100 * share:.{digits}f} %"


def lower(share: float) -> str:
    """Return by how much an error is lower, or higher where the share is negative."""
    if share < -MOST_HIGHER:
        return f"more than {percent(MOST_HIGHER, 0)} higher"
    return f"{percent(abs(share))} {'lower' if share >= 0 else 'higher'}"


def relative(comparison: Comparison, name: str) -> float | None:
    """By which share the model's error is below another's; None where that is next to nothing."""
    own, other = comparison.overall["model"], comparison.overall[name]
    least = LEAST_ERROR * max(comparison.overall.values())
    if not (np.isfinite(own) and np.isfinite(other)) or other <= least:
        return None
    return 1.0 - own / other


def _errors(comparison: Comparison) -> str:
    parts = []
    for name in SIMPLE:
        share = relative(comparison, name)
        if share is not None:
            other = f"{MODEL_PHRASES[name]} ({comparison.overall[name]:.4g})"
            parts.append(f"{lower(share)} than with {other}")
    own = f"{comparison.metric} {comparison.overall['model']:.4g}"
    rows = count_noun(int(comparison.test_rows.sum()), "row")
    text = f"On {rows} that no model saw in training, this model has {own}"
    return text + (": " + ", and ".join(parts) if parts else "") + "."


def _tasks(comparison: Comparison, name: str) -> str:
    signs = comparison.task_signs(name)
    total, better, worse = len(signs), int((signs > 0).sum()), int((signs < 0).sum())
    who = "task is" if total == 1 else "tasks are"
    text = (
        f"Against {MODEL_PHRASES[name]}, {better:,} of {total:,} {who} significantly better and "
        f"{worse:,} significantly worse"
    )
    chance = round(0.5 * SIGNIFICANCE * total)
    if chance and better + worse:
        text += f" (chance alone gives about {chance:,} of each)"
    return text + "."


def _beside_mean(comparison: Comparison) -> str:
    share = relative(comparison, "mean")
    if share is None:
        return ""
    if share <= 0:
        return "It is no better than the mean of the target: the features explain nothing here."
    below = "below that of the mean of the target"
    if share < 0.05:
        return f"Its error is only {percent(share)} {below}: the features explain little here."
    return f"Its error is {percent(share, 0)} {below}."
