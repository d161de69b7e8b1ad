"""Run the boosters' own tests with objectives of gbmrank in place of theirs.

python -m tests.peers [--lightgbm CHECKOUT] [--xgboost CHECKOUT]

Checkouts are of the upstream repositories, at the versions installed; nothing of them is kept here.
Tests that cannot pass with another objective are listed in ``explained.py`` with the reason; those
that fail with the upstream objectives too (a download, another version) are counted apart. Ends
with 1 when another one fails, or when nothing was replaced.
"""

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Suite(NamedTuple):
    """Tests of one upstream file, chosen by pytest's ``-k``."""

    name: str
    file: str
    chosen: str


LIGHTGBM = (
    Suite("training and cv", "test_engine.py", "rank or objective or cv or feval or custom"),
    Suite("scikit-learn", "test_sklearn.py", "rank or objective or custom or eval_set"),
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
        suites = (
            ("LightGBM", given.lightgbm, "tests/python_package_test", LIGHTGBM),
            ("XGBoost", given.xgboost, "tests/python", XGBOOST),
        )
    chosen = [(name, at / part, one) for name, at, part, all_ in suites if at for one in all_]
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
