"""Training of what a ranker may minimise: one objective, or a committee of several."""

from collections.abc import Callable, Mapping
from typing import Any

from gbmrank.api.committees import Committee
from gbmrank.boosters import plan as plans
from gbmrank.boosters.base import Trained
from gbmrank.boosters.plan import Engine, Plan
from gbmrank.estimators import committee


def train(
    plan: Plan,
    data: Any,
    valid: Mapping[str, Any] | None = None,
    on_round: Callable[[int], None] | None = None,
    engine: Engine | None = None,
) -> Trained:
    """Train by a plan, on this machine unless an engine is given."""
    several = isinstance(plan.objective, Committee)
    return (committee.train if several else plans.train)(plan, data, valid, on_round, engine)
