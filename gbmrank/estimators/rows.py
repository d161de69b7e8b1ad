"""Reading the rows an estimator is given: one id per row, in any order."""

import re
from collections.abc import Sequence
from typing import Any

from gbmrank.backends.tables import take_rows
from gbmrank.data import Groups, RankingData, as_floats
from gbmrank.errors import DataError, GroupError
from gbmrank.training import Part

__all__ = ["check_names", "named_sets", "read_part", "read_queries", "safe_names"]

_UNSAFE = re.compile(r'[\s,:\[\]{}"<]')  # what LightGBM or XGBoost changes or refuses


def read_queries(qid: Any, n_rows: int, what: str = "X") -> Groups:
    """Read one query id per row; without them there is no way to know what is ranked together.

    Parameters
    ----------
    qid : array-like of shape (n_rows,)
        In any order.
    n_rows : int
        Rows of the table.
    what : str, default="X"
        Name of the table, for messages.
    """
    if qid is None:
        raise GroupError(
            f"say which query each row of {what} belongs to: qid= (one id per row); inside "
            "scikit-learn's cross-validation, sklearn.set_config(enable_metadata_routing=True) "
            "hands it on"
        )
    return Groups.from_qid(qid, n_rows)


def read_part(
    table: Any, labels: Any, qid: Any, weight: Any, what: str = "the training set"
) -> Part:
    """Read rows and put them into query order.

    Parameters
    ----------
    table : table
        As :func:`gbmrank.backends.tables.read_table` returns it.
    labels : array-like of shape (n_rows,)
        Larger is better.
    qid : array-like of shape (n_rows,)
        One query id per row.
    weight : array-like or None
        One per row or one per query, queries in order of their first row.
    what : str, default="the training set"
        Its name, for messages.
    """
    if labels is None:
        raise DataError(f"{what} requires y to be passed, but the target y is None: give labels")
    groups = read_queries(qid, table.shape[0], what)
    try:
        values = as_floats(labels, "y")
        if len(values) != groups.n_rows:
            raise DataError(f"y has {len(values)} entries, but there are {groups.n_rows} rows")
        data = RankingData.from_arrays(values, qid=qid, weight=weight)
    except DataError as error:
        raise type(error)(f"{what}: {error}") from error
    order = groups.row_order
    return Part(table if order is None else take_rows(table, order), data)


def safe_names(names: list[str]) -> list[str]:
    """Return column names that both boosters take as they are, all different.

    Examples
    --------
    >>> safe_names(["a b", "a_b", "c"])
    ['a_b', 'a_b_1', 'c']
    """
    made: list[str] = []
    for number, name in enumerate(names):
        plain = _UNSAFE.sub("_", name)
        made.append(plain if plain not in made else f"{plain}_{number}")
    return made


def check_names(what: str, own: list[str] | None, known: list[str] | None) -> None:
    """Raise unless columns have the names of the training, in its order.

    LightGBM goes by position alone; a table without names is taken as it is.
    """
    if own is not None and known is not None and own != known:
        raise DataError(
            f"the columns of {what} are not those of the training: got {', '.join(own)}; expected "
            f"{', '.join(known)}, in this order"
        )


def named_sets(
    sets: Any, qids: Any, weights: Any, names: Sequence[str] | None
) -> dict[str, tuple[Any, Any, Any]]:
    """Return evaluation sets by name; one set may be given without a list around it."""
    if sets is None:
        return {}
    if isinstance(sets, tuple) and len(sets) == 2 and not isinstance(sets[0], tuple):
        sets, qids = [sets], [qids]
        weights = None if weights is None else [weights]
    count = len(sets)
    qids = [None] * count if qids is None else list(qids)
    weights = [None] * count if weights is None else list(weights)
    names = [f"valid_{number}" for number in range(count)] if names is None else list(names)
    for what, entries in (("eval_qid", qids), ("eval_sample_weight", weights), ("names", names)):
        if len(entries) != count:
            raise DataError(f"{what} has {len(entries)} entries for {count} evaluation sets")
    if not all(isinstance(each, tuple | list) and len(each) == 2 for each in sets):
        raise DataError("eval_set must be (X, y) or a list of (X, y)")
    if len(set(names)) != count:
        raise DataError(f"evaluation sets need different names, got {', '.join(names)}")
    return dict(zip(names, zip(sets, qids, weights, strict=True), strict=True))
