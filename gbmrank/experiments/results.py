"""Results of a comparison, from which statistics, tables and reports are made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from gbmrank.types import FloatArray, IntArray

GIVEN = "given scores"
"""Backend name of a system whose scores are given, so it is not trained."""
DEBIASED, CROSSFIT, DISTILLED = "debiased", "crossfit", "distilled"
"""Ways to train a system, which its name begins with: ``click_logs`` and ``ways``."""
REGRET = "regret@"
"""Begin of the name of the exact regret as a measure; the cut-off follows."""
_FEW_ROUNDS = 5


def split_name(name: str) -> tuple[str | None, str]:
    """Split the name of a system into its way of training and its objective.

    >>> split_name("crossfit:native:lambdarank"), split_name("native:lambdarank")
    (('crossfit', 'native:lambdarank'), (None, 'native:lambdarank'))
    """
    how, _, rest = name.partition(":")
    known = how.strip() in (DEBIASED, CROSSFIT, DISTILLED)
    return (how.strip(), rest.strip()) if known else (None, name)


class System(NamedTuple):
    """An objective in a booster, or the name of a model whose scores are given."""

    backend: str
    objective: str

    @property
    def is_given(self) -> bool:
        """Whether scores are given, so that nothing is trained."""
        return self.backend == GIVEN

    def __str__(self) -> str:
        if self.is_given:
            return f"{self.objective} ({self.backend})"
        return f"{self.backend} {self.objective}"


class Measure(NamedTuple):
    """A value reported for every query: a metric, or the regret if the truth is known."""

    name: str
    higher_is_better: bool

    @property
    def sign(self) -> float:
        """Factor that makes larger values better."""
        return 1.0 if self.higher_is_better else -1.0

    @property
    def is_regret(self) -> bool:
        """Whether it is the exact regret."""
        return self.name.startswith(REGRET)


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Run:
    """One training of one system, evaluated on the test queries of one fold."""

    system: System
    seed: int
    fold: int  # the one that is tested
    # Numbers of the test queries, in Results.queries; arrays are empty if the run failed.
    queries: IntArray = field(default_factory=partial(np.arange, 0, dtype=np.int64))
    # Of each measure per test query; NaN where it is undefined.
    values: Mapping[str, FloatArray] = field(default_factory=dict)
    # Share of the pairs of a test query whose scores are equal; 1 is a constant score.
    tied: FloatArray = field(default_factory=partial(np.zeros, 0))
    # Of each metric on the validation queries, by round.
    history: Mapping[str, list[float]] = field(default_factory=dict)
    best_round: int = -1  # the one that was kept, from 0; -1 where nothing was trained
    seconds: float = 0.0  # of training; 0 where scores are given
    params: Mapping[str, Any] = field(default_factory=dict)  # of the booster, after tuning
    warnings: tuple[str, ...] = ()
    error: str | None = None  # why there are no values, as ``Type: message``


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Queries:
    """The test queries."""

    ids: npt.NDArray[np.str_]
    sizes: IntArray  # rows of each
    relevant: IntArray  # rows of each with a label above zero

    def __len__(self) -> int:
        return len(self.ids)


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Results:
    """All measurements of a comparison, with its settings."""

    title: str  # of the data
    systems: tuple[System, ...]  # in the order they were given
    measures: tuple[Measure, ...]  # the first is the target, which was used for early stopping
    queries: Queries
    runs: tuple[Run, ...]  # finished ones, including those that failed
    baseline: System  # with which the others are compared
    # One per booster, ``baseline`` first, if each system is compared with that of its own booster.
    baselines: tuple[System, ...] = ()
    # Calibration by objective and measure: status, sentence, reference; unknown for native ones.
    verdicts: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    audit: Mapping[str, Any] = field(default_factory=dict)  # of provenance.data_facts
    settings: Mapping[str, Any] = field(default_factory=dict)  # the design
    conventions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by measure
    environment: Mapping[str, Any] = field(default_factory=dict)  # of provenance.environment

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the runs, sorted."""
        return tuple(sorted({run.seed for run in self.runs}))

    def compared_with(self, system: System) -> System | None:
        """Return the system that this one is compared with; None for the baseline.

        That is the baseline of its booster. The baseline of another booster is compared with the
        same objective in the booster of ``baseline``, if there is one, else with ``baseline``, so
        every system but one takes part in exactly one comparison.
        """
        if system == self.baseline:
            return None
        own = next((one for one in self.baselines if one.backend == system.backend), self.baseline)
        if own != system:
            return own
        alike = System(self.baseline.backend, system.objective)
        return alike if alike in self.systems else self.baseline

    def finished(self, system: System) -> list[Run]:
        """Return the successful runs of a system."""
        return [run for run in self.runs if run.system == system and run.error is None]

    def stopped_at_once(self) -> dict[System, tuple[int, int]]:
        """Return how many runs kept fewer than five rounds, and of how many, by system.

        Empty if fewer rounds were asked for.
        """
        if self.settings.get("rounds", 0) < _FEW_ROUNDS:
            return {}
        found = {}
        for system in self.systems:
            own = self.finished(system)
            few = sum(run.best_round + 1 < _FEW_ROUNDS for run in own)
            if few and not system.is_given:
                found[system] = (few, len(own))
        return found

    def values(self, measure: str) -> FloatArray:
        """Return the values of a measure, shape (n_systems, n_seeds, n_queries); NaN if missing."""
        seeds = {seed: at for at, seed in enumerate(self.seeds)}
        table = np.full((len(self.systems), len(seeds), len(self.queries)), np.nan)
        for own, system in zip(table, self.systems, strict=True):
            for run in self.finished(system):
                own[seeds[run.seed], run.queries] = run.values[measure]
        return table

    @property
    def failed(self) -> tuple[Run, ...]:
        """Runs that ended with an error."""
        return tuple(run for run in self.runs if run.error is not None)
