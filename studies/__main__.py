"""Run a study again: ``python -m studies NAME --data FOLDER``.

Without a name the studies are listed, with the data that each needs. ``--small`` makes a short
run on built-in data. A study is a folder here, whose ``experiment.py`` has the names of
``study.Study``.
"""

import argparse
import difflib
import importlib
import json
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from gbmrank import GbmrankError, get_num_threads, set_num_threads
from gbmrank.cli.arguments import whole
from gbmrank.cli.screen import bold, clean, system_message, table
from gbmrank.errors import ParameterError, UnknownNameError
from studies.files import data_folder
from studies.report import PROGRAM, Report, has_matplotlib
from studies.stamps import restamp
from studies.study import Option, Page, Settings, Study

PAPERS = ("chen2009", "duchi2010", "calauzenes2013", "ramaswamy2013", "menon2014")
OWN = ("quality", "tried", "clicks", "noise", "patterns", "crossfit", "goals", "probabilities")
STUDIES = (*PAPERS, *OWN)
"""Their folders; a new one is one name here."""

_SCHEMA = "gbmrank.reproduce/1"
_WIDTH = 100
_HELP = ("-h", "--help")


def main(argv: Sequence[str] | None = None) -> int:
    """List the studies, or run one and print what it found.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the program's name; those of this process by default.

    Returns
    -------
    int
        0 when done, 2 after a mistake in the input.
    """
    try:
        given = _parsed(argv)
        if given.name is None:
            _list(as_json=given.json)
        else:
            _run(given)
    except (GbmrankError, OSError) as error:
        _say(f"{PROGRAM}: error: {system_message(error) if isinstance(error, OSError) else error}")
        return 2
    return 0


def load_study(name: str) -> Study:
    """Return a study by its name.

    Raises
    ------
    UnknownNameError
        With the nearest name.

    Examples
    --------
    >>> load_study("duchi2010").PAPER
    'Duchi, Mackey and Jordan, ...
    """
    if name not in STUDIES:
        near = difflib.get_close_matches(name, STUDIES, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UnknownNameError(
            f"no study is called {name!r}; {hint}There are: {', '.join(STUDIES)}"
        )
    return cast("Study", importlib.import_module(f"studies.{name}.experiment"))


def run_study(name: str, settings: Settings) -> Report | None:
    """Run a study and measure how long it takes.

    Parameters
    ----------
    name : str
        One of ``STUDIES``.
    settings : Settings
        How; its threads hold for boosters and kernels alike.

    Returns
    -------
    Report or None
        To print, or to save as a page; none where only the cost was wanted.
    """
    study = load_study(name)
    before = get_num_threads()
    if settings.threads is not None:
        set_num_threads(settings.threads)
    began = time.perf_counter()
    try:
        outcome = study.run(settings)
    finally:
        if settings.threads is not None:
            set_num_threads(before)
    seconds = time.perf_counter() - began
    if outcome is None:
        return None
    return Report(name, study.PAPER, settings, outcome, seconds, study.TITLE, study.OPTIONS)


def _parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line, with the options of the study that it names."""
    parser = _parser()
    words = sys.argv[1:] if argv is None else argv
    named = parser.parse_known_args([word for word in words if word not in _HELP])[0]
    if named.name is not None:
        own = parser.add_argument_group(f"options of {named.name}")
        for name, option in load_study(named.name).OPTIONS.items():
            flag = f"--{name.replace('_', '-')}"
            own.add_argument(flag, default=option.default, help=option.about, **_kind(option))
    return parser.parse_args(words)


def _kind(option: Option) -> dict[str, Any]:
    """Return how an option is read, by the type of its default."""
    if isinstance(option.default, bool):
        return {"action": "store_true"}
    if isinstance(option.default, tuple):
        return {"nargs": "*", "choices": option.choices, "action": _Tuple}
    return {"type": whole if isinstance(option.default, int) else Path}


class _Tuple(argparse.Action):
    """Keep several values as a tuple, as the default is one."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, tuple(values))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description="Run the experiments of a paper again, or a study of our own."
    )
    add = parser.add_argument
    add("name", nargs="?", help="a study; without it, all of them are listed")
    add("--data", metavar="FOLDER", help="where the data lies (default: that of GBMRANK_DATA)")
    add("--small", action="store_true", help="a short run on built-in data, to see it work")
    add("--seed", type=whole, default=0, help="of everything random (0)")
    add("--out", metavar="FOLDER", help="write a page with plots there")
    add("--threads", type=whole, metavar="N", help="of boosters and kernels")
    add(
        "--stamp",
        action="store_true",
        help="run nothing: stamp the page in --out, after a change that changes no result",
    )
    add("--json", action="store_true", help="print JSON")
    return parser


def _list(*, as_json: bool) -> None:
    studies = {name: load_study(name) for name in STUDIES}
    if as_json:
        rows = [
            {"name": name, "title": one.TITLE, "paper": one.PAPER, "needs": one.NEEDS}
            for name, one in studies.items()
        ]
        print(json.dumps({"schema": _SCHEMA, "studies": rows}, indent=2))
        return
    cells = [(name, "needed" if one.NEEDS else "none", one.TITLE) for name, one in studies.items()]
    print(table(["study", "data", "about"], cells) + "\n")
    for name, one in studies.items():
        if one.NEEDS:
            print(_wrapped(f"{name} needs {one.NEEDS}"))
    print("\nGive the folder with --data or GBMRANK_DATA; --small runs on built-in data.")


def _run(given: argparse.Namespace) -> None:
    if given.seed < 0 or (given.threads is not None and given.threads < 1):
        raise ParameterError(
            f"--seed is 0 or more and --threads 1 or more, got {given.seed} and {given.threads}"
        )
    if given.stamp:
        if given.out is None:
            raise ParameterError("--stamp needs --out, the folder of the page")
        _say(f"stamped: {restamp(Path(given.out), given.name)}")
        return
    settings = Settings(
        data=None if given.small else data_folder(given.data),
        small=given.small,
        seed=given.seed,
        threads=given.threads,
        report=_say,
        options={name: getattr(given, name) for name in load_study(given.name).OPTIONS},
    )
    report = run_study(given.name, settings)
    if report is None:
        return
    if given.json:
        print(json.dumps({"schema": _SCHEMA, **report.as_dict()}, indent=2))
    else:
        print(_as_text(report))
    if given.out is not None:
        written = report.save(Path(given.out))
        if not has_matplotlib():
            _say("no plots: matplotlib is not installed (pip install 'gbmrank[report]')")
        _say(f"written: {', '.join(map(str, written))}")


def _as_text(report: Report) -> str:
    if isinstance(report.outcome, Page):
        return "\n".join(map(clean, report.outcome.lines))
    parts = [bold(clean(f"{report.name}: {report.paper}"))]
    parts += [
        f"{bold(clean(one.title))}\n{table(one.columns, one.rows)}" for one in report.outcome.tables
    ]
    parts.append("\n".join(_wrapped(f"* {one}") for one in report.outcome.findings))
    parts.append(_wrapped(f"{report.seconds:.0f} seconds; again with: {report.command}"))
    return "\n\n".join(parts)


def _wrapped(text: str) -> str:
    return textwrap.fill(clean(text), _WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _say(line: str) -> None:
    print(clean(line), file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
