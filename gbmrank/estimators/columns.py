"""The columns of a training, and whether those of another table are the same."""

import itertools
import re
import sys
import warnings
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from gbmrank.backends.tables import categorical_columns, column_names, read_table, with_names
from gbmrank.backends.trainer import Fitted
from gbmrank.errors import DataError, GbmrankWarning
from gbmrank.estimators.zeros import parts_to_score, zeros_of
from gbmrank.types import FloatArray

__all__ = ["Columns", "check_names", "renamed", "safe_names"]

_TRAINING = "the training"

_UNSAFE = re.compile(r'[\s,:\[\]{}"<\x00-\x1f]')  # what LightGBM or XGBoost changes or refuses
_SHOWN = 5  # names in a warning


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
    zeros : {"numbers", "missing", "both"} or None, default=None
        What zeros are to the booster; None where nobody knows, or forms make no difference.
    """

    count: int
    names: list[str] | None = None
    categorical: list[int] | None = None
    zeros: str | None = None

    @classmethod
    def of(cls, table: Any, backend: str | None = None) -> "Columns":
        """Read them off the table of a training with a booster."""
        kinds = categorical_columns(table)
        return cls(int(table.shape[1]), column_names(table), kinds, zeros_of(table, backend))

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
        parts = parts_to_score(read, self.zeros, what)
        return np.concatenate([fitted.scores(renamed(part)) for part in parts])

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

        Warns
        -----
        GbmrankWarning
            As :func:`check_names` does.
        """
        own = column_names(table)
        refuse_other_names(what, own, self.names, where)
        if self.categorical is not None:
            self._check_kinds(categorical_columns(table), own, (what, where))
        check_names(what, own, self.names, where)

    def _check_kinds(self, now: list[int], own: list[str] | None, called: tuple[str, str]) -> None:
        what, where = called
        known: list[int] = self.categorical or []
        changed = sorted(set(now).symmetric_difference(known))
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
    or one with numbers from 0 that pandas or polars made up. Where the training had these numbers
    in another order, they are names like any others: columns were picked or sorted.

    Raises
    ------
    DataError
        For other names, or another order.

    Warns
    -----
    GbmrankWarning
        When one of the two has names and the other has none, so that nothing can be compared.
    """
    refuse_other_names(what, own, known, where)
    named = _has_names(own)
    if own != known and (named or _has_names(known)):
        warnings.warn(
            _by_position(what, own if named else None, known or []),
            GbmrankWarning,
            stacklevel=_level_outside(),
        )


def refuse_other_names(
    what: str, own: list[str] | None, known: list[str] | None, where: str = _TRAINING
) -> None:
    """Raise where columns and those of the training have names, and they are not the same."""
    if own is None or known is None or own == known:
        return
    if _has_names(own) or set(own) == set(known):
        raise DataError(
            f"the columns of {what} are not those of {where}: got {', '.join(own)}; expected "
            f"{', '.join(known)}, in this order"
        )


def _has_names(names: list[str] | None) -> bool:
    """Whether columns have names that somebody gave them."""
    return names is not None and not any(
        names == [f"{made_up}{number}" for number in range(len(names))]
        for made_up in ("", "column_")
    )


def _by_position(what: str, own: list[str] | None, known: list[str]) -> str:
    if own is not None:
        return (
            f"the columns of {what} are called {_some(own)}, and those of the training had no "
            "names: they are taken by position; train on a table with names, which are compared "
            f"from then on, or give {what} as an array in the order of the training"
        )
    return (
        f"the columns of {what} have no names, and those of the training are called "
        f"{_some(known)}: they are taken by position; give a table with these names, or train on "
        "an array"
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def _level_outside() -> int:
    """Return how far up the stack whoever called gbmrank is, for a warning of the caller."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("gbmrank."):
        frame, level = frame.f_back, level + 1
    return level
