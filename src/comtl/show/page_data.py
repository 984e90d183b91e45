"""Data of the page's script: compact, and safe inside HTML whatever the names are."""

import base64
import json
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ..evaluation.comparison import Comparison
from ..phrases import jsonable
from ..rows.reading import encode_tasks
from .page_text import SIMPLE
from .views import BinnedAxis, ModelView, colour_limit, unit_rows

MAP_ROWS, MAP_ENTRIES = 1000, 400_000
"""Most rows and entries of the map; beyond, neighbours of a cluster are binned."""
TOP, TOP_ALL, NEAREST = 40, 100_000, 10
"""Largest weights kept of a row and of all rows, and nearest tasks of each task."""
DIGITS = 7
"""More than is shown."""
LEVELS = 32767
"""Steps on either side of zero that an entry of the map is rounded to."""


def as_json(data: Any) -> str:
    r"""JSON that may stand inside a script element: nothing in it can end the element."""
    text = json.dumps(jsonable(data, DIGITS), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def packed(values: np.ndarray, kind: str) -> str:
    """Values as base64 of little-endian numbers; NaN is zero, and 32 bits end at their range."""
    if kind == "f4":
        most = float(np.finfo(np.float32).max)
        values = np.nan_to_num(np.clip(values, -most, most), nan=0.0)
    return base64.b64encode(np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()).decode()


def payload(view: ModelView, comparison: Comparison | None) -> dict[str, Any]:
    """Names, clusters, errors, largest weights, nearest tasks and the map."""
    return {
        "tasks": view.tasks,
        "features": view.features,
        "classes": view.classes,
        "lineTask": packed(view.columns.task, "u4"),
        "lineClass": packed(view.columns.label, "u4"),
        "taskClusters": view.task_clusters,
        "spread": packed(view.spread, "f4"),
        "top": _largest(view),
        "near": _nearest(view),
        "map": _map(view),
        "scores": None if comparison is None else _scores(view.tasks, comparison),
    }


def _largest(view: ModelView) -> dict[str, Any]:
    lines, features = view.values.shape
    count = min(features, max(5, min(TOP, TOP_ALL // lines)))
    chosen = np.argpartition(-np.abs(view.values), count - 1, axis=1)[:, :count]
    values = np.take_along_axis(view.values, chosen, axis=1)
    order = np.argsort(-np.abs(values), axis=1, kind="stable")
    chosen, values = (np.take_along_axis(one, order, axis=1) for one in (chosen, values))
    return {"count": count, "feature": packed(chosen, "u4"), "value": packed(values, "f4")}


def _nearest(view: ModelView) -> dict[str, Any]:
    rows = unit_rows(view.columns.by_task(view.values).reshape(len(view.tasks), -1))
    count = min(NEAREST, len(rows) - 1)
    if not count:
        return {"count": 0, "task": "", "cosine": ""}
    search = NearestNeighbors(n_neighbors=count, algorithm="brute", metric="cosine").fit(rows)
    distances, nearest = search.kneighbors()
    return {"count": count, "task": packed(nearest, "u4"), "cosine": packed(1 - distances, "f4")}


def _map(view: ModelView) -> dict[str, Any]:
    lines, features = view.values.shape
    rows = BinnedAxis.by_cluster(view.values, view.line_clusters, MAP_ROWS)
    most_columns = max(50, MAP_ENTRIES // len(rows.clusters))
    columns = BinnedAxis.by_cluster(view.values.T, view.feature_clusters, most_columns)
    entries = rows.shares @ view.values @ columns.shares.T
    most = float(np.abs(entries).max(initial=0.0))
    steps = np.rint(entries / (most or 1.0) * LEVELS)
    return {
        "rows": _bins(rows),
        "columns": _bins(columns),
        "lines": lines,
        "features": features,
        "most": most,
        "shown": colour_limit(entries),
        "entries": packed(steps, "i2"),
    }


def _bins(bins: BinnedAxis) -> dict[str, Any]:
    return {
        "count": len(bins.clusters),
        "order": packed(bins.order, "u4"),
        "edges": packed(bins.edges, "u4"),
        "clusters": packed(bins.clusters, "u4"),
    }


def _scores(tasks: list[str], comparison: Comparison) -> dict[str, Any]:
    """Errors and signs of gains in the order of the model's tasks; NaN where not compared."""
    labels = np.array([str(label) for label in comparison.tasks.tolist()])
    codes = encode_tasks(np.array(tasks), labels)
    if (codes < 0).all():
        raise ValueError(
            "comparison has none of the model's tasks; make it with compare(model, X, y, task) on "
            "the rows that the model was fitted to."
        )

    def placed(values: np.ndarray) -> np.ndarray:
        return np.where(codes >= 0, np.asarray(values, dtype=float)[codes], np.nan)

    return {
        "metric": comparison.metric,
        "rows": placed(comparison.train_rows),
        "errors": {name: placed(comparison.errors[name]) for name in ("model", *SIMPLE)},
        "signs": {name: placed(comparison.task_signs(name)) for name in SIMPLE},
    }
