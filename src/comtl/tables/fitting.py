"""Fit a model to a table."""

import platform
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import sklearn
from sklearn.exceptions import ConvergenceWarning

from .. import __version__
from ..evaluation.compare_models import MANY_ROWS, compare
from ..evaluation.comparison import Comparison
from ..evaluation.reference_models import tuned
from ..hierarchical.hierarchical_estimators import HierarchicalClassifier, HierarchicalRegressor
from ..model_selection import (
    BiFactorClassifierCV,
    BiFactorRegressorCV,
    TriFactorClassifierCV,
    TriFactorRegressorCV,
)
from ..models.task_model import TaskModel
from ..parameters import require_choice
from ..phrases import count_noun, warn_caller
from ..rows.fit_input import FitInput
from ..stacking.multitask import MultitaskClassifier, MultitaskModel, MultitaskRegressor
from .dates import ORDERS
from .encoder import Encoder
from .labels import CLASSIFICATION, read_target, read_tasks, read_weights
from .leaks import notes_on_leaks
from .table_model import TableModel
from .values import DECIMALS, TableError, as_table, require_columns

LEAST_ROWS = 5
"""Fewest rows of a fit: as many as the folds it is tuned on."""
FOLDS = 5
KINDS = ("auto", "regression", "classification")
MODELS = ("auto", "hierarchical", "bifactor", "trifactor", "pooled", "separate")
FORMS = ("auto", "linear", "hinges", "trees")
FORMER_MODELS = {"bends": "hinges", "hinges": "hinges"}
"""Forms of the stack that were models by these names."""
SIMPLE = ("pooled", "separate")
ESTIMATORS: dict[str, tuple[Any, Any]] = {
    "auto": (MultitaskRegressor, MultitaskClassifier),
    "hierarchical": (HierarchicalRegressor, HierarchicalClassifier),
    "bifactor": (BiFactorRegressorCV, BiFactorClassifierCV),
    "trifactor": (TriFactorRegressorCV, TriFactorClassifierCV),
}
"""Regressor and classifier by name."""
RANKS = (1, 2, 4, 8)
CLUSTERS = (2, 5)
SEARCH: dict[str, Any] = {"alphas": (0.01, 0.1, 1.0, 10.0, 100.0), "cv": 3, "shared": True}
Progress = Callable[[int, int], None]


def fit_table(
    frame: Any,
    *,
    task: str,
    target: str,
    model: str = "auto",
    form: str = "auto",
    kind: str = "auto",
    drop: Sequence[str] = (),
    category: Sequence[str] = (),
    number: Sequence[str] = (),
    missing: str = "impute",
    date_format: str | None = None,
    decimal: str | None = None,
    weight: str | None = None,
    score: bool = True,
    seed: int = 0,
    jobs: int | None = None,
    progress: Progress | None = None,
    seen: Callable[[Encoder, list[str]], None] | None = None,
) -> TableModel:
    """Fit a model to the rows of a table, with its columns encoded by type.

    Parameters
    ----------
    frame : pandas, polars or Arrow table
        One row a sample, with the task, the target, and columns to predict from.
    task, target : str
        Columns of the task and of what is to be predicted.
    model : {"auto", "hierarchical", "bifactor", "trifactor", "pooled", "separate"}
        Which model; "auto" is MultitaskRegressor or MultitaskClassifier.
    form : {"auto", "linear", "hinges", "trees"}
        Whether model "auto" also tries hinges of columns of numbers and boosted trees, to keep
        them where they help; "auto" tries both.
    kind : {"auto", "regression", "classification"}
        Kind of problem; by default text and two whole numbers are classes.
    drop : sequence of str
        Columns to leave out.
    category, number : sequences of str
        Columns to take as categories and as numbers, whatever they look like. The task among the
        categories has its labels taken as text.
    missing : {"impute", "refuse"}
        Missing values: fill them and mark them by a further feature (the median of a number, a
        level of a category), or raise an error.
    date_format : {"ymd", "dmy", "mdy"}, optional
        Order of year, month and day in dates, where a column does not tell it.
    decimal : {".", ","}, optional
        Decimal mark of numbers in text, where a column does not tell it.
    weight : str, optional
        Column with the weight of each row.
    score : bool, default=True
        Whether to compare with reference models on held-out rows, which takes several fits.
    seed : int, default=0
        Seed of what is random.
    jobs : int, optional
        Processes.
    progress : callable, optional
        Called with the number of fits done and of all.
    seen : callable, optional
        Called with the encoder and the notes before the first fit.

    Returns
    -------
    TableModel
        The fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from comtl.tables import fit_table
    >>> rng = np.random.default_rng(0)
    >>> pupils = pd.DataFrame(
    ...     {
    ...         "school": np.repeat(["North", "South", "West"], 20),
    ...         "hours": rng.normal(size=60),
    ...         "sex": rng.choice(["f", "m"], 60),
    ...     }
    ... )
    >>> pupils["score"] = 2 * pupils.hours + (pupils.school == "West")
    >>> model = fit_table(pupils, task="school", target="score", model="hierarchical", score=False)
    >>> model.encoder.names
    ('hours', 'sex=f', 'sex=m')
    >>> float(np.abs(model.predict(pupils) - pupils.score).max().round(2))
    0.0
    """
    if model in FORMER_MODELS:
        form = FORMER_MODELS[model]
        text = f"model={model!r} is form={form!r} now; the old name will go."
        warn_caller(text, FutureWarning)
        model = "auto"
    require_choice("model", model, MODELS)
    require_choice("form", form, FORMS)
    if form != "auto" and model != "auto":
        raise TableError(
            f"--form {form} is for --model auto, not for --model {model}: leave one of them out."
        )
    require_choice("kind", kind, KINDS)
    require_choice("missing", missing, ("impute", "refuse"))
    if date_format is not None:
        require_choice("date_format", date_format, ORDERS)
    if decimal is not None:
        require_choice("decimal", decimal, tuple(DECIMALS))
    table = as_table(frame)
    drop, category, number = (
        (one,) if isinstance(one, str) else tuple(one) for one in (drop, category, number)
    )
    named: dict[str, Sequence[str]] = {
        **{"--task": [task], "--target": [target], "--weight": [] if weight is None else [weight]},
        **{"--drop": drop, "--category": category, "--number": number},
    }
    _check_names(table.column_names, named)
    task_as_text = task in category
    targets = read_target(table.column(target), target, kind)
    table, values, notes = targets.kept(table, target)
    labels = read_tasks(table.column(task), task, task_as_text)
    weights = None if weight is None else read_weights(table.column(weight), weight)
    notes += _check_rows(labels)
    others = [name for name in table.column_names if name not in (task, target, weight, *drop)]
    features = table.select(others)
    encoder, found = Encoder.of(
        features,
        category=category,
        number=number,
        missing=missing,
        date_format=date_format,
        decimal=decimal,
    )
    notes += found
    if seen is not None:
        seen(encoder, notes)
    rows = FitInput(encoder.encode(features).X, values, labels, weights)
    notes += notes_on_leaks(encoder, rows.X, values, target)
    report = progress or (lambda done, total: None)
    folds = 1 if len(labels) > MANY_ROWS else min(FOLDS, len(labels))
    report(0, 1 + 3 * folds * score)
    choose = partial(choose_model, model, targets.kind, form=form, seed=seed, jobs=jobs)
    estimator = choose(rows)
    _fit(estimator, rows, notes)
    notes += _about_form(estimator)
    comparison = None
    if score:
        comparison = _compared(estimator, rows, choose, report, notes)
    else:
        report(1, 1)
    return TableModel(
        encoder,
        estimator,
        comparison,
        task,
        target,
        targets.kind,
        model,
        len(labels),
        task_as_text,
        tuple(notes),
        {
            "comtl": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "scikit-learn": sklearn.__version__,
        },
    )


def choose_model(
    name: str,
    kind: str,
    rows: FitInput,
    *,
    form: str = "auto",
    seed: int = 0,
    jobs: int | None = None,
) -> TaskModel:
    """Estimator, not fitted, by its name on the command line."""
    classes = kind == CLASSIFICATION
    if name not in MODELS:
        raise TableError(f"model is one of {', '.join(MODELS)}, got {name!r}.")
    if name in SIMPLE:
        with warnings.catch_warnings():
            # A penalty whose fit stops early can still be distinguished from the others.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return tuned(name, classes, None, rows)[1]
    estimator = ESTIMATORS[name][classes]
    if name == "hierarchical":
        return estimator()
    if name == "auto":
        return estimator(form=form, n_jobs=jobs)
    ranks = (RANKS,) if name == "bifactor" else (CLUSTERS, CLUSTERS)
    return estimator(*ranks, **SEARCH, random_state=seed, n_jobs=jobs)


def compare_table(model: TableModel, frame: Any, progress: Progress | None = None) -> Comparison:
    """Errors on held-out rows of a table of copies of a model, fitted to the other rows."""
    rows, _ = model._read_training(frame)
    estimator = model.estimator
    choose = partial(choose_model, model.model, model.kind)
    if isinstance(estimator, MultitaskModel):
        # Earlier versions had further names for it.
        choose = partial(choose_model, "auto", model.kind, form=estimator.form)
    return compare(estimator, rows.X, rows.y, rows.task, choose=choose, progress=progress)


def _check_names(names: list[str], named: dict[str, Sequence[str]]) -> None:
    if len(names) == 1:
        raise TableError(
            f"The table has one column only, {names[0][:60]!r}; separate the columns of CSV files "
            "by commas, semicolons, tabs or bars."
        )
    for option, listed in named.items():
        require_columns(listed, names, option)
    (task,), (target,) = named["--task"], named["--target"]
    if task == target:
        raise TableError(f"--task and --target both name {task!r}; name two columns.")
    for option in ("--weight", "--drop"):
        for name in (task, target):
            if name in named[option]:
                raise TableError(f"{option} names {name!r}, which is the task or the target.")
    both = sorted(set(named["--category"]) & set(named["--number"]))
    if both:
        raise TableError(f"--category and --number both name {both[0]!r}; choose one.")


def _check_rows(labels: np.ndarray) -> list[str]:
    if len(labels) < LEAST_ROWS:
        raise TableError(
            f"The table has {count_noun(len(labels), 'row')} with a target; a fit takes at least "
            f"{LEAST_ROWS}."
        )
    tasks = len(np.unique(labels))
    if tasks == 1:
        return ["All rows are of one task: there is nothing to share between tasks."]
    if tasks == len(labels):
        return ["Every row has another task; does --task name the right column?"]
    return []


def _fit(estimator: TaskModel, rows: FitInput, notes: list[str]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        # What the user interrupts here is the command, not this fit alone.
        estimator._fit_quietly(rows)
    if any(issubclass(one.category, ConvergenceWarning) for one in caught):
        notes.append("The fit stopped before it converged; judge it by its held-out scores.")


def _about_form(estimator: TaskModel) -> list[str]:
    asked = estimator.form if isinstance(estimator, MultitaskModel) else "auto"
    if asked in ("hinges", "trees") and estimator.form_ == "linear":
        return [f"No {asked} were kept: straight lines predict held-out rows as well."]
    return []


def _compared(
    estimator: TaskModel,
    rows: FitInput,
    choose: Callable[[FitInput], TaskModel],
    report: Progress,
    notes: list[str],
) -> Comparison | None:
    def after_fit(done: int, total: int) -> None:
        report(done + 1, total + 1)

    data = (rows.X, rows.y, rows.task, rows.sample_weight)
    try:
        return compare(estimator, *data, folds=FOLDS, choose=choose, progress=after_fit)
    except ValueError as error:
        # Small tables may have folds without rows of a class or of a task.
        notes.append(f"No held-out scores: the table is too small ({error}).")
        return None
