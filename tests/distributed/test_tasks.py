"""Tasks that train one model together, here as processes of this machine."""

import pickle
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

from gbmrank.api.training_plans import training_plan
from gbmrank.boosters.base import Part
from gbmrank.data.queries import RankingData
from gbmrank.distributed.channel import connected
from gbmrank.distributed.task_engine import TaskEngine
from gbmrank.errors import WorkerLostError
from gbmrank.estimators.base import read_part
from gbmrank.estimators.committee import train
from tests.ranking_tasks import make_task

TASK = make_task(seed=0, queries=60)
# LightGBM estimates the rows of a leaf from its curvature, which small leaves would show.
UNLIMITED = {"min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0.0, "num_leaves": 4}
PARAMS: dict[str, dict[str, float]] = {"xgboost": {}, "lightgbm": UNLIMITED}
WORK = """
import pickle, sys, time
from dataclasses import replace
from pathlib import Path
import numpy as np
from gbmrank.boosters.base import Part
from gbmrank.data.queries import RankingData
from gbmrank.distributed.channel import connected
from gbmrank.distributed.task_engine import TaskEngine
from gbmrank.estimators.base import read_part
from gbmrank.estimators.committee import train

class Failing:  # in one task
    def __init__(self, inner):
        self.inner, self.calls = inner, 0

    def __deepcopy__(self, memo):
        return self

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def __call__(self, *given):
        self.calls += 1
        if self.calls == 3:
            raise ArithmeticError("of this objective")
        return self.inner(*given)


if __name__ == "__main__":
    folder, rank = Path(sys.argv[1]), int(sys.argv[2])
    task = pickle.loads((folder / "task").read_bytes())

    def exchange(text):
        (folder / f"draft{rank}").write_text(text)
        (folder / f"draft{rank}").rename(folder / f"text{rank}")
        texts = [folder / f"text{other}" for other in range(3)]
        while not all(one.exists() for one in texts):
            time.sleep(0.01)
        return [one.read_text() for one in texts]

    with connected(rank != 1, "127.0.0.1", exchange) as channel:
        if channel is not None:
            # The first task has no validation rows: its part is not counted.
            rows = task["query"] % 2 == channel.rank
            held = rows & task["held"] if channel.rank else rows
            data, valid = (
                read_part(task["x"][one], task["y"][one], task["query"][one] + more, None)
                for one, more in ((rows & ~task["held"], 0), (held, 1000))
            )
            sample = Part(task["x"], RankingData.from_arrays(task["y"]))
            engine = TaskEngine(channel, sample, bool(channel.rank))
            plan = task["plan"]
            if channel.rank == task["failing"]:
                plan = replace(plan, objective=Failing(plan.objective))
            trained = train(plan, data, {"valid": valid}, engine=engine)
            answer = trained.scores(task["x"]), trained.history, trained.best_round
            (folder / f"answer{channel.rank}").write_bytes(pickle.dumps(answer))
"""


def in_processes(folder, task, awaited):
    """Run three tasks, the second one without rows; return codes and reports of some of them."""
    (folder / "task").write_bytes(pickle.dumps(task))
    (folder / "work.py").write_text(WORK)
    run = [sys.executable, str(folder / "work.py"), str(folder)]
    piped: Any = {"stderr": subprocess.PIPE, "text": True}
    tasks = [subprocess.Popen([*run, str(at)], **piped) for at in range(3)]
    try:
        told = [tasks[at].communicate(timeout=120)[1] for at in awaited]
    finally:
        for one in tasks:
            one.kill()
            one.communicate()
    return [tasks[at].returncode for at in awaited], told


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_an_objective_that_fails_ends_its_task(tmp_path, backend):
    """Spark then ends the others, which may wait inside the booster."""
    plan = training_plan("pairwise", "ndcg@5", backend=backend, rounds=50, threads=1)
    task = {"x": TASK.x, "y": TASK.y, "query": TASK.qid, "held": TASK.qid >= 40, "plan": plan}
    codes, told = in_processes(tmp_path, {**task, "failing": 1}, awaited=[2])
    assert codes == [1]
    assert "ArithmeticError: of this objective" in told[0]


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("objective", ["pairwise", "committee"])
def test_processes_train_the_model_of_one(tmp_path, backend, objective):
    rng = np.random.default_rng(0)
    x = TASK.x + rng.normal(size=TASK.x.shape) if backend == "xgboost" else TASK.x
    held = (TASK.qid >= 40) & (TASK.qid % 2 == 1)  # all in the second task
    plan = training_plan(
        objective,
        "ndcg@5, mrr(threshold=1)",
        backend=backend,
        rounds=12,
        early_stopping=4,
        params=PARAMS[backend],
        threads=1,
    )
    task = {"x": x, "y": TASK.y, "query": TASK.qid, "held": held, "plan": plan, "failing": None}
    codes, told = in_processes(tmp_path, task, awaited=[0, 1, 2])
    assert codes == [0, 0, 0], told
    answers = [(tmp_path / f"answer{rank}").read_bytes() for rank in (0, 1)]
    first, second = map(pickle.loads, answers)
    np.testing.assert_array_equal(first[0], second[0])
    assert first[1:] == second[1:]

    with connected(True, "127.0.0.1", lambda text: [text]) as alone:
        assert alone is not None
        parts = [read_part(x[one], TASK.y[one], TASK.qid[one], None) for one in (~held, held)]
        sample = Part(x, RankingData.from_arrays(TASK.y))
        engine = TaskEngine(alone, sample, True)
        here = train(plan, parts[0], {"valid": parts[1]}, engine=engine)
    assert here.best_round == first[2]
    for name, values in here.history["valid"].items():
        assert first[1]["valid"][name] == pytest.approx(values, abs=1e-6)
    np.testing.assert_allclose(first[0], here.scores(x), atol=1e-5)


def in_threads(work, has_rows):
    """Run tasks as threads; return what they return or raise."""
    texts, barrier = [None] * len(has_rows), threading.Barrier(len(has_rows))
    found: list[Any] = [None] * len(has_rows)

    def run(rank):
        def exchange(text):
            texts[rank] = text
            barrier.wait(30.0)
            return texts

        try:
            with connected(has_rows[rank], "127.0.0.1", exchange) as channel:
                found[rank] = None if channel is None else work(channel)
        except Exception as error:
            found[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(has_rows))]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60.0)
    return found


def test_values_arrive_in_the_order_of_ranks():
    def work(channel):
        return [channel.gather((channel.rank, np.arange(at))) for at in range(3)]

    found = in_threads(work, [False, True, False, True, True])
    assert found[0] is None
    assert found[2] is None
    for rank in (1, 3, 4):
        for at, values in enumerate(found[rank]):
            assert [one[0] for one in values] == [0, 1, 2]
            assert all(np.array_equal(one[1], np.arange(at)) for one in values)


@pytest.mark.parametrize("failing", [0, 2])
def test_a_task_that_ends_is_noticed_by_the_others(failing):
    def work(channel):
        channel.gather(channel.rank)
        if channel.rank == failing:
            raise ValueError("of this task")
        time.sleep(0.2)
        return [channel.gather(at) for at in range(2)]

    found = in_threads(work, [True] * 3)
    assert isinstance(found[failing], ValueError)
    for rank in {0, 1, 2} - {failing}:
        assert isinstance(found[rank], WorkerLostError)
