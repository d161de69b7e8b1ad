"""What the boosters' own interfaces would silently do to a model."""

import os
import subprocess
import sys
import warnings
from typing import Any

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import gbmrank
from gbmrank.api.metrics import metric_list
from gbmrank.boosters.base import Part
from gbmrank.boosters.plan import Plan
from gbmrank.boosters.plan import train as train_plan
from gbmrank.data.queries import RankingData
from gbmrank.errors import ConfigError, DataError, GbmrankWarning, NoProgressWarning
from tests.faults import interfaces
from tests.faults.interfaces import BACKENDS, OTHER, OTHER_QID, TASK
from tests.ranking_tasks import make_task

BOTH = pytest.mark.parametrize("backend", BACKENDS)
OBJECTIVE = gbmrank.objective("pairwise(target=ndcg@10)")
QUIET: dict[str, Any] = {"verbosity": -1, "num_threads": 1, "feature_pre_filter": False}
BAGGED: dict[str, Any] = {"bagging_by_query": True, "bagging_fraction": 0.5, "bagging_freq": 1}
LONG = make_task(seed=5, queries=200)


def data_set(backend: str) -> Any:
    rows = interfaces.data_set(backend)
    if backend == "lightgbm":
        rows.params = {"feature_pre_filter": False, "min_data_in_leaf": 2}
    return rows


def train(backend: str, rows: Any, rounds: int = 5, objective: Any = OBJECTIVE, **params: Any):
    if backend == "lightgbm":
        return lgb.train(
            {**QUIET, "min_data_in_leaf": 2, **params, "objective": objective}, rows, rounds
        )
    return xgb.train({"nthread": 1, **params}, rows, rounds, obj=objective)


def _wrapped(scores: Any, rows: Any) -> Any:
    grad, hess = OBJECTIVE(scores, rows)
    return 2 * grad, 2 * hess


def _used(rows: lgb.Dataset) -> None:
    train("lightgbm", rows, rounds=1)


@pytest.mark.fault(
    "`bagging_by_query` in `lightgbm.train`, `cv` or `LGBMRanker`, whatever was done with the "
    "`Dataset` before",
    promise="`ConfigError` in the first round, from the parameters of the model that is trained; "
    "the same `Dataset` trains without it",
)
@pytest.mark.parametrize("before", [lambda rows: None, lgb.Dataset.construct, _used])
def test_bagging_by_query_in_any_state_of_the_data_set(before):
    rows = data_set("lightgbm")
    before(rows)
    expected = train("lightgbm", data_set("lightgbm")).predict(TASK.x)
    for _ in range(2):
        with pytest.raises(ConfigError, match="trains a wrong model when bagging_by_query is on"):
            train("lightgbm", rows, **BAGGED)
        assert train("lightgbm", rows).predict(TASK.x).tolist() == expected.tolist()


def test_bagging_by_query_in_other_interfaces():
    rows = data_set("lightgbm")
    folds = gbmrank.query_folds(rows, n_folds=2)
    for params in (BAGGED, {"bagging_by_query": "true", "subsample": 0.5, "subsample_freq": 2}):
        with pytest.raises(ConfigError, match="bagging_by_query"):
            lgb.cv({**QUIET, **params, "objective": OBJECTIVE}, rows, 2, folds=folds)
    drawn = {"subsample": 0.5, "subsample_freq": 1, "n_estimators": 2, "n_jobs": 1, "verbose": -1}
    ranker = lgb.LGBMRanker(objective=OBJECTIVE, bagging_by_query=True, **drawn)
    with pytest.raises(ConfigError, match="bagging_by_query"):
        ranker.fit(TASK.x, TASK.y, group=TASK.sizes)
    ranker.set_params(bagging_by_query=False).fit(TASK.x, TASK.y, group=TASK.sizes)
    booster = lgb.Booster({**QUIET, **BAGGED}, rows)
    with pytest.raises(ConfigError, match="bagging_by_query"):
        booster.update(fobj=_wrapped)
    booster = lgb.Booster({**QUIET, "bagging_fraction": 0.5, "bagging_freq": 1}, rows)
    assert booster.update(fobj=OBJECTIVE) is False
    booster.reset_parameter({"bagging_by_query": True})
    with pytest.raises(ConfigError, match="bagging_by_query"):
        booster.update(fobj=OBJECTIVE)


def test_parameters_of_a_data_set_are_not_those_of_the_training():
    rows = lgb.Dataset(TASK.x, TASK.y, group=TASK.sizes, params=BAGGED)
    assert train("lightgbm", rows).num_trees() == 5


@pytest.mark.fault(
    "an objective of gbmrank as text in `lightgbm.train`, `cv` or `LGBMRanker`, such as "
    "`pairwise(target=ndcg@10)`, which LightGBM ignores: it trains squared error",
    promise="`ConfigError` from a metric of gbmrank in the first round, with the object to pass; "
    "a name without parameters is rejected by LightGBM, and any such text by XGBoost",
)
def test_objectives_as_text():
    text, metric = str(OBJECTIVE), gbmrank.metric("ndcg@10")

    def run(objective: str, name: str = "objective") -> Any:
        rows = data_set("lightgbm")
        params = {**QUIET, "metric": "None", name: objective}
        return lgb.train(params, rows, 1, valid_sets=[rows], feval=metric)

    for name in ("objective", "application"):
        with pytest.raises(ConfigError) as caught:
            run(text, name)
        assert f"gbmrank.objective({text!r})" in str(caught.value)
    rows = data_set("lightgbm")
    folds = gbmrank.query_folds(rows, n_folds=2)
    with pytest.raises(ConfigError, match="is text"):
        lgb.cv({**QUIET, "objective": text}, rows, 1, folds=folds, feval=metric)
    ranker = lgb.LGBMRanker(objective=text, n_estimators=1, n_jobs=1, verbose=-1)
    with pytest.raises(ConfigError, match="is text"):
        ranker.fit(
            *(TASK.x, TASK.y),
            group=TASK.sizes,
            eval_set=[(TASK.x, TASK.y)],
            eval_group=[TASK.sizes],
            eval_metric=metric,
        )
    for native in ("lambdarank", "rank_xendcg", "regression", "theirs(a=1)"):
        assert run(native).num_trees() == 1
    with pytest.raises(lgb.basic.LightGBMError, match="ranknet"):
        run("ranknet")
    with pytest.raises(xgb.core.XGBoostError, match="pairwise"):
        xgb.train({"objective": text}, data_set("xgboost"), 1)


@pytest.mark.fault(
    "parameters that only a booster's own ranking objectives read (`label_gain`, "
    "`lambdarank_...`, `ndcg_exp_gain`), `eval_at` without such a metric, positions",
    promise="one warning that says what to use instead, at the line that trains",
)
@pytest.mark.parametrize(
    ("backend", "params", "instead"),
    [
        ("lightgbm", {"label_gain": [0, 1, 3, 7, 15]}, r"label_gain.*target=dcg\(gain=linear\)"),
        ("lightgbm", {"lambdarank_truncation_level": 20}, "truncation_level.*target=ndcg@10"),
        ("lightgbm", {"lambdarank_norm": False}, "lambdarank_norm.*normalize="),
        ("lightgbm", {"ndcg_at": [10]}, r"eval_at.*gbmrank.metric\('ndcg@10'\)"),
        ("xgboost", {"lambdarank_pair_method": "mean"}, "pair_method.*target=ndcg@10"),
        ("xgboost", {"ndcg_exp_gain": 0}, r"ndcg_exp_gain.*target=dcg\(gain=linear\)"),
        ("xgboost", {"lambdarank_unbiased": 1}, r"lambdarank_unbiased.*fit\(position="),
    ],
)
def test_parameters_of_native_objectives(backend, params, instead):
    with pytest.warns(GbmrankWarning, match=instead) as caught:
        train(backend, data_set(backend), verbosity=-1 if backend == "lightgbm" else 0, **params)
    ours = [one for one in caught if one.category is GbmrankWarning]
    assert [one.filename for one in ours] == [__file__]


def test_positions_and_the_scikit_learn_interface():
    rows = lgb.Dataset(TASK.x, TASK.y, group=TASK.sizes, position=np.arange(TASK.n) % 5)
    with pytest.warns(GbmrankWarning, match=r"position.*bind_rows\(position="):
        train("lightgbm", rows)
    ranker = lgb.LGBMRanker(objective=OBJECTIVE, n_estimators=2, n_jobs=1, verbose=-1)
    ranker.fit(TASK.x, TASK.y, group=TASK.sizes, eval_at=[3])  # of its own metric, which it shows
    with pytest.warns(GbmrankWarning, match="label_gain"):
        ranker.set_params(label_gain=[0, 1, 2, 3, 4]).fit(TASK.x, TASK.y, group=TASK.sizes)
    with pytest.warns(GbmrankWarning, match="eval_at"):
        lgb.LGBMRanker(
            objective=OBJECTIVE, n_estimators=2, n_jobs=1, verbose=-1, metric="None"
        ).fit(TASK.x, TASK.y, group=TASK.sizes, eval_at=[3])


@pytest.mark.fault(
    "more than 1000 rows without `group` or `qid` in a booster's own interface",
    promise="one warning; `group=[n]` says that one query is meant; objectives of single rows, "
    "such as `pointwise(target=dcg)`, do not warn",
)
@BOTH
@pytest.mark.filterwarnings("ignore:.*trees have:gbmrank.NoProgressWarning")
def test_many_rows_without_queries(backend):
    made = lgb.Dataset if backend == "lightgbm" else xgb.DMatrix
    with pytest.warns(GbmrankWarning, match=rf"{LONG.n} rows are ranked as one.*group=\[{LONG.n}"):
        ranked = train(backend, made(LONG.x, LONG.y))
    rows = made(LONG.x, LONG.y, group=[LONG.n])
    meant = train(backend, rows)
    features = LONG.x if backend == "lightgbm" else rows
    assert ranked.predict(features).tolist() == meant.predict(features).tolist()
    train(backend, made(LONG.x[:900], LONG.y[:900]))
    for single in ("pointwise(loss=squared, target=dcg)", "bregman(loss=squared, target=identity)"):
        train(backend, made(LONG.x, LONG.y), objective=gbmrank.objective(single))


@pytest.mark.fault(
    "no tree splits in the first three rounds, in a booster's own interface",
    promise="`NoProgressWarning` with the curvature per row and the parameter that is too large "
    "for it",
)
@pytest.mark.parametrize(
    ("backend", "params", "cause"),
    [
        ("lightgbm", {"min_sum_hessian_in_leaf": 100}, "min_sum_hessian_in_leaf=100 is too large"),
        ("lightgbm", {"min_child_weight": 1e4}, "min_sum_hessian_in_leaf=10000 is too large"),
        ("lightgbm", {"min_split_gain": 1e6}, r"min_gain_to_split=1e\+06 may exceed"),
        ("lightgbm", {"reg_alpha": 1e6}, r"lambda_l1=1e\+06 may exceed"),
        ("lightgbm", {"min_data_in_leaf": TASK.n}, f"rows cannot be split .*={TASK.n}"),
        ("xgboost", {"min_child_weight": 100}, "min_child_weight=100 is too large"),
        ("xgboost", {"gamma": 1e6}, r"gamma=1e\+06 may exceed"),
    ],
)
def test_parameters_that_let_no_tree_split(backend, params, cause):
    rows = data_set(backend)
    scores = np.zeros(TASK.n)
    if backend == "lightgbm":
        rows.construct()
    per_row = float(OBJECTIVE(scores, rows)[1].sum(dtype=np.float64)) / TASK.n
    with pytest.warns(NoProgressWarning, match=cause) as caught:
        train(backend, rows, **params)
    assert len(caught) == 1
    if "rows cannot" not in cause:
        assert f"{per_row:.3g}" in str(caught[0].message)
    train(backend, rows)  # once more, and nobody warns


def test_no_split_is_noticed_in_every_interface():
    ranker = lgb.LGBMRanker(
        objective=OBJECTIVE, n_estimators=5, n_jobs=1, min_child_weight=100, verbose=-1
    )
    with pytest.warns(NoProgressWarning, match="min_sum_hessian_in_leaf=100"):
        ranker.fit(TASK.x, TASK.y, group=TASK.sizes)
    matrix = data_set("xgboost")
    booster = xgb.Booster({"nthread": 1, "min_child_weight": 100}, [matrix])
    for number in range(3):
        booster.update(matrix, number, fobj=OBJECTIVE)
    with pytest.warns(NoProgressWarning, match="min_child_weight=100"):
        booster.update(matrix, 3, fobj=OBJECTIVE)
    with pytest.warns(NoProgressWarning, match="min_child_weight=100"):
        xgb.cv({"nthread": 1, "min_child_weight": 100}, matrix, 5, nfold=2, obj=OBJECTIVE)


def test_trees_that_dart_drops_are_no_constant_model():
    train("lightgbm", data_set("lightgbm"), rounds=8, boosting="dart", drop_rate=1, skip_drop=0)
    train("xgboost", data_set("xgboost"), booster="dart", rate_drop=0.9)
    train("xgboost", data_set("xgboost"), booster="gblinear")


DART: dict[str, Any] = {"boosting": "dart", "drop_rate": 0.5, "skip_drop": 0.3, "seed": 3}
REPEATED = """
import hashlib, warnings, gbmrank, lightgbm as lgb
from tests.faults.test_boosters import DART, OBJECTIVE, TASK, data_set, train
warnings.simplefilter("ignore")
for _ in range(4):
    for before in range(1, 4000, 7):  # other memory for each training
        bytes(before)
    made = [
        train("lightgbm", data_set("lightgbm"), rounds=12, **DART),
        lgb.LGBMRanker(objective=OBJECTIVE, n_estimators=12, n_jobs=1, verbose=-1, **DART)
        .fit(TASK.x, TASK.y, group=TASK.sizes).booster_,
        gbmrank.GBMRanker(OBJECTIVE, n_estimators=12, n_jobs=1, **DART)
        .fit(TASK.x, TASK.y, qid=TASK.qid),
    ]
    print(*[hashlib.md5(one.predict(TASK.x).tobytes()).hexdigest() for one in made])
"""


@pytest.mark.fault(
    "LightGBM's `dart`, twice with one seed",
    promise="the same model, although LightGBM reads a flag that it has not set",
)
def test_dart_is_repeatable():
    seen = set()
    for byte in ("254", "255"):  # what glibc fills new memory with, inverted: 1 and 0
        run = subprocess.run(
            [sys.executable, "-c", REPEATED],
            env={**os.environ, "MALLOC_PERTURB_": byte},
            capture_output=True,
            text=True,
            check=True,
        )
        seen.update(run.stdout.splitlines())
    assert len(seen) == 1


@pytest.mark.fault(
    "LightGBM's `dart` with a custom objective, evaluated on its training set",
    promise="`ConfigError`, since LightGBM saves a wrong model; `GBMRanker` evaluates a copy",
)
def test_dart_evaluated_on_its_training_set():
    rows = data_set("lightgbm")
    given = {**QUIET, **DART, "objective": OBJECTIVE}
    with pytest.raises(ConfigError, match="evaluates the training set"):
        lgb.train(given, rows, 5, valid_sets=[rows])
    ranker = lgb.LGBMRanker(objective=OBJECTIVE, n_estimators=3, verbose=-1, n_jobs=1, **DART)
    with pytest.raises(ConfigError, match="evaluates the training set"):
        ranker.fit(TASK.x, TASK.y, group=TASK.sizes, eval_set=[(TASK.x, TASK.y)],
                   eval_group=[TASK.sizes])  # fmt: skip
    train("lightgbm", rows, **DART)  # without it the data set trains

    ours = Plan(objective=OBJECTIVE, metric=metric_list("ndcg@5"), rounds=12, params=DART)
    rows = Part(TASK.x, RankingData.from_arrays(TASK.y, qid=TASK.qid))
    made = train_plan(ours, rows, {"train": rows})
    expected = train_plan(ours, rows)
    np.testing.assert_array_equal(made.scores(TASK.x), expected.scores(TASK.x))
    scored = gbmrank.metric("ndcg@5").score(TASK.y, made.scores(TASK.x), qid=TASK.qid)
    assert made.history["train"]["ndcg@5"][-1] == pytest.approx(scored, abs=1e-12)


def test_trees_that_are_dropped_when_dart_ends():
    """LightGBM leaves trees negated if it finds no split for a round."""
    ended = 0
    for seed in range(6):
        options = {**DART, "drop_rate": 0.9, "skip_drop": 0, "seed": seed, "n_estimators": 60}
        limits = {"learning_rate": 1.0, "min_split_gain": 4.0, "num_leaves": 4}
        made = interfaces.ranker("lightgbm", OBJECTIVE, metric="ndcg@5", **options, **limits)
        made.fit(TASK.x, TASK.y, qid=TASK.qid, eval_set=(OTHER.x, OTHER.y), eval_qid=OTHER_QID)
        ended += made.booster_.num_trees() < 60
        assert "shrinkage=-" not in made.booster_.model_to_string()
        shown = made.evals_result_["valid_0"]["ndcg@5"][made.booster_.num_trees() - 1]
        assert shown == pytest.approx(made.score(OTHER.x, OTHER.y, qid=OTHER_QID), abs=1e-12)
    assert ended


@pytest.mark.fault(
    "a metric of gbmrank as `XGBRanker(eval_metric=)`, with queries of several sizes",
    promise="one warning: XGBoost averages with the sizes of queries as weights",
)
def test_metrics_that_xgbranker_averages():
    metric = gbmrank.metric("ndcg@5", empty="one")
    ranker = xgb.XGBRanker(n_estimators=3, n_jobs=1, eval_metric=metric)
    with pytest.warns(GbmrankWarning, match=r"XGBRanker averages ndcg\(empty=one\)@5") as caught:
        ranker.fit(TASK.x, TASK.y, qid=TASK.qid, eval_set=[(TASK.x, TASK.y)],
                   eval_qid=[TASK.qid], verbose=False)  # fmt: skip
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert metric(TASK.y[:5], TASK.y[:5]) == 1.0  # called by hand


@pytest.mark.fault(
    "a metric of gbmrank as `XGBRanker(eval_metric=)`, with a query without a relevant row",
    promise="`DataError` that names `GBMRanker` and `custom_metric=`, which leave out the query",
)
@pytest.mark.filterwarnings("ignore:XGBRanker averages")
def test_a_query_without_a_value_in_xgbranker():
    labels = np.where(TASK.qid == TASK.qid[0], 0, TASK.y)
    ranker = xgb.XGBRanker(n_estimators=1, n_jobs=1, eval_metric=gbmrank.metric("ndcg@5"))
    with pytest.raises(DataError, match=r"one of the queries.*GBMRanker.*custom_metric="):
        ranker.fit(TASK.x, TASK.y, qid=TASK.qid, eval_set=[(TASK.x, labels)],
                   eval_qid=[TASK.qid], verbose=False)  # fmt: skip
    with pytest.raises(DataError, match="every query of this data set"):
        gbmrank.metric("ndcg@5")(np.zeros(3), np.arange(3.0))  # called by hand


@pytest.mark.fault(
    "a limit on the Hessian of a leaf that leaves trees hardly any leaves, or ends the training",
    promise="`NoProgressWarning` with the leaves and with a value that fits",
)
@pytest.mark.parametrize("call", ["own", "ranker"])
@BOTH
def test_a_limit_that_keeps_trees_small(backend, call):
    name = {"lightgbm": "min_sum_hessian_in_leaf", "xgboost": "min_child_weight"}[backend]
    task = make_task(seed=0, queries=150)
    total = OBJECTIVE.gradients(task.y, np.zeros(task.n), qid=task.qid)[1].sum()

    def run(least):
        if call == "own":
            interfaces.train(
                backend, OBJECTIVE, interfaces.data_set(backend, task), 6, **{name: least}
            )
        else:
            interfaces.fit(backend, OBJECTIVE, task, n_estimators=6, **{name: least})

    with pytest.warns(NoProgressWarning, match=rf"leaves.*{name}=.* Set it to") as caught:
        run(total / 2.5)
    assert len(caught) == 1
    fits = float(str(caught[0].message).split("Set it to ")[1].split()[0])
    run(fits)
    run(1e-3)


SCALED: dict[str, dict[str, Any]] = {
    "lightgbm": {
        "min_sum_hessian_in_leaf": 0.5,
        "lambda_l1": 0.1,
        "lambda_l2": 0.5,
        "min_gain_to_split": 0.02,
    },
    "xgboost": {"min_child_weight": 0.5, "alpha": 0.1, "lambda": 0.5, "gamma": 0.02},
}


@BOTH
@pytest.mark.filterwarnings("ignore:.*trees have:gbmrank.NoProgressWarning")
def test_a_factor_of_the_loss_is_a_factor_of_these_parameters(backend):
    factor, params = 4.0, SCALED[backend]
    features = TASK.x if backend == "lightgbm" else xgb.DMatrix(TASK.x)
    plain = train(backend, data_set(backend), **params).predict(features)
    larger: dict[str, Any] = {name: factor * value for name, value in params.items()}
    scaled = gbmrank.mix(OBJECTIVE, weights=[factor])
    same = train(backend, data_set(backend), objective=scaled, **larger).predict(features)
    assert same.tolist() == pytest.approx(plain.tolist(), rel=1e-5, abs=1e-6)
    for name in params:  # each of them matters
        other = train(
            backend, data_set(backend), objective=scaled, **{**larger, name: 8 * larger[name]}
        )
        assert other.predict(features).tolist() != pytest.approx(plain.tolist(), rel=1e-3)
    assert len(np.unique(plain)) > 3
