"""Files of rows in any supported format, with a query id for each row.

Every command and function that takes files of rows reads them by :func:`read_rows`.
"""

import itertools
import os
import re
import stat
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from gbmrank.data.queries import Groups
from gbmrank.data.readers.frames import Header, read_csv, read_parquet, table_format
from gbmrank.data.readers.letor import read_letor, sizes_beside
from gbmrank.data.readers.text import (
    Limits,
    PathLike,
    RankingFile,
    quoted,
    read_column,
    read_lines,
    to_number,
)
from gbmrank.data.readers.trec import read_trec
from gbmrank.errors import ConfigError, DataError, GroupError

FORMATS = {"letor": "LETOR", "csv": "CSV", "parquet": "Parquet", "trec": "TREC qrels and run"}
"""Formats of files and their titles."""
ROW_FORMATS = ("letor", "csv", "parquet")
"""Formats whose rows have features."""
_USED = {
    "letor": ("zero_based", "sizes"),
    "csv": ("label", "qid", "score", "delimiter", "sizes", "columns"),
    "parquet": ("label", "qid", "score", "sizes", "columns"),
    "trec": ("run", "complete"),
}
_OPTIONS = {
    "label": "the column of labels (label, --label-column)",
    "qid": "the column of query ids (qid, --qid-column)",
    "score": "the column of scores (--score-column)",
    "form": "--format",
    "delimiter": "--delimiter",
    "zero_based": "--zero-based",
    "sizes": "--group",
    "run": "a run (--scores)",
    "complete": "--complete",
}
_LETOR_LINE = re.compile(r"\S+(\s+qid:\S+)?(\s+\d+:\S+)*\s*(#.*)?")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """How files of rows are read."""

    form: str | None = None  # a key of FORMATS; None: by the file's name, else by its first line
    columns: Header = field(default_factory=Header)  # features=() reads none, of any format
    delimiter: str | None = None  # of a CSV file; None: by its first line
    zero_based: bool = False  # the first feature of a LETOR file has index 0
    sizes: PathLike | None = None  # file of the rows per query; None: LightGBM's, if it is there
    need_qid: bool = True  # reject files without query ids
    run: PathLike | None = None  # belongs to TREC judgments
    complete: bool = False  # keep judged topics that are not in the run
    limits: Limits = field(default_factory=Limits)

    def check_used(self, what: str, used: Collection[str] = ()) -> None:
        """Raise ConfigError for an option that would have no effect."""
        for name, title in _OPTIONS.items():
            owner = self.columns if name in ("label", "qid", "score") else self
            if getattr(owner, name) not in (None, False) and name not in used:
                raise ConfigError(f"{title} has no effect on {what}; leave it out")
        for key, name in self.columns.columns.items():
            if "columns" not in used:
                raise ConfigError(
                    f"{key} is the name of a column, {name!r}, but there are no named columns in "
                    f"{what}; give an array, or a table"
                )


def read_rows(path: PathLike, options: FileOptions | None = None) -> RankingFile:
    """Read a file of rows in any supported format; text may be compressed with gzip.

    Raises ConfigError for an option that has no effect on this format.
    """
    options = options or FileOptions()
    form = options.form or guess_format(path, options.limits)
    if form not in FORMATS:
        raise ConfigError(f"format must be one of {', '.join(FORMATS)}; got {form!r}")
    hint = ", which has no columns (--format csv says otherwise)" if form == "letor" else ""
    what = f"{quoted(path)}, read as {FORMATS[form]}{hint}"
    options.check_used(what, ("form", *_USED[form]))
    columns, limits = options.columns, options.limits
    if form == "trec":
        if options.run is None:
            raise ConfigError(f"--scores FILE is needed with {FORMATS[form]} ({path})")
        return read_trec(path, options.run, complete=options.complete, limits=limits)
    if form == "parquet":
        file = read_parquet(path, columns, limits=limits)
    elif form == "csv":
        file = read_csv(path, columns, delimiter=options.delimiter, limits=limits)
    else:
        wanted = columns.features != ()
        rules = {"zero_based": options.zero_based, "need_qid": False}
        file = read_letor(path, features=wanted, limits=limits, **rules)
    return _with_queries(file, path, options) if options.need_qid else file


def guess_format(path: PathLike, limits: Limits | None = None) -> str:
    """Return the format of a file by its name, else by its first line."""
    if (known := table_format(path)) is not None:
        return known
    if not stat.S_ISREG(mode := os.stat(path).st_mode) and not stat.S_ISDIR(mode):
        raise ConfigError(
            f"{quoted(path)} is not a regular file (a pipe?), and guessing its format would "
            f"consume its first lines; give --format {' or '.join(FORMATS)}"
        )
    lines = (line for _, line in read_lines(path, replace(limits or Limits(), block=1 << 16)))
    first = next(lines, "")
    if not first:
        raise DataError(f"{quoted(path)} is empty")
    line = next((one for one in itertools.chain([first], lines) if not one.startswith("#")), first)
    words = line.split()
    if "," in line.partition("#")[0]:
        return "csv"
    judged = len(words) == 4 and to_number(words[3]) is not None
    if judged and not any(":" in word for word in words[:2]) and not line.startswith("#"):
        return "trec"
    tabs = "\t" in line and not _LETOR_LINE.fullmatch(line.strip())
    if tabs or any(mark in words[0] for mark in ";|"):
        return "csv"
    if _LETOR_LINE.fullmatch(line.strip()) or line.startswith("#"):
        return "letor"
    raise DataError(
        f"cannot infer the format of {quoted(path)} from its first line, {quoted(line)}; give "
        f"--format {' or '.join(FORMATS)}"
    )


def _with_queries(file: RankingFile, path: PathLike, options: FileOptions) -> RankingFile:
    """Return a file with query ids, which are numbers if they come from a file of sizes."""
    beside = sizes_beside(path)
    found = options.sizes or (beside if beside.is_file() else None)
    if file.qid is not None and options.sizes is None:
        note = f"{quoted(path)} has query ids, so {beside.name} beside it was not read"
        return file if found is None else replace(file, notes=(*file.notes, note))
    if found is None:
        raise DataError(
            f"{quoted(path)} has no query ids: give qid:... in LETOR lines, name the column of a "
            f"table (qid, --qid-column), or write the rows per query, one number per line, to "
            f"{beside.name} or to a file for gbmrank evaluate --group"
        )
    try:
        groups = Groups.read(file.n_rows, read_column(found, options.limits), None)
    except GroupError as error:
        raise GroupError(f"{quoted(found)}: {error}") from error
    if file.qid is not None:
        ends = np.append(np.flatnonzero(file.qid[1:] != file.qid[:-1]) + 1, file.n_rows)
        if not np.array_equal(groups.offsets[1:], ends):
            raise DataError(
                f"{quoted(found)} has {groups.n_queries:,} queries that do not match the query ids "
                f"of {quoted(path)}; leave out the option or the ids"
            )
    notes = [] if found is options.sizes else [f"queries were read from {beside.name}"]
    return replace(
        file,
        qid=groups.spread(np.arange(groups.n_queries).astype(np.str_)),
        numbered=True,
        notes=(*file.notes, *notes),
    )
