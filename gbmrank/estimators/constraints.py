"""Constraints on features by the names of the user, in the form that both boosters read."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gbmrank.errors import ConfigError
from gbmrank.estimators.columns import Columns

__all__ = ["placed_constraints"]

_MONOTONE, _TOGETHER = "monotone_constraints", "interaction_constraints"


def placed_constraints(params: Mapping[str, Any], columns: Columns, backend: str) -> dict[str, Any]:
    """Return parameters whose constraints go by the place of a column.

    Names of columns are not always those in the booster, and XGBoost reads no list.

    Parameters
    ----------
    params : mapping
        Of the booster; constraints that are texts are left as they are.
    columns : Columns
        Of the training.
    backend : {"lightgbm", "xgboost"}
        The booster.

    Raises
    ------
    ConfigError
        For a column that there is not, or a number of constraints that is not that of columns.

    Examples
    --------
    >>> columns = Columns(3, ["a", "b", "c d"])
    >>> placed_constraints({"monotone_constraints": {"c d": -1}}, columns, "xgboost")
    {'monotone_constraints': (0, 0, -1)}
    >>> placed_constraints({"interaction_constraints": [["a", "c d"], [1]]}, columns, "lightgbm")
    {'interaction_constraints': [[0, 2], [1]]}
    """
    made = dict(params)
    signs, sets = made.get(_MONOTONE), made.get(_TOGETHER)
    if signs is not None and not isinstance(signs, str):
        made[_MONOTONE] = _signs(signs, columns)
    if sets is not None and not isinstance(sets, str):
        placed = [[_place(one, columns, _TOGETHER) for one in each] for each in sets]
        made[_TOGETHER] = str(placed) if backend == "xgboost" else placed
    return made


def _signs(given: Any, columns: Columns) -> tuple[Any, ...]:
    if isinstance(given, Mapping):
        signs = {_place(column, columns, _MONOTONE): sign for column, sign in given.items()}
        return tuple(signs.get(number, 0) for number in range(columns.count))
    made = tuple(np.asarray(given).tolist())  # XGBoost writes numbers of numpy as it cannot read
    if len(made) != columns.count:
        raise ConfigError(
            f"{_MONOTONE} has {len(made)} entries, but X has {columns.count} columns; give one "
            "entry per column, 0 for those that are free, or a dict by name"
        )
    return made


def _place(column: Any, columns: Columns, what: str) -> int:
    names = columns.names or []
    if str(column) in names:
        return names.index(str(column))
    if what == _TOGETHER and not isinstance(column, str):
        return int(column)
    known = f"are {', '.join(names)}" if names else "have no names"
    remedy = "one entry per column" if what == _MONOTONE else "numbers of columns, from 0"
    raise ConfigError(
        f"{what} names the column {column!r}, but the columns of X {known}; give "
        f"{'one of these, or ' if names else ''}{remedy}"
    )
