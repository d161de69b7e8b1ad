"""Weighted sums of objectives."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, final

import numpy as np

from gbmrank.data import Groups, RankingData
from gbmrank.errors import ParameterError
from gbmrank.kernels.layout import GradHess
from gbmrank.objectives.base import AbstractBound, AbstractObjective, HessianTrait, check_losses
from gbmrank.preferences import PreferenceGraphs
from gbmrank.types import FloatArray

__all__ = ["Mix", "held_preferences", "with_groups"]

_TRAITS: tuple[HessianTrait, ...] = ("exact", "bound", "expected", "heuristic", "constant")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Mix(AbstractObjective):
    """A weighted sum of objectives, written ``mix(a, b, weights=[0.7, 0.3])``.

    Each part keeps its own normalisation and Hessian; the sum's trait is the weakest of
    theirs.

    Parameters
    ----------
    parts : tuple of objectives
        At least one.
    weights : tuple of float or None, default=None
        One positive factor per part; all one when not given.
    """

    parts: tuple[AbstractObjective, ...] = field(
        default=(), metadata={"kind": "objective", "positional": True}
    )
    weights: tuple[float, ...] | None = None

    name: ClassVar[str] = "mix"
    formula: ClassVar[str] = "sum_k w_k L_k"
    cost: ClassVar[str] = "sum of the parts"

    def __post_init__(self) -> None:
        super(Mix, self).__post_init__()
        if not self.parts:
            raise ParameterError("mix: name the objectives to add, such as mix(ranknet, softmax)")
        if self.normalize != "none" or self.hessian != "auto":
            raise ParameterError("mix: set normalize and hessian in its parts")
        weights = self._factors()
        if len(weights) != len(self.parts) or not all(0 < w < float("inf") for w in weights):
            raise ParameterError(
                f"mix: give one factor above 0 for each of {len(self.parts)} objectives, "
                f"got {list(weights)}"
            )

    @property
    def preferences(self) -> PreferenceGraphs | None:
        """Those of the first part, where all parts hold some and none reads labels."""
        held = [getattr(part, "preferences", None) for part in self.parts]
        return None if any(one is None for one in held) else held[0]

    def _factors(self) -> tuple[float, ...]:
        return (1.0,) * len(self.parts) if self.weights is None else self.weights

    @property
    def shift_invariant(self) -> bool:  # type: ignore[override]
        """Whether every part is."""
        return all(part.shift_invariant for part in self.parts)

    @property
    def hessian_trait(self) -> HessianTrait:
        """The weakest trait among the parts."""
        return max((part.hessian_trait for part in self.parts), key=_TRAITS.index)

    @property
    def accuracy(self) -> float | None:
        """The largest relative error among the parts that use the linear-time engine."""
        return max((a for part in self.parts if (a := part.accuracy) is not None), default=None)

    def bind(self, data: RankingData) -> AbstractBound:
        """Bind every part."""
        return _BoundMix(data, tuple(part.bind(data) for part in self.parts), self._factors())


def held_preferences(template: AbstractObjective) -> tuple[PreferenceGraphs, ...]:
    """Return all preferences that an objective or its parts were made with."""
    if isinstance(template, Mix):
        return tuple(one for part in template.parts for one in held_preferences(part))
    own = getattr(template, "preferences", None)
    return () if own is None else (own,)


def with_groups(template: AbstractObjective, groups: Groups) -> AbstractObjective:
    """Return an objective whose preferences, if it holds some, lie in other rows."""
    if isinstance(template, Mix):
        return replace(template, parts=tuple(with_groups(part, groups) for part in template.parts))
    own: Any = template  # of a kind that holds preferences, if it holds some
    held = held_preferences(template)
    return replace(own, preferences=replace(held[0], groups=groups)) if held else template


@final
class _BoundMix(AbstractBound):
    __slots__ = ("factors", "parts")

    def __init__(
        self, data: RankingData, parts: tuple[AbstractBound, ...], factors: tuple[float, ...]
    ) -> None:
        super().__init__(data.groups)
        self.parts, self.factors = parts, factors

    def fill(self, scores: FloatArray, out: GradHess, *, single: bool) -> None:
        """Add the parts."""
        out.grad[:] = 0.0
        out.hess[:] = 0.0
        for part, factor in zip(self.parts, self.factors, strict=True):
            grad, hess = part.gradients(scores, out.grad.dtype, single=single)
            with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for infinity
                out.grad[:] += factor * grad
                out.hess[:] += factor * hess

    def losses(self, scores: FloatArray) -> FloatArray:
        """Return the loss of each query."""
        pairs = zip(self.parts, self.factors, strict=True)
        with np.errstate(over="ignore"):  # check_losses looks for infinity
            added = np.sum([factor * part.losses(scores) for part, factor in pairs], axis=0)
        return check_losses(added, self.groups)
