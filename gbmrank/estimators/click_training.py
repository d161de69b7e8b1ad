"""Training on clicks: labels corrected for a position bias that is given or estimated."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from gbmrank.api import MetricList, Objective
from gbmrank.boosters.base import Part
from gbmrank.clicks.estimation import estimate_bias
from gbmrank.clicks.pooling import PooledLabels, pooled_labels
from gbmrank.data.columns import read_ids
from gbmrank.data.position_bias import PositionBias, read_clicks, read_positions, utilities_of
from gbmrank.errors import ConfigError, DataError, GbmrankWarning, ParameterError, warn
from gbmrank.estimators.base import read_queries
from gbmrank.estimators.crossfit import group_of_query
from gbmrank.objectives import check_takes_bias

_POOLED = "pooled"
_METHODS = ("em", _POOLED)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClickTraining:
    """Positions of the training rows, as given, and their bias; both are None without clicks."""

    position: Any = None
    bias: Any = None  # a PositionBias; "em" or "pooled" before it is estimated
    clip: float | None = None
    labels: PooledLabels | None = None  # instead of the clicks

    @classmethod
    def read(
        cls, target: Any, clicks: Any, position: Any, bias: Any, clip: float | None
    ) -> "ClickTraining":
        """Validate the arguments; messages use the row numbers of the caller."""
        if (position is None) != (bias is None):
            raise ParameterError(
                "position= and position_bias= go together; position_bias is a "
                'gbmrank.clicks.PositionBias, "em" or "pooled"'
            )
        if position is None:
            return cls()
        if not isinstance(bias, PositionBias) and bias not in _METHODS:
            raise ParameterError(
                'position_bias must be a gbmrank.clicks.PositionBias, "em" or "pooled"; got '
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
        return cls(position, bias, clip)

    def check_ranker(self, calibrate: str | None, pool: bool) -> None:
        """Raise for options of a ranker that need judgments, or rows as given."""
        if self.position is not None and calibrate == "cross-fit":
            raise ConfigError(
                "calibrate='cross-fit' learns from labels of relevance, but with position= labels "
                "are clicks. Use calibrate='held-out' with judged rows as eval_set="
            )
        if pool and isinstance(self.bias, str) and self.bias == _POOLED:
            raise ParameterError(
                'pool_eval_set=True and position_bias="pooled" exclude each other: pooled labels '
                "come from the clicks of X alone"
            )

    def groups_of_folds(self, given: Any, qid: Any) -> Any:
        """Return ``fold_groups``, which has an entry per row of the log, for the rows to train on.

        The sessions of a query are one row per item, so they are in one group.
        """
        if given is None or self.labels is None or self.labels.fallback:
            return given
        group_of_query(given, read_queries(qid, len(self.position)))
        return read_ids(given)[self.labels.row]

    def prepared(
        self, rows: tuple[Any, ...], ids: tuple[Any, Any], backend: str, seed: int
    ) -> tuple["ClickTraining", tuple[Any, ...]]:
        """Estimate the bias; return features, labels, query ids and weights to train on."""
        (table, clicks, qid, weight), (item, session) = rows, ids
        given: dict[str, Any] = {"qid": qid, "X": table, "backend": backend, "seed": seed}
        if self.bias != _POOLED:
            if item is not None or session is not None:
                raise ParameterError('item= and session= are for position_bias="pooled"')
            if self.bias != "em":
                return self, rows
            bias = estimate_bias(clicks, self.position, method="em", resamples=0, **given)
            return replace(self, bias=bias), rows
        if weight is not None:
            raise ParameterError(
                'position_bias="pooled" weights queries by their sessions; leave out sample_weight='
            )
        made = pooled_labels(clicks, self.position, item=item, session=session, **given)
        trained = made.features, made.label, made.qid, made.weight
        return replace(self, bias=made.bias, labels=made), trained

    def with_positions(self, part: Part) -> Part:
        """Return the training rows, with corrected clicks as labels if they have positions."""
        if self.labels is not None:
            return Part(part.features, part.data.with_clicks(part.data.labels))
        if self.position is None:
            return part
        data = part.data.with_columns({"position": self.position})
        return Part(part.features, data.with_clicks(utilities_of(data, self.bias, self.clip)))

    def warn_of_clicks(self, sets: Mapping[str, tuple[Any, ...]]) -> None:
        """Warn about evaluation sets that look like clicks but have no positions."""
        if self.bias is None:
            return
        named = {name: np.asarray(labels) for name, ((_, labels), *_) in sets.items()}
        clicked = [name for name, labels in named.items() if np.isin(labels, (0, 1)).all()]
        if clicked:
            warn(
                f"the labels of {', '.join(clicked)} are 0 and 1 and have no positions. If they "
                "are clicks, metrics and early stopping follow their position bias: give "
                "eval_position= with a metric such as dcg@10. If they are judgments, give "
                "eval_position=[None]",
                GbmrankWarning,
            )

    def check_metrics(self, metrics: MetricList) -> None:
        """Raise ParameterError for a metric that clicks and positions cannot estimate."""
        bent = next((one for one in metrics if not one.measure.linear), None)
        if self.bias is not None and bent is not None:
            raise ParameterError(
                f"{bent} cannot be estimated from clicks and positions: it is not a sum over "
                "items. Use metric='dcg@10', or another one of dcg, precision, wta, rbp and eru"
            )

    def with_estimates(
        self, part: Part, rows: tuple[Any, ...], metrics: MetricList, name: str
    ) -> Part:
        """Return an evaluation set with corrected clicks as labels, if it has positions."""
        (_, clicks), _, _, position = rows
        if position is None:
            return part
        if self.bias is None:
            raise ParameterError(
                "eval_position= needs the bias of the training rows: give position= and "
                "position_bias=, or validate on labels that are not clicks"
            )
        self.check_metrics(metrics)
        try:
            read_clicks(clicks)
            self.bias.theta(position)
            data = part.data.with_columns({"position": position})
            return Part(part.features, data.with_clicks(utilities_of(data, self.bias, self.clip)))
        except DataError as error:
            raise type(error)(f"{name}: {error}") from error
