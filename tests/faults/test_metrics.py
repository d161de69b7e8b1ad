"""Cut-offs, ties, names and directions of metrics."""

import re
from dataclasses import fields
from typing import Any

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import gbmrank
from gbmrank.errors import DataError, GbmrankWarning, MetricError, ParameterError, UnknownNameError
from gbmrank.experiments.trial import tied_pairs
from gbmrank.registry import METRICS
from tests.faults.interfaces import BACKENDS, OTHER, TASK, data_set, fit, train
from tests.ranking_tasks import Task

BOTH = pytest.mark.parametrize("backend", BACKENDS)
GRADES = (OTHER.y >= 2).astype(float)  # what every metric is defined for
NOISE = Task(OTHER.x, np.random.default_rng(1).permutation(GRADES), OTHER.sizes)
ALL = sorted(
    name
    for name, entries in METRICS.entries.items()
    if entries[0].origin.distribution == "gbmrank" and METRICS.get(name).name == name
    if name != "alpha_ndcg"  # it needs subtopics, which no booster carries
)


@pytest.mark.fault("a cut-off larger than a query", promise="every rank of the query counts")
@pytest.mark.parametrize("name", ["ndcg", "precision", "recall", "map", "err(max_grade=1)", "mrr"])
def test_a_cutoff_beyond_the_end(name):
    labels, scores = [0, 1, 0], [0.1, 0.2, 0.3]
    far, end = gbmrank.metric(f"{name}@99"), gbmrank.metric(f"{name}@3")
    share = 3 / 99 if name == "precision" else 1.0  # by its definition: hits over k
    assert far.score(labels, scores) == pytest.approx(share * end.score(labels, scores), rel=1e-14)


@pytest.mark.fault(
    "a cut-off of 0, below 0, or that is no number",
    promise="`MetricError` that points at the place and shows how it is written",
)
@pytest.mark.parametrize("text", ["ndcg@0", "ndcg@-1", "ndcg@x", "ndcg@", "ndcg@1.5"])
def test_cutoffs_that_are_none(text):
    with pytest.raises(MetricError, match=r"whole number of at least 1(?s:.)*for example ndcg@10$"):
        gbmrank.metric(text)
    with pytest.raises(MetricError, match="whole number of at least 1"):
        gbmrank.metric("ndcg", k=0)


@pytest.mark.fault(
    "a metric that does not exist", promise="an error that names the nearest ones or all of them"
)
def test_names_that_do_not_exist():
    with pytest.raises(UnknownNameError, match=r"'nddcg'.*ndcg"):
        gbmrank.metric("nddcg@10")
    with pytest.raises(gbmrank.ParameterError, match="gain"):
        gbmrank.metric("ndcg(gian=linear)")


@pytest.mark.fault(
    "scores that are all tied",
    promise="the mean over all orderings of tied items, whatever the order of rows",
)
@BOTH
def test_all_scores_tied(backend):
    labels = np.array([1.0, 0.0, 0.0])
    by_hand = (1 + 1 / np.log2(3) + 1 / 2) / 3
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        value = gbmrank.metric("ndcg").score(labels[order], np.zeros(3))
        assert value == pytest.approx(by_hand, rel=1e-15)
    rows = data_set(backend, OTHER)
    if backend == "lightgbm":
        rows.construct()
    told = gbmrank.metric("ndcg@3")(np.zeros(OTHER.n), rows)
    expected = gbmrank.metric("ndcg@3").score(OTHER.y, np.zeros(OTHER.n), group=OTHER.sizes)
    assert told[1] == pytest.approx(expected, rel=1e-15)


@pytest.mark.fault(
    "scores that tie in float32 and not in float64",
    promise="the metric takes them as they come; a comparison reports the share of tied pairs",
)
def test_ties_of_single_precision():
    scores = np.array([1.0, 1.0 + 1e-9, 2.0])
    labels = [0.0, 1.0, 0.0]
    wide, narrow = gbmrank.metric("mrr"), gbmrank.metric("mrr(dtype=float32)")
    assert wide.score(labels, scores) == pytest.approx(1 / 2)
    tied = (1 / 2 + 1 / 3) / 2
    assert narrow.score(labels, scores) == pytest.approx(tied)
    assert wide.score(labels, scores.astype(np.float32)) == pytest.approx(tied)
    groups = gbmrank.Groups.from_sizes([3], 3)
    assert tied_pairs(scores, groups).tolist() == [0.0]
    shared = tied_pairs(scores.astype(np.float32).astype(float), groups)
    assert shared.tolist() == pytest.approx([1 / 3])


@pytest.mark.fault(
    "a comparison with many tied scores",
    promise="the report has the share of tied pairs of each system, and the notes those above 10%",
)
def test_the_share_of_tied_pairs_is_reported(tmp_path):
    data = (OTHER.x, OTHER.y, OTHER.qid)
    stumps: Any = {"num_leaves": 2, "min_data_in_leaf": 2}
    found = gbmrank.compare(
        data,
        objectives=["ranknet"],
        backends=["lightgbm"],
        metrics="ndcg@3",
        params=stumps,
        folds=2,
        rounds=1,
        isolate=False,
    )
    runs = found.results.runs
    share = float(np.mean([run.tied.mean() for run in runs]))
    assert 0.3 < share < 1.0  # two leaves
    words = f"pairs of a query with equal scores .*: lightgbm ranknet {100 * share:.0f}%"
    assert any(re.match(words, note) for note in found.notes)
    found.to_html(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    per_query = float(np.mean(np.concatenate([run.tied for run in runs])))
    assert re.search(rf"Tied pairs(?s:.)*{100 * per_query:.2f}%", text)


@pytest.mark.fault(
    "a metric that is called as one of the booster's own",
    promise="shown under a name with `gbmrank` in it, beside the booster's",
)
def test_names_beside_those_of_the_booster():
    seen: dict = {}
    rows = data_set("lightgbm", OTHER)
    lgb.train(
        {"objective": "lambdarank", "metric": "ndcg", "eval_at": [3], "verbosity": -1},
        rows,
        2,
        valid_sets=[rows],
        valid_names=["rows"],
        feval=gbmrank.metric("ndcg@3"),
        callbacks=[lgb.record_evaluation(seen)],
    )
    assert sorted(seen["rows"]) == ["gbmrank_ndcg@3", "ndcg@3"]
    matrix = data_set("xgboost", OTHER)
    params = {"objective": "rank:ndcg", "eval_metric": "ndcg@3", "nthread": 1}
    xgb.train(
        params,
        matrix,
        2,
        evals=[(matrix, "rows")],
        custom_metric=gbmrank.metric("ndcg@3"),
        evals_result=seen,
        verbose_eval=False,
    )
    assert sorted(seen["rows"]) == ["ndcg@3", "pre_gbmrank_ndcg@3"]


@pytest.mark.fault(
    "metrics with options in trackers that reject `(`, `=` and `,`, such as MLflow",
    promise="boosters show plain names (`gbmrank_map_threshold_1`), so every value is logged; "
    "`make integrations` runs MLflow's autologging",
)
@BOTH
def test_names_are_plain(backend):
    text = "ndcg(gain=[0, 1, 3, 7, 15], empty=zero)@5, map(threshold=1), eru(neutral=-0.5)"
    seen: dict = {}
    metrics, rows = gbmrank.metric(text), data_set(backend, OTHER)
    if backend == "lightgbm":
        recording = [lgb.record_evaluation(seen)]
        params = {"objective": "lambdarank", "metric": "None", "verbosity": -1}
        lgb.train(params, rows, 2, [rows], ["rows"], feval=metrics, callbacks=recording)
    else:
        params = {"objective": "rank:ndcg", "disable_default_eval_metric": 1, "nthread": 1}
        watched = {"evals": [(rows, "rows")], "evals_result": seen, "verbose_eval": False}
        xgb.train(params, rows, 2, custom_metric=metrics, **watched)
    assert list(seen["rows"]) == [one.name_in(backend) for one in metrics]
    assert all(re.fullmatch(r"[\w.@-]+", name) for name in seen["rows"])
    assert list(seen["rows"])[1].endswith("gbmrank_map_threshold_1")
    assert all(len(values) == 2 for values in seen["rows"].values())


def measure(name):
    known = {field.name for field in fields(METRICS.get(name))}
    options: dict[str, Any] = {
        "k": 1,
        "max_grade": 1.0,
        "neutral": 0.0,
    }  # the first rank: no metric is constant
    return gbmrank.metric(name, **{key: options[key] for key in options if key in known})


@pytest.mark.fault(
    "early stopping by a metric of any name",
    promise="goes the metric's own way in both boosters, for every metric there is",
)
@pytest.mark.parametrize("name", ALL)
def test_directions(name):
    metric = measure(name)
    best = max if metric.higher_is_better else min
    train = Task(OTHER.x, GRADES, OTHER.sizes)
    seen: dict = {}
    rows = data_set("lightgbm", train)
    model = lgb.train(
        {"objective": gbmrank.objective("ranknet"), "verbosity": -1, "min_data_in_leaf": 2},
        rows,
        9,
        valid_sets=[lgb.Dataset(NOISE.x, NOISE.y, group=NOISE.sizes, reference=rows)],
        feval=metric,
        callbacks=[lgb.early_stopping(9, verbose=False), lgb.record_evaluation(seen)],
    )
    values = seen["valid_0"][metric.name_in("lightgbm")]
    assert len(set(values)) > 1
    assert model.best_score["valid_0"][metric.name_in("lightgbm")] == best(values)
    model = xgb.train(
        {**gbmrank.booster_params("ranknet", "xgboost"), "nthread": 1, "max_depth": 3},
        data_set("xgboost", train),
        9,
        obj=gbmrank.objective("ranknet"),
        custom_metric=metric,
        evals=[(data_set("xgboost", NOISE), "valid")],
        evals_result=seen,
        early_stopping_rounds=9,
        verbose_eval=False,
    )
    values = seen["valid"][metric.name_in("xgboost")]
    assert len(set(values)) > 1
    assert model.best_score == best(values)


@pytest.mark.fault(
    "a metric that is undefined for every query",
    promise="`DataError` that says so, and never NaN in a history; `score` on arrays and of "
    "estimators gives NaN with a warning that counts the queries",
)
@BOTH
def test_a_metric_that_is_defined_nowhere(backend):
    rows = data_set(backend, Task(OTHER.x, np.ones(OTHER.n), OTHER.sizes))
    if backend == "lightgbm":
        rows.construct()
    with pytest.raises(DataError, match=r"undefined for every query .* empty='zero'"):
        gbmrank.metric("auc")(np.zeros(OTHER.n), rows)
    with pytest.raises(DataError, match="undefined for every query"):
        gbmrank.metric("ndcg@3")(np.zeros(OTHER.n), np.ones(OTHER.n))
    model = fit(backend, metric="ndcg@3")
    with pytest.warns(GbmrankWarning, match=r"ndcg@3 is undefined for every query .* empty='zero'"):
        value = model.score(OTHER.x, np.zeros(OTHER.n), qid=OTHER.qid)
    assert np.isnan(value)
    with pytest.warns(GbmrankWarning, match="undefined for every query"):
        values = gbmrank.metric("ndcg, mrr").score([0, 0], [1.0, 2.0])
    assert np.isnan(list(values.values())).all()


@pytest.mark.fault(
    "a metric that is defined for queries of weight 0 alone",
    promise="as for one that is undefined for every query; the message counts both kinds",
)
def test_a_metric_that_is_defined_where_the_weight_is_zero():
    labels, scores = [0, 0, 1, 0], [1.0, 2.0, 3.0, 4.0]
    words = r"ndcg is undefined for 1 of 2 queries .* the weight of the other 1 is 0"
    with pytest.warns(GbmrankWarning, match=words):
        assert np.isnan(gbmrank.metric("ndcg").score(labels, scores, group=[2, 2], weight=[1, 0]))


@pytest.mark.fault(
    "scores of other rows than the metric was bound to",
    promise="`DataError` with the numbers of queries and rows of both",
)
def test_scores_of_other_rows():
    from gbmrank.metrics import NDCG, Ranked

    data = gbmrank.RankingData.from_arrays(TASK.y, group=TASK.sizes)
    bound = NDCG().bind(data)
    groups = gbmrank.Groups.from_sizes(OTHER.sizes, OTHER.n)
    words = (
        rf"bound to 30 queries with {TASK.n} rows, but the scores have 10 queries with {OTHER.n}"
    )
    with pytest.raises(DataError, match=words):
        bound.score(Ranked(np.zeros(OTHER.n), groups))
    with pytest.raises(DataError, match=rf"scores has {OTHER.n} rows, labels has {TASK.n}"):
        gbmrank.metric("ndcg").score(TASK.y, np.zeros(OTHER.n), group=TASK.sizes)


@pytest.mark.fault(
    "a cut-off far above the longest query, such as `ndcg@1000000`, or above 2^31",
    promise="the same values as without, in time and memory of the data; from 2^63 on `MetricError`"
    " or `ParameterError`",
)
@pytest.mark.parametrize("k", [10**6, 2**31 + 1, 2**63 - 1])
def test_huge_cutoffs(k):
    for name in (
        "ndcg",
        "dcg",
        "recall(threshold=1)",
        "map(threshold=1)",
        "mrr(threshold=1)",
        "err",
    ):
        far, whole = gbmrank.metric(f"{name}@{k}"), gbmrank.metric(name)
        values = [one.score(TASK.y, TASK.x[:, 0], group=TASK.sizes) for one in (far, whole)]
        assert values[0] == values[1]
    far, whole = (gbmrank.objective("pairwise", target=t) for t in (f"ndcg@{k}", "ndcg"))
    grads = [one.gradients(TASK.y, TASK.x[:, 0], group=TASK.sizes)[0] for one in (far, whole)]
    assert grads[0].tolist() == grads[1].tolist()
    assert gbmrank.theory.calibration(far, f"ndcg@{k}").status == "calibrated"
    booster = train("lightgbm", far, data_set("lightgbm"))
    assert (
        booster.predict(TASK.x).tolist()
        == train("lightgbm", whole, data_set("lightgbm")).predict(TASK.x).tolist()
    )
    with pytest.raises(MetricError, match=r"below 2\^63"):
        gbmrank.metric(f"precision@{2**63}")
    with pytest.raises(ParameterError, match=r"below 2\^63"):
        gbmrank.objective(f"pairwise(target=ndcg@{2**63})")


def _discount(called: str) -> Any:
    def discount(ranks: Any) -> Any:
        return 0.5 ** (ranks - 1.0)

    discount.__name__ = called
    return discount


@pytest.mark.fault(
    "a function as discount in a ranker, which keeps the text of its metric, or in `compare`",
    promise="`ParameterError` before training, whatever the name of the function; arrays and the "
    "boosters' own interfaces take it",
)
@pytest.mark.parametrize("called", ["log2", "reciprocal", "half", "<lambda>"])
def test_functions_without_a_text(called):
    metric = gbmrank.metric("positional", discount=_discount(called))
    assert metric.score([0, 1], [2.0, 1.0]) == 0.5
    words = re.escape(f"positional: discount is the function {called}")
    with pytest.raises(ParameterError, match=words):
        fit("lightgbm", metric=metric)
    with pytest.raises(ParameterError, match=words):
        gbmrank.compare((TASK.x, TASK.y, TASK.qid), objectives=["ranknet"], metrics=[metric])
    table = gbmrank.metric("positional", discount=[1, 0.5, 0.25])
    assert gbmrank.metric(str(table)) == table
    fit("lightgbm", metric=table)
