"""Which studies there are, and how one is run."""

import difflib
import importlib
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from gbmrank.errors import UnknownNameError
from gbmrank.kernels.jit import threads
from gbmrank.reproduce.report import Report
from gbmrank.reproduce.study import Settings, Study

__all__ = ["STUDIES", "load_study", "run_study"]

STUDIES: Mapping[str, str] = MappingProxyType(
    {
        "chen2009": "gbmrank.reproduce.chen2009",
        "duchi2010": "gbmrank.reproduce.duchi2010",
        "calauzenes2013": "gbmrank.reproduce.calauzenes2013",
        "ramaswamy2013": "gbmrank.reproduce.ramaswamy2013",
        "menon2014": "gbmrank.reproduce.menon2014",
    }
)
"""Module of each study; a new one is one line here."""


def load_study(name: str) -> Study:
    """Return a study by its name.

    Raises
    ------
    UnknownNameError
        With the nearest name.

    Examples
    --------
    >>> load_study("duchi2010").PAPER
    'Duchi, Mackey and Jordan, ...
    """
    if name not in STUDIES:
        near = difflib.get_close_matches(name, STUDIES, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UnknownNameError(
            f"no study is called {name!r}; {hint}There are: {', '.join(STUDIES)}"
        )
    return cast("Study", importlib.import_module(STUDIES[name]))


def run_study(name: str, settings: Settings) -> Report:
    """Run a study and measure how long it takes.

    Parameters
    ----------
    name : str
        One of ``STUDIES``.
    settings : Settings
        How; its threads hold for boosters and kernels alike.

    Returns
    -------
    Report
        To print, or to save as a page.
    """
    study = load_study(name)
    before = threads.get_num_threads()
    if settings.threads is not None:
        threads.set_num_threads(settings.threads)
    began = time.perf_counter()
    try:
        outcome = study.run(settings)
    finally:
        if settings.threads is not None:
            threads.set_num_threads(before)
    return Report(name, study.PAPER, settings, outcome, time.perf_counter() - began)
