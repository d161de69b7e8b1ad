"""A committee: models of several objectives, standardised, averaged and merged into one.

Losses err in different ways, so the mean of models that minimise different losses ranks better
than each of them, and better than one of them with several seeds. Every member is trained by a
plan of ``gbmrank.boosters``; the booster merges their trees into one ordinary model.
"""

import importlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gbmrank.api import Metric
from gbmrank.api.committees import Committee
from gbmrank.api.metrics import any_preferences
from gbmrank.api.objectives import Objective, objective
from gbmrank.boosters import plan as plans
from gbmrank.boosters.base import Member, Trained
from gbmrank.boosters.plan import Engine, LocalEngine, Native, Plan, check_plan
from gbmrank.boosters.settings import check_seed
from gbmrank.boosters.supported import booster_named
from gbmrank.errors import ConfigError, GbmrankWarning, NumericError, ParameterError, warn

_log = logging.getLogger("gbmrank")
_SEEDS = 2**31  # number of seeds a booster accepts


def default_members(metric: Metric) -> tuple[Objective, ...]:
    """Return objectives that suit a metric and err in different ways.

    Examples
    --------
    >>> import gbmrank
    >>> for one in default_members(gbmrank.metric("err@10")):
    ...     print(one)
    pairwise(loss=logistic, target=ndcg@10)
    swap(metric=rbp(p=0.85), loss=logistic, pairs=neighbours, noise=logistic)
    query_rmse(target=identity)
    swap(metric=err@10, loss=logistic)
    """
    measure = metric.measure
    advice = importlib.import_module("gbmrank.theory.verdicts.advice")  # scipy comes with it
    try:
        swap = objective("swap", metric=measure)
    except ParameterError:  # no closed form of the change by a swap
        swap = objective("lambdarank")
    calibrated = objective("pairwise", target=advice.target_for(measure))
    return calibrated, objective("yetirank"), objective("query_rmse"), swap


def member_plans(plan: Plan, folds: int | None = None) -> tuple[Plan, ...]:
    """Return how each member of a committee is trained; the plan itself for one objective.

    With ``folds`` there is one member for each, and the objectives take turns.
    """
    committee = plan.objective
    if not isinstance(committee, Committee):
        if folds is None:
            return (plan,)
        committee = Committee((committee,))
    if plan.start is not None:
        raise ConfigError(
            "init_model= continues one model, but a committee merges several; train it from "
            "scratch, or continue with one objective"
        )
    known = booster_named(plan.backend).parameters
    params = known.by_main_names(plan.params)
    if plan.seed != 0:
        known.check_once(plan.params, "seed", "seed", plan.seed)
    first = check_seed(params.pop("seed", plan.seed)) or 0
    each = [one for one in _members(committee, plan.metric) for _ in range(committee.seeds)]
    if folds is not None:
        if folds < len(each):
            raise ParameterError(
                f"folds={folds}, but {plan.objective} has {len(each)} models, one for each "
                f"objective and seed; give folds={len(each)} or more"
            )
        each = [each[at % len(each)] for at in range(folds)]
    several = folds is None and committee.seeds > 1  # models that only their seeds could tell apart
    more = [known.sampled if several and _is_not_random(plan, one) else {} for one in each]
    return tuple(
        replace(plan, objective=one, params={**params, **more[at]}, seed=(first + at) % _SEEDS)
        for at, one in enumerate(each)
    )


def _is_not_random(plan: Plan, member: Any) -> bool:
    """Whether the models of several seeds would be the same."""
    known = booster_named(plan.backend).parameters
    native = member.name if isinstance(member, Native) else None
    return not known.is_random(known.read(plan.params), native)


def train(
    plan: Plan,
    data: Any,
    valid: Mapping[str, Any] | None = None,
    on_round: Callable[[int], None] | None = None,
    engine: Engine | None = None,
) -> Trained:
    """Train one objective or a committee, on this machine unless an engine is given.

    The scores of a member are divided by their standard deviation within the training queries;
    the merged model gives the weighted mean of the members.
    """
    if not isinstance(plan.objective, Committee):
        return plans.train(plan, data, valid, on_round, engine)
    engine, each = engine or LocalEngine(), member_plans(plan)
    for one in each:
        check_plan(one, bool(valid))
    alike = dict.fromkeys(
        str(one.objective)
        for one in each
        if plan.objective.seeds > 1 and _is_not_random(plan, one.objective)
    )
    if alike:
        sampled = booster_named(plan.backend).parameters.sampled
        warn(
            f"committee: the seeds of {', '.join(alike)} would give the same model, as nothing in "
            f"its training is random. So each is trained with "
            f"{', '.join(f'{name}={value}' for name, value in sampled.items())}; "
            "set these or other samples yourself to choose",
            GbmrankWarning,
        )
    _log.info(
        "%s trains %d models of up to %d rounds, %d rounds in all",
        *(plan.objective, len(each), plan.rounds, len(each) * plan.rounds),
    )
    trained: list[Trained] = []
    for one in each:
        run = partial(plans.train, data=data, valid=valid, engine=engine)
        trained.append(train_member(one, run, trained, on_round))
    made = combined(plan, each, trained, [engine.spread(one.fitted, data) for one in trained])
    keys = [(one.objective, one.rounds, one.spread) for one in made.committee]
    twin = next((one for one in keys if keys.count(one) > 1), None)
    if twin is not None:
        warn(
            f"committee: two models of {twin[0]} are the same, since their training is not random; "
            "sample rows or columns, as booster_params(..., preset='robust') does, or leave one "
            "out",
            GbmrankWarning,
        )
    judged = {} if any_preferences(plan.metric) else valid or {}  # these belong to rows
    return replace(made, history=values_on(plan, made, judged, engine))


def combined(
    plan: Plan, each: Sequence[Plan], trained: Sequence[Trained], spreads: Sequence[float]
) -> Trained:
    """Merge members, each divided by its spread; ``each`` are their plans.

    The weights add up to 1, and members of one objective share its weight.
    """
    given: Sequence[float] = (1.0,)
    owner = [0] * len(each)
    if isinstance(plan.objective, Committee):
        count, seeds = len(_members(plan.objective, plan.metric)), plan.objective.seeds
        given = plan.objective.weights or (1.0,) * count
        owner = [at // seeds % count for at in range(len(each))]
    members = tuple(
        Member(
            objective=str(one.objective),
            seed=one.seed,
            rounds=model.fitted.n_rounds,
            weight=given[owner[at]] / owner.count(owner[at]) / sum(given),
            spread=spread,
            values={
                name: {
                    metric: column[model.fitted.n_rounds - 1] for metric, column in found.items()
                }
                for name, found in model.history.items()
            },
        )
        for at, (one, model, spread) in enumerate(zip(each, trained, spreads, strict=True))
    )
    shares = [member.weight for member in members]
    factors = [one.weight / one.spread if one.spread > 0.0 else 0.0 for one in members]
    merge = booster_named(plan.backend).merge
    fitted = merge([one.fitted for one in trained], factors, shares)
    return Trained(fitted, {}, fitted.n_rounds - 1, members)


def values_on(
    plan: Plan, trained: Trained, sets: Mapping[str, Any], engine: Engine
) -> dict[str, dict[str, list[float]]]:
    """Return one value per set and metric, in the form of a history."""
    values = {name: engine.values(trained.fitted, part, plan.metric) for name, part in sets.items()}
    return {
        name: {str(one): [value] for one, value in zip(plan.metric, found, strict=True)}
        for name, found in values.items()
    }


def _members(committee: Committee, metrics: Sequence[Metric]) -> tuple[Any, ...]:
    """Return the objectives of the members, by default those that suit the first metric."""
    members = committee.members or default_members(metrics[0])
    weights = committee.weights
    if weights is not None and len(weights) != len(members):
        raise ParameterError(
            f"committee: {len(weights)} weights, but there are {len(members)} members: "
            f"{', '.join(map(str, members))}"
        )
    return members


def train_member(
    plan: Plan,
    run: Callable[..., Trained],
    previous: Sequence[Trained],
    on_round: Callable[[int], None] | None,
) -> Trained:
    """Train one member by ``run``; its rounds are counted after those of the previous members."""
    before = sum(member.fitted.n_rounds for member in previous)
    count, report = on_round, plan.report
    if on_round is not None:
        count = lambda done: on_round(before + done)  # noqa: E731
    if report is not None:
        shown = report
        plan = replace(plan, report=lambda done, history: shown(before + done, history))
    try:
        return run(plan, on_round=count)
    except NumericError as error:
        error.model = None  # the model of one member is not the committee
        error.add_note(f"in the member {plan.objective} of a committee")
        raise
