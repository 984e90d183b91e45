"""Constructor parameters that several estimators have."""

from typing import Annotated, Any

from ..losses import LOSSES
from ..parameters import Count, Doc, Flag, NonNegative, at_least, one_of, require_scaling
from ..penalties import PENALTIES, core_penalties, factor_penalties

FitIntercept = Annotated[
    Flag,
    Doc(
        "Whether to fit intercepts: a common one, and a deviation for each task whose variance is "
        "estimated from the data."
    ),
]
PlainIntercept = Annotated[Flag, Doc("Whether to fit intercepts.")]
Standardize = Annotated[
    bool | str,
    require_scaling,
    Doc(
        "Whether to scale features, and targets that are values, to unit variance inside, so that "
        'the penalties do not depend on units. "auto": indicators, columns of two values, share '
        "half their range as a unit, as otherwise the rarest ones would have the largest weights. "
        "Weights are reported in the units given. False: the objective in the units given.",
        "bool or str",
    ),
]
MaxIter = Annotated[Count, Doc("Most sweeps of the alternation.")]
Tol = Annotated[NonNegative, Doc("Relative decrease of the objective in a sweep at which to stop.")]
RandomState = Annotated[
    Any, Doc("Seed of starting points and clusters.", "int, RandomState or None")
]
Checkpoint = Annotated[
    str | None,
    Doc(
        "File that is written every half minute and after each fold. The same fit, killed and "
        "begun again with the same data and parameters, goes on from there to the same result. "
        "Removed at the end."
    ),
]
Folds = Annotated[
    Any,
    Doc(
        "Folds. An int splits every task (and every class in it) into that many parts; the folds "
        "depend on nothing else.",
        "int, splitter or list of splits",
    ),
]
Jobs = Annotated[int | None, Doc("Fits at the same time, in processes of joblib.")]
Components = Annotated[
    Count, Doc("Columns ``K`` of both factors; capped at the number of features and of tasks.")
]
AlphaFeature = Annotated[NonNegative, Doc("λ1, the penalty of the feature factor.")]
AlphaTask = Annotated[
    NonNegative,
    Doc(
        "λ2, the penalty of the task factor. With learned relations or ridge on every factor only "
        "the product of the λ matters for the fit."
    ),
]
_BLOCKS = (
    'With "clusters" on both sides the weights are constant on blocks of features and tasks, the '
    "core holds the blocks' weights, and K1 and K2 are true numbers of clusters. The best of "
    "several runs is kept, from separate starts: ``init`` has no part in it."
)


def _choices(texts: dict[str | None, str]) -> str:
    """Choices of a parameter and what they mean."""
    named = {"None" if name is None else f'"{name}"': text for name, text in texts.items()}
    return "; ".join(f"{name}: {text}" for name, text in named.items()) + "."


def _penalties(names: tuple[str | None, ...]) -> str:
    return _choices({name: PENALTIES[name].text for name in names})


Loss = Annotated[
    str,
    Doc(
        "Loss of an observation. "
        + _choices({name: loss.text for name, loss in LOSSES.items()})
        + ' "auto" is "squared" for values and "logistic" for classes.'
    ),
]
FactorPenalty = Annotated[
    str,
    one_of(*factor_penalties(core=False)),
    Doc(f"What bounds the factor. {_penalties(factor_penalties(core=False))}", "str"),
]
BlockPenalty = Annotated[
    str,
    one_of(*factor_penalties(core=True)),
    Doc(f"What bounds the factor. {_penalties(factor_penalties(core=True))} {_BLOCKS}", "str"),
]
Core = Annotated[
    str | None,
    one_of(*core_penalties()),
    Doc(f"Penalty of the core. {_penalties(core_penalties())}", "str or None"),
]
AlphaCore = Annotated[NonNegative, Doc("λ3, the penalty of the core.")]
Shared = Annotated[
    Flag,
    Doc(
        "Whether all tasks have a part ``w0`` in common beside the factors. What is left for the "
        "factors is then smaller, and asks for a larger λ2: choose it by cross-validation."
    ),
]
AlphaShared = Annotated[NonNegative, Doc("Ridge penalty of the shared part.")]
Init = Annotated[
    str,
    one_of("svd", "random"),
    Doc("Start from the leading singular vectors of the tasks' gradients, or from chance."),
]
Smoothing = Annotated[
    float,
    at_least(1e-14),
    Doc("Floor of the relations' ε, relative to the factor's largest singular value squared."),
]
