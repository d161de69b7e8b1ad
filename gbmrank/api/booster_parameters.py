"""The booster parameters that an objective needs."""

from typing import Any, final

import numpy as np

from gbmrank.api.committees import ranking_objective
from gbmrank.api.objectives import Objective, objective
from gbmrank.boosters.settings import Setting
from gbmrank.boosters.supported import booster_named
from gbmrank.data.demonstration import demo_data
from gbmrank.errors import DataError, ParameterError


@final
class BoosterParams(dict[str, Any]):
    """A dict of booster parameters with the reason for each.

    ``reasons`` maps names to reasons. ``trees`` has only the parameters of a preset, for
    estimators, which set the parameters that an objective needs themselves.
    """

    def __init__(self, settings: tuple[Setting, ...], trees: tuple[Setting, ...] = ()) -> None:
        self.trees: dict[str, Any] = {setting.name: setting.value for setting in trees}
        super().__init__({setting.name: setting.value for setting in settings} | self.trees)
        self.reasons = {setting.name: setting.reason for setting in (*settings, *trees)}

    def __str__(self) -> str:
        return "\n".join(f"{name} = {self[name]!r}: {why}" for name, why in self.reasons.items())


def booster_params(spec: Any, backend: str, preset: str | None = None) -> BoosterParams:
    """Return the booster parameters that an objective needs.

    Parameters
    ----------
    spec : Objective or str
        The objective; with a preset also ``native:NAME`` or a committee.
    backend : {"lightgbm", "xgboost"}
        The booster.
    preset : {"robust"} or None, default=None
        ``"robust"`` adds parameters of the trees: small trees of sampled rows and columns, with
        leaf size and regularisation in units of the objective's curvature. They were chosen on
        two small data sets of judged searches and ratings; tune them if you have the time.

    Returns
    -------
    BoosterParams
        A dict to merge into the parameters. ``.reasons`` explains each; ``print`` shows both.
        ``.trees`` has only those of the preset: ``GBMRanker(objective, **params.trees)``.

    Examples
    --------
    >>> import gbmrank
    >>> params = gbmrank.booster_params("pairwise", "xgboost")
    >>> params["base_score"], params["disable_default_eval_metric"]
    (0.0, 1)
    >>> gbmrank.booster_params("committee", "lightgbm", preset="robust")["feature_fraction"]
    0.5
    """
    if preset not in (None, "robust"):
        raise ParameterError(f"preset must be 'robust' or None, got {preset!r}")
    booster = booster_named(backend)
    target = objective(spec) if preset is None else ranking_objective(spec)
    one = target if isinstance(target, Objective) else None
    needed = () if one is None else booster.settings(one.template.shift_invariant)
    if preset is None:
        return BoosterParams(needed)
    return BoosterParams(needed, booster.robust(None if one is None else _row_curvature(one)))


def _row_curvature(target: Objective) -> float | None:
    """Return the mean Hessian of a row of the demonstration data at equal scores.

    None if it is unknown, since preferences belong to other rows.
    """
    data = demo_data(n_queries=50, seed=0)
    scores = np.zeros(len(data.labels))
    for labels in (data.labels, np.where(data.labels > 1, 1.0, 0.0)):  # some take 0 and 1 alone
        try:
            return float(target.gradients(labels, scores, qid=data.qid)[1].mean())
        except DataError:
            continue
    return None
