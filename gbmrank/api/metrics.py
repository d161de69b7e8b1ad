"""The user API of metrics: ``Metric``, ``MetricList`` and ``metric``."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, final

import numpy as np

from gbmrank.boosters.base import plain_name
from gbmrank.boosters.bindings import BoosterColumns, state_of
from gbmrank.boosters.callbacks import callable_name, read_call, warn_if_weighted, xgbranker_advice
from gbmrank.boosters.gradients import read_scores
from gbmrank.boosters.supported import booster_named, booster_of
from gbmrank.data.queries import Groups, RankingData, warn_if_forgotten
from gbmrank.errors import ConfigError, DataError, GbmrankWarning, MetricError, SpecError, warn
from gbmrank.metrics import (
    AbstractBoundMetric,
    AbstractMetric,
    Ranked,
    conventions,
    subtopic_columns,
)
from gbmrank.metrics.probability import PROBABILITY_METRICS, ProbabilityMetric
from gbmrank.registry.catalogue import METRICS, OBJECTIVES
from gbmrank.registry.composition import AbstractValue, build, spec_of
from gbmrank.registry.guards import bind_metric
from gbmrank.registry.spec import Spec, parse_list
from gbmrank.types import ArrayLike, FloatArray

_CUTOFF_IN_NAME = re.compile(r"(?P<name>.+?)(?:_at)?[_.](?P<k>\d{1,9})")  # ndcg_cut_10, map_cut.10
_ABSENT: Any = object()  # tells plain arrays from LightGBM's four arguments


@final
class Metric(AbstractValue[AbstractMetric]):
    """A ranking metric that boosters can evaluate; made by :func:`metric`.

    Pass it as ``feval=`` to ``lightgbm.train``, as ``eval_metric=`` to ``LGBMRanker.fit``,
    or as ``custom_metric=`` to ``xgboost.train``. Immutable, compared by value, picklable.
    """

    __slots__ = ()
    kind: ClassVar[str] = "metric"

    @property
    def __name__(self) -> str:
        return callable_name(str(self), self.higher_is_better)

    @property
    def measure(self) -> AbstractMetric:
        """The underlying metric class with its options."""
        return self._part

    @property
    def higher_is_better(self) -> bool:
        """Whether larger values are better."""
        return self.measure.higher_is_better

    def name_in(self, backend: str) -> str:
        """Return the name under which a booster shows and records this metric.

        Brackets, commas and other special characters of the text become ``_``, since trackers
        such as MLflow reject them. Metrics whose texts differ only in such characters have the
        same name.

        Parameters
        ----------
        backend : {"lightgbm", "xgboost", "mlflow"}
            XGBoost infers from a name whether to maximise; the name is chosen so that it infers
            correctly. MLflow does not allow ``@``, which becomes ``_at_`` as in its autologging.

        Returns
        -------
        str
            The name.

        Examples
        --------
        >>> import gbmrank
        >>> metric = gbmrank.metric("map(threshold=1)@10")
        >>> metric.name_in("lightgbm"), metric.name_in("xgboost")
        ('gbmrank_map_threshold_1@10', 'pre_gbmrank_map_threshold_1@10')
        >>> metric.name_in("mlflow")
        'map_threshold_1_at_10'
        """
        if backend == "mlflow":
            return plain_name(str(self)).replace("@", "_at_")
        return booster_named(backend).metric_name(str(self), self.higher_is_better)

    def per_query(
        self,
        labels: ArrayLike,
        scores: ArrayLike,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        subtopics: ArrayLike | None = None,
    ) -> FloatArray:
        """Return one value per query; NaN where the metric is undefined, whatever ``empty`` is.

        ``empty`` says how the mean counts such a query; here you see which ones they are.

        Parameters
        ----------
        labels : array-like of shape (n_rows,)
            Larger is better. All columns are matched by position; a pandas index is ignored.
        scores : array-like of shape (n_rows,)
            Larger is ranked first. With ties, the value is the mean over all orderings of tied
            items, unless the metric has another ``ties`` option.
        group : array-like of shape (n_queries,), optional
            Rows per query.
        qid : array-like of shape (n_rows,), optional
            One query id per row, in any order; with neither, all rows are one query.
        weight : array-like of shape (n_queries,) or (n_rows,), optional
            Validated, but without effect on the values of single queries.
        subtopics : array-like of shape (n_rows, n_subtopics), optional
            1 if an item has a subtopic, else 0; for ``alpha_ndcg``.

        Returns
        -------
        array of shape (n_queries,)
            In order of first appearance of the queries.
        """
        data = self._read(labels, group=group, qid=qid, weight=weight, subtopics=subtopics)
        return bind_metric(self.measure, data).per_query(_ranked(data, scores))

    def score(
        self,
        labels: ArrayLike,
        scores: ArrayLike,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        subtopics: ArrayLike | None = None,
    ) -> float:
        """Return the (weighted) mean over queries; parameters as for :meth:`per_query`.

        Returns
        -------
        float
            NaN, with a warning, if the metric is undefined or the weight is zero in every query.

        Examples
        --------
        >>> import gbmrank
        >>> round(gbmrank.metric("ndcg@10").score([1, 0], [0.5, 0.5]), 4)
        0.8155
        """
        columns = {"group": group, "qid": qid, "weight": weight, "subtopics": subtopics}
        return _mean(self, *self._bound(labels, scores, **columns))

    def _bound(
        self, labels: ArrayLike, scores: ArrayLike, **columns: Any
    ) -> tuple[AbstractBoundMetric, Ranked]:
        data = self._read(labels, **columns)
        if not data.groups.n_rows:
            raise DataError(f"{self} of no rows is not defined; give at least one query")
        return bind_metric(self.measure, data), _ranked(data, scores)

    def _read(self, labels: ArrayLike | None, **columns: Any) -> RankingData:
        own = getattr(self.measure, "preferences", None)
        return _ranking_data(labels, preferences=own, **columns)

    def __call__(self, a: Any, b: Any, sample_weight: Any = None, group: Any = _ABSENT) -> Any:
        """Evaluate as the callback of a booster; for two plain arrays return a float.

        Plain arrays are one query, so ``sample_weight`` has no effect on them.
        """
        return _evaluate((self,), (a, b, sample_weight, group))[0]


@final
class MetricList:
    """Several metrics in one callable, evaluated in one pass; made by :func:`metric`.

    The texts of the metrics are unique, since values are stored by text.
    """

    __slots__ = ("_metrics",)

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = _distinct(metrics)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics, with unique texts."""
        return self._metrics

    def __iter__(self) -> Iterator[Metric]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)

    def __getitem__(self, index: int) -> Metric:
        return self._metrics[index]

    @property
    def __name__(self) -> str:
        return str(self)

    def score(self, labels: ArrayLike, scores: ArrayLike, **columns: Any) -> dict[str, float]:
        """Return the mean over queries of each metric, by text; see :meth:`Metric.score`."""
        if any_preferences(self._metrics):
            return {str(one): one.score(labels, scores, **columns) for one in self._metrics}
        bound, ranked = self._bound(labels, scores, **columns)
        if not ranked.groups.n_rows:
            raise DataError(f"{self} of no rows is not defined; give at least one query")
        return {str(m): _mean(m, one, ranked) for m, one in zip(self._metrics, bound, strict=True)}

    def per_query(
        self, labels: ArrayLike, scores: ArrayLike, **columns: Any
    ) -> dict[str, FloatArray]:
        """Return one value per query for each metric, by text; see :meth:`Metric.per_query`."""
        if any_preferences(self._metrics):
            return {str(one): one.per_query(labels, scores, **columns) for one in self._metrics}
        bound, ranked = self._bound(labels, scores, **columns)
        return {str(m): one.per_query(ranked) for m, one in zip(self._metrics, bound, strict=True)}

    def _bound(
        self, labels: ArrayLike, scores: ArrayLike, **columns: Any
    ) -> tuple[list[AbstractBoundMetric], Ranked]:
        data = _ranking_data(labels, **columns)
        bound = [bind_metric(item.measure, data) for item in self._metrics]
        return bound, _ranked(data, scores).prepare(*(one.depth for one in bound))

    def __call__(self, a: Any, b: Any, sample_weight: Any = None, group: Any = _ABSENT) -> Any:
        """Evaluate as the callback of a booster, with one entry per metric."""
        return _evaluate(self._metrics, (a, b, sample_weight, group))

    def __str__(self) -> str:
        return ", ".join(map(str, self._metrics))

    def __repr__(self) -> str:
        return f"gbmrank.metric({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MetricList) and self._metrics == other.metrics

    def __hash__(self) -> int:
        return hash(self._metrics)


def metric(spec: Any, *, like: str | None = None, **params: Any) -> Any:
    """Make one or several metrics from text.

    Parameters
    ----------
    spec : str, Metric or iterable of these
        A name with an optional cut-off such as ``"ndcg@10"``; several as
        ``"ndcg@1,5,10"``, ``"ndcg@10, map"`` or a list. The spellings of other tools work
        too: ``nDCG@10``, ``P_5``, ``ndcg_cut_10``, ``map_cut.10``. ``log_loss``, ``brier`` and
        ``ece`` judge probabilities, by ``score`` and ``interval``, over the rows of all queries.
    like : {"lightgbm", "xgboost", "sklearn", "trec_eval", "catboost"}, optional
        Reproduce the values of this tool: its gain, ties, divisors and undefined queries. Not
        its weights where those of a query's rows differ: LightGBM weighs the query by their mean,
        gbmrank counts all queries of such data equally.
        Explicit options take precedence.
    **params : object
        Options of the metric, such as ``gain="linear"`` or ``empty="zero"``.

    Returns
    -------
    Metric or MetricList
        A MetricList for several metrics.

    Examples
    --------
    >>> import gbmrank
    >>> gbmrank.metric("nDCG@10", empty="zero")
    gbmrank.metric('ndcg(empty=zero)@10')
    >>> gbmrank.metric("ndcg_cut_10", like="sklearn", empty="skip")
    gbmrank.metric('ndcg(gain=linear)@10')
    """
    if isinstance(spec, Metric | MetricList | ProbabilityMetric) and not params and like is None:
        return spec
    if isinstance(spec, str) and _bare(spec) in PROBABILITY_METRICS:
        return _of_probabilities(spec, like, params)
    if isinstance(spec, bytes):
        raise MetricError(f"a metric must be text such as 'ndcg@10', got bytes: {spec!r}")
    if isinstance(spec, str | Spec | AbstractMetric | Metric):
        made = [
            Metric(build(METRICS, item, **{**_presets(item, like, params), **params}))
            for item in _read(spec)
        ]
        return made[0] if len(made) == 1 else MetricList(made)
    if isinstance(spec, Iterable) and not isinstance(spec, Mapping):
        lists = [metric_list(metric(item, like=like, **params)) for item in spec]
        return MetricList(one for each in lists for one in each)
    raise MetricError(f"a metric must be text such as 'ndcg@10', got {type(spec).__name__}")


def _bare(text: str) -> str:
    return re.split(r"[(@,]", text, maxsplit=1)[0].strip().lower()


def _of_probabilities(text: str, like: str | None, params: Mapping[str, Any]) -> ProbabilityMetric:
    items = parse_list(text)
    made, given = PROBABILITY_METRICS[_bare(text)], {**dict(items[0].params), **params}
    unknown = [name for name in given if name not in made.__dataclass_fields__]
    if len(items) > 1 or items[0].k is not None or like is not None or unknown:
        allowed = " and ".join(made.__dataclass_fields__)
        raise MetricError(
            f"{made.name} is a metric of probabilities: it takes {allowed}, no cut-off and no "
            f"like=, and is not combined with others; got {text!r}"
        )
    return made(**given)


def metric_list(given: Any) -> MetricList:
    """Convert one or several metrics, text or objects, to a list; the first one is the main one."""
    made = metric(given)
    if isinstance(made, ProbabilityMetric):
        raise MetricError(
            f"{made} compares probabilities over all rows, and scores in training are none. Train "
            "with a metric of the order such as ndcg@10, and judge predict_proba by "
            f"gbmrank.metric({str(made)!r}).score"
        )
    return MetricList([made]) if isinstance(made, Metric) else made


def metrics_callback(
    metrics: Iterable[Any] | str, *, like: str | None = None, **params: Any
) -> MetricList:
    """Combine several metrics into one callback, evaluated in one pass.

    Parameters
    ----------
    metrics : str, Metric or iterable of these
        The metrics.
    like : str, optional
        Tool whose values to reproduce, as for :func:`metric`.
    **params : object
        Options of the metrics, as for :func:`metric`.

    Returns
    -------
    MetricList
        Pass it to a booster as a single metric.

    Examples
    --------
    >>> import gbmrank
    >>> gbmrank.metrics_callback(["ndcg@10", "map"])
    gbmrank.metric('ndcg@10, map')
    """
    return metric_list(metric(metrics, like=like, **params))


def _presets(item: Spec | AbstractMetric, like: str | None, params: Any) -> dict[str, Any]:
    """Return the conventions of a tool, without options that the text or the caller sets."""
    if like is None:
        return {}
    spec = item if isinstance(item, Spec) else spec_of(item)
    stated = {*params, *dict(spec.params), *(() if spec.k is None else ("k",))}
    usual = conventions(METRICS.get(spec.name), like)
    return {key: value for key, value in usual.items() if key not in stated}


def _read(spec: str | Spec | AbstractMetric | Metric) -> tuple[Spec | AbstractMetric, ...]:
    if isinstance(spec, Metric):
        return (spec.measure,)
    if isinstance(spec, AbstractMetric):
        return (spec,)
    try:
        items = parse_list(spec) if isinstance(spec, str) else (spec,)
    except SpecError as error:
        raise MetricError(str(error)) from error
    return tuple(map(_with_cutoff, items))


def _with_cutoff(spec: Spec) -> Spec:
    """Parse the cut-off in a name such as ``ndcg_cut_10``, unless the name is registered."""
    match = _CUTOFF_IN_NAME.fullmatch(spec.name)
    if match is None or spec.k is not None or spec.name in METRICS or match["name"] not in METRICS:
        return spec
    return replace(spec, name=match["name"], k=int(match["k"]))


def _distinct(metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """Return the metrics after checking that there is one and that their texts are unique."""
    made = tuple(metrics)
    if not made:
        raise MetricError("metric is empty; name at least one, such as ndcg@10")
    texts = [str(one) for one in made]
    again = next((text for number, text in enumerate(texts) if text in texts[:number]), None)
    if again is not None:
        raise MetricError(
            f"{again} is asked for twice, but values are stored by name; evaluate metrics that "
            "differ only in their preferences one by one"
        )
    return made


def _evaluate(metrics: tuple[Metric, ...], call: tuple[Any, Any, Any, Any]) -> list[Any]:
    """Evaluate metrics for the caller: LightGBM, XGBoost, or XGBRanker with two arrays."""
    a, b, weight, group = call
    if group is _ABSENT and booster_of(b) is None:
        warn_if_weighted(metrics[0])
        one_query = Groups.single(np.size(a))
        return [_mean(item, *item._bound(a, b, group=one_query), training=True) for item in metrics]
    sizes = None if group is _ABSENT else group
    booster, columns, preds = read_call(a, b, weight, sizes, any_preferences(metrics))
    text = booster.ignored_objective()
    if text is not None and text.partition("(")[0].strip() in OBJECTIVES:
        raise ConfigError(
            f"objective={text!r} is text, so {booster.title} trains squared error. Pass "
            f"gbmrank.objective({text!r})."
        )
    bound, ranked = bound_in_training(metrics, columns, preds)
    ranked.prepare(*(one.depth for one in bound))
    return [
        booster.report(str(item), _mean(item, one, ranked, training=True), item.higher_is_better)
        for item, one in zip(metrics, bound, strict=True)
    ]


def bound_in_training(
    metrics: tuple[Metric, ...], columns: BoosterColumns, preds: Any
) -> tuple[list[AbstractBoundMetric], Ranked]:
    """Bind metrics to a booster's data set, once while it lives, and read its scores."""

    def bind(data: RankingData) -> tuple[list[AbstractBoundMetric], Groups]:
        return bind_in_training(metrics, data), data.groups

    (bound, groups), _ = state_of(columns.owner).bound_to(columns, metrics, bind)
    return bound, Ranked(read_scores(preds, groups), groups)


def bind_in_training(metrics: Iterable[Metric], data: RankingData) -> list[AbstractBoundMetric]:
    """Bind metrics to the data set of a booster; item weights are dropped with a warning."""
    if data.split_weight()[1] is not None:
        warn(
            "rows of a query have different weights, but metrics weigh whole queries: they ignore "
            "these weights and count all queries of the data set equally; give a validation set "
            "one weight per query, or none",
            GbmrankWarning,
        )
        data = replace(data, weight=None)
    return [bind_metric(item.measure, data) for item in metrics]


def any_preferences(metrics: Iterable[Metric]) -> bool:
    """Whether a metric was made with preferences."""
    return any(getattr(one.measure, "preferences", None) is not None for one in metrics)


def _ranking_data(labels: Any, *, subtopics: Any = None, **columns: Any) -> RankingData:
    data = RankingData.from_arrays(labels, **columns)
    if all(columns.get(name) is None for name in ("group", "qid", "preferences")):
        warn_if_forgotten(data.groups.n_rows)
    return data if subtopics is None else data.with_columns(subtopic_columns(subtopics))


def _mean(
    item: Metric, bound: AbstractBoundMetric, ranked: Ranked, training: bool = False
) -> float:
    """Return the mean over queries; if none counts, warn, or raise DataError in training."""
    value = bound.score(ranked)
    if not math.isnan(value):
        return value
    total = bound.groups.n_queries
    undefined = int(np.isnan(bound.per_query(ranked)).sum())
    where = "every query" if undefined == total else f"{undefined} of {total} queries"
    rest = "" if undefined == total else f" and the weight of the other {total - undefined} is 0"
    reason = (
        f"{item} is undefined for {where} of this data set (for example without a relevant "
        f"row){rest}, so there is no query to average; leave the data set out of the evaluation "
        "or choose empty='zero' or empty='one'"
    )
    if training:
        raise DataError(xgbranker_advice(item) or reason)
    warn(reason, GbmrankWarning)
    return value


def _ranked(data: RankingData, scores: ArrayLike) -> Ranked:
    return Ranked(data.read_scores(scores), data.groups)
