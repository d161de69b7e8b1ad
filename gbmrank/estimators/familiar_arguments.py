"""Arguments of ``fit`` as the boosters' own rankers take them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gbmrank.api.metrics import MetricList, metric
from gbmrank.data.columns import as_floats, read_wholes
from gbmrank.data.queries import Groups
from gbmrank.data.tables import split_column
from gbmrank.errors import DataError, GroupError, MetricError


def ids_of_sizes(sizes: Any, qid: Any, name: str) -> Any:
    """Return query ids for rows per query, or the ids if these are given."""
    if sizes is None:
        return qid
    if qid is not None:
        ids = name.replace("group", "qid")
        raise GroupError(f"{name}= (rows per query) and {ids}= (ids) are both given; leave out one")
    total = float(np.nan_to_num(as_floats(sizes, name)).sum())
    groups = Groups.read(int(total), sizes, None)
    return groups.spread(np.arange(groups.n_queries))


def ids_of_column(table: Any, qid: Any) -> tuple[Any, Any]:
    """Return a table and its query ids; those of its column ``qid`` if none are given."""
    return (table, qid) if qid is not None else split_column(table, "qid")


def ids_of_sets(sets: Mapping[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """Return evaluation sets by name, with ids of their columns ``qid`` if none are given."""
    made = {}
    for name, ((table, labels), qid, *rest) in sets.items():
        features, ids = ids_of_column(table, qid)
        made[name] = ((features, labels), ids, *rest)
    return made


def eval_ids(sets: Any, sizes: Any, qids: Any) -> Any:
    """Return the query ids of evaluation sets for their rows per query, if these are given."""
    if sizes is None:
        return qids
    if sets is None:
        raise DataError("eval_group= is given without eval_set=; give both or neither")
    single = isinstance(sets, tuple) and len(sets) == 2 and not isinstance(sets[0], tuple)
    if single and (len(sizes) != 1 or np.ndim(sizes[0]) == 0):
        return ids_of_sizes(sizes, qids, "eval_group")
    made = [
        ids_of_sizes(one, None if qids is None else qids[at], "eval_group")
        for at, one in enumerate(sizes)
    ]
    return made[0] if single else made


def at_cutoffs(metrics: MetricList, cutoffs: Any) -> MetricList:
    """Return metrics at these cut-offs instead of their own; those without one stay.

    >>> at_cutoffs(MetricList([metric("ndcg@10"), metric("auc")]), [1, 5])
    gbmrank.metric('ndcg@1, ndcg@5, auc')
    """
    made = []
    for one in metrics:
        if not hasattr(one.measure, "k"):
            made.append(one)
            continue
        for k in read_wholes(np.ravel(cutoffs), "eval_at", 1).tolist():
            made.append(metric(one, k=k))
    if not made:
        raise MetricError("eval_at is empty; give at least one cut-off, or leave it out")
    unique = {str(one): one for one in made}
    return MetricList(unique.values())
