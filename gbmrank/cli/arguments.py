"""Names in the wrong place: what they are, and where they can be used.

Numbers on the command line: ASCII digits as in files, no underscores.
"""

import argparse
import contextlib
import math
import re

from gbmrank.data.readers.text import to_number
from gbmrank.errors import GbmrankError, ParameterError, SpecError, UnknownNameError
from gbmrank.registry.catalogue import GENERATORS, LOSSES, OBJECTIVES
from gbmrank.registry.composition import build
from gbmrank.registry.spec import parse, parse_list

__all__ = [
    "check_no_loss",
    "check_not_native",
    "check_one_metric",
    "number",
    "objective_with",
    "read_value",
    "whole",
]


_TEMPLATES = ("pairwise", "pointwise", "bregman", "comparison")
_NATIVE = "native:"


def check_not_native(name: str) -> None:
    """Refuse a booster's own objective, which has no verdict."""
    if name.strip().startswith(_NATIVE):
        raise UnknownNameError(
            f"{name} is an objective of a booster; gbmrank has no formula of it and so no verdict. "
            "It can be trained: gbmrank compare --objectives, GBMRanker(objective=...)"
        )


def check_no_loss(name: str) -> None:
    """Refuse a loss where an objective is needed, and say which objective has it."""
    bare = re.split(r"[(@]", name, maxsplit=1)[0].strip()
    if bare in OBJECTIVES or not (bare in LOSSES or bare in GENERATORS):
        return
    found = objective_with(name.strip())
    hint = "" if found is None else f"; try {found}"
    raise UnknownNameError(f"{name} is a loss, and an objective is needed{hint}")


def objective_with(loss: str) -> str | None:
    """Return the text of an objective that takes a loss, or None.

    Examples
    --------
    >>> objective_with("logistic")
    'pairwise(loss=logistic)'
    """
    for template in _TEMPLATES:
        text = f"{template}(loss={loss})"
        with contextlib.suppress(GbmrankError):
            build(OBJECTIVES, text)
            return text
    return None


def check_one_metric(text: str) -> None:
    """Refuse several metrics where one is needed."""
    with contextlib.suppress(SpecError):
        parse(text)
        return
    for listed in (text, ", ".join(text.split())):
        with contextlib.suppress(SpecError):
            names = [str(one) for one in parse_list(listed)]
            raise ParameterError(
                f"one metric at a time, got {text!r}; ask for each alone: {' and '.join(names)}"
            )


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
