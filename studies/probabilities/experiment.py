"""Scores as probabilities: calibrated committees against pointwise logistic and single objectives.

``python -m studies probabilities --data FOLDER`` draws three times two halves of the queries of
every set. On each half it trains a committee with ``calibrate="cross-fit"``, the members of the
committee alone, and a pointwise logistic model, whose scores are log-odds; all are judged on the
other half, and both halves together are one draw: *ECE* without the noise of bins, log loss, and
NDCG@10 of the order. *Cut* is the ECE on the best half of every list, scored anew. On the
demonstration data true probabilities are known: *to truth* is the root mean squared difference.
*Best single* is the single objective with the highest mean NDCG@10 over all sets and draws.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import gbmrank
from gbmrank.demo_data import demo_data
from gbmrank.errors import ConfigError
from gbmrank.estimators.committee import default_members
from gbmrank.numerics import expit
from gbmrank.types import IntArray
from studies.files import VARIABLE
from studies.intervals import over_runs
from studies.sets import SETS, demonstration
from studies.study import Option, Page, Settings

TITLE = "Scores as probabilities"
PAPER = ""
NEEDS = "OHSUMED, MQ2008, MovieLens 100k, the MSLR sample and the examples of LightGBM and CatBoost"
FORMULAS = ("estimators/probability_map.py", "estimators/crossfit.py", "metrics/probability.py")
OPTIONS: Mapping[str, Option] = {
    "sets": Option(
        (
            "demonstration",
            "ohsumed",
            "mq2008",
            "movielens",
            "lightgbm_example",
            "catboost_example",
            "mslr_sample",
        ),
        "data sets",
    ),
    "splits": Option(3, "draws of halves"),
    "rounds": Option(60, "trees of a model"),
}
POINTWISE = "pointwise(loss=logistic, target=identity, eta=1)"
SINGLES = (*map(str, default_members(gbmrank.metric("ndcg@10"))), POINTWISE)
COLUMNS = (
    "ECE",
    "ECE of pointwise",
    "cut",
    "log loss - pointwise",
    "to truth",
    "NDCG@10 - pointwise",
    "NDCG@10 - best single",
)


def run(settings: Settings) -> Page:
    """Calibrate on every split and judge on the other queries."""
    given = {name: one.default for name, one in OPTIONS.items()} | dict(settings.options)
    if settings.small:
        given |= {"sets": ("demonstration",), "splits": 1, "rounds": 10}
    found: dict[str, list[list[float]]] = {}
    for name in given["sets"]:
        for split in range(given["splits"]):
            found.setdefault(name, []).append(judged(name, split, given["rounds"], settings))
            shown = ", ".join(f"{value:.4f}" for value in found[name][-1])
            settings.report(f"{name}, draw {split}: {shown}")
    return page(found, given)


def judged(name: str, draw: int, rounds: int, settings: Settings) -> list[float]:
    """Return the first columns of the table for one draw of one set, and NDCG@10 of all rankers."""
    truth = None
    if name == "demonstration":
        data = replace(demonstration(600), threshold=2.0)
        truth = demo_data(n_queries=600, seed=0).probabilities[:, 2:].sum(axis=1)
    elif settings.data is None:
        raise ConfigError(f"no data: give --data FOLDER or set {VARIABLE}. It needs {NEEDS}")
    else:
        data = SETS[name](settings.data).capped(20_000)
    relevant = (data.y >= data.threshold).astype(float)
    shared: dict[str, Any] = {
        "n_estimators": rounds,
        "learning_rate": 0.1,
        "seed": settings.seed + draw,
        "n_jobs": settings.threads,
    }
    found, cut = np.full((2, len(relevant)), np.nan)
    scores = np.zeros((1 + len(SINGLES), len(relevant)))
    for learn, judge in gbmrank.query_folds(qid=data.qid, n_folds=2, seed=draw):
        rows, seen = (data.X[learn], data.y[learn], data.qid[learn]), data.qid[judge]
        ours = gbmrank.GBMRanker(
            "committee", calibrate="cross-fit", threshold=data.threshold, **shared
        )
        ours.fit(*rows[:2], qid=rows[2])
        found[judge] = ours.predict_proba(data.X[judge], qid=seen)
        best = judge[_best_half(ours.rank(data.X[judge], qid=seen), seen)]
        cut[best] = ours.predict_proba(data.X[best], qid=data.qid[best])
        scores[0, judge] = ours.predict(data.X[judge])
        for at, one in enumerate(SINGLES, start=1):
            y, metric = (relevant[learn], "auc") if one == POINTWISE else (rows[1], "ndcg@10")
            single = gbmrank.GBMRanker(one, metric=metric, **shared).fit(rows[0], y, qid=rows[2])
            scores[at, judge] = single.predict(data.X[judge])
    theirs, kept = expit(scores[-1]), ~np.isnan(cut)
    ece, loss, ndcg = (gbmrank.metric(one) for one in ("ece", "log_loss", "ndcg@10"))
    return [
        ece.score(relevant, found, qid=data.qid),
        ece.score(relevant, theirs, qid=data.qid),
        ece.score(relevant[kept], cut[kept], qid=data.qid[kept]),
        loss.score(relevant, found) - loss.score(relevant, theirs),
        float("nan") if truth is None else float(np.sqrt(np.mean((found - truth) ** 2))),
        float(len(np.unique(data.qid))),
        *(ndcg.score(data.y, one, qid=data.qid) for one in scores),
    ]


def _best_half(ranks: IntArray, qid: Any) -> IntArray:
    """Return the rows of the best half of every list."""
    _, at, sizes = np.unique(qid, return_inverse=True, return_counts=True)
    return np.flatnonzero(ranks <= np.ceil(sizes[at] / 2))


def page(found: Mapping[str, list[list[float]]], given: Mapping[str, Any]) -> Page:
    """Return the page."""
    raw = np.array(list(found.values()))  # sets, draws, columns
    ours, singles = raw[:, :, 6], raw[:, :, 7:]
    best = int(singles.mean(axis=(0, 1)).argmax())
    ahead = np.stack([ours - singles[:, :, -1], ours - singles[:, :, best]], axis=2)
    values = np.concatenate([raw[:, :, :5], ahead], axis=2)
    pooled = [over_runs(values[:, :, at].mean(axis=0)) for at in (5, 3, 6)]
    good = int((values[:, :, 0].mean(axis=1) <= 0.02).sum())
    lines = [
        (
            f"The calibration error is at most .02 on {good} of {len(found)} sets. Against "
            f"pointwise logistic, NDCG@10 differs by {pooled[0]} and log loss by {pooled[1]}, over "
            "all sets and draws; against the best single objective, "
            f"`{SINGLES[best]}`, NDCG@10 differs by "
            f"{pooled[2]}."
        ),
        "",
        "| data | queries | " + " | ".join(COLUMNS) + " |",
        "| --- |" + " ---: |" * (len(COLUMNS) + 1),
    ]
    for name, table, queries in zip(found, values, raw[:, 0, 5], strict=True):
        spread = table.std(axis=0, ddof=1) / np.sqrt(len(table)) if len(table) > 1 else table[0] * 0
        cells = [
            "-" if np.isnan(mean) else f"{mean:.4f} ({error:.4f})"
            for mean, error in zip(table.mean(axis=0), spread, strict=True)
        ]
        lines.append(f"| {name} | {queries:.0f} | {' | '.join(cells)} |")
    assert __doc__ is not None
    lines += ["", "Means over draws, with standard errors over draws.", "", "## How", ""]
    lines.append(__doc__.partition("\n\n")[2].replace("``", "`").strip())
    notes = [f"LightGBM, {given['rounds']} trees, learning rate 0.1, 4 folds of the committee"]
    return Page(lines=lines, notes=notes)
