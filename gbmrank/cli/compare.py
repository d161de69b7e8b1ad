"""``gbmrank compare``: train objectives on data, judge them query by query, write a report.

Exit code 0: every run is done; 2: invalid input, nothing was trained; 3: some runs failed, the
others are reported; 4: a file could not be written, for example on a full disk; 130: stopped by
Ctrl-C. Finished runs are kept.
"""

import argparse
import contextlib
import re
import shlex
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from gbmrank.boosters.supported import BACKENDS
from gbmrank.cli.arguments import add_columns, file_options, number, option, read_value, whole
from gbmrank.cli.screen import bold, clean, filled, fitted, line_width, show, system_message
from gbmrank.clicks import PositionBias
from gbmrank.data.demonstration import demo_data
from gbmrank.data.files import write_whole
from gbmrank.data.readers import Limits, read_column
from gbmrank.errors import ConfigError, GbmrankWarning
from gbmrank.experiments import summary
from gbmrank.experiments.comparison import Comparison, compare_source
from gbmrank.experiments.design import LEARNING_RATE, TUNERS, plain_seeds
from gbmrank.experiments.goal_comparison import GoalComparison, compare_goals
from gbmrank.experiments.preparation import (
    CLICK_METRICS,
    DEFAULT_METRICS,
    DEMO_METRICS,
    Settings,
    demonstration,
)
from gbmrank.experiments.progress import Progress, progress_on
from gbmrank.experiments.sources import Source, further_columns, goal_key, read_source
from gbmrank.experiments.store import check_folder, json_bytes
from gbmrank.experiments.systems import split_list

_SCHEMA = "gbmrank.compare/1"
_FILES = {"results": "results.json", "per_query": "per_query.csv", "report": "report.html"}
_SOME_FAILED, _MACHINE, _INTERRUPTED = 3, 4, 130
_NAME_VALUE = r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)"
_PARAMS = {
    "--param": ("NAME=VALUE, learning_rate", re.compile(f"(?P<who>){_NAME_VALUE}", re.DOTALL)),
    "--param-for": (
        "WHO:NAME=VALUE, ranknet:learning_rate",
        re.compile(f"(?P<who>.+):{_NAME_VALUE}", re.DOTALL),
    ),
}
_WITHOUT_GOALS = (
    *("--objectives", "--quick", "--baseline", "--margin", "--position", "--truth", "--tune"),
    *("--position-bias", "--clip", "--tuner", "--jobs", "--label-column"),
)
_CELL, _WIDTH = 22, 80  # of the table of fronts
_KEPT = 4  # columns that are shown on narrow terminals too: system, mean, difference, p
_SHOWN = "(default: %(default)s)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "Exit code: 0 done, 2 invalid input, 3 some runs failed, 4 a file could not be written, "
        "130 interrupted."
    )
    _add_data(parser.add_argument_group("data"), parser.add_argument_group("columns of a table"))
    _add_systems(parser.add_argument_group("what is compared"))
    _add_training(parser.add_argument_group("training"))
    output = parser.add_argument_group("output")
    option(output, "--out FOLDER", _SHOWN, default="gbmrank-compare")
    option(output, "--resume", "continue an interrupted run")
    option(output, "--force", "overwrite the results in the folder")
    option(output, "--quiet", "show no progress")


def run(given: argparse.Namespace) -> int:
    """Read, train, judge, write, print."""
    if given.resume and given.force:
        raise ConfigError("--resume continues a run and --force starts over; give only one of them")
    out = Path(given.out)
    goals = _goals(given)
    check_folder(out, resume=given.resume or bool(goals), force=given.force)
    settings = _settings(given)
    data = _data(given)
    if data is None:
        usual = demonstration(settings)
        settings = replace(usual, metrics=settings.metrics) if goals else usual
    source = _source(given, data, goals)
    compared = partial(compare_goals, columns=goals) if goals else compare_source
    try:
        # Standard output is for the result; boosters and plugins print to standard error.
        with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
            warnings.simplefilter("ignore", GbmrankWarning)  # shown below as notes, by system
            found = compared(source, settings=settings, finish=partial(_write, out=out))
    except KeyboardInterrupt as stopped:
        if not str(stopped):  # before the first run or after the last
            raise
        return _stopped(str(stopped), out, _INTERRUPTED)
    except OSError as error:
        if not hasattr(error, "__notes__"):  # before the first run
            raise
        return _stopped(f"error: {system_message(error)}; {error.__notes__[0]}", out, _MACHINE)
    files = {kind: str(out / name) for kind, name in _FILES.items() if (out / name).exists()}
    if isinstance(found, GoalComparison):
        show(given, {**found.to_json(), "files": files}, partial(_fronts, found, files))
        return _SOME_FAILED if found.failed else 0
    show(given, _as_json(found, files), partial(_as_text, found, files), allow_nan=False)
    return _SOME_FAILED if found.results.failed else 0


def _stopped(why: str, out: Path, code: int) -> int:
    """Say what was kept, and return the exit code."""
    line = f"{why} and kept in {out}; continue with the same command and --resume"
    print(f"gbmrank compare: {clean(line)}", file=sys.stderr)
    return code


def _add_data(group: Any, columns: Any) -> None:
    group.description = (
        "LETOR or svmlight text with qid (or a LightGBM .query file beside it), CSV or Parquet; "
        ".gz is fine. Several files are concatenated. Without files: built-in demonstration data."
    )
    option(group, "data DATA", "files to split into folds", nargs="*")
    for name in ("train", "valid", "test"):
        option(group, f"--{name} FILE", f"predefined {name} split", nargs="+")
    option(group, "--allow-overlap", "accept queries that are in two splits")
    option(group, "--max-bytes N", "maximum size, uncompressed", type=whole)
    add_columns(columns)
    categorical = "categorical features, such as color,brand; may be repeated"
    option(columns, "--categorical LIST", categorical, action="append")
    position = (
        "position at which a row was shown, from 1; labels are then clicks, 0 or 1, and systems "
        "are compared by the estimated value of their rankings"
    )
    option(columns, "--position NAME", position)
    truth = "with --position: true labels to evaluate on, for example in simulations"
    option(columns, "--truth NAME", truth)
    time = (
        "time of the query, a number or a date: each of the --folds trains on earlier queries "
        "and tests on later ones"
    )
    option(columns, "--time NAME", time)


def _add_systems(group: Any) -> None:
    goals = (
        "label columns of two or more goals, such as relevance=label,margin=margin: fronts of one "
        "GoalRanker per booster, each goal alone and --scores; valued by --metrics, one for all "
        "goals or one for each. The same command continues an interrupted run"
    )
    option(group, "--goals NAME=COLUMN,...", goals)
    objectives = (
        'such as "pairwise(target=ndcg@10), ranknet, native:lambdarank"; crossfit:OBJECTIVE trains '
        "in folds, distilled:OBJECTIVE one model on the scores of that; may be repeated "
        "(default: the recommended one for the first metric, the committee, the ranking loss of "
        "each booster, squared error on labels and on gains, and at equal cost as many models of "
        "its ranking loss as the committee has; with --position an uncorrected one and "
        "debiased:pairwise(target=identity), debiased:native:lambdarank, "
        "debiased:native:rank:ndcg)"
    )
    option(group, "--objectives LIST", objectives, action="append")
    option(group, "--quick", "leave the committees out of the default, which train several models")
    metrics = (
        f'such as "ndcg@10, map"; the first one decides (default: "{DEFAULT_METRICS}"; on '
        f'demonstration data "{DEMO_METRICS}", with --position "{CLICK_METRICS}")'
    )
    option(group, "--metrics LIST", metrics)
    option(group, "--backends LIST", f"{', '.join(BACKENDS)} (default: all that are installed)")
    baseline = (
        'an objective, a name of --scores, or a system: "lightgbm ranknet" (default: the first '
        "of --scores, else for each booster its first native objective, else its first)"
    )
    option(group, "--baseline NAME", baseline)
    scores = (
        "scores of an existing model to compare with: production=old.txt (a file with one score "
        "per row; with predefined splits, per row of --test) or production=column:NAME; may be "
        "repeated"
    )
    option(group, "--scores NAME=WHERE", scores, action="append", default=[])
    bias = (
        'examination propensities: "em" estimates them from the clicks (the default), or a file '
        "with one propensity per line, from position 1"
    )
    option(group, "--position-bias WHAT", bias)
    clip = "smallest propensity used in training; lower ones are raised to it"
    option(group, "--clip P", clip, type=number)
    option(group, "--margin D", "smallest difference that matters (0)", type=number, default=0.0)


def _add_training(group: Any) -> None:
    d, rate = Settings(), f"learning_rate={LEARNING_RATE:g}"
    patience = "rounds without improvement before a run stops; 0 disables it"
    for usage, read, default, about in (
        ("--folds N", whole, d.folds, "folds of queries"),
        ("--seeds N", str, "1", "number of seeds, or a list such as 0,1,2"),
        ("--rounds N", whole, d.rounds, "maximum number of boosting rounds"),
        ("--early-stopping N", whole, d.early_stopping, patience),
        ("--valid-share P", number, d.valid_share, "share of queries used for validation"),
    ):
        option(group, usage, f"{about} {_SHOWN}", type=read, default=default)
    repeated = {"action": "append", "default": []}
    all_of_them = f"parameter of every booster; may be repeated (default: {rate}, otherwise "
    all_of_them += "the defaults of booster and objective)"
    option(group, "--param NAME=VALUE", all_of_them, **repeated)
    one_of_them = (
        'parameter of one backend, objective or system: "ranknet:learning_rate=0.05"; repeatable'
    )
    option(group, "--param-for WHO:NAME=VALUE", one_of_them, **repeated)
    option(
        group, "--tune N", f"parameter settings tried in each run {_SHOWN}", type=whole, default=0
    )
    group.add_argument("--tuner", choices=TUNERS, default=d.tuner, help=_SHOWN)
    option(group, "--jobs N", "runs in parallel (default: as many as threads)", type=whole)
    threads = "threads of all runs together (default: all of the machine)"
    option(group, "--threads N", threads, type=whole)
    option(group, "--in-process", "run sequentially in this process")


def _settings(given: argparse.Namespace) -> Settings:
    names = {one.name for one in fields(Settings)}
    as_given = {name: value for name, value in vars(given).items() if name in names}
    read = {
        "objectives": None if given.objectives is None else ", ".join(given.objectives),
        "backends": None if given.backends is None else split_list(given.backends),
        "seeds": _seeds(given.seeds),
        "early_stopping": given.early_stopping or None,
        "params": _params("--param", given.param).get(""),
        "params_for": _params("--param-for", given.param_for) or None,
        "position_bias": _bias(given.position_bias),
        "isolate": not given.in_process,
        "progress": Progress() if given.quiet else progress_on(),
        "command": shlex.join(["gbmrank", *sys.argv[1:]]),
    }
    return Settings(**{**as_given, **read})


def _data(given: argparse.Namespace) -> Any:
    parts = {name: getattr(given, name) for name in ("train", "valid", "test")}
    parts = {name: files for name, files in parts.items() if files}
    if parts and given.data:
        raise ConfigError("give files to split into folds, or --train and --test, not both")
    if parts and not {"train", "test"} <= set(parts):
        raise ConfigError(f"predefined splits need --train and --test; got --{', --'.join(parts)}")
    return parts or given.data or None


def _goals(given: argparse.Namespace) -> dict[str, str]:
    """Return the label column of each goal."""
    if given.goals is None:
        return {}
    found: dict[str, str] = {}
    for text in given.goals.split(","):
        name, _, column = (part.strip() for part in text.partition("="))
        if not name or not column or name in found or column in found.values():
            raise ConfigError(
                f"--goals {given.goals}: the form is relevance=label,margin=margin, with a name "
                "and a column of its own for each goal"
            )
        found[name] = column
    if len(found) < 2:
        raise ConfigError(f"--goals {given.goals}: two or more goals are needed")
    for flag in _WITHOUT_GOALS:
        if getattr(given, flag[2:].replace("-", "_")) not in (None, False, 0, TUNERS[0]):
            raise ConfigError(f"{flag} has no meaning with --goals; leave it out")
    if both := set(found.values()).intersection(given.feature or ()):
        raise ConfigError(f"{min(both)} is the label column of a goal, so it cannot be a feature")
    return found


def _source(given: argparse.Namespace, data: Any, goals: Mapping[str, str]) -> Source:
    names = [name for text in given.categorical or () for name in split_list(text)]
    limits = Limits() if given.max_bytes is None else Limits(max_bytes=given.max_bytes)
    options = file_options(given, limits, categorical=names, need_label=not goals)
    scores = _scores(given.scores)
    further = further_columns(given.weight, given.position, given.time, scores, given.truth)
    labels: Mapping[str, Any] = goals
    if goals and data is None:
        data = demo_data(goals=2)
        if unknown := [one for one in goals.values() if one not in data.columns]:
            known = " and ".join(data.columns)
            raise ConfigError(
                f"the demonstration data has no {unknown[0]!r}; its goals are {known}"
            )
        labels = {goal: data.columns[column] for goal, column in goals.items()}
    further |= {goal_key(goal): column for goal, column in labels.items()}
    source = read_source(data, options, further)
    leakage = source.leakage()
    if leakage is not None and not given.allow_overlap:
        raise ConfigError(
            f"{leakage}; remove them, or give --allow-overlap if they are different queries with "
            "the same ids"
        )
    return source


def _scores(texts: Sequence[str]) -> dict[str, Any]:
    """Return where the scores of models come from: the name of a column, or the path of a file."""
    found: dict[str, Any] = {}
    for text in texts:
        name, _, where = text.partition("=")
        column = where.removeprefix("column:")
        if not name.strip() or not column:
            raise ConfigError(
                f"--scores {text}: the form is NAME=FILE or NAME=column:COLUMN, "
                "production=column:old_score for example"
            )
        if name in found:
            raise ConfigError(f"--scores {text}: {name} is given twice; leave one out")
        found[name] = Path(where) if column == where else column
    return found


def _bias(text: str | None) -> PositionBias | str | None:
    """Return propensities that are read from a file, or how to estimate them."""
    if text is None or text == "em":
        return text
    if text == "debiased" and not Path(text).exists():
        raise ConfigError(
            f'--position-bias is "em" or a file of propensities; got {text!r}. {text}: is a prefix '
            f'of objectives: --objectives "{text}:pairwise(target=identity)"'
        )
    return PositionBias(read_column(text))


def _seeds(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(map(whole, text.split(",")))
    except argparse.ArgumentTypeError:
        about = "--seeds is a number of seeds or a list such as 0,1,2"
        raise ConfigError(f"{about}; got {text!r}") from None
    return plain_seeds(numbers if "," in text else numbers[0])


def _params(flag: str, texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return parameters by backend, objective or system; the key of ``--param`` is empty."""
    form, pattern = _PARAMS[flag]
    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        match = pattern.fullmatch(text)
        if match is None or not match["value"].strip():
            raise ConfigError(f"{flag} {text}: the form is {form}=0.05 for example")
        own = found.setdefault(" ".join(match["who"].split()), {})
        if match["name"] in own:
            raise ConfigError(f"{flag} {text}: {match['name']} is given twice; leave one out")
        own[match["name"]] = read_value(match["value"])
    return found


def _write(found: Comparison | GoalComparison, out: Path) -> None:
    """Write the files; the report comes last, as it links to the others."""
    try:
        if isinstance(found, GoalComparison):
            write_whole(out / _FILES["results"], json_bytes(found.to_json()))
            write_whole(out / _FILES["report"], found.to_html().encode())
            return
        found.to_json(out / _FILES["results"])
        found.to_csv(out / _FILES["per_query"])
        found.to_html(out / _FILES["report"])
    except OSError as error:
        if isinstance(found, GoalComparison):
            error.add_note("all runs are done")
            raise
        runs = len(found.results.runs)
        error.add_note(f"{runs - len(found.results.failed)} of {runs} runs are done")
        raise


def _as_text(found: Comparison, files: dict[str, str]) -> str:
    audit = found.results.audit
    about = f"{found.results.title}: {audit['rows']:,} rows, {audit['queries']:,} queries"
    parts = [f"{bold(clean(about))}\n{filled(audit['columns'])}"]
    if (failure := summary.failure_sentence(found.results)) is None:
        parts += ["\n".join(filled(line, "* ") for line in found.verdict), *_findings(found)]
    else:
        parts = [bold(clean(failure)), *parts]
    if found.notes:
        parts.append("\n".join(filled(note, "note: ") for note in found.notes))
    parts.append(f"{bold('report')}  {clean(files['report'])}")
    return "\n\n".join(parts)


def _findings(found: Comparison) -> list[str]:
    """Return the table, what is decided in words, and the regret where it is known."""
    head, rows, sides = summary.summary_table(found.results, found.analysis)
    spare = [title for title in reversed(head) if title not in head[:_KEPT]]
    shown = fitted(head, rows, sides, width=line_width(), spare=spare)
    regret = summary.regret_sentence(found.analysis)
    said = [found.analysis.verdict, *([] if regret is None else [regret])]
    return ["\n".join([shown, *map(filled, summary.footnotes(found.results))]), *map(filled, said)]


def _fronts(found: GoalComparison, files: dict[str, str]) -> str:
    """Return the settings of all systems as a table, about eleven of each booster."""
    rows: list[list[str]] = []
    systems = {name: found.systems.count(name) for name in found.systems}
    every = {name: max(1, (count - 1) // 10) for name, count in systems.items()}
    for at, (system, setting, *cells, mark) in enumerate(found.rows()):
        if not setting:
            rows.append([system[:_CELL], *cells, mark[:1]])
            continue
        if found.systems.index(system) == at:
            rows.append([system, *[""] * len(cells), ""])
        place = at - found.systems.index(system)
        if place % every[system] == 0 or setting.endswith(" alone") or mark == "reference":
            rows.append([f"  {setting}"[:_CELL], *cells, mark[:1]])
    goals, width = found.front.goals, min(line_width() or _WIDTH, _WIDTH)
    parts = [
        bold(clean(f"{found.title}: {' and '.join(goals)}")),
        fitted(
            ["setting", *(goal[:_CELL] for goal in goals), ""],
            rows,
            "<" + ">" * len(goals),
            width=width,
        ),
        filled(f"{found.about} r is that setting, d is dominated by another one."),
        *(filled(note, "note: ") for note in found.notes),
        f"{bold('report')}  {clean(files['report'])}",
    ]
    return "\n\n".join(parts)


def _as_json(found: Comparison, files: dict[str, str]) -> dict[str, Any]:
    from gbmrank import __version__

    about = ("system", "seed", "fold", "error")
    return {
        "schema": _SCHEMA,
        "gbmrank": __version__,
        "title": found.results.title,
        "files": files,
        "runs": len(found.results.runs),
        "failed": [{name: getattr(run, name) for name in about} for run in found.results.failed],
        "columns": found.results.audit["columns"],
        "verdict": list(found.verdict),
        "notes": list(found.notes),
        "analysis": found.analysis.to_dict(),
    }
