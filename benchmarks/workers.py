"""Dask on this machine: one worker against two, and two workers against no Dask.

Tables are printed as Markdown, as they stand in ``docs/growing.md``.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import gbmrank
from benchmarks.growing import OURS, PER_QUERY, Rows, make_rows
from benchmarks.settings import Settings
from benchmarks.timing import interleave, print_table
from gbmrank.api.training_plans import training_plan
from gbmrank.boosters.base import Part
from gbmrank.boosters.plan import train as train_here
from gbmrank.dask import train
from gbmrank.data import RankingData
from gbmrank.types import FloatArray

MEASURE = "ndcg@10"


def run(settings: Settings) -> None:
    """Print what a second worker brings, and how far LightGBM's models move."""
    _time(settings)
    _gaps(settings)


def _cluster(workers: int) -> Any:
    return LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0
    )


def _time(settings: Settings) -> None:
    """Print the time of a round with one and with two workers of one thread each."""
    n_rows = 20_000 if settings.quick else 400_000
    few, many = (3, 6) if settings.quick else (5, 20)
    rows = make_rows(n_rows)
    table = []
    for workers in (1, 2):
        with _cluster(workers) as cluster, Client(cluster) as client:
            x, y, qid = (column.persist() for column in _columns(rows, parts=4))
            for booster in ("lightgbm", "xgboost"):
                go = partial(train, client, x, y, qid=qid, objective=OURS, backend=booster)
                go(rounds=1)
                turns: dict[str, Callable[[], object]] = {
                    "few": partial(go, rounds=few),
                    "many": partial(go, rounds=many),
                }
                times = interleave(turns, 3, 0)
                each = (times["many"].min - times["few"].min) / (many - few)
                start = times["few"].min - few * each
                table.append([booster, workers, f"{1e3 * each:.0f}", f"{start:.1f}"])
    print_table(
        [f"{n_rows:,} rows on Dask", "workers of one thread", "ms per round", "s before round 1"],
        table,
    )
    print(f"(this machine has {len(os.sched_getaffinity(0))} processors)")


def _gaps(settings: Settings) -> None:
    """Print by how much two LightGBM workers miss the metric of one machine, each way."""
    sets = 3 if settings.quick else 40
    gaps: dict[str, list[float]] = {OURS: [], "native:lambdarank": []}
    with _cluster(2) as cluster, Client(cluster) as client:
        for seed in range(sets):
            learned, held_out = make_rows(20_000, seed), make_rows(20_000, sets + seed)
            x, y, qid = _columns(learned, parts=2)
            for objective, found in gaps.items():
                there = train(client, x, y, qid=qid, objective=objective, rounds=20)
                plan = training_plan(objective=objective, metric=MEASURE, rounds=20)
                here = train_here(plan, _part(learned))
                found.append(_value(there, held_out) - _value(here, held_out))
    table = []
    for objective, found in gaps.items():
        size = np.abs(found)
        error = size.std(ddof=1) / np.sqrt(sets)
        table.append(
            [
                f"`{objective}`",
                f"{size.mean():.4f} ± {error:.4f}",
                f"{size.max():.4f}",
                f"{np.mean(found):+.4f}",
            ]
        )
    print_table(
        [f"{MEASURE} of two workers less that of one machine, {sets} sets",
         "mean size", "largest", "mean"],
        table,
    )  # fmt: skip


def _columns(rows: Rows, parts: int) -> tuple[Any, Any, Any]:
    """Return features, labels and ids as arrays of so many chunks of whole queries."""
    queries = np.diff(np.linspace(0, len(rows.sizes), parts + 1).astype(int))
    chunks = tuple((queries * PER_QUERY).tolist())
    qid = np.repeat(np.arange(len(rows.sizes)), rows.sizes)
    return (
        da.from_array(rows.features, chunks=(chunks, -1)),
        da.from_array(rows.labels, chunks=(chunks,)),
        da.from_array(qid, chunks=(chunks,)),
    )


def _part(rows: Rows) -> Part:
    return Part(rows.features, RankingData.from_arrays(rows.labels, group=rows.sizes))


def _value(trained: Any, rows: Rows) -> float:
    scores: FloatArray = trained.scores(rows.features)
    return gbmrank.metric(MEASURE).score(rows.labels, scores, group=rows.sizes)
