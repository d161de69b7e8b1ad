"""The rows of a comparison: read from files, arrays or frames, and split by query."""

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.columns import id_texts
from gbmrank.data.demonstration import FEATURES, DemoData, demo_data
from gbmrank.data.queries import RankingData
from gbmrank.data.readers import (
    Header,
    Limits,
    RankingFile,
    read_column,
    read_csv,
    read_letor,
    read_parquet,
    table_format,
)
from gbmrank.data.readers.frames import is_frame, read_frame
from gbmrank.data.readers.text import PathLike, quoted
from gbmrank.data.tables import column_names, read_table, reject_sparse
from gbmrank.errors import ConfigError, DataError, ParameterError
from gbmrank.types import FloatArray, IntArray

__all__ = ["FORMATS", "Reading", "Source", "Split", "check_split", "cut", "judged", "read_source"]

FORMATS = ("letor", "csv", "parquet")
"""Of files."""
PARTS = ("train", "valid", "test")
"""Names of given splits, in the order of their numbers."""
_TRAIN, _VALID, _TEST = range(len(PARTS))
_FOLDS, _VALIDATION = 0, 1  # streams of random numbers
_TITLES = {
    "letor": "LETOR, which has no columns (--format csv says otherwise)",
    "csv": "CSV",
    "parquet": "Parquet",
}
_USED = {
    "letor": ("zero_based",),
    "csv": ("label", "qid", "delimiter"),
    "parquet": ("label", "qid"),
}
_OPTIONS = {
    "label": "the column of labels (label, --label-column)",
    "qid": "the column of query ids (qid, --qid-column)",
    "format": "--format",
    "delimiter": "--delimiter",
    "zero_based": "--zero-based",
}
_SIZES_SUFFIX = ".query"  # LightGBM's name for a file of rows per query
_SHOWN_NAMES = 8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How files and frames are read."""

    form: str | None = None  # guessed from a file's name, LETOR where that says nothing
    columns: Header = field(default_factory=Header)
    features: Sequence[str] | None = None  # by column or by LETOR index
    delimiter: str | None = None
    zero_based: bool = False  # the first LETOR feature has index 0
    limits: Limits = field(default_factory=Limits)
    names: Mapping[str, str] = field(default_factory=dict)  # of files, in titles and ids

    def __post_init__(self) -> None:
        columns = replace(self.columns, features=self.features)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "features", columns.features)

    def check_options(self, what: str, used: Collection[str] = ()) -> None:
        """Raise ConfigError for an option that is set and would silently do nothing."""
        given = {
            "label": self.columns.label,
            "qid": self.columns.qid,
            "format": self.form,
            "delimiter": self.delimiter,
            "zero_based": self.zero_based or None,
        }
        for name, value in given.items():
            if value is not None and name not in used:
                raise ConfigError(f"{_OPTIONS[name]} has no meaning for {what}; leave it out")


class Split(NamedTuple):
    """Numbers of the queries of each part, sorted."""

    train: IntArray
    valid: IntArray
    test: IntArray


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Source:
    """Rows to compare on, in query order."""

    title: str
    X: npt.NDArray[Any]
    data: RankingData
    feature_names: tuple[str, ...] = ()
    by_index: bool = False  # the names are indices of LETOR
    parts: IntArray | None = None  # number in PARTS of each query; None: folds are to be cut
    gain: FloatArray | None = None  # expected, of each row, where the truth is known
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

    def label_ends(self) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and the largest label of each query."""
        starts, labels = self.data.groups.offsets[:-1], self.data.labels
        return np.minimum.reduceat(labels, starts), np.maximum.reduceat(labels, starts)

    def leakage(self) -> str | None:
        """Say that queries are in more than one given part, if there are any."""
        if self.parts is None:
            return None
        shared = _repeated(self.ids)
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
    """Read data in any of the forms that a comparison takes."""
    reading = reading or Reading()
    if data is None:
        data = demo_data()
    if isinstance(data, Source):
        return data
    reading = replace(reading, names=_distinct_names(_paths(data)))
    source = _joined(data, reading) if isinstance(data, Mapping) else _one(data, reading)
    if reading.features is not None:
        source = _selected(source, reading.features)
    if not source.X.shape[0] or not source.X.shape[1]:
        raise DataError(
            f"{source.title}: {source.X.shape[0]} rows and {source.X.shape[1]} features; a "
            "comparison needs both"
        )
    return source


def check_split(source: Source, folds: int) -> None:
    """Raise when queries cannot be split so that every part has one."""
    n_queries, parts = source.n_queries, source.parts
    if parts is not None:
        if not (parts == _VALID).any() and (parts == _TRAIN).sum() < 2:
            raise DataError(
                "train has 1 query, and one at least is needed to validate; give a valid part too, "
                "or more queries"
            )
        return
    if folds < 2:
        raise ParameterError(f"folds must be at least 2, got {folds}")
    if folds > n_queries or n_queries - -(-n_queries // folds) < 2:
        raise DataError(
            f"{n_queries} queries cannot be cut into {folds} folds with queries left to learn from "
            "and to validate; give more queries, or splits of your own"
        )


def cut(
    n_queries: int, parts: IntArray | None, *, folds: int, share: float, at: tuple[int, int]
) -> Split:
    """Return the queries of one run.

    A fold is judged; a share of the other queries, drawn anew for every seed, validates for
    early stopping. Given parts stay as they are; without a given ``valid`` a share of
    ``train`` validates. All systems get the same queries. ``at`` is the seed and the fold.

    >>> cut(6, None, folds=3, share=0.25, at=(0, 1)).test
    array([4, 5])
    """
    seed, fold = at
    if parts is None:
        order = np.random.default_rng(_FOLDS).permutation(n_queries)
        number = np.empty(n_queries, dtype=np.int64)
        number[order] = np.arange(n_queries) * folds // n_queries
        rest, test = np.flatnonzero(number != fold), np.flatnonzero(number == fold)
    else:
        test = np.flatnonzero(parts == _TEST)
        rest = np.flatnonzero(parts == _TRAIN)
        valid = np.flatnonzero(parts == _VALID)
        if len(valid):
            return Split(rest, valid, test)
    drawn = np.random.default_rng([seed, fold, _VALIDATION]).permutation(rest)
    n_valid = min(max(round(share * len(rest)), 1), len(rest) - 1)
    return Split(np.sort(drawn[n_valid:]), np.sort(drawn[:n_valid]), test)


def judged(n_queries: int, parts: IntArray | None) -> IntArray:
    """Return the numbers of all queries that some run judges."""
    return np.arange(n_queries) if parts is None else np.flatnonzero(parts == _TEST)


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
        few = [*names[:_SHOWN_NAMES], *(["..."] if len(names) > _SHOWN_NAMES else [])]
        raise ConfigError(
            f"{source.title} has no feature {unknown[0]!r}; there are {len(names)}: "
            f"{', '.join(few)}"
        )
    twice = next((name for name in wanted if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"{source.title} has several features called {twice!r}; rename them")
    at = [names.index(name) for name in wanted]
    return replace(source, X=np.ascontiguousarray(source.X[:, at]), feature_names=wanted)


def _paths(data: Any) -> list[PathLike]:
    """Return every path that is anywhere in the data."""
    if isinstance(data, str | os.PathLike):
        return [data]
    parts = data.values() if isinstance(data, Mapping) else data if type(data) is list else ()
    return [path for part in parts for path in _paths(part)]


def _one(data: Any, reading: Reading) -> Source:
    if isinstance(data, DemoData):
        reading.check_options("the demonstration data")
        return Source(
            title="demonstration data",
            X=data.X,
            data=RankingData.from_arrays(data.labels, qid=data.qid),
            feature_names=FEATURES,
            gain=data.expected_gain,
        )
    if isinstance(data, str | os.PathLike):
        data = [data]
    if isinstance(data, list) and data and all(isinstance(p, str | os.PathLike) for p in data):
        return _read_files(data, reading)
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
        f"the demonstration; got {type(data).__name__}"
    )


def _from_file(file: RankingFile, title: str) -> Source:
    if file.X is None or file.X.shape[1] == 0:
        raise DataError(f"{title} has no features, so there is nothing to learn from")
    if file.qid is None:
        raise DataError(
            f"{title} has no column of query ids under a usual name (qid, query_id, topic); name "
            "one with Header(qid=...) or --qid-column"
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
    reject_sparse(features, "X")
    names = column_names(features)
    table = read_table(features if names is None else np.asarray(features))
    if table.dtype not in (np.float32, np.float64):
        table = table.astype(np.float64)
    rows = RankingData.from_arrays(labels, qid=qid)
    if len(table) != rows.groups.n_rows:
        raise DataError(f"there are {len(table)} rows of features and {rows.groups.n_rows} labels")
    return Source(
        title="arrays", X=rows.groups.arrange(table), data=rows, feature_names=tuple(names or ())
    )


def _joined(data: Mapping[str, Any], reading: Reading) -> Source:
    """Put given parts below each other; equal ids in two parts stay two queries."""
    unknown = [key for key in data if key not in PARTS]
    if unknown or not {"train", "test"} <= set(data):
        raise ConfigError(
            f"given splits are train, test and, if there is one, valid; got "
            f"{', '.join(map(repr, data)) or 'none'}"
        )
    parts = {name: _one(data[name], reading) for name in PARTS if data.get(name) is not None}
    numbers = [np.full(part.n_queries, PARTS.index(name)) for name, part in parts.items()]
    sizes = np.concatenate([part.data.groups.sizes for part in parts.values()])
    labels = np.concatenate([part.data.labels for part in parts.values()])
    joined = RankingData.from_arrays(labels, group=sizes)
    ids = np.concatenate([part.ids for part in parts.values()])
    return replace(
        _stacked([replace(part, title=name) for name, part in parts.items()]),
        title=", ".join(dict.fromkeys(part.title for part in parts.values())),
        data=replace(joined, groups=replace(joined.groups, ids=ids)),
        parts=np.concatenate(numbers).astype(np.int64),
        gain=None,
    )


def _read_files(paths: Sequence[PathLike], reading: Reading) -> Source:
    """Read files and put their rows below each other; equal query ids are one query."""
    names = [reading.names[os.fspath(path)] for path in paths]
    files = [
        _from_file(_read(path, reading), name) for path, name in zip(paths, names, strict=True)
    ]
    if len(files) == 1:
        return files[0]
    stacked = _stacked(files)
    labels = np.concatenate([file.data.labels for file in files])
    ids = [file.data.groups.spread(file.ids) for file in files]
    rows = RankingData.from_arrays(labels, qid=np.concatenate(ids))
    shared = _repeated(np.concatenate([file.ids for file in files]))
    note = (
        f"{len(shared)} query ids, such as {quoted(min(shared, default=''))}, are in several "
        "files; rows with the same id were taken for one query"
    )
    return replace(
        stacked,
        title=", ".join(names),
        X=rows.groups.arrange(stacked.X),
        data=rows,
        notes=(*stacked.notes, *([note] if shared else [])),
    )


def _repeated(ids: npt.NDArray[np.str_]) -> list[str]:
    known, count = np.unique(ids, return_counts=True)
    return [str(one) for one in known[count > 1]]


def _read(path: PathLike, reading: Reading) -> RankingFile:
    form = reading.form or table_format(path) or "letor"
    if form not in FORMATS:
        raise ConfigError(f"format must be one of {', '.join(FORMATS)}; got {form!r}")
    columns, limits = reading.columns, reading.limits
    reading.check_options(f"{quoted(path)}, read as {_TITLES[form]}", ("format", *_USED[form]))
    if form == "parquet":
        file = read_parquet(path, columns, limits=limits)
    elif form == "csv":
        file = read_csv(path, columns, delimiter=reading.delimiter, limits=limits)
    else:
        file = read_letor(path, zero_based=reading.zero_based, need_qid=False, limits=limits)
    return _with_queries(file, path, reading)


def _with_queries(file: RankingFile, path: PathLike, reading: Reading) -> RankingFile:
    """Return a file that has query ids, from LightGBM's file of sizes if need be."""
    sizes_path = Path(str(path).removesuffix(".gz") + _SIZES_SUFFIX)
    if file.qid is not None:
        note = f"{quoted(path)} has query ids, so {sizes_path.name} beside it was not read"
        return replace(file, notes=(*file.notes, note)) if sizes_path.exists() else file
    if not sizes_path.exists():
        raise DataError(
            f"{quoted(path)} has no query ids: LETOR lines need qid:..., a table a column that "
            f"--qid-column names, or a file {sizes_path.name} has the rows per query, one number "
            "a line"
        )
    sizes = read_column(sizes_path, reading.limits)
    if sizes.sum() != file.n_rows or (sizes < 1).any() or (sizes != np.floor(sizes)).any():
        raise DataError(
            f"{quoted(sizes_path)} must hold whole numbers from 1 that sum to {file.n_rows}, the "
            f"rows of {quoted(path)}; they sum to {sizes.sum():g}"
        )
    numbers = np.repeat(np.arange(len(sizes)), sizes.astype(np.int64))
    stem = reading.names[os.fspath(path)]
    return replace(
        file,
        qid=np.array([f"{stem}:{number}" for number in numbers]),
        notes=(*file.notes, f"queries of {stem} were read from {sizes_path.name}"),
    )


def _stacked(tables: Sequence[Source]) -> Source:
    """Put features below each other; LETOR files, and they alone, may leave out the last ones."""
    by_index = all(table.by_index for table in tables)
    model = max(
        tables, key=lambda one: len(one.feature_names) if by_index else bool(one.feature_names)
    )
    for table in tables:
        own = table.feature_names
        if own and own != (model.feature_names[: len(own)] if by_index else model.feature_names):
            raise DataError(_difference(model, table))
    widths = [table.X.shape[1] for table in tables]
    if len(set(widths)) > 1 and not by_index:
        listed = (f"{table.title} {width}" for table, width in zip(tables, widths, strict=True))
        raise DataError(f"the parts have different numbers of features: {', '.join(listed)}")
    blocks = [np.pad(table.X, ((0, 0), (0, max(widths) - table.X.shape[1]))) for table in tables]
    notes = dict.fromkeys(note for table in tables for note in table.notes)
    return replace(model, X=np.concatenate(blocks), by_index=by_index, notes=tuple(notes))


def _difference(one: Source, other: Source) -> str:
    differ = sorted(set(one.feature_names) ^ set(other.feature_names))
    pair = f"{one.title} and {other.title} have"
    if not differ:
        return (
            f"{pair} the same feature columns in another order; put them into one, which for files "
            "and tables is done by naming all of them (features, --feature)"
        )
    return f"{pair} different feature columns: {', '.join(map(quoted, differ[:5]))}"


def _distinct_names(paths: Sequence[PathLike]) -> dict[str, str]:
    """Return for each path its name, with the folders below a common one where names repeat.

    >>> list(_distinct_names(["/a/x.txt", "/b/x.txt"]).values())
    ['a/x.txt', 'b/x.txt']
    """
    whole = {os.fspath(path): Path(os.path.abspath(path)) for path in paths}
    files = set(whole.values())
    if len({file.name for file in files}) == len(files):
        return {path: file.name for path, file in whole.items()}
    common = os.path.commonpath(files)
    return {path: file.relative_to(common).as_posix() for path, file in whole.items()}
