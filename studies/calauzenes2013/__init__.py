"""Regret bounds of Calauzènes et al. 2013."""
