"""What every reader returns."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from gbmrank.types import FloatArray

__all__ = ["RankingFile"]


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RankingFile:
    """Rows of queries as a file has them, in the order of the file.

    Parameters
    ----------
    labels : array of shape (n_rows,)
        Larger is better; finite.
    qid : array of shape (n_rows,) or None
        One query id per row, as text; ``None`` where the file has none.
    scores : array of shape (n_rows,) or None
        Where the file holds them (a table with a score column, a TREC run); finite.
    X : array of shape (n_rows, n_features) or None
        Features; NaN is a missing value.
    ids : array of shape (n_rows,) or None
        Document ids as text, empty where a row has none.
    feature_names : tuple of str
        One per column of ``X``.
    by_index : bool
        Whether these are indices of LETOR, of which a file may leave out the last ones.
    unranked : array of bool of shape (n_rows,) or None
        Rows that were judged but not retrieved; they have the lowest score of all.
    notes : tuple of str
        What a person should know about how the file was read.
    """

    labels: FloatArray
    qid: npt.NDArray[np.str_] | None = None
    scores: FloatArray | None = None
    X: npt.NDArray[Any] | None = None
    ids: npt.NDArray[np.str_] | None = None
    feature_names: tuple[str, ...] = ()
    by_index: bool = False
    unranked: npt.NDArray[np.bool_] | None = None
    notes: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.labels)
