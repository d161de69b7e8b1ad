"""Synthetic ranking data for demonstrations and tests."""

from gbmrank.data.demonstration import FEATURES, DemoData, demo_data

__all__ = ["FEATURES", "DemoData", "demo_data"]
