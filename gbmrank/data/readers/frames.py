"""Tables with named columns: CSV and Parquet files, and data frames in memory.

A :class:`Header` states the role of each column.
"""

import contextlib
import csv
import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from gbmrank.data.columns import as_floats, check_digits, find_missing, id_texts, one_column
from gbmrank.data.readers.text import (
    MISSING,
    NO_ID,
    Limits,
    PathLike,
    RankingFile,
    fail,
    quoted,
    read_lines,
    text_array,
    to_number,
)
from gbmrank.data.tables import (
    Categories,
    categorical_columns,
    category_codes,
    column_names,
    columns_by_name,
)
from gbmrank.errors import ConfigError, DataError, LimitError, MissingPackageError, ParseError

_USUAL: Mapping[str, tuple[str, ...]] = {
    "label": ("label", "labels", "relevance", "grade", "rating", "target", "y"),
    "qid": ("qid", "query_id", "queryid", "query", "topic", "group", "group_id"),
    "score": ("score", "scores", "prediction", "pred", "preds", "y_score"),
    "docid": ("docid", "doc_id", "document_id", "docno", "id"),
}

_CATEGORIES_HINT = "gbmrank compare reads strings as categories (--categorical)"
_FINITE = ("label", "score", "weight")  # parts without missing values


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Which columns of a table to read.

    A column that is not named is searched under its usual names (``label``, ``relevance``;
    ``qid``, ``query_id``; ``score``, ``prediction``; ``docid``), ignoring case.

    Parameters
    ----------
    label, qid, score, docid : str, optional
        Names of columns. Only the label is required, but a column that is named must exist.
    features : sequence of str or None, default=()
        Columns of ``X``; ``None`` means all other columns. The label and the query id are not
        allowed among them.
    need_label : bool, default=True
        Whether to reject a table without labels; otherwise its labels are zeros.
    categorical : sequence of str, default=()
        Categorical features; columns of a categorical type are always categorical.
    columns : mapping of str to str, default={}
        Names of further columns by role: ``weight``, ``position``, ``time`` (numbers or dates,
        not converted) and any other key. They are not features unless ``features`` names them.
    optional : sequence of str, default=()
        Keys of ``columns`` that a table need not have.
    """

    label: str | None = None
    qid: str | None = None
    score: str | None = None
    docid: str | None = None
    features: Sequence[str] | None = ()
    need_label: bool = True
    categorical: Sequence[str] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    optional: Sequence[str] = ()

    def __post_init__(self) -> None:
        for what in ("features", "categorical"):
            if isinstance(one := getattr(self, what), str):
                raise ConfigError(f"{what} must be a list of names, got {one!r}; pass [{one!r}]")
        features = None if self.features is None else tuple(self.features)
        object.__setattr__(self, "features", features)
        named = self._named_parts()
        for name in (*named.values(), *(features or ()), *self.categorical):
            if not isinstance(name, str):
                raise ConfigError(f"column names must be strings, got {name!r}; pass {str(name)!r}")
        for part, name in named.items():
            first = next(other for other, taken in named.items() if taken == name)
            if first != part:
                raise ConfigError(
                    f"the column {quoted(name)} is named both as {first} and as {part}; name a "
                    "different column for each"
                )
        twice = _first_repeated(features or ())
        if twice is not None:
            raise ConfigError(f"the feature {twice!r} is listed twice")

    def _named_parts(self) -> dict[str, str]:
        """Return the columns that were named explicitly, by role."""
        usual = {part: name for part in _USUAL if (name := getattr(self, part)) is not None}
        return {**usual, **self.columns}

    def found(self, header: Sequence[str], path: PathLike) -> dict[str, str]:
        """Return the names of the columns found in the file, by role."""
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
        for key, name in self.columns.items():
            if name in header or key not in self.optional:
                parts[key] = _named(name, header, path)
        if "label" not in parts and self.need_label:
            raise DataError(
                f"{quoted(path)} has no label column under a usual name "
                f"({', '.join(_USUAL['label'])}); its columns are {_listed(header)}; name the "
                "label with label= (--label-column)"
            )
        if not parts and self.features == ():
            raise DataError(
                f"{quoted(path)} has no column under a usual name; its columns are "
                f"{_listed(header)}; name one, or set the delimiter (--delimiter)"
            )
        return parts

    def _feature_names(
        self, header: Sequence[str], taken: Mapping[str, str], path: PathLike
    ) -> tuple[str, ...]:
        if self.features is None:
            return tuple(name for name in header if name not in taken.values())
        for part in ("label", "qid"):
            if taken.get(part) in self.features:
                raise ConfigError(
                    f"the column {quoted(taken[part])} of {quoted(path)} is both the {part} and a "
                    "feature, which leaks the target into the model; leave it out of the features, "
                    f"or name another column as {part}"
                )
        return tuple(_named(name, header, path) for name in self.features)

    def resolve(
        self, found: Sequence[str], path: PathLike
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        """Validate the columns of a table; return the names by role, and the features."""
        _check_header(found, path)
        parts = self.found(found, path)
        names = self._feature_names(found, parts, path)
        for name in self.categorical:
            if _named(name, found, path) not in names:
                raise ConfigError(
                    f"the column {quoted(name)} of {quoted(path)} is named as categorical but is "
                    "not a feature; leave it out, or add it to the features"
                )
        return parts, names

    def notes(self, taken: Mapping[str, str], names: Sequence[str]) -> tuple[str, ...]:
        """Return remarks on columns that were left out of the features, or kept, by their name."""
        if self.features is not None:
            return ()
        left_out = {"score": "scores", "docid": "document ids"}
        notes = [
            f"the column {quoted(taken[part])} of {what} was left out of the features; to use it, "
            "list all features by name"
            for part, what in left_out.items()
            if part in taken
        ]
        notes += [
            f"the column {quoted(name)} is a feature, although its name suggests a {what}; if it "
            "is one, list the features without it"
            for part, what in {"label": "label", "qid": "query id"}.items()
            for name in names
            if name.lower() in _USUAL[part]
        ]
        return tuple(notes)


def _check_header(header: Sequence[str], path: PathLike) -> None:
    """Raise DataError for a table without columns, or with two columns of the same name."""
    if not header:
        raise DataError(f"{quoted(path)} is empty; the first line must name the columns")
    twice = _first_repeated(header)
    if twice is not None:
        raise DataError(f"{quoted(path)} has two columns called {quoted(twice)}; rename one")


def _first_repeated(names: Sequence[str]) -> str | None:
    return next((name for i, name in enumerate(names) if name in names[:i]), None)


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
    """Whether this is a data frame in memory; lazy frames do not count."""
    return column_names(data) is not None


def read_frame(frame: Any, header: Header) -> RankingFile:
    """Read labels, query ids and features from a data frame."""
    listed = column_names(frame) or []
    parts, names = header.resolve(listed, "the table")
    kinds = {listed[at] for at in categorical_columns(frame)} | set(header.categorical)
    columns = columns_by_name(frame) or {}
    given = {part: columns[name] for part, name in parts.items()}
    coded = {name: category_codes(columns[name]) for name in names if name in kinds}
    numbers = {
        name: as_floats(columns[name], f"column {quoted(name)}")
        for name in names
        if name not in coded
    }
    values = [numbers[name] if name in numbers else coded[name][0] for name in names]
    return RankingFile(
        labels=as_floats(given["label"], "labels", exact=True),
        qid=np.asarray(given["qid"]) if "qid" in given else None,
        scores=as_floats(given["score"], "scores") if "score" in given else None,
        X=np.column_stack(values) if names else None,
        feature_names=names,
        categories={name: found for name, (_, found) in coded.items()},
        columns={
            key: one_column(given[key])
            if key == "time"
            else as_floats(given[key], f"column {quoted(parts[key])}", exact=True)
            for key in header.columns
            if key in given
        },
        notes=header.notes(parts, names),
    )


_BY_SUFFIX = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}


def table_format(path: PathLike) -> str | None:
    """Return the format of a table by its file name, ``"csv"`` or ``"parquet"``, or None.

    Parameters
    ----------
    path : str or path
        File name; ``.gz`` at its end and case are ignored.

    Returns
    -------
    str or None
        None for any other file name.

    Examples
    --------
    >>> table_format("rows.csv.gz"), table_format("ROWS.CSV.GZ"), table_format("train.txt")
    ('csv', 'csv', None)
    """
    return _BY_SUFFIX.get(_suffix(path))


def _suffix(path: PathLike) -> str:
    """Return the suffix of a file name in lower case, ignoring ``.gz``."""
    name = Path(path)
    return Path(name.stem if name.suffix.lower() == ".gz" else name.name).suffix.lower()


def read_csv(
    path: PathLike,
    header: Header | None = None,
    *,
    delimiter: str | None = None,
    limits: Limits | None = None,
) -> RankingFile:
    """Read a CSV file with a header line, plain or compressed with gzip.

    Parameters
    ----------
    path : str or path
        The file, in UTF-8; a byte order mark and Windows line endings are accepted.
    header : Header, optional
        Which columns to read.
    delimiter : str, optional
        One character; by default a tab for ``.tsv`` files, otherwise a comma.
    limits : Limits, optional
        Sizes above which the file is rejected.

    Returns
    -------
    RankingFile
        Labels and the other columns that ``header`` names or finds.

    Raises
    ------
    ParseError
        With file and line, for a row with more or fewer cells than the header, a label or score
        that is not a finite number, a feature that is not a number (an empty cell or ``NULL`` is
        a missing value), or a row without a query id.
    """
    header, limits = header or Header(), limits or Limits()
    rows = _csv_rows(path, delimiter, limits)
    _, found = next(rows, (0, []))
    parts, names = header.resolve(found, path)
    wanted = dict.fromkeys((*parts.values(), *names))
    lines, cells = _read_cells(rows, found, list(wanted), path, limits)
    kinds = {name: "category" if name in header.categorical else "feature" for name in names}
    converted = {
        name: _text_column(cells[name], part, f"{quoted(path)[1:-1]}:{{}}:{quoted(name)}", lines)
        for part, name in (*parts.items(), *((kind, name) for name, kind in kinds.items()))
    }
    return _assembled(path, converted, header, (parts, kinds), limits)


def read_texts(path: PathLike, limits: Limits | None = None) -> dict[str, list[str]]:
    """Read all cells of a CSV file as strings, by column."""
    limits = limits or Limits()
    rows = _csv_rows(path, None, limits)
    _, found = next(rows, (0, []))
    _check_header(found, path)
    return _read_cells(rows, found, found, path, limits)[1]


def read_parquet(
    path: PathLike, header: Header | None = None, *, limits: Limits | None = None
) -> RankingFile:
    """Read a Parquet file, with pyarrow.

    Parameters
    ----------
    path : str or path
        The file.
    header : Header, optional
        Which columns to read; the others are not read from disk.
    limits : Limits, optional
        Only ``max_cells`` applies, to rows times columns.

    Returns
    -------
    RankingFile
        Labels and the other columns that ``header`` names or finds.

    Raises
    ------
    MissingPackageError
        If pyarrow is not installed; the message names the extra to install.
    DataError
        For a column with invalid values; the message names the first such row.
    """
    header, limits = header or Header(), limits or Limits()
    with open_parquet(path) as opened:
        parts, names = header.resolve(opened.schema_arrow.names, path)
        wanted = list(dict.fromkeys((*parts.values(), *names)))
        _check_cells(path, opened.metadata.num_rows * len(wanted), limits)
        table = opened.read(columns=wanted)
    coded = {*header.categorical, *(name for name in names if _is_coded(table[name]))}
    kinds = {name: "category" if name in coded else "feature" for name in names}
    converted = {
        name: _arrow_column(table[name], part, name, path)
        for part, name in (*parts.items(), *((kind, name) for name, kind in kinds.items()))
    }
    return _assembled(path, converted, header, (parts, kinds), limits)


@contextlib.contextmanager
def open_parquet(path: PathLike) -> Iterator[Any]:
    """Open a Parquet file with pyarrow; raise ParseError if pyarrow cannot read it."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingPackageError(
            "Parquet files need pyarrow; install it with: pip install 'gbmrank[parquet]'"
        ) from error
    try:
        with open(path, "rb") as file:
            if not file.seekable():
                raise DataError(f"{quoted(path)} is a pipe; save it, as Parquet needs a real file")
            yield pq.ParquetFile(file)
    except pa.ArrowException as error:
        raise ParseError(f"{quoted(path)[1:-1]}: not a readable Parquet file: {error}") from error


def _assembled(
    path: PathLike,
    converted: Mapping[str, Any],
    header: Header,
    taken: tuple[Mapping[str, str], Mapping[str, str]],
    limits: Limits,
) -> RankingFile:
    parts, kinds = taken
    n_rows = len(next(iter(converted.values()))) if converted else 0
    if not n_rows:
        raise DataError(f"{quoted(path)} has no rows")
    given: dict[str, Any] = {part: converted[name] for part, name in parts.items()}
    for part in ("qid", "docid"):
        if part in given:
            given[part] = text_array(given[part], path, limits)
    features: dict[str, Any] = {}
    categories: dict[str, Categories] = {}
    for name, kind in kinds.items():
        if kind == "category":
            features[name], categories[name] = category_codes(converted[name])
        else:
            features[name] = converted[name]
    return RankingFile(
        labels=given.get("label", np.zeros(n_rows)),
        qid=given.get("qid"),
        scores=given.get("score"),
        X=np.column_stack(list(features.values())) if features else None,
        ids=given.get("docid"),
        feature_names=tuple(features),
        categories=categories,
        columns={key: given[key] for key in header.columns if key in given},
        notes=header.notes(parts, tuple(features)),
    )


def _csv_rows(
    path: PathLike, delimiter: str | None, limits: Limits
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each row that is not blank."""
    delimiter = delimiter or ("\t" if _suffix(path) == ".tsv" else ",")
    lines = (line + "\n" for _, line in read_lines(path, limits, blank=True))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            if cells:
                yield reader.line_num, cells
    except csv.Error as error:
        if "field larger" in str(error):
            raise LimitError(
                f"{quoted(path)[1:-1]}:{reader.line_num}: a cell has more than "
                f"{csv.field_size_limit():,} characters; is a quote missing?"
            ) from error
        raise fail(path, reader.line_num, 1, str(error)) from error


def _read_cells(
    rows: Iterator[tuple[int, list[str]]],
    found: Sequence[str],
    wanted: Sequence[str],
    path: PathLike,
    limits: Limits,
) -> tuple[list[int], dict[str, list[str]]]:
    """Return the line number of each row, and the cells of the requested columns."""
    cells: dict[str, list[str]] = {name: [] for name in wanted}
    places = [(cells[name], found.index(name)) for name in wanted]
    lines: list[int] = []
    for number, row in rows:
        if len(row) != len(found):
            raise fail(path, number, 1, f"{len(row)} cells, but the header has {len(found)}")
        lines.append(number)
        for column, at in places:
            column.append(row[at])
        _check_cells(path, len(lines) * len(wanted), limits)
    return lines, cells


def _text_column(texts: list[str], part: str, place: str, lines: list[int]) -> Any:
    """Convert the cells of a column; raise ParseError at the first that cannot be converted."""
    if part in ("qid", "docid"):
        bad = next((row for row, text in enumerate(texts) if part == "qid" and text in NO_ID), None)
        if bad is None:
            return texts
        wanted = f"an id other than {', '.join(MISSING[1:])}"
    elif part == "category":
        return [None if text.strip() in MISSING else text.strip() for text in texts]
    elif part == "time":
        return np.array([text.strip() for text in texts])
    else:
        values = [_cell(text, part) for text in texts]
        if None not in values:
            return np.array(values, dtype=np.float64)
        bad = values.index(None)
        wanted = "a finite number" if part in _FINITE else "a number or an empty cell"
    hint = f"; {_CATEGORIES_HINT}" if part == "feature" else ""
    got = quoted(texts[bad])
    raise ParseError(f"{place.format(lines[bad])}: expected {wanted}, got {got}{hint}")


def _cell(text: str, part: str) -> float | None:
    text = text.strip()
    if part not in _FINITE:
        return float("nan") if text in MISSING else to_number(text)
    value = to_number(text)
    return value if value is not None and np.isfinite(value) else None


def _is_coded(column: Any) -> bool:
    """Whether a pyarrow column is a dictionary of strings, its form of categories."""
    kind = str(column.type)
    return "dictionary" in kind and "string" in kind


def _arrow_column(column: Any, part: str, name: str, path: PathLike) -> Any:
    if part == "category":
        return np.array(column.to_pylist(), dtype=object)
    if part == "time":
        return column.to_numpy()
    values, file = column.to_numpy(), quoted(path)[1:-1]
    if part in ("qid", "docid"):
        texts = np.where(find_missing(values), "", id_texts(values)).tolist()
        row = next((at for at, text in enumerate(texts) if text in NO_ID), None)
        if row is not None and part == "qid":
            raise ParseError(f"{file}: row {row} has no query id in {quoted(name)}")
        return texts
    if values.dtype.kind not in "biuf":
        hint = f"; {_CATEGORIES_HINT}" if part == "feature" else ""
        raise ParseError(
            f"{file}: column {quoted(name)} must contain numbers; it has type {column.type}{hint}"
        )
    numbers = values.astype(np.float64)
    if part not in _FINITE:
        return numbers
    check_digits(values, f"values of {quoted(name)} in {quoted(path)}")
    broken = np.flatnonzero(~np.isfinite(numbers))
    if len(broken):
        raise ParseError(
            f"{file}: column {quoted(name)} has {numbers[broken[0]]} in row {broken[0]}; {part}s "
            "must be finite numbers"
        )
    return numbers


def _check_cells(path: PathLike, cells: int, limits: Limits) -> None:
    if cells > limits.max_cells:
        raise LimitError(
            f"{quoted(path)} has more than {limits.max_cells:,} cells in the requested columns; "
            "raise max_cells, or select fewer columns"
        )
