"""Preference graphs: who is preferred to whom within a query, and by how much."""

from gbmrank.preferences.binding import preferences_for
from gbmrank.preferences.edges import Edges
from gbmrank.preferences.graphs import PreferenceGraphs

__all__ = ["Edges", "PreferenceGraphs", "preferences_for"]
