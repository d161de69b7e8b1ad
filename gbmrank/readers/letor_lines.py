"""One line of LETOR text, read token by token so that an error has a place."""

import math
import re
from typing import NamedTuple

from gbmrank.errors import ParseError
from gbmrank.readers.text import NO_ID, PathLike, fail, quoted, to_number

__all__ = ["MAX_ID", "Line", "Rules", "find_docid", "read_line"]

MAX_ID = 1000
"""Longest query or document id; arrays of text give every row as much room as the longest."""

_TOKEN = re.compile(r"[^ \t]+")
_DOCID = re.compile(r"docid\s*=\s*(\S+)")
_LARGEST_INDEX = 999_999_999


class Rules(NamedTuple):
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


class Line(NamedTuple):
    """What one line says."""

    label: float
    qid: str | None
    docid: str
    indices: list[int]
    values: list[float]


class _Token(NamedTuple):
    text: str
    column: int


def read_line(text: str, number: int, rules: Rules) -> Line | None:
    """Read a line, or return None for one without data.

    Raises
    ------
    ParseError
        With file, line and column.
    """
    data, _, comment = text.partition("#")
    tokens = [_Token(match[0], match.start() + 1) for match in _TOKEN.finditer(data)]
    if not tokens:
        return None
    label = _label(tokens[0], number, rules)
    has_qid = len(tokens) > 1 and tokens[1].text.startswith("qid:")
    qid = _qid(tokens[1], number, rules) if has_qid else None
    _check_qid(qid, tokens[0], number, rules)
    indices: list[int] = []
    values: list[float] = []
    for token in tokens[2 if has_qid else 1 :]:
        indices.append(_index(token, indices[-1] if indices else None, number, rules))
        if rules.features:
            values.append(_value(token, number, rules))
    docid = find_docid(comment)
    if len(docid) > MAX_ID:
        raise fail(rules.path, number, len(data) + 1, f"a document id of more than {MAX_ID} bytes")
    return Line(label, qid, docid, indices, values)


def find_docid(comment: str) -> str:
    """Return the document id in a comment, or nothing.

    Examples
    --------
    >>> find_docid("#docid = GX008-86 inc = 1 prob = 0.08")
    'GX008-86'
    """
    match = _DOCID.search(comment)
    return "" if match is None else match[1]


def _label(token: _Token, number: int, rules: Rules) -> float:
    value = to_number(token.text)
    if value is None or not math.isfinite(value):
        raise fail(
            rules.path,
            number,
            token.column,
            f"a line begins with its label, a finite number; got {quoted(token.text)}",
        )
    return value


def _qid(token: _Token, number: int, rules: Rules) -> str:
    qid = token.text[4:]
    if not 0 < len(qid) <= MAX_ID:
        raise fail(
            rules.path,
            number,
            token.column + 4,
            f"a query id has 1 to {MAX_ID} characters, got {len(qid)}",
        )
    if qid in NO_ID:
        raise fail(rules.path, number, token.column + 4, f"a row without a query id, got {qid!r}")
    return qid


def _check_qid(qid: str | None, label: _Token, number: int, rules: Rules) -> None:
    after = label.column + len(label.text)
    if qid is None and (rules.need_qid or rules.with_qid):
        raise fail(
            rules.path,
            number,
            after,
            "expected qid:<query> after the label; ranking data needs to know which rows belong "
            "together (a file of query sizes can stand in: need_qid=False, or --group FILE)",
        )
    if qid is not None and rules.with_qid is False:
        raise fail(
            rules.path,
            number,
            after + 1,
            "this line has a qid, those before have none; all or none",
        )


def _index(token: _Token, previous: int | None, number: int, rules: Rules) -> int:
    text, colon, value = token.text.partition(":")
    if not (colon and text and value):
        raise _at(token, number, rules, f"expected index:value, got {quoted(token.text)}")
    if not (text.isascii() and text.isdigit()) or int(text) > _LARGEST_INDEX:
        second = "; qid comes second, after the label" if text == "qid" else ""
        raise _at(
            token,
            number,
            rules,
            f"a feature index is a whole number up to {_LARGEST_INDEX:,}, got {quoted(text)}"
            + second,
        )
    index = int(text)
    if index < rules.first_index:
        raise _at(
            token,
            number,
            rules,
            "feature index 0; indices count from 1 (for a file that counts from 0 say "
            "zero_based=True, --zero-based)",
        )
    if index > rules.last_index:
        raise _at(token, number, rules, f"feature index {index}, but n_features={rules.n_features}")
    if previous is not None and index <= previous:
        what = "is given twice" if index == previous else f"comes after {previous}"
        raise _at(token, number, rules, f"feature index {index} {what}; indices must increase")
    return index


def _value(token: _Token, number: int, rules: Rules) -> float:
    at = token.text.index(":") + 1
    text = token.text[at:]
    value = math.nan if text.upper() == "NULL" else to_number(text)
    if value is None or math.isinf(value):
        raise fail(
            rules.path,
            number,
            token.column + at,
            f"a feature value is a finite number, or NULL or nan where it is missing; "
            f"got {quoted(text)}",
        )
    return value


def _at(token: _Token, number: int, rules: Rules, reason: str) -> ParseError:
    return fail(rules.path, number, token.column, reason)
