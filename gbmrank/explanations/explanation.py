"""``explain``: contributions of features to the difference of scores, with tables and plots."""

import importlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from gbmrank.data.files import write_whole
from gbmrank.data.position_bias import axes
from gbmrank.data.queries import Groups
from gbmrank.data.tables import categorical_columns, cell, frame_like, take_rows
from gbmrank.errors import GroupError, ParameterError
from gbmrank.explanations.contributions import Model, check_sums
from gbmrank.types import FloatArray, IntArray, is_whole

_SHOWN = 6  # features in a plot; the others are summed


class Bar(NamedTuple):
    """One bar of a plot: name, values of the two sides as text, contribution."""

    name: str
    values: str
    contribution: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """What each feature contributes to a difference of scores.

    Attributes
    ----------
    features : list of str
        Names of the features.
    contributions : array of shape (n_rows, n_features)
        Of row A compared with row B (one row), or of each row compared with the mean over its
        list. A row sums to ``scores - references``.
    scores : array of shape (n_rows,)
        Scores of the booster.
    references : array of shape (n_rows,)
        Score of row B, or mean score of the list.
    pair : (int, int) or None
        The rows that were compared.

    Examples
    --------
    >>> import gbmrank
    >>> from gbmrank.data.demonstration import demo_data
    >>> data = demo_data(n_queries=100, seed=0)
    >>> model = gbmrank.GBMRanker(n_estimators=20).fit(data.X, data.labels, qid=data.qid)
    >>> found = gbmrank.explain(model, data.X, qid=data.qid, pair=(0, 1))
    >>> bool(abs(found.contributions.sum() - (found.scores - found.references)[0]) < 1e-9)
    True
    """

    features: list[str]
    contributions: FloatArray
    scores: FloatArray
    references: FloatArray
    pair: tuple[int, int] | None
    _table: Any = field(repr=False)
    _rows: FloatArray = field(repr=False)
    _groups: Groups = field(repr=False)

    def table(self) -> Any:
        """Return a data frame of the same kind as the features, or a dict of columns for arrays.

        For a pair one row per feature, the largest contribution first; else one row per item and
        one column per feature, in the order of the rows given.
        """
        if self.pair is None:
            columns = dict(zip(self.features, self.contributions.T.copy(), strict=True))
            made = frame_like(self._table, columns)
            return made.set_axis(self._table.index) if hasattr(made, "iloc") else made
        order = self._largest(0)
        columns = {"feature": [self.features[at] for at in order]}
        columns |= {name: [self._text(row, at) for at in order] for row, name in enumerate("ab")}
        return frame_like(self._table, {**columns, "contribution": self.contributions[0, order]})

    def bars(self, row: int | None = None, most: int | None = _SHOWN) -> list[Bar]:
        """Return the largest contributions to a row's score, the sum of the rest, the total.

        Parameters
        ----------
        row : int, optional
            A row of the features; the one with the largest lead over its list by default. A pair
            needs none.
        most : int or None, default=6
            Number of features; None for all that contribute.
        """
        row = self._row(row)
        largest = [at for at in self._largest(row) if self.contributions[row, at] != 0.0]
        made = [
            Bar(self.features[at], self._compared(row, at), float(self.contributions[row, at]))
            for at in largest[:most]
        ]
        others = largest[len(made) :]
        if others:
            rest = float(self.contributions[row, others].sum())
            made.append(Bar(f"{len(others)} other features", "", rest))
        return [*made, Bar("total", "", float(self.contributions[row].sum()))]

    def title(self, row: int | None = None) -> str:
        """Return what is compared, as one line."""
        row = self._row(row)
        score, other = self.scores[row], self.references[row]
        if self.pair is None:
            return f"row {row} scores {score:.4f}, its list {other:.4f} on average"
        return f"A (row {self.pair[0]}) scores {score:.4f}, B (row {self.pair[1]}) {other:.4f}"

    def __str__(self) -> str:
        bars = self.bars()
        names, values = max(len(bar.name) for bar in bars), max(len(bar.values) for bar in bars)
        lines = [f"{one:<{names}}  {two:<{values}}  {value:+.4f}" for one, two, value in bars]
        return "\n".join([self.title(), *lines])

    def plot(self, row: int | None = None, ax: Any = None) -> Any:
        """Plot one bar per feature: the six largest, the rest, and the total last.

        Parameters
        ----------
        row : int, optional
            As in :meth:`bars`.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; a new figure when not given.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        bars = self.bars(row)
        ax = axes(ax, 7.0, 0.8 + 0.4 * len(bars))
        values = [bar.contribution for bar in bars]
        colors = ["#7aa6c2" if value >= 0.0 else "#c98a5b" for value in values]
        drawn = ax.barh(range(len(bars)), values, color=[*colors[:-1], "#1d3c53"])
        ax.bar_label(drawn, [f"{value:+.3f}" for value in values], padding=3)
        ax.set_yticks(range(len(bars)), [f"{bar.name}  {bar.values}".rstrip() for bar in bars])
        ax.invert_yaxis()
        ax.margins(x=0.15)
        ax.axvline(0.0, color="#888888", linewidth=0.8)
        ax.set_xlabel("contribution to the difference of scores")
        ax.set_title(self.title(row), loc="left", fontsize="medium")
        return ax

    def to_html(self, path: str | Path | None = None, row: int | None = None) -> str:
        """Return a page with the plot and the table, which loads nothing from elsewhere.

        Parameters
        ----------
        path : str or path, optional
            File to write it to.
        row : int, optional
            As in :meth:`bars`.
        """
        page = importlib.import_module("gbmrank.experiments.report.explained").page(self, row)
        if path is not None:
            write_whole(Path(path).absolute(), page.encode("utf-8"))
        return str(page)

    def _largest(self, row: int) -> IntArray:
        return np.argsort(-np.abs(self.contributions[row]), kind="stable")

    def _row(self, row: int | None) -> int:
        if row is None:
            return int(np.argmax(self.scores - self.references))
        if not is_whole(row) or not 0 <= row < len(self.scores):
            raise ParameterError(f"row must be from 0 to {len(self.scores) - 1}, got {row!r}")
        return row

    def _compared(self, row: int, feature: int) -> str:
        """Return the value of A against the value of B, or of a row against its list's mean."""
        if self.pair is not None:
            return f"{self._text(0, feature)} against {self._text(1, feature)}"
        if feature in categorical_columns(self._table):
            return self._text(row, feature)
        groups = self._groups
        place = row if groups.row_order is None else int(np.argmax(groups.row_order == row))
        query = int(np.searchsorted(groups.offsets, place, side="right")) - 1
        values = groups.arrange(self._rows[:, feature])
        known = values[groups.offsets[query] : groups.offsets[query + 1]]
        known = known[~np.isnan(known)]
        mean = f"{known.mean():.4g}" if len(known) else "missing"
        return f"{self._text(row, feature)} (list: {mean})"

    def _text(self, row: int, feature: int) -> str:
        if np.isnan(self._rows[row, feature]):
            return "missing"
        value = cell(self._table, row, feature)
        return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def explain(
    model: Any,
    X: Any,  # noqa: N803
    *,
    qid: Any = None,
    pair: Iterable[int] | None = None,
) -> Explanation:
    """Explain scores: exact Shapley values of the trees, compared with other rows of the list.

    With a pair, row A is compared with row B: the contributions sum to the difference of their
    scores, change their sign if A and B are swapped, and are 0 for a feature in which both are
    equal. Without, each row is compared with every row of its list, and the contributions are the
    means; they sum to the score minus the mean score of the list.

    Parameters
    ----------
    model : GBMRanker, booster or scikit-learn model of a booster
        A trained model of trees that predicts one score per row. A booster predicts with the same
        rounds as its ``predict``.
    X : table of shape (n_rows, n_features)
        Features.
    qid : array-like of shape (n_rows,), optional
        One query id per row, in any order; without it all rows are one list.
    pair : (int, int), optional
        Numbers of two rows of ``X``, from 0.

    Returns
    -------
    Explanation
        The contributions, with ``table()``, ``plot()`` and ``to_html()``.

    Raises
    ------
    ConfigError
        For models that are not sums of trees: ``linear_tree``, ``gblinear``, several outputs.
    GroupError
        For rows of different queries.

    Warns
    -----
    GbmrankWarning
        If contributions do not sum to the difference of the booster's scores.
    """
    known = Model.of(model)
    if pair is not None:
        return _of_pair(known, X, qid, pair)
    made, scores, references, rows, groups = known.explained(X, qid)
    return Explanation(known.names(X), made, scores, references, None, X, rows, groups)


def _of_pair(known: Model, table: Any, qid: Any, pair: Any) -> Explanation:
    n_rows = int(np.shape(table)[0])
    chosen = tuple(pair) if isinstance(pair, Iterable) else (pair,)
    fits = len(chosen) == 2 and all(is_whole(row) and 0 <= row < n_rows for row in chosen)
    if not fits or chosen[0] == chosen[1]:
        raise ParameterError(
            f"pair must be two different rows of X, numbers from 0 to {n_rows - 1}; got {pair!r}"
        )
    a, b = map(int, chosen)
    if qid is not None:
        groups = Groups.from_qid(qid, n_rows)
        queries = groups.restore(groups.spread(np.arange(groups.n_queries)))
        if queries[a] != queries[b]:
            raise GroupError(
                f"rows {a} and {b} belong to different queries, {np.asarray(qid)[a]} and "
                f"{np.asarray(qid)[b]}; only rows of one query are ranked against each other"
            )
    two = take_rows(table, np.array([a, b]))
    rows, scores = known.read(two)
    both = Groups.single(2)
    made = known.contributions(rows, both, np.array([0.0, 1.0]))[:1]
    check_sums(made, scores[:1] - scores[1:], scores[:1])
    return Explanation(known.names(two), made, scores[:1], scores[1:], (a, b), two, rows, both)
