"""Signatures of the functions that templates leave open; for type checkers only."""

from typing import Any

from gbmrank.kernels.layout import Level
from gbmrank.kernels.linear_layout import Side
from gbmrank.kernels.linear_plan import LinearPlan
from gbmrank.types import FloatArray

__all__ = [
    "closed_levels",
    "closed_pairs",
    "dense_levels",
    "dense_pairs",
    "linear_cross",
    "linear_fields",
    "linear_pairs",
    "outer",
    "phi",
    "query",
    "term",
]

Out = tuple[FloatArray, FloatArray]
_FILLED = AssertionError("a slot that the compiler fills")


def phi(z: float, *params: float) -> tuple[float, float, float]:
    """Scalar loss of a margin: value, first and second derivative."""
    raise _FILLED


def outer(x: float, *params: float) -> tuple[float, float, float]:
    """Price of a useless item's loss in a push: value, first and second derivative."""
    raise _FILLED


def term(s: float, v: float, eta: float, *params: float) -> tuple[float, float, float]:
    """Loss of one item with score s and utility v: value, first and second derivative."""
    raise _FILLED


def query(
    labels: FloatArray,
    scores: FloatArray,
    at: FloatArray,
    grad: FloatArray,
    hess: FloatArray,
    *params: float,
) -> float:
    """Loss of one query; adds to grad and hess."""
    raise _FILLED


def closed_pairs(
    s: FloatArray, v: FloatArray, params: tuple[float, ...], bend: float, out: Out
) -> float:
    """All pairs of a query in closed form; NaN when it declines."""
    raise _FILLED


def closed_levels(
    s: FloatArray, w: FloatArray, level: Level, params: tuple[float, ...], bend: float, out: Out
) -> float:
    """Pairs of different level in closed form; NaN when it declines."""
    raise _FILLED


def linear_pairs(side: Side, plan: LinearPlan, params: tuple[float, ...]) -> float:
    """All pairs of a query in linear time; NaN when it declines."""
    raise _FILLED


def linear_cross(better: Side, worse: Side, plan: LinearPlan, params: tuple[float, ...]) -> float:
    """All pairs of a better and a worse item in linear time; NaN when it declines."""
    raise _FILLED


def linear_fields(
    targets: FloatArray,
    sources: tuple[FloatArray, FloatArray],
    sign: float,
    plan: LinearPlan,
    params: tuple[float, ...],
    out: FloatArray,
) -> bool:
    """Weighted sums over sources for every target in linear time; False when it declines."""
    raise _FILLED


def dense_pairs(s: FloatArray, v: FloatArray, useful: int, params: Any, out: Out) -> bool:
    """Every pair in a faster way; False when it declines."""
    raise _FILLED


def dense_levels(s: FloatArray, w: FloatArray, level: Level, params: Any, out: Out) -> bool:
    """Every pair of different level in a faster way; False when it declines."""
    raise _FILLED
