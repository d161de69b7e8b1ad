"""Pair models: what they are trained on, what they rank, and what they refuse."""

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import gbmrank
from gbmrank import decoders
from gbmrank.data import Groups
from gbmrank.data.preferences import PreferenceGraphs
from gbmrank.errors import (
    ConfigError,
    DataError,
    GroupError,
    LimitError,
    NoProgressWarning,
    ParameterError,
)
from gbmrank.estimators import PairRanker
from gbmrank.estimators import pair_ranker as module
from gbmrank.estimators.pair_ranker import (
    disagreement_rows,
    ordered_pairs,
    pair_features,
    precision_rows,
    sample_pairs,
)
from tests.ranking_tasks import make_task

BACKENDS = ["lightgbm", "xgboost"]
QUICK: Any = {"n_estimators": 40, "learning_rate": 0.3}
# Four kinds of items: no cycle, and sorting by net degree exchanges kinds 1 and 2.
KINDS = np.array([[0, 3.9, 1, 1.1], [0, 0, 3.3, 2.1], [0.7, 0.6, 0, 6], [0.8, 1.5, 0, 0]])


def kinds_task(seed, queries=150, size=6):
    """Features that tell the kind, and counts of preferences with known means."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(queries * size, 3))
    kind = 2 * (x[:, 0] > 0) + (x[:, 1] > 0)
    begins = np.arange(0, len(x), size)[:, None]
    left, right = np.array(list(itertools.permutations(range(size), 2))).T
    winner, loser = (begins + left).ravel(), (begins + right).ravel()
    mean = KINDS[kind[winner], kind[loser]]
    qid = np.repeat(np.arange(queries), size)
    observed = PreferenceGraphs.from_edges(winner, loser, rng.poisson(mean), qid=qid)
    return x, kind, qid, observed, PreferenceGraphs.from_edges(winner, loser, mean, qid=qid)


def test_every_pair_of_a_short_query_is_taken_once():
    groups = Groups.from_sizes([1, 4, 2, 3], 10)
    pairs = sample_pairs(groups, None, 0)
    expected = {(1 + i, 1 + j) for i, j in itertools.combinations(range(4), 2)}
    expected |= {(5, 6), (7, 8), (7, 9), (8, 9)}
    assert set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)) == expected
    assert len(pairs.first) == len(expected)
    assert np.all(pairs.weight == 1.0)


def test_the_sample_of_a_long_query_is_uniform_and_weighted():
    groups = Groups.from_sizes([3, 300], 303)
    pairs = sample_pairs(groups, 1000, seed=5)
    long = pairs.first >= 3
    drawn = set(zip(pairs.first[long].tolist(), pairs.second[long].tolist(), strict=True))
    assert len(drawn) == 1000
    assert all(3 <= i < j < 303 for i, j in drawn)
    assert np.all(pairs.weight[long] == 300 * 299 / 2 / 1000)
    assert np.all(pairs.weight[~long] == 1.0)
    counts = np.zeros(45)
    for seed in range(400):
        few = sample_pairs(Groups.single(10), 9, seed)
        counts[few.second * (few.second - 1) // 2 + few.first] += 1
    # each pair is drawn with probability 1/5: 80 times, with a deviation of 8
    assert counts.min() > 80 - 8 * 4.5
    assert counts.max() < 80 + 8 * 4.5


def test_the_sample_does_not_depend_on_labels_and_repeats():
    groups = Groups.single(100)
    one, two = sample_pairs(groups, 50, 1), sample_pairs(groups, 50, 1)
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert not np.array_equal(one.first, sample_pairs(groups, 50, 2).first)


def test_rows_for_disagreement_are_pairs_in_a_drawn_order_with_the_lead():
    x = np.array([[1.0, 5.0], [2.0, 3.0], [4.0, 4.0]])
    graphs = PreferenceGraphs.from_edges([0, 1, 2], [1, 0, 1], [3.0, 1.0, 2.0], group=[3])
    pairs = sample_pairs(graphs.groups, None, 0)
    expected = {}
    for i, j in itertools.permutations(range(3), 2):
        lead = graphs.to_matrix(0)[i, j] - graphs.to_matrix(0)[j, i]
        expected[(*x[i], *x[j], *(x[i] - x[j]))] = lead
    seen: dict[tuple[float, ...], float] = {}
    for seed in range(20):
        rows = disagreement_rows(x, graphs, pairs, "concatenation", seed)
        found = {tuple(f): t for f, t in zip(rows.features.tolist(), rows.targets, strict=True)}
        assert len(found) == 3
        assert rows.weight is None
        seen |= found
    assert seen == expected  # both orders come up
    short = disagreement_rows(x, graphs, pairs, "difference", 0)
    assert short.features.shape == (3, 2)


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_a_feature_of_the_query_turns_the_order(backend):
    item = np.tile(np.arange(5.0), 200)
    kind = np.repeat(np.arange(200.0) % 2, 5)
    y = np.where(kind == 1.0, item, -item)
    qid = np.repeat(np.arange(200), 5)
    model = PairRanker(backend=backend, n_estimators=40, learning_rate=0.3)
    model.fit(np.column_stack([item, kind]), y, qid=qid)
    assert model.score(np.column_stack([item, kind]), y, qid=qid) == 1.0


def test_rows_for_average_precision_have_the_diagonal():
    x = np.arange(5.0)[:, None]
    groups = Groups.from_sizes([3, 2], 5)
    relevant = np.array([1.0, 0.0, 1.0, 0.0, 0.0])
    rows = precision_rows(x, relevant, groups, sample_pairs(groups, None, 0), "concatenation")
    found = {
        (int(f[0]), int(f[1])): (t, f[-1])
        for f, t in zip(rows.features.tolist(), rows.targets, strict=True)
    }
    expected = {(i, j): relevant[i] * relevant[j] / 2 for i in range(3) for j in range(3)}
    expected |= {(i, j): 0.0 for i in (3, 4) for j in (3, 4)}
    assert {pair: value for pair, (value, _) in found.items()} == expected
    assert all(itself == (i == j) for (i, j), (_, itself) in found.items())


def test_pairs_to_rank_come_in_runs_of_whole_queries():
    groups = Groups.from_sizes([2, 3, 1, 5], 11)
    runs = list(ordered_pairs(groups, 14))
    assert [(first, last) for first, last, _, _ in runs] == [(0, 3), (3, 4)] or [
        (first, last) for first, last, _, _ in runs
    ] == [(0, 2), (2, 3), (3, 4)]
    left, right = np.concatenate([r[2] for r in runs]), np.concatenate([r[3] for r in runs])
    expected = [
        (i, j)
        for begin, end in itertools.pairwise(groups.offsets.tolist())
        for i in range(begin, end)
        for j in range(begin, end)
    ]
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == expected


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_pair_model_is_right_where_no_score_is(backend):
    x, _, qid, observed, mean = kinds_task(0)
    model = PairRanker(backend=backend, features="concatenation", **QUICK)
    model.fit(x, observed, qid=qid)
    new_x, new_kind, new_qid, _, new_mean = kinds_task(1)
    best = 1.0 - gbmrank.metric("pairwise_disagreement", preferences=new_mean).score(
        None, -new_kind, qid=new_qid
    )
    by_degree = np.array([4.5, -0.6, 3.0, -6.9])[new_kind]
    np.testing.assert_allclose(KINDS.sum(axis=1) - KINDS.sum(axis=0), [4.5, -0.6, 3.0, -6.9])
    degree = 1.0 - gbmrank.metric("pairwise_disagreement", preferences=new_mean).score(
        None, by_degree, qid=new_qid
    )
    found = model.score(new_x, new_mean, qid=new_qid)
    assert degree < best - 0.05
    assert best - 0.02 < found <= best + 1e-12
    assert model.score(x, preferences=mean, qid=qid) > degree


@pytest.mark.parametrize("backend", BACKENDS)
def test_labels_in_any_row_order_are_learned(backend):
    task = make_task(seed=1, queries=40)
    model = PairRanker(backend=backend, **QUICK).fit(task.x, task.y, qid=task.qid)
    ranks = model.rank(task.x, qid=task.qid)
    for query in range(len(task.sizes)):
        own = ranks[task.qid == query]
        assert sorted(own.tolist()) == list(range(1, len(own) + 1))
    scores = model.predict(task.x, qid=task.qid)
    for query, size in enumerate(task.sizes.tolist()):
        own = task.qid == query
        assert scores[own].sum() == size * (size - 1) / 2
        assert np.all(np.diff(scores[own][np.argsort(ranks[own])]) <= 0.0)
    disagreement = gbmrank.metric("pairwise_disagreement").score(task.y, scores, qid=task.qid)
    assert model.score(task.x, task.y, qid=task.qid) == pytest.approx(1.0 - disagreement)
    assert disagreement < 0.2
    mixed = np.random.default_rng(0).permutation(task.n)
    np.testing.assert_array_equal(
        model.predict(task.x[mixed], qid=task.qid[mixed])[np.argsort(mixed)], scores
    )
    assert model.score(task.x[mixed], task.y[mixed], qid=task.qid[mixed]) == pytest.approx(
        1.0 - disagreement, rel=1e-12
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_ranks_are_the_decoded_pair_values(backend):
    task = make_task(seed=2, queries=12, longest=14)
    for surrogate, decoder in (
        ("disagreement", "graph"),
        ("disagreement", "auto"),
        ("map", "diagonal"),
        ("map", "greedy"),
    ):
        model = PairRanker(surrogate, backend, decoder, threshold=2.0, **QUICK)
        model.fit(task.x, task.y, qid=task.qid)
        ranks = model.rank(task.x, qid=task.qid)
        for query, u in enumerate(model.pair_values(task.x, qid=task.qid)):
            np.testing.assert_array_equal(u, u.T if surrogate == "map" else -u.T)
            order = np.argsort(ranks[task.qid == query])
            check_order(u[np.ix_(order, order)], decoder)


def check_order(u, decoder):
    """Assert that a matrix is in the order that its decoder gives."""
    n = len(u)
    leads = u[u > 0.0]
    if decoder == "graph" and len(np.unique(leads)) == len(leads):
        assert decoders.graph_order(u).tolist() == list(range(n))  # the first of free items
    if decoder == "auto" and n <= 12:
        best = decoders.exact_disagreement(u)
        assert np.tril(u).sum() == pytest.approx(np.tril(u[np.ix_(best, best)]).sum(), abs=1e-9)
    if decoder == "diagonal":
        assert np.all(np.diff(u.diagonal()) <= 0.0)
    if decoder == "greedy":
        assert decoders.map_value(u, np.arange(n)) >= 0.97 * decoders.map_value(
            u, decoders.greedy_map(u)
        )


@pytest.mark.parametrize("backend", BACKENDS)
def test_map_beats_the_diagonal_outside_reinforcement(backend):
    """Labels y=(1,0,0,0) w.p. .3, (0,1,0,0) .2, (0,1,0,1) .5: the diagonal gives 1, 0, 3, 2."""
    rng = np.random.default_rng(0)
    outcomes = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 1]], dtype=float)
    queries = 1500
    y = outcomes[rng.choice(3, queries, p=[0.3, 0.2, 0.5])].ravel()
    x = np.tile(np.eye(4), (queries, 1))
    qid = np.repeat(np.arange(queries), 4)
    model = PairRanker("map", backend, n_estimators=60, learning_rate=0.3).fit(x, y, qid=qid)
    one = np.eye(4), np.zeros(4)
    assert model.rank(one[0], qid=one[1]).tolist() == [3, 1, 4, 2]
    model.set_params(decoder="diagonal")
    assert model.rank(one[0], qid=one[1]).tolist() == [2, 1, 4, 3]
    assert 0.7 < model.score(x, y, qid=qid) < 0.8


def test_a_function_can_make_the_features():
    task = make_task(seed=3, queries=40)

    def first_column(left, right):
        return np.column_stack([left[:, 0], right[:, 0]])

    model = PairRanker(features=first_column, **QUICK).fit(task.x, task.y, qid=task.qid)
    other = task.x.copy()
    other[:, 1:] = 0.0
    np.testing.assert_array_equal(model.rank(task.x, qid=task.qid), model.rank(other, qid=task.qid))
    with pytest.raises(DataError, match="pairs must have as many rows"):
        pair_features(task.x, np.arange(5), np.arange(5), lambda a, b: a[:2])


def test_a_budget_trains_on_fewer_pairs_of_long_queries():
    task = make_task(seed=4, queries=30, longest=40)
    scores = [
        PairRanker(pair_budget=budget, **QUICK)
        .fit(task.x, task.y, qid=task.qid)
        .score(task.x, task.y, qid=task.qid)
        for budget in (None, 60)
    ]
    assert scores[1] > scores[0] - 0.1
    assert scores[0] != scores[1]


def test_large_queries_are_ranked_in_pieces(monkeypatch):
    task = make_task(seed=5, queries=12, longest=30)
    model = PairRanker(**QUICK).fit(task.x, task.y, qid=task.qid)
    whole = model.rank(task.x, qid=task.qid)
    monkeypatch.setattr(module, "_PAIRS_AT_ONCE", 50)
    np.testing.assert_array_equal(model.rank(task.x, qid=task.qid), whole)
    monkeypatch.setattr(module, "MOST_ITEMS", 10)
    with pytest.raises(LimitError, match="up to 10 items"):
        model.rank(task.x, qid=task.qid)


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_behaves_as_scikit_learn_expects(backend):
    model = PairRanker(backend=backend, n_estimators=20, learning_rate=0.2)
    params = model.get_params()
    assert params["n_estimators"] == 20
    assert params["learning_rate"] == 0.2
    twin = clone(model)
    assert twin is not model
    assert twin.get_params() == params
    assert not hasattr(twin, "model_")
    twin.set_params(n_estimators=5, num_leaves=7)
    assert twin.get_params()["num_leaves"] == 7
    assert "num_leaves" not in model.get_params()
    shown = "" if backend == "lightgbm" else "backend='xgboost', "
    assert repr(model) == f"PairRanker({shown}n_estimators=20, learning_rate=0.2)"
    task = make_task(seed=6, queries=20)
    model.fit(task.x, task.y, qid=task.qid)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(
        again.rank(task.x, qid=task.qid), model.rank(task.x, qid=task.qid)
    )
    same = clone(model).fit(task.x, task.y, qid=task.qid)
    np.testing.assert_array_equal(same.rank(task.x, qid=task.qid), model.rank(task.x, qid=task.qid))
    assert model.__sklearn_tags__().estimator_type is None
    with pytest.raises(ParameterError, match="no nested parameter"):
        model.set_params(model__depth=3)


X, Y, Q = np.arange(8.0).reshape(4, 2), np.array([1.0, 0, 1, 0]), [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("params", "call", "error", "message"),
    [
        ({"surrogate": "x"}, {"y": Y, "qid": Q}, ParameterError, "surrogate must be one of"),
        ({"decoder": "diagonal"}, {"y": Y, "qid": Q}, ParameterError, "decoder must be one of"),
        ({"backend": "x"}, {"y": Y, "qid": Q}, ConfigError, "backend must be one of"),
        ({"features": "x"}, {"y": Y, "qid": Q}, ParameterError, "features must be one of"),
        ({"pair_budget": 0}, {"y": Y, "qid": Q}, ParameterError, "pair_budget must be a whole"),
        ({"n_estimators": 1.5}, {"y": Y, "qid": Q}, ParameterError, "n_estimators must be"),
        ({"objective": "l1"}, {"y": Y, "qid": Q}, ConfigError, "which need squared error"),
        (
            {"surrogate": "map", "features": "difference"},
            {"y": Y, "qid": Q},
            ParameterError,
            "use features=concatenation",
        ),
        ({}, {"y": Y}, GroupError, "say which query"),
        ({}, {"y": Y, "group": [2, 2]}, GroupError, "np.repeat(np.arange(len(sizes)), sizes)"),
        ({}, {"qid": Q}, ConfigError, "give labels (y) or preferences"),
        ({}, {"y": Y[:2], "qid": Q}, DataError, "y has 2 entries, but X has 4 rows"),
        ({}, {"y": np.ones(4), "qid": Q}, DataError, "nothing to learn"),
        ({"surrogate": "map"}, {"y": 2 * Y, "qid": Q}, DataError, "for example threshold=1"),
        (
            {"surrogate": "map"},
            {"y": PreferenceGraphs.from_edges([0], [1], qid=Q), "qid": Q},
            ParameterError,
            "preferences do not define",
        ),
        (
            {},
            {"preferences": PreferenceGraphs.from_edges([0], [1], group=[2]), "qid": Q},
            DataError,
            "for 2 rows in 1 queries, the data set has 4 rows in 2 queries",
        ),
        (
            {},
            {"y": Y, "preferences": PreferenceGraphs.from_edges([0], [1], qid=Q), "qid": Q},
            ConfigError,
            "not both",
        ),
    ],
)
def test_bad_input_is_refused(params, call, error, message):
    with pytest.raises(error) as caught:
        PairRanker(**params).fit(X, **call)
    assert message in str(caught.value)


def test_bad_tables_and_untrained_models_are_refused():
    with pytest.raises(ConfigError, match="not trained yet"):
        PairRanker().rank(X, qid=Q)
    with pytest.raises(DataError, match="X must contain numbers, got <U1"):
        PairRanker().fit([["a", "b"]], [1], qid=[0])
    with pytest.raises(DataError, match=r"0 sample\(s\) \(shape=\(0, 2\)\)"):
        PairRanker().fit(np.empty((0, 2)), [], qid=[])
    task = make_task(seed=6, queries=20)
    model = PairRanker(**QUICK).fit(task.x, task.y, qid=task.qid)
    with pytest.raises(DataError, match="X has 2 features, but PairRanker is expecting 5"):
        model.rank(X, qid=Q)


def test_columns_in_another_order_are_refused():
    task = make_task(seed=6, queries=20)
    names = list("abcde")
    table = pd.DataFrame(task.x, columns=names)
    model = PairRanker(**QUICK).fit(table, task.y, qid=task.qid)
    assert model.feature_names_in_.tolist() == names
    turned = table[names[::-1]]
    for method in (model.predict, model.rank, model.pair_values):
        with pytest.raises(DataError, match="got e, d, c, b, a; expected a, b, c, d, e, in this"):
            method(turned, qid=task.qid)
    with pytest.raises(DataError, match="not those of the training"):
        model.score(turned, task.y, qid=task.qid)
    model.fit(task.x, task.y, qid=task.qid)
    assert not hasattr(model, "feature_names_in_")
    with pytest.raises(GroupError, match="takes one query id per row"):
        model.score(task.x, task.y, group=task.sizes)


def test_a_constant_model_warns():
    with pytest.warns(NoProgressWarning, match="min_data_in_leaf"):
        PairRanker().fit(X, Y, qid=Q)


@pytest.mark.parametrize(
    "params",
    [
        {"max_bin": 16},
        {"tree_method": "exact"},
        {"tree_method": "approx"},
        {"booster": "gblinear"},
        {"booster": "dart", "rate_drop": 0.1},
    ],
)
@pytest.mark.filterwarnings("ignore:.*deprecated:UserWarning")  # dart and gblinear, from 3.4 on
def test_other_ways_of_xgboost(params):
    task = make_task(seed=6, queries=20)
    model = PairRanker(backend="xgboost", n_estimators=20, n_jobs=1, **params)
    assert model.fit(task.x, task.y, qid=task.qid).score(task.x, task.y, qid=task.qid) > 0.7


def test_what_was_learned_cannot_be_changed_afterwards():
    task = make_task(seed=6, queries=20)
    model = PairRanker(**QUICK).fit(task.x, task.y, qid=task.qid)
    for change in ({"surrogate": "map", "threshold": 1}, {"features": "difference"}):
        other = copy.deepcopy(model).set_params(**change)
        with pytest.raises(ConfigError, match="changed since training; call fit"):
            other.predict(task.x, qid=task.qid)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert again.score(task.x, task.y, qid=task.qid) == model.score(task.x, task.y, qid=task.qid)
    with pytest.raises(DataError):
        model.fit(task.x[:, :2], task.y * np.nan, qid=task.qid)
    assert len(model.predict(task.x, qid=task.qid)) == task.n  # the old model is whole


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_function_that_makes_other_columns_later(backend):
    task = make_task(seed=6, queries=10)
    model = PairRanker(
        backend=backend, n_estimators=3, features=lambda left, _: left[:, : 1 + (len(left) > 100)]
    )
    with pytest.raises(DataError, match="features gave 2 columns in training, 1 now"):
        model.fit(task.x, task.y, qid=task.qid).predict(task.x[:9], qid=task.qid[:9])


def test_labels_and_preferences_are_not_judged_at_once():
    task = make_task(seed=6, queries=20)
    model = PairRanker(**QUICK).fit(task.x, task.y, qid=task.qid)
    graphs = PreferenceGraphs.from_labels(task.y, qid=task.qid)
    with pytest.raises(ConfigError, match=r"labels \(y\) or preferences, not both"):
        model.score(task.x, task.y, qid=task.qid, preferences=graphs)
    with pytest.raises(ConfigError, match="not both"):
        model.score(task.x, graphs, qid=task.qid, preferences=graphs)
    with pytest.raises(ConfigError, match="not both"):
        model.fit(task.x, graphs, qid=task.qid, preferences=graphs)
    with pytest.raises(ConfigError, match="give labels"):
        model.score(task.x, qid=task.qid)
