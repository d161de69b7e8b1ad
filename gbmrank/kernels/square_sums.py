r"""Sums of ``(1 - d)^2`` over pairs from moments of the scores.

Scores are taken around their mean, so that sums of squares do not cancel. The mean is
rounded, so the sum of what is left is not zero and stays in the formula.
"""

import numpy as np

from gbmrank.kernels.jit import entry
from gbmrank.kernels.layout import Level
from gbmrank.types import FloatArray

__all__ = ["squared_margin_levels", "squared_margin_pairs"]


@entry
def squared_margin_pairs(
    s: FloatArray,
    v: FloatArray,
    params: tuple[float, ...],
    bend: float,
    out: tuple[FloatArray, FloatArray],
) -> float:
    """Squared margin loss over all ordered pairs weighted by v."""
    g, h = out
    n = len(s)
    mean = np.mean(s)
    rest, squares, weight, moment = 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        x = s[i] - mean
        rest += x
        squares += x * x
        weight += v[i]
        moment += v[i] * x
    value = 0.0
    each = 2.0 if np.isnan(bend) else bend
    for i in range(n):
        x = s[i] - mean
        low = 1.0 - x
        value += v[i] * ((n * low + 2.0 * rest) * low + squares - 1.0)
        g[i] = -2.0 * v[i] * (n * low + rest - 1.0) + 2.0 * (weight * (1.0 + x) - moment - v[i])
        h[i] = each * (v[i] * (n - 2.0) + weight)
    return value


@entry
def squared_margin_levels(
    s: FloatArray,
    w: FloatArray,
    level: Level,
    params: tuple[float, ...],
    bend: float,
    out: tuple[FloatArray, FloatArray],
) -> float:
    """Squared margin loss over pairs of different level."""
    g, h = out
    n = len(s)
    mean = np.mean(s)
    below = np.zeros((2, n + 1))
    above = np.zeros((2, n + 1))
    for i in range(n):
        x = s[i] - mean
        above[0, i + 1] = above[0, i] + w[i]
        above[1, i + 1] = above[1, i] + w[i] * x
        k = n - 1 - i
        x = s[k] - mean
        below[0, k] = below[0, k + 1] + x
        below[1, k] = below[1, k + 1] + x * x
    value = 0.0
    each = 2.0 if np.isnan(bend) else bend
    for i in range(n):
        x = s[i] - mean
        low = 1.0 - x
        first, last = level.begin[i], level.end[i]
        count = n - last
        value += w[i] * (count * low * low + 2.0 * low * below[0, last] + below[1, last])
        pull = -2.0 * w[i] * (count * low + below[0, last])
        push = 2.0 * ((1.0 + x) * above[0, first] - above[1, first])
        g[i] = pull + push
        h[i] = each * (w[i] * count + above[0, first])
    return value
