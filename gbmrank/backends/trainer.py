"""Training one ranker with either booster: the data, what is watched, and when to stop.

Stopping is decided here and not by the boosters: XGBoost guesses from a metric's name whether
to maximise and rounds values to six decimals, LightGBM needs a name of its own for each set.
"""

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, final

from gbmrank.data.queries import RankingData
from gbmrank.errors import MissingBackendError
from gbmrank.types import FloatArray

__all__ = ["Fitted", "Job", "Monitor", "Part", "import_booster", "is_before"]


_OLDEST = {"lightgbm": (4, 6), "xgboost": (3, 1)}  # as in pyproject.toml


def is_before(version: str, least: tuple[int, int]) -> bool:
    """Whether a version is older than a release; one that cannot be read is not.

    Examples
    --------
    >>> is_before("4.6.0", (4, 7)), is_before("4.10rc1", (4, 7)), is_before("unknown", (4, 7))
    (True, False, False)
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and tuple(map(int, found.groups())) < least


def import_booster(backend: str) -> Any:
    """Import a booster, or say what to install.

    Raises
    ------
    MissingBackendError
        When it is not installed, or older than gbmrank can use.
    """
    try:
        module = importlib.import_module(backend)
    except ImportError as error:
        raise MissingBackendError(
            f"backend={backend} needs {backend}: pip install 'gbmrank[{backend}]'"
        ) from error
    if is_before(module.__version__, _OLDEST[backend]):
        oldest = ".".join(map(str, _OLDEST[backend]))
        raise MissingBackendError(
            f"backend={backend} needs {backend} {oldest} or later, and {module.__version__} is "
            f"installed: pip install '{backend}>={oldest}'"
        )
    return module


@final
@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows to train or to judge on.

    Parameters
    ----------
    features : table
        Anything the booster reads; rows in query order, as ``data`` has them.
    data : RankingData
        Labels, queries and weights.
    """

    features: Any
    data: RankingData


@final
class Monitor:
    """Values of the metrics after every round, and the round to stop at.

    The first metric on the last data set decides.

    Parameters
    ----------
    evaluate : callable
        ``(scores, data set) -> list of (name, value, ...)``, one entry per metric.
    names : sequence of str
        Of the metrics.
    higher_is_better : bool
        Direction of the first metric.
    patience : int or None
        Stop after so many rounds without improvement; None never stops.
    on_round : callable or None
        Called after every round with the number of rounds done.
    """

    def __init__(
        self,
        evaluate: Callable[[Any, Any], Sequence[Any]],
        names: Sequence[str],
        higher_is_better: bool,
        patience: int | None = None,
        on_round: Callable[[int], None] | None = None,
    ) -> None:
        self.names = tuple(names)
        self.history: dict[str, dict[str, list[float]]] = {}
        self.best_round = -1
        self.best_value = float("nan")
        self._evaluate, self._sign = evaluate, 1.0 if higher_is_better else -1.0
        self._patience, self._on_round = patience, on_round
        self._names_of: dict[int, str] = {}
        self.rounds_done = 0

    def watch(self, name: str, data: object) -> None:
        """Say under which name the values of a data set are kept."""
        self._names_of[id(data)] = name
        self.history[name] = {metric: [] for metric in self.names}

    def __call__(self, scores: Any, data: Any) -> Sequence[Any]:
        """Answer a booster as its custom metric, and remember the answer."""
        answers = self._evaluate(scores, data)
        kept = self.history[self._names_of[id(data)]]
        for name, answer in zip(self.names, answers, strict=True):
            kept[name].append(float(answer[1]))
        return answers

    def end_round(self) -> bool:
        """Count a round; return whether to stop."""
        if self.history:
            value = next(reversed(self.history.values()))[self.names[0]][-1]
            if self.best_round < 0 or self._sign * (value - self.best_value) > 0.0:
                self.best_round, self.best_value = self.rounds_done, value
        self.rounds_done += 1
        if self._on_round is not None:
            self._on_round(self.rounds_done)
        waited = self.rounds_done - 1 - self.best_round
        return self._patience is not None and bool(self.history) and waited >= self._patience


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Job:
    """One training.

    Parameters
    ----------
    train : Part
        What is learned from.
    valid : mapping of str to Part
        What is watched, in order; the last one decides about stopping.
    objective : callable or str
        Ours, or the name of one of the booster's own.
    params : mapping
        Of the booster.
    rounds : int
        Most trees to grow.
    monitor : Monitor
        Sees every round.
    keep_best : bool, default=True
        Cut the model after its best round, where something was watched.
    """

    train: Part
    objective: Any
    params: Mapping[str, Any]
    rounds: int
    monitor: Monitor
    valid: Mapping[str, Part] = field(default_factory=dict)
    keep_best: bool = True

    @property
    def rounds_to_keep(self) -> int:
        """Number of rounds up to the best one; 0 for all of them."""
        return self.monitor.best_round + 1 if self.keep_best else 0


class Fitted(Protocol):
    """A trained booster."""

    backend: str
    booster: Any

    @property
    def n_rounds(self) -> int:
        """Number of trees that count: up to the best round."""
        ...

    def scores(self, features: Any) -> FloatArray:
        """Return one raw score per row."""
        ...

    def importances(self) -> FloatArray:
        """Return the summed gain of the splits on each feature."""
        ...

    def stamp(self, identity: str) -> None:
        """Keep a text in the model; files carry it, and the booster reads past it."""
        ...

    def save(self, path: str) -> None:
        """Write the model in the booster's own format."""
        ...
