"""Regret bounds: the largest metric regret that a surrogate regret allows.

:func:`regret_bound` bounds the metric by the surrogate regret. The essential loss of a ranking
lies between the two: :func:`essential_check` tests the chain of inequalities on scores.
"""

import itertools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np

from gbmrank.data.columns import as_floats, read_number, read_table, read_whole, read_wholes
from gbmrank.data.queries import Groups, RankingData
from gbmrank.data.query_order import query_sums
from gbmrank.errors import ParameterError
from gbmrank.losses.gains import binarise, discounts, gains
from gbmrank.losses.utilities import ideal_dcg
from gbmrank.metrics import ERR, MAP, MRR, NDCG, AbstractMetric, AbstractPositional, Ranked
from gbmrank.objectives import AbstractObjective
from gbmrank.objectives.base import row_scale
from gbmrank.objectives.levels import Comparison
from gbmrank.objectives.listmle import ListMLE
from gbmrank.objectives.step_weights import GainDiscount, Weights, check_weights, step_weights
from gbmrank.registry.catalogue import WEIGHTS
from gbmrank.registry.composition import as_metric, as_objective, build, text_of
from gbmrank.theory.distributions import repeated
from gbmrank.theory.shapes import pair_shape
from gbmrank.theory.user_code import isolated, sampled
from gbmrank.theory.verdicts.calibration import calibration
from gbmrank.theory.verdicts.forms import BINARY, Labels, common, legal, probes
from gbmrank.theory.verdicts.order import (
    Utilities,
    largest_label,
    preserved_order,
    ratio,
    utility_bound,
)
from gbmrank.theory.verdicts.verdict import (
    AbstractCondition,
    BinaryLabels,
    Constant,
    LabelsFrom,
    MaxItems,
    all_of,
)
from gbmrank.theory.views import View, c_phi, view
from gbmrank.types import ArrayLike, FloatArray, IntArray


@final
@dataclass(frozen=True, slots=True)
class Bound:
    r"""A regret bound with its factors, for the query length with the largest bound.

    .. math:: R^* - R \le a\, c\, C_\phi(2) \sqrt{(L - L^*) / \nu}


    Examples
    --------
    >>> print(regret_bound("pointwise(loss=squared, target=dcg)", "dcg(gain=linear)@1", [2], 0.01))
    at most 0.141421, when labels are 0 and 1
    """

    value: float  #: the bound
    constant: float  #: c, for the objective's own utility without normalisation
    c_phi: float  #: :math:`C_\phi(2)` of the metric's discounts
    ratio: float  #: a: the metric's utility over the objective's
    scale: float  #: nu: the factor with which the objective normalises a query
    n_items: int  #: length of the query with the largest bound
    formula: str  #: formula of c
    #: condition of the verdict, and the largest label if the constant depends on it; None if the
    #: bound always holds
    condition: AbstractCondition | None = None

    def __str__(self) -> str:
        when = "" if self.condition is None else f", when {self.condition}"
        return f"at most {self.value:.6g}{when}"


@isolated
def regret_bound(
    objective: Any,
    metric: Any,
    group_sizes: ArrayLike,
    surrogate_regret: float,
    *,
    largest_utility: float | None = None,
    best_value: float | None = None,
) -> Bound:
    """Bound the metric regret of a model by its surrogate regret.

    The metric is averaged over all queries; a query on which it is undefined has the same value
    for every order. A metric with ``empty=skip`` leaves these out: divide the bound by the share
    of the others.

    Parameters
    ----------
    objective, metric : objects or text
        A pair with a known constant that is calibrated, possibly under a condition on the labels
        or on the lengths of queries; the bound then holds under the same condition.
    group_sizes : array-like of shape (n_queries,)
        Lengths of the queries; the largest bound is returned.
    surrogate_regret : float
        Mean over queries of the objective's expected loss above its infimum, in the
        objective's own units.
    largest_utility : float, optional
        Bound of the expected utility of an item (of their sum in a query for ``softmax_ce`` and
        ``sigmoid_softmax``), if the objective has none or a larger one. It replaces ``max U`` in
        the constant; ``eta`` is part of the loss and is kept. Without it, gains are those of
        labels up to ``max_grade``, which is 4 unless the target sets another: that no label is
        larger is a condition of the bound.
    best_value : float, optional
        Mean over queries of the metric under the best orders, or an upper bound of it. An item's
        expected utility is at most that of its query over the discount of the first rank, so
        constants with ``sqrt(max U)`` need no bound of the utilities (Cor. A.2).

    References
    ----------
    Calauzenes, Usunier and Gallinari, Machine Learning 93, 2013, eq. 9 and Thms 5.2-5.4.

    Examples
    --------
    >>> bound = regret_bound("pairwise(loss=squared, target=dcg)", "dcg@10", [10], 0.01)
    >>> round(bound.c_phi, 6), bound.constant, round(bound.value, 4)
    (0.811622, 1.0, 0.2435)
    """
    template, measure = as_objective(objective), as_metric(metric)
    pieces = _pieces(template, measure)
    sizes = np.unique(read_wholes(group_sizes, "group_sizes", 1))
    regret = read_number(surrogate_regret, "surrogate_regret", 0.0)
    if largest_utility is not None:
        largest_utility = read_number(largest_utility, "largest_utility", 0.0)
    if not len(sizes):
        raise ParameterError("group_sizes are the lengths of the queries, got none")
    if isinstance(pieces.condition, MaxItems) and sizes[-1] > pieces.condition.n:
        raise ParameterError(
            f"there is no regret bound for queries of {sizes[-1]} items: {template.name} is "
            f"calibrated for {measure.name} when {pieces.condition}"
        )
    best = None if best_value is None else _best_value(best_value, pieces, largest_utility)
    if best is None and largest_utility is None and pieces.constant.of in ("largest", "sum"):
        pieces = pieces._replace(condition=all_of(pieces.condition, largest_label(template)))
    bounds = [_bound_at(int(n), template, pieces, largest_utility, best) for n in sizes]
    worst = max(bounds, key=lambda bound: bound.value)
    return replace(worst, value=worst.value * float(np.sqrt(regret)))


@final
@dataclass(frozen=True, slots=True)
class EssentialCheck:
    """What a ranking loses, at most its essential loss, at most the surrogate; per query."""

    #: the best value of the metric minus that of the scores; NaN where it is undefined
    lost: FloatArray
    #: essential loss with what each item of the best order adds to the metric as weights
    essential: FloatArray
    surrogate: FloatArray  #: the surrogate, scaled so that it is an upper bound
    holds: bool  #: whether both inequalities hold in every query


def essential_loss(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    group: ArrayLike | None = None,
    weights: Any = "ndcg",
    k: int | None = None,
) -> FloatArray:
    r"""Return the essential loss of each query.

    .. math:: L_\beta = \min_o \sum_{p=1}^{n-1} \beta_p\, \mathbf 1[\text{a later item of } o
              \text{ beats item } o_p]

    over the orders o by label, of which there are several where labels are equal. A later item
    beats one of a higher label with a score that is not lower, and one of the same label with a
    higher score. So an item errs at every step of its level if no lower label has a lower best
    score, and the least sum puts these items at the steps of the smallest weights.

    Parameters
    ----------
    labels, scores : array-like of shape (n_rows,)
        Larger is better.
    group : array-like of shape (n_queries,), optional
        Rows per query; nothing means one query.
    weights : {"ndcg", "one"}, GainDiscount, text or array-like, default="ndcg"
        ``(2^y - 1) / log2(1 + p)`` of the label at step p, or 1; the weights of an objective,
        such as ``"gain_discount(gain=linear, k=10)"``; or beta of steps 1, 2, ..., zero beyond.
    k : int or None, default=None
        Last rank that counts in the weights ``"ndcg"``.

    References
    ----------
    Chen, Liu, Lan, Ma and Li, "Ranking measures and loss functions in learning to rank",
    NIPS 2009, sec. 3, with the tie rule that makes its Theorem 2 true.

    Examples
    --------
    >>> essential_loss([1, 1, 0], [1.0, 1.0, 0.0]), essential_loss([1, 0], [0.0, 0.0])
    (array([0.]), array([1.]))
    """
    made = _read_weights(weights, None if k is None else read_whole(k, "k", 1))
    data = RankingData.from_arrays(labels, group=group)
    order, places = _by_label(data)
    betas = step_weights("essential loss", made, data.labels[order], 1 + places)
    return _essential(data, data.read_scores(scores), order, betas)


def essential_check(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    group: ArrayLike | None = None,
    objective: Any = "ranknet",
    metric: Any = "ndcg",
) -> EssentialCheck:
    r"""Check both inequalities of the essential loss on the scores of a model.

    .. math:: R^* - R \le L_\beta \le \max_p \frac{\beta_p}{w_p}\, S

    with the surrogate S and its own weights w. The weight :math:`\beta_p` is what item p of the
    best order adds to the metric. An item that no later one beats has the items above it among
    the p - 1 before it, in every ordering of ties. So its rank is at most p, its discount (for
    a cascade, the probability of getting there) at least that of the best order, and it adds
    at least :math:`\beta_p`; the others add at least 0.

    Parameters
    ----------
    labels, scores, group : array-like
        As for :func:`essential_loss`.
    objective : object or text, default="ranknet"
        A comparison loss (convex, not increasing, ``phi(0) > 0``) or ListMLE, with any weights
        that are positive where the metric's are.
    metric : object or text, default="ndcg"
        A positional metric whose utilities are not negative and do not fall with the label
        (``ndcg``, ``dcg``, ``precision``, ``rbp``, ...), ``map`` without a cut-off, ``err`` or
        ``mrr``.

    References
    ----------
    Chen, Liu, Lan, Ma and Li, NIPS 2009, Thms 1 and 2, for NDCG and AP with the weights of NDCG.

    Examples
    --------
    >>> found = essential_check([2, 0, 1], [0.1, 0.4, 0.3], metric="err")
    >>> bool(found.lost[0] <= found.essential[0] <= found.surrogate[0])
    True
    """
    data = RankingData.from_arrays(labels, group=group)
    column = data.read_scores(scores)
    measure, template = as_metric(metric), as_objective(objective)
    order, places = _by_label(data)
    betas = _contributions(data, measure, order, places)
    bound = measure.bind(data)
    best, reached = (bound.per_query(Ranked(one, data.groups)) for one in (data.labels, column))
    lost = np.abs(best - reached)
    essential = _essential(data, column, order, betas)
    surrogate = _surrogate(template, data, column, (order, places, betas))
    tolerance = 1e-9
    with np.errstate(invalid="ignore"):
        broken = (lost > essential + tolerance) | (essential > surrogate * (1.0 + 1e-9) + tolerance)
    return EssentialCheck(lost, essential, surrogate, not bool(np.any(broken)))


def regression_bound(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    group: ArrayLike | None = None,
    gain: Any = "exp2",
    k: int | None = None,
) -> FloatArray:
    r"""Return the bound on one minus NDCG by the squared error on gains, per query.

    .. math:: 1 - \mathrm{NDCG} \le \frac{1}{N} \Bigl(2 \sum_p D(p)^2\Bigr)^{1/2}
              \Bigl(\sum_i (s_i - G(y_i))^2\Bigr)^{1/2}

    Scores must estimate gains: with labels as targets the bound is false. NaN if no item has a
    gain. With a cut-off, D is zero beyond it.

    Parameters
    ----------
    labels, scores, group : array-like
        As for :func:`essential_loss`.
    gain : {"exp2", "linear"} or table, default="exp2"
        Gain of the metric.
    k : int or None, default=None
        Cut-off of the metric.

    References
    ----------
    Cossock and Zhang, "Subset ranking using regression", COLT 2006, as quoted by Chen et al. 2009,
    sec. 2.3.

    Examples
    --------
    >>> regression_bound([1, 0], [0.4, 0.5]).round(3)
    array([1.306])
    """
    data = RankingData.from_arrays(labels, group=group)
    measure, values, ideal = _gains_of(data, gain, k)
    errors = query_sums((data.read_scores(scores) - values) ** 2, data.groups)
    squares = np.cumsum(discounts(data.groups.longest, measure.k) ** 2)[data.groups.sizes - 1]
    return np.asarray(np.sqrt(2.0 * squares * errors) / ideal)


def _gains_of(data: RankingData, gain: Any, k: int | None) -> tuple[NDCG, FloatArray, FloatArray]:
    """Return the metric, the gains of the rows, and the best DCG of each query; NaN for 0."""
    measure = NDCG(gain=gain if isinstance(gain, str) else tuple(gain), k=k)
    values = gains(data.labels, measure.gain)
    ideal = ideal_dcg(values, data.groups, measure.k)
    return measure, values, np.where(ideal > 0, ideal, np.nan)


def classification_bound(
    labels: ArrayLike,
    predicted: ArrayLike,
    *,
    group: ArrayLike | None = None,
    gain: Any = "exp2",
    k: int | None = None,
    max_grade: float = 4.0,
) -> FloatArray:
    r"""Return the bound on one minus NDCG of sorting by predicted grades, per query.

    .. math:: 1 - \mathrm{NDCG} \le \frac{G(g) - G(0)}{N} \Bigl(2 \sum_p D(p)^2
              - 2 n \prod_p D(p)^{2/n}\Bigr)^{1/2} \Bigl(\sum_i \mathbf 1[y_i \ne c_i]\Bigr)^{1/2}

    for grades from 0 to g; the paper's factor of 15 is that of five grades. With d and c the
    discounts of the best order and of the predicted one, and predicted gains H, the loss is
    ``sum (d_i - c_i) G_i``, at most ``sum (d_i - c_i) (G_i - H_i)`` as c sorts H; then the
    inequalities of Cauchy and Schwarz, and of the means for ``sum d_i c_i``. NaN if no item has a
    gain.

    Parameters
    ----------
    labels, predicted : array-like of shape (n_rows,)
        Grades, and their predictions, by which items are sorted.
    group, gain, k : object
        As for :func:`regression_bound`; the gain does not fall.
    max_grade : float, default=4
        Largest grade.

    References
    ----------
    Li, Burges and Wu, "McRank", NIPS 2007, Lemma 1, as quoted by Chen et al. 2009, sec. 2.3.

    Examples
    --------
    >>> classification_bound([4, 0], [4, 0]), classification_bound([4, 0], [0, 4]).round(3)
    (array([0.]), array([0.738]))
    """
    data = RankingData.from_arrays(labels, group=group)
    grades, most = data.read_scores(predicted), read_number(max_grade, "max_grade", 0.0)
    if max(data.labels.max(initial=0.0), grades.max(initial=0.0)) > max_grade or grades.min() < 0:
        raise ParameterError(
            f"classification_bound is for grades from 0 to max_grade={max_grade:g}; raise it"
        )
    measure, _, ideal = _gains_of(data, gain, k)
    ends = gains(np.array([0.0, most]), measure.gain)
    wrong = query_sums((grades != data.labels).astype(np.float64), data.groups)
    longest, sizes = data.groups.longest, data.groups.sizes
    phi = discounts(longest, measure.k)
    with np.errstate(divide="ignore"):
        means = np.exp(2.0 * np.cumsum(np.log(phi)) / np.arange(1, longest + 1))
    spread = 2.0 * (np.cumsum(phi**2) - np.arange(1, longest + 1) * means)[sizes - 1]
    return np.asarray((ends[1] - ends[0]) * np.sqrt(np.maximum(spread, 0.0) * wrong) / ideal)


def inversion_bound(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    group: ArrayLike | None = None,
    threshold: float | None = None,
) -> FloatArray:
    r"""Return the lower bound on average precision by the number of misordered pairs, per query.

    .. math:: \mathrm{AP} \ge \frac{1}{P} \Bigl(\sum_{i=1}^{P} \sqrt i\Bigr)^2
              \Bigl(Q + \frac{P (P + 1)}{2}\Bigr)^{-1}

    Q counts pairs in which a relevant item is below an irrelevant one; tied scores count one half.
    NaN if nothing is relevant.

    Parameters
    ----------
    labels, scores, group : array-like
        As for :func:`essential_loss`.
    threshold : float, optional
        Labels of at least this are relevant; needed for graded labels.

    References
    ----------
    Joachims, "Optimizing search engines using clickthrough data", KDD 2002, as quoted by Chen et
    al. 2009, sec. 2.3.

    Examples
    --------
    >>> inversion_bound([1, 0, 0], [1.0, 2.0, 0.0])
    array([0.5])
    """
    data = RankingData.from_arrays(labels, group=group)
    relevant, column = binarise(data.labels, threshold, data.groups), data.read_scores(scores)
    found = np.full(data.groups.n_queries, np.nan)
    for query, (begin, end) in enumerate(_spans(data.groups)):
        good = relevant[begin:end] == 1.0
        ups, others = column[begin:end][good], np.sort(column[begin:end][~good])
        if not len(ups):
            continue
        above = len(others) - np.searchsorted(others, ups, side="right")
        above_or_tied = len(others) - np.searchsorted(others, ups, side="left")
        pairs = 0.5 * float((above + above_or_tied).sum())
        p = np.arange(1.0, len(ups) + 1.0)
        found[query] = np.sqrt(p).sum() ** 2 / (pairs + p.sum()) / len(ups)
    return found


class _Pieces(NamedTuple):
    utilities: Utilities  # that the objective sorts
    seen: View
    constant: Constant
    grades: list[tuple[float, ...]]  # that tell the two utilities apart
    condition: AbstractCondition | None


def _pieces(template: AbstractObjective, measure: AbstractMetric) -> _Pieces:
    """Return the factors of a bound, on the labels for which the verdict holds."""
    verdict = calibration(template, measure)
    preserved, seen = preserved_order(template), view(measure)
    if preserved is None or seen is None or verdict.status not in ("calibrated", "conditional"):
        raise ParameterError(f"there is no regret bound: {verdict.sentence}")
    if not isinstance(verdict.condition, BinaryLabels | LabelsFrom | MaxItems | None):
        raise ParameterError(
            f"no regret bound is known where calibration needs that {verdict.condition}"
        )
    if preserved.constant is None:
        raise ParameterError(
            f"{template.name} is calibrated for {measure.name}, but the constant of its regret "
            "bound is not known. Squared, logistic and exponential have one, and so has a "
            "generator of yours that declares mu"
        )
    labels = common(preserved.labels, legal(seen.form))
    if isinstance(verdict.condition, BinaryLabels):
        labels = (BINARY,)
    if isinstance(verdict.condition, LabelsFrom):
        labels = common(labels, (Labels(low=verdict.condition.low),))
    grades = [probes((preserved.form, seen.form), each) for each in labels]
    return _Pieces(preserved.utilities, seen, preserved.constant, grades, verdict.condition)


def _best_value(given: float, pieces: _Pieces, largest: float | None) -> float:
    """Validate ``best_value`` for constants in which it can replace a bound of the utilities."""
    best, constant = read_number(given, "best_value", 0.0), pieces.constant
    offsets = getattr(pieces.seen.offsets, "__func__", None)
    no_offset = offsets in (None, AbstractPositional.offsets) and pieces.seen.sign > 0
    if constant.of != "largest" or constant.power != 0.5 or largest is not None or not no_offset:
        raise ParameterError(
            "best_value= takes the place of largest_utility= in constants with sqrt(max U) and for "
            f"metrics without an offset; here the constant is {constant}"
        )
    return best


def _bound_at(
    n: int, template: AbstractObjective, pieces: _Pieces, largest: float | None, best: float | None
) -> Bound:
    """Return the bound for queries of n items and a surrogate regret of one."""
    utilities, seen, constant, grades, condition = pieces
    phi = seen.discounts(n)
    discount = c_phi(phi)
    if n < 2 or discount == 0.0:
        return Bound(0.0, constant.value(), 0.0, 1.0, 1.0, n, constant.text, condition)
    factors = [ratio(utilities, seen.utilities, each, n) for each in grades]
    factor = max((one for one in factors if one is not None), default=None)
    if factor is None:
        raise ParameterError(
            f"there is no regret bound for queries of {n} items: there {template.name} sorts "
            "another utility than the metric asks for"
        )
    if best is not None:
        largest = best / (factor * float(phi[0]))
    c = constant.value(_utility_bound(n, template, constant, largest))
    scale = float(row_scale(repeated(np.zeros((1, n))), template.normalize)[0])
    value = factor * c * discount / float(np.sqrt(scale))
    return Bound(value, c, discount, factor, scale, n, constant.text, condition)


def _utility_bound(
    n: int, template: AbstractObjective, constant: Constant, largest: float | None
) -> float:
    known = utility_bound(template, n)
    bound = known if largest is None or constant.of == "eta" else largest
    if bound is None:
        if constant.of == "none":
            return 1.0
        what = "the sum of a query's utilities" if constant.of == "sum" else "the utilities"
        raise ParameterError(
            f"the constant {constant} needs a bound of {what}; give largest_utility="
        )
    if constant.of == "sum" and largest is None:
        bound *= n
    return bound + float(getattr(getattr(template, "loss", None), "eps", 0.0))


def _read_weights(weights: Any, k: int | None) -> Weights:
    if isinstance(weights, GainDiscount):
        return weights
    if isinstance(weights, str):
        if weights in ("one", "ndcg"):
            return "none" if weights == "one" else GainDiscount(k=k)
        if weights.startswith(GainDiscount.name):
            return build(WEIGHTS, weights)
        raise ParameterError(
            f"weights must be ndcg or one, gain_discount with options or numbers; got {weights!r}"
        )
    table = tuple(read_table(as_floats(weights, "weights"), "weights").tolist())
    check_weights("essential_loss", table)
    return table


def _by_label(data: RankingData) -> tuple[IntArray, IntArray]:
    """Return the rows of each query by label, best first, and their places there, from 0."""
    groups = data.groups
    order = np.lexsort((-data.labels, groups.spread(np.arange(groups.n_queries))))
    return order, np.arange(len(order)) - groups.spread(groups.offsets[:-1])


def _contributions(
    data: RankingData, measure: AbstractMetric, order: IntArray, places: IntArray
) -> FloatArray:
    """Return what each item of the best order adds to a metric; NaN where it is undefined."""
    groups, seen = data.groups, view(measure)
    if seen is not None:
        values = seen.utilities(data)[order]
        tables = {int(n): seen.discounts(int(n)) for n in np.unique(groups.sizes)}
        phi = np.concatenate([np.empty(0), *(tables[n] for n in groups.sizes.tolist())])
        follows = places[1:] > 0
        if np.any(values < 0) or np.any(np.diff(values)[follows] > 0):
            raise ParameterError(
                f"the essential loss bounds {measure.name} where utilities are not negative and "
                "the gains of larger labels are not smaller"
            )
        if np.any(phi < 0) or np.any(np.diff(phi)[follows] > 0):
            raise ParameterError(
                f"the essential loss bounds {measure.name} where discounts do not rise with the "
                "rank and are not negative"
            )
        return np.asarray(values * phi, np.float64)
    if isinstance(measure, ERR | MRR):
        terms = measure.swap_terms(data)
        stops, added = terms.values[order], np.empty(len(order))
        for begin, end in _spans(groups):
            arrived = np.cumprod(np.append(1.0, 1.0 - stops[begin : end - 1]))
            added[begin:end] = stops[begin:end] * arrived / (1.0 + places[begin:end])
        return added * (places < groups.spread(terms.cuts)) * groups.spread(terms.scale)
    if isinstance(measure, MAP) and measure.k is None:
        relevant = binarise(data.labels, measure.threshold, groups)
        positives = query_sums(relevant, groups)
        return (relevant / groups.spread(np.where(positives > 0, positives, np.nan)))[order]
    raise ParameterError(
        "the essential loss bounds ndcg and other positional metrics, err, mrr, and map without a "
        f"cut-off; got {measure.name}"
    )


def _essential(
    data: RankingData, scores: FloatArray, order: IntArray, betas: FloatArray
) -> FloatArray:
    """Return the essential losses for weights of the steps, which are ``order`` by query."""
    losses = np.zeros(data.groups.n_queries)
    for query, (begin, end) in enumerate(_spans(data.groups)):
        rows = order[begin:end]
        y, s, beta, below = data.labels[rows], scores[rows], betas[begin:end], -np.inf
        losses[query] = np.nan if np.isnan(beta).any() else 0.0
        levels = np.append(np.flatnonzero(np.diff(y, prepend=np.inf)), len(y))
        for first, last in reversed(list(itertools.pairwise(levels.tolist()))):
            errors = np.count_nonzero(s[first:last] <= below)
            losses[query] += float(np.sort(beta[first:last])[:errors].sum())
            below = max(below, s[first:last].max())
    return losses


def _surrogate(
    template: AbstractObjective,
    data: RankingData,
    scores: FloatArray,
    steps: tuple[IntArray, IntArray, FloatArray],
) -> FloatArray:
    """Return the surrogate, scaled to be at least the essential loss."""
    if getattr(template, "preferences", None) is not None:
        raise ParameterError("the essential loss is one of labels; leave out preferences")
    margin = getattr(template, "margin", 0.0)
    if not isinstance(margin, str) and margin < 0.0:
        raise ParameterError(
            f"{template.name} with margin={margin:g} does not bound the essential loss; one from 0 "
            "on does"
        )
    if isinstance(template, ListMLE):
        factor = np.log(2.0)
    elif isinstance(template, Comparison) and pair_shape(template.loss).decreasing:
        factor = sampled(template.loss, template.loss.kappa, 0.0)[0]
    else:
        raise ParameterError(f"{template.name} is not known to bound the essential loss")
    plain = replace(template, normalize="none")
    losses = plain.bind(RankingData(data.labels, data.groups)).losses(scores)
    return _largest_ratios(template, data, steps) * losses / factor


def _largest_ratios(
    template: ListMLE | Comparison, data: RankingData, steps: tuple[IntArray, IntArray, FloatArray]
) -> FloatArray:
    """Return per query the largest weight of a step over the objective's own weight there.

    Items of the lowest label have no step that errs. A comparison weighs all items of a level
    like its first step.
    """
    order, places, betas = steps
    labels, groups = data.labels[order], data.groups
    if isinstance(template, Comparison):
        new = (places == 0) | (np.diff(labels, prepend=np.inf) != 0)
        places = places[np.maximum.accumulate(np.where(new, np.arange(len(new)), 0))]
    own = step_weights(template.name, template.weights, labels, 1 + places)
    errs = (labels > groups.spread(labels[groups.offsets[1:] - 1])) & (betas > 0)
    if np.any(own[errs] == 0):
        raise ParameterError(
            f"{text_of(template)} has a weight of zero at a step that adds to the metric, so it "
            "bounds nothing. Leave out weights=, or give weights that are positive there"
        )
    ratios = np.divide(betas, own, out=np.where(np.isnan(betas), np.nan, 0.0), where=errs)
    return np.asarray(np.maximum.reduceat(ratios, groups.offsets[:-1]), np.float64)


def _spans(groups: Groups) -> list[tuple[int, int]]:
    return list(itertools.pairwise(groups.offsets.tolist()))
