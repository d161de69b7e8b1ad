"""Cross-fitting: every query trains, and every query chooses rounds, but never for one model.

Member j trains on all folds but fold j, stops on fold j and scores its rows. The members are
divided by the spread of these scores and merged into one model, as in a committee.
"""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gbmrank.api.committees import Committee, objectives_in
from gbmrank.api.metrics import MetricList, any_preferences
from gbmrank.boosters import plan as plans
from gbmrank.boosters.base import OutOfFold, Part, Pool, PooledPart, Trained
from gbmrank.boosters.plan import LocalEngine, Native, Plan, squared_deviations
from gbmrank.data.columns import id_texts
from gbmrank.data.preferences import PreferenceGraphs
from gbmrank.data.queries import Groups, RankingData
from gbmrank.data.schema import stacked
from gbmrank.errors import ConfigError, DataError, ParameterError, WeightError
from gbmrank.estimators.committee import (
    combined,
    default_members,
    member_plans,
    train_member,
    values_on,
)
from gbmrank.estimators.fold_rows import (
    Fold,
    check_informative,
    drawn_folds,
    given_folds,
    warn_of_leaks,
)
from gbmrank.metrics import Ranked
from gbmrank.objectives import held_preferences, with_preferences
from gbmrank.registry.guards import bind_metric
from gbmrank.types import BoolArray

OUT_OF_FOLD = "out of fold"  # the name of a member's validation set
CROSSFIT_FOLDS = 4  # where none are given
_log = logging.getLogger("gbmrank")


def fold_count(
    folds: int | None, target: Any, metrics: MetricList, patience: Any, valid: Mapping[str, Part]
) -> int | None:
    """Return the number of folds: a committee that stops early has some unless it is validated."""
    if folds is None and isinstance(target, Committee) and patience is not None and not valid:
        members = target.members or default_members(metrics[0])
        return max(CROSSFIT_FOLDS, len(members) * target.seeds)
    return folds


def pooled(
    first: Part, sets: Mapping[str, Part], fold_groups: Any
) -> tuple[Part, Any, dict[str, Part]]:
    """Return the rows of the training and evaluation sets as one set, its groups, no sets left.

    Queries of the same id in two sets are two queries, but stay in one fold.
    """
    if not sets:
        raise ParameterError("pool_eval_set=True needs eval_set= and eval_qid=")
    for name, one in sets.items():
        if (one.data.weight is None) != (first.data.weight is None):
            raise WeightError(f"pool_eval_set=True needs weights for all sets; {name} differs")
        if one.data.columns.keys() != first.data.columns.keys():
            raise DataError(f"pool_eval_set=True needs positions for all sets; {name} differs")
    parts = [first, *sets.values()]
    rows = [one.data for one in parts]
    groups = [one.groups for one in rows]
    starts = np.cumsum([0, *(one.n_rows for one in groups)])[:-1]
    ends = [one.offsets[1:] + at for one, at in zip(groups, starts, strict=True)]
    order = [
        (np.arange(one.n_rows) if one.row_order is None else one.row_order) + at
        for one, at in zip(groups, starts, strict=True)
    ]
    ids = np.concatenate([np.asarray(one.ids).astype(object) for one in groups])
    joined = Groups(np.concatenate([[0], *ends]), np.concatenate(order), ids)
    data = RankingData(
        np.concatenate([one.labels for one in rows]),
        joined,
        None if rows[0].weight is None else np.concatenate([one.weight for one in rows]),
        columns={
            name: np.concatenate([one.columns[name] for one in rows]) for name in rows[0].columns
        },
    )
    if fold_groups is None:
        fold_groups = joined.restore(joined.spread(id_texts(ids)))
    return Part(stacked([one.features for one in parts]), data), fold_groups, {}


def make_folds(
    count: int, seed: int, target: Any, data: Part, given: tuple[Any, Any, Any, Any]
) -> list[Fold]:
    """Return the folds of the rows; ``given`` are X, y, the groups of folds and a splitter."""
    features, labels, fold_groups, splitter = given
    groups, informative = data.data.groups, informative_queries(target, data)
    check_informative(informative, count)
    if splitter is None:
        folds = drawn_folds(groups, informative, count, seed, fold_groups)
    else:
        ids = np.arange(groups.n_queries) if groups.ids is None else groups.ids
        keys = groups.restore(groups.spread(ids)) if fold_groups is None else fold_groups
        folds = given_folds(splitter, (features, labels, keys), groups, count)
    query = groups.spread(np.arange(groups.n_queries))
    for number, fold in enumerate(folds):
        for name, rows in zip(("train", "test"), fold, strict=True):
            if not informative[query[rows]].any():
                raise DataError(
                    f"the {name} part of fold {number} has no query with rows of different labels; "
                    "use fewer folds, or another splitter"
                )
    warn_of_leaks(data.features, folds, groups, fold_groups)
    return folds


def informative_queries(target: Any, part: Part) -> BoolArray:
    """Return which queries have different labels, or preferences if the objective has some."""
    groups, labels = part.data.groups, part.data.labels
    first = groups.offsets[:-1]
    held = [one for each in objectives_in(target) for one in held_preferences(each.template)]
    if not held:
        return np.asarray(np.maximum.reduceat(labels, first) > np.minimum.reduceat(labels, first))
    plain, known = Groups(groups.offsets), np.zeros(groups.n_queries, np.bool_)
    for one in held:
        one.check_rows(groups)
        rows = np.asarray(replace(one, groups=plain).to_edges().winner, np.int64)
        known[np.searchsorted(groups.offsets, rows, side="right") - 1] = True
    return known


def train(
    plan: Plan,
    folds: Sequence[Fold],
    data: Part,
    valid: Mapping[str, Part],
    on_round: Callable[[int], None] | None = None,
) -> Trained:
    """Train one member per fold and merge them; ``valid`` are only evaluated."""
    if plan.start is not None:
        raise ConfigError(
            "init_model= continues one model, but folds= trains several; leave out one of the two"
        )
    if any_preferences(plan.metric):
        raise ParameterError(
            f"metric={plan.metric} has preferences between given rows, which folds cannot use; "
            "give a metric of labels"
        )
    engine, each = LocalEngine(), member_plans(plan, len(folds))
    for number, one in enumerate(each):
        plans.check_rows(one, data, {} if number else valid, engine)
    groups = data.data.groups
    whole = Pool(Part(data.features, replace(data.data, groups=replace(groups, row_order=None))))
    _log.info("%s: %d folds of up to %d rounds", plan.objective, len(folds), plan.rounds)
    trained: list[Trained] = []
    scores, spreads = np.full(groups.n_rows, math.nan), []
    tests = [_without_item_weights(whole.take(fold.held_out)) for fold in folds]
    for one, fold, held_out in zip(each, folds, tests, strict=True):
        learned = whole.take(fold.learned)
        mine = replace(one, objective=_in_fold(one.objective, groups, fold))
        run = partial(plans.run, data=learned, valid={OUT_OF_FOLD: held_out}, engine=engine)
        trained.append(train_member(mine, run, trained, on_round))
        found = trained[-1].fitted.scores(held_out.features)
        sizes = held_out.data.groups.sizes
        spreads.append(math.sqrt(squared_deviations(found, sizes) / len(found)))
        scores[fold.held_out] = found / (spreads[-1] or 1.0)
    made = combined(plan, each, trained, spreads)
    plans.warn_if_tied(each[0], made.fitted, data, engine)
    value = _value(plan, each, trained, tests)
    history = values_on(plan, made, valid, engine)
    return replace(made, history=history, unseen=OutOfFold(scores, value))


def debiased_value(
    curves: Sequence[Sequence[float]], kinds: Sequence[str], weights: Sequence[float], sign: float
) -> float:
    """Return the mean value of the folds, each at a number of rounds that others choose.

    A fold that stops its member is worth more at that very round by chance. So each is valued at
    the round where the mean curve of the other folds is best: those of the same ``kinds``, or all
    if there are none.

    >>> debiased_value([[0.1, 0.4, 0.3], [0.2, 0.1, 0.3]], ["a", "a"], [1, 1], 1.0)
    0.2
    """
    common = min(map(len, curves))
    table, weight = np.array([one[:common] for one in curves]), np.array(weights, np.float64)
    values = []
    for at, kind in enumerate(kinds):
        others = np.array([place != at for place in range(len(kinds))])
        alike = others & (np.array(kinds) == kind)
        use = alike if alike.any() else others
        mean = np.average(table[use], axis=0, weights=weight[use])
        values.append(curves[at][int(np.argmax(sign * mean))])
    return float(np.average(values, weights=weight))


def _value(
    plan: Plan, each: Sequence[Plan], trained: Sequence[Trained], held_out: Sequence[PooledPart]
) -> float:
    """Return the value of the first metric on the folds."""
    metric = plan.metric[0]
    curves = [one.history[OUT_OF_FOLD][str(metric)] for one in trained]
    weights = [_weight_of(metric.measure, part) for part in held_out]
    if not plan.keep_best:
        return float(np.average([one[-1] for one in curves], weights=weights))
    sign = 1.0 if metric.higher_is_better else -1.0
    return debiased_value(curves, [str(one.objective) for one in each], weights, sign)


def _weight_of(measure: Any, part: PooledPart) -> float:
    """Return the weight of a fold in the mean over queries: of those that count."""
    data, weight = part.data, part.data.query_weight()
    bound = bind_metric(measure, replace(data, weight=None))
    flat = Ranked(np.zeros(data.groups.n_rows), data.groups).prepare(bound.depth)
    counted = (measure.empty != "skip") | ~np.isnan(bound.per_query(flat))
    return float((np.ones(len(counted)) if weight is None else weight)[counted].sum())


def _without_item_weights(part: PooledPart) -> PooledPart:
    """Return rows without weights that differ within a query, which metrics cannot use."""
    if part.data.split_weight()[1] is None:
        return part
    return replace(part, data=replace(part.data, weight=None))


def _in_fold(target: Any, groups: Groups, fold: Fold) -> Any:
    """Return the objective for the rows of a fold, in query order, to which preferences refer."""
    if isinstance(target, Native) or not held_preferences(target.template):
        return target

    def taken(held: PreferenceGraphs) -> PreferenceGraphs:
        return replace(held, groups=Groups(groups.offsets)).take(fold.learned)

    return target.with_template(with_preferences(target.template, taken))
