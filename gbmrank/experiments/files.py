"""Files of rows with features: LETOR text, CSV, Parquet; several are put together."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.readers import (
    Columns,
    Limits,
    RankingFile,
    read_column,
    read_csv,
    read_letor,
    read_parquet,
    table_format,
)
from gbmrank.data.readers.text import PathLike, quoted
from gbmrank.errors import ConfigError, DataError

__all__ = ["FORMATS", "Features", "Reading", "read_files", "stack_features"]

FORMATS = ("letor", "csv", "parquet")
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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How files and frames are read.

    Parameters
    ----------
    form : {"letor", "csv", "parquet"}, optional
        Format; told from a file's name by default, LETOR where it says nothing.
    columns : Columns, optional
        Names of the label and query columns of a table.
    features : sequence of str, optional
        Features to keep, by column or by LETOR index; all that are left over by default.
    delimiter : str, optional
        Between the cells of a CSV file.
    zero_based : bool, default=False
        Whether the first LETOR feature has index 0.
    limits : Limits
        Sizes above which a file is refused.
    names : mapping of str to str
        What a file is called in titles, and in ids of queries that have none of their own; see
        :func:`distinct_names`.
    """

    form: str | None = None
    columns: Columns = field(default_factory=Columns)
    features: Sequence[str] | None = None
    delimiter: str | None = None
    zero_based: bool = False
    limits: Limits = field(default_factory=Limits)
    names: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        columns = replace(self.columns, features=self.features)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "features", columns.features)

    def check_options(self, what: str, used: Collection[str] = ()) -> None:
        """Refuse options that would silently do nothing.

        Raises
        ------
        ConfigError
            For an option that is set and not among those that are used.
        """
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


def distinct_names(paths: Sequence[PathLike]) -> dict[str, str]:
    """Return for each path its name, with as many folders as tell it from the other files.

    Two paths of one file, links for example, have one name, that of the first.

    Examples
    --------
    >>> list(distinct_names(["/a/x.txt", "/b/x.txt", "/b/y.txt"]).values())
    ['a/x.txt', 'b/x.txt', 'y.txt']
    """
    targets = {os.fspath(path): Path(path).resolve() for path in paths}
    given = {targets[path]: Path(os.path.abspath(path)).parts for path in reversed(targets)}
    whole = {path: given[target] for path, target in targets.items()}
    files = set(whole.values())
    lengths = {
        own: next(n for n in range(1, len(own) + 1) if _ends(files, own[-n:]) == 1) for own in files
    }
    return {path: "/".join(parts[-lengths[parts] :]) for path, parts in whole.items()}


def _ends(files: Iterable[tuple[str, ...]], tail: tuple[str, ...]) -> int:
    return sum(parts[-len(tail) :] == tail for parts in files)


def read_files(paths: Sequence[PathLike], reading: Reading) -> RankingFile:
    """Read files and put their rows below each other; equal query ids are one query."""
    files = [_read(path, reading) for path in paths]
    if len(files) == 1:
        return files[0]
    notes = [note for file in files for note in file.notes]
    seen: set[str] = set()
    shared: set[str] = set()
    for file in files:
        own = set(_ids(file).tolist())
        shared |= own & seen
        seen |= own
    if shared:
        notes.append(
            f"{len(shared)} query ids, such as {quoted(min(shared))}, are in several files; rows "
            "with the same id were taken for one query"
        )
    stacked = stack_features(
        [_features(file, path) for file, path in zip(files, paths, strict=True)]
    )
    return RankingFile(
        labels=np.concatenate([file.labels for file in files]),
        qid=np.concatenate([_ids(file) for file in files]),
        X=stacked.X,
        feature_names=stacked.names,
        by_index=stacked.by_index,
        notes=tuple(dict.fromkeys(notes)),
    )


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
        return _without_sizes(file, path, sizes_path)
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


class Features(NamedTuple):
    """Columns of one file or part; arrays have no names."""

    title: str
    X: npt.NDArray[Any]
    names: tuple[str, ...]
    by_index: bool


def stack_features(tables: Sequence[Features]) -> Features:
    """Put features below each other; LETOR files, and they alone, may leave out the last ones.

    Raises
    ------
    DataError
        For columns of other names, in another order, or of another number.
    """
    by_index = all(table.by_index for table in tables)
    model = max(tables, key=lambda table: len(table.names) if by_index else bool(table.names))
    for table in tables:
        known = model.names[: len(table.names)] if by_index else model.names
        if table.names and table.names != known:
            raise DataError(_difference(model, table))
    widths = [table.X.shape[1] for table in tables]
    if len(set(widths)) > 1 and not by_index:
        told = (f"{table.title} {width}" for table, width in zip(tables, widths, strict=True))
        raise DataError(f"the parts have different numbers of features: {', '.join(told)}")
    width = max(widths)
    blocks = [np.pad(table.X, ((0, 0), (0, width - table.X.shape[1]))) for table in tables]
    title = ", ".join(table.title for table in tables)
    return Features(title, np.concatenate(blocks), model.names, by_index)


def _without_sizes(file: RankingFile, path: PathLike, sizes_path: Path) -> RankingFile:
    """Note a file of sizes that is not read, since every row has an id."""
    if not sizes_path.exists():
        return file
    note = f"{quoted(path)} has query ids, so {sizes_path.name} beside it was not read"
    return replace(file, notes=(*file.notes, note))


def _difference(one: Features, other: Features) -> str:
    differ = sorted(set(one.names) ^ set(other.names))
    pair = f"{one.title} and {other.title} have"
    if not differ:
        return (
            f"{pair} the same feature columns in another order; put them into one, which for files "
            "and tables is done by naming all of them (features, --feature)"
        )
    return f"{pair} different feature columns: {', '.join(map(quoted, differ[:5]))}"


def _features(file: RankingFile, path: PathLike) -> Features:
    if file.X is None:
        raise DataError(f"{quoted(path)} has no features")
    return Features(quoted(path), file.X, file.feature_names, file.by_index)


def _ids(file: RankingFile) -> npt.NDArray[np.str_]:
    return np.zeros(0, np.str_) if file.qid is None else file.qid
