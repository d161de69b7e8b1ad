"""Report compilation: one line whenever kernels have taken half a second to compile."""

import logging
import os
import sys
import threading

from gbmrank.kernels.jit.cache import cache_folder

_LONG = 0.5  # seconds
_log = logging.getLogger("gbmrank")
_lock = threading.Lock()
_pending: list[tuple[str, float]] = []


def compiled(kernel: str, seconds: float) -> None:
    """Record that a kernel was compiled; report several in one line after half a second.

    The line goes to the logger ``gbmrank`` at level INFO and, in a terminal or a notebook, to
    standard error unless ``GBMRANK_QUIET`` is set.
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
    _log.info(line)
    watched = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
    if watched and os.environ.get("GBMRANK_QUIET", "") in ("", "0"):
        print(line, file=sys.stderr)
