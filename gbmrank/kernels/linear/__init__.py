"""Sums over the pairs of long queries in linear time: interpolation, cells, engine, long."""
