"""A trained model and its trees, and what each feature contributes to the scores of rows."""

import itertools
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from gbmrank.boosters.base import Fitted
from gbmrank.boosters.supported import BOOSTERS
from gbmrank.boosters.trees import Trees
from gbmrank.data.queries import Groups
from gbmrank.data.schema import Schema, renamed
from gbmrank.data.tables import column_names
from gbmrank.errors import ConfigError, GbmrankWarning, warn
from gbmrank.estimators import GBMRanker
from gbmrank.kernels.jit import compiler
from gbmrank.kernels.jit.threads import cut_into_spans, run_spans
from gbmrank.kernels.layout import Span
from gbmrank.types import FloatArray

_CELLS_AT_ONCE = 1 << 21  # rows times splits
_NANOSECONDS = 20.0  # per row and split, to cut the work into parts
_TOLERANCE = 1e-5  # of a score, which XGBoost sums in float32


@final
@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A trained model, the columns it was trained on, and its trees."""

    fitted: Fitted
    columns: Schema
    trees: Trees
    own: bool  # a booster, whose names of columns may be changed ones

    @classmethod
    def of(cls, model: Any) -> "Model":
        """Read a GBMRanker, a booster or a model of a booster's scikit-learn interface."""
        if isinstance(model, GBMRanker):
            model._check_fitted("booster_")
            return cls(model._fitted, model._columns, model._fitted.trees(), False)
        for booster in BOOSTERS:
            fitted = booster.wrap(model)
            if fitted is not None:
                return cls(fitted, fitted.columns, fitted.trees(), True)
        raise ConfigError(
            f"a {type(model).__name__} cannot be explained; give a trained GBMRanker, or a model "
            f"of {' or '.join(booster.title for booster in BOOSTERS)}"
        )

    def names(self, table: Any) -> list[str]:
        """Return a different name for each feature: of the columns, else of the model, else f0."""
        given = column_names(table) or self.columns.names
        names = given or [f"f{number}" for number in range(self.columns.count)]
        if len(set(names)) == len(names):
            return names
        return [f"{name} ({number})" for number, name in enumerate(names)]

    def read(self, table: Any) -> tuple[FloatArray, FloatArray]:
        """Return the rows of a table as the trees see them, and their scores."""
        shown = renamed(table) if self.own else table
        rows = self.columns.encoded(self.fitted, shown, "the model")
        return rows, self.columns.scores(self.fitted, shown, who="the model")

    def explained(
        self, table: Any, qid: Any
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, Groups]:
        """Return contributions, scores, the mean score of each row's list, rows and lists."""
        rows, scores = self.read(table)
        groups = Groups.single(len(rows)) if qid is None else Groups.from_qid(qid, len(rows))
        weight = 1.0 / groups.spread(groups.sizes)
        sums = groups.restore(self.contributions(groups.arrange(rows), groups, weight))
        means = np.add.reduceat(groups.arrange(scores), groups.offsets[:-1]) / groups.sizes
        references = groups.restore(groups.spread(means))
        check_sums(sums, scores - references, scores)
        return sums, scores, references, rows, groups

    def contributions(self, rows: FloatArray, groups: Groups, weight: FloatArray) -> FloatArray:
        """Return what each feature contributes to each row's score, one list after the other.

        The contributions of a row sum to its score minus the mean of its list, weighted by
        ``weight``, which sums to 1 in every list.
        """
        trees, offsets = self.trees, groups.offsets
        depth, kernels = trees.depth, compiler.load("attribution")
        sums, shares = np.zeros((len(rows), self.columns.count)), kernels.coalition_shares(depth)

        def add(span: Span) -> None:
            ends = offsets[span.first : span.last + 1]
            here = slice(int(ends[0]), int(ends[-1]))
            work, part = kernels.workspace(groups.longest, depth), rows[here]
            for first, last in _blocks(trees, len(part)):
                splits, leaves = trees.splits[[first, last]], trees.leaves[[first, last]]
                kernels.add_contributions(
                    trees.paths,
                    int(splits[0]),
                    (int(leaves[0]), int(leaves[1])),
                    trees.goes_left(part, int(splits[0]), int(splits[1])),
                    ends - ends[0],
                    weight[here],
                    shares,
                    work,
                    sums[here],
                )

        run_spans(add, cut_into_spans(groups.sizes * (_NANOSECONDS * (1 + trees.splits[-1]))))
        return sums


def check_sums(contributions: FloatArray, differences: FloatArray, scores: FloatArray) -> None:
    """Warn unless contributions sum to the differences of scores that the booster predicts."""
    wrong = np.abs(contributions.sum(axis=1) - differences) / np.maximum(1.0, np.abs(scores))
    if np.any(~(wrong <= _TOLERANCE)):
        row = int(np.argmax(np.where(np.isnan(wrong), np.inf, wrong)))
        warn(
            f"the contributions of row {row} sum to {contributions[row].sum():.6g}, but the scores "
            f"of the booster differ by {differences[row]:.6g}. The explanation does not describe "
            "this model; please report it with the model file",
            GbmrankWarning,
        )


def _blocks(trees: Trees, n_rows: int) -> list[tuple[int, int]]:
    """Cut the trees into blocks whose splits of all rows fit into little memory."""
    most = max(_CELLS_AT_ONCE // max(n_rows, 1), 1)
    cuts, n_trees = [0], len(trees.splits) - 1
    while cuts[-1] < n_trees:
        end = int(np.searchsorted(trees.splits, trees.splits[cuts[-1]] + most, side="right")) - 1
        cuts.append(min(max(end, cuts[-1] + 1), n_trees))
    return list(itertools.pairwise(cuts))
