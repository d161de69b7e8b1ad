"""The shared order: exact, stable, sorted once, the same for any number of threads."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gbmrank.data import Groups, RankingData
from gbmrank.errors import DataError
from gbmrank.kernels.jit import compiler, threads
from gbmrank.metrics import BUILTIN_METRICS, ERR, MAP, NDCG, AlphaNDCG, Ranked

pytestmark = pytest.mark.compiled
METRICS = [metric for metric in BUILTIN_METRICS if metric is not AlphaNDCG]  # it needs subtopics


def stable_order(scores: np.ndarray, groups: Groups) -> np.ndarray:
    cuts = groups.offsets[1:-1]
    return np.concatenate([np.argsort(-s, kind="stable") for s in np.split(scores, cuts)])


def score_vectors() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    normal = rng.normal(size=6000)
    return {
        "normal": normal,
        "rounded": np.round(normal, 1),
        "constant": np.zeros(6000),
        "heavy tails": np.exp(60 * normal),
        "outliers": np.where(rng.random(6000) < 0.03, np.sign(normal) * 1e308, normal),
        "ascending": np.sort(normal),
        "neighbours": 1.0 + rng.integers(0, 9, 6000) * np.finfo(float).eps,
        "subnormal": rng.integers(-5, 5, 6000) * 5e-324,
        "signed zeros": np.where(normal > 0, 0.0, -0.0),
    }


@pytest.mark.parametrize("name", score_vectors())
@pytest.mark.parametrize("longest", [1, 2, 40, 6000])
def test_order_is_a_stable_sort(name: str, longest: int):
    scores = score_vectors()[name]
    groups = Groups.from_sizes(np.full(6000 // longest, longest), 6000)
    ranking = Ranked(scores, groups).ranking()
    np.testing.assert_array_equal(ranking.order, stable_order(scores, groups))
    ordered = scores[ranking.order + np.repeat(groups.offsets[:-1], longest)]
    tied = np.concatenate([[False], ordered[1:] == ordered[:-1]])
    tied[groups.offsets[:-1]] = False
    np.testing.assert_array_equal(ranking.tied, tied)


@pytest.mark.parametrize("name", [*score_vectors(), "one pile"])
@pytest.mark.parametrize(("depth", "size"), [(1, 100), (3, 100), (10, 100), (10, 8), (30, 600)])
def test_best_few_are_the_beginning_of_the_order(name: str, depth: int, size: int):
    """Every tenth row above the others: most scores reach the bound, though none tie."""
    normal = score_vectors()["normal"]
    scores = {**score_vectors(), "one pile": normal + 9.0 * (np.arange(6000) % 10 == 0)}[name]
    groups = Groups.from_sizes(np.full(6000 // size, size), 6000)
    few, whole = Ranked(scores, groups).ranking(depth), Ranked(scores, groups).ranking()
    for begin in groups.offsets[:-1]:
        end = begin + min(depth, size)
        while end < begin + size and whole.tied[end]:
            end += 1
        np.testing.assert_array_equal(few.order[begin:end], whole.order[begin:end])
        np.testing.assert_array_equal(few.tied[begin:end], whole.tied[begin:end])
        assert end == begin + size or few.tied[end] == 0


def test_one_sort_for_several_metrics(monkeypatch: pytest.MonkeyPatch):
    data = RankingData.from_arrays(np.tile([0, 1, 1, 0], 50), group=np.full(10, 20))
    bounds = [metric.bind(data) for metric in (NDCG(k=3), MAP(), ERR(k=5), NDCG(k=10))]
    calls: list[Any] = []
    kernels = compiler.load("ranking.sorting")
    best, whole = kernels.rank_best, kernels.rank_all

    def rank_best(*args: Any) -> None:
        calls.append(args[1])
        best(*args)

    def rank_all(*args: Any) -> None:
        calls.append("all")
        whole(*args)

    monkeypatch.setattr(kernels, "rank_best", rank_best)
    monkeypatch.setattr(kernels, "rank_all", rank_all)
    scores = np.random.default_rng(0).normal(size=200)
    ranked = Ranked(scores, data.groups).prepare(*[bound.depth for bound in bounds])
    together = [bound.score(ranked) for bound in bounds]
    assert set(calls) == {"all"}
    calls.clear()
    unprepared = Ranked(scores, data.groups)
    assert [bound.score(unprepared) for bound in bounds] == pytest.approx(together, rel=1e-14)
    assert set(calls) == {3, "all"}
    calls.clear()
    Ranked(scores, data.groups).prepare(3, 10)
    assert set(calls) == {10}


@pytest.fixture
def many_threads() -> Iterator[None]:
    yield
    threads.set_num_threads(None)


@pytest.mark.usefixtures("many_threads")
@pytest.mark.parametrize("metric", METRICS)
def test_same_bits_for_any_number_of_threads(metric: type):
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 120, 400)
    data = RankingData.from_arrays(rng.integers(0, 2, sizes.sum()), group=sizes)
    bound = metric().bind(data)
    scores = np.round(rng.normal(size=sizes.sum()), 1)
    results = []
    for count in (1, 2, 5):
        threads.set_num_threads(count)
        results.append(bound.per_query(Ranked(scores, data.groups)).tobytes())
    assert len(set(results)) == 1


def test_scores_of_other_rows_are_rejected():
    data = RankingData.from_arrays([0, 1, 1], group=[1, 2])
    with pytest.raises(DataError, match="2 scores for 3 rows; pass one score per row"):
        Ranked(np.zeros(2), data.groups)
    other = Ranked(np.zeros(3), Groups.from_sizes([2, 1], 3))
    with pytest.raises(DataError, match=r"2 queries with 3 rows"):
        NDCG().bind(data).per_query(other)


def test_scores_are_not_changed():
    scores = np.array([1.0, 3.0, 2.0])
    scores.flags.writeable = False
    data = RankingData.from_arrays([0, 1, 1])
    for metric in METRICS:
        metric().bind(data).score(Ranked(scores, data.groups))
    np.testing.assert_array_equal(scores, [1.0, 3.0, 2.0])


def test_rounded_scores_are_kept_and_stay_finite():
    ranked = Ranked(np.array([1e300, 1e299, -1e300, 0.1]), Groups.single(4))
    assert ranked.rounded() is ranked.rounded()
    np.testing.assert_array_equal(ranked.rounded().ranking().order, [0, 1, 3, 2])
    np.testing.assert_array_equal(ranked.rounded().ranking().tied, [0, 1, 0, 0])
