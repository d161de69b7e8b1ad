"""Rankers trained on simulated clicks."""
