"""Rankers in the style of scikit-learn."""

from gbmrank.estimators.gbm_ranker import GBMRanker, distil, load
from gbmrank.estimators.goal_front import Front
from gbmrank.estimators.goal_ranker import GoalRanker
from gbmrank.estimators.low_rank_ranker import LowRankRanker
from gbmrank.estimators.pair_ranker import PairRanker

__all__ = ["Front", "GBMRanker", "GoalRanker", "LowRankRanker", "PairRanker", "distil", "load"]
