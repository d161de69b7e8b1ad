"""Whether a trained model orders anything, and if not, why."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gbmrank.backends.tables import take_rows
from gbmrank.backends.trainer import Fitted, Part
from gbmrank.data.queries import Groups
from gbmrank.types import FloatArray

__all__ = ["all_tied", "likely_cause"]

_FIRST_LOOK = 20_000  # rows that are scored before all are
_LEAST_CURVATURE = {"lightgbm": "min_sum_hessian_in_leaf", "xgboost": "min_child_weight"}
_LEAST_GAIN = {"lightgbm": "min_gain_to_split", "xgboost": "gamma"}


def all_tied(fitted: Fitted, part: Part) -> bool:
    """Return whether the scores of every query are all equal."""
    groups = part.data.groups
    few = max(1, int(np.searchsorted(groups.offsets, _FIRST_LOOK, side="right")) - 1)
    head = Groups(groups.offsets[: few + 1])
    if not _tied(fitted.scores(take_rows(part.features, np.arange(head.n_rows))), head):
        return False
    return few == groups.n_queries or _tied(fitted.scores(part.features), groups)


def _tied(scores: FloatArray, groups: Groups) -> bool:
    return bool(np.all(scores == groups.spread(scores[groups.offsets[:-1]])))


def likely_cause(
    backend: str, params: Mapping[str, Any], n_rows: int, curvature: float | None
) -> str:
    """Return the likely reason why no tree splits a query.

    Parameters
    ----------
    backend : {"lightgbm", "xgboost"}
        The booster.
    params : mapping
        Its parameters, by main names.
    n_rows : int
        Rows of the training set.
    curvature : float or None
        Summed Hessian of the first round; None for the booster's own objectives.
    """
    if params.get("learning_rate") == 0:
        return "the learning rate is 0"
    leaf = int(params.get("min_data_in_leaf", 20))
    if backend == "lightgbm" and n_rows < 2 * leaf:
        return f"{n_rows} rows cannot be split into leaves of min_data_in_leaf={leaf}"
    name = _LEAST_CURVATURE[backend]
    least = float(params.get(name, 0.0))
    if curvature is not None and curvature < 2 * least:
        return (
            f"{name}={least:g} is too large for the scale of this loss, whose Hessian sums to "
            f"{curvature:.3g}; lower it"
        )
    gain = float(params.get(_LEAST_GAIN[backend], 0.0))
    if gain > 0:
        return f"{_LEAST_GAIN[backend]}={gain:g} may be more than any split gains"
    return (
        "look for features that do not differ within a query, and at the size of leaves "
        f"(min_data_in_leaf, {name}, max_depth)"
    )
