"""Checks of metrics."""

import itertools
import pickle
from dataclasses import fields
from functools import partial
from inspect import isfunction
from typing import Any

import numpy as np

from gbmrank.api import metric
from gbmrank.boosters.supported import BACKENDS, booster_named
from gbmrank.kernels.jit import threads
from gbmrank.metrics import Ranked
from gbmrank.testing.checks import (
    SIZES,
    Check,
    MetricSubject,
    SkipCheck,
    evaluates_in,
    fail_unless,
    hold_close,
    permuted_rows,
    query_slices,
    scores_of,
)

_EXACT = 1e-10
_SMALL = (4, 3, 2, 4, 1)  # few enough items to try all orders


def _shapes(subject: MetricSubject) -> None:
    bound = subject.bound(subject.labels())
    values = np.asarray(bound.per_query(Ranked(scores_of(), bound.groups)))
    fail_unless(
        values.shape == (len(SIZES),),
        f"per_query() has shape {values.shape}; one value per query is ({len(SIZES)},)",
    )
    fail_unless(not np.isinf(values).any(), "a value is infinite; undefined queries are NaN")
    fail_unless(np.isfinite(values).any(), "no query has a value")
    low, high = subject.metric.measure.value_range
    outside = values[(values < low - 1e-9) | (values > high + 1e-9)]
    fail_unless(not len(outside), f"values lie outside value_range {low:g}..{high:g}: {outside}")


def _best_order(subject: MetricSubject) -> None:
    labels = subject.labels()
    sign = 1.0 if subject.metric.higher_is_better else -1.0
    best = sign * subject.values(labels, labels + 1e-3 * scores_of())
    for seed in range(20):
        other = sign * subject.values(labels, scores_of(seed=seed))
        fail_unless(
            not np.any(other > best + 1e-9),
            "a random order is better than the order by labels; is higher_is_better right?",
        )
    if subject.metric.measure.constant:
        return
    worst = sign * subject.values(labels, -labels + 1e-3 * scores_of())
    fail_unless(np.any(best > worst + 1e-9), "the best and the worst order have the same value")


def _monotone(subject: MetricSubject) -> None:
    if subject.metric.measure.dtype != "float64":
        raise SkipCheck("scores are rounded to float32 first")
    labels, scores = subject.labels(), scores_of()
    values = subject.values(labels, scores)
    for what, moved in (("3 s + 2", 3.0 * scores + 2.0), ("tanh s", np.tanh(scores))):
        hold_close(f"value after the increasing map {what}", subject.values(labels, moved), values,
                   0.0)  # fmt: skip


def _ties(subject: MetricSubject) -> None:
    if subject.metric.measure.ties != "mean":
        raise SkipCheck("ties are not averaged on request")
    labels = subject.labels(_SMALL)
    for what, scores in (
        ("all scores equal", np.zeros(len(labels))),
        ("two levels", np.round(scores_of(_SMALL, spread=0.6))),
    ):
        orders = []
        for order in itertools.permutations(range(max(_SMALL))):
            places = np.concatenate([np.array(order)[np.array(order) < n] for n in _SMALL])
            orders.append(subject.values(labels, scores + 1e-3 * places, _SMALL))
        mean = np.mean(orders, axis=0)
        hold_close(f"value with {what}, against the mean over all orders",
                   subject.values(labels, scores, _SMALL), mean, 1e-9, 1.0)  # fmt: skip


def _permutation(subject: MetricSubject) -> None:
    labels, order = subject.labels(), permuted_rows()
    for what, scores in (("scores", scores_of()), ("tied scores", np.sign(scores_of()))):
        if what == "tied scores" and subject.metric.measure.ties == "index":
            continue
        found, expected = (
            subject.values(labels[order], scores[order]),
            subject.values(labels, scores),
        )
        hold_close(f"value after a permutation of rows, {what}", found, expected, _EXACT)


def _query_independence(subject: MetricSubject) -> None:
    labels, scores = subject.labels(), scores_of()
    values = subject.values(labels, scores)
    for query, part in enumerate(query_slices()):
        alone = subject.values(labels[part], scores[part].copy(), [part.stop - part.start])
        hold_close(f"value of query {query} alone", alone, values[query : query + 1], _EXACT)


def _weights(subject: MetricSubject) -> None:
    labels, scores = subject.labels(), scores_of()
    weight = np.linspace(0.5, 3.0, len(SIZES))
    found = subject.metric.score(labels, scores, group=SIZES, weight=weight)
    if subject.metric.measure.empty != "skip":
        raise SkipCheck("undefined queries count")
    values = subject.values(labels, scores)
    known = ~np.isnan(values)
    expected = np.average(values[known], weights=weight[known])
    hold_close("score with weights of queries", [found], [expected], _EXACT)


def _singletons(subject: MetricSubject) -> None:
    for label in (subject.grades[0], subject.grades[-1]):
        values = subject.values(np.full(3, label), np.array([0.3, -1.0, 40.0]), [1, 1, 1])
        fail_unless(values.shape == (3,) and not np.isinf(values).any(), f"values are {values}")


def _equal_labels(subject: MetricSubject) -> None:
    for label in (subject.grades[0], subject.grades[-1]):
        values = subject.values(np.full(sum(SIZES), label), scores_of())
        fail_unless(not np.isinf(values).any(), f"values of equal labels are {values}")


def _extremes(subject: MetricSubject) -> None:
    labels, scores = subject.labels(), scores_of()
    values = subject.values(labels, scores)
    for factor in (1e-290, 1e290) if subject.metric.measure.dtype == "float64" else ():
        hold_close(f"value of scores times {factor:g}", subject.values(labels, scores * factor),
                   values, 0.0)  # fmt: skip


def _inputs(subject: MetricSubject) -> None:
    labels, scores = subject.labels(), scores_of()
    bound = subject.bound(labels)
    ranked = Ranked(scores.copy(), bound.groups)
    bound.per_query(ranked)
    fail_unless(np.array_equal(ranked.scores, scores), "per_query() changes the scores")
    for column in (labels, scores):
        column.flags.writeable = False
    subject.metric.score(labels, scores, group=SIZES)


def _determinism(subject: MetricSubject) -> None:
    labels, scores = subject.labels(), np.round(scores_of(), 1)
    first = subject.values(labels, scores)
    try:
        for count in (None, 1, 4):
            threads.set_num_threads(count)
            again = subject.values(labels, scores)
            fail_unless(np.array_equal(first, again, equal_nan=True), "a second call gives other "
                        "numbers")  # fmt: skip
    finally:
        threads.set_num_threads(None)


def _pickling(subject: MetricSubject) -> None:
    try:
        again = pickle.loads(pickle.dumps(subject.metric))  # noqa: S301  (made here)
    except (pickle.PicklingError, AttributeError):
        if not _function_of(subject):
            raise
        raise SkipCheck(f"{_function_of(subject)} is a function without a name") from None
    fail_unless(again == subject.metric, f"pickling turns it into {again}")


def _function_of(subject: MetricSubject) -> str:
    """Return the name of a parameter that is a function, or nothing."""
    measure = subject.metric.measure
    named = (field.name for field in fields(measure) if isfunction(getattr(measure, field.name)))
    return next(named, "")


def _spec(subject: MetricSubject) -> None:
    if _function_of(subject):
        raise SkipCheck(f"{_function_of(subject)} is a function, of which the text has the name")
    text = str(subject.metric)
    again: Any = metric(text)
    fail_unless(again == subject.metric, f"its text {text!r} makes another: {again}")


METRIC_CHECKS: tuple[Check, ...] = (
    Check("shapes", "per_query() gives one value per query, NaN where undefined", _shapes),
    Check("best_order", "no order is better than the one by labels", _best_order),
    Check("monotone", "only the order of scores counts", _monotone),
    Check("ties", "tied scores give the mean over all their orders", _ties),
    Check("permutation", "the order of rows does not matter", _permutation),
    Check("query_independence", "a query depends on itself alone", _query_independence),
    Check("weights", "the score is the weighted mean over queries", _weights),
    Check("singletons", "queries of one row are harmless", _singletons),
    Check("equal_labels", "queries of equal labels are harmless", _equal_labels),
    Check("extremes", "huge and tiny scores are compared exactly", _extremes),
    Check("inputs", "scores and labels are not changed, and may be read-only", _inputs),
    Check("determinism", "the same numbers again, with any number of threads", _determinism),
    Check("pickling", "a pickled copy is equal", _pickling),
    Check("spec", "its text makes an equal object", _spec),
    *(
        Check(name, f"{booster_named(name).title} reports it", partial(evaluates_in, name))
        for name in BACKENDS
    ),
)
