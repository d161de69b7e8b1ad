"""Everything a plugin may import: the stable API of version 1 of the plugin contract.

A plugin that imports from here (and from :mod:`gbmrank.numerics`, :mod:`gbmrank.errors`,
:mod:`gbmrank.testing`) keeps working as long as ``gbmrank.extend.API_VERSION`` is 1.
Importing this module compiles nothing. See docs/plugins.md.
"""

from gbmrank.data.queries import Groups, RankingData
from gbmrank.kernels.layout import GradHess
from gbmrank.losses import AbstractCompositeLoss, AbstractLoss, AbstractMarginLoss, Logistic
from gbmrank.losses.convex import AbstractGenerator, AbstractOuter
from gbmrank.losses.gains import binarise, discounts, gains
from gbmrank.losses.utilities import AbstractUtility
from gbmrank.metrics import AbstractBoundMetric, AbstractMetric, Ranked
from gbmrank.metrics.positional import AbstractPositional, cut
from gbmrank.objectives import AbstractBound, AbstractObjective
from gbmrank.objectives.base import HessianTrait, query_scale
from gbmrank.objectives.pair_sums import pair_curvature
from gbmrank.objectives.query_sums import bind_queries
from gbmrank.registry.entry_points import API_VERSION
from gbmrank.types import FloatArray

__all__ = [
    "API_VERSION",
    "AbstractBound",
    "AbstractBoundMetric",
    "AbstractCompositeLoss",
    "AbstractGenerator",
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
