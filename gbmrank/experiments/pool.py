"""Runs side by side in processes of their own.

Each worker is a plain subprocess that is told one task at a time through a pipe. Not
``multiprocessing``: its spawned children import the caller's script again, which a script
or notebook without a main guard does not survive, and its pool gives up every pending task
when one worker dies. Not threads: a crash inside a booster would take everything with it,
and two boosters in one process share one OpenMP pool. A worker that dies costs the run it
was at; another takes its place.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, final

from gbmrank.errors import GbmrankError
from gbmrank.experiments.design import Design, Task
from gbmrank.experiments.results import Run
from gbmrank.experiments.sources import Source
from gbmrank.experiments.store import Store
from gbmrank.experiments.trial import failed_run, run_task
from gbmrank.experiments.worker import lay_out

__all__ = ["Listener", "run_here", "run_in_processes"]

_WORKER = "gbmrank.experiments.worker"
_LAST_WORDS = 500
_PATIENCE = 10.0  # seconds for a worker to end


class Listener(Protocol):
    """Hears what happens; called from one thread."""

    def started(self, task: Task) -> None:
        """Hear that a run begins."""
        ...

    def rounds(self, task: Task, done: int) -> None:
        """Hear how many rounds of a run are done."""
        ...

    def finished(self, task: Task, run: Run) -> None:
        """Hear that a run has ended, well or not."""
        ...


class WorkerDied(GbmrankError):
    """A worker process ended in the middle of a run."""


def run_here(
    source: Source, design: Design, tasks: Sequence[Task], store: Store, listener: Listener
) -> None:
    """Run tasks in this process, one after the other."""
    for task in tasks:
        listener.started(task)

        def on_round(done: int, task: Task = task) -> None:
            listener.rounds(task, done)

        run = run_task(source, design, task, on_round)
        store.save(run)
        listener.finished(task, run)


def run_in_processes(
    source: Source,
    design: Design,
    tasks: Sequence[Task],
    store: Store,
    listener: Listener,
    jobs: int,
) -> None:
    """Run tasks in ``jobs`` worker processes; whatever ends this ends them."""
    waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    events: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
    with store.working() as folder:
        lay_out(source, design, folder)
        lanes = [
            _Lane(store, design, listener, waiting, events) for _ in range(min(jobs, len(tasks)))
        ]
        try:
            for lane in lanes:
                lane.start()
            for event in _until_all_ended(events, len(lanes)):
                event()
        finally:
            for lane in lanes:
                lane.end()


def _until_all_ended(
    events: "queue.SimpleQueue[Callable[[], None] | None]", lanes: int
) -> Iterator[Callable[[], None]]:
    while lanes:
        event = events.get()
        if event is None:
            lanes -= 1
        else:
            yield event


@final
class _Lane:
    """Feeds one worker after the other, as long as there are tasks."""

    def __init__(
        self,
        store: Store,
        design: Design,
        listener: Listener,
        waiting: "queue.SimpleQueue[Task]",
        events: "queue.SimpleQueue[Callable[[], None] | None]",
    ) -> None:
        self._store, self._design, self._listener = store, design, listener
        self._waiting, self._events = waiting, events
        self._worker: subprocess.Popen[str] | None = None
        self._ended = False
        self._lock = threading.Lock()
        self._log = store.work / f"worker-{id(self)}.log"
        self._thread = threading.Thread(target=self._run_all, daemon=True, name="gbmrank-compare")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def _run_all(self) -> None:
        try:
            while not self._ended:
                try:
                    task = self._waiting.get_nowait()
                except queue.Empty:
                    break
                self._run(task)
        finally:
            if self._worker is not None:
                self._close(self._worker)
            self._events.put(None)

    def end(self) -> None:
        """Stop now; the run that is going on is lost."""
        with self._lock:
            self._ended = True
            if self._worker is not None:
                self._worker.kill()
        if self._thread.ident is not None:
            self._thread.join(timeout=_PATIENCE)

    def _run(self, task: Task) -> None:
        self._events.put(partial(self._listener.started, task))
        run: Run | None = None
        try:
            if self._whole(task):
                run = self._store.load(task)
            if run is None and not self._ended:
                raise WorkerDied(self._last_words())
        except Exception as error:
            if self._ended:
                return
            run = failed_run(self._design, task, error)
            with contextlib.suppress(OSError):  # a full disk: the run counts, though unwritten
                self._store.save(run)
        if run is not None:
            self._events.put(partial(self._listener.finished, task, run))

    def _whole(self, task: Task) -> bool:
        """Have a task done; return whether the worker says so."""
        worker = self._alive()
        if worker.stdin is None or worker.stdout is None:  # pragma: no cover
            return False
        try:
            worker.stdin.write(json.dumps([list(task.system), task.seed, task.fold]) + "\n")
            worker.stdin.flush()
            for line in worker.stdout:
                words = json.loads(line)
                if words.get("done"):
                    return True
                self._events.put(partial(self._listener.rounds, task, words["rounds"]))
        except (BrokenPipeError, ValueError):
            return False
        return False

    def _alive(self) -> "subprocess.Popen[str]":
        if self._worker is not None and self._worker.poll() is not None:
            self._close(self._worker)
            self._worker = None
        with self._lock:  # no worker may start after the end
            if self._ended:
                raise WorkerDied("stopped")
            if self._worker is None:
                self._worker = self._new_worker()
            return self._worker

    def _new_worker(self) -> "subprocess.Popen[str]":
        with self._log.open("w") as log:
            return subprocess.Popen(  # noqa: S603  (our own module)
                [sys.executable, "-P", "-m", _WORKER, str(self._store.folder.absolute())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                env=_environment(self._design.threads),
                start_new_session=True,  # Ctrl-C is for this process, which then ends it
            )

    def _close(self, worker: "subprocess.Popen[str]") -> None:
        """Let a worker go; without input it ends by itself."""
        for pipe in (worker.stdin, worker.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError, ValueError):
                    pipe.close()
        try:
            worker.wait(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()

    def _last_words(self) -> str:
        worker = self._worker
        code = None if worker is None else worker.wait()
        how = f"with code {code}"
        if code is not None and code < 0:
            how = f"by signal {signal.Signals(-code).name}"
        text = self._log.read_text(encoding="utf-8", errors="replace").strip()
        last = f"; its last words: {text[-_LAST_WORDS:]}" if text else ""
        return f"the worker process ended {how}, for example for want of memory{last}"


def _environment(threads: int) -> dict[str, Any]:
    home = str(Path(__file__).resolve().parents[2])
    path = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": home if not path else f"{home}{os.pathsep}{path}",
        "OMP_NUM_THREADS": str(threads),
        "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "PASSIVE"),
        "PYTHONIOENCODING": "utf-8",
    }
