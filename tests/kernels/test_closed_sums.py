"""When closed forms decline: the caller then visits every pair."""

import math

import numpy as np
import pytest

from gbmrank.kernels.jit import compiler
from gbmrank.kernels.layout import Level

LABELS_OF_THREE = Level(np.array([0, 1, 1]), np.array([1, 3, 3]), 2)


def exponential_sum(form, scores, p=1.0, bend=math.nan):
    """Value of three items, the first better than the others; the weight of the first is one."""
    kernels = compiler.load("closed.exponential")
    s, v, out = np.array(scores), np.array([1.0, 0.0, 0.0]), (np.empty(3), np.empty(3))
    levels = (LABELS_OF_THREE,) if form.endswith("levels") else ()
    return getattr(kernels, form)(s, v, *levels, (p,), bend, out)


FORMS = [
    ("exponential_pairs", 1.0),
    ("exponential_levels", 1.0),
    *((f"p_classification_{kind}", p) for kind in ("pairs", "levels") for p in (0.5, 1.0, 4.0)),
]


@pytest.mark.parametrize(("form", "p"), FORMS)
def test_exponentials_are_summed_up_to_a_range_of_600(form, p):
    """Of the scores times the larger rate, which is 1 or p."""
    widest = 600.0 / max(p, 1.0)
    for width in (1.0, 0.6 * widest, 0.999 * widest):
        gaps = (width, 0.25 * width)
        expected = sum(math.exp(-gap) for gap in gaps)
        if form.startswith("p_"):
            expected = sum(0.5 * math.exp(-gap) + 0.5 / p * math.exp(-p * gap) for gap in gaps)
        found = exponential_sum(form, [width, 0.0, 0.75 * width], p)
        assert found == pytest.approx(expected, rel=1e-12)
    assert math.isnan(exponential_sum(form, [1.001 * widest, 0.0, 1.0], p))


@pytest.mark.parametrize(("form", "p"), FORMS)
def test_exponentials_decline_where_the_curvature_is_another(form, p):
    assert math.isnan(exponential_sum(form, [1.0, 0.0, 0.5], p, bend=2.0))
    assert math.isnan(exponential_sum(form, [1.0, 0.0, 0.5], p, bend=math.inf))
