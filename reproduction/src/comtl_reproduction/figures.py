"""Figures of the experiments: lines with standard errors, heat maps, small multiples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .cells import Row
from .statistics import mean_and_error
from .tables import samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The palette of Okabe and Ito, which colour-blind people can tell apart; yellow is too faint.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

Panel: TypeAlias = "Callable[[Axes], object]"
"""Draws into axes."""


def draw_points(axes: Axes, index: int, label: str, line: str = "none", **points: Any) -> None:
    """Draw points with standard errors in the colour and marker of a number."""
    axes.errorbar(
        **points,
        label=label,
        color=COLOURS[index % len(COLOURS)],
        marker=MARKERS[index % len(MARKERS)],
        linestyle=line,
        markersize=4.5,
        linewidth=1.5,
        capsize=2.5,
    )


def draw_lines(
    axes: Axes,
    rows: Iterable[Row],
    value: str,
    x: str,
    *,
    title: str,
    labels: tuple[str, str],
    scales: str = "",
    order: Sequence[str] = (),
    ticks: Sequence[str] = (),
) -> None:
    """Draw the mean of a value against a key column, a line for each method.

    With ``ticks``, the names on the axis, the points stand side by side and are not joined.
    """
    where: Callable[[str], float] = ticks.index if ticks else float
    found = samples(rows, value, "method", x)
    names = dict.fromkeys(method for method, _ in found)
    names = dict.fromkeys([*(name for name in order if name in names), *names])
    for index, name in enumerate(names):
        places = sorted((place for method, place in found if method == name), key=where)
        parts = [mean_and_error([number for _, number in found[name, place]]) for place in places]
        aside = 0.12 * (index - (len(names) - 1) / 2.0) if ticks else 0.0
        draw_points(
            axes,
            index,
            name,
            "none" if ticks else "-",
            x=np.array([where(place) for place in places]) + aside,
            y=[mean for mean, _ in parts],
            yerr=[error or 0.0 for _, error in parts],
        )
    if ticks:
        axes.set_xticks(range(len(ticks)), ticks)
    finish(axes, title, labels, scales)


def finish(axes: Axes, title: str, labels: tuple[str, str], scales: str) -> None:
    """Name the axes; ``scales`` holds the names of those that are logarithmic."""
    for axis in scales:
        getattr(axes, f"set_{axis}scale")("log")
    axes.set(title=title, xlabel=labels[0], ylabel=labels[1])
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.has_data():
        axes.legend(framealpha=0.85, edgecolor="none", fontsize="small")


def draw_heat(
    axes: Axes, rows: Iterable[Row], value: str, x: str, y: str, *, title: str, label: str
) -> None:
    """Draw a map of a value over two key columns that hold numbers, as means over the rows."""
    found = samples(rows, value, y, x)
    down, across = (sorted({key[place] for key in found}, key=float) for place in (0, 1))
    grid = np.full((len(down), len(across)), np.nan)
    for (row, column), numbers in found.items():
        grid[down.index(row), across.index(column)] = np.mean([number for _, number in numbers])
    image = axes.imshow(grid, cmap="cividis", origin="lower", aspect="auto")
    middle = (np.nanmin(grid) + np.nanmax(grid)) / 2.0
    for (row, column), number in np.ndenumerate(grid):
        if np.isfinite(number):
            colour = "white" if number < middle else "black"
            place: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "x-small"}
            axes.text(column, row, f"{number:.2f}", color=colour, **place)
    axes.set_xticks(range(len(across)), across)
    axes.set_yticks(range(len(down)), down)
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.figure.colorbar(image, ax=axes, label=label)


def save(panels: Sequence[Panel], path: Path, columns: int = 2) -> list[Path]:
    """Write panels as small multiples to ``<path>.png`` and ``.svg``, always the same bytes."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    columns = min(columns, len(panels))
    lines = -(-len(panels) // columns)
    figure = Figure(figsize=(5.0 * columns, 3.6 * lines), layout="constrained")
    for index, panel in enumerate(panels):
        panel(figure.add_subplot(lines, columns, index + 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    png, svg = (path.with_name(f"{path.name}.{kind}") for kind in ("png", "svg"))
    figure.savefig(png, dpi=150, metadata={"Software": None})
    # Names within an SVG are random, and the file dated, unless told otherwise.
    with rc_context({"svg.hashsalt": "comtl"}):
        figure.savefig(svg, metadata={"Date": None})
    return [png, svg]
