"""What the paper says of its algorithm without figures: how fast it converges.

Sweeps of the alternation until it converges, and iterations of conjugate gradients in one step for
``F``, with and without the preconditioner, against the condition number of the system.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comtl.models.coclustering import BiFactorRegressor, TriFactorRegressor
from comtl.rows.fit_input import FitInput

from .cells import Cell, Row
from .conditioning import CG_TOLERANCE, SCENES, count_iterations, synthetic
from .experiment import Experiment, Options
from .figures import Panel, draw_lines, draw_points, finish, save
from .tables import Table, tabulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SETS = ("syn1", "syn2", "syn3", "syn4", "syn5")
MODELS: dict[str, Callable[..., Any]] = {
    "BiFactor": BiFactorRegressor,
    "TriFactor": TriFactorRegressor,
    "TriFactor-free": TriFactorRegressor,
}
"""The last has a free core S, as the paper prints it; the others are well posed."""
TOLERANCES = (1e-4, 1e-5)
SIZES = ((50, 40, 4), (100, 60, 6), (400, 200, 8))
STRENGTHS = ((0.1, 0.1), (0.1, 1e-3), (10.0, 0.1), (10.0, 1e-3), (1000.0, 0.1), (1000.0, 1e-3))
"""λ1 and ε relative to the largest squared singular value of the factor."""


def count_sweeps(name: str, method: str, tol: float, seed: int) -> dict[str, Any]:
    """Fit a model with five columns a factor, λ1 = 0.1 and λ2 = 1, and count the sweeps."""
    data = synthetic(name, seed)
    free = {"core_penalty": None} if method == "TriFactor-free" else {}
    settings = {"alpha_feature": 0.1, "alpha_task": 1.0, "tol": tol, "max_iter": 5000}
    model = MODELS[method](random_state=seed, **settings, **free)
    model._fit_quietly(FitInput(data.X, data.y, data.task))
    sweeps = model.n_iter_ if model.converged_ else math.nan
    return {"sweeps": sweeps, "plain": "", "preconditioned": "", "condition": ""}


def cells(options: Options) -> list[Cell]:
    """Cells of the experiment; a quick run has two repeats, one tolerance and no large system."""
    count = min(options.repeats, 2) if options.quick else options.repeats
    sweeps = [
        Cell(
            _keys("sweeps", name, f"tolerance {tol:.0e}", method, seed),
            count_sweeps,
            {"name": name, "method": method, "tol": tol, "seed": seed},
        )
        for name in SETS
        for tol, most in zip(TOLERANCES, (count, 0 if options.quick else 3), strict=True)
        for method in MODELS
        if options.wants(method)
        for seed in range(min(count, most))
    ]
    *small, largest = SIZES
    # The condition number of a large system takes seconds: one repeat.
    sizes = [(size, count) for size in small] + [(largest, 0 if options.quick else 1)]
    iterations = [
        Cell(
            _keys(
                "iterations",
                "P={} T={} K={}, ".format(*size) + scene,
                f"λ1={strength:g} ε={smoothing:g}",
                "CG",
                seed,
            ),
            count_iterations,
            dict(size=size, scene=scene, strength=strength, smoothing=smoothing, seed=seed),
        )
        for size, repeats in sizes
        for scene in SCENES
        for strength, smoothing in STRENGTHS
        for seed in range(repeats)
    ]
    return sweeps + (iterations if options.wants("CG") else [])


def _keys(part: str, data: str, setting: str, method: str, repeat: int) -> dict[str, Any]:
    return {"part": part, "data": data, "setting": setting, "method": method, "repeat": repeat}


FIGURES = {
    "condition": "condition number",
    "plain": "iterations, no preconditioner",
    "preconditioned": "iterations, two-term Sylvester",
}


def summary(rows: Sequence[Row]) -> list[Table]:
    """Tables of sweeps and of iterations."""
    tables = []
    for setting, chosen in _parts(rows, "sweeps", "setting"):
        title = f"Sweeps to convergence, relative {setting}"
        tables.append(tabulate(chosen, "sweeps", title=title, lower_is_better=None, digits=1))
    form: dict[str, Any] = {"row": "setting", "column": "figure", "lower_is_better": None}
    for data, chosen in _parts(rows, "iterations", "data"):
        # One row of the file has three figures: here each becomes a row of the table.
        melted = [
            {**row, "figure": label, "value": row[value]}
            for value, label in FIGURES.items()
            for row in chosen
        ]
        title = f"CG iterations of one F step to 1e-6: {data}"
        tables.append(tabulate(melted, "value", title=title, digits=0, **form))
    return tables


def _parts(rows: Sequence[Row], part: str, key: str) -> list[tuple[str, list[Row]]]:
    """Rows of a part of the experiment, by a key column."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row["part"] == part:
            found.setdefault(row[key], []).append(row)
    return list(found.items())


def figures(rows: Sequence[Row], stem: Path) -> list[Path]:
    """Draw sweeps by data set, and iterations against the condition number."""
    panels: list[Panel] = []
    for setting, chosen in _parts(rows, "sweeps", "setting"):
        form: dict[str, Any] = {"labels": ("data", "sweeps"), "scales": "y"}
        form |= {"title": f"Sweeps to convergence, {setting}"}
        ticks = tuple(dict.fromkeys(row["data"] for row in chosen))
        form |= {"value": "sweeps", "x": "data", "ticks": ticks}
        panels.append(partial(draw_lines, rows=chosen, **form))
    points = [row for row in rows if row["part"] == "iterations"]
    if points:
        panels.append(partial(_draw_iterations, rows=points))
    return save(panels, stem) if panels else []


def _draw_iterations(axes: Axes, rows: Sequence[Row]) -> None:
    conditions = [float(row["condition"]) for row in rows]
    for index, label in enumerate(("no preconditioner", "two-term Sylvester")):
        value = ("plain", "preconditioned")[index]
        draw_points(axes, index, label, x=conditions, y=[float(row[value]) for row in rows])
    ordered = sorted(conditions)
    bound = [0.5 * math.sqrt(k) * math.log(2.0 / CG_TOLERANCE) for k in ordered]
    axes.plot(ordered, bound, color="grey", linestyle="--", label="½ √κ ln(2/tol)")
    labels = ("condition number", "CG iterations")
    finish(axes, "One F step to a relative residual of 1e-6", labels, "xy")


CONVERGENCE = Experiment(
    name="convergence",
    title="Convergence of the alternation and of conjugate gradients",
    methods=(*MODELS, "CG"),
    key_columns=("part", "data", "setting", "method", "repeat"),
    value_columns=("sweeps", "plain", "preconditioned", "condition"),
    cells=cells,
    summary=summary,
    figures=figures,
)
