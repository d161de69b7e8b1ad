"""``gbmrank warm``: compile kernels ahead of the first training, for container images."""

import argparse
import time
from typing import Any

import numpy as np

from gbmrank.cli.arguments import check_no_loss, check_not_native, is_registered, option
from gbmrank.cli.screen import clean, show
from gbmrank.errors import GbmrankError, ParameterError

_USUAL = ("pairwise", "ndcg@10")
_SIZES = (20, 5000)  # a typical query, and one for the linear-time engine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    names = f"objectives and metrics as in Python ({', '.join(_USUAL)} if left out)"
    option(parser, "names NAME", names, nargs="*")
    option(parser, "--all", "all registered objectives and metrics")


def run(given: argparse.Namespace) -> int:
    """Compile what each name needs; the exit code is 2 when a name that was given fails."""
    from gbmrank.kernels.jit.cache import cache_folder
    from gbmrank.registry import catalogue

    if given.all and given.names:
        raise ParameterError(f"give names or --all, not both; got {' '.join(given.names)}")
    names = given.names or _USUAL
    if given.all:
        names = [entry.name for entry in catalogue.list_objectives()]
        names += [entry.name for entry in catalogue.list_metrics()]
    rows = []
    for name in names:
        rows.append(_warmed(name))
        if not given.json:  # one by one: all of them take minutes
            state = rows[-1]["error"] or f"{rows[-1]['seconds']:.1f} s"
            print(clean(f"{len(rows)}/{len(names)} {name}: {state}"), flush=True)
    folder = cache_folder()
    where = None if folder is None else str(folder)
    known = {"schema": "gbmrank.warm/1", "folder": where, "warmed": rows}
    show(given, known, clean(f"kernels are cached in {where or 'memory only'}"))
    failed = any(row["error"] for row in rows)
    return 2 if failed and not given.all else 0


def _warmed(name: str) -> dict[str, Any]:
    start, error = time.perf_counter(), None
    try:
        _call(name)
    except GbmrankError as raised:  # needs data of another kind; the others are compiled
        error = str(raised)
    return {"name": name, "seconds": round(time.perf_counter() - start, 2), "error": error}


def _call(name: str) -> None:
    """Call an objective or a metric as a booster would, on small data."""
    from gbmrank.api import metric, objective
    from gbmrank.registry.catalogue import METRICS
    from gbmrank.registry.spec import parse_list

    check_not_native(name)
    is_metric = all(is_registered(METRICS, spec.name) for spec in parse_list(name))
    if not is_metric:
        check_no_loss(name)
    made: Any = metric(name) if is_metric else objective(name)
    for size in _SIZES:
        labels, scores = np.arange(size) % 2.0, np.linspace(0.0, 1.0, size)
        if is_metric:
            made.score(labels, scores, group=[len(labels)])
        else:
            made(labels, scores)
