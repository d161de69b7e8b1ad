"""Every kernel once, and its results wherever arrays may lie: what :mod:`test_last_bits` runs.

Each subject is computed on equal data at many addresses: scores and labels at odd offsets and small
distances, and heap blocks of varied sizes if a library is preloaded that varies them.
"""

import ctypes
import json
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import gbmrank
from benchmarks import plugin_losses
from gbmrank.errors import GbmrankError
from gbmrank.extend import AbstractBound, AbstractObjective, RankingData, bind_queries
from gbmrank.kernels.jit import compiler, threads

OBJECTIVES = """
pairwise(target=ndcg@10) pairwise(loss=exponential) pairwise(loss=squared) pairwise(loss=hinge)
pairwise(loss=squared_hinge) pairwise(loss=canonical_boosting) pairwise(loss=plugin_hinge)
ranknet w_ranknet rankboost ranksvm ranksvm_squared comparison(loss=plugin_logistic)
comparison(loss=squared_margin) comparison(loss=p_classification) bipartite(threshold=2)
push(threshold=2) pnorm_push(threshold=2) p_classification(threshold=2) pointwise softmax
softmax(hessian=majorise) bregman bregman(loss=poisson) listmle w_listmle sigmoid_softmax
calibrated_softmax query_rmse rcr lambdarank lambdarank@10 ndcg_loss2 ndcg_loss2pp yetirank
map_diagonal linear duchi_linear swap(metric=err(max_grade=4),loss=exponential)
swap(metric=map(threshold=2)) written_by_a_plugin
"""
METRICS = """
ndcg@10 ndcg dcg auc(threshold=2) err(max_grade=4) map(threshold=2) mrr(threshold=2) rbp eru wta
precision(threshold=2)@5 recall(threshold=2)@5 spearman hit_rate(threshold=2)@5
ptop(threshold=2) r_precision(threshold=2) pairwise_disagreement
"""
LENGTHS = (3, 5, 6, 7, 9, 12, 15, 17, 20, 24, 31, 33, 48, 63)

Found = dict[str, bytes]


def _sums(labels: Any, scores: Any, grad: Any, hess: Any) -> float:
    """Smooth ranks: loops over arrays of a query, as plugins write them."""
    total = 0.0
    for i in range(len(scores)):
        rank = 0.5
        for j in range(len(scores)):
            p = 1.0 / (1.0 + np.exp(scores[i] - scores[j]))
            rank += p
            grad[i] += labels[i] * p * (1.0 - p)
            hess[j] += labels[i] * p
        total += labels[i] / rank
    grad -= grad.mean()
    return total


class Written(AbstractObjective):
    """An objective of a plugin."""

    name = "written_by_a_plugin"
    hessian_trait = "heuristic"

    def bind(self, data: RankingData) -> AbstractBound:
        """Bind its loop over a query."""
        return bind_queries(self, data, _sums)


def subjects() -> Iterator[tuple[str, Callable[[Any, Any, Any], Found]]]:
    """Yield every objective and metric by name, as functions of labels, scores and sizes."""
    plugin_losses.register()
    gbmrank.register_objective(Written)
    for text in OBJECTIVES.split():
        yield text, _graded_or_binary(_objective(text))
    for text in METRICS.split():
        yield text, _graded_or_binary(_metric(text))


def _graded_or_binary(call: Callable[[Any, Any, Any], Found]) -> Callable[[Any, Any, Any], Found]:
    def found(labels: Any, scores: Any, sizes: Any) -> Found:
        try:
            return call(labels, scores, sizes)
        except GbmrankError:
            return call((labels >= 2.0).astype(float), scores, sizes)

    return found


def _objective(text: str) -> Callable[[Any, Any, Any], Found]:
    made = gbmrank.objective(text)

    def found(labels: Any, scores: Any, sizes: Any) -> Found:
        grad, hess = made.gradients(labels, scores, group=sizes)
        single = made(labels, scores.astype(np.float32), None, sizes)
        loss = made.loss(labels, scores, group=sizes, per_query=True)
        columns = {"grad": grad, "hess": hess, "single": np.concatenate(single), "loss": loss}
        return {name: np.asarray(column).tobytes() for name, column in columns.items()}

    return found


def _metric(text: str) -> Callable[[Any, Any, Any], Found]:
    made = gbmrank.metric(text)
    return lambda labels, scores, sizes: {
        "value": made.per_query(labels, scores, group=sizes).tobytes()
    }


def _samples(lengths: tuple[int, ...]) -> list[tuple[Any, Any, Any]]:
    """Return labels, scores and sizes; buffers are as long as the longest query of a set."""
    rng, made = np.random.default_rng(0), []
    for n in lengths:
        sizes = np.array([n, n - 1, n, max(n // 2, 1), n])
        labels = rng.integers(0, 5, sizes.sum()).astype(float)
        made.append((labels, rng.normal(size=len(labels)).round(3), sizes))
    return made


def _apart(columns: tuple[Any, ...], rng: np.random.Generator) -> list[Any]:
    """Return copies in one block of memory, at odd offsets and small distances."""
    room = np.empty(len(columns) * (len(columns[0]) + 40) + 16)
    at, copies = -room.ctypes.data // 8 % 8 + int(rng.integers(0, 8)), []
    for column in columns:
        copies.append(room[at : at + len(column)])
        copies[-1][:] = column
        at += len(column) + int(rng.integers(0, 40))
    return copies


def unstable(layouts: int) -> dict[str, list[str]]:
    """Return the subjects whose bits depend on addresses, and what of them."""
    threads.set_num_threads(1)
    vary: Callable[[Any], object] = getattr(ctypes.CDLL(None), "vary_blocks", lambda seed: None)
    wrong: dict[str, set[str]] = {}
    for name, call in subjects():
        for labels, scores, sizes in _samples(LENGTHS):
            first = call(labels, scores, sizes)
            for seed in range(1, layouts):
                vary(ctypes.c_uint64(seed))
                placed = _apart((labels, scores), np.random.default_rng(seed))
                moved = call(placed[0], placed[1], sizes)
                vary(ctypes.c_uint64(0))
                other = {part for part in first if first[part] != moved[part]}
                wrong.setdefault(name, set()).update(other)
    return {name: sorted(parts) for name, parts in wrong.items() if parts}


def census() -> dict[str, int]:
    """Return how many address checks there are in every kernel whose sums may be reordered."""
    for _, call in subjects():
        for labels, scores, sizes in _samples((9,)):
            call(labels, scores, sizes)
    return {
        f"{module.__name__.removeprefix('gbmrank.kernels.')}.{name}{signature}": code.count(
            "diff.check"
        )
        for module in compiler._loaded.values()
        for name, kernel in vars(module).items()
        if getattr(kernel, "__module__", "") == module.__name__
        for signature, code in _optimised(kernel).items()
        if "reassoc" in code
    }


def _optimised(kernel: Any) -> dict[Any, str]:
    return kernel.inspect_llvm() if hasattr(kernel, "inspect_llvm") else {}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    chosen = os.environ["LAYOUTS"]
    print(json.dumps(census() if chosen == "census" else unstable(int(chosen))))
