"""Why a ranker scores as it does: contributions of features to scores and to a metric."""

from gbmrank.explanations.explanation import Explanation, explain
from gbmrank.explanations.ledger import Ledger, metric_ledger

__all__ = ["Explanation", "Ledger", "explain", "metric_ledger"]
