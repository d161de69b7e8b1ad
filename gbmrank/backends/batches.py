"""Batches of rows for XGBoost's external memory, with queries that stay whole."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from gbmrank.backends.trainer import import_booster
from gbmrank.columns import read_ids
from gbmrank.errors import ConfigError, DataError, GroupError

__all__ = ["data_iterator"]

_Batch = Mapping[str, Any]


def data_iterator(
    batches: Iterable[_Batch] | Callable[[], Iterable[_Batch]], cache_prefix: str | None = None
) -> Any:
    """Make an ``xgboost.DataIter`` that refuses a query cut in two.

    XGBoost takes a query that goes on in the next batch for two queries, without a word. Give
    the result to ``ExtMemQuantileDMatrix``, ``QuantileDMatrix`` or ``DMatrix``.

    Parameters
    ----------
    batches : iterable of mappings, or a function that returns one
        Each batch holds what ``DataIter`` takes: ``data``, ``label``, ``qid`` (one id per row,
        rows of a query together) and, if wanted, ``weight`` (one per query). XGBoost reads them
        several times, so a generator is given as the function that makes it.
    cache_prefix : str, optional
        Where XGBoost keeps what does not fit into memory.

    Raises
    ------
    GroupError
        While the matrix is made, when a query is in two batches or in two places of one; it
        names the query and the batches.
    """
    xgb = import_booster("xgboost")
    if isinstance(batches, Iterator):
        raise ConfigError(
            "batches are read several times, and a generator can be read once: give the function "
            "that makes it, or a list"
        )

    class Batches(xgb.DataIter):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__(cache_prefix=cache_prefix)
            self.reset()

        def next(self, input_data: Callable[..., None]) -> bool:
            batch = next(self._left, None)
            if batch is not None:
                input_data(**{**batch, "qid": self._queries.number(batch)})
            return batch is not None

        def reset(self) -> None:
            self._left = iter(batches() if callable(batches) else batches)
            self._queries = _Queries()

    return Batches()


class _Queries:
    """Numbers queries as they come, and notices one that comes again."""

    def __init__(self) -> None:
        self._batch_of: dict[Any, int] = {}
        self._batch = -1

    def number(self, batch: _Batch) -> Any:
        self._batch += 1
        if batch.get("qid") is None or batch.get("label") is None:
            raise DataError(f"batch {self._batch} needs data, label and qid (one id per row)")
        ids = read_ids(batch["qid"])
        if ids.shape != np.shape(batch["label"]):
            raise GroupError(
                f"batch {self._batch}: qid has shape {ids.shape}, label {np.shape(batch['label'])}"
            )
        starts = np.concatenate([[True], ids[1:] != ids[:-1]])[: len(ids)]
        first = len(self._batch_of)
        for query in ids[starts].tolist():
            before = self._batch_of.setdefault(query, self._batch)
            if before != self._batch or len(self._batch_of) == first:
                raise GroupError(
                    f"query {query!r} is in batch {before} and again in batch {self._batch}: "
                    "XGBoost would take it for two; cut batches between queries, with the rows of "
                    "a query together"
                )
            first += 1
        return first - int(starts.sum()) + np.cumsum(starts) - 1
