"""LightGBM as one object."""

from collections.abc import Mapping
from typing import Any, Final, final

from gbmrank.boosters.base import Booster
from gbmrank.boosters.lightgbm.dataset import (
    READS,
    check_bagging,
    group_sizes,
    is_dataset,
    read_columns,
)
from gbmrank.boosters.lightgbm.parameters import PARAMETERS, needed_settings
from gbmrank.boosters.lightgbm.training import load_model, train
from gbmrank.boosters.lightgbm.tuning import TUNING
from gbmrank.boosters.settings import Setting
from gbmrank.data.queries import RankingData

__all__ = ["LIGHTGBM"]


@final
class _LightGBM:
    name = "lightgbm"
    title = "LightGBM"
    reads = READS
    parameters = PARAMETERS
    tuning = TUNING
    native: tuple[str, ...] = ("lambdarank", "rank_xendcg")
    squared_error = "regression"
    suffixes: tuple[str, ...] = (".txt",)
    first_bytes = b"tree"
    memory_factor = 2.5  # a worker joins its partitions into one table before it bins them
    weights_on_cluster = True  # together with queries, for its own objectives

    accepts = staticmethod(is_dataset)
    columns = staticmethod(read_columns)
    group_sizes = staticmethod(group_sizes)
    train = staticmethod(train)
    load = staticmethod(load_model)
    check_training = staticmethod(check_bagging)

    def metric_name(self, text: str, higher_is_better: bool) -> str:
        """Return a name that no built-in metric has: two lists would be interleaved."""
        plain = "".join(text.split())  # LightGBM takes what follows a blank for the name
        return f"gbmrank_{plain}"

    def report(self, text: str, value: float, higher_is_better: bool) -> tuple[Any, ...]:
        """Return name, value and direction."""
        return self.metric_name(text, higher_is_better), value, higher_is_better

    def settings(self, shift_invariant: bool) -> tuple[Setting, ...]:
        """Return the parameters that a custom objective needs."""
        return needed_settings()

    def check_weights(self, data: RankingData, params: Mapping[str, Any]) -> None:
        """Accept all: one weight per row."""

    def unseen_message(self, column: Any, what: str, category: str) -> str | None:
        """Return None: such a category is a missing value."""
        return None


LIGHTGBM: Final[Booster] = _LightGBM()
