"""``gbmrank reproduce NAME``: run the experiments of a paper, our numbers beside theirs."""

import argparse
import json
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from gbmrank.cli.arguments import whole
from gbmrank.cli.screen import bold, clean, table

if TYPE_CHECKING:
    from gbmrank.reproduce import Report, Study

__all__ = ["add_arguments", "run"]

_SCHEMA = "gbmrank.reproduce/1"
_WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", nargs="?", help="a study; without it, all of them are listed")
    parser.add_argument(
        "--data", metavar="FOLDER", help="where the data lies (default: that of GBMRANK_DATA)"
    )
    parser.add_argument(
        "--small", action="store_true", help="a short run on built-in data, to see it work"
    )
    parser.add_argument("--seed", type=whole, default=0, help="of everything random (0)")
    parser.add_argument("--out", metavar="FOLDER", help="write a page with plots there")
    parser.add_argument("--threads", type=whole, metavar="N", help="of boosters and kernels")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """List the studies, or run one and print what it found."""
    return _list(given) if given.name is None else _run(given)


def _list(given: argparse.Namespace) -> int:
    from gbmrank.reproduce import STUDIES, load_study

    studies = {name: load_study(name) for name in STUDIES}
    if given.json:
        rows = [
            {"name": name, "paper": one.PAPER, "needs": one.NEEDS} for name, one in studies.items()
        ]
        print(json.dumps({"schema": _SCHEMA, "studies": rows}, indent=2))
        return 0
    cells = [
        (name, "needed" if _needs_data(one) else "none", _title(one.PAPER))
        for name, one in studies.items()
    ]
    needs = [f"{name} needs {one.NEEDS}" for name, one in studies.items() if _needs_data(one)]
    print(table(["study", "data", "paper"], cells))
    print("\n" + "\n".join(map(_wrapped, needs)))
    print("\nGive the folder with --data or GBMRANK_DATA; --small runs on built-in data.")
    return 0


def _needs_data(study: "Study") -> bool:
    return bool(study.NEEDS) and not study.NEEDS.startswith("nothing")


def _run(given: argparse.Namespace) -> int:
    from gbmrank.errors import ParameterError
    from gbmrank.reproduce import Settings, load_study, run_study
    from gbmrank.reproduce.files import data_folder

    load_study(given.name)
    if given.seed < 0 or (given.threads is not None and given.threads < 1):
        raise ParameterError(
            f"--seed is 0 or more and --threads 1 or more, got {given.seed} and {given.threads}"
        )
    settings = Settings(
        data=None if given.small else data_folder(given.data),
        small=given.small,
        seed=given.seed,
        threads=given.threads,
        report=_progress,
    )
    report = run_study(given.name, settings)
    if given.json:
        print(json.dumps({"schema": _SCHEMA, **report.as_dict()}, indent=2))
    else:
        print(_as_text(report))
    if given.out is not None:
        _save(report, Path(given.out))
    return 0


def _as_text(report: "Report") -> str:
    parts = [bold(clean(f"{report.name}: {report.paper}"))]
    parts += [
        f"{bold(clean(one.title))}\n{table(one.columns, one.rows)}" for one in report.outcome.tables
    ]
    parts.append("\n".join(_wrapped(f"* {one}") for one in report.outcome.findings))
    parts.append(_wrapped(f"{report.seconds:.0f} seconds; again with: {report.command}"))
    return "\n\n".join(parts)


def _save(report: "Report", folder: Path) -> None:
    from gbmrank.reproduce.report import has_matplotlib

    written = report.save(folder)
    if report.outcome.figures and not has_matplotlib():
        _progress("no plots: matplotlib is not installed (pip install 'gbmrank[report]')")
    _progress(f"written: {', '.join(map(str, written))}")


def _title(paper: str) -> str:
    return paper if len(paper) <= _WIDTH else f"{paper[: _WIDTH - 3]}..."


def _wrapped(text: str) -> str:
    return textwrap.fill(clean(text), _WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _progress(line: str) -> None:
    print(clean(line), file=sys.stderr, flush=True)
