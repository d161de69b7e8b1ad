"""What would make an objective right for a positional metric: tried out, not guessed."""

from dataclasses import fields, replace
from typing import Any

from gbmrank.metrics import AbstractMetric, PairwiseDisagreement
from gbmrank.objectives import AbstractObjective
from gbmrank.theory.match import sorts_alike
from gbmrank.theory.order import preserved_order
from gbmrank.theory.parts import cut_off, text_of
from gbmrank.theory.views import view
from gbmrank.utilities import AbstractUtility

__all__ = ["remedy"]

_OF_TARGETS = ("threshold", "max_grade")


def remedy(template: AbstractObjective, measure: AbstractMetric) -> str:
    """Return what helps, for an objective that sorts another utility than a metric asks for.

    Parameters
    ----------
    template : AbstractObjective
        An objective that sorts an expected utility.
    measure : AbstractMetric
        A metric of the positional family.

    Examples
    --------
    >>> from gbmrank.theory.parts import as_metric, as_objective
    >>> remedy(as_objective("pairwise(target=dcg)"), as_metric("ndcg@10"))
    'set target=ndcg@10'
    >>> remedy(as_objective("linear"), as_metric("pairwise_disagreement"))
    'it is right for pairwise_disagreement(normalize=false)'
    """
    from gbmrank.theory.advice import target_for  # it asks for verdicts, which ask for this

    target = target_for(measure)
    changed = _aimed(template, target)
    if changed is not None and _right(changed, measure):
        return f"set target={text_of(target)}{_without(template)}"
    if isinstance(measure, PairwiseDisagreement) and measure.normalize:
        raw = replace(measure, normalize=False)
        if _right(template, raw):
            return f"it is right for {text_of(raw)}"
        if changed is not None and _right(changed, raw):
            return f"with target={text_of(target)} it is right for {text_of(raw)}"
    no_target = f"{template.name} takes no target; " if changed is None else ""
    return f"{no_target}gbmrank advise {text_of(measure)} names objectives that may do"


def _aimed(template: Any, target: AbstractUtility) -> Any | None:
    """Return an objective with another target, in all its parts; None where it takes none.

    Options that were for the old target go with it: the new one has its own.
    """
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


def _without(template: Any) -> str:
    given = _options(template)
    return f" and leave out {' and '.join(given)}" if given else ""


def _right(template: AbstractObjective, measure: AbstractMetric) -> bool:
    seen, preserved = view(measure), preserved_order(template)
    if seen is None or preserved is None:
        return False
    cut_offs = [cut_off(each) for each in (measure, getattr(template, "target", None)) if each]
    known = tuple(sorted({k for k in cut_offs if k is not None}))
    return sorts_alike(preserved.utilities, seen.utilities, known).alike
