"""What the paper says of its algorithm without figures: how fast it converges.

Sweeps of the alternation until it converges, and iterations of conjugate gradients in one step for
``F``, with and without the preconditioner, against the condition number of the system.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from ..alternation import Recipe, Schedule, start_state
from ..datafits.rows import RowsDatafit
from ..datasets import make_synthetic
from ..design import Design
from ..estimators import BiFactorRegressor, TriFactorRegressor
from ..losses import Squared
from ..solvers.conjugate_gradient import conjugate_gradient
from ..systems import FeatureSystem
from .cells import Cell, Row
from .experiment import Experiment, Options
from .figures import Lines, Series, compose, save
from .figures import series as series_of
from .tables import Table, tabulate

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
FEATURES = ("independent", "correlated")
CG_TOLERANCE = 1e-6
EXPLICIT_UNKNOWNS = 800
"""Up to here the condition number comes from the explicit matrix."""


def synthetic(name: str, seed: int, **sizes: int) -> Any:
    """Return a synthetic set.

    Examples
    --------
    >>> from comtl.experiments.convergence import synthetic
    >>> synthetic("syn1", 0).X.shape
    (750, 20)
    """
    return make_synthetic(name, random_state=seed, **sizes)


def count_sweeps(name: str, method: str, tol: float, seed: int) -> dict[str, Any]:
    """Fit a model with five columns a factor, λ1 = 0.1 and λ2 = 1, and count the sweeps.

    Examples
    --------
    >>> from comtl.experiments.convergence import count_sweeps
    >>> count_sweeps("syn1", "BiFactor", 1e-3, 0)["sweeps"] < 100
    True
    """
    data = synthetic(name, seed)
    free = {"core_penalty": None} if method == "TriFactor-free" else {}
    settings = {"alpha_feature": 0.1, "alpha_task": 1.0, "tol": tol, "max_iter": 5000}
    model = MODELS[method](random_state=seed, **settings, **free)
    model.fit(data.X, data.y, task=data.task)
    sweeps = model.n_iter_ if model.converged_ else math.nan
    return {"sweeps": sweeps, "plain": "", "preconditioned": "", "condition": ""}


def feature_system(
    size: tuple[int, int, int], features: str, strength: float, smoothing: float, seed: int
) -> FeatureSystem:
    """Equations of the first step for ``F``, from the spectral start, 20 rows a task.

    Correlated features have a covariance with eigenvalues 1, 1/4, 1/9, ...

    Examples
    --------
    >>> from comtl.experiments.convergence import feature_system
    >>> feature_system((6, 4, 2), "correlated", 0.1, 0.1, 0).size
    13
    """
    P, T, K = size
    data = synthetic("syn3", seed, n_features=P, n_tasks=T, n_train=20, n_test=1)
    X = data.X
    if features == "correlated":
        turn, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((P, P)))
        X = X @ (turn / np.arange(1, P + 1)) @ turn.T
    y = np.einsum("ij,ij->i", X, data.coef[data.task]) + data.y - _signal(data)
    weights = np.ones(len(y))
    design = Design.standardized(X, weights)
    offsets = np.arange(0, len(y) + 1, 20)
    datafit = RowsDatafit(design, y / y.std(), weights, offsets, Squared())
    recipe = Recipe({"F": strength, "G": 1.0}, (K, K))
    schedule = Schedule(start_smoothing=smoothing)
    state = start_state(datafit, recipe, schedule, like=np.zeros(1))
    return FeatureSystem(datafit, datafit.expand(state.factors), state)


def _signal(data: Any) -> np.ndarray:
    return np.asarray(np.einsum("ij,ij->i", data.X, data.coef[data.task]))


def condition_number(system: FeatureSystem, explicit: int = EXPLICIT_UNKNOWNS) -> float:
    """Largest over smallest eigenvalue, by Lanczos where there are many unknowns.

    Examples
    --------
    >>> from comtl.experiments.convergence import condition_number, feature_system
    >>> system = feature_system((6, 4, 2), "independent", 0.1, 0.1, 0)
    >>> abs(condition_number(system) / condition_number(system, explicit=0) - 1) < 1e-4
    True
    """
    size = system.size
    if size <= explicit:
        values = np.linalg.eigvalsh(system.matrix())
        return float(values[-1] / values[0])
    preconditioner = system.preconditioner()

    def solve(right: np.ndarray) -> np.ndarray:
        return conjugate_gradient(
            system.operator, right, preconditioner=preconditioner, tol=1e-8
        ).value

    operator = LinearOperator((size, size), matvec=system.operator, dtype=float)
    inverse = LinearOperator((size, size), matvec=solve, dtype=float)
    # A start of its own: that of ARPACK is random, and the result must not be.
    settings = {"k": 1, "tol": 1e-4, "v0": np.ones(size), "return_eigenvectors": False}
    largest = eigsh(operator, which="LM", **settings)[0]
    smallest = 1.0 / eigsh(inverse, which="LM", **settings)[0]
    return float(largest / smallest)


def count_iterations(
    size: tuple[int, int, int], features: str, strength: float, smoothing: float, seed: int
) -> dict[str, Any]:
    """Count iterations of one step for ``F`` to a relative residual of 1e-6.

    Examples
    --------
    >>> from comtl.experiments.convergence import count_iterations
    >>> found = count_iterations((20, 10, 2), "correlated", 0.1, 0.1, 0)
    >>> found["preconditioned"] < found["plain"]
    True
    """
    system = feature_system(size, features, strength, smoothing, seed)
    right = system.right()
    counts = {}
    for name, helper in (("plain", None), ("preconditioned", system.preconditioner())):
        solution = conjugate_gradient(
            system.operator, right, preconditioner=helper, tol=CG_TOLERANCE, max_iter=10_000
        )
        counts[name] = solution.stats["iterations"] if solution.converged else math.nan
    return {"sweeps": "", **counts, "condition": condition_number(system)}


def cells(options: Options) -> list[Cell]:
    """Cells of the experiment; a quick run has two repeats, one tolerance and no large system.

    Examples
    --------
    >>> from comtl.experiments.convergence import cells
    >>> from comtl.experiments.experiment import Options
    >>> len(cells(Options(quick=True, repeats=1, methods=("BiFactor",))))
    5
    """
    found = []
    count = min(options.repeats, 2) if options.quick else options.repeats
    for name in SETS:
        for tol in TOLERANCES[: 1 if options.quick else None]:
            for method in filter(options.wants, MODELS):
                for seed in range(count):
                    keys = _keys("sweeps", name, f"tolerance {tol:.0e}", method, seed)
                    arguments = {"name": name, "method": method, "tol": tol, "seed": seed}
                    found.append(Cell(keys, count_sweeps, arguments))
    if not options.wants("CG"):
        return found
    *small, largest = SIZES
    for size in small if options.quick else SIZES:
        # Its condition number takes seconds.
        repeats = min(count, 2) if size == largest else count
        for features in FEATURES:
            for strength, smoothing in STRENGTHS:
                for seed in range(repeats):
                    where = "P={} T={} K={}, ".format(*size) + features
                    setting = f"λ1={strength:g} ε={smoothing:g}"
                    found.append(
                        Cell(
                            _keys("iterations", where, setting, "CG", seed),
                            count_iterations,
                            {
                                "size": size,
                                "features": features,
                                "strength": strength,
                                "smoothing": smoothing,
                                "seed": seed,
                            },
                        )
                    )
    return found


def _keys(part: str, data: str, setting: str, method: str, repeat: int) -> dict[str, Any]:
    return {"part": part, "data": data, "setting": setting, "method": method, "repeat": repeat}


def summary(rows: Sequence[Row]) -> list[Table]:
    """Tables of sweeps and of iterations.

    Examples
    --------
    >>> from comtl.experiments.convergence import summary
    >>> summary([])
    []
    """
    tables = []
    for setting in dict.fromkeys(row["setting"] for row in _part(rows, "sweeps")):
        chosen = [row for row in _part(rows, "sweeps") if row["setting"] == setting]
        title = f"Sweeps to convergence, relative {setting}"
        tables.append(tabulate(chosen, "sweeps", title=title, lower_is_better=None, digits=1))
    for data in dict.fromkeys(row["data"] for row in _part(rows, "iterations")):
        chosen = [row for row in _part(rows, "iterations") if row["data"] == data]
        # One row of the file has three figures: here each becomes a row of the table.
        melted = [
            {**row, "figure": label, "value": row[value]}
            for value, label in FIGURES.items()
            for row in chosen
        ]
        title = f"CG iterations of one F step to 1e-6: {data} features"
        tables.append(
            tabulate(
                melted,
                "value",
                title=title,
                row="setting",
                column="figure",
                lower_is_better=None,
                digits=0,
            )
        )
    return tables


FIGURES = {
    "condition": "condition number",
    "plain": "iterations, no preconditioner",
    "preconditioned": "iterations, two-term Sylvester",
}


def _part(rows: Sequence[Row], part: str) -> list[Row]:
    return [row for row in rows if row["part"] == part]


def figures(rows: Sequence[Row], stem: Path) -> list[Path]:
    """Draw sweeps by data set, and iterations against the condition number.

    Examples
    --------
    >>> from pathlib import Path
    >>> from comtl.experiments.convergence import figures
    >>> figures([], Path("convergence"))
    []
    """
    panels = []
    for setting in dict.fromkeys(row["setting"] for row in _part(rows, "sweeps")):
        chosen = [row for row in _part(rows, "sweeps") if row["setting"] == setting]
        names = tuple(dict.fromkeys(row["data"] for row in chosen))
        placed = [{**row, "place": names.index(row["data"])} for row in chosen]
        lines = series_of(placed, "sweeps", x="place")
        title = f"Sweeps to convergence, {setting}"
        panels.append(Lines(title, "data", "sweeps", lines, log_y=True, joined=False, ticks=names))
    points = _part(rows, "iterations")
    if points:
        conditions = sorted(float(row["condition"]) for row in points)
        clouds = [
            Series(
                label,
                tuple(float(row["condition"]) for row in points),
                tuple(float(row[value]) for row in points),
            )
            for value, label in (
                ("plain", "no preconditioner"),
                ("preconditioned", "two-term Sylvester"),
            )
        ]
        bound = tuple(0.5 * math.sqrt(k) * math.log(2.0 / CG_TOLERANCE) for k in conditions)
        panels.append(
            Lines(
                "One F step to a relative residual of 1e-6",
                "condition number",
                "CG iterations",
                tuple(clouds),
                log_x=True,
                log_y=True,
                joined=False,
                guide=Series("½ √κ ln(2/tol)", tuple(conditions), bound),
            )
        )
    return save(compose(panels), stem) if panels else []


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
