"""The cheap passes around a boosting round."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gbmrank.boosters.bindings import BoosterColumns
from gbmrank.boosters.gradients import (
    InTraining,
    read_scores,
    training_gradients,
)
from gbmrank.data import Groups
from gbmrank.errors import DataError, NumericError
from gbmrank.kernels.jit import compiler
from gbmrank.objectives.base import AbstractBound


def kernels():
    return compiler.load("scores")


def fingerprint(words):
    return BoosterColumns(np.array(words, np.float32), None, None, None).fingerprint()


@given(st.lists(st.floats(width=32), min_size=1, max_size=20), st.data())
def test_any_single_change_changes_the_fingerprint(words, data):
    at = data.draw(st.integers(0, len(words) - 1))
    other = data.draw(st.floats(width=32, allow_nan=False).filter(lambda word: word != words[at]))
    changed = [*words[:at], other, *words[at + 1 :]]
    assert fingerprint(words) == fingerprint(list(words))
    assert fingerprint(words) != fingerprint(changed)


def test_every_column_counts_in_the_fingerprint():
    labels, ones = np.arange(4.0), np.ones(4)
    given = [(None, None), ([4], None), ([2, 2], None), (None, ones), ([4], ones), ([4], 2 * ones)]
    found = {
        BoosterColumns(
            labels, None if sizes is None else np.array(sizes), weight, None
        ).fingerprint()
        for sizes, weight in given
    }
    assert len(found) == len(given)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=20), st.data())
def test_order_and_length_count(words, data):
    i, j = data.draw(st.sampled_from([(i, j) for i in range(len(words)) for j in range(i)]))
    swapped = list(words)
    swapped[i], swapped[j] = swapped[j], swapped[i]
    assert (fingerprint(words) == fingerprint(swapped)) == (words[i] == words[j])
    assert fingerprint(words) != fingerprint([*words, 0])


def test_many_small_label_vectors_have_different_fingerprints():
    rng = np.random.default_rng(0)
    rows = np.unique(rng.integers(0, 5, (20_000, 12)).astype(np.float32), axis=0)
    assert len({fingerprint(row) for row in rows}) == len(rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, 7, 1_000])
def test_the_first_value_that_is_not_finite_is_found(dtype, bad, at):
    values, groups = np.linspace(-1.0, 1.0, 1_001).astype(dtype), Groups.single(1_001)
    np.testing.assert_array_equal(read_scores(values, groups), values)
    values[at] = bad
    values[-1] = bad
    with pytest.raises(DataError, match=f"the score of row {at}, query .*is {bad};"):
        read_scores(values, groups)


def test_extreme_finite_values_are_finite():
    largest = 9e299
    scores = np.array([largest, -largest, 5e-324, 0.0])
    np.testing.assert_array_equal(read_scores(scores, Groups.single(4)), scores)
    assert len(read_scores(np.empty(0), Groups.single(0))) == 0
    with pytest.raises(DataError, match="row 1"):  # infinity, as LightGBM hands it on
        read_scores(np.array([0.0, -1e300]), Groups.single(2))


def finish(grad, hess, offsets, tied_curvature=np.inf):
    g, h = np.array(grad, np.float32), np.array(hess, np.float32)
    each = np.full(len(offsets) - 1, tied_curvature)
    query, raised = kernels().finish(g, h, np.array(offsets, np.int64), each, (1e-3, 1e-10))
    return g, h, query, raised


def test_the_floor_is_per_query_and_counts_what_it_raised():
    grad, hess = [1.0, -3.0, 0.0, 0.0], [0.0, 4.0, 0.0, 0.0]
    g, h, query, raised = finish(grad, hess, [0, 2, 4])
    np.testing.assert_array_equal(g, np.array(grad, np.float32))
    # query 0: a thousandth of the larger mean, max(4 / 2, 4 / 2); query 1: the absolute floor
    np.testing.assert_allclose(h, [2e-3, 4.0, 1e-10, 1e-10], rtol=1e-6)
    assert (query, raised) == (-1, 3)


def test_the_mean_curvature_is_the_floor_where_slopes_are_smaller():
    _, h, _, raised = finish([0.5, -0.5], [0.0, 4.0], [0, 2])
    np.testing.assert_allclose(h, [2e-3, 4.0], rtol=1e-6)
    assert raised == 1


def test_large_slopes_leave_the_curvature_of_ties_alone():
    _, h, _, raised = finish([1e6, -1e6], [2.0, 2.0], [0, 2], tied_curvature=2.0)
    assert (h.tolist(), raised) == ([2.0, 2.0], 0)
    _, h, _, raised = finish([1.0, -1.0], [1e-9, 1e-9], [0, 2], tied_curvature=0.25)  # saturated
    np.testing.assert_allclose(h, [2.5e-4, 2.5e-4], rtol=1e-6)


def test_a_negative_hessian_is_raised():
    _, h, _, raised = finish([1.0, 1.0], [-1.0, 3.0], [0, 2])
    np.testing.assert_allclose(h, [1e-3, 3.0], rtol=1e-6)
    assert raised == 1


def test_what_lies_on_the_floor_is_not_raised():
    hess = np.full(2, 0.25, np.float32)
    call = np.zeros(2, np.float32), hess, np.array([0, 2]), np.full(1, np.inf), (0.5, 0.25)
    assert kernels().finish(*call) == (-1, 0)


def test_the_floor_scales_with_the_loss():
    grad, hess = [1.0, -1.0], [0.0, 1.0]
    _, h, _, _ = finish(grad, hess, [0, 2])
    _, scaled, _, _ = finish(np.array(grad) * 8, np.array(hess) * 8, [0, 2])
    np.testing.assert_array_equal(scaled, h * 8)


class Given(AbstractBound):
    """What is given, for any scores."""

    __slots__ = ("grad", "hess")

    def __init__(self, groups, grad, hess):
        super().__init__(groups)
        self.grad, self.hess = grad, hess

    def fill(self, scores, out, *, single):
        out.grad[:], out.hess[:] = self.grad, self.hess

    def losses(self, scores):
        return np.zeros(self.groups.n_queries)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", ["grad", "hess"])
def test_the_first_bad_row_is_reported(bad, column):
    columns = {"grad": np.ones(6), "hess": np.ones(6)}
    columns[column][4] = bad
    assert finish(columns["grad"], columns["hess"], [0, 3, 6])[2] == 1
    bound = Given(Groups.from_sizes([3, 3], 6), columns["grad"], columns["hess"])
    state = InTraining(bound, np.full(2, np.inf))
    with pytest.raises(NumericError, match=r"given: gradient .* in row 4, query 1, call 7"):
        training_gradients(state, np.zeros(6), "given", 7)


def test_opposite_infinities_are_reported():
    assert finish([np.inf, -np.inf], [1.0, 1.0], [0, 2])[2] == 0


def test_no_rows_are_fine():
    assert finish([], [], [0])[2:] == (-1, 0)
