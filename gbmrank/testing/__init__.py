"""The conformance kit for losses, objectives and metrics, of plugins and of gbmrank itself."""

from gbmrank.testing.checks import Check, ConformanceError, Report, Result
from gbmrank.testing.kit import (
    CHECKS,
    check_loss,
    check_metric,
    check_objective,
    list_checks,
    parametrize_checks,
    run_checks,
)

__all__ = [
    "CHECKS",
    "Check",
    "ConformanceError",
    "Report",
    "Result",
    "check_loss",
    "check_metric",
    "check_objective",
    "list_checks",
    "parametrize_checks",
    "run_checks",
]
