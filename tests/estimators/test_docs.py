"""Every Python block of the page about estimators runs, in order."""

import re
from pathlib import Path

import gbmrank

PAGE = Path(__file__).parents[2] / "docs" / "estimators.md"


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102
    assert len(blocks) == 6
    data = names["data"]
    tied = gbmrank.metric("ndcg@10").score(data.labels, 0.0 * data.labels, qid=data.qid)
    assert names["search"].best_score_ > tied + 0.1
    assert names["booster"].num_trees() == 10
