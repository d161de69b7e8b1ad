"""``gbmrank evaluate``: metrics of scores, with the conventions used to compute them."""

import argparse
import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank.api import Metric, MetricList, metric, metrics_callback
from gbmrank.cli.arguments import DELIMITER_HELP, character, number, option, whole
from gbmrank.cli.screen import bold, clean, show, table
from gbmrank.data.files import spreadsheet_cell, write_whole
from gbmrank.data.queries import Groups, RankingData, sorted_ties
from gbmrank.data.readers import (
    FORMATS,
    FileOptions,
    Header,
    Limits,
    RankingFile,
    guess_format,
    read_column,
    read_rows,
    table_format,
)
from gbmrank.data.readers.text import quoted, to_number
from gbmrank.errors import ConfigError, DataError, MetricError
from gbmrank.metrics import BUILTIN_METRICS, TOOLS, AbstractBoundMetric, Ranked, mean_over_queries
from gbmrank.metrics.conventions import withhold
from gbmrank.registry.guards import bind_metric
from gbmrank.registry.spec import format_value, parse_list
from gbmrank.types import FloatArray, IntArray

_EMPTY = {"skip": "skipped", "zero": "counted as 0", "one": "counted as 1"}
_STANDARD_INPUT = "/dev/stdin"
_SUFFIXES = (".csv", ".tsv", ".json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    files = parser.add_argument_group(
        "files",
        "LETOR or svmlight text with a file of scores (one number per line), a CSV or Parquet "
        "table (scores in the same table or another file), or TREC qrels and a run; .gz is fine. "
        "One of the files may be -, standard input.",
    )
    option(files, "--labels FILE", "labels or qrels", required=True)
    option(files, "--scores FILE", "scores or run; not needed for a table that has them")
    group = "rows per query, one number per line, instead of qid (default: LABELS.query)"
    option(files, "--group FILE", group)
    files.add_argument(
        "--format", choices=tuple(FORMATS), help="format of the labels (default: guessed)"
    )
    option(files, "--complete", "TREC: count judged topics missing from the run")
    option(files, "--zero-based", "LETOR: feature indices count from 0")
    columns = parser.add_argument_group("columns of a table")
    for name in ("label", "score", "qid"):
        option(columns, f"--{name}-column NAME", f"column of the {name}")
    option(columns, "--delimiter CHAR", DELIMITER_HELP, type=character)
    limits = parser.add_argument_group("limits")
    size, line = Limits().max_bytes, Limits().max_line
    about = "maximum size of a file, uncompressed"
    option(limits, "--max-bytes N", about, type=whole, default=size)
    option(limits, "--max-line N", "longest line", type=whole, default=line)
    measures = parser.add_argument_group("measures")
    metrics = 'for example "ndcg@1,5,10, map, err(max_grade=2)@10" (default: %(default)s)'
    option(measures, "--metrics LIST", metrics, default="ndcg@1,5,10")
    measures.add_argument("--like", choices=tuple(TOOLS), help="use the conventions of this tool")
    option(measures, "--gain GAIN", "exp2, linear, or a table such as 0,1,3,7")
    option(measures, "--threshold Y", "labels of at least this are relevant", type=number)
    option(measures, "--max-grade Y", "largest grade of the scale (ERR)", type=number)
    option(measures, "--ties RULE", "mean (default), worst, best, index")
    option(measures, "--empty RULE", "undefined queries: skip (default), zero, one")
    output = parser.add_argument_group("output")
    option(output, "--output FILE", "write the value of each query to .csv, .tsv or .json")
    option(output, "--per-query", "also print the value of each query")
    option(output, "--force", "overwrite the output file")


def run(given: argparse.Namespace) -> int:
    """Read, evaluate, print."""
    metrics = _metrics(given)
    piped = [name for name in ("labels", "scores", "group") if getattr(given, name) == "-"]
    if len(piped) > 1:
        options = " and ".join(f"--{name}" for name in piped)
        raise ConfigError(f"{options} cannot both be -, standard input; give one as a file")
    vars(given).update(dict.fromkeys(piped, _STANDARD_INPUT))
    if given.output is not None:
        _check_output(given.output, given.force)
    file, scores, form = _read_input(given)
    result = _evaluate(file, scores, form, metrics.metrics)
    if given.output is not None:
        _save(Path(given.output), result)
    text = partial(_as_text, given, result)
    return show(given, _as_json(given, result), text, allow_nan=False)


class _Measured(NamedTuple):
    """One metric: its short name, its values (NaN where undefined), and why some are undefined."""

    name: str
    metric: Metric
    values: FloatArray
    reason: str

    @property
    def mean(self) -> float:
        """Mean over the queries."""
        return mean_over_queries(self.values, None, self.metric.measure.empty)

    @property
    def undefined(self) -> int:
        """Number of undefined queries."""
        return int(np.isnan(self.values).sum())

    @property
    def counted(self) -> int:
        """Number of queries in the mean."""
        return len(self.values) - self.undefined * (self.metric.measure.empty == "skip")

    @property
    def conventions(self) -> dict[str, Any]:
        """Options of the metric that change its value, except the cut-off."""
        measure = self.metric.measure
        shared = ("ties", "empty", "dtype")
        own = (one.name for one in fields(measure) if one.name not in ("k", *shared))
        return {name: getattr(measure, name) for name in (*own, *shared)}


class _Evaluation(NamedTuple):
    """Everything that is printed; ``rows`` counts the ranked rows of each query."""

    form: str
    groups: Groups
    rows: IntArray
    labels: FloatArray
    tied_rows: int
    tied_queries: int
    measured: list[_Measured]
    notes: list[str]

    @property
    def qid(self) -> list[str]:
        """One id per query; numbers from 0 where the queries have no name."""
        ids = self.groups.ids
        return [str(one) for one in (range(self.groups.n_queries) if ids is None else ids)]


def _read_input(given: argparse.Namespace) -> tuple[RankingFile, FloatArray, str]:
    """Return the labels of the files named on the command line, the scores, and the format."""
    limits = Limits(max_bytes=given.max_bytes, max_line=given.max_line)
    form = given.format or guess_format(given.labels, limits)
    in_table = given.scores is None and form in ("csv", "parquet")
    if given.scores is None and not in_table:
        raise ConfigError(f"--scores FILE is needed with {FORMATS[form]} ({given.labels})")
    score_table = given.scores is not None and table_format(given.scores) is not None
    if given.score_column is not None and not in_table and not score_table:
        raise ConfigError(f"--score-column needs a CSV or Parquet table; {given.scores} is not one")
    score = given.score_column if in_table else None
    options = FileOptions(
        form=form,
        columns=Header(label=given.label_column, qid=given.qid_column, score=score),
        delimiter=None if score_table and form != "csv" else given.delimiter,
        zero_based=given.zero_based,
        sizes=given.group,
        run=given.scores if form == "trec" else None,
        complete=given.complete,
        limits=limits,
    )
    file = read_rows(given.labels, options)
    other, scores = None, file.scores
    if not in_table and form != "trec":
        other = _read_scores(given, limits) if score_table else None
        scores = read_column(given.scores, limits) if other is None else other.scores
    source = given.scores or given.labels
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
    return file, scores, form


def _read_scores(given: argparse.Namespace, limits: Limits) -> RankingFile:
    """Read a table of scores, whose ids are compared with those of the labels."""
    columns = Header(score=given.score_column, need_label=False)
    delimiter = given.delimiter if table_format(given.scores) == "csv" else None
    options = FileOptions(columns=columns, delimiter=delimiter, need_qid=False, limits=limits)
    return read_rows(given.scores, options)


def _check_order(file: RankingFile, other: RankingFile, given: argparse.Namespace) -> None:
    """Reject scores whose ids say that they are in another order than the labels."""
    named = given.qid_column is not None  # a usual name in the scores may be a different id
    columns = [("document", file.ids, other.ids), ("query", file.qid, other.qid)]
    for what, own, theirs in columns[: 1 if named else 2]:
        if own is None or theirs is None:
            continue
        for row in np.flatnonzero((own != theirs) & (own != "") & (theirs != "")):
            one = to_number(own[row])
            if one is None or one != to_number(theirs[row]):  # not one number, written differently
                raise DataError(
                    f"{quoted(given.scores)} has the {what} {quoted(theirs[row])} in row {row}, "
                    f"where {quoted(given.labels)} has {quoted(own[row])}; scores must be in the "
                    "order of the labels. Sort both files the same way, or drop the id column from "
                    "the scores"
                )


def _metrics(given: argparse.Namespace) -> MetricList:
    """Build the metrics; an option applies to those that have it and do not set it."""
    options = {
        "gain": _gain(given.gain),
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
            able = sorted(one.name for one in BUILTIN_METRICS if key in one.__dataclass_fields__)
            raise MetricError(
                f"--{key.replace('_', '-')} is not an option of {plain}; it is one of "
                f"{', '.join(able)}"
            )
    made = []
    for spec, names in zip(parse_list(given.metrics), known, strict=True):
        own = {k: v for k, v in options.items() if k in names and k not in dict(spec.params)}
        made.append(metric(spec, like=given.like, **own))
    return MetricList(made)


def _gain(text: str | None) -> str | tuple[float, ...] | None:
    if text is None or "," not in text:
        return text
    try:
        return tuple(number(part.strip()) for part in text.strip("[]() ").split(","))
    except argparse.ArgumentTypeError:
        raise MetricError(
            f"--gain is exp2, linear or a table such as 0,1,3,7; got {text!r}"
        ) from None


def _evaluate(
    file: RankingFile, given: FloatArray, form: str, metrics: Sequence[Metric]
) -> _Evaluation:
    """Evaluate metrics on a file, sorting the scores once.

    Rows that were judged and not retrieved get no credit; see
    :func:`gbmrank.metrics.conventions.withhold`.
    """
    data = RankingData.from_arrays(file.labels, qid=file.qid)
    scores, groups, unranked = data.read_scores(given), data.groups, file.unranked
    hidden = np.zeros(len(scores), bool) if unranked is None else groups.arrange(unranked)
    bound, notes = _bound(metrics, data)
    rows = groups.sizes - np.add.reduceat(hidden.astype(np.int64), groups.offsets[:-1])
    if hidden.any():
        for item, one in bound.items():
            withhold(item.measure, one, hidden, rows)
    ranked = Ranked(scores, groups).prepare(*(one.depth for one in bound.values()))
    measured = []
    for name, (item, one) in zip(_short_names(list(bound)), bound.items(), strict=True):
        values = one.per_query(ranked)
        measured.append(_Measured(name, item, values, _reason(item, np.isnan(values), data)))
    notes += file.notes
    if groups.row_order is not None:
        notes.append("the rows of some queries are not adjacent; they were grouped by query id")
    ties = _ties(scores, hidden, groups)
    return _Evaluation(form, groups, rows, data.labels, *ties, measured, notes)


def _bound(
    metrics: Sequence[Metric], data: RankingData
) -> tuple[dict[Metric, AbstractBoundMetric], list[str]]:
    """Bind metrics to labels; one that is not defined for them is left out with a note."""
    bound, errors = {}, {}
    for item in metrics:
        try:
            bound[item] = bind_metric(item.measure, data)
        except DataError as error:
            errors[item] = error
    if not bound:
        raise next(iter(errors.values()))
    return bound, [f"{item} is left out: {error}" for item, error in errors.items()]


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
    _, shown = Groups(groups.offsets).take(np.flatnonzero(~hidden))
    _, query, new = sorted_ties(scores[~hidden], shown)
    block = np.cumsum(new) - 1
    tied = np.bincount(block)[block] > 1
    return int(tied.sum()), len(np.unique(query[tied]))


def _as_text(given: argparse.Namespace, result: _Evaluation) -> str:
    rows = []
    for one in result.measured:
        rule = _EMPTY[one.metric.measure.empty]
        undefined = f"{one.undefined:,} {rule}: {one.reason}" if one.undefined else ""
        rows.append((one.name, _shown(one.mean), one.counted, undefined))
    parts = [
        _about(given, result),
        table(["metric", "mean", "queries", "undefined"], rows, "<>>"),
        _conventions(given.like, result.measured),
    ]
    if given.per_query:
        columns = [map(_shown, one.values) for one in result.measured]
        lines = list(zip(result.qid, result.rows, *columns, strict=True))
        head = ["query", "rows", *(one.name for one in result.measured)]
        parts.append(table(head, lines, "<".ljust(len(head), ">")))
    return "\n\n".join(parts)


def _about(given: argparse.Namespace, result: _Evaluation) -> str:
    n_rows, n_queries = int(result.rows.sum()), result.groups.n_queries
    grades, tied = f"{result.labels.min():g} to {result.labels.max():g}", "no ties"
    if result.tied_rows:
        tied = (
            f"{100.0 * result.tied_rows / n_rows:.3g} % of the rows tie with another of their "
            f"query, in {result.tied_queries:,} of {n_queries:,} queries"
        )
    lines = [
        ("labels", f"{given.labels} ({FORMATS[result.form]})"),
        ("scores", given.scores or given.labels),
        ("rows", f"{n_rows:,} in {n_queries:,} queries, labels {grades}"),
        ("ties", tied),
        *(("note", note) for note in result.notes),
    ]
    return "\n".join(f"{bold(f'{what:<6}')}  {clean(text)}" for what, text in lines)


def _conventions(like: str | None, measured: Sequence[_Measured]) -> str:
    """Return one line per set of conventions, with the metrics that share it."""
    sharing: dict[str, list[str]] = {}
    for one in measured:
        options = {k: v for k, v in one.conventions.items() if v is not None and v != "float64"}
        text = "  ".join(f"{key}={_option(value)}" for key, value in options.items())
        sharing.setdefault(text, []).append(one.name)
    title = "conventions" if like is None else f"conventions, as in {like} where not stated"
    width = max(len(", ".join(group)) for group in sharing.values())
    lines = [f"{', '.join(group):<{width}}  {text}" for text, group in sharing.items()]
    return "\n".join([bold(title), *map(clean, lines)])


def _option(value: Any) -> str:
    if not isinstance(value, float):
        return format_value(value if isinstance(value, bool | int | str | tuple) else str(value))
    short = round(value, 6)
    above = short < value == math.nextafter(short, math.inf)
    return f"above {short:g}" if above else f"{value:.15g}"


def _as_json(given: argparse.Namespace, result: _Evaluation) -> dict[str, Any]:
    from gbmrank import __version__

    out: dict[str, Any] = {
        "schema": "gbmrank.evaluate/1",
        "gbmrank": __version__,
        "labels": given.labels,
        "scores": given.scores or given.labels,
        "format": result.form,
        "like": given.like,
        "rows": int(result.rows.sum()),
        "unranked_rows": result.groups.n_rows - int(result.rows.sum()),
        "queries": result.groups.n_queries,
        "ties": {"rows": result.tied_rows, "queries": result.tied_queries},
        "notes": list(result.notes),
        "metrics": [_metric_json(one) for one in result.measured],
    }
    if given.per_query:
        out["per_query"] = _queries_json(result)
    return out


def _metric_json(one: _Measured) -> dict[str, Any]:
    return {
        "name": one.name,
        "metric": str(one.metric),
        "mean": _json_number(one.mean),
        "queries": one.counted,
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

    >>> from gbmrank.api import metric
    >>> both = [metric("ndcg@5"), metric("ndcg@5", gain="linear")]
    >>> _short_names([metric("map", threshold=1), *both])
    ['map', 'ndcg@5', 'ndcg(gain=linear)@5']
    """
    ends = ["" if item.spec.k is None else f"@{item.spec.k}" for item in metrics]
    short = [f"{item.spec.name}{end}" for item, end in zip(metrics, ends, strict=True)]
    named = zip(short, metrics, strict=True)
    return [name if short.count(name) == 1 else str(item) for name, item in named]


def _shown(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"


def _json_number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _queries_json(result: _Evaluation) -> list[dict[str, Any]]:
    """Return one object per query; an undefined value is null."""
    found = []
    for i, (qid, rows) in enumerate(zip(result.qid, result.rows, strict=True)):
        values = {one.name: _json_number(one.values[i]) for one in result.measured}
        found.append({"qid": qid, "rows": int(rows), "values": values})
    return found


def _check_output(path: str, force: bool) -> None:
    """Reject an unknown suffix, and an existing file unless ``force`` is set."""
    if Path(path).suffix.lower() not in _SUFFIXES:
        raise ConfigError(f"--output must end in {', '.join(_SUFFIXES)}; got {path!r}")
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise ConfigError(f"--output {path}: there is no folder {folder}; create it first")
    if Path(path).exists() and not force:
        raise ConfigError(
            f"{path} already exists; choose another name, or overwrite it with --force"
        )


def _save(path: Path, result: _Evaluation) -> None:
    """Write the table of queries atomically."""
    suffix, queries = path.suffix.lower(), _queries_json(result)
    text = io.StringIO()
    if suffix == ".json":
        json.dump({"schema": "gbmrank.per_query/1", "per_query": queries}, text, indent=1)
    else:
        writer = csv.writer(text, delimiter="," if suffix == ".csv" else "\t")
        writer.writerow(["qid", "rows", *(one.name for one in result.measured)])
        for one in queries:
            writer.writerow([spreadsheet_cell(one["qid"]), one["rows"], *one["values"].values()])
    write_whole(path.absolute(), text.getvalue().encode("utf-8"))
