"""Options of a comparison as plain Python values; what they cannot be is refused by name."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gbmrank.errors import ConfigError, ParameterError
from gbmrank.types import is_whole

__all__ = [
    "check_listed",
    "plain_baseline",
    "plain_number",
    "plain_params",
    "plain_params_for",
    "plain_path",
    "plain_seeds",
    "plain_value",
]

_MOST_SEEDS = 1000  # a larger number is meant to be a seed


def plain_number(name: str, value: Any, allowed: str) -> float:
    """Return a finite number from 0 as a float; ``allowed`` says in a message what it may be."""
    real = isinstance(value, int | float | np.integer | np.floating)
    try:
        number = float(value) if real and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not 0 <= number < math.inf:
        raise ParameterError(f"{name} must be {allowed}, got {value!r}")
    return number


def plain_seeds(given: Any) -> tuple[int, ...]:
    """Return seeds from how many there are, or from a list of them.

    Examples
    --------
    >>> plain_seeds(3), plain_seeds(np.array([4, 7]))
    ((0, 1, 2), (4, 7))
    """
    if is_whole(given):
        if given < 1:
            raise ConfigError(
                f"seeds must be at least 1, got {given}; a list such as 0,1 names them one by one"
            )
        if given > _MOST_SEEDS:
            raise ConfigError(
                f"seeds says how many, up to {_MOST_SEEDS}, got {given}; a list such as {given},1 "
                "names them one by one"
            )
        return tuple(range(int(given)))
    listed = given.tolist() if isinstance(given, np.ndarray) else given
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        raise ParameterError(
            f"seeds must be how many, or a list of whole numbers such as [0, 1]; got {given!r}"
        )
    return tuple(int(one) if is_whole(one) else one for one in listed)


def plain_params(given: Any, whose: str) -> dict[str, Any]:
    """Return parameters of a booster by name, with plain values."""
    if not isinstance(given, Mapping):
        raise ParameterError(f'{whose} must be a dict such as {{"num_leaves": 31}}, got {given!r}')
    for name in given:
        if not isinstance(name, str):
            raise ParameterError(f"{whose}: names of parameters are text, got {name!r}")
    return {name: plain_value(value) for name, value in given.items()}


def plain_params_for(given: Any) -> dict[str, dict[str, Any]]:
    """Return parameters by whom they are for."""
    if not isinstance(given, Mapping):
        raise ParameterError(
            f'params_for must be a dict of dicts such as {{"ranknet": {{"num_leaves": 31}}}}, '
            f"got {given!r}"
        )
    return {who: plain_params(what, f"params_for[{who!r}]") for who, what in given.items()}


def plain_value(value: Any) -> Any:
    """Return numbers and arrays of numpy as those of Python; anything else as it is."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return [plain_value(one) for one in value] if isinstance(value, list | tuple) else value


def plain_baseline(value: Any) -> str | None:
    """Return the name of a system, or None."""
    if value is not None and not isinstance(value, str):
        raise ParameterError(f"baseline must be text such as 'lightgbm ranknet', got {value!r}")
    return value


def plain_path(name: str, value: Any) -> str:
    """Return a path as text."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise ParameterError(f"{name} must be a path, got {value!r}")
    return os.fspath(value)


def check_listed(name: str, given: Any, example: Sequence[str]) -> None:
    """Raise when something is neither text nor a list."""
    if not isinstance(given, str | Iterable):
        raise ParameterError(f"{name} must be a list such as {list(example)}, got {given!r}")
