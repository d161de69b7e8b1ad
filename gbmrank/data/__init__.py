"""Queries, columns, preferences and files: everything about rows before any loss."""

from gbmrank.data.queries import LARGEST, Groups, RankingData, Subset, as_floats, check_finite

__all__ = ["LARGEST", "Groups", "RankingData", "Subset", "as_floats", "check_finite"]
