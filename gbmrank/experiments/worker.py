"""A process that runs tasks: one JSON line in per task, lines of progress out.

Started by :mod:`gbmrank.experiments.pool`. Runs are written to the store; only words pass
through the pipe. When the parent is gone the input ends, and so does this process, whatever
it is doing.
"""

import errno
import json
import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

import numpy as np

from gbmrank.data.queries import RankingData
from gbmrank.experiments.design import Design, Task
from gbmrank.experiments.results import System
from gbmrank.experiments.sources import Source
from gbmrank.experiments.store import Store
from gbmrank.experiments.trial import run_task
from gbmrank.kernels.jit.threads import set_num_threads

__all__ = ["lay_out", "main", "open_source"]

_OPTIONAL = ("parts", "gain")
_EVERY = 0.2  # seconds between two words about rounds


def lay_out(source: Source, design: Design, folder: Path) -> None:
    """Write what workers read: the rows, and the settings."""
    try:
        _write(source, design, folder)
    except OSError as error:  # numpy tells neither the file nor the reason
        full = f"the rows cannot be written, is the disk full? ({error.strerror or error})"
        raise OSError(error.errno or errno.ENOSPC, full, str(folder)) from error


def _write(source: Source, design: Design, folder: Path) -> None:
    np.save(folder / "features.npy", np.ascontiguousarray(source.X), allow_pickle=False)
    columns: dict[str, Any] = {"labels": source.data.labels, "sizes": source.data.groups.sizes}
    for name in _OPTIONAL:
        column = getattr(source, name)
        if column is not None:
            columns[name] = column
    np.savez(folder / "columns.npz", **columns)
    (folder / "design.json").write_text(json.dumps(design.to_json()), encoding="utf-8")


def open_source(folder: Path) -> tuple[Source, Design]:
    """Read what :func:`lay_out` wrote; the features stay on disk, shared by all workers."""
    features = np.load(folder / "features.npy", mmap_mode="r", allow_pickle=False)
    with np.load(folder / "columns.npz", allow_pickle=False) as columns:
        rows = RankingData.from_arrays(columns["labels"], group=columns["sizes"])
        optional = {name: columns[name] for name in _OPTIONAL if name in columns}
    design = json.loads((folder / "design.json").read_text(encoding="utf-8"))
    return Source(title="", X=features, data=rows, **optional), Design.from_json(design)


def main(folder: str) -> None:
    """Run tasks until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # whatever a booster prints must not look like an answer
    store = Store(Path(folder))
    source, design = open_source(store.work)
    set_num_threads(design.threads)
    tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(tasks,), daemon=True).start()
    while True:
        task = tasks.get()
        store.save(run_task(source, design, task, _Words(out)))
        _say(out, {"done": True})


class _Words:
    """Tells the parent about rounds, now and then."""

    def __init__(self, out: IO[str]) -> None:
        self._out, self._last = out, 0.0

    def __call__(self, rounds: int) -> None:
        now = time.monotonic()
        if now - self._last >= _EVERY:
            self._last = now
            _say(self._out, {"rounds": rounds})


def _listen(tasks: "queue.SimpleQueue[Task]") -> None:
    for line in sys.stdin:
        system, seed, fold = json.loads(line)
        tasks.put(Task(System(*system), seed, fold))
    os._exit(0)  # the parent has ended; a training cannot be stopped in another way


def _say(out: IO[str], words: dict[str, Any]) -> None:
    out.write(json.dumps(words) + "\n")
    out.flush()


if __name__ == "__main__":
    main(sys.argv[1])
