"""Results as a JSON document, and back; nothing is pickled."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gbmrank.data.files import BLANK, NAME, is_unchanged, with_checksum
from gbmrank.errors import DataError
from gbmrank.experiments.results import Measure, Queries, Results, Run, System
from gbmrank.experiments.store import write_whole

__all__ = ["load_results", "results_to_json", "save_json"]

_SCHEMA = "gbmrank.results/1"


def results_to_json(results: Results) -> dict[str, Any]:
    """Return plain data; :func:`load_results` leads back. What is undefined is null."""
    return {
        "schema": _SCHEMA,
        "title": results.title,
        "systems": [list(system) for system in results.systems],
        "measures": [measure._asdict() for measure in results.measures],
        "baseline": list(results.baseline),
        "queries": {
            "ids": results.queries.ids.tolist(),
            "sizes": results.queries.sizes.tolist(),
            "relevant": results.queries.relevant.tolist(),
        },
        "runs": [_run_to_json(run) for run in results.runs],
        "verdicts": [
            {"objective": objective, "measure": measure, **verdict}
            for (objective, measure), verdict in results.verdicts.items()
        ],
        "audit": results.audit,
        "settings": results.settings,
        "conventions": results.conventions,
        "environment": results.environment,
    }


def save_json(document: Mapping[str, Any], path: str | Path) -> None:
    """Write a document with its checksum; the file is there whole or not at all."""
    text = json.dumps({NAME: BLANK, **document}, indent=1, allow_nan=False)
    write_whole(Path(path).absolute(), with_checksum(text.encode()))


def load_results(path: str | Path) -> Results:
    """Read results that a comparison wrote.

    Raises
    ------
    DataError
        For a file that is no such document, that was changed, or of another version.
    """
    data = Path(path).read_bytes()
    if not is_unchanged(data):
        raise DataError(
            f"{path} was damaged or edited: its checksum does not fit; take another copy, or run "
            "the comparison again, with --resume to keep its runs"
        )
    try:
        read = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON document: {error}") from error
    found = read.get("schema") if isinstance(read, dict) else None
    if found != _SCHEMA:
        raise DataError(f"{path} has the schema {found!r}; this gbmrank reads {_SCHEMA!r}")
    try:
        return _from_json(read)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"{path} says it is {_SCHEMA!r} and is damaged ({type(error).__name__}: {error}); "
            "run the comparison again, with --resume to keep its runs"
        ) from error


def _from_json(read: dict[str, Any]) -> Results:
    queries = read["queries"]
    return Results(
        title=read["title"],
        systems=tuple(System(*pair) for pair in read["systems"]),
        measures=tuple(Measure(**one) for one in read["measures"]),
        baseline=System(*read["baseline"]),
        queries=Queries(
            ids=np.array(queries["ids"], dtype=np.str_),
            sizes=np.array(queries["sizes"], dtype=np.int64),
            relevant=np.array(queries["relevant"], dtype=np.int64),
        ),
        runs=tuple(_run_from_json(one) for one in read["runs"]),
        verdicts={
            (one["objective"], one["measure"]): {
                key: value for key, value in one.items() if key not in ("objective", "measure")
            }
            for one in read["verdicts"]
        },
        audit=read["audit"],
        settings=read["settings"],
        conventions=read["conventions"],
        environment=read["environment"],
    )


def _run_to_json(run: Run) -> dict[str, Any]:
    return {
        "system": list(run.system),
        "seed": run.seed,
        "fold": run.fold,
        "queries": run.queries.tolist(),
        "values": {name: _numbers(values.tolist()) for name, values in run.values.items()},
        "tied": _numbers(run.tied.tolist()),
        "history": {name: _numbers(values) for name, values in run.history.items()},
        "best_round": run.best_round,
        "seconds": run.seconds,
        "params": dict(run.params),
        "warnings": list(run.warnings),
        "error": run.error,
    }


def _run_from_json(read: Mapping[str, Any]) -> Run:
    return Run(
        system=System(*read["system"]),
        seed=read["seed"],
        fold=read["fold"],
        queries=np.array(read["queries"], dtype=np.int64),
        values={name: np.array(line, dtype=np.float64) for name, line in read["values"].items()},
        tied=np.array(read["tied"], dtype=np.float64),
        history={
            name: [math.nan if v is None else v for v in line]
            for name, line in read["history"].items()
        },
        best_round=read["best_round"],
        seconds=read["seconds"],
        params=read["params"],
        warnings=tuple(read["warnings"]),
        error=read["error"],
    )


def _numbers(values: list[float]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values]
