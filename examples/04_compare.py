"""Compare objectives on data, and say what is established and what is not.

Every objective is trained in both boosters on the same folds, stopped by the same metric and
judged query by query. Give it your own data as ``python examples/04_compare.py train.txt``
(LETOR, CSV or Parquet); the same is ``gbmrank compare train.txt``.

Writes ``04_compare.html``. Run it with ``python examples/04_compare.py``.
"""

import sys

import gbmrank
from gbmrank.demo_data import demo_data

FAST = "--fast" in sys.argv
FILES = [word for word in sys.argv[1:] if not word.startswith("--")]
OBJECTIVES = [
    "pairwise(target=ndcg@10)",
    "pointwise(loss=squared, target=ndcg@10)",
    "ranknet",
    "native:lambdarank",
    "native:rank:pairwise",
]


def main() -> None:
    """Compare, print, write the report."""
    sample = demo_data(40 if FAST else 500)
    found = gbmrank.compare(
        FILES or (sample.X, sample.labels, sample.qid),
        objectives=OBJECTIVES,
        metrics="ndcg@10, err@10",
        folds=2 if FAST else 5,
        rounds=5 if FAST else 200,
        isolate=not FAST,
        baseline="ranknet",
        progress=not FAST,
    )
    print(found)
    print("\nnot established:")
    for sentence in found.analysis.not_established:
        print(f"  - {sentence}")
    found.to_html("04_compare.html")
    print("\nthe report is in 04_compare.html")


if __name__ == "__main__":
    main()
