"""Cross-fitting: every query trains, and every query chooses rounds, but never for one model.

Member j trains on all folds but fold j, stops on fold j and scores its rows. The members are
divided by the spread of these scores and merged into one model, as in a committee.
"""

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from gbmrank.api.committees import Committee, objectives_in
from gbmrank.api.metrics import MetricList, any_preferences
from gbmrank.boosters import plan as plans
from gbmrank.boosters.base import OutOfFold, Part, Pool, PooledPart, Trained
from gbmrank.boosters.plan import LocalEngine, Native, Plan, squared_deviations
from gbmrank.data.columns import id_texts, read_ids
from gbmrank.data.leakage import row_hashes
from gbmrank.data.queries import Groups, RankingData
from gbmrank.data.schema import stacked
from gbmrank.errors import (
    ConfigError,
    DataError,
    GbmrankWarning,
    LeakageWarning,
    ParameterError,
    WeightError,
    warn,
)
from gbmrank.estimators.committee import (
    combined,
    default_members,
    member_plans,
    train_member,
    values_on,
)
from gbmrank.metrics import Ranked
from gbmrank.objectives import held_preferences, with_preferences
from gbmrank.registry.guards import bind_metric
from gbmrank.types import BoolArray, IntArray, is_whole

OUT_OF_FOLD = "out of fold"  # the name of a member's validation set
CROSSFIT_FOLDS = 4  # where none are given
_FEWEST, _FEW = 5, 40  # queries with something to learn: an error below the first, then a warning
_log = logging.getLogger("gbmrank")


class Fold(NamedTuple):
    """Rows to learn from, and rows on which the training stops; increasing, in query order."""

    learned: IntArray
    held_out: IntArray


def check_folds(folds: Any, pool: Any, fold_groups: Any, splitter: Any) -> None:
    """Raise ParameterError for a wrong number of folds, and for arguments that need one."""
    if pool and splitter is not None:
        raise ParameterError(
            "pool_eval_set=True and splitter= exclude each other: a splitter cuts the rows of X"
        )
    if folds is not None and (not is_whole(folds) or folds < 2):
        raise ParameterError(f"folds must be a whole number of at least 2 or None, got {folds!r}")
    named = {"fold_groups": fold_groups, "splitter": splitter, "pool_eval_set": pool or None}
    given = next((name for name, one in named.items() if one is not None), None)
    if folds is None and given is not None:
        raise ParameterError(f"{given}= needs folds=, the number of folds: GBMRanker(folds=4)")


def check_informative(informative: BoolArray, folds: int) -> None:
    """Raise DataError if too few queries can value a fold; warn if they are few."""
    count = int(np.count_nonzero(informative))
    what = "queries have rows of different labels (or preferences), from which folds are valued"
    if count < max(_FEWEST, folds):
        raise DataError(
            f"only {count} {what}; folds={folds} needs at least {max(_FEWEST, folds)}. Use fewer "
            "folds, or leave folds= out"
        )
    if count < _FEW:
        warn(
            f"only {count} {what}, so rounds are chosen by chance; below {_FEW}, prefer a fixed "
            "number of rounds without folds",
            GbmrankWarning,
        )


def drawn_folds(
    groups: Groups, informative: BoolArray, count: int, seed: int, fold_groups: Any = None
) -> list[Fold]:
    """Deal queries to folds at random; informative queries and rows are spread evenly.

    Queries of one group, in ``fold_groups`` with one entry per row, stay together.
    """
    key = np.arange(groups.n_queries)
    if fold_groups is not None:
        key = group_of_query(fold_groups, groups)
    n_keys = int(key.max()) + 1
    if n_keys < count:
        raise DataError(f"fold_groups has {n_keys} different values, but folds={count}")
    told = np.bincount(key, informative, n_keys)
    rows = np.bincount(key, groups.sizes, n_keys)
    shuffled = np.random.default_rng(seed).permutation(n_keys)
    if fold_groups is not None:  # large groups first, or they could not be spread
        shuffled = shuffled[np.lexsort((-rows[shuffled], -told[shuffled]))]
    queries, sizes, fold_of_key = np.zeros(count), np.zeros(count), np.empty(n_keys, np.int64)
    for one in shuffled.tolist():
        open_to = queries == queries.min() if told[one] else np.ones(count, np.bool_)
        at = int(np.argmin(np.where(open_to, sizes, np.inf)))
        fold_of_key[one] = at
        queries[at] += told[one]
        sizes[at] += rows[one]
    fold = groups.spread(fold_of_key[key])
    return [Fold(np.flatnonzero(fold != at), np.flatnonzero(fold == at)) for at in range(count)]


def given_folds(
    splitter: Any, rows: tuple[Any, Any, Any], groups: Groups, count: int
) -> list[Fold]:
    """Return the folds of a scikit-learn splitter, or of a list of (train rows, test rows).

    ``rows`` are features, labels and groups as the user gave them. Each row may be in the test
    part of one fold at most.
    """
    split = None if isinstance(splitter, str) else getattr(splitter, "split", None)
    if split is None and (isinstance(splitter, str) or not isinstance(splitter, Iterable)):
        raise ParameterError(
            "splitter= is a splitter of scikit-learn or a list of (train rows, test rows), got "
            f"{splitter!r}"
        )
    pairs: Iterable[Any] = splitter if split is None else split(*rows)
    place = np.arange(groups.n_rows)
    if groups.row_order is not None:
        place[groups.row_order] = np.arange(groups.n_rows)
    made: list[Fold] = []
    for number, pair in enumerate(pairs):
        parts = [
            np.unique(place[_row_numbers(part, groups.n_rows, number)])
            for part in (() if np.isscalar(pair) else pair)
        ]
        if len(parts) != 2 or not all(map(len, parts)) or len(np.intersect1d(parts[0], parts[1])):
            raise DataError(
                f"fold {number} of splitter= must be two separate parts with rows: (train, test)"
            )
        made.append(Fold(parts[0], parts[1]))
    if len(made) != count:
        raise ParameterError(f"splitter= yields {len(made)} folds, but folds={count}")
    if np.bincount(np.concatenate([one.held_out for one in made])).max() > 1:
        raise DataError("a row is in the test part of two folds; each may be in one at most")
    return made


def warn_of_leaks(features: Any, folds: Sequence[Fold], groups: Groups, fold_groups: Any) -> None:
    """Warn of queries and groups that folds cut, and of queries with a copy in another fold."""
    names = np.arange(groups.n_queries) if groups.ids is None else groups.ids
    query = groups.spread(np.arange(groups.n_queries))
    checked = {"query": query}
    if fold_groups is not None:
        checked["group of fold_groups="] = groups.arrange(
            np.unique(read_ids(fold_groups), return_inverse=True)[1]
        )
    for what, key in checked.items():
        cut = [np.intersect1d(key[one.learned], key[one.held_out]) for one in folds]
        both = reduce(np.union1d, cut)
        if len(both):
            shown = f", such as {names[both[0]]!s}" if what == "query" else ""
            warn(
                f"{len(both)} values of {what} are in both parts of a fold{shown}, so oof_scores_ "
                "and oof_value_ are too optimistic; keep the rows of each together",
                LeakageWarning,
            )
    hashes = row_hashes(features, features.shape[1])
    first = groups.offsets[:-1]
    same = np.add.reduceat(hashes, first)  # whatever the order of the rows
    differ = np.maximum.reduceat(hashes, first) > np.minimum.reduceat(hashes, first)
    fold_of_row = np.full(groups.n_rows, -1)
    for at, one in enumerate(folds):
        fold_of_row[one.held_out] = at
    fold = fold_of_row[first]
    order = np.lexsort((fold, groups.sizes, same))
    here, there = order[:-1], order[1:]
    copied = (same[here] == same[there]) & (groups.sizes[here] == groups.sizes[there])
    copied &= differ[here] & (fold[here] != fold[there])
    if copied.any():
        at = int(np.argmax(copied))
        one, other = names[here[at]].item(), names[there[at]].item()
        warn(
            f"{int(copied.sum())} queries have the features of a query in another fold, such as "
            f"{one!r} and {other!r}, so oof_scores_ and oof_value_ are too optimistic; if they are "
            "copies, keep them together by fold_groups=",
            LeakageWarning,
        )


def group_of_query(fold_groups: Any, groups: Groups) -> IntArray:
    """Return the number of the group of each query; raise if rows of a query differ."""
    ids = read_ids(fold_groups)
    if len(ids) != groups.n_rows:
        raise DataError(f"fold_groups has {len(ids)} entries, but there are {groups.n_rows} rows")
    number = groups.arrange(np.unique(ids, return_inverse=True)[1])
    first = number[groups.offsets[:-1]]
    differs = np.flatnonzero(number != groups.spread(first))
    if len(differs):
        raise DataError(
            f"the rows of query {groups.query_of(int(differs[0]))!r} are in different groups of "
            "fold_groups=; a query must lie in one group"
        )
    return np.asarray(first, np.int64)


def _row_numbers(part: Any, n_rows: int, number: int) -> IntArray:
    rows = np.asarray(part)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or (rows >= n_rows).any() or (rows < 0).any():
        raise DataError(
            f"fold {number} of splitter= must be row numbers from 0 to {n_rows - 1}, as "
            "scikit-learn's splitters return them"
        )
    return rows.astype(np.int64)


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
    starts = np.cumsum([0, *(one.n_queries for one in groups)])
    number = [
        one.restore(one.spread(np.arange(one.n_queries))) + at
        for one, at in zip(groups, starts[:-1], strict=True)
    ]
    ids = np.concatenate([np.asarray(one.ids).astype(object) for one in groups])
    whole = np.concatenate(number)
    joined = replace(Groups.from_qid(whole, len(whole)), ids=ids)
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
    tests = [whole.take(fold.held_out) for fold in folds]
    tests = [  # metrics cannot use weights that differ within a query
        one
        if one.data.split_weight()[1] is None
        else replace(one, data=replace(one.data, weight=None))
        for one in tests
    ]
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


def _in_fold(target: Any, groups: Groups, fold: Fold) -> Any:
    """Return the objective for the rows of a fold, in query order, to which preferences refer."""
    if isinstance(target, Native) or not held_preferences(target.template):
        return target
    plain, rows = Groups(groups.offsets), fold.learned
    changed = with_preferences(target.template, lambda one: replace(one, groups=plain).take(rows))
    return target.with_template(changed)
