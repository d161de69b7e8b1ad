"""Seeds and numbers of threads that boosters would change without a word, or not survive."""

import os
from typing import Any

import numpy as np

from gbmrank.errors import ConfigError, ParameterError
from gbmrank.types import is_whole

__all__ = ["check_seed", "whole_threads"]

_MOST_THREADS = 1024
_LARGEST_SEED = 2**31 - 1


def check_seed(seed: object, least: int = -_LARGEST_SEED) -> None:
    """Refuse what is no seed of a booster; None is left to it.

    Parameters
    ----------
    seed : object
        As it was given.
    least : int, default=-2147483647
        Smallest one.

    Raises
    ------
    ConfigError
        For a source of random numbers, since a model is to be made again from its parameters,
        and for numbers beyond 32 bits: boosters keep no more, so different seeds become one.
    """
    if seed is None:
        return
    if isinstance(seed, np.random.RandomState | np.random.Generator):
        raise ConfigError(
            f"seed must be a whole number, got a {type(seed).__name__}; draw one from it, such as "
            "int(np.random.RandomState(0).randint(2**31 - 1))"
        )
    if not is_whole(seed) or not least <= seed <= _LARGEST_SEED:  # type: ignore[operator]  # whole
        raise ConfigError(
            f"seed must be a whole number from {least} to {_LARGEST_SEED}, got {seed!r}"
        )


def whole_threads(name: str, threads: Any) -> Any:
    """Return a number of threads as Python has it; None is left to the booster.

    Raises
    ------
    ParameterError
        For what is no whole number, and for more threads than LightGBM survives.
    """
    if threads is None:
        return threads
    if not is_whole(threads):
        raise ParameterError(f"{name} must be a whole number or None, got {threads!r}")
    most = max(_MOST_THREADS, os.cpu_count() or 1)
    if threads > most:
        raise ParameterError(
            f"{name}={threads} is more than {most}, and too many threads end the process; give the "
            "number of processors, or None"
        )
    return int(threads)
