"""Sums that visit every pair."""
