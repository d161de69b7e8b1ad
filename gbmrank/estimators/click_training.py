"""Training on clicks: labels corrected for a position bias that is given or estimated."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from gbmrank.api import MetricList, Objective
from gbmrank.boosters.base import Part, Trained
from gbmrank.boosters.gradients import InTraining, in_training, read_scores, training_gradients
from gbmrank.boosters.plan import Plan
from gbmrank.clicks.estimation import count_covariance, differs_from_none, estimate_bias
from gbmrank.data.position_bias import PositionBias, read_clicks, read_positions
from gbmrank.data.queries import RankingData
from gbmrank.errors import DataError, GbmrankWarning, ParameterError, warn
from gbmrank.objectives import AbstractBound, AbstractObjective, check_takes_bias
from gbmrank.types import FloatArray

_FIRST_ROUND = 4  # of an estimate of the bias, which is repeated whenever rounds have doubled
_BINS = 24  # bins of scores, with about equally many rows
_STEPS = 50  # iterations of the fit to a table of bins and positions
_SMALLEST_PROPENSITY = 1e-3
_LEVEL = 0.95  # of the test for a bias
_METHODS = ("em", "joint")


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClickTraining:
    """Positions of the training rows, as given, and their bias; both are None without clicks."""

    clicks: Any = None
    position: Any = None
    bias: PositionBias | str | None = None  # or "joint", and "em" before it is estimated
    clip: float | None = None

    @classmethod
    def read(
        cls, target: Any, clicks: Any, position: Any, bias: Any, clip: float | None
    ) -> "ClickTraining":
        """Validate the arguments; messages use the row numbers of the caller."""
        if (position is None) != (bias is None):
            raise ParameterError(
                "position= and position_bias= go together; position_bias is a "
                'gbmrank.clicks.PositionBias, "em" or "joint"'
            )
        if position is None:
            return cls()
        if not isinstance(bias, PositionBias) and bias not in _METHODS:
            raise ParameterError(
                'position_bias must be a gbmrank.clicks.PositionBias, "em" or "joint"; got '
                f"{bias!r}"
            )
        if not isinstance(target, Objective):
            raise ParameterError(
                f"{target} does not support position=; use an objective of gbmrank such as "
                "pairwise(target=identity)"
            )
        check_takes_bias(target.template)
        read_clicks(clicks)
        read_positions(position) if isinstance(bias, str) else bias.theta(position)
        return cls(clicks, position, bias, clip)

    def estimated(self, features: Any, qid: Any, backend: str, seed: int) -> "ClickTraining":
        """Return a copy whose bias is estimated from the training rows."""
        bias = estimate_bias(
            self.clicks,
            self.position,
            qid=qid,
            X=features,
            method="em",
            backend=backend,
            resamples=0,
            seed=seed,
        )
        return replace(self, bias=bias)

    def with_positions(self, part: Part) -> Part:
        """Return the training rows with corrected clicks as labels, if the bias is known."""
        if self.position is None:
            return part
        data = part.data.with_columns({"position": self.position})
        if isinstance(self.bias, PositionBias):
            data = _estimated(data, self.bias, self.clip)
        return Part(part.features, data)

    def warn_of_clicks(self, sets: Mapping[str, tuple[Any, ...]]) -> None:
        """Warn about evaluation sets that look like clicks but have no positions."""
        if self.position is None:
            return
        named = {name: np.asarray(labels) for name, ((_, labels), *_) in sets.items()}
        clicked = [name for name, labels in named.items() if np.isin(labels, (0, 1)).all()]
        if clicked:
            give = "eval_position="
            if self.bias == "joint":
                give = 'position_bias="em" or a PositionBias, and eval_position='
            warn(
                f"the labels of {', '.join(clicked)} are 0 and 1 and have no positions. If they "
                "are clicks, metrics and early stopping follow their position bias: give "
                f"{give} with a metric such as dcg@10. If they are judgments, give "
                "eval_position=[None]",
                GbmrankWarning,
            )

    def with_estimates(
        self, part: Part, rows: tuple[Any, ...], metrics: MetricList, name: str
    ) -> Part:
        """Return an evaluation set with corrected clicks as labels, if it has positions."""
        (_, clicks), _, _, position = rows
        if position is None:
            return part
        if not isinstance(self.bias, PositionBias):
            raise ParameterError(
                "eval_position= needs a bias that is known before training: give position= and "
                'position_bias= a PositionBias or "em", or validate on labels that are not clicks'
            )
        bent = next((one for one in metrics if not one.measure.linear), None)
        if bent is not None:
            raise ParameterError(
                f"{bent} cannot be estimated from clicks and positions: it is not a sum over "
                "items. Use metric='dcg@10', or another one of dcg, precision, wta, rbp and eru"
            )
        try:
            read_clicks(clicks)
            self.bias.theta(position)
            data = part.data.with_columns({"position": position})
            return Part(part.features, _estimated(data, self.bias, self.clip))
        except DataError as error:
            raise type(error)(f"{name}: {error}") from error

    def placed_in(self, plan: Plan, part: Part) -> Plan:
        """Return the plan, with an objective that learns the bias for ``"joint"``."""
        if self.bias != "joint":
            return plan
        return replace(plan, objective=_JointObjective(plan.objective, part.data, self.clip))

    def final_bias(self, plan: Plan, trained: Trained, part: Part) -> PositionBias | None:
        """Return the bias that clicks were corrected by in the last round."""
        if isinstance(plan.objective, _JointObjective):
            known = plan.objective.bias
            few = known is None  # rounds
            return plan.objective.estimate(trained.scores(part.features)) if few else known
        return self.bias if isinstance(self.bias, PositionBias) else None


def _estimated(data: RankingData, bias: PositionBias, clip: float | None) -> RankingData:
    return data.with_clicks(bias.utilities(data.labels, data.columns["position"], clip=clip))


@final
class _JointObjective:
    r"""An objective whose position bias is re-estimated during boosting.

    Relevance is modelled as a step function of the score: within a bin of scores, items at
    different positions are equally relevant, so their click rates differ by examination only.
    :math:`P(c) = \theta_k \rho_b` over positions k and bins b is fitted to the clicks
    of every position and of every bin, after 4, 8, 16, ... rounds. The first rounds take all
    positions as examined, and so do later ones if clicks do not reject it.
    """

    def __init__(self, objective: Objective, data: RankingData, clip: float | None) -> None:
        self._objective, self._data, self._clip = objective, data, clip
        self._places = data.columns["position"].astype(np.int64) - 1
        self._bias = PositionBias(np.ones(int(self._places.max()) + 1))
        self._state: InTraining | None = None
        self._calls, self._next = 0, _FIRST_ROUND

    @property
    def bias(self) -> PositionBias | None:
        """The latest estimate; None before the first one."""
        return self._bias if self._next > _FIRST_ROUND else None

    @property
    def template(self) -> AbstractObjective:
        """The composition of template, loss and target."""
        return self._objective.template

    def __str__(self) -> str:
        return str(self._objective)

    def __deepcopy__(self, memo: dict[int, Any]) -> "_JointObjective":
        return self  # LightGBM copies its parameters

    def with_template(self, template: AbstractObjective) -> "_JointObjective":
        """Return itself: only preferences need another template, and clicks exclude them."""
        del template
        return self

    def bind(self, data: RankingData) -> AbstractBound:
        """Bind to clicks corrected by the current bias."""
        return self._objective.bind(_estimated(data, self._bias, self._clip))

    def __call__(
        self, scores: Any, data: Any
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return gradient and Hessian of a round."""
        del data  # the rows are those of the training set
        read = read_scores(scores, self._data.groups)
        if self._calls == self._next:
            self._bias, self._state = self.estimate(read), None
            self._next *= 2
        if self._state is None:
            self._state = in_training(self.bind(self._data))
        self._calls += 1
        return training_gradients(self._state, read, self, self._calls)

    def estimate(self, scores: FloatArray) -> PositionBias:
        """Return propensities by position, the largest of which is 1."""
        ends = np.unique(np.quantile(scores, np.arange(1, _BINS) / _BINS))
        positions = self._bias.n_positions
        cells = np.searchsorted(ends, scores, side="right") * positions + self._places
        shape = (len(ends) + 1, positions)
        size = shape[0] * shape[1]
        shown = np.bincount(cells, minlength=size).reshape(shape).astype(np.float64)
        clicked = np.bincount(cells, self._data.labels, minlength=size).astype(np.float64)
        table = clicked.reshape(shape)
        theta = np.maximum(_examination(shown, table), _SMALLEST_PROPENSITY)
        covariance = count_covariance(table.sum(axis=0), shown.sum(axis=0))
        logs = np.where(shown.sum(axis=0) > 0, np.log(theta), np.nan)
        if not differs_from_none(logs, covariance, _LEVEL):
            theta = np.ones(positions)
        return PositionBias(theta, method="joint")


def _examination(shown: FloatArray, clicked: FloatArray) -> FloatArray:
    """Return the examination of each column of impressions and clicks, up to a factor.

    Rows are bins of equal relevance, columns are positions, and the expected number of clicks is
    impressions times relevance times examination: fitted to the sums of rows and of columns.
    """
    by_position, by_bin = clicked.sum(axis=0), clicked.sum(axis=1)
    theta = np.ones(shown.shape[1])
    for _ in range(_STEPS):
        relevance = by_bin / np.maximum(shown @ theta, 1e-300)
        theta = by_position / np.maximum(relevance @ shown, 1e-300)
        theta = theta / max(float(theta.max()), 1e-300)
    return theta
