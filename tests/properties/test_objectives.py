"""Every registered objective on random small data: what must hold whatever the data are."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gbmrank
from gbmrank import RankingData
from gbmrank.registry import OBJECTIVES
from tests.objectives.cases import (
    MORE,
    PRESETS,
    SWAPS,
    TEMPLATES,
    binary_texts,
    one_per_kernel,
    options,
)
from tests.properties.strategies import BINARY, GRADED, Problem, problems
from tests.properties.tally import fewer, tried

STEP = 1e-5
SHORT = [str(gbmrank.objective(name, **options(name))) for name in TEMPLATES]
SHORT += [str(gbmrank.objective(name)) for name in (*PRESETS, "mix(ranknet, softmax)")]
SHORT = list(dict.fromkeys(SHORT))
REGISTERED = set(OBJECTIVES.entries)  # before other tests register theirs
LONG = [text for text in dict.fromkeys([*one_per_kernel(), *MORE]) if text not in SHORT]
TEXTS = [*SHORT, *(pytest.param(text, marks=pytest.mark.nightly) for text in LONG)]


def test_every_registered_objective_is_tried_every_time():
    names = {re.split(r"\W", text)[0] for text in SHORT}
    presets = {str(gbmrank.objective(name)) for name in PRESETS}
    assert presets <= set(SHORT)
    assert names >= REGISTERED - {*PRESETS, *SWAPS}


def grades_for(text: str):
    if "listmle" in text:
        return None  # equal labels are put in an order by the row, as documented
    return BINARY if str(gbmrank.objective(text)) in binary_texts() else GRADED


def bind(text: str, problem: Problem, rows=None, sizes=None, weight=None):
    labels = problem.labels if rows is None else problem.labels[rows]
    data = RankingData.from_arrays(
        labels, group=problem.sizes if sizes is None else sizes, weight=weight
    )
    return gbmrank.objective(text).template.bind(data)


def assert_near(got, want, tolerance=1e-11, size=1e-6):
    """Equal up to rounding; ``size`` is that of the terms, which may leave no gradient."""
    scale = max(np.abs(want).max(initial=0.0), size)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("text", TEXTS)
def test_gradients_are_the_slopes_of_the_loss(text):
    """Between the slopes to the left and to the right: true at the kink of a hinge as well."""

    @fewer(3)
    @given(problems(grades_for(text)))
    def check(problem):
        bound = bind(text, problem)
        grad, hess = bound.gradients(problem.scores)
        assert np.isfinite(grad).all()
        assert np.isfinite(hess).all()
        assert (hess >= 0.0).all() or text == "sigmoid_softmax(hessian=exact)"
        here = bound.losses(problem.scores)
        for row in range(len(grad)):
            query = next(q for q, part in enumerate(problem.slices) if row < part.stop)
            slopes = []
            for by in (-STEP, STEP):
                moved = problem.scores.copy()
                moved[row] += by
                slopes.append((bound.losses(moved)[query] - here[query]) / by)
            slack = 1e-6 * (abs(grad[row]) + hess[row]) + 1e-9 * (1.0 + abs(here[query]))
            assert min(slopes) - slack <= grad[row] <= max(slopes) + slack
        tried("objective slopes")

    check()


@pytest.mark.parametrize("text", TEXTS)
def test_rows_queries_and_weights(text):
    """A query is alone in the world, rows have no order, weights multiply."""

    @fewer(3)
    @given(problems(grades_for(text)))
    def check(problem):
        bound = bind(text, problem)
        grad, hess = bound.gradients(problem.scores)
        values = bound.losses(problem.scores)
        for query, part in enumerate(problem.slices):
            alone = bind(text, problem, part, [part.stop - part.start])
            again = alone.gradients(problem.scores[part])
            assert again[0].tolist() == grad[part].tolist()
            assert again[1].tolist() == hess[part].tolist()
            assert alone.losses(problem.scores[part])[0] == values[query]
        permuted = bind(text, problem, problem.within).gradients(problem.scores[problem.within])
        if "listmle" not in text or "mix" not in text:
            assert_near(permuted[0], grad[problem.within], size=np.abs(hess).max())
            assert_near(permuted[1], hess[problem.within])
        weighted = bind(text, problem, weight=problem.weight)
        rows = np.repeat(problem.weight, problem.sizes)
        assert_near(weighted.gradients(problem.scores)[0], grad * rows)
        assert_near(weighted.gradients(problem.scores)[1], hess * rows)
        assert_near(weighted.losses(problem.scores), values * problem.weight)
        tried("objective symmetries")

    check()


@pytest.mark.parametrize("text", SHORT)
def test_a_common_shift_moves_only_what_says_so(text):
    invariant = gbmrank.objective(text).template.shift_invariant

    @fewer(3)
    @given(problems(grades_for(text)), st.sampled_from([-8.0, 0.5, 16.0]))
    def check(problem, shift):
        if not invariant:
            return
        bound = bind(text, problem)
        grad, hess = bound.gradients(problem.scores)
        moved, _ = bound.gradients(problem.scores + shift)
        assert_near(moved, grad, 1e-8)
        sums = np.array([grad[part].sum() for part in problem.slices])
        assert np.abs(sums).max() <= 1e-12 * (np.abs(grad) + np.abs(hess)).sum()
        tried("objective shifts")

    check()
