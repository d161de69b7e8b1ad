"""A checksum inside a model file, so that a changed byte is seen before a booster reads it.

At a damaged file a booster can end the whole process, or give other scores without a word. The
checksum is against damage alone: who changes a file on purpose can make a new one.
"""

import hashlib
import re

from gbmrank.errors import DataError

__all__ = ["BLANK", "NAME", "check_unchanged", "with_checksum"]

NAME = "gbmrank_sha256"
# The name before the digits and the words after them: no single change hides both.
_ZEROS, _WORDS = b"0" * 64, b" of this file with zeros here"
BLANK = (_ZEROS + _WORDS).decode()
_PLACE = re.compile(rb"[0-9a-f]{64}(?=" + _WORDS + rb")")


def with_checksum(data: bytes) -> bytes:
    """Return a file with its SHA-256 in the place of the zeros of ``BLANK``.

    Parameters
    ----------
    data : bytes
        The file, which holds ``BLANK`` under ``NAME``.

    Examples
    --------
    >>> made = with_checksum(f"{NAME}={BLANK}".encode())
    >>> check_unchanged(made, "file")
    >>> len(made) == len(NAME) + 1 + len(BLANK)
    True
    """
    return _put(data, data.index(BLANK.encode()), _digest(data))


def check_unchanged(data: bytes, path: str) -> None:
    """Raise DataError when a file has a checksum that does not fit.

    A file without one, or with zeros in its place, passes: an earlier gbmrank or the booster
    wrote it.

    Parameters
    ----------
    data : bytes
        The file.
    path : str
        For the message.
    """
    if NAME.encode() not in data and _WORDS not in data:
        return
    for found in _PLACE.finditer(data):
        if found.group() in (_ZEROS, _digest(_put(data, found.start(), _ZEROS))):
            return
    raise DataError(
        f"{path} is not the file that gbmrank wrote: its checksum does not fit. It was damaged, "
        "for instance by converted line ends, or edited, or the booster saved it again. Take "
        "another copy or save the model anew; if the change is meant, "
        "gbmrank.load(path, verify=False) reads the file without its checksum"
    )


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _put(data: bytes, at: int, digits: bytes) -> bytes:
    return data[:at] + digits + data[at + len(digits) :]
