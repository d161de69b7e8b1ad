"""What the page of this study is made with: kept scores, paired differences, tables."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from studies.quality.models import Cell, Scores
from studies.quality.page import Effect
from studies.tried.pool import Member

BOOSTERS = {"lightgbm": "LightGBM", "xgboost": "XGBoost"}
SETS = {"ohsumed": "OHSUMED", "movielens": "MovieLens"}

By = dict[str, Scores]  # values per query, by system
Rows = tuple[npt.NDArray[np.str_], By]  # with the names of the queries
Files = Mapping[tuple[str, Cell, str], Path]


def effect(one: Scores, other: Scores) -> Effect:
    """Return the mean difference over the queries where both are defined."""
    gap = one - other
    gap = gap[np.isfinite(gap)]
    return Effect(float(gap.mean()), float(gap.std(ddof=1) / math.sqrt(len(gap))))


@cache
def read(path: Path) -> dict[str, Scores]:
    """Return a kept file."""
    with np.load(path) as found:
        return {name: found[name] for name in found.files}


def scores_of(files: Files, cell: Cell, one: Member) -> dict[str, Scores]:
    """Return the kept scores of a model."""
    name = f"{one.objective}-{one.seed}"
    return read(files.get(("committees", cell, name)) or files["objectives", cell, name])


def over_seeds(rows: Sequence[Rows]) -> By:
    """Return the mean over seeds of the values of each query, queries in order of name."""
    ids = np.concatenate([queries for queries, _ in rows])
    known, at = np.unique(ids, return_inverse=True)
    count = np.bincount(at)
    return {
        name: np.bincount(at, np.concatenate([by[name] for _, by in rows]), len(known)) / count
        for name in rows[0][1]
    }


def shown(one: Effect) -> str:
    """Return a difference with its standard error, bold where it is clear."""
    text = f"{one.difference:+.4f} ± {one.error:.4f}"
    return text if one.verdict == "no clear difference" else f"**{text}**"


def listed(names: Sequence[str]) -> str:
    """Return names in one line."""
    return ", ".join(f"*{name}*" for name in names) if names else "none"


def row(*cells: str) -> str:
    """Return one line of a table."""
    return f"| {' | '.join(cells)} |"


def head(*titles: str, texts: int = 1) -> str:
    """Return the head of a table; columns after the texts are numbers."""
    bars = ["---" if at < texts else "---:" for at in range(len(titles))]
    return f"{row(*titles)}\n{row(*bars)}"
