"""Files of rows that together are larger than memory, read a part at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from gbmrank.data.queries import RankingData
from gbmrank.data.readers.frames import read_parquet_batches
from gbmrank.data.readers.rows import ROW_FORMATS, FileOptions, guess_format, read_rows
from gbmrank.data.readers.text import PathLike, RankingFile, quoted
from gbmrank.data.row_store import RowStore
from gbmrank.errors import ConfigError, DataError, GroupError
from gbmrank.types import FloatArray

_HIDDEN = (".", "_")  # first letters of files that Spark and others leave in a folder
_COLUMNS = ("labels", "qid", "scores", "ids")
_BESIDE = (".query", ".weight")  # files of LightGBM that belong to another one


def files_in(paths: Sequence[PathLike]) -> list[Path]:
    """Return the files of these paths; those of a folder are sorted by name."""
    found: list[Path] = []
    for path in map(Path, paths):
        if not path.is_dir():
            found.append(path)
            continue
        inside = [one for one in sorted(path.rglob("*")) if one.is_file()]
        kept = [n for n in inside if n.name[0] not in _HIDDEN and n.suffix not in _BESIDE]
        if not kept:
            raise DataError(f"there are no files in the folder {quoted(path)}")
        found += kept
    return found


def read_parts(
    paths: Sequence[PathLike], options: FileOptions
) -> Iterator[tuple[str, RankingFile]]:
    """Yield the rows of files in parts, each with the name of its file.

    Parquet is read some rows at a time, other formats a file at a time. The columns of the first
    part are those of all.
    """
    names: tuple[str, ...] | None = None
    for path in files_in(paths):
        form = options.form or guess_format(path, options.limits)
        if form not in ROW_FORMATS:
            raise ConfigError(
                f"{quoted(path)} has the format {form}; rows with features are in "
                f"{', '.join(ROW_FORMATS)}"
            )
        own = replace(options, form=form)
        if names and form != "letor":
            own = replace(own, columns=replace(options.columns, features=names, drop=()))
        parts: Iterator[RankingFile] = (
            read_parquet_batches(path, own.columns, own.limits)
            if form == "parquet"
            else iter([read_rows(path, own)])
        )
        for part in parts:
            if names is None:
                names = part.feature_names
            elif part.feature_names[: len(names)] != names[: len(part.feature_names)]:
                differ = sorted(set(part.feature_names) ^ set(names))
                shown = ", ".join(map(quoted, differ[:5])) or "their order"
                raise DataError(
                    f"{quoted(path)} has other feature columns than the first file: {shown}"
                )
            yield str(path), part


@final
@dataclass(slots=True)
class _Queries:
    """Counts rows per query, over parts and files; a query ends where another one begins."""

    sizes: list[int] = field(default_factory=list)
    ids: list[Any] = field(default_factory=list)
    file_of: dict[Any, str] = field(default_factory=dict)

    def add(self, ids: Any, path: str) -> None:
        """Count the rows of a part."""
        starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
        counts = np.diff(np.append(starts, len(ids))).tolist()
        for one, count in zip(ids[starts].tolist(), counts, strict=True):
            if self.ids and one == self.ids[-1]:
                self.sizes[-1] += count
                continue
            if one in self.file_of:
                before = self.file_of[one]
                both = f"in {quoted(before)} and again in {quoted(path)}"
                where = f"in two places of {quoted(path)}" if before == path else both
                raise GroupError(
                    f"the rows of query {one!r} are {where}, with other queries between. Rows of a "
                    "query must be adjacent, in files sorted by name: sort the data by query id"
                )
            self.file_of[one] = path
            self.sizes.append(count)
            self.ids.append(one)


def whole_queries(paths: Sequence[PathLike], options: FileOptions) -> Iterator[RankingFile]:
    """Yield labels, ids and scores in parts of whole queries, whose rows must be adjacent."""
    queries, held = _Queries(), None
    for file, part in read_parts(paths, options):
        ids = _query_ids(file, part)
        queries.add(ids, file)
        held = joined(held, replace(part, qid=ids))
        last = held.n_rows - queries.sizes[-1]
        if last:
            yield some_rows(held, slice(0, last))
        held = some_rows(held, slice(last, None))
    if held is not None:
        yield held


def joined(first: RankingFile | None, more: RankingFile) -> RankingFile:
    """Return labels, ids and scores of two files, one below the other."""
    if first is None:
        return more
    made: dict[str, Any] = {"notes": tuple(dict.fromkeys((*first.notes, *more.notes)))}
    for name in _COLUMNS:
        if getattr(more, name) is not None:
            made[name] = np.concatenate([getattr(first, name), getattr(more, name)])
    return replace(more, **made)


def some_rows(file: RankingFile, rows: slice) -> RankingFile:
    """Return labels, ids and scores of some rows."""
    found: dict[str, Any] = {name: getattr(file, name) for name in _COLUMNS}
    return replace(file, **{name: one[rows] for name, one in found.items() if one is not None})


def _query_ids(file: str, part: RankingFile) -> Any:
    if part.qid is None:
        raise DataError(f"{quoted(file)} has no query ids (--qid-column)")
    return np.array([f"{file}:{one}" for one in part.qid]) if part.numbered else part.qid


class StoredRows(NamedTuple):
    """Features on disk, with labels, queries and weights in memory."""

    features: RowStore
    data: RankingData
    notes: tuple[str, ...]
    roles: dict[str, str]


def store_rows(
    paths: Sequence[PathLike], options: FileOptions, path: Path, dtype: str
) -> StoredRows:
    """Read files into one file of features; equal adjacent ids in two files are one query."""
    labels: list[FloatArray] = []
    weights: list[FloatArray] = []
    notes: dict[str, None] = {}
    queries, store = _Queries(), None
    roles: dict[str, str] = {}
    path.unlink(missing_ok=True)
    for file, part in read_parts(paths, options):
        if part.categories:
            named = ", ".join(map(quoted, part.categories))
            raise ConfigError(
                f"{quoted(file)} has columns of categories or text, {named}, but training from "
                "files takes numbers. Leave them out (--drop), or encode them as numbers"
            )
        if part.X is None:
            raise DataError(f"{quoted(file)} has no features")
        if len(infinite := np.argwhere(np.isinf(part.X))):
            row, column = infinite[0].tolist()
            raise DataError(
                f"{quoted(file)}: the feature {part.feature_names[column]!r} is infinite in row "
                f"{row} of a part; clip it, or leave it empty (missing)"
            )
        if store is None:
            names = None if part.by_index else list(part.feature_names)
            store, roles = RowStore(path, names, part.X.shape[1], dtype), dict(part.roles)
        lacking = store.shape[1] - part.X.shape[1]
        if lacking < 0:
            raise DataError(
                f"{quoted(file)} has {part.X.shape[1]} features, but the first file has "
                f"{store.shape[1]}; name the widest file first"
            )
        store.append(np.pad(part.X, ((0, 0), (0, lacking))) if lacking else part.X)
        queries.add(_query_ids(file, part), file)
        labels.append(part.labels)
        weights += [part.columns["weight"]] if "weight" in part.columns else []
        notes |= dict.fromkeys(part.notes)
    if store is None:
        raise DataError(f"{', '.join(str(one) for one in paths)} have no rows")
    data = RankingData.from_arrays(
        np.concatenate(labels),
        group=np.array(queries.sizes),
        weight=np.concatenate(weights) if weights else None,
    )
    data = replace(data, groups=replace(data.groups, ids=np.array(queries.ids)))
    return StoredRows(store, data, tuple(notes), roles)
