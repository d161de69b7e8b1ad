"""Tables in memory: pandas, polars, pyarrow.

The header of a table: which column is what.

Tables with named columns: CSV and Parquet.
"""

import csv
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.columns import check_digits, id_texts
from gbmrank.data.queries import as_floats
from gbmrank.data.readers.letor import MAX_ID
from gbmrank.data.readers.text import (
    MISSING,
    NO_ID,
    Limits,
    PathLike,
    RankingFile,
    check_line,
    decode,
    quoted,
    read_blocks,
    text_array,
    to_number,
)
from gbmrank.errors import ConfigError, DataError, LimitError, MissingPackageError, ParseError
from gbmrank.types import FloatArray

__all__ = [
    "Columns",
    "check_header",
    "is_frame",
    "read_csv",
    "read_frame",
    "read_parquet",
    "table_format",
]


_USUAL: Mapping[str, tuple[str, ...]] = {
    "label": ("label", "labels", "relevance", "grade", "rating", "target", "y"),
    "qid": ("qid", "query_id", "queryid", "query", "topic", "group", "group_id"),
    "score": ("score", "scores", "prediction", "pred", "preds", "y_score"),
    "docid": ("docid", "doc_id", "document_id", "docno", "id"),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which columns of a table to read.

    A column that is not named is looked for under its usual names (``label``, ``relevance``;
    ``qid``, ``query_id``; ``score``, ``prediction``; ``docid``; upper or lower case).

    Parameters
    ----------
    label, qid, score, docid : str, optional
        Names of columns. Only the label has to be there; a column that is named has to be
        there as well.
    features : sequence of str or None, default=()
        Columns of ``X``; ``None`` is all that are left over. The label and the query id are
        refused among them.
    need_label : bool, default=True
        Whether a table without labels is refused; otherwise its labels are zeros.
    """

    label: str | None = None
    qid: str | None = None
    score: str | None = None
    docid: str | None = None
    features: Sequence[str] | None = ()
    need_label: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.features, str):
            raise ConfigError(f"features is a list of names; say [{self.features!r}]")
        object.__setattr__(self, "features", _listed_once(self.features))
        named = self._named_parts()
        for name in (*named.values(), *(self.features or ())):
            if not isinstance(name, str):
                raise ConfigError(
                    f"columns are named by text, got {name!r} of type {type(name).__name__}; say "
                    f"{str(name)!r} for a column that is called so"
                )
        for part, name in named.items():
            first = next(other for other, taken in named.items() if taken == name)
            if first != part:
                raise ConfigError(
                    f"the column {quoted(name)} is named as {first} and as {part}; each needs a "
                    "column of its own"
                )

    def _named_parts(self) -> dict[str, str]:
        """Return the columns that were named, by their part."""
        return {part: name for part in _USUAL if (name := getattr(self, part)) is not None}

    def found(self, header: Sequence[str], path: PathLike) -> dict[str, str]:
        """Return the name in the file of each column that is there, by its part.

        Raises
        ------
        DataError
            When a column is named and not there, or no column of labels, or none at all, is found.
        """
        named = self._named_parts()
        free = [name for name in header if name not in named.values()]
        lowered = {name.lower(): name for name in reversed(free)}
        parts: dict[str, str] = {}
        for part, usual in _USUAL.items():
            if part in named:
                parts[part] = _named(named[part], header, path)
            else:
                match = next((lowered[name] for name in usual if name in lowered), None)
                if match is not None:
                    parts[part] = match
        if "label" not in parts and self.need_label:
            raise DataError(
                f"{quoted(path)} has no column of labels under a usual name "
                f"({', '.join(_USUAL['label'])}); its columns are {_listed(header)}: name one "
                "with label= (--label-column)"
            )
        if not parts and self.features == ():
            raise DataError(
                f"{quoted(path)} has no column under a usual name; its columns are "
                f"{_listed(header)}: name one, or say what is between columns (--delimiter)"
            )
        return parts

    def feature_names(
        self, header: Sequence[str], taken: Mapping[str, str], path: PathLike
    ) -> tuple[str, ...]:
        """Return the names of the feature columns."""
        if self.features is None:
            return tuple(name for name in header if name not in taken.values())
        for part in ("label", "qid"):
            if taken.get(part) in self.features:
                raise ConfigError(
                    f"{quoted(taken[part])} is the column of the {part} of {quoted(path)} and "
                    "among the features: a model would learn from what it is judged by; leave it "
                    f"out, or name another column as {part}"
                )
        return tuple(_named(name, header, path) for name in self.features)

    def notes(self, taken: Mapping[str, str], names: Sequence[str]) -> tuple[str, ...]:
        """Say which columns became features, or did not, by their names alone."""
        if self.features is not None:
            return ()
        left_out = {"score": "scores", "docid": "document ids"}
        told = [
            f"the column {quoted(taken[part])} of {what} was left out of the features; to use it, "
            "name them all"
            for part, what in left_out.items()
            if part in taken
        ]
        told += [
            f"the column {quoted(name)} is a feature, although it is called as a {what} may be; if "
            "it is one, name the features without it"
            for part, what in {"label": "label", "qid": "query id"}.items()
            for name in names
            if name.lower() in _USUAL[part]
        ]
        return tuple(told)


def check_header(header: Sequence[str], path: PathLike) -> None:
    """Raise DataError for a table without columns, and for two columns of one name."""
    if not header:
        raise DataError(f"{quoted(path)} is empty; the first line of a table names its columns")
    twice = next((name for i, name in enumerate(header) if name in header[:i]), None)
    if twice is not None:
        raise DataError(f"{quoted(path)} has two columns called {quoted(twice)}; rename one")


def _listed_once(features: Iterable[str] | None) -> tuple[str, ...] | None:
    if features is None:
        return None
    try:
        names = tuple(features)
    except TypeError:
        raise ConfigError(f"features is a list of names, got {features!r}") from None
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise ConfigError(f"the feature {twice!r} is asked for twice")
    return names


def _named(name: str, header: Sequence[str], path: PathLike) -> str:
    if name in header:
        return name
    near = difflib.get_close_matches(name, header, n=1)
    hint = f"did you mean {quoted(near[0])}?" if near else f"its columns are {_listed(header)}"
    raise DataError(f"{quoted(path)} has no column {quoted(name)}; {hint}")


def _listed(header: Sequence[str]) -> str:
    shown = ", ".join(quoted(name) for name in header[:20])
    return shown + (f" and {len(header) - 20} more" if len(header) > 20 else "")


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
