"""The rows of a comparison: read from files, arrays or frames, and split by query."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.columns import as_floats, id_texts, one_column
from gbmrank.data.demonstration import FEATURES, DemoData, demo_data
from gbmrank.data.queries import RankingData
from gbmrank.data.readers import (
    ROW_FORMATS,
    FileOptions,
    Header,
    RankingFile,
    guess_format,
    read_column,
    read_rows,
)
from gbmrank.data.readers.frames import is_frame, matching, read_frame
from gbmrank.data.readers.text import PathLike, quoted
from gbmrank.data.tables import (
    Categories,
    categorical_columns,
    category_codes,
    column_names,
    columns_by_name,
    read_table,
    reject_sparse,
)
from gbmrank.errors import ConfigError, DataError
from gbmrank.experiments.splits import PARTS, Scheme, read_times
from gbmrank.types import FloatArray, IntArray

_SHOWN_NAMES = 8
_SCORES, _GOAL = "scores:", "goal:"
_TEST = PARTS.index("test")
_COLUMNS = ("position", "truth")  # stored with the rows under these names
_FILL = {"weight": 1.0}  # for rows in parts that need no value; NaN otherwise


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Source:
    """Rows to compare on, in query order."""

    title: str
    X: npt.NDArray[Any]
    data: RankingData
    feature_names: tuple[str, ...] = ()
    by_index: bool = False  # the names are indices of LETOR
    parts: IntArray | None = None  # number in PARTS of each query; None: use folds
    gain: FloatArray | None = None  # expected gain of each row, if the truth is known
    categories: Mapping[int, Categories] = field(default_factory=dict)  # by column of X
    times: npt.NDArray[Any] | None = None  # earliest time of each query; None: random folds
    scores: Mapping[str, FloatArray] = field(default_factory=dict)  # of existing models
    origins: Mapping[str, str] = field(default_factory=dict)  # where further columns come from
    roles: Mapping[str, str] = field(default_factory=dict)  # names of columns of a table
    left_out: tuple[str, ...] = ()  # columns that are no features in this part
    rows: IntArray | None = None  # ``numbers``, unless they are 0, 1, 2 ...
    extra: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)  # only while reading
    notes: tuple[str, ...] = ()

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.data.groups.n_queries

    @property
    def numbers(self) -> IntArray:
        """Number of each row in the given data, or in its part."""
        return np.arange(self.data.groups.n_rows) if self.rows is None else self.rows

    @property
    def scheme(self) -> Scheme:
        """Rule by which queries are split."""
        return Scheme(self.n_queries, self.parts, self.times)

    @property
    def ids(self) -> npt.NDArray[np.str_]:
        """Ids of the queries as text, shape (n_queries,)."""
        ids = self.data.groups.ids
        return id_texts(np.arange(self.n_queries) if ids is None else ids)

    def described(self) -> str:
        """Return which columns are label, query id and features."""
        names = list(self.feature_names)
        if len(names) > _SHOWN_NAMES:
            names = [*names[: _SHOWN_NAMES - 1], "...", names[-1]]
        listed = f": {', '.join(names)}" if names else ""
        roles = {"label": "label", "qid": "query id"}
        known = [f"{what} {self.roles[one]}" for one, what in roles.items() if one in self.roles]
        count = self.X.shape[1]
        return ", ".join([*known, f"{count} feature{'s' if count != 1 else ''}{listed}"])

    def label_ends(self) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and the largest label of each query."""
        starts, labels = self.data.groups.offsets[:-1], self.data.labels
        return np.minimum.reduceat(labels, starts), np.maximum.reduceat(labels, starts)

    def leakage(self) -> str | None:
        """Return a message if query ids are in more than one predefined split."""
        shared = [] if self.parts is None else _repeated(self.ids)
        if not shared:
            return None
        return (
            f"{len(shared)} query ids, such as {shared[0]!r}, are in more than one of the given "
            "splits, so results may be too optimistic"
        )

    def digest(self) -> str:
        """Return a hash of all data that a training uses."""
        columns = (self.X, self.data.labels, self.data.groups.sizes, self.parts, self.gain)
        # Columns that 0.1 did not have are hashed only if present, so its folders can be resumed.
        added = {"weight": self.data.weight, **self.data.columns, "time": self.times}
        added |= {scores_key(name): column for name, column in self.scores.items()}
        named = {name: column for name, column in added.items() if column is not None}
        state = hashlib.sha256()
        for name, column in (*(("", one) for one in columns), *named.items()):
            given = np.zeros(0) if column is None else np.ascontiguousarray(column)
            state.update(f"{name}{given.dtype.str}{given.shape}".encode())
            # Times have no buffer; other columns are hashed without a copy.
            state.update(given.tobytes() if given.dtype.kind == "M" else given.data)
        if self.categories:
            state.update(repr(sorted(self.categories.items())).encode("utf-8", "surrogatepass"))
        state.update("\0".join(self.ids).encode("utf-8", "surrogatepass"))
        return state.hexdigest()


def read_source(
    data: Any, options: FileOptions | None = None, further: Mapping[str, Any] | None = None
) -> Source:
    """Read data in any of the supported forms.

    ``further`` has columns by role ("weight", "position", "time", "truth", "scores:NAME",
    "goal:NAME"): the name of one, a file of numbers, an array, or arrays by part.
    """
    options = options or FileOptions(columns=Header(features=None))
    further = further or {}
    named = {key: one for key, one in further.items() if isinstance(one, str)}
    columns = replace(options.columns, columns=named)
    data = demo_data() if data is None else data
    if isinstance(data, Source):
        return data
    read = _joined if isinstance(data, Mapping) else _one
    source = read(data, replace(options, columns=columns), _distinct_names(_paths(data)))
    source = _with_categories(_selected(source, columns), columns.categorical)
    if not source.X.shape[0] or not source.X.shape[1]:
        raise DataError(
            f"{source.title}: {source.X.shape[0]} rows and {source.X.shape[1]} features; a "
            "comparison needs both"
        )
    return _completed(source, further)


def further_columns(
    weight: Any = None,
    position: Any = None,
    time: Any = None,
    scores: Any = None,
    truth: Any = None,
) -> dict[str, Any]:
    """Return the given columns by role."""
    if scores is not None and not isinstance(scores, Mapping):
        raise ConfigError(
            'scores is a mapping from the name of a model to its scores, such as {"production": '
            f'"old_score"}}; got {type(scores).__name__}'
        )
    named = {scores_key(str(name)): one for name, one in (scores or {}).items()}
    given = {"weight": weight, "position": position, "time": time, "truth": truth, **named}
    return {key: one for key, one in given.items() if one is not None}


def scores_key(name: str) -> str:
    """Return the key under which the scores of a model are given.

    >>> scores_key("production")
    'scores:production'
    """
    return f"{_SCORES}{name}"


def goal_key(name: str) -> str:
    """Return the key of the labels of a goal, among further columns and in the data.

    >>> goal_key("margin")
    'goal:margin'
    """
    return f"{_GOAL}{name}"


def _selected(source: Source, columns: Header) -> Source:
    """Select the given features; tables are read with these only."""
    names = source.feature_names
    if source.roles or (columns.features is None and not columns.drop):
        return source
    if not names:
        raise ConfigError(
            f"features are selected by name, but {source.title} have no names; leave features out, "
            "or give only these columns"
        )
    gone = matching(columns.drop, names, source.title)
    wanted = ["*"] if columns.features is None else columns.features
    return _kept(source, [n for n in matching(wanted, names, source.title) if n not in gone])


def _kept(source: Source, wanted: Sequence[str]) -> Source:
    names = source.feature_names
    twice = next((name for name in wanted if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"{source.title} has several features called {twice!r}; rename them")
    at = [names.index(name) for name in wanted]
    kept = {new: source.categories[old] for new, old in enumerate(at) if old in source.categories}
    table = np.ascontiguousarray(source.X[:, at])
    return replace(source, X=table, feature_names=tuple(wanted), categories=kept)


def _with_categories(source: Source, wanted: Sequence[str]) -> Source:
    """Treat the given numeric columns as categorical; strings already are."""
    names, found = source.feature_names, dict(source.categories)
    if wanted and not names:
        raise ConfigError(
            f"categorical features are given by name, but {source.title} have no names; give a "
            "data frame"
        )
    table = source.X
    for name in wanted:
        if names.count(name) != 1:
            raise ConfigError(
                f"{source.title} has {names.count(name)} features called {name!r}; a categorical "
                "feature needs exactly one"
            )
        at = names.index(name)
        if at not in found:
            table = table.copy() if table is source.X else table
            table[:, at], found[at] = category_codes(table[:, at])
    return replace(source, X=table, categories=found)


def _completed(source: Source, given: Mapping[str, Any]) -> Source:
    """Add weights, positions, times and the scores of existing models to the rows."""
    made = {key: _column(source, key, one) for key, one in given.items()}
    data, weight = source.data, made.get("weight")
    columns = {key: made[key] for key in made if key in _COLUMNS or key.startswith(_GOAL)}
    if weight is not None or columns:
        checked = RankingData.from_arrays(
            data.labels, group=data.groups.sizes, weight=weight, columns=columns
        )
        data = replace(data, weight=checked.weight, columns=checked.columns)
    times, notes = made.get("time"), list(source.notes)
    if times is not None:
        if source.parts is not None:
            raise ConfigError(
                "time splits queries into folds, but splits are given; give only one of them"
            )
        each, starts = read_times(times, "time"), data.groups.offsets[:-1]
        times = np.minimum.reduceat(each, starts)
        several = int((np.maximum.reduceat(each, starts) != times).sum())
        if several:
            notes.append(
                f"{several} queries have rows of several times and are ordered by the earliest, so "
                "training rows can be later than the first test query; give such rows separate "
                "query ids"
            )
    return replace(
        source,
        data=data,
        times=times,
        scores={
            key.removeprefix(_SCORES): one for key, one in made.items() if key.startswith(_SCORES)
        },
        origins={key: _origin(one) for key, one in given.items()},
        notes=tuple(notes),
        extra={},
        rows=None,
    )


def _origin(given: Any) -> str:
    if isinstance(given, str):
        return f"column {quoted(given)}"
    return f"file {quoted(given)}" if isinstance(given, os.PathLike) else "an array"


def _column(source: Source, key: str, given: Any) -> npt.NDArray[Any]:
    """Return one value per row, or one weight per query, in the order of the source."""
    what, groups = key.removeprefix(_SCORES), source.data.groups
    if isinstance(given, str):
        return source.extra[key]
    if source.parts is None:
        return _values(key, given, what, source.numbers, groups.sizes)
    by_part = given if isinstance(given, Mapping) else {PARTS[_TEST]: given}
    if not isinstance(given, Mapping) and not key.startswith(_SCORES):
        raise ConfigError(
            f"splits are given, so {what} must be the name of a column or a mapping such as "
            '{"train": ..., "test": ...}'
        )
    made = np.full(groups.n_rows, _FILL.get(key, np.nan))
    for name, one in by_part.items():
        if name not in PARTS or (source.parts != PARTS.index(name)).all():
            raise ConfigError(f"{what} is given for {name!r}, but there is no such split")
        queries = source.parts == PARTS.index(name)
        here, sizes = groups.spread(queries), groups.sizes[queries]
        found = _values(key, one, f"{what} of {name}", source.numbers[here], sizes)
        made[here] = np.repeat(found, sizes) if len(found) != here.sum() else found
    return made


def _values(key: str, given: Any, what: str, rows: IntArray, sizes: IntArray) -> npt.NDArray[Any]:
    """Return given values in the order of the rows; one weight per query is already sorted."""
    if isinstance(given, os.PathLike):
        values: npt.NDArray[Any] = read_column(given)
    else:
        values = one_column(given) if key == "time" else as_floats(given, key, exact=True)
    if len(values) == len(rows):
        return values[rows]
    if key == "weight" and len(values) == len(sizes):
        return values
    also = f", or one per query ({len(sizes)})" if key == "weight" else ""
    raise DataError(f"{what} has {len(values)} entries; give one per row ({len(rows)}){also}")


def _paths(data: Any) -> list[PathLike]:
    """Return all paths in the data, also nested ones."""
    if isinstance(data, str | os.PathLike):
        return [data]
    parts = data.values() if isinstance(data, Mapping) else data if type(data) is list else ()
    return [path for part in parts for path in _paths(part)]


def _one(data: Any, options: FileOptions, names: Mapping[str, str]) -> Source:
    if isinstance(data, DemoData):
        options.check_used("the demonstration data")
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
        return _read_files(data, options, names)
    if isinstance(data, RankingFile):
        options.check_used("a file that is already read")
        return _from_file(data, "a file")
    if isinstance(data, tuple) and len(data) == 3:
        options.check_used("arrays")
        return _from_arrays(data, options.columns.categorical)
    if is_frame(data):
        options.check_used("a table in memory", ("label", "qid", "columns"))
        return _from_file(read_frame(data, options.columns), "a table")
    raise DataError(
        "data must be a path or a list of paths, a tuple (X, y, qid), a table with named columns "
        "(call collect() or compute() on a lazy one), a mapping with train and test, or None for "
        f"the demonstration; got {type(data).__name__}"
    )


def _from_file(file: RankingFile, title: str) -> Source:
    if file.X is None or file.X.shape[1] == 0:
        raise DataError(f"{title} has no features, so there is nothing to learn from")
    if file.qid is None:
        raise DataError(
            f"{title} has no column of query ids under a usual name (qid, query_id, topic); name "
            "one with qid="
        )
    rows = RankingData.from_arrays(file.labels, qid=file.qid)
    notes = list(file.notes)
    if rows.groups.row_order is not None:
        notes.append("the rows of some queries are not adjacent; they were grouped by query id")
    return Source(
        title=title,
        X=rows.groups.arrange(file.X),
        data=rows,
        feature_names=file.feature_names,
        by_index=file.by_index,
        categories={file.feature_names.index(one): found for one, found in file.categories.items()},
        roles=file.roles,
        left_out=file.left_out,
        rows=rows.groups.row_order,
        extra={key: rows.groups.arrange(column) for key, column in file.columns.items()},
        notes=tuple(notes),
    )


def _from_arrays(data: tuple[Any, Any, Any], categorical: Sequence[str]) -> Source:
    features, labels, qid = data
    reject_sparse(features, "X")
    names = column_names(features)
    table, categories = _coded_table(features, names or [], categorical)
    if table.dtype not in (np.float32, np.float64):
        table = table.astype(np.float64)
    rows = RankingData.from_arrays(labels, qid=qid)
    if len(table) != rows.groups.n_rows:
        raise DataError(f"there are {len(table)} rows of features and {rows.groups.n_rows} labels")
    return Source(
        title="arrays",
        X=rows.groups.arrange(table),
        data=rows,
        feature_names=tuple(names or ()),
        categories=categories,
        rows=rows.groups.row_order,
    )


def _coded_table(
    features: Any, names: list[str], wanted: Sequence[str]
) -> tuple[npt.NDArray[Any], dict[int, Categories]]:
    """Return a table as numbers, with codes for the categories of a data frame."""
    kinds = {*categorical_columns(features), *(at for at, one in enumerate(names) if one in wanted)}
    if not kinds:
        return read_table(np.asarray(features) if names else features), {}
    columns = columns_by_name(features) or {}
    made, categories = [], {}
    for at, name in enumerate(names):
        if at in kinds:
            codes, categories[at] = category_codes(columns[name])
            made.append(codes)
        else:
            made.append(as_floats(columns[name], f"column {quoted(name)}"))
    return np.column_stack(made), categories


def _joined(data: Mapping[str, Any], options: FileOptions, names: Mapping[str, str]) -> Source:
    """Concatenate predefined splits; equal ids in two splits stay two queries."""
    unknown = [key for key in data if key not in PARTS]
    if unknown or not {"train", "test"} <= set(data):
        raise ConfigError(
            f"given splits must be train, test and optionally valid; got "
            f"{', '.join(map(repr, data)) or 'none'}"
        )
    parts = {
        name: _one(data[name], _of_part(options, name), names)
        for name in PARTS
        if data.get(name) is not None
    }
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
        rows=np.concatenate([part.numbers for part in parts.values()]),
        gain=None,
    )


def _of_part(options: FileOptions, name: str) -> FileOptions:
    """Return how a split is read: test needs no weights, the others no scores and no truth."""
    free = ("weight",) if name == PARTS[_TEST] else ("truth", _SCORES)
    optional = [key for key in options.columns.columns if key.startswith(free)]
    return replace(options, columns=replace(options.columns, optional=optional))


def _read_files(
    paths: Sequence[PathLike], options: FileOptions, names: Mapping[str, str]
) -> Source:
    """Read files and concatenate their rows; equal query ids are one query."""
    files = []
    for path in paths:
        form = options.form or guess_format(path, options.limits)
        if form not in ROW_FORMATS:
            raise ConfigError(
                f"{quoted(path)} has the format {form}; rows with features are in "
                f"{', '.join(ROW_FORMATS)}"
            )
        file, name = read_rows(path, replace(options, form=form)), names[os.fspath(path)]
        if file.numbered and file.qid is not None:  # the same numbers are other queries elsewhere
            file = replace(file, qid=np.array([f"{name}:{number}" for number in file.qid]))
        files.append(_from_file(file, name))
    if len(files) == 1:
        return files[0]
    stacked = _stacked(files)
    starts = np.cumsum([0, *(file.data.groups.n_rows for file in files)])
    numbers = [start + file.numbers for start, file in zip(starts, files, strict=False)]
    labels = np.concatenate([file.data.labels for file in files])
    ids = [file.data.groups.spread(file.ids) for file in files]
    rows = RankingData.from_arrays(labels, qid=np.concatenate(ids))
    shared = _repeated(np.concatenate([file.ids for file in files]))
    note = (
        f"{len(shared)} query ids, such as {quoted(min(shared, default=''))}, are in several "
        "files; rows with the same id were treated as one query"
    )
    return replace(
        stacked,
        title=", ".join(file.title for file in files),
        X=rows.groups.arrange(stacked.X),
        data=rows,
        rows=rows.groups.arrange(np.concatenate(numbers)),
        extra={key: rows.groups.arrange(column) for key, column in stacked.extra.items()},
        notes=(*stacked.notes, *([note] if shared else [])),
    )


def _repeated(ids: npt.NDArray[np.str_]) -> list[str]:
    known, count = np.unique(ids, return_counts=True)
    return [str(one) for one in known[count > 1]]


def _stacked(tables: Sequence[Source]) -> Source:
    """Concatenate features; only LETOR files may omit the last ones."""
    by_index = all(table.by_index for table in tables)
    gone = {name for table in tables for name in table.left_out}
    tables = [
        _kept(table, [name for name in table.feature_names if name not in gone])
        if gone.intersection(table.feature_names)
        else table
        for table in tables
    ]
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
    categories = _common_categories(tables)
    blocks = [
        np.pad(_recoded(table, categories), ((0, 0), (0, max(widths) - table.X.shape[1])))
        for table in tables
    ]
    notes = dict.fromkeys(note for table in tables for note in table.notes)
    extra = {}
    for key in dict.fromkeys(key for table in tables for key in table.extra):
        fill = _FILL.get(key, np.nan)  # in tables that lack a column, as they do not need it
        columns = [one.extra.get(key, np.full(len(one.X), fill)) for one in tables]
        extra[key] = np.concatenate(columns)
    return replace(
        model,
        X=np.concatenate(blocks),
        by_index=by_index,
        categories=categories,
        extra=extra,
        notes=tuple(notes),
    )


def _common_categories(tables: Sequence[Source]) -> dict[int, Categories]:
    """Return the categories of all tables; a column is categorical in all of them or in none."""
    made = {}
    for at in sorted({at for table in tables for at in table.categories}):
        every = [table.categories.get(at) for table in tables]
        name = quoted(tables[0].feature_names[at]) if tables[0].feature_names else str(at)
        known = [one for one in every if one is not None]
        if len(known) < len(every):
            raise DataError(
                f"the column {name} holds categories in one part and numbers in another; declare "
                "it as categorical (categorical, --categorical)"
            )
        if any(one.ordered for one in known) and len(set(known)) > 1:
            raise DataError(
                f"the column {name} holds ordered categories that differ between the parts; give "
                "all parts the same"
            )
        values = sorted({value for one in known for value in one.values})
        made[at] = known[0] if known[0].ordered else Categories(tuple(values))
    return made


def _recoded(table: Source, categories: Mapping[int, Categories]) -> npt.NDArray[Any]:
    """Return features with the codes of categories that all tables share."""
    changed = {at: one for at, one in categories.items() if table.categories[at] != one}
    if not changed:
        return table.X
    made = table.X.copy()
    for at, one in changed.items():
        codes = made[:, at]
        known = ~np.isnan(codes)
        places = np.array([one.values.index(value) for value in table.categories[at].values])
        made[known, at] = places[codes[known].astype(np.int64)]
    return made


def _difference(one: Source, other: Source) -> str:
    differ = sorted(set(one.feature_names) ^ set(other.feature_names))
    pair = f"{one.title} and {other.title} have"
    if not differ:
        return (
            f"{pair} the same feature columns in another order; use the same order, or for files "
            "and tables name all of them (features, --feature)"
        )
    return f"{pair} different feature columns: {', '.join(map(quoted, differ[:5]))}"


def _distinct_names(paths: Sequence[PathLike]) -> dict[str, str]:
    """Return the name of each path, with parent folders if names repeat.

    >>> list(_distinct_names(["/a/x.txt", "/b/x.txt"]).values())
    ['a/x.txt', 'b/x.txt']
    """
    whole = {os.fspath(path): Path(os.path.abspath(path)) for path in paths}
    files = set(whole.values())
    if len({file.name for file in files}) == len(files):
        return {path: file.name for path, file in whole.items()}
    common = os.path.commonpath(files)
    return {path: file.relative_to(common).as_posix() for path, file in whole.items()}
