"""Probabilities of rankers: how far from what happens, and what the order costs."""
