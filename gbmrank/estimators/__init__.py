"""Rankers in the style of scikit-learn."""

from gbmrank.estimators.pair_ranker import PairRanker

__all__ = ["PairRanker"]
