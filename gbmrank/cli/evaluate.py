"""``gbmrank evaluate``: the quality of scores, with the conventions that it was measured by."""

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from gbmrank.api import MetricList, metric, metrics_callback
from gbmrank.cli import inputs, per_query
from gbmrank.cli.evaluation import Evaluation, Measured, evaluate
from gbmrank.cli.numbers import number
from gbmrank.cli.screen import bold, clean, table
from gbmrank.errors import MetricError
from gbmrank.metrics import BUILTIN_METRICS, TOOLS
from gbmrank.registry.spec import format_value, parse_list

__all__ = ["add_arguments", "run"]

_DEFAULT_METRICS = "ndcg@1,5,10"
_EMPTY = {"skip": "skipped", "zero": "counted as 0", "one": "counted as 1"}
_SCHEMA = "gbmrank.evaluate/1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    inputs.add_arguments(parser)
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
        per_query.check_free(given.output, given.force)
    source = inputs.read_input(given)
    result = evaluate(source, metrics.metrics)
    if given.output is not None:
        per_query.save(given.output, result, given.force)
    if given.json:
        print(json.dumps(_as_json(given, source, result), indent=2, allow_nan=False))
    else:
        print(_as_text(given, source, result))
    return 0


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


def _as_text(given: argparse.Namespace, source: inputs.Input, result: Evaluation) -> str:
    names = per_query.short_names([one.metric for one in result.measured])
    rows = [
        (name, per_query.shown(one.mean), result.groups.n_queries - _left_out(one), _undefined(one))
        for name, one in zip(names, result.measured, strict=True)
    ]
    head = ["metric", "mean", "queries", "undefined"]
    parts = [
        _about(given, source, result),
        table(head, rows, "<>>"),
        _conventions(given.like, names, result.measured),
    ]
    if given.per_query:
        parts.append(per_query.as_text(result))
    return "\n\n".join(parts)


def _about(given: argparse.Namespace, source: inputs.Input, result: Evaluation) -> str:
    groups, ties = result.groups, result.ties
    n_rows = int(result.rows.sum())
    grades = f"{result.labels.min():g} to {result.labels.max():g}"
    share = 100.0 * ties.rows / max(n_rows, 1)
    tied = (
        f"{share:.3g} % of the rows tie with another of their query, in {ties.queries:,} of "
        f"{groups.n_queries:,} queries"
        if ties.rows
        else "no ties"
    )
    lines = [
        ("labels", f"{given.labels} ({inputs.FORMATS[source.form]})"),
        ("scores", given.scores or given.labels),
        ("rows", f"{n_rows:,} in {groups.n_queries:,} queries, labels {grades}"),
        ("ties", tied),
        *(("note", note) for note in result.notes),
    ]
    return "\n".join(f"{bold(f'{what:<6}')}  {clean(text)}" for what, text in lines)


def _left_out(one: Measured) -> int:
    return one.undefined if one.metric.measure.empty == "skip" else 0


def _undefined(one: Measured) -> str:
    if not one.undefined:
        return ""
    return f"{one.undefined:,} {_EMPTY[one.metric.measure.empty]}: {one.reason}"


def _conventions(like: str | None, names: Sequence[str], measured: Sequence[Measured]) -> str:
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


def _as_json(given: argparse.Namespace, source: inputs.Input, result: Evaluation) -> dict[str, Any]:
    from gbmrank import __version__

    names = per_query.short_names([one.metric for one in result.measured])
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
        "ties": {"rows": result.ties.rows, "queries": result.ties.queries},
        "notes": list(result.notes),
        "metrics": [_metric_json(*pair) for pair in zip(names, result.measured, strict=True)],
    }
    if given.per_query:
        out["per_query"] = per_query.as_json(result)
    return out


def _metric_json(name: str, one: Measured) -> dict[str, Any]:
    return {
        "name": name,
        "metric": str(one.metric),
        "mean": per_query.number(one.mean),
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
