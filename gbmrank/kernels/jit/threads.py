"""Threads for kernels: one pool per process, over spans of queries.

Kernels release the interpreter lock, so plain threads run them side by side. The pool is
our own because the compiler's parallel loops hang after ``fork`` or abort under threads.
It is dropped after a fork, never pickled, and results do not depend on its size: each
query is computed by one thread, in one order.
"""

import contextlib
import contextvars
import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.errors import ConfigError, ParameterError
from gbmrank.kernels.layout import Span
from gbmrank.types import IntArray, is_whole

_MAX_SPANS = 32
_SMALL = 20_000.0  # below this cost a span is not worth waking a thread for
_limit: contextvars.ContextVar[int | None] = contextvars.ContextVar("gbmrank_threads", default=None)


class _State:
    threads: int | None = None
    executor: ThreadPoolExecutor | None = None
    lock = threading.Lock()

    def forget(self) -> None:
        """Drop the threads, which do not exist in a forked child."""
        self.executor, self.lock = None, threading.Lock()


_state = _State()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_state.forget)


def get_num_threads() -> int:
    """Return how many threads gbmrank uses to compute objectives and metrics.

    This is the number set by :func:`set_num_threads`, else the environment variable
    ``GBMRANK_NUM_THREADS``, else the number of processors this process may use.

    Returns
    -------
    int
        Number of threads.
    """
    if _state.threads is not None:
        return _state.threads
    named = os.environ.get("GBMRANK_NUM_THREADS", "")
    if named:
        if not named.isdecimal() or int(named) < 1:
            raise ConfigError(f"GBMRANK_NUM_THREADS must be a number of at least 1, got {named!r}")
        return int(named)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def set_num_threads(threads: int | None) -> None:
    """Set how many threads gbmrank uses to compute objectives and metrics.

    Results do not depend on this number.

    Parameters
    ----------
    threads : int or None
        At least 1; ``None`` restores the default.
    """
    if threads is not None and not (is_whole(threads) and threads >= 1):
        raise ParameterError(
            f"threads must be a whole number of at least 1, or None, got {threads!r}"
        )
    with _state.lock:
        _state.executor = None  # its threads end when the last user is done with it
        _state.threads = threads


@contextlib.contextmanager
def at_most(threads: int | None) -> Iterator[None]:
    """Limit the threads used within the context; None, 0 and below mean no limit."""
    token = _limit.set(threads if threads is not None and threads > 0 else _limit.get())
    try:
        yield
    finally:
        _limit.reset(token)


def cut_into_spans(
    costs: npt.NDArray[np.floating[Any]], longest: int = 0, also_at: Sequence[int] | IntArray = ()
) -> tuple[Span, ...]:
    """Cut queries into spans of about equal cost (in nanoseconds).

    ``longest`` is the number of items of the longest query, for buffers; ``also_at`` are further
    queries at which a span begins.
    """
    n_queries, total = len(costs), float(costs.sum())
    spans = int(min(max(total // _SMALL, 1), _MAX_SPANS, max(n_queries, 1)))
    if spans == 1 and n_queries and not len(also_at):
        return (Span(0, n_queries, longest),)
    cuts = np.searchsorted(np.cumsum(costs), total * np.arange(1, spans) / spans) + 1
    edges = np.unique(np.concatenate([[0], cuts, also_at, [n_queries]]).astype(np.int64))
    kept = edges[edges <= n_queries].tolist()
    return tuple(Span(first, last, longest) for first, last in itertools.pairwise(kept))


def run_spans(task: Callable[[Span], None], spans: Sequence[Span]) -> None:
    """Call ``task(span)`` for every span, on this thread and the pool's.

    Returns when all are done; the first exception of a task is raised. The calling thread
    takes spans too and does not wait for a thread that never started, so a busy processor
    costs time but does not block.
    """
    numbers = itertools.count()

    def work() -> None:
        while (number := next(numbers)) < len(spans):
            task(spans[number])

    helpers = min(get_num_threads(), _limit.get() or len(spans), len(spans)) - 1
    if helpers < 1:
        work()
        return
    futures = [_executor().submit(work) for _ in range(helpers)]
    try:
        work()
    finally:
        started = [future for future in futures if not future.cancel()]
        wait(started)
    for future in started:
        future.result()


def _executor() -> ThreadPoolExecutor:
    with _state.lock:
        if _state.executor is None:
            threads = max(get_num_threads() - 1, 1)
            _state.executor = ThreadPoolExecutor(threads, thread_name_prefix="gbmrank")
        return _state.executor
