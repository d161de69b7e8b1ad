"""Where the rows come from: files, arrays, frames, or the built-in demonstration."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from gbmrank.backends.tables import refuse_sparse, unmasked
from gbmrank.data.columns import id_texts
from gbmrank.data.demonstration import FEATURES, DemoData, demo_data
from gbmrank.data.queries import RankingData
from gbmrank.data.readers import RankingFile
from gbmrank.data.readers.frames import is_frame, read_frame
from gbmrank.data.readers.text import PathLike
from gbmrank.errors import ConfigError, DataError
from gbmrank.experiments.files import Features, Reading, distinct_names, read_files, stack_features
from gbmrank.types import FloatArray, IntArray

__all__ = ["PARTS", "Source", "read_source"]

PARTS = ("train", "valid", "test")
"""Names of given splits, in the order of their numbers."""
_SHOWN_NAMES = 8


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Source:
    """Rows to compare on, in query order.

    Parameters
    ----------
    title : str
        Name of the data.
    X : array of shape (n_rows, n_features)
        Features; NaN is a missing value.
    data : RankingData
        Labels and queries.
    feature_names : tuple of str
        One per column.
    by_index : bool
        Whether these are indices of LETOR.
    parts : array of shape (n_queries,) or None
        Number in ``PARTS`` of each query; None where folds are to be cut.
    gain : array of shape (n_rows,) or None
        Expected gain of each row, where the truth is known.
    notes : tuple of str
        What a person should know about the data.
    """

    title: str
    X: npt.NDArray[Any]
    data: RankingData
    feature_names: tuple[str, ...] = ()
    by_index: bool = False
    parts: IntArray | None = None
    gain: FloatArray | None = None
    notes: tuple[str, ...] = ()

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.data.groups.n_queries

    @property
    def ids(self) -> npt.NDArray[np.str_]:
        """Ids of the queries as text, shape (n_queries,)."""
        ids = self.data.groups.ids
        return id_texts(np.arange(self.n_queries) if ids is None else ids)

    def overlap(self) -> list[str]:
        """Return the ids of queries that are in more than one given part."""
        if self.parts is None:
            return []
        known, count = np.unique(self.ids, return_counts=True)
        return [str(one) for one in known[count > 1]]

    def leakage(self) -> str | None:
        """Say that queries are in more than one given part, if there are any."""
        shared = self.overlap()
        if not shared:
            return None
        return (
            f"{len(shared)} query ids, such as {shared[0]!r}, are in more than one of the given "
            "splits, so results may be too good"
        )

    def digest(self) -> str:
        """Return a hash of all that a training sees."""
        columns = (self.X, self.data.labels, self.data.groups.sizes, self.parts, self.gain)
        state = hashlib.sha256()
        for column in columns:
            given = np.zeros(0) if column is None else np.ascontiguousarray(column)
            state.update(f"{given.dtype.str}{given.shape}".encode())
            state.update(given.data)
        state.update("\0".join(self.ids).encode("utf-8", "surrogatepass"))
        return state.hexdigest()


def read_source(data: Any, reading: Reading | None = None) -> Source:
    """Read data in any of the forms that a comparison takes.

    Parameters
    ----------
    data : None, path, list of paths, (X, y, qid), frame, DemoData, RankingFile or mapping
        None is the demonstration data. A mapping has the keys ``train`` and ``test``, and
        ``valid`` if there is one, each with any of the other forms.
    reading : Reading, optional
        How files and frames are read: format and columns.
    """
    reading = reading or Reading()
    if data is None:
        data = demo_data()
    if isinstance(data, Source):
        return data
    reading = replace(reading, names=distinct_names(_paths(data)))
    source = _joined(data, reading) if isinstance(data, Mapping) else _one(data, reading)
    if reading.features is not None:
        source = _selected(source, reading.features)
    if not source.X.shape[0] or not source.X.shape[1]:
        raise DataError(
            f"{source.title}: {source.X.shape[0]} rows and {source.X.shape[1]} features; a "
            "comparison needs both"
        )
    return source


def _selected(source: Source, chosen: Sequence[str]) -> Source:
    """Keep the features that are asked for; a table was read with these alone."""
    wanted, names = tuple(chosen), source.feature_names
    if wanted == names:
        return source
    if not names:
        raise ConfigError(
            f"features are chosen by name, and {source.title} have none; leave features out, or "
            "give the columns that are wanted"
        )
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise ConfigError(
            f"{source.title} has no feature {unknown[0]!r}; there are {len(names)}: "
            f"{_listed(names)}"
        )
    twice = next((name for name in wanted if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"{source.title} has several features called {twice!r}; rename them")
    at = [names.index(name) for name in wanted]
    return replace(source, X=np.ascontiguousarray(source.X[:, at]), feature_names=wanted)


def _listed(names: tuple[str, ...]) -> str:
    few = ", ".join(names[:_SHOWN_NAMES])
    return few if len(names) <= _SHOWN_NAMES else f"{few}, ..., {names[-1]}"


def _paths(data: Any) -> list[PathLike]:
    """Return every path that is anywhere in the data."""
    if isinstance(data, str | os.PathLike):
        return [data]
    parts = data.values() if isinstance(data, Mapping) else data if type(data) is list else ()
    return [path for part in parts for path in _paths(part)]


def _one(data: Any, reading: Reading) -> Source:
    if isinstance(data, DemoData):
        reading.check_options("the demonstration data")
        return _demonstration(data)
    if isinstance(data, str | os.PathLike):
        data = [data]
    if isinstance(data, list) and data and all(isinstance(p, str | os.PathLike) for p in data):
        title = ", ".join(reading.names[os.fspath(path)] for path in data)
        return _from_file(read_files(data, reading), title)
    if isinstance(data, RankingFile):
        reading.check_options("a file that is read already")
        return _from_file(data, "a file")
    if isinstance(data, tuple) and len(data) == 3:
        reading.check_options("arrays")
        return _from_arrays(data)
    if is_frame(data):
        reading.check_options("a table in memory", ("label", "qid"))
        return _from_file(read_frame(data, reading.columns), "a table")
    raise DataError(
        "data is a path or a list of paths, a tuple (X, y, qid), a table with named columns (a "
        "lazy one needs its collect() or compute()), a mapping with train and test, or None for "
        f"the demonstration; got {_described(data)}"
    )


def _described(data: Any) -> str:
    name = type(data).__name__
    return f"{name} of {len(data)}" if isinstance(data, tuple | list) else name


def _demonstration(data: DemoData) -> Source:
    return Source(
        title="demonstration data",
        X=data.X,
        data=RankingData.from_arrays(data.labels, qid=data.qid),
        feature_names=FEATURES,
        gain=data.expected_gain,
    )


def _from_file(file: RankingFile, title: str) -> Source:
    if file.X is None or file.X.shape[1] == 0:
        raise DataError(f"{title} has no features, so there is nothing to learn from")
    if file.qid is None:
        raise DataError(
            f"{title} has no column of query ids under a usual name (qid, query_id, topic); name "
            "one with Columns(qid=...) or --qid-column"
        )
    rows = RankingData.from_arrays(file.labels, qid=file.qid)
    notes = list(file.notes)
    if rows.groups.row_order is not None:
        notes.append("rows of a query are not all adjacent; they were put together by their id")
    return Source(
        title=title,
        X=rows.groups.arrange(file.X),
        data=rows,
        feature_names=file.feature_names,
        by_index=file.by_index,
        notes=tuple(notes),
    )


def _from_arrays(data: tuple[Any, Any, Any]) -> Source:
    features, labels, qid = data
    refuse_sparse(features, "X")
    names = tuple(map(str, features.columns)) if is_frame(features) else ()
    try:
        table = unmasked(features)
        if table.dtype.kind in "cmM":
            raise TypeError(f"they hold {table.dtype}")
        if table.dtype not in (np.float32, np.float64):  # others, and those of foreign byte order
            table = table.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"features must be a table of numbers: {error}; encode text and categories first"
        ) from error
    if table.ndim != 2:
        raise DataError(f"features must be rows by columns, got an array of shape {table.shape}")
    rows = RankingData.from_arrays(labels, qid=qid)
    if len(table) != rows.groups.n_rows:
        raise DataError(f"there are {len(table)} rows of features and {rows.groups.n_rows} labels")
    return Source(title="arrays", X=rows.groups.arrange(table), data=rows, feature_names=names)


def _joined(data: Mapping[str, Any], reading: Reading) -> Source:
    """Put given parts below each other; equal ids in two parts stay two queries."""
    unknown = [key for key in data if key not in PARTS]
    if unknown or not {"train", "test"} <= set(data):
        raise ConfigError(
            f"given splits are train, test and, if there is one, valid; got "
            f"{', '.join(map(repr, data)) or 'none'}"
        )
    parts = {name: _one(data[name], reading) for name in PARTS if data.get(name) is not None}
    stacked = stack_features(
        [Features(name, p.X, p.feature_names, p.by_index) for name, p in parts.items()]
    )
    numbers = [np.full(part.n_queries, PARTS.index(name)) for name, part in parts.items()]
    sizes = np.concatenate([part.data.groups.sizes for part in parts.values()])
    joined = RankingData.from_arrays(
        np.concatenate([part.data.labels for part in parts.values()]), group=sizes
    )
    ids = np.concatenate([part.ids for part in parts.values()])
    return Source(
        title=", ".join(dict.fromkeys(part.title for part in parts.values())),
        X=stacked.X,
        data=replace(joined, groups=replace(joined.groups, ids=ids)),
        feature_names=stacked.names,
        by_index=stacked.by_index,
        parts=np.concatenate(numbers).astype(np.int64),
        notes=tuple(dict.fromkeys(note for part in parts.values() for note in part.notes)),
    )
