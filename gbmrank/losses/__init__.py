"""Losses: scalar penalties of a score or a margin, with their derivatives."""

from gbmrank.losses.base import AbstractLoss, AbstractMarginLoss
from gbmrank.losses.composite import (
    AbstractCompositeLoss,
    AsymmetricA,
    AsymmetricB,
    DifferentiableHinge,
    PClassification,
    Squared,
    SquaredHinge,
)
from gbmrank.losses.margin import (
    BrierSigmoid,
    CanonicalBoosting,
    Exponential,
    Hinge,
    Logistic,
    SquaredHingeMargin,
    SquaredMargin,
)

__all__ = [
    "BUILTIN_LOSSES",
    "AbstractCompositeLoss",
    "AbstractLoss",
    "AbstractMarginLoss",
    "AsymmetricA",
    "AsymmetricB",
    "BrierSigmoid",
    "CanonicalBoosting",
    "DifferentiableHinge",
    "Exponential",
    "Hinge",
    "Logistic",
    "PClassification",
    "Squared",
    "SquaredHinge",
    "SquaredHingeMargin",
    "SquaredMargin",
]

BUILTIN_LOSSES: tuple[type[AbstractLoss], ...] = (
    Logistic,
    Exponential,
    Squared,
    SquaredMargin,
    Hinge,
    SquaredHinge,
    SquaredHingeMargin,
    DifferentiableHinge,
    CanonicalBoosting,
    PClassification,
    AsymmetricA,
    AsymmetricB,
    BrierSigmoid,
)
