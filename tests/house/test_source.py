"""What ships with the package, and rules of its source that no linter knows."""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import lightgbm as lgb
import pytest
import xgboost as xgb

import gbmrank
from tests.ranking_tasks import make_task

HOUSE = Path(gbmrank.__file__).parent
SOURCES = sorted(HOUSE.rglob("*.py"))
BOOSTERS = ("lightgbm", "xgboost")
DEFAULT = "the default of a parameter that users write"
ENGINE = "runs the booster's own training on Dask; no other file imports it"
# Where a booster is named outside of gbmrank/boosters: file, function, reason.
NAMED = {
    ("clicks/estimation.py", "estimate_bias"): DEFAULT,
    ("clicks/pooling.py", "pooled_labels"): DEFAULT,
    ("clicks/value.py", "offline_value"): DEFAULT,
    ("estimators/gbm_ranker.py", "GBMRanker.__init__"): DEFAULT,
    ("estimators/gbm_ranker.py", "distil"): DEFAULT,
    ("estimators/goal_ranker.py", "GoalRanker.__init__"): DEFAULT,
    ("estimators/low_rank_ranker.py", "LowRankRanker.__init__"): DEFAULT,
    ("estimators/pair_ranker.py", "PairRanker.__init__"): DEFAULT,
    ("dask/ranker.py", "DaskGBMRanker.__init__"): DEFAULT,
    ("dask/distributed.py", "train"): DEFAULT,
    ("dask/lightgbm_engine.py", ""): ENGINE,
    ("dask/xgboost_engine.py", ""): ENGINE,
    ("metrics/conventions.py", ""): "names of like=, whose conventions are set there",
}


def test_the_types_are_shipped():
    assert (HOUSE / "py.typed").exists()


def test_a_module_name_occurs_once():
    """But for the files that LightGBM and XGBoost have in parallel."""
    places: dict[str, set[str]] = defaultdict(set)
    for path in SOURCES:
        folder = path.parent.relative_to(HOUSE).as_posix()
        places[path.stem].add("boosters/*" if folder.startswith("boosters/") else folder)
    shared = {name: sorted(found) for name, found in places.items() if len(found) > 1}
    assert shared.keys() <= {"__init__", "base"}, shared


def named_boosters(node: ast.AST, scope: tuple[str, ...] = ()) -> Iterator[tuple[str, int]]:
    """Yield function and line of every import and every constant that is a booster's name."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        scope = (*scope, node.name)
    modules: list[str] = []
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level:
        modules = [node.module or ""]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        modules = [node.value] if node.value in BOOSTERS else []
    for module in modules:
        if module.partition(".")[0] in BOOSTERS:
            yield ".".join(scope), getattr(node, "lineno", 0)
    for child in ast.iter_child_nodes(node):
        yield from named_boosters(child, scope)


def test_names_of_boosters_are_seen():
    text = """
import xgboost.dask
NAMES = {"lightgbm": 1, "lightgbm is a word of this text": 2}
class Ranker:
    def fit(self, backend="lightgbm"):
        from lightgbm import Dataset
"""
    found = list(named_boosters(ast.parse(text)))
    assert found == [("", 2), ("", 3), ("Ranker.fit", 5), ("Ranker.fit", 6)]


def test_boosters_are_named_in_their_own_room_alone():
    found = {
        (file, function): line
        for path in SOURCES
        if not (file := path.relative_to(HOUSE).as_posix()).startswith("boosters/")
        for function, line in named_boosters(ast.parse(path.read_text(encoding="utf-8")))
    }
    beyond = [f"gbmrank/{file}:{line} {function}" for (file, function), line in found.items()
              if (file, function) not in NAMED]  # fmt: skip
    assert beyond == []
    assert NAMED.keys() <= found.keys()  # an entry that is no longer needed goes


def calls_of(function):
    """Return the files of all functions of gbmrank that a call runs, kernels included."""
    files = []

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(HOUSE)):
            files.append(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return files


def lightgbm_round(task, objective):
    data = lgb.Dataset(task.x, task.y, group=task.sizes)
    booster = lgb.Booster({"verbose": -1, "num_threads": 1}, data)
    return lambda: booster.update(fobj=objective)


def xgboost_round(task, objective):
    data = xgb.DMatrix(task.x, task.y)
    data.set_group(task.sizes)
    booster = xgb.Booster({"nthread": 1, "min_child_weight": 1e-3}, [data])
    return lambda: booster.update(data, booster.num_boosted_rounds(), fobj=objective)


@pytest.mark.parametrize("make_round", [lightgbm_round, xgboost_round])
def test_a_round_can_be_read(make_round):
    """What a round of a booster's own training runs: few files, few calls."""
    task = make_task(seed=1, queries=20, longest=20)
    step = make_round(task, gbmrank.objective("pairwise", target="ndcg@10"))
    for _ in range(5):
        step()
    files = calls_of(step)
    assert len(set(files)) <= 13, sorted(set(files))
    assert len(files) <= 24, files


def test_names_are_read_once_when_a_ranker_is_trained():
    """What three rounds of a fit run: names are resolved once and handed on as objects."""
    task = make_task(seed=1, queries=20, longest=20)
    model = gbmrank.GBMRanker(n_estimators=3, n_jobs=1)
    fit = lambda: model.fit(task.x, task.y, qid=task.qid)  # noqa: E731
    fit()  # kernels are compiled, and classes are inspected, once
    assert len(calls_of(fit)) <= 500
