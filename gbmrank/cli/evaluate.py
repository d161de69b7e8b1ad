"""``gbmrank evaluate``: metrics of scores, with the conventions used to compute them."""

import argparse
import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple, cast, final

import numpy as np
import numpy.typing as npt

from gbmrank.api import Metric, MetricList, metric, metrics_callback
from gbmrank.cli.arguments import DELIMITER_HELP, character, number, whole
from gbmrank.cli.screen import bold, clean, table
from gbmrank.data.bootstrap import bootstrap_means, pools, sums_by, tails
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
from gbmrank.data.readers.stream import files_in, joined, read_parts, some_rows, whole_queries
from gbmrank.data.readers.text import quoted, to_number
from gbmrank.errors import ConfigError, DataError, MetricError
from gbmrank.metrics import (
    BUILTIN_METRICS,
    TOOLS,
    AbstractBoundMetric,
    Ranked,
    mean_over_queries,
)
from gbmrank.metrics.conventions import withhold
from gbmrank.registry.guards import bind_metric
from gbmrank.registry.spec import format_value, parse_list
from gbmrank.types import FloatArray, IntArray

_DEFAULTS, _RESAMPLES = Limits(), 1000
_EMPTY = {"skip": "skipped", "zero": "counted as 0", "one": "counted as 1"}
_STANDARD_INPUT = "/dev/stdin"
_SUFFIXES = (".csv", ".tsv", ".json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    _add_input_arguments(parser)
    measures = parser.add_argument_group("measures")
    measures.add_argument(
        "--metrics",
        default="ndcg@1,5,10",
        metavar="LIST",
        help='for example "ndcg@1,5,10, map, err(max_grade=2)@10" (default: %(default)s)',
    )
    measures.add_argument("--like", choices=tuple(TOOLS), help="use the conventions of this tool")
    measures.add_argument("--gain", metavar="GAIN", help="exp2, linear, or a table such as 0,1,3,7")
    for option, about in (
        ("--threshold", "labels of at least this are relevant"),
        ("--max-grade", "largest grade of the scale (ERR)"),
    ):
        measures.add_argument(option, type=number, metavar="Y", help=about)
    for option, about in (
        ("--ties", "mean (default), worst, best, index"),
        ("--empty", "undefined queries: skip (default), zero, one"),
    ):
        measures.add_argument(option, metavar="RULE", help=about)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output", metavar="FILE", help="write the value of each query to .csv, .tsv or .json"
    )
    for option, about in (
        ("--interval", "95%% intervals of the means, by a bootstrap over queries"),
        ("--per-query", "also print the value of each query"),
        ("--force", "overwrite the output file"),
    ):
        output.add_argument(option, action="store_true", help=about)


def _add_input_arguments(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument_group(
        "files",
        "LETOR or svmlight text with a file of scores (one number per line), a CSV or Parquet "
        "table (scores in the same table or another file), or TREC qrels and a run; .gz is fine. "
        "One of the files may be -, standard input.",
    )
    files.add_argument(
        "--labels",
        required=True,
        metavar="FILE",
        help="labels or qrels; a folder is read in one pass, its files sorted by name, and rows of "
        "a query must be adjacent",
    )
    for option, about in (
        ("--scores", "scores or run; not needed for a table that has them"),
        ("--group", "rows per query, one number per line, instead of qid (default: LABELS.query)"),
    ):
        files.add_argument(option, metavar="FILE", help=about)
    files.add_argument(
        "--format", choices=tuple(FORMATS), help="format of the labels (default: guessed)"
    )
    for option, about in (
        ("--complete", "TREC: count judged topics missing from the run"),
        ("--zero-based", "LETOR: feature indices count from 0"),
    ):
        files.add_argument(option, action="store_true", help=about)
    columns = parser.add_argument_group("columns of a table")
    for name in ("label", "score", "qid"):
        columns.add_argument(f"--{name}-column", metavar="NAME", help=f"column of the {name}")
    columns.add_argument("--delimiter", type=character, metavar="CHAR", help=DELIMITER_HELP)
    limits = parser.add_argument_group("limits")
    for option, default, about in (
        ("--max-bytes", _DEFAULTS.max_bytes, "maximum size of a file, uncompressed"),
        ("--max-line", _DEFAULTS.max_line, "longest line"),
    ):
        limits.add_argument(option, type=whole, metavar="N", default=default, help=about)


def run(given: argparse.Namespace) -> int:
    """Read, evaluate, print."""
    metrics = _metrics(given)
    _name_standard_input(given)
    if given.output is not None:
        _check_output(given.output, given.force)
    if Path(given.labels).is_dir():
        form = str(_options(given, files_in([given.labels])[0])[0].form)
        result = _merged([_evaluate(one, metrics.metrics) for one in _read_parts(given)])
    else:
        source = _read_input(given)
        form, result = source.form, _evaluate(source, metrics.metrics)
    if given.output is not None:
        _save(Path(given.output), result)
    if given.json:
        print(json.dumps(_as_json(given, form, result), indent=2, allow_nan=False))
    else:
        print(_as_text(given, form, result))
    return 0


def _name_standard_input(given: argparse.Namespace) -> None:
    """Replace ``-`` by the path of standard input."""
    piped = [name for name in ("labels", "scores", "group") if getattr(given, name) == "-"]
    if len(piped) > 1:
        options = " and ".join(f"--{name}" for name in piped)
        raise ConfigError(f"{options} cannot both be -, standard input; give one as a file")
    for name in piped:
        setattr(given, name, _STANDARD_INPUT)


class _Input(NamedTuple):
    """Labels and scores of the same rows, and where they come from."""

    file: RankingFile
    scores: FloatArray
    form: str


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

    def interval(self) -> list[float]:
        """Return the 95% interval of the mean over the queries."""
        fill = {"zero": 0.0, "one": 1.0}.get(self.metric.measure.empty, math.nan)
        values = np.where(np.isnan(self.values), fill, self.values)
        values = values[~np.isnan(values)]
        if len(values) < 2:
            return [math.nan, math.nan]
        rng = np.random.default_rng(0)
        pool = pools(len(values), rng)
        sums = np.stack([sums_by(pool, values), sums_by(pool, np.ones(len(values)))])
        means = bootstrap_means(sums, _RESAMPLES, rng)
        return [float(one) for one in np.quantile(means[:, 0] / means[:, 1], tails(0.95))]

    @property
    def counted(self) -> int:
        """Number of queries in the mean."""
        skipped = self.undefined if self.metric.measure.empty == "skip" else 0
        return len(self.values) - skipped

    @property
    def conventions(self) -> dict[str, Any]:
        """Options of the metric that change its value, except the cut-off."""
        measure = self.metric.measure
        shared = ("ties", "empty", "dtype")
        own = (one.name for one in fields(measure) if one.name not in ("k", *shared))
        return {name: getattr(measure, name) for name in (*own, *shared)}


class _Evaluation(NamedTuple):
    """Everything that is printed; ``rows`` counts the ranked rows of each query."""

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


def _options(given: argparse.Namespace, path: Any) -> tuple[FileOptions, bool]:
    """Return how the labels are read, and whether their table has the scores."""
    limits = _limits(given)
    form = given.format or guess_format(path, limits)
    in_table = given.scores is None and form in ("csv", "parquet")
    if given.scores is None and not in_table:
        raise ConfigError(f"--scores FILE is needed with {FORMATS[form]} ({given.labels})")
    score_table = given.scores is not None and _has_table(given.scores)
    if given.score_column is not None and not in_table and not score_table:
        raise ConfigError(f"--score-column needs a CSV or Parquet table; {given.scores} is not one")
    options = FileOptions(
        form=form,
        columns=Header(
            label=given.label_column,
            qid=given.qid_column,
            score=given.score_column if in_table else None,
        ),
        delimiter=None if score_table and form != "csv" else given.delimiter,
        zero_based=given.zero_based,
        sizes=given.group,
        run=given.scores if form == "trec" else None,
        complete=given.complete,
        limits=limits,
    )
    return options, in_table


def _limits(given: argparse.Namespace) -> Limits:
    return replace(_DEFAULTS, max_bytes=given.max_bytes, max_line=given.max_line)


def _has_table(path: str) -> bool:
    return table_format(files_in([path])[0]) is not None


def _read_parts(given: argparse.Namespace) -> Iterator[_Input]:
    """Yield labels and scores of the files of a folder, some whole queries at a time."""
    options, in_table = _options(given, files_in([given.labels])[0])
    if given.group is not None:
        raise ConfigError("--group is for one file, but --labels is a folder; give query ids")
    form, scores = str(options.form), None if in_table else _Scores(given)
    for file in whole_queries([given.labels], options):
        if scores is None:
            yield _Input(file, _scores_in(file, given), form)
            continue
        other = scores.take(file.n_rows)
        _check_order(file, other, given)
        yield _Input(file, _scores_in(other, given), form)
    if scores is not None:
        scores.check_end()


@final
class _Scores:
    """Scores of files, in the order of their rows."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._path, self._held = given.scores, cast(RankingFile | None, None)
        self._parts: Iterator[RankingFile]
        if _has_table(given.scores):
            options = _score_options(given, _limits(given))
            self._parts = (part for _, part in read_parts([given.scores], options))
        else:
            column = read_column(given.scores, _limits(given))
            self._parts = iter([RankingFile(labels=column, scores=column)])

    def take(self, count: int) -> RankingFile:
        """Return the scores of the next rows."""
        while self._held is None or self._held.n_rows < count:
            part = next(self._parts, None)
            if part is None:
                raise DataError(f"{quoted(self._path)} has fewer scores than there are rows")
            self._held = joined(self._held, part)
        first, self._held = (
            some_rows(self._held, slice(count)),
            some_rows(self._held, slice(count, None)),
        )
        return first

    def check_end(self) -> None:
        """Raise DataError if there are more scores."""
        if (self._held is not None and self._held.n_rows) or next(self._parts, None) is not None:
            raise DataError(f"{quoted(self._path)} has more scores than there are rows")


def _scores_in(file: RankingFile, given: argparse.Namespace) -> FloatArray:
    if file.scores is None:
        raise DataError(
            f"{quoted(given.scores or given.labels)} has no column of scores under a usual name "
            "(score, prediction); name one with --score-column, or give a file of scores with "
            "--scores"
        )
    return file.scores


def _read_input(given: argparse.Namespace) -> _Input:
    """Read the files named on the command line."""
    options, in_table = _options(given, given.labels)
    form, limits = str(options.form), options.limits
    file = read_rows(given.labels, options)
    other = None
    if in_table or form == "trec":
        scores = _scores_in(file, given)
    elif _has_table(given.scores):
        other = read_rows(given.scores, _score_options(given, limits))
        scores = _scores_in(other, given)
    else:
        scores = read_column(given.scores, limits)
    if len(scores) != file.n_rows:
        raise DataError(
            f"{quoted(given.scores or given.labels)} has {len(scores):,} scores, but "
            f"{quoted(given.labels)} has {file.n_rows:,} rows; both need one entry per row, in the "
            "same order"
        )
    if other is not None:
        _check_order(file, other, given)
    return _Input(file, scores, form)


def _score_options(given: argparse.Namespace, limits: Limits) -> FileOptions:
    """Return how a table of scores is read, whose ids are compared with those of the labels."""
    columns = Header(score=given.score_column, need_label=False)
    delimiter = given.delimiter if table_format(files_in([given.scores])[0]) == "csv" else None
    return FileOptions(columns=columns, delimiter=delimiter, need_qid=False, limits=limits)


def _check_order(file: RankingFile, other: RankingFile, given: argparse.Namespace) -> None:
    """Reject scores whose ids say that they are in another order than the labels."""
    named = given.qid_column is not None  # a usual name in the scores may be a different id
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
                f"{quoted(given.labels)} has {quoted(own[row])}; scores must be in the order of "
                "the labels. Sort both files the same way, or drop the id column from the scores"
            )


def _alike(one: str, other: str) -> bool:
    """Whether ids are the same number written differently, or one of them is missing."""
    if not one or not other:
        return True
    number = to_number(one)
    return number is not None and number == to_number(other)


def _metrics(given: argparse.Namespace) -> MetricList:
    """Build the metrics; an option applies to those that have it and do not set it."""
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
            able = sorted(one.name for one in BUILTIN_METRICS if key in one.__dataclass_fields__)
            raise MetricError(
                f"--{key.replace('_', '-')} is not an option of {plain}; it is one of "
                f"{', '.join(able)}"
            )
    made = [
        metric(
            spec,
            like=given.like,
            **{k: v for k, v in options.items() if k in names and k not in dict(spec.params)},
        )
        for spec, names in zip(parse_list(given.metrics), known, strict=True)
    ]
    return MetricList(made)


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
    data = RankingData.from_arrays(given.file.labels, qid=given.file.qid)
    scores, groups = data.read_scores(given.scores), data.groups
    unranked = given.file.unranked
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
    notes = [*notes, *given.file.notes]
    if groups.row_order is not None:
        notes.append("the rows of some queries are not adjacent; they were grouped by query id")
    ties = _ties(scores, hidden, groups)
    return _Evaluation(groups, rows, data.labels, *ties, measured, notes)


def _merged(parts: Sequence[_Evaluation]) -> _Evaluation:
    """Return the values of all queries; a metric that one part leaves out is left out."""
    if not parts:
        raise DataError("--labels has no rows")
    columns = [{one.metric: one for one in part.measured} for part in parts]
    kept = [one for one in columns[0] if all(one in column for column in columns)]
    if not kept:
        raise DataError(f"no metric is defined for all files: {'; '.join(parts[0].notes)}")
    measured = []
    for item in kept:
        each = [column[item] for column in columns]
        reason = next((one.reason for one in each if one.reason), "")
        values = np.concatenate([one.values for one in each])
        measured.append(_Measured(each[0].name, item, values, reason))
    sizes = np.concatenate([part.groups.sizes for part in parts])
    ids = np.concatenate([np.asarray(part.groups.ids) for part in parts])
    return _Evaluation(
        Groups(np.concatenate([[0], np.cumsum(sizes)]), None, ids),
        np.concatenate([part.rows for part in parts]),
        np.array([end for part in parts for end in (part.labels.min(), part.labels.max())]),
        sum(part.tied_rows for part in parts),
        sum(part.tied_queries for part in parts),
        measured,
        list(dict.fromkeys(note for part in parts for note in part.notes)),
    )


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


def _as_text(given: argparse.Namespace, form: str, result: _Evaluation) -> str:
    rows = []
    for one in result.measured:
        rule = _EMPTY[one.metric.measure.empty]
        undefined = f"{one.undefined:,} {rule}: {one.reason}" if one.undefined else ""
        interval = [" to ".join(map(_shown, one.interval()))] if given.interval else []
        rows.append((one.name, _shown(one.mean), *interval, one.counted, undefined))
    head = ["metric", "mean", *(["95% interval"] if given.interval else []), "queries", "undefined"]
    parts = [
        _about(given, form, result),
        table(head, rows, "<".ljust(len(head) - 1, ">")),
        _conventions(given.like, result.measured),
    ]
    if given.per_query:
        columns = [map(_shown, one.values) for one in result.measured]
        lines = list(zip(result.qid, result.rows, *columns, strict=True))
        head = ["query", "rows", *(one.name for one in result.measured)]
        parts.append(table(head, lines, "<".ljust(len(head), ">")))
    return "\n\n".join(parts)


def _about(given: argparse.Namespace, form: str, result: _Evaluation) -> str:
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
        ("labels", f"{given.labels} ({FORMATS[form]})"),
        ("scores", given.scores or given.labels),
        ("rows", f"{n_rows:,} in {groups.n_queries:,} queries, labels {grades}"),
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


def _as_json(given: argparse.Namespace, form: str, result: _Evaluation) -> dict[str, Any]:
    from gbmrank import __version__

    out: dict[str, Any] = {
        "schema": "gbmrank.evaluate/1",
        "gbmrank": __version__,
        "labels": given.labels,
        "scores": given.scores or given.labels,
        "format": form,
        "like": given.like,
        "rows": int(result.rows.sum()),
        "unranked_rows": result.groups.n_rows - int(result.rows.sum()),
        "queries": result.groups.n_queries,
        "ties": {"rows": result.tied_rows, "queries": result.tied_queries},
        "notes": list(result.notes),
        "metrics": [_metric_json(one, given.interval) for one in result.measured],
    }
    if given.per_query:
        out["per_query"] = _queries_json(result)
    return out


def _metric_json(one: _Measured, interval: bool) -> dict[str, Any]:
    return {
        "name": one.name,
        "metric": str(one.metric),
        "mean": _json_number(one.mean),
        **({"interval": list(map(_json_number, one.interval()))} if interval else {}),
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
    short = [
        item.spec.name + ("" if item.spec.k is None else f"@{item.spec.k}") for item in metrics
    ]
    return [
        name if short.count(name) == 1 else str(item)
        for name, item in zip(short, metrics, strict=True)
    ]


def _shown(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"


def _json_number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _queries_json(result: _Evaluation) -> list[dict[str, Any]]:
    """Return one object per query; an undefined value is null."""
    return [
        {
            "qid": qid,
            "rows": int(rows),
            "values": {one.name: _json_number(one.values[i]) for one in result.measured},
        }
        for i, (qid, rows) in enumerate(zip(result.qid, result.rows, strict=True))
    ]


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
