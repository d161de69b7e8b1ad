"""Best orders in tiers: sorted ones against the enumeration of all."""

import itertools

import numpy as np
import pytest

from gbmrank.registry.composition import as_metric
from gbmrank.theory import Distribution
from gbmrank.theory.counterexamples import best_tiers, grouped
from tests.formulas import each


def _orders(tiers):
    return {
        tuple(itertools.chain(*parts))
        for parts in itertools.product(*(itertools.permutations(tier) for tier in tiers))
    }


@pytest.mark.parametrize(
    "metric", ["precision@2", "precision@5", "recall@3", "dcg@3", "ndcg", "auc"]
)
@pytest.mark.parametrize("seed", each(8, range(8)))
def test_sorting_gives_the_orders_that_enumeration_does(metric, seed):
    rng = np.random.default_rng(seed)
    distribution = Distribution(rng.integers(0, 2, size=(9, 6)), rng.dirichlet(np.ones(9)))
    found, best = best_tiers(distribution, as_metric(metric)), distribution.best(metric)
    assert found.value == pytest.approx(best.value, rel=1e-12)
    assert found.tiers is not None
    assert set.union(*map(_orders, found.tiers)) == set(best.orders)
    assert found.order in best.orders


def test_ties_of_utilities_are_enumerated():
    distribution = Distribution([[1, 1, 0, 0, 0, 0]], [1.0])
    found = best_tiers(distribution, as_metric("dcg@2"))
    assert found.tiers == (((0, 1), (2, 3, 4, 5)),)


def test_orders_without_a_pattern_are_too_many():
    every = list(itertools.permutations(range(5)))
    chosen = np.random.default_rng(0).choice(len(every), size=50, replace=False)
    assert grouped(tuple(every[i] for i in chosen)) is None
