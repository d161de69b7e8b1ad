"""Names from the literature, each for one composition."""

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["PRESETS"]

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
