"""Rankers trained on simulated clicks, judged by the true labels.

Clicks are simulated on two real data sets and on the synthetic demonstration data of gbmrank.
Queries have at most 20 items, drawn once. A ranker that was trained on the labels of a tenth of the
training queries orders the items of every query, with some noise, and simulated users click by a
position-based model with examination ``k ** -power``, or by a cascade. All systems learn from the
same clicks, with the same number of trees of four leaves; NDCG@10 is computed with the true labels
of other queries.

Settings were chosen in pilot runs with other seeds. They matter: with trees of 31 leaves, which fit
the noise of single clicks, *naive* was ahead of every ranker that corrects for positions, and where
only the ten best of longer lists were shown, the choice of shown items mattered more than the bias.

- *naive*: ``pairwise(target=identity)`` on clicks;
- *debiased*: the same with ``position_bias=`` the estimate by harvesting, and ``clip=0.2``; it is
  *naive* where clicks do not reject that all positions are examined alike;
- *LightGBM position*: ``lambdarank`` with ``Dataset(position=...)``;
- *XGBoost unbiased*: ``rank:ndcg`` with ``lambdarank_unbiased``, rows in the order shown;
- *oracle*: ``pairwise(target=identity)`` on the click probabilities of examined items, in all
  sessions. The others learn from sessions with a click: without one there is nothing to compare.

``python -m studies clicks`` keeps finished runs in ``--work``, and an interrupted run continues
there. Without a folder with data it has the synthetic set alone.
"""

import json
import time
import warnings
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np
import xgboost as xgb

import gbmrank
from gbmrank.clicks import ClickLog, PositionBias, estimate_bias, simulate_clicks
from studies.sets import SETS, demonstration
from studies.study import Option, Page, Settings

TITLE = "Training on clicks"
PAPER = ""
NEEDS = "OHSUMED of LETOR 3.0 and LightGBM's ranking example; without them, the synthetic set alone"
FORMULAS = ("objectives/pairwise.py",)
OPTIONS: Mapping[str, Option] = {
    "work": Option(Path("build/clicks"), "where finished runs are kept", quoted=False),
    "seeds": Option(10, "logs of clicks of each kind"),
}
REAL = ("ohsumed", "lightgbm_example")
CONDITIONS = {"no bias": 0.0, "power 0.5": 0.5, "power 1": 1.0, "power 2": 2.0, "cascade": None}
SESSIONS, ITEMS, ROUNDS, RATE = 3000, 20, 60, 0.1
FIRST_SEED = 200  # others were used to choose the settings
# Small trees: a click is a noisy label, and sessions repeat items, so 20 rows may be one item.
LEAVES, DEPTH, LEAF = 4, 2, 200
CLIP = 0.2
OURS = "pairwise(target=identity)"
Done = dict[tuple[str, str, str, int], float]  # NDCG@10 by set, click model, system and seed


class Task(NamedTuple):
    """Items of training and test queries, and a log of clicks on the former."""

    x: Any
    labels: Any
    qid: Any
    test: Any
    log: ClickLog


class Rows(NamedTuple):
    """Impressions of the sessions that have a click: there is nothing to compare in others."""

    x: Any
    clicks: Any
    position: Any
    session: Any
    items: Any  # features of all items, which the log refers to
    log: ClickLog  # with all sessions


def run(settings: Settings) -> Page:
    """Run what is not there yet, and make the page.

    Parameters
    ----------
    settings : Settings
        ``data`` holds the real sets; ``small`` takes one log of two kinds of clicks on the
        synthetic set.
    """
    given = {name: one.default for name, one in OPTIONS.items()} | dict(settings.options)
    kept = Kept(given["work"] / "runs.jsonl", settings.report)
    conditions = dict(list(CONDITIONS.items())[:2]) if settings.small else CONDITIONS
    first, seeds = FIRST_SEED + settings.seed, 1 if settings.small else given["seeds"]
    wanted: Done = {}
    for seed, (name, data) in product(range(first, first + seeds), sets(settings.data)):
        for condition, power in conditions.items():
            keys = [(name, condition, system, seed) for system in SYSTEMS]
            if not all(key in kept.done for key in keys):
                run_task(make_task(data, power, seed), (name, condition, seed), kept)
            wanted |= {key: kept.done[key] for key in keys}
    return page(wanted)


class Kept:
    """Finished runs in a file, and in ``done``."""

    def __init__(self, path: Path, report: Callable[[str], None]) -> None:
        self.path, self.report = path, report
        self.done: Done = {}
        if path.exists():
            for text in path.read_text(encoding="utf-8").splitlines():
                line = json.loads(text)
                key = line["set"], line["condition"], line["system"], line["seed"]
                self.done[key] = line["ndcg@10"]

    def add(self, key: tuple[str, str, str, int], value: float, seconds: float) -> None:
        """Keep a run."""
        self.done[key] = value
        made = dict(zip(("set", "condition", "system", "seed"), key, strict=True))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**made, "ndcg@10": value, "seconds": seconds}) + "\n")
        self.report(f"{', '.join(map(str, key))}: {value:.4f} ({seconds:.1f} s)")


def sets(folder: Path | None) -> list[tuple[str, tuple[Any, Any, Any]]]:
    """Return name, and features, grades and query ids."""
    found = [demonstration(600), *(SETS[name](folder) for name in REAL if folder is not None)]
    return [(one.name, _shortened(one.X, one.y, one.qid)) for one in found]


def _shortened(x: Any, labels: Any, qid: Any) -> tuple[Any, Any, Any]:
    """Keep some items of every query, at random."""
    order = np.lexsort((np.random.default_rng(0).random(len(qid)), qid))
    _, first, at = np.unique(qid[order], return_index=True, return_inverse=True)
    kept = np.sort(order[np.arange(len(qid)) - first[at] < ITEMS])
    return x[kept], labels[kept], qid[kept]


def make_task(data: tuple[Any, Any, Any], power: float | None, seed: int) -> Task:
    """Split queries, train the ranker that is logged, and draw clicks."""
    x, labels, qid = data
    rng = np.random.default_rng(seed)
    queries = rng.permutation(np.unique(qid))
    test = np.isin(qid, queries[: len(queries) * 2 // 5])
    learn = queries[len(queries) * 2 // 5 :]
    few = np.isin(qid, learn[: max(5, len(learn) // 10)])
    logged = gbmrank.GBMRanker("pairwise(target=dcg)", n_estimators=20, n_jobs=1)
    scores = logged.fit(x[few], labels[few], qid=qid[few]).predict(x)
    scores = scores / scores.std()
    log = simulate_clicks(
        labels[~test],
        scores[~test],
        qid[~test],
        model="cascade" if power is None else "position",
        bias=None if power is None else PositionBias.decaying(ITEMS, power),
        sessions=SESSIONS,
        k=ITEMS,
        temperature=0.25,
        max_grade=float(labels.max()),
        seed=seed,
    )
    return Task(x, labels, qid, np.flatnonzero(test), _with_rows(log, np.flatnonzero(~test)))


def _with_rows(log: ClickLog, rows: Any) -> ClickLog:
    """Return a log whose rows are those of all items."""
    return ClickLog(log.session, log.query, rows[log.row], log.position, log.clicks, log.relevance)


def run_task(task: Task, place: tuple[str, str, int], kept: Kept) -> None:
    """Train every system, and keep its NDCG@10."""
    name, condition, seed = place
    clicked = np.bincount(task.log.session, task.log.clicks)[task.log.session] > 0
    log = task.log
    rows = Rows(
        task.x[log.row[clicked]],
        log.clicks[clicked],
        log.position[clicked],
        log.session[clicked],
        task.x,
        log,
    )
    for system, train in SYSTEMS.items():
        if (name, condition, system, seed) in kept.done:
            continue
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = train(rows)(task.x[task.test])
        value = gbmrank.metric("ndcg@10").score(
            task.labels[task.test], scores, qid=task.qid[task.test]
        )
        seconds = time.process_time() - start
        kept.add((name, condition, system, seed), value, seconds)


Predict = Callable[[Any], Any]
_RIVALS = {
    "naive": "clicks taken for labels",
    "LightGBM position": "LightGBM's `position`",
    "XGBoost unbiased": "XGBoost's `lambdarank_unbiased`",
}


def _ours(x: Any, labels: Any, session: Any, **given: Any) -> Predict:
    model = gbmrank.GBMRanker(
        OURS,
        n_estimators=ROUNDS,
        learning_rate=RATE,
        num_leaves=LEAVES,
        min_child_samples=LEAF,
        n_jobs=1,
    )
    return model.fit(x, labels, qid=session, **given).predict


def naive(rows: Rows) -> Predict:
    """Take clicks for labels."""
    return _ours(rows.x, rows.clicks, rows.session)


def debiased(rows: Rows) -> Predict:
    """Estimate the bias from items that were shown at several positions."""
    log = rows.log
    bias = estimate_bias(log.clicks, log.position, qid=log.query, item=log.row, resamples=0)
    given = {"position": rows.position, "position_bias": bias, "clip": CLIP}
    return _ours(rows.x, rows.clicks, rows.session, **given)


def oracle(rows: Rows) -> Predict:
    """Take the probability of a click on an examined item for labels, in all sessions."""
    log = rows.log
    return _ours(rows.items[log.row], log.relevance, log.session)


def lightgbm_position(rows: Rows) -> Predict:
    """Train LightGBM's lambdarank with positions."""
    data = lgb.Dataset(
        rows.x, rows.clicks, group=np.unique(rows.session, return_counts=True)[1],
        position=rows.position,
    )  # fmt: skip
    params = {
        "objective": "lambdarank",
        "learning_rate": RATE,
        "num_leaves": LEAVES,
        "min_data_in_leaf": LEAF,
        "num_threads": 1,
        "verbosity": -1,
    }
    return lgb.train(params, data, ROUNDS).predict


def xgboost_unbiased(rows: Rows) -> Predict:
    """Train XGBoost's rank:ndcg, which takes the order of rows for positions."""
    data = xgb.DMatrix(rows.x, rows.clicks, qid=rows.session, nthread=1)
    params = {
        "objective": "rank:ndcg",
        "lambdarank_unbiased": True,
        "max_depth": DEPTH,
        "learning_rate": RATE,
        "nthread": 1,
    }
    model = xgb.train(params, data, ROUNDS)
    return lambda x: model.predict(xgb.DMatrix(x, nthread=1))


SYSTEMS: dict[str, Callable[[Rows], Predict]] = {
    "naive": naive,
    "debiased": debiased,
    "LightGBM position": lightgbm_position,
    "XGBoost unbiased": xgboost_unbiased,
    "oracle": oracle,
}


def page(done: Done) -> Page:
    """Return tables of means and paired differences."""
    assert __doc__ is not None
    about = __doc__.partition("\n\n")[2].partition("``python -m")[0].replace("``", "`").strip()
    seeds = len({seed for _, _, _, seed in done})
    names = list(dict.fromkeys(key[0] for key in done))
    lines = [
        _headline(done),
        "",
        *_mean_table(done),
        "",
        (
            "Mean NDCG@10 over all click models and seeds; in brackets the difference to "
            "*debiased* with its standard error over seeds, and in how many combinations of data "
            "and click model *debiased* is at least as good. Bold: the best of a column, without "
            "*oracle*."
        ),
        "",
        *_note(done, "naive"),
        *_note(done, "oracle"),
        "## Setting",
        "",
        about,
        "",
        (
            "In the tables below: means over seeds; in brackets the difference to *debiased* with "
            "its standard error over seeds, paired by log. Bold: the best of a column, without "
            "*oracle*."
        ),
    ]
    for name in names:
        kind = "real" if name in REAL else "synthetic"
        lines += ["", f"## {name} ({kind})", "", f"| system | {' | '.join(CONDITIONS)} |"]
        lines += ["| --- |" + " ---: |" * len(CONDITIONS)]
        for system in SYSTEMS:
            cells = [_cell(done, name, condition, system) for condition in CONDITIONS]
            lines.append(f"| {system} | {' | '.join(cells)} |")
    notes = [
        (
            f"{seeds} seeds, {SESSIONS} sessions, {ROUNDS} rounds; continuing earlier "
            "runs takes less time"
        )
    ]
    return Page(lines=lines, notes=notes)


def _headline(done: Done) -> str:
    """Return the result, on the real sets and on the synthetic one."""
    parts = {
        "On the real data sets": {k: v for k, v in done.items() if k[0] in REAL},
        "On the synthetic set": {k: v for k, v in done.items() if k[0] not in REAL},
    }
    said = [f"{where} {_compared(found)}." for where, found in parts.items() if found]
    return " ".join(
        [*said, "(*debiased*: clicks divided by an estimated position bias; ± one standard error.)"]
    )


def _compared(done: Done) -> str:
    """Say what debiased is clearly ahead of, clearly behind, and neither."""
    kinds: dict[str, list[str]] = {}
    for system, shown in _RIVALS.items():
        mean, error = _average(done, system)
        clear = "ahead of" if mean > 0.0 else "behind"
        word = clear if abs(mean) > 2.0 * error else "not clearly different from"
        kinds.setdefault(word, []).append(f"{shown} ({mean:+.4f} ± {error:.4f})")
    words = [f"{word} {' and '.join(names)}" for word, names in kinds.items()]
    return f"*debiased* is {', and '.join(words)}"


def _average(done: Done, system: str) -> tuple[float, float]:
    """Return by how much debiased is ahead over all settings, and the error over seeds."""
    means = []
    for seed in sorted({key[3] for key in done}):
        found = _ahead({key: value for key, value in done.items() if key[3] == seed}, system)
        means += [float(np.mean(list(found.values())))] if found else []
    error = float(np.std(means, ddof=1)) / np.sqrt(len(means)) if len(means) > 1 else np.inf
    return float(np.mean(means)), error


def _ahead(done: Done, system: str) -> dict[tuple[str, str], float]:
    """Return by how much debiased is ahead, per data and click model."""
    cells: dict[tuple[str, str], list[float]] = {}
    for (name, condition, other, seed), value in done.items():
        if other == system and (name, condition, "debiased", seed) in done:
            change = done[name, condition, "debiased", seed] - value
            cells.setdefault((name, condition), []).append(change)
    return {key: float(np.mean(values)) for key, values in cells.items()}


def _mean_table(done: Done) -> list[str]:
    """Return means over the real sets, the synthetic one, and all, one column each."""
    real = {key: value for key, value in done.items() if key[0] in REAL}
    other = {key: value for key, value in done.items() if key[0] not in REAL}
    columns = {"real data": real, "synthetic data": other, "all": done}
    columns = {title: found for title, found in columns.items() if found}
    lines = [f"| system | {' | '.join(columns)} |", "| --- |" + " ---: |" * len(columns)]
    best = {title: max(_means(found).values()) for title, found in columns.items()}
    for system in SYSTEMS:
        cells = []
        for title, found in columns.items():
            mean = np.mean([value for key, value in found.items() if key[2] == system])
            bold = "**" if system != "oracle" and mean == best[title] else ""
            ahead = list(_ahead(found, system).values())
            wins = f"{sum(one >= 0.0 for one in ahead)} of {len(ahead)}"
            change, error = _average(found, system)
            more = f" ({-change:+.4f} ± {error:.4f}; {wins})" if system != "debiased" else ""
            cells.append(f"{bold}{mean:.4f}{bold}{more}")
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return lines


def _means(done: Done) -> dict[str, float]:
    """Return the mean of every system but the oracle."""
    return {
        system: float(np.mean([value for key, value in done.items() if key[2] == system]))
        for system in SYSTEMS
        if system != "oracle"
    }


def _note(done: Done, system: str) -> list[str]:
    """Say where naive is ahead of debiased, or the oracle behind it, and whether beyond noise."""
    sign, word = (1.0, "ahead of") if system == "naive" else (-1.0, "behind")
    found, clear = 0, []
    for name, condition in _ahead(done, system):
        change = sign * _changes(done, name, condition, system)
        error = change.std(ddof=1) / np.sqrt(len(change)) if len(change) > 1 else np.inf
        found += change.mean() > 0.0
        clear += [f"{name}, {condition}"] if change.mean() > 2.0 * error else []
    where = f"in {'; '.join(clear)}" if clear else "nowhere"
    return [
        (
            f"*{system}* is {word} *debiased* in {found} of {len(_ahead(done, system))} settings, "
            f"by more than two standard errors {where}."
        ),
        "",
    ]


def _changes(done: Done, name: str, condition: str, system: str) -> Any:
    """Return the differences to debiased, one per seed."""
    seeds = [
        key[3]
        for key in done
        if key[:3] == (name, condition, system) and (name, condition, "debiased", key[3]) in done
    ]
    return np.array(
        [
            done[name, condition, system, seed] - done[name, condition, "debiased", seed]
            for seed in seeds
        ]
    )


def _mean(done: Done, name: str, condition: str, system: str) -> float:
    values = [value for key, value in done.items() if key[:3] == (name, condition, system)]
    return float(np.mean(values)) if values else np.nan


def _cell(done: Done, name: str, condition: str, system: str) -> str:
    """Return mean, and difference to debiased with its standard error."""
    change = _changes(done, name, condition, system)
    if not len(change):
        return "-"
    mean = _mean(done, name, condition, system)
    others = [_mean(done, name, condition, one) for one in SYSTEMS if one != "oracle"]
    bold = "**" if system != "oracle" and mean == np.nanmax(others) else ""
    shown = f"{bold}{mean:.4f}{bold}"
    if system == "debiased":
        return shown
    error = change.std(ddof=1) / np.sqrt(len(change)) if len(change) > 1 else np.nan
    return f"{shown} ({change.mean():+.4f} ± {error:.4f})"
