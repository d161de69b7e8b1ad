"""Loss matrices as inner products: dimension, factors, decoders, bounds."""

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest

from gbmrank import theory
from gbmrank.errors import DataError, LimitError, ParameterError
from tests import oracles

MEASURES: dict[str, Any] = {
    "dcg": oracles.dcg,
    "precision@2": partial(oracles.precision, k=2),
    "map": oracles.average_precision,
    "err": oracles.err,
    "mrr": oracles.reciprocal_rank,
}


def orders_of(n):
    return list(itertools.permutations(range(n)))


def oracle_losses(metric, n):
    """Minus the measure of every 0/1 label vector under every order, from plain loops."""
    rows = []
    for labels in itertools.product((0.0, 1.0), repeat=n):
        rows.append([-MEASURES[metric](labels, order) for order in orders_of(n)])
    return np.nan_to_num(np.array(rows), nan=0.0)


def graph_losses(graphs, n):
    """Weight of the edges that an order turns round."""
    table = np.zeros((len(graphs), len(orders_of(n))))
    for column, order in enumerate(orders_of(n)):
        for above, i in enumerate(order):
            for j in order[above + 1 :]:
                table[:, column] += graphs[:, j, i]
    return table


def decoded_columns(found, u, n):
    columns = {order: column for column, order in enumerate(orders_of(n))}
    return np.array([columns[tuple(order)] for order in found.decode(u).tolist()])


@pytest.mark.parametrize("n", [3, 4, 5])
@pytest.mark.parametrize("metric", MEASURES)
def test_the_mean_of_alpha_decodes_to_a_best_order(metric, n):
    found, losses = theory.low_rank(metric, n), oracle_losses(metric, n)
    rng = np.random.default_rng(n)
    p = rng.dirichlet(np.full(len(losses), 0.2), size=1000)
    expected = p @ losses
    chosen = decoded_columns(found, p @ found.alpha, n)
    regret = expected[np.arange(1000), chosen] - expected.min(axis=1)
    assert regret.max() < 1e-12
    assert np.linalg.matrix_rank(losses - losses.mean(axis=1, keepdims=True)) == found.dimension
    noisy = p @ found.alpha + rng.normal(scale=0.3, size=(1000, found.dimension))
    regret = expected[np.arange(1000), decoded_columns(found, noisy, n)] - expected.min(axis=1)
    excess = ((noisy - p @ found.alpha) ** 2).sum(axis=1)
    assert np.all(regret <= [found.bound(one) + 1e-12 for one in excess])
    assert regret.max() > 0.0


@pytest.mark.parametrize("n", [3, 4, pytest.param(5, marks=pytest.mark.nightly)])
def test_graphs_of_pairwise_disagreement(n):
    found = theory.low_rank("pairwise_disagreement(normalize=false)", n, graphs=True)
    assert found.dimension == n * (n - 1) // 2
    rng = np.random.default_rng(n)
    graphs = rng.exponential(size=(1000, n, n)) * (rng.random((1000, n, n)) < 0.6)
    graphs[:, np.arange(n), np.arange(n)] = 0.0
    expected = graph_losses(graphs, n)
    chosen = decoded_columns(found, found.targets(graphs), n)
    assert np.all(expected[np.arange(1000), chosen] - expected.min(axis=1) < 1e-9)


def test_a_random_integer_matrix():
    rng = np.random.default_rng(3)
    losses = rng.integers(0, 10, size=(12, 40))
    found = theory.low_rank(losses)
    assert (found.dimension, found.decoder) == (12, "enumeration")
    rows = losses - losses.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(found.alpha @ found.beta.T, rows, atol=1e-10)
    p = rng.dirichlet(np.ones(12), size=1000)
    chosen = found.decode([found.minimiser(one) for one in p])
    assert np.all((p @ losses)[np.arange(1000), chosen] - (p @ losses).min(axis=1) < 1e-12)


def test_the_rank_is_that_of_the_factors_a_matrix_was_made_of():
    rng = np.random.default_rng(0)
    made = rng.normal(size=(30, 4)) @ rng.normal(size=(4, 50)) + rng.normal(size=(30, 1))
    assert theory.low_rank(made).dimension == 4


def test_distributions_of_labels():
    found = theory.low_rank("err", 4)
    one = theory.Distribution([[1, 1, 0, 0], [0, 0, 1, 1]], [0.5, 0.5])
    mean = found.minimiser(one)
    order = found.decode(mean)
    assert tuple(order) in one.best("err").orders
    assert found.risk(one, mean + 0.1) - found.risk(one, mean) == pytest.approx(11 * 0.01)


@pytest.mark.parametrize(
    ("metric", "n", "decoder"),
    [
        ("dcg", 5, "sort"),
        ("precision@2", 5, "sort"),
        ("auc", 4, "sort"),
        ("spearman", 4, "sort"),
        ("map", 3, "assignment"),
        ("err", 3, "assignment"),
        ("map", 4, "enumeration"),
    ],
)
def test_the_decoder_that_the_structure_allows(metric, n, decoder):
    assert theory.low_rank(metric, n).decoder == decoder


def test_an_assignment_of_ones_own():
    """Costs of items at ranks, drawn: columns are orders, and no discount decides."""
    rng, n = np.random.default_rng(5), 4
    costs = rng.normal(size=(6, n, n))
    orders = np.array(orders_of(n))
    losses = costs[:, orders, np.arange(n)[None, :]].sum(axis=2)
    found = theory.low_rank(losses, n)
    assert (found.decoder, found.dimension) == ("assignment", 6)
    p = rng.dirichlet(np.ones(6), size=200)
    chosen = decoded_columns(found, p @ found.alpha, n)
    assert np.all((p @ losses)[np.arange(200), chosen] - (p @ losses).min(axis=1) < 1e-12)


@pytest.mark.parametrize("n", [3, 4, pytest.param(5, marks=pytest.mark.nightly)])
def test_dimensions_by_formula(n):
    assert theory.low_rank("map", n).dimension == n * (n + 1) // 2 - 2
    for metric in ("err", "mrr", "ptop"):
        assert theory.low_rank(metric, n).dimension == 2**n - n - 1
    assert theory.low_rank("dcg", n, grades=(0, 1, 2)).dimension == n - 1


def test_small_and_wide_matrices():
    row = theory.low_rank([[3.0, 1.0, 2.0]])
    assert (row.dimension, row.decode(row.alpha[0])) == (1, 1)
    same = theory.low_rank([[2.0, 2.0], [5.0, 5.0]])
    assert (same.dimension, same.decode([]), same.bound(1.0)) == (0, 0, 0.0)
    wide = np.random.default_rng(1).normal(size=(5, 100_000))
    found = theory.low_rank(wide)
    assert found.dimension == 5
    assert found.decode(found.minimiser([0, 0, 1, 0, 0])) == wide[2].argmin()


def test_what_is_no_loss_matrix():
    with pytest.raises(DataError, match="nan at index 1, 0"):
        theory.low_rank([[0.0, 1.0], [np.nan, 0.0]])
    with pytest.raises(DataError, match=r"\(3,\)"):
        theory.low_rank([1.0, 2.0, 3.0])
    with pytest.raises(DataError, match=r"\(0, 4\)"):
        theory.low_rank(np.zeros((0, 4)))
    with pytest.raises(DataError, match=r"6 orders.* 5 columns"):
        theory.low_rank(np.zeros((2, 5)), 3)
    with pytest.raises(LimitError, match="100,000 decisions"):
        theory.low_rank(np.broadcast_to(0.0, (500, 100_000)))
    with pytest.raises(LimitError, match="9 items"):
        theory.low_rank("err", 9)
    with pytest.raises(ParameterError, match="items=4"):
        theory.low_rank("err")
    with pytest.raises(ParameterError, match="needs labels"):
        theory.low_rank("map", 3, graphs=True)


def test_what_does_not_fit_the_factors():
    found = theory.low_rank("err", 3)
    with pytest.raises(DataError, match=r"shape \(4,\).*\(3,\)"):
        found.decode([1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="3 items"):
        found.targets([[0, 1]])
    narrow = theory.low_rank("dcg", 3, grades=(0,))
    with pytest.raises(DataError, match=r"\[1, 0, 0\]"):
        narrow.targets([[0, 0, 0], [1, 0, 0]])
    with pytest.raises(DataError, match="one per outcome, 8"):
        found.minimiser([0.5, 0.5])
    with pytest.raises(ParameterError):
        theory.low_rank([[0, 1]]).targets([[0, 1]])
