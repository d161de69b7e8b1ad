"""The folder of a comparison, and the files in it; nothing is pickled.

``runs/NAME.npz`` has the arrays of a run and is written first; ``runs/NAME.json`` has the rest
with a hash of the arrays and one of itself, so a run counts only if both are complete. Files are
renamed into place. ``plan.json`` determines all runs, ``results.json`` has all measurements,
``per_query.csv`` the values of single queries for spreadsheets. Only one comparison at a time uses
a folder: ``running.json`` names its process, and the system releases the lock when that ends.
"""

import contextlib
import csv
import hashlib
import io
import json
import math
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np

from gbmrank.data.files import (
    BLANK,
    NAME,
    is_unchanged,
    spreadsheet_cell,
    with_checksum,
    write_whole,
)
from gbmrank.errors import ConfigError, DataError
from gbmrank.experiments.design import Task
from gbmrank.experiments.results import Measure, Queries, Results, Run, System
from gbmrank.types import ArrayLike

OWNER = "running.json"
"""File that names the process which uses a folder."""
PLAN = "plan.json"
_RUN_SCHEMA, _PLAN_SCHEMA, _SCHEMA = "gbmrank.run/1", "gbmrank.plan/1", "gbmrank.results/1"
_ADDED = ("code",)  # keys that plans of earlier versions do not have
_WORK, _LOCK = "work", ".lock"
_OURS = (PLAN, "runs", _WORK, "results.json", "per_query.csv", "report.html")
_VALUE = "value:"
_ARRAYS = ("queries", "values", "tied")  # of a run, in a file of their own
_END = "\r\n"  # of lines, as in RFC 4180
_json = partial(json.dumps, allow_nan=False)
_HEAD = ("query", "rows", "relevant", "measure", "backend", "objective", "seed", "fold", "value")


@final
class Store:
    """Runs of one comparison in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"

    @property
    def work(self) -> Path:
        """Folder for temporary files of running processes."""
        return self.folder / _WORK

    @classmethod
    def begin(
        cls, folder: Path, plan: Mapping[str, Any], *, resume: bool = False, force: bool = False
    ) -> "Store":
        """Open a folder for a comparison."""
        store = cls(folder)
        text = json.dumps({"schema": _PLAN_SCHEMA, **plan}, indent=1, allow_nan=False)
        there = check_folder(folder, resume=resume, force=force)
        if there and resume:
            _check_same(folder, plan)
        elif there:
            store.clear()
        store.runs.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(store.work, ignore_errors=True)
        for rest in [*folder.glob(".writing-*"), *store.runs.glob(".writing-*")]:
            rest.unlink(missing_ok=True)
        if not (there and resume):
            write_whole(folder / PLAN, text.encode())
        return store

    def clear(self) -> None:
        """Remove only the files of a comparison."""
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
        np.savez_compressed(packed, **arrays)  # numeric arrays, nothing is pickled
        write_whole(name.with_suffix(".npz"), packed.getvalue())
        about = {
            "schema": _RUN_SCHEMA,
            NAME: BLANK,
            "arrays": hashlib.sha256(packed.getvalue()).hexdigest(),
            "measures": list(run.values),
            **_run_to_json(run),
        }
        text = _json(about)
        write_whole(name.with_suffix(".json"), with_checksum(text.encode()))

    def load(self, task: Task) -> Run | None:
        """Return a run, or None if it is missing or incomplete."""
        path = self.runs / f"{_name(task)}.json"
        try:
            packed, data = path.with_suffix(".npz").read_bytes(), path.read_bytes()
            about = json.loads(data) if is_unchanged(data) else None
        except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError):
            return None
        if about is None:
            return None
        _check_schema(about, path, _RUN_SCHEMA)
        if hashlib.sha256(packed).hexdigest() != about["arrays"]:
            return None
        with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
            values = {name: arrays[f"{_VALUE}{at}"] for at, name in enumerate(about["measures"])}
            queries, tied = arrays["queries"], arrays["tied"]
        return _run_from_json({**about, "values": values, "queries": queries, "tied": tied})

    def done(self, tasks: Sequence[Task]) -> Iterator[Run]:
        """Yield the successful runs; failed ones are tried again."""
        for task in tasks:
            run = self.load(task)
            if run is not None and run.error is None:
                yield run

    @contextlib.contextmanager
    def working(self) -> Iterator[Path]:
        """Create the temporary folder, and remove it afterwards."""
        self.work.mkdir(exist_ok=True)
        try:
            yield self.work
        finally:
            shutil.rmtree(self.work, ignore_errors=True)


@contextlib.contextmanager
def locked(folder: Path, note: Callable[[str], None]) -> Iterator[None]:
    """Lock a folder in this context; it is created if necessary."""
    import filelock

    folder.mkdir(parents=True, exist_ok=True)
    path, lock = folder / OWNER, filelock.FileLock(folder / _LOCK)
    owner = path.read_text("utf-8", "replace") if path.exists() else ""
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise ConfigError(
            f"{folder} is in use: {owner or 'another process'} runs a comparison there; wait for "
            "it, or choose another folder (--out)"
        ) from None
    except (NotImplementedError, OSError):  # a file system without locks
        pass
    try:
        if owner:
            note(f"{owner} ended before its comparison in {folder} was done")
        path.write_text(f"process {os.getpid()} on {socket.gethostname()}", "utf-8")
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        lock.release()


def check_folder(folder: Path, *, resume: bool = False, force: bool = False) -> bool:
    """Return whether a folder contains a comparison; raise if it must not be changed."""
    others = folder.exists() and (
        not folder.is_dir() or any(one.name not in (OWNER, _LOCK) for one in folder.iterdir())
    )
    # Another start with force removes the plan first; its own name tells that the folder is ours.
    if (folder / PLAN).exists() or (others and (folder / OWNER).exists()):
        if resume or force:
            return True
        raise ConfigError(
            f"{folder} already contains a comparison; continue it with resume (--resume), "
            "overwrite it with force (--force), or choose another folder (--out)"
        )
    if others:
        raise ConfigError(
            f"{folder} exists and is not the folder of a comparison; choose another (--out)"
        )
    return False


def slug(text: str) -> str:
    """Return a file name for any text: readable, safe and unique.

    >>> slug("../../x <script>")
    'x-script-349c97b4'
    """
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:48].strip("-")
    number = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain}-{number}" if plain else number


def results_to_json(results: Results) -> dict[str, Any]:
    """Return what :func:`json_bytes` writes and :func:`load_results` reads; NaN is null."""
    queries = results.queries
    return {
        "schema": _SCHEMA,
        **_fields(results),
        "measures": [measure._asdict() for measure in results.measures],
        "queries": {name: column.tolist() for name, column in _fields(queries).items()},
        "runs": [{**_run_to_json(run), **_arrays_to_json(run)} for run in results.runs],
        "verdicts": [
            {"objective": objective, "measure": measure, **verdict}
            for (objective, measure), verdict in results.verdicts.items()
        ],
    }


def json_bytes(document: Mapping[str, Any]) -> bytes:
    """Return a document as a file with its checksum: a line for each entry, and for each run."""
    lines = []
    for key, value in {NAME: BLANK, **document}.items():
        text = "[\n{}\n]".format(",\n".join(map(_json, value))) if key == "runs" else _json(value)
        lines.append(f"{json.dumps(key)}: {text}")
    return with_checksum("{{\n{}\n}}".format(",\n".join(lines)).encode())


def load_results(path: str | Path) -> Results:
    """Read results that a comparison wrote."""
    data = Path(path).read_bytes()
    if not is_unchanged(data):
        raise DataError(
            f"{path} was damaged or edited: its checksum does not match; use another copy, or run "
            "the comparison again, with --resume to keep its runs"
        )
    try:
        read = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not a JSON document: {error}") from error
    _check_schema(read, path, _SCHEMA)
    try:
        return _document_from_json(read)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"{path} has the schema {_SCHEMA!r} but is damaged ({type(error).__name__}: {error}); "
            "run the comparison again, with --resume to keep its runs"
        ) from error


def per_query_csv(results: Results) -> bytes:
    """Return a file of one line per query, measure, system and seed.

    An undefined value is an empty cell. Text that a spreadsheet could read as a formula gets a
    leading apostrophe, and control characters are escaped; numbers are unchanged.
    """
    known, lines = results.queries, [_csv_cells(_HEAD)]
    columns = known.ids.tolist(), known.sizes.tolist(), known.relevant.tolist()
    queries = [_csv_cells(row) for row in zip(*columns, strict=True)]
    for run in results.runs:
        for measure in results.measures if run.error is None else ():
            about = _csv_cells([measure.name, *run.system, run.seed, run.fold])
            values = run.values[measure.name]
            texts = np.where(np.isfinite(values), values.astype(np.str_), "").tolist()
            rows = zip(run.queries.tolist(), texts, strict=True)
            lines += [f"{queries[number]},{about},{text}" for number, text in rows]
    return _END.join([*lines, ""]).encode("utf-8", "backslashreplace")


def _differences(old: Any, new: Any, name: str = "") -> list[str]:
    """Return what differs between two plans, one sentence each.

    >>> _differences({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}})
    ['b.c was 2 and is 3']
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = dict.fromkeys([*old, *new])
        inner = [
            _differences(old.get(key), new.get(key), f"{name}.{key}" if name else str(key))
            for key in keys
        ]
        return [line for lines in inner for line in lines]
    return [] if old == new else [f"{name} was {old!r:.160} and is {new!r:.160}"]


def _check_same(folder: Path, new: Mapping[str, Any]) -> None:
    """Raise if the plan in the folder differs, or is damaged."""
    path = folder / PLAN
    try:
        old = _check_schema(json.loads(path.read_bytes()), path, _PLAN_SCHEMA)
    except (FileNotFoundError, ValueError, RecursionError) as error:
        raise DataError(f"{path} is damaged ({error}); start over with --force") from error
    kept = {key: value for key, value in old.items() if key != "schema"}
    known = {key: value for key, value in new.items() if key in kept or key not in _ADDED}
    found = _differences(kept, json.loads(json.dumps(known)))
    if found:
        raise ConfigError(
            f"{folder} contains another comparison, which cannot be resumed with these settings: "
            f"{'; '.join(found)}; repeat the settings, or start over with another folder or force"
        )


def _name(task: Task) -> str:
    return f"{slug(str(task.system))}-seed{task.seed}-fold{task.fold}"


def _check_schema(read: Any, path: str | Path, schema: str) -> dict[str, Any]:
    found = read.get("schema") if isinstance(read, dict) else None
    if found != schema:
        raise DataError(
            f"{path} has the schema {found!r}, but this gbmrank reads {schema!r}; use the version "
            "that wrote it, or start over in another folder"
        )
    return dict(read)


def _fields(data: Any) -> dict[str, Any]:
    return {one.name: getattr(data, one.name) for one in fields(data)}


def _document_from_json(read: dict[str, Any]) -> Results:
    queries, verdicts = read["queries"], read["verdicts"]
    counts = {name: np.array(queries[name], dtype=np.int64) for name in ("sizes", "relevant")}
    made: dict[str, Any] = {
        "systems": tuple(System(*pair) for pair in read["systems"]),
        "measures": tuple(Measure(**one) for one in read["measures"]),
        "baseline": System(*read["baseline"]),
        "baselines": tuple(System(*pair) for pair in read.get("baselines", ())),  # 0.1 has none
        "queries": Queries(ids=np.array(queries["ids"], dtype=np.str_), **counts),
        "runs": tuple(map(_run_from_json, read["runs"])),
        "verdicts": {(one.pop("objective"), one.pop("measure")): one for one in verdicts},
    }
    others = [one.name for one in fields(Results) if one.name not in made]
    return Results(**made, **{name: read[name] for name in others})


def _run_to_json(run: Run) -> dict[str, Any]:
    """Return a run without its arrays, as plain data."""
    about = {name: one for name, one in _fields(run).items() if name not in _ARRAYS}
    history = {name: _numbers(values) for name, values in run.history.items()}
    return {**about, "history": history, "params": dict(run.params)}


def _arrays_to_json(run: Run) -> dict[str, Any]:
    values = {name: _numbers(values) for name, values in run.values.items()}
    return {"queries": run.queries.tolist(), "values": values, "tied": _numbers(run.tied)}


def _run_from_json(read: Mapping[str, Any]) -> Run:
    made: dict[str, Any] = {
        "system": System(*read["system"]),
        "queries": np.array(read["queries"], dtype=np.int64),
        "values": {name: np.array(line, np.float64) for name, line in read["values"].items()},
        "tied": np.array(read["tied"], dtype=np.float64),
        "history": {
            name: [math.nan if v is None else float(v) for v in line]
            for name, line in read["history"].items()
        },
        "warnings": tuple(read["warnings"]),
    }
    others = [one.name for one in fields(Run) if one.name not in made]
    return Run(**made, **{name: read[name] for name in others})


def _numbers(values: ArrayLike) -> list[float | None]:
    given = np.asarray(values, dtype=np.float64)
    shown = given.astype(object)
    shown[~np.isfinite(given)] = None
    return shown.tolist()


def _csv_cells(cells: Iterable[Any]) -> str:
    text = io.StringIO()
    shown = [spreadsheet_cell(one) if isinstance(one, str) else one for one in cells]
    csv.writer(text, lineterminator=_END).writerow(shown)
    return text.getvalue().removesuffix(_END)
