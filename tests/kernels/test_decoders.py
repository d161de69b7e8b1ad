"""Decoders against their definitions, read literally and by enumeration."""

import itertools
import time

import numpy as np
import pytest

from gbmrank import decoders
from gbmrank.errors import DataError, LimitError, ParameterError


def has_cycle(n, edges):
    """Depth-first search for a way back."""
    following = {i: [j for a, j in edges if a == i] for i in range(n)}
    state = dict.fromkeys(range(n), "new")

    def visit(i):
        state[i] = "open"
        for j in following[i]:
            if state[j] == "open" or (state[j] == "new" and visit(j)):
                return True
        state[i] = "done"
        return False

    return any(state[i] == "new" and visit(i) for i in range(n))


def algorithm_1(u, ties):
    """Delete the lightest edge, one by one, until no cycle is left; then Kahn, worthiest first."""
    n = len(u)
    worth = [sum(u[i][j] - u[j][i] for j in range(n)) * (ties == "degree") for i in range(n)]
    weights = {(i, j): u[i][j] - u[j][i] for i in range(n) for j in range(n) if u[i][j] > u[j][i]}
    edges = sorted(weights, key=lambda edge: (weights[edge], edge))
    while has_cycle(n, edges):
        edges = edges[1:]
    order: list[int] = []
    while len(order) < n:
        free = [
            i
            for i in range(n)
            if i not in order and not any(j == i and a not in order for a, j in edges)
        ]
        order.append(min(free, key=lambda i: (-worth[i], i)))
    return order


def contradicted(u, order):
    return sum(u[j][i] for a, i in enumerate(order) for j in order[a + 1 :])


def precision_value(u, order):
    rank = {item: position + 1 for position, item in enumerate(order)}
    n = len(u)
    return sum(u[i][j] / max(rank[i], rank[j]) for i in range(n) for j in range(i + 1))


def greedy_with_moves(u):
    """Take the largest gain at each rank; then move one item after the other to its best place."""
    order: list[int] = []
    while len(order) < len(u):
        free = [i for i in range(len(u)) if i not in order]
        order.append(max(free, key=lambda i: u[i][i] + sum(u[i][j] for j in order)))
    moved = True
    while moved:
        moved = False
        for place in range(len(u)):
            item = order[place]
            rest = [other for other in order if other != item]
            choices = [[*rest[:to], item, *rest[to:]] for to in range(len(u))]
            best = max(choices, key=lambda choice: precision_value(u, choice))
            if precision_value(u, best) > precision_value(u, order) + 1e-12:
                order, moved = best, True
    return order


def random_graph(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    kind = seed % 3
    if kind == 0:
        return rng.random((n, n))
    if kind == 1:  # few values: many equal weights, many missing edges
        return rng.integers(0, 3, (n, n)).astype(float)
    return rng.random((n, n)) * (rng.random((n, n)) < 0.4)


@pytest.mark.parametrize("seed", range(300))
def test_algorithm_1_is_its_definition(seed):
    u = random_graph(seed)
    for ties in ("index", "degree"):
        assert decoders.graph_order(u, ties=ties).tolist() == algorithm_1(u.tolist(), ties)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("ties", ["index", "degree"])
def test_an_acyclic_graph_gives_a_topological_order(seed, ties):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    hidden = rng.permutation(n)
    u = np.zeros((n, n))
    for a in range(n):
        for b in range(a + 1, n):
            if rng.random() < 0.3:
                u[hidden[a], hidden[b]] = rng.random()
    rank = np.argsort(decoders.graph_order(u, ties=ties))
    assert sorted(rank.tolist()) == list(range(n))
    for i, j in np.argwhere(u > 0):
        assert rank[i] < rank[j]


def test_free_items_come_by_index_or_by_net_degree():
    u = np.zeros((4, 4))
    u[3, 2] = 5.0
    assert decoders.graph_order(u).tolist() == [0, 1, 3, 2]
    assert decoders.graph_order(u, ties="degree").tolist() == [3, 0, 1, 2]


def test_the_graph_decoder_is_right_where_net_degrees_are_not():
    u = np.zeros((3, 3))
    u[0, 1], u[1, 2] = 1.0, 6.0  # SPEC 4.4: net degrees (1, 5, -6)
    assert decoders.graph_order(u).tolist() == [0, 1, 2]
    assert decoders.exact_disagreement(u).tolist() == [0, 1, 2]


@pytest.mark.parametrize("seed", range(40))
def test_exact_decoders_equal_enumeration(seed):
    rng = np.random.default_rng(seed)
    n = 1 + seed % 7
    u = rng.random((n, n)) if seed % 2 else rng.integers(0, 4, (n, n)).astype(float)
    best = min(contradicted(u, order) for order in itertools.permutations(range(n)))
    found = decoders.exact_disagreement(u).tolist()
    assert sorted(found) == list(range(n))
    assert contradicted(u, found) == pytest.approx(best, abs=1e-12)
    u = u + u.T
    best = max(precision_value(u, order) for order in itertools.permutations(range(n)))
    for decode, exact in ((decoders.exact_map, True), (decoders.greedy_map, False)):
        found = decode(u).tolist()
        assert sorted(found) == list(range(n))
        value = precision_value(u, found)
        assert decoders.map_value(u, found) == pytest.approx(value, rel=1e-12)
        assert value == pytest.approx(best, rel=1e-12) if exact else value <= best + 1e-12


def test_of_equally_good_orders_the_first_is_taken():
    assert decoders.exact_disagreement(np.zeros((5, 5))).tolist() == [0, 1, 2, 3, 4]
    assert decoders.exact_map(np.zeros((5, 5))).tolist() == [0, 1, 2, 3, 4]
    assert decoders.diagonal(np.eye(4)).tolist() == [0, 1, 2, 3]
    assert decoders.greedy_map(np.eye(4)).tolist() == [0, 1, 2, 3]
    for ties in ("index", "degree"):
        assert decoders.graph_order(np.zeros((3, 3)), ties=ties).tolist() == [0, 1, 2]


@pytest.mark.parametrize("seed", range(40))
def test_the_greedy_order_is_its_definition(seed):
    rng = np.random.default_rng(seed)
    n = 1 + seed % 8
    u = rng.normal(size=(n, n)) if seed % 2 else rng.random((n, n))
    u = u + u.T
    assert decoders.greedy_map(u).tolist() == greedy_with_moves(u.tolist())


def test_no_single_item_of_the_greedy_order_can_be_moved_to_advantage():
    rng = np.random.default_rng(3)
    u = rng.normal(size=(9, 9))
    u = u + u.T
    order = decoders.greedy_map(u).tolist()
    value = precision_value(u, order)
    for item in order:
        rest = [other for other in order if other != item]
        for place in range(len(order)):
            moved = [*rest[:place], item, *rest[place:]]
            assert precision_value(u, moved) <= value + 1e-9


def test_the_diagonal_fails_outside_reinforcement_as_the_specification_says():
    labels = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 1]], dtype=float)
    u = sum(p * np.outer(y, y) / y.sum() for p, y in zip((0.3, 0.2, 0.5), labels, strict=True))
    assert decoders.diagonal(u).tolist() == [1, 0, 3, 2]
    assert decoders.exact_map(u).tolist() == [1, 3, 0, 2]
    best = decoders.map_value(u, [1, 3, 0, 2])
    assert best == pytest.approx(0.8)
    assert best - decoders.map_value(u, [1, 0, 3, 2]) == pytest.approx(0.0333, abs=5e-5)


def test_many_queries_at_once_equal_one_by_one():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 20, 60)
    blocks = [rng.normal(size=(n, n)) for n in sizes]
    flat = np.concatenate([block.ravel() for block in blocks])
    for decoder, one in (
        ("graph", decoders.graph_order),
        ("graph_degree", lambda u: decoders.graph_order(u, ties="degree")),
        (
            "auto",
            lambda u: (
                decoders.exact_disagreement(u)
                if len(u) <= 12
                else decoders.graph_order(u, ties="degree")
            ),
        ),
    ):
        together = decoders.orders(flat, sizes, "disagreement", decoder)
        assert together.tolist() == [item for block in blocks for item in one(block).tolist()]


@pytest.mark.compiled
@pytest.mark.nightly
def test_a_thousand_queries_of_a_hundred_items_take_seconds():
    rng = np.random.default_rng(0)
    sizes = np.full(1000, 100)
    values = rng.normal(size=(1000, 100, 100))
    decoders.orders(values[:1].ravel(), [100], "disagreement", "graph")
    start = time.perf_counter()
    decoders.orders(values.ravel(), sizes, "disagreement", "graph")
    symmetric = (values + values.transpose(0, 2, 1)).ravel()
    decoders.orders(symmetric, sizes, "map", "greedy")
    assert time.perf_counter() - start < 30.0  # about 2 s on two idle processors


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: decoders.graph_order(np.zeros((2, 3))), DataError, "shape (2, 3)"),
        (lambda: decoders.graph_order([[0, np.nan], [0, 0]]), DataError, "nan at index 0, 1"),
        (lambda: decoders.graph_order(np.zeros((2, 2)), ties="x"), ParameterError, "'x'"),
        (lambda: decoders.exact_map([[0, 1], [2, 0]]), DataError, "entry (0, 1) is 1"),
        (
            lambda: decoders.exact_disagreement(np.zeros((21, 21))),
            LimitError,
            "up to 20 items; a query has 21: use gbmrank.decoders.graph_order",
        ),
        (
            lambda: decoders.exact_map(np.zeros((21, 21))),
            LimitError,
            "a query has 21: use gbmrank.decoders.greedy_map",
        ),
        (
            lambda: decoders.orders(np.zeros(21 * 21), [21], "map", "exact"),
            LimitError,
            "a query has 21: use decoder=auto",
        ),
        (
            lambda: decoders.orders(np.zeros(5), [2, 13], "map"),
            DataError,
            "173 pair values, got 5",
        ),
        (lambda: decoders.orders(np.zeros(4), [2], "map", "graph"), ParameterError, "'graph'"),
        (lambda: decoders.orders(np.zeros(5), [2], "map"), DataError, "4 pair values, got 5"),
    ],
)
def test_bad_matrices_are_rejected(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)
