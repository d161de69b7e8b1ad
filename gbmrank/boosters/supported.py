"""The supported boosters."""

import sys

from gbmrank.boosters.base import Booster
from gbmrank.boosters.lightgbm.booster import LIGHTGBM
from gbmrank.boosters.xgboost.booster import XGBOOST
from gbmrank.errors import ConfigError

BOOSTERS: tuple[Booster, ...] = (LIGHTGBM, XGBOOST)
BACKENDS = tuple(booster.name for booster in BOOSTERS)


def booster_of(data: object) -> Booster | None:
    """Return the booster whose data set this is, or None; never imports a booster."""
    for booster in BOOSTERS:
        module = sys.modules.get(booster.name)
        if module is not None and isinstance(data, getattr(module, booster.data_set)):
            return booster
    return None


def booster_named(name: str) -> Booster:
    """Return the booster of this name."""
    for booster in BOOSTERS:
        if booster.name == name:
            return booster
    raise ConfigError(f"backend must be one of {', '.join(BACKENDS)}; got {name!r}")
