"""Charts of the page as inline SVG, coloured by its style sheet."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from .views import FitHistory

WIDTH, HEIGHT = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 14, 46
MOST_DOTS = 2000
"""Dots of a chart beyond which only every so many are drawn."""


@dataclass(frozen=True)
class Frame:
    """Ranges of two axes on a drawing of fixed size, and places of values on it."""

    across: tuple[float, float]
    up: tuple[float, float]

    def x(self, value: float) -> float:
        low, high = self.across
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (value - low) / (high - low), 1)

    def y(self, value: float) -> float:
        low, high = self.up
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low), 1)

    def line(self, kind: str, x: Sequence[float], y: Sequence[float]) -> str:
        """Line through points, with the look of its kind."""
        points = " ".join(f"{self.x(a)},{self.y(b)}" for a, b in zip(x, y, strict=True))
        return f'<polyline class="{kind}" points="{points}"/>'

    def dot(self, kind: str, x: float, y: float, radius: float, hint: str) -> str:
        """Dot with the look of its kind, and a text that the pointer shows."""
        return (
            f'<circle class="{kind}" cx="{self.x(x)}" cy="{self.y(y)}" r="{radius}">'
            f"<title>{escape(hint)}</title></circle>"
        )

    def drawn(self, title: str, x_label: str, y_label: str, inside: str) -> str:
        """Drawing with axes around what is inside."""
        parts = []
        foot, end = HEIGHT - BOTTOM, WIDTH - RIGHT
        for value in ticks(*self.across):
            x = self.x(value)
            parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP}" y2="{foot}"/>')
            parts.append(f'<text x="{x}" y="{foot + 17}" text-anchor="middle">{value:g}</text>')
        for value in ticks(*self.up):
            y = self.y(value)
            parts.append(f'<line class="grid" x1="{LEFT}" x2="{end}" y1="{y}" y2="{y}"/>')
            parts.append(f'<text x="{LEFT - 7}" y="{y + 4}" text-anchor="end">{value:g}</text>')
        middle, height = (LEFT + end) / 2, (TOP + foot) / 2
        parts.append(
            f'<text class="axis" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">'
            f"{escape(x_label)}</text>"
            f'<text class="axis" transform="translate(14 {height}) rotate(-90)" '
            f'text-anchor="middle">{escape(y_label)}</text>'
        )
        return (
            f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'aria-label="{escape(title)}">{"".join(parts)}{inside}</svg>'
        )


def ticks(low: float, high: float) -> list[float]:
    """Return three to six round numbers between two bounds."""
    span = high - low
    step = 10.0 ** np.floor(np.log10(span / 5.0))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (factor * step) <= 5.5)
    first = int(np.ceil(low / step - 1e-9))
    count = int(np.floor(high / step + 1e-9)) - first + 1
    return [float(f"{(first + number) * step:.10g}") for number in range(count)]


def padded_range(values: np.ndarray, share: float = 0.06) -> tuple[float, float]:
    """Range of the finite values with room on both sides."""
    known = values[np.isfinite(values)]
    if not known.size:
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        room = 0.5 * abs(low) or 1.0
    else:
        room = share * (high - low)
    return low - room, high + room


def scatter(
    names: Sequence[str], own: np.ndarray, other: np.ndarray, signs: np.ndarray, label: str
) -> str:
    """Errors of tasks, model against another; ``signs``: 1 significantly better, -1 worse."""
    known = np.flatnonzero(np.isfinite(own) & np.isfinite(other))
    # The significant ones are drawn last, above the others.
    known = known[:: max(1, -(-len(known) // MOST_DOTS))]
    known = known[np.argsort(np.abs(signs[known]), kind="stable")]
    both = padded_range(np.concatenate([own[known], other[known]]))
    frame = Frame(both, both)
    inside = [frame.line("guide", both, both)]
    kinds = {1: "gain", -1: "loss", 0: "level"}
    for task in known.tolist():
        hint = f"{names[task]}: model {own[task]:.4g}, {label} {other[task]:.4g}"
        inside.append(frame.dot(kinds[int(signs[task])], other[task], own[task], 3.4, hint))
    title = f"Error of each task: this model against {label}. Below the line this model is better."
    return frame.drawn(title, f"error, {label}", "error, this model", "".join(inside))


def calibration(nominal: np.ndarray, coverage: np.ndarray) -> str:
    """Observed against nominal coverage of the intervals."""
    frame = Frame((0.0, 1.0), (0.0, 1.0))
    inside = frame.line("guide", frame.across, frame.up)
    inside += frame.line("line", nominal.tolist(), coverage.tolist())
    for level, share in zip(nominal.tolist(), coverage.tolist(), strict=True):
        hint = f"nominal {100 * level:.0f} %, observed {100 * share:.1f} %"
        inside += frame.dot("dot", level, share, 3.6, hint)
    title = "Observed against nominal coverage of the prediction intervals on held-out targets."
    return frame.drawn(title, "nominal coverage", "observed coverage", inside)


def curve(name: str, predicted: str, grid: np.ndarray, means: np.ndarray) -> str:
    """Mean prediction as a column moves."""
    frame = Frame(padded_range(grid), padded_range(means))
    inside = frame.line("line", grid.tolist(), means.tolist())
    return frame.drawn(f"{predicted} as {name} moves", name, predicted, inside)


def history(past: FitHistory) -> str:
    """Objective by step."""
    known = np.flatnonzero(np.isfinite(past.values))
    frame = Frame((0.0, max(1.0, len(past.values) - 1.0)), padded_range(past.values))
    inside = frame.line("line", known.tolist(), past.values[known].tolist())
    return frame.drawn(f"{past.label} by {past.step}", past.step, past.label, inside)
