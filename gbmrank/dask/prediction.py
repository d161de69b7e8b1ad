"""Scores of a model for rows on workers, computed when they are asked for."""

from typing import Any

import dask
import dask.array as da
import numpy as np

from gbmrank.backends.trainer import Fitted
from gbmrank.dask.columns import blocks, is_frame
from gbmrank.training import Trained
from gbmrank.types import FloatArray

__all__ = ["predict"]


def predict(trained: Trained, features: Any) -> Any:
    """Return one raw score per row.

    Parameters
    ----------
    trained : Trained
        Result of :func:`gbmrank.dask.train`.
    features : dask array, dask frame, or a table in memory
        Rows to score.

    Returns
    -------
    dask array or array of shape (n_rows,)
        A dask array, not yet computed, for a dask collection.
    """
    if not isinstance(features, da.Array) and not is_frame(features):
        return trained.scores(features)
    model = dask.delayed(trained.fitted, traverse=False)
    if isinstance(features, da.Array):
        features = features.rechunk({1: -1})
        parts, rows = blocks(features), features.chunks[0]
    else:
        parts = features.to_delayed()
        rows = (np.nan,) * len(parts)
    scored = [dask.delayed(_scores)(model, part) for part in parts]
    made = [da.from_delayed(s, (n,), np.float64) for s, n in zip(scored, rows, strict=True)]
    return da.concatenate(made, allow_unknown_chunksizes=True)


def _scores(fitted: Fitted, features: Any) -> FloatArray:
    return fitted.scores(features) if features.shape[0] else np.empty(0)
