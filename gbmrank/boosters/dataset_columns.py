"""The columns of a booster's data set, as an objective or metric reads them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.queries import Groups, RankingData, Subset, warn_if_in_pieces
from gbmrank.errors import DataError, GbmrankWarning, WeightError, warn

_CLAMPED = float(np.float32(1e38))  # LightGBM replaces infinity by this


@final
@dataclass(frozen=True, slots=True)
class BoosterColumns:
    """The columns of a booster's data set."""

    labels: npt.NDArray[Any]
    sizes: npt.NDArray[Any] | None  # rows per query; None means one query
    weight: npt.NDArray[Any] | None  # per row or per query
    owner: object  # lives as long as the data set; its state is dropped with it
    subset: Callable[[], Subset | None] | None = None  # rows of a larger data set; called once
    queries_in_training: Callable[[], int] | None = None  # called once, if there are no sizes
    zeros_if_missing: tuple[str, ...] = ()  # columns that are 0 if not set, or NaN: labels, weight

    def fingerprint(self) -> tuple[int, ...]:
        """Return a hash of all columns, to detect changes of a data set."""
        found = []
        for column in (self.labels, self.sizes, self.weight):
            found.append(-1 if column is None else hash(np.asarray(column).tobytes()))
        return tuple(found)

    def with_placeholders(self, n_rows: int) -> "BoosterColumns":
        """Return columns for an objective or metric of preferences, which needs no labels."""
        labels = self.labels if len(self.labels) else np.zeros(n_rows)
        unsure = tuple(name for name in self.zeros_if_missing if name != "labels")
        return replace(self, labels=labels, zeros_if_missing=unsure)

    def warn_if_merged(self) -> None:
        """Warn if a validation set without queries is evaluated as one query."""
        queries = 0 if self.queries_in_training is None else self.queries_in_training()
        if queries > 1 and len(self.labels) > 1:
            warn(
                f"a validation set has no group, so its {len(self.labels)} rows count as one "
                f"query, while the training set has {queries}; pass group= (rows per query), or "
                "qid= in XGBoost, when you create the data set",
                GbmrankWarning,
            )

    def warn_if_wrong(self) -> None:
        """Warn if queries are in pieces, or labels or weights zeros that the booster filled in."""
        if self.sizes is not None:
            warn_if_in_pieces(np.asarray(self.sizes))
        unsure = self.zeros_if_missing if len(self.labels) > 1 else ()
        if "labels" in unsure and not np.any(self.labels):
            warn(
                f"all {len(self.labels)} labels of a data set are 0, which is also LightGBM's "
                "default for missing labels: there is nothing to learn, and metrics are "
                "meaningless; pass label= when you create the data set",
                GbmrankWarning,
            )
        weight = np.ones(1) if self.weight is None else self.weight
        if "weight" in unsure and np.any(weight) and not np.all(weight):
            warn(
                "some weights of a data set are 0, to which LightGBM also converts NaN: these "
                "queries or rows do not count; check weight= for NaN, or leave out the queries",
                GbmrankWarning,
            )

    def to_data(self) -> RankingData:
        """Validate the columns and return them as ranking data."""
        sizes, n_rows = self.sizes, len(self.labels)
        groups = None if sizes is None else Groups.from_sizes(sizes, n_rows)
        data = RankingData.from_arrays(self.labels, group=groups, weight=self.weight)
        columns = (("label", data.labels, DataError), ("weight", data.weight, WeightError))
        for what, values, error in columns:
            bad = np.flatnonzero(np.abs(np.zeros(0) if values is None else values) >= _CLAMPED)
            if len(bad):
                row = int(bad[0])
                raise error(
                    f"the {what} of row {row}, query {data.groups.query_of(row)!r}, is infinite; "
                    f"{what}s must be below {_CLAMPED:.0e}: drop or repair these rows"
                )
        return data if self.subset is None else replace(data, subset=self.subset())
