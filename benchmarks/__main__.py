"""Run all benchmarks, or those named.

python -m benchmarks [NAME ...] [--quick] [--threads N] [--page FILE]

``--page docs/results/speed.md`` runs the topics of that page, or those named, and writes what they
print.
"""

import argparse
import importlib
from collections.abc import Sequence
from pathlib import Path

from benchmarks import speed_page
from benchmarks.machine import print_machine
from benchmarks.settings import Settings

# One module per topic, each with `run(settings)`; a new topic is one line here.
TOPICS = {
    "rounds": "boosting rounds against lambdarank and rank:pairwise",
    "swaps": "rounds of lambdarank and yetirank against LightGBM's lambdarank",
    "fit": "what GBMRanker.fit takes beyond lgb.train",
    "callback": "where the time of one gradient call goes, and its memory",
    "engines": "time per pair of every way to sum pairs",
    "long_queries": "one query of up to a million rows: exact, linear-time, boosters",
    "graphs": "preference graphs: building, rounds on a million edges, decoding",
    "metrics": "tie-exact metrics against other tools",
    "files": "gbmrank train on Parquet files beside a script for the same model, by hand",
    "growing": "cost per row from 1e5 to 1e7 rows, memory of our own state",
    "workers": "Dask: one worker against two, and two against one machine",
    "start": "import time, first gradient call with and without cached kernels",
}


def main() -> None:
    """Parse the command line and run."""
    topics = "\n".join(f"  {name:<13} {about}" for name, about in TOPICS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"Benchmarks of gbmrank:\n{topics}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="topics to run; all by default")
    parser.add_argument("--quick", action="store_true", help="small data, few repeats: a smoke run")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the tables there as well")
    parser.add_argument("--threads", type=int, default=2, help="threads of everybody (default 2)")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(TOPICS))
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}; known: {', '.join(TOPICS)}")
    settings = Settings(quick=given.quick, threads=given.threads)
    if given.page:
        _write_speed_page(given.names or list(speed_page.TOPICS), settings, given.page)
        return
    print_machine(settings)
    for name in given.names or TOPICS:
        _run(name, settings)


def _run(name: str, settings: Settings) -> Sequence[str]:
    """Run a topic; return what it found, in words."""
    print(f"\n## {name}: {TOPICS[name]}")
    found: Sequence[str] | None = importlib.import_module(f"benchmarks.{name}").run(settings)
    return found or ()


def _write_speed_page(names: Sequence[str], settings: Settings, path: Path) -> None:
    """Run topics, and write what they print as a page."""
    with speed_page.printed() as machine:
        print_machine(settings)
    sections = []
    for name in names:
        with speed_page.printed() as text:
            found = _run(name, settings)
        body = text.getvalue().split("\n", 2)[2]  # without the heading
        sections.append(speed_page.Section(TOPICS[name], found, body))
    words = ["python -m benchmarks", *names, *(["--quick"] if settings.quick else [])]
    command = " ".join([*words, f"--page {path}"])
    page = speed_page.speed_page(sections, command, machine.getvalue())
    path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
