"""Preference graphs: who is preferred to whom within a query, and by how much."""

from gbmrank.data.preferences.edges import Edges
from gbmrank.data.preferences.graphs import PreferenceGraphs, preferences_for

__all__ = ["Edges", "PreferenceGraphs", "preferences_for"]
