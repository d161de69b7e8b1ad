"""The page of the study of quality: differences per set, pooled over sets, in words and tables.

A difference is paired: values of a query are averaged over seeds, subtracted, and averaged over
the queries of a set; its standard error is that of a mean over queries. Sets are pooled by the
random-effects mean of DerSimonian and Laird.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from studies.quality.models import BAGGED, NATIVE, PARAMS
from studies.quality.plot import Mark, Panel, draw
from studies.report import used_versions
from studies.stamps import stamp
from studies.study import Page

DEVELOPMENT = ("ohsumed", "movielens")  # named before anything was run; all was chosen here
GOALS = {"ndcg@10": "NDCG@10", "err@10": "ERR@10", "map": "MAP"}
_TITLE = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}
_SETS = {
    "ohsumed": "OHSUMED",
    "movielens": "MovieLens",
    "lightgbm_example": "LightGBM example",
    "catboost_example": "CatBoost example",
    "travel_modes": "Travel modes",
    "mq2008": "MQ2008",
    "mslr_sample": "MSLR sample",
}
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_TEAMS = ("lightgbm", "xgboost")  # boosters that have a committee
_BASE = {backend: first for backend, ((first, _), *_rest) in NATIVE.items()}
_95 = 1.959964


class Effect(NamedTuple):
    """A difference and its standard error."""

    difference: float
    error: float

    def __str__(self) -> str:
        if math.isnan(self.difference):
            return "no runs yet"
        reach = _95 * self.error
        low, high = self.difference - reach, self.difference + reach
        return f"{self.difference:+.4f} ({low:+.4f} to {high:+.4f})"

    @property
    def verdict(self) -> str:
        """Better, worse or no clear difference."""
        if not abs(self.difference) > _95 * self.error:
            return "no clear difference"
        return "better" if self.difference > 0.0 else "worse"


class Contest(NamedTuple):
    """One system against another, on one metric: per set, and over sets."""

    goal: str
    one: tuple[str, str]  # booster and objective
    other: tuple[str, str]
    sets: Mapping[str, Effect]

    @property
    def held_out(self) -> Effect:
        """Over the sets that nothing was chosen on."""
        return pooled([each for name, each in self.sets.items() if name not in DEVELOPMENT])

    @property
    def everywhere(self) -> Effect:
        """Over all sets."""
        return pooled(list(self.sets.values()))


Values = Mapping[str, Mapping[str, Mapping[tuple[str, str], npt.NDArray[np.float64]]]]


def pooled(effects: Sequence[Effect]) -> Effect:
    """Return the random-effects mean of DerSimonian and Laird.

    >>> one = pooled([Effect(0.01, 0.01), Effect(0.03, 0.01)])
    >>> round(one.difference, 3), round(one.error, 3)
    (0.02, 0.01)
    """
    if not effects:
        return Effect(math.nan, math.nan)
    values = np.array([one.difference for one in effects])
    errors = np.maximum([one.error for one in effects], 1e-9)
    weight = errors**-2.0
    mean = (weight * values).sum() / weight.sum()
    scatter = (weight * (values - mean) ** 2).sum() - (len(values) - 1)
    room = weight.sum() - (weight**2).sum() / weight.sum()
    between = max(scatter / room, 0.0) if room > 0.0 else 0.0
    weight = 1.0 / (errors**2 + between)
    return Effect(float((weight * values).sum() / weight.sum()), float(weight.sum() ** -0.5))


def document_of(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of finished runs, ready for JSON."""
    values = _values(runs)
    about = {run["set"]: run["about"] for run in runs}
    return {
        "schema": "gbmrank.quality/4",
        "stamp": stamp("quality"),
        "versions": used_versions(),
        "runs": {name: sum(run["backend"] == name for run in runs) for name in PARAMS},
        "seeds": len({run["seed"] for run in runs}),
        "folds": len({run["fold"] for run in runs}),
        "rounds": sorted({run["model_rounds"] for run in runs}),
        "cpu_minutes": round(sum(run["cpu"] for run in runs) / 60, 1),
        "sets": {
            name: {"about": about[name], "queries": _count(found)} for name, found in values.items()
        },
        "contests": [_plain(one) for one in _contests(values)],
        "means": {
            name: {
                goal: {" ".join(system): _mean(row) for system, row in by.items()}
                for goal, by in found.items()
            }
            for name, found in values.items()
        },
    }


def page(document: Mapping[str, Any]) -> Page:
    """Return the page of figures, with these beside it and a picture."""
    made = [_contest_of(one) for one in document["contests"]]
    lines = [
        _headline(made),
        "",
        "![NDCG@10 gained by the committee, per data set and pooled](quality.svg)",
        "",
        *_main_table(made),
        "",
        "## When not to bother",
        "",
        _advice(made),
        "",
        "## What else was found",
        "",
        *_findings(made),
        "",
        "## All comparisons, pooled over sets",
        "",
        *_pooled_table(made),
        "",
        *_set_tables(document["sets"], made),
        *_mean_tables(document),
    ]
    return Page(
        lines=lines[:-1],
        notes=_method(document),
        files={
            "quality.json": partial(_write_figures, document),
            "quality.svg": partial(_draw, made),
        },
        time=f"{document['cpu_minutes']:.0f} minutes of CPU time",
        versions=document["versions"],
        stamp=document["stamp"],
    )


def _write_figures(document: Mapping[str, Any], path: Path) -> None:
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _draw(made: Sequence[Contest], path: Path) -> None:
    held = {name for one in made for name in one.sets if name not in DEVELOPMENT}
    note = f"held out: nothing was chosen on these {_number(len(held))} sets"
    draw([_panel(made, backend) for backend in _TEAMS], _title(made), note, path)


def _values(runs: Sequence[Mapping[str, Any]]) -> Values:
    """Return values per query by set, metric and system: means over seeds, NaN where undefined.

    Only splits that all boosters have finished count, so that all systems have the same queries.
    """
    backends = {run["backend"] for run in runs}
    there: dict[tuple[Any, ...], set[str]] = {}
    for run in runs:
        there.setdefault((run["set"], run["seed"], run["fold"]), set()).add(run["backend"])
    sums: dict[str, Any] = {}
    for run in runs:
        if there[run["set"], run["seed"], run["fold"]] != backends:
            continue
        for goal, by in run["values"].items():
            for name, row in by.items():
                kept = sums.setdefault(run["set"], {}).setdefault(goal, {})
                one = kept.setdefault((run["backend"], name), {})
                for query, value in zip(run["queries"], row, strict=True):
                    one.setdefault(query, []).append(math.nan if value is None else value)
    return {
        name: {
            goal: {
                system: np.array([np.mean(one[query]) for query in sorted(one)])
                for system, one in by.items()
            }
            for goal, by in found.items()
        }
        for name, found in sums.items()
    }


def _mean(row: npt.NDArray[np.float64]) -> float:
    return round(float(np.nanmean(row)), 5) if np.isfinite(row).any() else math.nan


def _count(goals: Mapping[str, Any]) -> int:
    """Return the number of queries of a set whose NDCG is defined."""
    rows = list(goals["ndcg@10"].values())
    return int(np.isfinite(rows[0]).sum()) if rows else 0


def _contest(values: Values, goal: str, one: tuple[str, str], other: tuple[str, str]) -> Contest:
    sets = {}
    for name, found in values.items():
        by = found[goal]
        if one in by and other in by:
            change = by[one] - by[other]
            change = change[np.isfinite(change)]
            if len(change) > 1:
                error = float(change.std(ddof=1) / math.sqrt(len(change)))
                sets[name] = Effect(float(change.mean()), error)
    return Contest(goal, one, other, sets)


def _bag(backend: str, objective: str | None = None) -> tuple[str, str]:
    return backend, f"committee({objective or _BASE[backend]}, seeds={BAGGED})"


def _contests(values: Values) -> list[Contest]:
    """Return what the page compares."""
    made = []
    for goal in GOALS:
        for backend in _TEAMS:
            team = backend, "committee"
            rivals = [(backend, name) for name, _ in NATIVE[backend]]
            rivals += [_bag(backend)]
            rivals += [("catboost", name) for name, _ in NATIVE["catboost"]]
            rivals += [_bag("catboost", name) for name, _ in NATIVE["catboost"]]
            made += [_contest(values, goal, team, rival) for rival in rivals]
            base = backend, _BASE[backend]
            for name in ("pairwise(target=ndcg@10)", "yetirank", "query_rmse"):
                made.append(_contest(values, goal, (backend, name), base))
            made.append(_contest(values, goal, (backend, f"swap(metric={goal})"), base))
            if goal != "ndcg@10":
                aimed = backend, f"swap(metric={goal})"
                calibrated = backend, "pairwise(target=ndcg@10)"
                made.append(_contest(values, goal, aimed, calibrated))
    return [one for one in made if one.sets]


def _plain(one: Contest) -> dict[str, Any]:
    return {
        "metric": one.goal,
        "system": " ".join(one.one),
        "against": " ".join(one.other),
        "held_out": one.held_out._asdict(),
        "all": one.everywhere._asdict(),
        "sets": {name: each._asdict() for name, each in one.sets.items()},
    }


def _contest_of(plain: Mapping[str, Any]) -> Contest:
    """Return what ``_plain`` was given."""
    sets = {name: Effect(**each) for name, each in plain["sets"].items()}
    one, other = (_system(plain[key]) for key in ("system", "against"))
    return Contest(plain["metric"], one, other, sets)


def _system(text: str) -> tuple[str, str]:
    backend, _, objective = text.partition(" ")
    return backend, objective


def _name(objective: str) -> str:
    """Return an objective as the page writes it.

    >>> _name("committee(native:rank:ndcg, seeds=4)"), _name("native:YetiRank"), _name("committee")
    ('4 seeds of `rank:ndcg`', '`YetiRank`', 'committee')
    """
    if objective == "committee":
        return objective
    if objective.startswith("committee("):
        inner, _, seeds = objective.removeprefix("committee(").removesuffix(")").partition(", ")
        return f"{seeds.removeprefix('seeds=')} seeds of {_name(inner)}"
    return f"`{objective.removeprefix('native:')}`"


def _rival(one: Contest) -> str:
    """Return the name of the other system, with its booster where that is another."""
    name = _name(one.other[1])
    return name if one.other[0] == one.one[0] else f"{name} ({_TITLE[one.other[0]]})"


def _find(
    made: Sequence[Contest], goal: str, belongs: Callable[[Contest], bool]
) -> dict[str, Contest]:
    """Return the contests of a kind on a metric, by the booster of the first system."""
    return {one.one[0]: one for one in made if one.goal == goal and belongs(one)}


def _is_base(one: Contest) -> bool:
    return one.one[1] == "committee" and one.other == (one.one[0], _BASE[one.one[0]])


def _is_bag(one: Contest) -> bool:
    return one.one[1] == "committee" and one.other == _bag(one.one[0])


def _is_catboost(one: Contest) -> bool:
    return one.other[0] == "catboost" and not one.other[1].startswith("committee")


def _is_catboost_bag(one: Contest) -> bool:
    return one.other[0] == "catboost" and one.other[1].startswith("committee")


def _is_aimed(one: Contest) -> bool:
    return one.other[1] == "pairwise(target=ndcg@10)"


def _is_single(one: Contest) -> bool:
    return one.one[1] != "committee" and one.other[1].startswith("native:")


def _headline(made: Sequence[Contest]) -> str:
    """Return the result in two sentences."""
    base, bags = (_find(made, "ndcg@10", kind) for kind in (_is_base, _is_bag))
    held = {name for one in made for name in one.sets if name not in DEVELOPMENT}
    if not held:
        return "Held-out sets have not been run yet."
    against = " and ".join(_against(one) for one in base.values())
    equal = "; ".join(
        f"{_TITLE[backend]} {one.held_out}, {one.held_out.verdict}" for backend, one in bags.items()
    )
    return (
        f"On the {_number(len(held))} data set{'' if len(held) == 1 else 's'} that nothing was "
        f"chosen on, "
        f'`GBMRanker(objective="committee")` {against}. Against {BAGGED} seeds of the same loss, '
        f"averaged, which cost as much as the committee: {equal}."
    )


def _against(one: Contest) -> str:
    effect, rival = one.held_out, f"{_TITLE[one.other[0]]}'s {_name(one.other[1])}"
    reach = _95 * effect.error
    if effect.verdict == "no clear difference":
        return f"is not clearly different from {rival} ({effect})"
    size = abs(effect.difference)
    interval = f"95% interval {size - reach:.4f} to {size + reach:.4f}"
    word = "gains" if effect.verdict == "better" else "loses"
    return f"{word} {size:.4f} NDCG@10 against {rival} ({interval})"


def _number(count: int) -> str:
    return _WORDS[count] if count < len(_WORDS) else str(count)


def _main_table(made: Sequence[Contest]) -> list[str]:
    """Return the committee against one model and against seeds, on the held-out sets."""
    lines = [
        "The committee minus the booster's own loss, held-out sets, 95% intervals:",
        "",
        "| metric | committee minus | " + " | ".join(_TITLE[name] for name in _TEAMS) + " |",
        "| --- | --- |" + " --- |" * len(_TEAMS),
    ]
    own = " or ".join(_name(_BASE[name]) for name in _TEAMS)
    for goal, shown in GOALS.items():
        for title, kind in ((own, _is_base), (f"{BAGGED} seeds of it", _is_bag)):
            found = _find(made, goal, kind)
            cells = [str(found[name].held_out) if name in found else "-" for name in _TEAMS]
            lines.append(f"| {shown} | {title} | {' | '.join(cells)} |")
    return lines


def _advice(made: Sequence[Contest]) -> str:
    """Return when a committee is worth it, by the comparison at equal cost."""
    bags = [one.held_out for one in _find(made, "ndcg@10", _is_bag).values()]
    if not bags or any(math.isnan(one.difference) for one in bags):
        return "Held-out sets have not been run yet."
    wins = [one for one in bags if one.verdict == "better"]
    base = _find(made, "ndcg@10", _is_base)
    close = [
        _shown(name)
        for name, each in (base["lightgbm"].sets.items() if "lightgbm" in base else ())
        if each.verdict == "no clear difference"
    ]
    cost = (
        "At equal cost it is better than seeds of the booster's own loss"
        if len(wins) == len(bags)
        else "At equal cost it is not clearly better than seeds of the booster's own loss in "
        "every booster: part of the gain comes from averaging"
    )
    where = (
        f"On {_listed(close)} even the difference to one `lambdarank` is within noise: train one "
        "model there, and work on features or labels instead."
        if close
        else "It is clearly better than one `lambdarank` on every set."
    )
    return f"A committee costs {BAGGED} trainings. {cost}. {where}"


def _shown(name: str) -> str:
    return _SETS.get(name, name)


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _findings(made: Sequence[Contest]) -> list[str]:
    """Return what the figures say beside the headline, in sentences made from them."""
    one_model = [one for one in made if one.goal == "ndcg@10" and _is_catboost(one)]
    models = [one for one in made if one.goal == "ndcg@10" and _is_catboost_bag(one)]
    singles = [one for one in made if one.goal == "ndcg@10" and _is_single(one)]
    worse = [one for one in made if one.one[1] == "committee" and _verdict(one) == "worse"]
    lost = "; ".join(f"{GOALS[one.goal]}, {_said(one)}" for one in worse)
    titles = {
        "The committee against one CatBoost model, NDCG@10": one_model,
        f"The committee against {BAGGED} CatBoost models, NDCG@10": models,
        "One objective of gbmrank against the booster's own, NDCG@10": singles,
        "`swap(metric=err@10)` against `pairwise(target=ndcg@10)`, ERR@10": [
            one for one in made if one.goal == "err@10" and _is_aimed(one)
        ],
        "`swap(metric=map)` against `pairwise(target=ndcg@10)`, MAP": [
            one for one in made if one.goal == "map" and _is_aimed(one)
        ],
    }
    lines = [f"- {title}: {_tally(found)}" for title, found in titles.items() if found]
    lines.append(f"- Where the committee is clearly worse: {lost or 'nowhere'}.")
    lines.append(
        f"- Also tried, on {_listed([_shown(name) for name in DEVELOPMENT])} only, and not better "
        "on both: other members and weights, other parameters of `swap` and `yetirank`, "
        "mixes, leaf "
        "values solved together, tuned settings ([figures](tried.md))."
    )
    return lines


def _verdict(one: Contest) -> str:
    return one.held_out.verdict


def _tally(found: Sequence[Contest]) -> str:
    """Count verdicts, and give the figures of those that are clear."""
    clear = [one for one in found if _verdict(one) != "no clear difference"]
    rest = len(found) - len(clear)
    said = [f"{_verdict(one)}: {_said(one)}" for one in clear]
    said += [f"no clear difference in {rest} of {len(found)} comparisons"] if rest else []
    return "; ".join(said) + "."


def _said(one: Contest) -> str:
    name = "" if one.one[1] == "committee" else f" {_name(one.one[1])}"
    return f"{_TITLE[one.one[0]]}{name} against {_name(one.other[1])} {one.held_out}"


def _pooled_table(made: Sequence[Contest]) -> list[str]:
    lines = [
        "| metric | booster | system | minus | held-out sets (95%) | all sets (95%) | ahead on |",
        "| --- | --- | --- | --- | --- | --- | ---: |",
    ]
    for one in made:
        wins = sum(each.difference > 0.0 for each in one.sets.values())
        lines.append(
            f"| {GOALS[one.goal]} | {_TITLE[one.one[0]]} | {_name(one.one[1])} | {_rival(one)} "
            f"| {one.held_out} | {one.everywhere} | {wins} of {len(one.sets)} |"
        )
    return lines


def _set_tables(sets: Mapping[str, Any], made: Sequence[Contest]) -> list[str]:
    lines = ["## The committee on each set, NDCG@10", ""]
    for backend in _TEAMS:
        mine = [one for one in made if one.goal == "ndcg@10" and one.one == (backend, "committee")]
        if not mine:
            continue
        lines += [
            f"| {_TITLE[backend]}: committee minus | " + " | ".join(map(_shown, sets)) + " |",
            "| --- |" + " --- |" * len(sets),
            f"| (queries) | {' | '.join(str(one['queries']) for one in sets.values())} |",
        ]
        for one in mine:
            cells = [str(one.sets.get(name, "")) for name in sets]
            lines.append(f"| {_rival(one)} | {' | '.join(cells)} |")
        lines.append("")
    return lines


def _mean_tables(document: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, found in document["means"].items():
        first = found["ndcg@10"]
        systems = sorted(
            {system for by in found.values() for system in by},
            key=lambda system: (-first.get(system, -1.0), system),
        )
        chosen = " Settings were chosen here." if name in DEVELOPMENT else ""
        lines += [
            f"## {_shown(name)}",
            "",
            f"{document['sets'][name]['about']}.{chosen}",
            "",
            "| booster | system | " + " | ".join(GOALS[goal] for goal in found) + " |",
            "| --- | --- |" + " ---: |" * len(found),
        ]
        for system in systems:
            backend, objective = _system(system)
            native = " (native)" if objective.startswith("native:") else ""
            cells = " | ".join(f"{found[goal].get(system, math.nan):.4f}" for goal in found)
            lines.append(f"| {_TITLE[backend]} | {_name(objective)}{native} | {cells} |")
        lines.append("")
    return lines


def _method(document: Mapping[str, Any]) -> list[str]:
    sets = document["sets"]
    done = ", ".join(f"{_TITLE[name]} {count}" for name, count in document["runs"].items() if count)
    rounds = ", ".join(map(str, document["rounds"]))
    settings = ", ".join(f"{key}={value}" for key, value in PARAMS["lightgbm"].items())
    held = [_shown(name) for name in sets if name not in DEVELOPMENT]
    return [
        (
            'The committee is that of `GBMRanker(objective="committee", metric=...)` for the '
            f'metric of the table. "{BAGGED} seeds of" a loss is the mean of {BAGGED} models of it.'
        ),
        (
            f"{_number(document['seeds']).capitalize()} seeds with splits of their own, "
            f"{_number(document['folds'])} folds by query, a quarter of the training queries for "
            f"validation. Every model grows {rounds} trees and is truncated, for each metric, at "
            "its best round on the validation queries."
        ),
        (
            f"All systems of a booster have the same settings (LightGBM: {settings}; XGBoost the "
            "same where it has them; CatBoost: learning rate 0.1, all else its default)."
        ),
        f"Settings and members of the committee were chosen on "
        f"{_listed([_shown(name) for name in DEVELOPMENT])}. "
        + (f"Nothing was chosen on {_listed(held)}." if held else "No other set was run."),
        (
            "The held-out sets were run three times: two of them with five trees, to try the "
            "script; all with one seed for all members (NDCG@10, pooled: LightGBM +0.0167, XGBoost "
            "+0.0066); and, for this page, with the seeds that `GBMRanker` gives to members. "
            "Nothing else changed between the last two."
        ),
        (
            "A difference is paired by query. Sets are pooled by a random-effects mean "
            "(DerSimonian and Laird). Intervals are 95%, without a correction for the number of "
            "comparisons."
        ),
        f"Runs: {done} (a run is all systems of a booster on one split).",
    ]


def _title(made: Sequence[Contest]) -> str:
    count = len({name for one in made for name in one.sets})
    sets = f"{_number(count)} real data set{'' if count == 1 else 's'}"
    return f"NDCG@10 gained over the booster's own ranking loss, {sets}"


def _panel(made: Sequence[Contest], backend: str) -> Panel:
    """Return what the picture shows of a booster."""
    base, bag = (_find(made, "ndcg@10", kind).get(backend) for kind in (_is_base, _is_bag))
    names = list(base.sets) if base else []
    own = _BASE[backend].removeprefix("native:")
    marks = {name: [_mark(one, name) for one in (base, bag)] for name in names}
    return Panel(
        f"{_TITLE[backend]}: committee minus {own}",
        {_shown(name): marks[name] for name in names if name in DEVELOPMENT},
        {_shown(name): marks[name] for name in names if name not in DEVELOPMENT},
        [_mark(one) for one in (base, bag)],
    )


def _mark(one: Contest | None, name: str | None = None) -> Mark | None:
    if one is None or (name is not None and name not in one.sets):
        return None
    effect = one.held_out if name is None else one.sets[name]
    return None if math.isnan(effect.difference) else Mark(effect.difference, _95 * effect.error)
