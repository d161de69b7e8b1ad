"""Base classes of objectives and of objectives bound to data, and sums of objectives."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.columns import as_floats
from gbmrank.data.preferences import PreferenceGraphs
from gbmrank.data.queries import Groups, RankingData, check_finite
from gbmrank.errors import (
    DataError,
    GbmrankWarning,
    LabelRangeError,
    NumericError,
    ParameterError,
    warn,
)
from gbmrank.kernels.jit import threads
from gbmrank.kernels.layout import GradHess, Span
from gbmrank.losses.gains import check_threshold, gains
from gbmrank.losses.utilities import AbstractUtility, Form, IdentityUtility, PrecisionUtility
from gbmrank.types import FloatArray

HessianTrait = Literal["exact", "bound", "expected", "heuristic", "constant"]
_NORMALIZE = ("none", "items", "pairs")
_HESSIAN = ("auto", "exact", "majorise", "expected", "constant")
_TOO_STEEP = "scale the scores down, choose a loss with bounded slope, or form=log in a push"
_TRAITS: tuple[HessianTrait, ...] = ("exact", "bound", "expected", "heuristic", "constant")


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractObjective(ABC):
    """A loss of scores given labels, summed over queries.

    Immutable and compared by value: the fields are the parameters. :meth:`bind` computes
    everything that depends only on labels, once per data set.

    Parameters
    ----------
    normalize : {"none", "items", "pairs"}
        What divides the loss of a query: 1, the number of other items, or the number of
        pairs; always 1 for a query with one item.
    hessian : {"auto", "exact", "majorise", "expected", "constant"}
        Which curvature is returned; ``hessian_trait`` describes it.

    Notes
    -----
    Fields of several objectives: ``loss`` is the penalty of a margin, ``target`` the utility, which
    is what an item is worth. ``threshold`` is the smallest relevant label, for binary targets (and
    ``identity``) on graded labels. ``max_grade`` is the largest label that can occur, for targets
    whose bound depends on it (their default is 4). ``engine`` is how pairs are summed: "auto",
    "pairs", "closed", "sorted" (not for a push) or "linear". ``preferences`` between the training
    rows stand in place of labels; they are not part of the text form.
    """

    normalize: str = "none"
    hessian: str = "auto"

    name: ClassVar[str]
    formula: ClassVar[str] = ""
    cost: ClassVar[str] = ""
    reference: ClassVar[str] = ""
    shift_invariant: ClassVar[bool] = False
    gradient: ClassVar[Literal["exact", "frozen_weights"]] = "exact"
    randomised: ClassVar[bool] = False
    """Whether random numbers enter, so that the order of rows matters; ``seed`` selects them."""
    item_weights: ClassVar[bool] = False
    """Whether rows of a query may have different weights."""
    linear_in_utility: ClassVar[bool] = False
    """Whether the gradient is linear in the utilities, so that unbiased estimates can replace them.

    Then the mean gradient over clicks divided by propensities is that of relevance.
    """

    def __post_init__(self) -> None:
        check_choice(self.name, "normalize", self.normalize, _NORMALIZE)
        check_choice(self.name, "hessian", self.hessian, _HESSIAN)
        check_threshold(self.name, getattr(self, "threshold", None))

    @property
    @abstractmethod
    def hessian_trait(self) -> HessianTrait:
        """What the returned Hessian is: the exact diagonal, a bound of it, and so on."""

    @property
    def label_form(self) -> Form:
        """Gain in symbols; the labels that are supported are those that it supports."""
        target: AbstractUtility | None = getattr(self, "target", None)
        return Form("linear") if target is None else target.form

    @property
    def why_unsorted(self) -> str:
        """Why minimisers are not sorted by expected utility, where they are not."""
        return f"{self.name} does not sort the expected utility of the metric"

    @property
    def accuracy(self) -> float | None:
        """Largest relative error of the linear-time engine, or None if it is never used."""
        return None

    @property
    def separable(self) -> bool:
        """Whether the loss is a sum over rows, so that queries make no difference."""
        return False

    @abstractmethod
    def bind(self, data: RankingData) -> "AbstractBound":
        """Bind the objective to a data set: compute everything that depends only on labels.

        Parameters
        ----------
        data : RankingData
            Labels, groups and weights.

        Returns
        -------
        AbstractBound
            Computes gradients and losses of scores.
        """

    def minimiser(self, data: RankingData) -> FloatArray:
        """Return the scores in query order that minimise the loss, if there is a formula."""
        raise ParameterError(
            f"{self.name} has no closed-form minimiser for {data.groups.n_rows} rows; linear has"
        )

    def inverse_link(self, scores: FloatArray) -> FloatArray:
        """Return the probabilities that scores stand for, if there is a link."""
        raise ParameterError(
            f"the scores of {self.name} have no link to probabilities; use pointwise with a loss "
            f"that has a link (got {len(scores)} scores)"
        )


class AbstractBound(ABC):
    """An objective bound to the labels of one data set.

    Kernels write by row number and would go out of bounds in arrays of another length. So
    :meth:`gradients` validates the scores before it calls ``fill``, and ``losses`` of every
    subclass is wrapped to receive validated scores.
    """

    __slots__ = ("groups",)

    def __init__(self, groups: Groups) -> None:
        self.groups = groups

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "losses" in cls.__dict__:
            cls.losses = _checked_losses(cls.losses)  # type: ignore[method-assign]

    @abstractmethod
    def fill(self, scores: FloatArray, out: GradHess, *, single: bool) -> None:
        """Write gradient and Hessian for scores in query order.

        Parameters
        ----------
        scores : array of shape (n_rows,)
            float64, validated by :meth:`gradients`.
        out : GradHess
            Every entry must be written; float32 or float64, one entry per row.
        single : bool
            Whether inner loops may use float32 where that is known to be safe.
        """

    @abstractmethod
    def losses(self, scores: FloatArray) -> FloatArray:
        """Return the loss of each query, shape (n_queries,).

        Raises
        ------
        DataError
            Unless there is one finite score per row.
        NumericError
            If a loss is not finite.
        """

    def gradients(
        self, scores: FloatArray, dtype: npt.DTypeLike = np.float64, *, single: bool = False
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return new arrays of gradient and Hessian, in query order.

        Raises
        ------
        DataError
            Unless there is one finite score per row.
        NumericError
            If a gradient or Hessian is not finite. With ``single`` the caller checks that scores
            and results are finite; only the number of scores is checked here.
        """
        scores = _read_scores(scores, self.groups)
        if not single:
            check_finite(scores, "score", self.groups)
        out = GradHess(np.empty(len(scores), dtype), np.empty(len(scores), dtype))
        if len(scores):
            self.fill(scores, out, single=single)
            if not single:
                _check_finite(out, scores, self.groups)
        return out.grad, out.hess


def _checked_losses(losses: Callable[..., FloatArray]) -> Callable[..., FloatArray]:
    @functools.wraps(losses)
    def checked(self: AbstractBound, scores: FloatArray) -> FloatArray:
        read = _read_scores(scores, self.groups)
        check_finite(read, "score", self.groups)
        return losses(self, read)

    return checked


@final
class BoundSums(AbstractBound):
    """An objective that two kernels compute query by query; ``costs`` are in nanoseconds.

    ``gradients(span, scores, out)`` and ``values(span, scores, out)`` write a span of queries.
    ``constant``, one entry per row, replaces the Hessian; ``factor`` multiplies it.
    """

    __slots__ = ("constant", "factor", "kernels", "spans")

    def __init__(
        self,
        groups: Groups,
        costs: npt.NDArray[np.floating[Any]],
        gradients: Callable[[Span, FloatArray, GradHess], None],
        values: Callable[[Span, FloatArray, FloatArray], None],
        constant: FloatArray | None,
        factor: float = 1.0,
    ) -> None:
        super().__init__(groups)
        self.spans = threads.cut_into_spans(costs, groups.longest)
        self.kernels, self.constant, self.factor = (gradients, values), constant, factor

    def fill(self, scores: FloatArray, out: GradHess, *, single: bool) -> None:
        """Compute every query."""
        threads.run_spans(lambda span: self.kernels[0](span, scores, out), self.spans)
        scale_hessian(out, self.constant, self.factor)

    def losses(self, scores: FloatArray) -> FloatArray:
        """Return the loss of each query."""
        return sum_queries(
            lambda span, out: self.kernels[1](span, scores, out), self.spans, self.groups
        )


def constant_hessian(hessian: str, data: RankingData) -> FloatArray | None:
    """Return the Hessian for ``hessian=constant``, which is 1 times the weight, else None."""
    if hessian != "constant":
        return None
    return np.ones(data.groups.n_rows) if data.weight is None else np.array(data.weight)


def scale_hessian(out: GradHess, constant: FloatArray | None, factor: float) -> None:
    """Replace a Hessian by a constant one, or multiply it by a factor."""
    if constant is not None:
        out.hess[:] = constant
    elif factor != 1.0:
        np.multiply(out.hess, factor, out=out.hess)


def check_choice(owner: str, parameter: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise ParameterError unless a parameter is one of the allowed names."""
    if value not in allowed:
        raise ParameterError(
            f"{owner}: {parameter} must be one of {', '.join(allowed)}; got {value!r}"
        )


def gain_weights(owner: str, labels: FloatArray) -> FloatArray:
    """Return ``2^y - 1`` of each label, 0 to 31, for ``weights=gain_discount``."""
    try:
        return gains(labels, "exp2")
    except LabelRangeError:
        negative = labels.min() < 0
        found = f"smallest label is {labels.min():g}"
        if not negative:
            found = f"largest label is {labels.max():g}"
        raise LabelRangeError(
            f"{owner}: the {found}, but weights=gain_discount (2^y - 1) needs labels from 0 to 31; "
            f"{'shift' if negative else 'rescale'} the labels, or use weights=none, which accepts "
            "any labels"
        ) from None


def row_scale(data: RankingData, normalize: str) -> FloatArray:
    """Return the normalisation of each query, for objectives that apply weights themselves."""
    sizes = data.groups.sizes.astype(np.float64)
    counts = {
        "none": np.ones_like(sizes),
        "items": sizes - 1.0,
        "pairs": (sizes - 1.0) * sizes / 2.0,
    }
    return 1.0 / np.maximum(counts[normalize], 1.0)  # one item has no others and no pairs


def query_scale(data: RankingData, normalize: str) -> FloatArray:
    """Return normalisation times weight of each query.

    Parameters
    ----------
    data : RankingData
        Groups and weights.
    normalize : {"none", "items", "pairs"}
        What divides the loss of a query.

    Returns
    -------
    array of shape (n_queries,)
        Factor of the loss of each query.
    """
    scale = row_scale(data, normalize)
    weight = data.query_weight()
    return scale if weight is None else scale * weight


def sum_queries(
    task: Callable[[Span, FloatArray], None], spans: Sequence[Span], groups: Groups
) -> FloatArray:
    """Return the loss that a kernel writes for each query, shape (n_queries,)."""
    values = np.empty(groups.n_queries)
    threads.run_spans(lambda span: task(span, values), spans)
    return check_losses(values, groups)


def check_losses(values: FloatArray, groups: Groups) -> FloatArray:
    """Return the losses of queries; raise NumericError naming the query if one is not finite."""
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        row = int(groups.offsets[bad[0]])
        raise NumericError(
            f"the loss of query {groups.query_of(row)!r} is {values[bad[0]]}; {_TOO_STEEP}"
        )
    return values


def _every(trait: str) -> Any:
    """Return a property of a mix: whether every part has a trait."""
    return property(lambda mix: all(getattr(part, trait) for part in mix.parts))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Mix(AbstractObjective):
    """A weighted sum of objectives, written ``mix(a, b, weights=[0.7, 0.3])``.

    Each part keeps its own normalisation and Hessian; the Hessian trait of the sum is the
    weakest of theirs.

    Parameters
    ----------
    parts : tuple of objectives
        At least one.
    weights : tuple of float or None, default=None
        One positive factor per part; 1 by default.
    """

    parts: tuple[AbstractObjective, ...] = field(
        default=(), metadata={"kind": "objective", "positional": True}
    )
    weights: tuple[float, ...] | None = None

    name: ClassVar[str] = "mix"
    formula: ClassVar[str] = "sum_k w_k L_k"
    cost: ClassVar[str] = "sum of the parts"
    shift_invariant = _every("shift_invariant")
    separable = _every("separable")
    item_weights = _every("item_weights")
    linear_in_utility = _every("linear_in_utility")

    def __post_init__(self) -> None:
        super(Mix, self).__post_init__()
        if not self.parts:
            raise ParameterError("mix: name the objectives to add, such as mix(ranknet, softmax)")
        if self.normalize != "none" or self.hessian != "auto":
            raise ParameterError("mix: set normalize and hessian in its parts")
        weights = self._factors()
        if len(weights) != len(self.parts) or not all(0 < w < float("inf") for w in weights):
            raise ParameterError(
                f"mix: weights must be one factor above 0 for each of {len(self.parts)} "
                f"objectives, got {list(weights)}"
            )

    @property
    def preferences(self) -> PreferenceGraphs | None:
        """Preferences of the first part, if all parts have preferences and none uses labels."""
        held = [getattr(part, "preferences", None) for part in self.parts]
        return None if any(one is None for one in held) else held[0]

    def _factors(self) -> tuple[float, ...]:
        return (1.0,) * len(self.parts) if self.weights is None else self.weights

    @property
    def randomised(self) -> bool:  # type: ignore[override]
        """Whether some part is."""
        return any(part.randomised for part in self.parts)

    @property
    def hessian_trait(self) -> HessianTrait:
        """The weakest trait among the parts."""
        return max((part.hessian_trait for part in self.parts), key=_TRAITS.index)

    @property
    def accuracy(self) -> float | None:
        """The largest relative error among the parts that use the linear-time engine."""
        return max((a for part in self.parts if (a := part.accuracy) is not None), default=None)

    def inverse_link(self, scores: FloatArray) -> FloatArray:
        """Return the probabilities that scores stand for, if they are the same in every part."""
        probes = np.linspace(-3.0, 3.0, 13)
        links = [part.inverse_link(probes) for part in self.parts]
        alike = all(np.allclose(links[0], other, rtol=1e-9, atol=0.0) for other in links[1:])
        if not alike or any(_linked(part) != _linked(self.parts[0]) for part in self.parts):
            raise ParameterError(
                "mix: its parts link scores to probabilities, or to utilities, in different ways; "
                "give them the same link, target and eta, as rcr does"
            )
        return self.parts[0].inverse_link(scores)

    def bind(self, data: RankingData) -> AbstractBound:
        """Bind every part."""
        return _BoundMix(data, tuple(part.bind(data) for part in self.parts), self._factors())


def _linked(template: AbstractObjective) -> tuple[AbstractUtility | None, float | None]:
    """Return the utility that an inverse link stands for, and the bound that it is a share of."""
    target, threshold = getattr(template, "target", None), getattr(template, "threshold", None)
    if threshold is not None and isinstance(target, IdentityUtility):
        target = PrecisionUtility(threshold=threshold)
    return target, getattr(template, "eta", 1.0)


def held_preferences(template: AbstractObjective) -> tuple[PreferenceGraphs, ...]:
    """Return all preferences stored in an objective or its parts."""
    if isinstance(template, Mix):
        return tuple(one for part in template.parts for one in held_preferences(part))
    own = getattr(template, "preferences", None)
    return () if own is None else (own,)


def check_takes_bias(template: AbstractObjective) -> None:
    """Raise unless an objective supports a position bias of clicks; warn if only approximately."""
    if isinstance(template, Mix):
        for part in template.parts:
            check_takes_bias(part)
        return
    if not template.linear_in_utility:
        raise ParameterError(
            f"{template.name} cannot correct clicks for their position: estimates of relevance, "
            "which may be negative, cannot replace its labels. Use pairwise(target=identity), "
            "pointwise, query_rmse or linear"
        )
    target: AbstractUtility | None = getattr(template, "target", None)
    if target is not None and not target.per_item:
        warn(
            f"target={target.name} is normalised by the clicks, which a position bias does not "
            "correct, so the gradient is only approximately that of relevance. Use "
            "target=identity, dcg or precision",
            GbmrankWarning,
        )


def with_preferences(
    template: AbstractObjective, change: Callable[[PreferenceGraphs], PreferenceGraphs]
) -> AbstractObjective:
    """Return an objective whose preferences, if any, are changed."""
    if isinstance(template, Mix):
        parts = (with_preferences(part, change) for part in template.parts)
        return replace(template, parts=tuple(parts))
    own: Any = template  # a kind with preferences
    held = held_preferences(template)
    return replace(own, preferences=change(held[0])) if held else template


def _read_scores(scores: FloatArray, groups: Groups) -> FloatArray:
    """Return scores in query order as the kernels require them."""
    ready = type(scores) is np.ndarray and scores.dtype == np.float64 and scores.ndim == 1
    if not (ready and scores.flags.c_contiguous and scores.flags.writeable):
        scores = as_floats(scores, "scores", exact=True)
    n_rows = int(groups.offsets[-1])
    if len(scores) != n_rows:
        raise DataError(
            f"scores has {len(scores)} entries, but the objective is bound to {n_rows} rows; "
            "pass one score per row, in query order"
        )
    return scores


def _check_finite(out: GradHess, scores: FloatArray, groups: Groups) -> None:
    finite = np.isfinite(out.grad) & np.isfinite(out.hess)
    if not finite.all():
        row = int(np.argmin(finite))
        raise NumericError(
            f"gradient {out.grad[row]} and Hessian {out.hess[row]} in query "
            f"{groups.query_of(row)!r}, where scores range from {scores.min():g} to "
            f"{scores.max():g}; {_TOO_STEEP}"
        )


@final
class _BoundMix(AbstractBound):
    __slots__ = ("factors", "parts")

    def __init__(
        self, data: RankingData, parts: tuple[AbstractBound, ...], factors: tuple[float, ...]
    ) -> None:
        super().__init__(data.groups)
        self.parts, self.factors = parts, factors

    def fill(self, scores: FloatArray, out: GradHess, *, single: bool) -> None:
        out.grad[:] = 0.0
        out.hess[:] = 0.0
        for part, factor in zip(self.parts, self.factors, strict=True):
            grad, hess = part.gradients(scores, out.grad.dtype, single=single)
            with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for infinity
                out.grad[:] += factor * grad
                out.hess[:] += factor * hess

    def losses(self, scores: FloatArray) -> FloatArray:
        pairs = zip(self.parts, self.factors, strict=True)
        with np.errstate(over="ignore"):  # check_losses looks for infinity
            added = np.sum([factor * part.losses(scores) for part, factor in pairs], axis=0)
        return check_losses(added, self.groups)
