"""The page of this study: tables of paired differences, each with a sentence on what it shows.

Values of a query are averaged over seeds and subtracted; the standard error of a difference is that
of its mean over queries. Of a subject, those seeds count for which all files are there.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from studies.quality.models import Cell, Scores
from studies.quality.page import GOALS as TITLES
from studies.sets import RankingSet
from studies.study import Page
from studies.tried.committee_page import committee_section
from studies.tried.committees import Committee, committee_values
from studies.tried.leaves import SETTINGS
from studies.tried.pool import (
    CALIBRATED,
    FOLDS,
    GOALS,
    Member,
    mixes,
    native,
    query_ids,
    swaps,
    yetiranks,
)
from studies.tried.tables import (
    SETS,
    By,
    Files,
    Rows,
    effect,
    head,
    listed,
    over_seeds,
    read,
    row,
    scores_of,
    shown,
)


class Kept(NamedTuple):
    """A file of a finished training."""

    subject: str
    cell: Cell
    name: str
    path: Path


def page(kept: Sequence[Kept], sets: Sequence[RankingSet]) -> Page:
    """Return the page of what is done."""
    complete = {
        subject: sorted(
            seed
            for seed in {one.cell.seed for one in kept if one.subject == subject}
            if all(one.path.exists() for one in kept if _of(one, subject, seed))
        )
        for subject in ("committees", "objectives", "leaves", "tuned")
    }
    files = {
        (one.subject, one.cell, one.name): one.path
        for one in kept
        if one.cell.seed in complete[one.subject]
    }
    capped = {one.name: one for one in sets}
    first, committee_lines = committee_section(capped, complete["committees"], files)
    second, objective_lines = _objective_section(capped, complete, files)
    third, other_lines = _other_section(complete, files)
    lines = [*filter(None, (first, second, *third)), "", _ABOUT, ""]
    text = "\n".join([*lines, *committee_lines, *objective_lines, *other_lines])
    minutes = sum(float(read(path)["cpu"]) for path in files.values()) / 60.0
    seeds = ", ".join(f"{subject} {len(found)}" for subject, found in complete.items())
    notes = [
        (
            f"{len(files)} runs on OHSUMED and MovieLens, the two sets on which choices are made; "
            "the other sets of [the study of quality](quality.md) were not used"
        ),
        f"three folds by query; seeds with splits of their own: {seeds}",
    ]
    took = f"{minutes:.0f} minutes of CPU time"
    return Page(lines=text.rstrip().split("\n"), notes=notes, time=took)


_ABOUT = (
    "Settings, rounds and splits are those of [the study of quality](quality.md). ± is one "
    "standard error of the paired difference over queries; **bold** is beyond 1.96 of them. "
    "Nothing is corrected for the number of comparisons, and there are many: of 20 differences "
    "that are nothing but noise one is bold."
)


def _of(one: Kept, subject: str, seed: int) -> bool:
    return one.subject == subject and one.cell.seed == seed


# Objectives


def _objective_section(
    sets: Mapping[str, RankingSet], complete: Mapping[str, Sequence[int]], files: Files
) -> tuple[str, list[str]]:
    seeds = [seed for seed in complete["objectives"] if seed in complete["committees"]]
    if not seeds:
        return "", []
    about = (
        f"One LightGBM model each, against `{CALIBRATED}` and LightGBM's `lambdarank`. One "
        "parameter changes at a time; draws and temperature belong to the noise, so they change "
        "around `noise=logistic` (10 draws, temperature 1). A truncation at 10 or later changes "
        "nothing for metrics at 10: pairs below have no weight.\n"
    )
    mixed = (
        "`mix(yetirank, query_rmse, weights=[w, 1 - w])` as it is, and with each part divided by "
        "its mean Hessian at the start. As it is, the Hessian of `query_rmse` is over a thousand "
        "times that of `yetirank`, so `query_rmse` outweighs it.\n"
    )
    both = {"yetirank": "yetirank", "query_rmse": "query_rmse"}
    lines, winners = ["## Objectives\n", about], []
    for goal, title, wanted, default, text in (
        *((goal, f"`swap` of {TITLES[goal]}", swaps(goal), "swap", "") for goal in GOALS),
        ("ndcg@10", "`yetirank`", yetiranks(), "yetirank", ""),
        ("ndcg@10", "Mixes", {**both, **mixes()}, "query_rmse", mixed),
    ):
        found = _singles(sets, seeds, files, goal, wanted)
        lines += _objective_table(f"{title}, judged by {TITLES[goal]}", found, default, text)
        better = _winners(found, list(wanted), CALIBRATED)
        winners += [f"{name} ({TITLES[goal]})" for name in better]
    short = (
        "- Objectives: other parameters of `swap` and `yetirank`, and mixes, that are clearly "
        f"better than `{CALIBRATED}` on both sets: {listed(winners)}."
    )
    return short, lines


def _singles(
    sets: Mapping[str, RankingSet],
    seeds: Sequence[int],
    files: Files,
    goal: str,
    wanted: Mapping[str, str],
) -> dict[str, By]:
    """Return values per query of single models, by set; those compared with come first."""
    named = {CALIBRATED: CALIBRATED, "lambdarank": native("lightgbm"), **wanted}
    found = {}
    for name, data in sets.items():
        rows: list[Rows] = []
        made = [Committee(label, (Member(text, 0),)) for label, text in named.items()]
        for seed, fold in product(seeds, range(FOLDS)):
            cell = Cell(name, seed, fold, "lightgbm")
            by = committee_values(data, cell, goal, made, partial(scores_of, files, cell))
            rows.append((query_ids(data, seed, fold), by))
        found[name] = over_seeds(rows)
    return found


def _objective_table(
    title: str, found: Mapping[str, By], default: str, about: str = ""
) -> list[str]:
    names = list(next(iter(found.values())))
    variants = [name for name in names if name not in (CALIBRATED, "lambdarank", default)]
    said = [
        f"{what} {listed(_winners(found, variants, rival))}"
        for what, rival in (
            (f"Clearly better than `{CALIBRATED}` on both sets:", CALIBRATED),
            ("than `lambdarank`:", "lambdarank"),
            (f"than `{default}` as it is:", default),
        )
    ]
    columns = []
    for name in found:
        columns += [SETS[name], "less `pairwise`", "less `lambdarank`"]
    texts = [about] if about else []
    lines = [f"### {title}\n", *texts, "; ".join(said) + ".\n", head("objective", *columns)]
    for one in names:
        cells = []
        for by in found.values():
            cells.append(f"{np.nanmean(by[one]):.4f}")
            for rival in (CALIBRATED, "lambdarank"):
                cells.append("" if one == rival else shown(effect(by[one], by[rival])))
        lines.append(row(f"`{one}`" if one == CALIBRATED else one, *cells))
    return [*lines, ""]


def _winners(found: Mapping[str, By], names: Sequence[str], rival: str) -> list[str]:
    return [
        name
        for name in names
        if all(effect(by[name], by[rival]).verdict == "better" for by in found.values())
    ]


# Leaves, tuned


def _other_section(
    complete: Mapping[str, Sequence[int]], files: Files
) -> tuple[list[str], list[str]]:
    by_hand = (
        f"After each tree of `{CALIBRATED}` (LightGBM) all leaf values are solved at once with the "
        "whole Hessian of the pairs; the ridge is in units of a leaf's mean curvature. All queries "
        "of both sets."
    )
    settings = (
        f"{SETTINGS} settings of LightGBM, the same for all systems; each takes the best on its "
        "validation queries. All queries of both sets."
    )
    about = {
        "leaves": ("Leaves solved together", by_hand),
        "tuned": ("Tuned settings", settings),
    }
    short, lines = [], []
    for subject, (title, text) in about.items():
        if complete[subject]:
            lines += [f"## {title}\n", text + "\n"]
            better = []
            for name in SETS:
                paths = [
                    path for key, path in files.items() if (key[0], key[1].set) == (subject, name)
                ]
                table, ahead = _plain_table(name, [read(path) for path in paths])
                lines += table
                better.append(ahead)
            both = [one for one in better[0] if one in better[1]]
            short.append(
                f"- {title}: clearly better than the first line on both sets: {listed(both)}."
            )
    return short, lines


def _plain_table(name: str, each: Sequence[Mapping[str, Scores]]) -> tuple[list[str], list[str]]:
    """Return a table, and which systems are clearly better than its first."""
    systems = [one for one in each[0] if one != "cpu"]
    found = {one: np.concatenate([by[one] for by in each]) for one in systems}
    first = found[systems[0]]
    lines = [f"### {SETS[name]}\n", head("system", "NDCG@10", "less the first")]
    for one, values in found.items():
        gap = "" if one == systems[0] else shown(effect(values, first))
        lines.append(row(one, f"{values.mean():.4f}", gap))
    ahead = [one for one in systems[1:] if effect(found[one], first).verdict == "better"]
    return [*lines, ""], ahead
