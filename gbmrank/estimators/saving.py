"""Writing a ranker into the booster's own file."""

import os
from pathlib import Path
from typing import Any

from gbmrank.api.metrics import any_preferences
from gbmrank.backends.trainer import Fitted
from gbmrank.errors import ConfigError
from gbmrank.objectives import held_preferences
from gbmrank.training import Native, metric_list, ranking_objective

__all__ = ["holds_preferences", "write_model"]

_SUFFIXES = {"lightgbm": (".txt",), "xgboost": (".ubj", ".json")}


def write_model(fitted: Fitted, path: str | os.PathLike[str]) -> None:
    """Write a model beside its place and move it there, so that no half of one is ever seen.

    Parameters
    ----------
    fitted : Fitted
        The model.
    path : str or path
        Ends in ``.txt`` for LightGBM, in ``.ubj`` or ``.json`` for XGBoost.

    Raises
    ------
    ConfigError
        For another ending.
    FileNotFoundError
        When the folder does not exist.
    """
    target, allowed = Path(path), _SUFFIXES[fitted.backend]
    if target.suffix not in allowed:
        raise ConfigError(
            f"a model of {fitted.backend} is saved as *{' or *'.join(allowed)}; got {str(path)!r}"
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent}")
    part = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
    try:
        fitted.save(str(part))
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def holds_preferences(objective: Any, metric: Any) -> bool:
    """Whether an objective or one of the metrics holds preferences: no file says which.

    Examples
    --------
    >>> holds_preferences("ranknet", "ndcg@10")
    False
    """
    target = ranking_objective(objective)
    if not isinstance(target, Native) and held_preferences(target.template):
        return True
    return any_preferences(metric_list(metric))
