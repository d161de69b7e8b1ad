"""Interleaved timing: every variant takes its turn in every pass."""

import gc
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_QUIET = 0.1  # of the time of a pass may go to others, summed over processors
_PATIENCE = 3  # times as many passes as wanted, at most
_ENOUGH = 10
_WAIT = 30.0  # seconds to wait in all for other programs to pause
_LOOK = 0.05
_BUDGET = 120.0  # seconds after which a busy machine is taken as it is
_STAT = Path("/proc/stat")


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of one variant, in the order of the passes."""

    seconds: tuple[float, ...]

    @property
    def min(self) -> float:
        """Least disturbed pass."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """Typical pass."""
        return float(np.median(self.seconds))

    def __str__(self) -> str:
        return f"{1e3 * self.min:.2f} / {1e3 * self.median:.2f}"


def interleave(
    variants: dict[str, Callable[[], object]], repeats: int, warmup: int = 2
) -> dict[str, Times]:
    """Call every variant once per pass, in an order shuffled anew for each pass.

    Threads of one library may still spin when the next one starts; shuffling spreads that
    over all variants. Passes during which other programs took processor time are dropped,
    and repeated up to a limit.
    """
    for _ in range(warmup):
        for call in variants.values():
            call()
    waited = 0.0
    quiet: list[dict[str, float]] = []
    disturbed: list[dict[str, float]] = []
    order = random.Random(0)
    gc.collect()
    gc.disable()
    try:
        start, passes = time.perf_counter(), 0
        while len(quiet) < repeats and passes < _PATIENCE * repeats:
            if passes >= _ENOUGH and time.perf_counter() - start > _BUDGET:
                break
            passes += 1
            waited += _wait_for_quiet(_WAIT - waited)
            before = others_seconds()
            turns = {name: _seconds(variants[name]) for name in _shuffled(variants, order)}
            foreign = others_seconds() - before
            (quiet if foreign < _QUIET * sum(turns.values()) else disturbed).append(turns)
    finally:
        gc.enable()
    kept = quiet if len(quiet) >= min(repeats, _ENOUGH) else quiet + disturbed
    if disturbed:
        print(f"({len(disturbed)} of {len(quiet) + len(disturbed)} passes had other load", end="; ")
        print("dropped)" if kept is quiet else "kept, for want of quiet ones)")
    return {name: Times(tuple(turns[name] for turns in kept)) for name in variants}


def others_seconds() -> float:
    """Return the processor time that everybody but this process has used since boot."""
    if not _STAT.exists():
        return 0.0
    fields = [
        int(field) for field in _STAT.read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
    ]
    busy = sum(fields[:8]) - fields[3] - fields[4]  # all but idle and waiting for a disk
    return busy / os.sysconf("SC_CLK_TCK") - time.process_time()


def _wait_for_quiet(limit: float) -> float:
    """Wait until others use little of the machine, at most ``limit`` seconds; return how long."""
    waited = 0.0
    while waited < limit:
        before = others_seconds()
        time.sleep(_LOOK)
        waited += _LOOK
        if others_seconds() - before < _QUIET * _LOOK:
            break
    return waited


def _shuffled(variants: dict[str, Callable[[], object]], order: random.Random) -> list[str]:
    return order.sample(list(variants), len(variants))


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def ratio(ours: Times, peer: Times) -> str:
    """Return ours over a peer, of the minima and of the medians."""
    return f"{ours.min / peer.min:.2f} / {ours.median / peer.median:.2f}"


def speed(ours: Times, peer: Times) -> str:
    """Return how many times faster we are than a peer, of the medians, in two digits.

    >>> speed(Times((1.0,)), Times((5.04,))), speed(Times((1.0,)), Times((67.8,)))
    ('5.0', '68')
    """
    times = peer.median / ours.median
    return f"{times:.1f}" if times < 10.0 else f"{times:.0f}"


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a Markdown table that is also readable as text; numbers are right-aligned."""
    cells = [list(head), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        first = row[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        return f"| {' | '.join([first, *rest])} |"

    print()
    print(line(cells[0]))
    print(f"|{'-' * (widths[0] + 2)}|{'|'.join('-' * (width + 1) + ':' for width in widths[1:])}|")
    for row in cells[1:]:
        print(line(row), flush=True)
