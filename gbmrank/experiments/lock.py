"""One comparison at a time in a folder.

The lock is the system's, on an open file, and ends with the process, however that ends; the
text in the file only tells whose it is. What another machine has left is not taken over:
locks do not reach from one machine to the other on every network disk.
"""

import contextlib
import errno
import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from gbmrank.errors import ConfigError

__all__ = ["LOCK", "locked"]

LOCK = "running.json"
_FAR = 1 << 30  # Windows forbids others to read the bytes that are locked


@contextlib.contextmanager
def locked(folder: Path, note: Callable[[str], None]) -> Iterator[None]:
    """Hold a folder while this lasts; it is made if it is not there.

    Parameters
    ----------
    folder : Path
        Of the comparison.
    note : callable
        Hears of a lock that was left by a process that has ended.

    Raises
    ------
    ConfigError
        When another process holds it, with its number and machine.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK
    file, sure = _opened(path)
    with file:
        owner = _owner(file)
        if owner and (not sure or owner.get("host") != socket.gethostname()):
            raise ConfigError(_held(path, owner))
        if owner:
            note(f"process {owner.get('pid')} ended before its comparison in {folder} was done")
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # an empty file is nobody's
                file.truncate(0)
                path.unlink()


def _opened(path: Path) -> tuple[IO[bytes], bool]:
    """Open and lock the file, anew when its owner removed it; return whether locks work here."""
    while True:
        file = path.open("ab+", buffering=0)
        try:
            sure = _seize(file)
        except BlockingIOError:
            with file:
                raise ConfigError(_held(path, _owner(file))) from None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file, sure
        file.close()


def _held(path: Path, owner: dict[str, Any]) -> str:
    who = f"process {owner.get('pid')} on {owner.get('host')}" if owner else "another process"
    return (
        f"{path.parent} is in use: {who} runs a comparison there; wait for it or choose another "
        f"folder (--out); should it have ended, remove {path}"
    )


def _owner(file: IO[bytes]) -> dict[str, Any]:
    try:
        file.seek(0)
        found = json.loads(file.read(1000))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _seize(file: IO[bytes]) -> bool:
    """Lock a file; False where the disk has no locks, BlockingIOError where it is locked."""
    try:
        _lock(file)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            raise BlockingIOError(*error.args) from error
        return False
    return True


if sys.platform == "win32":  # pragma: no cover
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        file.seek(_FAR)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
