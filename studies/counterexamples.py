"""Search the counterexamples that ship with gbmrank: ``python -m studies.counterexamples``.

For every objective of the table and every metric without a proof of calibration; the tests verify
every one that is found. It takes hours.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import gbmrank.theory.counterexamples as stored
from gbmrank.errors import GbmrankError
from gbmrank.objectives.levels import Comparison
from gbmrank.registry.catalogue import OBJECTIVES
from gbmrank.registry.composition import as_objective, loss_text
from gbmrank.theory import Counterexample, calibration, falsify, falsify_on_graphs

TABLE_METRICS = (
    "dcg",
    "ndcg",
    "ndcg@2",
    "precision",
    "precision@2",
    "precision@5",
    "recall",
    "recall@2",
    "recall@5",
    "wta",
    "auc",
    "spearman",
    "eru",
    "positional",
    "err",
    "err@2",
    "map",
    "mrr",
    "ptop",
    "pairwise_disagreement",
    "pairwise_disagreement(normalize=false)",
)
_MORE = (
    "pairwise(loss=hinge, target=ndcg)",
    "pairwise(loss=squared_hinge, target=ndcg)",
    "pairwise(loss=exponential, target=dcg)",
    "pointwise(loss=squared, target=ndcg)",
    "bregman(loss=poisson, target=ndcg)",
    "bipartite(loss=squared_margin)",
    "bipartite(loss=exponential)",
)


def table_objectives() -> tuple[str, ...]:
    """Return the objectives of the table: every built-in template and preset, and a few more.

    Objectives with frozen weights have no minimiser.
    """
    texts = {}
    for name, entries in OBJECTIVES.entries.items():
        if name == "mix" or entries[0].origin.distribution != "gbmrank":
            continue
        if as_objective(name).gradient == "exact":
            texts[loss_text(as_objective(name))] = name
    return (*texts, *(text for text in _MORE if text not in texts))


def search_table(objectives: Iterable[str], budget: int = 120) -> list[Counterexample]:
    """Search a counterexample for every objective and metric without a proof of calibration."""
    found = []
    for objective in objectives:
        for metric in TABLE_METRICS:
            if calibration(objective, metric).status == "calibrated":
                continue
            try:
                example = falsify(objective, metric, budget=budget)
            except GbmrankError as error:
                print(f"{objective} / {metric}: {error}", file=sys.stderr)
                continue
            print(f"{objective} / {metric}: {'-' if example is None else f'{example.regret:.3g}'}")
            found += [] if example is None else [example]
    return found


def search_graphs() -> list[Counterexample]:
    """Search counterexamples on preference graphs with low noise, for comparison losses."""
    parts = [as_objective(text) for text in table_objectives()]
    compared = [part for part in parts if isinstance(part, Comparison) and part.weights == "none"]
    found = [falsify_on_graphs(part) for part in compared]
    return [example for example in found if example is not None]


def _write(examples: list[Counterexample], path: Path) -> None:
    rows = [json.dumps(example.as_dict()) for example in examples]
    path.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    _write(
        search_table(table_objectives()) + search_graphs(),
        Path(stored.__file__).with_name("counterexamples.json"),
    )
