"""What every loss has: value, derivative and curvature by the score, side by side."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from ..arrays import Array
from .links import ClassLink, Link


class Loss(ABC):
    r"""Loss of a score for a target, a frozen object of vectorised functions of ``(y, score)``.

    The engine needs the local quadratic model
    :math:`\ell(s + d) \approx \ell(s) + \ell'(s) d + \tfrac12 \ell''(s) d^2`, exact where
    ``quadratic`` is true. A loss serves the kinds of target for which it names a link, and
    ``text`` says in the reference what it is.
    """

    quadratic: ClassVar[bool] = False
    regression_link: ClassVar[Link | None] = None
    classification_link: ClassVar[ClassLink | None] = None
    text: ClassVar[str]

    @abstractmethod
    def value(self, y: Array, score: Array) -> Array:
        """Loss of each entry."""

    @abstractmethod
    def derivative(self, y: Array, score: Array) -> Array:
        """First derivative by the score."""

    @abstractmethod
    def curvature(self, y: Array, score: Array) -> Array:
        """Second derivative by the score, or that of a parabola above the loss; not negative."""

    @abstractmethod
    def dispersion(self, deviance: float, df: float) -> float:
        """Variance of a working response of curvature one, ``deviance`` being its spread."""
