"""Tables with named columns: CSV and Parquet."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank.columns import check_digits, id_texts
from gbmrank.errors import DataError, LimitError, MissingPackageError, ParseError
from gbmrank.readers.header import Columns, check_header
from gbmrank.readers.letor_lines import MAX_ID
from gbmrank.readers.ranking_file import RankingFile
from gbmrank.readers.text import (
    MISSING,
    NO_ID,
    Limits,
    PathLike,
    check_line,
    decode,
    quoted,
    read_blocks,
    text_array,
    to_number,
)
from gbmrank.types import FloatArray

__all__ = ["read_csv", "read_parquet", "table_format"]

_BY_SUFFIX = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}


def table_format(path: PathLike) -> str | None:
    """Return the format of a table that its name tells, ``csv`` or ``parquet``, or None.

    Examples
    --------
    >>> table_format("rows.csv.gz"), table_format("ROWS.CSV.GZ"), table_format("train.txt")
    ('csv', 'csv', None)
    """
    return _BY_SUFFIX.get(_suffix(path))


def _suffix(path: PathLike) -> str:
    """Return how a name ends, before ``.gz``, in small letters."""
    name = Path(path)
    return Path(name.stem if name.suffix.lower() == ".gz" else name.name).suffix.lower()


def read_csv(
    path: PathLike,
    columns: Columns | None = None,
    *,
    delimiter: str | None = None,
    limits: Limits | None = None,
) -> RankingFile:
    """Read a CSV file with a header line, plain or compressed with gzip.

    Parameters
    ----------
    path : str or path
        The file, in UTF-8; a byte order mark and Windows line ends are accepted.
    columns : Columns, optional
        Which columns to read.
    delimiter : str, optional
        One character; a tab for names that end in ``.tsv``, else a comma by default.
    limits : Limits, optional
        Sizes above which the file is refused.

    Raises
    ------
    ParseError
        With file and line: a row with more or fewer cells than the header, a label or score
        that is no finite number, a feature that is no number (an empty cell or ``NULL`` is a
        missing value), a row without a query id.
    """
    columns, limits = columns or Columns(), limits or Limits()
    rows = _csv_rows(path, delimiter or _usual_delimiter(path), limits)
    _, header = next(rows, (0, []))
    check_header(header, path)
    parts = columns.found(header, path)
    names = columns.feature_names(header, parts, path)
    texts: dict[str, list[str]] = {name: [] for name in (*parts.values(), *names)}
    places = {name: header.index(name) for name in texts}
    numbers: list[int] = []
    for number, cells in rows:
        if len(cells) != len(header):
            raise ParseError(
                f"{_at(path, number)}:1: {len(cells)} cells, but the header has {len(header)}"
            )
        numbers.append(number)
        for name, column in texts.items():
            column.append(cells[places[name]])
        _check_cells(path, len(numbers) * len(texts), limits)
    converted = {
        name: _text_column(texts[name], part, name, _Source(path, numbers, limits))
        for part, name in (*parts.items(), *(("feature", name) for name in names))
    }
    read = _assembled(path, converted, parts, names)
    return replace(read, notes=columns.notes(parts, names))


def read_parquet(
    path: PathLike, columns: Columns | None = None, *, limits: Limits | None = None
) -> RankingFile:
    """Read a Parquet file, with pyarrow.

    Parameters
    ----------
    path : str or path
        The file.
    columns : Columns, optional
        Which columns to read; the others are not read from disk.
    limits : Limits, optional
        Of these, ``max_cells`` bounds rows times columns.

    Raises
    ------
    MissingPackageError
        Without pyarrow; it names the extra to install.
    DataError
        For a column that is not what it should be; it names the first such row.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingPackageError(
            "Parquet files need pyarrow; install it with: pip install 'gbmrank[parquet]'"
        ) from error
    columns, limits = columns or Columns(), limits or Limits()
    try:
        with open(path, "rb") as file:
            if not file.seekable():
                raise DataError(f"{quoted(path)} is a pipe, and Parquet begins at its end; save it")
            opened = pq.ParquetFile(file)
            header = opened.schema_arrow.names
            check_header(header, path)
            parts = columns.found(header, path)
            names = columns.feature_names(header, parts, path)
            wanted = list(dict.fromkeys((*parts.values(), *names)))
            _check_cells(path, opened.metadata.num_rows * len(wanted), limits)
            table = opened.read(columns=wanted)
    except pa.ArrowException as error:
        raise ParseError(f"{quoted(path)[1:-1]}: not a readable Parquet file: {error}") from error
    converted = {
        name: _arrow_column(table[name], part, name, _Source(path, [], limits))
        for part, name in (*parts.items(), *(("feature", name) for name in names))
    }
    read = _assembled(path, converted, parts, names)
    return replace(read, notes=columns.notes(parts, names))


def _assembled(
    path: PathLike,
    converted: Mapping[str, npt.NDArray[Any]],
    parts: Mapping[str, str],
    names: Sequence[str],
) -> RankingFile:
    n_rows = len(next(iter(converted.values()))) if converted else 0
    if not n_rows:
        raise DataError(f"{quoted(path)} has no rows")
    given = {part: converted[name] for part, name in parts.items()}
    return RankingFile(
        labels=given.get("label", np.zeros(n_rows)),
        qid=given.get("qid"),
        scores=given.get("score"),
        X=np.column_stack([converted[name] for name in names]) if names else None,
        ids=given.get("docid"),
        feature_names=tuple(names),
    )


def _csv_rows(path: PathLike, delimiter: str, limits: Limits) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(_lines(path, limits), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            if cells:
                yield reader.line_num, cells
    except csv.Error as error:
        if "field larger" in str(error):
            raise LimitError(
                f"{_at(path, reader.line_num)}: a cell has more than {csv.field_size_limit():,} "
                "characters; is a quote missing?"
            ) from error
        raise ParseError(f"{_at(path, reader.line_num)}:1: {error}") from error


def _lines(path: PathLike, limits: Limits) -> Iterator[str]:
    for first, block in read_blocks(path, limits):
        for number, line in enumerate(block.split(b"\n")[:-1], first):
            check_line(line, number, path, limits)
            yield decode(line, path, number) + "\n"


class _Source(NamedTuple):
    """Where the cells of a column come from."""

    path: PathLike
    lines: list[int]
    limits: Limits


def _text_column(texts: list[str], part: str, name: str, source: _Source) -> npt.NDArray[Any]:
    """Convert the cells of a column, or say which one cannot be."""
    if part in ("qid", "docid"):
        longest = max(map(len, texts), default=0)
        lost = _without_id(texts) if part == "qid" else None
        if longest <= MAX_ID and lost is None:
            return text_array(texts, source.path, source.limits)
        bad = next(i for i, text in enumerate(texts) if i == lost or len(text) > MAX_ID)
        wanted = f"an id of 1 to {MAX_ID} characters, none of {', '.join(MISSING[1:])}"
    else:
        values = [_cell(text, part) for text in texts]
        if None not in values:
            return np.array(values, dtype=np.float64)
        bad = values.index(None)
        wanted = "a number or nothing" if part == "feature" else "a finite number"
    raise ParseError(
        f"{_at(source.path, source.lines[bad])}:{quoted(name)}: expected {wanted}, "
        f"got {quoted(texts[bad])}"
    )


def _without_id(texts: Sequence[str]) -> int | None:
    """Return the first row whose query id is missing."""
    return next((row for row, text in enumerate(texts) if text in NO_ID), None)


def _cell(text: str, part: str) -> float | None:
    text = text.strip()
    if part == "feature":
        return float("nan") if text in MISSING else to_number(text)
    value = to_number(text)
    return value if value is not None and np.isfinite(value) else None


def _arrow_ids(values: npt.NDArray[Any], part: str, name: str, source: _Source) -> npt.NDArray[Any]:
    path = source.path
    if values.dtype.kind == "f":  # integers too, where one is missing
        values = np.where(np.isnan(values), "", id_texts(values))
    texts = ["" if value is None else str(value) for value in values.tolist()]
    row = _without_id(texts) if part == "qid" else None
    if row is not None:
        raise ParseError(f"{quoted(path)[1:-1]}: row {row} has no query id in {quoted(name)}")
    if max(map(len, texts), default=0) > MAX_ID:
        raise ParseError(f"{quoted(path)[1:-1]}: {quoted(name)} has ids above {MAX_ID} bytes")
    return text_array(texts, path, source.limits)


def _arrow_column(column: Any, part: str, name: str, source: _Source) -> npt.NDArray[Any]:
    values, path = column.to_numpy(), source.path
    if part in ("qid", "docid"):
        return _arrow_ids(values, part, name, source)
    try:
        if values.dtype.kind not in "biuf":
            raise TypeError(f"it holds {column.type}")
        numbers: FloatArray = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ParseError(
            f"{quoted(path)[1:-1]}: column {quoted(name)} must hold numbers; {error}"
        ) from error
    if part != "feature":
        check_digits(values, f"values of {quoted(name)} in {quoted(path)}")
    broken = np.flatnonzero(~np.isfinite(numbers)) if part != "feature" else np.zeros(0, np.int64)
    if len(broken):
        raise ParseError(
            f"{quoted(path)[1:-1]}: column {quoted(name)} has {numbers[broken[0]]} in row "
            f"{broken[0]}; {part}s are finite numbers"
        )
    return numbers


def _check_cells(path: PathLike, cells: int, limits: Limits) -> None:
    if cells > limits.max_cells:
        raise LimitError(
            f"{quoted(path)} holds more than {limits.max_cells:,} cells in the columns that are "
            "wanted; raise max_cells, or choose fewer columns"
        )


def _usual_delimiter(path: PathLike) -> str:
    return "\t" if _suffix(path) == ".tsv" else ","


def _at(path: PathLike, line: int) -> str:
    return f"{quoted(path)[1:-1]}:{line}"
