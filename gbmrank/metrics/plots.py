"""Plots of predictions, drawn with matplotlib."""

from typing import Any

import numpy as np

from gbmrank.data.position_bias import axes
from gbmrank.metrics.probability import LogLoss, reliability_bins
from gbmrank.types import ArrayLike

__all__ = ["reliability"]


def reliability(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    bins: int = 15,
    ax: Any = None,
) -> Any:
    """Draw the share of relevant rows against the probability, and how rows are spread.

    Parameters
    ----------
    labels : array-like of shape (n_rows,)
        1 for a relevant row, else 0.
    probabilities : array-like of shape (n_rows,)
        From 0 to 1.
    qid : array-like of shape (n_rows,), optional
        One query id per row, for intervals that know that rows of a query depend on each other.
    bins : int, default=15
        Bins of equal numbers of rows.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure when not given.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. Dots on the diagonal are right; bars are 95% intervals; below is a histogram.
    """
    y, p, query, w = LogLoss()._read(labels, probabilities, qid, None)
    found = reliability_bins(y, p, query, w, bins)
    ax = axes(ax, 5.0, 4.6)
    ends = [0.0, float(max(found.mean.max(), found.share.max()) * 1.05)]
    ax.plot(ends, ends, color="#888888", linewidth=0.8)
    ax.errorbar(
        found.mean,
        found.share,
        yerr=1.96 * np.sqrt(found.variance),
        fmt="o",
        color="#1d3c53",
        ecolor="#7aa6c2",
        markersize=4,
    )
    counts, edges = np.histogram(p, 30, (0.0, ends[1]))
    heights = counts / counts.max() * 0.12 * ends[1]
    ax.bar(edges[:-1], heights, np.diff(edges), align="edge", color="#c98a5b", alpha=0.6)
    ax.set_xlabel("probability")
    ax.set_ylabel("share of relevant rows")
    return ax
