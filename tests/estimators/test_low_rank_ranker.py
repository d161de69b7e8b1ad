"""Short lists, ranked by every number that a metric needs."""

import pickle
from typing import Any

import numpy as np
import pytest

import gbmrank
from gbmrank import LowRankRanker, theory
from gbmrank.errors import ConfigError, DataError, GroupError, LimitError, ParameterError

BACKENDS = ("lightgbm", "xgboost")
ERR = "err(max_grade=1)"
FAST: dict[str, Any] = {"n_estimators": 20, "learning_rate": 0.3}


def substitutes(queries, seed):
    """Lists of four items: items 0 and 1 are relevant together, or else 2 and 3 are.

    The feature is the number of the item, so that no score per item can put 0, 2 first for
    ERR and also be what a loss of utilities aims at.
    """
    rng = np.random.default_rng(seed)
    first = rng.random(queries) < 0.55
    labels = np.where(first[:, None], [1, 1, 0, 0], [0, 0, 1, 1]).ravel()
    x = np.tile(np.arange(4.0), queries)[:, None]
    return x, labels, np.repeat(np.arange(queries), 4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_finds_the_order_that_no_utility_gives(backend):
    x, y, qid = substitutes(300, 0)
    model = LowRankRanker(ERR, backend, **FAST).fit(x, y, qid=qid)
    one = theory.Distribution([[1, 1, 0, 0], [0, 0, 1, 1]], [y[::4].mean(), 1 - y[::4].mean()])
    best = one.best(ERR)
    ranks = model.rank(x[:4], qid=[0, 0, 0, 0])
    assert tuple(np.argsort(ranks)) in best.orders
    assert model.score(x, y, qid=qid) == pytest.approx(best.value)
    scores = gbmrank.GBMRanker("pairwise(target=dcg)", backend, n_estimators=20).fit(x, y, qid=qid)
    assert one.value(ERR, scores.predict(x[:4])) < best.value - 0.01


def test_lists_of_several_lengths_in_any_order():
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 5, size=250)
    qid = np.repeat(np.arange(250), sizes)
    x = rng.normal(size=(len(qid), 2))
    y = (x[:, 1] > 0.3).astype(int) + (x[:, 1] > 1.0)
    model = LowRankRanker("ndcg", arrangements=6, **FAST).fit(x, y, qid=qid)
    assert {n: one.dimension for n, one in model.factors_.items()} == {2: 1, 3: 2, 4: 3}
    scores, ranks = model.predict(x, qid=qid), model.rank(x, qid=qid)
    assert gbmrank.metric("ndcg").score(y, scores, qid=qid) > 0.95
    np.testing.assert_array_equal(scores, sizes.repeat(sizes) - ranks)
    mixed = rng.permutation(len(qid))
    np.testing.assert_array_equal(model.predict(x[mixed], qid=qid[mixed]), scores[mixed])
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(again.predict(x, qid=qid), scores)


def test_a_measure_that_is_minimised():
    x, y, qid = substitutes(60, 1)
    model = LowRankRanker("pairwise_disagreement", arrangements=1, **FAST).fit(x, y, qid=qid)
    value = gbmrank.metric("pairwise_disagreement").score(y, model.predict(x, qid=qid), qid=qid)
    assert model.score(x, y, qid=qid) == -value


def test_what_it_rejects():
    x, y, qid = substitutes(30, 0)
    with pytest.raises(LimitError, match="9 rows"):
        LowRankRanker().fit(np.zeros((9, 1)), np.zeros(9), qid=np.zeros(9))
    with pytest.raises(DataError, match="nothing to learn"):
        LowRankRanker("ndcg").fit(x, np.ones(len(x)), qid=qid)
    with pytest.raises(DataError, match="118 entries"):
        LowRankRanker().fit(x, y[2:], qid=qid)
    with pytest.raises(GroupError, match="qid="):
        LowRankRanker().fit(x, y)
    with pytest.raises(ParameterError, match="arrangements"):
        LowRankRanker(arrangements=0).fit(x, y, qid=qid)
    labels, lists = np.random.default_rng(0).random(700), np.repeat(np.arange(100), 7)
    with pytest.raises(LimitError, match="outcomes"):
        LowRankRanker("dcg").fit(labels[:, None], labels, qid=lists)
    with pytest.raises(ConfigError, match="objective"):
        LowRankRanker(objective="mae").fit(x, y, qid=qid)


def test_what_new_rows_have_to_be():
    x, y, qid = substitutes(30, 0)
    with pytest.raises(ConfigError, match="call fit"):
        LowRankRanker().predict(x, qid=qid)
    model = LowRankRanker("mrr", arrangements=2, n_estimators=2).fit(x, y, qid=qid)
    with pytest.raises(DataError, match=r"lists of 4 items.*query of 3"):
        model.predict(x[:3], qid=[0, 0, 0])
    with pytest.raises(LimitError, match="12 rows"):
        model.predict(x[:12], qid=np.zeros(12))
    with pytest.raises(DataError, match=r"2 features, .* expecting 1 features"):
        model.predict(np.zeros((4, 2)), qid=[0, 0, 0, 0])
    with pytest.raises(ConfigError, match="metric"):
        model.set_params(metric="err").predict(x, qid=qid)
    assert model.set_params(metric="mrr").predict(x[:1], qid=[0]).tolist() == [0.0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_costs_of_a_classification(backend):
    """Rows are lists of one item; missing class 2 costs more than any false alarm."""
    costs = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0], [8.0, 8.0, 0.0]])
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, 600).astype(float)[:, None]
    chances = np.array([[0.8, 0.1, 0.1], [0.1, 0.6, 0.3], [0.45, 0.45, 0.1]])
    y = np.array([rng.choice(3, p=chances[int(cell)]) for cell in x[:, 0]])
    qid = np.arange(600)
    model = LowRankRanker(backend=backend, loss_matrix=costs, **FAST).fit(x, y, qid=qid)
    share = np.array([np.bincount(y[x[:, 0] == cell], minlength=3) for cell in range(3)])
    best = (share @ costs).argmin(axis=1)
    assert model.decide([[0.0], [1.0], [2.0]], qid=[0, 1, 2]).tolist() == best.tolist()
    assert best.tolist() != share.argmax(axis=1).tolist()  # the costs decide
    reached = model.score(x, y, qid=qid)
    assert reached == pytest.approx(-costs[y, best[x[:, 0].astype(int)]].mean())
    factors = theory.low_rank(costs)
    by_factors = LowRankRanker(backend=backend, alpha=factors.alpha, beta=factors.beta, **FAST)
    again = by_factors.fit(x, y, qid=qid)
    np.testing.assert_array_equal(again.decide(x, qid=qid), model.decide(x, qid=qid))
    offsets = (costs - factors.alpha @ factors.beta.T)[y, 0].mean()  # a constant per outcome
    assert again.score(x, y, qid=qid) - offsets == pytest.approx(reached)
    with pytest.raises(ConfigError, match="decisions are no orders"):
        model.rank(x, qid=qid)


def test_a_loss_matrix_over_orders_ranks_lists():
    """The loss of any cost of orders; here putting item 0 last costs most."""
    orders = np.array([[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])
    losses = np.array([np.argsort(order)[np.array([0, 2])] @ [3.0, 1.0] for order in orders])
    matrix = np.stack([losses, losses[::-1]])
    x, outcome = np.tile(np.arange(3.0), 80)[:, None], np.arange(80) % 4 == 0
    y, qid = np.repeat(outcome.astype(int), 3), np.repeat(np.arange(80), 3)
    model = LowRankRanker(loss_matrix=matrix, **FAST).fit(x, y, qid=qid)
    best = orders[int((np.array([0.75, 0.25]) @ matrix).argmin())]
    assert np.argsort(model.rank(x[:3], qid=[0, 0, 0])).tolist() == best.tolist()
    assert model.predict(x[:3], qid=[0, 0, 0]).tolist() == (2.0 - np.argsort(best)).tolist()
    with pytest.raises(DataError, match=r"row number of the query's outcome, from 0 to 1"):
        model.fit(x, y + 1, qid=qid)
    with pytest.raises(DataError, match="the same on all rows"):
        model.fit(x, np.arange(240) % 2, qid=qid)
    with pytest.raises(DataError, match="same number of rows; got 4 and 3"):
        model.fit(x[:7], y[:7], qid=[0, 0, 0, 0, 1, 1, 1])
    with pytest.raises(DataError, match="lists of 3 items"):
        model.rank(x[:2], qid=[0, 0])
    with pytest.raises(ConfigError, match="not some of both"):
        LowRankRanker(alpha=[[1.0]]).fit(x, y, qid=qid)
    with pytest.raises(DataError, match="nothing to learn: the loss of every outcome"):
        LowRankRanker(loss_matrix=np.ones((2, 6))).fit(x, y, qid=qid)
    plain = LowRankRanker("ndcg", **FAST).fit(x, np.tile([0, 1, 0], 80), qid=qid)
    with pytest.raises(ConfigError, match=r"rank\(\) returns orders"):
        plain.decide(x[:3], qid=[0, 0, 0])
    model.set_params(loss_matrix=matrix + 1.0)
    with pytest.raises(ConfigError, match="changed since training"):
        model.rank(x, qid=qid)
