"""Progress on standard error: bars on a terminal, otherwise plain lines."""

import contextlib
import os
import sys
import time
from typing import IO, Any, final

import numpy as np

from gbmrank.experiments.design import Task
from gbmrank.experiments.results import Run


def printable(text: object) -> str:
    r"""Return text with control characters escaped.

    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode()
        for c in str(text)
    )


def duration(seconds: float) -> str:
    """Return a time in words.

    >>> duration(0.4), duration(75), duration(9000)
    ('1 s', '75 s', '2.5 h')
    """
    if seconds < 120:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


class Progress:
    """Callbacks for the progress of runs, called from one thread; this class shows nothing."""

    def begin(self, total: int, done: int) -> None:
        """Start, given the number of runs and how many were done before."""

    def started(self, task: Task) -> None:
        """Handle the start of a run."""

    def rounds(self, task: Task, done: int) -> None:
        """Handle the number of finished rounds of a run."""

    def finished(self, task: Task, run: Run) -> None:
        """Handle the end of a run, successful or not."""

    def note(self, text: str) -> None:
        """Show a message at once."""

    def end(self) -> None:
        """Finish, also after an error."""


@final
class Lines(Progress):
    """One line per finished run."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._total = self._done = 0
        self._began = time.monotonic()

    def begin(self, total: int, done: int) -> None:
        """Show what was done before."""
        self._total, self._done = total, done
        if done:
            self.note(f"{done} of {total} runs were done before")

    def finished(self, task: Task, run: Run) -> None:
        """Show how a run went."""
        self._done += 1
        self.note(f"[{self._done}/{self._total}] {outcome(task, run)}")

    def note(self, text: str) -> None:
        """Show a message."""
        try:
            print(printable(text), file=self._out, flush=True)
        except BrokenPipeError:  # the reader has gone; the runs continue
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._out.fileno())

    def end(self) -> None:
        """Show how long it took."""
        self.note(f"{self._done} of {self._total} runs, {time.monotonic() - self._began:.0f} s")


@final
class Bars(Progress):
    """A bar for all runs and one for each active run; needs rich."""

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

    def begin(self, total: int, done: int) -> None:
        """Show the bar of all runs."""
        self._bars.start()
        self._all = self._bars.add_task("runs", total=total, completed=done)

    def started(self, task: Task) -> None:
        """Show the bar of a run."""
        self._running[task] = self._bars.add_task(printable(task), total=None)

    def rounds(self, task: Task, done: int) -> None:
        """Move the bar of a run."""
        self._bars.update(self._running[task], completed=done)

    def finished(self, task: Task, run: Run) -> None:
        """Remove the bar of a run; a failure stays on the screen."""
        if task in self._running:
            self._bars.remove_task(self._running.pop(task))
        self._bars.advance(self._all)
        if run.error is not None:
            self.note(outcome(task, run))

    def note(self, text: str) -> None:
        """Show a message above the bars."""
        self._bars.console.print(printable(text), markup=False, highlight=False)

    def end(self) -> None:
        """Remove the bars."""
        self._bars.stop()


def outcome(task: Task, run: Run) -> str:
    """Return how a run went, in one line."""
    if run.error is not None:
        return f"{task}: failed, {run.error.splitlines()[0]}"
    name, values = next(iter(run.values.items()))
    known = values[~np.isnan(values)]
    mean = known.mean() if len(known) else np.nan
    return f"{task}: {name} {mean:.4f}  {run.best_round + 1} rounds  {run.seconds:.1f} s"


def progress_on(out: IO[str] | None = None) -> Progress:
    """Return bars on a terminal, otherwise lines."""
    stream = out or sys.stderr
    with contextlib.suppress(ImportError):  # without rich
        return Bars(stream) if stream.isatty() else Lines(stream)
    return Lines(stream)
