"""What gbmrank reads of LightGBM's running functions; the only file that looks at its frames.

LightGBM may rename all of this at any time. Then trainings are "not known": checks and warnings of
trainings that a user runs are lost, and so is the repeatable dart, but gradients stay the same.
For a version in which a name is gone, ``tests/boosters/test_call_stack.py`` fails.
"""

import sys
from typing import Any

from gbmrank.boosters.supervision import Training

UPDATING = "lightgbm.basic"  # Booster.update, in whose frame ``self`` is the model
TRAINING = "lightgbm.engine"  # train, which knows whether the training set is evaluated


def current_training() -> Training | None:
    """Return the Booster that is waiting for a gradient, or None if it is not known."""
    lgb = sys.modules.get("lightgbm")
    if lgb is None or not hasattr(sys, "_getframe"):
        return None
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == UPDATING:
            model = frame.f_locals.get("self")
            if isinstance(model, lgb.Booster):
                return _as_training(model)
        frame = frame.f_back
    return None


def evaluates_training_set() -> bool:
    """Whether ``lightgbm.train``, which is calling, evaluates the training set; False if unknown.

    LightGBM reads the argument ``valid_sets`` into this variable and keeps it nowhere else.
    """
    frame: Any = sys._getframe(1) if hasattr(sys, "_getframe") else None
    while frame is not None:
        if frame.f_globals.get("__name__") == TRAINING:
            return frame.f_locals.get("is_valid_contain_train") is True
        frame = frame.f_back
    return False


def _as_training(model: Any) -> Training:
    return Training(
        model,
        lambda: model.params,
        lambda: float(model.feature_importance("split").sum()),
        lambda: model.train_set.get_field("position") is not None,
        bool(model.params.get("bagging_by_query")),  # also reset_parameter can set it
    )
