"""Axes and their labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The palette of Okabe and Ito, which colour-blind people can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C", "#F0E442")
MOST_NAMES = 50
"""Names along an axis beyond which they could not be read."""
LONGEST = 28
AXES = """ax : matplotlib Axes, optional
    Where to draw; a new figure unless given.

Returns
-------
matplotlib Axes
    The axes."""
Draw = TypeVar("Draw", bound=Callable[..., Any])


def says_where(draw: Draw) -> Draw:
    """Describe the axes in the docstring of a public function, in place of its word AXES."""
    draw.__doc__ = cleandoc(draw.__doc__ or "").replace("AXES", AXES)
    return draw


def new_axes(ax: Axes | None, size: tuple[float, float] = (6.4, 4.4)) -> Axes:
    """Return the axes given, or those of a new figure."""
    try:
        from matplotlib import pyplot
        from matplotlib.axes import Axes
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            'comtl.plot needs matplotlib: pip install "comtl[report]".', name="matplotlib"
        ) from missing
    if ax is None:
        return pyplot.subplots(figsize=size, layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise TypeError(
            f"ax must be the Axes of one plot, got {type(ax).__name__}; pass one of those that "
            "pyplot.subplots returned, or leave it out."
        )
    return ax


def plain(ax: Axes) -> None:
    """Grid lines, and no frame at top and right."""
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)


def name_places(ax: Axes, names: Sequence[str], side: str) -> None:
    """Write names along the axis "x" or "y" where they can be read; else no ticks."""
    shown = names if len(names) <= MOST_NAMES else []
    short = [n if len(n) <= LONGEST else n[: LONGEST - 1] + "…" for n in shown]
    axis, turned = (ax.xaxis, 90) if side == "x" else (ax.yaxis, 0)
    size = "small" if len(names) <= 25 else "xx-small"
    # A dollar sign would be read as the start of a formula.
    axis.set_ticks(range(len(short)), short, rotation=turned, fontsize=size, parse_math=False)
