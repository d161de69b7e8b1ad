"""Calibration verdicts, derived from the parts of an objective and a metric, not their names.

"Calibrated" means that a proof covers all labels that both support, all list lengths and cut-offs.
"Not calibrated" comes with a counterexample (:mod:`gbmrank.theory.verdicts.witnesses`), and
:func:`remedy` suggests a change whose verdict was checked.
"""

import contextlib
import functools
import shlex
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from gbmrank.data.queries import RankingData
from gbmrank.errors import (
    CalibrationWarning,
    GbmrankError,
    GbmrankWarning,
    PluginContractError,
    PluginError,
    warn,
)
from gbmrank.losses import AbstractLoss
from gbmrank.losses.convex import BUILTIN_OUTERS
from gbmrank.losses.utilities import AbstractUtility, Form
from gbmrank.metrics import MAP, AbstractMetric, PairwiseDisagreement
from gbmrank.objectives import AbstractObjective
from gbmrank.objectives.base import Mix
from gbmrank.objectives.levels import Bipartite, Comparison
from gbmrank.objectives.push import Push
from gbmrank.objectives.value_linear import Linear
from gbmrank.registry.composition import as_metric, as_objective, text_of
from gbmrank.theory.counterexamples import Counterexample, known_for
from gbmrank.theory.noise import Answer
from gbmrank.theory.shapes import contradictions, modulus_contradiction, pair_shape
from gbmrank.theory.user_code import isolated, own_parts, sampled
from gbmrank.theory.verdicts.forms import (
    BINARY,
    Labels,
    alike,
    common,
    is_constant,
    legal,
    weighs_relevance,
)
from gbmrank.theory.verdicts.order import (
    Preserved,
    assumed_of,
    assumed_of_regulariser,
    largest_label,
    preserved_order,
    same_order,
    utility_bound,
)
from gbmrank.theory.verdicts.pairs import Decoded, decoded_calibration
from gbmrank.theory.verdicts.verdict import (
    AbstractCondition,
    AllOf,
    Assumed,
    BinaryLabels,
    Constant,
    DegreeCondition,
    IndependentLabels,
    LabelsFrom,
    MaxItems,
    Reinforcement,
    SortsPreferences,
    Status,
    Verdict,
    all_of,
    unknown,
)
from gbmrank.theory.verdicts.witnesses import (
    comparison_witness,
    graph_witness,
    kink_witness,
    order_witness,
)
from gbmrank.theory.views import View, view

_OF_TARGETS = ("threshold", "max_grade")
_C = "Calauzenes et al. 2013"
_MENON = "; Menon and Williamson 2014"
_COUNTEREXAMPLE = "counterexample, verified numerically"
_FAIR_TIES = ("mean", "index")
_LONG_ENOUGH = 5  # items; agreement on shorter lists only is not useful
_BY_DEFINITION = "by definition"
_OPEN = (
    "no: the condition allows two items whose expected utilities are as close as you like, and "
    "whose exchange loses as much as before"
)
_warned: set[str] = set()  # a grid search trains one pair many times


@isolated
def calibration(objective: Any, metric: Any = None, *, graphs: bool | None = None) -> Verdict:
    """Return whether an objective is calibrated for a metric.

    Parameters
    ----------
    objective : Objective, template, str, PairRanker, LowRankRanker or Decoded
        The objective, or a surrogate with its decoder; the verdict is ``unknown`` for one of a
        booster, ``native:NAME``, and for a ``committee``.
    metric : Metric, measure or str
        The metric; None for a ``LowRankRanker`` with a loss matrix.
    graphs : bool or None, default=None
        Whether preferences are given as graphs instead of labels, for pairwise
        disagreement; by default, whether the objective or the metric has preferences.

    Returns
    -------
    Verdict
        ``calibrated``: on every distribution of labels, minimising the expected loss gives
        a best ranking. ``conditional``: under ``condition``. ``not calibrated``: not on the
        distribution in ``counterexample``. ``unknown``: nothing is proven either way.

    Examples
    --------
    >>> verdict = calibration("pairwise(loss=logistic, target=ndcg@10)", "ndcg@10")
    >>> verdict.status, str(verdict.constant)
    ('calibrated', '2 sqrt(max U)')
    >>> calibration("pairwise(loss=logistic, target=ndcg@10)", "err@10").status
    'not calibrated'
    """
    pair = getattr(objective, "decoded", objective)
    if isinstance(pair, Decoded):
        judged = None if metric is None else as_metric(metric)
        if graphs is None:
            graphs = getattr(judged, "preferences", None) is not None
        return decoded_calibration(pair, judged, graphs, _calibration)
    reason = _without_loss(objective)
    if reason is not None:
        as_metric(metric)
        return unknown(f"{objective} {reason}, so no theorem applies")
    template, measure = as_objective(objective), as_metric(metric)
    if graphs is None:
        graphs = any(getattr(part, "preferences", None) is not None for part in (template, measure))
    declared = _declared(template)
    found = _on_graphs(template, measure) if graphs else _calibration(template, measure)
    if found.reference != _BY_DEFINITION:
        found = replace(found, uniform=uniform(template, measure, found))
    rests = found.status in ("calibrated", "conditional") or "Thm 1" in found.reference
    if not (declared and rests) or found.reference == _BY_DEFINITION:
        return found
    return replace(found, reference=f"{found.reference}; as declared by {' and '.join(declared)}")


def calibration_or_unknown(objective: Any, metric: Any) -> Verdict:
    """Return the verdict; ``unknown``, with one warning, where a part of yours fails."""
    try:
        return calibration(objective, metric)
    except PluginError as error:
        message = f"{objective} has no verdict for {metric}: {error}"
        if message not in _warned:
            _warned.add(message)
            warn(message, GbmrankWarning)
        return unknown(str(error))


def _both(template: AbstractObjective, measure: AbstractMetric) -> tuple[Labels, ...]:
    """Return the labels that both support, or supersets."""
    return common(_labels_of(template), legal(_form_of(measure)))


def _form_of(measure: AbstractMetric) -> Form:
    seen = view(measure)
    return measure.form if seen is None else seen.form


def _labels_of(template: AbstractObjective) -> tuple[Labels, ...]:
    if isinstance(template, Mix):
        return functools.reduce(common, [_labels_of(part) for part in template.parts])
    preserved = preserved_order(template)
    return legal(template.label_form) if preserved is None else preserved.labels


def uniform(
    template: AbstractObjective, measure: AbstractMetric, verdict: Verdict
) -> Answer | None:
    """Return whether one surrogate regret suffices on all distributions, with the reason.

    Calibrated means that on each distribution a surrogate regret is small enough for a given
    regret of the metric; uniformly so if one is small enough for all. The arguments are in
    docs/calibration.md. None if the verdict says nothing to be so.
    """
    if verdict.status not in ("calibrated", "conditional"):
        return None
    condition, constant = verdict.condition, verdict.constant
    parts = condition.parts if isinstance(condition, AllOf) else (condition,)
    if any(isinstance(each, Reinforcement | DegreeCondition | SortsPreferences) for each in parts):
        return Answer(False, reason=_OPEN)
    binary = any(each in (BinaryLabels(), IndependentLabels()) for each in parts)
    if binary or all(each.only is not None for each in _both(template, measure)):
        return Answer(True, reason=f"there are finitely many labels ({_C}, Cor. 4.5)")
    return _uniform_constant(template, measure, constant)


def _uniform_constant(
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


def _declared(template: AbstractObjective) -> list[str]:
    """Return what your parts declare as proven, with references; raise where it is not so."""
    found = []
    for part in own_parts(template):
        if not (getattr(part, "proven", ()) or getattr(part, "mu", None)):
            continue
        wrong = contradictions(part) if isinstance(part, AbstractLoss) else {}
        if getattr(part, "mu", None) is not None and (reason := modulus_contradiction(part)):
            wrong = {"the generator": reason}
        if wrong:
            told = "; ".join(f"{name}: {reason}" for name, reason in wrong.items())
            raise PluginContractError(f"{part.name} declares as proven what is not so. {told}")
        reference = getattr(part, "reference", "") or "without a reference"
        found.append(f"{part.name} ({reference})")
    return found


def warn_if_not_calibrated(objective: Any, metric: Any) -> Verdict:
    """Warn, once per pair, if an objective is not calibrated for a metric.

    This matters for early stopping: with a loss that is not calibrated, the metric may get worse
    while the loss is still being minimised. The warning names a calibrated objective, if there
    is one.
    """
    verdict = calibration_or_unknown(objective, metric)
    if verdict.status != "not calibrated":
        return verdict
    pair = text_of(as_objective(objective)), text_of(as_metric(metric))
    if str(pair) not in _warned:
        _warned.add(str(pair))
        use = ""
        with contextlib.suppress(GbmrankError):  # a metric without a utility
            made = as_objective(f"pairwise(target={pair[1]})")
            use = f"Use {text_of(made)}. " if calibration(made, metric) else ""
        reason = shlex.join(["gbmrank", "check", pair[0], "--metric", pair[1]])
        message = f"{pair[0]} is not calibrated for {pair[1]}. {use}Reason: {reason}"
        warn(message, CalibrationWarning)
    return verdict


def remedy(template: AbstractObjective, measure: AbstractMetric) -> str:
    """Return a suggestion, for an objective that sorts another utility than the metric needs."""
    from gbmrank.theory.verdicts.advice import target_for

    target = target_for(measure)
    changed = _aimed(template, target)
    if changed is not None and _right(changed, measure):
        given = _options(template)
        without = f" and leave out {' and '.join(given)}" if given else ""
        inside = " in its parts" if isinstance(template, Mix) else ""
        return f"set target={text_of(target)}{inside}{without}"
    if isinstance(measure, PairwiseDisagreement) and measure.normalize:
        raw = replace(measure, normalize=False)
        if _right(template, raw):
            return f"it is right for {text_of(raw)}"
    no_target = f"{template.name} takes no target; " if changed is None else ""
    return f"{no_target}gbmrank advise {text_of(measure)} names objectives that may do"


def _aimed(template: Any, target: AbstractUtility) -> Any | None:
    """Return an objective with another target and without options of the old one, or None."""
    known = {field.name for field in fields(template)}
    if "target" in known:
        return replace(template, target=target, **dict.fromkeys(_options(template)))
    if "parts" not in known:
        return None
    parts = [_aimed(part, target) for part in template.parts]
    return None if None in parts else replace(template, parts=tuple(parts))


def _options(template: Any) -> list[str]:
    """Return the options of the target that a template, or a part of it, was given."""
    inside = [_options(part) for part in getattr(template, "parts", ())]
    return [
        name
        for name in _OF_TARGETS
        if getattr(template, name, None) is not None or any(name in each for each in inside)
    ]


def _right(template: AbstractObjective, measure: AbstractMetric) -> bool:
    seen, preserved = view(measure), preserved_order(template)
    if seen is None or preserved is None or preserved.assumed or preserved.up_to is not None:
        return False
    return _agree(preserved, seen.form, common(preserved.labels, legal(seen.form)))


def _agree(preserved: Preserved, form: Form, labels: Sequence[Labels]) -> bool:
    """Whether two utilities give the same order, on sets of labels of which there are some."""
    return bool(labels) and all(alike(preserved.form, form, each).holds for each in labels)


def _without_loss(objective: Any) -> str | None:
    """Return why an objective has no single loss of gbmrank, or None if it has one."""
    if isinstance(objective, AbstractObjective) or getattr(objective, "template", None) is not None:
        return None
    text = str(objective).strip()
    if text.startswith("native:"):
        return (
            "is the booster's own objective: it follows the gradient of no published loss, or "
            "samples pairs"
        )
    if text == "committee" or text.startswith("committee("):
        return "is a mean of models that minimise different losses"
    return None


@functools.lru_cache(maxsize=1024)
def _calibration(template: AbstractObjective, measure: AbstractMetric) -> Verdict:
    if measure.ties not in _FAIR_TIES:
        return unknown(f"ties={measure.ties} rewards or punishes ties, which theory leaves out")
    seen, preserved = view(measure), preserved_order(template)
    form, both = _form_of(measure), _both(template, measure)
    equal = bool(both) and all(is_constant(form, each) for each in both)
    if equal or (seen is not None and seen.fall == "constant"):
        sentence = f"every order has the same {measure.name}, so every loss is calibrated for it"
        return Verdict("calibrated", None, None, _BY_DEFINITION, sentence)
    if preserved is None:
        return _without_order(template, measure, seen)
    if seen is not None:
        return _positional(template, measure, preserved, seen)
    return _other_measure(template, measure, preserved)


def _positional(
    template: AbstractObjective, measure: AbstractMetric, preserved: Preserved, seen: View
) -> Verdict:
    both = common(preserved.labels, legal(seen.form))
    if not both:
        return unknown("the objective and the metric do not take the same labels")
    found = [alike(preserved.form, seen.form, each) for each in both]
    limits = [k for k in (preserved.up_to, *(one.up_to for one in found)) if k is not None]
    narrower: AbstractCondition | None = None
    if not all(one.holds for one in found) or limits:
        short = all(one.holds or one.up_to is not None for one in found)
        narrower = _narrower(preserved, seen, both)
        if short and min(limits) >= _LONG_ENOUGH:
            narrower = MaxItems(min(limits))
    if narrower is not None or (all(one.holds for one in found) and not limits):
        return _sorted(measure, preserved, seen, (narrower, " and ".join(map(str, both))))
    return _not_sorted(template, measure, preserved, seen, both)


def _sorted(
    measure: AbstractMetric,
    preserved: Preserved,
    seen: View,
    found: tuple[AbstractCondition | None, str],
) -> Verdict:
    """Return the verdict if the minimiser sorts the utility of the metric."""
    narrower, labels = found
    condition = all_of(narrower, *_assumed(preserved, measure, seen))
    best = "highest" if measure.higher_is_better else "lowest"
    learns = f"with enough data, this loss learns the order with the {best} expected {measure.name}"
    sentence = (
        f"it sorts another utility than {measure.name} asks for, but the two agree when {condition}"
    )
    if condition is None:
        sentence = f"{learns} ({labels})"
    elif narrower is None:
        sentence = f"{learns}, if {condition}; no proof covers that"
    status: Status = "calibrated" if condition is None else "conditional"
    return Verdict(status, condition, preserved.constant, preserved.reference, sentence)


def _assumed(
    preserved: Preserved, measure: AbstractMetric, seen: View | None
) -> tuple[Assumed, ...]:
    """Return the unproven assumptions about user-defined parts."""
    if seen is None or seen.fall != "unknown":
        return preserved.assumed

    def not_rising(where: Any) -> bool:
        sizes = where.groups.sizes if isinstance(where, RankingData) else [where.n_items]
        return all(np.all(np.diff(seen.discounts(int(n))) <= 0) for n in np.unique(sizes))

    words = f"the discounts of {measure.name} do not rise with the rank"
    return (*preserved.assumed, Assumed(words, not_rising))


def _not_sorted(
    template: AbstractObjective,
    measure: AbstractMetric,
    preserved: Preserved,
    seen: View,
    both: tuple[Labels, ...],
) -> Verdict:
    """Return the verdict if the minimiser sorts another utility, or an unknown one."""
    example = known_for(template, measure) or order_witness(
        template, measure, preserved, both, (preserved.form, seen.form)
    )
    if isinstance(measure, PairwiseDisagreement):
        sorts = SortsPreferences(preserved.utilities, measure.normalize)
        condition = all_of(sorts, *preserved.assumed)
        sentence = (
            f"its minimisers sort an expectation, which is best when {condition}; "
            f"{remedy(template, measure)}"
        )
        reference = "Ramaswamy et al. 2013, Thm 6"
        return Verdict("conditional", condition, None, reference, sentence, example)
    independent = given_independent(template, measure)
    if independent is not None and seen.form.gain == "step":
        return replace(independent, counterexample=example)
    if example is None and "own" in (preserved.form.gain, seen.form.gain):
        # Whether a user-defined utility agrees can be tested on labels.
        words = f"the utility it sorts is, on your labels, that of {measure.name} times a factor"
        agree = functools.partial(same_order, preserved.utilities, seen.utilities)
        condition = all_of(Assumed(words, agree), *_assumed(preserved, measure, seen))
        sentence = f"its minimisers are in the best order if {words}"
        return Verdict("conditional", condition, None, preserved.reference, sentence)
    if example is None:
        return unknown("it sorts another utility, and no distribution is known where that costs")
    sentence = (
        f"its minimisers sort another expected utility than {measure.name} asks for; "
        f"{remedy(template, measure)}"
    )
    return _against(f"{_C}, Thm 3.2 (converse)", sentence, example)


def _narrower(
    preserved: Preserved, seen: View, both: tuple[Labels, ...]
) -> AbstractCondition | None:
    """Return a condition on labels under which two utilities give the same order, if any."""
    if preserved.up_to is not None:
        return None
    bends = [f.at for f in (preserved.form, seen.form) if f.gain == "excess"]
    tried = [(LabelsFrom(float(low)), Labels(low=float(low))) for low in sorted(bends)]
    for condition, wanted in (*tried, (BinaryLabels(), BINARY)):
        left = [each & wanted for each in both if (each & wanted).several]
        if not left or all(is_constant(seen.form, each) for each in left):
            continue
        if _agree(preserved, seen.form, left):
            return condition
    return None


@isolated
def given_independent(template: AbstractObjective, measure: AbstractMetric) -> Verdict | None:
    """Return the verdict for independent labels of items: graded, 0/1 or with a threshold.

    Swapping the labels of two items shows that ``E[y_i z(P)]`` increases with the probability
    that item i is relevant, for every z > 0. So the best order for every positional metric of
    relevance is that of these probabilities. It also is for every other metric of relevance that
    gains when a relevant item moves up past another one, and for ERR of grades the best order is
    that of ``E 2^y``: swap neighbours (the proofs are in docs/calibration.md).
    """
    seen, preserved = view(measure), preserved_order(template)
    independent = _independence(template, measure, seen, preserved)
    if independent is None or measure.ties not in _FAIR_TIES:
        return None
    if preserved is not None:
        reference = f"{preserved.reference.removesuffix(_MENON)}{_MENON}, Prop. 6 and Cor. 7"
        assumed: tuple[Assumed, ...] | None = _assumed(preserved, measure, seen)
    else:
        reference = "Menon and Williamson 2014, Prop. 8, Cor. 9 and Cor. 12"
        assumed = _sorts_probability(template)
    if assumed is None:
        return None
    if seen is None:
        reference += "; by exchange of neighbours"
    condition = all_of(independent, *assumed)
    sorted_by = "the expected gain" if independent.graded else "the probability of relevance"
    what = f"this loss sorts by {sorted_by}, which is best for {measure.name} when {condition}"
    return Verdict("conditional", condition, None, reference, f"with enough data, {what}")


def _independence(
    template: AbstractObjective,
    measure: AbstractMetric,
    seen: View | None,
    preserved: Preserved | None,
) -> IndependentLabels | None:
    """Return the independence under which both want one order: of grades, or of relevance."""
    form = _form_of(measure)
    own = Form("step", getattr(template, "threshold", None))
    if preserved is not None:
        own, both = preserved.form, common(preserved.labels, legal(form))
        graded = seen is None and preserved.up_to is None and form.gain == "exp2"
        if graded and _agree(preserved, form, both):
            return IndependentLabels(graded=True)
    if own.gain == form.gain == "step" and own.at is not None and own.at == form.at:
        return IndependentLabels(own.at)
    for side, labels in ((own, _labels_of(template)), (form, legal(form))):
        if not any(0.0 in each and 1.0 in each for each in labels) or not weighs_relevance(side):
            return None
    return IndependentLabels()


def _sorts_probability(template: AbstractObjective) -> tuple[Assumed, ...] | None:
    """Return the assumptions under which a loss of pairs sorts by probability of relevance.

    None if it does not. The weights of pairs must be positive and depend only on the number of
    relevant items. If item i is more probably relevant than j, swapping scores with ``s_i < s_j``
    does not raise the loss, and moving tied ones apart lowers it, because the loss decreases at
    zero; the losses of a push are increasing functions of such sums.
    """
    if not isinstance(template, Comparison | Bipartite | Push):
        return None
    if isinstance(template, Comparison) and not template.relevant_weight > 0.0:
        return None
    shape, margin = pair_shape(template.loss), getattr(template, "margin", 0.0)
    shift = 1.0 if isinstance(margin, str) else float(margin)
    falls = shape.falls and sampled(template.loss, template.loss.kappa, -shift)[1] < 0
    linked = shape.rate is not None and not isinstance(template, Push) and shift == 0.0
    if not falls or not (shape.convex or linked):
        return None
    words = () if shape.proven else (assumed_of(template.loss, convex=shape.convex),)
    price = getattr(template, "g", None)
    if price is not None and type(price) not in BUILTIN_OUTERS:
        words = (*words, Assumed(f"the price {price.name} is increasing and differentiable"))
    return words


def _other_measure(
    template: AbstractObjective, measure: AbstractMetric, preserved: Preserved
) -> Verdict:
    """Return the verdict for a metric that is not positional and a loss that sorts a utility."""
    form = measure.form
    both = common(preserved.labels, legal(form))
    example = known_for(template, measure) or order_witness(
        template, measure, preserved, both, (preserved.form, form)
    )
    precision = _is_average_precision(measure) and preserved.up_to is None
    if precision and _agree(preserved, replace(form, over="sum"), both):
        condition = Reinforcement(form.at)
        sentence = f"sorting E[y/P] is best for average precision when {condition}"
        reference = "Ramaswamy et al. 2013, Thm 4 and Cor. 5"
        together = all_of(condition, *preserved.assumed)
        return Verdict("conditional", together, None, reference, sentence, example)
    independent = given_independent(template, measure)
    if independent is not None and _is_average_precision(measure):
        return replace(independent, counterexample=example)
    right = "" if independent is None else f"; it is right when {independent.condition}"
    if example is None:
        return unknown(f"no result about {measure.name} and losses that sort a utility{right}")
    sentence = (
        f"the best order for {measure.name} is not that of any expected utility: what an item is "
        f"worth depends on the items above it{right}"
    )
    return _against(measure.no_utility_theorem, sentence, example)


def _is_average_precision(measure: AbstractMetric) -> bool:
    return isinstance(measure, MAP) and measure.k is None


def _on_graphs(template: AbstractObjective, measure: AbstractMetric) -> Verdict:
    """Return the verdict on preference graphs: the linear loss sorts net degrees."""
    if not isinstance(measure, PairwiseDisagreement):
        return unknown(f"{measure.name} needs labels")
    if isinstance(template, Linear):
        assumed = assumed_of_regulariser(template.regulariser)
        condition = all_of(DegreeCondition(measure.normalize), *assumed)
        sentence = f"its minimisers sort net degrees, which is best when {condition}"
        reference = "Duchi et al. 2010, Thm 13 and Cor. 15"
        if measure.normalize:
            reference += "; Ramaswamy et al. 2013, Thm 6"
        example = graph_witness(template, measure)
        return Verdict("conditional", condition, None, reference, sentence, example)
    if not isinstance(template, Comparison):
        return unknown(f"no result about {template.name} on preference graphs")
    example = known_for(template, measure, graphs=True) or graph_witness(template, measure)
    theorem = _theorem_against(template, measure, None)
    if example is None and theorem is None:
        return unknown(f"no result about {template.name} on preference graphs")
    return _against(theorem, template.why_unsorted, example)


def _against(theorem: str | None, sentence: str, example: Counterexample | None) -> Verdict:
    """Return the verdict by a theorem (or none), and by a counterexample if there is one."""
    reference = "; ".join(filter(None, [theorem, _COUNTEREXAMPLE if example else None]))
    return Verdict("not calibrated", None, None, reference, sentence, example)


def _without_order(
    template: AbstractObjective, measure: AbstractMetric, seen: View | None
) -> Verdict:
    """Return the verdict for an objective that is not known to sort any utility."""
    if template.gradient == "frozen_weights":
        return unknown(
            f"the weights of {template.name} follow the ranking and count as constants, so it is "
            "the gradient of no fixed loss and nothing is proven about where it leads"
        )
    example = (
        known_for(template, measure)
        or kink_witness(template, measure)
        or comparison_witness(template, measure)
    )
    independent = given_independent(template, measure)
    of_relevance = _is_average_precision(measure) if seen is None else seen.form.gain == "step"
    if independent is not None and of_relevance:
        return replace(independent, counterexample=example)
    right = "" if independent is None else f"; it is right when {independent.condition}"
    theorem = _theorem_against(template, measure, seen)
    if example is None and theorem is None:
        return unknown(
            f"{template.name} is not known to sort any utility, and no counterexample is stored; "
            f"gbmrank check searches for one{right}"
        )
    return _against(theorem, f"{template.why_unsorted}{right}", example)


def _theorem_against(
    template: AbstractObjective, measure: AbstractMetric, seen: View | None
) -> str | None:
    """Return the theorem against comparison losses, which misorder even under low noise."""
    if not isinstance(template, Comparison) or template.weights != "none":
        return None
    shape = pair_shape(template.loss)
    if not (shape.proven and shape.convex and shape.slope < 0):
        return None
    disagrees = isinstance(measure, PairwiseDisagreement)
    if template.margin != 0.0:
        lead = template.margin == "weight" or float(template.margin) > 0
        return "Duchi et al. 2010, Thm 12" if lead and disagrees and seen is None else None
    if disagrees:
        return "Duchi et al. 2010, Thm 11"
    strict = seen is not None and bool(np.all(np.diff(seen.discounts(3)) < 0))
    return f"Duchi et al. 2010, Thm 11; {_C}, sec. 6" if strict else None
