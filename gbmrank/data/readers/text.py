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
    """Sizes above which a reader raises LimitError.

    Parameters
    ----------
    max_bytes : int, default=8 GiB
        Size of the text, after decompression.
    max_line : int, default=16 MiB
        Length of one line.
    max_cells : int, default=2**29
        Rows times features, and rows times the length of the longest id.
    block : int, default=8 MiB
        Bytes read at once.
    """

    max_bytes: int = 8 << 30
    max_line: int = 16 << 20
    max_cells: int = 1 << 29
    block: int = 8 << 20


def read_blocks(path: PathLike, limits: Limits) -> Iterator[tuple[int, bytes]]:
    r"""Yield blocks of whole lines: the number of the first line, and the bytes.

    A byte order mark is dropped, line endings become ``\n``, and the last line always ends with
    one. Compressed files are recognised by their first two bytes.
    """
    number, total, rest = 1, 0, b""
    with Path(path).open("rb") as raw:
        file = cast(IO[bytes], gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == _GZIP else raw)
        while True:
            piece = _read(file, limits.block, path, number)
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
    """Read a file with one number per line, such as model scores or query sizes.

    Parameters
    ----------
    path : str or path
        The file, plain or compressed with gzip.
    limits : Limits, optional
        Sizes above which the file is rejected.

    Returns
    -------
    array of shape (n_lines,)
        The numbers.

    Raises
    ------
    ParseError
        If a line is not a single finite number.
    """
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


def _read(file: IO[bytes], size: int, path: PathLike, number: int) -> bytes:
    try:
        return file.read(size)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        reason = f"the compressed file is damaged or truncated after this line ({error})"
        raise fail(path, number, 1, f"{reason}; download or create it again") from error


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
    """Ranking data read from a file, with rows in the order of the file.

    Parameters
    ----------
    labels : array of shape (n_rows,)
        Larger is better; finite.
    qid : array of shape (n_rows,) or None
        One query id per row, as string; ``None`` if the file has none.
    numbered : bool
        Whether the ids are numbers from 0, since the file has sizes instead of ids.
    scores : array of shape (n_rows,) or None
        Scores, if the file has them (a table with a score column, a TREC run); finite.
    X : array of shape (n_rows, n_features) or None
        Features; NaN is a missing value.
    ids : array of shape (n_rows,) or None
        Document ids as strings, empty where a row has none.
    feature_names : tuple of str
        One per column of ``X``.
    by_index : bool
        Whether feature names are LETOR indices; another file may then have fewer columns.
    unranked : array of bool of shape (n_rows,) or None
        Rows that were judged but not retrieved; their score is below all others.
    categories : mapping of str to Categories
        Categories of the features whose entries in ``X`` are codes, by feature name.
    columns : mapping of str to array of shape (n_rows,)
        The columns requested by ``Header.columns``, under the same keys.
    roles : mapping of str to str
        Names of the columns of a table by role, such as ``label`` and ``qid``.
    left_out : tuple of str
        Columns that would be features by their names, and are none by their values.
    notes : tuple of str
        Remarks for the user on how the file was read.
    """

    labels: FloatArray
    qid: npt.NDArray[np.str_] | None = None
    numbered: bool = False
    scores: FloatArray | None = None
    X: npt.NDArray[Any] | None = None
    ids: npt.NDArray[np.str_] | None = None
    feature_names: tuple[str, ...] = ()
    by_index: bool = False
    unranked: npt.NDArray[np.bool_] | None = None
    categories: Mapping[str, Categories] = field(default_factory=dict)
    columns: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.labels)
