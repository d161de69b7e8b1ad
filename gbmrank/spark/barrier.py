"""A training in the tasks of a Spark barrier stage, which start and end together."""

import pickle
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pyspark import BarrierTaskContext
from pyspark.sql import functions as sf

from gbmrank import errors
from gbmrank.boosters.base import Part, Trained
from gbmrank.boosters.plan import TRAINING, Plan
from gbmrank.boosters.supported import BOOSTERS, booster_named
from gbmrank.data.queries import Groups, RankingData
from gbmrank.data.schema import Schema, safe_names
from gbmrank.distributed.channel import Channel, connected
from gbmrank.distributed.task_engine import TaskEngine
from gbmrank.errors import ConfigError, DataError, GbmrankWarning
from gbmrank.estimators.base import read_part
from gbmrank.estimators.committee import train
from gbmrank.spark.failures import own_error
from gbmrank.spark.selection import array, collected, matrix

VALID = "the validation set"
_SAMPLE = 200_000  # rows from which features are binned, as in LightGBM on one machine
_GRAINS = 2**31
_PATIENCE = 5.0  # seconds that tasks wait after an error that may come from another task
_LARGE = 10_000  # rows of a task, from which on its longest query is reported


class Setting(NamedTuple):
    """What every task gets."""

    plan: Plan
    names: list[str] | None
    sample: Any  # broadcast: a matrix of features, the same in all tasks
    validated: bool


def train_in_tasks(
    rows: Any, plan: Plan, names: list[str] | None, n_tasks: int
) -> tuple[Trained, Schema]:
    """Train on the columns of :func:`gbmrank.spark.selection.selected`; return their schema too."""
    session = rows.sparkSession
    if n_tasks < 1:
        raise ConfigError(f"numWorkers must be at least 1, got {n_tasks}")
    if n_tasks > (free := free_slots(session)):  # Spark would wait silently
        raise ConfigError(
            f"numWorkers={n_tasks} tasks must run at the same time, but {free} slots are free; "
            "lower numWorkers, end other jobs, or give the session more cores"
        )
    validated = "valid" in rows.columns
    sample = _sample(rows, validated)
    like = sample if names is None else pd.DataFrame(sample, columns=names)
    columns = Schema.of(like, booster_named(plan.backend).reads)
    shared = session.sparkContext.broadcast(sample)
    setting = Setting(replace(plan, columns=columns), names, shared, validated)
    # Rows of a query keep their order: sums, and so the model, would depend on it.
    placed = rows.withColumn("row", sf.monotonically_increasing_id())
    whole = placed.repartition(n_tasks, "qid").sortWithinPartitions("qid", "row").drop("row")
    run: Callable[..., Any] = lambda batches: _task(batches, setting)  # noqa: E731
    try:
        (answer,) = whole.mapInArrow(run, "model binary", barrier=True).collect()
    except Exception as error:
        raise own_error(str(error)) from error
    finally:
        shared.unpersist()
    trained, warned = pickle.loads(answer["model"])  # noqa: S301  (written by our own task)
    for kind, message in warned:
        errors.warn(message, kind)
    return trained, columns


def free_slots(session: Any) -> int:
    """Return how many more tasks can run now."""
    context = session.sparkContext
    scala, tracker = context._jsc.sc(), context.statusTracker()
    usual = scala.resourceProfileManager().defaultResourceProfile()
    stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    busy = sum(stage.numActiveTasks for stage in stages if stage is not None)
    return int(scala.maxNumConcurrentTasks(usual)) - busy


def _sample(rows: Any, validated: bool) -> npt.NDArray[Any]:
    """Return the features of some training rows, whatever the partitions and their order."""
    chosen = rows.filter(~sf.col("valid")) if validated else rows
    n_rows = chosen.count()
    if not n_rows:
        raise DataError("there are no training rows; check the table and validationIndicatorCol")
    grain = sf.pmod(sf.xxhash64("qid", "features"), sf.lit(_GRAINS))
    chosen = chosen.select("features", grain.alias("grain"))
    if n_rows > _SAMPLE:
        chosen = chosen.filter(sf.col("grain") < int(_GRAINS * _SAMPLE / n_rows))
    return matrix(collected(chosen).sort_by("grain")["features"], TRAINING)


def _task(batches: Iterator[pa.RecordBatch], setting: Setting) -> Iterator[pa.RecordBatch]:
    """Train on the rows of this task; the first task with rows returns the model."""
    context = BarrierTaskContext.get()
    held = [batch for batch in batches if batch.num_rows]
    host = context.getTaskInfos()[context.partitionId()].address.partition(":")[0]
    with connected(bool(held), host, context.allGather) as channel:
        if channel is None:
            return
        try:
            answer = _trained(held, setting, channel, context.cpus())
        except Exception as error:
            cause = error.__cause__ or error
            theirs = type(cause).__module__.partition(".")[0] in {one.name for one in BOOSTERS}
            if theirs or isinstance(cause, OSError | EOFError):
                time.sleep(_PATIENCE)  # the first task that fails is the one whose error is shown
            raise
        if channel.rank == 0:
            yield pa.RecordBatch.from_pydict({"model": [answer]})


def _trained(held: list[Any], setting: Setting, channel: Channel, cpus: int) -> bytes:
    """Run the plan together with the other tasks; return the pickled model and warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GbmrankWarning)
        data, valid = _parts(pa.Table.from_batches(held), setting)
        held.clear()  # copied: memory for the booster
        validated = valid is not None and valid[1]
        sample = Part(
            _named(setting.sample.value, setting.names),
            RankingData.from_arrays(np.zeros(len(setting.sample.value))),
        )
        known = booster_named(setting.plan.backend).parameters
        plan = setting.plan
        if known.threads not in known.by_main_names(plan.params):
            plan = replace(plan, threads=cpus)
        sets = {} if valid is None else {VALID: valid[0]}
        trained = train(plan, data, sets, engine=TaskEngine(channel, sample, validated))
    own = [(one.category, str(one.message)) for one in caught]
    told = channel.gather([pair for pair in own if issubclass(pair[0], GbmrankWarning)])
    every = dict.fromkeys(pair for each in told for pair in each)
    return pickle.dumps((trained, list(every)))


def _parts(table: pa.Table, setting: Setting) -> tuple[Part, tuple[Part, bool] | None]:
    """Return the training rows, and the validation rows and whether there are any."""
    features = _named(matrix(table["features"], "a task"), setting.names)
    columns = [array(table, name) for name in ("label", "qid", "weight")]
    if not setting.validated:
        return _part(features, columns, slice(None), TRAINING), None
    if missing := table["valid"].null_count:
        raise DataError(
            f"validationIndicatorCol is missing in {missing} of the {len(table)} rows of a task; "
            "each row is true (validation set) or false"
        )
    chosen = table["valid"].to_numpy().astype(bool)
    both = np.intersect1d(*(table["qid"].to_numpy()[rows] for rows in (chosen, ~chosen)))
    if len(both):
        raise DataError(
            f"query {both[0]!r} has rows of the training and of the validation set; "
            "validationIndicatorCol must be the same in all rows of a query"
        )
    if chosen.all():
        raise DataError(
            f"a task got {len(chosen)} rows of the validation set and no training row; use fewer "
            "tasks (numWorkers=), as there are few training queries"
        )
    data = _part(features, columns, ~chosen, TRAINING)
    if chosen.any():
        return data, (_part(features, columns, chosen, VALID), True)
    few = int(data.data.groups.sizes[0])  # boosters need rows; their values are not counted
    stand_in = RankingData.from_arrays(data.data.labels[:few], group=Groups.single(few))
    return data, (Part(data.features[:few], stand_in), False)


def _part(features: Any, columns: list[Any], chosen: Any, what: str) -> Part:
    labels, qid, weight = (None if one is None else one[chosen] for one in columns)
    made = read_part(features[chosen], labels, qid, weight, what)
    sizes, n_rows = made.data.groups.sizes, made.data.groups.n_rows
    if n_rows >= _LARGE and sizes.max() > n_rows / 10:
        query = made.data.groups.query_of(int(made.data.groups.offsets[sizes.argmax()]))
        errors.warn(
            f"query {query!r} has {sizes.max()} of the {n_rows} rows of its task, and a query "
            "stays in one task: the other tasks wait for it in every round",
            GbmrankWarning,
        )
    return made


def _named(features: npt.NDArray[Any], names: list[str] | None) -> Any:
    return features if names is None else pd.DataFrame(features, columns=safe_names(names))
