"""Scores as probabilities: calibrated rankers against pointwise logistic.

``python -m studies probabilities --data FOLDER`` splits the queries of every set into halves,
three times. On one half it trains a ranker with ``calibrate="cross-fit"``, and a pointwise
logistic model, whose scores are log-odds; on the other half both are judged: *ECE* without the
noise of bins, log loss, and NDCG@10 of the order. *Cut* is the ECE on the best half of every list,
scored anew. On the demonstration data true probabilities are known: *to truth* is the root mean
squared difference.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

import gbmrank
from gbmrank.demo_data import demo_data
from gbmrank.errors import ConfigError
from studies.files import VARIABLE
from studies.intervals import over_runs
from studies.sets import SETS, demonstration
from studies.study import Option, Page, Settings

TITLE = "Scores as probabilities"
PAPER = ""
NEEDS = "OHSUMED, MQ2008, MovieLens 100k, the MSLR sample and LightGBM's example"
FORMULAS = ("estimators/probability_map.py", "estimators/crossfit.py", "metrics/probability.py")
OPTIONS: Mapping[str, Option] = {
    "sets": Option(
        ("demonstration", "ohsumed", "mq2008", "movielens", "lightgbm_example", "mslr_sample"),
        "data sets",
    ),
    "splits": Option(3, "splits of each set"),
    "rounds": Option(60, "trees of a model"),
}
OBJECTIVE = "pairwise(target=ndcg@10)"
POINTWISE = "pointwise(loss=logistic, target=identity, eta=1)"
COLUMNS = (
    "ECE",
    "ECE of pointwise",
    "cut",
    "log loss - pointwise",
    "NDCG@10 - pointwise",
    "to truth",
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
            settings.report(f"{name}, split {split}: {shown}")
    return page(found, given)


def judged(name: str, split: int, rounds: int, settings: Settings) -> list[float]:
    """Return the columns of the table for one split of one set."""
    truth = None
    if name == "demonstration":
        data = demonstration(600)
        truth = demo_data(n_queries=600, seed=0).probabilities[:, 2:].sum(axis=1)
        threshold = 2.0
    elif settings.data is None:
        raise ConfigError(f"no data: give --data FOLDER or set {VARIABLE}. It needs {NEEDS}")
    else:
        data = SETS[name](settings.data).capped(20_000)
        threshold = data.threshold
    learn, judge = gbmrank.query_folds(qid=data.qid, n_folds=2, seed=split)[0]
    shared: dict[str, Any] = {
        "n_estimators": rounds,
        "learning_rate": 0.1,
        "seed": settings.seed + split,
        "n_jobs": settings.threads,
    }
    x, y, qid = data.X[learn], data.y[learn], data.qid[learn]
    ours = gbmrank.GBMRanker(OBJECTIVE, calibrate="cross-fit", threshold=threshold, **shared)
    ours.fit(x, y, qid=qid)
    plain = gbmrank.GBMRanker(POINTWISE, metric="auc", **shared)
    plain.fit(x, (y >= threshold).astype(float), qid=qid)
    x, y, qid = data.X[judge], data.y[judge], data.qid[judge]
    relevant = (y >= threshold).astype(float)
    found, theirs = ours.predict_proba(x, qid=qid), plain.predict_proba(x)
    ranks = ours.rank(x, qid=qid)
    _, at, sizes = np.unique(qid, return_inverse=True, return_counts=True)
    kept = ranks <= np.ceil(sizes[at] / 2)
    ece, loss, ndcg = (gbmrank.metric(one) for one in ("ece", "log_loss", "ndcg@10"))
    return [
        ece.score(relevant, found, qid=qid),
        ece.score(relevant, theirs, qid=qid),
        ece.score(relevant[kept], ours.predict_proba(x[kept], qid=qid[kept]), qid=qid[kept]),
        loss.score(relevant, found) - loss.score(relevant, theirs),
        float(np.nanmean(ndcg.per_query(y, found, qid=qid) - ndcg.per_query(y, theirs, qid=qid))),
        float("nan") if truth is None else float(np.sqrt(np.mean((found - truth[judge]) ** 2))),
    ]


def page(found: Mapping[str, list[list[float]]], given: Mapping[str, Any]) -> Page:
    """Return the page."""
    means = {name: np.mean(values, axis=0) for name, values in found.items()}
    good = sum(bool(value[0] <= 0.02) for value in means.values())
    every = np.concatenate([np.array(values) for values in found.values()])
    lines = [
        (
            f"The calibration error is at most .02 on {good} of {len(means)} sets. Against "
            f"pointwise logistic, NDCG@10 differs by {over_runs(every[:, 4])} and log loss by "
            f"{over_runs(every[:, 3])}, over all sets and splits."
        ),
        "",
        "| data | " + " | ".join(COLUMNS) + " |",
        "| --- |" + " ---: |" * len(COLUMNS),
    ]
    for name, values in found.items():
        table = np.array(values)
        errors = table.std(axis=0, ddof=1) / np.sqrt(len(table)) if len(table) > 1 else table * 0.0
        cells = [
            "-" if np.isnan(mean) else f"{mean:.4f} ({error:.4f})"
            for mean, error in zip(means[name], errors, strict=True)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    assert __doc__ is not None
    lines += ["", "Means over splits, with standard errors.", "", "## How", ""]
    lines.append(__doc__.partition("\n\n")[2].replace("``", "`").strip())
    notes = [f"LightGBM, {OBJECTIVE}, {given['rounds']} trees, learning rate 0.1, 4 folds"]
    return Page(lines=lines, notes=notes)
