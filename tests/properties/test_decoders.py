"""Decoders on random matrices: permutations, optimality, scale, batches, rejections."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gbmrank import decoders
from gbmrank.errors import GbmrankError
from gbmrank.kernels.decode.orders import tied_places
from tests.properties.tally import tried

WEIGHTS = st.sampled_from([0.0, 1.0, 2.0]) | st.floats(0.0, 9.0, width=32)
EVERY = [
    (surrogate, decoder) for surrogate, names in decoders.DECODERS.items() for decoder in names
]


@st.composite
def matrices(draw, symmetric=False, most=6):
    n = draw(st.integers(1, most))
    matrix = draw(hnp.arrays(np.float64, (n, n), elements=WEIGHTS))
    return (matrix + matrix.T) / 2.0 if symmetric else matrix


def contradicted(u, order):
    return sum(u[j][i] for a, i in enumerate(order) for j in order[a + 1 :])


@pytest.mark.parametrize(("surrogate", "decoder"), EVERY)
def test_orders_are_permutations_that_scale_and_batch(surrogate, decoder):
    @given(st.lists(matrices(symmetric=surrogate == "map"), min_size=1, max_size=4))
    def check(several):
        sizes = [len(matrix) for matrix in several]
        flat = np.concatenate([matrix.reshape(-1) for matrix in several])
        together = decoders.orders(flat, sizes, surrogate, decoder)
        assert decoders.orders(4.0 * flat, sizes, surrogate, decoder).tolist() == together.tolist()
        start = 0
        for matrix in several:
            n = len(matrix)
            alone = decoders.orders(matrix.reshape(-1), [n], surrogate, decoder)
            assert sorted(alone.tolist()) == list(range(n))
            assert together[start : start + n].tolist() == alone.tolist()
            start += n
        tried("decoders")

    check()


@given(matrices())
def test_the_exact_order_contradicts_least(u):
    best = contradicted(u, decoders.exact_disagreement(u).tolist())
    for ties in ("index", "degree"):
        other = contradicted(u, decoders.graph_order(u, ties=ties).tolist())
        assert best <= other + 1e-9 * max(abs(u).sum(), 1.0)
    tried("decoders")


@given(matrices(symmetric=True))
def test_the_exact_order_has_the_most_average_precision(u):
    best = decoders.map_value(u, decoders.exact_map(u))
    slack = 1e-9 * max(abs(u).sum(), 1.0)
    for other in (decoders.greedy_map(u), decoders.diagonal(u)):
        assert best >= decoders.map_value(u, other) - slack
    tried("decoders")


@given(st.permutations(range(6)), hnp.arrays(np.float64, (6, 6), elements=st.floats(0.0, 5.0)))
def test_preferences_without_a_cycle_are_respected(hidden, weights):
    place = np.argsort(hidden)
    u = np.where(place[:, None] < place[None, :], weights, 0.0)
    for ties in ("index", "degree"):
        assert contradicted(u, decoders.graph_order(u, ties=ties).tolist()) == 0.0
    tried("decoders")


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        elements=st.floats(width=32),
    )
)
def test_any_array_is_decoded_or_rejected(values):
    for decode in (decoders.graph_order, decoders.exact_map, decoders.greedy_map):
        try:
            order = decode(values)
        except GbmrankError:
            continue
        assert sorted(order.tolist()) == list(range(len(values)))
    tried("decoders")


@pytest.mark.parametrize(("surrogate", "decoder"), EVERY)
def test_places_do_not_depend_on_the_order_of_items(surrogate, decoder):
    @given(matrices(symmetric=surrogate == "map"), st.data())
    def check(few, data):
        kind = np.array(data.draw(st.lists(st.integers(0, len(few) - 1), min_size=1, max_size=8)))
        u = few[np.ix_(kind, kind)]
        n = len(u)
        places = tied_places(u.reshape(-1), [n], surrogate, decoder)
        mixed = np.array(data.draw(st.permutations(range(n))))
        moved = tied_places(u[np.ix_(mixed, mixed)].reshape(-1), [n], surrogate, decoder)
        assert moved.tolist() == places[mixed].tolist()
        for one in set(kind.tolist()):
            assert len(set(places[kind == one].tolist())) == 1
        taken, count = np.unique(places, return_counts=True)
        assert taken.tolist() == (np.cumsum(count) - 0.5 * (count + 1.0)).tolist()
        tried("decoders")

    check()
