"""Names of metrics as other tools write them, and ``like=``."""

import numpy as np
import pytest

import gbmrank
from gbmrank.errors import MetricError, ParameterError, UnknownNameError
from gbmrank.metrics import TOOLS, conventions

LABELS = [2.0, 0.0, 1.0, 0.0, 0.0]
SCORES = [1.0, 1.0, 0.5, 3.0, 2.0]
SIZES = [3, 2]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("nDCG@10", "ndcg@10"),
        ("NDCG@10", "ndcg@10"),
        ("ndcg_cut_10", "ndcg@10"),
        ("ndcg_cut.10", "ndcg@10"),
        ("ndcg_at_10", "ndcg@10"),
        ("P@5", "precision@5"),
        ("P_5", "precision@5"),
        ("MAP", "map"),
        ("AP", "map"),
        ("map_cut.10", "map@10"),
        ("map_cut_1000", "map@1000"),
        ("ERR@20", "err@20"),
        ("err(max_grade=2)@20", "err(max_grade=2)@20"),
        ("recall_100", "recall@100"),
        ("RR@10", "mrr@10"),
        ("recip_rank", "mrr"),
        ("P_5(threshold=1)", "precision(threshold=1)@5"),
        ("ndcg_cut_5, P_10, AP", "ndcg@5, precision@10, map"),
    ],
)
def test_one_canonical_form(text, canonical):
    assert str(gbmrank.metric(text)) == canonical
    assert gbmrank.metric(canonical) == gbmrank.metric(text)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("P_0", MetricError, "the cut-off k must be a whole number of at least 1"),
        ("ndcg_10@5", UnknownNameError, "no metric is called 'ndcg_10'; did you mean 'ndcg@10'"),
        ("ndcg10", UnknownNameError, "did you mean 'ndcg@10'"),
        ("P5", UnknownNameError, "did you mean 'p@5'"),
        ("nonsense_10", UnknownNameError, "no metric is called 'nonsense_10'"),
        ("auc_10", ParameterError, "auc takes no cut-off"),
    ],
)
def test_spellings_that_mean_nothing(text, error, message):
    with pytest.raises(error, match=message):
        gbmrank.metric(text)


@pytest.mark.parametrize("tool", TOOLS)
def test_like_sets_the_conventions_of_a_tool(tool):
    for cls in TOOLS[tool]:
        made = gbmrank.metric(f"{cls.name}", like=tool)
        for key, value in conventions(cls, tool).items():
            assert getattr(made.measure, key) == value


def test_what_is_stated_wins_over_like():
    made = gbmrank.metric("ndcg(ties=best)@3", like="xgboost", empty="zero")
    assert made == gbmrank.metric("ndcg@3", ties="best", empty="zero", dtype="float32")
    assert gbmrank.metric("ndcg", like="xgboost").measure.k == 32
    assert gbmrank.metric("ndcg", k=7, like="xgboost").measure.k == 7
    assert gbmrank.metric(gbmrank.metric("map(ties=best)@3"), like="catboost") == gbmrank.metric(
        "map@3", ties="best", empty="zero", denominator="min", threshold=np.nextafter(0.5, 1)
    )


def test_like_reaches_every_metric_of_a_list():
    made = gbmrank.metric(["ndcg@1,5", "AP"], like="trec_eval")
    assert [item.measure.ties for item in made] == ["index"] * 3
    assert str(made) == str(gbmrank.metric("ndcg@1,5, map", like="trec_eval"))


def test_like_with_an_unknown_tool_or_metric():
    with pytest.raises(MetricError, match=r"like must be one of lightgbm.*got 'solr'"):
        gbmrank.metric("ndcg", like="solr")
    with pytest.raises(MetricError, match="err: sklearn does not have this metric"):
        gbmrank.metric("ndcg, err", like="sklearn")


def test_metrics_callback_is_a_metric_list():
    made = gbmrank.metrics_callback(["ndcg@10", "err"])
    assert made == gbmrank.metric("ndcg@10, err")
    assert made.score(LABELS, SCORES, group=SIZES) == gbmrank.metric("ndcg@10, err").score(
        LABELS, SCORES, group=SIZES
    )
    one = gbmrank.metrics_callback("ndcg@10", like="lightgbm")
    assert isinstance(one, gbmrank.MetricList)
    assert list(one) == [gbmrank.metric("ndcg@10", like="lightgbm")]
