"""Objectives: what is summed over which items or pairs of a query."""

from gbmrank.objectives.base import AbstractBound, AbstractObjective
from gbmrank.objectives.bregman import Bregman
from gbmrank.objectives.levels import Bipartite, Comparison
from gbmrank.objectives.linear import Linear
from gbmrank.objectives.listmle import ListMLE
from gbmrank.objectives.mix import Mix, held_preferences, with_groups
from gbmrank.objectives.pairwise import Pairwise
from gbmrank.objectives.pointwise import Pointwise
from gbmrank.objectives.presets import PRESETS
from gbmrank.objectives.push import Push

__all__ = [
    "BUILTIN_OBJECTIVES",
    "PRESETS",
    "AbstractBound",
    "AbstractObjective",
    "Bipartite",
    "Bregman",
    "Comparison",
    "Linear",
    "ListMLE",
    "Mix",
    "Pairwise",
    "Pointwise",
    "Push",
    "held_preferences",
    "with_groups",
]

BUILTIN_OBJECTIVES: tuple[type[AbstractObjective], ...] = (
    Pointwise,
    Pairwise,
    Comparison,
    Bipartite,
    Push,
    Linear,
    Bregman,
    ListMLE,
    Mix,
)
