"""Reader of LETOR and svmlight files with query ids.

One document per line, features in order of increasing index::

    2 qid:10 1:0.031 2:0.666 5:NULL #docid = GX008-86-4444840 inc = 1

Text is read in blocks. A block in which every line has the usual form is converted at once. A
block with anything unusual is parsed line by line, token by token: this parser defines the
format and locates errors.
"""

import math
import re
from pathlib import Path
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

_TOKEN = re.compile(r"[^ \t]+")
_DOCID = re.compile(r"docid\s*=\s*(\S+)")
_LARGEST_INDEX = 999_999_999


class _Rules(NamedTuple):
    """The caller's options, and what the lines so far have determined."""

    path: PathLike
    features: bool
    first_index: int
    need_qid: bool
    with_qid: bool | None


class _Token(NamedTuple):
    text: str
    column: int


class _Fault(Exception):
    """A parse error within a line: its column, from 1, and the reason."""


def sizes_beside(path: PathLike) -> Path:
    """Return where LightGBM looks for the rows per query of a file.

    >>> sizes_beside("rank.test.gz").name
    'rank.test.query'
    """
    return Path(str(path).removesuffix(".gz") + ".query")


def _label(token: _Token) -> float:
    label = to_number(token.text)
    if label is None or not math.isfinite(label):
        reason = "a line must begin with its label, a finite number; got "
        raise _Fault(token.column, reason + quoted(token.text))
    return label


def _docid(comment: str) -> str:
    """Return the document id in a comment, or an empty string."""
    match = _DOCID.search(comment)
    return "" if match is None else match[1]


def _qid(tokens: list[_Token], rules: _Rules) -> str | None:
    after = tokens[0].column + len(tokens[0].text)
    if len(tokens) == 1 or not tokens[1].text.startswith("qid:"):
        if rules.need_qid or rules.with_qid:
            raise _Fault(
                after,
                "expected qid:<query> after the label"
                + (
                    "" if rules.with_qid else "; without qid, give the rows per query: --group FILE"
                ),
            )
        return None
    if rules.with_qid is False:
        raise _Fault(after + 1, "this line has a qid, but earlier lines have none")
    qid = tokens[1].text[4:]
    if qid in NO_ID:
        raise _Fault(tokens[1].column + 4, f"every row needs a query id, got {qid!r}")
    return qid


def _index(token: _Token, previous: int | None, rules: _Rules) -> int:
    text, colon, value = token.text.partition(":")
    if not (colon and text and value):
        raise _Fault(token.column, f"expected index:value, got {quoted(token.text)}")
    if not (text.isascii() and text.isdigit()) or int(text) > _LARGEST_INDEX:
        second = "; qid comes second, after the label" if text == "qid" else ""
        raise _Fault(
            token.column,
            f"a feature index must be a whole number up to {_LARGEST_INDEX:,}, got {quoted(text)}"
            + second,
        )
    index = int(text)
    if index < rules.first_index:
        raise _Fault(
            token.column,
            "feature index 0, but indices start at 1; for a zero-based file pass zero_based=True "
            "(--zero-based)",
        )
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
            "a feature value must be a finite number, or NULL or nan if it is missing; got "
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
    zero_based: bool = False,
    need_qid: bool = True,
    limits: Limits | None = None,
) -> RankingFile:
    """Read a LETOR file, plain or compressed with gzip.

    ``NULL`` is a missing value (NaN); a feature that a line leaves out is 0, as in svmlight.
    The document id is taken from a comment with ``docid = ...``. A byte order mark, Windows
    line endings, blank lines and lines with only a comment are accepted.

    Without ``features`` the indices are checked, and the values are not. Without ``need_qid`` all
    lines must have a query id, or none.

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
    rules = _Rules(path, features, 0 if zero_based else 1, need_qid, None)
    blocks: list[_Block] = []
    for first, text in read_blocks(path, limits):
        try:
            block = _read_plain(text, rules, limits)
        except (ValueError, DeprecationWarning):  # numpy before 2.3 only warns of bad numbers
            block = _read_carefully(text, first, rules, limits)
        if not len(block.labels):
            continue
        blocks.append(block)
        rules = rules._replace(with_qid=bool(block.qid))
        rows, width = _shape(blocks, rules)
        if features and rows * width > limits.max_cells:
            raise LimitError(
                f"{quoted(path)} needs {rows:,} rows of {width:,} features (the largest index), "
                f"more than {limits.max_cells:,} cells; raise max_cells, or pass features=False to "
                "read only labels and queries"
            )
    if not blocks:
        raise DataError(f"{quoted(path)} has no line with a label")
    return _joined(blocks, rules, limits)


def _read_carefully(text: bytes, first: int, rules: _Rules, limits: Limits) -> _Block:
    """Parse a block line by line; raise at the first invalid line."""
    labels, qid, ids, counts, indices, values = [], [], [], [], [], []
    for number, raw in enumerate(text.split(b"\n")[:-1], first):
        check_line(raw, number, rules.path, limits)
        data, _, comment = decode(raw, rules.path, number).partition("#")
        tokens = [_Token(match[0], match.start() + 1) for match in _TOKEN.finditer(data)]
        if not tokens:
            continue
        try:
            labels.append(_label(tokens[0]))
            query = _qid(tokens, rules)
            own: list[int] = []
            for token in tokens[1 if query is None else 2 :]:
                own.append(_index(token, own[-1] if own else None, rules))
                if rules.features:
                    values.append(_value(token))
        except _Fault as fault:
            raise fail(rules.path, number, *fault.args) from None
        qid += [] if query is None else [query]
        ids.append(_docid(comment))
        counts.append(len(own))
        indices += own
        rules = rules._replace(with_qid=query is not None)
    return _Block(
        np.array(labels, dtype=np.float64),
        qid,
        ids,
        np.array(counts, dtype=np.int64),
        np.array(indices, dtype=np.int32),
        np.array(values, dtype=np.float64),
    )


def _read_plain(text: bytes, rules: _Rules, limits: Limits) -> _Block:
    """Parse a block of usual lines at once; raise ValueError for any other line."""
    rows = [] if b"\0" in text else _LINE.findall(text, 0, len(text) - 1)
    longest = max((sum(map(len, row)) for row in rows), default=0) + 4  # qid: is in no group
    if len(rows) != text.count(b"\n") or longest > limits.max_line:
        raise ValueError
    rows = [row for row in rows if row[0]]
    labels = {text: to_number(text.decode()) for text in {row[0] for row in rows}}
    if any(value is None or not math.isfinite(value) for value in labels.values()):
        raise ValueError
    return _Block(
        np.array([labels[row[0]] for row in rows], dtype=np.float64),
        _plain_qid([row[1] for row in rows], rules),
        [_docid(row[3].decode()) for row in rows],
        *_plain_features([row[2] for row in rows], rules),
    )


def _plain_qid(texts: list[bytes], rules: _Rules) -> list[str]:
    """Return the ids of all rows, or an empty list if no row has one."""
    known = {text: text.decode() for text in set(texts)}
    if known.keys() == {b""} and not rules.need_qid and not rules.with_qid:
        return []
    if (texts and rules.with_qid is False) or not NO_ID.isdisjoint(known.values()):
        raise ValueError
    return [known[text] for text in texts]


def _plain_features(texts: list[bytes], rules: _Rules) -> tuple[Any, Any, Any]:
    """Return counts, indices and values of ``index:value`` pairs with increasing indices."""
    joined = b"".join(texts)
    if not _FEATURES.fullmatch(joined):
        raise ValueError
    counts = np.array([row.count(b":") for row in texts], dtype=np.int64)
    if not counts.any():
        return counts, np.zeros(0, np.int32), np.zeros(0)
    plain = joined.replace(b":NULL", b":nan").replace(b":", b" ")
    numbers = np.fromstring(plain, dtype=np.float64, sep=" ")
    if len(numbers) != 2 * counts.sum() or np.isinf(numbers).any():  # 1-2 is read as two numbers
        raise ValueError
    index = numbers[::2].astype(np.int32)
    steps, ends = np.diff(index), np.cumsum(counts)[:-1]
    steps[ends[(ends > 0) & (ends < len(index))] - 1] = 1  # from row to row
    if steps.min(initial=1) <= 0 or index.min() < rules.first_index:
        raise ValueError
    return counts, index, numbers[1::2]


def _shape(blocks: list[_Block], rules: _Rules) -> tuple[int, int]:
    rows = sum(len(block.labels) for block in blocks)
    largest = max(int(block.indices.max(initial=rules.first_index - 1)) for block in blocks)
    return rows, largest + 1 - rules.first_index


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
