"""Run the boosters' own tests with objectives of gbmrank in place of theirs.

python -m tests.peers [--lightgbm CHECKOUT] [--xgboost CHECKOUT]

Checkouts are of the upstream repositories, at the versions installed; nothing of them is kept here.
Tests that cannot pass with another objective are listed in ``explained.py`` with the reason; those
that fail with the upstream objectives too (a download, another version) are counted apart. Ends
with 1 when another one fails, or when nothing was replaced.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

from tests.peers.explained import EXPLAINED

ROOT = Path(__file__).resolve().parents[2]


class Suite(NamedTuple):
    """Tests of one upstream file, chosen by pytest's ``-k``."""

    name: str
    file: str
    chosen: str


LIGHTGBM = (
    Suite("training and cv", "test_engine.py", "rank or objective or cv or feval or custom"),
    Suite(
        "scikit-learn",
        "test_sklearn.py",
        "rank or objective or custom or eval_set or xendcg or eval_at",
    ),
    Suite("command-line examples", "test_consistency.py", "lambdarank or xendcg"),
    Suite("Dask", "test_dask.py", "(ranker and not refit) or custom_objective"),
)
XGBOOST = (
    Suite("ranking", "test_ranking.py", ""),
    Suite("scikit-learn", "test_with_sklearn.py", "rank or custom"),
    Suite("callbacks", "test_callback.py", ""),
    Suite("data iterators", "test_data_iterator.py", "not extmem or test_extmem_qdm"),
)


class Counts(NamedTuple):
    """What became of the tests of a suite."""

    passed: int
    skipped: int
    explained: list[str]
    upstream: list[str]  # fail without gbmrank too
    failed: list[str]
    replaced: int


def _run(folder: Path, suite: Suite) -> Counts:
    with tempfile.TemporaryDirectory() as place:
        report, count = Path(place) / "report.xml", Path(place) / "count"
        chosen = ["-k", suite.chosen] if suite.chosen else []
        options = ["-p", "tests.peers.substitute", *chosen]
        outcome = _outcomes(folder, suite, options, report, {"GBMRANK_PEERS_COUNT": str(count)})
        wrong = [name for name, found in outcome.items() if found == "failed"]
        explained = [f"{name}: {why}" for name in wrong if (why := _reason(name)) is not None]
        rest = [name for name in wrong if _reason(name) is None]
        names = " or ".join(sorted({re.split(r"::|\[", name)[1] for name in rest}))
        again = _outcomes(folder, suite, ["-k", names], report, {}) if rest else {}
        states = list(outcome.values())
        return Counts(
            states.count("passed"),
            states.count("skipped"),
            explained,
            [name for name in rest if again.get(name) == "failed"],
            [name for name in rest if again.get(name) != "failed"],
            int(count.read_text()) if count.exists() else 0,
        )


def _reason(name: str) -> str | None:
    return next((why for known, why in EXPLAINED.items() if re.search(known, name)), None)


def _outcomes(
    folder: Path, suite: Suite, options: list[str], report: Path, environment: dict[str, str]
) -> dict[str, str]:
    """Run tests in a process of their own; return what became of each."""
    command = [sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider"]
    subprocess.run(
        [*command, "-W", "ignore", f"--junitxml={report}", *options, suite.file],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        check=False,
    )
    found = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  (pytest wrote it)
        bad = case.find("failure") is not None or case.find("error") is not None
        state = "skipped" if case.find("skipped") is not None else "failed" if bad else "passed"
        found[f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"] = state
    return found


def main() -> int:
    """Run what a checkout was given for, and print counts."""
    parser = argparse.ArgumentParser(prog="python -m tests.peers", description=__doc__)
    parser.add_argument("--lightgbm", type=Path, help="a checkout of LightGBM")
    parser.add_argument("--xgboost", type=Path, help="a checkout of XGBoost")
    given = parser.parse_args()
    suites = (
        ("LightGBM", given.lightgbm, "tests/python_package_test", LIGHTGBM),
        ("XGBoost", given.xgboost, "tests/python", XGBOOST),
    )
    chosen = [(name, at / part, one) for name, at, part, every in suites if at for one in every]
    if not chosen:
        parser.error("give --lightgbm or --xgboost, or both")
    lines, wrong = [], []
    for booster, folder, suite in chosen:
        counts = _run(folder, suite)
        numbers = [counts.passed, *map(len, counts[2:5])]
        cells = [booster, f"{suite.name} (`{suite.file}`)", sum(numbers), *numbers, counts.skipped]
        lines.append(f"| {' | '.join(map(str, cells))} |")
        print(
            "\n".join([*counts.explained, *(f"{one}: fails upstream" for one in counts.upstream)])
        )
        wrong += counts.failed or ([] if counts.replaced else [f"{suite.file}: nothing replaced"])
        print(lines[-1], flush=True)
    print("\n| booster | tests | run | passed | explained | fail upstream too | failed | skipped |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    print("\n".join(lines))
    if wrong:
        print("\nfailed without an explanation:\n" + "\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
