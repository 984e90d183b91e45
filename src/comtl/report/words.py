"""What a comparison says, in plain words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..evaluation import Comparison
from ..phrases import counted

PLAIN = {
    "model": "this model",
    "separate": "a model of its own for each task",
    "pooled": "one model for all tasks",
    "mean": "the mean alone",
}
SIMPLE = ("separate", "pooled")
CLEAR = 2.0
"""Standard errors beyond which a difference counts."""


@dataclass(frozen=True)
class Verdict:
    """Whether the model is worth it: ``kind`` is "yes", "even" or "no".

    Examples
    --------
    >>> from comtl.report.words import Verdict
    >>> Verdict("even", "Hardly.", ()).kind
    'even'
    """

    kind: str
    headline: str
    sentences: tuple[str, ...]


def clear_signs(comparison: Comparison, name: str) -> np.ndarray:
    """1 where a task gains over a simpler model, -1 where it loses, 0 where rows do not tell.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.evaluation import Comparison
    >>> from comtl.report.words import clear_signs
    >>> gains = {"separate": np.array([3.0, -3.0, 1.0, 9.0])}
    >>> errors = {"separate": np.array([1.0, 1.0, 1.0, np.nan])}
    >>> rows = np.full(4, 5)
    >>> found = Comparison(
    ...     np.arange(4), rows, rows, "RMSE", {}, {}, None, gains, errors, None, None
    ... )
    >>> clear_signs(found, "separate")
    array([ 1, -1,  0,  0])
    """
    gain, error = comparison.gains[name], comparison.gain_errors[name]
    told = np.isfinite(gain) & np.isfinite(error)
    beyond = np.zeros(len(gain), dtype=int)
    beyond[told] = np.sign(gain[told]) * (np.abs(gain[told]) > CLEAR * error[told])
    return beyond


def overall_sign(comparison: Comparison, name: str) -> int:
    """Sign of the gain over a simpler model on all rows, 0 within two standard errors."""
    gain, error = comparison.gains[name], comparison.gain_errors[name]
    known = np.isfinite(gain) & (comparison.held_out > 0)
    if not known.any():
        return 0
    rows, gain, error = comparison.held_out[known], gain[known], error[known]
    # One row has no standard error; its own difference is the best guess at one.
    error = np.where(np.isfinite(error), error, np.abs(gain))
    total, spread = float(rows @ gain), float(np.sqrt(np.sum((rows * error) ** 2)))
    return int(np.sign(total)) if abs(total) > CLEAR * spread else 0


def verdict(comparison: Comparison) -> Verdict:
    """Say whether learning the tasks together is worth it.

    Parameters
    ----------
    comparison : Comparison
        Errors on held-out rows.

    Returns
    -------
    Verdict
        Kind, headline and sentences.
    """
    signs = {name: overall_sign(comparison, name) for name in SIMPLE}
    beaten = [PLAIN[name] for name, sign in signs.items() if sign > 0]
    level = [PLAIN[name] for name, sign in signs.items() if sign == 0]
    better = [name for name, sign in signs.items() if sign < 0]
    if better:
        best = min(better, key=lambda name: comparison.overall[name])
        kind, headline = "no", f"No: {PLAIN[best]} predicts better here."
    elif level:
        kind = "even"
        which = "which is simpler" if len(level) == 1 else "both simpler"
        headline = f"Not clearly: no sure difference from {' or '.join(level)}, {which}."
        if beaten:
            headline = f"Not clearly: better than {beaten[0]}, but level with {level[0]}."
    else:
        kind, headline = "yes", "Yes: learning the tasks together predicts better here."
    sentences = [_errors(comparison), *(_tasks(comparison, name) for name in SIMPLE)]
    sentences.append(_beside_mean(comparison))
    return Verdict(kind, headline, tuple(text for text in sentences if text))


def percent(share: float, digits: int = 1) -> str:
    """Return a share in percent.

    Examples
    --------
    >>> from comtl.report.words import percent
    >>> percent(0.1234), percent(0.5, 0)
    ('12.3 %', '50 %')
    """
    return f"{100 * share:.{digits}f} %"


def relative(comparison: Comparison, name: str) -> float | None:
    """By which share the model's error is below another's; None where that is zero or unknown."""
    own, other = comparison.overall["model"], comparison.overall[name]
    if not (np.isfinite(own) and np.isfinite(other)) or other == 0.0:
        return None
    return 1.0 - own / other


def _errors(comparison: Comparison) -> str:
    parts = []
    for name in SIMPLE:
        share = relative(comparison, name)
        if share is None:
            continue
        word = "lower" if share >= 0 else "higher"
        value = comparison.overall[name]
        parts.append(f"{percent(abs(share))} {word} than with {PLAIN[name]} ({value:.4g})")
    own = f"{comparison.metric} {comparison.overall['model']:.4g}"
    rows = counted(int(comparison.test_rows.sum()), "row")
    text = f"On {rows} that no model saw in training, this model has {own}"
    return text + (": " + ", and ".join(parts) if parts else "") + "."


def _tasks(comparison: Comparison, name: str) -> str:
    signs = clear_signs(comparison, name)
    total, gain, lose = len(signs), int((signs > 0).sum()), int((signs < 0).sum())
    who = "task is" if total == 1 else "tasks are"
    text = f"Against {PLAIN[name]}, {gain:,} of {total:,} {who} clearly better off"
    text += f" and {lose:,} clearly worse"
    rest = total - gain - lose
    if rest:
        text += f"; for {'the other ' if rest < total else 'all '}{rest:,} the rows do not tell"
    chance = round(0.023 * total)
    if chance and gain + lose:
        text += f" (chance alone gives about {chance:,} of each)"
    return text + "."


def _beside_mean(comparison: Comparison) -> str:
    share = relative(comparison, "mean")
    if share is None:
        return ""
    if share <= 0:
        return "It is no better than the mean of the target: the features tell nothing here."
    if share < 0.05:
        return (
            f"Its error is only {percent(share)} below that of the mean alone: the features "
            "tell little here."
        )
    return f"Its error is {percent(share, 0)} below that of the mean alone."
