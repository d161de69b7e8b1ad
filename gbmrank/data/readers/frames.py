"""Tables with named columns: CSV and Parquet files, and data frames in memory.

A :class:`Header` states the role of each column.
"""

import contextlib
import csv
import difflib
import fnmatch
import importlib.util
import itertools
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from gbmrank.data.row_store import BLOCK
from gbmrank.data.tables import (
    Categories,
    categorical_columns,
    category_codes,
    column_names,
    columns_by_name,
)
from gbmrank.errors import ConfigError, DataError, LimitError, ParseError, import_optional
from gbmrank.types import FloatArray

_USUAL: Mapping[str, tuple[str, ...]] = {
    "label": ("label", "labels", "relevance", "grade", "rating", "target", "y"),
    "qid": ("qid", "query_id", "queryid", "query", "topic", "group", "group_id"),
    "score": ("score", "scores", "prediction", "pred", "preds", "y_score"),
    "docid": ("docid", "doc_id", "document_id", "docno", "id"),
}

# Names of columns that are never features unless asked for: they may hold the answer.
_SUSPECT: Mapping[str, re.Pattern[str]] = {
    "labels": re.compile(r"labels?|relevance|grade|target|y|click(s|ed)?|position|rank"),
    "query ids": re.compile(r"qid|query_?id|query|topic|group(_id)?"),
    "scores of a model": re.compile(  # bm25_score is a feature
        r"(.*_)?(pred(iction)?s?|y_?hat)|"
        r"((y|model|prod(uction)?|old|new|current|base(line)?|rank(er|ing)?|lgbm?|xgb)_)?scores?"
    ),
    "ids": re.compile(r"(.*_)?(ids?|uuid|guid)|doc_?(id|no)|(.*_)?ur[il]|unnamed: ?\d+|index"),
}
_FEW_TEXTS = 64  # categories that a column of text may have
_ROW_NUMBERS = 20  # rows from which on 0, 1, 2, ... is no accident
_DELIMITERS = (",", "\t", ";", "|")
_CATEGORIES_HINT = "gbmrank compare reads strings as categories (--categorical)"
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
_FINITE = ("label", "score", "weight")  # parts without missing values
_CELLS_AT_ONCE = 1 << 21  # of a Parquet file


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Which columns of a table to read.

    A column that is not named is searched under its usual names (``label``, ``relevance``;
    ``qid``, ``query_id``; ``score``, ``prediction``; ``docid``), ignoring case.
    """

    label: str | None = None  # only the label is required, but a named column must exist
    qid: str | None = None
    score: str | None = None
    docid: str | None = None
    # Columns of X, or patterns such as bm25_*, without label and query id. None: all others, except
    # what looks like a label, an id or the score of a model, and text of many values.
    features: Sequence[str] | None = ()
    drop: Sequence[str] = ()  # to leave out; patterns leave out features only
    need_label: bool = True  # else a table without labels has zeros
    categorical: Sequence[str] = ()  # besides columns of a categorical type
    # Names of further columns by role: weight, position, time (numbers or dates, not converted) and
    # any other key. They are features only if ``features`` names them.
    columns: Mapping[str, str] = field(default_factory=dict)
    optional: Sequence[str] = ()  # keys of ``columns`` that a table need not have

    def __post_init__(self) -> None:
        for what in ("features", "categorical", "drop"):
            if isinstance(one := getattr(self, what), str):
                raise ConfigError(f"{what} must be a list of names, got {one!r}; pass [{one!r}]")
        features = None if self.features is None else tuple(self.features)
        object.__setattr__(self, "features", features)
        named = self._named_parts()
        for name in (*named.values(), *(features or ()), *self.categorical, *self.drop):
            if not isinstance(name, str):
                raise ConfigError(f"column names must be strings, got {name!r}; pass {str(name)!r}")
        for part, name in named.items():
            first = next(other for other, taken in named.items() if taken == name)
            if first != part:
                raise ConfigError(
                    f"the column {quoted(name)} is named both as {first} and as {part}; name a "
                    "different column for each"
                )
        if (twice := _first_repeated(features or ())) is not None:
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
            name = named.get(part, next((lowered[one] for one in usual if one in lowered), None))
            if name is not None:
                parts[part] = _named(name, header, path)
        for key, name in self.columns.items():
            if name in header or key not in self.optional:
                parts[key] = _named(name, header, path)
        if "label" not in parts and self.need_label:
            raise DataError(f"{quoted(path)} {_no_label(header)}")
        if not parts and self.features == ():
            raise DataError(
                f"{quoted(path)} has no column under a usual name; its columns are "
                f"{_listed(header)}; name one, or set the delimiter (--delimiter)"
            )
        return parts

    def _feature_names(
        self, header: Sequence[str], taken: Mapping[str, str], path: PathLike
    ) -> tuple[str, ...]:
        used = {taken.get(part) for part in ("label", "qid", *self.columns)}
        if self.features is None:
            free = [name for name in header if name not in used]
            return tuple(n for n in free if n in self.categorical or suspected(n) is None)
        for part in ("label", "qid"):
            if taken.get(part) in self.features:
                raise ConfigError(
                    f"the column {quoted(taken[part])} of {quoted(path)} is both the {part} and a "
                    "feature, which leaks the target into the model; leave it out of the features, "
                    f"or name another column as {part}"
                )
        may = [name for name in header if name in self.features or name not in used]
        return tuple(matching(self.features, may, path))

    def resolve(
        self, found: Sequence[str], path: PathLike
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        """Validate the columns of a table; return the names by role, and the features."""
        _check_header(found, path)
        gone = matching(self.drop, found, path)
        found = [name for name in found if name not in self.drop]
        parts = self.found(found, path)
        chosen = self._feature_names(found, parts, path)
        names = tuple(name for name in chosen if name not in gone)
        for name in self.categorical:
            if _named(name, found, path) not in names:
                raise ConfigError(
                    f"the column {quoted(name)} of {quoted(path)} is named as categorical but is "
                    "not a feature; leave it out, or add it to the features"
                )
        return parts, names

    def wanted(self, found: Sequence[str], path: PathLike) -> list[str]:
        """Return the columns of a table that are read."""
        parts, names = self.resolve(found, path)
        return list(dict.fromkeys((*parts.values(), *names)))

    def notes(
        self, found: Sequence[str], taken: Mapping[str, str], left_out: Mapping[str, str]
    ) -> tuple[str, ...]:
        """Return remarks on the columns that are no features: by their names, or as given."""
        used = {taken.get("label"), taken.get("qid"), *self.columns.values(), *self.categorical}
        gone = set(matching(self.drop, found, "the table"))
        reasons: dict[str, list[str]] = {}
        for name in found if self.features is None else ():
            what = suspected(name)
            if what is not None and name not in used | gone:
                reasons.setdefault(f"because their names suggest {what}", []).append(name)
        for name, why in left_out.items():
            reasons.setdefault(why, []).append(name)
        return tuple(
            f"columns left out {why}: {_listed(names)} (--feature '*' takes all columns)"
            for why, names in reasons.items()
        )


def suspected(name: str) -> str | None:
    """Return what a column is by its name, if it is probably no feature.

    >>> suspected("prodScore"), suspected("user-id"), suspected("bm25_score")
    ('scores of a model', 'ids', None)
    """
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("-", "_")
    return next((what for what, known in _SUSPECT.items() if known.fullmatch(plain)), None)


def matching(wanted: Sequence[str], names: Sequence[str], where: PathLike) -> list[str]:
    """Return the names that are wanted, by name or by pattern; each must be there.

    >>> matching(["b", "a*"], ["a1", "a2", "b"], "the table")
    ['b', 'a1', 'a2']
    """
    found: dict[str, None] = {}
    for one in wanted:
        alike = [name for name in names if fnmatch.fnmatchcase(name, one)]
        found |= dict.fromkeys(alike if alike and one not in names else [_named(one, names, where)])
    return list(found)


def _no_label(header: Sequence[str]) -> str:
    """Say why a table has no label, and what to do."""
    if list(header) == [str(at) for at in range(len(header))]:
        return (
            "begins with a line of numbers, so its columns have no names; they are numbered from "
            f"0 to {len(header) - 1}: give --label-column 0 and --qid-column 1, if those are label "
            "and query id"
        )
    return (
        f"has no label column under a usual name ({', '.join(_USUAL['label'])}); its columns are "
        f"{_listed(header)}; name the label with label= (--label-column)"
    )


def _check_header(header: Sequence[str], path: PathLike) -> None:
    """Raise DataError for a table without columns, or with two columns of the same name."""
    if not header:
        raise DataError(f"{quoted(path)} is empty; the first line must name the columns")
    if (twice := _first_repeated(header)) is not None:
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
    listed, columns = column_names(frame) or [], columns_by_name(frame) or {}
    coded = {listed[at] for at in categorical_columns(frame)}

    def read(name: str, part: str) -> Any:
        column = columns[name]
        if part == "category":
            return column
        if part in ("qid", "docid"):
            return np.asarray(column) if part == "qid" else None
        if part == "time":
            return one_column(column)
        what = {"label": "labels", "score": "scores"}.get(part, f"column {quoted(name)}")
        return as_floats(column, what, exact=part not in ("score", "feature"))

    def texts(name: str) -> Any:
        values = one_column(columns[name]).astype(object)
        values[find_missing(values)] = None
        return values

    return _assembled("the table", listed, header, coded, (read, texts))


_BY_SUFFIX = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}


def table_format(path: PathLike) -> str | None:
    """Return the format of a table by its file name, or None; case and ``.gz`` do not matter.

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
    """Read a CSV file in UTF-8, plain or compressed with gzip.

    The first line names the columns; if it has numbers only, they are numbered from 0. Without a
    ``delimiter`` it is the one of comma, tab, semicolon and bar that the first line has most of. An
    empty cell or ``NULL`` is a missing value of a feature.
    """
    header, limits = header or Header(), limits or Limits()
    rows = _csv_rows(path, delimiter, limits)
    _, found = next(rows, (0, []))
    lines, cells = _read_cells(rows, found, header.wanted(found, path), path, limits)
    if not lines:
        raise DataError(f"{quoted(path)} has no rows")

    def read(name: str, part: str) -> Any:
        place = f"{quoted(path)[1:-1]}:{{}}:{quoted(name)}"
        values = _text_column(cells[name], part, place, lines)
        return text_array(values, path, limits) if part in ("qid", "docid") else values

    def texts(name: str) -> Any:
        known = [one for one in map(str.strip, cells[name]) if one not in MISSING]
        odd = [one for one in known if to_number(one) is None]
        broken = 2 * len(odd) < len(known) or any(map(_DECIMAL_COMMA.fullmatch, odd))
        return None if broken else _text_column(cells[name], "category", "", lines)

    return _assembled(path, found, header, set(), (read, texts))


def read_texts(path: PathLike) -> dict[str, list[str]]:
    """Read all cells of a CSV file as strings, by column."""
    limits = Limits()
    rows = _csv_rows(path, None, limits)
    _, found = next(rows, (0, []))
    _check_header(found, path)
    return _read_cells(rows, found, found, path, limits)[1]


def read_parquet(
    path: PathLike, header: Header | None = None, *, limits: Limits | None = None
) -> RankingFile:
    """Read a Parquet file; columns that ``header`` does not need are not read from disk."""
    header, limits = header or Header(), limits or Limits()
    with open_parquet(path) as opened:
        found = opened.schema_arrow.names
        wanted = header.wanted(found, path)
        _check_cells(path, opened.metadata.num_rows * len(wanted), limits)
        table = opened.read(columns=wanted)
    if not table.num_rows:
        raise DataError(f"{quoted(path)} has no rows")
    return _of_arrow(table, found, path, header, limits)


def read_parquet_batches(path: PathLike, header: Header, limits: Limits) -> Iterator[RankingFile]:
    """Read a Parquet file some rows at a time, at most some megabytes."""
    with open_parquet(path) as opened:
        found = opened.schema_arrow.names
        wanted = header.wanted(found, path)
        n_rows = max(min(BLOCK, _CELLS_AT_ONCE // max(len(wanted), 1)), 1)
        for batch in opened.iter_batches(n_rows, columns=wanted):
            if len(batch):
                table = sys.modules["pyarrow"].Table.from_batches([batch])
                yield _of_arrow(table, found, path, header, limits)


def _of_arrow(
    table: Any, found: Sequence[str], path: PathLike, header: Header, limits: Limits
) -> RankingFile:
    def read(name: str, part: str) -> Any:
        values = _arrow_column(table[name], part, name, path)
        return text_array(values, path, limits) if part in ("qid", "docid") else values

    def texts(name: str) -> Any:
        return np.array(table[name].to_pylist(), dtype=object)

    kinds = {name: str(table[name].type) for name in table.column_names}
    coded = {name for name, kind in kinds.items() if "dictionary" in kind and "string" in kind}
    return _assembled(path, found, header, coded, (read, texts))


@contextlib.contextmanager
def open_parquet(path: PathLike) -> Iterator[Any]:
    """Open a Parquet file with pyarrow; raise ParseError if pyarrow cannot read it."""
    missing = "Parquet files need pyarrow; install it with: pip install 'gbmrank[parquet]'"
    pa, pq = (import_optional(name, missing) for name in ("pyarrow", "pyarrow.parquet"))
    try:
        with open(path, "rb") as file:
            if not file.seekable():
                raise DataError(f"{quoted(path)} is a pipe; save it, as Parquet needs a real file")
            yield pq.ParquetFile(file)
    except pa.ArrowMemoryError:  # an ArrowException too
        raise
    except pa.ArrowException as error:
        raise ParseError(f"{quoted(path)[1:-1]}: not a readable Parquet file: {error}") from error


def _assembled(
    path: PathLike,
    found: Sequence[str],
    header: Header,
    coded: set[str],
    readers: tuple[Callable[[str, str], Any], Callable[[str], Any]],
) -> RankingFile:
    """Read the columns of a table; ``readers`` read one for its role, and one as texts."""
    read, texts = readers
    parts, names = header.resolve(found, path)
    given = {part: read(name, part) for part, name in parts.items()}
    features: dict[str, Any] = {}
    categories: dict[str, Categories] = {}
    left_out: dict[str, str] = {}
    for name in names:
        listed = name in (header.features or ())
        if name in coded or name in header.categorical:
            features[name], categories[name] = category_codes(read(name, "category"))
            continue
        try:
            values = read(name, "feature")
        except DataError:
            made = _coded(texts(name))
            if made is None and (listed or texts(name) is None):
                raise
            if made is None:
                left_out[name] = "because they have text of many values, or no numbers"
            else:
                features[name], categories[name] = made
            continue
        numbers_rows = len(values) >= _ROW_NUMBERS and bool((np.diff(values) == 1.0).all())
        if header.features is None and numbers_rows:
            left_out[name] = "because they number the rows"
        else:
            features[name] = values
    return RankingFile(
        labels=given["label"] if "label" in given else np.zeros(len(next(iter(given.values())))),
        qid=given.get("qid"),
        scores=given.get("score"),
        X=np.column_stack(list(features.values())) if features else None,
        ids=given.get("docid"),
        feature_names=tuple(features),
        categories=categories,
        columns={key: given[key] for key in header.columns if key in given},
        roles=parts,
        left_out=tuple(left_out),
        notes=header.notes(found, parts, left_out),
    )


def _coded(texts: Any) -> tuple[FloatArray, Categories] | None:
    """Return the codes of a column of text with few values, or None."""
    known = set() if texts is None else {one for one in texts if one is not None}
    few = known and len(known) <= _FEW_TEXTS and 2 * len(known) <= len(texts)
    if not few or not all(isinstance(one, str) for one in known):
        return None
    if importlib.util.find_spec("pandas") is None:  # boosters read categories from its frames
        return None
    return category_codes(texts)


def _csv_rows(
    path: PathLike, delimiter: str | None, limits: Limits
) -> Iterator[tuple[int, list[str]]]:
    """Yield the names of the columns, then the line number and the cells of each row.

    A first line of numbers is a row; the columns are then numbered from 0.
    """
    lines = read_lines(path, limits, blank=True)
    number, first = next((one for one in lines if one[1].strip()), (1, ""))
    usual = "\t" if _suffix(path) == ".tsv" else ","
    # The usual one is first, so it wins where others are as frequent, or none is there.
    counts = {one: first.count(one) for one in (usual, *_DELIMITERS)}
    delimiter = delimiter or max(counts, key=lambda one: counts[one])
    blank = itertools.repeat("\n", number - 1)  # before the first: the reader counts lines
    rest = (line + "\n" for _, line in itertools.chain([(number, first)], lines))
    reader = csv.reader(itertools.chain(blank, rest), delimiter=delimiter, strict=True)
    named = False
    try:
        for cells in reader:
            if cells and not named:
                named = True
                numbers = [str(at) for at in range(len(cells) + 1)]
                # Names that are numbers in order are those that pandas gives to columns.
                if cells not in (numbers[:-1], numbers[1:]) and all(map(_is_number, cells)):
                    yield 0, numbers[:-1]
            if cells:
                yield reader.line_num, cells
    except csv.Error as error:
        if "field larger" in str(error):
            raise LimitError(
                f"{quoted(path)[1:-1]}:{reader.line_num}: a cell has more than "
                f"{csv.field_size_limit():,} characters; is a quote missing?"
            ) from error
        raise fail(path, reader.line_num, 1, str(error)) from error


def _is_number(cell: str) -> bool:
    return to_number(cell.strip()) is not None


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


def _arrow_column(column: Any, part: str, name: str, path: PathLike) -> Any:
    if part == "category":
        return np.array(column.to_pylist(), dtype=object)
    if part == "time":
        return column.to_numpy()
    values, file = np.asarray(column), quoted(path)[1:-1]
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
    if part not in _FINITE:
        return values.astype(np.float64, copy=False)
    numbers = values.astype(np.float64)
    check_digits(values, f"values of {quoted(name)} in {quoted(path)}")
    if len(broken := np.flatnonzero(~np.isfinite(numbers))):
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
