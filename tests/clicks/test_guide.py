"""The guide runs from top to bottom and prints what it shows."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "clicks.md"
BLOCK = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
NUMBER = re.compile(r"\d+\.\d+|#+")


def test_the_guide_prints_what_it_shows():
    """Word for word; numbers may move with the version of the booster, by a tenth."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```python") == 4
    names: dict = {"__name__": "page"}
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(PAGE), "exec"), names)  # noqa: S102
        found = re.sub(r" +\n", "\n", printed.getvalue())
        assert re.sub(r"\d+", "0", NUMBER.sub("0", found)) == re.sub(
            r"\d+", "0", NUMBER.sub("0", shown)
        )
        here, there = (
            np.array([float(one) for one in re.findall(r"\d+\.\d+", each)])
            for each in (found, shown)
        )
        np.testing.assert_allclose(here, there, rtol=0.1)
    fresh, ndcg = names["fresh"], names["ndcg"]
    scored = {
        name: ndcg.score(fresh.labels, names[name].predict(fresh.X), qid=fresh.qid)
        for name in ("naive", "debiased")
    }
    assert scored["debiased"] > scored["naive"] + 0.1
