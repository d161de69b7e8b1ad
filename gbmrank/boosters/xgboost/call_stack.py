"""What gbmrank reads of XGBoost's running functions; the only file that looks at its frames.

XGBoost may rename all of this at any time. Then trainings are "not known": checks and warnings of
trainings that a user runs are lost, but gradients stay the same. For a version in which a name is
gone, ``tests/boosters/test_call_stack.py`` fails.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from gbmrank.boosters.supervision import Training
from gbmrank.types import IntArray

UPDATING = "xgboost.core"  # Booster.update, in whose frame ``self`` is the model
TRAINING = "xgboost.training"  # train, which has ``params`` as the user gave them
AVERAGING = "xgboost.sklearn"  # ltr_metric_decorator, which has ``group_ptr``


def current_training() -> Training | None:
    """Return the Booster that is waiting for a gradient, or None if it is not known."""
    xgb = sys.modules.get("xgboost")
    if xgb is None or not hasattr(sys, "_getframe"):
        return None
    model: Any = None
    frame: Any = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if module == UPDATING and model is None:
            owner = frame.f_locals.get("self")
            model = owner if isinstance(owner, xgb.Booster) else None
        elif module == TRAINING and model is not None and "params" in frame.f_locals:
            return _as_training(model, frame.f_locals["params"])
        frame = frame.f_back
    return None if model is None else _as_training(model, None)


def averaged_sizes() -> IntArray | None:
    """Return the sizes of queries if ``XGBRanker`` is calling a metric; None if unknown.

    It calls the metric for each query, in threads, and averages with the sizes as weights.
    """
    frame: Any = sys._getframe(1) if hasattr(sys, "_getframe") else None
    while frame is not None:
        if frame.f_globals.get("__name__") == AVERAGING:
            ends = frame.f_locals.get("group_ptr")
            if frame.f_code.co_qualname.startswith("ltr_metric_decorator") and ends is not None:
                offsets: IntArray = np.asarray(ends, np.int64)
                return offsets[1:] - offsets[:-1]
        frame = frame.f_back
    return None


def _as_training(model: Any, given: Any) -> Training:
    return Training(
        model,
        lambda: _tree_parameters(model) if given is None else dict(given),
        lambda: float(sum(model.get_score(importance_type="weight").values())),
        bool,  # a DMatrix has no positions
    )


def _tree_parameters(model: Any) -> Mapping[str, Any]:
    """Return the tree parameters; a Booster does not expose its other parameters."""
    booster = json.loads(model.save_config())["learner"]["gradient_booster"]
    return booster.get("tree_train_param", {})
