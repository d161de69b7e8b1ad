"""Reading XGBoost's data sets, and making them of batches with queries that stay whole.

Weights are per query, groups are offsets.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from gbmrank.boosters.base import import_booster
from gbmrank.boosters.calling import frames_of
from gbmrank.boosters.state import BoosterColumns, latest_training
from gbmrank.data.columns import read_ids
from gbmrank.data.tables import Reads
from gbmrank.errors import ConfigError, DataError, GroupError, WeightError

__all__ = [
    "READS",
    "data_iterator",
    "group_sizes",
    "import_xgboost",
    "is_dataset",
    "read_columns",
    "weighs_by_size",
]

READS = Reads(
    name="XGBoost",
    package="xgboost",
    category_frames=("pandas", "polars", "pyarrow"),
    category_kinds=("string", "bytes", "integer"),
    zeros_by_form=True,
)


def import_xgboost() -> Any:
    """Import XGBoost, or raise MissingBackendError; as in pyproject.toml."""
    return import_booster("xgboost", (3, 1))


def is_dataset(data: object) -> bool:
    """Whether this is a DMatrix; XGBoost is imported by whoever made one."""
    module = sys.modules.get("xgboost")
    return module is not None and isinstance(data, module.DMatrix)


def read_columns(data: Any) -> BoosterColumns:
    """Read a DMatrix; offsets are unsigned, so they are widened before subtracting."""
    sizes, weight = group_sizes(data), data.get_weight()
    return BoosterColumns(
        data.get_label(),
        sizes,
        weight if len(weight) else None,
        data,
        queries_in_training=None if sizes is not None else lambda: _queries_in_training(data),
    )


def _queries_in_training(data: Any) -> int:
    """Return how many queries the training set beside a DMatrix has: one of the same width."""
    training, queries = latest_training()
    beside = is_dataset(training) and training.num_col() == data.num_col()
    return queries if beside else 0


def weighs_by_size() -> bool:
    """Whether ``XGBRanker`` is calling a metric of queries of several sizes.

    It calls a metric for each query, in threads, and averages with the sizes as weights.
    """
    for frame in frames_of("xgboost.sklearn"):
        ends = frame.f_locals.get("group_ptr")
        if frame.f_code.co_qualname.startswith("ltr_metric_decorator") and ends is not None:
            return len(np.unique(np.diff(ends.astype(np.int64)))) > 1
    return False


def group_sizes(data: Any) -> Any:
    """Return rows per query; None without queries."""
    offsets = data.get_uint_info("group_ptr").astype(np.int64)
    return np.diff(offsets) if len(offsets) > 1 else None


_Batch = Mapping[str, Any]


def data_iterator(
    batches: Iterable[_Batch] | Callable[[], Iterable[_Batch]], cache_prefix: str | None = None
) -> Any:
    """Make an ``xgboost.DataIter`` that rejects a query split between batches.

    XGBoost silently takes a query that goes on in the next batch for two queries. Give
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
    DataError
        When a batch has no rows, or lacks what another one has: XGBoost would go on with the
        weights of the batch before.
    """
    xgb = import_xgboost()
    if isinstance(batches, Mapping):
        raise ConfigError("batches is one batch; give a list of them: [batch]")
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
                input_data(**self._queries.numbered(batch))
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
        self._keys: set[str] | None = None

    def numbered(self, batch: _Batch) -> dict[str, Any]:
        """Return a batch with numbers in place of its ids."""
        self._batch += 1
        given = self._check_keys(batch)
        ids = read_ids(given["qid"])
        if ids.shape != np.shape(given["label"]):
            raise GroupError(
                f"batch {self._batch}: qid has shape {ids.shape}, label {np.shape(given['label'])}"
            )
        if not len(ids):
            raise DataError(f"batch {self._batch} has no rows; leave it out")
        starts = np.concatenate([[True], ids[1:] != ids[:-1]])
        self._check_weight(given, int(starts.sum()))
        return {**given, "qid": self._number(ids[starts].tolist()) + np.cumsum(starts) - 1}

    def _check_keys(self, batch: _Batch) -> dict[str, Any]:
        if not isinstance(batch, Mapping):
            raise DataError(
                f"batch {self._batch} is a {type(batch).__name__}; give a mapping with data, label "
                "and qid"
            )
        given = {key: value for key, value in batch.items() if value is not None}
        if "qid" not in given or "label" not in given:
            raise DataError(f"batch {self._batch} needs data, label and qid (one id per row)")
        self._keys = set(given) if self._keys is None else self._keys
        differ = sorted(self._keys ^ set(given))
        if differ:
            lacks, has = (self._batch, 0) if differ[0] in self._keys else (0, self._batch)
            raise DataError(
                f"batch {lacks} has no {differ[0]}, and batch {has} has one: XGBoost would go on "
                "with that of another batch; give it in all batches or in none"
            )
        return given

    def _check_weight(self, given: Mapping[str, Any], queries: int) -> None:
        count = queries if "weight" not in given else int(np.size(given["weight"]))
        if count != queries:
            raise WeightError(
                f"batch {self._batch}: weight has {count} entries for {queries} queries; XGBoost "
                "takes one per query"
            )

    def _number(self, queries: list[Any]) -> int:
        """Enter queries; return the number of the first."""
        first = len(self._batch_of)
        for query in queries:
            known = len(self._batch_of)
            before = self._batch_of.setdefault(query, self._batch)
            if len(self._batch_of) == known:
                again = f"batch {before} and again in batch {self._batch}"
                places = f"two places of batch {before}" if before == self._batch else again
                raise GroupError(
                    f"query {query!r} is in {places}: XGBoost would take it for two; cut batches "
                    "between queries, with the rows of a query together"
                )
        return first
