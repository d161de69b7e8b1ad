"""Threads: the same numbers whatever their number, after a fork, and under other pools."""

import itertools
import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gbmrank
from gbmrank.errors import ConfigError, ParameterError
from gbmrank.kernels.jit import compiler
from gbmrank.kernels.jit import threads as pool
from gbmrank.kernels.layout import Span
from tests.ranking_tasks import make_task, run_python

TASK = make_task(seed=3, queries=300, longest=60)
SCORES = np.random.default_rng(3).normal(size=TASK.n)
OBJECTIVE = gbmrank.objective("pairwise", target="ndcg@10")


def gradients(threads=None):
    """Gradients of enough work to use every thread; importable by other processes."""
    pool.set_num_threads(threads)
    return OBJECTIVE.gradients(TASK.y, SCORES, group=TASK.sizes)


@pytest.fixture(scope="module")
def expected():
    return gradients(1)


def spans(count):
    """One span for each query."""
    return [Span(number, number + 1, 1) for number in range(count)]


def assert_equal(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("threads", [1, 2, 4, 7])
def test_results_do_not_depend_on_the_number_of_threads(threads, expected):
    assert_equal(gradients(threads), expected)


def test_several_threads_really_work():
    pool.set_num_threads(3)
    together = threading.Barrier(3, timeout=20)
    met = []
    pool.run_spans(lambda span: met.append(together.wait()), spans(3))
    assert sorted(met) == [0, 1, 2]


@pytest.mark.parametrize(("limit", "workers"), [(1, 1), (2, 2), (None, 3), (0, 3), (-1, 3)])
def test_a_bound_on_threads_holds_where_it_is_set_and_nowhere_else(limit, workers):
    pool.set_num_threads(3)

    def workers_of_one_call():
        names, enough = set(), threading.Barrier(workers, timeout=20)

        def task(span):
            names.add(threading.get_ident())
            if span.first < workers:
                enough.wait()

        pool.run_spans(task, spans(6))
        return len(names)

    with pool.at_most(limit):
        assert workers_of_one_call() == workers
        with ThreadPoolExecutor(1) as other:
            assert other.submit(pool._limit.get).result() is None
    assert pool._limit.get() is None


def _child(queue):
    queue.put([column.tobytes() for column in gradients(2)])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_process_computes_the_same(method, expected):
    gradients(2)  # the parent's threads are running
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=_child, args=(queue,))
    child.start()
    try:
        found = queue.get(timeout=120)
    finally:
        child.join(20)
        child.kill()
    assert found == [column.tobytes() for column in expected]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_fork_waits_for_threads_that_compile(tmp_path, monkeypatch):
    """The child would wait for ever for locks of threads that it does not have."""
    monkeypatch.setenv("GBMRANK_CACHE_DIR", str(tmp_path))  # nothing is compiled yet
    code = """
import os, signal, threading, time
import gbmrank
def compile(*names):
    for name in names:
        gbmrank.objective(name).gradients([1, 0, 2], [0.0, 1.0, 2.0])
compile("softmax")  # a child waits for ever for a module that another thread imports, too
thread = threading.Thread(target=compile, args=("ranknet", "listmle"))
thread.start()
codes = []
for pause in (0.1, 0.6):
    time.sleep(pause)
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        compile("linear")
        os._exit(7)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
print(codes)
"""
    assert run_python(code) == "[7, 7]"


def test_threads_that_fork_at_once_release_locks_of_their_own(monkeypatch):
    other_holds, done = threading.Event(), threading.Event()

    class Lock:
        def __init__(self):
            self.inner = threading.RLock()
            self.acquire = self.inner.acquire

        def release(self):
            self.inner.release()
            other_holds.wait(30)  # the other thread comes in between two releases

    def fork():
        compiler._hold_compiler()
        other_holds.set()
        done.wait(30)
        compiler._release_compiler()

    monkeypatch.setattr(compiler, "_lock", Lock())
    other = threading.Thread(target=fork, daemon=True)
    compiler._hold_compiler()
    other.start()
    compiler._release_compiler()
    done.set()
    other.join(30)
    assert not other.is_alive()
    assert compiler._lock.acquire(timeout=30)
    compiler._lock.release()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_gets_threads_of_its_own():
    code = """
import os, sys, threading, numpy as np
from gbmrank.kernels.jit import threads as pool
from gbmrank.kernels.layout import Span
pool.set_num_threads(2)
def both():
    together = threading.Barrier(2, timeout=20)
    pool.run_spans(lambda span: together.wait() and None, [Span(0, 1, 1), Span(1, 2, 1)])
both()
child = os.fork()
if not child:
    both()
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_python(code) == "7"


def test_concurrent_use_from_several_threads(expected):
    pool.set_num_threads(2)
    with ThreadPoolExecutor(4) as users:
        runs = [
            users.submit(OBJECTIVE.gradients, TASK.y, SCORES, group=TASK.sizes) for _ in range(12)
        ]
        for run in runs:
            assert_equal(run.result(timeout=60), expected)


def test_the_number_of_threads_may_change_while_others_compute(expected):
    stop = threading.Event()

    def change():
        for number in itertools.cycle([1, 3, 2]):
            if stop.is_set():
                return
            pool.set_num_threads(number)

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(20):
            assert_equal(OBJECTIVE.gradients(TASK.y, SCORES, group=TASK.sizes), expected)
    finally:
        stop.set()
        changer.join()


@pytest.mark.parametrize("backend", [pytest.param("loky", marks=pytest.mark.nightly), "threading"])
def test_joblib(backend, expected):
    with joblib.parallel_config(backend):
        runs = joblib.Parallel(n_jobs=2)(joblib.delayed(gradients)(n) for n in (1, 2, 2))
    for run in runs:
        assert_equal(run, expected)
    if backend == "loky":
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(wait=True)


def test_a_task_may_use_the_pool_itself():
    pool.set_num_threads(2)
    done = []

    def outer(span):
        pool.run_spans(lambda inner: done.append((span.first, inner.first)), spans(2))

    pool.run_spans(outer, spans(3))
    assert sorted(done) == [(q, a) for q in range(3) for a in range(2)]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("bad", [0, 5])
def test_an_exception_in_a_task_is_raised_after_the_others_are_done(threads, bad):
    pool.set_num_threads(threads)
    running: set[int] = set()

    def task(span):
        running.add(span.first)
        try:
            if span.first == bad:
                raise ZeroDivisionError(f"span {span.first}")
        finally:
            running.discard(span.first)

    with pytest.raises(ZeroDivisionError, match=f"span {bad}"):
        pool.run_spans(task, spans(8))
    assert running == set()
    assert gradients(threads)[0].shape == (TASK.n,)  # the pool is still of use


@given(st.lists(st.floats(0.0, 1e9), max_size=60), st.lists(st.integers(0, 70), max_size=5))
def test_spans_cover_every_query_once(costs, cuts):
    made = pool.cut_into_spans(np.array(costs, dtype=np.float64), 7, cuts)
    assert [q for span in made for q in range(span.first, span.last)] == list(range(len(costs)))
    assert all(span.first < span.last and span.longest == 7 for span in made)
    assert len(made) <= 32 + len(cuts)
    assert {cut for cut in cuts if cut < len(costs)} <= {span.first for span in made}


def test_spans_are_of_about_equal_cost():
    costs = np.random.default_rng(0).uniform(1e4, 2e4, 1_000)
    work = np.array([costs[one.first : one.last].sum() for one in pool.cut_into_spans(costs)])
    assert len(work) == 32
    assert work.max() < 1.1 * work.mean()


def test_little_work_stays_on_the_calling_thread():
    assert pool.cut_into_spans(np.full(10, 100.0)) == (Span(0, 10, 0),)


def test_threads_are_set_by_call_environment_or_machine(monkeypatch):
    monkeypatch.setenv("GBMRANK_NUM_THREADS", "5")
    assert gbmrank.get_num_threads() == 5
    gbmrank.set_num_threads(3)
    assert gbmrank.get_num_threads() == 3
    gbmrank.set_num_threads(None)
    assert gbmrank.get_num_threads() == 5
    monkeypatch.delenv("GBMRANK_NUM_THREADS")
    assert gbmrank.get_num_threads() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("number", [0, -1, 1.5, True, "2"])
def test_a_number_of_threads_is_positive(number):
    with pytest.raises(ParameterError, match=f"at least 1, or None, got {number!r}"):
        gbmrank.set_num_threads(number)


@pytest.mark.parametrize("text", ["0", "-2", "many", "1.5", "²"])
def test_a_bad_environment_variable_is_not_ignored(monkeypatch, text):
    monkeypatch.setenv("GBMRANK_NUM_THREADS", text)
    with pytest.raises(ConfigError, match=f"GBMRANK_NUM_THREADS .* got '{text}'"):
        gbmrank.get_num_threads()


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_an_estimator_keeps_to_its_n_jobs(backend, monkeypatch):
    seen, run = set(), pool.run_spans

    def watched(*given):
        seen.add(pool._limit.get())
        run(*given)

    monkeypatch.setattr(pool, "run_spans", watched)
    model = gbmrank.GBMRanker(backend=backend, n_estimators=2, n_jobs=1)
    model.fit(TASK.x, TASK.y, qid=TASK.qid)
    assert seen == {1}
