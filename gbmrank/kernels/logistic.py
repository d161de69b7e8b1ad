r"""Logistic sums over all pairs of a query without an exponential per pair.

With :math:`E_i = e^{\sigma (s_i - c)}` for a common c, the pair probability is
:math:`E_j / (E_i + E_j)`: one division per pair. Choosing c as the middle of the scores
keeps every E finite while the range of ``sigma * score`` stays below 1400 (float64) or
170 (float32); products are formed as ``(E_i r)(E_j r)``, never with ``r * r``.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.kernels.jit import inner
from gbmrank.kernels.vector_math import exp
from gbmrank.types import FloatArray

__all__ = ["fast_pairs"]

_SINGLE_RANGE = 80.0
_DOUBLE_RANGE = 700.0


@inner
def _triangle(
    e: npt.NDArray[Any], v: npt.NDArray[Any], useful: int, g: npt.NDArray[Any], h: npt.NDArray[Any]
) -> None:
    """Add gradient and curvature of every pair with a useful item; unit sigma."""
    one = e.dtype.type(1.0)  # a Python number would widen float32 lanes
    for i in range(len(e)):
        e_i, v_i = e[i], v[i]
        g_i = h_i = e.dtype.type(0.0)
        for j in range(min(i, useful)):
            r = one / (e_i + e[j])
            up = e_i * r
            down = e[j] * r
            pull = v[j] * up - v_i * down
            bend = (v[j] + v_i) * up * down
            g_i += pull
            h_i += bend
            g[j] -= pull
            h[j] += bend
        g[i] += g_i
        h[i] += h_i


@inner
def fast_pairs(
    s: FloatArray,
    v: FloatArray,
    useful: int,
    params: tuple[float],
    single: bool,
    out: tuple[FloatArray, FloatArray],
) -> bool:
    """Write the gradient and curvature of one query; False when the range is too wide.

    Parameters
    ----------
    s, v : arrays of shape (n,)
        Scores and utilities, useful items first.
    useful : int
        Number of items with a positive utility.
    params : tuple of float
        The factor sigma.
    single : bool
        Allow float32 lanes (error below 1e-6 of the largest gradient).
    out : pair of arrays of shape (n,)
        Gradient and curvature, overwritten.
    """
    sigma = params[0]
    lowest, highest = s[0], s[0]
    for i in range(len(s)):
        lowest = min(lowest, s[i])
        highest = max(highest, s[i])
    spread = sigma * (highest - lowest)
    if not spread < _DOUBLE_RANGE:
        return False
    middle = 0.5 * (lowest + highest)
    g, h = out
    if single and spread < _SINGLE_RANGE:
        e32 = np.empty(len(s), np.float32)
        v32 = np.empty(len(s), np.float32)
        g32 = np.zeros(len(s), np.float32)
        h32 = np.zeros(len(s), np.float32)
        for i in range(len(s)):
            e32[i] = exp(sigma * (s[i] - middle))
            v32[i] = v[i]
        _triangle(e32, v32, useful, g32, h32)
        for i in range(len(s)):
            g[i] = sigma * g32[i]
            h[i] = sigma * sigma * h32[i]
    else:
        e = np.empty(len(s), np.float64)
        for i in range(len(s)):
            e[i] = exp(sigma * (s[i] - middle))
            g[i] = 0.0
            h[i] = 0.0
        _triangle(e, v, useful, g, h)
        for i in range(len(s)):
            g[i] *= sigma
            h[i] *= sigma * sigma
    return True
