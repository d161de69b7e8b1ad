"""What a model file says about itself, besides its trees."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, final

from gbmrank.errors import DataError
from gbmrank.estimators.columns import Columns

__all__ = ["Identity"]

_SCHEMA = 1


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Identity:
    """Everything but the trees that makes an estimator, as plain data.

    Parameters
    ----------
    backend, objective, metric : str
        What was trained; canonical texts.
    best_iteration : int
        Number of the best round, from 0.
    n_features : int
        Columns of the features.
    feature_names : list of str or None
        As the user gave them.
    params : dict
        Other parameters of the estimator.
    categorical : list of int or None
        Numbers of the columns that hold categories; None where nobody knows.
    zeros : {"numbers", "missing", "both"} or None
        What zeros of the features were to XGBoost; None where nobody knows.
    preferences : bool, default=False
        Whether objective or metric held preferences, which texts do not say.
    """

    backend: str
    objective: str
    metric: str
    best_iteration: int
    n_features: int
    feature_names: list[str] | None = None
    params: dict[str, Any] = field(default_factory=dict)
    categorical: list[int] | None = None
    zeros: str | None = None
    preferences: bool = False

    @property
    def columns(self) -> Columns:
        """What is known about the columns of the features."""
        return Columns(self.n_features, self.feature_names, self.categorical, self.zeros)

    def to_text(self) -> str:
        """Return JSON."""
        from gbmrank import __version__

        made = {"schema": _SCHEMA, "gbmrank": __version__, **asdict(self)}
        if not self.preferences:  # earlier versions do not know it
            del made["preferences"]
        return json.dumps(made, default=_plain)

    @classmethod
    def from_text(cls, text: str, path: str) -> "Identity":
        """Read JSON; ``path`` is for messages."""
        try:
            found = json.loads(text)
            schema, version = int(found.pop("schema")), found.pop("gbmrank")
            if schema > _SCHEMA:
                raise DataError(
                    f"{path} was saved by gbmrank {version} in form {schema}; this gbmrank reads "
                    f"forms up to {_SCHEMA}: upgrade gbmrank"
                )
            return cls(**found)
        except (AttributeError, KeyError, TypeError, json.JSONDecodeError) as error:
            raise DataError(
                f"{path}: what gbmrank wrote into this model is damaged ({error}); save it anew"
            ) from error


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else repr(value)
