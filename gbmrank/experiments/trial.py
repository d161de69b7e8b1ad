"""One run: tune and train a system on the training queries of a fold, and evaluate it.

Everything is compiled and imported first, so that times are those of training.
"""

import contextlib
import math
import re
import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from gbmrank.api import MetricList, metrics_callback
from gbmrank.api.training_plans import training_plan
from gbmrank.boosters.base import Part, Range, Trained
from gbmrank.boosters.plan import Native, Plan
from gbmrank.boosters.supported import booster_named
from gbmrank.data.queries import Groups, RankingData, sorted_ties
from gbmrank.data.schema import safe_names
from gbmrank.data.tables import category_frame
from gbmrank.errors import GbmrankWarning, NoProgressWarning, WeightError, import_optional, warn
from gbmrank.estimators.committee import member_plans, train
from gbmrank.experiments.design import Design, Task
from gbmrank.experiments.results import REGRET, Run, split_name
from gbmrank.experiments.sources import Source
from gbmrank.experiments.splits import Split, cut, judged
from gbmrank.experiments.ways import folds_of, is_folded, train_in_folds
from gbmrank.metrics import Ranked
from gbmrank.registry.guards import bind_metric
from gbmrank.types import FloatArray, IntArray

Candidates: TypeAlias = Generator[dict[str, Any], float, None]
T = TypeVar("T")
_VALID = "valid"
_LONGEST_MESSAGE = 2000
_TIMED = 6  # rounds
_STARTING = 5.0  # seconds that a worker needs before its first run
_XGBOOST_PLACE = re.compile(r"\[\d\d:\d\d:\d\d\] (?:[A-Z]+: )?\S+:\d+:\s*")
_compiled: set[tuple[str, ...]] = set()


def run_task(
    source: Source, design: Design, task: Task, on_round: Callable[[int], None] | None = None
) -> Run:
    """Train and evaluate; an exception becomes the error of the run."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            run = _run(source, design, task, on_round)
        except Exception as error:
            return failed_run(design, task, error, _texts(caught))
    return replace(run, warnings=_texts(caught))


def seconds_needed(source: Source, design: Design, tasks: Sequence[Task]) -> float:
    """Return about how long tasks take one after the other, if none is stopped early.

    A few rounds of each booster's ranking loss are timed, which needs no compilation.
    """
    costs: dict[str, tuple[float, float]] = {}
    total = _STARTING
    for task in tasks:
        if task.system.is_given:
            continue
        backend = task.system.backend
        if backend not in costs:
            costs[backend] = _timed(source, design, task)
        start, each = costs[backend]
        plan = plan_of(design, task)
        models = len(member_plans(plan, folds_of(task.system.objective, plan)))
        total += models * max(design.tune, 1) * (start + each * design.rounds)
    return total


def _timed(source: Source, design: Design, task: Task) -> tuple[float, float]:
    """Return the seconds of the first round of a booster, with its preparation, and of others."""
    own = Native(booster_named(task.system.backend).tuning.baselines[0])
    plan = replace(plan_of(design, task), objective=own, rounds=_TIMED, early_stopping=None)
    split = split_of(source, design, task)
    learned = part_of(source, split.train)
    valid = _validation(source, design, task.fold, split.valid)
    plan = replace(plan, metric=_defined(design, valid.data))
    times = [time.perf_counter()]
    train(plan, learned, {_VALID: valid}, lambda _: times.append(time.perf_counter()))
    return times[1] - times[0], (times[-1] - times[1]) / (_TIMED - 1)


def failed_run(
    design: Design, task: Task, error: BaseException, messages: tuple[str, ...] = ()
) -> Run:
    """Return a run that has an error and no values."""
    # XGBoost adds the time and a source location in front, and a stack trace behind.
    text = _XGBOOST_PLACE.sub("", str(error).partition("\nStack trace:")[0]).strip()
    return Run(
        **task._asdict(),
        params=design.params_of(task.system),
        warnings=messages,
        error=f"{type(error).__name__}: {text[:_LONGEST_MESSAGE]}",
    )


def plan_of(design: Design, task: Task) -> Plan:
    """Return how a run is trained, before tuning."""
    return training_plan(
        objective=split_name(task.system.objective)[1],
        metric=list(design.metrics),
        backend=task.system.backend,
        rounds=design.rounds,
        early_stopping=design.early_stopping,
        params=design.params_of(task.system),
        seed=task.seed,
        threads=design.threads,
    )


def split_of(source: Source, design: Design, task: Task) -> Split:
    """Return the queries of a run."""
    at = task.seed, task.fold
    return cut(source.scheme, folds=design.folds, share=design.valid_share, at=at)


def part_of(source: Source, queries: IntArray) -> Part:
    """Return the rows of some queries, with their weights and further columns."""
    rows, data = _data_of(source, queries)
    features = np.ascontiguousarray(source.X[rows])
    if not source.categories:
        return Part(features, data)
    names = source.feature_names or [str(at) for at in range(features.shape[1])]
    return Part(category_frame(features, safe_names(list(names)), source.categories), data)


def regret_name(k: int) -> str:
    """Return the name of the exact regret as a measure."""
    return f"{REGRET}{k}"


def tied_pairs(scores: FloatArray, groups: Groups) -> FloatArray:
    """Return the share of the pairs of each query whose scores are equal; 0 without pairs.

    >>> tied_pairs(np.array([1.0, 1.0, 2.0, 5.0]), Groups.from_sizes([3, 1], 4)).round(2)
    array([0.33, 0.  ])
    """
    _, query, new = sorted_ties(scores, groups)
    sizes = np.diff(np.append(np.flatnonzero(new), len(scores))).astype(np.float64)
    equal = np.bincount(query[new], sizes * (sizes - 1.0), groups.n_queries)
    pairs = groups.sizes * (groups.sizes - 1.0)
    share: FloatArray = np.divide(equal, pairs, out=np.zeros(len(pairs)), where=pairs > 0)
    return share


def candidates(
    backend: str, asked: Mapping[str, Any], *, budget: int, tuner: str, stream: tuple[int, ...]
) -> Candidates:
    """Yield settings to try; send back the value of each, larger is better.

    The first is empty: the parameters as given. Every objective gets the same number, and with
    ``random`` the same draws.
    """
    booster = booster_named(backend)
    given = booster.parameters.read(asked)
    space = {name: one for name, one in booster.tuning.space.items() if name not in given}
    return (_random if tuner == "random" else _optuna)(space, budget, stream)


def best_of(tried: Candidates, attempt: Callable[[dict[str, Any]], tuple[float, T]]) -> T:
    """Try settings one after the other and return the result with the largest value."""
    best_value, best = attempt(next(tried))
    value = best_value
    while True:
        try:
            settings = tried.send(value)
        except StopIteration:
            return best
        value, result = attempt(settings)
        if value > best_value:
            best_value, best = value, result


def check_tuner(tuner: str) -> Any:
    """Return the package of a tuner, if it needs one; raise when it is not installed."""
    missing = "tuner=optuna needs optuna: pip install optuna, or use tuner=random"
    return import_optional("optuna", missing) if tuner == "optuna" else None


def _run(source: Source, design: Design, task: Task, on_round: Callable[[int], None] | None) -> Run:
    split = split_of(source, design, task)
    if task.system.is_given:
        given = source.scores[task.system.objective][_rows(source.data.groups, split.test)[0]]
        return Run(**task._asdict(), **_judgement(source, design, split.test, given))
    both = np.sort(np.concatenate([split.train, split.valid]))
    queries = both if is_folded(task.system.objective) else split.train
    learned = _learned(source, design, task, queries)
    valid = _validation(source, design, task.fold, split.valid)
    _warm_up(source, design, task, split.train)
    started = time.perf_counter()
    trained, params = _trained(design, task, (learned, valid), on_round)
    seconds = time.perf_counter() - started
    test = part_of(source, split.test)
    scores = trained.scores(test.features)
    judgement = _judgement(source, design, split.test, scores)
    if (judgement["tied"][test.data.groups.sizes > 1] == 1.0).all():
        warn(
            "all scores of every test query are equal; check the features, the learning rate and "
            "the smallest leaves",
            NoProgressWarning,
        )
    found = trained.history.get(_VALID, {})  # without metrics that are undefined there
    rounds = max(map(len, found.values()), default=0)
    return Run(
        **task._asdict(),
        **judgement,
        history={name: found.get(name, [math.nan] * rounds) for name in design.metrics},
        best_round=trained.best_round,
        seconds=seconds,
        params=params,
    )


def _learned(source: Source, design: Design, task: Task, queries: IntArray) -> Part:
    """Return training rows, with corrected clicks as labels if the system corrects them."""
    part = part_of(source, queries)
    if design.clicks is None:
        return part
    return design.clicks.training(task.system.objective, task.fold, part)


def _validation(source: Source, design: Design, fold: int, queries: IntArray) -> Part:
    """Return validation rows; metrics weight queries, so weights of items are dropped."""
    part = part_of(source, queries)
    if design.clicks is not None:
        part = design.clicks.validation(fold, part)
    try:
        part.data.query_weight()
    except WeightError:
        return replace(part, data=replace(part.data, weight=None))
    return part


def _judgement(
    source: Source, design: Design, queries: IntArray, scores: FloatArray
) -> dict[str, Any]:
    """Return all measures of scores; test queries have equal weight."""
    rows, data = _data_of(source, queries)
    data = replace(data, weight=None)
    if design.clicks is not None:
        data = design.clicks.judged(data)
    metrics = metrics_callback(list(design.metrics))
    bound = [bind_metric(one.measure, data) for one in metrics]
    ranked = Ranked(scores, data.groups).prepare(*(one.depth for one in bound))
    values = {}
    for one, state in zip(metrics, bound, strict=True):
        found = state.per_query(ranked)
        fill = {"zero": 0.0, "one": 1.0}.get(one.measure.empty, math.nan)
        values[str(one)] = np.where(np.isnan(found), fill, found)
    if design.regret_k is not None and source.gain is not None:
        # The expected DCG of a ranking is its DCG with expected gains for labels.
        exact = metrics_callback(f"ndcg(gain=linear)@{design.regret_k}")[0]
        reached = exact.per_query(source.gain[rows], scores, group=data.groups.sizes)
        values[regret_name(design.regret_k)] = np.maximum(1.0 - reached, 0.0)
    numbers = np.searchsorted(judged(source.scheme, design.folds), queries)
    return {"queries": numbers, "values": values, "tied": tied_pairs(scores, data.groups)}


def _trained(
    design: Design, task: Task, parts: tuple[Part, Part], on_round: Callable[[int], None] | None
) -> tuple[Trained, dict[str, Any]]:
    """Train once, or once per setting in tuning, and keep the best on the validation set."""
    learned, valid = parts
    metrics = _defined(design, valid.data)
    target = metrics[0]
    base = design.params_of(task.system)

    def attempt(changes: Mapping[str, Any]) -> tuple[float, tuple[Trained, dict[str, Any]]]:
        params = {**base, **changes}
        plan = replace(plan_of(design, task), metric=metrics, params=params)
        if is_folded(task.system.objective):
            trained = train_in_folds(task.system.objective, plan, learned, on_round)
            best = math.nan if trained.unseen is None else trained.unseen.value
        else:
            trained = train(plan, learned, {_VALID: valid}, on_round)
            values = trained.history[_VALID][str(target)]
            best = values[min(trained.best_round, len(values) - 1)]  # a committee has one value
        return (best if target.higher_is_better else -best), (trained, params)

    if not design.tune:
        return attempt({})[1]
    how: dict[str, Any] = {
        "budget": design.tune,
        "tuner": design.tuner,
        "stream": (task.seed, task.fold),
    }
    asked = design.fixed_params(task.system)
    return best_of(candidates(task.system.backend, asked, **how), attempt)


def _warm_up(source: Source, design: Design, task: Task, queries: IntArray) -> None:
    """Train one round on two long queries; once in a process for each system and metrics."""
    key = (*task.system, *design.metrics)
    if key in _compiled:
        return
    _compiled.add(key)
    plan = replace(plan_of(design, task), rounds=1, early_stopping=None)
    smallest, largest = source.label_ends()
    equal = (smallest == largest)[queries]
    longest_first = np.lexsort((-source.data.groups.sizes[queries], equal))
    few = _learned(source, design, task, queries[longest_first[:2]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with contextlib.suppress(Exception):  # the run itself will raise it
            train(plan, few, {"valid": few})
    for one in caught:
        # Issued once per process: about slow plugins. Two queries say nothing about a committee.
        if one.category is GbmrankWarning and not str(one.message).startswith("committee:"):
            warn(str(one.message), GbmrankWarning)


def _defined(design: Design, data: RankingData) -> MetricList:
    """Return the metrics that are defined on the validation queries, and always the target."""
    data = replace(data, weight=None)
    metrics = list(metrics_callback(list(design.metrics)))
    if design.clicks is not None:  # others need the truth
        metrics = [one for one in metrics if one.measure.linear]
    flat = Ranked(np.zeros(data.groups.n_rows), data.groups)
    bound = [bind_metric(one.measure, data) for one in metrics]
    known = [not np.isnan(one.score(flat.prepare(one.depth))) for one in bound]
    known[0] = True
    return MetricList([one for one, kept in zip(metrics, known, strict=True) if kept])


def _data_of(source: Source, queries: IntArray) -> tuple[IntArray, RankingData]:
    """Return row numbers, and labels, weights and further columns of some queries."""
    rows, sizes = _rows(source.data.groups, queries)
    whole, groups = source.data, Groups.from_sizes(sizes, len(rows))
    weight = None if whole.weight is None else whole.weight[rows]
    columns = {name: column[rows] for name, column in whole.columns.items()}
    return rows, RankingData(whole.labels[rows], groups, weight, columns=columns)


def _rows(groups: Groups, queries: IntArray) -> tuple[IntArray, IntArray]:
    sizes = groups.sizes[queries]
    ends = np.cumsum(sizes)
    starts = np.repeat(groups.offsets[:-1][queries] - (ends - sizes), sizes)
    return starts + np.arange(int(sizes.sum())), sizes


def _texts(caught: list[warnings.WarningMessage]) -> tuple[str, ...]:
    """Return warnings, each once and on one line."""
    kinds = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
    found: dict[str, None] = {}
    for one in caught:
        if not issubclass(one.category, kinds):
            line = " ".join(_XGBOOST_PLACE.sub("", str(one.message)).split())
            found[f"{one.category.__name__}: {line}"] = None
    return tuple(found)


def _random(space: Mapping[str, Range], budget: int, stream: tuple[int, ...]) -> Candidates:
    rng = np.random.default_rng([*stream, 2])
    yield {}
    for _ in range(budget - 1 if space else 0):
        shares = dict(zip(space, rng.random(len(space)).tolist(), strict=True))
        yield {name: space[name].at(share) for name, share in shares.items()}


def _optuna(space: Mapping[str, Range], budget: int, stream: tuple[int, ...]) -> Candidates:
    optuna = check_tuner("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seed = int(np.random.default_rng([*stream, 2]).integers(2**31))
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=max(budget // 3, 1))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    yield {}
    for _ in range(budget - 1 if space else 0):
        trial = study.ask()
        tried = {}
        for name, bounds in space.items():
            suggest = trial.suggest_int if bounds.whole else trial.suggest_float
            tried[name] = suggest(name, bounds.low, bounds.high, log=True)
        study.tell(trial, (yield tried))
