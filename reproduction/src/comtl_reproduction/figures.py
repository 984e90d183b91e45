"""Figures of the experiments: lines with standard errors, heat maps, small multiples."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from .cells import Row
from .statistics import mean_and_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The palette of Okabe and Ito, which colour-blind people can tell apart; yellow is too faint.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


@dataclass(frozen=True)
class Series:
    """A line: a name, its points, and the standard errors where they are known.

    Examples
    --------
    >>> from comtl_reproduction.figures import Series
    >>> Series("ITL", (1.0, 2.0), (0.5, 0.4)).errors is None
    True
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    errors: tuple[float, ...] | None = None


def series(
    rows: Iterable[Row], value: str, *, x: str, line: str = "method", order: Sequence[str] = ()
) -> tuple[Series, ...]:
    """Lines of a value against a key column, as means over all rows that share both keys.

    Parameters
    ----------
    rows : iterable of rows
        Rows of a result file.
    value : str
        Value column.
    x, line : str
        Key columns of the horizontal axis and of the names of the lines.
    order : sequence of str
        Names of lines that come first; others follow as they come.

    Examples
    --------
    >>> from comtl_reproduction.figures import series
    >>> rows = [
    ...     {"method": "ITL", "K": "2", "repeat": "0", "rmse": 1.0},
    ...     {"method": "ITL", "K": "2", "repeat": "1", "rmse": 3.0},
    ... ]
    >>> series(rows, "rmse", x="K")
    (Series(label='ITL', x=(2.0,), y=(2.0,), errors=(1.0,)),)
    """
    samples: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        if row[value] != "" and math.isfinite(row[value]):
            points = samples.setdefault(row[line], {})
            points.setdefault(float(row[x]), []).append(float(row[value]))
    names = dict.fromkeys([*(name for name in order if name in samples), *samples])
    lines = []
    for name in names:
        places = sorted(samples[name])
        summary = [mean_and_error(samples[name][place]) for place in places]
        errors = tuple(0.0 if error is None else error for _, error in summary)
        lines.append(Series(name, tuple(places), tuple(mean for mean, _ in summary), errors))
    return tuple(lines)


class Panel(ABC):
    """One set of axes of a figure."""

    @abstractmethod
    def draw(self, axes: Axes) -> None:
        """Draw into axes."""


@final
@dataclass(frozen=True)
class Lines(Panel):
    """Lines with standard errors, say of the RMSE against λ2 (``log_x``) or K.

    Parameters
    ----------
    title, x_label, y_label : str
        Texts.
    lines : tuple of Series
        What to draw.
    log_x, log_y : bool, default=False
        Logarithmic axes.
    joined : bool, default=True
        Whether points are joined by a line.
    ticks : tuple of str, default=()
        Names at x = 0, 1, ... in place of numbers.
    guide : Series, optional
        A dashed grey line to compare with.
    """

    title: str
    x_label: str
    y_label: str
    lines: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False
    joined: bool = True
    ticks: tuple[str, ...] = ()
    guide: Series | None = None

    def draw(self, axes: Axes) -> None:
        """Draw the lines, a colour and a marker each."""
        for index, line in enumerate(self.lines):
            # Lines at named places stand side by side, or they would hide each other.
            aside = 0.12 * (index - (len(self.lines) - 1) / 2.0) if self.ticks else 0.0
            axes.errorbar(
                np.asarray(line.x) + aside,
                line.y,
                yerr=line.errors,
                label=line.label,
                color=COLOURS[index % len(COLOURS)],
                marker=MARKERS[index % len(MARKERS)],
                linestyle="-" if self.joined else "none",
                markersize=4.5,
                linewidth=1.5,
                capsize=2.5,
            )
        if self.guide is not None:
            guide = self.guide
            axes.plot(guide.x, guide.y, color="grey", linestyle="--", label=guide.label)
        if self.log_x:
            axes.set_xscale("log")
        if self.log_y:
            axes.set_yscale("log")
        if self.ticks:
            axes.set_xticks(range(len(self.ticks)), self.ticks)
        axes.set(title=self.title, xlabel=self.x_label, ylabel=self.y_label)
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        if self.lines:
            axes.legend(framealpha=0.85, edgecolor="none", fontsize="small")


@final
@dataclass(frozen=True)
class Heat(Panel):
    """Heat map of a value over two settings, say K1 and K2.

    Parameters
    ----------
    title, x_label, y_label, value_label : str
        Texts.
    x, y : tuple of str
        Names of columns and rows.
    values : tuple of tuples of float
        A row for each name in ``y``; nan where there is no figure.
    digits : int, default=2
        Digits written into each field.
    """

    title: str
    x_label: str
    y_label: str
    value_label: str
    x: tuple[str, ...]
    y: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    digits: int = 2

    def draw(self, axes: Axes) -> None:
        """Draw the map, with its figures and a bar of colours."""
        grid = np.asarray(self.values, dtype=float)
        image = axes.imshow(grid, cmap="cividis", origin="lower", aspect="auto")
        middle = (np.nanmin(grid) + np.nanmax(grid)) / 2.0 if np.isfinite(grid).any() else 0.0
        for (row, column), value in np.ndenumerate(grid):
            if np.isfinite(value):
                colour = "white" if value < middle else "black"
                text = f"{value:.{self.digits}f}"
                axes.text(
                    column, row, text, ha="center", va="center", color=colour, fontsize="x-small"
                )
        axes.set_xticks(range(len(self.x)), self.x)
        axes.set_yticks(range(len(self.y)), self.y)
        axes.set(title=self.title, xlabel=self.x_label, ylabel=self.y_label)
        axes.figure.colorbar(image, ax=axes, label=self.value_label)


def heat(
    rows: Iterable[Row],
    value: str,
    *,
    x: str,
    y: str,
    title: str,
    x_label: str,
    y_label: str,
    value_label: str,
    digits: int = 2,
) -> Heat:
    """Heat map of a value over two key columns that hold numbers, as means over the rows.

    Examples
    --------
    >>> from comtl_reproduction.figures import heat
    >>> rows = [{"K1": "2", "K2": "10", "rmse": 1.0}, {"K1": "10", "K2": "10", "rmse": 2.0}]
    >>> labels = {"title": "", "x_label": "K1", "y_label": "K2", "value_label": "RMSE"}
    >>> panel = heat(rows, "rmse", x="K1", y="K2", **labels)
    >>> panel.x, panel.y, panel.values
    (('2', '10'), ('10',), ((1.0, 2.0),))
    """
    samples: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row[value] != "" and math.isfinite(row[value]):
            samples.setdefault((row[y], row[x]), []).append(float(row[value]))
    down = tuple(sorted({key[0] for key in samples}, key=float))
    across = tuple(sorted({key[1] for key in samples}, key=float))
    values = tuple(
        tuple(float(np.mean(samples.get((row, column), [math.nan]))) for column in across)
        for row in down
    )
    return Heat(title, x_label, y_label, value_label, across, down, values, digits)


def compose(panels: Sequence[Panel], *, columns: int = 2) -> Figure:
    """Draw panels as small multiples in one figure.

    Examples
    --------
    >>> from comtl_reproduction.figures import Lines, Series, compose
    >>> panel = Lines("syn5", "λ2", "RMSE", (Series("ITL", (0.1, 1.0), (2.0, 1.9)),), log_x=True)
    >>> len(compose([panel, panel, panel]).axes)
    3
    """
    from matplotlib.figure import Figure

    columns = max(1, min(columns, len(panels)))
    lines = -(-len(panels) // columns)
    figure = Figure(figsize=(5.0 * columns, 3.6 * max(lines, 1)), layout="constrained")
    for index, panel in enumerate(panels):
        panel.draw(figure.add_subplot(lines, columns, index + 1))
    return figure


def save(figure: Figure, stem: Path, suffix: str = "") -> list[Path]:
    """Write ``<stem><suffix>.png`` and ``.svg``, the same bytes for the same figure.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from comtl_reproduction.figures import compose, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in save(compose([]), Path(folder, "toy"), "-lines")]
    ['toy-lines.png', 'toy-lines.svg']
    """
    from matplotlib import rc_context

    stem.parent.mkdir(parents=True, exist_ok=True)
    png, svg = (stem.with_name(f"{stem.name}{suffix}.{kind}") for kind in ("png", "svg"))
    figure.savefig(png, dpi=150, metadata={"Software": None})
    # Names within an SVG are random, and the file dated, unless told otherwise.
    with rc_context({"svg.hashsalt": "comtl"}):
        figure.savefig(svg, metadata={"Date": None})
    return [png, svg]
