"""Which engine a query takes, and what is rejected as too long."""

import numpy as np
import pytest

import gbmrank


@pytest.mark.parametrize("spec", ["pairwise(target=dcg)", "ranknet", "push(threshold=1)"])
def test_calls_on_arrays_visit_every_pair_of_moderate_queries(spec: str) -> None:
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 3, 600).astype(float), rng.normal(size=600)
    auto = gbmrank.objective(spec)
    pairs = gbmrank.objective(auto, engine="pairs")
    for ours, exact in zip(
        auto.gradients(labels, scores), pairs.gradients(labels, scores), strict=True
    ):
        np.testing.assert_array_equal(ours, exact)
    assert auto.loss(labels, scores) == pairs.loss(labels, scores)


def test_a_query_too_long_for_a_loss_without_a_fast_sum_is_rejected() -> None:
    @gbmrank.register_loss
    def bent(z):
        return abs(z) - z, (-2.0 if z < 0 else 0.0), 0.0

    rows = 300_000
    objective = gbmrank.objective("pairwise", loss="bent", target="dcg")
    with pytest.raises(gbmrank.LimitError, match=r"300,000 items takes about 135 s .* 200,000"):
        objective.gradients(np.ones(rows), np.zeros(rows), group=[rows])
