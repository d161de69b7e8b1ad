"""What scikit-learn expects of an estimator, without importing scikit-learn."""

import inspect
from typing import Any, TypeVar

from gbmrank.errors import ConfigError, ParameterError

__all__ = ["AbstractEstimator"]

E = TypeVar("E", bound="AbstractEstimator")


class AbstractEstimator:
    """Parameters by name: those of ``__init__`` and any others, which go to the booster.

    A subclass stores every named parameter under its name and the rest in
    ``_booster_params``; what is learned ends in an underscore.
    """

    _booster_params: dict[str, Any]

    @classmethod
    def _names(cls) -> list[str]:
        parameters = inspect.signature(cls).parameters.values()
        return [p.name for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters, those of the booster included."""
        return {name: getattr(self, name) for name in self._names()} | self._booster_params

    def set_params(self: E, **params: Any) -> E:
        """Set parameters by name; unknown names go to the booster."""
        names = self._names()
        for name, value in params.items():
            if "__" in name:
                raise ParameterError(f"{type(self).__name__} has no nested parameter {name!r}")
            if name in names:
                setattr(self, name, value)
            else:
                self._booster_params[name] = value
        return self

    def _check_fitted(self, attribute: str) -> None:
        if not hasattr(self, attribute):
            raise ConfigError(f"this {type(self).__name__} is not trained yet; call fit first")

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        given = {
            name: value
            for name, value in self.get_params().items()
            if name not in defaults or defaults[name].default is not value
        }
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in given.items())})"

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags; only called by scikit-learn."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(allow_nan=True),
        )
