"""The workers of a cluster: data sent to them, threads, and the loss of a worker."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar, final

import cloudpickle
from distributed import Future as DaskFuture
from distributed import get_worker

from gbmrank.errors import GbmrankError, WorkerLostError
from gbmrank.kernels.jit import threads


@final
@dataclass(frozen=True, slots=True)
class Parcel:
    """A value that is pickled only once."""

    content: bytes

    @classmethod
    def pack(cls, value: Any) -> "Parcel":
        """Pickle a value, including classes defined in a notebook."""
        return cls(cloudpickle.dumps(value))

    def open(self) -> Any:
        """Return the value; the same object every time within a process."""
        return _opened(self.content)


@lru_cache(maxsize=32)
def _opened(content: bytes) -> Any:
    return cloudpickle.loads(content)


def limit_threads() -> None:
    """Limit the threads of kernels to those that Dask gives this worker.

    A worker that shares its process with the client keeps the client's setting.
    """
    try:
        worker = get_worker()
    except ValueError:  # not on a worker
        return
    if worker.nanny is not None and threads.get_num_threads() > worker.state.nthreads:
        threads.set_num_threads(worker.state.nthreads)


T = TypeVar("T")
_LOOK = 0.25  # seconds between checks of the cluster
_GRACE = 10.0  # seconds for a training to end after its workers are gone
_SETTLE = 1.0  # seconds until the scheduler notices a lost worker
_TASKS = "_train_part-"  # LightGBM's own name; those of XGBoost end by themselves


def while_workers_live(client: Any, call: Callable[[], T]) -> T:
    """Return the result of a training; raise WorkerLostError if a worker is lost.

    The other workers may then wait forever inside the booster, so they are restarted.
    """
    before, known = _workers(client), set(client.futures)

    def inside() -> T:
        with client.as_current():
            return call()

    pool = ThreadPoolExecutor(1, thread_name_prefix="gbmrank-dask")
    try:
        training = pool.submit(inside)
        while not training.done():
            if lost := _gone(client, before):
                break
            wait([training], _LOOK)
        else:
            lost = _lost_by_failure(client, training, before)
        if not lost:
            return training.result()
        _clean_up(client, training, before, known)
        cause = training.exception() if training.done() else None
        raise WorkerLostError(
            f"lost {len(lost)} of the workers during training: {', '.join(lost)}; there is no "
            "model, and the other workers were restarted. See the log of the worker, use smaller "
            "partitions or more workers, and train again"
        ) from cause
    finally:
        pool.shutdown(wait=False)


def _lost_by_failure(client: Any, training: "Future[Any]", before: dict[str, str]) -> list[str]:
    """Return the workers whose loss made the training fail; the scheduler may notice late."""
    error = training.exception()
    if error is None or isinstance(error, GbmrankError):
        return []
    deadline = time.monotonic() + _SETTLE
    lost = _gone(client, before)
    while not lost and time.monotonic() < deadline:
        time.sleep(_LOOK)
        lost = _gone(client, before)
    return lost


def _clean_up(
    client: Any, training: "Future[Any]", before: dict[str, str], known: set[Any]
) -> None:
    """Restart the remaining workers, and cancel tasks that wait for the lost one."""
    now = _workers(client)
    if left := [address for address, one in before.items() if now.get(address) == one]:
        client.restart_workers(left, raise_for_error=False)
    wait([training], _GRACE)
    if not training.done():  # LightGBM's tasks wait for a lost address
        new = [key for key in list(client.futures) if key not in known]
        names = {key: str(key[0] if isinstance(key, tuple) else key) for key in new}
        mine = [DaskFuture(key, client) for key in new if names[key].startswith(_TASKS)]
        client.cancel([future for future in mine if not future.done()])
        wait([training], _GRACE)


def _gone(client: Any, before: dict[str, str]) -> list[str]:
    now = _workers(client)
    return sorted(address for address, one in before.items() if now.get(address) != one)


def _workers(client: Any) -> dict[str, str]:
    """Return the identity of each worker process by its address."""
    return client.run_on_scheduler(_identities)


def _identities(dask_scheduler: Any) -> dict[str, str]:
    return {address: str(ws.server_id) for address, ws in dask_scheduler.workers.items()}
