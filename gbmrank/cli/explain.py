"""``gbmrank explain``: why a model ranks one item of a query above another."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from gbmrank.cli.arguments import whole
from gbmrank.cli.screen import clean, table
from gbmrank.data.readers import ROW_FORMATS, FileOptions, Header, guess_format, read_rows
from gbmrank.data.readers.text import RankingFile, quoted
from gbmrank.data.schema import Schema
from gbmrank.data.tables import category_frame
from gbmrank.errors import ConfigError, DataError
from gbmrank.estimators import load
from gbmrank.estimators.model_file import read_model
from gbmrank.explanations import Explanation, explain
from gbmrank.types import IntArray

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
    fitted, text = read_model(Path(given.model), True)
    model: Any = fitted.booster if text is None else load(given.model)
    columns = fitted.columns if text is None else model._columns
    file = _read(given, columns)
    rows = np.flatnonzero((file.qid if file.qid is not None else np.zeros(0)) == given.query)
    if not len(rows):
        raise DataError(f"{quoted(given.data)} has no query {given.query!r}")
    found = explain(model, _features(file, rows, columns), pair=_pair(given.pair, len(rows)))
    if given.html is not None:
        found.to_html(given.html)
    if given.json:
        print(json.dumps(_as_json(given, found), indent=2, allow_nan=False))
    else:
        print(clean(found if given.pair else _as_text(found)))
    return 0


def _read(given: argparse.Namespace, columns: Schema) -> RankingFile:
    """Read the rows, with the columns of the model by name where a table has names."""
    form = given.format or guess_format(given.data)
    names = None if form == "letor" or columns.names is None else columns.names
    kinds = [names[at] for at in columns.categorical or ()] if names else []
    header = Header(
        label=given.label_column,
        qid=given.qid_column,
        features=names,
        need_label=False,
        categorical=kinds,
    )
    return read_rows(given.data, FileOptions(form=form, columns=header))


def _features(file: RankingFile, rows: IntArray, columns: Schema) -> Any:
    """Return the features of the query's rows; LETOR files may leave out the last zeros."""
    values = np.zeros((0, 0)) if file.X is None else file.X[rows]
    if file.by_index and values.shape[1] < columns.count:
        values = np.pad(values, ((0, 0), (0, columns.count - values.shape[1])))
    if file.by_index or (columns.names is None and not file.categories):
        return values
    names = list(file.feature_names)
    return category_frame(values, names, {names.index(k): v for k, v in file.categories.items()})


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
