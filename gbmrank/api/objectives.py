"""The user API of objectives."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from gbmrank.api.metrics import Metric
from gbmrank.boosters.callbacks import read_call
from gbmrank.boosters.plan import near_native
from gbmrank.boosters.supervision import checked_gradients
from gbmrank.data.columns import as_floats
from gbmrank.data.position_bias import PositionBias, utilities_of
from gbmrank.data.queries import Groups, RankingData, check_finite, check_weights, warn_if_forgotten
from gbmrank.errors import DataError, NumericError, ParameterError, UnknownNameError, WeightError
from gbmrank.objectives import AbstractBound, AbstractObjective, check_takes_bias
from gbmrank.registry.catalogue import OBJECTIVES
from gbmrank.registry.composition import AbstractValue, build
from gbmrank.registry.guards import bind_objective
from gbmrank.registry.spec import Spec
from gbmrank.types import ArrayLike, FloatArray

COMMITTEE = "committee"  # its name, for GBMRanker and others that train several models


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Columns of the training rows that are bound to an objective."""

    weight: FloatArray | None = None
    position: FloatArray | None = None
    position_bias: PositionBias | None = None
    clip: float | None = None

    def added_to(self, data: RankingData) -> RankingData:
        """Return data with these columns; raise if they are for other rows."""
        if self.weight is not None:
            if data.weight is not None:
                raise WeightError(
                    "weights are set twice, in the data set and by bind_rows(weight=...); "
                    "leave out one of them"
                )
            data = data.with_weight(self.weight)
        if self.position is not None and self.position_bias is not None:
            data = data.with_columns({"position": self.position})
            data = data.with_clicks(utilities_of(data, self.position_bias, self.clip))
        return data


@final
class Objective(AbstractValue[AbstractObjective]):
    """A loss that boosters can minimise; made by :func:`objective`.

    Pass it as ``params["objective"]`` to ``lightgbm.train`` and ``lightgbm.cv``, as
    ``objective=`` to ``LGBMRanker``, or as ``obj=`` to ``xgboost.train`` and ``xgboost.cv``.
    Immutable, compared by value, picklable; copies are the object itself.
    """

    __slots__ = ("_rows",)
    kind: ClassVar[str] = "objective"
    _rows: _Rows | None

    def __init__(self, part: AbstractObjective, rows: _Rows | None = None) -> None:
        super().__init__(part)
        object.__setattr__(self, "_rows", rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Objective) and (self._part, self._rows) == (
            other._part,
            other._rows,
        )

    __hash__ = AbstractValue.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._part, self._rows)

    @property
    def template(self) -> AbstractObjective:
        """The composition of template, loss and target."""
        return self._part

    @property
    def has_rows(self) -> bool:
        """Whether columns of the training rows are bound to it."""
        return self._rows is not None

    @property
    def accuracy(self) -> float | None:
        """Largest relative error of the sums over pairs of long queries.

        Pairs of a long query are summed in linear time by interpolating the loss. This is
        the largest error of such a sum of values, slopes or curvatures, relative to the sum
        of their absolute values; it is measured on the loss and does not depend on the data.
        Rounding in float64 comes on top, and terms below 1e-18 of the loss near zero are left
        out. Short queries are summed exactly. None if the linear-time engine is never used: no
        pairs, a kink, a closed form, or ``engine=pairs``.

        Examples
        --------
        >>> import gbmrank
        >>> gbmrank.objective("pairwise(loss=logistic)").accuracy < 1e-8
        True
        >>> gbmrank.objective("pairwise(loss=hinge)").accuracy is None
        True
        """
        return self.template.accuracy

    def gradients(
        self,
        labels: ArrayLike,
        scores: ArrayLike,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        weight: ArrayLike | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return gradient and Hessian of the loss, without a booster.

        Parameters
        ----------
        labels : array-like of shape (n_rows,)
            Larger is better. All columns are matched by position; a pandas index is ignored.
        scores : array-like of shape (n_rows,)
            Raw scores.
        group : array-like of shape (n_queries,), optional
            Rows per query.
        qid : array-like of shape (n_rows,), optional
            One query id per row, in any order; with neither, all rows are one query.
        weight : array-like of shape (n_queries,) or (n_rows,), optional
            Weight of each query. Weights that differ within a query are item weights, which
            ``pairwise``, ``comparison``, ``swap``, ``pointwise`` and ``query_rmse`` support: in
            pairs, an item's weight multiplies the terms in which it is preferred. Other
            objectives raise a WeightError that names the query.

        Returns
        -------
        grad, hess : arrays of shape (n_rows,)
            float64, in the order of the rows. No lower bound is applied to the Hessian.

        Examples
        --------
        >>> import gbmrank
        >>> grad, hess = gbmrank.objective("pairwise(target=dcg)").gradients([1, 0], [0.0, 0.0])
        >>> grad, hess
        (array([-0.5,  0.5]), array([0.25, 0.25]))
        """
        data = self._read(labels, group=group, qid=qid, weight=weight)
        grad, hess = bind_objective(self.template, data).gradients(data.read_scores(scores))
        return data.groups.restore(grad), data.groups.restore(hess)

    def loss(
        self,
        labels: ArrayLike,
        scores: ArrayLike,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        per_query: bool = False,
    ) -> Any:
        """Return the loss whose gradient :meth:`gradients` returns.

        The parameters are those of :meth:`gradients`. With ``per_query`` it returns one value
        per query, in order of first appearance, instead of their sum.

        Returns
        -------
        float or array of shape (n_queries,)
            The loss.

        Raises
        ------
        NumericError
            If the loss of a query, or their sum, is not finite.
        """
        data = self._read(labels, group=group, qid=qid, weight=weight)
        values = bind_objective(self.template, data).losses(data.read_scores(scores))
        if per_query:
            return values
        with np.errstate(over="ignore"):
            total = float(values.sum())
        if not np.isfinite(total):
            raise NumericError(
                f"the sum of the losses of {len(values)} queries is {total}, though each is "
                "finite; scale the scores down, or pass per_query=True"
            )
        return total

    def minimiser(
        self,
        labels: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> FloatArray:
        """Return the scores that minimise the loss, if there is a formula (``linear``).

        Parameters
        ----------
        labels : array-like of shape (n_rows,), optional
            Not needed if the objective was made with preferences.
        group, qid : array-like, optional
            Queries, as for :meth:`gradients`.

        Returns
        -------
        array of shape (n_rows,)
            The scores, in the order of the rows.

        Examples
        --------
        >>> import gbmrank
        >>> graphs = gbmrank.PreferenceGraphs.from_edges([0, 1], [1, 2], [1, 6], group=[3])
        >>> gbmrank.objective("linear", preferences=graphs).minimiser()
        array([ 1.,  5., -6.])
        """
        data = self._read(labels, group=group, qid=qid)
        return data.groups.restore(self.template.minimiser(data))

    def _read(self, labels: ArrayLike | None, **columns: Any) -> RankingData:
        own = getattr(self.template, "preferences", None)
        data = RankingData.from_arrays(labels, preferences=own, **columns)
        given = (own, columns.get("group"), columns.get("qid"))
        if all(one is None for one in given) and not self.template.separable:
            warn_if_forgotten(data.groups.n_rows)
        return data if self._rows is None else self._rows.added_to(data)

    def with_template(self, template: AbstractObjective) -> "Objective":
        """Return an objective with another composition."""
        return Objective(template, self._rows)

    def bind_rows(
        self,
        *,
        weight: ArrayLike | None = None,
        position: ArrayLike | None = None,
        position_bias: PositionBias | None = None,
        clip: float | None = None,
    ) -> "Objective":
        """Return an objective with additional columns of the training rows.

        For columns that a booster's data set cannot store: for example, a DMatrix with queries
        has only one weight per query. Columns have one entry per row of the training set, in its
        order; in ``lightgbm.cv`` the rows of each fold are selected. Use this with the boosters'
        own training functions; :meth:`GBMRanker.fit <gbmrank.GBMRanker.fit>` takes the same
        columns as arguments.

        Parameters
        ----------
        weight : array-like of shape (n_rows,) or (n_queries,), optional
            Item weights or query weights, as for :meth:`gradients`.
        position : array-like of shape (n_rows,), optional
            Position at which each item was shown, from 1; labels are then clicks, 0 or 1.
        position_bias : PositionBias, optional
            Probability that a position is examined: a click counts one over its propensity
            instead of one. Supported by ``pairwise``, ``pointwise``, ``query_rmse`` and
            ``linear``.
        clip : float, optional
            Lower bound of propensities; smaller ones are raised to it.

        Returns
        -------
        Objective
            With the columns bound to it.

        Examples
        --------
        >>> import gbmrank
        >>> objective = gbmrank.objective("pairwise(target=dcg)").bind_rows(weight=[1, 3])
        >>> objective.gradients([0, 1], [0.0, 0.0])[0]
        array([ 1.5, -1.5])
        """
        if (position is None) != (position_bias is None):
            raise ParameterError(
                "position= and position_bias= go together: pass both, or neither; "
                "gbmrank.clicks.estimate_bias estimates a position bias from clicks"
            )
        if weight is None and position is None:
            raise ParameterError("bind_rows got no column; pass weight= or position=")
        weights = None if weight is None else np.array(as_floats(weight, "weight"))
        if weights is not None:
            check_weights(weights)
        before = _Rows() if self._rows is None else self._rows
        rows = before if weights is None else replace(before, weight=weights)
        if position is not None and position_bias is not None:
            check_takes_bias(self.template)
            position_bias.theta(position)  # raises for an invalid position
            places = np.array(as_floats(position, "position"))
            rows = replace(rows, position=places, position_bias=position_bias, clip=clip)
        return Objective(self.template, rows)

    def bind(self, data: RankingData) -> AbstractBound:
        """Bind the objective to labels, for repeated evaluation with new scores.

        Parameters
        ----------
        data : RankingData
            From ``gbmrank.RankingData.from_arrays``. The bound objective takes and returns rows
            in query order; convert them with ``data.groups.arrange`` and ``restore``.

        Returns
        -------
        AbstractBound
            With the methods ``gradients(scores)`` and ``losses(scores)``.
        """
        if not isinstance(data, RankingData):
            raise DataError(
                f"bind takes gbmrank.RankingData, got {type(data).__name__}; make it with "
                "gbmrank.RankingData.from_arrays(labels, group=...)"
            )
        rows = self._rows
        return bind_objective(self.template, data if rows is None else rows.added_to(data))

    def inverse_link(self, scores: ArrayLike) -> FloatArray:
        """Return the probabilities that scores stand for, if the loss has a link.

        Parameters
        ----------
        scores : array-like of shape (n_rows,)
            Raw scores.

        Returns
        -------
        array of shape (n_rows,)
            Probabilities.

        Raises
        ------
        ParameterError
            If the scores of this objective do not stand for probabilities.
        """
        values = as_floats(scores, "scores", exact=True)
        check_finite(values, "score", Groups.single(len(values)))
        return self.template.inverse_link(values)

    def __call__(
        self, a: Any, b: Any, sample_weight: Any = None, group: Any = None
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return gradient and Hessian, as the callback of a booster.

        Called with ``(scores, data set)``, by LightGBM's scikit-learn interface with ``(labels,
        scores, weight, group)``, or by XGBoost's with ``sample_weight=`` as keyword.
        """
        held = getattr(self._part, "preferences", None) is not None
        booster, columns, preds = read_call(a, b, sample_weight, group, held)
        if not len(columns.labels):
            return np.empty(0, np.float32), np.empty(0, np.float32)
        return checked_gradients(booster, self, columns, preds)


def objective(spec: "str | Spec | Objective | AbstractObjective", **params: Any) -> Objective:
    """Make an objective from text, from a preset's name, or from a name and parameters.

    Parameters
    ----------
    spec : str
        Name of an objective or preset, or a complete text such as
        ``"pairwise(loss=logistic, target=ndcg@10)"``.
    **params : object
        Parameters of the objective: losses and targets as text or objects. A metric as target
        stands for its utility.

    Returns
    -------
    Objective
        Immutable; ``str()`` of it is the canonical text.

    Examples
    --------
    >>> import gbmrank
    >>> gbmrank.objective("pairwise", target="ndcg@10")
    gbmrank.objective('pairwise(loss=logistic, target=ndcg@10)')
    """
    rows = spec._rows if isinstance(spec, Objective) else None
    if isinstance(spec, Objective):
        spec = spec.template
    given = {key: _bare(params[key]) for key in params}
    try:
        return Objective(build(OBJECTIVES, spec, **given), rows)
    except UnknownNameError as error:
        if names_committee(spec):
            raise UnknownNameError(
                f"{spec} trains several models and is not one loss; pass it to GBMRanker, "
                "DaskGBMRanker or compare"
            ) from error
        native = near_native(spec.strip(), cutoff=1.0) if isinstance(spec, str) else None
        if native is None:
            raise
        raise UnknownNameError(
            f"no objective is called {spec!r}; did you mean {native}, the booster's own? It is for "
            "GBMRanker and compare; pairwise(target=ndcg@10) works everywhere"
        ) from error


def mix(*parts: Any, weights: Any = None) -> Objective:
    """Make a weighted sum of objectives.

    Parameters
    ----------
    *parts : Objective or str
        The objectives.
    weights : sequence of float, optional
        One factor above 0 per objective; 1 by default.

    Returns
    -------
    Objective
        The sum.

    Examples
    --------
    >>> import gbmrank
    >>> gbmrank.mix("ranknet", "softmax", weights=[0.7, 0.3])
    gbmrank.objective('mix(comparison(loss=logistic), bregman(loss=softmax_ce, target=ndcg),
    weights=[0.7, 0.3])')
    """
    return objective("mix", parts=parts, weights=weights)


def _bare(value: Any) -> Any:
    """Unwrap the composition of objectives and metrics, also inside lists."""
    if isinstance(value, Objective):
        if value._rows is not None:
            raise ParameterError(f"{value}: bind rows to the mix, not to a part of it")
        return value.template
    if isinstance(value, Metric):
        return value.measure
    return [_bare(item) for item in value] if isinstance(value, list | tuple) else value


def names_committee(given: Any) -> bool:
    """Whether text names a committee, which is not one loss."""
    text = given.strip() if isinstance(given, str) else ""
    return text == COMMITTEE or text.startswith((f"{COMMITTEE}(", f"{COMMITTEE}@"))
