"""One object in every interface of XGBoost."""

import gc
import pickle
import re
import weakref
from typing import ClassVar

import joblib
import numpy as np
import pytest
import sklearn.base
import xgboost as xgb

import gbmrank
from gbmrank.boosters import bindings
from gbmrank.errors import DataError, GroupError, LabelRangeError
from gbmrank.metrics import AbstractMetric
from tests.ranking_tasks import agreement_metric, is_before, make_task, run_python

OBJECTIVE = gbmrank.objective("pairwise", loss="logistic", target="ndcg@10")
NDCG = gbmrank.metric("ndcg@10")
TRAIN, VALID = make_task(seed=1), make_task(seed=2)
PARAMS = {
    **gbmrank.booster_params(OBJECTIVE, "xgboost"),
    "max_depth": 3,
    "eta": 0.3,
    "nthread": 1,
}
NAME = "pre_gbmrank_ndcg@10"


def matrix(task, kind=xgb.DMatrix, **columns):
    return kind(task.x, task.y, qid=task.qid, **columns)


def train(params=PARAMS, data=None, rounds=5, obj=OBJECTIVE, **options):
    return xgb.train(
        params,
        data if data is not None else matrix(TRAIN),
        num_boost_round=rounds,
        obj=obj,
        verbose_eval=False,
        **options,
    )


def margins(booster, task):
    return booster.predict(xgb.DMatrix(task.x), output_margin=True)


def spy(call, seen):
    def callback(preds, data):
        before = preds.copy()
        answer = call(preds, data)
        np.testing.assert_array_equal(preds, before)  # never written to
        seen.append((before, answer))
        return answer

    return callback


def early_stop(history, patience, higher):
    """Round (from 0) that early stopping calls the best."""
    best = 0
    for i, value in enumerate(history):
        if (value > history[best]) if higher else (value < history[best]):
            best = i
        elif i - best >= patience:
            break
    return best


def test_the_callback_gives_the_gradients_of_the_array_call():
    seen: list = []
    train(obj=spy(OBJECTIVE, seen), rounds=3)
    assert len(seen) == 3
    np.testing.assert_array_equal(seen[0][0], np.zeros(TRAIN.n))  # base_score of booster_params
    for scores, (grad, hess) in seen:
        exact_grad, exact_hess = OBJECTIVE.gradients(TRAIN.y, scores, group=TRAIN.sizes)
        assert grad.dtype == hess.dtype == np.float32
        np.testing.assert_allclose(grad, exact_grad, rtol=1e-4, atol=1e-6)
        assert (hess > 0).all()
        kept = exact_hess > 0.01 * exact_hess.max()
        np.testing.assert_allclose(hess[kept], exact_hess[kept], rtol=1e-4)


def test_training_learns_and_reports_our_metric():
    evals: dict = {}
    booster = train(
        rounds=20,
        evals=[(matrix(TRAIN), "train"), (matrix(VALID), "valid")],
        custom_metric=NDCG,
        evals_result=evals,
    )
    assert list(evals["valid"]) == [NAME]
    for task, shown in [(TRAIN, "train"), (VALID, "valid")]:
        value = NDCG.score(task.y, margins(booster, task), group=task.sizes)
        assert evals[shown][NAME][-1] == pytest.approx(value, abs=1e-6)  # six decimals survive
    untrained = NDCG.score(VALID.y, np.zeros(VALID.n), group=VALID.sizes)
    assert evals["valid"][NAME][-1] > untrained + 0.1


def test_a_metric_list_is_reported_in_one_pass():
    evals: dict = {}
    train(
        evals=[(matrix(VALID), "valid")],
        custom_metric=gbmrank.metric("ndcg@1,5"),
        evals_result=evals,
    )
    assert {name: len(values) for name, values in evals["valid"].items()} == {
        "pre_gbmrank_ndcg@1": 5,
        "pre_gbmrank_ndcg@5": 5,
    }


def test_matrices_of_both_kinds_give_the_same_model():
    plain = train(rounds=10)
    quantile = train(data=matrix(TRAIN, xgb.QuantileDMatrix), rounds=10)
    assert plain.get_dump(with_stats=True) == quantile.get_dump(with_stats=True)
    assert len(plain.get_dump()) == 10


ODD_NAMES = [
    ("zzz", True),
    ("err_like", True),
    ("mape_like", True),
    ("auc_like_loss", False),
    ("ndcg_like_loss", False),
    ("pre_like_loss", False),
]


@pytest.mark.parametrize(("called", "higher"), ODD_NAMES)
def test_early_stopping_follows_the_direction_of_the_metric(called, higher):
    metric = agreement_metric(called, higher)
    options = {"evals": [(matrix(VALID), "valid")], "custom_metric": metric}
    evals: dict = {}
    train(rounds=40, evals_result=evals, **options)
    expected = early_stop(evals["valid"][metric.name_in("xgboost")], 4, higher)
    assert 0 < expected < 39  # in the wrong direction it would be 0
    assert train(rounds=40, early_stopping_rounds=4, **options).best_iteration == expected


@pytest.mark.parametrize(("called", "higher"), ODD_NAMES[:1] + ODD_NAMES[-1:])
def test_early_stopping_in_cv_follows_the_direction_of_the_metric(called, higher):
    metric = agreement_metric(called, higher)

    def means(**options):
        result = xgb.cv(
            PARAMS,
            matrix(TRAIN),
            num_boost_round=40,
            nfold=3,
            obj=OBJECTIVE,
            custom_metric=metric,
            as_pandas=False,
            seed=3,
            **options,
        )
        return result[f"test-{metric.name_in('xgboost')}-mean"]

    stopped = means(early_stopping_rounds=4)
    assert 1 < len(stopped) < 40
    assert len(stopped) == early_stop(means(), 4, higher) + 1


@pytest.mark.filterwarnings("ignore:XGBRanker averages")
@pytest.mark.parametrize(("called", "higher"), ODD_NAMES[:1] + ODD_NAMES[-1:])
def test_early_stopping_of_the_ranker_follows_the_direction_of_the_metric(called, higher):
    metric = agreement_metric(called, higher)

    def fit(**options):
        return xgb.XGBRanker(
            objective="rank:pairwise",
            n_estimators=40,
            eval_metric=metric,
            n_jobs=1,
            max_depth=2,
            learning_rate=0.05,
            **options,
        ).fit(
            TRAIN.x,
            TRAIN.y,
            qid=TRAIN.qid,
            eval_set=[(VALID.x, VALID.y)],
            eval_qid=[VALID.qid],
            verbose=False,
        )

    history = fit().evals_result()["validation_0"][metric.name_in("xgboost")]
    expected = early_stop(history, 4, higher)
    assert 0 < expected < 39
    assert fit(early_stopping_rounds=4).best_iteration == expected


@pytest.mark.filterwarnings("ignore:XGBRanker averages")
def test_the_ranker_gets_one_value_per_query():
    ranker = xgb.XGBRanker(objective="rank:ndcg", n_estimators=3, eval_metric=NDCG, n_jobs=2)
    task = make_task(seed=8, queries=30)
    keep = np.array([q for q in range(30) if task.rows(q, q + 1).y.any()])
    some = task.repeated(np.isin(np.arange(30), keep).astype(int))
    ranker.fit(
        some.x,
        some.y,
        qid=some.qid,
        eval_set=[(some.x, some.y)],
        eval_qid=[some.qid],
        verbose=False,
    )
    per_query = NDCG.per_query(some.y, ranker.predict(some.x), group=some.sizes)
    # XGBoost weighs queries by their size, see BACKENDS
    assert ranker.evals_result()["validation_0"][NAME][-1] == pytest.approx(
        np.average(per_query, weights=some.sizes), abs=1e-6
    )


@pytest.mark.filterwarnings("ignore:XGBRanker averages")
def test_an_undefined_query_in_the_ranker_is_an_error_and_not_a_nan():
    labels = TRAIN.y.copy()
    labels[: TRAIN.sizes[0]] = 0.0

    def fit(metric):
        ranker = xgb.XGBRanker(n_estimators=2, eval_metric=metric, n_jobs=1)
        return ranker.fit(
            TRAIN.x,
            labels,
            qid=TRAIN.qid,
            eval_set=[(TRAIN.x, labels)],
            eval_qid=[TRAIN.qid],
            verbose=False,
        ).evals_result()

    with pytest.raises(DataError, match=r"ndcg@10 is undefined.*empty='zero'"):
        fit(NDCG)
    zero = gbmrank.metric("ndcg@10", empty="zero")
    values = fit(zero)["validation_0"][zero.name_in("xgboost")]
    assert np.isfinite(values).all()


def test_a_metric_named_like_a_builtin_does_not_interleave_with_it():
    evals: dict = {}
    train(
        {**PARAMS, "eval_metric": ["ndcg@10", "map@10"]},
        evals=[(binary(VALID), "valid")],
        custom_metric=NDCG,
        evals_result=evals,
    )
    lengths = {name: len(values) for name, values in evals["valid"].items()}
    assert lengths == {"ndcg@10": 5, "map@10": 5, NAME: 5}


def binary(task):
    return xgb.DMatrix(task.x, (task.y > 1).astype(float), qid=task.qid)


def test_names_hold_nothing_that_xgboost_refuses():
    metric = gbmrank.metric("ndcg(gain=[0, 1, 3, 7, 15], empty=zero)@5")
    assert re.fullmatch(r"pre_gbmrank_[\w.@-]+", metric.name_in("xgboost"))
    evals: dict = {}
    train(evals=[(matrix(VALID), "valid")], custom_metric=metric, evals_result=evals)
    assert list(evals["valid"]) == [metric.name_in("xgboost")]


def test_cv_keeps_queries_whole():
    counts = []

    def spying(preds, data):
        sizes = np.diff(data.get_uint_info("group_ptr").astype(np.int64))
        counts.append(len(sizes))
        assert set(sizes) <= set(TRAIN.sizes)
        return OBJECTIVE(preds, data)

    result = xgb.cv(
        PARAMS, matrix(TRAIN), num_boost_round=2, nfold=4, obj=spying, custom_metric=NDCG
    )
    assert counts == [30] * 8
    assert f"test-{NAME}-mean" in result


def test_folds_of_a_matrix_keep_queries_whole():
    folds = gbmrank.query_folds(matrix(TRAIN), n_folds=4)
    for inside, outside in folds:
        assert not set(TRAIN.qid[inside]) & set(TRAIN.qid[outside])
    with pytest.raises(GroupError, match="no queries"):
        gbmrank.query_folds(xgb.DMatrix(TRAIN.x, TRAIN.y))


def test_base_margin_is_where_training_starts():
    seen: list = []
    start = np.random.default_rng(0).normal(size=TRAIN.n).astype(np.float32)
    train(data=matrix(TRAIN, base_margin=start), obj=spy(OBJECTIVE, seen), rounds=2)
    np.testing.assert_array_equal(seen[0][0], start)
    grad, _ = OBJECTIVE.gradients(TRAIN.y, start, group=TRAIN.sizes)
    np.testing.assert_allclose(seen[0][1][0], grad, rtol=1e-4, atol=1e-6)


def test_training_goes_on_where_it_stopped():
    whole = train(rounds=10)
    resumed = train(rounds=5, xgb_model=train(rounds=5))
    np.testing.assert_allclose(margins(resumed, TRAIN), margins(whole, TRAIN), rtol=1e-5, atol=1e-6)
    assert resumed.num_boosted_rounds() == 10


@pytest.mark.parametrize(
    "extra",
    [
        {"booster": "gbtree", "subsample": 0.8},
        {"booster": "dart", "rate_drop": 0.5},
        {"booster": "gblinear", "updater": "coord_descent"},
        {"tree_method": "approx"},
        {"tree_method": "exact"},
        {"grow_policy": "lossguide", "num_parallel_tree": 2},
    ],
    ids=lambda extra: "-".join(map(str, extra.values())),
)
@pytest.mark.filterwarnings("ignore:.*booster=.* is deprecated:UserWarning")  # XGBoost 3.4
def test_every_way_of_boosting_learns(extra):
    kept = {k: v for k, v in PARAMS.items() if extra.get("booster") != "gblinear" or k in LINEAR}
    booster = train({**kept, **extra, "seed": 5}, rounds=15)
    score = NDCG.score(VALID.y, margins(booster, VALID), group=VALID.sizes)
    assert score > NDCG.score(VALID.y, np.zeros(VALID.n), group=VALID.sizes) + 0.08


LINEAR = {"eta", "nthread", "base_score", "disable_default_eval_metric"}


def answers_of(data, scores):
    return [column.tobytes() for column in OBJECTIVE(scores, data)], NDCG(scores, data)


def test_changed_labels_groups_and_weights_are_noticed():
    scores = np.random.default_rng(4).normal(size=TRAIN.n).astype(np.float32)
    data = matrix(TRAIN)
    before = answers_of(data, scores)
    assert answers_of(data, scores) == before

    labels = TRAIN.y[::-1].copy()
    data.set_label(labels)
    fresh = xgb.DMatrix(TRAIN.x, labels, qid=TRAIN.qid)
    assert answers_of(data, scores) == answers_of(fresh, scores) != before

    sizes = TRAIN.sizes[::-1].copy()
    data.set_group(sizes)
    fresh.set_group(sizes)
    again = xgb.DMatrix(TRAIN.x, labels, qid=np.repeat(np.arange(len(sizes)), sizes))
    assert answers_of(data, scores) == answers_of(again, scores)

    weight = np.arange(1.0, len(sizes) + 1)
    data.set_weight(weight)
    again.set_weight(weight)
    weighted = answers_of(data, scores)
    assert weighted == answers_of(again, scores)
    expected, _ = OBJECTIVE.gradients(labels, scores, group=sizes, weight=weight)
    np.testing.assert_allclose(
        np.frombuffer(weighted[0][0], np.float32), expected, rtol=1e-4, atol=1e-5
    )


def test_the_cache_keeps_no_matrix_alive():
    data = matrix(TRAIN)
    OBJECTIVE(np.zeros(TRAIN.n, np.float32), data)
    gone, number = weakref.ref(data), id(data)
    assert number in bindings.states
    del data
    gc.collect()
    assert gone() is None
    assert number not in bindings.states


def test_matrices_that_reuse_an_address_are_not_mixed_up():
    rng = np.random.default_rng(9)
    for _ in range(30):
        labels = rng.integers(0, 4, 20).astype(np.float32)
        data = xgb.DMatrix(np.zeros((20, 1)), labels, qid=np.repeat([0, 1], 10))
        scores = rng.normal(size=20)
        grad, _ = OBJECTIVE(scores, data)
        expected, _ = OBJECTIVE.gradients(labels, scores, group=[10, 10])
        np.testing.assert_allclose(grad, expected, rtol=1e-4, atol=1e-6)
        del data


def test_the_ranker_with_our_metric_is_cloned_and_pickled():
    ranker = xgb.XGBRanker(n_estimators=2, eval_metric=NDCG, n_jobs=1)
    clone = sklearn.base.clone(ranker)
    assert clone.eval_metric == NDCG
    fitted = clone.fit(TRAIN.x, TRAIN.y, qid=TRAIN.qid)
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    np.testing.assert_array_equal(again.predict(VALID.x), fitted.predict(VALID.x))


def fit_in_worker(objective):
    return margins(train(obj=objective), VALID)


@pytest.mark.nightly  # tests/boosters/test_lightgbm.py does so at every change
def test_training_in_worker_processes():
    from joblib.externals.loky import get_reusable_executor

    try:
        runs = joblib.Parallel(n_jobs=2)(joblib.delayed(fit_in_worker)(OBJECTIVE) for _ in range(2))
    finally:
        get_reusable_executor().shutdown(wait=True)
    for run in runs:
        np.testing.assert_array_equal(run, fit_in_worker(OBJECTIVE))


def test_a_saved_model_predicts_without_gbmrank(tmp_path):
    booster = train()
    booster.save_model(tmp_path / "model.json")
    np.save(tmp_path / "x.npy", VALID.x)
    code = f"""
import sys
sys.modules['gbmrank'] = None
import numpy as np, xgboost as xgb
booster = xgb.Booster(model_file={str(tmp_path / "model.json")!r})
x = xgb.DMatrix(np.load({str(tmp_path / "x.npy")!r}))
np.save({str(tmp_path / "out.npy")!r}, booster.predict(x))
"""
    run_python(code)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), margins(booster, VALID))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_start_that_is_not_finite_stops_training(bad):
    start = np.zeros(TRAIN.n)
    start[TRAIN.sizes[0] + 1] = bad
    with pytest.raises(DataError) as caught:
        train(data=matrix(TRAIN, base_margin=start))
    message = str(caught.value)
    assert f"row {TRAIN.sizes[0] + 1}, query 1, is {bad}" in message
    assert "base_margin" in message


def test_labels_outside_the_gain_stop_training():
    low, high = TRAIN.y.copy(), TRAIN.y.copy()
    low[3], high[3] = -1.0, 40.0
    with pytest.raises(LabelRangeError, match=r"not negative, got -1; shift them"):
        train(data=xgb.DMatrix(TRAIN.x, low, qid=TRAIN.qid))
    with pytest.raises(LabelRangeError, match=r"largest label is 40.*gain='linear'"):
        train(data=xgb.DMatrix(TRAIN.x, high, qid=TRAIN.qid))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_a_bad_weight_stops_training(bad):
    weight = np.ones(len(TRAIN.sizes))
    weight[2] = bad
    with pytest.raises((xgb.core.XGBoostError, ValueError), match=r"[Ww]eight"):
        train(data=matrix(TRAIN, weight=weight))


def test_weighted_gradients_are_summed_gradients_of_repeated_queries():
    times = np.arange(len(TRAIN.sizes)) % 3 + 1
    repeated = TRAIN.repeated(times)
    scores = np.random.default_rng(0).normal(size=TRAIN.n).astype(np.float32)
    row_of = np.concatenate(
        [np.flatnonzero(TRAIN.qid == q) for q in np.repeat(np.arange(len(times)), times)]
    )
    parts = OBJECTIVE(scores[row_of], matrix(repeated))
    weighted = matrix(TRAIN, weight=times.astype(float))
    for found, part in zip(OBJECTIVE(scores, weighted), parts, strict=True):
        summed = np.bincount(row_of, part, minlength=TRAIN.n)
        np.testing.assert_allclose(found, summed, rtol=2e-6, atol=1e-9)
    assert NDCG(scores, weighted)[1] == pytest.approx(
        NDCG(scores[row_of], matrix(repeated))[1], rel=1e-12
    )


def test_weighted_training_is_training_on_repeated_queries():
    times = np.arange(len(TRAIN.sizes)) % 3 + 1
    params = {**PARAMS, "min_child_weight": 0.0}
    weighted = train(params, matrix(TRAIN, weight=times.astype(float)), rounds=8)
    repeated = train(params, matrix(TRAIN.repeated(times)), rounds=8)
    found, expected = margins(weighted, VALID), margins(repeated, VALID)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    assert np.abs(margins(train(params, rounds=8), VALID) - expected).max() > 0.01


def test_without_qid_all_rows_are_one_query():
    scores = np.random.default_rng(0).normal(size=TRAIN.n)
    grad, _ = OBJECTIVE(scores, xgb.DMatrix(TRAIN.x, TRAIN.y))
    expected, _ = OBJECTIVE.gradients(TRAIN.y, scores)
    np.testing.assert_allclose(grad, expected, rtol=1e-3, atol=1e-6)


def test_no_rows_give_empty_arrays():
    for column in OBJECTIVE(np.empty(0, np.float32), xgb.DMatrix(np.empty((0, 3)), np.empty(0))):
        assert column.shape == (0,)
        assert column.dtype == np.float32


def test_data_without_labels_says_so():
    for call in (OBJECTIVE, NDCG):
        with pytest.raises(DataError, match=r"has no labels, but there are \d+ scores"):
            call(np.zeros(TRAIN.n, np.float32), xgb.DMatrix(TRAIN.x))


class Boom(Exception):
    """An error only this file knows."""


def test_exceptions_of_a_plugin_reach_the_caller_with_its_name():
    class Broken(AbstractMetric):
        name: ClassVar[str] = "xgboost_broken"

        def bind(self, data):
            raise Boom("in bind")

    gbmrank.register_metric(Broken)
    metric = gbmrank.metric("xgboost_broken")
    with pytest.raises(gbmrank.PluginError, match=r"_broken.*in bind") as caught:
        train(evals=[(matrix(VALID), "valid")], custom_metric=metric)
    assert isinstance(caught.value.__cause__, Boom)


def test_settings_carry_their_reasons_and_matter():
    params = gbmrank.booster_params(OBJECTIVE, "xgboost")
    assert dict(params) == {
        "base_score": 0.0,
        "disable_default_eval_metric": 1,
        "min_child_weight": 1e-3,
    }
    assert params.reasons.keys() == params.keys()
    assert "rmse" in params.reasons["disable_default_eval_metric"]
    evals: dict = {}
    bare = train(
        {"max_depth": 3, "nthread": 1},
        evals=[(matrix(VALID), "valid")],
        custom_metric=NDCG,
        evals_result=evals,
    )
    assert "rmse" in evals["valid"]  # what the setting is for
    assert len(bare.trees_to_dataframe()) < len(train().trees_to_dataframe())


@pytest.mark.skipif(
    is_before("xgboost", 3, 2),
    reason="XGBRegressor of XGBoost 3.1 does not take a callable metric with scikit-learn 1.8",
)
def test_a_regressor_with_weights_trains_as_the_native_interface():
    """XGBRegressor hands weights by name, to the objective and to the metric."""
    objective = gbmrank.objective("pointwise(loss=squared, target=identity)")
    metric = gbmrank.metric("ndcg(gain=linear)")
    weight = np.random.default_rng(0).uniform(0.1, 3.0, TRAIN.n)
    model = xgb.XGBRegressor(
        objective=objective, n_estimators=4, base_score=0.0, n_jobs=1, eval_metric=metric
    )
    model.fit(
        TRAIN.x,
        TRAIN.y,
        sample_weight=weight,
        eval_set=[(VALID.x, VALID.y)],
        sample_weight_eval_set=[np.ones(VALID.n)],
        verbose=False,
    )
    grad, hess = objective.gradients(TRAIN.y, np.zeros(TRAIN.n), weight=weight)
    plain, plain_hess = objective.gradients(TRAIN.y, np.zeros(TRAIN.n))
    np.testing.assert_allclose(grad, weight * plain)
    np.testing.assert_allclose(hess, weight * plain_hess)
    whole = xgb.DMatrix(TRAIN.x, TRAIN.y, weight=weight)
    params = {"base_score": 0.0, "nthread": 1}
    same = xgb.train(params, whole, 4, obj=objective)
    np.testing.assert_array_equal(model.predict(TRAIN.x), same.predict(whole))
    shown = model.evals_result()["validation_0"][metric.name_in("xgboost")][-1]
    assert shown == pytest.approx(metric.score(VALID.y, model.predict(VALID.x)), abs=1e-6)
