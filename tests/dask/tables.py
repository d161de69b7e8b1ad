"""Small tables cut into partitions of whole queries."""

import itertools
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd

from tests.ranking_tasks import Task

NAMES = [f"f{number}" for number in range(5)]


def chunks_of(task: Task, cuts: list[int]) -> tuple[int, ...]:
    """Return the rows between these query numbers."""
    ends = np.concatenate([[0], np.cumsum(task.sizes)])
    return tuple(np.diff(ends[cuts]).tolist())


def arrays(task: Task, cuts: list[int], qid: Any = None) -> tuple[Any, Any, Any]:
    """Return features, labels and ids, cut before these queries."""
    rows = chunks_of(task, cuts)
    return (
        da.from_array(task.x, chunks=(rows, -1)),
        da.from_array(task.y, chunks=(rows,)),
        da.from_array(task.qid if qid is None else qid, chunks=(rows,)),
    )


def frame(task: Task, cuts: list[int]) -> Any:
    """Return one frame with the columns f0 to f4, label and query."""
    table = pd.DataFrame(task.x, columns=NAMES).assign(label=task.y, query=task.qid)
    ends = np.concatenate([[0], np.cumsum(chunks_of(task, cuts))])
    pieces = [table.iloc[a:b] for a, b in itertools.pairwise(ends)]
    return dd.from_map(lambda piece: piece, pieces, meta=table.iloc[:0])
