"""Axes, their labels, heat maps, borders and strips of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..evaluation.compare_models import Comparison
from .views import BinnedAxis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The palette of Okabe and Ito, which colour-blind people can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C", "#F0E442")
MOST_NAMES = 50
"""Names along an axis beyond which they could not be read."""
LONGEST = 28


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
    places = range(len(names)) if len(names) <= MOST_NAMES else []
    short = [n if len(n) <= LONGEST else n[: LONGEST - 1] + "…" for n in names]
    texts = short if places else []
    # A dollar sign would be read as the start of a formula.
    look: dict[str, Any] = {
        "fontsize": "small" if len(names) <= 25 else "xx-small",
        "parse_math": False,
    }
    if side == "x":
        ax.set_xticks(places, texts, rotation=90, **look)
    else:
        ax.set_yticks(places, texts, **look)


def heat(ax: Axes, values: np.ndarray, *, label: str, limit: float | None = None) -> Any:
    """Heat map about zero with its bar of colours; colours end at ``limit``."""
    if limit is None:
        size = np.abs(values[np.isfinite(values) & (values != 0)])
        # A few large values must not make all others pale.
        limit = float(np.quantile(size, 0.98)) if size.size else 1.0
    image = ax.imshow(
        values, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest"
    )
    ax.figure.colorbar(image, ax=ax, label=label, extend="both" if limit != 1.0 else "neither")
    return image


def draw_borders(ax: Axes, rows: BinnedAxis, columns: BinnedAxis) -> None:
    """Lines between clusters."""
    for place in rows.borders.tolist():
        ax.axhline(place - 0.5, color="black", linewidth=0.8)
    for place in columns.borders.tolist():
        ax.axvline(place - 0.5, color="black", linewidth=0.8)


def draw_strips(ax: Axes, rows: BinnedAxis, columns: BinnedAxis) -> None:
    """Strips in the colours of the clusters, above and to the right."""
    from matplotlib.colors import to_rgb

    for bins, box, upright in (
        (rows, (1.01, 0.0, 0.025, 1.0), True),
        (columns, (0.0, 1.015, 1.0, 0.03), False),
    ):
        strip = ax.inset_axes(box)
        colours = np.array([to_rgb(COLOURS[c % len(COLOURS)]) for c in bins.clusters.tolist()])
        strip.imshow(colours[:, None] if upright else colours[None], aspect="auto")
        strip.set_axis_off()


def require_comparison(comparison: Any) -> Comparison:
    """Refuse what ``compare`` did not return."""
    if not isinstance(comparison, Comparison):
        raise TypeError(
            "comparison must be what comtl.evaluation.compare returned, got "
            f"{type(comparison).__name__}."
        )
    return comparison
