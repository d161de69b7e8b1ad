"""Everything a plugin may import: what version 1 of the plugin contract covers.

A plugin that imports from here (and from :mod:`gbmrank.numerics`, :mod:`gbmrank.errors`,
:mod:`gbmrank.testing`) keeps working as long as ``gbmrank.extend.API_VERSION`` is 1.
Importing this module compiles nothing. See docs/plugins.md.
"""

from gbmrank.data import Groups, RankingData
from gbmrank.entry_points import API_VERSION
from gbmrank.kernels.layout import GradHess
from gbmrank.losses import AbstractCompositeLoss, AbstractLoss, AbstractMarginLoss, Logistic
from gbmrank.losses.outer import AbstractOuter
from gbmrank.metrics import AbstractBoundMetric, AbstractMetric, Ranked
from gbmrank.metrics.positional import AbstractPositional, cut
from gbmrank.objectives import AbstractBound, AbstractObjective
from gbmrank.objectives.base import HessianTrait, query_scale
from gbmrank.objectives.engines import pair_curvature
from gbmrank.objectives.query_sums import bind_queries
from gbmrank.ranking import binarise, discounts, gains
from gbmrank.types import FloatArray
from gbmrank.utilities import AbstractUtility

__all__ = [
    "API_VERSION",
    "AbstractBound",
    "AbstractBoundMetric",
    "AbstractCompositeLoss",
    "AbstractLoss",
    "AbstractMarginLoss",
    "AbstractMetric",
    "AbstractObjective",
    "AbstractOuter",
    "AbstractPositional",
    "AbstractUtility",
    "FloatArray",
    "GradHess",
    "Groups",
    "HessianTrait",
    "Logistic",
    "Ranked",
    "RankingData",
    "binarise",
    "bind_queries",
    "cut",
    "discounts",
    "gains",
    "pair_curvature",
    "query_scale",
]
