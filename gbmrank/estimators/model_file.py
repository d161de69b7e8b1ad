"""Read and write rankers as model files of the booster, with metadata of gbmrank."""

import io
import json
import os
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from gbmrank.boosters.base import Fitted
from gbmrank.boosters.supported import BOOSTERS, booster_named
from gbmrank.data.files import BLANK, NAME, is_unchanged, with_checksum, write_whole
from gbmrank.data.schema import Schema
from gbmrank.errors import ConfigError, DataError

_SCHEMA = 2  # that of GBMRanker is still 1, which earlier versions read
_CONTENTS = "ranker.json"
_ZIP = b"PK"
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    KeyError,
    ValueError,
    EOFError,
    RuntimeError,
)


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Identity:
    """Metadata of an estimator, everything but the trees, as plain data.

    ``categorical`` are the indices of categorical columns. ``zeros`` says how XGBoost treated
    zeros of the features ("numbers", "missing", "both"); None if unknown. ``preferences``: whether
    objective or metric used some, which their texts do not show. ``committee``: its members, as
    plain data. ``ranker``: the class of the estimator; empty for GBMRanker.
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
    calibration: dict[str, Any] | None = None  # the fields of a ProbabilityMap
    ranker: str = ""

    @property
    def columns(self) -> Schema:
        """Number, names and kinds of the feature columns."""
        return Schema(self.n_features, self.feature_names, self.categorical, self.zeros)

    def to_text(self) -> str:
        """Return JSON."""
        from gbmrank import __version__

        schema = _SCHEMA if self.ranker else 1
        made = {"schema": schema, "gbmrank": __version__, **asdict(self)}
        since_0_1 = ("preferences", "committee", "position_bias", "calibration", "ranker")
        for name in since_0_1:
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


@final
@dataclass(frozen=True, slots=True, eq=False)
class Archive:
    """A ranker of several models: metadata, tables of numbers and models, each by name.

    It is a zip archive of JSON, numpy's format and the booster's own. Nothing in it is executed.
    """

    identity: Identity
    tables: Mapping[str, np.ndarray]
    models: Mapping[str, Fitted]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the archive, completely or not at all; equal content gives equal bytes."""
        if Path(path).suffix != ".zip":
            raise ConfigError(f"a ranker of several models is saved as *.zip; got {str(path)!r}")
        contents = {_CONTENTS: self.identity.to_text().encode()}
        for name, table in self.tables.items():
            np.save(column := io.BytesIO(), table, allow_pickle=False)
            contents[f"{name}.npy"] = column.getvalue()
        suffix = booster_named(self.identity.backend).suffixes[0]
        with tempfile.TemporaryDirectory() as folder:
            for name, model in self.models.items():
                model.save(f"{folder}/model{suffix}")
                contents[f"{name}{suffix}"] = Path(folder, f"model{suffix}").read_bytes()
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            archive.comment = f"{NAME}={BLANK}".encode()
            for name, data in contents.items():  # a ZipInfo has the date of 1980
                archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
        write_whole(Path(path), with_checksum(made.getvalue()))

    @classmethod
    def read(cls, path: Path, verify: bool) -> "Archive | None":
        """Read an archive; None for a file of another kind."""
        data = b"" if path.is_dir() else path.read_bytes()
        if not data.startswith(_ZIP):
            return None
        _check_unchanged(data, path, verify)
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                contents = {name: archive.read(name) for name in archive.namelist()}
            identity = Identity.from_text(contents.pop(_CONTENTS).decode(), str(path))
            tables = {
                name.removesuffix(".npy"): np.load(io.BytesIO(contents[name]), allow_pickle=False)
                for name in contents
                if name.endswith(".npy")
            }
        except _DAMAGE as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"{path} is a damaged ranker, or a zip archive of something else; save the ranker "
                f"again ({error})"
            ) from error
        booster, models = booster_named(identity.backend), {}
        for name, content in contents.items():
            if not name.endswith(".npy"):
                models[name.rpartition(".")[0]] = booster.load(content, f"{path}, {name}")[0]
        return cls(identity, tables, models)


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
    _check_unchanged(data, path, verify)
    return booster.load(data, str(path))


def _check_unchanged(data: bytes, path: Path, verify: bool) -> None:
    if verify and not is_unchanged(data):
        raise DataError(
            f"{path} is not the file that gbmrank wrote: its checksum does not match. It was "
            "damaged (for example by converted line ends), edited, or saved again by the booster. "
            "Use another copy, save the model again, or skip the check with "
            "gbmrank.load(path, verify=False)"
        )
