"""Real ranking data for the benchmark of quality, read from a folder the user names.

Each set says how its labels are to be judged: which are relevant, and the highest grade.
"""

import csv
import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from examples.papers.files import find_files, find_parts
from examples.papers.movielens import features, read_movielens
from gbmrank.data.readers import read_letor

__all__ = ["SETS", "RankingSet"]


@dataclass(frozen=True)
class RankingSet:
    """Rows of queries, and how to judge their labels."""

    name: str
    about: str
    X: npt.NDArray[np.float32]
    y: npt.NDArray[np.float64]
    qid: npt.NDArray[Any]
    threshold: float
    max_grade: int

    @property
    def metrics(self) -> list[str]:
        """What is measured; the first decides about stopping."""
        relevant = f"(threshold={self.threshold:g})"
        return [
            "ndcg@10",
            "ndcg@5",
            f"map{relevant}",
            f"err(max_grade={self.max_grade})@10",
            f"precision{relevant}@5",
            f"mrr{relevant}",
        ]


def ohsumed(folder: Path) -> RankingSet:
    """LETOR 3.0 OHSUMED: medical articles, judged 0 to 2."""
    parts = [read_letor(path) for path in find_parts(folder, "OHSUMED of LETOR 3.0").values()]
    return RankingSet(
        "ohsumed",
        "medical search, grades 0 to 2",
        np.vstack([part.X for part in parts if part.X is not None]).astype(np.float32),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.qid for part in parts if part.qid is not None]),
        threshold=1,
        max_grade=2,
    )


def lightgbm_example(folder: Path) -> RankingSet:
    """The data of LightGBM's own lambdarank example, grades 0 to 4."""
    names = ("rank.train", "rank.test", "rank.train.query", "rank.test.query")
    paths = find_files(folder, names, "LightGBM's examples/lambdarank")
    files = [read_letor(paths[name], zero_based=True, need_qid=False) for name in names[:2]]
    sizes = np.concatenate([np.loadtxt(paths[name], dtype=int) for name in names[2:]])
    wide = max(file.X.shape[1] for file in files if file.X is not None)
    x = np.zeros((sum(file.n_rows for file in files), wide), np.float32)
    begin = 0
    for file in files:
        assert file.X is not None
        x[begin : begin + file.n_rows, : file.X.shape[1]] = file.X
        begin += file.n_rows
    return RankingSet(
        "lightgbm_example",
        "LightGBM's lambdarank example, grades 0 to 4",
        x,
        np.concatenate([file.labels for file in files]),
        np.repeat(np.arange(len(sizes)), sizes),
        threshold=1,
        max_grade=4,
    )


def catboost_example(folder: Path) -> RankingSet:
    """The data of CatBoost's querywise example; labels are real numbers, here in five grades."""
    paths = find_files(folder, ("train.tsv", "test.tsv", "train.cd"), "CatBoost's querywise data")
    table = np.vstack([_numbers(paths[name]) for name in ("train.tsv", "test.tsv")])
    grade = np.digitize(table[:, 2], [0.05, 0.1, 0.2, 0.4])  # LightGBM wants whole numbers
    return RankingSet(
        "catboost_example",
        "CatBoost's querywise example, labels cut into grades 0 to 4",
        table[:, 5:].astype(np.float32),
        grade.astype(np.float64),
        table[:, 1].astype(np.int64),
        threshold=1,
        max_grade=4,
    )


def movielens(folder: Path) -> RankingSet:
    """MovieLens 100k: half of each user's ratings make features, the other half is ranked."""
    ratings = read_movielens(folder)
    reference = np.random.default_rng(0).random(len(ratings.user)) < 0.5
    x = features(ratings, reference, ~reference)
    return RankingSet(
        "movielens",
        "movies of a user, ratings 1 to 5 as grades 0 to 4",
        x.astype(np.float32),
        ratings.rating[~reference] - 1.0,
        ratings.user[~reference],
        threshold=3,
        max_grade=4,
    )


def travel_modes(folder: Path) -> RankingSet:
    """ModeCanada: travellers who chose one of up to four ways to travel."""
    path = find_files(folder, ("modecanada.csv",), "the ModeCanada choices")["modecanada.csv"]
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    ways = sorted({row["alt"] for row in rows})
    columns = ("cost", "ivt", "ovt", "freq", "income", "urban", "dist")
    return RankingSet(
        "travel_modes",
        "ModeCanada: one choice among up to four",
        np.array(
            [
                [*(float(row[c]) for c in columns), *(row["alt"] == way for way in ways)]
                for row in rows
            ],
            dtype=np.float32,
        ),
        np.array([float(row["choice"]) for row in rows]),
        np.array([row["case"] for row in rows]),
        threshold=1,
        max_grade=1,
    )


SETS: Mapping[str, Callable[[Path], RankingSet]] = {
    "ohsumed": ohsumed,
    "movielens": movielens,
    "lightgbm_example": lightgbm_example,
    "catboost_example": catboost_example,
    "travel_modes": travel_modes,
}


def _numbers(path: Path) -> npt.NDArray[np.float64]:
    """Read a table of numbers; the fourth column is an address."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    return np.array([[float(cell) for cell in (*row[:3], "0", *row[4:])] for row in rows])
