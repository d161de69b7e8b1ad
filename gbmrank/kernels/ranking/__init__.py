"""Sorting with ties, and the sums of metrics over ranks."""
