"""Labels and weights that are not what they were once a booster has stored them."""

import warnings

import numpy as np

from gbmrank.data.queries import RankingData
from gbmrank.errors import GbmrankWarning, WeightError

__all__ = ["check_weights", "warn_if_rounded"]

_VANISHED = float(np.finfo(np.float32).smallest_subnormal) / 2.0  # and below is 0 in float32
_SHARE = 1e-3  # of the neighbouring labels of a query that differ; fewer go without a word


def warn_if_rounded(data: RankingData, what: str) -> None:
    """Warn where labels of a query become equal in float32, in which both boosters keep them.

    Parameters
    ----------
    data : RankingData
        The rows.
    what : str
        What they are called in the message.
    """
    with np.errstate(over="ignore"):  # what float32 cannot hold at all is refused elsewhere
        if np.array_equal(data.labels.astype(np.float32), data.labels):
            return
    queries = data.groups.spread(np.arange(data.groups.n_queries))
    labels = data.labels[np.lexsort((data.labels, queries))]
    differ = (labels[1:] != labels[:-1]) & (queries[1:] == queries[:-1])
    with np.errstate(over="ignore"):
        stored = labels.astype(np.float32)
    merged = np.flatnonzero(differ & (stored[1:] == stored[:-1]))
    if len(merged) <= _SHARE * np.count_nonzero(differ):
        return
    at = int(merged[0])
    share = len(merged) / np.count_nonzero(differ)
    warnings.warn(
        f"boosters keep labels in float32, and there {share:.1%} of the neighbouring labels that "
        f"differ within a query of {what} become equal, such as {labels[at]:.17g} and "
        f"{labels[at + 1]:.17g}; subtract an offset from the labels, divide them, or use their "
        "ranks within the query",
        GbmrankWarning,
        stacklevel=4,  # the caller of train
    )


def check_weights(data: RankingData, what: str) -> None:
    """Raise WeightError where all weights are zero in float32, in which boosters keep them.

    Parameters
    ----------
    data : RankingData
        The rows.
    what : str
        What they are called in the message.
    """
    largest = np.inf if data.weight is None else float(data.weight.max(initial=0.0))
    if largest <= _VANISHED:
        raise WeightError(
            f"the largest weight of {what} is {largest:g}, and boosters keep weights in "
            "float32, where all of them are zero; multiply them all by one number"
        )
