"""Rows that a pair model cannot tell apart: equal scores, whatever the order of the rows."""

import itertools
from typing import Any

import numpy as np
import pytest

from gbmrank import decoders
from gbmrank.errors import DataError, LimitError, ParameterError
from gbmrank.estimators import PairRanker
from gbmrank.kernels.decode.orders import tied_places
from tests.ranking_tasks import make_task

QUICK: Any = {"n_estimators": 20, "learning_rate": 0.3}
EVERY = [
    (surrogate, decoder) for surrogate, names in decoders.DECODERS.items() for decoder in names
]
SEVERAL = [
    (backend, surrogate) for backend in ("lightgbm", "xgboost") for surrogate in decoders.DECODERS
]


@pytest.fixture(scope="module")
def models():
    """A trained model of every backend and surrogate; the decoder is set where it is used."""
    task = make_task(seed=7, queries=60)
    return {
        (backend, surrogate): PairRanker(
            surrogate, backend, threshold=2.0 if surrogate == "map" else None, **QUICK
        ).fit(task.x, task.y, qid=task.qid)
        for backend, surrogate in SEVERAL
    }


def orders_of(scores):
    """Every order that sorts the scores, best first."""
    blocks = [np.flatnonzero(scores == value) for value in np.unique(scores)[::-1]]
    for parts in itertools.product(*(itertools.permutations(block) for block in blocks)):
        yield [row for part in parts for row in part]


def agreement(y, order):
    """One minus the share of weight ``y_i - y_j`` that an order contradicts."""
    pairs = list(itertools.combinations(order, 2))
    wrong = sum(max(y[later] - y[earlier], 0.0) for earlier, later in pairs)
    return 1.0 - wrong / sum(abs(y[i] - y[j]) for i, j in pairs)


def precision(y, order):
    relevant = [float(y[row] >= 2.0) for row in order]
    hits = np.cumsum(relevant)
    return sum(r * h / (k + 1) for k, (r, h) in enumerate(zip(relevant, hits, strict=True))) / sum(
        relevant
    )


@pytest.mark.parametrize(("surrogate", "decoder"), EVERY)
@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_identical_rows_have_one_score(models, backend, surrogate, decoder):
    model = models[backend, surrogate].set_params(decoder=decoder)
    x, qid = np.ones((6, 5)), np.zeros(6)
    assert model.predict(x, qid=qid).tolist() == [2.5] * 6
    assert model.rank(x, qid=qid).tolist() == [1, 2, 3, 4, 5, 6]  # ties keep the order of rows
    y = np.array([3.0, 2, 1, 0, 0, 0])
    value = agreement if surrogate == "disagreement" else precision
    mean = np.mean([value(y, order) for order in itertools.permutations(range(6))])
    for labels in (y, y[::-1]):
        assert model.score(x, labels, qid=qid) == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize(("surrogate", "decoder"), EVERY)
@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_the_score_is_the_mean_over_the_orders_of_equal_rows(models, backend, surrogate, decoder):
    model = models[backend, surrogate].set_params(decoder=decoder)
    rng = np.random.default_rng(3)
    kind = np.array([0, 1, 0, 2, 1, 0, 3])
    x, y, qid = rng.normal(size=(4, 5))[kind], np.array([0.0, 2, 3, 1, 0, 1, 2]), np.zeros(7)
    scores = model.predict(x, qid=qid)
    for one in range(4):
        assert len(np.unique(scores[kind == one])) == 1
    value = agreement if surrogate == "disagreement" else precision
    mean = np.mean([value(y, order) for order in orders_of(scores)])
    assert model.score(x, y, qid=qid) == pytest.approx(mean, rel=1e-12)
    ranks = model.rank(x, qid=qid)
    assert ranks.tolist() == (1 + np.argsort(np.argsort(-scores, kind="stable"))).tolist()


@pytest.mark.parametrize(("surrogate", "decoder"), EVERY)
@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_the_order_of_the_rows_makes_no_difference(models, backend, surrogate, decoder):
    model = models[backend, surrogate].set_params(decoder=decoder)
    task = make_task(seed=8, queries=40, longest=12 if decoder == "exact" else 18)
    coarse = np.round(task.x)
    coarse[:, 2:] = 0.0
    for x in (task.x, coarse):
        scores = model.predict(x, qid=task.qid)
        for seed in range(3):
            mixed = np.random.default_rng(seed).permutation(task.n)
            again = model.predict(x[mixed], qid=task.qid[mixed])
            np.testing.assert_array_equal(again, scores[mixed])
    for query in range(len(task.sizes)):
        own = task.qid == query
        assert len(np.unique(scores[own])) <= len(np.unique(coarse[own], axis=0))
    both = np.column_stack([task.qid, coarse])
    assert len(np.unique(both, axis=0)) < task.n  # some rows of a query are the same


def test_tied_items_share_the_mean_of_their_places():
    u = np.array([[0.0, 2, 0, 2], [0, 0, 0, 0], [0, 2, 0, 2], [0, 0, 0, 0]])
    for decoder in decoders.DECODERS["disagreement"]:
        assert tied_places(u.ravel(), [4], "disagreement", decoder).tolist() == [0.5, 2.5, 0.5, 2.5]


def test_a_cycle_of_equal_weights_has_no_first_item():
    cycle = np.roll(np.eye(3), 1, axis=1)
    for decoder in decoders.DECODERS["disagreement"]:
        assert tied_places(cycle.ravel(), [3], "disagreement", decoder).tolist() == [1.0] * 3
    behind = np.zeros((5, 5))  # the cycle comes behind item 4 and before item 0
    behind[1:4, 1:4], behind[4, :4], behind[1:4, 0] = cycle, 3.0, 2.0
    for decoder in decoders.DECODERS["disagreement"]:
        found = tied_places(behind.ravel(), [5], "disagreement", decoder)
        assert found.tolist() == [4.0, 2.0, 2.0, 2.0, 0.0]


def test_different_items_of_equal_net_degree_come_by_their_values():
    u = np.zeros((5, 5))
    u[0, 1] = u[0, 2] = 1.0  # net degree 2, largest value 1
    u[3, 4] = 2.0  # net degree 2, largest value 2
    for decoder in ("graph", "graph_degree"):
        found = tied_places(u.ravel(), [5], "disagreement", decoder)
        assert found[3] < found[0] < found[1] == found[2]


def test_net_degree_counts_items_and_not_kinds():
    u = np.zeros((6, 6))
    u[0, 1] = 2.5  # net degree 2.5
    u[2, 3:] = 1.0  # net degree 3, over one kind
    assert tied_places(u.ravel(), [6], "disagreement", "graph_degree")[2] == 0.0
    assert tied_places(u.ravel(), [6], "disagreement", "graph")[0] == 0.0


@pytest.mark.parametrize("seed", range(30))
def test_no_order_of_the_items_contradicts_less(seed):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 4, 7)
    u = rng.integers(0, 4, (4, 4)).astype(float)[kind][:, kind]
    places = tied_places(u.ravel(), [7], "disagreement", "exact")
    below = places[:, None] - places[None, :]
    found = (u * ((below > 0) + 0.5 * (below == 0)))[~np.eye(7, dtype=bool)].sum()
    best = decoders.exact_disagreement(u)
    assert found == pytest.approx(np.tril(u[np.ix_(best, best)], -1).sum(), abs=1e-9)


def test_look_alikes_that_the_best_order_parts_meet_where_it_costs_least():
    # 0 and 1 are never relevant together; 2 is relevant with either
    u = np.array([[0.3, 0.0, 0.3], [0.0, 0.3, 0.3], [0.3, 0.3, 0.29]])
    assert decoders.exact_map(u).tolist() == [0, 2, 1]
    assert decoders.map_value(u, [2, 0, 1]) > decoders.map_value(u, [0, 1, 2])
    assert tied_places(u.ravel(), [3], "map", "exact").tolist() == [1.5, 1.5, 0.0]


@pytest.mark.parametrize("decoder", ["exact", "greedy"])
def test_gathering_look_alikes_costs_little_average_precision(decoder):
    rng = np.random.default_rng(0)
    kept = []
    for _ in range(100):
        kind = np.sort(rng.integers(0, 4, 7))
        y = (rng.random((6, 4)) < 0.5).astype(float)[:, kind]
        y[:, 0] = 1.0
        u = np.mean([np.outer(one, one) / one.sum() for one in y], axis=0)
        places = tied_places(u.ravel(), [7], "map", decoder)
        value = decoders.map_value(u, np.argsort(places, kind="stable"))
        kept.append(value / decoders.map_value(u, decoders.exact_map(u)))
    assert np.mean(kept) > 0.99


def test_limits_and_bad_values_are_refused():
    with pytest.raises(LimitError, match="a query has 21: use decoder=auto"):
        tied_places(np.zeros(441), [21], "map", "exact")
    with pytest.raises(ParameterError, match="decoder must be one of"):
        tied_places(np.zeros(4), [2], "map", "graph")
    with pytest.raises(DataError, match="4 pair values, got 5"):
        tied_places(np.zeros(5), [2], "map")
    with pytest.raises(DataError, match="inf at index 2"):
        tied_places(np.array([0.0, 1.0, np.inf, 0.0]), [2], "disagreement")
