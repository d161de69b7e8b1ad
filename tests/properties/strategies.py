"""Small ranking problems with everything that tends to break rankers."""

import itertools
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

TIED = (-2.0, -1.0, -0.0, 0.0, 0.5, 1.0)  # margins of exactly 0, 1 and 2 occur
GRADED, BINARY = (0.0, 1.0, 2.0, 3.0, 4.0), (0.0, 1.0)


class Problem(NamedTuple):
    """Rows of queries, a permutation of the rows inside each, and weights of queries."""

    sizes: list[int]
    labels: Any
    scores: Any
    within: Any
    weight: Any

    @property
    def slices(self) -> list[slice]:
        ends = np.cumsum([0, *self.sizes]).tolist()
        return [slice(a, b) for a, b in itertools.pairwise(ends)]


@st.composite
def problems(draw: Any, grades: tuple[float, ...] | None = GRADED, most: int = 6) -> Problem:
    """Queries of one row and more; scores that tie or do not; ``grades=None``: labels untied."""
    sizes = draw(st.lists(st.integers(1, most), min_size=1, max_size=4))
    rows = sum(sizes)
    score = st.sampled_from(TIED) if draw(st.booleans()) else st.floats(-4, 4, width=32)
    scores = np.array(draw(st.lists(score, min_size=rows, max_size=rows)))
    within, labels, start = [], [], 0
    for n in sizes:
        within += [start + i for i in draw(st.permutations(range(n)))]
        if grades is None:
            labels += [4.0 * i / most for i in draw(st.permutations(range(n)))]
        else:
            labels += draw(st.lists(st.sampled_from(grades), min_size=n, max_size=n))
        start += n
    factor = st.sampled_from([0.0, 0.25, 1.0, 3.0])
    weight = draw(st.lists(factor, min_size=len(sizes), max_size=len(sizes)).filter(any))
    return Problem(sizes, np.array(labels), scores, np.array(within), np.array(weight))
