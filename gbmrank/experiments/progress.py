"""Live progress on the error stream: bars on a terminal, plain lines anywhere else."""

import contextlib
import io
import os
import sys
import time
from typing import IO, Any, Protocol, final

from gbmrank.experiments.design import Task
from gbmrank.experiments.pool import Listener
from gbmrank.experiments.results import Run

__all__ = ["Lines", "Progress", "Quiet", "mute", "printable", "progress_on"]


def printable(text: object) -> str:
    r"""Return text in which characters that could command a terminal are spelt out.

    Examples
    --------
    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode()
        for c in str(text)
    )


def mute(stream: IO[str]) -> None:
    """Send what is left in a stream, and all that follows, nowhere: its reader has gone."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class Progress(Listener, Protocol):
    """Hears of runs, from the first to the last."""

    def begin(self, total: int, done: int) -> None:
        """Hear how many runs there are, and how many were done before."""
        ...

    def note(self, text: str) -> None:
        """Hear something worth telling at once."""
        ...

    def end(self) -> None:
        """Hear that it is over, whatever happened."""
        ...


@final
class Quiet:
    """Says nothing."""

    def begin(self, total: int, done: int) -> None:
        """Say nothing."""

    def started(self, task: Task) -> None:
        """Say nothing."""

    def rounds(self, task: Task, done: int) -> None:
        """Say nothing."""

    def finished(self, task: Task, run: Run) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""

    def end(self) -> None:
        """Say nothing."""


@final
class Lines:
    """One line per finished run."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._total = self._done = 0
        self._began = time.monotonic()

    def begin(self, total: int, done: int) -> None:
        """Say how much there is to do."""
        self._total, self._done = total, done
        if done:
            self._say(f"{done} of {total} runs were done before")

    def started(self, task: Task) -> None:
        """Say nothing: the end is enough."""

    def rounds(self, task: Task, done: int) -> None:
        """Say nothing: the end is enough."""

    def finished(self, task: Task, run: Run) -> None:
        """Say how a run went."""
        self._done += 1
        self._say(f"[{self._done}/{self._total}] {outcome(task, run)}")

    def note(self, text: str) -> None:
        """Say it."""
        self._say(text)

    def end(self) -> None:
        """Say how long it took."""
        self._say(f"{self._done} of {self._total} runs, {time.monotonic() - self._began:.0f} s")

    def _say(self, text: str) -> None:
        try:
            print(printable(text), file=self._out, flush=True)
        except BrokenPipeError:  # nobody listens any more; the runs go on
            mute(self._out)
            self._out = io.StringIO()


@final
class Bars:
    """A bar for all runs and one for each that is going on; needs rich."""

    def __init__(self, out: IO[str]) -> None:
        from rich import progress as rich
        from rich.console import Console

        self._bars = rich.Progress(
            rich.TextColumn("{task.description}", markup=False),
            rich.BarColumn(bar_width=24),
            rich.MofNCompleteColumn(),
            rich.TimeElapsedColumn(),
            rich.TimeRemainingColumn(),
            console=Console(file=out),
            transient=True,
        )
        self._all: Any = None
        self._running: dict[Task, Any] = {}
        self._rounds: int | None = None

    def begin(self, total: int, done: int) -> None:
        """Show the bar of all runs."""
        self._bars.start()
        self._all = self._bars.add_task("runs", total=total, completed=done)

    def started(self, task: Task) -> None:
        """Show the bar of a run."""
        self._running[task] = self._bars.add_task(printable(task), total=None)

    def rounds(self, task: Task, done: int) -> None:
        """Move the bar of a run."""
        if task in self._running:
            self._bars.update(self._running[task], completed=done)

    def finished(self, task: Task, run: Run) -> None:
        """Remove the bar of a run; a failure stays on the screen."""
        if task in self._running:
            self._bars.remove_task(self._running.pop(task))
        self._bars.advance(self._all)
        if run.error is not None:
            self.note(outcome(task, run))

    def note(self, text: str) -> None:
        """Say it above the bars."""
        self._bars.console.print(printable(text), markup=False, highlight=False)

    def end(self) -> None:
        """Remove the bars."""
        self._bars.stop()


def outcome(task: Task, run: Run) -> str:
    """Return how a run went, in one line."""
    if run.error is not None:
        return f"{task}: failed, {run.error.splitlines()[0]}"
    shown = "  ".join(f"{name} {_mean(values):.4f}" for name, values in _first(run))
    return f"{task}: {shown}  {run.best_round + 1} rounds  {run.seconds:.1f} s"


def progress_on(out: IO[str] | None = None) -> Progress:
    """Return bars where they can be seen, lines where not."""
    stream = out or sys.stderr
    if stream is None:  # a process without an error stream
        return Quiet()
    if stream.isatty():
        try:
            return Bars(stream)
        except ImportError:
            return Lines(stream)
    return Lines(stream)


def _first(run: Run) -> list[tuple[str, Any]]:
    return list(run.values.items())[:1]


def _mean(values: Any) -> float:
    known = values[values == values]  # noqa: PLR0124  (NaN differs from itself)
    return float(known.mean()) if len(known) else float("nan")
