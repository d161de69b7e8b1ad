"""Errors of tasks, as the driver raises them."""

import re

from gbmrank import errors
from gbmrank.errors import GbmrankError, WorkerLostError

_LAST = re.compile(r"^(?:gbmrank\.errors\.)?(\w[\w.]*): (.+)$", re.MULTILINE)


def own_error(text: str) -> GbmrankError:
    """Return the error of the task that failed first, as it was raised there."""
    lines = [pair for pair in _LAST.findall(text) if not pair[0].startswith(("org.", "java."))]
    for name, message in reversed(lines):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, GbmrankError):
            return kind(message)
    name, message = lines[-1] if lines else ("Spark", text.partition("\n")[0])
    return WorkerLostError(f"a task failed, and there is no result: {name}: {message}")
