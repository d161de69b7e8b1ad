"""Distributed training with Dask, by the distributed engines of the boosters.

Every query must lie in one partition: this is checked, and :func:`repartition_by_query` makes
it so. Metrics are computed from sums and counts over all workers, never as means of means.
"""

from gbmrank.errors import MissingPackageError

try:
    import dask.array
    import dask.dataframe  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise MissingPackageError(
        f"gbmrank.dask needs dask with arrays, frames and distributed ({error}): "
        "pip install 'gbmrank[dask]'"
    ) from error

from gbmrank.dask.distributed import train
from gbmrank.dask.partitions import repartition_by_query
from gbmrank.dask.ranker import DaskGBMRanker
from gbmrank.dask.scoring import predict

__all__ = ["DaskGBMRanker", "predict", "repartition_by_query", "train"]
