"""Losses of one score and one target, by their public names."""

from .huber import Huber
from .links import ClassLink, ClippedLinear, Identity, Link, Log, Logit, sigmoid
from .logistic import Logistic
from .loss import Loss
from .poisson import Poisson
from .squared import Squared

LOSSES: dict[str, Loss] = {
    "squared": Squared(),
    "logistic": Logistic(),
    "poisson": Poisson(),
    "huber": Huber(),
}
"""Losses by their public names. The links of a loss say which kinds of target it serves."""
DEFAULT = {False: "squared", True: "logistic"}
"""What "auto" means, by whether targets are classes."""


def loss_names(*, classification: bool) -> tuple[str, ...]:
    """Public names of the losses that serve a kind of target."""
    return tuple(
        name
        for name, loss in LOSSES.items()
        if (loss.classification_link if classification else loss.regression_link) is not None
    )


def loss_of(name: str, *, classification: bool) -> Loss:
    """Loss by its public name."""
    return LOSSES[DEFAULT[classification] if name == "auto" else name]


__all__ = [
    "LOSSES",
    "ClassLink",
    "ClippedLinear",
    "Huber",
    "Identity",
    "Link",
    "Log",
    "Logistic",
    "Logit",
    "Loss",
    "Poisson",
    "Squared",
    "loss_names",
    "loss_of",
    "sigmoid",
]
