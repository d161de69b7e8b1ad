"""Train on a Dask cluster: queries stay whole, metrics are exact over all workers.

The cluster here is two processes of this machine; give ``Client`` the address of yours.

Run it with ``python examples/11_dask.py``.
"""

import sys
from typing import Any

import dask.array as da
from distributed import Client, LocalCluster

import gbmrank
from gbmrank.demo_data import demo_data

QUERIES, ROUNDS = (60, 10) if "--fast" in sys.argv else (1000, 60)
BACKENDS = ("xgboost",) if "--fast" in sys.argv else ("xgboost", "lightgbm")


def main() -> None:
    """Train on two workers and on one machine, and compare."""
    train, test = demo_data(QUERIES, seed=0), demo_data(QUERIES // 2, seed=1)
    chunk = len(train.X) // 4  # cuts queries in two
    x, y, qid = (
        da.from_array(column, chunks=(chunk, *column.shape[1:]))
        for column in (train.X, train.labels, train.qid)
    )
    options: dict[str, Any] = {"metric": "ndcg@10", "n_estimators": ROUNDS, "learning_rate": 0.1}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        try:
            gbmrank.dask.train(client, x, y, qid=qid, objective="pairwise", metric="ndcg@10")
        except gbmrank.GroupError as error:
            print(f"rejected: {error}\n")
        x, y, qid = gbmrank.dask.repartition_by_query(x, y, qid=qid)
        for backend in BACKENDS:
            spread = gbmrank.DaskGBMRanker("pairwise", backend=backend, client=client, **options)
            spread.fit(x, y, qid=qid)
            alone = gbmrank.GBMRanker("pairwise", backend=backend, **options)
            alone.fit(train.X, train.labels, qid=train.qid)
            values = [
                model.score(test.X, test.labels, qid=test.qid)
                for model in (spread.to_local(), alone)
            ]
            print(
                f"{backend:<9} NDCG@10 on test: two workers {values[0]:.4f}, alone {values[1]:.4f}"
            )


if __name__ == "__main__":
    main()
