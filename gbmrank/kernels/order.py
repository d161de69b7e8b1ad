"""Scores to rankings: the whole order, the best few, and ties settled by value."""

from gbmrank.kernels.blocks import block_end
from gbmrank.kernels.jit import entry, inner
from gbmrank.kernels.layout import Span
from gbmrank.kernels.rankings import Ranking
from gbmrank.kernels.sorting import Workspace, sort_down, workspace
from gbmrank.types import FloatArray

__all__ = ["rank_best", "settle"]


@inner
def _write(work: Workspace, begin: int, n: int, ranking: Ranking) -> None:
    """Copy a sorted query and mark its ties."""
    ranking.order[begin] = work.items[0]
    ranking.tied[begin] = 0
    for i in range(1, n):
        ranking.order[begin + i] = work.items[i]
        ranking.tied[begin + i] = work.keys[i] == work.keys[i - 1]


@inner
def _keep_best(scores: FloatArray, k: int, work: Workspace) -> None:
    """Write the k largest scores and their items, earlier rows first among equals."""
    keys, items = work.keys, work.items
    kept = 0
    for i in range(len(scores)):
        score = scores[i]
        if kept == k and not score > keys[k - 1]:
            continue
        kept = min(kept + 1, k)
        j = kept - 1
        while j > 0 and keys[j - 1] < score:
            keys[j] = keys[j - 1]
            items[j] = items[j - 1]
            j -= 1
        keys[j] = score
        items[j] = i


@inner
def _write_best(scores: FloatArray, k: int, begin: int, work: Workspace, ranking: Ranking) -> None:
    """Write the k best of a query and all that tie with the last of them."""
    _keep_best(scores, k, work)
    last = work.keys[k - 1]
    above = 0
    while work.keys[above] > last:
        above += 1
    _write(work, begin, above + 1, ranking)
    place = begin + above
    for i in range(len(scores)):
        if scores[i] == last:
            ranking.order[place] = i
            ranking.tied[place] = place > begin + above
            place += 1
    if place < begin + len(scores):
        ranking.tied[place] = 0


@entry
def rank_best(scores: FloatArray, k: int, span: Span, ranking: Ranking) -> None:
    """Rank at least the first k items of each query, and all that tie with the k-th."""
    work = workspace(span.longest)
    for q in range(span.first, span.last):
        begin, end = ranking.offsets[q], ranking.offsets[q + 1]
        if end - begin > 2 * k:
            _write_best(scores[begin:end], k, begin, work, ranking)
        else:
            sort_down(scores[begin:end], work)
            _write(work, begin, end - begin, ranking)


@inner
def _settle_block(
    ranking: Ranking, values: FloatArray, block: tuple[int, int, int], work: Workspace, out: Ranking
) -> None:
    """Order the entries of one block by decreasing value."""
    begin, start, stop = block
    value = work.settled[: stop - start]
    for i in range(start, stop):
        value[i - start] = values[begin + ranking.order[i]]
    sort_down(value, work)
    for i in range(stop - start):
        out.order[start + i] = ranking.order[start + work.items[i]]


@entry
def settle(ranking: Ranking, values: FloatArray, k: int, span: Span, out: Ranking) -> None:
    """Write the order in which tied items follow each other by decreasing value."""
    work = workspace(span.longest)
    for q in range(span.first, span.last):
        begin, end = ranking.offsets[q], ranking.offsets[q + 1]
        start = begin
        while start < end and start - begin < k:
            stop = block_end(ranking, start, end)
            if stop - start == 1:
                out.order[start] = ranking.order[start]
            else:
                _settle_block(ranking, values, (begin, start, stop), work, out)
            start = stop
