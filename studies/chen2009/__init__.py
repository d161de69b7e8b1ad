"""Weights that make losses bound NDCG, of Chen et al. 2009."""
