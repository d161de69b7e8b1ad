"""Sorting with ties, and what metrics sum over ranks."""
