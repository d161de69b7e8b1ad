"""Linear models of proper, bipartite and push risks, tuned by cross-validation."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gbmrank.api import metric
from gbmrank.data.queries import RankingData
from gbmrank.reproduce.bipartite_sets import BipartiteSet, split_two_to_one, stratified
from gbmrank.reproduce.linear import LinearModel, fit_linear, standardise
from gbmrank.types import FloatArray, IntArray

__all__ = ["FAMILIES", "LOSSES", "MEASURES", "Grid", "evaluate_split", "method_names"]

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
