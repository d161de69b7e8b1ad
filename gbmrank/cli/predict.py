"""``gbmrank predict``: scores of the rows of files, some rows at a time."""

import argparse
import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.cli.arguments import character, option
from gbmrank.cli.models import ModelFile
from gbmrank.cli.screen import show
from gbmrank.data.files import spreadsheet_cell
from gbmrank.data.readers import ROW_FORMATS, FileOptions
from gbmrank.data.readers.stream import read_parts
from gbmrank.errors import ConfigError, import_optional
from gbmrank.types import FloatArray

_Columns = dict[str, npt.NDArray[Any]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    option(parser, "model MODEL", "model file of LightGBM or XGBoost")
    option(parser, "data DATA", "LETOR text, CSV, Parquet, or folders of them", nargs="+")
    out = (
        "scores in the order of the rows, with ids where there are some: .csv, .tsv or "
        ".parquet; .txt has one score per line"
    )
    option(parser, "--out FILE", out, required=True)
    option(parser, "--label-column NAME", "column of the labels, which are not used")
    option(parser, "--qid-column NAME", "column of the query ids")
    option(parser, "--delimiter CHAR", "of CSV files", type=character)
    parser.add_argument("--format", choices=ROW_FORMATS, help="format of DATA (default: guessed)")
    option(parser, "--force", "overwrite the file")


def run(given: argparse.Namespace) -> int:
    """Read, score, write."""
    out = Path(given.out)
    if out.suffix.lower() not in _WRITERS:
        raise ConfigError(f"--out must end in {', '.join(_WRITERS)}; got {given.out!r}")
    if out.exists() and not given.force:
        raise ConfigError(f"{out} exists; give another --out, or overwrite it with --force")
    model = ModelFile.read(given.model)
    temporary = out.with_name(f".{out.stem}.{os.getpid()}{out.suffix}")
    try:
        count = _WRITERS[out.suffix.lower()](temporary, _scored(given, model))
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)
    known = {"schema": "gbmrank.predict/1", "out": given.out, "rows": count}
    return show(given, known, f"{count:,} scores in {out}", indent=None)


def _scored(given: argparse.Namespace, model: ModelFile) -> Iterator[_Columns]:
    """Yield ids and scores of some rows at a time."""
    header = model.header(given.label_column, given.qid_column)
    options = FileOptions(
        form=given.format, columns=header, delimiter=given.delimiter, need_qid=False
    )
    for _, part in read_parts(given.data, options):
        scores: FloatArray = model.scores(part)
        ids = {"qid": part.qid, "docid": part.ids}
        yield {**{name: one for name, one in ids.items() if one is not None}, "score": scores}


def _write_text(path: Path, parts: Iterator[_Columns]) -> int:
    count = 0
    with path.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        plain = path.suffix.lower() == ".txt"
        for part in parts:
            if not count and not plain:
                writer.writerow(part)
            shown = part["score"].tolist()
            ids = [] if plain else [one.tolist() for name, one in part.items() if name != "score"]
            rows = zip(
                *([spreadsheet_cell(str(x)) for x in one] for one in ids), shown, strict=True
            )
            writer.writerows(rows)
            count += len(shown)
    return count


def _write_parquet(path: Path, parts: Iterator[_Columns]) -> int:
    missing = "Parquet files need pyarrow; install it with: pip install 'gbmrank[parquet]'"
    pa, pq = (import_optional(name, missing) for name in ("pyarrow", "pyarrow.parquet"))
    count, writer = 0, None
    try:
        for part in parts:
            table = pa.table({name: np.asarray(one).tolist() for name, one in part.items()})
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
            count += len(part["score"])
    finally:
        if writer is not None:
            writer.close()
    return count


_WRITERS = {
    ".csv": _write_text,
    ".tsv": _write_text,
    ".parquet": _write_parquet,
    ".txt": _write_text,
}
