"""A checksum inside a file, so that a changed byte is seen before anything in the file is used.

At a damaged model a booster can end the whole process, or silently give other scores. The
checksum is against damage alone: who changes a file on purpose can make a new one.
"""

import hashlib
import re

__all__ = ["BLANK", "NAME", "is_unchanged", "with_checksum"]

NAME = "gbmrank_sha256"
# The name before the digits and the words after them: no single change hides both.
_ZEROS, _WORDS = b"0" * 64, b" of this file with zeros here"
BLANK = (_ZEROS + _WORDS).decode()
_PLACE = re.compile(rb"[0-9a-f]{64}(?=" + _WORDS + rb")")


def with_checksum(data: bytes) -> bytes:
    """Return a file with its SHA-256 in the place of the zeros of ``BLANK``."""
    return _put(data, data.index(BLANK.encode()), _digest(data))


def is_unchanged(data: bytes) -> bool:
    """Whether the checksum of a file fits, or an earlier gbmrank or another tool wrote none."""
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
