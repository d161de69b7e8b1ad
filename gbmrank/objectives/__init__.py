"""Objectives: sums of a loss over the items or pairs of a query.

``PRESETS`` maps names from the literature to compositions.
"""

from collections.abc import Mapping
from types import MappingProxyType

from gbmrank.objectives.base import (
    AbstractBound,
    AbstractObjective,
    Mix,
    check_takes_bias,
    held_preferences,
    with_preferences,
)
from gbmrank.objectives.bregman import Bregman
from gbmrank.objectives.calibrated import CalibratedSoftmax, SigmoidSoftmax
from gbmrank.objectives.levels import Bipartite, Comparison
from gbmrank.objectives.listmle import ListMLE
from gbmrank.objectives.pairwise import Pairwise, QueryRMSE
from gbmrank.objectives.pointwise import Pointwise
from gbmrank.objectives.push import Push
from gbmrank.objectives.swap import Swap
from gbmrank.objectives.value_linear import Linear

__all__ = [
    "BUILTIN_OBJECTIVES",
    "CUT_PRESETS",
    "PRESETS",
    "AbstractBound",
    "AbstractObjective",
    "Bipartite",
    "Bregman",
    "CalibratedSoftmax",
    "Comparison",
    "Linear",
    "ListMLE",
    "Mix",
    "Pairwise",
    "Pointwise",
    "Push",
    "QueryRMSE",
    "SigmoidSoftmax",
    "Swap",
    "check_takes_bias",
    "held_preferences",
    "with_preferences",
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
        "rcr": "mix(pointwise(loss=logistic, target=identity, eta=1), sigmoid_softmax)",
        "lambdarank": "swap(metric=ndcg)",
        "ndcg_loss2": "swap(metric=ndcg, weights=distance)",
        "ndcg_loss2pp": "swap(metric=ndcg, weights=both)",
        "yetirank": "swap(metric=rbp(p=0.85), pairs=neighbours, noise=logistic)",
    }
)

# Compositions of presets with a cut-off, such as lambdarank@30: the ideal DCG and the truncation
# are at k, and every rank keeps its discount.
_CUT = "swap(metric=positional(utility=ndcg@{k}), truncation={k}"
CUT_PRESETS: Mapping[str, str] = MappingProxyType(
    {
        "lambdarank": f"{_CUT})",
        "ndcg_loss2": f"{_CUT}, weights=distance)",
        "ndcg_loss2pp": f"{_CUT}, weights=both)",
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
    Swap,
    QueryRMSE,
    SigmoidSoftmax,
    CalibratedSoftmax,
    Mix,
)
