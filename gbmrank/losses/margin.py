"""Margin losses: one function of the margin by which the better document leads."""

from dataclasses import dataclass
from typing import ClassVar, final

from gbmrank.errors import ParameterError
from gbmrank.losses.base import AbstractMarginLoss
from gbmrank.numerics import exp, log1p_unit

__all__ = ["Logistic", "logistic"]


def logistic(margin: float, sigma: float = 1.0) -> tuple[float, float, float]:
    r"""Logistic penalty of the margin by which the better document leads.

    .. math::
        \varphi(m) = \log(1 + e^{-\sigma m}), \quad \varphi'(m) = -\sigma p, \quad
        \varphi''(m) = \sigma^2 p (1 - p), \quad p = \frac{1}{1 + e^{\sigma m}}.

    Convex, with exact curvature and bounded slope. Accurate for every finite margin.

    Parameters
    ----------
    margin : float
        Score of the better document minus score of the worse one.
    sigma : float
        Steepness.

    Returns
    -------
    tuple of float
        Value, first and second derivative.

    References
    ----------
    Burges et al., "Learning to rank using gradient descent", ICML 2005, sec. 3.

    Examples
    --------
    >>> value, slope, curvature = logistic(0.0)
    >>> slope, curvature
    (-0.5, 0.25)
    """
    z = sigma * margin
    e = exp(-abs(z))
    p = (e if z > 0.0 else 1.0) / (1.0 + e)
    value = max(-z, 0.0) + log1p_unit(e)
    return value, -sigma * p, sigma * sigma * e / ((1.0 + e) * (1.0 + e))


@final
@dataclass(frozen=True, slots=True)
class Logistic(AbstractMarginLoss):
    """Logistic loss ``log(1 + exp(-sigma z))``; see :func:`logistic`.

    Parameters
    ----------
    sigma : float, default=1
        Steepness, greater than 0.
    """

    sigma: float = 1.0

    name: ClassVar[str] = "logistic"
    formula: ClassVar[str] = "log(1 + exp(-sigma z))"
    reference: ClassVar[str] = "Burges et al., ICML 2005"
    phi = staticmethod(logistic)

    def __post_init__(self) -> None:
        if not self.sigma > 0 or self.sigma == float("inf"):
            raise ParameterError(f"logistic: sigma must be a number above 0, got {self.sigma}")
