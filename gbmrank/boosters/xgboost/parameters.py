"""The names of XGBoost's parameters.

XGBoost lists them nowhere, but the configuration of a model holds those that the model reads.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from gbmrank.boosters.base import import_booster
from gbmrank.errors import MissingBackendError

__all__ = ["TWINS", "known_to_xgboost"]

# Each brings names that no other one has; a release that lacks one of them has no such names.
_SETUPS: tuple[Mapping[str, Any], ...] = (
    {},
    {"tree_method": "approx"},
    {"tree_method": "exact"},
    {"booster": "dart"},
    {"booster": "gblinear", "updater": "shotgun"},
    {"booster": "gblinear", "updater": "coord_descent"},
    {"objective": "rank:ndcg"},
    {"objective": "rank:map"},
    {"objective": "binary:logistic"},
    {"objective": "count:poisson"},
    {"objective": "reg:tweedie"},
    {"objective": "reg:pseudohubererror"},
    {"objective": "reg:quantileerror", "quantile_alpha": 0.5},
    {"objective": "reg:expectileerror", "expectile_alpha": 0.5},
    {"objective": "survival:aft"},
)
_ALWAYS = frozenset({"eval_metric", "nthread", "verbosity"})
_RESULTS = frozenset(  # of a training; XGBoost takes them and does nothing, or fails
    {"boost_from_average", "num_feature", "num_target", "num_trees", "updater_seq"}
)

TWINS: Mapping[str, str] = {
    "num_leaves": "max_leaves",
    "bagging_fraction": "subsample",
    "feature_fraction": "colsample_bytree",
    "feature_fraction_bynode": "colsample_bynode",
    "lambda_l1": "alpha",
    "lambda_l2": "lambda",
    "min_gain_to_split": "gamma",
    "min_sum_hessian_in_leaf": "min_child_weight",
    "boosting": "booster",
    "num_threads": "nthread",
    "verbosity": "verbosity",
}
"""What XGBoost calls parameters of LightGBM, by their main names there."""


def known_to_xgboost(params: Mapping[str, Any]) -> frozenset[str]:
    """Return all names that XGBoost reads, with some settings and with any others.

    Parameters
    ----------
    params : mapping
        Settings; their names are known where a model of these settings reads them.

    Returns
    -------
    frozenset of str
        Empty where XGBoost does not tell.

    Examples
    --------
    >>> "max_depth" in known_to_xgboost({}), "max_dept" in known_to_xgboost({"max_dept": 3})
    (True, False)
    """
    known = _of_all_setups()
    if not known or known.issuperset(params):
        return known
    return known | _read_by(params)


@cache
def _of_all_setups() -> frozenset[str]:
    try:
        xgb = import_booster("xgboost")
    except MissingBackendError:
        return frozenset()  # said where it is needed
    found = frozenset[str]().union(*map(_read_by, _SETUPS))
    return found | _ALWAYS | set(xgb.get_config()) if found else found


def _read_by(params: Mapping[str, Any]) -> frozenset[str]:
    """Return the names that a model reads; none where it cannot be made."""
    xgb = import_booster("xgboost")
    settings = {key: value for key, value in params.items() if key not in ("verbosity", "nthread")}
    try:
        with xgb.config_context(verbosity=0):  # about settings that are on their way out
            row = xgb.DMatrix(np.zeros((1, 1)), label=np.ones(1), nthread=1)
            made = xgb.Booster({**settings, "nthread": 1, "validate_parameters": False}, [row])
            return frozenset(_names(json.loads(made.save_config()))) - _RESULTS
    except (xgb.core.XGBoostError, TypeError, ValueError):
        return frozenset()


def _names(config: Any) -> Iterator[str]:
    for name, value in config.items():
        if name.endswith("_param"):
            yield from value
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, dict):
                yield from _names(part)
