"""What a callback of LightGBM reads: its data set, and the training that is waiting.

Weights are per row, groups are sizes.
"""

import weakref
from typing import Any

import numpy as np

from gbmrank.boosters.base import import_booster
from gbmrank.boosters.bindings import BoosterColumns
from gbmrank.boosters.lightgbm.call_stack import current_training, evaluates_training_set
from gbmrank.boosters.lightgbm.parameters import PARAMETERS
from gbmrank.boosters.settings import is_on
from gbmrank.boosters.supervision import Training
from gbmrank.data.queries import Subset
from gbmrank.data.tables import Reads
from gbmrank.errors import ConfigError, DataError, GbmrankWarning, GroupError, warn
from gbmrank.types import IntArray

READS = Reads(
    name="LightGBM",
    package="lightgbm",
    category_frames=("pandas",),
    category_kinds=(  # which it writes into its model as JSON
        "string",
        "integer",
        "nullable integer",
        "floating",
        "boolean",
        "mixed-integer",
        "mixed-integer-float",
        "empty",
    ),
    rejected_types=("Float16", "halffloat", "[pyarrow]"),
    polars_since=(4, 7),
)


def import_lightgbm() -> Any:
    """Import LightGBM, or raise MissingBackendError; as in pyproject.toml."""
    return import_booster("lightgbm", (4, 6))


def read_columns(data: Any) -> BoosterColumns:
    """Read the columns of a Dataset; its arrays belong to LightGBM and are not modified."""
    labels, sizes, weight = _fields(data)
    return BoosterColumns(
        np.empty(0) if labels is None else labels,
        sizes,
        weight,
        data,
        None if data.used_indices is None else lambda: _subset(data),
        None if sizes is not None else lambda: _queries_in_training(data),
        zeros_if_missing=("labels", "weight"),
    )


def group_sizes(data: Any) -> Any:
    """Return rows per query; a Dataset is only constructed if it does not know them yet.

    ``lightgbm.cv`` cannot set binning parameters of a constructed Dataset.
    """
    if data.group is not None:
        return data.group
    data.construct().get_group()  # afterwards its subsets know their queries too
    return _fields(data)[1]


def ignored_objective() -> str | None:
    """Return the objective if LightGBM ignores it and trains squared error, or None.

    LightGBM splits parameters at ``=``, so text with another one is an unknown parameter to it.
    """
    training = current_training()
    given = None if training is None else PARAMETERS.read(training.params()).get("objective")
    return given if isinstance(given, str) and "=" in given else None


def check_bagging(training: Training) -> None:
    """Raise ConfigError if LightGBM samples queries, since it mixes up rows and gradients.

    The parameters are those of the Booster: a Dataset keeps those it was first used with.
    """
    named = PARAMETERS.read(training.params())
    if not named.get("bagging_by_query"):
        return
    drawn = float(named.get("bagging_freq", 0)) > 0 and float(named.get("bagging_fraction", 1)) < 1
    if drawn and is_on(named, "bagging_by_query"):
        raise ConfigError(
            "with a custom objective LightGBM trains a wrong model when bagging_by_query is "
            "on; leave it out, or train with gbmrank.GBMRanker, which samples queries itself"
        )


def start_training(training: Training) -> None:
    """Make dart repeatable; raise ConfigError if it would end with a wrong model."""
    if PARAMETERS.read(training.params()).get("boosting") != "dart":
        return
    if evaluates_training_set():  # to score it drops trees again, which are not restored
        raise ConfigError(
            "with boosting='dart' and a custom objective, LightGBM saves a wrong model if it "
            "evaluates the training set. Leave the training set out of the validation sets, "
            "or train with gbmrank.GBMRanker"
        )
    seed_drops(training.model)


def seed_drops(model: Any) -> None:
    """Seed the trees that dart drops, after the first scores of a training were read.

    Until then LightGBM may or may not have drawn a number: it reads ``is_update_score_cur_iter_``
    (src/boosting/dart.hpp) before it is set. A parameter that is set again seeds the generator.
    """
    names = ("boosting", *PARAMETERS.aliases["boosting"])
    model.reset_parameter({name: "dart" for name in names if name in model.params})


def _fields(data: Any) -> tuple[Any, Any, Any]:
    """Return labels, sizes of queries and weights as LightGBM has them now.

    ``get_label`` and similar methods return cached values, even after ``set_field``.
    """
    try:
        labels, ends, weight = map(data.get_field, ("label", "group", "weight"))
    except Exception as error:  # LightGBM raises a plain Exception here
        if "before construct" not in str(error):
            raise
        raise DataError(
            "this lightgbm.Dataset is not constructed yet, so its columns cannot be read; call "
            "its construct() first"
        ) from error
    sizes = None if ends is None else np.diff(ends)
    if data.used_indices is not None and sizes is not None and not len(sizes):
        raise GroupError(
            "LightGBM has lost the queries of a subset of a data set that was read from a file; "
            "call get_group() of the full one first, or pass folds=gbmrank.query_folds(dataset)"
        )
    return labels, sizes, weight


def _queries_in_training(data: Any) -> int:
    """Return the number of queries in the training set of a validation set, if known."""
    if data.reference is None or data.used_indices is not None:
        return 0
    sizes = _fields(data.reference)[1]
    return 0 if sizes is None else len(sizes)


def _subset(data: Any) -> Subset:
    """Follow a subset (``lightgbm.cv`` makes them) to the data set it was taken from."""
    rows, data = np.asarray(data.used_indices, dtype=np.int64), data.reference
    while data.used_indices is not None:
        rows, data = np.asarray(data.used_indices, dtype=np.int64)[rows], data.reference
    _warn_if_cut(rows, data)
    return Subset(rows, data.num_data())


_cut: "weakref.WeakSet[Any]" = weakref.WeakSet()  # lightgbm.cv cuts a data set in every fold


def _warn_if_cut(rows: IntArray, data: Any) -> None:
    """Warn, once per data set, if a subset contains only part of a query."""
    sizes = _fields(data)[1]
    sizes = np.zeros(0, np.int64) if sizes is None else np.asarray(sizes, dtype=np.int64)
    if sizes.sum() <= rows.max(initial=0):  # the queries are unknown
        return
    taken = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[rows], minlength=len(sizes))
    if data not in _cut and np.any((taken > 0) & (taken < sizes)):
        warn(
            "a subset of a lightgbm.Dataset contains only some rows of a query, which then count "
            "as a separate query; lightgbm.cv splits queries unless you pass "
            "folds=gbmrank.query_folds(dataset)",
            GbmrankWarning,
        )
        _cut.add(data)
