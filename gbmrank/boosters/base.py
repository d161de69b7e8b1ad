"""What gbmrank needs of a booster, and the parts of a training: job, monitor, trained model."""

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, final

from gbmrank.boosters.trees import Trees
from gbmrank.data.queries import RankingData
from gbmrank.data.schema import Schema
from gbmrank.data.tables import Reads, is_before, take_rows
from gbmrank.errors import ConfigError, MissingBackendError
from gbmrank.objectives import AbstractBound, AbstractObjective
from gbmrank.types import FloatArray, IntArray

if TYPE_CHECKING:
    from gbmrank.boosters.bindings import BoosterColumns
    from gbmrank.boosters.settings import Parameters, Setting
    from gbmrank.boosters.supervision import Training


def plain_name(text: str) -> str:
    """Reduce the text of a metric to letters, digits, ``_``, ``.``, ``-`` and ``@``.

    Boosters truncate names at blanks and colons, and trackers such as MLflow reject brackets.

    >>> plain_name("map(threshold=1)@10"), plain_name("err(max_grade=2, empty=zero)")
    ('map_threshold_1@10', 'err_max_grade_2_empty_zero')
    """
    return re.sub(r"_+(@|$)", r"\1", re.sub(r"[^\w.@-]+", "_", text))


def import_booster(name: str, oldest: tuple[int, int]) -> Any:
    """Import a booster, or raise a MissingBackendError that names the package to install."""
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise MissingBackendError(
            f"backend={name} needs {name}: pip install 'gbmrank[{name}]'"
        ) from error
    if is_before(module.__version__, oldest):
        least = ".".join(map(str, oldest))
        raise MissingBackendError(
            f"backend={name} needs {name} {least} or later, but {module.__version__} is "
            f"installed: pip install '{name}>={least}'"
        )
    return module


class Target(Protocol):
    """The part of an objective's interface that training uses."""

    @property
    def template(self) -> AbstractObjective:
        """The composition of template, loss and target."""

    def bind(self, data: RankingData) -> AbstractBound:
        """Bind the objective to a data set."""

    def with_template(self, template: AbstractObjective) -> "Target":
        """Return an objective with another composition."""

    def __call__(self, a: Any, b: Any) -> Any:
        """Return gradient and Hessian, as the callback of a booster."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows of a training or validation set: features in the query order of ``data``."""

    features: Any
    data: RankingData


@final
@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Rows that are binned once, for trainings on parts of them."""

    part: Part
    _made: list[Any] = field(default_factory=list)  # the booster's data set, when it is needed

    def take(self, rows: IntArray) -> "PooledPart":
        """Return a part of the rows, given by increasing numbers."""
        return PooledPart(self, rows, self.part.data.take(rows))

    def data_set(self, make: Callable[[Part], Any]) -> Any:
        """Return the data set of all rows, which is made once."""
        if not self._made:
            self._made.append(make(self.part))
        return self._made[0]


@final
@dataclass(frozen=True, slots=True, eq=False)
class PooledPart:
    """Some rows of a pool; a copy of their features is made whenever it is read."""

    pool: Pool
    rows: IntArray
    data: RankingData

    @property
    def features(self) -> Any:
        """The features of these rows."""
        return take_rows(self.pool.part.features, self.rows)


Report = Callable[[int, Mapping[str, Mapping[str, list[float]]]], None]
"""Given the number of rounds done, and the values so far by validation set and metric."""


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Job:
    """One training, validated and ready to run."""

    train: Any  # a Part; an engine for a cluster has its own kind
    objective: Any  # ours, or the name of one of the booster's own
    metrics: Any  # a MetricList, may be empty; early stopping uses the first one
    params: Mapping[str, Any]
    rounds: int
    valid: Mapping[str, Any] = field(default_factory=dict)  # early stopping uses the last one
    patience: int | None = None  # rounds without improvement; None never stops
    keep_best: bool = True  # truncate after the best round, if there is a validation set
    on_round: Callable[[int], None] | None = None  # given the number of rounds done
    ranks: bool = True  # False for plain regression
    callbacks: tuple[Any, ...] = ()  # the booster's own kind
    start: Any = None  # a model of the booster to continue
    report: Report | None = None
    bins: Any = None  # a data set of the booster whose bins the training set gets

    def monitor(self, evaluate: Callable[[Any, Any], Sequence[Any]] | None = None) -> "Monitor":
        """Return the monitor that records the values of every round."""
        names = list(map(str, self.metrics))
        higher = bool(names) and self.metrics[0].higher_is_better
        metrics = evaluate or self.metrics
        return Monitor(metrics, names, higher, self.patience, self.on_round, self.report)

    def check_own(
        self, title: str, model: type, is_callback: Callable[[Any], bool], callbacks: str
    ) -> None:
        """Raise ConfigError unless callbacks and the model to continue are of this booster."""
        wrong = next((one for one in self.callbacks if not is_callback(one)), None)
        if wrong is not None:
            raise ConfigError(
                f"{title} callbacks must be {callbacks}; got a {type(wrong).__name__}"
            )
        if self.start is not None and not isinstance(self.start, model):
            raise ConfigError(
                f"backend={title.lower()!r} can only continue a model of {title}, got a "
                f"{type(self.start).__name__}"
            )

    def rounds_kept(self, monitor: "Monitor", before: int, stopped: int) -> int:
        """Return how many rounds of a model to keep; 0 for all.

        ``before`` is the number of rounds of the model that was continued. ``stopped`` is the
        number of rounds up to the best one if a booster's callback stopped the training, else 0.
        """
        if self.keep_best and monitor.best_round >= 0:
            return before + monitor.best_round + 1
        return stopped if self.callbacks and self.patience is None else 0

    def finished(self, fitted: "Fitted", monitor: "Monitor", kept: int, before: int) -> "Trained":
        """Return the trained model with its history, after truncation to ``kept`` rounds."""
        best = before + monitor.best_round if monitor.best_round >= 0 else fitted.n_rounds - 1
        return Trained(fitted, monitor.history, kept - 1 if kept else best)


class Member(NamedTuple):
    """One of the models that a committee averages.

    ``spread`` is the standard deviation of its scores within the training queries, by which they
    are divided; ``values`` are the metric values by validation set.
    """

    objective: str
    seed: int
    rounds: int
    weight: float
    spread: float
    values: Mapping[str, Mapping[str, float]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class OutOfFold:
    """Scores of rows by the members that did not see them, in query order, and their value.

    Scores are divided by the spread of their member; rows that no fold holds out have NaN.
    """

    scores: FloatArray
    value: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A trained ranker."""

    fitted: "Fitted"
    history: Mapping[str, Mapping[str, list[float]]]  # by validation set and metric text
    best_round: int  # from 0; without a validation set, the last one
    committee: tuple[Member, ...] = ()  # the models that were merged
    unseen: "OutOfFold | None" = None  # with cross-fitting

    def scores(self, features: Any) -> FloatArray:
        """Return one raw score per row, of the trees up to the best round."""
        return self.fitted.scores(features)


@final
@dataclass(slots=True, eq=False)
class Monitor:
    """Records the metrics after every round and decides when to stop.

    Early stopping uses the first metric on the last data set. ``evaluate`` maps scores and a data
    set to ``(name, value, ...)`` of each metric; ``on_round`` is called with the number of rounds
    done.
    """

    evaluate: Callable[[Any, Any], Sequence[Any]]
    names: Sequence[str]
    higher_is_better: bool
    patience: int | None = None
    on_round: Callable[[int], None] | None = None
    report: Report | None = None
    history: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    best_round: int = -1
    best_value: float = float("nan")
    rounds_done: int = 0
    _names_of: dict[int, str] = field(default_factory=dict)

    def watch(self, name: str, data: object) -> None:
        """Set the name under which the values of a data set are recorded."""
        self._names_of[id(data)] = name  # a data set need not have a hash
        self.history[name] = {metric: [] for metric in self.names}

    def __call__(self, scores: Any, data: Any) -> Sequence[Any]:
        """Evaluate as the custom metric of a booster, and record the values."""
        values = self.evaluate(scores, data)
        kept = self.history[self._names_of[id(data)]]
        for name, value in zip(self.names, values, strict=True):
            kept[name].append(float(value[1]))
        return values

    def end_round(self) -> bool:
        """Count a round; return whether to stop."""
        if self.history:
            value = next(reversed(self.history.values()))[self.names[0]][-1]
            gain = value - self.best_value if self.higher_is_better else self.best_value - value
            if self.best_round < 0 or gain > 0.0:
                self.best_round, self.best_value = self.rounds_done, value
        self.rounds_done += 1
        if self.on_round is not None:
            self.on_round(self.rounds_done)
        if self.report is not None:
            self.report(self.rounds_done, self.history)
        waited = self.rounds_done - 1 - self.best_round
        return self.patience is not None and bool(self.history) and waited >= self.patience


class Fitted(Protocol):
    """A trained booster."""

    backend: ClassVar[str]
    reads: ClassVar[Reads]
    booster: Any

    @property
    def n_rounds(self) -> int:
        """Number of rounds used for predictions: up to the best round."""

    def scores(self, features: Any) -> FloatArray:
        """Return one raw score per row."""

    def predict(self, features: Any) -> FloatArray:
        """Return one raw score per row; the same as :meth:`scores`."""

    def importances(self, kind: str | None = None) -> FloatArray:
        """Return the importance of each feature, of one of the booster's kinds or summed gain."""

    def first(self, rounds: int) -> "Fitted":
        """Return the model that predicts with its first rounds only."""

    @property
    def columns(self) -> Schema:
        """Number of the features in the model, and their names (as boosters accept them)."""

    def encoded(self, features: Any) -> FloatArray:
        """Return the numbers that the trees compare; categories become codes."""

    def trees(self) -> Trees:
        """Return the trees that predict; raise ConfigError unless they sum to one score."""

    def for_converters(self) -> Any:
        """Return a copy of the booster that converters can read as a plain tree model."""

    def stamp(self, identity: str) -> None:
        """Store a text in the model; it is saved to files, and the booster ignores it."""

    def save(self, path: str) -> None:
        """Write the model in the booster's own format."""


class Range(NamedTuple):
    """Values between two bounds, uniform in their logarithm."""

    low: float
    high: float
    whole: bool = False

    def at(self, share: float) -> float:
        """Return the value at a fraction of the range, from 0 to 1.

        >>> Range(1.0, 100.0).at(0.5), Range(2, 32, whole=True).at(1.0)
        (10.0, 32)
        """
        value = min(self.low * (self.high / self.low) ** share, self.high)
        return round(value) if self.whole else value


class Rows(NamedTuple):
    """Rows of a small training: features, labels, and rows per query."""

    features: FloatArray
    labels: FloatArray
    sizes: IntArray


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What comparisons and the conformance tests need to know about a booster.

    ``try_objective(objective, params, rows, rounds)`` returns the scores of the rows after
    training, ``try_metric(metric, rows)`` scores and the value the booster reports for them.
    """

    space: Mapping[str, Range]  # parameters to search
    repeatable: Mapping[str, Any]  # parameters that make runs reproducible
    not_repeatable_with: frozenset[str]  # parameters that conflict with those of repeatable
    demonstration: Mapping[str, Any]  # parameters for the small demonstration data
    baselines: tuple[str, ...]  # the booster's own objectives, compared by default
    try_objective: Callable[[Any, Mapping[str, Any], Rows, int], FloatArray]
    try_metric: Callable[[Any, Rows], tuple[FloatArray, float]]


class Student(NamedTuple):
    """Parameters of a model that learns the scores of another one, by main names."""

    set_to: Mapping[str, Any]
    kept: frozenset[str]  # parameters of the teacher that it shares


class Peers(Protocol):
    """The tasks that train one model on rows of their own."""

    rank: int
    size: int
    host: str

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all tasks, in the order of their ranks."""


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Booster:
    """Everything gbmrank needs of a booster; a new one is a folder and a line in supported.py."""

    name: str  # of its package too
    title: str
    data_set: str  # name of its class
    reads: Reads
    parameters: "Parameters"
    tuning: Tuning
    student: Student
    native: tuple[str, ...]
    debiased: tuple[str, ...]  # those that correct clicks by a column "position" of the rows
    importance_types: tuple[str, ...]
    squared_error: str
    suffixes: tuple[str, ...]
    first_bytes: bytes  # of a model file, whatever its suffix
    groups_hint: str
    memory_factor: float  # of a worker on a cluster, in units of its rows
    weights_on_cluster: bool  # together with queries, for its own objectives

    columns: Callable[[Any], "BoosterColumns"]  # of a data set
    # Rows per query of a data set, constructed or not; None without queries.
    group_sizes: Callable[[Any], Any]

    # The training that is waiting for the gradient of this call, if it is known.
    training: Callable[[], "Training | None"]
    # Raises ConfigError for a parameter that breaks custom objectives.
    check_training: Callable[["Training"], None] = lambda training: None
    # Prepares a training, in the first call of its objective.
    start_training: Callable[["Training"], None] = lambda training: None
    # The objective, as text, that the current training ignores.
    ignored_objective: Callable[[], str | None] = lambda: None

    # The name under which the booster shows a metric, and the value in the form it expects of a
    # callback: (text, higher_is_better) and (text, value, higher_is_better).
    metric_name: Callable[[str, bool], str]
    report: Callable[[str, float, bool], tuple[Any, ...]]

    # Parameters that a custom objective needs; the argument is whether it is shift invariant.
    settings: "Callable[[bool], tuple[Setting, ...]]"
    # Tree parameters that rarely overfit, for a mean Hessian per row.
    robust: "Callable[[float | None], tuple[Setting, ...]]"
    # Raises WeightError for weights that the booster cannot use with these parameters.
    check_weights: Callable[[RankingData, Mapping[str, Any]], None] = lambda data, params: None
    # The message for a category of (column, table) that training did not have; None: it may come.
    unseen_message: Callable[[Any, str, str], str | None] = lambda column, what, category: None

    train: Callable[[Job], Trained]  # on this machine
    # Connects this task with the others; the value is parameters for ``train``.
    network: Callable[[Peers], AbstractContextManager[dict[str, Any]]]
    bins: Callable[[Job, Part], Any]  # a data set, from whose bins a training can start
    # Reads a model file and the text it was stamped with, if any; the path is for messages.
    load: Callable[[bytes, str], tuple[Fitted, str | None]]
    # A model that was trained without gbmrank, with the rounds it predicts with; None unless it is
    # one of this booster, or of its scikit-learn interface.
    wrap: Callable[[Any], Fitted | None]
    # The sum of models, weighted by factors; shares are those in the summed gain of all splits.
    merge: Callable[[Sequence[Any], Sequence[float], Sequence[float]], Fitted]
