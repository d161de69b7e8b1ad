"""The conformance kit, and the limits the formulas have."""

import math

import pytest
from gbmrank_robust import focal, generalised_cross_entropy, smooth_ramp

from gbmrank.losses.margin import logistic
from gbmrank.testing import parametrize_checks


@parametrize_checks(
    "generalised_cross_entropy",
    "generalised_cross_entropy(q=1)",
    "smooth_ramp",
    "focal",
    "focal(gamma=0.5)",
)
def test_contract(check):
    check()


@pytest.mark.parametrize("z", [-3.0, -0.2, 0.0, 1.7, 8.0])
def test_without_their_twist_they_are_logistic(z):
    assert focal(z, 0.0) == pytest.approx(logistic(z), rel=1e-12)
    assert generalised_cross_entropy(z, 1e-6) == pytest.approx(logistic(z), rel=1e-4)


def test_a_hopeless_pair_costs_little():
    assert smooth_ramp(-50.0) == pytest.approx((2.0, 0.0, 0.0), abs=1e-9)
    assert generalised_cross_entropy(-50.0, 0.5) == pytest.approx((2.0, 0.0, 0.0), abs=1e-9)
    assert smooth_ramp(0.0)[0] == pytest.approx(1.0)
    assert focal(0.0)[0] == pytest.approx(0.25 * math.log(2.0))
