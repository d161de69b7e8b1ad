"""Undefined queries, rejected input, weights, and queries of a million tied items."""

import copy
import math
import pickle
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest

import gbmrank
from gbmrank.data import RankingData
from gbmrank.errors import (
    DataError,
    LabelRangeError,
    MetricError,
    ParameterError,
    PluginContractError,
    WeightError,
)
from gbmrank.losses.utilities import IdentityUtility
from gbmrank.metrics import (
    AUC,
    BUILTIN_METRICS,
    DCG,
    ERR,
    ERU,
    MAP,
    MRR,
    NDCG,
    WTA,
    AbstractMetric,
    AlphaNDCG,
    PairwiseDisagreement,
    Positional,
    Precision,
    PTop,
    Ranked,
    Recall,
    Spearman,
    mean_over_queries,
)
from gbmrank.metrics.positional import AbstractPositional

NAN = math.nan

METRICS = [metric for metric in BUILTIN_METRICS if metric is not AlphaNDCG]  # it needs subtopics


def value(metric: AbstractMetric, labels: object, scores: object) -> float:
    data = RankingData.from_arrays(labels)
    return float(metric.bind(data).per_query(Ranked(data.read_scores(scores), data.groups))[0])


# Values of: one irrelevant item, one relevant item, three irrelevant, three relevant ones.
EDGES: list[tuple[AbstractMetric, tuple[float, float, float, float]]] = [
    (DCG(k=1), (0, 1, 0, 1)),
    (NDCG(), (NAN, 1, NAN, 1)),
    (NDCG(k=10), (NAN, 1, NAN, 1)),
    (Precision(k=5), (0, 0.2, 0, 0.6)),
    (Precision(k=5, divisor="min"), (0, 1, 0, 1)),
    (Recall(k=1), (NAN, 1, NAN, 1 / 3)),
    (WTA(), (0, 1, 0, 1)),
    (AUC(), (NAN, NAN, NAN, NAN)),
    (Spearman(), (NAN, NAN, 0, 0)),
    (ERU(half_life=2), (0, 1, 0, 1.75)),
    (ERU(normalize=True), (NAN, 1, NAN, 1)),
    (ERR(max_grade=1, k=1), (0, 0.5, 0, 0.5)),
    (MAP(), (NAN, 1, NAN, 1)),
    (MAP(k=1), (NAN, 1, NAN, 1 / 3)),
    (MAP(k=1, denominator="min"), (NAN, 1, NAN, 1)),
    (MRR(), (NAN, 1, NAN, 1)),
    (PTop(), (0, 1, 0, 3)),
    (PTop(normalize=True), (NAN, 1, NAN, 1)),
    (PairwiseDisagreement(), (NAN, NAN, NAN, NAN)),
    (PairwiseDisagreement(normalize=False), (0, 0, 0, 0)),
]


@pytest.mark.parametrize(("metric", "want"), EDGES, ids=[str(metric) for metric, _ in EDGES])
@pytest.mark.parametrize("ties", ["mean", "best", "worst", "index"])
def test_one_item_and_equal_labels(
    metric: AbstractMetric, want: tuple[float, float, float, float], ties: str
):
    metric = replace(metric, ties=ties)
    got = [value(metric, [0], [1]), value(metric, [1], [1])]
    got += [value(metric, [0, 0, 0], [1, 2, 2]), value(metric, [1, 1, 1], [1, 2, 2])]
    assert got == pytest.approx(list(want), rel=1e-12, abs=1e-15, nan_ok=True)


@pytest.mark.parametrize("k", [0, -1, 2.5, "3", True])
@pytest.mark.parametrize("metric", [DCG, NDCG, Precision, Recall, ERR, MAP, MRR, Positional])
def test_bad_cutoffs(metric: Any, k: object):
    with pytest.raises(MetricError, match=f"{metric.name}: .*got {k!r}"):
        metric(k=k)


@pytest.mark.parametrize("metric", METRICS)
def test_bad_choices(metric: type):
    with pytest.raises(MetricError, match=r"ties.*mean, worst.*'random'"):
        metric(ties="random")
    with pytest.raises(MetricError, match=r"empty.*skip, zero, one.*'nan'"):
        metric(empty="nan")
    with pytest.raises(MetricError, match=r"dtype.*float64, float32.*'int8'"):
        metric(dtype="int8")


def test_bad_parameters():
    with pytest.raises(MetricError, match=r"max_grade.*got 0"):
        ERR(max_grade=0)
    with pytest.raises(MetricError, match=r"denominator.*relevant, min.*'k'"):
        MAP(denominator="k")
    with pytest.raises(MetricError, match=r"divisor.*k, min.*'n'"):
        Precision(divisor="n")
    with pytest.raises(ParameterError, match=r"half_life.*got 1"):
        ERU(half_life=1)
    with pytest.raises(ParameterError, match=r"'exp3'.*'exp2'"):
        NDCG(gain="exp3")
    with pytest.raises(MetricError, match=r"discount.*log2, reciprocal, constant"):
        Positional(discount="log10")
    with pytest.raises(MetricError, match=r"discount.*got 3"):
        Positional(discount=3)  # type: ignore[arg-type]
    with pytest.raises(MetricError, match=r"discount.*got \(\)"):
        Positional(discount=())


@pytest.mark.parametrize("metric", [Precision, Recall, WTA, AUC, MAP, MRR, PTop])
def test_graded_labels_need_a_threshold(metric: type):
    with pytest.raises(DataError, match=r"got 2.*threshold=1"):
        value(metric(), [2, 0], [1, 0])
    graded = value(metric(threshold=2), [2, 1, 0], [1, 3, 2])
    assert graded == value(metric(), [1, 0, 0], [1, 3, 2])
    assert value(metric(), [1, -1], [1, 0]) == value(metric(), [1, 0], [1, 0])


def test_labels_outside_the_scale():
    with pytest.raises(LabelRangeError, match=r"max_grade=4.*got 5 in query 0"):
        value(ERR(), [0, 5], [1, 0])
    with pytest.raises(LabelRangeError, match="got -1 in query 0"):
        value(ERR(), [0, -1], [1, 0])
    with pytest.raises(LabelRangeError, match=r"0 to 31.*gain='linear'"):
        value(NDCG(), [32, 0], [1, 0])
    with pytest.raises(LabelRangeError, match="not negative"):
        value(DCG(), [-1, 0], [1, 0])


def test_err_does_not_read_the_largest_grade_from_the_data():
    assert value(ERR(), [1], [0]) == 1 / 16
    assert value(ERR(max_grade=1), [1], [0]) == 1 / 2


@pytest.mark.parametrize("discount", [(1.0, 2.0), (-1.0,), (1.0, NAN), lambda k: k])
def test_a_discount_must_not_increase(discount: object):
    with pytest.raises(MetricError, match="discount"):
        Positional(discount=discount)  # type: ignore[arg-type]


def test_a_discount_that_increases_at_a_late_rank_is_rejected_where_lists_are_that_long():
    metric = Positional(discount=lambda k: np.where(k == 1500, 2.0, 1.0 / k))
    assert value(metric, [1, 0], [2, 1]) == 1.0
    with pytest.raises(MetricError, match="2 at rank 1500"):
        value(metric, np.ones(1500), np.zeros(1500))


def test_own_measures():
    labels, scores = [3.0, 1.0, 2.0], [1.0, 1.0, 0.0]
    table = Positional(utility=IdentityUtility(), discount=[1.0, 0.5])  # type: ignore[arg-type]
    assert value(table, labels, scores) == 0.75 * 4
    function = Positional(utility=IdentityUtility(), discount=lambda k: 0.5 ** (k - 1))
    assert value(function, labels, scores) == 0.75 * 4 + 0.25 * 2
    assert value(Positional(k=2), labels, scores) == value(DCG(k=2), labels, scores)
    constant = Positional(utility=IdentityUtility(), discount="constant", k=1)
    assert value(constant, labels, scores) == 2.0


@pytest.mark.parametrize("metric", [DCG(), AUC(), Spearman(), Precision(k=2), ERU()])
def test_positional_parts_add_up(metric: AbstractMetric):
    data = RankingData.from_arrays([1, 0, 1, 0])
    scores = np.array([4.0, 3.0, 2.0, 1.0])
    parts = metric.offsets(data)[0] + metric.discounts(4) @ metric.utilities(data)  # type: ignore[attr-defined]
    assert value(metric, data.labels, scores) == pytest.approx(parts, rel=1e-14)


def test_large_labels_do_not_overflow():
    labels = np.arange(32.0)
    assert value(NDCG(), labels, labels) == pytest.approx(1.0, rel=1e-14)
    assert value(DCG(k=1), labels, labels) == 2.0**31 - 1
    assert value(ERR(max_grade=31, k=1), labels, labels) == (2.0**31 - 1) / 2**31
    assert value(PairwiseDisagreement(), 1e15 + labels, -labels) == 1.0


def test_means_over_queries():
    values, weight = np.array([1.0, NAN, 0.0]), np.array([1.0, 5.0, 3.0])
    assert mean_over_queries(values, None, "skip") == 0.5
    assert mean_over_queries(values, None, "one") == 2 / 3
    assert mean_over_queries(values, weight, "skip") == 0.25
    assert mean_over_queries(values, weight, "zero") == 1 / 9
    assert math.isnan(mean_over_queries(np.array([NAN]), None, "skip"))
    assert math.isnan(mean_over_queries(np.array([NAN, 1.0]), np.array([1.0, 0.0]), "skip"))


def test_query_weights():
    labels, scores = [1, 0, 1, 0], np.array([2.0, 1.0, 1.0, 2.0])
    for weight in ([1, 3], [1, 1, 3, 3]):
        data = RankingData.from_arrays(labels, group=[2, 2], weight=weight)
        got = MRR().bind(data).score(Ranked(scores, data.groups))
        assert got == (1 * 1 + 3 * 0.5) / 4
    uneven = RankingData.from_arrays(labels, group=[2, 2], weight=[1, 2, 3, 3])
    with pytest.raises(WeightError, match="query 0 have different weights"):
        MRR().bind(uneven)


def test_no_rows():
    data = RankingData.from_arrays([])
    for metric in METRICS:
        bound = metric().bind(data)
        assert len(bound.per_query(Ranked(np.zeros(0), data.groups))) == 0


@pytest.mark.parametrize("metric", METRICS)
def test_metrics_are_values(metric: type):
    one, other = metric(ties="worst"), metric(ties="worst")
    assert one == other
    assert hash(one) == hash(other)
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301  (made on the line itself)
    assert copy.deepcopy(one) == one
    assert metric() != one


def test_gain_tables_may_be_lists():
    assert NDCG(gain=[0, 1, 3]) == NDCG(gain=(0, 1, 3))  # type: ignore[arg-type]


def test_no_change_under_shuffled_rows():
    rng = np.random.default_rng(11)
    labels, scores = rng.integers(0, 2, 50), rng.integers(0, 5, 50)
    shuffle = rng.permutation(50)
    for metric in METRICS:
        shuffled = value(metric(), labels[shuffle], scores[shuffle])
        assert shuffled == pytest.approx(value(metric(), labels, scores), rel=1e-12)


@pytest.mark.parametrize("k", [2, 9, None])
@pytest.mark.parametrize("metric", METRICS)
def test_a_query_ends_with_its_last_item(metric: Any, k: int | None):
    """A cut-off beyond a short query does not reach into the next one."""
    made = metric(k=k) if k is not None and hasattr(metric, "k") else metric()
    labels = np.array([1.0, 1, 1, 0, 1, 1, 1, 0, 0])
    scores = np.array([1.0, 0, 1, 0, 5, 4, 3, 2, 2])
    sizes = (2, 2, 4, 1)
    data = RankingData.from_arrays(labels, group=sizes)
    found = made.bind(data).per_query(Ranked(scores, data.groups))
    ends = np.cumsum((0, *sizes))
    alone = [value(made, labels[a:b], scores[a:b]) for a, b in pairwise(ends)]
    assert found.tolist() == pytest.approx(alone, rel=1e-14, nan_ok=True)


MILLION = 1_000_000
LONG: list[tuple[AbstractMetric, float]] = [
    (NDCG(k=10), NAN),
    (DCG(), NAN),
    (Precision(k=10), 0.25),
    (Recall(k=10), 1e-5),
    (WTA(), 0.25),
    (AUC(), 0.5),
    (Spearman(), 0.0),
    (ERU(), NAN),
    (MRR(), math.log(4) / 3),  # sum of p (1-p)^(j-1) / j with p = 1/4
    (PTop(), 1 / 3),
    (MAP(), NAN),
    (PairwiseDisagreement(), 0.5),
    (ERR(), NAN),
    (ERR(max_grade=31), NAN),
    (Positional(), NAN),
]


@pytest.mark.compiled
@pytest.mark.parametrize(("metric", "want"), LONG, ids=[str(metric) for metric, _ in LONG])
def test_a_million_tied_items(metric: AbstractMetric, want: float):
    labels = (np.arange(MILLION) % 4 == 0).astype(float)
    data = RankingData.from_arrays(labels)
    bound = metric.bind(data)
    bound.per_query(Ranked(np.zeros(MILLION), data.groups))
    start = time.perf_counter()
    got = bound.per_query(Ranked(np.zeros(MILLION), data.groups))[0]
    assert time.perf_counter() - start < 2.0
    assert np.isfinite(got)
    if not math.isnan(want):
        assert got == pytest.approx(want, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("few", [0.0, 1.0])
@pytest.mark.parametrize(
    ("n", "rare"), [(1000, 1), (1000, 7), (100_000, 1), (MILLION, 1), (MILLION, 10)]
)
@pytest.mark.compiled
def test_auc_keeps_its_digits_where_one_class_is_rare(n: int, rare: int, few: float):
    rng = np.random.default_rng(0)
    labels, at = np.full(n, 1.0 - few), rng.permutation(n)[:rare]
    labels[at] = few
    auc = gbmrank.metric("auc")
    assert auc.score(labels, np.zeros(n), group=[n]) == pytest.approx(0.5, rel=1e-14)
    assert auc.score(labels, labels, group=[n]) == pytest.approx(1.0, rel=1e-14)
    assert auc.score(labels, -labels, group=[n]) == pytest.approx(0.0, abs=1e-14)
    scores = rng.permutation(n).astype(float)
    below = [np.sum((labels != few) & (scores < scores[one])) / (n - rare) for one in at]
    want = np.mean(below) if few else 1.0 - np.mean(below)
    assert auc.score(labels, scores, group=[n]) == pytest.approx(want, rel=1e-12)


@pytest.mark.compiled
def test_sums_over_a_million_items_keep_their_digits():
    labels = (np.arange(MILLION) % 3 == 0).astype(float)
    recall = gbmrank.metric("recall")
    assert recall.score(labels, np.zeros(MILLION), group=[MILLION]) == pytest.approx(1.0, rel=1e-14)
    scores = np.random.default_rng(1).permutation(MILLION).astype(float)
    assert recall.score(labels, scores, group=[MILLION]) == pytest.approx(1.0, rel=1e-13)


def stopping_by_recurrence(stops: np.ndarray) -> float:
    """ERR of one tied block from the mean products of 1 - R over subsets, all of them."""
    products = np.array([1.0])
    for m, stop in enumerate(stops):
        k = np.arange(m + 2)
        longer, shifted = np.append(products, 0.0), np.insert(products, 0, 0.0)
        products = ((m + 1 - k) * longer + k * (1 - stop) * shifted) / (m + 1)
    return float(np.sum(-np.diff(products) / np.arange(1, len(stops) + 1)))


@pytest.mark.parametrize(
    ("max_grade", "share"),
    [(4, [0.5, 0.3, 0.1, 0.05, 0.05]), (4, [0.999, 0.001]), (31, [0.2, 0.8]), (10, [0, 0.5, 0.5])],
)
@pytest.mark.parametrize("above", [0, 3])
@pytest.mark.compiled
def test_long_tied_blocks_of_grades(max_grade: int, share: list[float], above: int):
    n = 3000
    labels = np.random.default_rng(1).choice(len(share), n, p=share).astype(float)
    stops = (2**labels - 1) / 2**max_grade
    scores = np.concatenate([np.ones(above), np.zeros(n)])
    data = RankingData.from_arrays(np.concatenate([np.zeros(above), labels]))
    got = ERR(max_grade=max_grade).bind(data).score(Ranked(scores, data.groups))
    if above == 0:
        assert got == pytest.approx(stopping_by_recurrence(stops), rel=1e-12)
    cut = ERR(max_grade=max_grade, k=n + above - 1).bind(data).score(Ranked(scores, data.groups))
    assert cut == pytest.approx(got, rel=1e-3)
    assert cut <= got * (1 + 1e-12)


def test_a_discount_whose_sums_overflow_is_rejected():
    with pytest.raises(MetricError, match=r"1e\+150 is the largest that is taken"):
        Positional(discount=(1e308, 1e308))
    assert Positional(discount=(1e150,)).rank_discounts(2).tolist() == [1e150, 0.0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed(AbstractPositional):
    """Utilities and discounts of functions."""

    worth: Any = None
    table: Any = None
    name: ClassVar[str] = "computed"

    def utilities(self, data):
        return data.labels if self.worth is None else self.worth(data.labels)

    def rank_discounts(self, n):
        return np.ones(n) if self.table is None else self.table(n)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"worth": lambda y: y[:-1]}, "utilities of computed must be 4 real numbers"),
        ({"worth": lambda y: np.empty(0)}, "utilities of computed must be 4 real numbers"),
        ({"worth": lambda y: None}, "got NoneType"),
        ({"table": lambda n: np.ones(n - 1)}, "rank_discounts of computed must be 4 real numbers"),
        ({"table": lambda n: 1.0}, "got float"),
    ],
)
def test_metrics_of_others_give_as_many_numbers_as_there_are_rows_and_ranks(parts, message):
    with pytest.raises(PluginContractError, match=message):
        gbmrank.metric(Computed(**parts)).score([0, 1, 2, 1], [0.1, 0.2, 0.3, 0.4])


def test_ranks_after_a_discount_of_zero_count():
    table = np.array([0.0, 1.0, 0.0, 0.5])
    value = gbmrank.metric(Computed(table=lambda n: table[:n])).score([3, 5, 7, 4], [4, 3, 2, 1])
    assert value == 5 + 0.5 * 4


def test_a_function_as_gain_is_the_table_of_its_values() -> None:
    labels, scores = np.array([0.0, 3.0, 1.0, 2.0, 1.0]), np.array([0.3, 0.1, 0.5, 0.5, 0.2])
    table = [float(y) ** 2 for y in range(4)]
    for name in ("dcg@3", "ndcg"):
        function = gbmrank.metric(name, gain=np.square)
        by_table = gbmrank.metric(name, gain=table)
        assert function.score(labels, scores) == by_table.score(labels, scores)
        ours, theirs = (gbmrank.objective("pairwise", target=one) for one in (function, by_table))
        np.testing.assert_array_equal(
            ours.gradients(labels, scores), theirs.gradients(labels, scores)
        )
    halves = gbmrank.metric("dcg@1", gain=np.sqrt)  # labels that no table has
    assert halves.score([0.25, 0.0], [1.0, 0.0]) == 0.5


@pytest.mark.parametrize(
    ("gain", "fact"),
    [
        (lambda y: -y, "-1"),
        (lambda y: y / y.max(), "by itself"),
        (lambda y: y - y.min(), "by itself"),
        (lambda y: np.where(y > 1, np.inf, y), "inf"),
    ],
)
def test_a_function_as_gain_maps_each_label_to_a_gain(gain: Any, fact: str) -> None:
    with pytest.raises(ParameterError, match=fact):
        gbmrank.metric("dcg", gain=gain).score([1.0, 2.0, 4.0], [3.0, 2.0, 1.0])
    with pytest.raises(PluginContractError, match="3 real numbers"):
        gbmrank.metric("dcg", gain=lambda y: y[:1]).score([1.0, 2.0, 4.0], [3.0, 2.0, 1.0])


def quotient(metric: str, part: int, whole: int) -> float:
    """Return a metric of rows of which the first ones are relevant, ranked as they are."""
    labels = np.r_[np.ones(part), np.zeros(whole - part)]
    return gbmrank.metric(metric).score(labels, -np.arange(float(whole)))


def test_counts_are_divided_once_so_quotients_are_the_nearest_numbers():
    for whole in (*range(1, 14), 29, 37, 49, 59):
        for part in range(whole + 1):
            assert quotient(f"precision@{whole}", part, whole) == part / whole
            assert quotient("precision", part, whole) == part / whole
            if part:
                k = max(1, part // 2)
                assert quotient(f"recall@{k}", part, whole) == k / part
                assert quotient("map", part, whole) == 1.0
                assert quotient("ptop(normalize=True)", part, whole) == 1.0


def test_pairs_and_ranks_are_divided_once_too():
    """Against fractions: AUC counts pairs, Spearman squares of rank differences."""
    rng = np.random.default_rng(3)
    for n in range(2, 40):
        scores = rng.permutation(n).astype(float)
        labels = (rng.permutation(n) < rng.integers(1, n)).astype(float)
        pairs = scores[labels == 1][:, None] - scores[labels == 0]
        auc = float(Fraction(int((pairs > 0).sum()), pairs.size))
        assert gbmrank.metric("auc").score(labels, scores) == auc
        graded = rng.permutation(n)
        far = int(((graded - scores) ** 2).sum())
        spearman = float(1 - Fraction(6 * far, n * (n * n - 1)))
        assert gbmrank.metric("spearman").score(graded, scores) == spearman


@pytest.mark.parametrize("text", ["ndcg", "ndcg@5", "ndcg(gain=linear)@10", "eru(normalize=True)"])
def test_the_best_order_is_one_up_to_the_last_digit(text):
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 7, 20, 100):
        labels = rng.integers(0, 5, n)
        labels[0] = 4
        assert abs(gbmrank.metric(text).score(labels, labels + 0.0) - 1.0) <= 2.3e-16
