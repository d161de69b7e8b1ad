"""Committees of this study, made of the kept scores of their members without a training."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

import gbmrank
from gbmrank.data.queries import RankingData
from studies.quality.models import Cell, Scores
from studies.sets import RankingSet
from studies.tried.pool import SIZE, Member, parts_of

Value = Callable[[Scores], float]  # of scores of the validation rows


class Committee(NamedTuple):
    """Models whose standardised scores are averaged."""

    name: str
    members: tuple[Member, ...]
    weights: str = "equal weights"  # a key of WEIGHTS


def seeds_of(objective: str, count: int, first: int = 0) -> Committee:
    """Return so many seeds of one objective."""
    name = f"{objective}, {count} {'seed' if count == 1 else 'seeds'}"
    seeds = range(first, first + count)
    return Committee(f"{name} from {first}", tuple(Member(objective, seed) for seed in seeds))


def committees(members: Sequence[str], own: str) -> Iterator[Committee]:
    """Yield what to compare, given the default members and the booster's own objective."""
    first = tuple(Member(name, at) for at, name in enumerate(members))
    second = tuple(Member(name, SIZE + at) for at, name in enumerate(members))
    short = [name.partition("(")[0] for name in members]
    yield Committee("default", first)
    yield Committee("default, other seeds", second)
    yield Committee("default, one seed for all", tuple(Member(name, 0) for name in members))
    for rule in list(WEIGHTS)[1:]:
        yield Committee(f"default, {rule}", first, rule)
    for at, name in enumerate(short):
        yield Committee(f"without {name}", (*first[:at], *first[at + 1 :]))
    for one, two in combinations(range(len(members)), 2):
        pair = f"{short[one]} and {short[two]}"
        yield Committee(pair, (first[one], first[two]))
        four = first[one], first[two], second[one], second[two]
        yield Committee(f"{pair}, two seeds of each", four)
    yield Committee("default, two seeds of each", first + second)
    yield from _with_own(first, second, own)


def _with_own(
    first: tuple[Member, ...], second: tuple[Member, ...], own: str
) -> Iterator[Committee]:
    """Yield committees in which the booster's own objective has a place."""
    seeds = seeds_of(own, 2 * SIZE).members
    short = [one.objective.partition("(")[0] for one in first]
    for at, name in enumerate(short):
        yield Committee(f"{own} for {name}", (*first[:at], seeds[at], *first[at + 1 :]))
    for at, name in enumerate(short):
        others = [one for one in seeds if one.seed % SIZE != at]
        four = first[at], second[at], *others[:2]
        yield Committee(f"{own} and {name}, two seeds of each", four)
    yield Committee(f"default and {own}", (*first, seeds[SIZE]))


def _values(scores: Scores, value: Value) -> Scores:
    return np.array([value(one) for one in scores])


def _best(count: int) -> Callable[[Scores, Value], Scores]:
    """Weigh the best members alike, and the others not at all."""

    def weights(scores: Scores, value: Value) -> Scores:
        place = np.argsort(np.argsort(-_values(scores, value), kind="stable"))
        return (place < count).astype(np.float64)

    return weights


def _greedy(scores: Scores, value: Value) -> Scores:
    """Add the member that helps most, twenty times, with replacement (Caruana et al. 2004)."""
    count = np.zeros(len(scores))
    for _ in range(20):
        count[int(np.argmax([value(count @ scores + one) for one in scores]))] += 1.0
    return count


WEIGHTS: Mapping[str, Callable[[Scores, Value], Scores]] = {  # by values on validation queries
    "equal weights": lambda scores, value: np.ones(len(scores)),
    "weights in proportion to validation values": _values,
    "weights exp(100 x validation value)": lambda scores, value: np.exp(
        100.0 * (_values(scores, value) - 1.0)
    ),
    "greedy selection on validation queries": _greedy,
    "best member on validation queries": _best(1),
    "best two members on validation queries": _best(2),
}


def combine(
    rule: str, valid: RankingData, metric: str, scores: tuple[Sequence[Scores], Sequence[Scores]]
) -> Scores:
    """Return the test scores of a committee, from the validation and test scores of its members."""
    judge = gbmrank.metric(metric)

    def value(one: Scores) -> float:
        return float(judge.score(valid.labels, one, group=valid.groups.sizes))

    weights = WEIGHTS[rule](np.array(scores[0]), value)
    return np.asarray(weights @ np.array(scores[1]) / weights.sum())


def committee_values(
    data: RankingSet,
    cell: Cell,
    goal: str,
    made: Iterable[Committee],
    scores: Callable[[Member], Mapping[str, Scores]],
) -> dict[str, Scores]:
    """Return the values per test query of committees, by name."""
    _, valid, test = (part.data for part in parts_of(data, cell.seed, cell.fold))
    metric = data.goals[goal]
    found = {}
    for one in made:
        each = [scores(member) for member in one.members]
        both = [by[f"valid {goal}"] for by in each], [by[f"test {goal}"] for by in each]
        joined = combine(one.weights, valid, metric, both)
        groups = test.groups.sizes
        found[one.name] = gbmrank.metric(metric).per_query(test.labels, joined, group=groups)
    return found
