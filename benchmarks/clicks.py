"""Rankers trained on simulated clicks, judged by the truth.

Real features and labels, made-up visitors. Queries have at most 20 items, drawn once. A ranker that
saw the labels of a tenth of the training queries shows them all, with some noise, and visitors
click by a position-based model with examination ``k ** -power``, or by a cascade. Everybody learns
from the same clicks, with as many trees of four leaves; NDCG@10 is that of the true labels of
other queries.

The settings were chosen in pilot runs with other seeds. They matter: with trees of 31 leaves, which
fit the noise of single clicks, *naive* was ahead of every ranker that corrects for positions, and
where only the ten best of longer lists were shown, who was shown at all decided more than the bias.

- *naive*: ``pairwise(target=identity)`` on clicks;
- *debiased*: the same with ``position_bias=`` the estimate by harvesting, and ``clip=0.2``; it is
  *naive* where clicks do not reject that all positions are examined alike;
- *joint*: the same with ``position_bias="joint"`` and ``clip=0.2``;
- *LightGBM position*: ``lambdarank`` with ``Dataset(position=...)``;
- *XGBoost unbiased*: ``rank:ndcg`` with ``lambdarank_unbiased``, rows in the order shown;
- *oracle*: ``pairwise(target=identity)`` on the relevance behind the clicks.

``python -m benchmarks clicks`` writes ``docs/results/clicks.md``; it keeps finished runs in
``build/clicks.jsonl`` and goes on from there. Real sets are read from ``GBMRANK_DATA``.
"""

import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np
import xgboost as xgb

import gbmrank
from benchmarks.machine import versions
from benchmarks.quality_sets import SETS
from benchmarks.settings import Settings
from gbmrank.clicks import ClickLog, PositionBias, estimate_bias, simulate_clicks
from gbmrank.demo_data import demo_data

REAL = ("ohsumed", "lightgbm_example")
CONDITIONS = {"no bias": 0.0, "power 0.5": 0.5, "power 1": 1.0, "power 2": 2.0, "cascade": None}
SEEDS, SESSIONS, ITEMS, ROUNDS, RATE = 10, 3000, 20, 60, 0.1
FIRST_SEED = 200  # others were used to choose the settings
# Small trees: a click is a noisy label, and sessions repeat items, so 20 rows may be one item.
LEAVES, DEPTH, LEAF = 4, 2, 200
KEPT, PAGE = Path("build/clicks.jsonl"), Path("docs/results")
CLIP = 0.2
OURS = "pairwise(target=identity)"


class Task(NamedTuple):
    """Items of training and test queries, and a log of clicks on the former."""

    x: Any
    labels: Any
    qid: Any
    test: Any
    log: ClickLog


class Rows(NamedTuple):
    """Impressions of the sessions that have a click; others teach nobody anything."""

    x: Any
    clicks: Any
    relevance: Any
    position: Any
    session: Any
    log: ClickLog  # with all sessions


def run(settings: Settings) -> None:
    """Run what is not there yet, and write the page."""
    seeds, done = 1 if settings.quick else SEEDS, read()
    KEPT.parent.mkdir(exist_ok=True)
    given = list(sets())
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        for name, data in given:
            for condition, power in CONDITIONS.items():
                if not all((name, condition, system, seed) in done for system in SYSTEMS):
                    run_task(make_task(data, power, seed), (name, condition, seed), done)
        if not settings.quick:
            write_page(done)


def sets() -> Iterator[tuple[str, tuple[Any, Any, Any]]]:
    """Yield name, and features, grades and query ids."""
    data = demo_data(n_queries=600, seed=0)
    yield "demonstration", _shortened(data.X, data.labels.astype(float), data.qid)
    folder = os.environ.get("GBMRANK_DATA")
    for name in REAL if folder else ():
        found = SETS[name](Path(str(folder)))
        yield name, _shortened(found.X, found.y, found.qid)


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


def run_task(task: Task, place: tuple[str, str, int], done: dict[Any, float]) -> None:
    """Train every system, and keep its NDCG@10."""
    name, condition, seed = place
    clicked = np.bincount(task.log.session, task.log.clicks)[task.log.session] > 0
    log = task.log
    rows = Rows(
        task.x[log.row[clicked]],
        log.clicks[clicked],
        log.relevance[clicked],
        log.position[clicked],
        log.session[clicked],
        log,
    )
    for system, train in SYSTEMS.items():
        if (name, condition, system, seed) in done:
            continue
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = train(rows)(task.x[task.test])
        value = gbmrank.metric("ndcg@10").score(
            task.labels[task.test], scores, qid=task.qid[task.test]
        )
        done[name, condition, system, seed] = value
        seconds = time.process_time() - start
        made = {"set": name, "condition": condition, "system": system, "seed": seed}
        with KEPT.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**made, "ndcg@10": value, "seconds": seconds}) + "\n")
        print(
            f"{name}, {condition}, seed {seed}, {system}: {value:.4f} ({seconds:.1f} s)", flush=True
        )


def read() -> dict[Any, float]:
    """Return finished runs."""
    if not KEPT.exists():
        return {}
    lines = map(json.loads, KEPT.read_text(encoding="utf-8").splitlines())
    return {
        (line["set"], line["condition"], line["system"], line["seed"]): line["ndcg@10"]
        for line in lines
    }


Predict = Callable[[Any], Any]


def _ours(rows: Rows, labels: Any, **given: Any) -> Predict:
    model = gbmrank.GBMRanker(
        OURS,
        n_estimators=ROUNDS,
        learning_rate=RATE,
        num_leaves=LEAVES,
        min_child_samples=LEAF,
        n_jobs=1,
    )
    return model.fit(rows.x, labels, qid=rows.session, **given).predict


def naive(rows: Rows) -> Predict:
    """Take clicks for labels."""
    return _ours(rows, rows.clicks)


def debiased(rows: Rows) -> Predict:
    """Estimate the bias from items that were shown at several positions."""
    log = rows.log
    bias = estimate_bias(log.clicks, log.position, qid=log.query, item=log.row, resamples=0)
    return _ours(rows, rows.clicks, position=rows.position, position_bias=bias, clip=CLIP)


def joint(rows: Rows) -> Predict:
    """Estimate the bias while boosting."""
    return _ours(rows, rows.clicks, position=rows.position, position_bias="joint", clip=CLIP)


def oracle(rows: Rows) -> Predict:
    """Take the relevance behind the clicks for labels."""
    return _ours(rows, rows.relevance)


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
    "joint": joint,
    "LightGBM position": lightgbm_position,
    "XGBoost unbiased": xgboost_unbiased,
    "oracle": oracle,
}


def write_page(done: dict[Any, float]) -> None:
    """Write tables of means and paired differences."""
    assert __doc__ is not None
    about = __doc__.partition("``python -m")[0].replace("``", "`").strip()
    seeds = len({seed for _, _, _, seed in done})
    lines = [
        "# Training on clicks: who recovers the truth",
        "",
        (
            f"`python -m benchmarks clicks`, {seeds} seeds, {SESSIONS} sessions, {ROUNDS} "
            f"rounds. {versions()}."
        ),
        "",
        about,
        "",
        (
            "Means over the seeds; in brackets the difference to *debiased* with its standard "
            "error over seeds, paired by log."
        ),
        "",
        *(_finding(done, system) for system in SYSTEMS if system not in ("debiased", "oracle")),
    ]
    for name in dict.fromkeys(key[0] for key in done):
        lines += ["", f"## {name}", "", f"| system | {' | '.join(CONDITIONS)} |"]
        lines += ["| --- |" + " ---: |" * len(CONDITIONS)]
        for system in SYSTEMS:
            cells = [_cell(done, name, condition, system) for condition in CONDITIONS]
            lines.append(f"| {system} | {' | '.join(cells)} |")
    PAGE.mkdir(parents=True, exist_ok=True)
    (PAGE / "clicks.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _finding(done: dict[Any, float], system: str) -> str:
    """Say in how many cells debiased is ahead, and by how much on average."""
    cells: dict[Any, list[float]] = {}
    for (name, condition, other, seed), value in done.items():
        if other == system and (name, condition, "debiased", seed) in done:
            ahead = done[name, condition, "debiased", seed] - value
            cells.setdefault((name, condition), []).append(ahead)
    means = [float(np.mean(values)) for values in cells.values()]
    count = sum(mean >= 0.0 for mean in means)
    return (
        f"- *debiased* is at least as good as *{system}* in {count} of {len(means)} cells, on "
        f"average by {np.mean(means):+.4f}."
    )


def _cell(done: dict[Any, float], name: str, condition: str, system: str) -> str:
    """Return mean, and difference to debiased with its standard error."""
    seeds = [
        key[3]
        for key in done
        if key[:3] == (name, condition, system) and (name, condition, "debiased", key[3]) in done
    ]
    if not seeds:
        return "-"
    values = np.array([done[name, condition, system, seed] for seed in seeds])
    if system == "debiased":
        return f"**{values.mean():.4f}**"
    other = np.array([done[name, condition, "debiased", seed] for seed in seeds])
    change = values - other
    error = change.std(ddof=1) / np.sqrt(len(change)) if len(change) > 1 else np.nan
    return f"{values.mean():.4f} ({change.mean():+.4f} ± {error:.4f})"
