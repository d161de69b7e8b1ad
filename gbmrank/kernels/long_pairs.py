r"""Order-preserving sums over the pairs of long queries, in linear time.

A template with the slot ``linear_pairs``, the linear-time engine, which may decline. It
stands apart from :mod:`gbmrank.kernels.all_pairs` so that short queries do not wait until
that engine is compiled.
"""

from typing import TYPE_CHECKING

import numpy as np

from gbmrank.kernels.jit import entry
from gbmrank.kernels.layout import Engines, GradHess, ItemQueries, Span
from gbmrank.kernels.linear_layout import Side
from gbmrank.kernels.rows import mark_served, read_scores, write_scaled
from gbmrank.kernels.score_range import middle_and_range
from gbmrank.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from gbmrank.kernels.slots import linear_pairs

__all__ = ["linear_sums"]


@entry
def linear_sums(
    queries: ItemQueries,
    span: Span,
    scores: FloatArray,
    params: tuple[float, ...],
    engines: Engines,
    served: BoolArray,
    values: FloatArray,
    out: GradHess,
) -> None:
    """Sum the long queries of a span; mark those that are done.

    With an empty ``out`` only values are written.
    """
    s_buffer = np.empty(span.longest)
    g_buffer = np.empty(span.longest)
    h_buffer = np.empty(span.longest)
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        if served[q] or end - begin < engines.linear_from:
            continue
        if queries.scale[q] == 0.0 or queries.useful[q] == 0:
            continue
        rows = queries.order[begin:end]
        s, g, h = s_buffer[: end - begin], g_buffer[: end - begin], h_buffer[: end - begin]
        read_scores(scores, rows, s)
        if len(s) < engines.linear_range * middle_and_range(s)[1]:
            continue
        side = Side(s, queries.utilities[begin:end], g, h)
        scale, value = queries.scale[q], linear_pairs(side, engines.plan, params)
        if mark_served(q, scale * value, values, served) and len(out.grad):
            write_scaled(g, h, scale, rows, out)
