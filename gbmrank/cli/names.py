"""Names in the wrong place: what they are, and where they can be used."""

import contextlib
import re

from gbmrank.errors import GbmrankError, ParameterError, SpecError, UnknownNameError
from gbmrank.registry.catalogue import GENERATORS, LOSSES, OBJECTIVES
from gbmrank.registry.composition import build
from gbmrank.registry.spec import parse, parse_list

__all__ = ["check_no_loss", "check_not_native", "check_one_metric", "objective_with"]

_TEMPLATES = ("pairwise", "pointwise", "bregman", "comparison")
_NATIVE = "native:"


def check_not_native(name: str) -> None:
    """Refuse a booster's own objective, which has no verdict."""
    if name.strip().startswith(_NATIVE):
        raise UnknownNameError(
            f"{name} is an objective of a booster; gbmrank has no formula of it and so no verdict. "
            "It can be trained: gbmrank compare --objectives, GBMRanker(objective=...)"
        )


def check_no_loss(name: str) -> None:
    """Refuse a loss where an objective is needed, and say which objective has it."""
    bare = re.split(r"[(@]", name, maxsplit=1)[0].strip()
    if bare in OBJECTIVES or not (bare in LOSSES or bare in GENERATORS):
        return
    found = objective_with(name.strip())
    hint = "" if found is None else f"; try {found}"
    raise UnknownNameError(f"{name} is a loss, and an objective is needed{hint}")


def objective_with(loss: str) -> str | None:
    """Return the text of an objective that takes a loss, or None.

    Examples
    --------
    >>> objective_with("logistic")
    'pairwise(loss=logistic)'
    """
    for template in _TEMPLATES:
        text = f"{template}(loss={loss})"
        with contextlib.suppress(GbmrankError):
            build(OBJECTIVES, text)
            return text
    return None


def check_one_metric(text: str) -> None:
    """Refuse several metrics where one is needed."""
    with contextlib.suppress(SpecError):
        parse(text)
        return
    for listed in (text, ", ".join(text.split())):
        with contextlib.suppress(SpecError):
            names = [str(one) for one in parse_list(listed)]
            raise ParameterError(
                f"one metric at a time, got {text!r}; ask for each alone: {' and '.join(names)}"
            )
