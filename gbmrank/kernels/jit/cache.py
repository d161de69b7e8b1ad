"""Compiled kernels on disk: one file for each kernel and kind of arguments.

The files are in the folder named by ``GBMRANK_CACHE_DIR``, else in the user's cache folder; below
it, in a folder of this version that only the user can write to. Compiled code is executed, so a
file is only used if this user (or root) owns it, nobody else may write to it, and its digest
matches its name and content. Files are renamed when they are whole, so any number of processes may
start at once. A problem with the cache is never an error: kernels are then compiled and kept in
memory, with one warning.
"""

import contextlib
import functools
import hashlib
import logging
import os
import pickle
import shutil
import stat
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numba
import platformdirs

from gbmrank.errors import GbmrankWarning, warn
from gbmrank.kernels.jit import compiler

try:  # numba's own cache hashes one function, and not those it calls: changed ones would be stale
    from numba.core.caching import NullCache
    from numba.core.compiler import CompileResult
    from numba.core.runtime import rtsys
    from numba.core.serialize import dumps
except ImportError:
    NullCache = object
    CompileResult = None

FILLED = "gbmrank.kernels._filled."
"""Prefix of the names of modules whose kernels are cached."""

_STALE_AFTER_DAYS = 30
_DIGEST_BYTES = 32
_LONG = 0.5  # seconds
_lock = threading.Lock()
_pending: list[tuple[str, float]] = []
_warned = False


class KernelCache(NullCache):  # type: ignore[misc]
    """The compiler's cache: looked up before a kernel is compiled, and written afterwards."""

    def __init__(self, name: str) -> None:
        self._name = name

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a compiled kernel for a signature, or None."""
        name = self._file_name(sig, target_context.codegen())
        try:
            if content := _read(name):
                rtsys.initialize(target_context)  # all that ready code needs; a refresh is slow
                return CompileResult._rebuild(target_context, *pickle.loads(content))  # noqa: S301
        except Exception as error:  # an unexpected file may cause any exception
            _warn_once(f"{name} cannot be used ({error})")
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled kernel."""
        if data.lifted or data.library.has_dynamic_globals:
            return
        name = self._file_name(sig, data.codegen)
        try:
            _write(name, dumps(data._reduce()))
        except OSError as error:
            _warn_once(f"{name} cannot be written ({error})")

    def _file_name(self, sig: Any, codegen: Any) -> str:
        kind = repr((sig, codegen.magic_tuple())).encode()
        return f"{self._name}-{hashlib.sha256(kind).hexdigest()[:16]}.kernel"


def attach(kernel: Any, name: str) -> None:
    """Look a kernel up on disk before it is compiled, and keep it there."""
    if CompileResult is None:
        _warn_once(f"numba {numba.__version__} is not known")
    else:
        kernel._cache = KernelCache(name)


def cache_folder() -> Path | None:
    """Return the folder of the kernels of this version, created when missing, or None."""
    given, base = os.environ.get("GBMRANK_CACHE_DIR"), None
    with contextlib.suppress(RuntimeError):  # a user without a home; older versions return ~
        base = Path(given) if given else platformdirs.user_cache_path()
    if base is None or not (given or base.is_absolute()):
        _warn_once("there is no home folder")
        return None
    folder = base / "gbmrank" / f"kernels-{sources_digest()}"
    try:
        base.mkdir(parents=True, exist_ok=True)
        for part in (folder.parent, folder):
            if not part.exists():
                with contextlib.suppress(FileExistsError):  # another process was first
                    part.mkdir(mode=0o700)
                    part.chmod(0o700)  # whatever the umask took away
        _check_ours(folder.lstat(), stat.S_ISDIR)
    except OSError as error:
        _warn_once(f"{folder} cannot be used ({error})")
        return None
    return folder


def holds(name: str) -> bool:
    """Whether a kernel of a module was compiled before."""
    folder = cache_folder()
    return folder is not None and next(folder.glob(f"{name}.*"), None) is not None


def _check_ours(status: os.stat_result, is_kind: Any) -> None:
    """Raise PermissionError if another user could have written a file, or can."""
    if not is_kind(status.st_mode):
        raise PermissionError("it is not a plain file or folder")
    if hasattr(os, "geteuid"):  # on Windows folders of a user have their own access lists
        if status.st_uid not in (os.geteuid(), 0):
            raise PermissionError(f"it belongs to user {status.st_uid}")
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError("other users may write to it")


def _read(name: str) -> bytes | None:
    """Return the content of a file after checking it, or None if it does not exist."""
    if (folder := cache_folder()) is None:
        return None
    try:
        with (folder / name).open("rb") as file:
            _check_ours(os.fstat(file.fileno()), stat.S_ISREG)
            whole = file.read()
    except FileNotFoundError:
        return None
    digest, content = whole[:_DIGEST_BYTES], whole[_DIGEST_BYTES:]
    if digest != _digest(name, content):
        raise ValueError("it is damaged")
    return content


def _write(name: str, content: bytes) -> None:
    if (folder := cache_folder()) is None:
        return
    _remove_stale(folder)
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")  # for its owner alone
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_digest(name, content) + content)
        os.replace(temporary, folder / name)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _digest(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + content).digest()


def _remove_stale(current: Path) -> None:
    """Delete kernels of other versions that were not used for a month."""
    oldest = time.time() - _STALE_AFTER_DAYS * 86_400
    with contextlib.suppress(OSError):
        os.utime(current)
    for folder in current.parent.glob("kernels-*"):
        with contextlib.suppress(OSError):  # another process may delete it too
            if folder != current and folder.stat().st_mtime < oldest:
                shutil.rmtree(folder, ignore_errors=True)


def _warn_once(reason: str) -> None:
    global _warned  # noqa: PLW0603
    if not _warned:
        _warned = True
        warn(
            f"the cache of compiled kernels: {reason}; they are compiled and kept in memory. "
            "Remove the file, or set GBMRANK_CACHE_DIR to a folder of your own",
            GbmrankWarning,
        )


def report(kernel: str, seconds: float) -> None:
    """Log that kernels were compiled, several in one line after half a second.

    The level is INFO. In a terminal or a notebook it is printed on standard error, too, unless
    ``GBMRANK_QUIET`` is set.
    """
    with _lock:
        _pending.append((kernel, seconds))
        total = sum(taken for _, taken in _pending)
        if total < _LONG:
            return
        names = ", ".join(name for name, _ in _pending)
        _pending.clear()
    folder = cache_folder()
    kept = "in memory only" if folder is None else f"in {folder}"
    line = (
        f"gbmrank compiled {names} in {total:.1f} s and keeps the code {kept}; "
        "'gbmrank warm' does this ahead of time, GBMRANK_QUIET=1 hides this line"
    )
    logging.getLogger("gbmrank").info(line)
    watched = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
    if watched and os.environ.get("GBMRANK_QUIET", "") in ("", "0"):
        print(line, file=sys.stderr)


@functools.cache
def sources_digest() -> str:
    """Hash of all kernel sources, the numerics and the compiler's version."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    root = compiler.SOURCES
    for path in [*sorted(root.rglob("*.py")), root.parent / "numerics.py"]:
        digest.update(path.relative_to(root.parent).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
