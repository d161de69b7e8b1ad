"""XGBoost's data sets and conventions."""

import sys
from typing import Any

import numpy as np

from gbmrank.backends.base import Columns, Setting, latest_with_queries

__all__ = ["XGBOOST"]


class _XGBoost:
    """Reads ``xgboost.DMatrix`` of every kind; weights are per query, groups are offsets."""

    name = "xgboost"

    def accepts(self, data: object) -> bool:
        """Whether this is a DMatrix; XGBoost is imported by whoever made one."""
        module = sys.modules.get("xgboost")
        return module is not None and isinstance(data, module.DMatrix)

    def columns(self, data: Any) -> Columns:
        """Read a DMatrix; offsets are unsigned, so they are widened before subtracting."""
        offsets = data.get_uint_info("group_ptr").astype(np.int64)
        weight = data.get_weight()
        sizes = np.diff(offsets) if len(offsets) > 1 else None
        return Columns(
            data.get_label(),
            sizes,
            weight if len(weight) else None,
            data,
            queries_in_training=None if sizes is not None else lambda: _queries_in_training(data),
        )

    def check_training(self, data: Any) -> None:
        """Take every set: a DMatrix tells nothing of parameters."""

    def metric_name(self, text: str, higher_is_better: bool) -> str:
        """Return a name from which XGBoost guesses the right direction.

        Early stopping maximises only names that start with ``auc``, ``pre``, ``map`` or
        ``ndcg``; names may hold no colon and no blank.
        """
        plain = "".join(text.split()).replace(":", "_")
        return f"pre_gbmrank_{plain}" if higher_is_better else f"gbmrank_{plain}"

    def settings(self, shift_invariant: bool) -> tuple[Setting, ...]:
        """Return the parameters a custom objective needs."""
        start = (
            "XGBoost starts custom objectives at 0.5; this one does not change when all scores "
            "shift, so it only makes raw scores easier to read"
            if shift_invariant
            else "XGBoost starts custom objectives at 0.5, a wrong start for this one"
        )
        return (
            Setting("base_score", 0.0, start),
            Setting(
                "disable_default_eval_metric",
                1,
                "XGBoost would report rmse, and early stopping may follow it; with weights of "
                "queries, rmse ends the whole process",
            ),
            Setting(
                "min_child_weight",
                1e-3,
                "curvature is of the scale of the utilities, often far below XGBoost's 1, and no "
                "split would be made",
            ),
        )


def _queries_in_training(data: Any) -> int:
    """Return how many queries the training set beside a DMatrix has: one of the same width."""
    training, queries = latest_with_queries()
    beside = XGBOOST.accepts(training) and training.num_col() == data.num_col()
    return queries if beside else 0


XGBOOST = _XGBoost()
