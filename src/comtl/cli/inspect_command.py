"""``comtl inspect``: columns, scores and weights of a model."""

from difflib import get_close_matches
from typing import Any

import click
import numpy as np

from ..tables import TableError, TableModel, load_model
from .output import SHOWN, effects, facts, headline, show, show_columns, show_scores, verdict
from .running import echo_json, echo_notes, json_option, plain_errors, say


@click.command("inspect", short_help="Show columns, scores and weights of a model.")
@click.argument("model")
@click.option("--task", "label", metavar="LABEL", help="Show one task.")
@json_option
@plain_errors()
def inspect(model: str, label: str | None, as_json: bool) -> None:
    """Show MODEL: columns, held-out scores, clusters of tasks and strongest features."""
    loaded = load_model(model)
    summary = model_summary(loaded) if label is None else task_summary(loaded, label)
    if as_json:
        echo_json(summary)
    elif label is None:
        show_model(loaded, summary)
    else:
        show_task(loaded, summary)


def model_summary(model: TableModel) -> dict[str, Any]:
    """Facts on a model, its strongest features, clusters of tasks and members."""
    weights = effects(model)
    order = np.argsort(-np.abs(weights).mean(axis=0), kind="stable")
    groups = model.estimator.task_clusters_
    tasks = model.estimator.tasks_
    return {
        **facts(model),
        "strongest": [
            {
                "feature": model.features[feature],
                "mean_effect": float(weights[:, feature].mean()),
                "spread_over_tasks": float(weights[:, feature].std()),
            }
            for feature in order[:SHOWN]
        ],
        "task_groups": [tasks[groups == group] for group in np.unique(groups)],
        "stack": dict(vars(model.estimator).get("weights_", {})),
    }


def show_model(model: TableModel, summary: dict[str, Any]) -> None:
    """Print the summary of a model."""
    say(headline(model))
    show_columns(model.encoder.columns)
    if model.comparison is not None:
        show_scores(model.comparison)
        say(verdict(model.comparison, model.model))
    show(
        f"Strongest features (change of the {_scale(model)} for one standard deviation)",
        ["feature", "mean over tasks", "spread over tasks"],
        [list(one.values()) for one in summary["strongest"]],
    )
    if len(summary["task_groups"]) > 1:
        rows = [
            [number, len(tasks), ", ".join(map(str, tasks[:8].tolist()))]
            for number, tasks in enumerate(summary["task_groups"])
        ]
        show("Clusters of tasks", ["cluster", "tasks", "such as"], rows)
    if summary["stack"]:
        ranked = sorted(summary["stack"].items(), key=lambda item: -item[1])
        listed = [[name, f"{share:.2f}"] for name, share in ranked]
        show("Members of the stack", ["member", "weight"], listed)
    echo_notes(model.notes, err=False)
    versions = ", ".join(f"{name} {number}" for name, number in model.versions.items())
    say(f"Fitted with {versions}.")


def _scale(model: TableModel) -> str:
    scale = "prediction" if model.classes is None else "log odds"
    trees = "trees" in (vars(model.estimator).get("form_") or "")
    return f"linear part of the {scale}" if trees else scale


def task_summary(model: TableModel, label: str) -> dict[str, Any]:
    """Cluster, weights and errors of a task."""
    names = [str(task) for task in model.estimator.tasks_.tolist()]
    if label not in names:
        near = get_close_matches(label, names, 3) or names[:3]
        raise TableError(
            f"--task: the model has no task {label!r}; it has {len(names):,} tasks, such as "
            f"{', '.join(near)}."
        )
    task, tasks = names.index(label), model.estimator.tasks_
    weights = effects(model)
    order = np.argsort(-np.abs(weights[task]), kind="stable")
    groups = model.estimator.task_clusters_
    alike = tasks[groups == groups[task]]
    summary: dict[str, Any] = {
        "task": tasks[task],
        "group": int(groups[task]),
        "tasks_alike": alike[alike != tasks[task]],
        "effects": [
            {
                "feature": model.features[feature],
                "effect": float(weights[task, feature]),
                "mean_effect": float(weights[:, feature].mean()),
            }
            for feature in order
        ],
    }
    comparison = model.comparison
    compared = [] if comparison is None else list(map(str, comparison.tasks.tolist()))
    if comparison is not None and label in compared:
        number = compared.index(label)
        summary |= {
            "rows": int(comparison.train_rows[number]),
            "metric": comparison.metric,
            "errors": {name: float(errors[number]) for name, errors in comparison.errors.items()},
        }
    return summary


def show_task(model: TableModel, summary: dict[str, Any]) -> None:
    """Print the summary of a task."""
    alike = summary["tasks_alike"].tolist()
    say(
        f"Task {summary['task']}"
        + (f", {summary['rows']:,} rows" if "rows" in summary else "")
        + f": in cluster {summary['group']} with {len(alike):,} others"
        + (f", such as {', '.join(map(str, alike[:5]))}." if alike else ".")
    )
    if "errors" in summary:
        rows = [[name, f"{error:.4g}"] for name, error in summary["errors"].items()]
        show("Errors on its held-out rows (lower is better)", ["", summary["metric"]], rows)
    show(
        f"Features (change of the {_scale(model)} for one standard deviation)",
        ["feature", "this task", "mean of all tasks"],
        [list(one.values()) for one in summary["effects"][:SHOWN]],
    )
