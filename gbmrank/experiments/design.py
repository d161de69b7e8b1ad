"""The design of a comparison as plain data, which with the rows determines every run."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, final

from gbmrank.boosters.supported import booster_named
from gbmrank.data.columns import read_number, read_whole
from gbmrank.errors import ConfigError, ParameterError, UnknownNameError
from gbmrank.experiments.click_logs import Clicks
from gbmrank.experiments.results import System
from gbmrank.types import is_whole

LEARNING_RATE = 0.1
"""Learning rate of every booster, unless set by a parameter."""
TUNERS = ("random", "optuna")
"""How parameter settings are drawn in tuning."""
_MOST_SEEDS = 1000  # a larger number is probably meant as a seed
_LARGEST_SEED = 2**31 - 1


class Task(NamedTuple):
    """One run: which system, which repetition, which fold."""

    system: System
    seed: int
    fold: int

    def __str__(self) -> str:
        return f"{self.system}, fold {self.fold + 1}, seed {self.seed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How runs are split and trained; :func:`gbmrank.compare` describes every option."""

    folds: int = 5  # 1 for given splits
    seeds: tuple[int, ...] = (0,)
    rounds: int = 300
    early_stopping: int | None = 30
    valid_share: float = 0.2
    params: Mapping[str, Any] | None = None
    params_for: Mapping[str, Mapping[str, Any]] | None = None
    tune: int = 0
    tuner: str = "random"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Design(Options):
    """Validated design of a comparison; numpy numbers are converted to Python."""

    systems: tuple[System, ...]
    metrics: tuple[str, ...]  # the first is used for early stopping and tuning
    regret_k: int | None = None  # cut-off of the exact regret, where the truth is known
    threads: int = 1  # of each run
    clicks: Clicks | None = None  # where labels are clicks with positions

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
        object.__setattr__(self, "params", _plain_params(self.params or {}, "params"))
        trained = [one for one in self.systems if not one.is_given]
        names = [(one.backend, one.objective, str(one)) for one in trained]
        known = dict.fromkeys(name for column in zip(*names, strict=True) for name in column)
        given = {who: _plain_params(what, who) for who, what in (self.params_for or {}).items()}
        for who in given:
            if who not in known:
                listed = ", ".join(map(repr, known))
                raise UnknownNameError(f"parameters are given for {who!r}, but there is {listed}")
        object.__setattr__(self, "params_for", given)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """All runs, ordered so that every system has results early."""
        return tuple(
            Task(system, seed, fold)
            for seed in self.seeds
            for fold in range(self.folds)
            for system in self.systems
        )

    def fixed_params(self, system: System) -> dict[str, Any]:
        """Return the parameters that the user set for one system."""
        asked = dict(self.params or {})
        for who in (system.backend, system.objective, str(system)):
            asked |= (self.params_for or {}).get(who, {})
        return asked

    def params_of(self, system: System) -> dict[str, Any]:
        """Return the parameters of one system before tuning; empty for given scores."""
        if system.is_given:
            return {}
        asked, booster = self.fixed_params(system), booster_named(system.backend)
        given, tuning = booster.parameters.read(asked), booster.tuning
        rate = {} if "learning_rate" in given else {"learning_rate": LEARNING_RATE}
        own = {} if asked.keys() & tuning.not_repeatable_with else tuning.repeatable
        return {**own, **rate, **asked}

    def to_json(self) -> dict[str, Any]:
        """Return plain data, which determines every run and is saved with the results."""
        plain = asdict(self)
        plain["systems"] = [list(system) for system in self.systems]
        plain["metrics"], plain["seeds"] = list(self.metrics), list(self.seeds)
        plain["clicks"] = None if self.clicks is None else self.clicks.to_json()
        return plain


def plain_seeds(given: Any) -> tuple[int, ...]:
    """Return seeds from their number, or from a list."""
    if is_whole(given):
        if not 1 <= given <= _MOST_SEEDS:
            raise ConfigError(
                f"seeds is their number, from 1 to {_MOST_SEEDS}, got {given}; to set the seeds "
                "themselves, give a list such as 0,1"
            )
        return tuple(range(int(given)))
    try:
        seeds = tuple(read_whole(one, "a seed", 0) for one in given)
    except TypeError:
        raise ParameterError(
            f"seeds must be a number of seeds or a list such as [0, 1]; got {given!r}"
        ) from None
    if not seeds or max(seeds) > _LARGEST_SEED:
        raise ParameterError(f"seeds is empty or has one above {_LARGEST_SEED}: {given!r}")
    twice = next((seed for at, seed in enumerate(seeds) if seed in seeds[:at]), None)
    if twice is not None:
        raise ConfigError(f"the seed {twice} is given twice")
    return seeds


def _plain_params(params: Mapping[str, Any], whose: str) -> dict[str, Any]:
    """Return parameters after a round trip through JSON, as worker processes see them."""
    try:
        plain: dict[str, Any] = json.loads(
            json.dumps(dict(params), allow_nan=False, default=lambda value: value.tolist())
        )
    except (TypeError, ValueError, AttributeError) as error:
        raise ParameterError(
            f"{whose} must be text, finite numbers, truth values or lists of these: {error}"
        ) from error
    return plain
