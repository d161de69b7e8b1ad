"""Calibration theory of losses and metrics: verdicts, bounds, inner risks, counterexamples.

Everything here is imported on first use, so that ``import gbmrank`` stays fast.
"""

import importlib
from typing import Any

_NAMES: dict[str, tuple[str, ...]] = {
    "bipartite": (
        "FiniteBipartite",
        "auc_regret_bound",
        "four_risks",
        "largest_auc_regret",
        "min_max",
    ),
    "bounds": (
        "Bound",
        "EssentialCheck",
        "classification_bound",
        "essential_check",
        "essential_loss",
        "inversion_bound",
        "regression_bound",
        "regret_bound",
    ),
    "calibration_functions": ("CalibrationFunction", "calibration_function"),
    "counterexamples": ("Counterexample", "stored_counterexamples"),
    "distributions": ("Distribution",),
    "falsifier": ("SearchResult", "falsify", "falsify_on_graphs", "search", "search_on_graphs"),
    "loss_matrices": ("LowRank", "low_rank"),
    "minimise": ("Minimum",),
    "noise": (
        "Answer",
        "NoiseReport",
        "degree_condition",
        "difference_graph",
        "independence",
        "is_acyclic",
        "is_low_noise",
        "misordered_by_convex",
        "net_degree",
        "noise_report",
        "reinforces",
    ),
    "shapes": ("decomposable_rate", "item_shape", "pair_shape"),
    "statements": ("Statement", "theorems"),
    "verdicts.advice": ("Advice", "advise"),
    "verdicts.calibration": ("calibration", "warn_if_not_calibrated"),
    "verdicts.pairs": ("AcyclicPreferences", "Decoded", "SortsGraphs"),
    "verdicts.verdict": (
        "AllOf",
        "Assumed",
        "BinaryLabels",
        "Constant",
        "DegreeCondition",
        "IndependentLabels",
        "LabelsFrom",
        "LabelsUpTo",
        "MaxItems",
        "Reinforcement",
        "SortsPreferences",
        "Verdict",
    ),
    "views": ("Positional", "c_phi", "positional"),
    "weight_losses": ("loss_from_weight",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOMES)  # noqa: PLE0605  (a list of names, whoever counts them)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
