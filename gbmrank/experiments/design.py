"""What a comparison does, as plain data: every run follows from it and from the rows.

Options of a comparison as plain Python values; what they cannot be is refused by name.
"""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, final

import numpy as np

from gbmrank.errors import ConfigError, ParameterError, UnknownNameError
from gbmrank.experiments.results import System
from gbmrank.types import is_whole

__all__ = [
    "LEARNING_RATE",
    "Design",
    "Task",
    "check_listed",
    "check_params",
    "plain_baseline",
    "plain_number",
    "plain_params",
    "plain_params_for",
    "plain_path",
    "plain_seeds",
    "plain_value",
]


LEARNING_RATE = 0.1
"""Of both boosters, where nothing else is asked for."""
TUNERS = ("random", "optuna")
_OWN = frozenset(
    (
        *("objective", "application", "app", "loss", "metric", "eval_metric"),
        *("num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees", "num_round"),
        *("num_rounds", "num_boost_round", "n_estimators", "max_iter", "early_stopping_round"),
        *("early_stopping_rounds", "early_stopping", "n_iter_no_change", "seed", "random_seed"),
        *("random_state", "num_threads", "num_thread", "nthread", "nthreads", "n_jobs"),
    )
)
_STEP = {
    "lightgbm": ("learning_rate", "shrinkage_rate", "eta"),
    "xgboost": ("learning_rate", "eta"),
}
# Sums in a fixed order, so that a run does not depend on what else the machine does.
_FIXED = MappingProxyType(
    {"lightgbm": {"deterministic": True, "force_row_wise": True}, "xgboost": {}}
)
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
    """Settings of a comparison, checked.

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
        Share of the queries that are not judged which is watched.
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
        _check_numbers(self)
        _check_seeds(self.seeds)
        check_params(self.params, "params")
        known = _addressees(self.systems)
        for who, params in self.params_for.items():
            if who not in known:
                listed = ", ".join(repr(one) for one in known)
                raise UnknownNameError(f"parameters are given for {who!r}, but there is {listed}")
            check_params(params, who)

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
        asked = self.fixed_params(system)
        step = {} if asked.keys() & set(_STEP[system.backend]) else {"learning_rate": LEARNING_RATE}
        own = dict(_FIXED[system.backend])
        if asked.keys() & {"force_col_wise", "device_type", "device"}:
            own = {}
        return {**own, **step, **asked}

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


def check_params(params: Mapping[str, Any], whose: str) -> None:
    """Raise for parameters that a comparison sets itself, and for values that are not plain."""
    for name, value in params.items():
        if name in _OWN:
            raise ConfigError(
                f"{whose}: {name} is set by the comparison itself; use objectives, metrics, "
                "rounds, early_stopping, seeds or threads"
            )
        if not _is_plain(value):
            raise ParameterError(
                f"{whose}: {name} must be text, a finite number, a truth value or a list of these; "
                f"got {value!r}"
            )


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | int | bool)


def _check_numbers(design: Design) -> None:
    least = {"folds": 1, "rounds": 1, "tune": 0, "threads": 1}
    for name, bound in least.items():
        value = getattr(design, name)
        if not is_whole(value) or value < bound:
            raise ParameterError(f"{name} must be a whole number from {bound}, got {value!r}")
    patience = design.early_stopping
    if patience is not None and patience < 1:
        raise ParameterError(
            f"early_stopping must be at least 1, or None to grow every tree; got {patience}"
        )
    if not 0.0 < design.valid_share < 1.0:
        raise ParameterError(f"valid_share must be between 0 and 1, got {design.valid_share}")
    if design.tuner not in TUNERS:
        raise ParameterError(f"tuner must be one of {', '.join(TUNERS)}; got {design.tuner!r}")


def _check_seeds(seeds: Sequence[int]) -> None:
    if not seeds:
        raise ParameterError("seeds is empty; give at least one, such as 0")
    for at, seed in enumerate(seeds):
        if not is_whole(seed) or not 0 <= seed <= _LARGEST_SEED:
            raise ParameterError(f"seeds are whole numbers from 0 to {_LARGEST_SEED}, got {seed!r}")
        if seed in seeds[:at]:
            raise ConfigError(f"the seed {seed} is asked for twice")


def _addressees(systems: Sequence[System]) -> list[str]:
    backends = [system.backend for system in systems]
    objectives = [system.objective for system in systems]
    return list(dict.fromkeys([*backends, *objectives, *map(str, systems)]))


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
