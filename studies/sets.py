"""Ranking data of our own studies, read from a folder the user names.

Each set says how its labels are to be judged: which are relevant, and the highest grade. Large
public sets (MSLR-WEB10K and 30K, Yahoo, Istella) are read from a folder with their files by
:func:`read_parts`.
"""

import csv
import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import gbmrank
from gbmrank.data.readers import read_letor
from gbmrank.demo_data import demo_data
from gbmrank.errors import ConfigError
from studies.files import find_files, find_parts
from studies.movielens import features, read_movielens


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
    part: npt.NDArray[np.int64] | None = None  # 0 train, 1 valid, 2 test, by row; None: folds

    @property
    def goals(self) -> dict[str, str]:
        """What models aim at and are judged by: the text of each metric for these labels."""
        return {
            "ndcg@10": "ndcg@10",
            "err@10": str(gbmrank.metric("err@10", max_grade=self.max_grade)),
            "map": str(gbmrank.metric("map", threshold=self.threshold)),
        }

    def capped(self, rows: int) -> "RankingSet":
        """Return the set, or as many of its queries, drawn at random, as have so many rows."""
        if len(self.y) <= rows or self.part is not None:
            return self
        ids, at, sizes = np.unique(self.qid, return_inverse=True, return_counts=True)
        drawn = np.random.default_rng(0).permutation(len(ids))
        kept = drawn[: np.searchsorted(np.cumsum(sizes[drawn]), rows) + 1]
        chosen = np.isin(at, kept)
        about = f"{self.about}; {len(kept):,} of {len(ids):,} queries"
        return replace(self.only(chosen), about=about)

    def only(self, chosen: npt.NDArray[np.bool_]) -> "RankingSet":
        """Return some rows, without parts."""
        rows = self.X[chosen], self.y[chosen], self.qid[chosen]
        return replace(self, X=rows[0], y=rows[1], qid=rows[2], part=None)


def demonstration(queries: int = 120) -> RankingSet:
    """The made-up data of ``gbmrank.demo_data``, for short runs."""
    data = demo_data(n_queries=queries, seed=0)
    about = "made up, grades 0 to 4"
    rows = data.X.astype(np.float32), data.labels.astype(np.float64), data.qid
    return RankingSet("demonstration", about, *rows, threshold=1, max_grade=4)


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
    x = _stacked(files)
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


def mq2008(folder: Path) -> RankingSet:
    """LETOR 4.0 MQ2008: web search, judged 0 to 2."""
    names = [f"S{number}.txt" for number in range(1, 6)]
    paths = find_files(_folder_of(folder, "mq2008"), names, "MQ2008 of LETOR 4.0")
    return _joined("mq2008", "web search (MQ2008), grades 0 to 2", list(paths.values()), 2)


def mslr_sample(folder: Path) -> RankingSet:
    """The first rows of MSLR-WEB10K: web search, judged 0 to 4."""
    names = ("train.txt", "test.txt")
    paths = find_files(_folder_of(folder, "msn5k"), names, "the sample of MSLR-WEB10K")
    about = "web search (first 10,000 rows of MSLR-WEB10K), grades 0 to 4"
    return _joined("mslr_sample", about, list(paths.values()), 4)


def read_parts(folder: Path, max_grade: int) -> RankingSet:
    """Read a set with parts of its own: files with train, vali and test in their names.

    That is how MSLR-WEB10K and 30K (one fold), Yahoo's sets and Istella are distributed, in
    svmlight's format. Without a file to validate on, a fifth of the training queries does.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file())
    parts = [[path for path in files if word in path.name.lower()] for word in _WORDS]
    if not parts[0] or not parts[2] or any(len(found) > 1 for found in parts):
        raise ConfigError(
            f"{folder} must have one file with 'train' in its name, one with 'test', and at most "
            "one with 'vali'"
        )
    chosen = [found[0] for found in parts if found]
    joined = _joined(folder.name, f"{folder.name}, grades 0 to {max_grade}", chosen, max_grade)
    part = np.concatenate([np.full(len(one), at) for at, one in enumerate(_labels(parts))])
    return replace(joined, part=part)


_WORDS = ("train", "vali", "test")


def _labels(parts: Sequence[Sequence[Path]]) -> list[npt.NDArray[np.float64]]:
    none = np.zeros(0)
    return [read_letor(one[0], features=False).labels if one else none for one in parts]


def _folder_of(folder: Path, name: str) -> Path:
    """Return the folder of a set below that of all data, where there is one."""
    return folder / name if (folder / name).is_dir() else folder


def _stacked(files: Sequence[Any]) -> npt.NDArray[np.float32]:
    """Return the features of several files, one below the other; columns that one lacks are 0."""
    wide = max(file.X.shape[1] for file in files if file.X is not None)
    x = np.zeros((sum(file.n_rows for file in files), wide), np.float32)
    begin = 0
    for file in files:
        assert file.X is not None
        x[begin : begin + file.n_rows, : file.X.shape[1]] = file.X
        begin += file.n_rows
    return x


def _joined(name: str, about: str, paths: Sequence[Path], max_grade: int) -> RankingSet:
    files = [read_letor(path) for path in paths]
    x = _stacked(files)
    qid = [file.qid for file in files if file.qid is not None]
    labels = np.concatenate([file.labels for file in files])
    ids = np.concatenate([np.char.add(f"{at} ", one.astype(str)) for at, one in enumerate(qid)])
    return RankingSet(name, about, x, labels, ids, threshold=1, max_grade=max_grade)


SETS: Mapping[str, Callable[[Path], RankingSet]] = {
    "ohsumed": ohsumed,
    "movielens": movielens,
    "lightgbm_example": lightgbm_example,
    "catboost_example": catboost_example,
    "travel_modes": travel_modes,
    "mq2008": mq2008,
    "mslr_sample": mslr_sample,
}


def _numbers(path: Path) -> npt.NDArray[np.float64]:
    """Read a table of numbers; the fourth column is an address."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    return np.array([[float(cell) for cell in (*row[:3], "0", *row[4:])] for row in rows])
