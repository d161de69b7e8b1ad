"""What a callback of XGBoost reads, and data sets built from batches that keep queries whole.

Weights are per query, groups are offsets.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from gbmrank.boosters.base import import_booster
from gbmrank.boosters.bindings import BoosterColumns, latest_training
from gbmrank.data.columns import read_ids
from gbmrank.data.tables import Reads
from gbmrank.errors import ConfigError, DataError, GroupError, WeightError

READS = Reads(
    name="XGBoost",
    package="xgboost",
    category_frames=("pandas", "polars", "pyarrow"),
    category_kinds=("string", "bytes", "integer"),
    floats="<f4",
    zeros_by_form=True,
)


def import_xgboost() -> Any:
    """Import XGBoost, or raise MissingBackendError; as in pyproject.toml."""
    return import_booster("xgboost", (3, 1))


def read_columns(data: Any) -> BoosterColumns:
    """Read the columns of a DMatrix; its unsigned offsets are converted before subtraction."""
    sizes, weight = group_sizes(data), data.get_weight()
    return BoosterColumns(
        data.get_label(),
        sizes,
        weight if len(weight) else None,
        data,
        queries_in_training=None if sizes is not None else lambda: _queries_in_training(data),
    )


def _queries_in_training(data: Any) -> int:
    """Return the number of queries in the latest training set, if it has the same width."""
    training, queries = latest_training()
    beside = isinstance(training, import_xgboost().DMatrix) and training.num_col() == data.num_col()
    return queries if beside else 0


def group_sizes(data: Any) -> Any:
    """Return rows per query; None without queries."""
    offsets = data.get_uint_info("group_ptr").astype(np.int64)
    return np.diff(offsets) if len(offsets) > 1 else None


_Batch = Mapping[str, Any]


def data_iterator(
    batches: Iterable[_Batch] | Callable[[], Iterable[_Batch]], cache_prefix: str | None = None
) -> Any:
    """Make an ``xgboost.DataIter`` that rejects queries split between batches.

    XGBoost silently treats a query that continues in the next batch as two queries. Pass
    the result to ``ExtMemQuantileDMatrix``, ``QuantileDMatrix`` or ``DMatrix``.

    Parameters
    ----------
    batches : iterable of mappings, or a function that returns one
        Each batch has the keys of ``DataIter``: ``data``, ``label``, ``qid`` (one id per row,
        rows of a query contiguous) and optionally ``weight`` (one per query). XGBoost reads the
        batches several times, so pass a generator function instead of a generator.
    cache_prefix : str, optional
        Path prefix of the files in which XGBoost caches data that does not fit into memory.

    Returns
    -------
    xgboost.DataIter
        Iterator over the batches.

    Raises
    ------
    GroupError
        While the matrix is built, if a query is in two batches or not contiguous; the message
        names the query and the batches.
    DataError
        If a batch has no rows, or lacks a key that another one has: XGBoost would reuse the
        weights of the previous batch.
    """
    if isinstance(batches, Mapping):
        raise ConfigError("batches is a single batch; pass a list of batches: [batch]")
    if isinstance(batches, Iterator):
        raise ConfigError(
            "batches are read several times, but a generator can be read only once; pass the "
            "generator function, or a list"
        )

    def numbered() -> Iterator[_Batch]:
        return map(_Queries().numbered, batches() if callable(batches) else batches)

    return repeated(numbered, cache_prefix)


def repeated(batches: Callable[[], Iterator[_Batch]], cache_prefix: str | None = None) -> Any:
    """Return a DataIter over the arguments of ``input_data``, made again for every pass."""

    class Batches(import_xgboost().DataIter):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(cache_prefix=cache_prefix)
            self.reset()

        def next(self, input_data: Callable[..., None]) -> bool:
            if (batch := next(self._left, None)) is not None:
                input_data(**batch)
            return batch is not None

        def reset(self) -> None:
            self._left = batches()

    return Batches()


class _Queries:
    """Numbers queries in order of appearance, and detects one that appears again."""

    def __init__(self) -> None:
        self._batch_of: dict[Any, int] = {}
        self._batch = -1
        self._keys: set[str] | None = None

    def numbered(self, batch: _Batch) -> dict[str, Any]:
        """Return a batch with numbers instead of query ids."""
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
        queries = int(starts.sum())
        if "weight" in given and np.size(given["weight"]) != queries:
            raise WeightError(
                f"batch {self._batch}: weight has {np.size(given['weight'])} entries for {queries} "
                "queries; XGBoost needs one per query"
            )
        return {**given, "qid": self._number(ids[starts].tolist()) + np.cumsum(starts) - 1}

    def _check_keys(self, batch: _Batch) -> dict[str, Any]:
        if not isinstance(batch, Mapping):
            raise DataError(
                f"batch {self._batch} is a {type(batch).__name__}; it must be a mapping with data, "
                "label and qid"
            )
        given = {key: value for key, value in batch.items() if value is not None}
        if "qid" not in given or "label" not in given:
            raise DataError(f"batch {self._batch} needs data, label and qid (one id per row)")
        self._keys = set(given) if self._keys is None else self._keys
        if differ := sorted(self._keys ^ set(given)):
            lacks, has = (self._batch, 0) if differ[0] in self._keys else (0, self._batch)
            raise DataError(
                f"batch {lacks} has no {differ[0]}, but batch {has} has one, which XGBoost would "
                "reuse; pass it in all batches or in none"
            )
        return given

    def _number(self, queries: list[Any]) -> int:
        """Register queries; return the number of the first."""
        first = len(self._batch_of)
        for query in queries:
            known = len(self._batch_of)
            before = self._batch_of.setdefault(query, self._batch)
            if len(self._batch_of) == known:
                again = f"batch {before} and again in batch {self._batch}"
                places = f"two places of batch {before}" if before == self._batch else again
                raise GroupError(
                    f"query {query!r} is in {places}: XGBoost would treat it as two; split batches "
                    "between queries, and keep the rows of a query contiguous"
                )
        return first
