"""Values of single queries as a table for spreadsheets."""

import csv
import io
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gbmrank.data.readers.text import to_number
from gbmrank.experiments.results import Results
from gbmrank.experiments.store import write_whole

__all__ = ["write_per_query_csv"]

_HEAD = ("query", "rows", "relevant", "measure", "backend", "objective", "seed", "fold", "value")
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def write_per_query_csv(results: Results, path: str | Path) -> None:
    """Write one line per query, measure, system and seed.

    An undefined value is an empty cell. Text that a spreadsheet could take for a formula gets
    an apostrophe in front, and control characters are spelt out; numbers stay as they are.

    Parameters
    ----------
    results : Results
        What was measured.
    path : path
        Where to write; a file that is there is replaced.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")  # as RFC 4180 has it; quotes both
    writer.writerow(_HEAD)
    for row in _rows(results):
        writer.writerow([_harmless(cell) if isinstance(cell, str) else cell for cell in row])
    write_whole(Path(path).absolute(), text.getvalue().encode("utf-8", "backslashreplace"))


def _rows(results: Results) -> Iterator[list[Any]]:
    queries = results.queries
    for run in results.runs:
        for measure in results.measures if run.error is None else ():
            for number, value in zip(run.queries, run.values[measure.name], strict=True):
                yield [
                    str(queries.ids[number]),
                    int(queries.sizes[number]),
                    int(queries.relevant[number]),
                    measure.name,
                    *run.system,
                    run.seed,
                    run.fold,
                    float(value) if math.isfinite(value) else None,
                ]


def _harmless(text: str) -> str:
    r"""Return a cell that a spreadsheet takes for no formula and a terminal for no command.

    Examples
    --------
    >>> _harmless("=1+1"), _harmless("-5"), _harmless("q1")
    ("'=1+1", '-5', 'q1')
    >>> print(_harmless("\x1b[31mred"))
    \x1b[31mred
    """
    text = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    formula = text.startswith(_FORMULAS) and to_number(text) is None
    return f"'{text}" if formula else text
