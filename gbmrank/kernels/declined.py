"""Ways to sum a query that a loss does not have: they always decline."""

from typing import Any

import numpy as np

from gbmrank.kernels.jit import inner

__all__ = [
    "no_closed_levels",
    "no_closed_pairs",
    "no_dense",
]


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
