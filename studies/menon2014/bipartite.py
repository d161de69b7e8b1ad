"""Bipartite data, four UCI sets and a simulated one, and linear models tuned on it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank import RankingData, metric
from gbmrank.types import FloatArray, IntArray
from studies.files import find_files
from studies.linear import LinearModel, fit_linear, standardise

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


def _table(path: Path) -> npt.NDArray[np.str_]:
    """Read values between commas, or between blanks in the two files that have them."""
    blanks = path.name.startswith(("housing", "german"))
    return np.loadtxt(path, dtype=str, delimiter=None if blanks else ",")


def _numbers(columns: npt.NDArray[np.str_]) -> FloatArray:
    return columns.astype(np.float64)


def _is(column: npt.NDArray[np.str_], value: str) -> FloatArray:
    return (column == value).astype(np.float64)


def _one_column_per_value(columns: npt.NDArray[np.str_]) -> FloatArray:
    made = [column == value for column in columns.T for value in np.unique(column)]
    return np.column_stack(made).astype(np.float64)


FAMILIES = ("Proper", "Bipartite", "P-Norm")
LOSSES = {
    "Logistic": "logistic",
    "Exponential": "exponential",
    "P-Classification": "p_classification",
    "Asymmetric A": "asymmetric_a",
    "Asymmetric B": "asymmetric_b",
}
MEASURES = {
    "AUC": "auc",
    "MRR": "positional(utility=recall, discount=reciprocal)",
    "DCG": "positional(utility=recall, discount=log2)",
    "AP": "map",
    "PTop": "ptop",
}
"""MRR and DCG as means over the relevant rows of 1/rank and 1/log2(1 + rank)."""
_MOST_ITERATIONS = 100


class Grid(NamedTuple):
    """What is tried for each method.

    Parameters
    ----------
    penalties : sequence of float
        From the largest: each fit begins at the one before.
    powers : sequence of float
        p of p-classification and of the p-norm push.
    folds : int
        Of the cross-validation.
    """

    penalties: Sequence[float]
    powers: Sequence[float]
    folds: int


class _Candidate(NamedTuple):
    objective: str
    penalty: float


def method_names() -> list[str]:
    """Return the names of the 14 methods; a p-norm push of p-classification is not one."""
    return [
        f"{family} {loss}"
        for family in FAMILIES
        for loss in LOSSES
        if (family, loss) != ("P-Norm", "P-Classification")
    ]


def evaluate_split(
    data: BipartiteSet, grid: Grid, seed: Sequence[int]
) -> dict[tuple[str, str], float]:
    """Split a set, tune and train every method, and return its measures on the test part.

    Parameters
    ----------
    data : BipartiteSet
        One data set.
    grid : Grid
        What is tried; the largest mean AP over the folds is chosen.
    seed : sequence of int
        Of the split and of the folds.

    Returns
    -------
    dict
        Value by method and measure.
    """
    rng = np.random.default_rng(seed)
    train, test = split_two_to_one(data.y, rng)
    folds = stratified(data.y[train], grid.folds, rng)
    values = {}
    for method in method_names():
        chosen = _tuned(data.X[train], data.y[train], folds, method, grid)
        x, x_test = standardise(data.X[train], data.X[test])
        model = _fit(chosen, x, data.y[train], None)
        for measure, text in MEASURES.items():
            values[method, measure] = metric(text).score(data.y[test], model.scores(x_test))
    return values


def _objectives(method: str, powers: Sequence[float]) -> Iterator[str]:
    """Yield the objectives among which a method is tuned."""
    family, _, name = method.partition(" ")
    loss = LOSSES[name]
    if family == "P-Norm":
        for p in powers:
            yield f"push(loss={loss}, p={p:g}, normalize=none)"
        return
    template = {
        "Proper": "pointwise(loss={}, target=precision)",
        "Bipartite": "bipartite(loss={}, normalize=none)",
    }[family]
    for each in [f"{loss}(p={p:g})" for p in powers] if loss == "p_classification" else [loss]:
        yield template.format(each)


def _tuned(X: FloatArray, y: FloatArray, folds: IntArray, method: str, grid: Grid) -> _Candidate:  # noqa: N803
    """Return the objective and penalty with the largest mean AP over the folds."""
    objectives = list(_objectives(method, grid.powers))
    table = np.zeros((len(objectives), len(grid.penalties)))
    precision = metric(MEASURES["AP"])
    for fold in range(grid.folds):
        inside, held = folds != fold, folds == fold
        x, x_held = standardise(X[inside], X[held])
        for row, objective in enumerate(objectives):
            model = None
            for column, penalty in enumerate(grid.penalties):
                model = _fit(_Candidate(objective, penalty), x, y[inside], model)
                table[row, column] += precision.score(y[held], model.scores(x_held))
    best = np.unravel_index(int(table.argmax()), table.shape)
    return _Candidate(objectives[int(best[0])], grid.penalties[int(best[1])])


def _fit(
    chosen: _Candidate,
    X: FloatArray,  # noqa: N803
    y: FloatArray,
    start: LinearModel | None,
) -> LinearModel:
    """Minimise a mean loss (the risks of pairs are means already) plus the penalty."""
    pointwise = chosen.objective.startswith("pointwise")
    weight = np.full(len(y), 1.0 / len(y)) if pointwise else None
    data = RankingData.from_arrays(y, weight=weight)
    return fit_linear(
        chosen.objective,
        data,
        X,
        l2=chosen.penalty,
        start=start,
        max_iterations=_MOST_ITERATIONS,
    )
