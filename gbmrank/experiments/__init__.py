"""Comparing objectives on data: runs, statistics over queries, and a report."""
