"""Tables of partitions that need not agree with each other."""

import itertools
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd

from tests.ranking_tasks import Task

WORDS = np.array(list("dacb"))


def words(task: Task, categories: Any = WORDS) -> pd.DataFrame:
    """Return a frame whose first column holds categories that labels depend on."""
    codes = task.x[:, 0].astype(int) % len(categories)
    z = pd.Categorical.from_codes(codes, categories)
    return pd.DataFrame({"z": z, "a": task.x[:, 1], "b": task.x[:, 2]})


def pieces(task: Task, table: Any, count: int = 2) -> list[Any]:
    """Cut a table between queries."""
    ends = _ends(task, count)
    rows = [slice(begin, end) for begin, end in itertools.pairwise(ends)]
    return [table.iloc[each] if hasattr(table, "iloc") else table[each] for each in rows]


def rows_of(task: Task, parts: list[Any], start: int = 0) -> tuple[Any, Any, Any]:
    """Return features, labels and ids with these partitions, as they are."""
    ends = _ends(task, len(parts))
    chunks = tuple(np.diff(ends).tolist())
    if isinstance(parts[0], pd.DataFrame):
        x = dd.from_map(_same, parts, meta=parts[0].iloc[:0], enforce_metadata=False)
        columns = ([one[a:b] for a, b in itertools.pairwise(ends)] for one in _labels(task, start))
        y, qid = (dd.from_map(pd.Series, each, meta=pd.Series(each[0][:0])) for each in columns)
        return x, y, qid
    width = parts[0].shape[1]
    made = [
        da.from_delayed(dask.delayed(_same)(part), (n, width), float)
        for part, n in zip(parts, chunks, strict=True)
    ]
    y, qid = (da.from_array(one, chunks=(chunks,)) for one in _labels(task, start))
    return da.concatenate(made), y, qid


def _labels(task: Task, start: int) -> tuple[Any, Any]:
    return task.y, task.qid + start


def _ends(task: Task, count: int) -> Any:
    queries = np.linspace(0, len(task.sizes), count + 1).astype(int)
    return np.concatenate([[0], np.cumsum(task.sizes)])[queries]


def _same(part: Any) -> Any:
    return part
