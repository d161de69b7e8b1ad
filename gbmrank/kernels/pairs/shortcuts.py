r"""Logistic sums over the pairs of a query without an exponential per pair.

With :math:`E_i = e^{\sigma (s_i - c)}` for a common c, the pair probability is
:math:`E_j / (E_i + E_j)`: one division per pair. Choosing c as the middle of the scores
keeps every E finite in float64 while the range of ``sigma * score`` stays below 700, and every
product normal in float32 below 80; products are formed as ``(E_i r)(E_j r)``, never with
``r * r``. The two precisions are functions of their own, so that a kernel is compiled for the
one it needs. The ``no_`` functions at the end fill slots of losses without such a way: they
always decline.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.kernels.jit.decorators import exp, inner
from gbmrank.kernels.layout import Level, Out
from gbmrank.kernels.scores import middle_and_range
from gbmrank.types import FloatArray

__all__ = [
    "dense_levels",
    "dense_pairs",
    "no_closed_levels",
    "no_closed_pairs",
    "no_dense",
    "single_levels",
    "single_pairs",
]

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
def _below(
    e: npt.NDArray[Any], w: npt.NDArray[Any], ends: Any, g: npt.NDArray[Any], h: npt.NDArray[Any]
) -> None:
    """Add gradient and curvature of every pair of different level; unit sigma."""
    one = e.dtype.type(1.0)
    for i in range(len(e)):
        e_i, w_i = e[i], w[i]
        g_i = h_i = e.dtype.type(0.0)
        lower, g_lower, h_lower = e[ends[i] :], g[ends[i] :], h[ends[i] :]
        for j in range(len(lower)):
            r = one / (e_i + lower[j])
            down = lower[j] * r
            pull = w_i * down
            bend = pull * (e_i * r)
            g_i -= pull
            h_i += bend
            g_lower[j] += pull
            h_lower[j] += bend
        g[i] += g_i
        h[i] += h_i


@inner
def _exponentials(s: FloatArray, sigma: float, widest: float, e: npt.NDArray[Any]) -> bool:
    """Write every E; False when the range of the scores is too wide for them."""
    middle, width = middle_and_range(s)
    if not sigma * width < widest:
        return False
    for i in range(len(s)):
        e[i] = exp(sigma * (s[i] - middle))
    return True


@inner
def _narrow(column: FloatArray) -> npt.NDArray[np.float32]:
    single = np.empty(len(column), np.float32)
    for i in range(len(column)):
        single[i] = column[i]
    return single


@inner
def _widen(g: npt.NDArray[Any], h: npt.NDArray[Any], sigma: float, out: Out) -> None:
    for i in range(len(g)):
        out[0][i] = sigma * g[i]
        out[1][i] = sigma * sigma * h[i]


@inner
def dense_pairs(s: FloatArray, v: FloatArray, useful: int, params: tuple[float], out: Out) -> bool:
    """Write gradient and curvature of one query; False when the range is too wide for sigma."""
    n = len(s)
    e, g, h = np.empty(n), np.zeros(n), np.zeros(n)
    if not _exponentials(s, params[0], _DOUBLE_RANGE, e):
        return False
    _triangle(e, v, useful, g, h)
    _widen(g, h, params[0], out)
    return True


@inner
def single_pairs(s: FloatArray, v: FloatArray, useful: int, params: tuple[float], out: Out) -> bool:
    """Like :func:`dense_pairs` in float32 lanes: errors below 1e-5 of the largest gradient."""
    n = len(s)
    e, g, h = np.empty(n, np.float32), np.zeros(n, np.float32), np.zeros(n, np.float32)
    if not _exponentials(s, params[0], _SINGLE_RANGE, e):
        return False
    _triangle(e, _narrow(v), useful, g, h)
    _widen(g, h, params[0], out)
    return True


@inner
def dense_levels(
    s: FloatArray, w: FloatArray, level: Level, params: tuple[float], out: Out
) -> bool:
    """Like :func:`dense_pairs`, over pairs of different level weighted by the better item."""
    n = len(s)
    e, g, h = np.empty(n), np.zeros(n), np.zeros(n)
    if not _exponentials(s, params[0], _DOUBLE_RANGE, e):
        return False
    _below(e, w, level.end, g, h)
    _widen(g, h, params[0], out)
    return True


@inner
def single_levels(
    s: FloatArray, w: FloatArray, level: Level, params: tuple[float], out: Out
) -> bool:
    """Like :func:`dense_levels` in float32 lanes."""
    n = len(s)
    e, g, h = np.empty(n, np.float32), np.zeros(n, np.float32), np.zeros(n, np.float32)
    if not _exponentials(s, params[0], _SINGLE_RANGE, e):
        return False
    _below(e, _narrow(w), level.end, g, h)
    _widen(g, h, params[0], out)
    return True


@inner
def no_closed_pairs(s: Any, v: Any, params: Any, bend: float, out: Any) -> float:
    """No closed form over all pairs."""
    return np.nan


@inner
def no_closed_levels(s: Any, w: Any, level: Any, params: Any, bend: float, out: Any) -> float:
    """No closed form over levels."""
    return np.nan


@inner
def no_dense(s: Any, v: Any, shape: Any, params: Any, out: Any) -> bool:
    """No faster way to visit every pair."""
    return False
