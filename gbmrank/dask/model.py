"""A ranker that was trained on a cluster."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from gbmrank.backends.trainer import Fitted
from gbmrank.estimators.columns import Columns
from gbmrank.types import FloatArray

__all__ = ["DaskTrained"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class DaskTrained:
    """A trained ranker that knows the columns of its training.

    Parameters
    ----------
    fitted : Fitted
        The booster.
    history : mapping of str to mapping of str to list of float
        Value of each metric after every round, by watched set and metric text.
    best_round : int
        Number of the best round, from 0; the last one when nothing was watched.
    columns : Columns
        Of the training.
    """

    fitted: Fitted
    history: Mapping[str, Mapping[str, list[float]]]
    best_round: int
    columns: Columns

    def check(self, table: Any, what: str) -> None:
        """Raise DataError unless a table has the columns of the training."""
        self.columns.check_count(table, what, "the model")
        self.columns.check(table, what)

    def scores(self, features: Any, what: str = "X") -> FloatArray:
        """Return one raw score per row of a table in memory, of the trees up to the best round.

        Parameters
        ----------
        features : table of shape (n_rows, n_features)
            With the columns of the training.
        what : str, default="X"
            Its name, for messages.
        """
        return self.columns.scores(self.fitted, features, what, "the model")
