"""LETOR and svmlight text with query ids.

One document per line, features by increasing index::

    2 qid:10 1:0.031 2:0.666 5:NULL #docid = GX008-86-4444840 inc = 1

Text is read in blocks. Numbers of a whole block are converted at once where every line has
the plain form. A block with anything unusual is read line by line, token by token: that is the
definition of the format, and finds the place of an error.
"""

import math
import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank.data.readers.text import (
    NO_ID,
    Limits,
    PathLike,
    RankingFile,
    check_line,
    decode,
    fail,
    quoted,
    read_blocks,
    text_array,
    to_number,
)
from gbmrank.errors import DataError, LimitError
from gbmrank.types import FloatArray

__all__ = ["read_letor"]

_TOKEN = re.compile(r"[^ \t]+")
_DOCID = re.compile(r"docid\s*=\s*(\S+)")
_LARGEST_INDEX = 999_999_999


class _Rules(NamedTuple):
    """What the caller asked for, and what the lines before have settled."""

    path: PathLike
    features: bool
    zero_based: bool
    n_features: int | None
    need_qid: bool
    with_qid: bool | None

    @property
    def first_index(self) -> int:
        """Smallest index of a feature."""
        return 0 if self.zero_based else 1

    @property
    def last_index(self) -> int:
        """Largest index of a feature."""
        if self.n_features is None:
            return _LARGEST_INDEX
        return self.n_features + self.first_index - 1


class _Line(NamedTuple):
    """What one line says."""

    label: float
    qid: str | None
    docid: str
    indices: list[int]
    values: list[float]


class _Token(NamedTuple):
    text: str
    column: int


class _Fault(Exception):
    """A column of a line, from 1, and what is wrong there."""

    def __init__(self, column: int, reason: str) -> None:
        super().__init__(reason)
        self.column = column


def _read_line(text: str, rules: _Rules) -> _Line | None:
    """Read a line, or return None for one without data."""
    data, _, comment = text.partition("#")
    tokens = [_Token(match[0], match.start() + 1) for match in _TOKEN.finditer(data)]
    if not tokens:
        return None
    label = to_number(tokens[0].text)
    if label is None or not math.isfinite(label):
        raise _Fault(
            tokens[0].column,
            f"a line begins with its label, a finite number; got {quoted(tokens[0].text)}",
        )
    qid = _qid(tokens, rules)
    indices: list[int] = []
    values: list[float] = []
    for token in tokens[1 if qid is None else 2 :]:
        indices.append(_index(token, indices[-1] if indices else None, rules))
        if rules.features:
            values.append(_value(token))
    return _Line(label, qid, _docid(comment), indices, values)


def _docid(comment: str) -> str:
    """Return the document id in a comment, or nothing."""
    match = _DOCID.search(comment)
    return "" if match is None else match[1]


def _qid(tokens: list[_Token], rules: _Rules) -> str | None:
    after = tokens[0].column + len(tokens[0].text)
    if len(tokens) == 1 or not tokens[1].text.startswith("qid:"):
        if rules.need_qid or rules.with_qid:
            raise _Fault(
                after,
                "expected qid:<query> after the label; ranking data needs to know which rows "
                "belong together (a file of query sizes can stand in: need_qid=False, or --group "
                "FILE)",
            )
        return None
    if rules.with_qid is False:
        raise _Fault(after + 1, "this line has a qid, those before have none; all or none")
    qid = tokens[1].text[4:]
    if qid in NO_ID:
        raise _Fault(tokens[1].column + 4, f"a row without a query id, got {qid!r}")
    return qid


def _index(token: _Token, previous: int | None, rules: _Rules) -> int:
    text, colon, value = token.text.partition(":")
    if not (colon and text and value):
        raise _Fault(token.column, f"expected index:value, got {quoted(token.text)}")
    if not (text.isascii() and text.isdigit()) or int(text) > _LARGEST_INDEX:
        second = "; qid comes second, after the label" if text == "qid" else ""
        raise _Fault(
            token.column,
            f"a feature index is a whole number up to {_LARGEST_INDEX:,}, got {quoted(text)}"
            + second,
        )
    index = int(text)
    if index < rules.first_index:
        raise _Fault(
            token.column,
            "feature index 0; indices count from 1 (for a file that counts from 0 say "
            "zero_based=True, --zero-based)",
        )
    if index > rules.last_index:
        raise _Fault(token.column, f"feature index {index}, but n_features={rules.n_features}")
    if previous is not None and index <= previous:
        what = "is given twice" if index == previous else f"comes after {previous}"
        raise _Fault(token.column, f"feature index {index} {what}; indices must increase")
    return index


def _value(token: _Token) -> float:
    at = token.text.index(":") + 1
    text = token.text[at:]
    value = math.nan if text.upper() == "NULL" else to_number(text)
    if value is None or math.isinf(value):
        raise _Fault(
            token.column + at,
            "a feature value is a finite number, or NULL or nan where it is missing; got "
            f"{quoted(text)}",
        )
    return value


_LINE = re.compile(
    rb"^[ \t]*(?:([^ \t\n#:]+)(?:[ \t]+qid:([^ \t\n#]+))?([^#\n]*))?(#[^\n]*)?$", re.MULTILINE
)
_FEATURES = re.compile(rb"(?:[ \t]+\d{1,9}:(?:NULL|[-+.0-9eE]+))*+[ \t]*")


class _Block(NamedTuple):
    """Rows of one block; features as counts per row, indices and values."""

    labels: FloatArray
    qid: list[str]
    ids: list[str]
    counts: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: FloatArray


def read_letor(
    path: PathLike,
    *,
    features: bool = True,
    n_features: int | None = None,
    zero_based: bool = False,
    need_qid: bool = True,
    limits: Limits | None = None,
) -> RankingFile:
    """Read LETOR text, plain or compressed with gzip.

    ``NULL`` is a missing value (NaN); a feature that a line leaves out is 0, as in svmlight.
    A comment with ``docid = ...`` gives the document id. A byte order mark, Windows line
    ends, blank lines and lines that are only a comment are accepted.

    Parameters
    ----------
    path : str or path
        The file.
    features : bool, default=True
        Whether to convert the features; without them ``X`` is None, and their values (not
        their indices) go unchecked.
    n_features : int, optional
        Columns of ``X``; the largest index by default. Give it for a file that must fit
        another one.
    zero_based : bool, default=False
        Whether the first feature has index 0 instead of 1.
    need_qid : bool, default=True
        Reject lines without ``qid:``. Otherwise all lines have one, or none.
    limits : Limits, optional
        Sizes above which the file is rejected.

    Returns
    -------
    RankingFile
        With labels, qid, X, ids and feature names (the indices of the file).

    Raises
    ------
    ParseError
        With file, line and column: a label that is no finite number, no qid, a feature that
        is not ``index:value``, an index that is 0, repeated, or smaller than the one before.
    LimitError
        When the file is larger than the limits allow.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"2 qid:7 1:0.5 3:NULL #docid = A1")
    ...     file.flush()
    ...     read = read_letor(file.name)
    >>> read.labels, read.qid, read.X, read.ids
    (array([2.]), array(['7'], dtype='<U1'), array([[0.5, 0. , nan]]), array(['A1'], dtype='<U2'))
    """
    limits = limits or Limits()
    rules = _Rules(path, features, zero_based, n_features, need_qid, None)
    blocks: list[_Block] = []
    for first, text in read_blocks(path, limits):
        block = _read_plain(text, rules, limits) or _read_carefully(text, first, rules, limits)
        if not len(block.labels):
            continue
        blocks.append(block)
        rules = rules._replace(with_qid=bool(block.qid))
        _check_cells(path, blocks, rules, limits)
    if not blocks:
        raise DataError(f"{quoted(path)} holds no line with a label")
    return _joined(blocks, rules, limits)


def _read_carefully(text: bytes, first: int, rules: _Rules, limits: Limits) -> _Block:
    """Read a block line by line; raise at the first line that cannot be read."""
    lines: list[_Line] = []
    for number, raw in enumerate(text.split(b"\n")[:-1], first):
        check_line(raw, number, rules.path, limits)
        try:
            line = _read_line(decode(raw, rules.path, number), rules)
        except _Fault as fault:
            raise fail(rules.path, number, fault.column, str(fault)) from None
        if line is not None:
            rules = rules._replace(with_qid=line.qid is not None)
            lines.append(line)
    return _Block(
        np.array([line.label for line in lines], dtype=np.float64),
        [line.qid for line in lines if line.qid is not None],
        [line.docid for line in lines],
        np.array([len(line.indices) for line in lines], dtype=np.int64),
        np.array([index for line in lines for index in line.indices], dtype=np.int32),
        np.array([value for line in lines for value in line.values], dtype=np.float64),
    )


def _read_plain(text: bytes, rules: _Rules, limits: Limits) -> _Block | None:
    """Read a block of plain lines at once, or return None."""
    rows = [] if b"\0" in text else _LINE.findall(text, 0, len(text) - 1)
    if len(rows) != text.count(b"\n"):
        return None
    if max(sum(map(len, row)) for row in rows) > limits.max_line - 4:  # qid: is in no group
        return None
    rows = [row for row in rows if row[0]]
    labels = _plain_labels([row[0] for row in rows])
    qid = _plain_qid([row[1] for row in rows], rules)
    features = _plain_features([row[2] for row in rows], rules)
    ids = _plain_ids([row[3] for row in rows])
    if labels is None or qid is None or features is None or ids is None:
        return None
    return _Block(labels, qid, ids, *features)


def _plain_ids(comments: list[bytes]) -> list[str] | None:
    try:
        return [_docid(comment.decode("utf-8")) for comment in comments]
    except UnicodeDecodeError:
        return None


def _plain_labels(texts: list[bytes]) -> FloatArray | None:
    known = {text: to_number(text.decode("latin-1")) for text in set(texts)}
    if any(value is None or not np.isfinite(value) for value in known.values()):
        return None
    return np.array([known[text] for text in texts], dtype=np.float64)


def _plain_qid(texts: list[bytes], rules: _Rules) -> list[str] | None:
    """Return the ids of all rows, an empty list where no row has one, None for a mixture."""
    known = set(texts)
    missing = b"" in known
    if missing:
        allowed = not rules.need_qid and not rules.with_qid and len(known) == 1
        return [] if allowed else None
    if rules.with_qid is False and texts:
        return None
    try:
        decoded = {text: text.decode("utf-8") for text in known}
    except UnicodeDecodeError:
        return None
    return [decoded[text] for text in texts] if NO_ID.isdisjoint(decoded.values()) else None


def _plain_features(texts: list[bytes], rules: _Rules) -> tuple[Any, Any, Any] | None:
    """Return counts, indices and values, or None unless all is ``index:value``."""
    joined = b"".join(texts)
    if not _FEATURES.fullmatch(joined):
        return None
    counts = np.array([row.count(b":") for row in texts], dtype=np.int64)
    numbers = np.zeros(0)
    if counts.any():
        try:
            plain = joined.replace(b":NULL", b":nan").replace(b":", b" ")
            numbers = np.fromstring(plain, dtype=np.float64, sep=" ")
        except (ValueError, DeprecationWarning):  # numpy before 2.3 only warns of bad numbers
            return None
    if len(numbers) != 2 * counts.sum() or np.isinf(numbers).any():  # 1-2 is read as two numbers
        return None
    index = numbers[::2].astype(np.int32)
    return (counts, index, numbers[1::2]) if _in_order(index, counts, rules) else None


def _in_order(index: npt.NDArray[np.int32], counts: npt.NDArray[np.int64], rules: _Rules) -> bool:
    """Tell whether the indices of each row increase and are within bounds."""
    if not len(index):
        return True
    steps = np.diff(index)
    ends = np.cumsum(counts)[:-1]
    steps[ends[(ends > 0) & (ends < len(index))] - 1] = 1  # from row to row
    return bool(
        steps.min(initial=1) > 0
        and index.min() >= rules.first_index
        and (rules.n_features is None or index.max() <= rules.last_index)
    )


def _shape(blocks: list[_Block], rules: _Rules) -> tuple[int, int]:
    rows = sum(len(block.labels) for block in blocks)
    if rules.n_features is not None:
        return rows, rules.n_features
    largest = max(int(block.indices.max(initial=rules.first_index - 1)) for block in blocks)
    return rows, largest + 1 - rules.first_index


def _check_cells(path: PathLike, blocks: list[_Block], rules: _Rules, limits: Limits) -> None:
    rows, width = _shape(blocks, rules)
    if rules.features and rows * width > limits.max_cells:
        raise LimitError(
            f"{quoted(path)} would fill {rows:,} rows with {width:,} features (the "
            f"largest index), more than {limits.max_cells:,} cells; raise max_cells, or say "
            "features=False to read labels and queries alone"
        )


def _joined(blocks: list[_Block], rules: _Rules, limits: Limits) -> RankingFile:
    ids = [docid for block in blocks for docid in block.ids]
    qid = [one for block in blocks for one in block.qid]
    matrix, width = None, 0
    if rules.features:
        n_rows, width = _shape(blocks, rules)
        matrix = np.zeros((n_rows, width))
        row = 0
        for block in blocks:
            rows = np.repeat(np.arange(row, row + len(block.labels)), block.counts)
            matrix[rows, block.indices - rules.first_index] = block.values
            row += len(block.labels)
    return RankingFile(
        labels=np.concatenate([block.labels for block in blocks]),
        qid=text_array(qid, rules.path, limits) if qid else None,
        X=matrix,
        ids=text_array(ids, rules.path, limits) if any(ids) else None,
        feature_names=tuple(str(rules.first_index + column) for column in range(width)),
        by_index=True,
    )
