"""``gbmrank evaluate``: the quality of scores, with the conventions that it was measured by."""

import argparse
import csv
import io
import json
import math
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from gbmrank.api import Metric, MetricList, metric, metrics_callback
from gbmrank.cli.arguments import number, whole
from gbmrank.cli.screen import bold, clean, table
from gbmrank.data.queries import Groups, RankingData
from gbmrank.data.readers import (
    Header,
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
from gbmrank.errors import ConfigError, DataError, MetricError
from gbmrank.experiments.store import spreadsheet_cell, write_whole
from gbmrank.metrics import BUILTIN_METRICS, TOOLS, Ranked, mean_over_queries
from gbmrank.metrics.conventions import withhold
from gbmrank.registry.guards import bind_metric
from gbmrank.registry.spec import format_value, parse_list
from gbmrank.types import FloatArray, IntArray

__all__ = ["add_arguments", "run"]

_FORMATS = {"letor": "LETOR", "csv": "CSV", "parquet": "Parquet", "trec": "TREC qrels and run"}
_TABLES = ("csv", "parquet")
_LETOR_LINE = re.compile(r"\S+(\s+qid:\S+)?(\s+\d+:\S+)*\s*(#.*)?")
_DEFAULTS = Limits()
_DEFAULT_METRICS = "ndcg@1,5,10"
_EMPTY = {"skip": "skipped", "zero": "counted as 0", "one": "counted as 1"}
_SCHEMA = "gbmrank.evaluate/1"
_SUFFIXES = (".csv", ".tsv", ".json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    _add_input_arguments(parser)
    measures = parser.add_argument_group("measures")
    measures.add_argument(
        "--metrics",
        default=_DEFAULT_METRICS,
        metavar="LIST",
        help='for example "ndcg@1,5,10, map, err(max_grade=2)@10" (default: %(default)s)',
    )
    measures.add_argument("--like", choices=tuple(TOOLS), help="give the numbers this tool gives")
    measures.add_argument("--gain", metavar="GAIN", help="exp2, linear, or a table such as 0,1,3,7")
    measures.add_argument(
        "--threshold", type=number, metavar="Y", help="labels from here on are relevant"
    )
    measures.add_argument(
        "--max-grade", type=number, metavar="Y", help="largest grade of the scale (ERR)"
    )
    measures.add_argument("--ties", metavar="RULE", help="mean (default), worst, best, index")
    measures.add_argument(
        "--empty", metavar="RULE", help="undefined queries: skip (default), zero, one"
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--per-query", action="store_true", help="print the value of every query too"
    )
    output.add_argument(
        "--output", metavar="FILE", help="write the values of queries to .csv, .tsv or .json"
    )
    output.add_argument("--force", action="store_true", help="overwrite the output file")
    output.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Read, evaluate, print."""
    metrics = _metrics(given)
    if given.output is not None:
        _check_output(given.output, given.force)
    source = _read_input(given)
    result = _evaluate(source, metrics.metrics)
    if given.output is not None:
        _save(given.output, result)
    if given.json:
        print(json.dumps(_as_json(given, source, result), indent=2, allow_nan=False))
    else:
        print(_as_text(given, source, result))
    return 0


class _Input(NamedTuple):
    """Labels and scores of the same rows, and where they come from."""

    file: RankingFile
    scores: FloatArray
    sizes: FloatArray | None
    form: str


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Measured:
    """One metric: its values (NaN where undefined), their mean, and the undefined queries."""

    metric: Metric
    values: FloatArray
    mean: float
    undefined: int
    reason: str

    @property
    def conventions(self) -> dict[str, Any]:
        """Options of the metric that change its value, except the cut-off."""
        measure = self.metric.measure
        names = [field.name for field in fields(measure) if field.name != "k"]
        shared = ("ties", "empty", "dtype")
        ordered = [*(name for name in names if name not in shared), *shared]
        return {name: getattr(measure, name) for name in ordered}


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Evaluation:
    """Everything that is printed; ``rows`` counts the ranked rows of each query."""

    groups: Groups
    rows: IntArray
    labels: FloatArray
    tied_rows: int
    tied_queries: int
    measured: tuple[_Measured, ...]
    notes: tuple[str, ...]

    @property
    def qid(self) -> list[str]:
        """One id per query; numbers from 0 where the queries have no name."""
        ids = self.groups.ids
        return [str(one) for one in (range(self.groups.n_queries) if ids is None else ids)]

    @property
    def names(self) -> list[str]:
        """One short name per metric."""
        return _short_names([one.metric for one in self.measured])


def _add_input_arguments(parser: argparse.ArgumentParser) -> None:
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
        "--format", choices=tuple(_FORMATS), help="of the labels; guessed if left out"
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


def _read_input(given: argparse.Namespace) -> _Input:
    """Read what the command line names."""
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
        columns = Header(
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
    return _Input(file, _scores(file, given, limits), sizes, form)


def _read_table(
    path: str, form: str, columns: Header, given: argparse.Namespace, limits: Limits
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
            columns = Header(score=given.score_column, need_label=False)
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
    """Reject scores whose ids say that they are in another order than the labels."""
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
    """Whether ids are one number in two spellings, or one of them is missing."""
    if not one or not other:
        return True
    number = to_number(one)
    return number is not None and number == to_number(other)


def _check_sizes(sizes: FloatArray, qid: npt.NDArray[np.str_], given: argparse.Namespace) -> None:
    """Reject sizes of queries that contradict the ids of the rows."""
    ends = np.append(np.flatnonzero(qid[1:] != qid[:-1]) + 1, len(qid))
    if sizes.sum() == len(qid) and not np.array_equal(np.cumsum(sizes), ends):
        raise DataError(
            f"--group {given.group} has {len(sizes):,} queries with other rows than the query ids "
            f"of {quoted(given.labels)}, which change {len(ends) - 1:,} times; leave out the "
            "option or the ids"
        )


def _check_options(given: argparse.Namespace, form: str) -> None:
    """Reject options that would silently do nothing."""
    is_table = form in _TABLES
    scores = form if given.scores is None or form == "trec" else table_format(given.scores)
    misplaced = {
        "--complete": given.complete and form != "trec",
        "--zero-based": given.zero_based and form != "letor",
        "--group": given.group is not None and form == "trec",
        "--label-column": given.label_column is not None and not is_table,
        "--qid-column": given.qid_column is not None and not is_table,
        "--delimiter": given.delimiter is not None and "csv" not in (form, scores),
    }
    for option, wrong in misplaced.items():
        if wrong:
            raise ConfigError(f"{option} has no meaning for {_FORMATS[form]} ({given.labels})")
    if given.score_column is not None and scores not in _TABLES:
        source = given.scores or given.labels
        raise ConfigError(f"--score-column has no meaning for {source}, which is no CSV or Parquet")
    if given.delimiter is not None and len(given.delimiter) != 1:
        raise ConfigError(f"--delimiter is one character, got {given.delimiter!r}")
    if given.scores is None and not is_table:
        raise ConfigError(f"--scores FILE is needed with {_FORMATS[form]} ({given.labels})")


def _guess(path: str, limits: Limits) -> str:
    """Tell the format from the file's name, else from its first line."""
    known = table_format(path)
    if known is not None:
        return known
    if not stat.S_ISREG(mode := os.stat(path).st_mode) and not stat.S_ISDIR(mode):
        raise ConfigError(
            f"{quoted(path)} is no regular file (a pipe?), and to tell its format would use up its "
            f"first lines; say --format {' or '.join(_FORMATS)}"
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
        f"{' or '.join(_FORMATS)}"
    )


def _metrics(given: argparse.Namespace) -> MetricList:
    """Make the metrics; options go to those that have them and do not state them."""
    options = {
        "gain": None if given.gain is None else _gain(given.gain),
        "threshold": given.threshold,
        "max_grade": given.max_grade,
        "ties": given.ties,
        "empty": given.empty,
    }
    options = {key: value for key, value in options.items() if value is not None}
    plain = metrics_callback(given.metrics)
    known = [{field.name for field in fields(one.measure)} for one in plain]
    for key in options:
        if not any(key in names for names in known):
            raise MetricError(_no_option(key, str(plain)))
    made = [
        metric(
            spec,
            like=given.like,
            **{k: v for k, v in options.items() if k in names and k not in dict(spec.params)},
        )
        for spec, names in zip(parse_list(given.metrics), known, strict=True)
    ]
    return MetricList(made)


def _no_option(key: str, given: str) -> str:
    """Say that none of the metrics has an option, and which ones have it."""
    able = sorted(cls.name for cls in BUILTIN_METRICS if key in {one.name for one in fields(cls)})
    return (
        f"--{key.replace('_', '-')} is an option of none of {given}; it goes with {', '.join(able)}"
    )


def _gain(text: str) -> str | tuple[float, ...]:
    if "," not in text:
        return text
    try:
        return tuple(number(part.strip()) for part in text.strip("[]() ").split(","))
    except argparse.ArgumentTypeError:
        raise MetricError(
            f"--gain is exp2, linear or a table such as 0,1,3,7; got {text!r}"
        ) from None


def _evaluate(given: _Input, metrics: Sequence[Metric]) -> _Evaluation:
    """Evaluate metrics on a file, sorting the scores once.

    Rows that were judged and not retrieved get no credit; see
    :func:`gbmrank.metrics.conventions.withhold`.
    """
    columns = {"qid": given.file.qid} if given.sizes is None else {"group": given.sizes}
    data = RankingData.from_arrays(given.file.labels, **columns)
    scores = data.read_scores(given.scores)
    unranked = given.file.unranked
    hidden = np.zeros(len(scores), bool) if unranked is None else data.groups.arrange(unranked)
    bound = [bind_metric(item.measure, data) for item in metrics]
    starts = data.groups.offsets[:-1]
    ranked_rows = data.groups.sizes - np.add.reduceat(hidden.astype(np.int64), starts)
    if hidden.any():
        for item, one in zip(metrics, bound, strict=True):
            withhold(item.measure, one, hidden, ranked_rows)
    ranked = Ranked(scores, data.groups).prepare(*(one.depth for one in bound))
    notes = list(given.file.notes)
    if data.groups.row_order is not None:
        notes.append("rows of a query are not all adjacent; they were put together by their id")
    return _Evaluation(
        data.groups,
        ranked_rows,
        data.labels,
        *_ties(scores, hidden, data.groups),
        tuple(
            _measure(item, one.per_query(ranked), data)
            for item, one in zip(metrics, bound, strict=True)
        ),
        tuple(notes),
    )


def _measure(item: Metric, values: FloatArray, data: RankingData) -> _Measured:
    undefined = np.isnan(values)
    mean = mean_over_queries(values, None, item.measure.empty)
    return _Measured(item, values, mean, int(undefined.sum()), _reason(item, undefined, data))


def _reason(item: Metric, undefined: npt.NDArray[np.bool_], data: RankingData) -> str:
    """Say what the undefined queries have in common."""
    if not undefined.any():
        return ""
    starts = data.groups.offsets[:-1]
    largest = np.maximum.reduceat(data.labels, starts)[undefined]
    smallest = np.minimum.reduceat(data.labels, starts)[undefined]
    threshold = getattr(item.measure, "threshold", None)
    relevant = largest > 0 if threshold is None else largest >= threshold
    if not relevant.any():
        return "no relevant row"
    if (data.groups.sizes[undefined] == 1).all():
        return "one row only"
    same_side = smallest >= threshold if threshold is not None else smallest == largest
    return "all labels alike" if (same_side | ~relevant).all() else "the measure is not defined"


def _ties(scores: FloatArray, hidden: npt.NDArray[np.bool_], groups: Groups) -> tuple[int, int]:
    """Return how many rows tie with another of their query, and in how many queries."""
    queries = groups.spread(np.arange(groups.n_queries))[~hidden]
    shown = scores[~hidden]
    order = np.lexsort((shown, queries))
    queries, shown = queries[order], shown[order]
    same = (queries[1:] == queries[:-1]) & (shown[1:] == shown[:-1])
    tied = np.zeros(len(shown), dtype=bool)
    tied[1:] |= same
    tied[:-1] |= same
    return int(tied.sum()), len(np.unique(queries[tied]))


def _as_text(given: argparse.Namespace, source: _Input, result: _Evaluation) -> str:
    names = result.names
    rows = [
        (name, _shown(one.mean), result.groups.n_queries - _left_out(one), _undefined(one))
        for name, one in zip(names, result.measured, strict=True)
    ]
    head = ["metric", "mean", "queries", "undefined"]
    parts = [
        _about(given, source, result),
        table(head, rows, "<>>"),
        _conventions(given.like, names, result.measured),
    ]
    if given.per_query:
        columns = [[_shown(value) for value in one.values] for one in result.measured]
        lines = list(zip(result.qid, map(str, result.rows), *columns, strict=True))
        parts.append(table(["query", "rows", *names], lines, "<>" + ">" * len(names)))
    return "\n\n".join(parts)


def _about(given: argparse.Namespace, source: _Input, result: _Evaluation) -> str:
    groups = result.groups
    n_rows = int(result.rows.sum())
    grades = f"{result.labels.min():g} to {result.labels.max():g}"
    share = 100.0 * result.tied_rows / max(n_rows, 1)
    tied = (
        f"{share:.3g} % of the rows tie with another of their query, in {result.tied_queries:,} of "
        f"{groups.n_queries:,} queries"
        if result.tied_rows
        else "no ties"
    )
    lines = [
        ("labels", f"{given.labels} ({_FORMATS[source.form]})"),
        ("scores", given.scores or given.labels),
        ("rows", f"{n_rows:,} in {groups.n_queries:,} queries, labels {grades}"),
        ("ties", tied),
        *(("note", note) for note in result.notes),
    ]
    return "\n".join(f"{bold(f'{what:<6}')}  {clean(text)}" for what, text in lines)


def _left_out(one: _Measured) -> int:
    return one.undefined if one.metric.measure.empty == "skip" else 0


def _undefined(one: _Measured) -> str:
    if not one.undefined:
        return ""
    return f"{one.undefined:,} {_EMPTY[one.metric.measure.empty]}: {one.reason}"


def _conventions(like: str | None, names: Sequence[str], measured: Sequence[_Measured]) -> str:
    """Return one line per set of conventions, with the metrics that share it."""
    sharing: dict[str, list[str]] = {}
    for name, one in zip(names, measured, strict=True):
        options = {k: v for k, v in one.conventions.items() if v is not None and v != "float64"}
        text = "  ".join(f"{key}={_option(value)}" for key, value in options.items())
        sharing.setdefault(text, []).append(name)
    title = "conventions" if like is None else f"conventions, as in {like} where not stated"
    width = max(len(", ".join(group)) for group in sharing.values())
    lines = [f"{', '.join(group):<{width}}  {text}" for text, group in sharing.items()]
    return "\n".join([bold(title), *map(clean, lines)])


def _option(value: Any) -> str:
    if isinstance(value, float):
        short = round(value, 6)
        return (
            f"above {short:g}"
            if short < value == math.nextafter(short, math.inf)
            else f"{value:.15g}"
        )
    return format_value(value if isinstance(value, bool | int | str | tuple) else str(value))


def _as_json(given: argparse.Namespace, source: _Input, result: _Evaluation) -> dict[str, Any]:
    from gbmrank import __version__

    names = result.names
    out: dict[str, Any] = {
        "schema": _SCHEMA,
        "gbmrank": __version__,
        "labels": given.labels,
        "scores": given.scores or given.labels,
        "format": source.form,
        "like": given.like,
        "rows": int(result.rows.sum()),
        "unranked_rows": result.groups.n_rows - int(result.rows.sum()),
        "queries": result.groups.n_queries,
        "ties": {"rows": result.tied_rows, "queries": result.tied_queries},
        "notes": list(result.notes),
        "metrics": [_metric_json(*pair) for pair in zip(names, result.measured, strict=True)],
    }
    if given.per_query:
        out["per_query"] = _queries_json(result)
    return out


def _metric_json(name: str, one: _Measured) -> dict[str, Any]:
    return {
        "name": name,
        "metric": str(one.metric),
        "mean": _json_number(one.mean),
        "queries": len(one.values) - _left_out(one),
        "undefined": one.undefined,
        "reason": one.reason or None,
        "higher_is_better": one.metric.higher_is_better,
        "conventions": {key: _json_option(value) for key, value in one.conventions.items()},
    }


def _json_option(value: object) -> object:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return list(value) if isinstance(value, tuple) else str(value)


def _short_names(metrics: Sequence[Metric]) -> list[str]:
    """Return ``name@k`` for each metric, and the whole text where that is not unique.

    Examples
    --------
    >>> from gbmrank.api import metric
    >>> both = [metric("ndcg@5"), metric("ndcg@5", gain="linear")]
    >>> _short_names([metric("map", threshold=1), *both])
    ['map', 'ndcg@5', 'ndcg(gain=linear)@5']
    """
    short = [
        item.spec.name + ("" if item.spec.k is None else f"@{item.spec.k}") for item in metrics
    ]
    return [
        name if short.count(name) == 1 else str(item)
        for name, item in zip(short, metrics, strict=True)
    ]


def _shown(value: float) -> str:
    """Return a value with four decimals, or a dash where it is undefined."""
    return "-" if math.isnan(value) else f"{value:.4f}"


def _json_number(value: float) -> float | None:
    """Return a value as JSON has it."""
    return None if math.isnan(value) else float(value)


def _queries_json(result: _Evaluation) -> list[dict[str, Any]]:
    """Return one object per query; an undefined value is null."""
    names = result.names
    return [
        {
            "qid": qid,
            "rows": int(result.rows[i]),
            "values": {
                name: _json_number(one.values[i])
                for name, one in zip(names, result.measured, strict=True)
            },
        }
        for i, qid in enumerate(result.qid)
    ]


def _check_output(path: str, force: bool) -> None:
    """Reject an unknown kind of file, and a file that is there unless it may be overwritten."""
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


def _save(path: str, result: _Evaluation) -> None:
    """Write the table of queries; the file is there whole or not at all."""
    suffix = Path(path).suffix.lower()
    if suffix == ".json":
        rows = {"schema": "gbmrank.per_query/1", "per_query": _queries_json(result)}
        text = json.dumps(rows, indent=1)
    else:
        text = _as_csv(result, "," if suffix == ".csv" else "\t")
    write_whole(Path(path).absolute(), text.encode("utf-8"))


def _as_csv(result: _Evaluation, delimiter: str) -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
    writer.writerow(["qid", "rows", *result.names])
    for i, qid in enumerate(result.qid):
        values = [
            "" if math.isnan(one.values[i]) else repr(float(one.values[i]))
            for one in result.measured
        ]
        writer.writerow([spreadsheet_cell(qid), int(result.rows[i]), *values])
    return text.getvalue()
