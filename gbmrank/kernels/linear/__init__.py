"""Sums over all pairs of a long query in linear time."""
