"""Engine of one of several tasks, each of which trains by the same plan on rows of its own."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np

from gbmrank.api import Metric, MetricList
from gbmrank.boosters.base import Booster, Fitted, Job, Part, Target, Trained
from gbmrank.boosters.callbacks import read_call
from gbmrank.boosters.plan import Facts, LocalEngine, Native, squared_deviations
from gbmrank.distributed.channel import Channel
from gbmrank.distributed.summed_metrics import Sums, means, report_in_training, totals
from gbmrank.metrics import Ranked
from gbmrank.registry.guards import bind_metric


@final
class TaskEngine:
    """Trains together with the other tasks; every task gets the same model and history.

    Parameters
    ----------
    channel : Channel
        Connects the tasks.
    sample : Part or None
        Rows, the same in all tasks, from which features are binned; None: the booster's own bins.
    validated : bool
        False if this task has no rows of the validation set: those it has are not counted.
    """

    def __init__(self, channel: Channel, sample: Part | None, validated: bool) -> None:
        self._channel, self._sample, self._validated = channel, sample, validated
        self._local = LocalEngine()

    def facts(self, part: Part, name: str, ranks: bool = True) -> Facts:
        """Return facts about the rows of all tasks; the ids are those of this task."""
        own = self._local.facts(part, name, ranks)
        every: list[Facts] = self._channel.gather(own._replace(ids=None, part=None))
        return own._replace(
            n_rows=sum(one.n_rows for one in every),
            learnable=any(one.learnable for one in every),
            largest_weight=max(one.largest_weight for one in every),
            merged=next((one.merged for one in every if one.merged is not None), None),
        )

    def callback(
        self, target: Target | Native, params: Mapping[str, Any], part: Part
    ) -> tuple[Any, dict[str, Any]]:
        """Return the objective unchanged; queries cannot be sampled across tasks."""
        return self._local.callback(target, params, part)

    def run(self, booster: Booster, job: Job) -> Trained:
        """Train with the network of the booster, which needs no more than one task's rows."""
        bins = None if self._sample is None else booster.bins(job, self._sample)
        with booster.network(self._channel) as params:
            return booster.train(
                replace(
                    job,
                    metrics=_SummedMetrics(job.metrics, self._channel, self._validated),
                    params={**job.params, **params},
                    bins=bins,
                )
            )

    def all_tied(self, fitted: Fitted, part: Part) -> bool:
        """Whether the scores of every query are all equal."""
        return all(self._channel.gather(self._local.all_tied(fitted, part)))

    def curvature(self, target: Target | Native, part: Part) -> float | None:
        """Return the summed Hessian of the first round."""
        own = self._local.curvature(target, part)
        return None if own is None else float(sum(self._channel.gather(own)))

    def spread(self, fitted: Fitted, part: Part) -> float:
        """Return the standard deviation of scores within queries."""
        sizes = part.data.groups.sizes
        own = squared_deviations(fitted.scores(part.features), sizes), int(sizes.sum())
        deviations, rows = np.sum(self._channel.gather(own), axis=0)
        return math.sqrt(deviations / rows)

    def values(self, fitted: Fitted, part: Part, metrics: MetricList) -> list[float]:
        """Return the value of each metric."""
        own = np.zeros((len(metrics), 2))
        if self._validated:
            bound = [bind_metric(one.measure, part.data) for one in metrics]
            own = totals(bound, Ranked(fitted.scores(part.features), part.data.groups))
        return means(metrics.metrics, np.sum(self._channel.gather(own), axis=0))


@final
class _SummedMetrics:
    """Metrics that a booster evaluates on the rows of all tasks."""

    def __init__(self, metrics: MetricList, channel: Channel, counts: bool) -> None:
        self._metrics, self._channel, self._counts = metrics, channel, counts

    def __iter__(self) -> Iterator[Metric]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)

    def __getitem__(self, index: int) -> Metric:
        return self._metrics[index]

    def __call__(self, a: Any, b: Any) -> list[tuple[Any, ...]]:
        """Evaluate as the custom metric of a booster."""
        booster, columns, preds = read_call(a, b, None, None, False)
        own = columns if self._counts else None

        def add(sums: Sums) -> Sums:
            return np.sum(self._channel.gather(sums), axis=0)

        return report_in_training(self._metrics, booster, own, preds, add)
