"""Numerically stable functions for losses.

The scalar ones are plain Python functions on floats, so a loss that uses them can be called,
plotted and tested without a compiler. Inside compiled loops the kernel layer replaces
each by a version without branches and library calls, so that the loop around it
can use vector instructions. A plugin loss written with these functions runs as fast as a
built-in one.
"""

import math

import numpy as np

from gbmrank.types import FloatArray

__all__ = ["MAX_EXPONENT", "exp", "expit", "log1p_unit", "logit", "sigmoid", "softplus"]

MAX_EXPONENT = 700.0
"""Exponents are clipped to plus or minus this, where float64 is still finite."""


def exp(x: float) -> float:
    """Exponential with its argument clipped to plus or minus ``MAX_EXPONENT``.

    Examples
    --------
    >>> exp(0.0)
    1.0
    >>> exp(1e6) == exp(700.0)
    True
    """
    return math.exp(min(max(x, -MAX_EXPONENT), MAX_EXPONENT))


def log1p_unit(x: float) -> float:
    """Logarithm of ``1 + x`` for x between 0 and 1.

    Examples
    --------
    >>> log1p_unit(1.0) == math.log(2.0)
    True
    """
    return math.log1p(x)


def sigmoid(x: float) -> float:
    """Logistic function ``1 / (1 + exp(-x))``; ``1 - sigmoid(x)`` is ``sigmoid(-x)``.

    Examples
    --------
    >>> sigmoid(0.0), sigmoid(-800.0) > 0.0
    (0.5, True)
    """
    e = exp(-abs(x))
    return (1.0 if x >= 0.0 else e) / (1.0 + e)


def softplus(x: float) -> float:
    """Softplus ``log(1 + exp(x))``, accurate for every finite x.

    Examples
    --------
    >>> softplus(1e4)
    10000.0
    """
    return max(x, 0.0) + log1p_unit(exp(-abs(x)))


def expit(x: FloatArray) -> FloatArray:
    """Logistic function of an array, accurate for every finite entry.

    Examples
    --------
    >>> expit(np.array([0.0, 800.0]))
    array([0.5, 1. ])
    """
    return np.exp(-np.logaddexp(0.0, -x))


def logit(p: FloatArray) -> FloatArray:
    """Log-odds of an array of probabilities.

    Examples
    --------
    >>> logit(np.array([0.5]))
    array([0.])
    """
    return np.log(p) - np.log1p(-p)
