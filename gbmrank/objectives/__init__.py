"""Objectives: what is summed over which items or pairs of a query.

Names from the literature, each for one composition.
"""

from collections.abc import Mapping
from types import MappingProxyType

from gbmrank.objectives.base import (
    AbstractBound,
    AbstractObjective,
    Mix,
    held_preferences,
    with_groups,
)
from gbmrank.objectives.bregman import Bregman
from gbmrank.objectives.levels import Bipartite, Comparison
from gbmrank.objectives.listmle import ListMLE
from gbmrank.objectives.pairwise import Pairwise
from gbmrank.objectives.pointwise import Pointwise
from gbmrank.objectives.push import Push
from gbmrank.objectives.value_linear import Linear

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


PRESETS: Mapping[str, str] = MappingProxyType(
    {
        "ranknet": "comparison(loss=logistic)",
        "ranksvm": "comparison(loss=hinge)",
        "ranksvm_squared": "comparison(loss=squared_hinge)",
        "rankboost": "comparison(loss=exponential)",
        "w_ranknet": "comparison(loss=logistic, weights=gain_discount)",
        "w_listmle": "listmle(weights=gain_discount)",
        "cossock_zhang": "pointwise(loss=squared, target=dcg)",
        "duchi_linear": "linear",
        "pnorm_push": "push(loss=exponential, p=4)",
        "p_classification": "pointwise(loss=p_classification, target=identity, eta=1)",
        "asymmetric_a": "pointwise(loss=asymmetric_a, target=identity, eta=1)",
        "asymmetric_b": "pointwise(loss=asymmetric_b, target=identity, eta=1)",
        "map_diagonal": "pointwise(loss=squared, target=map)",
        "softmax": "bregman(loss=softmax_ce)",
        "listnet": "bregman(loss=softmax)",
    }
)


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
