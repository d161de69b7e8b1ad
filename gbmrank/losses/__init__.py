"""Scalar penalties with their derivatives; no sums, no queries."""

from gbmrank.losses.base import AbstractLoss
from gbmrank.losses.margin import Logistic

__all__ = ["BUILTIN_LOSSES", "AbstractLoss", "Logistic"]

BUILTIN_LOSSES: tuple[type[AbstractLoss], ...] = (Logistic,)
