"""Parallel runs in worker processes.

Each worker is a plain subprocess that receives the rows and then one task at a time through a
pipe, and reports progress in lines of JSON; runs themselves are written to the store. Not
``multiprocessing``: its spawned children import the caller's script again, which fails for a
script without a main guard, and its pool gives up every pending task when one worker dies. Not
threads: a crash inside a booster would end everything, and two boosters in one process share one
OpenMP pool. When a worker dies, only its current run is lost, and a new worker replaces it. When
the parent ends, the worker's input ends, and so does the worker.
"""

import contextlib
import errno
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, TypeAlias, final

import numpy as np

from gbmrank.errors import GbmrankError
from gbmrank.experiments.design import Design, Task
from gbmrank.experiments.progress import Progress
from gbmrank.experiments.sources import Source
from gbmrank.experiments.store import Store
from gbmrank.experiments.trial import failed_run, run_task
from gbmrank.kernels.jit.threads import set_num_threads

Events: TypeAlias = "queue.SimpleQueue[Callable[[], None] | None]"
_MODULE = "gbmrank.experiments.pool"
_FEATURES = "features.npy"  # a file that all workers map into memory, as it may be large
_LAST_WORDS = 500
_PATIENCE = 10.0  # seconds that a worker has to exit
_EVERY = 0.2  # seconds between progress reports


class WorkerDied(GbmrankError):
    """A worker process ended in the middle of a run."""


def run_here(
    source: Source, design: Design, tasks: Sequence[Task], store: Store, progress: Progress
) -> None:
    """Run tasks in this process, one after the other."""
    for task in tasks:
        progress.started(task)
        run = run_task(source, design, task, partial(progress.rounds, task))
        store.save(run)
        progress.finished(task, run)


def run_in_processes(
    source: Source,
    design: Design,
    tasks: Sequence[Task],
    store: Store,
    progress: Progress,
    jobs: int,
) -> None:
    """Run tasks in ``jobs`` worker processes, which end with this call."""
    waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    events: Events = queue.SimpleQueue()
    with store.working() as folder:
        try:
            np.save(folder / _FEATURES, np.ascontiguousarray(source.X), allow_pickle=False)
        except OSError as error:  # numpy's message has neither file nor reason
            full = f"the rows cannot be written, is the disk full? ({error.strerror or error})"
            raise OSError(error.errno or errno.ENOSPC, full, str(folder)) from error
        given = pickle.dumps((replace(source, X=source.X[:0]), design))
        shared = (store, given, design), progress, waiting, events
        lanes = [_Lane(*shared) for _ in range(min(jobs, len(tasks)))]
        try:
            for lane in lanes:
                lane.thread.start()
            for _ in lanes:  # None is the end of one
                while (event := events.get()) is not None:
                    event()
        finally:
            for lane in lanes:
                lane.end()


@final
class _Lane:
    """A thread that gives tasks to a worker process, and replaces the worker if it dies."""

    def __init__(
        self,
        given: tuple[Store, bytes, Design],
        progress: Progress,
        waiting: "queue.SimpleQueue[Task]",
        events: Events,
    ) -> None:
        self._store, self._given, self._design = given
        self._progress, self._waiting, self._events = progress, waiting, events
        self._worker: subprocess.Popen[bytes] | None = None
        self._ended = False
        self._lock = threading.Lock()
        self._log = self._store.work / f"worker-{id(self)}.log"
        self.thread = threading.Thread(target=self._run_all, daemon=True, name="gbmrank-compare")

    def end(self) -> None:
        """Stop now; the current run is lost."""
        with self._lock:
            self._ended = True
            if self._worker is not None:
                self._worker.kill()
        if self.thread.ident is not None:
            self.thread.join(timeout=_PATIENCE)

    def _run_all(self) -> None:
        try:
            with contextlib.suppress(queue.Empty):
                while not self._ended:
                    self._run(self._waiting.get_nowait())
        finally:
            self._close()
            self._events.put(None)

    def _run(self, task: Task) -> None:
        self._events.put(partial(self._progress.started, task))
        try:
            run = self._store.load(task) if self._finishes(task) else None
            if run is None:
                raise WorkerDied(self._last_words())
        except Exception as error:
            if self._ended:
                return
            run = failed_run(self._design, task, error)
            with contextlib.suppress(OSError):  # a full disk; the run counts without being saved
                self._store.save(run)
        self._events.put(partial(self._progress.finished, task, run))

    def _finishes(self, task: Task) -> bool:
        """Give a worker a task and wait; return whether it finished the task."""
        worker = self._living_worker()
        if worker.stdin is None or worker.stdout is None:  # pragma: no cover
            return False
        with contextlib.suppress(BrokenPipeError, ValueError):
            pickle.dump(task, worker.stdin)
            worker.stdin.flush()
            for line in worker.stdout:
                message = json.loads(line)
                if message.get("done"):
                    return True
                self._events.put(partial(self._progress.rounds, task, message["rounds"]))
        return False

    def _living_worker(self) -> "subprocess.Popen[bytes]":
        if self._worker is not None and self._worker.poll() is not None:
            self._close()
        with self._lock:  # no worker may start after end()
            if self._ended:
                raise WorkerDied("stopped")
            if self._worker is None:
                self._worker = self._start()
            return self._worker

    def _start(self) -> "subprocess.Popen[bytes]":
        home = str(Path(__file__).resolve().parents[2])
        path = os.environ.get("PYTHONPATH")
        environment = {
            "OMP_WAIT_POLICY": "PASSIVE",  # waiting threads leave the processors to other workers
            **os.environ,
            "PYTHONPATH": home if not path else f"{home}{os.pathsep}{path}",
            "OMP_NUM_THREADS": str(self._design.threads),
            "PYTHONIOENCODING": "utf-8",
        }
        with self._log.open("w") as log:
            worker = subprocess.Popen(  # noqa: S603  (our own module)
                # -P: a file in the working folder must not shadow a module.
                [sys.executable, "-P", "-m", _MODULE, str(self._store.folder.absolute())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                start_new_session=True,  # only this process handles Ctrl-C
            )
        with contextlib.suppress(BrokenPipeError):  # its task will find that it has ended
            if worker.stdin is not None:
                worker.stdin.write(self._given)
        return worker

    def _close(self) -> None:
        """Close the worker's input, so that it exits."""
        worker, self._worker = self._worker, None
        if worker is None:
            return
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
        code = 0 if self._worker is None else self._worker.wait()
        how = f"with code {code}" if code >= 0 else f"by signal {signal.Signals(-code).name}"
        text = self._log.read_text(encoding="utf-8", errors="replace").strip()
        last = f"; its last output: {text[-_LAST_WORDS:]}" if text else ""
        return f"the worker process ended {how}, perhaps out of memory{last}"


def _work(folder: str) -> None:
    """Run tasks in a worker process until its input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # output of boosters must not mix with progress lines
    store = Store(Path(folder))
    source, design = pickle.load(sys.stdin.buffer)  # noqa: S301  (of the parent)
    features = np.load(store.work / _FEATURES, mmap_mode="r", allow_pickle=False)
    source = replace(source, X=features)
    set_num_threads(design.threads)
    tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
    threading.Thread(target=_read_tasks, args=(tasks,), daemon=True).start()
    while True:
        store.save(run_task(source, design, tasks.get(), _reporter(out)))
        print(json.dumps({"done": True}), file=out, flush=True)


def _read_tasks(tasks: "queue.SimpleQueue[Task]") -> None:
    try:
        while True:
            tasks.put(pickle.load(sys.stdin.buffer))  # noqa: S301  (of the parent)
    finally:
        os._exit(0)  # the parent has ended; nothing else stops a training


def _reporter(out: IO[str]) -> Callable[[int], None]:
    """Return a callback that reports rounds to the parent, at intervals."""
    last = -_EVERY

    def report(rounds: int) -> None:
        nonlocal last
        if (now := time.monotonic()) - last >= _EVERY:
            last = now
            print(json.dumps({"rounds": rounds}), file=out, flush=True)

    return report


if __name__ == "__main__":
    _work(sys.argv[1])
