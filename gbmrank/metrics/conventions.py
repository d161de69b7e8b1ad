"""Conventions of other tools, so that their metric values can be reproduced.

"NDCG@10" is not one number: tools differ in gain, ties, undefined queries, divisors and the
precision in which they compare scores. Found with LightGBM 4.7, XGBoost 3.2, scikit-learn
1.9, trec_eval (pytrec_eval 0.5) and CatBoost 1.2:

=============  ===========  ==========  ============  ============  =========
what           lightgbm     xgboost     sklearn       trec_eval     catboost
=============  ===========  ==========  ============  ============  =========
ties           row order    row order   mean          document id   worst
scores         float64      float32     float64       float64       float64
gain           2^y - 1      2^y - 1     y             y             y
empty NDCG     one          one         zero          zero          one
empty AP       one          one         zero          zero          zero
empty RR       no RR        no RR       no RR         zero          zero
empty recall   no recall    no recall   no recall@k   zero          one
divisor of AP  min(P, k)    min(P, k)   P             P             min(P, k)
divisor of P   no P         min(k, n)   no P@k        k             min(k, n)
relevant       y > 0.5      labels 0/1  labels 0/1    y >= 1        y > 0.5
no cut-off     always one   32          all ranks     all ranks     all ranks
=============  ===========  ==========  ============  ============  =========

trec_eval orders ties by decreasing document id. Here that is the order of the rows
(``ties="index"``), so sort the rows by id first, as ``gbmrank evaluate`` does. In
scikit-learn's ``average_precision_score`` tied items are one step (``ties="block"``).
LightGBM and XGBoost ignore the weight of a query without a relevant item and count it with
weight 1; where the weights of its rows differ, LightGBM takes their mean. Neither is reproduced.
Without a cut-off XGBoost uses 32, the default of its ``lambdarank_num_pair_per_sample``.
:func:`withhold` handles documents that were judged
relevant but not retrieved.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.errors import MetricError
from gbmrank.metrics.base import AbstractBoundMetric, AbstractMetric, BoundKernel
from gbmrank.metrics.positional import AUC, DCG, NDCG, AbstractPositional, Precision, Recall
from gbmrank.metrics.precision import ERR, MAP, MRR, HitRate, PTop, RPrecision
from gbmrank.types import IntArray

Fields = Mapping[str, Any]

_ABOVE_HALF = 0.5000000000000001  # "greater than 0.5", expressed as "at least"

_LIGHTGBM: Mapping[type[AbstractMetric], Fields] = {
    NDCG: {"gain": "exp2", "ties": "index", "empty": "one"},
    MAP: {"ties": "index", "empty": "one", "denominator": "min", "threshold": _ABOVE_HALF},
}
_XGBOOST: Mapping[type[AbstractMetric], Fields] = {
    NDCG: {"gain": "exp2", "ties": "index", "empty": "one", "dtype": "float32", "k": 32},
    MAP: {"ties": "index", "empty": "one", "denominator": "min", "dtype": "float32", "k": 32},
    Precision: {"ties": "index", "divisor": "min", "dtype": "float32", "k": 32},
}
_SKLEARN: Mapping[type[AbstractMetric], Fields] = {
    DCG: {"gain": "linear", "ties": "mean"},
    NDCG: {"gain": "linear", "ties": "mean", "empty": "zero"},
    AUC: {"ties": "mean", "empty": "skip"},
    MAP: {"ties": "block", "empty": "zero", "denominator": "relevant"},
}
_TREC_EVAL: Mapping[type[AbstractMetric], Fields] = {
    NDCG: {"gain": "linear", "ties": "index", "empty": "zero"},
    MAP: {"ties": "index", "empty": "zero", "denominator": "relevant", "threshold": 1.0},
    MRR: {"ties": "index", "empty": "zero", "threshold": 1.0},
    HitRate: {"ties": "index", "empty": "zero", "threshold": 1.0},
    RPrecision: {"ties": "index", "empty": "zero", "threshold": 1.0},
    Precision: {"ties": "index", "divisor": "k", "threshold": 1.0},
    Recall: {"ties": "index", "empty": "zero", "threshold": 1.0},
}
_CATBOOST: Mapping[type[AbstractMetric], Fields] = {
    DCG: {"gain": "linear", "ties": "worst"},
    NDCG: {"gain": "linear", "ties": "worst", "empty": "one"},
    AUC: {"ties": "mean", "empty": "zero"},
    MAP: {"ties": "worst", "empty": "zero", "denominator": "min", "threshold": _ABOVE_HALF},
    MRR: {"ties": "worst", "empty": "zero", "threshold": _ABOVE_HALF},
    Precision: {"ties": "worst", "divisor": "min", "threshold": _ABOVE_HALF},
    Recall: {"ties": "worst", "empty": "one", "threshold": _ABOVE_HALF},
}

TOOLS: Mapping[str, Mapping[type[AbstractMetric], Fields]] = {
    "lightgbm": _LIGHTGBM,
    "xgboost": _XGBOOST,
    "sklearn": _SKLEARN,
    "trec_eval": _TREC_EVAL,
    "catboost": _CATBOOST,
}
"""The conventions of each tool, by metric; see the table above."""


def conventions(metric: type[AbstractMetric], like: str) -> dict[str, Any]:
    """Return the field values with which a metric reproduces the value of another tool.

    Fields that the caller sets should override these. Raises MetricError for a metric that the
    tool does not have or defines differently (XGBoost's ranking AUC is 1/3 for three items with
    equal labels, where this one is undefined; CatBoost's ERR takes the label as the stopping
    probability).
    """
    if like not in TOOLS:
        raise MetricError(f"like must be one of {', '.join(TOOLS)}; got {like!r}")
    known = TOOLS[like]
    if metric not in known:
        raise MetricError(
            f"{metric.name}: {like} does not have this metric, or defines it differently; "
            f"like={like!r} supports {', '.join(each.name for each in known)}. Leave out like= "
            "and set ties, empty and the other options yourself"
        )
    return dict(known[metric])


def withhold(
    measure: AbstractMetric,
    bound: AbstractBoundMetric,
    hidden: npt.NDArray[np.bool_],
    ranked_rows: IntArray,
) -> None:
    """Remove the credit of rows that were not retrieved.

    Their value is set to zero in metrics that go down the list (positional metrics with a rank
    discount, AP, RR, ERR, hit rate, R-precision, positives at the top), while they still count in
    the number of relevant documents and in the ideal. For metrics of the whole order (AUC,
    Spearman, disagreement) they are tied at the end. ``bound`` is modified in place; ``hidden``
    marks the rows, and ``ranked_rows`` counts the other rows of each query.
    """
    if not isinstance(bound, BoundKernel):
        raise MetricError(
            f"{measure.name} does not support documents that were judged but not retrieved; "
            "leave it out"
        )
    if isinstance(measure, AbstractPositional) and not measure.upwards:
        of_sizes = measure.divisors(bound.groups.sizes)
        own = bound.items.divisor / of_sizes  # one of the two is 1
        divisor = own * measure.divisors(np.maximum(ranked_rows, 1))
        bound.items = bound.items._replace(divisor=divisor)
    elif not isinstance(measure, MAP | MRR | ERR | PTop | HitRate | RPrecision):
        return
    values = bound.items.values
    bound.items = bound.items._replace(values=np.where(hidden & ~np.isnan(values), 0.0, values))
