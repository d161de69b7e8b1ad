"""Booster parameters that an objective needs, each with its reason."""

from typing import Any, final

from gbmrank.api.doors import backend_named
from gbmrank.api.objectives import objective
from gbmrank.backends.base import Setting

__all__ = ["BoosterParams", "booster_params"]


@final
class BoosterParams(dict[str, Any]):
    """A dict of booster parameters that knows the reason of each."""

    def __init__(self, settings: tuple[Setting, ...]) -> None:
        super().__init__({setting.name: setting.value for setting in settings})
        self.reasons = {setting.name: setting.reason for setting in settings}

    def __str__(self) -> str:
        return "\n".join(f"{name} = {self[name]!r}: {why}" for name, why in self.reasons.items())


def booster_params(spec: Any, backend: str) -> BoosterParams:
    """Return the parameters a booster should be given with an objective.

    Parameters
    ----------
    spec : Objective or str
        The objective.
    backend : {"lightgbm", "xgboost"}
        The booster.

    Returns
    -------
    BoosterParams
        A dict to merge into the parameters; ``.reasons`` says why, ``print`` shows both.

    Examples
    --------
    >>> import gbmrank
    >>> params = gbmrank.booster_params("pairwise", "xgboost")
    >>> params["base_score"], params["disable_default_eval_metric"]
    (0.0, 1)
    """
    return BoosterParams(backend_named(backend).settings(objective(spec).template.shift_invariant))
