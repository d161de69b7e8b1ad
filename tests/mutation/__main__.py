"""Mutation testing: ``python -m tests.mutation [--module FILE] [--sample N] [--seed 0]``.

Writes the score of each module and the mutants that no test noticed to ``docs/mutation.md``.
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path

from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.page import Outcome, Run, write_page
from tests.mutation.plan import MODULES, tests_of
from tests.mutation.runner import Workspace, preload


def main() -> int:
    options = _options()
    if options.read:
        stored = [Outcome(**row) for row in json.loads(options.read.read_text(encoding="utf-8"))]
        run = Run(options.sample, options.seed, options.minutes)
        write_page(stored, options.page, run, MODULES)
        return 0
    preload()
    outcomes: list[Outcome] = []
    end = time.monotonic() + 60.0 * options.minutes
    workspace = Workspace()
    try:
        for number, module in enumerate(options.modules, 1):
            left = (end - time.monotonic()) / (len(options.modules) - number + 1)
            outcomes.append(_judge(workspace, module, options, left))
            print(f"{outcomes[-1].line}", flush=True)
            if options.json:
                rows = [outcome._asdict() for outcome in outcomes]
                options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    finally:
        workspace.close()
    if options.page:
        run = Run(options.sample, options.seed, options.minutes)
        write_page(outcomes, options.page, run, MODULES)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--module", action="append", dest="modules", help="default: all of them")
    parser.add_argument("--sample", type=int, default=20, help="mutants per module; 0 is all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e6, help="stop after about so long")
    parser.add_argument("--page", type=Path, help="the page to write, such as docs/mutation.md")
    parser.add_argument("--read", type=Path, help="write the page from such a file; run nothing")
    parser.add_argument("--json", type=Path, help="a file for the outcomes")
    options = parser.parse_args()
    options.modules = options.modules or list(MODULES)
    return options


def _judge(workspace: Workspace, module: str, options: argparse.Namespace, left: float) -> Outcome:
    """Run the tests of a module on a sample of its mutants, for about so many seconds."""
    begun = time.monotonic()
    tests = tests_of(module)
    broken, seconds = workspace.failing(tests, 900.0)
    source = Path(module).read_text(encoding="utf-8")
    every = mutants_of(source)
    chosen = random.Random(options.seed).sample(every, len(every))
    killed, survivors = 0, []
    for mutant in chosen[: options.sample or None]:
        if time.monotonic() - begun > left:
            break
        (workspace.folder / module).write_text(mutant.source, encoding="utf-8")
        if workspace.run(tests, broken, 5.0 * seconds + 30.0) == "passed":
            survivors.append(_shown(mutant))
        else:
            killed += 1
    (workspace.folder / module).write_text(source, encoding="utf-8")
    return Outcome(module, len(every), killed, survivors)


def _shown(mutant: Mutant) -> dict[str, object]:
    return {key: value for key, value in mutant._asdict().items() if key != "source"}


if __name__ == "__main__":
    sys.exit(main())
