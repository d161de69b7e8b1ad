"""Presets of other tools; CatBoost's are literal numbers its 1.2.10 gave."""

import math
from dataclasses import fields

import numpy as np
import pytest

from gbmrank.data import RankingData
from gbmrank.errors import MetricError
from gbmrank.metrics import (
    AUC,
    BUILTIN_METRICS,
    DCG,
    ERR,
    MAP,
    MRR,
    NDCG,
    TOOLS,
    AbstractMetric,
    Precision,
    Ranked,
    Recall,
    conventions,
)

# catboost.utils.eval_metric for labels 1 0 1 0 1 and scores 1 5 4 3 2.
Case = tuple[type[AbstractMetric], int | None, float]
CATBOOST: list[Case] = [
    (NDCG, 2, (1 / math.log2(3)) / (1 + 1 / math.log2(3))),
    (DCG, 3, 0.6309297535714574),
    (MAP, 2, 0.25),
    (MAP, None, 0.5333333333333333),
    (MRR, 2, 0.5),
    (Precision, 2, 0.5),
    (Precision, 10, 0.6),
    (Recall, 2, 1 / 3),
    (AUC, None, 1 / 6),
]
# The same for three tied items of which one is relevant, and for three irrelevant ones.
CATBOOST_TIED: list[Case] = [(NDCG, 2, 0.0), (DCG, 3, 0.5), (MAP, None, 1 / 3), (MRR, None, 1 / 3)]
CATBOOST_TIED += [(Precision, 2, 0.0), (Precision, 10, 1 / 3), (Recall, 2, 0.0), (AUC, None, 0.5)]
CATBOOST_EMPTY: list[Case] = [(NDCG, 2, 1.0), (DCG, 3, 0.0), (MAP, 2, 0.0), (MRR, 2, 0.0)]
CATBOOST_EMPTY += [(Precision, 2, 0.0), (Recall, 2, 1.0), (AUC, None, 0.0)]


def catboost_value(
    metric: type[AbstractMetric], k: int | None, labels: list[float], scores: list[float]
) -> float:
    given = {} if k is None else {"k": k}
    data = RankingData.from_arrays(labels)
    bound = metric(**{**conventions(metric, "catboost"), **given}).bind(data)
    return bound.score(Ranked(np.array(scores, float), data.groups))


@pytest.mark.parametrize(("metric", "k", "want"), CATBOOST)
def test_as_in_catboost(metric: type[AbstractMetric], k: int | None, want: float):
    got = catboost_value(metric, k, [1, 0, 1, 0, 1], [1, 5, 4, 3, 2])
    assert got == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize(("metric", "k", "want"), CATBOOST_TIED)
@pytest.mark.parametrize("labels", [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
def test_tied_as_in_catboost(
    metric: type[AbstractMetric], k: int | None, want: float, labels: list[float]
):
    assert catboost_value(metric, k, labels, [0, 0, 0]) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize(("metric", "k", "want"), CATBOOST_EMPTY)
def test_empty_as_in_catboost(metric: type[AbstractMetric], k: int | None, want: float):
    assert catboost_value(metric, k, [0, 0, 0], [3, 2, 1]) == want


def test_relevant_is_above_one_half():
    assert catboost_value(MAP, None, [0.5, 0.6, 0.0], [3, 2, 1]) == 0.5


@pytest.mark.parametrize("tool", TOOLS)
def test_presets_are_fields_of_their_metrics(tool: str):
    for metric in TOOLS[tool]:
        given = conventions(metric, tool)
        assert set(given) <= {field.name for field in fields(metric)}
        assert metric(**given).name == metric.name


def test_presets_cannot_be_changed_through_the_answer():
    conventions(NDCG, "sklearn")["gain"] = "exp2"
    assert conventions(NDCG, "sklearn")["gain"] == "linear"


def test_unknown_tool():
    with pytest.raises(MetricError, match=r"lightgbm, xgboost.*'solr'"):
        conventions(NDCG, "solr")


@pytest.mark.parametrize("tool", TOOLS)
def test_metric_a_tool_does_not_have(tool: str):
    with pytest.raises(MetricError, match=f"err: {tool}.*ndcg"):
        conventions(ERR, tool)


def test_every_preset_is_for_a_builtin_metric():
    assert {metric for known in TOOLS.values() for metric in known} <= set(BUILTIN_METRICS)
