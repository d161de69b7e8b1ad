"""Say how much was tried, where somebody asked for a long run."""

import os

from tests.properties.tally import TRIED


def pytest_terminal_summary(terminalreporter):
    if os.environ.get("HYPOTHESIS_PROFILE") != "fuzz" or not TRIED:
        return
    terminalreporter.section("examples tried")
    for what, count in sorted(TRIED.items()):
        terminalreporter.write_line(f"{what:24} {count:>12,}")
    terminalreporter.write_line(f"{'together':24} {TRIED.total():>12,}")
