"""Swap objectives: pairs weighted by the change of a metric when the two items are swapped."""

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.columns import computed_column
from gbmrank.data.queries import Groups, RankingData
from gbmrank.errors import ParameterError
from gbmrank.kernels.jit import compiler, threads
from gbmrank.kernels.layout import (
    GradHess,
    Ranking,
    Rankings,
    Span,
    SwapBuffers,
    SwapQueries,
    SwapRule,
    SwapTerms,
    SwapWork,
)
from gbmrank.losses import AbstractLoss, Logistic
from gbmrank.objectives.base import (
    AbstractBound,
    AbstractObjective,
    HessianTrait,
    check_choice,
    constant_hessian,
    row_scale,
    scale_hessian,
    sum_queries,
)
from gbmrank.objectives.levels import check_pair_loss
from gbmrank.objectives.pair_sums import is_logistic, pair_curvature
from gbmrank.types import FloatArray, IntArray, is_whole

_NOISE = ("none", "logistic", "gumbel")
_WEIGHTS = ("change", "distance", "both")
_LIKE = ("none", "lambdarank", "rank:ndcg")
_ALL_RANKS = 2**62
_ROOM = 50_000  # rows times rankings that are kept at a time


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Swap(AbstractObjective):
    r"""Pairs weighted by how much a metric changes when the two items swap their ranks.

    .. math::
        L = \sum_{v_i > v_j} |\Delta_{ij}|\, \varphi(s_i - s_j)

    where :math:`v` is the value of an item to the metric (a gain, a probability, 0 or 1). The
    weights depend on the ranks and are treated as constants in the gradient: this is LambdaRank
    for any metric whose change has a closed form. It is therefore not the gradient of a fixed
    loss, and no theorem says what it converges to. Zero for a query with one item, or where the
    metric is undefined.

    With noise, ranks come from :math:`s_i + \tau e_i` and weights are averaged over ``draws`` such
    rankings; :math:`\varphi` is evaluated at the scores themselves. The noise is a function of the
    seed, the labels and the scores of a query: it does not depend on the number of threads, and
    is new in every round.

    Ties, without noise: for positional metrics (DCG, NDCG, precision, recall, ...) the weight of a
    pair is the mean over all orderings of tied items. For other metrics and for neighbours that
    mean has no closed form and is estimated from ``draws`` random orderings. A metric with
    ``ties=index`` keeps the order of rows.

    Item weights are supported: that of the item with the larger v multiplies a pair. They do not
    enter the metric.

    Parameters
    ----------
    metric : metric, default=ndcg
        The metric to optimise: a positional metric, ``err``, ``map``, ``mrr``, ``hit_rate`` or
        ``r_precision``.
    truncation : int or None, default=None
        Truncation level: the better ranked item of a pair is among this many first ranks.
    pairs : {"all", "neighbours"}, default="all"
        All pairs, or those at neighbouring ranks.
    noise : {"none", "logistic", "gumbel"}, default="none"
        Distribution of e.
    temperature : float, default=1
        Factor tau of the noise.
    draws : int, default=10
        Number of rankings to average, with noise or random orderings of ties.
    seed : int, default=0
        Seed of the random numbers.
    weights : {"change", "distance", "both"}, default="change"
        For positional metrics with discount d: the change of the metric; the same with
        :math:`d(|a-b|) - d(|a-b|+1)` in place of :math:`|d(a) - d(b)|` (NDCG-Loss2); or the first
        plus ``mu`` times the second (NDCG-Loss2++).
    mu : float, default=10
        Factor of the second part of ``weights=both``.
    norm : bool, default=False
        Divide weights by :math:`0.01 + |s_i - s_j|` (unless all scores of the query are equal), and
        multiply the query by :math:`\log_2(1+S)/S`, with S the sum of absolute slopes: the rule of
        LightGBM's ``lambdarank_norm`` and of XGBoost's normalisations.
    like : {"none", "lambdarank", "rank:ndcg"}, default="none"
        Give steps and curvature the size they have in a booster's objective, so that parameters
        tuned for that one keep their meaning: multiply the query by :math:`\log_2(1 + 6nr)/S`, with
        n its items and r the mean of :math:`|\varphi'|` over pairs, by weight. Weights are not
        divided by differences of scores, with which ``norm`` learns noise. ``rank:ndcg`` doubles
        the Hessian, as XGBoost does. Like ``norm`` it is a rule for steps: it changes neither the
        weights within a query nor a verdict. ``yetirank(like=lambdarank)`` replaces ``lambdarank``
        in a tuned script.

    References
    ----------
    Burges, "From RankNet to LambdaRank to LambdaMART: an overview", MSR-TR-2010-82. Wang, Li,
    Golbandi, Bendersky and Najork, "The LambdaLoss framework for ranking metric optimization",
    CIKM 2018. Gulin, Kuralenok and Pavlov, "Winning the transfer learning track of Yahoo!'s
    learning to rank challenge with YetiRank", JMLR W&CP 14, 2011.
    """

    metric: Any = field(metadata={"kind": "metric", "shown": True, "usual": "ndcg"})
    loss: AbstractLoss = field(default=Logistic(), metadata={"kind": "loss", "shown": True})
    truncation: int | None = None
    pairs: str = "all"
    noise: str = "none"
    temperature: float = 1.0
    draws: int = 10
    seed: int = 0
    weights: str = "change"
    mu: float = 10.0
    norm: bool = False
    like: str = "none"

    name: ClassVar[str] = "swap"
    formula: ClassVar[str] = (
        "sum over v_i > v_j of |change of the metric by swapping i, j| phi(s_i - s_j)"
    )
    cost: ClassVar[str] = "O(n min(n, truncation)) per draw"
    reference: ClassVar[str] = "Burges 2010; Wang et al. 2018; Gulin et al. 2011"
    shift_invariant: ClassVar[bool] = True
    gradient: ClassVar[Literal["exact", "frozen_weights"]] = "frozen_weights"
    item_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super(Swap, self).__post_init__()
        check_choice(self.name, "pairs", self.pairs, ("all", "neighbours"))
        check_choice(self.name, "noise", self.noise, _NOISE)
        check_choice(self.name, "weights", self.weights, _WEIGHTS)
        check_choice(self.name, "like", self.like, _LIKE)
        if self.norm and self.like != "none":
            raise ParameterError(
                f"swap: norm=true and like={self.like} are two rules for steps; leave out one"
            )
        check_pair_loss(self.name, self.loss, self._hessian)
        _check_metric(self)
        _check_numbers(self)

    @property
    def hessian_trait(self) -> HessianTrait:
        """Trait of the Hessian of the pair loss."""
        return pair_curvature(self.name, self.loss, self._hessian).trait

    @property
    def _hessian(self) -> str:
        """The Hessian, which XGBoost doubles."""
        doubled = self.like == "rank:ndcg" and self.hessian == "auto"
        return "majorise" if doubled else self.hessian

    @property
    def randomised(self) -> bool:  # type: ignore[override]
        """Whether there is noise, or an ordering of ties is drawn."""
        return self.noise != "none" or (self.metric.ties == "mean" and not self._closed)

    @property
    def _closed(self) -> bool:
        """Whether the mean over the orderings of ties has a closed form."""
        return self.metric.swap_kind == "positional" and self.pairs == "all"

    def bind(self, data: RankingData) -> AbstractBound:
        """Compute the values of the items to the metric."""
        return _BoundSwap(self, data)

    def _rule(self) -> SwapRule:
        mean = self.metric.ties == "mean" and self.noise == "none"
        return SwapRule(
            truncation=_ALL_RANKS if self.truncation is None else int(self.truncation),
            neighbours=self.pairs == "neighbours",
            average=mean and self._closed,
            shuffle=mean and not self._closed,
            noise=_NOISE.index(self.noise),
            temperature=float(self.temperature),
            draws=int(self.draws) if self.randomised else 1,
            seed=np.uint64(self.seed),
            rho=0.0 if self.weights == "distance" else 1.0,
            mu={"change": 0.0, "distance": 1.0}.get(self.weights, float(self.mu)),
            norm=bool(self.norm),
            like=self.like != "none",
        )


@final
class _BoundSwap(AbstractBound):
    __slots__ = (
        "change",
        "constant",
        "draw",
        "factor",
        "kernels",
        "logistic",
        "params",
        "queries",
        "rule",
        "sort",
        "spans",
    )

    def __init__(self, objective: Swap, data: RankingData) -> None:
        super().__init__(data.groups)
        data, items = data.split_weight()
        curvature = pair_curvature(objective.name, objective.loss, objective._hessian)
        self.sort, self.draw = compiler.load("ranking.sorting"), compiler.load("pairs.changes")
        self.kernels = compiler.load("pairs.swaps", phi=curvature.phi)
        self.logistic = is_logistic(objective.loss, curvature)
        self.params, self.factor = objective.loss.params, curvature.factor
        self.constant = constant_hessian(objective.hessian, data)
        self.queries, self.rule = _queries(objective, data, items), objective._rule()
        self.change = getattr(self.draw, str(objective.metric.swap_kind))
        if self.rule.average:
            self.change = partial(self.draw.positional_means, self.rule.truncation)
        sizes = data.groups.sizes.astype(np.float64)
        below = 1.0 if self.rule.neighbours else np.minimum(sizes, float(self.rule.truncation))
        costs = self.rule.draws * sizes * (30.0 + 2.0 * below) + 100.0
        # Spans so short that their rankings fit into the cache, if those of a query do.
        room = _ROOM // self.rule.draws
        cuts = np.searchsorted(
            data.groups.offsets, np.arange(room, data.groups.n_rows, max(room, 1))
        )
        self.spans = threads.cut_into_spans(costs, data.groups.longest, also_at=cuts)

    def fill(self, scores: FloatArray, out: GradHess, *, single: bool) -> None:
        """Rank every query and visit its pairs."""
        rule, params, kernels = self.rule, self.params, self.kernels
        served = np.zeros(self.groups.n_queries, np.bool_)
        out.grad[:] = 0.0
        out.hess[:] = 0.0

        def compute(span: Span) -> None:
            work = self._work(span, scores)
            if rule.neighbours:
                kernels.neighbour_gradients(work, span, scores, params, out)
                return
            if single and self.logistic:
                few = work._replace(buffers=_buffers(span, np.float32))
                kernels.logistic_gradients(few, span, scores, params[0], served, out)
            if not served[span.first : span.last].all():
                kernels.swap_gradients(work, span, scores, params, served, out)

        threads.run_spans(compute, self.spans)
        scale_hessian(out, self.constant, self.factor)

    def losses(self, scores: FloatArray) -> FloatArray:
        return self.frozen_losses(scores, scores)

    def frozen_losses(self, scores: FloatArray, at: FloatArray) -> FloatArray:
        """Return the loss of each query with its weights taken at other scores."""

        def compute(span: Span, values: FloatArray) -> None:
            work = self._work(span, at)
            self.kernels.swap_values(work, span, (scores, at), self.params, values)

        return sum_queries(compute, self.spans, self.groups)

    def _work(self, span: Span, at: FloatArray) -> SwapWork:
        ranked, buffers = self._ranked(span, at), _buffers(span, np.float64)
        return SwapWork(self.queries, self.rule, ranked, buffers)

    def _ranked(self, span: Span, at: FloatArray) -> Rankings:
        """Return the rankings of a span of queries."""
        rule, offsets = self.rule, self.groups.offsets[span.first : span.last + 1]
        sizes, begins = np.diff(offsets), offsets - offsets[0]
        if rule.noise:
            begins, noisy = rule.draws * begins, np.empty(rule.draws * int(begins[-1]))
            self.draw.add_noise(self.queries, rule, span, at, begins, noisy)
            ranking = self._sorted(span, noisy, np.repeat(sizes, rule.draws))
        else:
            ranking = self._sorted(span, at[offsets[0] : offsets[-1]], sizes)
        order, tied = ranking.order, ranking.tied
        if rule.shuffle and tied.any():
            some = np.maximum.reduceat(tied, begins[:-1])
            used = np.where(some, rule.draws, 1)
            begins = _ends(sizes * used)
            shuffled, places = np.empty(begins[-1]), np.empty(begins[-1], np.int32)
            self.draw.shuffle(self.queries, rule, span, at, begins, shuffled, places)
            ranking = self._sorted(span, shuffled, np.repeat(sizes, used))
            owner = np.repeat(ranking.offsets[:-1], np.diff(ranking.offsets))
            order, tied = places[owner + ranking.order], ranking.tied
        rows = len(order)
        blocks = rows if rule.average else 0
        ranked = Rankings(
            begins=begins,
            order=order,
            tied=tied,
            head=np.empty(rows),
            share=np.empty(rows),
            tail=np.empty(rows),
            within=np.empty(blocks),
            starts=np.empty(blocks, np.int32),
            ends=np.empty(blocks, np.int32),
        )
        self.change(self.queries, span, ranked)
        return ranked

    def _sorted(self, span: Span, scores: FloatArray, sizes: IntArray) -> Ranking:
        """Return the order of scores within blocks of the given sizes."""
        order, tied = np.empty(len(scores), np.int32), np.empty(len(scores), np.uint8)
        ranking, work = Ranking(_ends(sizes), order, tied), self.sort.workspace(span.longest)
        self.sort.rank_all(scores, Span(0, len(sizes), span.longest), work, ranking)
        return ranking


def _ends(sizes: IntArray) -> IntArray:
    """Return where blocks of the given sizes begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)])


def _buffers(span: Span, precision: type[Any]) -> SwapBuffers:
    scores, *others = (np.empty(span.longest, kind) for kind in (np.float64, *[precision] * 6))
    return SwapBuffers(scores, *others)


def _queries(objective: Swap, data: RankingData, items: FloatArray | None) -> SwapQueries:
    groups, name = data.groups, objective.metric.name
    terms = objective.metric.swap_terms(data)
    values = computed_column(terms.values, groups.n_rows, f"swap values of {name}")
    scale = computed_column(terms.scale, groups.n_queries, f"swap scale of {name}")
    weight = data.query_weight()
    undefined = np.isnan(scale) | np.isnan(values[groups.offsets[:-1]])
    left_out = undefined if weight is None else undefined | (weight == 0.0)
    scale = np.where(left_out, 0.0, scale) * row_scale(data, objective.normalize)
    return SwapQueries(
        offsets=groups.offsets,
        values=np.nan_to_num(values, nan=0.0),
        scale=scale,
        weight=np.ones(groups.n_queries) if weight is None else weight,
        items=np.ones(groups.n_rows) if items is None else items,
        cuts=np.array(terms.cuts, np.int64),
        discounts=_discounts(terms, groups),
        sums=np.empty(0) if objective.weights == "change" else _sums(terms, groups),
        hashes=_hashes(data),
    )


def _discounts(terms: SwapTerms, groups: Groups) -> FloatArray:
    """Return the discounts of the ranks of every query."""
    rank = np.arange(groups.n_rows) - groups.spread(groups.offsets[:-1])
    last = groups.spread(groups.sizes) - 1
    found = np.asarray(terms.table)[last - rank if terms.upwards else rank]
    return np.where(rank < groups.spread(terms.cuts), found, 0.0)


def _sums(terms: SwapTerms, groups: Groups) -> FloatArray:
    """Return the sums of the first 0 to n discounts of every query of n rows."""
    sums, sizes = np.concatenate([[0.0], np.cumsum(terms.table)]), groups.sizes
    owner = np.repeat(np.arange(groups.n_queries), sizes + 1)
    rank = np.minimum(np.arange(len(owner)) - groups.offsets[owner] - owner, terms.cuts[owner])
    return sums[sizes[owner]] - sums[sizes[owner] - rank] if terms.upwards else sums[rank]


def _hashes(data: RankingData) -> npt.NDArray[np.uint64]:
    """Return a hash of the labels of each query, in their order."""
    words = np.array(data.labels, np.float64).view(np.uint64)
    place = np.arange(len(words)) - data.groups.spread(data.groups.offsets[:-1])
    words = words + (place.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    if not len(words):
        return np.zeros(data.groups.n_queries, np.uint64)
    return np.add.reduceat(words ^ (words >> np.uint64(31)), data.groups.offsets[:-1])


def _check_metric(objective: Swap) -> None:
    metric = objective.metric
    if metric.swap_kind is None:
        raise ParameterError(
            f"swap: the change of {metric.name} when two items swap ranks has no closed form; "
            "use a positional metric (ndcg, dcg, precision, recall, rbp, auc, positional, ...), "
            "err, map, mrr, hit_rate or r_precision"
        )
    if metric.ties not in ("mean", "index") or metric.dtype != "float64":
        raise ParameterError(
            f"swap: a metric with ties={metric.ties} and dtype={metric.dtype} is not supported; "
            "ties must be mean or index, and dtype float64"
        )
    if objective.weights != "change" and metric.swap_kind != "positional":
        raise ParameterError(
            f"swap: weights={objective.weights} needs a metric with a rank discount, such as ndcg; "
            f"use weights=change for {metric.name}"
        )


def _check_numbers(objective: Swap) -> None:
    least = {"truncation": 1, "draws": 1, "seed": 0}
    for name, smallest in least.items():
        value = getattr(objective, name)
        if name == "truncation" and value is None:
            continue
        if not is_whole(value) or not smallest <= value < 2**63:
            raise ParameterError(
                f"swap: {name} must be a whole number of at least {smallest}, got {value!r}"
            )
    if not 0.0 < objective.temperature < math.inf:
        raise ParameterError(
            f"swap: temperature must be above 0, got {objective.temperature}; use noise=none for "
            "no noise"
        )
    if not 0.0 <= objective.mu < math.inf:
        raise ParameterError(f"swap: mu must not be negative, got {objective.mu}")
