"""Scores of a model for rows on workers, computed when they are asked for."""

from typing import Any

import dask
import dask.array as da
import numpy as np

from gbmrank.dask.columns import blocks, is_frame
from gbmrank.dask.model import DaskTrained
from gbmrank.errors import DataError
from gbmrank.types import FloatArray

__all__ = ["predict"]


def predict(trained: DaskTrained, features: Any) -> Any:
    """Return one raw score per row.

    Parameters
    ----------
    trained : DaskTrained
        Result of :func:`gbmrank.dask.train`.
    features : dask array, dask frame, or a table in memory
        Rows to score, with the columns of the training.

    Returns
    -------
    dask array or array of shape (n_rows,)
        A dask array, not yet computed, for a dask collection.

    Raises
    ------
    DataError
        Unless the columns are those of the training: at once for what a collection says of
        itself, and when it is computed for what its partitions hold.
    """
    if not isinstance(features, da.Array) and not is_frame(features):
        return trained.scores(features)
    _check_collection(trained, features)
    model = dask.delayed(trained, traverse=False)
    if isinstance(features, da.Array):
        features = features.rechunk({1: -1})
        parts, rows = blocks(features), features.chunks[0]
    else:
        parts = features.to_delayed()
        rows = (np.nan,) * len(parts)
    scored = [dask.delayed(_scores)(model, part, i) for i, part in enumerate(parts)]
    made = [da.from_delayed(s, (n,), np.float64) for s, n in zip(scored, rows, strict=True)]
    return da.concatenate(made, allow_unknown_chunksizes=True)


def _check_collection(trained: DaskTrained, features: Any) -> None:
    if len(features.shape) != 2:
        raise DataError(f"X must be a table of rows and columns, got shape {features.shape}")
    trained.columns.check_count(features, "X", "the model")
    trained.columns.check(features._meta, "X")


def _scores(trained: DaskTrained, features: Any, number: int) -> FloatArray:
    if not features.shape[0]:
        return np.empty(0)
    return trained.scores(features, f"X, partition {number}")
