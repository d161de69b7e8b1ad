"""Plans of a training, from text or objects."""

from typing import Any

from gbmrank.api.committees import Committee, objectives_in, ranking_objective
from gbmrank.api.metrics import MetricList, metric_list
from gbmrank.api.objectives import Objective
from gbmrank.boosters.plan import Native, Plan
from gbmrank.errors import ConfigError
from gbmrank.registry.composition import check_text


def training_plan(objective: Any, metric: Any, **options: Any) -> Plan:
    """Return a training plan for an objective and metrics, given as text or objects.

    Parameters
    ----------
    objective : Objective, Native, Committee or str
        The objective; ``native:NAME`` is one of the booster's own.
    metric : Metric, MetricList, str or list
        Metrics to evaluate; early stopping uses the first one.
    **options : object
        Further fields of :class:`gbmrank.boosters.plan.Plan`.
    """
    target, metrics = ranking_objective(objective), metric_list(metric)
    if isinstance(target, Objective) and target.has_rows:
        raise ConfigError(
            f"{target} has columns from bind_rows, which is for lightgbm.train and xgboost.train; "
            "pass the columns themselves here, such as sample_weight= of fit"
        )
    check_texts(target, metrics)
    return Plan(objective=target, metric=metrics, **options)


def check_texts(target: Objective | Native | Committee, metrics: MetricList) -> None:
    """Raise ParameterError for an objective or a metric that its text does not fully describe."""
    for one in objectives_in(target):
        check_text(one.template)
    for metric in metrics:
        check_text(metric.measure)
