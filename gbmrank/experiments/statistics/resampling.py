"""Resampling tests and intervals, which only assume exchangeable queries.

Every function takes a ``numpy.random.Generator`` and returns the same result for the same state.
The work is done in blocks of bounded memory.
"""

import numpy as np
import numpy.typing as npt

from gbmrank.data.bootstrap import blocks
from gbmrank.types import FloatArray

_CLOSE = 1e-12  # sums that differ by less, relative to their terms, are equal


def flip_p_values(differences: FloatArray, resamples: int, rng: np.random.Generator) -> FloatArray:
    r"""Return two-sided p values of paired randomisation tests, one per column.

    If two systems are exchangeable within a query, the sign of each difference is a fair coin.
    With the sum :math:`T = \sum_q d_q` and flipped sums :math:`T_b = \sum_q \pm d_q`,

    .. math::
        p = \frac{1 + \#\{b : |T_b| \ge |T|\}}{1 + B}.

    If there are at most ``resamples`` sign patterns, all of them are enumerated and p is
    exact: their share with :math:`|T_b| \ge |T|`. Differences that are all zero give 1.

    References
    ----------
    Smucker, Allan and Carterette, "A comparison of statistical significance tests for
    information retrieval evaluation", CIKM 2007.

    Examples
    --------
    Three queries have eight sign patterns, and two of them are as extreme as ours:

    >>> flip_p_values(np.array([[1.0], [2.0], [3.0]]), 100, np.random.default_rng(0))
    array([0.25])
    """
    n_queries = len(differences)
    slack = _CLOSE * np.abs(differences).sum(axis=0)
    least = np.abs(differences.sum(axis=0)) - slack
    if n_queries < 30 and 2**n_queries <= resamples:
        signs = 2.0 * (np.arange(2**n_queries)[:, None] >> np.arange(n_queries) & 1) - 1.0
        extreme: FloatArray = (np.abs(signs @ differences) >= least).mean(axis=0)
        return extreme
    count = np.zeros(differences.shape[1])
    for _, size in blocks(n_queries, resamples):
        coins = rng.integers(0, 2, size=(size, n_queries), dtype=np.int8)
        signs = (2 * coins - 1).astype(np.float64)
        count += (np.abs(signs @ differences) >= least).sum(axis=0)
    return (1.0 + count) / (1.0 + resamples)


def range_p_values(table: FloatArray, resamples: int, rng: np.random.Generator) -> FloatArray:
    r"""Return p values for all pairs of systems by randomised Tukey HSD.

    Under the hypothesis that no two systems differ, the values of a query may be assigned to
    the systems in any order. With :math:`R_b` the range of the system sums after such a
    permutation,

    .. math::
        p_{ij} = \frac{1 + \#\{b : R_b \ge |T_i - T_j|\}}{1 + B},

    so that the chance of any false rejection among all pairs is at most the level.

    References
    ----------
    Carterette, "Multiple testing in statistical analysis of systems-based information retrieval
    experiments", TOIS 2012.
    """
    rows = np.ascontiguousarray((table - table.mean(axis=0)).T)
    sums = rows.sum(axis=0)
    ranges = np.empty(resamples)
    for start, size in blocks(rows.size, resamples):
        dealt = rng.permuted(np.broadcast_to(rows, (size, *rows.shape)), axis=2).sum(axis=1)
        ranges[start : start + size] = np.ptp(dealt, axis=1)
    gaps = np.abs(sums[:, None] - sums[None, :]) - _CLOSE * np.abs(rows).sum()
    below = np.searchsorted(np.sort(ranges), gaps, side="left")
    return (1.0 + resamples - below) / (1.0 + resamples)


def holm(p_values: npt.ArrayLike) -> FloatArray:
    """Return p values corrected for their number by Holm's step-down procedure.

    References
    ----------
    Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 1979.

    Examples
    --------
    >>> holm([0.25, 0.125, 0.5])
    array([0.5  , 0.375, 0.5  ])
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(steps, 1.0)
    return corrected
