"""How sure a mean is: intervals over runs and over queries."""

from typing import NamedTuple

import numpy as np

from gbmrank.data.bootstrap import bootstrap_means
from gbmrank.types import FloatArray

_LEVEL = 0.95
_RESAMPLES = 10_000


class Estimate(NamedTuple):
    """A mean with the ends of its 95% interval."""

    mean: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 or -1 where the interval lies on one side of zero, else 0."""
        return int(self.low > 0.0) - int(self.high < 0.0)

    def __str__(self) -> str:
        return f"{self.mean:+.4f} [{self.low:+.4f}, {self.high:+.4f}]"


def over_runs(values: FloatArray) -> Estimate:
    """Return the mean of a few runs and its interval by Student's t.

    Runs on parts of one data set are not independent, so the interval tells how much runs
    differ and not how sure the mean is for other data.

    Parameters
    ----------
    values : array of shape (n_runs,)
        One value per run.

    Examples
    --------
    >>> print(over_runs(np.array([1.0, 2.0, 3.0])))
    +2.0000 [-0.4841, +4.4841]
    """
    from scipy.special import stdtrit

    mean, n = float(values.mean()), len(values)
    if n < 2:
        return Estimate(mean, float("nan"), float("nan"))
    half = float(stdtrit(n - 1, 0.5 + _LEVEL / 2) * values.std(ddof=1) / np.sqrt(n))
    return Estimate(mean, mean - half, mean + half)


def over_queries(values: FloatArray, rng: np.random.Generator) -> Estimate:
    """Return the mean over queries and its percentile bootstrap interval.

    Parameters
    ----------
    values : array of shape (n_queries,)
        One value per query.
    rng : numpy.random.Generator
        Of the resamples.
    """
    means = bootstrap_means(values[None, :], _RESAMPLES, rng)
    low, high = np.quantile(means, [(1.0 - _LEVEL) / 2, (1.0 + _LEVEL) / 2]).tolist()
    return Estimate(float(values.mean()), low, high)
