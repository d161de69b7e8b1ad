"""The conformance kit, and what the formula says."""

import math

from gbmrank_example import smooth_hinge

import gbmrank
from gbmrank.testing import parametrize_checks


@parametrize_checks("smooth_hinge", "smooth_hinge(k=4)")
def test_contract(check):
    check()


def test_at_the_corner():
    assert smooth_hinge(1.0, 2.0) == (math.log(2.0) / 2.0, -0.5, 0.5)


def test_it_is_found():
    found = {entry.name: entry for entry in gbmrank.list_losses()}
    assert found["smooth_hinge"].origin.distribution == "gbmrank-example"
