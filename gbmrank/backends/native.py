"""The boosters' own objectives: which booster has which."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from gbmrank.errors import ConfigError, UnknownNameError

__all__ = ["NATIVE", "PREFIX", "Native", "check_native", "native_lists", "near_native"]

PREFIX = "native:"
NATIVE: Mapping[str, tuple[str, ...]] = {
    "lightgbm": ("lambdarank", "rank_xendcg"),
    "xgboost": ("rank:ndcg", "rank:pairwise", "rank:map"),
}
"""The boosters' own ranking objectives."""

_NOTHING = ("", "none", "null", "custom", "na")  # LightGBM grows no tree, or takes its default


@final
@dataclass(frozen=True, slots=True)
class Native:
    """One of a booster's own objectives; ``native:lambdarank`` as text."""

    name: str

    def __str__(self) -> str:
        return f"{PREFIX}{self.name}"


def native_lists(*backends: str) -> str:
    """Return what boosters have, for messages; all of them when none is named."""
    return "; ".join(
        f"{backend} has {', '.join(f'{PREFIX}{name}' for name in NATIVE[backend])}"
        for backend in backends or NATIVE
    )


def near_native(name: str, cutoff: float = 0.6) -> str | None:
    """Return the ranking objective of a booster that is spelled most like a name."""
    known = [each for names in NATIVE.values() for each in names]
    near = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"{PREFIX}{near[0]}" if near else None


def check_native(target: Native, backend: str) -> None:
    """Raise for an objective of the other booster, and for a misspelt one.

    Objectives that do not rank, such as ``native:regression``, are left to the booster.

    Raises
    ------
    ConfigError
        When the other booster has it.
    UnknownNameError
        When it is almost the name of a ranking objective.
    """
    if target.name in NATIVE[backend]:
        return
    if target.name.strip().lower() in _NOTHING:
        raise UnknownNameError(f"{str(target)!r} names no objective; {native_lists(backend)}")
    owner = next((other for other, names in NATIVE.items() if target.name in names), None)
    if owner is not None:
        raise ConfigError(
            f"{target} belongs to {owner}, and backend={backend!r}; {native_lists(backend)}"
        )
    near = near_native(target.name, cutoff=0.8)
    if near is not None:
        raise UnknownNameError(
            f"{backend} has no objective {str(target)!r}; did you mean {near}? {native_lists()}"
        )
