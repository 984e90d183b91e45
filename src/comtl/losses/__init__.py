"""Losses of one score and one target, by their public names."""

from ..parameters import require_choice
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
"""Losses by their public names. The links of a loss say for which kinds of target it is."""
DEFAULT = {False: "squared", True: "logistic"}
"""What "auto" means, by whether targets are classes."""


def loss_of(name: str, *, classification: bool) -> Loss:
    """Loss by its public name, refused if it is not for the kind of target."""
    link = "classification_link" if classification else "regression_link"
    serving = [key for key, loss in LOSSES.items() if getattr(loss, link) is not None]
    require_choice("loss", name, ("auto", *serving))
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
    "loss_of",
    "sigmoid",
]
