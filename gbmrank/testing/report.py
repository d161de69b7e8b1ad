"""What a check found, and how it is told."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, final

from gbmrank.errors import GbmrankError

__all__ = ["Check", "ConformanceError", "Report", "Result", "SkipCheck", "fail_unless"]

Outcome = Literal["passed", "failed", "skipped", "expected"]
_MARKS = {"passed": "ok", "failed": "FAILED", "skipped": "skipped", "expected": "expected"}


class ConformanceError(GbmrankError, AssertionError):
    """A loss, an objective or a metric does not keep the contract of its kind."""


class SkipCheck(Exception):
    """A check does not apply; the message says why."""


@final
@dataclass(frozen=True, slots=True)
class Check:
    """One named check: what it asks for, and the function that raises when it is not so."""

    name: str
    about: str
    run: Callable[[Any], None]


@final
@dataclass(frozen=True, slots=True)
class Result:
    """Outcome of one check."""

    check: str
    outcome: Outcome
    message: str = ""

    def __str__(self) -> str:
        first, *rest = self.message.splitlines() or [""]
        text = f"{self.check:<24} {_MARKS[self.outcome]:<8} {first}".rstrip()
        return "\n".join([text, *(f"{'':<34}{line}" for line in rest)])


@final
@dataclass(frozen=True, slots=True)
class Report:
    """Outcomes of all checks of one subject; prints as a table."""

    kind: str
    subject: str
    results: tuple[Result, ...]

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the checks that failed without being expected to."""
        return tuple(one.check for one in self.results if one.outcome == "failed")

    def raise_for_failures(self) -> None:
        """Raise ConformanceError with the whole report when a check failed."""
        if self.failed:
            raise ConformanceError(str(self))

    def __str__(self) -> str:
        head = f"{self.kind} {self.subject}: "
        count = len(self.results)
        head += f"{len(self.failed)} of {count} checks failed" if self.failed else "ok"
        return "\n".join([head, *(f"  {one}" for one in self.results)])


def fail_unless(condition: object, message: str) -> None:
    """Raise AssertionError with a message, also where Python runs with -O."""
    if not condition:
        raise AssertionError(message)
