"""The page about estimators runs, and what the guide to serving says holds."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd

import gbmrank
from gbmrank.demo_data import demo_data

DOCS = Path(__file__).parents[2] / "docs"


def run_page(name: str) -> tuple[dict, int]:
    """Return what the blocks of a page define, and how many there are."""
    page = DOCS / name
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    names: dict = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)  # noqa: S102
    return names, len(blocks)


def test_the_page_about_estimators_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, blocks = run_page("estimators.md")
    assert blocks == 10
    assert names["committee"].committee_[0].rounds > 1
    data = names["data"]
    tied = gbmrank.metric("ndcg@10").score(data.labels, 0.0 * data.labels, qid=data.qid)
    assert names["search"].best_score_ > tied + 0.1
    assert names["booster"].num_trees() == 10


def walk(node: dict, row: dict) -> float:
    """Return the leaf of a tree of XGBoost's JSON dump, as Elasticsearch's plugin finds it."""
    while "leaf" not in node:
        side = (
            node["yes"] if row[node["split"]] < np.float32(node["split_condition"]) else node["no"]
        )
        node = next(child for child in node["children"] if child["nodeid"] == side)
    return float(node["leaf"])


def test_the_dump_for_elasticsearch_gives_the_scores_where_nothing_is_missing():
    data = demo_data(n_queries=40, seed=0)
    names = [f"feature_{number}" for number in range(data.X.shape[1])]
    table = pd.DataFrame(data.X.astype(np.float32), columns=names)
    model = gbmrank.GBMRanker(backend="xgboost", n_estimators=8, n_jobs=1)
    model.fit(table, data.labels, qid=data.qid)
    trees = [json.loads(tree) for tree in model.booster_.get_dump(dump_format="json")]
    rows = table[:50].to_dict("records")
    scores = [sum(walk(tree, row) for tree in trees) for row in rows]
    np.testing.assert_allclose(scores, model.predict(table[:50]), atol=1e-5)
