"""One training on Spark, where Java and PySpark are present; tests/integrations has the others."""

import os
import shutil
import sys

import numpy as np
import pytest

import gbmrank
from tests.ranking_tasks import make_task

pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"
)


def test_a_model_trained_in_two_tasks_is_that_of_one_machine():
    sql = pytest.importorskip("pyspark.sql", reason="PySpark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java 17, such as Debian's openjdk-17-jre-headless")
    from gbmrank.spark import SparkGBMRanker

    task = make_task(seed=0, queries=20)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    session = sql.SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    try:
        rows = [
            ([*map(float, x)], float(y), f"query {q}")
            for x, y, q in zip(task.x, task.y, task.qid, strict=True)
        ]
        table = session.createDataFrame(rows, "features array<double>, label double, qid string")
        model = SparkGBMRanker(numRounds=5, numWorkers=2).fit(table)
    finally:
        session.stop()
    here = gbmrank.GBMRanker(backend="xgboost", n_estimators=5).fit(task.x, task.y, qid=task.qid)
    np.testing.assert_allclose(model.toLocal().predict(task.x), here.predict(task.x), atol=1e-6)
