"""Is an objective calibrated for a metric? Derived from their parts, not from their names.

Where the answer is no, a distribution shows it: :func:`order_witness` and :func:`kink_witness`
find one without minimising anything large, and :func:`remedy` says what would help, tried out,
not guessed.
"""

import functools
import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np

from gbmrank.data.queries import RankingData
from gbmrank.errors import CalibrationWarning, GbmrankError, NumericError
from gbmrank.losses import Hinge
from gbmrank.losses.utilities import AbstractUtility, IdentityUtility, RecallUtility
from gbmrank.metrics import AUC, ERR, MAP, AbstractMetric, PairwiseDisagreement
from gbmrank.objectives import AbstractObjective
from gbmrank.objectives.levels import Bipartite, Comparison
from gbmrank.objectives.pairwise import Pairwise
from gbmrank.objectives.value_linear import Linear
from gbmrank.registry.composition import as_metric, as_objective, cut_off, text_of
from gbmrank.theory.counterexamples import Counterexample, known_for
from gbmrank.theory.distributions import Distribution, all_orders, pair_risk
from gbmrank.theory.minimise import Nature, minimise, minimise_in_tiers
from gbmrank.theory.shapes import pair_shape
from gbmrank.theory.verdicts.order import (
    DOMAINS,
    Alike,
    Domain,
    Preserved,
    disagreement,
    label_vectors,
    preserved_order,
    sorts_alike,
)
from gbmrank.theory.verdicts.verdict import (
    AbstractCondition,
    BinaryLabels,
    DegreeCondition,
    IndependentLabels,
    MaxItems,
    Reinforcement,
    Verdict,
)
from gbmrank.theory.views import View, order_value, view
from gbmrank.types import FloatArray

__all__ = ["calibration", "warn_if_not_calibrated"]

_OF_TARGETS = ("threshold", "max_grade")
Utilities = Callable[[RankingData], FloatArray]
_SUPPORT = 3
_MARGIN = 1e-4
_MIXTURES = 4000
_ENOUGH = 400  # mixtures after which the first good example will do
_C = "Calauzenes et al. 2013"
_COUNTEREXAMPLE = "counterexample, verified numerically"
_FAIR_TIES = ("mean", "index")
_NATIVE = "native:"
_warned: set[tuple[str, str]] = set()  # a grid trains one pair many times


def calibration(objective: Any, metric: Any, *, graphs: bool | None = None) -> Verdict:
    """Say whether minimising an objective maximises a metric.

    Parameters
    ----------
    objective : Objective, template or str
        What is minimised; ``unknown`` is the answer for a booster's own, ``native:NAME``.
    metric : Metric, measure or str
        What should be best.
    graphs : bool or None, default=None
        Whether preferences are given as graphs instead of labels, for pairwise
        disagreement; by default, whether the objective or the metric holds some.

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
    if _is_native(objective):
        as_metric(metric)
        return _unknown(
            f"{objective} is the booster's own objective: it follows the gradient of no published "
            "loss, or samples pairs, so no theorem applies"
        )
    template, measure = as_objective(objective), as_metric(metric)
    if graphs is None:
        graphs = any(getattr(part, "preferences", None) is not None for part in (template, measure))
    return _on_graphs(template, measure) if graphs else _calibration(template, measure)


def warn_if_not_calibrated(objective: Any, metric: Any, *, stacklevel: int = 2) -> Verdict:
    """Warn, once per pair, when an objective is known to be wrong for a metric.

    For whoever stops training early by a metric: a loss that is not calibrated for it may
    move away from its best value while it is still being minimised. The warning names an
    objective that is right for the metric, where there is one.

    Parameters
    ----------
    objective, metric : object
        As for :func:`calibration`.
    stacklevel : int, default=2
        Whose line is shown, as for ``warnings.warn``.

    Returns
    -------
    Verdict
        What :func:`calibration` says.
    """
    verdict = calibration(objective, metric)
    if verdict.status != "not calibrated":
        return verdict
    pair = text_of(as_objective(objective)), text_of(as_metric(metric))
    if pair not in _warned:
        _warned.add(pair)
        right = _right_for(metric)
        known = f"{right} is; " if right is not None else ""
        message = (
            f"{pair[0]} is not calibrated for {pair[1]}: {verdict.sentence}; {known}see "
            f"gbmrank advise {pair[1]}"
        )
        warnings.warn(message, CalibrationWarning, stacklevel=stacklevel + 1)
    return verdict


def remedy(template: AbstractObjective, measure: AbstractMetric) -> str:
    """Return what helps, for an objective that sorts another utility than a metric asks for."""
    from gbmrank.theory.verdicts.advice import target_for

    target = target_for(measure)
    changed = _aimed(template, target)
    if changed is not None and _right(changed, measure):
        given = _options(template)
        without = f" and leave out {' and '.join(given)}" if given else ""
        return f"set target={text_of(target)}{without}"
    if isinstance(measure, PairwiseDisagreement) and measure.normalize:
        raw = replace(measure, normalize=False)
        if _right(template, raw):
            return f"it is right for {text_of(raw)}"
        if changed is not None and _right(changed, raw):
            return f"with target={text_of(target)} it is right for {text_of(raw)}"
    no_target = f"{template.name} takes no target; " if changed is None else ""
    return f"{no_target}gbmrank advise {text_of(measure)} names objectives that may do"


def order_witness(
    template: AbstractObjective,
    measure: AbstractMetric,
    utilities: Utilities,
    domain: Domain | None,
) -> Counterexample | None:
    """Return a distribution whose expected utilities are sorted in a suboptimal order."""
    seen = view(measure)
    if seen is not None and domain is not None:
        for n in (3, 4, *(k + 1 for k in _cut_offs(template, measure) if k >= 3)):
            for labels, p in disagreement(utilities, seen.utilities, domain, n):
                example = _judged(Distribution(labels, p), template, measure, utilities)
                if example is not None:
                    return example
        return None
    for each in reversed(DOMAINS):
        for n in (3, 4):
            found = _enumerated(template, measure, utilities, each, n)
            if found is not None:
                return found
    return None


def expected_utilities(distribution: Distribution, utilities: Utilities) -> FloatArray:
    """Return the expectation of utilities, undefined ones counting zero."""
    return distribution.probabilities @ _utility_rows(distribution.labels, utilities)


def kink_witness(template: Pairwise, measure: AbstractMetric) -> Counterexample | None:
    """Return a distribution on which a loss with a kink ties items that should not tie.

    One item is useful at a time, with probabilities 1/2, 3/10 and 1/5: the minimiser of the
    hinge is (1, 0, 0) up to a constant. It counts when the best order costs more as soon as
    items are a thousandth apart.
    """
    seen, weights = view(measure), np.array([0.5, 0.3, 0.2])
    distribution = Distribution(np.eye(3), weights)
    if seen is None or not pair_shape(template.loss).convex:
        return None
    nature = Nature(shift_invariant=True, smooth=False, whole=template.loss == Hinge())
    try:
        sorted_by = expected_utilities(distribution, template.target.values)
        wanted = distribution.expected_utilities(measure)
        pairs = np.outer(np.maximum(sorted_by, 0.0), np.ones(3)) * (1.0 - np.eye(3))
        risk = pair_risk(template.loss.kappa, template.loss.params, pairs)
        found = minimise(risk, 3, nature)
        order = np.argsort(-wanted, kind="stable")
        apart = minimise_in_tiers(risk, tuple((int(i),) for i in order), found.scores, nature, 1e-3)
    except (ValueError, NumericError):  # labels that the target does not take, or no minimum
        return None
    if not found.attained or apart - found.value < 1e-5 * abs(found.value):
        return None
    phi = seen.discounts(3)
    regret = order_value(wanted, phi, wanted) - order_value(wanted, phi, found.scores)
    if regret <= _MARGIN * np.abs(wanted).max():
        return None
    return _example(distribution, template, measure, (found.scores, regret, order))


def _aimed(template: Any, target: AbstractUtility) -> Any | None:
    """Return an objective with another target, without the old one's options, or None."""
    known = {field.name for field in fields(template)}
    if "target" in known:
        return replace(template, target=target, **dict.fromkeys(_options(template)))
    if "parts" not in known:
        return None
    parts = [_aimed(part, target) for part in template.parts]
    return None if None in parts else replace(template, parts=tuple(parts))


def _options(template: Any) -> list[str]:
    """Return the options of the target that a template was given."""
    return [name for name in _OF_TARGETS if getattr(template, name, None) is not None]


def _right(template: AbstractObjective, measure: AbstractMetric) -> bool:
    seen, preserved = view(measure), preserved_order(template)
    if seen is None or preserved is None:
        return False
    cut_offs = _cut_offs(template, measure)
    return sorts_alike(preserved.utilities, seen.utilities, cut_offs).alike


def _utility_rows(vectors: FloatArray, utilities: Utilities) -> FloatArray:
    m, n = vectors.shape
    data = RankingData.from_arrays(vectors.ravel(), group=[n] * m)
    return np.nan_to_num(utilities(data), nan=0.0).reshape(m, n)


def _judged(
    distribution: Distribution,
    template: AbstractObjective,
    measure: AbstractMetric,
    utilities: Utilities,
) -> Counterexample | None:
    """Compare the order by these utilities with the best one of a positional metric."""
    seen = view(measure)
    sorted_by = expected_utilities(distribution, utilities)
    wanted = distribution.expected_utilities(measure)
    phi = np.ones(0) if seen is None else seen.discounts(distribution.n_items)
    best = order_value(wanted, phi, wanted)
    regret = best - order_value(wanted, phi, sorted_by)
    if regret <= _MARGIN * max(abs(best), 1e-9):
        return None
    order = np.argsort(-wanted, kind="stable")
    return _example(distribution, template, measure, (sorted_by, regret, order))


def _enumerated(
    template: AbstractObjective,
    measure: AbstractMetric,
    utilities: Utilities,
    domain: Domain,
    n: int,
) -> Counterexample | None:
    """Go through small mixtures of label vectors; every order of the items is tried."""
    if len(domain.grades) ** n > 700:
        return None
    vectors = np.array(list(itertools.product(domain.grades, repeat=n)))
    uniform = Distribution(vectors, np.ones(len(vectors)))
    orders = all_orders(n)
    ranks = np.argsort(orders, axis=1)
    try:
        values = uniform.order_values(measure, -ranks.astype(np.float64))
        table = _utility_rows(vectors, utilities)
    except (GbmrankError, ValueError):
        return None
    keep = np.flatnonzero(~np.isnan(values).any(axis=1))
    sign = 1.0 if measure.higher_is_better else -1.0
    best: tuple[float, Distribution, FloatArray, FloatArray] | None = None
    for tried, (rows, p) in enumerate(_mixtures(keep)):
        if best is not None and tried >= _ENOUGH:
            break
        expected, u = sign * (p @ values[rows]), p @ table[rows]
        if len(np.unique(u.round(9))) < n:
            continue
        mine = int(np.flatnonzero((orders == np.argsort(-u)).all(axis=1))[0])
        regret = float(expected.max() - expected[mine])
        if regret > _MARGIN and (best is None or regret > best[0] + 1e-9):
            best = regret, Distribution(vectors[rows], p), u, orders[int(expected.argmax())]
    return (
        None if best is None else _example(best[1], template, measure, (best[2], best[0], best[3]))
    )


def _mixtures(rows: np.ndarray) -> Iterator[tuple[list[int], FloatArray]]:
    """Yield a fixed sample of mixtures of two and three label vectors."""
    rng = np.random.default_rng(0)
    for _ in range(_MIXTURES):
        size = int(rng.integers(2, _SUPPORT + 1))
        if len(rows) < size:
            return
        parts = rng.choice(np.arange(1, 10), size=size)
        chosen = rng.choice(rows, size=size, replace=False)
        yield chosen.tolist(), parts / parts.sum()


def _example(
    distribution: Distribution,
    template: AbstractObjective,
    measure: AbstractMetric,
    found: tuple[FloatArray, float, np.ndarray],
) -> Counterexample:
    scores, regret, order = found
    return Counterexample(
        text_of(template),
        text_of(measure),
        tuple(tuple(float(y) for y in row) for row in distribution.labels),
        tuple(float(f"{p:.6g}") for p in distribution.probabilities),
        tuple(float(f"{s:.6g}") for s in scores),
        float(regret),
        None,
        tuple(int(i) for i in order),
    )


def _is_native(objective: Any) -> bool:
    """Whether a text, or what prints as one, names an objective of a booster."""
    if isinstance(objective, AbstractObjective) or hasattr(objective, "template"):
        return False
    return str(objective).strip().startswith(_NATIVE)


def _right_for(metric: Any) -> str | None:
    """Return the pairwise objective with the metric as its target, where it is calibrated."""
    try:
        made = as_objective(f"pairwise(target={text_of(as_metric(metric))})")
    except GbmrankError:  # a metric without a utility
        return None
    return text_of(made) if calibration(made, metric).status == "calibrated" else None


@functools.lru_cache(maxsize=1024)
def _calibration(template: AbstractObjective, measure: AbstractMetric) -> Verdict:
    if measure.ties not in _FAIR_TIES:
        return _unknown(f"ties={measure.ties} rewards or punishes ties, which theory leaves out")
    seen, preserved = view(measure), preserved_order(template)
    if seen is not None and _constant_discounts(seen, measure):
        sentence = f"every order has the same {measure.name}, so every loss is calibrated for it"
        return Verdict("calibrated", None, None, "by definition", sentence)
    if preserved is None:
        return _without_order(template, measure, seen)
    if seen is not None:
        return _positional(template, measure, preserved, seen)
    return _other_measure(template, measure, preserved)


def _positional(
    template: AbstractObjective, measure: AbstractMetric, preserved: Preserved, seen: View
) -> Verdict:
    alike = sorts_alike(preserved.utilities, seen.utilities, _cut_offs(template, measure))
    if alike.alike and alike.domain is not None:
        sentence = (
            f"minimisers are sorted like the expected utility of {measure.name}, which is the best "
            f"order ({alike.domain.words})"
        )
        return Verdict("calibrated", None, preserved.constant, preserved.reference, sentence)
    condition = _narrower(alike)
    if condition is not None:
        sentence = (
            f"it sorts another utility than {measure.name} asks for, but the two agree when "
            f"{condition}"
        )
        return Verdict("conditional", condition, preserved.constant, preserved.reference, sentence)
    if isinstance(measure, AUC) and _sorts_relevance(preserved, measure):
        return _by_relevance(measure, preserved)
    if alike.domain is None:
        return _unknown("the objective and the metric do not take the same labels")
    example = known_for(template, measure) or order_witness(
        template, measure, preserved.utilities, alike.domain
    )
    if example is None:
        return _unknown("it sorts another utility, and no distribution was found where that costs")
    sentence = (
        f"its minimisers sort another expected utility than {measure.name} asks for; "
        f"{remedy(template, measure)}"
    )
    reference = f"{_C}, Thm 3.2 (converse); {_COUNTEREXAMPLE}"
    return Verdict("not calibrated", None, None, reference, sentence, example)


def _sorts_relevance(preserved: Preserved, measure: AUC) -> bool:
    """Whether 0/1 labels themselves are sorted, so that scores rise with P(y = 1)."""
    if measure.threshold is not None and not 0 < measure.threshold <= 1:
        return False
    alike = sorts_alike(preserved.utilities, IdentityUtility().values)
    return alike.on_binary or (alike.alike and alike.domain is not None)


def _by_relevance(measure: AbstractMetric, preserved: Preserved) -> Verdict:
    """Scores that increase with the probability of relevance are best for AUC."""
    condition, menon = IndependentLabels(), "; Menon and Williamson 2014"
    sentence = (
        "its minimisers are sorted like the probability of relevance, which is best for "
        f"{measure.name} when {condition}"
    )
    reference = f"{preserved.reference.removesuffix(menon)}{menon}, Prop. 6 and Cor. 7"
    return Verdict("conditional", condition, None, reference, sentence)


def _narrower(alike: Alike) -> AbstractCondition | None:
    if alike.up_to is not None:
        return MaxItems(alike.up_to)
    return BinaryLabels() if alike.on_binary else None


def _other_measure(
    template: AbstractObjective, measure: AbstractMetric, preserved: Preserved
) -> Verdict:
    """Measures outside the positional family, under a loss that sorts a utility."""
    if isinstance(measure, MAP) and measure.k is None:
        shares = RecallUtility(threshold=measure.threshold).values
        if sorts_alike(preserved.utilities, shares).alike:
            condition = Reinforcement()
            sentence = f"sorting E[y/P] is best for average precision when {condition}"
            reference = "Ramaswamy et al. 2013, Thm 4 and Cor. 5"
            return Verdict("conditional", condition, None, reference, sentence)
    example = known_for(template, measure) or order_witness(
        template, measure, preserved.utilities, None
    )
    if example is None:
        return _unknown(f"no result about {measure.name} and losses that sort a utility")
    theorem = f"{_C}, Thm 3.3; " if isinstance(measure, ERR | MAP) else ""
    sentence = (
        f"the best order for {measure.name} is not that of any expected utility: what an item is "
        "worth depends on the items above it"
    )
    return Verdict("not calibrated", None, None, theorem + _COUNTEREXAMPLE, sentence, example)


def _on_graphs(template: AbstractObjective, measure: AbstractMetric) -> Verdict:
    """Preference graphs: the linear loss sorts net degrees, comparisons misorder."""
    if not isinstance(measure, PairwiseDisagreement):
        return _unknown(f"{measure.name} needs labels")
    if isinstance(template, Linear) and not measure.normalize:
        condition = DegreeCondition()
        sentence = f"its minimisers sort net degrees, which is best when {condition}"
        reference = "Duchi et al. 2010, Thm 13 and Cor. 15"
        return Verdict("conditional", condition, None, reference, sentence)
    example = known_for(template, measure, graphs=True)
    theorem = _theorem_against(template, measure, None)
    if example is None and theorem is None:
        return _unknown(f"no result about {template.name} on preference graphs")
    reference = "; ".join(filter(None, [theorem, _COUNTEREXAMPLE if example else None]))
    return Verdict("not calibrated", None, None, reference, _why_not(template), example)


def _without_order(
    template: AbstractObjective, measure: AbstractMetric, seen: View | None
) -> Verdict:
    """Objectives that are not known to sort any utility."""
    if template.gradient == "frozen_weights":
        return _unknown(
            f"the weights of {template.name} follow the ranking and count as constants, so it is "
            "the gradient of no fixed loss and nothing is proven about where it leads"
        )
    if isinstance(template, Bipartite) and seen is not None and _independence_helps(template, seen):
        condition_2 = IndependentLabels()
        sentence = f"its minimiser is the log-odds of relevance up to scale when {condition_2}"
        reference = "Menon and Williamson 2014, Prop. 8 and Cor. 9"
        return Verdict("conditional", condition_2, None, reference, sentence)
    example = known_for(template, measure)
    if example is None and isinstance(template, Pairwise) and not template.loss.differentiable:
        example = kink_witness(template, measure)
    theorem = _theorem_against(template, measure, seen)
    if example is None and theorem is None:
        return _unknown(
            f"{template.name} is not known to sort any utility, and no counterexample is stored; "
            "gbmrank check searches for one"
        )
    sentence = _why_not(template)
    reference = "; ".join(filter(None, [theorem, _COUNTEREXAMPLE if example else None]))
    return Verdict("not calibrated", None, None, reference, sentence, example)


def _theorem_against(
    template: AbstractObjective, measure: AbstractMetric, seen: View | None
) -> str | None:
    """Comparing labels pair by pair with a convex loss misorders, even under low noise."""
    if not isinstance(template, Comparison) or template.weights != "none":
        return None
    if not pair_shape(template.loss).convex or pair_shape(template.loss).slope >= 0:
        return None
    if template.margin != 0.0:
        lead = isinstance(template.margin, int | float) and template.margin > 0
        raw = isinstance(measure, PairwiseDisagreement) and not measure.normalize
        return "Duchi et al. 2010, Thm 12" if lead and raw and seen is None else None
    if isinstance(measure, PairwiseDisagreement) and not measure.normalize:
        return "Duchi et al. 2010, Thm 11"
    strict = seen is not None and bool(np.all(np.diff(seen.discounts(3)) < 0))
    return f"Duchi et al. 2010, Thm 11; {_C}, sec. 6" if strict else None


def _why_not(template: AbstractObjective) -> str:
    if isinstance(template, Comparison | Bipartite):
        return (
            "it counts how often an item wins a comparison, not what it is worth: an item that "
            "often wins narrowly beats one that is worth more"
        )
    if isinstance(template, Pairwise):
        return f"the kink of {template.loss.name} makes it tie items of different expected utility"
    return f"{template.name} does not sort the expected utility of the metric"


def _independence_helps(template: Bipartite, seen: View) -> bool:
    """Whether a positional metric of 0/1 labels always prefers the likelier item."""
    at_one = template.threshold is None or 0 < template.threshold <= 1
    if pair_shape(template.loss).rate is None or not at_one:
        return False
    binary = DOMAINS[-1]
    for n in (2, 3, 4):
        vectors = label_vectors(binary, n)
        for vector in vectors:
            u = seen.utilities(RankingData.from_arrays(vector))
            ones, zeros = u[vector == 1], u[vector == 0]
            if np.isnan(u).any() or not len(ones) or not len(zeros):
                continue
            if np.ptp(ones) > 1e-12 or np.ptp(zeros) > 1e-12 or ones[0] <= zeros[0]:
                return False
    return True


def _constant_discounts(seen: View, measure: AbstractMetric) -> bool:
    lengths = {2, 3, 8, *(k + 1 for k in (cut_off(measure),) if k is not None)}
    return all(float(np.ptp(seen.discounts(n))) == 0.0 for n in lengths)


def _cut_offs(template: AbstractObjective, measure: AbstractMetric) -> tuple[int, ...]:
    parts = getattr(template, "parts", (template,))
    targets = [part.target for part in parts if hasattr(part, "target")]
    cuts = [cut_off(each) for each in (*targets, measure)]
    return tuple(sorted({k for k in cuts if k is not None}))


def _unknown(sentence: str) -> Verdict:
    return Verdict("unknown", None, None, "none of the papers", sentence)
