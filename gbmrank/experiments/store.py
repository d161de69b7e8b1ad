"""The folder of a comparison: one pair of files per run, whole or not there at all.

``runs/NAME.npz`` holds the arrays and is written first; ``runs/NAME.json`` holds the rest
with a hash of the arrays and one of itself, so a run counts only when both are whole. Files
appear by renaming. Nothing is pickled.
"""

import contextlib
import hashlib
import io
import json
import math
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from gbmrank.data.files import BLANK, NAME, is_unchanged, with_checksum
from gbmrank.errors import ConfigError, DataError
from gbmrank.experiments.design import Task
from gbmrank.experiments.lock import LOCK
from gbmrank.experiments.results import Run, System

__all__ = ["PLAN", "SCHEMA", "Store", "check_folder", "differences", "slug", "write_whole"]

SCHEMA = "gbmrank.run/1"
PLAN = "plan.json"
_PLAN_SCHEMA = "gbmrank.plan/1"
_LATER = ("code",)  # what plans of earlier versions do not have
_WORK = "work"
_OURS = (PLAN, "runs", _WORK, "results.json", "per_query.csv", "report.html")
_VALUE = "value:"


def slug(text: str) -> str:
    """Return a file name for any text: readable, harmless, and different for other texts.

    Examples
    --------
    >>> slug("../../x <script>")
    'x-script-349c97b4'
    """
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:48].strip("-")
    number = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain}-{number}" if plain else number


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there completely or not at all."""
    temporary = path.parent / f".writing-{os.getpid()}-{secrets.token_hex(8)}"
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename, error.filename2 = str(path), None
        raise


@final
class Store:
    """Runs of one comparison in a folder.

    Parameters
    ----------
    folder : Path
        Where; see :meth:`begin`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"

    @property
    def work(self) -> Path:
        """A place for what only running processes need."""
        return self.folder / _WORK

    @classmethod
    def begin(
        cls, folder: Path, plan: Mapping[str, Any], *, resume: bool = False, force: bool = False
    ) -> "Store":
        """Open a folder for a comparison.

        Parameters
        ----------
        folder : Path
            Made if it is not there.
        plan : mapping
            Plain data that all runs follow from.
        resume : bool, default=False
            Go on with the comparison in the folder, which must have the same plan.
        force : bool, default=False
            Remove the comparison that is in the folder.
        """
        store = cls(folder)
        text = json.dumps({"schema": _PLAN_SCHEMA, **plan}, indent=1, allow_nan=False)
        there = check_folder(folder, resume=resume, force=force)
        if there and resume:
            _check_same(store.plan(), plan, folder)
        elif there:
            store.clear()
        store.runs.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(store.work, ignore_errors=True)
        for rest in [*folder.glob(".writing-*"), *store.runs.glob(".writing-*")]:
            rest.unlink(missing_ok=True)
        if not (there and resume):
            write_whole(folder / PLAN, text.encode())
        return store

    def plan(self) -> dict[str, Any]:
        """Return the plan of the comparison in the folder."""
        path = self.folder / PLAN
        try:
            return _from_json(path.read_bytes(), path, _PLAN_SCHEMA)
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(f"{path} is damaged ({error}); begin anew with --force") from error

    def clear(self) -> None:
        """Remove what a comparison has written, and nothing else."""
        for name in _OURS:
            path = self.folder / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def save(self, run: Run) -> None:
        """Write a run; an older one of the same task is replaced."""
        name = self.runs / _name(Task(run.system, run.seed, run.fold))
        arrays: dict[str, Any] = {"queries": run.queries, "tied": run.tied}
        arrays |= {f"{_VALUE}{at}": values for at, values in enumerate(run.values.values())}
        packed = io.BytesIO()
        np.savez_compressed(packed, **arrays)  # columns of numbers, nothing to pickle
        write_whole(name.with_suffix(".npz"), packed.getvalue())
        about = {
            "schema": SCHEMA,
            NAME: BLANK,
            "system": list(run.system),
            "seed": run.seed,
            "fold": run.fold,
            "arrays": hashlib.sha256(packed.getvalue()).hexdigest(),
            "measures": list(run.values),
            "history": {key: [_number(v) for v in line] for key, line in run.history.items()},
            "best_round": run.best_round,
            "seconds": run.seconds,
            "params": dict(run.params),
            "warnings": list(run.warnings),
            "error": run.error,
        }
        text = json.dumps(about, indent=1, allow_nan=False)
        write_whole(name.with_suffix(".json"), with_checksum(text.encode()))

    def load(self, task: Task) -> Run | None:
        """Return a run, or None when it is not there as a whole.

        Raises
        ------
        DataError
            For a run that another version of gbmrank has written.
        """
        path = self.runs / f"{_name(task)}.json"
        try:
            packed, data = path.with_suffix(".npz").read_bytes(), path.read_bytes()
            about = _from_json(data, path, SCHEMA) if is_unchanged(data) else None
        except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError):
            return None
        if about is None or hashlib.sha256(packed).hexdigest() != about["arrays"]:
            return None
        return _run(about, packed)

    def done(self, tasks: Sequence[Task]) -> Iterator[Run]:
        """Yield the runs that ended well; failed ones are tried again."""
        for task in tasks:
            run = self.load(task)
            if run is not None and run.error is None:
                yield run

    @contextlib.contextmanager
    def working(self) -> Iterator[Path]:
        """Make the place for running processes, and remove it afterwards."""
        self.work.mkdir(exist_ok=True)
        try:
            yield self.work
        finally:
            shutil.rmtree(self.work, ignore_errors=True)


def differences(old: Any, new: Any, name: str = "") -> list[str]:
    """Return what differs between two plans, one sentence each.

    Examples
    --------
    >>> differences({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}})
    ['b.c was 2 and is 3']
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = dict.fromkeys([*old, *new])
        inner = [
            differences(old.get(key), new.get(key), f"{name}.{key}" if name else str(key))
            for key in keys
        ]
        return [line for lines in inner for line in lines]
    return [] if old == new else [f"{name} was {_short(old)} and is {_short(new)}"]


def _check_same(old: Mapping[str, Any], new: Mapping[str, Any], folder: Path) -> None:
    kept = {key: value for key, value in old.items() if key != "schema"}
    known = {key: value for key, value in new.items() if key in kept or key not in _LATER}
    found = differences(kept, json.loads(json.dumps(known)))
    if found:
        raise ConfigError(
            f"{folder} holds another comparison, which cannot be resumed with these settings: "
            f"{'; '.join(found)}; repeat the settings, or begin anew with another folder or force"
        )


def check_folder(folder: Path, *, resume: bool = False, force: bool = False) -> bool:
    """Return whether a comparison is in a folder; raise when it may not be touched."""
    if (folder / PLAN).exists():
        if resume or force:
            return True
        raise ConfigError(
            f"{folder} holds a comparison already; go on with resume (--resume), overwrite it with "
            "force (--force), or choose another folder (--out)"
        )
    if folder.exists() and (
        not folder.is_dir() or any(one.name != LOCK for one in folder.iterdir())
    ):
        raise ConfigError(
            f"{folder} is there and is not the folder of a comparison; choose another (--out)"
        )
    return False


def _name(task: Task) -> str:
    return f"{slug(str(task.system))}-seed{task.seed}-fold{task.fold}"


def _from_json(data: bytes, path: Path, schema: str) -> dict[str, Any]:
    read = json.loads(data.decode())
    found = read.get("schema") if isinstance(read, dict) else None
    if found != schema:
        raise DataError(
            f"{path} has the schema {found!r}, this gbmrank reads {schema!r}; use the version that "
            "wrote it, or begin anew in another folder"
        )
    return dict(read)


def _run(about: Mapping[str, Any], packed: bytes) -> Run:
    with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
        values = {name: arrays[f"{_VALUE}{at}"] for at, name in enumerate(about["measures"])}
        queries, tied = arrays["queries"], arrays["tied"]
    return Run(
        system=System(*about["system"]),
        seed=about["seed"],
        fold=about["fold"],
        queries=queries,
        values=values,
        tied=tied,
        history={
            key: [math.nan if v is None else float(v) for v in line]
            for key, line in about["history"].items()
        },
        best_round=about["best_round"],
        seconds=about["seconds"],
        params=about["params"],
        warnings=tuple(about["warnings"]),
        error=about["error"],
    )


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:120]}..."
