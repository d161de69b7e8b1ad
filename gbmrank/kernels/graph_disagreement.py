"""Weight of the edges that a ranking contradicts, one pass over the edges."""

from gbmrank.kernels.graph_layout import EdgeWeights
from gbmrank.kernels.jit import entry
from gbmrank.kernels.layout import Span
from gbmrank.types import FloatArray

__all__ = ["per_query"]


@entry
def per_query(scores: FloatArray, edges: EdgeWeights, span: Span, out: FloatArray) -> None:
    """Write one value per query of a span."""
    for q in range(span.first, span.last):
        total = 0.0
        for e in range(edges.offsets[q], edges.offsets[q + 1]):
            i, j = edges.winner[e], edges.loser[e]
            if scores[i] < scores[j]:
                total += edges.weight[e]
            elif scores[i] == scores[j]:
                total += edges.weight[e] * (edges.tie_down if i < j else edges.tie_up)
        out[q] = edges.scale[q] * total
