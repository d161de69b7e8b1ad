"""What a zero of the features is to XGBoost.

In a dense table it is a number. In a sparse matrix it is missing where nothing is stored, and a
number where a 0 is. LightGBM reads zeros as zeros in either form.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.backends.tables import as_array, is_sparse
from gbmrank.errors import DataError

__all__ = ["parts_to_score", "with_zeros", "zeros_of"]

_CELLS_AT_ONCE = 1 << 22


def zeros_of(table: Any, backend: str | None) -> str | None:
    """Return what the zeros of a training set are to the booster.

    Parameters
    ----------
    table : table
        As :func:`gbmrank.backends.tables.read_table` returns it.
    backend : {"lightgbm", "xgboost"} or None
        The booster, if one is to read it.

    Returns
    -------
    {"numbers", "missing", "both"} or None
        None where the form of a table makes no difference.
    """
    if backend != "xgboost":
        return None
    if not is_sparse(table):
        return "numbers"
    if table.shape[0] == 0:  # stands for rows that lie elsewhere
        return "both"
    if table.nnz == table.shape[0] * table.shape[1]:
        return "numbers"
    return "missing" if np.all(table.data) else "both"


def with_zeros(table: Any, zeros: str | None, what: str) -> Any:
    """Return a table in the form in which its zeros are what those of the training were.

    Parameters
    ----------
    table : table
        As :func:`gbmrank.backends.tables.read_table` returns it.
    zeros : {"numbers", "missing", "both"} or None
        What zeros of the training were; None leaves the table as it is.
    what : str
        Its name, for messages.

    Raises
    ------
    DataError
        For a dense table with zeros, where those of the training were both.
    """
    if zeros is None or is_sparse(table) == (zeros != "numbers"):
        return table
    values = as_array(table)
    if zeros == "numbers":
        return values
    if zeros == "missing":
        return _sparse(values)
    if np.any(values == 0):
        raise DataError(
            f"{what} is dense and has zeros; in the sparse features of the training XGBoost took "
            "zeros for missing where nothing was stored, and for numbers where a 0 was: give "
            f"{what} as a sparse matrix, with a 0 stored where it is a number"
        )
    return table


def parts_to_score(table: Any, zeros: str | None, what: str) -> Iterator[Any]:
    """Yield the rows of a table with zeros as in the training, few at once where they fill up.

    Parameters are those of :func:`with_zeros`.
    """
    if zeros != "numbers" or not is_sparse(table):
        yield with_zeros(table, zeros, what)
        return
    with np.errstate(over="ignore"):
        if np.any(np.isinf(table.data.astype(np.float32))):
            yield table  # refused by XGBoost, which is to count the rows of the whole
            return
    step = max(1, _CELLS_AT_ONCE // table.shape[1])
    for start in range(0, table.shape[0], step):
        yield with_zeros(table[start : start + step], zeros, what)


def _sparse(values: npt.NDArray[Any]) -> Any:
    from scipy.sparse import csr_matrix

    kept = values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)
    return csr_matrix(kept)
