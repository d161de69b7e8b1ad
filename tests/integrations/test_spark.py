"""Rankers trained and evaluated in the tasks of Spark, against one machine."""

import itertools
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gbmrank
from gbmrank.errors import ConfigError, DataError, ParameterError, WeightError, WorkerLostError
from tests.ranking_tasks import make_task

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'gbmrank[spark]'")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip(
        "Spark needs Java 17, such as Debian's openjdk-17-jre-headless", allow_module_level=True
    )

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets of PySpark's own
TASK = make_task(seed=0, queries=90)
NAMES = [f"x {number}" for number in range(TASK.x.shape[1])]
LAST = TASK.qid >= 70  # rows of the validation set
# LightGBM estimates the rows of a leaf from its curvature, which small leaves would show.
UNLIMITED = {"min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0.0, "num_leaves": 4}


def frame(x=TASK.x, **more):
    """Return rows with ids that are texts."""
    table = pd.DataFrame(x, columns=NAMES)
    table["label"], table["qid"] = TASK.y, [f"query {number}" for number in TASK.qid]
    return table.assign(**more)


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    session = SparkSession.builder.master("local[4]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def spread(spark):
    """Return a function that spreads rows over five unequal partitions and some without rows.

    Queries cross partitions; their rows stay in order, which objectives with ranks depend on.
    """

    def spread(table):
        cuts = (np.array([0.0, 0.01, 0.1, 0.5, 0.7, 1.0]) * len(table)).astype(int)
        pieces = [table.iloc[a:b] for a, b in itertools.pairwise(cuts)]
        made = [spark.createDataFrame(piece).coalesce(1) for piece in pieces]
        whole = made[0]
        for one in made[1:]:
            whole = whole.union(one)
        return whole.union(whole.filter("label < -1"))

    return spread


def ranker(**options):
    from gbmrank.spark import SparkGBMRanker

    return SparkGBMRanker(**{"featuresCol": NAMES, "numRounds": 10, "numWorkers": 2, **options})


def local(x, backend="xgboost", weight=None, **options):
    rows = ~LAST if options.get("early_stopping_rounds") else slice(None)
    model = gbmrank.GBMRanker(backend=backend, **{"n_estimators": 10, **options})
    valid: Any = {}
    if options.get("early_stopping_rounds"):
        table = pd.DataFrame(x[LAST], columns=NAMES)
        valid = {"eval_set": [(table, TASK.y[LAST])], "eval_qid": [TASK.qid[LAST]]}
        valid["eval_sample_weight"] = None if weight is None else [weight[LAST]]
    weight = None if weight is None else weight[rows]
    table = pd.DataFrame(x[rows], columns=NAMES)
    return model.fit(table, TASK.y[rows], qid=TASK.qid[rows], sample_weight=weight, **valid)


def floats():
    return TASK.x + np.random.default_rng(0).normal(size=TASK.x.shape)


def test_values_are_those_of_one_machine(spread):
    from gbmrank.spark import compare, evaluate

    rng = np.random.default_rng(0)
    first, second = np.round(TASK.x[:, 0]), TASK.x[:, 0] + rng.normal(size=TASK.n)
    weight = rng.integers(0, 3, len(TASK.sizes)).astype(float)[TASK.qid]
    rows = spread(frame(first=first, second=second, weight=weight))
    metrics = gbmrank.metric("ndcg@10, map(threshold=1)@5, mrr(threshold=1, empty=zero)")
    columns: Any = {"label": "label", "qid": "qid", "weight": "weight"}
    found = evaluate(rows, metrics, score="first", **columns)
    expected = metrics.score(TASK.y, first, qid=TASK.qid, weight=weight)
    for name, value in expected.items():
        assert found[name].value == pytest.approx(value, rel=1e-12)
        assert found[name].low < value < found[name].high
    plain = metrics.per_query(TASK.y, first, qid=TASK.qid)["ndcg@10"]
    unweighted = evaluate(rows, "ndcg@10", score="first", label="label", qid="qid")["ndcg@10"]
    kept = plain[~np.isnan(plain)]
    assert unweighted.queries == len(kept)
    half = 1.959964 * kept.std(ddof=1) / np.sqrt(len(kept))
    assert unweighted.high - unweighted.value == pytest.approx(half, rel=1e-5)

    from scipy.stats import ttest_rel

    other = metrics.per_query(TASK.y, second, qid=TASK.qid)["ndcg@10"][~np.isnan(plain)]
    pair = compare(rows, "ndcg@10", first="first", second="second", label="label", qid="qid")
    assert pair["ndcg@10"].value == pytest.approx((other - kept).mean(), rel=1e-10)
    assert pair["ndcg@10"].p_value == pytest.approx(ttest_rel(other, kept).pvalue, rel=1e-6)
    with pytest.raises(DataError, match="threshold"):
        evaluate(rows, "map", score="first", label="label", qid="qid")


@pytest.mark.parametrize("n_tasks", [2, 4])
def test_xgboost_trains_the_model_of_one_machine(spread, n_tasks):
    x = floats()
    options = {"objective": "pairwise(target=ndcg@5)", "metric": "ndcg@5, mrr(threshold=1)"}
    rows = spread(frame(x, last=LAST))
    model = ranker(
        numWorkers=n_tasks,
        numRounds=40,
        earlyStoppingRounds=3,
        validationIndicatorCol="last",
        **options,
    ).fit(rows)
    here = local(x, n_estimators=40, early_stopping_rounds=3, **options)
    away = model.toLocal()
    assert away.best_iteration_ == here.best_iteration_
    for name, values in here.evals_result_["valid_0"].items():
        assert away.evals_result_["the validation set"][name] == pytest.approx(values, abs=1e-9)
    scored = model.transform(rows).toPandas()
    expected = here.predict(scored[NAMES])
    np.testing.assert_allclose(scored["prediction"], expected, atol=1e-6)


@pytest.mark.parametrize("objective", ["pairwise", "committee"])
def test_weights_and_vectors(spread, objective):
    from pyspark.ml.feature import VectorAssembler

    items = np.random.default_rng(0).uniform(0.5, 2.0, TASK.n)
    whole = items[np.cumsum(TASK.sizes) - 1][TASK.qid]
    weight = items if objective == "pairwise" else whole
    rows = VectorAssembler(inputCols=NAMES, outputCol="all").transform(spread(frame(w=weight)))
    away = ranker(featuresCol="all", weightCol="w", objective=objective).fit(rows).toLocal()
    here = local(TASK.x, weight=weight, objective=objective)
    np.testing.assert_allclose(
        away.predict(TASK.x), here.predict(pd.DataFrame(TASK.x, columns=NAMES)), atol=1e-6
    )


@pytest.mark.parametrize("objective", ["native:rank:ndcg", "native:rank:pairwise"])
def test_xgboosts_own_objectives(spread, objective):
    away = ranker(objective=objective).fit(spread(frame())).toLocal()
    table = pd.DataFrame(TASK.x, columns=NAMES)
    found, expected = away.predict(table), local(TASK.x, objective=objective).predict(table)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_lightgbm_with_its_limits_of_leaves_ranks_alike(spread):
    away = ranker(backend="lightgbm", numRounds=30).fit(spread(frame(floats()))).toLocal()
    here = local(floats(), backend="lightgbm", n_estimators=30)
    table, ndcg = pd.DataFrame(floats(), columns=NAMES), gbmrank.metric("ndcg@5")
    found, expected = (
        ndcg.score(TASK.y, model.predict(table), qid=TASK.qid) for model in (away, here)
    )
    assert found == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("n_tasks", [2, 4])
@pytest.mark.parametrize("objective", ["pairwise", "native:lambdarank"])
def test_lightgbm_finds_the_same_splits_without_limits_of_leaves(spread, n_tasks, objective):
    options = {"objective": objective, "backend": "lightgbm"}
    rows = spread(frame(last=LAST))
    model = ranker(
        numWorkers=n_tasks,
        boosterParams=UNLIMITED,
        earlyStoppingRounds=8,
        validationIndicatorCol="last",
        **options,
    ).fit(rows)
    here = local(TASK.x, early_stopping_rounds=8, **options, **UNLIMITED)
    away = model.toLocal()
    assert away.best_iteration_ == here.best_iteration_
    table = pd.DataFrame(TASK.x, columns=NAMES)
    np.testing.assert_allclose(away.predict(table), here.predict(table), atol=1e-5)


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_tasks_without_rows_are_left_out(spark, backend):
    few = frame()[np.isin(TASK.qid, [0, 1, 2])]
    params: Any = UNLIMITED if backend == "lightgbm" else {}
    away = ranker(backend=backend, numWorkers=4, boosterParams=params).fit(
        spark.createDataFrame(few)
    )
    here = gbmrank.GBMRanker(backend=backend, n_estimators=10, **params)
    here.fit(few[NAMES], few["label"], qid=few["qid"])
    np.testing.assert_allclose(
        away.toLocal().predict(few[NAMES]), here.predict(few[NAMES]), atol=1e-5
    )


def test_pipelines_are_saved_and_loaded(spread, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.feature import VectorAssembler

    rows = spread(frame())
    steps = VectorAssembler(inputCols=NAMES, outputCol="features"), ranker(featuresCol="features")
    Pipeline(stages=list(steps)).save(str(tmp_path / "pipeline"))
    pipeline = Pipeline.load(str(tmp_path / "pipeline"))
    assert pipeline.getStages()[1].extractParamMap() == steps[1].extractParamMap()
    model = pipeline.fit(rows)
    model.save(str(tmp_path / "model"))
    again = PipelineModel.load(str(tmp_path / "model"))
    first, second = (one.transform(rows).toPandas()["prediction"] for one in (model, again))
    np.testing.assert_array_equal(first, second)
    again.stages[1].toLocal().save(str(tmp_path / "model.ubj"))
    assert (
        gbmrank.load(str(tmp_path / "model.ubj")).objective == again.stages[1].toLocal().objective
    )


def test_cross_validation_keeps_queries_whole(spread):
    from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
    from pyspark.sql import functions as sf

    from gbmrank.spark import SparkRankingEvaluator

    rows = spread(frame()).withColumn("fold", sf.pmod(sf.hash("qid"), sf.lit(2)))
    one = ranker()
    grid = ParamGridBuilder().addGrid(one.numRounds, [1, 10]).build()
    judge = SparkRankingEvaluator(metric="ndcg@5")
    found = CrossValidator(
        estimator=one, estimatorParamMaps=grid, evaluator=judge, numFolds=2, foldCol="fold"
    ).fit(rows)
    fold = rows.select("qid", "fold").distinct().toPandas().set_index("qid")["fold"]
    folds = frame()["qid"].map(fold).to_numpy()
    table, expected = pd.DataFrame(TASK.x, columns=NAMES), []
    for rounds in (1, 10):
        values = []
        for held in (0, 1):
            here = gbmrank.GBMRanker(backend="xgboost", n_estimators=rounds)
            train = folds != held
            here.fit(table[train], TASK.y[train], qid=TASK.qid[train])
            scores = here.predict(table[~train])
            values.append(
                gbmrank.metric("ndcg@5").score(TASK.y[~train], scores, qid=TASK.qid[~train])
            )
        expected.append(np.mean(values))
    assert found.avgMetrics == pytest.approx(expected, abs=1e-6)


def test_a_query_that_tasks_wait_for_is_reported(spark):
    from pyspark.sql import functions as sf

    sizes = sf.when(sf.col("id") < 3000, 0).otherwise(sf.col("id") % 400)
    rows = spark.range(24000).select(
        sizes.alias("qid"), (sf.col("id") % 3).alias("label"), sf.col("id").alias("x")
    )
    with pytest.warns(gbmrank.GbmrankWarning, match=r"query 0 has 30\d\d of the \d+ rows"):
        ranker(featuresCol=["x"], numRounds=1).fit(rows)


def test_vectors_of_different_lengths_are_an_error(spark):
    rows = [([1.0, 2.0], 1.0, 1), ([1.0], 0.0, 1)]
    table = spark.createDataFrame(rows, "features array<double>, label double, qid long")
    with pytest.raises(DataError, match=r"differ in length \(\[1, 2\]\)"):
        ranker(featuresCol="features").fit(table)


def test_more_tasks_than_slots_are_an_error_before_the_start(spread):
    began = time.monotonic()
    with pytest.raises(ConfigError, match=r"numWorkers=5 tasks .* 4 slots are free"):
        ranker(numWorkers=5).fit(spread(frame()))
    assert time.monotonic() - began < 60.0


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_the_error_of_a_task_is_raised_and_the_next_fit_works(spread, backend):
    bad = frame()
    bad.loc[TASK.qid == 7, "label"] = np.inf
    with pytest.raises(DataError, match=r"the training set.*query 7"):
        ranker(backend=backend).fit(spread(bad))
    ranker(backend=backend).fit(spread(frame()))


def workers():
    """Return the processes of Python workers of this session, with their processor time."""
    listed = subprocess.run(
        ["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()[1:]]
    jvms = {pid for pid, parent, _ in rows if parent == str(os.getpid())}
    daemons = {pid for pid, parent, args in rows if "pyspark.daemon" in args and parent in jvms}
    found = {}
    for pid, parent, _ in rows:
        stat = Path(f"/proc/{pid}/stat")
        if parent in daemons and stat.exists():
            found[int(pid)] = sum(map(int, stat.read_text().rpartition(")")[2].split()[11:13]))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds workers in /proc")
@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_a_worker_that_dies_ends_the_training(spread, backend):
    rows, killed = spread(frame()), []

    def kill():
        deadline = time.monotonic() + 120.0
        while time.monotonic() < deadline:
            before = workers()
            time.sleep(1.0)
            busy = [(now - before.get(pid, now), pid) for pid, now in workers().items()]
            if busy and max(busy)[0] > 10:  # ticks of the processor
                os.kill(max(busy)[1], 9)
                killed.append(time.monotonic())
                return

    thread = threading.Timer(12.0, kill)
    thread.start()
    with pytest.raises(WorkerLostError, match="a task failed, and there is no result"):
        ranker(backend=backend, numRounds=10**6).fit(rows)
    thread.join()
    assert time.monotonic() - killed[0] < 60.0
    ranker(backend=backend).fit(rows)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"objective": "nothing"}, gbmrank.UnknownNameError, "nothing"),
        ({"backend": "lightgbm", "boosterParams": {"boosting": "dart"}}, ConfigError, "dart"),
        ({"boosterParams": {"eta": 0.1, "learning_rate": 0.1}}, ConfigError, "eta"),
        ({"objective": "native:rank:map", "weightCol": "label"}, WeightError, "rank:map"),
        ({"earlyStoppingRounds": 3}, ConfigError, "validationIndicatorCol"),
        ({"featuresCol": ["qid"]}, DataError, "'qid' is of type string"),
        ({"featuresCol": ["absent"]}, DataError, "no column 'absent'"),
        ({"weightCol": "absent"}, DataError, "no column 'absent'"),
    ],
)
def test_options_are_checked_before_the_training(spread, options, error, message):
    with pytest.raises(error, match=message):
        ranker(**options).fit(spread(frame()))


def test_a_query_is_in_one_of_the_two_sets(spread):
    first = np.flatnonzero(TASK.qid == 8)[0]
    for value, message in ((None, "is missing in 1 of the"), (True, "query 'query 8' has rows of")):
        marks = LAST.astype(object)
        marks[first] = value
        with pytest.raises(DataError, match=message):
            ranker(validationIndicatorCol="last").fit(spread(frame(last=marks)))
    for number in (0, -1):
        with pytest.raises(ConfigError, match="numWorkers must be at least 1"):
            ranker(numWorkers=number).fit(spread(frame()))


def test_parameters_have_names():
    with pytest.raises((TypeError, ParameterError)):
        ranker(numTrees=3)


def test_xgboosts_own_estimator_with_the_recipe_of_the_guide(spread):
    from pyspark.ml.feature import VectorAssembler
    from xgboost.spark import SparkXGBRanker

    rows = spread(frame().assign(qid=TASK.qid))
    rows = VectorAssembler(inputCols=NAMES, outputCol="features").transform(rows)
    model = SparkXGBRanker(
        num_workers=2,
        n_estimators=10,
        qid_col="qid",
        obj=gbmrank.objective("pairwise"),
        force_repartition=True,
        base_score=0.0,
        disable_default_eval_metric=1,
    ).fit(rows)
    scored = model.transform(rows).toPandas()
    assert (
        gbmrank.metric("ndcg@5").score(scored["label"], scored["prediction"], qid=scored["qid"])
        > 0.9
    )


def test_the_block_of_the_guide_runs(spread, capsys):
    page = Path(__file__).parents[2] / "docs" / "guides" / "cluster.md"
    block = page.read_text(encoding="utf-8").partition("## Spark")[2].split("```")[1]
    names = dict(zip(NAMES, ["price", "rating", "clicks"], strict=False))
    rows = frame(is_validation=LAST).rename(columns={"qid": "query", **names})
    made: dict[str, Any] = {"rows": spread(rows)}
    exec(block, made)  # noqa: S102
    assert "ndcg@10" in capsys.readouterr().out
    table = rows[["price", "rating", "clicks"]]
    assert len(made["local"].predict(table)) == len(rows)
