"""What a comparison does, as plain data: every run follows from it and from the rows."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, final

import numpy as np

from gbmrank.boosters.doors import booster_named
from gbmrank.data.columns import read_number, read_whole
from gbmrank.errors import ConfigError, ParameterError, UnknownNameError
from gbmrank.experiments.results import System
from gbmrank.types import is_whole

__all__ = ["LEARNING_RATE", "TUNERS", "Design", "Task", "plain_seeds"]

LEARNING_RATE = 0.1
"""Of every booster, unless a parameter says otherwise."""
TUNERS = ("random", "optuna")
"""How settings to try are drawn."""
_MOST_SEEDS = 1000  # a larger number is meant to be a seed
_LARGEST_SEED = 2**31 - 1


class Task(NamedTuple):
    """One run: which system, which repetition, which fold."""

    system: System
    seed: int
    fold: int

    def __str__(self) -> str:
        return f"{self.system}, fold {self.fold + 1}, seed {self.seed}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Settings of a comparison, checked; numbers of numpy become those of Python.

    Parameters
    ----------
    systems : tuple of System
        What is trained.
    metrics : tuple of str
        What is measured; the first decides about stopping and tuning.
    regret_k : int or None
        Cut-off of the exact regret, where the truth is known.
    folds : int
        Number of folds; 1 for given splits.
    seeds : tuple of int
        Repetitions.
    rounds : int
        Most trees per run.
    early_stopping : int or None
        Patience, in rounds.
    valid_share : float
        Share of the queries that are not judged which validates.
    params : mapping
        Of every booster.
    params_for : mapping of str to mapping
        Of a backend, an objective, or a system (``lightgbm ranknet``); later ones win.
    tune : int
        Settings tried per run; 0 tunes nothing.
    tuner : {"random", "optuna"}
        How they are drawn.
    threads : int
        Of each run.
    """

    systems: tuple[System, ...]
    metrics: tuple[str, ...]
    regret_k: int | None = None
    folds: int = 5
    seeds: tuple[int, ...] = (0,)
    rounds: int = 300
    early_stopping: int | None = 30
    valid_share: float = 0.2
    params: Mapping[str, Any] = field(default_factory=dict)
    params_for: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tune: int = 0
    tuner: str = "random"
    threads: int = 1

    def __post_init__(self) -> None:
        for name, least in (("folds", 1), ("rounds", 1), ("tune", 0), ("threads", 1)):
            object.__setattr__(self, name, read_whole(getattr(self, name), name, least))
        if self.early_stopping is not None:
            patience = read_whole(self.early_stopping, "early_stopping (None for never)", 1)
            object.__setattr__(self, "early_stopping", patience)
        if not 0.0 < (share := read_number(self.valid_share, "valid_share")) < 1.0:
            raise ParameterError(f"valid_share must be between 0 and 1, got {share}")
        object.__setattr__(self, "valid_share", share)
        if self.tuner not in TUNERS:
            raise ParameterError(f"tuner must be one of {', '.join(TUNERS)}; got {self.tuner!r}")
        _check_seeds(self.seeds)
        object.__setattr__(self, "params", _plain_params(self.params, "params"))
        known = dict.fromkeys(
            [system.backend for system in self.systems]
            + [system.objective for system in self.systems]
            + [str(system) for system in self.systems]
        )
        given = {who: _plain_params(what, who) for who, what in self.params_for.items()}
        for who in given:
            if who not in known:
                listed = ", ".join(map(repr, known))
                raise UnknownNameError(f"parameters are given for {who!r}, but there is {listed}")
        object.__setattr__(self, "params_for", given)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Every run, folds first, so that all systems are seen early."""
        return tuple(
            Task(system, seed, fold)
            for seed in self.seeds
            for fold in range(self.folds)
            for system in self.systems
        )

    def fixed_params(self, system: System) -> dict[str, Any]:
        """Return the parameters that were asked for, for one system."""
        asked = dict(self.params)
        for who in (system.backend, system.objective, str(system)):
            asked |= self.params_for.get(who, {})
        return asked

    def params_of(self, system: System) -> dict[str, Any]:
        """Return the parameters of one system, before tuning."""
        asked, tuning = self.fixed_params(system), booster_named(system.backend).tuning
        rate = {} if tuning.is_given("learning_rate", asked) else {"learning_rate": LEARNING_RATE}
        own = {} if asked.keys() & tuning.not_repeatable_with else tuning.repeatable
        return {**own, **rate, **asked}

    def to_json(self) -> dict[str, Any]:
        """Return plain data; :meth:`from_json` leads back."""
        plain = asdict(self)
        plain["systems"] = [list(system) for system in self.systems]
        plain["metrics"], plain["seeds"] = list(self.metrics), list(self.seeds)
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "Design":
        """Read what :meth:`to_json` gave."""
        given = dict(plain)
        given["systems"] = tuple(System(*pair) for pair in given["systems"])
        given["metrics"], given["seeds"] = tuple(given["metrics"]), tuple(given["seeds"])
        return cls(**given)


def plain_seeds(given: Any) -> tuple[int, ...]:
    """Return seeds from how many there are, or from a list of them.

    Examples
    --------
    >>> plain_seeds(3), plain_seeds(np.array([4, 7]))
    ((0, 1, 2), (4, 7))
    """
    if is_whole(given):
        if not 1 <= given <= _MOST_SEEDS:
            raise ConfigError(
                f"seeds says how many, from 1 to {_MOST_SEEDS}, got {given}; a list such as 0,1 "
                "names them one by one"
            )
        return tuple(range(int(given)))
    try:
        return tuple(int(one) if is_whole(one) else one for one in given)
    except TypeError:
        raise ParameterError(
            f"seeds must be how many, or a list of whole numbers such as [0, 1]; got {given!r}"
        ) from None


def _check_seeds(seeds: tuple[int, ...]) -> None:
    if not seeds:
        raise ParameterError("seeds is empty; give at least one, such as 0")
    for at, seed in enumerate(seeds):
        if not is_whole(seed) or not 0 <= seed <= _LARGEST_SEED:
            raise ParameterError(f"seeds are whole numbers from 0 to {_LARGEST_SEED}, got {seed!r}")
        if seed in seeds[:at]:
            raise ConfigError(f"the seed {seed} is asked for twice")


def _plain_params(params: Mapping[str, Any], whose: str) -> dict[str, Any]:
    """Return parameters that can be written as JSON: runs in other processes read them."""
    made = {name: _plain_value(value) for name, value in params.items()}
    for name, value in made.items():
        values = value if isinstance(value, list) else [value]
        if not all(_is_plain(one) for one in values):
            raise ParameterError(
                f"{whose}: {name} must be text, a finite number, a truth value or a list of these; "
                f"got {value!r}"
            )
    return made


def _plain_value(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return [_plain_value(one) for one in value] if isinstance(value, list | tuple) else value


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return math.isfinite(value) if isinstance(value, float) else isinstance(value, str | int)
