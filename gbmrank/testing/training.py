"""Training and evaluation in the boosters, on a small task with a clear signal."""

import importlib.util
from typing import Any

import numpy as np

from gbmrank.api import Metric, Objective, booster_params
from gbmrank.testing.report import SkipCheck, fail_unless

__all__ = ["evaluates_in", "trains_in"]

_ROUNDS = 15
_CONCORDANT = 0.7  # of the pairs with different labels; chance is one half


def trains_in(booster: str, objective: Objective, grades: tuple[float, ...]) -> None:
    """Raise AssertionError unless a booster learns to order the task.

    Raises
    ------
    SkipCheck
        When the booster is not installed.
    """
    x, labels, sizes = _task(booster, grades)
    scores = _TRAIN[booster](objective, x, labels, sizes)
    fail_unless(np.isfinite(scores).all(), f"{booster} predicts scores that are not finite")
    share = _concordance(labels, scores, sizes)
    fail_unless(
        share >= _CONCORDANT,
        f"after {_ROUNDS} rounds {booster} orders {share:.0%} of the pairs of an easy task; "
        f"at least {_CONCORDANT:.0%} is expected (a sign, or a Hessian far too large?)",
    )
    if objective.template.gradient == "exact":
        before = objective.loss(labels, np.zeros(len(labels)), group=sizes)
        after = objective.loss(labels, scores, group=sizes)
        fail_unless(after < before, f"training in {booster} raises the loss: {before} to {after}")


def evaluates_in(booster: str, metric: Metric, grades: tuple[float, ...]) -> None:
    """Raise AssertionError unless a booster reports what :meth:`Metric.score` gives."""
    x, labels, sizes = _task(booster, grades)
    scores, shown = _EVALUATE[booster](metric, x, labels, sizes)
    expected = metric.score(labels, scores.astype(np.float32), group=sizes)
    fail_unless(
        np.isclose(shown, expected, rtol=1e-5, atol=1e-6),
        f"{booster} reports {shown} for its predictions, score() gives {expected}",
    )


def _task(booster: str, grades: tuple[float, ...]) -> tuple[Any, Any, Any]:
    if importlib.util.find_spec(booster) is None:
        raise SkipCheck(f"{booster} is not installed")
    rng = np.random.default_rng(3)
    sizes = rng.integers(4, 12, 40)
    x = rng.normal(size=(int(sizes.sum()), 4))
    signal = x[:, 0] + 0.5 * x[:, 1]
    cuts = np.quantile(signal, np.linspace(0, 1, len(grades) + 1)[1:-1])
    return x, np.array(grades)[np.digitize(signal, cuts)], sizes


def _lightgbm(objective: Objective, x: Any, labels: Any, sizes: Any) -> Any:
    import lightgbm

    data = lightgbm.Dataset(x, labels, group=sizes, free_raw_data=False)
    booster = lightgbm.train(
        {"objective": objective, **_LIGHTGBM, **booster_params(objective, "lightgbm")},
        data,
        _ROUNDS,
    )
    return booster.predict(x, raw_score=True)


def _xgboost(objective: Objective, x: Any, labels: Any, sizes: Any) -> Any:
    import xgboost

    data = xgboost.DMatrix(x, labels)
    data.set_group(sizes)
    params = {**_XGBOOST, **booster_params(objective, "xgboost")}
    booster = xgboost.train(params, data, _ROUNDS, obj=objective)
    return booster.predict(data, output_margin=True).astype(np.float64)


def _evaluate_lightgbm(metric: Metric, x: Any, labels: Any, sizes: Any) -> tuple[Any, float]:
    import lightgbm

    data = lightgbm.Dataset(x, labels, group=sizes, free_raw_data=False)
    shown: dict[str, Any] = {}
    booster = lightgbm.train(
        {"objective": "regression", "metric": "None", **_LIGHTGBM},
        data,
        3,
        valid_sets=[data],
        valid_names=["here"],
        feval=metric,
        callbacks=[lightgbm.record_evaluation(shown)],
    )
    return booster.predict(x, raw_score=True), shown["here"][metric.name_in("lightgbm")][-1]


def _evaluate_xgboost(metric: Metric, x: Any, labels: Any, sizes: Any) -> tuple[Any, float]:
    import xgboost

    data = xgboost.DMatrix(x, labels)
    data.set_group(sizes)
    shown: dict[str, Any] = {}
    booster = xgboost.train(
        {"objective": "reg:squarederror", "disable_default_eval_metric": True, **_XGBOOST},
        data,
        3,
        evals=[(data, "here")],
        custom_metric=metric,
        evals_result=shown,
        verbose_eval=False,
    )
    scores = booster.predict(data, output_margin=True).astype(np.float64)
    return scores, shown["here"][metric.name_in("xgboost")][-1]


def _concordance(labels: Any, scores: Any, sizes: Any) -> float:
    right, total, begin = 0.0, 0, 0
    for n in sizes.tolist():
        y, s = labels[begin : begin + n], scores[begin : begin + n]
        better = y[:, None] > y[None, :]
        lead = s[:, None] - s[None, :]
        right += float(((lead > 0) + 0.5 * (lead == 0))[better].sum())
        total += int(better.sum())
        begin += n
    return right / max(total, 1)


_LIGHTGBM = {
    "num_leaves": 7,
    "min_data_in_leaf": 5,
    "learning_rate": 0.2,
    "verbose": -1,
    "num_threads": 1,
    "deterministic": True,
    "seed": 0,
}
_XGBOOST = {"max_depth": 3, "eta": 0.2, "verbosity": 0, "nthread": 1, "seed": 0}
_TRAIN = {"lightgbm": _lightgbm, "xgboost": _xgboost}
_EVALUATE = {"lightgbm": _evaluate_lightgbm, "xgboost": _evaluate_xgboost}
