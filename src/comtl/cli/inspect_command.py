"""``comtl inspect``: what a model found."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import click
import numpy as np

from ..tables import TableError, TableModel, load_model
from ..tables.verdict import verdict
from .output import SHOWN, column_rows, effects, facts, headline, score_rows, score_title, show
from .running import echo_json, echo_notes, json_option, plain_errors


@click.command("inspect", short_help="Show what a model found.")
@click.argument("model")
@click.option("--task", "label", metavar="LABEL", help="Show one task.")
@json_option
@plain_errors()
def inspect(model: str, label: str | None, as_json: bool) -> None:
    """Show MODEL: its columns, scores on held-out rows, groups of tasks and strongest features."""
    known = load_model(model)
    found = _whole(known) if label is None else _one(known, label)
    if as_json:
        echo_json(found)
    elif label is None:
        _show_whole(known, found)
    else:
        _show_one(known, found)


def _whole(model: TableModel) -> dict[str, Any]:
    weights = effects(model)
    order = np.argsort(-np.abs(weights).mean(axis=0), kind="stable")
    groups = model.estimator.task_clusters_
    tasks = model.estimator.tasks_
    return {
        **facts(model),
        "strongest": [
            {
                "feature": model.features[place],
                "mean_effect": float(weights[:, place].mean()),
                "spread_over_tasks": float(weights[:, place].std()),
            }
            for place in order[:SHOWN]
        ],
        "task_groups": [tasks[groups == group] for group in np.unique(groups)],
        "stack": _stack(model),
    }


def _stack(model: TableModel) -> dict[str, float]:
    """Weights of the members of a stack; nothing for any other model."""
    return dict(vars(model.estimator).get("weights_", {}))


def _show_whole(model: TableModel, found: dict[str, Any]) -> None:
    click.echo(headline(model))
    show("Columns", ["name", "kind", "missing", "detail"], column_rows(model.encoder.columns))
    if model.comparison is not None:
        show(score_title(model.comparison), *score_rows(model.comparison))
        click.echo(verdict(model.comparison, model.model))
    show(
        f"Strongest features (change of the {_scale(model)} for one standard deviation)",
        ["feature", "mean over tasks", "spread over tasks"],
        [
            [one["feature"], f"{one['mean_effect']:.3g}", f"{one['spread_over_tasks']:.3g}"]
            for one in found["strongest"]
        ],
    )
    if len(found["task_groups"]) > 1:
        rows = [
            [str(number), str(len(tasks)), ", ".join(map(str, tasks[:8].tolist()))]
            for number, tasks in enumerate(found["task_groups"])
        ]
        show("Groups of tasks that behave alike", ["group", "tasks", "such as"], rows)
    if found["stack"]:
        ranked = sorted(found["stack"].items(), key=lambda item: -item[1])
        listed = [[name, f"{share:.2f}"] for name, share in ranked]
        show("Models that make up the prediction", ["member", "weight"], listed)
    echo_notes(model.notes, err=False)
    made = ", ".join(f"{name} {number}" for name, number in model.versions.items())
    click.echo(f"Made with {made}.")


def _scale(model: TableModel) -> str:
    """What weights add to."""
    return "prediction" if model.classes is None else "log odds"


def _one(model: TableModel, label: str) -> dict[str, Any]:
    names = [str(task) for task in model.estimator.tasks_.tolist()]
    if label not in names:
        near = get_close_matches(label, names, 3) or names[:3]
        raise TableError(
            f"--task: the model does not know {label!r}; it knows {len(names):,} tasks, "
            f"such as {', '.join(near)}."
        )
    place = names.index(label)
    weights = effects(model)
    order = np.argsort(-np.abs(weights[place]), kind="stable")
    groups = model.estimator.task_clusters_
    alike = model.estimator.tasks_[groups == groups[place]]
    found: dict[str, Any] = {
        "task": model.estimator.tasks_[place],
        "group": int(groups[place]),
        "tasks_alike": alike[alike != model.estimator.tasks_[place]],
        "effects": [
            {
                "feature": model.features[feature],
                "effect": float(weights[place, feature]),
                "mean_effect": float(weights[:, feature].mean()),
            }
            for feature in order
        ],
    }
    comparison = model.comparison
    if comparison is not None and label in map(str, comparison.tasks.tolist()):
        number = list(map(str, comparison.tasks.tolist())).index(label)
        found |= {
            "rows": int(comparison.train_rows[number]),
            "metric": comparison.metric,
            "errors": {name: float(errors[number]) for name, errors in comparison.errors.items()},
        }
    return found


def _show_one(model: TableModel, found: dict[str, Any]) -> None:
    alike = found["tasks_alike"].tolist()
    click.echo(
        f"Task {found['task']}"
        + (f", {found['rows']:,} rows" if "rows" in found else "")
        + f": in group {found['group']} with {len(alike):,} others"
        + (f", such as {', '.join(map(str, alike[:5]))}." if alike else ".")
    )
    if "errors" in found:
        rows = [[name, f"{error:.4g}"] for name, error in found["errors"].items()]
        show("On its held-out rows (lower is better)", ["", found["metric"]], rows)
    show(
        f"Features (change of the {_scale(model)} for one standard deviation)",
        ["feature", "this task", "mean of all tasks"],
        [
            [one["feature"], f"{one['effect']:.3g}", f"{one['mean_effect']:.3g}"]
            for one in found["effects"][:SHOWN]
        ],
    )
