"""Constraints on features by the names of the user, in the form that both boosters read."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gbmrank.errors import ConfigError
from gbmrank.estimators.columns import Columns
from gbmrank.types import is_whole

__all__ = ["placed_constraints"]

_MONOTONE, _TOGETHER = "monotone_constraints", "interaction_constraints"


def placed_constraints(
    params: Mapping[str, Any], columns: Columns, backend: str, what: str = "X"
) -> dict[str, Any]:
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
    what : str, default="X"
        What has these columns, for messages.

    Raises
    ------
    ConfigError
        For a column that there is not, a number of constraints that is not that of columns, and
        for constraints that are none.

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
    try:
        if signs is not None and not isinstance(signs, str):
            made[_MONOTONE] = _signs(signs, columns, what)
        if sets is not None and not isinstance(sets, str):
            placed = [[_place(one, columns, _TOGETHER, what) for one in each] for each in sets]
            made[_TOGETHER] = str(placed) if backend == "xgboost" else placed
    except TypeError as error:  # something that is no list
        raise ConfigError(
            f"{_MONOTONE} is one of -1, 0 and 1 per column, or a dict by name; {_TOGETHER} is a "
            f"list of lists of columns; got {signs!r} and {sets!r}"
        ) from error
    return made


def _signs(given: Any, columns: Columns, what: str) -> tuple[int, ...]:
    if isinstance(given, Mapping):
        signs = {_place(column, columns, _MONOTONE, what): sign for column, sign in given.items()}
        made = [signs.get(number, 0) for number in range(columns.count)]
    else:
        made = [*np.asarray(given).tolist()]  # XGBoost writes numbers of numpy as it cannot read
    if len(made) != columns.count:
        raise ConfigError(
            f"{_MONOTONE} has {len(made)} entries, but {what} has {columns.count} columns; give "
            "one entry per column, 0 for those that are free, or a dict by name"
        )
    wrong = next((sign for sign in made if sign not in (-1, 0, 1)), None)
    if wrong is not None:
        raise ConfigError(
            f"{_MONOTONE} holds {wrong!r}; an entry is 1 (more is better), -1 or 0 (free)"
        )
    return tuple(map(int, made))


def _place(column: Any, columns: Columns, constraint: str, what: str) -> int:
    names = columns.names or []
    if str(column) in names:
        return names.index(str(column))
    if constraint == _TOGETHER and is_whole(column) and 0 <= column < columns.count:
        return int(column)
    known = f"are {', '.join(names)}" if names else f"have no names, and there are {columns.count}"
    remedy = "one entry per column" if constraint == _MONOTONE else "numbers of columns, from 0"
    raise ConfigError(
        f"{constraint} names the column {column!r}, but the columns of {what} {known}; give "
        f"{'one of these, or ' if names else ''}{remedy}"
    )
