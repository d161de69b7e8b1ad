"""XGBoost as one object."""

from collections.abc import Mapping
from typing import Any, Final, final

from gbmrank.boosters.base import Booster
from gbmrank.boosters.settings import Setting
from gbmrank.boosters.xgboost.dataset import READS, group_sizes, is_dataset, read_columns
from gbmrank.boosters.xgboost.parameters import PARAMETERS, needed_settings
from gbmrank.boosters.xgboost.training import load_model, train, unseen_message
from gbmrank.boosters.xgboost.tuning import TUNING
from gbmrank.data.queries import RankingData
from gbmrank.errors import WeightError

__all__ = ["XGBOOST"]


@final
class _XGBoost:
    name = "xgboost"
    title = "XGBoost"
    reads = READS
    parameters = PARAMETERS
    tuning = TUNING
    native: tuple[str, ...] = ("rank:ndcg", "rank:pairwise", "rank:map")
    squared_error = "reg:squarederror"
    suffixes: tuple[str, ...] = (".ubj", ".json")
    first_bytes = b"{"
    memory_factor = 1.5  # a worker bins one partition after the other
    weights_on_cluster = False

    accepts = staticmethod(is_dataset)
    columns = staticmethod(read_columns)
    group_sizes = staticmethod(group_sizes)
    train = staticmethod(train)
    load = staticmethod(load_model)

    def check_training(self, data: Any) -> None:
        """Accept every set: a DMatrix carries no parameters."""

    def metric_name(self, text: str, higher_is_better: bool) -> str:
        """Return a name from which XGBoost guesses the right direction.

        Early stopping maximises only names that start with ``auc``, ``pre``, ``map`` or
        ``ndcg``; names may hold no colon and no blank.
        """
        plain = "".join(text.split()).replace(":", "_")
        return f"pre_gbmrank_{plain}" if higher_is_better else f"gbmrank_{plain}"

    def report(self, text: str, value: float, higher_is_better: bool) -> tuple[Any, ...]:
        """Return name and value."""
        return self.metric_name(text, higher_is_better), value

    def settings(self, shift_invariant: bool) -> tuple[Setting, ...]:
        """Return the parameters that a custom objective needs."""
        return needed_settings(shift_invariant)

    def check_weights(self, data: RankingData, params: Mapping[str, Any]) -> None:
        """Raise WeightError for weights of linear models: XGBoost would read beyond them."""
        if params.get("booster") == "gblinear" and data.weight is not None:
            raise WeightError(
                "booster='gblinear' takes one weight per row, and XGBoost keeps one per query "
                "where there are queries; leave out the weights, or grow trees"
            )

    def unseen_message(self, column: Any, what: str, category: str) -> str | None:
        """Return what is wrong with a category that the training did not have."""
        return unseen_message(column, what, category)


XGBOOST: Final[Booster] = _XGBoost()
