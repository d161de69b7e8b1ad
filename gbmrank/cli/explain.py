"""``gbmrank explain``: why a model ranks one item of a query above another."""

import argparse
from typing import Any

import numpy as np

from gbmrank.cli.arguments import add_format, option, whole
from gbmrank.cli.models import ModelFile
from gbmrank.cli.screen import clean, show, table
from gbmrank.data.readers import FileOptions, read_rows
from gbmrank.data.readers.text import quoted
from gbmrank.errors import ConfigError, DataError
from gbmrank.explanations import Explanation, explain

_NAMED = 3  # features in the line of an item


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    option(parser, "model MODEL", "model file of LightGBM or XGBoost")
    option(parser, "data DATA", "LETOR text, CSV or Parquet, with query ids")
    option(parser, "--query Q", "id of the query", required=True)
    parser.add_argument(
        "--pair",
        nargs=2,
        type=whole,
        metavar=("A", "B"),
        help="why item A scores more than item B: their rows within the query, from 1; without "
        "it, every item is compared with the mean of the query",
    )
    option(parser, "--html FILE", "write a page with a chart; without --pair, of the best item")
    add_format(parser)


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
    text = clean(found if given.pair else _as_text(found))
    return show(given, _as_json(given, found), text, allow_nan=False)


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
            "contributions": dict(zip(found.features, contributions, strict=True)),
        }
        for row, contributions in enumerate(found.contributions.tolist())
    ]
    against = given.pair[1] if given.pair else None
    return {"schema": "gbmrank.explain/1", "query": given.query, "against": against, "items": items}
