"""The page about mutants."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.mutation.explained import reason_for

__all__ = ["Outcome", "Run", "write_page"]

_HEAD = """\
# Mutation testing

A mutant is a copy of the package with one small fault: another operator, a comparison off by
one, another constant, a lost sign, a statement removed, min for max. The tests of the module
have to fail on it. A mutant that passes is a fault that nobody would notice, or no fault at all.

Written by `make mutation` (`python -m tests.mutation --page docs/mutation.md`), with kernels run
as plain Python. At most {sample} mutants per module, drawn with seed {seed}{budget}; the column
"tried" says how many were reached. `--sample 0` without `--minutes` tries all.

| module | mutants | tried | noticed | equivalent | score |
| --- | --- | --- | --- | --- | --- |
"""


class Outcome(NamedTuple):
    """What became of the mutants of one module."""

    module: str
    mutants: int
    killed: int
    survivors: list[dict[str, Any]]

    @property
    def tried(self) -> int:
        return self.killed + len(self.survivors)

    @property
    def equivalent(self) -> int:
        return sum(self.reason(one).startswith("equivalent") for one in self.survivors)

    @property
    def score(self) -> float:
        """Noticed mutants among those that can be noticed."""
        return self.killed / max(self.tried - self.equivalent, 1)

    @property
    def line(self) -> str:
        cells = (self.mutants, self.tried, self.killed, self.equivalent, f"{self.score:.0%}")
        return f"| `{self.module}` | " + " | ".join(map(str, cells)) + " |"

    def reason(self, survivor: dict[str, Any]) -> str:
        return reason_for(self.module, survivor["function"], survivor["text"], survivor["after"])


class Run(NamedTuple):
    """How mutants were chosen."""

    sample: int
    seed: int
    minutes: float


def write_page(outcomes: list[Outcome], path: Path, run: Run, modules: Sequence[str]) -> None:
    """Write the scores, the modules that were left out, and every survivor."""
    together = Outcome(
        "together", sum(o.mutants for o in outcomes), sum(o.killed for o in outcomes), []
    )
    tried = sum(o.tried for o in outcomes)
    equivalent = sum(o.equivalent for o in outcomes)
    score = together.killed / max(tried - equivalent, 1)
    total = f"| together | {together.mutants} | {tried} | {together.killed} | {equivalent} | "
    budget = "" if run.minutes >= 1e6 else f", stopped after {run.minutes:g} minutes"
    most = run.sample or "all"
    lines = [_HEAD.format(sample=most, seed=run.seed, budget=budget).rstrip()]
    lines += [outcome.line for outcome in outcomes]
    lines += [
        f"{total}{score:.0%} |",
        "",
        *_left_out(outcomes, modules),
        "## Mutants that no test noticed",
        "",
    ]
    for outcome in outcomes:
        for one in sorted(outcome.survivors, key=lambda s: int(s["line"])):
            change = f"`{_short(one['before'])}` became `{_short(one['after'])}`"
            reason = outcome.reason(one) or "open"
            place = f"`{one['function']}` of `{outcome.module}`, `{_short(one['text'])}`"
            lines.append(f"- {place}: {change}; {reason}")
    if lines[-1] == "":
        lines.append("None.")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _left_out(outcomes: list[Outcome], modules: Sequence[str]) -> list[str]:
    judged = {outcome.module for outcome in outcomes if outcome.tried}
    missing = [f"`{module}`" for module in modules if module not in judged]
    return (
        [f"Not tried in this run, so not in the score: {', '.join(missing)}.", ""]
        if missing
        else []
    )


def _short(code: str) -> str:
    text = " ".join(code.split()).replace("`", "'")
    return text if len(text) <= 70 else f"{text[:45]} ... {text[-20:]}"
