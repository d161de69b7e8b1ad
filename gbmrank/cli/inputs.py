"""Which file is what: from the names on the command line to labels and scores."""

import argparse
import os
import re
import stat
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import numpy.typing as npt

from gbmrank.cli.numbers import whole
from gbmrank.data.readers import (
    Columns,
    Limits,
    RankingFile,
    read_column,
    read_csv,
    read_letor,
    read_parquet,
    read_trec,
    table_format,
)
from gbmrank.data.readers.text import quoted, read_lines, to_number
from gbmrank.errors import ConfigError, DataError
from gbmrank.types import FloatArray

__all__ = ["FORMATS", "Input", "add_arguments", "read_input"]

FORMATS = {"letor": "LETOR", "csv": "CSV", "parquet": "Parquet", "trec": "TREC qrels and run"}
_LETOR_LINE = re.compile(r"\S+(\s+qid:\S+)?(\s+\d+:\S+)*\s*(#.*)?")
_DEFAULTS = Limits()


@final
@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """Labels and scores of the same rows, and where they come from."""

    file: RankingFile
    scores: FloatArray
    sizes: FloatArray | None
    form: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say what to read."""
    files = parser.add_argument_group(
        "files",
        "LETOR or svmlight text with a file of scores (one number per line), a CSV or Parquet "
        "table (scores in the same table or another file), or TREC qrels and a run; .gz is fine.",
    )
    files.add_argument("--labels", required=True, metavar="FILE", help="labels or qrels")
    files.add_argument(
        "--scores", metavar="FILE", help="scores or run; not needed for a table that has them"
    )
    files.add_argument(
        "--group", metavar="FILE", help="rows per query, one number per line, instead of qid"
    )
    files.add_argument(
        "--format", choices=tuple(FORMATS), help="of the labels; guessed if left out"
    )
    files.add_argument(
        "--complete", action="store_true", help="TREC: count judged topics that the run lacks"
    )
    files.add_argument(
        "--zero-based", action="store_true", help="LETOR: feature indices count from 0"
    )
    columns = parser.add_argument_group("columns of a table")
    for name in ("label", "score", "qid"):
        columns.add_argument(f"--{name}-column", metavar="NAME", help=f"column of the {name}")
    columns.add_argument("--delimiter", metavar="CHAR", help="between the cells of a CSV file")
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--max-bytes",
        type=whole,
        metavar="N",
        default=_DEFAULTS.max_bytes,
        help="largest text, unpacked",
    )
    limits.add_argument(
        "--max-line", type=whole, metavar="N", default=_DEFAULTS.max_line, help="longest line"
    )


def read_input(given: argparse.Namespace) -> Input:
    """Read what the command line names.

    Raises
    ------
    GbmrankError
        For a file that cannot be read, options that do not fit it, or rows that do not match.
    """
    limits = replace(_DEFAULTS, max_bytes=given.max_bytes, max_line=given.max_line)
    form = given.format or _guess(given.labels, limits)
    _check_options(given, form)
    if form == "trec":
        file = read_trec(given.labels, given.scores, complete=given.complete, limits=limits)
    elif form == "letor":
        file = read_letor(
            given.labels,
            features=False,
            zero_based=given.zero_based,
            need_qid=given.group is None,
            limits=limits,
        )
    else:
        columns = Columns(
            label=given.label_column,
            qid=given.qid_column,
            score=given.score_column if given.scores is None else None,
        )
        file = _read_table(given.labels, form, columns, given, limits)
    sizes = None if given.group is None else read_column(given.group, limits)
    if sizes is None and file.qid is None:
        raise DataError(
            f"{quoted(given.labels)} has no column of query ids under a usual name (qid, query_id, "
            "topic); name one with --qid-column, or give the rows per query with --group FILE"
        )
    if sizes is not None and file.qid is not None:
        _check_sizes(sizes, file.qid, given)
    return Input(file, _scores(file, given, limits), sizes, form)


def _read_table(
    path: str, form: str, columns: Columns, given: argparse.Namespace, limits: Limits
) -> RankingFile:
    if form == "parquet":
        return read_parquet(path, columns, limits=limits)
    return read_csv(path, columns, delimiter=given.delimiter, limits=limits)


def _scores(file: RankingFile, given: argparse.Namespace, limits: Limits) -> FloatArray:
    scores, source, other = file.scores, given.labels, None
    if given.scores is not None and file.unranked is None:
        source = given.scores
        form = table_format(source)
        if form is None:
            scores = read_column(source, limits)
        else:
            columns = Columns(score=given.score_column, need_label=False)
            other = _read_table(source, form, columns, given, limits)
            scores = other.scores
    if scores is None:
        raise DataError(
            f"{quoted(source)} has no column of scores under a usual name (score, prediction); "
            "name one with --score-column, or give a file of scores with --scores"
        )
    if len(scores) != file.n_rows:
        raise DataError(
            f"{quoted(source)} has {len(scores):,} scores, but {quoted(given.labels)} has "
            f"{file.n_rows:,} rows; both need one entry per row, in the same order"
        )
    if other is not None:
        _check_order(file, other, given)
    return scores


def _check_order(file: RankingFile, other: RankingFile, given: argparse.Namespace) -> None:
    """Refuse scores whose ids say that they are in another order than the labels."""
    named = given.qid_column is not None  # what has a usual name in the scores may be another id
    pairs = {"document": (file.ids, other.ids)} | (
        {} if named else {"query": (file.qid, other.qid)}
    )
    for what, (own, theirs) in pairs.items():
        if own is None or theirs is None:
            continue
        differ = (row for row in np.flatnonzero(own != theirs) if not _alike(own[row], theirs[row]))
        row = next(differ, None)
        if row is not None:
            raise DataError(
                f"{quoted(given.scores)} has the {what} {quoted(theirs[row])} in row {row}, where "
                f"{quoted(given.labels)} has {quoted(own[row])}; scores are taken in the order of "
                "the labels: sort both files alike, or leave the column of ids out of the scores"
            )


def _alike(one: str, other: str) -> bool:
    """Tell whether ids are one number in two spellings, or one of them is not told."""
    if not one or not other:
        return True
    number = to_number(one)
    return number is not None and number == to_number(other)


def _check_sizes(sizes: FloatArray, qid: npt.NDArray[np.str_], given: argparse.Namespace) -> None:
    """Refuse sizes of queries that contradict the ids of the rows."""
    ends = np.append(np.flatnonzero(qid[1:] != qid[:-1]) + 1, len(qid))
    if sizes.sum() == len(qid) and not np.array_equal(np.cumsum(sizes), ends):
        raise DataError(
            f"--group {given.group} has {len(sizes):,} queries with other rows than the query ids "
            f"of {quoted(given.labels)}, which change {len(ends) - 1:,} times; leave out the "
            "option or the ids"
        )


def _check_options(given: argparse.Namespace, form: str) -> None:
    """Refuse options that would silently do nothing."""
    table = form in ("csv", "parquet")
    scores = form if given.scores is None or form == "trec" else table_format(given.scores)
    misplaced = {
        "--complete": given.complete and form != "trec",
        "--zero-based": given.zero_based and form != "letor",
        "--group": given.group is not None and form == "trec",
        "--label-column": given.label_column is not None and not table,
        "--qid-column": given.qid_column is not None and not table,
        "--delimiter": given.delimiter is not None and "csv" not in (form, scores),
    }
    for option, wrong in misplaced.items():
        if wrong:
            raise ConfigError(f"{option} has no meaning for {FORMATS[form]} ({given.labels})")
    if given.score_column is not None and scores not in ("csv", "parquet"):
        source = given.scores or given.labels
        raise ConfigError(f"--score-column has no meaning for {source}, which is no CSV or Parquet")
    if given.delimiter is not None and len(given.delimiter) != 1:
        raise ConfigError(f"--delimiter is one character, got {given.delimiter!r}")
    if given.scores is None and not table:
        raise ConfigError(f"--scores FILE is needed with {FORMATS[form]} ({given.labels})")


def _guess(path: str, limits: Limits) -> str:
    """Tell the format from the file's name, else from its first line."""
    known = table_format(path)
    if known is not None:
        return known
    if not stat.S_ISREG(mode := os.stat(path).st_mode) and not stat.S_ISDIR(mode):
        raise ConfigError(
            f"{quoted(path)} is no regular file (a pipe?), and to tell its format would use up its "
            f"first lines; say --format {' or '.join(FORMATS)}"
        )
    small = replace(limits, block=1 << 16)
    _, line = next(read_lines(path, small), (0, ""))
    if not line:
        raise DataError(f"{quoted(path)} is empty")
    words = line.split()
    if "," in line.partition("#")[0]:
        return "csv"
    if len(words) == 4 and not any(":" in word for word in words[:2]) and not line.startswith("#"):
        return "trec"
    if _LETOR_LINE.fullmatch(line.strip()) or line.startswith("#"):
        return "letor"
    raise DataError(
        f"cannot tell what {quoted(path)} is from its first line, {quoted(line)}; say --format "
        f"{' or '.join(FORMATS)}"
    )
