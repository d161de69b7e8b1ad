"""The names of LightGBM's parameters, and those that do nothing for rows in memory."""

import importlib
import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from gbmrank.errors import ConfigError

__all__ = ["check_files", "mains_of_lightgbm"]

_OF_FILES = frozenset(  # main names of parameters of LightGBM's program, which reads files
    {
        "config",
        "data",
        "group_column",
        "header",
        "ignore_column",
        "input_model",
        "label_column",
        "num_iteration_predict",
        "pred_early_stop",
        "predict_contrib",
        "predict_leaf_index",
        "predict_raw_score",
        "start_iteration_predict",
        "valid",
        "weight_column",
    }
)
_FILES = ("forcedsplits_filename", "forcedbins_filename")


@cache
def mains_of_lightgbm() -> Mapping[str, str]:
    """Return the main name of every name of LightGBM's parameters; none where it does not tell."""
    try:
        basic = importlib.import_module("lightgbm.basic")
        table = basic._ConfigAliases._get_all_param_aliases()
        return {str(name): main for main, others in table.items() for name in (main, *others)}
    except (ImportError, AttributeError, TypeError):  # a private table may go
        return {}


def check_files(params: Mapping[str, Any]) -> None:
    """Refuse what LightGBM's own program reads alone, and files that it would go without.

    Raises
    ------
    ConfigError
        With the name as it was given.
    """
    for name, value in params.items():
        main = mains_of_lightgbm().get(name, name)
        if main in _OF_FILES:
            raise ConfigError(
                f"{name}={value!r} is for files that LightGBM's own program reads and does "
                "nothing here; leave it out"
            )
        if main in _FILES and value and not os.path.isfile(str(value)):
            raise ConfigError(f"{name}={value!r}: there is no such file")
