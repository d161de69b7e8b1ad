"""What scikit-learn expects of an estimator, without importing scikit-learn.

Deriving from ``sklearn.base.BaseEstimator`` would make scikit-learn a condition for importing
gbmrank, and its parameters may not be open-ended as those of a booster are. The protocol is
small: parameters by name, tags, and which metadata each method wants.
"""

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np

from gbmrank.backends.tables import column_names
from gbmrank.errors import ConfigError, MissingPackageError, ParameterError
from gbmrank.estimators.columns import check_names

__all__ = ["AbstractEstimator"]

E = TypeVar("E", bound="AbstractEstimator")


class AbstractEstimator:
    """Parameters by name: those of ``__init__`` and any others, which go to the booster.

    A subclass stores every named parameter under its name and the rest in
    ``_booster_params``; what is learned ends in an underscore. ``_requests`` says which
    arguments scikit-learn hands on to which method when it routes metadata.
    """

    _booster_params: dict[str, Any]
    _requests: ClassVar[Mapping[str, Mapping[str, bool | None]]] = {
        "fit": {"qid": True},
        "score": {"qid": True},
    }

    @classmethod
    def _names(cls) -> list[str]:
        parameters = inspect.signature(cls).parameters.values()
        return [p.name for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters, those of the booster included.

        Parameters
        ----------
        deep : bool, default=True
            Whether parameters of parameters are listed too, as ``objective__loss``.
        """
        own = {name: getattr(self, name) for name in self._names()} | self._booster_params
        return own | self._nested_params() if deep else own

    def set_params(self: E, **params: Any) -> E:
        """Set parameters by name; unknown names go to the booster."""
        names = self._names()
        for name, value in params.items():
            if "__" in name:
                continue  # after the parameters they are part of
            if name in names:
                setattr(self, name, value)
            else:
                self._booster_params = {**self._booster_params, name: value}  # copies share it
        for name, value in params.items():
            outer, _, path = name.partition("__")
            if path:
                self._set_nested(outer, path, value)
        return self

    def _nested_params(self) -> dict[str, Any]:
        return {}

    def _set_nested(self, outer: str, path: str, value: Any) -> None:
        raise ParameterError(f"{type(self).__name__} has no nested parameter '{outer}__{path}'")

    def get_metadata_routing(self) -> Any:
        """Return which metadata the methods want; scikit-learn asks for it."""
        made = vars(self).get("_metadata_request")
        return self._get_default_requests() if made is None else made

    def set_fit_request(self: E, **wanted: bool | str | None) -> E:
        """Say which metadata ``fit`` wants when scikit-learn routes it, such as ``qid=True``."""
        return self._set_request("fit", wanted)

    def set_score_request(self: E, **wanted: bool | str | None) -> E:
        """Say which metadata ``score`` wants when scikit-learn routes it."""
        return self._set_request("score", wanted)

    def _set_request(self: E, method: str, wanted: Mapping[str, bool | str | None]) -> E:
        made = self.get_metadata_routing()
        for name, alias in wanted.items():
            if name not in self._requests[method]:
                known = ", ".join(self._requests[method])
                raise TypeError(f"{method} takes no metadata {name!r}; it takes {known}")
            getattr(made, method).add_request(param=name, alias=alias)
        self._metadata_request = made  # scikit-learn's clone copies it under this name
        return self

    def _get_default_requests(self) -> Any:  # scikit-learn before 1.8 calls it by this name
        try:
            from sklearn.utils.metadata_routing import MetadataRequest
        except ImportError as error:
            raise MissingPackageError(
                "routing metadata needs scikit-learn: pip install 'gbmrank[sklearn]'"
            ) from error
        made = MetadataRequest(owner=type(self).__name__)
        for method, names in self._requests.items():
            for name, alias in names.items():
                getattr(made, method).add_request(param=name, alias=alias)
        return made

    def _check_fitted(self, attribute: str) -> None:
        if not hasattr(self, attribute):
            raise ConfigError(f"this {type(self).__name__} is not trained yet; call fit first")

    def _keep_names(self, names: list[str] | None) -> None:
        """Remember the names of the columns of the training, where they had any."""
        vars(self).pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _check_names(self, table: Any, what: str) -> None:
        """Raise unless columns have the names of the training, in its order."""
        known = vars(self).get("feature_names_in_")
        check_names(what, column_names(table), None if known is None else list(known))

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        given = {
            name: value
            for name, value in self.get_params(deep=False).items()
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
