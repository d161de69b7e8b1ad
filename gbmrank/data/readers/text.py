"""Shared by all readers: reading text in blocks of whole lines, size limits, and the result."""

import gzip
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeAlias, cast, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.tables import Categories
from gbmrank.errors import LimitError, ParseError
from gbmrank.types import FloatArray

PathLike: TypeAlias = str | os.PathLike[str]

MISSING = ("", "NULL", "NA", "N/A", "NaN")  # cells without a value
NO_ID = frozenset((*MISSING, "nan"))
_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?(?:nan|inf|infinity)", re.IGNORECASE)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes above which a reader raises LimitError."""

    max_bytes: int = 8 << 30  # of the text, after decompression
    max_line: int = 16 << 20
    max_cells: int = 1 << 29  # rows times features, and rows times the length of the longest id
    block: int = 8 << 20  # bytes read at once


def read_blocks(path: PathLike, limits: Limits) -> Iterator[tuple[int, bytes]]:
    r"""Yield blocks of whole lines: the number of the first line, and the bytes.

    A byte order mark is dropped, line endings become ``\n``, and the last line always ends with
    one. Compressed files are recognised by their first two bytes.
    """
    number, total, rest = 1, 0, b""
    with Path(path).open("rb") as raw:
        file = cast(IO[bytes], gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == _GZIP else raw)
        while True:
            try:
                piece = file.read(limits.block)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                reason = f"the compressed file is damaged or truncated after this line ({error})"
                raise fail(path, number, 1, f"{reason}; download or create it again") from error
            if total == 0 and piece.startswith(_BOM):
                piece = piece[len(_BOM) :]
            total += len(piece)
            if total > limits.max_bytes:
                raise LimitError(
                    f"{quoted(path)} has more than {limits.max_bytes:,} bytes of text; if that is "
                    "expected, raise max_bytes (--max-bytes)"
                )
            cut = piece.rfind(b"\n") + 1
            if not piece:
                break
            lines, rest = (rest + piece[:cut], piece[cut:]) if cut else (b"", rest + piece)
            if lines:
                yield number, lines.replace(b"\r\n", b"\n")
                number += lines.count(b"\n")
            check_line(rest, number, path, limits)
    if rest:
        yield number, rest.removesuffix(b"\r") + b"\n"


def read_lines(path: PathLike, limits: Limits, *, blank: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line; blank lines only with ``blank``."""
    for first, block in read_blocks(path, limits):
        for number, line in enumerate(block.split(b"\n")[:-1], first):
            check_line(line, number, path, limits)
            if blank or line.strip():
                yield number, decode(line, path, number)


def read_column(path: PathLike, limits: Limits | None = None) -> FloatArray:
    """Read a file, plain or gzip, with one finite number per line, such as model scores."""
    values = []
    for number, line in read_lines(path, limits or Limits()):
        text = line.strip()
        value = to_number(text)
        if value is None or not np.isfinite(value):
            column = line.index(text) + 1
            raise fail(path, number, column, f"expected one finite number, got {quoted(text)}")
        values.append(value)
    return np.array(values, dtype=np.float64)


def to_number(text: str) -> float | None:
    """Return a number, or None; stricter than ``float``, which accepts ``1_000``.

    >>> to_number("-1.5e3"), to_number("1_000"), to_number("nan")
    (-1500.0, None, nan)
    """
    return float(text) if _NUMBER.fullmatch(text) or _NOT_FINITE.fullmatch(text) else None


def text_array(texts: Sequence[str], path: PathLike, limits: Limits) -> npt.NDArray[np.str_]:
    """Return ids as a fixed-width array, in which each takes as much memory as the longest."""
    longest = max(map(len, texts), default=0)
    if len(texts) * longest > limits.max_cells:
        raise LimitError(
            f"{quoted(path)} has {len(texts):,} ids of up to {longest:,} characters; their array "
            f"would have more than {limits.max_cells:,} characters; shorten the ids, or raise "
            "max_cells"
        )
    return np.array(texts, dtype=np.str_)


def decode(line: bytes, path: PathLike, number: int) -> str:
    """Decode UTF-8 without NUL bytes; raise ParseError at the first invalid byte."""
    if b"\0" in line:
        column = line.index(b"\0") + 1
        raise fail(path, number, column, "a NUL byte: is this a text file in UTF-8?")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise fail(
            path, number, error.start + 1, f"byte {line[error.start]:#04x} is not UTF-8 text"
        ) from None


def fail(path: PathLike, line: int, column: int, reason: str) -> ParseError:
    """Return the ParseError for a line and column of a file."""
    return ParseError(f"{quoted(path)[1:-1]}:{line}:{column}: {reason}")


def quoted(text: object) -> str:
    """Return the quoted text, shortened and safe to print."""
    shown = str(text)
    return repr(shown if len(shown) <= 120 else f"{shown[:60]}...{shown[-40:]}")


def check_line(line: bytes, number: int, path: PathLike, limits: Limits) -> None:
    """Raise LimitError for a line that is too long."""
    if len(line) > limits.max_line:
        raise LimitError(
            f"{quoted(path)[1:-1]}:{number}: the line is longer than {limits.max_line:,} bytes; if "
            "that is expected, raise max_line (--max-line of gbmrank evaluate)"
        )


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RankingFile:
    """Ranking data read from a file, with rows in the order of the file."""

    labels: FloatArray  # larger is better; finite
    qid: npt.NDArray[np.str_] | None = None  # of each row; None if the file has none
    numbered: bool = False  # the ids are numbers from 0, since the file has sizes instead of ids
    scores: FloatArray | None = None  # of a table with a score column, or a TREC run; finite
    X: npt.NDArray[Any] | None = None  # NaN is a missing value
    ids: npt.NDArray[np.str_] | None = None  # of documents, empty where a row has none
    feature_names: tuple[str, ...] = ()  # one per column of X
    by_index: bool = False  # they are LETOR indices; another file may then have fewer columns
    unranked: npt.NDArray[np.bool_] | None = None  # judged, not retrieved; scored below the others
    categories: Mapping[str, Categories] = field(default_factory=dict)  # of features that are codes
    columns: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)  # of Header.columns
    roles: Mapping[str, str] = field(default_factory=dict)  # names of columns, by label, qid ...
    left_out: tuple[str, ...] = ()  # features by their names, and none by their values
    notes: tuple[str, ...] = ()  # for the user, on how the file was read

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.labels)
