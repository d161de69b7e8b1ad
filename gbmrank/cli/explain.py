"""``gbmrank explain``: why a model ranks one item of a query above another."""

import argparse
import json
from typing import Any

import numpy as np

from gbmrank.cli.arguments import whole
from gbmrank.cli.models import ModelFile
from gbmrank.cli.screen import clean, table
from gbmrank.data.readers import ROW_FORMATS, FileOptions, read_rows
from gbmrank.data.readers.text import quoted
from gbmrank.errors import ConfigError, DataError
from gbmrank.explanations import Explanation, explain

_NAMED = 3  # features in the line of an item


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", metavar="MODEL", help="model file of LightGBM or XGBoost")
    parser.add_argument("data", metavar="DATA", help="LETOR text, CSV or Parquet, with query ids")
    parser.add_argument("--query", metavar="Q", required=True, help="id of the query")
    parser.add_argument(
        "--pair",
        nargs=2,
        type=whole,
        metavar=("A", "B"),
        help="why item A scores more than item B: their rows within the query, from 1; without "
        "it, every item is compared with the mean of the query",
    )
    for option, about in (
        ("--html", "write a page with a chart; without --pair, of the best item"),
        ("--label-column", "column of the labels, which are not used"),
        ("--qid-column", "column of the query ids"),
    ):
        parser.add_argument(option, metavar="FILE" if option == "--html" else "NAME", help=about)
    parser.add_argument("--format", choices=ROW_FORMATS, help="format of DATA (default: guessed)")


def run(given: argparse.Namespace) -> int:
    """Read the model and the query, explain, print."""
    model = ModelFile.read(given.model)
    header = model.header(given.label_column, given.qid_column)
    file = read_rows(given.data, FileOptions(form=given.format, columns=header))
    rows = np.flatnonzero((file.qid if file.qid is not None else np.zeros(0)) == given.query)
    if not len(rows):
        raise DataError(f"{quoted(given.data)} has no query {given.query!r}")
    found = explain(model.model, model.features(file, rows), pair=_pair(given.pair, len(rows)))
    if given.html is not None:
        found.to_html(given.html)
    if given.json:
        print(json.dumps(_as_json(given, found), indent=2, allow_nan=False))
    else:
        print(clean(found if given.pair else _as_text(found)))
    return 0


def _pair(given: list[int] | None, n_rows: int) -> tuple[int, int] | None:
    """Return the numbers of two rows, counted from 0."""
    if given is None:
        return None
    a, b = given
    if a == b or not (1 <= a <= n_rows and 1 <= b <= n_rows):
        raise ConfigError(
            f"--pair takes two different items of the query, from 1 to {n_rows}; got {a} and {b}"
        )
    return a - 1, b - 1


def _as_text(found: Explanation) -> str:
    """Return one line per item, best first, with the features that matter most."""
    lines = []
    for row in np.argsort(-found.scores, kind="stable").tolist():
        named = [one for one in found.bars(row, _NAMED)[:-1] if one.values]
        why = ", ".join(f"{one.name} {one.contribution:+.3f}" for one in named)
        lead = found.scores[row] - found.references[row]
        lines.append([row + 1, f"{found.scores[row]:.4f}", f"{lead:+.4f}", why])
    return table(["item", "score", "lead", "largest contributions"], lines, right=">>>")


def _as_json(given: argparse.Namespace, found: Explanation) -> dict[str, Any]:
    items = [
        {
            "item": given.pair[0] if given.pair else row + 1,
            "score": float(found.scores[row]),
            "reference": float(found.references[row]),
            "contributions": dict(
                zip(found.features, found.contributions[row].tolist(), strict=True)
            ),
        }
        for row in range(len(found.scores))
    ]
    against = given.pair[1] if given.pair else None
    return {"schema": "gbmrank.explain/1", "query": given.query, "against": against, "items": items}
