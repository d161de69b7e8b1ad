"""Input data: queries, columns, preferences, feature tables and file readers."""

from gbmrank.data.columns import LARGEST, as_floats
from gbmrank.data.queries import Groups, RankingData, Subset, check_finite

__all__ = ["LARGEST", "Groups", "RankingData", "Subset", "as_floats", "check_finite"]
