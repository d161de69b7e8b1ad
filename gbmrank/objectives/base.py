"""What an objective is, and what it becomes when it meets data."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from gbmrank.data import Groups, RankingData, as_floats, check_finite
from gbmrank.errors import DataError, LabelRangeError, NumericError, ParameterError
from gbmrank.kernels import pool
from gbmrank.kernels.layout import GradHess, Span
from gbmrank.ranking import check_threshold, gains
from gbmrank.types import FloatArray

__all__ = [
    "AbstractBound",
    "AbstractObjective",
    "HessianTrait",
    "check_choice",
    "check_losses",
    "gain_weights",
    "query_scale",
    "row_scale",
    "run_queries",
    "sum_queries",
]

HessianTrait = Literal["exact", "bound", "expected", "heuristic", "constant"]
_NORMALIZE = ("none", "items", "pairs")
_HESSIAN = ("auto", "exact", "majorise", "expected", "constant")
_TOO_STEEP = "scale the scores down, choose a loss with bounded slope, or form=log in a push"


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractObjective(ABC):
    """A loss of scores given labels, summed over queries.

    Frozen and equal by value: the fields are the parameters. All that depends on labels
    alone is computed by :meth:`bind`, once per data set.

    Parameters
    ----------
    normalize : {"none", "items", "pairs"}
        Factor of each query: 1, one over the number of other items, or one over the
        number of pairs; always 1 for a query of one item.
    hessian : {"auto", "exact", "majorise", "expected", "constant"}
        Which curvature is returned; ``hessian_trait`` says what it is.
    """

    normalize: str = "none"
    hessian: str = "auto"

    name: ClassVar[str]
    formula: ClassVar[str] = ""
    cost: ClassVar[str] = ""
    reference: ClassVar[str] = ""
    shift_invariant: ClassVar[bool] = False
    gradient: ClassVar[Literal["exact", "frozen_weights"]] = "exact"

    def __post_init__(self) -> None:
        check_choice(self.name, "normalize", self.normalize, _NORMALIZE)
        check_choice(self.name, "hessian", self.hessian, _HESSIAN)
        check_threshold(self.name, getattr(self, "threshold", None))

    @property
    @abstractmethod
    def hessian_trait(self) -> HessianTrait:
        """What the returned Hessian is: the exact diagonal, a bound of it, and so on."""

    @property
    def accuracy(self) -> float | None:
        """Largest relative error of the linear-time engine, or None where it never serves."""
        return None

    @abstractmethod
    def bind(self, data: RankingData) -> "AbstractBound":
        """Compute what depends on labels alone."""

    def minimiser(self, data: RankingData) -> FloatArray:
        """Return the scores in query order that minimise the loss, where a formula gives them."""
        raise ParameterError(
            f"{self.name} has no closed-form minimiser for {data.groups.n_rows} rows; linear has"
        )

    def inverse_link(self, scores: FloatArray) -> FloatArray:
        """Return the probabilities that scores stand for, where there is a link."""
        raise ParameterError(
            f"the scores of {self.name} stand for an order, not for probabilities; use pointwise "
            f"with a loss that has a link ({len(scores)} scores given)"
        )


class AbstractBound(ABC):
    """An objective bound to the labels of one data set; scores come and go.

    The scores given to ``fill`` and ``losses`` of every subclass are checked before they arrive:
    kernels write by row number, and would go beyond the end of arrays of another length.
    """

    __slots__ = ("groups",)

    def __init__(self, groups: Groups) -> None:
        self.groups = groups

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, checked in (("fill", _checked_fill), ("losses", _checked_losses)):
            if name in cls.__dict__:
                setattr(cls, name, checked(cls.__dict__[name]))

    @abstractmethod
    def fill(self, scores: FloatArray, out: GradHess, *, single: bool) -> None:
        """Write gradient and Hessian for scores in query order.

        Parameters
        ----------
        scores : array of shape (n_rows,)
            Finite.
        out : GradHess
            Written in full; float32 or float64.
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
            When a loss is not finite.
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
            When a gradient or Hessian is not finite. With ``single`` the caller has its own
            checks of what is finite, of scores too; their number is always checked.
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


def check_choice(owner: str, parameter: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise ParameterError unless a parameter is one of the allowed names."""
    if value not in allowed:
        raise ParameterError(
            f"{owner}: {parameter} must be one of {', '.join(allowed)}; got {value!r}"
        )


def gain_weights(owner: str, labels: FloatArray) -> FloatArray:
    """Return ``2^y - 1`` of each label, for ``weights=gain_discount``.

    Raises
    ------
    LabelRangeError
        For labels below 0 or above 31; the advice is for an objective without ``gain=``.
    """
    try:
        return gains(labels, "exp2")
    except LabelRangeError:
        negative = labels.min() < 0
        found = (
            f"smallest label is {labels.min():g}"
            if negative
            else (f"largest label is {labels.max():g}")
        )
        raise LabelRangeError(
            f"{owner}: the {found}, and weights=gain_discount (2^y - 1) takes labels from 0 to 31; "
            f"{'shift' if negative else 'rescale'} the labels, or use weights=none, which compares "
            "them as they are"
        ) from None


def row_scale(data: RankingData, normalize: str) -> FloatArray:
    """Return the normalisation of each query, for objectives that weigh rows themselves."""
    sizes = data.groups.sizes.astype(np.float64)
    counts = {
        "none": np.ones_like(sizes),
        "items": sizes - 1.0,
        "pairs": (sizes - 1.0) * sizes / 2.0,
    }
    return 1.0 / np.maximum(counts[normalize], 1.0)  # one item has no others and no pairs


def query_scale(data: RankingData, normalize: str) -> FloatArray:
    """Return normalisation times weight of each query, shape (n_queries,)."""
    scale = row_scale(data, normalize)
    weight = data.query_weight()
    return scale if weight is None else scale * weight


def run_queries(
    task: Callable[[Span], None], chunks: npt.NDArray[np.int64], groups: Groups
) -> None:
    """Run a kernel over chunks of queries, in threads."""
    longest = int(groups.sizes.max(initial=0))
    pool.run_chunks(lambda first, last: task(Span(first, last, longest)), chunks)


def sum_queries(
    task: Callable[[Span, FloatArray], None], chunks: npt.NDArray[np.int64], groups: Groups
) -> FloatArray:
    """Return the loss that a kernel writes for each query, shape (n_queries,)."""
    values = np.empty(groups.n_queries)
    run_queries(lambda span: task(span, values), chunks, groups)
    return check_losses(values, groups)


def check_losses(values: FloatArray, groups: Groups) -> FloatArray:
    """Return the losses of queries.

    Raises
    ------
    NumericError
        When one is not finite; it names the query.
    """
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        row = int(groups.offsets[bad[0]])
        raise NumericError(
            f"the loss of query {groups.query_of(row)!r} is {values[bad[0]]}; {_TOO_STEEP}"
        )
    return values


def _checked_fill(fill: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(fill)
    def checked(self: AbstractBound, scores: FloatArray, out: GradHess, *, single: bool) -> None:
        rows = self.groups.n_rows
        if out.grad.shape != (rows,) or out.hess.shape != (rows,):
            raise DataError(
                f"gradient and Hessian need one entry for each of {rows} rows, got arrays of shape "
                f"{out.grad.shape} and {out.hess.shape}"
            )
        fill(self, _read_scores(scores, self.groups), out, single=single)

    return checked


def _checked_losses(losses: Callable[..., FloatArray]) -> Callable[..., FloatArray]:
    @functools.wraps(losses)
    def checked(self: AbstractBound, scores: FloatArray) -> FloatArray:
        read = _read_scores(scores, self.groups)
        check_finite(read, "score", self.groups)
        return losses(self, read)

    return checked


def _read_scores(scores: FloatArray, groups: Groups) -> FloatArray:
    """Return scores in query order as the kernels want them."""
    ready = type(scores) is np.ndarray and scores.dtype == np.float64 and scores.ndim == 1
    if not (ready and scores.flags.c_contiguous and scores.flags.writeable):
        scores = as_floats(scores, "scores", exact=True)
    if len(scores) != groups.n_rows:
        raise DataError(
            f"scores has {len(scores)} entries, and the objective is bound to {groups.n_rows} "
            "rows: give one score per row, in the order of its queries"
        )
    return scores


def _check_finite(out: GradHess, scores: FloatArray, groups: Groups) -> None:
    finite = np.isfinite(out.grad) & np.isfinite(out.hess)
    if not finite.all():
        row = int(np.argmin(finite))
        raise NumericError(
            f"gradient {out.grad[row]} and Hessian {out.hess[row]} in query "
            f"{groups.query_of(row)!r}, where scores go from {scores.min():g} to "
            f"{scores.max():g}; {_TOO_STEEP}"
        )
