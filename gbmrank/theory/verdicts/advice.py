"""Which objective for a metric? Candidates with their verdicts, the best first."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

from gbmrank.errors import GbmrankError
from gbmrank.losses.utilities import AbstractUtility, IdentityUtility, NdcgUtility
from gbmrank.metrics import RBP, AbstractMetric
from gbmrank.metrics import Positional as PositionalMetric
from gbmrank.objectives import AbstractObjective
from gbmrank.registry.catalogue import LOSSES, OBJECTIVES, UTILITIES
from gbmrank.registry.composition import as_metric, build, text_of
from gbmrank.theory.verdicts.calibration import calibration
from gbmrank.theory.verdicts.verdict import Verdict

__all__ = ["Advice", "advise", "target_for"]

_WITH_TARGET = (
    ("pairwise", "logistic"),
    ("bregman", "softmax_ce"),
    ("pointwise", "squared"),
    ("pointwise", "logistic"),
    ("pairwise", "squared"),
    ("pairwise", "exponential"),
    ("pointwise", "squared_hinge"),
    ("bregman", "poisson"),
    ("pointwise", "p_classification"),
    ("pairwise", "squared_hinge"),
    ("bregman", "softmax"),
    ("query_rmse", None),
)
_PRESETS = (
    "duchi_linear",
    "bipartite(loss=logistic)",
    "ranknet",
    "rankboost",
    "ranksvm",
    "w_ranknet",
    "listmle",
    "w_listmle",
    "pnorm_push",
    "yetirank",
)
_STATUS = ("calibrated", "conditional", "unknown", "not calibrated")


@final
@dataclass(frozen=True, slots=True)
class Advice:
    """One objective for a metric.

    Parameters
    ----------
    objective : str
        Its text; give it to ``gbmrank.objective``.
    verdict : Verdict
        What is known.
    cost : str
        Per query of n items.
    """

    objective: str
    verdict: Verdict
    cost: str

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {"objective": self.objective, "cost": self.cost, **self.verdict.as_dict()}


def advise(metric: Any) -> list[Advice]:
    """Return objectives for a metric: calibrated ones first, known to be wrong ones last.

    Parameters
    ----------
    metric : Metric, measure or str
        What should be best.

    Examples
    --------
    >>> first = advise("ndcg@10")[0]
    >>> first.objective, first.verdict.status
    ('pairwise(loss=logistic, target=ndcg@10)', 'calibrated')
    """
    measure = as_metric(metric)
    rows = [
        Advice(text_of(each), calibration(each, measure), each.cost)
        for each in _candidates(measure)
    ]
    return sorted(rows, key=_rank)


def target_for(measure: AbstractMetric) -> AbstractUtility:
    """Return the utility that goes with a metric, or the one nearest to it."""
    if measure.name == "pairwise_disagreement":
        return IdentityUtility()
    own = isinstance(measure, PositionalMetric | RBP)
    if not own and measure.name not in UTILITIES:
        return NdcgUtility(k=getattr(measure, "k", None))
    return build(UTILITIES, measure)


def _candidates(measure: AbstractMetric) -> Iterator[AbstractObjective]:
    target = target_for(measure)
    own = [
        (template, entry.name)
        for entries in LOSSES.entries.values()
        for entry in entries
        if entry.origin.distribution != "gbmrank"
        for template in ("pairwise", "pointwise", "comparison")
    ]
    if measure.swap_kind is not None and measure.ties in ("mean", "index"):
        yield build(OBJECTIVES, "swap", metric=measure)
    for template, loss in (*_WITH_TARGET, *own):
        params: dict[str, Any] = {} if loss is None else {"loss": loss}
        if template != "comparison":
            params["target"] = target
        if template == "pointwise" and isinstance(target, IdentityUtility) and loss != "squared":
            continue  # a bound of labels is for the user to give
        try:
            yield build(OBJECTIVES, template, **params)
        except GbmrankError:  # a loss that this template rejects, a plugin that does not load
            continue
    for text in _PRESETS:
        yield build(OBJECTIVES, text)


def _rank(advice: Advice) -> tuple[int, bool]:
    return _STATUS.index(advice.verdict.status), advice.verdict.constant is None
