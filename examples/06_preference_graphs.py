"""Learn from preferences instead of labels: noise diagnostics, objectives and pair models.

With ``GBMRANK_DATA`` naming a folder that holds ``bradleyterry/cems.*.csv``, the data are 303
students who compared six business schools two by two (the CEMS survey; Dittrich, Hatzinger and
Katzenbeisser 1998). Without it, comparisons of the same shape are made up.

Run it with ``python examples/06_preference_graphs.py``.
"""

import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np
import numpy.typing as npt

import gbmrank
from gbmrank import theory

FOLDS, ROUNDS = (3, 15) if "--fast" in sys.argv else (5, 40)


class Comparisons(NamedTuple):
    """Items of queries with features, and who was preferred to whom."""

    name: str
    x: npt.NDArray[np.float64]
    qid: npt.NDArray[np.int64]
    item: npt.NDArray[np.int64]
    graphs: gbmrank.PreferenceGraphs


def read_cems(folder: Path) -> Comparisons:
    """Read the survey: a query is a student, an item a school, an edge a preference."""
    import pandas as pd

    preferences, students, schools = (
        pd.read_csv(folder / f"cems.{part}.csv") for part in ("preferences", "students", "schools")
    )
    rows = students.merge(schools, how="cross").sort_values(["student", "school"], kind="stable")
    won = preferences.dropna(subset=["win1", "win2"])
    ahead = won["win1"].astype(bool) & ~won["win2"].astype(bool)
    behind = won["win2"].astype(bool) & ~won["win1"].astype(bool)
    edges = pd.concat(
        [
            won[ahead].rename(columns={"school1": "winner", "school2": "loser"}),
            won[behind].rename(columns={"school2": "winner", "school1": "loser"}),
        ]
    )
    edges = edges.rename(columns={"student": "qid"})[["qid", "winner", "loser"]]
    qid = rows["student"].to_numpy(np.int64)
    graphs = gbmrank.PreferenceGraphs.from_frame(edges, items=rows["school"].to_numpy(), qid=qid)
    table = pd.get_dummies(rows.drop(columns=["student"]), dtype=float)
    item = rows["school"].astype("category").cat.codes.to_numpy(np.int64)
    return Comparisons("CEMS survey", table.to_numpy(np.float64), qid, item, graphs)


def make_comparisons(queries: int = 303, size: int = 6, seed: int = 0) -> Comparisons:
    """Make up judges with tastes who compare items two by two."""
    rng = np.random.default_rng(seed)
    taste = rng.integers(0, 2, (queries, 3)).astype(float)
    quality = rng.normal(size=(size, 3))
    worth = 0.5 * quality.sum(axis=1) + (taste - 0.5) @ quality.T
    first, second = np.triu_indices(size, 1)
    lead = (worth[:, first] - worth[:, second]).ravel()
    wins = rng.random(len(lead)) < 1 / (1 + np.exp(-2 * lead))
    begins = size * np.arange(queries)[:, None]
    graphs = gbmrank.PreferenceGraphs.from_duels(
        (begins + first).ravel(), (begins + second).ravel(), wins, group=np.full(queries, size)
    )
    item = np.tile(np.arange(size), queries)
    x = np.column_stack([np.eye(size)[item], np.repeat(taste, size, axis=0)])
    return Comparisons("made-up judges", x, np.repeat(np.arange(queries), size), item, graphs)


def load() -> Comparisons:
    """Read the survey where it is, else make comparisons up."""
    folder = Path(os.environ.get("GBMRANK_DATA", "")) / "bradleyterry"
    found = "GBMRANK_DATA" in os.environ and (folder / "cems.preferences.csv").exists()
    return read_cems(folder) if found else make_comparisons()


def noise_of_all(data: Comparisons) -> str:
    """Say what the noise conditions are when all queries are judgments of the same items."""
    edges, size = data.graphs.to_edges(), int(data.item.max()) + 1
    pairs = data.item[edges.winner], data.item[edges.loser]
    total = np.bincount(pairs[0] * size + pairs[1], edges.weight, size * size).reshape(size, size)
    share = total / max(total.max(), 1.0)
    answers = {
        "low noise": theory.is_low_noise(share),
        "degree condition": theory.degree_condition(share),
        "no cycle": theory.is_acyclic(theory.difference_graph(share)),
    }
    return "\n".join(f"  {name}: {answer.reason or 'yes'}" for name, answer in answers.items())


def train_scores(text: str, data: Comparisons, train: Any, test: Any) -> Any:
    """Return the test scores of a LightGBM model with an objective on the training graphs."""
    objective = gbmrank.objective(text, preferences=data.graphs.take(train))
    params = {"objective": objective, "num_leaves": 7, "verbose": -1, "num_threads": 1}
    params |= gbmrank.booster_params(objective, "lightgbm")
    sizes = np.unique(data.qid[train], return_counts=True)[1]
    rows = lgb.Dataset(data.x[train], np.zeros(len(train)), group=sizes)
    return lgb.train(params, rows, ROUNDS).predict(data.x[test], raw_score=True)


def pair_scores(data: Comparisons, train: Any, test: Any) -> Any:
    """Return the test scores of a pair model."""
    model = gbmrank.PairRanker(n_estimators=ROUNDS, num_leaves=7, num_threads=1)
    model.fit(data.x[train], data.graphs.take(train), qid=data.qid[train])
    return model.predict(data.x[test], qid=data.qid[test])


def main() -> None:
    """Diagnose the noise, then cross-validate over queries."""
    data = load()
    print(f"{data.name}: {data.graphs}")
    print(theory.noise_report(data.graphs))
    print(f"all queries as judgments of the same items:\n{noise_of_all(data)}\n")
    models = ["linear", "comparison(loss=logistic)", "comparison(loss=squared_hinge)"]
    values: dict[str, list[float]] = {name: [] for name in [*models, "PairRanker", "no model"]}
    for train, test in gbmrank.query_folds(qid=data.qid, n_folds=FOLDS):
        held_out = data.graphs.take(test)
        metric = gbmrank.metric("pairwise_disagreement", preferences=held_out)
        scores = {name: train_scores(name, data, train, test) for name in models}
        scores["PairRanker"] = pair_scores(data, train, test)
        popular = np.bincount(data.item[train], data.graphs.take(train).net_degree())
        scores["no model"] = popular[data.item[test]]  # the same order for everybody
        for name, predicted in scores.items():
            values[name] += metric.per_query(None, predicted).tolist()
    print(f"{'pairwise disagreement, ' + str(FOLDS) + ' folds':<36}{'mean':>8}{'error':>8}")
    for name, per_query in values.items():
        known = np.array(per_query)[~np.isnan(per_query)]
        print(f"{name:<36}{known.mean():8.4f}{known.std() / np.sqrt(len(known)):8.4f}")


if __name__ == "__main__":
    main()
