"""Calibration theory of losses and metrics: verdicts, bounds, inner risks, counterexamples.

Everything here is imported on first use, so that ``import gbmrank`` stays fast.
"""

import importlib
from types import MappingProxyType
from typing import Any

_HOMES = MappingProxyType(
    {
        "advise": "verdicts.advice",
        "Advice": "verdicts.advice",
        "Bound": "bounds",
        "regret_bound": "bounds",
        "FiniteBipartite": "bipartite",
        "four_risks": "bipartite",
        "largest_auc_regret": "bipartite",
        "min_max": "bipartite",
        "misordered_by_convex": "noise",
        "auc_regret_bound": "bipartite",
        "CalibrationFunction": "calibration_functions",
        "calibration_function": "calibration_functions",
        "Counterexample": "counterexamples",
        "stored_counterexamples": "counterexamples",
        "Distribution": "distributions",
        "LowRank": "loss_matrices",
        "low_rank": "loss_matrices",
        "Minimum": "minimise",
        "essential_loss": "bounds",
        "essential_check": "bounds",
        "EssentialCheck": "bounds",
        "regression_bound": "bounds",
        "classification_bound": "bounds",
        "inversion_bound": "bounds",
        "falsify": "falsifier",
        "falsify_on_graphs": "falsifier",
        "search": "falsifier",
        "search_on_graphs": "falsifier",
        "SearchResult": "falsifier",
        "Positional": "views",
        "c_phi": "views",
        "positional": "views",
        "decomposable_rate": "shapes",
        "item_shape": "shapes",
        "pair_shape": "shapes",
        "calibration": "verdicts.calibration",
        "warn_if_not_calibrated": "verdicts.calibration",
        "Verdict": "verdicts.verdict",
        "Constant": "verdicts.verdict",
        "AcyclicPreferences": "verdicts.pairs",
        "AllOf": "verdicts.verdict",
        "Assumed": "verdicts.verdict",
        "BinaryLabels": "verdicts.verdict",
        "Decoded": "verdicts.pairs",
        "DegreeCondition": "verdicts.verdict",
        "IndependentLabels": "verdicts.verdict",
        "LabelsFrom": "verdicts.verdict",
        "LabelsUpTo": "verdicts.verdict",
        "MaxItems": "verdicts.verdict",
        "Reinforcement": "verdicts.verdict",
        "SortsGraphs": "verdicts.pairs",
        "SortsPreferences": "verdicts.verdict",
        "Statement": "statements",
        "theorems": "statements",
        "loss_from_weight": "weight_losses",
        "difference_graph": "noise",
        "net_degree": "noise",
        "independence": "noise",
        "is_acyclic": "noise",
        "is_low_noise": "noise",
        "degree_condition": "noise",
        "reinforces": "noise",
        "noise_report": "noise",
        "NoiseReport": "noise",
        "Answer": "noise",
    }
)

__all__ = sorted(_HOMES)  # noqa: PLE0605  (a list of names, whoever counts them)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
