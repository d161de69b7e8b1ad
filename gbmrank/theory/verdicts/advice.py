"""Advice on objectives for a metric: candidates with their verdicts, the best first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from gbmrank.errors import GbmrankError, GbmrankWarning, ParameterError, PluginError, warn
from gbmrank.losses.utilities import (
    AbstractUtility,
    DcgUtility,
    EruUtility,
    NdcgUtility,
    PrecisionUtility,
)
from gbmrank.metrics import ERU, NDCG, AbstractMetric, PairwiseDisagreement
from gbmrank.objectives import AbstractObjective
from gbmrank.objectives.levels import Bipartite
from gbmrank.objectives.push import Push
from gbmrank.registry.catalogue import LOSSES, OBJECTIVES, UTILITIES
from gbmrank.registry.composition import as_metric, build, text_of
from gbmrank.theory.user_code import own_parts
from gbmrank.theory.verdicts.calibration import calibration, given_independent
from gbmrank.theory.verdicts.verdict import (
    AbstractCondition,
    BinaryLabels,
    DegreeCondition,
    IndependentLabels,
    LabelsFrom,
    Verdict,
)

NOISY = "yetirank"
GIVEN = ("independent", "low-noise")
"""Possible assumptions about the data."""

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
_TWO = np.array([2])
_STATUS = ("calibrated", "conditional", "unknown", "not calibrated")


@final
@dataclass(frozen=True, slots=True)
class Advice:
    """An objective for a metric, with its verdict."""

    objective: str  #: its text, for ``gbmrank.objective``
    verdict: Verdict  #: whether it is calibrated
    cost: str  #: cost per query of n items
    #: whether it is proven to be calibrated: on every distribution, or on those of ``given``
    proven: bool

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        known = {"objective": self.objective, "cost": self.cost, "proven": self.proven}
        return {**known, **self.verdict.as_dict()}


def advise(metric: Any, *, given: str | None = None) -> list[Advice]:
    """Return objectives for a metric: proven ones first, those with a counterexample last.

    Parameters
    ----------
    metric : Metric, measure or str
        The metric to optimise.
    given : {"independent", "low-noise"} or None, default=None
        What is known about your data: labels that are independent within a query given the
        features (0/1 labels where the condition of a verdict says so), or preference graphs with
        low noise, for pairwise disagreement.

    Examples
    --------
    >>> first = advise("ndcg@10")[0]
    >>> first.objective, first.verdict.status
    ('pairwise(loss=logistic, target=ndcg@10)', 'calibrated')
    >>> first = advise("err", given="independent")[0]
    >>> first.objective, first.verdict.condition.graded
    ('pairwise(loss=logistic, target=dcg)', True)
    """
    measure = as_metric(metric)
    if given not in (None, *GIVEN):
        raise ParameterError(f"given must be {' or '.join(GIVEN)}, got {given!r}")
    if given == "low-noise" and not isinstance(measure, PairwiseDisagreement):
        raise ParameterError(
            "low noise is a condition on preference graphs, whose metric is "
            f"pairwise_disagreement; {text_of(measure)} is one of labels"
        )
    rows = []
    target = target_for(measure, independent=given == "independent")
    failed: set[str] = set()
    for each in _candidates(measure, target, failed):
        try:
            verdict = _verdict(each, measure, given)
        except PluginError as error:
            name = next((one.name for one in own_parts(getattr(each, "loss", None))), None)
            if name is None:
                raise  # it is the metric that fails
            _leave_out(name, error, failed)
            continue
        sure = verdict.status == "calibrated" or _implied(given, verdict.condition)
        rows.append(Advice(text_of(each), verdict, each.cost, sure))
    return sorted(rows, key=_rank)


def recommended(measure: AbstractMetric, rows: Sequence[Advice] | None = None) -> Advice:
    """Return what to try first: proven for a metric, else what aims at the metric itself.

    For NDCG it is ``yetirank``, by experiment and not by theorem: with noisy labels it was ahead of
    the boosters' ranking losses in every trial (``python -m studies patterns``).

    >>> recommended(as_metric("ndcg@10")).objective, recommended(as_metric("map")).objective
    ('yetirank', 'swap(metric=map, loss=logistic)')
    >>> recommended(as_metric("dcg@10")).objective
    'pairwise(loss=logistic, target=dcg@10)'
    """
    rows = advise(measure) if rows is None else rows
    if isinstance(measure, NDCG):
        text = text_of(build(OBJECTIVES, NOISY))
        return replace(next(row for row in rows if row.objective == text), objective=NOISY)
    aimed = (row for row in rows if row.objective.startswith(f"swap(metric={text_of(measure)}"))
    return rows[0] if rows[0].proven else next(aimed, rows[0])


def target_for(measure: AbstractMetric, *, independent: bool = False) -> AbstractUtility:
    """Return the utility of a metric, or the one closest to it: for independent labels, or any."""
    if isinstance(measure, ERU) and measure.neutral >= EruUtility().max_grade:
        most = measure.neutral + EruUtility().max_grade  # grades extend above the neutral one
        return EruUtility(measure.neutral, measure.half_life, most)
    if measure.utility is not None or measure.name in UTILITIES:
        return build(UTILITIES, measure)
    if independent and measure.form.gain == "exp2":
        return DcgUtility(max_grade=min(measure.form.high, 31.0))
    if independent and measure.form.gain == "step":
        return PrecisionUtility(threshold=measure.form.at)
    return NdcgUtility(k=getattr(measure, "k", None))


def _made(
    template: str, loss: str | None, params: dict[str, Any], failed: set[str]
) -> AbstractObjective | None:
    try:
        return build(OBJECTIVES, template, **params, **({} if loss is None else {"loss": loss}))
    except PluginError as error:
        _leave_out(str(loss), error, failed)
    except GbmrankError:  # a loss that this template rejects
        pass
    return None


def _leave_out(name: str, error: Exception, failed: set[str]) -> None:
    """Warn, once per loss of yours, that it is no candidate."""
    if name not in failed:
        failed.add(name)
        warn(f"advise leaves out the loss {name}: {error}", GbmrankWarning)


def _candidates(
    measure: AbstractMetric, target: AbstractUtility, failed: set[str]
) -> Iterator[AbstractObjective]:
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
        if template == "pointwise" and loss != "squared" and target.upper_bounds(_TWO) is None:
            continue  # only the user can give a bound of the labels
        made = _made(template, loss, {} if template == "comparison" else {"target": target}, failed)
        if made is not None:
            yield made
    relevant_from = measure.form.at if measure.form.gain == "step" else None
    for text in _PRESETS:
        preset = build(OBJECTIVES, text)
        if isinstance(preset, Bipartite | Push):
            preset = replace(preset, threshold=relevant_from)
        yield preset


def _verdict(template: AbstractObjective, measure: AbstractMetric, given: str | None) -> Verdict:
    """Return the verdict under the given assumption, if there is one."""
    verdict = calibration(template, measure, graphs=given == "low-noise")
    if given != "independent" or verdict.status == "calibrated":
        return verdict
    independent = given_independent(template, measure)
    return verdict if independent is None else independent


def _implied(given: str | None, condition: AbstractCondition | None) -> bool:
    """Whether a condition follows from the given assumption."""
    if given == "independent":
        independent = isinstance(condition, IndependentLabels)
        return independent or condition in (BinaryLabels(), LabelsFrom(0.0))
    return given == "low-noise" and condition == DegreeCondition()


def _rank(advice: Advice) -> tuple[bool, bool, int, bool]:
    """Proven ones first, but those that take no labels between which the metric decides."""
    verdict = advice.verdict
    useless = verdict.reference == "by definition"
    return useless, not advice.proven, _STATUS.index(verdict.status), verdict.constant is None
