"""Numbers on the command line: ASCII digits as in files, no underscores."""

import argparse
import math
import re

from gbmrank.data.readers.text import to_number
from gbmrank.errors import ParameterError

__all__ = ["number", "read_value", "whole"]

_WHOLE = re.compile(r"[-+]?\d{1,4000}", re.ASCII)  # Python reads no more digits than 4300


def whole(text: str) -> int:
    """Read a whole number, as an option or a part of one.

    Examples
    --------
    >>> whole(" 10")
    10
    """
    if not _WHOLE.fullmatch(text.strip()):
        raise argparse.ArgumentTypeError(f"a whole number is needed, such as 10; got {text!r}")
    return int(text)


def number(text: str) -> float:
    """Read a number, as an option or a part of one.

    Examples
    --------
    >>> number("1e-3")
    0.001
    """
    value = _finite(text.strip())
    if value is None:
        raise argparse.ArgumentTypeError(f"a number is needed, such as 0.5; got {text!r}")
    return value


def read_value(text: str) -> bool | int | float | str:
    """Read the value of a booster's parameter.

    Raises
    ------
    ParameterError
        For nothing, and for what only Python takes for a number.

    Examples
    --------
    >>> read_value("0.05"), read_value("true"), read_value("7"), read_value("dart")
    (0.05, True, 7, 'dart')
    """
    plain = text.strip()
    if plain.lower() in ("true", "false"):
        return plain.lower() == "true"
    if _WHOLE.fullmatch(plain):
        return int(plain)
    value = _finite(plain)
    if value is not None:
        return value
    if not plain or _is_pythons(plain):
        raise ParameterError(f"a value is needed, such as 10 or 0.5 or true; got {text!r}")
    return text


def _finite(text: str) -> float | None:
    value = to_number(text)
    return value if value is not None and math.isfinite(value) else None


def _is_pythons(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
