"""Files that are written: atomically, with a checksum inside, safe in spreadsheets.

The checksum is verified before anything in a file is used: a damaged model can make a booster
abort the process or silently predict wrong scores. It detects accidental damage only: anyone who
edits a file on purpose can update it.
"""

import hashlib
import os
import re
import secrets
from pathlib import Path

from gbmrank.data.readers.text import to_number

NAME = "gbmrank_sha256"
# A marker before the digits and one after them: no single change hides both.
_ZEROS, _WORDS = b"0" * 64, b" of this file with zeros here"
BLANK = (_ZEROS + _WORDS).decode()
_PLACE = re.compile(rb"[0-9a-f]{64}(?=" + _WORDS + rb")")
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: completely or not at all."""
    temporary = path.parent / f".writing-{os.getpid()}-{secrets.token_hex(8)}"
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename, error.filename2 = str(path), None
        raise


def spreadsheet_cell(text: str) -> str:
    r"""Return a cell that is safe in spreadsheets and terminals: no formulas, no escapes.

    >>> spreadsheet_cell("=1+1"), spreadsheet_cell("-5"), spreadsheet_cell("q1")
    ("'=1+1", '-5', 'q1')
    >>> print(spreadsheet_cell("\x1b[31mred"))
    \x1b[31mred
    """
    text = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    formula = text.startswith(_FORMULAS) and to_number(text) is None
    return f"'{text}" if formula else text


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
