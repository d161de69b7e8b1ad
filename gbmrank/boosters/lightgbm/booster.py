"""LightGBM as one object."""

import sys
from collections.abc import Mapping
from typing import Any, Final, final

from gbmrank.boosters.base import Booster, Fitted, Job, Trained
from gbmrank.boosters.lightgbm.dataset import check_bagging, group_sizes, read_columns
from gbmrank.boosters.lightgbm.parameters import PARAMETERS, needed_settings
from gbmrank.boosters.lightgbm.training import load_model, train
from gbmrank.boosters.settings import Setting
from gbmrank.boosters.state import BoosterColumns
from gbmrank.data.queries import RankingData

__all__ = ["LIGHTGBM"]


@final
class _LightGBM:
    name = "lightgbm"
    title = "LightGBM"
    parameters = PARAMETERS
    native: tuple[str, ...] = ("lambdarank", "rank_xendcg")
    squared_error = "regression"
    suffixes: tuple[str, ...] = (".txt",)
    first_bytes = b"tree"
    memory_factor = 2.5  # a worker joins its partitions into one table before it bins them
    rejects_unseen = False  # a new category is a missing value
    weights_on_cluster = True  # together with queries, for its own objectives

    def accepts(self, data: object) -> bool:
        """Whether this is a Dataset; LightGBM is imported by whoever made one."""
        module = sys.modules.get("lightgbm")
        return module is not None and isinstance(data, module.Dataset)

    def columns(self, data: Any) -> BoosterColumns:
        """Read a Dataset."""
        return read_columns(data)

    def group_sizes(self, data: Any) -> Any:
        """Return rows per query; None without queries."""
        return group_sizes(data)

    def check_training(self, data: Any) -> None:
        """Raise ConfigError where LightGBM draws queries itself."""
        check_bagging(data)

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

    def unseen_message(self, column: Any, what: str, category: str) -> str:
        """Say nothing: such a category is a missing value."""
        return f"{column!r} of {what}: {category!r} is new, and so a missing value"

    def train(self, job: Job) -> Trained:
        """Train on this machine."""
        return train(job)

    def load(self, data: bytes, path: str) -> tuple[Fitted, str | None]:
        """Read a model file."""
        return load_model(data, path)


LIGHTGBM: Final[Booster] = _LightGBM()
