"""The columns of a training, and whether those of another table are the same."""

import itertools
import re
from dataclasses import dataclass
from typing import Any, final

from gbmrank.backends.tables import categorical_columns, column_names, read_table, with_names
from gbmrank.backends.trainer import Fitted
from gbmrank.errors import DataError
from gbmrank.types import FloatArray

__all__ = ["Columns", "check_names", "renamed", "safe_names"]

_TRAINING = "the training"

_UNSAFE = re.compile(r'[\s,:\[\]{}"<\x00-\x1f]')  # what LightGBM or XGBoost changes or refuses


@final
@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What is known about the columns of a training.

    Parameters
    ----------
    count : int
        How many.
    names : list of str or None, default=None
        As the user gave them; None where they had none.
    categorical : list of int or None, default=None
        Numbers of those that hold categories; None where nobody knows.
    """

    count: int
    names: list[str] | None = None
    categorical: list[int] | None = None

    @classmethod
    def of(cls, table: Any) -> "Columns":
        """Read them off a table."""
        return cls(int(table.shape[1]), column_names(table), categorical_columns(table))

    def scores(
        self, fitted: Fitted, table: Any, what: str = "X", who: str = "GBMRanker"
    ) -> FloatArray:
        """Return one raw score per row of a table with these columns.

        Parameters
        ----------
        fitted : Fitted
            A model of these columns.
        table : table of shape (n_rows, n_features)
            Features.
        what, who : str
            The table and the model, for messages.
        """
        read = read_table(table, what, fitted.backend)
        self.check_count(read, what, who)
        self.check(read, what)
        return fitted.scores(renamed(read))

    def check_count(self, table: Any, what: str, who: str = "GBMRanker") -> None:
        """Raise DataError unless a table has as many columns."""
        width = int(table.shape[1])
        if width != self.count:
            raise DataError(
                f"{what} has {width} features, but {who} is expecting {self.count} features as "
                "input"
            )

    def check(self, table: Any, what: str, where: str = _TRAINING) -> None:
        """Raise unless a table has these columns: their names, in this order, and their kinds.

        Parameters
        ----------
        table : table
            As :func:`gbmrank.backends.tables.read_table` returns it; it may have no rows.
        what : str
            Its name, for messages.
        where : str, default="the training"
            Whose columns these are, for messages.

        Raises
        ------
        DataError
            Boosters would take the numbers of a column for the codes of its categories.
        """
        own = column_names(table)
        check_names(what, own, self.names, where)
        if self.categorical is None:
            return
        now = categorical_columns(table)
        changed = sorted(set(now).symmetric_difference(self.categorical))
        if changed:
            names = own or self.names
            column = names[changed[0]] if names is not None else changed[0]
            raise DataError(f"the column {column!r} of {what} {_change(changed[0] in now, where)}")


def _change(now: bool, where: str) -> str:
    if now:
        return (
            f"holds categories, and in {where} it held numbers: give the numbers, or train on "
            "categories"
        )
    return (
        f"holds numbers, and in {where} it held categories: make it a category, in a frame "
        f"(astype('category') in pandas, of the values it had in {where})"
    )


def renamed(table: Any) -> Any:
    """Return a table with column names that both boosters take."""
    names = column_names(table)
    return table if names is None else with_names(table, safe_names(names))


def safe_names(names: list[str]) -> list[str]:
    """Return column names that both boosters take as they are, all different.

    Examples
    --------
    >>> safe_names(["a b", "a_b", "c"])
    ['a_b', 'a_b_1', 'c']
    """
    made: dict[str, None] = {}
    for number, name in enumerate(names):
        plain = _UNSAFE.sub("_", name) or "_"
        others = (f"{plain}_{suffix}" for suffix in itertools.count(number))
        made[next(each for each in itertools.chain([plain], others) if each not in made)] = None
    return list(made)


def check_names(
    what: str, own: list[str] | None, known: list[str] | None, where: str = _TRAINING
) -> None:
    """Raise unless columns have the names of the training, in its order.

    LightGBM goes by position alone, and so does a table without names, here or in the training,
    or one with numbers from 0 that pandas made up. Where the training had these numbers in another
    order, they are names like any others: columns were picked or sorted.
    """
    if own is None or known is None or own == known:
        return
    made_up = own == [str(number) for number in range(len(own))]
    if not made_up or set(own) == set(known):
        raise DataError(
            f"the columns of {what} are not those of {where}: got {', '.join(own)}; expected "
            f"{', '.join(known)}, in this order"
        )
