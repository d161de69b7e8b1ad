"""Training and evaluation with Spark: the boosters' own networks in the tasks of a barrier stage.

Tasks hold whole queries; metrics are sums and weights over all tasks, never means of means.
"""

from gbmrank.errors import MissingPackageError

try:
    import pyarrow as pa  # noqa: F401
    import pyspark.ml  # noqa: F401
except ImportError as error:
    raise MissingPackageError(
        f"gbmrank.spark needs PySpark and pyarrow ({error}): pip install 'gbmrank[spark]'; Spark "
        "needs Java 17, such as Debian's package openjdk-17-jre-headless"
    ) from error

from gbmrank.spark.estimator import SparkGBMRanker, SparkGBMRankerModel, SparkRankingEvaluator
from gbmrank.spark.query_values import Difference, Estimate, compare, evaluate

__all__ = [
    "Difference",
    "Estimate",
    "SparkGBMRanker",
    "SparkGBMRankerModel",
    "SparkRankingEvaluator",
    "compare",
    "evaluate",
]
