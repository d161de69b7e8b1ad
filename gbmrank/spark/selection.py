"""Columns of a Spark table, as tasks and the driver read them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.ml.functions import vector_to_array
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from gbmrank.errors import DataError


def features_column(table: Any, features: str | Sequence[str]) -> tuple[Any, list[str] | None]:
    """Return one column of arrays for all features, and their names if they are columns.

    ``features`` are names of columns of numbers, or of one column of vectors or arrays.
    """
    names = [features] if isinstance(features, str) else list(features)
    kinds = [_type_of(table, name) for name in names]
    if len(names) == 1 and isinstance(kinds[0], VectorUDT):
        return vector_to_array(sf.col(_quoted(names[0]))), None
    if len(names) == 1 and isinstance(kinds[0], st.ArrayType):
        return sf.col(_quoted(names[0])), None
    for name, kind in zip(names, kinds, strict=True):
        if not isinstance(kind, st.NumericType | st.BooleanType):
            raise DataError(
                f"the feature {name!r} is of type {kind.simpleString()}; features are columns of "
                "numbers, or one column of vectors: encode it, as pyspark.ml.feature does"
            )
    single = all(isinstance(kind, st.FloatType) for kind in kinds)
    kind = "float" if single else "double"
    return sf.array(*(sf.col(_quoted(name)).cast(kind) for name in names)), names


def selected(table: Any, columns: Mapping[str, Any]) -> Any:
    """Return columns under fixed names, given by column or by name; None is left out."""
    made = []
    for name, one in columns.items():
        if isinstance(one, str):
            _type_of(table, one)
            one = sf.col(_quoted(one))  # noqa: PLW2901
        if one is not None:
            kind = {"label": "double", "weight": "double", "valid": "boolean"}.get(name)
            made.append((one if kind is None else one.cast(kind)).alias(name))
    return table.select(*made)


def matrix(column: pa.ChunkedArray, what: str) -> npt.NDArray[Any]:
    """Return a column of arrays as a matrix; missing numbers are NaN."""
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    lengths = {int(n) for chunk in chunks for n in np.unique(np.diff(chunk.offsets.to_numpy()))}
    if column.null_count or len(lengths) > 1:
        raise DataError(
            f"{what}: vectors of features are missing or differ in length "
            f"({sorted(lengths)[:5]}); give every row one of the same length"
        )
    # Chunk by chunk: one list array of Arrow has at most 2^31 numbers.
    flat = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in chunks]
    return np.concatenate([one.reshape(len(at), -1) for one, at in zip(flat, chunks, strict=True)])


def collected(rows: Any) -> pa.Table:
    """Return a small table to the driver; Spark 3 does not have toArrow."""
    return rows.toArrow() if hasattr(rows, "toArrow") else pa.Table.from_pandas(rows.toPandas())


def array(table: pa.Table, name: str) -> Any:
    """Return a column as an array, or None if the table does not have it."""
    return table[name].to_numpy() if name in table.column_names else None


def _type_of(table: Any, name: str) -> Any:
    if name not in table.columns:
        raise DataError(f"the table has no column {name!r}; it has {', '.join(table.columns)}")
    return table.schema[name].dataType


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
