"""Read and write rankers as model files of the booster, with metadata of gbmrank."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, final

from gbmrank.api.metrics import any_preferences, metric_list
from gbmrank.api.objectives import objectives_in, ranking_objective
from gbmrank.boosters.base import Fitted
from gbmrank.boosters.supported import BOOSTERS, booster_named
from gbmrank.data.files import is_unchanged
from gbmrank.data.schema import Schema
from gbmrank.errors import ConfigError, DataError
from gbmrank.objectives import held_preferences

_SCHEMA = 1


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Identity:
    """Metadata of an estimator, everything but the trees, as plain data.

    ``categorical`` are the indices of categorical columns. ``zeros`` says how XGBoost treated
    zeros of the features ("numbers", "missing", "both"); None if unknown. ``preferences``: whether
    objective or metric used some, which their texts do not show. ``committee``: its members, as
    plain data.
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
    committee: list[dict[str, Any]] = field(default_factory=list)
    position_bias: dict[str, Any] | None = None  # as PositionBias.to_dict gives it

    @property
    def columns(self) -> Schema:
        """Number, names and kinds of the feature columns."""
        return Schema(self.n_features, self.feature_names, self.categorical, self.zeros)

    def to_text(self) -> str:
        """Return JSON."""
        from gbmrank import __version__

        made = {"schema": _SCHEMA, "gbmrank": __version__, **asdict(self)}
        for name in ("preferences", "committee", "position_bias"):  # new since earlier versions
            if not made[name]:
                del made[name]
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
                f"{path}: the metadata of gbmrank in this model is damaged ({error}); save it again"
            ) from error


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else repr(value)


def write_model(fitted: Fitted, path: str | os.PathLike[str]) -> None:
    """Write a model to a temporary file and move it into place, so it is never incomplete."""
    target, allowed = Path(path), booster_named(fitted.backend).suffixes
    if target.suffix not in allowed:
        raise ConfigError(
            f"a model of {fitted.backend} is saved as *{' or *'.join(allowed)}; got {str(path)!r}"
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent}")
    part = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
    try:
        fitted.save(str(part))
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def holds_preferences(objective: Any, metric: Any) -> bool:
    """Whether an objective or one of the metrics uses preferences, which are not saved."""
    for one in objectives_in(ranking_objective(objective)):
        if held_preferences(one.template):
            return True
    return any_preferences(metric_list(metric))


def read_model(path: Path, verify: bool) -> tuple[Fitted, str | None]:
    """Read a model file of either booster, and what gbmrank wrote into it."""
    if path.is_dir():
        raise DataError(f"{path} is a folder; give the model file itself")
    with path.open("rb") as file:
        start = file.read(8)
        booster = next((one for one in BOOSTERS if start.startswith(one.first_bytes)), None)
        if booster is None:
            titles = " nor ".join(one.title for one in BOOSTERS)
            raise DataError(f"{path} is a model file of neither {titles}")
        data = start + file.read()
    if verify and not is_unchanged(data):
        raise DataError(
            f"{path} is not the file that gbmrank wrote: its checksum does not match. It was "
            "damaged (for example by converted line ends), edited, or saved again by the booster. "
            "Use another copy, save the model again, or skip the check with "
            "gbmrank.load(path, verify=False)"
        )
    return booster.load(data, str(path))
