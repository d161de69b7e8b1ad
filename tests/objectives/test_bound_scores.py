"""Scores of a bound objective are checked before a kernel sees them, and losses after."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gbmrank
from gbmrank import DataError, NumericError, RankingData
from tests.objectives.cases import PRESETS, SWAPS, TEMPLATES

TEXTS = [
    *TEMPLATES,
    *PRESETS,
    *SWAPS,
    "mix(ranknet, softmax)",
    "pairwise(loss=squared)",
    "pairwise(loss=hinge)",
    "push(loss=exponential, form=log)",
    "comparison(margin=weight)",
    "bregman(loss=poisson)",
]
DATA = RankingData.from_arrays([1, 0, 1, 0], qid=["b", "a", "b", "a"])
WRONG: list[Any] = [np.zeros(1), np.zeros(0), np.zeros(400_000), np.zeros((4, 2)), np.array(0.0)]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("scores", WRONG, ids=lambda scores: str(np.shape(scores)))
def test_scores_of_a_bound_objective_need_one_entry_per_row(text: str, scores: Any) -> None:
    bound = gbmrank.objective(text).bind(DATA)
    for call in (
        bound.losses,
        bound.gradients,
        lambda given: bound.gradients(given, np.float32, single=True),
    ):
        with pytest.raises(DataError, match=r"scores (has|must be)"):
            call(scores)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_scores_of_a_bound_objective_that_are_not_finite(text: str, value: float) -> None:
    bound = gbmrank.objective(text).bind(DATA)
    scores = np.array([0.0, value, 0.0, 0.0])
    for call in (bound.losses, bound.gradients):
        with pytest.raises(DataError, match=r"1 of 4 scores .* in row 2, query 'b'"):
            call(scores)


@pytest.mark.parametrize("text", TEXTS)
def test_scores_of_a_bound_objective_are_read_as_columns(text: str) -> None:
    bound = gbmrank.objective(text).bind(DATA)
    plain = np.array([0.5, 0.25, -1.0, 2.0])
    frozen = plain.copy()
    frozen.flags.writeable = False
    columns: list[Any] = [plain.tolist(), plain.astype("f4"), np.repeat(plain, 2)[::2], frozen]
    for given in columns:
        np.testing.assert_array_equal(bound.losses(given), bound.losses(plain))
        np.testing.assert_array_equal(bound.gradients(given), bound.gradients(plain))


@pytest.mark.compiled
def test_a_bound_objective_does_not_end_the_process() -> None:
    code = (
        "import gbmrank, numpy as np\n"
        "data = gbmrank.RankingData.from_arrays([1, 0, 2, 0])\n"
        "bound = gbmrank.objective('pairwise').bind(data)\n"
        "for call in (bound.losses, bound.gradients):\n"
        "    try:\n"
        "        call(np.zeros(1))\n"
        "    except gbmrank.DataError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("scores has 1 entries, but the objective is bound to 4 rows") == 2


def test_an_objective_is_bound_to_ranking_data() -> None:
    with pytest.raises(DataError, match=r"bind takes gbmrank.RankingData, got str"):
        gbmrank.objective("ranknet").bind("x")  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1e200, 1.7e308])
def test_squared_differences_that_overflow(size: float) -> None:
    squares = gbmrank.objective("pairwise(loss=squared)")
    with pytest.raises(NumericError, match=r"the loss of query 0 is (inf|nan)"):
        squares.loss([1, 0], [size, -size])


def test_mixed_losses_that_overflow() -> None:
    with pytest.raises(NumericError, match="the loss of query 0 is inf"):
        gbmrank.mix("ranknet", weights=[1e308]).loss([1, 0], [1, 50])


def test_a_sum_of_losses_that_overflows() -> None:
    squares = gbmrank.objective("pointwise(loss=squared)")
    columns = [1] * 10, [1.3e154] * 10
    assert np.isfinite(squares.loss(*columns, group=[1] * 10, per_query=True)).all()
    with pytest.raises(NumericError, match="the sum of the losses of 10 queries is inf"):
        squares.loss(*columns, group=[1] * 10)
