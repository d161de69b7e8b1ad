"""Whether one surrogate regret suffices on all distributions: ``Verdict.uniform``.

Calibrated means that on each distribution a surrogate regret is small enough for a given regret of
the metric; uniformly so if one is small enough for all. The arguments are in docs/calibration.md.
"""

from gbmrank.metrics import AbstractMetric
from gbmrank.objectives import AbstractObjective
from gbmrank.theory.noise import Answer
from gbmrank.theory.verdicts.forms import Labels
from gbmrank.theory.verdicts.order import largest_label, utility_bound
from gbmrank.theory.verdicts.verdict import (
    AbstractCondition,
    AllOf,
    BinaryLabels,
    Constant,
    DegreeCondition,
    IndependentLabels,
    Reinforcement,
    SortsPreferences,
    Verdict,
)

_C = "Calauzenes et al. 2013"
_OPEN = (
    "no: the condition allows two items whose expected utilities are as close as you like, and "
    "whose exchange loses as much as before"
)


def uniform(
    template: AbstractObjective,
    measure: AbstractMetric,
    verdict: Verdict,
    labels: tuple[Labels, ...],
) -> Answer | None:
    """Return whether a verdict is uniform, with the reason; None if it says nothing to be so."""
    if verdict.status not in ("calibrated", "conditional"):
        return None
    parts = _parts(verdict.condition)
    if any(isinstance(each, Reinforcement | DegreeCondition | SortsPreferences) for each in parts):
        return Answer(False, reason=_OPEN)
    binary = any(each in (BinaryLabels(), IndependentLabels()) for each in parts)
    if binary or all(each.only is not None for each in labels):
        return Answer(True, reason=f"there are finitely many labels ({_C}, Cor. 4.5)")
    return _by_constant(template, measure, verdict.constant)


def _by_constant(
    template: AbstractObjective, measure: AbstractMetric, constant: Constant | None
) -> Answer:
    if constant is None:
        why = "not known: labels are any numbers, and the constant of a regret bound is not known"
        return Answer(False, reason=f"{why}; it is for finitely many labels ({_C}, Cor. 4.5)")
    if constant.of in ("none", "eta"):
        return Answer(True, reason=f"the constant {constant} is the same for all distributions")
    if utility_bound(template, 2) is None:
        why = f"not known: the constant {constant} grows with the utilities of {measure.name}"
        return Answer(False, reason=f"{why}; it is for bounded labels ({_C}, Cor. A.1)")
    where = largest_label(template)
    when = "" if where is None else f" if {where}"
    return Answer(True, reason=f"utilities are bounded{when} ({_C}, Cor. A.1)")


def _parts(condition: AbstractCondition | None) -> tuple[AbstractCondition, ...]:
    if isinstance(condition, AllOf):
        return condition.parts
    return () if condition is None else (condition,)
