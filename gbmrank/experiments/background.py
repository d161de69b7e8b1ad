"""What stands behind the numbers: verdicts, conventions, versions."""

import datetime as dt
import importlib.metadata
import platform
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from gbmrank.api import Metric, MetricList, Objective
from gbmrank.experiments.results import Measure
from gbmrank.experiments.trial import regret_name
from gbmrank.registry.catalogue import (
    Entry,
    list_losses,
    list_metrics,
    list_objectives,
    list_utilities,
)
from gbmrank.theory.verdicts.calibration import calibration
from gbmrank.theory.verdicts.verdict import Verdict
from gbmrank.training import Native

__all__ = ["conventions", "environment", "measures", "verdicts", "versions"]

_PACKAGES = ("gbmrank", "lightgbm", "xgboost", "numpy", "numba")


def measures(metrics: MetricList, regret_k: int | None) -> tuple[Measure, ...]:
    """Return what is reported for every query, the target first."""
    found = [Measure(str(one), one.higher_is_better) for one in metrics]
    return (*found, *(() if regret_k is None else (Measure(regret_name(regret_k), False),)))


def verdicts(
    objectives: Mapping[str, Objective | Native], metrics: MetricList, regret_k: int | None
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what theory says of each objective and measure; regret is that of DCG.

    A booster's own objective has a verdict too: nothing is known of it.
    """
    judged: dict[str, Any] = {str(one): one for one in metrics}
    if regret_k is not None:
        judged[regret_name(regret_k)] = f"dcg@{regret_k}"
    return {
        (name, measure): _stated(calibration(_read(one), metric))
        for name, one in objectives.items()
        for measure, metric in judged.items()
    }


def _read(one: Objective | Native) -> Objective | str:
    return one if isinstance(one, Objective) else str(one)


def _stated(verdict: Verdict) -> dict[str, Any]:
    plain = verdict.as_dict()
    return {key: plain[key] for key in ("status", "sentence", "reference", "condition", "constant")}


def conventions(one: Metric) -> dict[str, Any]:
    """Return the options of a metric that change its value."""
    return {field.name: _plain(getattr(one.measure, field.name)) for field in fields(one.measure)}


def versions() -> dict[str, str]:
    """Return the versions that results depend on."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def environment(command: str) -> dict[str, Any]:
    """Return where and when this was measured."""
    listed: list[Entry[Any]] = [
        *list_objectives(),
        *list_losses(),
        *list_metrics(),
        *list_utilities(),
    ]
    plugins = {str(entry.origin) for entry in listed if entry.origin.distribution != "gbmrank"}
    return {
        "command": command,
        "versions": versions(),
        "plugins": sorted(plugins),
        "platform": platform.platform(),
        "created": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    }


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else str(value)
