"""Files of rows with features: LETOR text, CSV, Parquet; several are put together."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from gbmrank.errors import ConfigError, DataError
from gbmrank.readers import (
    Columns,
    Limits,
    RankingFile,
    read_column,
    read_csv,
    read_letor,
    read_parquet,
    table_format,
)
from gbmrank.readers.text import PathLike, quoted

__all__ = ["FORMATS", "Reading", "read_files"]

FORMATS = ("letor", "csv", "parquet")
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
    """

    form: str | None = None
    columns: Columns | None = None
    features: Sequence[str] | None = None
    delimiter: str | None = None
    zero_based: bool = False
    limits: Limits = field(default_factory=Limits)


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
    return RankingFile(
        labels=np.concatenate([file.labels for file in files]),
        qid=np.concatenate([_ids(file) for file in files]),
        X=_stacked(files, paths),
        feature_names=max((file.feature_names for file in files), key=len),
        notes=tuple(dict.fromkeys(notes)),
    )


def _read(path: PathLike, reading: Reading) -> RankingFile:
    form = reading.form or table_format(path) or "letor"
    if form not in FORMATS:
        raise ConfigError(f"format must be one of {', '.join(FORMATS)}; got {form!r}")
    columns = replace(reading.columns or Columns(), features=reading.features)
    if form == "parquet":
        return _with_queries(read_parquet(path, columns, limits=reading.limits), path, reading)
    if form == "csv":
        file = read_csv(path, columns, delimiter=reading.delimiter, limits=reading.limits)
        return _with_queries(file, path, reading)
    named = columns.label or columns.qid or reading.delimiter
    if named is not None:
        raise ConfigError(
            f"{quoted(path)} is read as LETOR, which has no columns to name and no delimiter; "
            f"leave out {quoted(named)}, or say --format csv (a name that ends in .csv says it too)"
        )
    file = read_letor(path, zero_based=reading.zero_based, need_qid=False, limits=reading.limits)
    return _with_queries(file, path, reading)


def _with_queries(file: RankingFile, path: PathLike, reading: Reading) -> RankingFile:
    """Return a file that has query ids, from LightGBM's file of sizes if need be."""
    if file.qid is not None:
        return file
    sizes_path = Path(str(path).removesuffix(".gz") + _SIZES_SUFFIX)
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
    stem = Path(path).name
    return replace(
        file,
        qid=np.array([f"{stem}:{number}" for number in numbers]),
        notes=(*file.notes, f"queries of {stem} were read from {sizes_path.name}"),
    )


def _stacked(files: Sequence[RankingFile], paths: Sequence[PathLike]) -> npt.NDArray[Any] | None:
    """Put features below each other; a LETOR file may leave out the last ones."""
    blocks = [file.X for file in files]
    if any(block is None for block in blocks):
        raise DataError(f"{quoted(paths[[b is None for b in blocks].index(True)])} has no features")
    widths = [0 if block is None else block.shape[1] for block in blocks]
    names = [file.feature_names for file in files]
    by_index = all(name.isdecimal() for own in names for name in own)
    if not by_index and len(set(names)) > 1:
        at = next(i for i, own in enumerate(names) if own != names[0])
        differs = sorted(set(names[0]) ^ set(names[at])) or ["their order"]
        raise DataError(
            f"{quoted(paths[0])} and {quoted(paths[at])} have different feature columns: "
            f"{', '.join(map(quoted, differs[:5]))}"
        )
    width = max(widths)
    return np.concatenate(
        [np.pad(b, ((0, 0), (0, width - b.shape[1]))) for b in blocks if b is not None]
    )


def _ids(file: RankingFile) -> npt.NDArray[np.str_]:
    return np.zeros(0, np.str_) if file.qid is None else file.qid
