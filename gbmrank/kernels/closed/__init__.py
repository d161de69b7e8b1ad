"""Sums over pairs or items that have a closed form."""
