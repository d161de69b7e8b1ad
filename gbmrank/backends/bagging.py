"""Growing each tree on some of the queries."""

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np

from gbmrank.backends.parameters import is_on
from gbmrank.errors import ConfigError
from gbmrank.types import IntArray

__all__ = ["QueryBagging", "with_bagging"]


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


def with_bagging(
    objective: Callable[[Any, Any], Any], params: Mapping[str, Any], sizes: IntArray, backend: str
) -> tuple[Callable[[Any, Any], Any], dict[str, Any]]:
    """Return an objective that draws queries where parameters ask for it, and the other ones.

    Parameters
    ----------
    objective : callable
        What the booster calls.
    params : mapping
        Of LightGBM, by main names; ``bagging_by_query``, ``bagging_fraction``, ``bagging_freq``
        and ``bagging_seed`` are read as LightGBM reads them.
    sizes : array of shape (n_queries,)
        Rows per query.
    backend : {"lightgbm", "xgboost"}
        The booster; XGBoost gets none of these parameters where queries are drawn.

    Raises
    ------
    ConfigError
        For a share, a number of rounds or a seed that is none.
    """
    used = dict(params)
    if "bagging_by_query" not in used:
        return objective, used
    asked = is_on(used, "bagging_by_query")
    if backend == "lightgbm":
        used["bagging_by_query"] = False
    else:
        del used["bagging_by_query"]
    if not asked:
        return objective, used
    fraction = _read(used, "bagging_fraction", 1.0, float)
    every = _read(used, "bagging_freq", 0, int)
    if every < 1 or fraction >= 1.0:
        return objective, used
    if not fraction > 0.0:
        raise ConfigError(f"bagging_fraction must be above 0, got {fraction}")
    called = "seed" if used.get("bagging_seed") is None else "bagging_seed"
    seed = _read({called: used.get(called)}, called, -1, int)
    used.pop("bagging_seed", None)
    if seed < 0:
        raise ConfigError(
            f"{called}={params.get(called)!r}: queries are drawn with a whole number of at least "
            "0; give bagging_seed="
        )
    return QueryBagging(objective, sizes, fraction, every, seed), used


def _read(params: dict[str, Any], name: str, default: Any, kind: type) -> Any:
    """Take a number out of parameters; LightGBM takes None for not given, and texts."""
    value = params.pop(name, None)
    try:
        made = default if value is None else kind(value)
        if made != (default if value is None else float(value)):
            raise ValueError(value)
    except (TypeError, ValueError):
        noun = "a whole number" if kind is int else "a number"
        raise ConfigError(f"{name} must be {noun}, got {value!r}") from None
    return made
