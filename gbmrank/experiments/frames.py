"""Tables in memory: pandas, polars, pyarrow."""

from typing import Any

import numpy as np

from gbmrank.data import as_floats
from gbmrank.errors import DataError
from gbmrank.readers import Columns, RankingFile
from gbmrank.readers.header import check_header
from gbmrank.readers.text import quoted

__all__ = ["is_frame", "read_frame"]


def is_frame(data: Any) -> bool:
    """Whether this is a table with named columns; imports no frame package.

    Lazy tables are none: their columns have no values yet.
    """
    if hasattr(type(data), "collect") or hasattr(type(data), "compute"):
        return False
    names = getattr(data, "column_names", None)  # pyarrow
    return names is not None or (hasattr(data, "columns") and hasattr(data, "__getitem__"))


def read_frame(frame: Any, columns: Columns) -> RankingFile:
    """Read labels, query ids and features of a table.

    Raises
    ------
    DataError
        For a column that is not there or there twice (columns 1 and ``"1"`` have one name), or
        a feature that is not a number.
    """
    header = [str(name) for name in getattr(frame, "column_names", None) or frame.columns]
    check_header(header, "the table")
    parts = columns.found(header, "the table")
    names = columns.feature_names(header, parts, "the table")
    at = dict(zip(header, getattr(frame, "column_names", None) or frame.columns, strict=True))
    features = [_feature(frame[at[name]], name) for name in names]
    return RankingFile(
        labels=as_floats(frame[at[parts["label"]]], "labels", exact=True),
        qid=np.asarray(frame[at[parts["qid"]]]) if "qid" in parts else None,
        scores=as_floats(frame[at[parts["score"]]], "scores") if "score" in parts else None,
        X=np.column_stack(features) if features else None,
        feature_names=names,
        notes=columns.notes(parts, names),
    )


def _feature(column: Any, name: str) -> Any:
    try:
        return as_floats(column, f"column {quoted(name)}")
    except DataError as error:
        raise DataError(f"{error}; leave it out of features, or encode it as numbers") from error
