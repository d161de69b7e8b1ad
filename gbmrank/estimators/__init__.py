"""Rankers in the style of scikit-learn."""

from gbmrank.estimators.gbm_ranker import GBMRanker, distil
from gbmrank.estimators.goal_front import Front
from gbmrank.estimators.goal_ranker import GoalRanker
from gbmrank.estimators.low_rank_ranker import LowRankRanker
from gbmrank.estimators.pair_ranker import PairRanker
from gbmrank.estimators.saved_rankers import load

__all__ = ["Front", "GBMRanker", "GoalRanker", "LowRankRanker", "PairRanker", "distil", "load"]
