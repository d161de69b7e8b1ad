"""What travels to the workers: pickled once, opened once per process."""

from functools import lru_cache
from typing import Any, final

import cloudpickle
from distributed import get_worker

from gbmrank.kernels.jit import threads

__all__ = ["Parcel", "limit_threads"]


@final
class Parcel:
    """A value that is pickled when it is packed, and never again.

    Parameters
    ----------
    content : bytes
        The pickle; made by :meth:`pack`.

    Examples
    --------
    >>> Parcel.pack([1, 2]).open()
    [1, 2]
    """

    __slots__ = ("content",)

    def __init__(self, content: bytes) -> None:
        self.content = content

    @classmethod
    def pack(cls, value: Any) -> "Parcel":
        """Pickle a value; classes of a notebook go along."""
        return cls(cloudpickle.dumps(value))

    def open(self) -> Any:
        """Return the value; the same object every time within a process."""
        return _opened(self.content)

    def __reduce__(self) -> tuple[Any, ...]:
        return Parcel, (self.content,)


@lru_cache(maxsize=32)
def _opened(content: bytes) -> Any:
    return cloudpickle.loads(content)


def limit_threads() -> None:
    """Let kernels use no more threads than Dask gives this worker.

    A worker that shares its process with the client keeps the client's setting.
    """
    try:
        worker = get_worker()
    except ValueError:  # not on a worker
        return
    if worker.nanny is not None and threads.get_num_threads() > worker.state.nthreads:
        threads.set_num_threads(worker.state.nthreads)
