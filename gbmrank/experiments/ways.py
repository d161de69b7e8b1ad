"""Training of a system in folds.

``crossfit:OBJECTIVE`` trains on training and validation queries in folds, ``distilled:OBJECTIVE``
then trains one model with a quarter of the trees on the scores of that.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gbmrank.boosters.base import Part, Trained
from gbmrank.boosters.plan import Plan
from gbmrank.estimators import distil
from gbmrank.estimators.crossfit import CROSSFIT_FOLDS, fold_count, make_folds, train
from gbmrank.estimators.distillation import rounds_of, shared_params
from gbmrank.experiments.results import CROSSFIT, DISTILLED, split_name


def is_folded(name: str) -> bool:
    """Whether a system trains in folds, on validation queries too."""
    return split_name(name)[0] in (CROSSFIT, DISTILLED)


def folds_of(name: str, plan: Plan) -> int | None:
    """Return the number of folds of a system, or None without cross-fitting."""
    if not is_folded(name):
        return None
    return fold_count(None, plan.objective, plan.metric, 1, {}) or CROSSFIT_FOLDS


def train_in_folds(
    name: str, plan: Plan, part: Part, on_round: Callable[[int], None] | None
) -> Trained:
    """Cross-fit on all rows; a distilled system is the model that learns the scores."""
    count = folds_of(name, plan) or CROSSFIT_FOLDS
    folds = make_folds(count, plan.seed, plan.objective, part, (part.features, None, None, None))
    trained = train(plan, folds, part, {}, on_round)
    if split_name(name)[0] == CROSSFIT:
        return trained
    groups = part.data.groups
    student = distil(
        trained.scores(part.features),
        part.features,
        qid=groups.spread(np.arange(groups.n_queries)),
        backend=plan.backend,
        n_estimators=rounds_of(trained.fitted.n_rounds),
        seed=plan.seed,
        n_jobs=plan.threads,
        **shared_params(plan.backend, plan.params, {}),
    )
    return replace(trained, fitted=student._fitted, best_round=student.best_iteration_)
