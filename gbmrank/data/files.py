"""A checksum inside a file, verified before anything in the file is used.

A damaged model can make a booster abort the process or silently predict wrong scores. The
checksum detects accidental damage only: anyone who edits a file on purpose can update it.
"""

import hashlib
import re

NAME = "gbmrank_sha256"
# A marker before the digits and one after them: no single change hides both.
_ZEROS, _WORDS = b"0" * 64, b" of this file with zeros here"
BLANK = (_ZEROS + _WORDS).decode()
_PLACE = re.compile(rb"[0-9a-f]{64}(?=" + _WORDS + rb")")


def with_checksum(data: bytes) -> bytes:
    """Return a file with its SHA-256 in place of the zeros of ``BLANK``."""
    return _put(data, data.index(BLANK.encode()), _digest(data))


def is_unchanged(data: bytes) -> bool:
    """Whether the checksum of a file matches; True for files without one."""
    if NAME.encode() not in data and _WORDS not in data:
        return True
    return any(
        found.group() in (_ZEROS, _digest(_put(data, found.start(), _ZEROS)))
        for found in _PLACE.finditer(data)
    )


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _put(data: bytes, at: int, digits: bytes) -> bytes:
    return data[:at] + digits + data[at + len(digits) :]
