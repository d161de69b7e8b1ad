"""Objectives: what is summed over which items or pairs of a query."""

from gbmrank.objectives.base import AbstractBound, AbstractObjective
from gbmrank.objectives.pairwise import Pairwise

__all__ = ["BUILTIN_OBJECTIVES", "AbstractBound", "AbstractObjective", "Pairwise"]

BUILTIN_OBJECTIVES: tuple[type[AbstractObjective], ...] = (Pairwise,)
