"""Linear models fitted to our objectives, as in the papers."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from gbmrank import RankingData
from gbmrank import objective as read_objective
from gbmrank.errors import DataError, NumericError, ParameterError
from gbmrank.objectives import AbstractBound
from gbmrank.types import FloatArray

_RESTARTS = 20
_SETTLED = 1e-6  # a restart that gains less than this share has nothing more to find
_TOO_LARGE = 1e50  # value where a loss is as large or not finite: the line search turns back


@final
@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    """A scorer ``X w + intercept``.

    Parameters
    ----------
    w : array of shape (n_features,)
        One weight per feature.
    intercept : float
        0 for objectives that look at differences of scores alone.
    value : float
        What was minimised: the loss of all queries plus the penalty.
    converged : bool
        Whether a minimum was found before the iterations ran out.
    """

    w: FloatArray
    intercept: float
    value: float
    converged: bool

    def scores(self, X: FloatArray) -> FloatArray:  # noqa: N803
        """Return one score per row."""
        return np.asarray(X, dtype=np.float64) @ self.w + self.intercept


def fit_linear(
    objective: Any,
    data: RankingData,
    X: FloatArray,  # noqa: N803
    *,
    l2: float,
    start: LinearModel | None = None,
    max_iterations: int = 500,
) -> LinearModel:
    r"""Minimise the loss of a linear scorer, by L-BFGS.

    .. math:: \sum_q L_q(X w + b) + \tfrac{\lambda}{2} \lVert w \rVert^2

    The loss is the sum over queries, as the objective defines it; divide nothing, scale
    :math:`\lambda`. The intercept b is fitted, without penalty, where the objective is not
    invariant to shifts of the scores. A loss with kinks (hinge) stops the line search early;
    the search then begins again where it stood, until that gains nothing.

    Parameters
    ----------
    objective : Objective or str
        What is minimised.
    data : RankingData
        Labels, or preferences, and queries.
    X : array of shape (n_rows, n_features)
        Features, rows in query order; standardise them first.
    l2 : float
        :math:`\lambda`, 0 or more.
    start : LinearModel, optional
        Where to begin; zero by default.
    max_iterations : int, default=500
        Of L-BFGS, over all restarts.

    Returns
    -------
    LinearModel
        Best point that was found.

    Examples
    --------
    >>> data = RankingData.from_arrays([2.0, 0.0, 1.0])
    >>> X = np.array([[1.0], [-1.0], [0.0]])
    >>> model = fit_linear("pointwise(loss=squared, target=identity)", data, X, l2=0.0)
    >>> model.w.round(4), round(model.intercept, 4)
    (array([1.]), 1.0)
    """
    from scipy.optimize import minimize

    problem = _Problem(objective, data, X, l2)
    point, unit = problem.point(start), problem.unit
    at_zero = unit * float(np.abs(problem(np.zeros_like(point))[1]).max(initial=0.0))
    factor = 1.0 / at_zero if at_zero > 0.0 else 1.0
    value, settled, left = problem(point)[0], False, max_iterations

    def scaled(v: FloatArray) -> tuple[float, FloatArray]:
        loss, grad = problem(unit * v)
        return factor * loss, factor * unit * grad

    for _ in range(_RESTARTS):
        problem.overflowed = False
        found = minimize(
            scaled,
            point / unit,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max(left, 1), "maxcor": 20, "ftol": 1e-12, "gtol": 1e-7},
        )
        left -= int(found.nit)
        gained = value - float(found.fun) / factor
        if gained > 0.0:
            point, value = unit * found.x, float(found.fun) / factor
        idle = gained <= _SETTLED * abs(value)
        settled = bool(found.success) or (idle and left > 0 and not problem.overflowed)
        if settled or idle or left <= 0:
            break
    w, intercept = problem.parts(point)
    return LinearModel(w, intercept, value, settled)


def standardise(
    train_X: FloatArray,  # noqa: N803
    *others: FloatArray,
) -> tuple[FloatArray, ...]:
    """Give each feature mean 0 and variance 1 in the training rows; missing values become 0.

    Parameters
    ----------
    train_X : array of shape (n_rows, n_features)
        Tells mean and variance; NaN is left out. A constant feature becomes 0.
    *others : arrays of shape (any, n_features)
        Changed in the same way.

    Returns
    -------
    tuple of arrays
        The training rows first, then the others.

    Examples
    --------
    >>> standardise(np.array([[0.0, 7.0], [2.0, 7.0]]), np.array([[3.0, 8.0]]))
    (array([[-1.,  0.],
           [ 1.,  0.]]), array([[2., 0.]]))
    """
    known = ~np.isnan(train_X)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, train_X, 0.0).sum(axis=0) / count
    spread = np.sqrt((np.where(known, train_X - mean, 0.0) ** 2).sum(axis=0) / count)
    varies = spread > 1e-12 * np.maximum(np.abs(mean), 1e-300)
    scale = np.where(varies, 1.0 / np.where(varies, spread, 1.0), 0.0)
    return tuple(np.nan_to_num((X - mean) * scale, nan=0.0) for X in (train_X, *others))


@final
class _Problem:
    """Value and gradient of what is minimised, at ``(w, intercept)`` as one vector."""

    def __init__(self, objective: Any, data: RankingData, X: Any, l2: float) -> None:  # noqa: N803
        if not 0.0 <= l2 < float("inf"):
            raise ParameterError(f"l2 must be 0 or more and finite, got {l2}")
        self.X = np.ascontiguousarray(X, dtype=np.float64)
        if self.X.ndim != 2 or len(self.X) != data.groups.n_rows:
            raise DataError(
                f"X has shape {self.X.shape}, the data {data.groups.n_rows} rows; give one row of "
                "features per row, in query order"
            )
        if not np.isfinite(self.X).all():
            raise DataError("X holds NaN or infinite values; standardise() fills what is missing")
        template = read_objective(objective)
        self.bound: AbstractBound = template.bind(data)
        self.with_intercept = not template.template.shift_invariant
        self.l2 = float(l2)
        # A step of this length changes no score by more than 1: a good first step.
        longest = float(np.sqrt((self.X**2).sum(axis=1).max(initial=0.0) + self.with_intercept))
        self.unit = 1.0 / longest if longest > 0.0 else 1.0
        self.overflowed = False

    def __call__(self, point: FloatArray) -> tuple[float, FloatArray]:
        w, intercept = self.parts(point)
        scores = self.X @ w + intercept
        try:
            loss = float(self.bound.losses(scores).sum())
            slope = self.bound.gradients(scores)[0] if loss < _TOO_LARGE else None
        except NumericError:
            slope = None
        if slope is None:
            self.overflowed = True
            return _TOO_LARGE, np.zeros_like(point)
        grad = slope @ self.X + self.l2 * w
        if self.with_intercept:
            grad = np.append(grad, slope.sum())
        return loss + 0.5 * self.l2 * float(w @ w), grad

    def parts(self, point: FloatArray) -> tuple[FloatArray, float]:
        """Return weights and intercept."""
        return (point[:-1], float(point[-1])) if self.with_intercept else (point, 0.0)

    def point(self, start: LinearModel | None) -> FloatArray:
        """Return where the search begins."""
        n_features = self.X.shape[1]
        if start is None:
            return np.zeros(n_features + self.with_intercept)
        if len(start.w) != n_features:
            raise DataError(f"start has {len(start.w)} weights, X has {n_features} features")
        return np.append(start.w, start.intercept) if self.with_intercept else start.w.copy()
