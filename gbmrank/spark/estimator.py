"""Estimator, model and evaluator in the style of Spark ML."""

import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any, final

import pandas as pd
import pyarrow as pa
from pyspark import keyword_only
from pyspark.ml import Estimator, Model
from pyspark.ml.evaluation import Evaluator
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.util import (
    DefaultParamsReadable,
    DefaultParamsReader,
    DefaultParamsWritable,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from pyspark.sql import functions as sf

from gbmrank.api.committees import ranking_objective
from gbmrank.api.metrics import metric_list
from gbmrank.api.training_plans import training_plan
from gbmrank.boosters.plan import check_plan
from gbmrank.boosters.supported import booster_named
from gbmrank.boosters.xgboost.booster import XGBOOST
from gbmrank.distributed.rules import check_for_cluster
from gbmrank.errors import ParameterError
from gbmrank.estimators import GBMRanker, load
from gbmrank.estimators.base import warn_about_stopping
from gbmrank.estimators.committee import member_plans
from gbmrank.spark.barrier import free_slots, train_in_tasks
from gbmrank.spark.query_values import evaluate
from gbmrank.spark.selection import features_column, matrix, selected


def _text_of_metrics(value: Any) -> str:
    return str(metric_list(value))


def _param(name: str, doc: str, convert: Any = TypeConverters.toString) -> Any:
    return Param(Params._dummy(), name, doc, typeConverter=convert)


class _Columns(Params):  # type: ignore[misc]
    """Columns that the estimator and its model read or write."""

    featuresCol = _param(
        "featuresCol",
        "names of columns of numbers, or of one column of vectors or arrays",
        lambda value: value if isinstance(value, str) else TypeConverters.toListString(value),
    )
    predictionCol = _param("predictionCol", "column of scores, larger is ranked first")

    def setParams(self, **given: Any) -> Any:
        """Set parameters by name; None keeps the default."""
        if unknown := [name for name in given if not self.hasParam(name)]:
            known = ", ".join(one.name for one in self.params)
            raise ParameterError(f"{type(self).__name__} has no {unknown[0]}; it has {known}")
        return self._set(**given)

    def _value(self, name: str) -> Any:
        return self.getOrDefault(name) if self.isDefined(name) else None


@final
class SparkGBMRanker(_Columns, Estimator, DefaultParamsReadable, DefaultParamsWritable):  # type: ignore[misc]
    """A boosted ranker trained in the tasks of a Spark barrier stage.

    Rows are repartitioned by query; the tasks train one model with the booster's own network. All
    stop at the same round, by metrics over all tasks.

    Parameters
    ----------
    featuresCol : str or list of str, default="features"
        Columns of numbers, or one column of vectors or arrays.
    labelCol, qidCol : str, default="label", "qid"
        Labels, larger is better, and query ids, numbers or strings.
    weightCol : str, optional
        Weights; if the rows of a query differ, they are weights of items.
    validationIndicatorCol : str, optional
        True in the rows of the validation set, which are whole queries.
    predictionCol : str, default="prediction"
        Scores that the model adds.
    backend : {"xgboost", "lightgbm"}, default="xgboost"
        The booster.
    objective, metric : str or object
        As for :class:`gbmrank.GBMRanker`; kept as text.
    numRounds : int, default=100
        Maximum number of boosting rounds.
    earlyStoppingRounds : int, optional
        Stop after this many rounds without improvement on the validation set.
    numWorkers : int, optional
        Number of tasks; all free slots by default.
    seed : int, default=0
        Seed of the booster.
    boosterParams : dict, optional
        Any parameters of the booster.
    """

    labelCol = _param("labelCol", "column of labels")
    qidCol = _param("qidCol", "column of query ids")
    weightCol = _param("weightCol", "column of weights")
    validationIndicatorCol = _param("validationIndicatorCol", "true in rows of the validation set")
    backend = _param("backend", "xgboost or lightgbm")
    objective = _param(
        "objective", "text of the objective", lambda value: str(ranking_objective(value))
    )
    metric = _param("metric", "texts of the metrics; the first one stops", _text_of_metrics)
    numRounds = _param("numRounds", "maximum number of rounds", TypeConverters.toInt)
    earlyStoppingRounds = _param("earlyStoppingRounds", "rounds to wait", TypeConverters.toInt)
    numWorkers = _param("numWorkers", "number of tasks", TypeConverters.toInt)
    seed = _param("seed", "seed of the booster", TypeConverters.toInt)
    boosterParams = _param("boosterParams", "parameters of the booster", dict)

    @keyword_only  # type: ignore[untyped-decorator]
    def __init__(
        self,
        *,
        featuresCol: Any = None,
        labelCol: str | None = None,
        qidCol: str | None = None,
        weightCol: str | None = None,
        validationIndicatorCol: str | None = None,
        predictionCol: str | None = None,
        backend: str | None = None,
        objective: Any = None,
        metric: Any = None,
        numRounds: int | None = None,
        earlyStoppingRounds: int | None = None,
        numWorkers: int | None = None,
        seed: int | None = None,
        boosterParams: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._setDefault(
            featuresCol="features",
            labelCol="label",
            qidCol="qid",
            predictionCol="prediction",
            backend=XGBOOST.name,
            objective="pairwise(loss=logistic, target=ndcg@10)",
            metric="ndcg@10",
            numRounds=100,
            seed=0,
            boosterParams={},
        )
        self.setParams(**self._input_kwargs)

    def _fit(self, dataset: Any) -> "SparkGBMRankerModel":
        values = {one.name: self._value(one.name) for one in self.params}
        backend, patience = values["backend"], values["earlyStoppingRounds"]
        plan = training_plan(
            values["objective"],
            values["metric"],
            backend=backend,
            rounds=values["numRounds"],
            early_stopping=patience,
            params=values["boosterParams"],
            seed=values["seed"],
            keep_best=patience is not None,
            names={
                "valid": "validationIndicatorCol=",
                "rounds": "numRounds",
                "early_stopping": "earlyStoppingRounds",
            },
        )
        for one in member_plans(plan):
            check_for_cluster(one, "Spark", weighted=values["weightCol"] is not None)
            check_plan(one, validated=values["validationIndicatorCol"] is not None)
        if patience is not None:
            warn_about_stopping(plan.objective, plan.metric[0], {})
        features, names = features_column(dataset, values["featuresCol"])
        rows = selected(
            dataset,
            {
                "label": values["labelCol"],
                "qid": values["qidCol"],
                "weight": values["weightCol"],
                "valid": values["validationIndicatorCol"],
                "features": features,
            },
        )
        n_tasks = values["numWorkers"]
        n_tasks = max(free_slots(dataset.sparkSession), 1) if n_tasks is None else n_tasks
        trained, columns = train_in_tasks(rows, plan, names, n_tasks)
        local = GBMRanker.from_trained(
            trained,
            columns,
            objective=values["objective"],
            metric=values["metric"],
            n_estimators=values["numRounds"],
            early_stopping_rounds=patience,
            seed=values["seed"],
            **values["boosterParams"],
        )
        return self._copyValues(SparkGBMRankerModel(local))


class _ModelWriter(MLWriter):  # type: ignore[misc]
    def __init__(self, model: "SparkGBMRankerModel") -> None:
        super().__init__()
        self.model = model

    def saveImpl(self, path: str) -> None:
        DefaultParamsWriter.saveMetadata(self.model, path, self.sparkSession.sparkContext)
        name, content = self.model.content
        table = self.sparkSession.createDataFrame(
            [(name, bytearray(content))], "name string, content binary"
        )
        table.coalesce(1).write.parquet(f"{path}/model")


class _ModelReader(MLReader):  # type: ignore[misc]
    def load(self, path: str) -> "SparkGBMRankerModel":
        """Read a model."""
        known = DefaultParamsReader.loadMetadata(path, self.sparkSession.sparkContext)
        (row,) = self.sparkSession.read.parquet(f"{path}/model").collect()
        model = SparkGBMRankerModel(_opened(row["name"], bytes(row["content"])))
        model._resetUid(known["uid"])
        DefaultParamsReader.getAndSetParams(model, known)
        return model


@final
class SparkGBMRankerModel(_Columns, Model, MLWritable, MLReadable):  # type: ignore[misc]
    """A trained ranker: ``transform`` adds a column of scores.

    Parameters
    ----------
    local : GBMRanker
        The model on one machine, which :meth:`toLocal` returns.
    """

    def __init__(self, local: GBMRanker) -> None:
        super().__init__()
        self._setDefault(featuresCol="features", predictionCol="prediction")
        self._local = local

    def toLocal(self) -> GBMRanker:
        """Return the model as a GBMRanker, which works without Spark."""
        return self._local

    @property
    def content(self) -> tuple[str, bytes]:
        """Name and content of the model file."""
        with tempfile.TemporaryDirectory() as folder:
            suffix = booster_named(self._local.backend).suffixes[0]
            path = Path(folder, f"model{suffix}")
            self._local.save(str(path))
            return path.name, path.read_bytes()

    def _transform(self, dataset: Any) -> Any:
        features, names = features_column(dataset, self._value("featuresCol"))
        shared = dataset.sparkSession.sparkContext.broadcast(self.content)

        def scores(columns: pd.Series) -> pd.Series:
            rows = matrix(pa.chunked_array([pa.array(columns)]), "a batch")
            table = rows if names is None else pd.DataFrame(rows, columns=names)
            return pd.Series(_opened(*shared.value).predict(table))

        score = sf.pandas_udf(scores, "double")
        return dataset.withColumn(self._value("predictionCol"), score(features))

    def write(self) -> MLWriter:
        """Return a writer; ``save(path)`` writes a folder on any file system of Spark."""
        return _ModelWriter(self)

    @classmethod
    def read(cls) -> MLReader:
        """Return a reader; ``load(path)`` uses it."""
        return _ModelReader()


@lru_cache(maxsize=4)
def _opened(name: str, content: bytes) -> GBMRanker:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        return load(str(path))


@final
class SparkRankingEvaluator(Evaluator, DefaultParamsReadable, DefaultParamsWritable):  # type: ignore[misc]
    """The value of one metric, for CrossValidator; use a ``foldCol`` that keeps queries whole.

    Parameters
    ----------
    metric : Metric or str, default="ndcg@10"
        What to evaluate.
    labelCol, qidCol, predictionCol : str, default="label", "qid", "prediction"
        Columns.
    weightCol : str, optional
        Column with one weight per query, repeated in its rows.
    """

    metric = _param("metric", "text of the metric", _text_of_metrics)
    labelCol = _param("labelCol", "column of labels")
    qidCol = _param("qidCol", "column of query ids")
    weightCol = _param("weightCol", "column of weights of queries")
    predictionCol = _param("predictionCol", "column of scores")

    @keyword_only  # type: ignore[untyped-decorator]
    def __init__(
        self,
        *,
        metric: Any = None,
        labelCol: str | None = None,
        qidCol: str | None = None,
        weightCol: str | None = None,
        predictionCol: str | None = None,
    ) -> None:
        super().__init__()
        self._setDefault(
            metric="ndcg@10", labelCol="label", qidCol="qid", predictionCol="prediction"
        )
        self._set(**self._input_kwargs)

    def _evaluate(self, dataset: Any) -> float:
        value = self.getOrDefault
        found = evaluate(
            dataset,
            metric_list(value("metric"))[0],
            label=value("labelCol"),
            score=value("predictionCol"),
            qid=value("qidCol"),
            weight=value("weightCol") if self.isDefined("weightCol") else None,
        )
        (one,) = found.values()
        return one.value

    def isLargerBetter(self) -> bool:
        """Whether larger values are better."""
        return bool(metric_list(self.getOrDefault("metric"))[0].higher_is_better)
