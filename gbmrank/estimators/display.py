"""Progress of a training: lines with the values of the metrics, or a progress bar."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from gbmrank.boosters.base import Report
from gbmrank.errors import ParameterError, import_optional
from gbmrank.types import is_whole

_BAR = "bar"
_History = Mapping[str, Mapping[str, list[float]]]


def shown(verbose: Any, rounds: Any) -> contextlib.AbstractContextManager[Report | None]:
    """Return a context of a callback that reports each round, or None to show nothing.

    ``verbose`` is True or the number of rounds between two lines, ``"bar"`` for a progress bar;
    False, 0 and below show nothing.
    """
    if verbose == _BAR:
        return _bar(rounds)
    if not isinstance(verbose, bool) and not is_whole(verbose):
        raise ParameterError(
            f"verbose must be True, False, a number of rounds or {_BAR!r}, got {verbose!r}"
        )
    period = int(verbose)

    def line(done: int, history: _History) -> None:
        if history and done % period == 0:
            print(f"[{done}]  {_values(history)}", flush=True)

    return contextlib.nullcontext(line if period > 0 else None)


@contextlib.contextmanager
def _bar(rounds: Any) -> Iterator[Report]:
    missing = "verbose='bar' needs rich: pip install 'gbmrank[report]'"
    rich = import_optional("rich.progress", missing)
    values = rich.TextColumn("{task.fields[values]}", markup=False)
    with rich.Progress(rich.BarColumn(), rich.MofNCompleteColumn(), values) as progress:
        task = progress.add_task("", total=rounds, values="")

        def report(done: int, history: _History) -> None:
            progress.update(task, completed=done, values=_values(history))

        yield report


def _values(history: _History) -> str:
    """Return the latest value of every metric, by validation set.

    >>> _values({"valid_0": {"ndcg@10": [0.5, 0.625], "map": [0.25, 0.3]}})
    'valid_0: ndcg@10 0.62500, map 0.30000'
    """
    return "  ".join(
        f"{name}: {', '.join(f'{metric} {column[-1]:.5f}' for metric, column in values.items())}"
        for name, values in history.items()
    )
