"""The page of the benchmark of quality: differences per set, pooled over sets, in words and tables.

A difference is paired: values of a query are averaged over seeds, subtracted, and averaged over
the queries of a set; its standard error is that of a mean over queries. Sets are pooled by the
random-effects mean of DerSimonian and Laird.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.machine import versions
from benchmarks.quality_models import BAGGED, NATIVE, PARAMS

__all__ = ["DEVELOPMENT", "Effect", "pooled", "write_page"]

DEVELOPMENT = ("ohsumed", "movielens")  # named before anything was run; all was chosen here
GOALS = {"ndcg@10": "NDCG@10", "err@10": "ERR@10", "map": "MAP"}
_TITLE = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}
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


_TRIED = (
    "Also tried, on the sets of development alone: leaf values solved together with the whole "
    "Hessian of the pairs, and settings tuned for each system ([figures](tried.md)).\n"
)


def write_page(runs: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Write page, figures and plot from the runs that are done."""
    values = _values(runs)
    made = _contests(values)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        "# Real data: gbmrank, the boosters' own ranking losses, and CatBoost\n",
        _method(runs),
        *_findings(made),
        _TRIED,
        "## Pooled over sets\n",
        _pooled_table(made),
        "![pooled differences](quality.svg)\n",
        *_set_tables(values, made),
        *_mean_tables(runs, values),
    ]
    (folder / "quality.md").write_text("\n".join(lines), encoding="utf-8")
    document = {
        "schema": "gbmrank.quality/2",
        "versions": versions("catboost"),
        "runs": len(runs),
        "contests": [_plain(one) for one in made],
        "means": {
            name: {
                goal: {" ".join(system): _mean(row) for system, row in by.items()}
                for goal, by in found.items()
            }
            for name, found in values.items()
        },
    }
    text = json.dumps(document, indent=1)
    (folder / "quality.json").write_text(text + "\n", encoding="utf-8")
    _plot(made, folder / "quality.svg")
    print(f"{folder / 'quality.md'}: {len(runs)} runs, {len(made)} contests")


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
        for backend in ("lightgbm", "xgboost"):
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


def _method(runs: Sequence[Mapping[str, Any]]) -> str:
    sets = list(dict.fromkeys(run["set"] for run in runs))
    seeds = sorted({run["seed"] for run in runs})
    counts = {b: sum(run["backend"] == b for run in runs) for b in PARAMS}
    done = ", ".join(f"{_TITLE[name]} {count}" for name, count in counts.items() if count)
    minutes = sum(run["cpu"] for run in runs) / 60
    rounds = ", ".join(str(one) for one in sorted({run["model_rounds"] for run in runs}))
    rates = ", ".join(f"{key}={value}" for key, value in PARAMS["lightgbm"].items())
    held = [name for name in sets if name not in DEVELOPMENT]
    return (
        f"`python -m benchmarks.quality --data DATA`, then `--page docs/results`. Runs done: "
        f"{done} (a run is all systems of a booster on one split), on {', '.join(sets)}; "
        f"{len(seeds)} seeds with splits of their own, three folds by query, a quarter of the "
        f"training queries for validation. {minutes:.0f} minutes of CPU time. "
        f"{versions('catboost')}.\n\n"
        f"Every model grows {rounds} trees and counts, for each metric, up to its best round on "
        "the validation queries. All systems of a booster have the same settings (LightGBM: "
        f"{rates}; XGBoost the same where it has them; CatBoost: learning rate 0.1, all else its "
        "default). "
        f"Settings and members of the committee were chosen on {' and '.join(DEVELOPMENT)}; "
        f"{', '.join(held) or 'no other set'} were run once, after that (but for a smoke run of "
        "the script with five trees on two of them). `committee` is that of "
        '`GBMRanker(objective="committee", metric=...)` for the metric of the table; '
        f"`committee(native:..., seeds={BAGGED})` is the booster's own objective at the same cost. "
        "Intervals are 95%; no correction is made for the number of comparisons.\n"
    )


def _findings(made: Sequence[Contest]) -> list[str]:
    """Return what the figures say, in sentences made from them."""
    groups: list[tuple[str, Any]] = [
        ("The committee against the booster's own first objective, one model", _is_base),
        (f"The committee against {BAGGED} models of that objective: equal cost", _is_bag),
        ("The committee against CatBoost, one model", _is_catboost),
        (f"The committee against CatBoost, {BAGGED} models", _is_catboost_bag),
        ("`swap` of the metric against `pairwise(target=ndcg@10)`", _is_aimed),
    ]
    lines = ["## What wins, what does not\n"]
    for title, belongs in groups:
        lines += [f"{title} (held-out sets, difference and 95% interval):\n"]
        for goal, shown in GOALS.items():
            found = [one for one in made if one.goal == goal and belongs(one)]
            lines += [f"- {shown}: {_sentence(one)}" for one in found]
        lines.append("")
    singles = [one for one in made if _is_single(one) and one.goal == "ndcg@10"]
    clear = [one for one in singles if one.held_out.verdict != "no clear difference"]
    told = "; ".join(f"`{one.one[1]}`: {_sentence(one)}" for one in clear)
    unclear = f"{len(singles) - len(clear)} of {len(singles)} pairs are not clearly different"
    lines.append(
        f"One objective of gbmrank against the booster's own, NDCG@10: {unclear}. {told}\n"
    )
    return [*lines, _advice(made)]


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


def _sentence(one: Contest) -> str:
    effect = one.held_out
    wins = sum(each.difference > 0.0 for each in one.sets.values())
    verdict = "**worse**" if effect.verdict == "worse" else effect.verdict
    rival = one.other[1].replace("native:", "")
    return (
        f"{_TITLE[one.one[0]]} against `{rival}` {effect}, {verdict}, ahead on {wins} of "
        f"{len(one.sets)} sets."
    )


def _advice(made: Sequence[Contest]) -> str:
    """Return when a committee is worth it, by the comparison at equal cost."""
    bags = [one.held_out for one in made if _is_bag(one) and one.goal == "ndcg@10"]
    if not bags or any(math.isnan(one.difference) for one in bags):
        return "**When not to bother.** Held-out sets have not been run yet.\n"
    wins = [one for one in bags if one.verdict == "better"]
    close = [
        name
        for one in made
        if _is_base(one) and one.goal == "ndcg@10" and one.one[0] == "lightgbm"
        for name, each in one.sets.items()
        if each.verdict == "no clear difference"
    ]
    cost = (
        "At equal cost it is better than seeds of the booster's own objective"
        if len(wins) == len(bags)
        else "At equal cost it is not clearly better than seeds of the booster's own objective in "
        "every booster, so part of what it gains is what averaging gains"
    )
    where = (
        f"On {', '.join(close)} even the difference to one `lambdarank` is within noise: there one "
        "model does, and features or labels are the better place for work."
        if close
        else "It is clearly better than one `lambdarank` on every set."
    )
    return f"**When not to bother.** A committee costs four trainings. {cost}. {where}\n"


def _pooled_table(made: Sequence[Contest]) -> str:
    lines = [
        "| metric | booster | system | against | held-out sets (95%) | all sets (95%) | ahead on |",
        "| --- | --- | --- | --- | --- | --- | ---: |",
    ]
    for one in made:
        wins = sum(each.difference > 0.0 for each in one.sets.values())
        rival = one.other[1] if one.other[0] == one.one[0] else " ".join(one.other)
        lines.append(
            f"| {GOALS[one.goal]} | {_TITLE[one.one[0]]} | `{one.one[1]}` | `{rival}` "
            f"| {one.held_out} | {one.everywhere} | {wins} of {len(one.sets)} |"
        )
    return "\n".join(lines) + "\n"


def _set_tables(values: Values, made: Sequence[Contest]) -> list[str]:
    lines = ["## The committee on each set, NDCG@10\n"]
    for backend in ("lightgbm", "xgboost"):
        mine = [one for one in made if one.goal == "ndcg@10" and one.one == (backend, "committee")]
        if not mine:
            continue
        lines += [
            f"{_TITLE[backend]}: committee less",
            "",
            "| | " + " | ".join(values) + " |",
            "| --- |" + " --- |" * len(values),
            f"| queries | {' | '.join(_count(values[name], backend) for name in values)} |",
        ]
        for one in mine:
            rival = one.other[1] if one.other[0] == backend else " ".join(one.other)
            cells = [str(one.sets.get(name, "")) for name in values]
            lines.append(f"| `{rival}` | {' | '.join(cells)} |")
        lines.append("")
    return lines


def _count(goals: Mapping[str, Any], backend: str) -> str:
    row = goals["ndcg@10"].get((backend, "committee"))
    return "0" if row is None else str(int(np.isfinite(row).sum()))


def _mean_tables(runs: Sequence[Mapping[str, Any]], values: Values) -> list[str]:
    about = {run["set"]: run["about"] for run in runs}
    lines = []
    for name, found in values.items():
        systems = sorted(
            {system for by in found.values() for system in by},
            key=lambda system: (-_mean(found["ndcg@10"][system]), system),
        )
        chosen = " (settings were chosen here)" if name in DEVELOPMENT else ""
        lines += [
            f"## {name}{chosen}\n",
            f"{about[name]}\n",
            "| booster | system | " + " | ".join(GOALS[goal] for goal in found) + " |",
            "| --- | --- |" + " ---: |" * len(found),
        ]
        for system in systems:
            cells = " | ".join(f"{_mean(found[goal][system]):.4f}" for goal in found)
            lines.append(f"| {_TITLE[system[0]]} | `{system[1]}` | {cells} |")
        lines.append("")
    return lines


def _plain(one: Contest) -> dict[str, Any]:
    return {
        "metric": one.goal,
        "system": " ".join(one.one),
        "against": " ".join(one.other),
        "held_out": one.held_out._asdict(),
        "all": one.everywhere._asdict(),
        "sets": {name: each._asdict() for name, each in one.sets.items()},
    }


def _plot(made: Sequence[Contest], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    shown = [one for one in made if one.goal == "ndcg@10" and one.one[1] == "committee"]
    labels = [f"{_TITLE[one.one[0]]} against {' '.join(one.other)}" for one in shown]
    at = np.arange(len(labels))[::-1]
    figure, axes = plt.subplots(figsize=(8, 0.32 * len(labels) + 1.2), layout="constrained")
    effects = [one.held_out for one in shown]
    reach = [_95 * one.error for one in effects]
    middle = [one.difference for one in effects]
    axes.errorbar(middle, at, xerr=reach, fmt="o", color="#0072b2", capsize=2)
    axes.axvline(0.0, color="0.5", linewidth=1)
    axes.set_yticks(at, labels)
    axes.set_xlabel("committee less the other, NDCG@10")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, bbox_inches="tight")
    plt.close(figure)
