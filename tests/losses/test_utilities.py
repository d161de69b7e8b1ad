"""Utilities against their definitions, their bounds and their edge cases."""

import pickle
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import pytest

import gbmrank
from gbmrank import (
    DataError,
    Groups,
    LabelRangeError,
    ParameterError,
    PluginContractError,
    RankingData,
)
from gbmrank.data.query_order import query_sums
from gbmrank.losses.gains import binarise
from gbmrank.losses.utilities import AbstractUtility, DcgUtility, ideal_dcg
from gbmrank.metrics import AbstractPositional
from gbmrank.registry import METRICS, UTILITIES
from gbmrank.registry.composition import build
from gbmrank.theory.verdicts.advice import advise
from tests import objective_oracles as oracle

SIZES = (6, 1, 4, 5, 3)
TEXTS = [
    "identity",
    "dcg",
    "dcg@3",
    "ndcg",
    "ndcg@1",
    "ndcg@3",
    "precision(threshold=2)",
    "recall(threshold=2)@5",
    "wta(threshold=2)",
    "auc(threshold=2)",
    "map(threshold=2)",
    "spearman",
    "eru(neutral=1)",
    "net_degree",
    "pairwise_disagreement",
]


def made(text):
    return build(UTILITIES, text)


@pytest.mark.parametrize("text", TEXTS)
def test_utilities_are_their_definition(text):
    rng = np.random.default_rng(3)
    for _ in range(20):
        labels = rng.integers(0, 5, sum(SIZES)).astype(float)
        labels[: SIZES[0]] = rng.choice([0.0, 3.0])  # all equal, also all zero
        data = RankingData.from_arrays(labels, group=SIZES)
        found, begin = made(text).values(data), 0
        bounds = made(text).upper_bounds(data.groups.sizes)
        for query, n in enumerate(SIZES):
            part = slice(begin, begin + n)
            expected = oracle.utility(made(text), labels[part])
            if expected is None:
                assert np.isnan(found[part]).all()
            else:
                np.testing.assert_allclose(found[part], expected, rtol=1e-13)
                if bounds is not None:
                    assert bounds[query] == pytest.approx(oracle.safe_eta(made(text), n))
                    assert max(expected) <= bounds[query] * (1 + 1e-12)
            begin += n


def test_every_builtin_utility_is_covered():
    names = {made(text).name for text in TEXTS}
    assert names == {
        name for name in UTILITIES if UTILITIES.entries[name][0].origin.distribution == "gbmrank"
    }


def test_one_item_has_none_below_it():
    """Spearman has no normaliser, so nothing is undefined; u = n - rank = 0."""
    data = RankingData.from_arrays([3.0, 1, 2], group=[1, 2])
    assert made("spearman").values(data).tolist() == [0, 0, 1]
    assert np.isnan(gbmrank.metric("spearman").per_query([3.0], [0.0], group=[1]))


def test_bounds_are_reached():
    """SPEC 2: one relevant item among n has u = 1 / (n - 1) for auc, n - 1 for spearman."""
    labels = np.array([1.0, 0, 0, 0])
    data = RankingData.from_arrays(labels)
    assert made("auc").values(data).max() == 1 / 3
    assert made("spearman").values(RankingData.from_arrays([3.0, 2, 1, 0])).max() == 3
    assert made("ndcg").values(data).max() == 1.0


def test_queries_beyond_a_million_rows_are_sorted_like_others():
    """Rows are sorted a million at a time, and a longer query by itself."""
    n = 1_000_001
    labels = np.zeros(n + 3)
    labels[[5, n, n + 1]] = 1, 1, 2
    found = made("ndcg@2").values(RankingData.from_arrays(labels, group=[n, 3]))
    best = 3 + 1 / np.log2(3)
    assert found[5] == 1.0
    np.testing.assert_allclose(found[n:], [1 / best, 3 / best, 0], rtol=1e-13)


def test_binary_labels_may_be_minus_one_and_one():
    data = RankingData.from_arrays([1.0, -1, -1, 1])
    assert made("precision").values(data).tolist() == [1, 0, 0, 1]
    assert made("auc").values(data).tolist() == [0.25, 0, 0, 0.25]
    for labels in ([2.0, 0, 1], [-1.0, 0, 1], [0.5, 0, 1]):
        with pytest.raises(DataError, match=r"0/1 or -1/\+1 .*threshold=1"):
            made("recall").values(RankingData.from_arrays(labels))


def test_gains_reject_labels_out_of_range():
    with pytest.raises(LabelRangeError, match=r"largest label is 32.*gain='linear'.*table"):
        made("ndcg").values(RankingData.from_arrays([32.0, 0]))
    with pytest.raises(LabelRangeError, match=r"a target says it as dcg\(gain=linear\)"):
        made("dcg").values(RankingData.from_arrays([32.0, 0]))
    with pytest.raises(LabelRangeError, match=r"not negative, got -1; shift them.*ranknet") as low:
        made("dcg").values(RankingData.from_arrays([-1.0, 0]))
    assert "identity" not in str(low.value)  # pairs reject negative utilities too
    with pytest.raises(LabelRangeError, match=r"labels 0\.\.2"):
        made("dcg(gain=[0, 1, 5])").values(RankingData.from_arrays([3.0, 0]))
    table = made("dcg(gain=[0, 1, 5])")
    assert table.values(RankingData.from_arrays([2.0, 0])).tolist() == [5, 0]
    assert table.upper_bounds(np.array([2])).tolist() == [5]
    assert made("dcg(gain=linear)").values(RankingData.from_arrays([40.0, 0.5])).tolist() == [
        40,
        0.5,
    ]


@pytest.mark.parametrize("text", ["ndcg(k=0)", "dcg(k=-1)", "precision(k=0)", "map(k=0)"])
def test_cut_offs_below_one_are_rejected(text):
    with pytest.raises(ParameterError, match="cut-off is a whole number of at least 1"):
        made(text)


def test_eru_rejects_what_divides_by_zero():
    with pytest.raises(ParameterError, match="half_life must be above 1, got 1"):
        made("eru(half_life=1)")
    with pytest.raises(ParameterError, match="max_grade must be above neutral=4, got 4"):
        made("eru(neutral=4)")


def test_ideal_dcg_uses_the_cut_off_of_the_metric():
    gain = np.array([7.0, 3, 0, 1])
    ideal = 7 + 3 / np.log2(3) + 1 / 2
    assert ideal_dcg(gain, Groups.single(4), None)[0] == pytest.approx(ideal)
    assert ideal_dcg(gain, Groups.single(4), 1)[0] == 7


@pytest.mark.parametrize("text", ["err@10", "err", "mrr@5", "rr", "ptop"])
def test_metrics_without_a_utility_are_rejected_with_the_reason(text):
    name = METRICS.get(text.partition("@")[0]).name
    for template in ("pairwise", "pointwise", "bregman"):
        with pytest.raises(ParameterError, match="cannot be a target") as rejected:
            gbmrank.objective(template, target=text)
        cut = "".join(text.partition("@")[1:])
        assert METRICS.get(name).no_utility.format(k=cut) in str(rejected.value)


def test_err_names_alternatives_with_its_cut_off():
    for target in ("err@5", "err(k=5)", gbmrank.metric("err@5")):
        with pytest.raises(ParameterError) as rejected:
            gbmrank.objective("pairwise", target=target)
        for part in ("swap(metric=err@5)", "target=ndcg@5"):
            assert part in str(rejected.value)


def test_every_metric_has_a_utility_or_a_reason():
    for name in METRICS:
        if METRICS.entries[name][0].origin.distribution != "gbmrank":
            continue
        measure = gbmrank.metric(name).measure
        assert (measure.utility is None) is ("no_utility" in vars(type(measure)))
        if measure.utility is not None:
            assert build(UTILITIES, name) == build(UTILITIES, measure) == measure.utility


def test_other_unknown_names_get_the_nearest():
    with pytest.raises(gbmrank.UnknownNameError, match="did you mean 'ndcg'"):
        gbmrank.objective("pairwise", target="ndgc@10")


@dataclass(frozen=True, slots=True)
class Given(AbstractUtility):
    """What a function makes of the labels."""

    function: Any = None
    name: ClassVar[str] = "given"

    def values(self, data):
        return self.function(data.labels)

    def upper_bounds(self, sizes):
        return np.full(len(sizes), 31.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda y: y[:-1],
        lambda y: np.empty(0),
        lambda y: np.append(y, 1.0),
        lambda y: y[:, None],
        lambda y: y + 0j,
        lambda y: None,
        lambda y: y + np.inf,
        lambda y: np.where(y == 2, np.nan, y),
    ],
)
@pytest.mark.parametrize(
    "template", ["pairwise", "pairwise(loss=squared)", "pointwise(loss=squared)", "bregman"]
)
def test_a_target_of_others_gives_one_number_per_row(template, function):
    objective = gbmrank.objective(template, target=Given(function))
    with pytest.raises(PluginContractError, match="values of target=given"):
        objective.gradients([0, 1, 2, 1], [0.1, 0.2, 0.3, 0.4])


def test_values_of_a_target_may_be_in_another_byte_order():
    labels, scores = [0, 1, 2, 1], [0.1, 0.2, 0.3, 0.4]
    swapped = gbmrank.objective("pairwise", target=Given(lambda y: y.astype(">f8")))
    expected = gbmrank.objective("pairwise", target="identity").gradients(labels, scores)
    np.testing.assert_array_equal(swapped.gradients(labels, scores), expected)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class F1(AbstractPositional):
    """2 * hits / (k + P): a utility of its own with even ranks up to k."""

    k: int = 2
    name: ClassVar[str] = "f1_of_tests"
    discount: ClassVar[str] = "constant"

    def utilities(self, data):
        hits = binarise(data.labels, None, data.groups)
        return 2.0 * hits / data.groups.spread(self.k + query_sums(hits, data.groups))


def test_a_positional_metric_is_a_target_without_a_second_class():
    gbmrank.register_metric(F1)
    labels, scores, sizes = [1, 0, 1, 0, 1], [0.3, 0.1, -0.2, 0.7, 0.5], [3, 2]
    assert gbmrank.metric("f1_of_tests@1").per_query(labels, scores, group=sizes).tolist() == [
        2 / (1 + 2),
        0.0,
    ]
    made = gbmrank.objective("pairwise", loss="logistic", target="f1_of_tests@1")
    assert str(made) == "pairwise(loss=logistic, target=f1_of_tests@1)"
    assert gbmrank.objective(str(made)) == made
    assert gbmrank.objective("pairwise", target=F1(k=1)) == made
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301  (made here)
    worth = np.array([2 / 3, 0, 2 / 3, 0, 1])
    by_hand = gbmrank.objective("pairwise", target=Given(lambda y: worth))
    for found, wanted in zip(
        made.gradients(labels, scores, group=sizes),
        by_hand.gradients(labels, scores, group=sizes),
        strict=True,
    ):
        np.testing.assert_array_equal(found, wanted)
    assert gbmrank.theory.calibration(made, "f1_of_tests@1").status == "calibrated"
    best = advise(gbmrank.metric("f1_of_tests@1").measure)[0]
    assert best.proven
    assert "target=f1_of_tests@1" in best.objective
    with pytest.raises(ParameterError, match=r"no upper bound .* give it as eta="):
        gbmrank.objective("pointwise", target="f1_of_tests").gradients(labels, scores)
    bounded = gbmrank.objective("pointwise", target="f1_of_tests", eta=1)
    assert np.isfinite(bounded.gradients(labels, scores, group=sizes)).all()


@pytest.mark.parametrize("given", [{}, {"utility_class": DcgUtility}, {"discount": "log2"}])
def test_a_positional_metric_has_a_utility_and_a_discount(given):
    with pytest.raises(PluginContractError, match="'half' needs a utility and a discount"):
        type("Half", (AbstractPositional,), {"name": "half", **given})
