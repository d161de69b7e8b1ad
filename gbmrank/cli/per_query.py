"""The values of single queries, on the screen and in files."""

import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gbmrank.api import Metric
from gbmrank.cli.evaluation import Evaluation
from gbmrank.cli.screen import table
from gbmrank.data.readers.text import to_number
from gbmrank.errors import ConfigError
from gbmrank.experiments.store import write_whole

__all__ = ["as_json", "as_text", "check_free", "number", "save", "short_names", "shown"]

_SUFFIXES = (".csv", ".tsv", ".json")


def short_names(metrics: Sequence[Metric]) -> list[str]:
    """Return ``name@k`` for each metric, and the whole text where that is not unique.

    Examples
    --------
    >>> from gbmrank.api import metric
    >>> short_names([metric("map", threshold=1), metric("ndcg@5"), metric("ndcg@5", gain="linear")])
    ['map', 'ndcg@5', 'ndcg(gain=linear)@5']
    """
    short = [
        item.spec.name + ("" if item.spec.k is None else f"@{item.spec.k}") for item in metrics
    ]
    return [
        name if short.count(name) == 1 else str(item)
        for name, item in zip(short, metrics, strict=True)
    ]


def shown(value: float) -> str:
    """Return a value with four decimals, or a dash where it is undefined."""
    return "-" if math.isnan(value) else f"{value:.4f}"


def number(value: float) -> float | None:
    """Return a value as JSON has it."""
    return None if math.isnan(value) else float(value)


def as_text(result: Evaluation) -> str:
    """Return a table with one line per query."""
    names = short_names([one.metric for one in result.measured])
    columns = [[shown(value) for value in one.values] for one in result.measured]
    rows = list(zip(result.qid, map(str, result.rows), *columns, strict=True))
    return table(["query", "rows", *names], rows, "<>" + ">" * len(names))


def as_json(result: Evaluation) -> list[dict[str, Any]]:
    """Return one object per query; an undefined value is null."""
    names = short_names([one.metric for one in result.measured])
    return [
        {
            "qid": qid,
            "rows": int(result.rows[i]),
            "values": {
                name: number(one.values[i])
                for name, one in zip(names, result.measured, strict=True)
            },
        }
        for i, qid in enumerate(result.qid)
    ]


def check_free(path: str, force: bool) -> None:
    """Refuse an unknown kind of file, a missing folder, and a file that is there if not told to."""
    if Path(path).suffix.lower() not in _SUFFIXES:
        raise ConfigError(
            f"--output takes a name that ends in {', '.join(_SUFFIXES)}; got {path!r}"
        )
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise ConfigError(f"--output {path}: there is no folder {folder}; make it first")
    if Path(path).exists() and not force:
        raise ConfigError(
            f"{path} is there already; choose another name, or overwrite with --force"
        )


def save(path: str, result: Evaluation, force: bool) -> None:
    """Write the table of queries; the file is there whole or not at all."""
    suffix = Path(path).suffix.lower()
    if suffix == ".json":
        text = json.dumps({"schema": "gbmrank.per_query/1", "per_query": as_json(result)}, indent=1)
    else:
        text = _as_csv(result, "," if suffix == ".csv" else "\t")
    check_free(path, force)
    try:
        write_whole(Path(path).absolute(), text.encode("utf-8"))
    except OSError as error:
        raise ConfigError(f"--output {path} cannot be written: {error.strerror}") from error


def _as_csv(result: Evaluation, delimiter: str) -> str:
    names = short_names([one.metric for one in result.measured])
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
    writer.writerow(["qid", "rows", *names])
    for i, qid in enumerate(result.qid):
        values = [
            "" if math.isnan(one.values[i]) else repr(float(one.values[i]))
            for one in result.measured
        ]
        writer.writerow([_harmless(qid), int(result.rows[i]), *values])
    return text.getvalue()


def _harmless(text: str) -> str:
    """Return a cell that a spreadsheet does not take for a formula.

    Examples
    --------
    >>> _harmless("=1+1"), _harmless("-5"), _harmless("q1")
    ("'=1+1", '-5', 'q1')
    """
    formula = text.startswith(("=", "+", "-", "@", "\t", "\r")) and to_number(text) is None
    return f"'{text}" if formula else text
