"""Input data: queries, columns, preferences, feature tables and file readers."""

from gbmrank.data.queries import LARGEST, Groups, RankingData, Subset, as_floats, check_finite

__all__ = ["LARGEST", "Groups", "RankingData", "Subset", "as_floats", "check_finite"]
