"""Slow twins: plain loops over definitions. Nothing here imports gbmrank."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

Order = Sequence[int]
Measure = Callable[[Sequence[float], Order], float]

GRADES, BINARY = 4, 1  # largest labels


def orders_of(scores: Sequence[float]) -> Iterator[list[int]]:
    """Yield every order of the items, best first, that sorts the scores."""
    blocks = [
        [i for i, score in enumerate(scores) if score == level]
        for level in sorted(set(scores), reverse=True)
    ]
    for parts in itertools.product(*(itertools.permutations(block) for block in blocks)):
        yield [item for part in parts for item in part]


def mean_over_orders(measure: Measure, labels: Sequence[float], scores: Sequence[float]) -> float:
    """Mean of a measure over all orders of tied items."""
    values = [measure(labels, order) for order in orders_of(scores)]
    return math.fsum(values) / len(values)


def extreme_over_orders(
    pick: Callable[[Sequence[float]], float],
    measure: Measure,
    labels: Sequence[float],
    scores: Sequence[float],
) -> float:
    """Smallest or largest value of a measure over all orders of tied items."""
    return pick([measure(labels, order) for order in orders_of(scores)])


def first_in_row_order(scores: Sequence[float]) -> list[int]:
    """The order in which equal scores keep the order of their rows."""
    return sorted(range(len(scores)), key=lambda i: (-scores[i], i))


def _limit(order: Order, k: int | None) -> int:
    return len(order) if k is None else min(k, len(order))


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else math.nan


def dcg(
    labels: Sequence[float], order: Order, k: int | None = None, gain: str | list[float] = "exp2"
) -> float:
    """Sum of gain over log2(1 + rank)."""
    total = 0.0
    for position in range(_limit(order, k)):
        label = labels[order[position]]
        worth = 2**label - 1 if gain == "exp2" else label
        if not isinstance(gain, str):
            worth = gain[int(label)]
        total += worth / math.log2(2 + position)
    return total


def ndcg(
    labels: Sequence[float], order: Order, k: int | None = None, gain: str | list[float] = "exp2"
) -> float:
    """DCG over the largest DCG of any order."""
    best = max(dcg(labels, o, k, gain) for o in itertools.permutations(range(len(labels))))
    return _ratio(dcg(labels, order, k, gain), best)


def precision(labels: Sequence[float], order: Order, k: int | None = None) -> float:
    """Share of relevant items among the first k ranks, also when there are fewer items."""
    return sum(labels[i] for i in order[: _limit(order, k)]) / (len(order) if k is None else k)


def recall(labels: Sequence[float], order: Order, k: int | None = None) -> float:
    """Share of the relevant items that are among the first k."""
    return _ratio(sum(labels[i] for i in order[: _limit(order, k)]), sum(labels))


def pair_auc(labels: Sequence[float], order: Order) -> float:
    """Share of (relevant, other) pairs in the right order."""
    right = pairs = 0
    for above, i in enumerate(order):
        for below, j in enumerate(order):
            if labels[i] == 1 and labels[j] == 0:
                pairs += 1
                right += above < below
    return _ratio(right, pairs)


def spearman(labels: Sequence[float], order: Order) -> float:
    """Mean over all linear orders of the labels of 1 - 6 sum d^2 / (n (n^2 - 1))."""
    n = len(labels)
    if n == 1:
        return math.nan
    values = []
    for reference in orders_of(labels):
        square = sum((order.index(i) - reference.index(i)) ** 2 for i in range(n))
        values.append(1 - 6 * square / (n * (n * n - 1)))
    return math.fsum(values) / len(values)


def eru(
    labels: Sequence[float], order: Order, neutral: float = 0.0, half_life: float = 5.0
) -> float:
    """Sum of the excess over the neutral grade, halved every half_life - 1 ranks."""
    return sum(
        max(labels[i] - neutral, 0) * 2 ** (-position / (half_life - 1))
        for position, i in enumerate(order)
    )


def err(
    labels: Sequence[float], order: Order, k: int | None = None, max_grade: float = 4.0
) -> float:
    """Expected reciprocal of the rank at which a reader going down stops."""
    total, reads_on = 0.0, 1.0
    for position in range(_limit(order, k)):
        stops = (2 ** labels[order[position]] - 1) / 2**max_grade
        total += reads_on * stops / (position + 1)
        reads_on *= 1 - stops
    return total


def average_precision(
    labels: Sequence[float], order: Order, k: int | None = None, denominator: str = "relevant"
) -> float:
    """Mean over relevant items of the precision at their rank."""
    total, found = 0.0, 0
    for position in range(_limit(order, k)):
        if labels[order[position]] == 1:
            found += 1
            total += found / (position + 1)
    relevant = sum(labels)
    if denominator == "min" and k is not None:
        relevant = min(relevant, k)
    return _ratio(total, relevant)


def reciprocal_rank(labels: Sequence[float], order: Order, k: int | None = None) -> float:
    """One over the rank of the first relevant item; zero when it is beyond k."""
    if not any(labels):
        return math.nan
    for position in range(_limit(order, k)):
        if labels[order[position]] == 1:
            return 1 / (position + 1)
    return 0.0


def positives_at_top(labels: Sequence[float], order: Order) -> float:
    """Relevant items before the first other one."""
    return float(len(list(itertools.takewhile(lambda i: labels[i] == 1, order))))


def pairwise_disagreement(labels: Sequence[float], order: Order) -> float:
    """Sum of label differences over pairs in the wrong order."""
    total = 0.0
    for above, j in enumerate(order):
        for i in order[above + 1 :]:
            total += max(labels[i] - labels[j], 0)
    return total


def rbp(labels: Sequence[float], order: Order, k: int | None = None, p: float = 0.8) -> float:
    """Chance to stop at each rank, times the label there."""
    return sum((1 - p) * p**r * labels[i] for r, i in enumerate(order[: _limit(order, k)]))


def hit_rate(labels: Sequence[float], order: Order, k: int | None = None) -> float:
    """Whether a relevant item is among the first k."""
    return float(any(labels[i] for i in order[:k])) if any(labels) else math.nan


def r_precision(labels: Sequence[float], order: Order) -> float:
    """Precision at the number of relevant items."""
    relevant = int(sum(labels))
    return precision(labels, order, relevant) if relevant else math.nan


def alpha_ndcg(
    topics: Sequence[Sequence[int]], order: Order, k: int | None = None, alpha: float = 0.5
) -> float:
    """Discounted gains of subtopics, each worth less when it comes again, over a greedy list."""

    def gain(i: int, above: Sequence[int]) -> float:
        return sum(
            has * (1 - alpha) ** sum(topics[j][t] for j in above) for t, has in enumerate(topics[i])
        )

    def value(items: Order) -> float:
        ranks = range(_limit(items, k))
        return sum(gain(items[r], items[:r]) / math.log2(2 + r) for r in ranks)

    greedy: list[int] = []
    while len(greedy) < len(topics):
        rest = [i for i in range(len(topics)) if i not in greedy]
        greedy.append(max(rest, key=lambda i: (gain(i, greedy), tuple(topics[i]))))
    return _ratio(value(order), value(greedy))


def shapley(value: Callable[[tuple[bool, ...]], float], n: int) -> list[float]:
    """Shapley values of n players, from the values of all coalitions."""
    values = {one: value(one) for one in itertools.product((False, True), repeat=n)}
    share = [math.factorial(k) * math.factorial(n - k - 1) / math.factorial(n) for k in range(n)]
    return [
        math.fsum(
            share[sum(one)] * (values[(*one[:i], True, *one[i + 1 :])] - values[one])
            for one in values
            if not one[i]
        )
        for i in range(n)
    ]


def _normalised_disagreement(labels: Sequence[float], order: Order) -> float:
    total = sum(max(a - b, 0) for a in labels for b in labels)
    return _ratio(pairwise_disagreement(labels, order), total)


def _normalised_top(labels: Sequence[float], order: Order) -> float:
    return _ratio(positives_at_top(labels, order), sum(labels))


def _reciprocal(labels: Sequence[float], order: Order) -> float:
    return sum(labels[i] / (1 + r) for r, i in enumerate(order))


TWINS: list[tuple[str, Measure, int]] = [  # a metric, the value of one order, the largest label
    ("dcg", dcg, GRADES),
    ("dcg(gain=linear)@2", partial(dcg, k=2, gain="linear"), GRADES),
    ("ndcg", ndcg, GRADES),
    ("ndcg@1", partial(ndcg, k=1), GRADES),
    ("ndcg(gain=[0, 1, 1, 5, 9])@2", partial(ndcg, k=2, gain=[0, 1, 1, 5, 9]), GRADES),
    ("ndcg@9", partial(ndcg, k=9), GRADES),
    ("precision", precision, BINARY),
    ("precision@3", partial(precision, k=3), BINARY),
    ("recall@2", partial(recall, k=2), BINARY),
    ("recall", recall, BINARY),
    ("wta", partial(precision, k=1), BINARY),
    ("auc", pair_auc, BINARY),
    ("spearman", spearman, GRADES),
    ("eru", eru, GRADES),
    ("eru(neutral=1.5, half_life=2.5)", partial(eru, neutral=1.5, half_life=2.5), GRADES),
    ("err", err, GRADES),
    ("err@2", partial(err, k=2), GRADES),
    ("err(max_grade=31)", partial(err, max_grade=31), 31),
    ("map", average_precision, BINARY),
    ("map@3", partial(average_precision, k=3), BINARY),
    ("map(denominator=min)@2", partial(average_precision, k=2, denominator="min"), BINARY),
    ("mrr", reciprocal_rank, BINARY),
    ("mrr@2", partial(reciprocal_rank, k=2), BINARY),
    ("rbp", rbp, GRADES),
    ("rbp(p=0.5, threshold=1)@2", partial(rbp, p=0.5, k=2), BINARY),
    ("hit_rate", hit_rate, BINARY),
    ("hit_rate@2", partial(hit_rate, k=2), BINARY),
    ("r_precision", r_precision, BINARY),
    ("ptop", positives_at_top, BINARY),
    ("ptop(normalize=True)", _normalised_top, BINARY),
    ("pairwise_disagreement", _normalised_disagreement, GRADES),
    ("pairwise_disagreement(normalize=False)", pairwise_disagreement, GRADES),
    ("positional(utility=identity, discount=reciprocal)", _reciprocal, GRADES),
]
