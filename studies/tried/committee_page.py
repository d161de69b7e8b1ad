"""The tables of committees on the page of this study."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from studies.quality.models import Cell, Scores, members_of
from studies.quality.page import GOALS as TITLES
from studies.quality.page import Effect
from studies.sets import RankingSet
from studies.tried.committees import Committee, committee_values, committees, seeds_of
from studies.tried.pool import FOLDS, GOALS, SIZE, native, query_ids
from studies.tried.tables import (
    BOOSTERS,
    SETS,
    By,
    Files,
    Rows,
    effect,
    head,
    listed,
    over_seeds,
    row,
    scores_of,
    shown,
)

_OWN = "OWN"  # the booster's own objective in names of committees
Corner = tuple[str, str]  # set, booster


class Field(NamedTuple):
    """All committees on one metric."""

    goal: str
    made: list[Committee]
    values: dict[Corner, By]

    def four(self, one: str, other: str) -> dict[Corner, Effect]:
        """Return the differences of two committees by set and booster."""
        return {corner: effect(by[one], by[other]) for corner, by in self.values.items()}

    def mean(self, one: str, other: str) -> Effect:
        """Return the mean difference over sets and boosters, which share the queries of a set."""
        gaps: dict[str, list[Scores]] = {}
        for (name, _), by in self.values.items():
            gaps.setdefault(name, []).append(by[one] - by[other])
        each = [effect(np.mean(found, axis=0), np.zeros(len(found[0]))) for found in gaps.values()]
        error = math.sqrt(sum(found.error**2 for found in each)) / len(each)
        return Effect(sum(found.difference for found in each) / len(each), error)

    def level(self, name: str) -> float:
        """Return the mean value over sets and boosters."""
        return float(np.mean([np.nanmean(by[name]) for by in self.values.values()]))


def committee_section(
    sets: Mapping[str, RankingSet], seeds: Sequence[int], files: Files
) -> tuple[str, list[str]]:
    """Return what committees show, in one paragraph, and all tables."""
    if not seeds:
        return "", []
    about = (
        f"The default committee averages {SIZE} models: `pairwise` with the target of the metric, "
        "`yetirank`, `query_rmse` and `swap` of the metric, each with a seed of its own. OWN is "
        "the booster's own objective, `lambdarank` in LightGBM and `rank:ndcg` in XGBoost. A "
        "committee is compared with as many seeds of OWN as it has models, so both cost the same. "
        f"The pool has {2 * SIZE} models of OWN: two draws of four, four of two. The values of all "
        "draws are averaged, which lowers the noise of the comparison.\n"
    )
    fields = [_field(sets, seeds, files, goal) for goal in GOALS]
    details = [line for field in fields for line in _equal_cost(field)]
    lines = [*_luck(fields), *_summary(fields), *_levels(fields)]
    return _in_short(fields), ["## Committees\n", about, *lines, *details]


def _in_short(fields: Sequence[Field]) -> str:
    first = fields[0]
    means = ", ".join(
        f"{shown(field.mean(_BOTH, _own(SIZE)))} in {TITLES[field.goal]}" for field in fields
    )
    cells = [each for field in fields for each in field.four(_BOTH, _own(SIZE)).values()]
    behind = sum(each.verdict == "worse" for each in cells)
    errors = [each.error for each in cells]
    best = first.mean("default, best member on validation queries", "default")
    return (
        f"- Committees: of {len(first.made) - 2} others, clearly better than the default on both "
        f"sets in both boosters, by any metric: {listed(_wins(fields))}. At equal cost the default "
        "less seeds of the booster's own objective is, in the mean of sets and boosters, "
        f"{means}; clearly behind in {behind} of {len(cells)} cells (set, booster, metric). One "
        f"cell has a standard error of {min(errors):.4f} to {max(errors):.4f}: these sets cannot "
        "show differences as small as those of XGBoost in the benchmark. Most of the gain is that "
        f"of averaging: four seeds of the booster's own objective minus one are "
        f"{shown(first.mean(_own(SIZE), _own(1)))} in NDCG@10. The best member on validation "
        f"queries minus the default, is {shown(best)}."
    )


def _wins(fields: Sequence[Field]) -> list[str]:
    """Return the committees that are clearly better than the default in all columns of a metric."""
    return [
        one.name
        for one in fields[0].made
        if any(
            all(each.verdict == "better" for each in field.four(one.name, "default").values())
            for field in fields
        )
    ]


def _field(sets: Mapping[str, RankingSet], seeds: Sequence[int], files: Files, goal: str) -> Field:
    """Return values per query, means over seeds; OWN stands for the objective of either booster."""
    values: dict[Corner, By] = {}
    made: list[Committee] = []
    for name, backend in product(sets, BOOSTERS):
        data, own = sets[name], native(backend)
        found = list(committees(members_of(data, goal), own))
        draws = [seeds_of(own, count, first) for count in _COSTS for first in _firsts(count)]
        rows: list[Rows] = []
        for seed, fold in product(seeds, range(FOLDS)):
            cell = Cell(name, seed, fold, backend)
            scores = partial(scores_of, files, cell)
            each = committee_values(data, cell, goal, [*draws, *found], scores)
            rows.append((query_ids(data, seed, fold), each))
        averaged = over_seeds(rows)
        by = {label.replace(own, _OWN): row for label, row in averaged.items()}
        values[name, backend] = {**by, **_drawn(by)}
        made = [one._replace(name=one.name.replace(own, _OWN)) for one in found]
    return Field(goal, made, values)


def _own(count: int) -> str:
    return f"{count} x {_OWN}"


_COSTS = 1, 2, 3, 4, 5, 8  # models of a committee
_FIRST, _TWICE, _BOTH = "first 4 x OWN", "default, two seeds of each", "default, both draws"


def _firsts(count: int) -> range:
    """Return the first seeds of the draws of so many models that the pool has room for."""
    return range(0, 2 * SIZE - count + 1, count)


def _drawn(by: By) -> By:
    """Return mean values over draws of seeds, which are less noisy than one draw."""
    found: By = {}
    for count in _COSTS:
        names = [seeds_of(_OWN, count, first).name for first in _firsts(count)]
        found[_own(count)] = np.mean([by[name] for name in names], axis=0)
    found[_FIRST] = by[seeds_of(_OWN, SIZE).name]
    found[_BOTH] = (by["default"] + by["default, other seeds"]) / 2.0
    return found


def _luck(fields: Sequence[Field]) -> list[str]:
    """Return how much of a difference is the draw of seeds."""
    pairs = {
        "one seed for all members minus the first 4 x OWN": ("default, one seed for all", _FIRST),
        "default minus the first 4 x OWN": ("default", _FIRST),
        "default, other seeds minus the first 4 x OWN": ("default, other seeds", _FIRST),
        "second 4 x OWN minus the first": (seeds_of(_OWN, SIZE, SIZE).name, _FIRST),
        "default, both draws minus both draws of OWN": (_BOTH, _own(SIZE)),
    }
    rows = [
        row(TITLES[field.goal], name, *map(shown, field.four(*pair).values()))
        for field in fields
        for name, pair in pairs.items()
    ]
    seen = [fields[0].four(*pair) for pair in pairs.values()]
    film, medical = ("movielens", "lightgbm"), ("ohsumed", "xgboost")
    said = (
        "The second line of each metric is the comparison of the [benchmark](quality.md): each "
        "member has a seed of its own, as in `GBMRanker`. A standard error over queries "
        "leaves out that other seeds give other models, so the same is done with other seeds. In "
        f"NDCG@10 on MovieLens with LightGBM {shown(seen[1][film])} is {shown(seen[4][film])} over "
        f"both draws, and four other seeds of `lambdarank` alone make {shown(seen[3][film])}. It "
        f"goes both ways: on OHSUMED with XGBoost {shown(seen[1][medical])} is "
        f"{shown(seen[4][medical])} over both draws. All models were planned as members of larger "
        "committees; to compare over both draws was decided after the first draw had been seen.\n"
    )
    titles = head("metric", "difference", *map(_corner, fields[0].values), texts=2)
    return ["### How much is the draw of seeds\n", said, titles, *rows, ""]


def _summary(fields: Sequence[Field]) -> list[str]:
    """Return what all metrics, sets and boosters say of each committee."""
    made = fields[0].made
    rows, steady = [], []
    for one in made:
        rival = _own(len(one.members))
        against = [each for field in fields for each in field.four(one.name, rival).values()]
        usual = [each for field in fields for each in field.four(one.name, "default").values()]
        means = [field.mean(one.name, rival) for field in fields]
        counts = [
            sum(each.verdict == verdict for each in effects)
            for effects in (against, usual)
            for verdict in ("better", "worse")
        ]
        if counts[1] == 0 and all(mean.difference >= 0.0 for mean in means):
            steady.append(one.name)
        rest = ["", ""] if one.name == "default" else [str(count) for count in counts[2:]]
        cells = [shown(mean) for mean in means]
        rows.append(row(one.name, str(len(one.members)), *cells, *map(str, counts[:2]), *rest))
    titles = [TITLES[field.goal] for field in fields]
    return [
        "### All sets, boosters and metrics\n",
        (
            "Mean difference to as many seeds of OWN over both sets and both boosters, and in how "
            f"many of the {len(against)} cells (set, booster, metric) a committee is clearly ahead "
            "or behind. Never clearly behind OWN, and not behind in the mean of any metric: "
            f"{listed(steady)}. Clearly better than the default on both sets in both boosters, "
            f"by any metric: {listed(_wins(fields))}.\n"
        ),
        head(
            *("committee", "models", *titles, "ahead of OWN", "behind OWN"),
            *("ahead of default", "behind default"),
        ),
        *rows,
        "",
    ]


def _levels(fields: Sequence[Field]) -> list[str]:
    first = fields[0]
    gains = ", ".join(f"{count}: {first.level(_own(count)):.4f}" for count in (1, 2, 4, 8))
    names = (*(_own(count) for count in (1, 2, 4, 8)), _BOTH, _TWICE)
    lines = [
        "### Levels\n",
        (
            f"Seeds of OWN alone gain what averaging gains (mean NDCG@10 of the four columns, by "
            f"number of seeds, {gains}; default {first.level(_BOTH):.4f}, two seeds of each "
            f"{first.level(_TWICE):.4f}).\n"
        ),
        head("metric", "committee", *(_corner(one) for one in first.values), texts=2),
    ]
    for field in fields:
        for name in names:
            cells = [f"{np.nanmean(by[name]):.4f}" for by in field.values.values()]
            lines.append(row(TITLES[field.goal], name, *cells))
    return [*lines, ""]


def _corner(one: Corner) -> str:
    return f"{BOOSTERS[one[1]]}, {SETS[one[0]]}"


def _equal_cost(field: Field) -> list[str]:
    """Return the table against as many seeds of the booster's own objective."""
    rows, behind, ahead = [], 0, 0
    for one in field.made:
        four = field.four(one.name, _own(len(one.members)))
        verdicts = [each.verdict for each in four.values()]
        behind += "worse" in verdicts
        ahead += "better" in verdicts
        cells = [shown(each) for each in four.values()]
        rows.append(row(one.name, str(len(one.members)), *cells))
    return [
        f"### {TITLES[field.goal]} minus as many seeds of OWN\n",
        (
            f"Of {len(rows)} committees {ahead} are clearly ahead of OWN in at least one column, "
            f"{behind} clearly behind in at least one.\n"
        ),
        head("committee", "models", *(_corner(one) for one in field.values)),
        *rows,
        "",
    ]
