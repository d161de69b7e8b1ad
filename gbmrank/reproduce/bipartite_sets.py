"""Bipartite data: four UCI sets as published, and a simulated one."""

import csv
import gzip
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank.errors import DataError
from gbmrank.reproduce.files import find_files
from gbmrank.types import FloatArray, IntArray

__all__ = ["FILES", "BipartiteSet", "load_uci", "simulated", "split_two_to_one", "stratified"]

FILES = ("ionosphere.data", "housing.data", "german.data-numeric", "car.data")
"""Files of the UCI repository, without a header."""
_CHAS, _BAD, _GOOD_RADAR, _VERY_GOOD = 3, "2", "g", "vgood"


class BipartiteSet(NamedTuple):
    """Features and 0/1 labels of one data set."""

    name: str
    X: FloatArray
    y: FloatArray


def load_uci(folder: Path | None, needs: str) -> list[BipartiteSet]:
    """Read the four sets.

    Relevant are good radar returns (ionosphere), tracts at the river (housing, CHAS = 1), bad
    credit risks (german) and very good cars (car). The last feature of german is its class; a
    category of car becomes one 0/1 column per value.

    Parameters
    ----------
    folder : Path or None
        Holds the files, or a folder with them.
    needs : str
        What to tell a user who lacks them.
    """
    paths = find_files(folder, FILES, needs)
    radar, homes, credit, cars = (_table(paths[name]) for name in FILES)
    others = np.arange(homes.shape[1]) != _CHAS
    return [
        BipartiteSet("ionosphere", _numbers(radar[:, :-1]), _is(radar[:, -1], _GOOD_RADAR)),
        BipartiteSet("housing", _numbers(homes[:, others]), _numbers(homes[:, _CHAS])),
        BipartiteSet("german", _numbers(credit[:, :-1]), _is(credit[:, -1], _BAD)),
        BipartiteSet("car", _one_column_per_value(cars[:, :-1]), _is(cars[:, -1], _VERY_GOOD)),
    ]


def simulated(rng: np.random.Generator, n_rows: int = 240) -> BipartiteSet:
    """Draw five features, of which two tell the chance of being relevant."""
    x = rng.normal(size=(n_rows, 5))
    chance = 1.0 / (1.0 + np.exp(1.0 - 2.0 * x[:, 0] + x[:, 1] + 0.5 * x[:, 0] * x[:, 1]))
    return BipartiteSet("simulated", x, (rng.random(n_rows) < chance).astype(np.float64))


def split_two_to_one(y: FloatArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Split rows 2:1 at random, with the same share of relevant rows."""
    fold = stratified(y, 3, rng)
    return np.flatnonzero(fold != 0), np.flatnonzero(fold == 0)


def stratified(y: FloatArray, n_folds: int, rng: np.random.Generator) -> IntArray:
    """Return the fold of each row, with about as many relevant rows in each."""
    fold = np.empty(len(y), np.int64)
    for value in np.unique(y):
        rows = np.flatnonzero(y == value)
        fold[rows] = rng.permutation(np.arange(len(rows)) % n_folds)
    return fold


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def _table(path: Path) -> npt.NDArray[np.str_]:
    """Read lines of values between commas, or else between blanks."""
    with _open(path) as lines:
        filled = [line.strip() for line in lines if line.strip()]
    commas = bool(filled) and "," in filled[0]
    rows = list(csv.reader(filled)) if commas else [line.split() for line in filled]
    if len({len(row) for row in rows}) != 1:
        raise DataError(f"{path.name} must have the same number of values in every line")
    return np.array(rows)


def _numbers(columns: npt.NDArray[np.str_]) -> FloatArray:
    return columns.astype(np.float64)


def _is(column: npt.NDArray[np.str_], value: str) -> FloatArray:
    return (column == value).astype(np.float64)


def _one_column_per_value(columns: npt.NDArray[np.str_]) -> FloatArray:
    made = [column == value for column in columns.T for value in np.unique(column)]
    return np.column_stack(made).astype(np.float64)
