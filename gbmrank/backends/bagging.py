"""Growing each tree on some of the queries."""

from collections.abc import Callable
from typing import Any, final

import numpy as np

from gbmrank.types import IntArray

__all__ = ["QueryBagging"]


@final
class QueryBagging:
    """An objective whose gradient is zero for queries left out of the round.

    LightGBM's own ``bagging_by_query`` trains a wrong model with custom objectives. Rows of a
    query that is left out still count for ``min_data_in_leaf``.

    Parameters
    ----------
    objective : callable
        ``(scores, data set) -> (grad, hess)``.
    sizes : array of shape (n_queries,)
        Rows per query.
    fraction : float
        Share of the queries of a round.
    every : int
        Draw queries anew after so many rounds.
    seed : int
        Of the draws.
    """

    def __init__(
        self,
        objective: Callable[[Any, Any], Any],
        sizes: IntArray,
        fraction: float,
        every: int,
        seed: int,
    ) -> None:
        self._objective, self._sizes = objective, sizes
        self._kept = max(1, round(fraction * len(sizes)))
        self._every, self._seed = every, seed
        self._calls = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> "QueryBagging":
        return self  # LightGBM copies its parameters

    def __call__(self, scores: Any, data: Any) -> Any:
        """Answer a booster."""
        grad, hess = self._objective(scores, data)
        rng = np.random.default_rng([self._seed, self._calls // self._every])
        self._calls += 1
        out = np.ones(len(self._sizes), np.bool_)
        out[rng.choice(len(out), self._kept, replace=False, shuffle=False)] = False
        rows = np.repeat(out, self._sizes)
        grad[rows] = hess[rows] = 0.0
        return grad, hess
