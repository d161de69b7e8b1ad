"""Rankers trained on simulated clicks, judged by the true labels.

Clicks are simulated on real data sets and on the synthetic demonstration data of gbmrank. Queries
have at most 20 items, drawn once. A ranker that was trained on the labels of a tenth of the
training queries orders the items of every query, with some noise, and simulated users click by a
position-based model with examination ``k ** -power``, or by a cascade. All systems learn from the
same clicks, with 60 trees of four leaves; NDCG@10 is computed with the true labels of other
queries.

Settings were chosen in pilot runs with other seeds. They matter: with trees of 31 leaves, which fit
the noise of single clicks, *naive* was ahead of every ranker that corrects for positions.

- *naive*: ``pairwise(target=identity)`` on clicks;
- *debiased*: the same with ``position_bias=`` the estimate by harvesting, and ``clip=0.2``; it is
  *naive* where clicks do not reject that all positions are examined alike;
- *pooled*: ``pooled_labels(...).fit``, one row per query and item; its leaves have 20 such rows,
  those of the others 200 impressions, and so its own where labels are not pooled;
- *LightGBM position*: ``lambdarank`` with ``Dataset(position=...)``;
- *XGBoost unbiased*: ``rank:ndcg`` with ``lambdarank_unbiased``, rows in the order shown;
- *oracle*: ``pairwise(target=identity)`` on the click probabilities of examined items, in all
  sessions. *pooled* and *oracle* learn from all sessions, the others from those with a click:
  without one there is nothing to compare.

Cells after the first five change the log of *power 1*: 300 or 30,000 sessions instead of 3,000,
every query once, and only the ten best items of a list shown. In the last two, labels are not
pooled, and *pooled* is what it falls back to.

``python -m studies clicks`` keeps finished runs in ``--work``, and an interrupted run continues
there; ``--minutes`` ends it after a while, with a page of what is there. Without a folder with data
it has the synthetic set alone.
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
from scipy import stats

import gbmrank
from gbmrank.clicks import (
    ClickLog,
    PositionBias,
    estimate_bias,
    pooled_labels,
    simulate_clicks,
)
from gbmrank.errors import DataError
from studies.sets import SETS, demonstration
from studies.study import Option, Page, Settings

TITLE = "Training on clicks"
PAPER = ""
NEEDS = (
    "OHSUMED of LETOR 3.0, LightGBM's ranking example, rows of MSLR-WEB10K and MovieLens 100k; "
    "without them, the synthetic set alone"
)
FORMULAS = ("objectives/pairwise.py",)
OPTIONS: Mapping[str, Option] = {
    "work": Option(Path("build/clicks"), "where finished runs are kept", quoted=False),
    "seeds": Option(10, "logs of clicks of each kind; twice as many of OHSUMED"),
    "minutes": Option(0, "time after which no run starts; 0 is no limit", quoted=False),
}
REAL = ("ohsumed", "lightgbm_example", "mslr_sample", "movielens")
MORE_SEEDS = ("ohsumed",)  # 33 test queries


class Setting(NamedTuple):
    """How clicks are simulated."""

    power: float | None = 1.0  # None: a cascade
    sessions: int = 3000
    shown: int = 20
    once: bool = False


CONDITIONS = {
    "no bias": Setting(0.0),
    "power 0.5": Setting(0.5),
    "power 1": Setting(1.0),
    "power 2": Setting(2.0),
    "cascade": Setting(None),
    "300 sessions": Setting(sessions=300),
    "30,000 sessions": Setting(sessions=30_000),
    "each query once": Setting(once=True),
    "top 10 shown": Setting(shown=10),
}
MAIN = tuple(CONDITIONS)[:5]
LARGE = "30,000 sessions"
NATIVE = ("LightGBM position", "XGBoost unbiased")
ITEMS, ROUNDS, RATE = 20, 60, 0.1
FIRST_SEED = 200  # others were used to choose the settings
# Small trees: a click is a noisy label, and sessions repeat items, so 20 rows may be one item.
LEAVES, DEPTH, LEAF, ITEM_LEAF = 4, 2, 200, 20
CLIP = 0.2
OURS = "pairwise(target=identity)"
Key = tuple[str, str, str, int]  # set, click model, system and seed
Done = dict[Key, tuple[float, float]]  # NDCG@10 and seconds


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
    conditions = list(CONDITIONS)[:2] if settings.small else list(CONDITIONS)
    first, seeds = FIRST_SEED + settings.seed, 1 if settings.small else given["seeds"]
    ends = time.monotonic() + (60 * given["minutes"] or np.inf)
    found = sets(settings.data)
    # What is compared comes first, and what only costs time last.
    for extra, seed, (name, data) in product((False, True), range(first, first + 2 * seeds), found):
        if seed >= first + seeds and (settings.small or name not in MORE_SEEDS):
            continue
        for condition in conditions:
            wanted = [
                one
                for one in systems_of(condition)
                if (extra or (one not in NATIVE and condition != LARGE))
                and (name, condition, one, seed) not in kept.done
            ]
            if wanted and time.monotonic() < ends:
                task = make_task(data, CONDITIONS[condition], seed)
                run_task(task, wanted, (name, condition, seed), kept)
    return page({key: value for key, value in kept.done.items() if key[1] in conditions})


def systems_of(condition: str) -> list[str]:
    """Return the systems of a cell: the oracle does not depend on clicks, others cost time."""
    if condition in MAIN:
        return [one for one in SYSTEMS if one != "oracle" or condition == MAIN[0]]
    return ["naive", "debiased", "pooled"]


class Kept:
    """Finished runs in a file, and in ``done``."""

    def __init__(self, path: Path, report: Callable[[str], None]) -> None:
        self.path, self.report = path, report
        self.done: Done = {}
        if path.exists():
            for text in path.read_text(encoding="utf-8").splitlines():
                line = json.loads(text)
                key = line["set"], line["condition"], line["system"], line["seed"]
                self.done[key] = line["ndcg@10"], line["seconds"]

    def add(self, key: Key, value: float, seconds: float) -> None:
        """Keep a run."""
        self.done[key] = value, seconds
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


def make_task(data: tuple[Any, Any, Any], setting: Setting, seed: int) -> Task:
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
        model="cascade" if setting.power is None else "position",
        bias=None if setting.power is None else PositionBias.decaying(ITEMS, setting.power),
        sessions=setting.sessions,
        k=setting.shown,
        temperature=0.25,
        max_grade=float(labels.max()),
        seed=seed,
    )
    first = np.unique(log.query, return_index=True)[1]
    kept = np.isin(log.session, log.session[first]) if setting.once else slice(None)
    return Task(x, labels, qid, np.flatnonzero(test), _only(log, kept, np.flatnonzero(~test)))


def _only(log: ClickLog, kept: Any, rows: Any) -> ClickLog:
    """Return some sessions of a log, with rows of all items."""
    _, session = np.unique(log.session[kept], return_inverse=True)
    columns = (log.position[kept], log.clicks[kept], log.relevance[kept])
    return ClickLog(session, log.query[kept], rows[log.row[kept]], *columns)


def run_task(task: Task, systems: list[str], place: tuple[str, str, int], kept: Kept) -> None:
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
    for system in systems:
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predict = SYSTEMS[system](rows)
        seconds = time.process_time() - start
        value = gbmrank.metric("ndcg@10").score(
            task.labels[task.test], predict(task.x[task.test]), qid=task.qid[task.test]
        )
        kept.add((name, condition, system, seed), value, seconds)


Predict = Callable[[Any], Any]


def _ranker(leaf: int = LEAF) -> gbmrank.GBMRanker:
    return gbmrank.GBMRanker(
        OURS,
        n_estimators=ROUNDS,
        learning_rate=RATE,
        num_leaves=LEAVES,
        min_child_samples=leaf,
        n_jobs=1,
    )


def _ours(x: Any, labels: Any, qid: Any, **given: Any) -> Predict:
    return _ranker().fit(x, labels, qid=qid, **given).predict


def naive(rows: Rows) -> Predict:
    """Take clicks for labels."""
    return _ours(rows.x, rows.clicks, rows.session)


def debiased(rows: Rows) -> Predict:
    """Estimate the bias from items that were shown at several positions."""
    log = rows.log
    try:
        bias = estimate_bias(log.clicks, log.position, qid=log.query, item=log.row, resamples=0)
    except DataError:  # no item was clicked that was shown at two positions
        return naive(rows)
    given = {"position": rows.position, "position_bias": bias, "clip": CLIP}
    return _ours(rows.x, rows.clicks, rows.session, **given)


def pooled(rows: Rows) -> Predict:
    """Label each item by all its clicks."""
    log = rows.log
    given: dict[str, Any] = {"qid": log.query, "item": log.row, "session": log.session}
    made = pooled_labels(log.clicks, log.position, X=rows.items[log.row], **given)
    return made.fit(_ranker(LEAF if made.fallback else ITEM_LEAF)).predict


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
    "pooled": pooled,
    "LightGBM position": lightgbm_position,
    "XGBoost unbiased": xgboost_unbiased,
    "oracle": oracle,
}


def page(done: Done) -> Page:
    """Return tables of paired differences to naive."""
    assert __doc__ is not None
    about = __doc__.partition("\n\n")[2].partition("``python -m")[0].replace("``", "`").strip()
    names = list(dict.fromkeys(key[0] for key in done))
    lines = [*_headline(done), "", *_costs(done), "", "## Setting", "", about, ""]
    lines += [
        (
            "In the tables: NDCG@10 x 1000, *naive* itself and for the others the difference to "
            "it, with its standard error over seeds, paired by log."
        )
    ]
    for name in names:
        kind = "real" if name in REAL else "synthetic"
        lines += ["", f"## {name} ({kind})", "", f"| system | {' | '.join(CONDITIONS)} |"]
        lines += ["| --- |" + " ---: |" * len(CONDITIONS)]
        for system in SYSTEMS:
            cells = [_cell(done, name, condition, system) for condition in CONDITIONS]
            lines.append(f"| {system} | {' | '.join(cells)} |")
        counts = [str(len(_values(done, name, condition, "pooled"))) for condition in CONDITIONS]
        lines.append(f"| seeds | {' | '.join(counts)} |")
    return Page(lines=lines, notes=[f"{ROUNDS} rounds; continuing earlier runs takes less time"])


def _values(done: Done, name: str, condition: str, system: str) -> dict[int, float]:
    """Return NDCG@10 x 1000 by seed."""
    cell = MAIN[0] if system == "oracle" and condition in MAIN else condition
    found = {key: value for key, value in done.items() if key[:3] == (name, cell, system)}
    return {key[3]: 1000.0 * value for key, (value, _) in found.items()}


def changes(done: Done, cells: Any, system: str, other: str = "naive") -> dict[Any, list[float]]:
    """Return differences of two systems by set and seed, one per click model."""
    found: dict[Any, list[float]] = {}
    for name, condition in cells:
        mine, others = (_values(done, name, condition, one) for one in (system, other))
        for seed in sorted(mine.keys() & others.keys()):
            found.setdefault((name, seed), []).append(mine[seed] - others[seed])
    return found


def _mean(found: Mapping[Any, list[float]]) -> tuple[float, float]:
    """Return the mean over sets and its error over seeds; logs of a seed are not independent."""
    sets = list(dict.fromkeys(name for name, _ in found))
    means = [[np.mean(one) for key, one in found.items() if key[0] == name] for name in sets]
    spread = [np.var(one, ddof=1) / len(one) if len(one) > 1 else np.inf for one in means]
    value = np.mean([np.mean(one) for one in means]) if means else np.nan
    return float(value), float(np.sqrt(np.sum(spread))) / max(len(sets), 1)


def holm(chances: Mapping[Any, float], level: float = 0.05) -> list[Any]:
    """Return what is rejected by Holm's method."""
    rejected = []
    for rank, (key, chance) in enumerate(sorted(chances.items(), key=lambda one: one[1])):
        if chance * (len(chances) - rank) > level:
            break
        rejected.append(key)
    return rejected


def behind(done: Done, system: str) -> dict[tuple[str, str], float]:
    """Return the one-sided chance of such a difference to naive, by cell with three seeds."""
    found = {}
    for name, condition in _cells(done):
        change = [one[0] for one in changes(done, [(name, condition)], system).values()]
        if len(change) > 2 and np.ptp(change) > 0.0:
            test = stats.ttest_1samp(change, 0.0, alternative="less")
            found[name, condition] = float(test.pvalue)
    return found


def _cells(done: Done) -> list[tuple[str, str]]:
    return list(dict.fromkeys((key[0], key[1]) for key in done))


def _headline(done: Done) -> list[str]:
    """Return the result: means over sets with repeats, and cells behind naive."""
    repeats = [one for one in _cells(done) if one[1] in MAIN]
    other = [one for one in repeats if one[0] not in MORE_SEEDS]
    said = []
    for words, cells in (("", other), (", with OHSUMED", repeats)):
        mean, error = _mean(changes(done, cells, "pooled", "debiased"))
        lead = f"*pooled* is {mean:+.1f} ± {error:.1f} ahead of *debiased*"
        parts = [
            f"{system} {value:+.1f} ± {wide:.1f}"
            for system in list(SYSTEMS)[1:]
            for value, wide in [_mean(changes(done, cells, system))]
        ]
        line = f"Over the logs with 3,000 sessions{words}: {lead} (NDCG@10 x 1000, ± one standard "
        said += [f"{line}error). Against *naive*: {', '.join(parts)}.", ""]
    for system in ("pooled", "debiased"):
        chances = behind(done, system)
        worst = sorted(holm(chances))
        where = "; ".join(f"{name}, {condition}" for name, condition in worst) or "in none"
        low = [f"{name}, {condition}" for (name, condition), p in chances.items() if p < 0.05]
        line = f"*{system}* is behind *naive* after Holm's correction over {len(chances)} cells: "
        rest = f"Without the correction (5%, one-sided): {'; '.join(low) or 'none'}."
        said += [f"{line}{where}. {rest}", ""]
    return said[:-1]


def _costs(done: Done) -> list[str]:
    """Return mean seconds of a training."""
    lines = ["| seconds of a training | " + " | ".join(SYSTEMS) + " |"]
    lines += ["| --- |" + " ---: |" * len(SYSTEMS)]
    for words, cells in (("3,000 sessions", MAIN), (LARGE, (LARGE,))):
        row = []
        for system in SYSTEMS:
            took = [one[1] for key, one in done.items() if key[2] == system and key[1] in cells]
            row.append(f"{np.mean(took):.2f}" if took else "-")
        lines.append(f"| {words} | {' | '.join(row)} |")
    return lines


def _cell(done: Done, name: str, condition: str, system: str) -> str:
    """Return naive itself, or the difference to it and its standard error."""
    if system == "naive":
        values = list(_values(done, name, condition, system).values())
        return f"{np.mean(values):.1f}" if values else "-"
    change = [one[0] for one in changes(done, [(name, condition)], system).values()]
    if not change:
        return "-"
    error = np.std(change, ddof=1) / np.sqrt(len(change)) if len(change) > 1 else np.nan
    return f"{np.mean(change):+.1f} ± {error:.1f}"
