"""One object in every interface of LightGBM."""

import copy
import gc
import logging
import pickle
import weakref
from typing import ClassVar

import cloudpickle
import joblib
import lightgbm as lgb
import numpy as np
import pytest
import sklearn.base

import gbmrank
from gbmrank.boosters import bindings, gradients
from gbmrank.errors import (
    DataError,
    GbmrankWarning,
    GroupError,
    LabelRangeError,
    NumericError,
    ParameterError,
    WeightError,
)
from gbmrank.metrics import AbstractMetric
from gbmrank.objectives import AbstractBound, AbstractObjective
from tests.ranking_tasks import agreement_metric, make_task, run_python

OBJECTIVE = gbmrank.objective("pairwise", loss="logistic", target="ndcg@10")
NDCG = gbmrank.metric("ndcg@10")
TRAIN, VALID = make_task(seed=1), make_task(seed=2)
PARAMS = {
    **gbmrank.booster_params(OBJECTIVE, "lightgbm"),
    "objective": OBJECTIVE,
    "num_leaves": 7,
    "min_data_in_leaf": 1,
    "learning_rate": 0.3,
    "num_threads": 1,
    "deterministic": True,
    "verbosity": -1,
}
TREE_PARAMS = {key: value for key, value in PARAMS.items() if key != "objective"}


def dataset(task, **columns):
    return lgb.Dataset(task.x, task.y, group=task.sizes, **{"free_raw_data": False, **columns})


def ready(task, **columns):
    """A constructed data set, as the callback sees it."""
    return dataset(task, **columns).construct()


def train(params=PARAMS, data=None, rounds=5, **options):
    return lgb.train(params, data or dataset(TRAIN), num_boost_round=rounds, **options)


def trees(booster):
    """The trees alone: the parameters printed after them differ between the interfaces."""
    return booster.model_to_string().split("end of trees")[0].split("Tree=0")[1]


def spy(call, seen):
    def callback(preds, data):
        before = preds.copy()
        answer = call(preds, data)
        np.testing.assert_array_equal(preds, before)  # never written to
        seen.append((before, answer))
        return answer

    return callback


def early_stop(history, patience, higher):
    """Iteration (from 1) that early stopping keeps."""
    best = 0
    for i, value in enumerate(history):
        if (value > history[best]) if higher else (value < history[best]):
            best = i
        elif i - best >= patience:
            break
    return best + 1


def test_the_callback_gives_the_gradients_of_the_array_call():
    seen: list = []
    train({**PARAMS, "objective": spy(OBJECTIVE, seen)}, rounds=3)
    assert len(seen) == 3
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
        valid_sets=[dataset(TRAIN), dataset(VALID)],
        valid_names=["train", "valid"],
        feval=NDCG,
        callbacks=[lgb.record_evaluation(evals)],
    )
    name = NDCG.name_in("lightgbm")
    assert list(evals["valid"]) == [name]
    for task, shown in [(TRAIN, "train"), (VALID, "valid")]:
        scores = booster.predict(task.x, raw_score=True)
        assert evals[shown][name][-1] == pytest.approx(
            NDCG.score(task.y, scores, group=task.sizes), rel=1e-12
        )
    untrained = NDCG.score(VALID.y, np.zeros(VALID.n), group=VALID.sizes)
    assert evals["valid"][name][-1] > untrained + 0.1
    assert evals["train"][name][-1] > evals["train"][name][0]


def test_a_metric_list_is_reported_in_one_pass():
    evals: dict = {}
    train(
        valid_sets=[dataset(VALID)],
        feval=gbmrank.metric("ndcg@1,5"),
        callbacks=[lgb.record_evaluation(evals)],
    )
    assert {name: len(values) for name, values in evals["valid_0"].items()} == {
        "gbmrank_ndcg@1": 5,
        "gbmrank_ndcg@5": 5,
    }


def test_ranker_and_train_give_the_same_model():
    ranker = lgb.LGBMRanker(n_estimators=10, objective=OBJECTIVE, **TREE_PARAMS)
    ranker.fit(
        TRAIN.x,
        TRAIN.y,
        group=TRAIN.sizes,
        eval_set=[(VALID.x, VALID.y)],
        eval_group=[VALID.sizes],
        eval_metric=NDCG,
    )
    evals: dict = {}
    booster = train(
        rounds=10,
        valid_sets=[dataset(VALID)],
        feval=NDCG,
        callbacks=[lgb.record_evaluation(evals)],
    )
    assert trees(ranker.booster_) == trees(booster)
    assert ranker.evals_result_ == evals


def test_ranker_takes_weights_per_row_of_a_query():
    weight = np.repeat(np.arange(len(TRAIN.sizes)) % 3 + 1.0, TRAIN.sizes)
    ranker = lgb.LGBMRanker(n_estimators=5, objective=OBJECTIVE, **TREE_PARAMS)
    ranker.fit(TRAIN.x, TRAIN.y, group=TRAIN.sizes, sample_weight=weight, eval_metric=NDCG)
    booster = train(data=dataset(TRAIN, weight=weight))
    assert trees(ranker.booster_) == trees(booster)
    assert trees(booster) != trees(train())


def test_update_with_our_objective_gives_the_same_model():
    booster = lgb.Booster(TREE_PARAMS | {"objective": "none"}, dataset(TRAIN))
    for _ in range(5):
        booster.update(fobj=OBJECTIVE)
    assert trees(booster) == trees(train())


@pytest.mark.parametrize(
    ("called", "higher"),
    [
        ("zzz", True),
        ("err_like", True),
        pytest.param("mape_like", True, marks=pytest.mark.nightly),
        ("auc_like_loss", False),
        ("ndcg_like_loss", False),
    ],
)
def test_early_stopping_follows_the_direction_of_the_metric(called, higher):
    metric = agreement_metric(called, higher)
    evals: dict = {}
    options = {"valid_sets": [dataset(VALID)], "feval": metric}
    train(rounds=40, callbacks=[lgb.record_evaluation(evals)], **options)
    history = evals["valid_0"][f"gbmrank_{called}"]
    expected = early_stop(history, 4, higher)
    assert 1 < expected < 40  # in the wrong direction it would be 1
    stopped = train(rounds=40, callbacks=[lgb.early_stopping(4, verbose=False)], **options)
    assert stopped.best_iteration == expected
    ranker = lgb.LGBMRanker(n_estimators=40, objective=OBJECTIVE, **TREE_PARAMS).fit(
        TRAIN.x,
        TRAIN.y,
        group=TRAIN.sizes,
        eval_set=[(VALID.x, VALID.y)],
        eval_group=[VALID.sizes],
        eval_metric=metric,
        callbacks=[lgb.early_stopping(4, verbose=False)],
    )
    assert ranker.best_iteration_ == expected


def test_early_stopping_in_cv_follows_the_direction_of_the_metric():
    for called, higher in [("zzz", True), ("auc_like_loss", False)]:
        options = {
            "folds": gbmrank.query_folds(dataset(TRAIN), n_folds=3),
            "feval": agreement_metric(called, higher),
            "num_boost_round": 40,
        }
        whole = lgb.cv(PARAMS, dataset(TRAIN), **options)[f"valid gbmrank_{called}-mean"]
        stopped = lgb.cv(
            PARAMS, dataset(TRAIN), callbacks=[lgb.early_stopping(4, verbose=False)], **options
        )[f"valid gbmrank_{called}-mean"]
        assert 1 < len(stopped) < 40
        assert len(stopped) == early_stop(whole, 4, higher)


def test_a_metric_named_like_a_builtin_does_not_interleave_with_it():
    evals: dict = {}
    train(
        {**PARAMS, "metric": ["ndcg", "map"], "eval_at": [10]},
        valid_sets=[dataset(VALID)],
        feval=gbmrank.metric("ndcg@10"),
        callbacks=[lgb.record_evaluation(evals)],
    )
    lengths = {name: len(values) for name, values in evals["valid_0"].items()}
    assert lengths == {"ndcg@10": 5, "map@10": 5, "gbmrank_ndcg@10": 5}


def test_cv_with_whole_queries_sees_whole_queries():
    sizes_seen: list = []

    def spying(preds, data):
        sizes_seen.append(np.asarray(data.get_group()))
        return OBJECTIVE(preds, data)

    whole = set(map(int, TRAIN.sizes))
    folds = gbmrank.query_folds(dataset(TRAIN), n_folds=4)
    params = {**PARAMS, "objective": spying}
    lgb.cv(params, dataset(TRAIN), folds=folds, num_boost_round=1, feval=NDCG)
    assert [len(sizes) for sizes in sizes_seen] == [30] * 4
    assert all(set(map(int, sizes)) <= whole for sizes in sizes_seen)
    for (rows, _), sizes in zip(folds, sizes_seen, strict=True):
        assert sizes.tolist() == np.unique(TRAIN.qid[rows], return_counts=True)[1].tolist()


def test_cv_by_default_cuts_queries():
    """LightGBM's own folds; the reason for gbmrank.query_folds."""
    counts: list = []

    def spying(preds, data):
        counts.append(len(data.get_group()))
        return OBJECTIVE(preds, data)

    params = {**PARAMS, "objective": spying}
    with pytest.warns(GbmrankWarning, match=r"folds=gbmrank\.query_folds"):
        lgb.cv(params, dataset(TRAIN), nfold=4, num_boost_round=1, stratified=False)
    assert sum(counts) > 4 * 30  # each fold should train on 30 whole queries


def test_cv_gives_the_numbers_of_training_on_the_subsets():
    folds = gbmrank.query_folds(dataset(TRAIN), n_folds=3)
    result = lgb.cv(PARAMS, dataset(TRAIN), folds=folds, num_boost_round=6, feval=NDCG)
    values = []
    full = ready(TRAIN)
    for inside, outside in folds:
        booster = train(data=full.subset(inside.tolist()), rounds=6)
        values.append(
            NDCG.score(
                TRAIN.y[outside],
                booster.predict(TRAIN.x[outside], raw_score=True),
                qid=TRAIN.qid[outside],
            )
        )
    assert result["valid gbmrank_ndcg@10-mean"][-1] == pytest.approx(np.mean(values), rel=1e-9)


def test_asking_for_folds_leaves_the_data_set_open_to_parameters():
    data = lgb.Dataset(TRAIN.x, TRAIN.y, group=TRAIN.sizes)
    folds = gbmrank.query_folds(data, n_folds=3)
    result = lgb.cv({**PARAMS, "max_bin": 7}, data, folds=folds, num_boost_round=2, feval=NDCG)
    assert len(result["valid gbmrank_ndcg@10-mean"]) == 2


def test_folds_of_a_subset_and_of_data_without_queries():
    subset = ready(TRAIN).subset(np.arange(int(TRAIN.sizes[:10].sum())).tolist())
    folds = gbmrank.query_folds(subset, n_folds=5)
    assert sum(len(outside) for _, outside in folds) == TRAIN.sizes[:10].sum()
    with pytest.raises(GroupError, match="no queries; pass group="):
        gbmrank.query_folds(lgb.Dataset(TRAIN.x, TRAIN.y))
    with pytest.raises(GroupError, match="pass only one of"):
        gbmrank.query_folds(dataset(TRAIN), group=TRAIN.sizes)


def test_init_score_is_where_training_starts():
    seen: list = []
    start = np.random.default_rng(0).normal(size=TRAIN.n)
    train({**PARAMS, "objective": spy(OBJECTIVE, seen)}, dataset(TRAIN, init_score=start), rounds=2)
    np.testing.assert_array_equal(seen[0][0], start)
    grad, _ = OBJECTIVE.gradients(TRAIN.y, start, group=TRAIN.sizes)
    np.testing.assert_allclose(seen[0][1][0], grad, rtol=1e-4, atol=1e-6)


def test_training_goes_on_where_it_stopped():
    whole = train(rounds=10)
    half = train(rounds=5)
    resumed = train(rounds=5, init_model=half)
    expected = whole.predict(TRAIN.x, raw_score=True)
    np.testing.assert_allclose(resumed.predict(TRAIN.x, raw_score=True), expected, rtol=1e-9)
    start = half.predict(TRAIN.x, raw_score=True)
    rest = train(data=dataset(TRAIN, init_score=start), rounds=5)
    np.testing.assert_allclose(
        start + rest.predict(TRAIN.x, raw_score=True), expected, rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize(
    "extra",
    [
        {"boosting": "gbdt", "bagging_fraction": 0.7, "bagging_freq": 1},
        {"boosting": "dart", "drop_rate": 0.5},
        {"data_sample_strategy": "goss"},
        {"linear_tree": True},
        {"use_quantized_grad": True},
        {"feature_fraction": 0.6, "max_depth": 3},
    ],
    ids=lambda extra: next(iter(extra)),
)
def test_every_way_of_boosting_learns(extra):
    params = {**PARAMS, **extra, "seed": 5}
    data = dataset(TRAIN, params={"linear_tree": extra.get("linear_tree", False)})
    booster = train(params, data, rounds=15)
    score = NDCG.score(VALID.y, booster.predict(VALID.x, raw_score=True), group=VALID.sizes)
    assert score > NDCG.score(VALID.y, np.zeros(VALID.n), group=VALID.sizes) + 0.08


def answers_of(task, data, scores):
    return [column.tobytes() for column in OBJECTIVE(scores, data)], NDCG(scores, data)


def test_changed_labels_groups_and_weights_are_noticed():
    scores = np.random.default_rng(4).normal(size=TRAIN.n)
    data = ready(TRAIN)
    before = answers_of(TRAIN, data, scores)
    assert answers_of(TRAIN, data, scores) == before

    labels = TRAIN.y[::-1].copy()
    data.set_label(labels)
    fresh = lgb.Dataset(TRAIN.x, labels, group=TRAIN.sizes).construct()
    assert answers_of(TRAIN, data, scores) == answers_of(TRAIN, fresh, scores)

    sizes = TRAIN.sizes[::-1].copy()
    data.set_group(sizes)
    fresh = lgb.Dataset(TRAIN.x, labels, group=sizes).construct()
    assert answers_of(TRAIN, data, scores) == answers_of(TRAIN, fresh, scores)

    weight = np.repeat(np.arange(1.0, len(sizes) + 1), sizes)
    data.set_weight(weight)
    fresh = lgb.Dataset(TRAIN.x, labels, group=sizes, weight=weight).construct()
    assert answers_of(TRAIN, data, scores) == answers_of(TRAIN, fresh, scores)

    twice = np.full(TRAIN.n, 2.0)  # LightGBM ignores set_weight(None) and weights of one
    data.set_label(TRAIN.y).set_group(TRAIN.sizes).set_weight(twice)
    assert answers_of(TRAIN, data, scores) == answers_of(TRAIN, ready(TRAIN, weight=twice), scores)


def test_labels_written_in_place_are_noticed():
    labels = TRAIN.y.copy()
    scores = np.random.default_rng(4).normal(size=TRAIN.n)
    first = OBJECTIVE(labels, scores, None, TRAIN.sizes)[0]
    labels[:] = labels[::-1].copy()
    second = OBJECTIVE(labels, scores, None, TRAIN.sizes)[0]
    expected, _ = OBJECTIVE.gradients(labels, scores, group=TRAIN.sizes)
    np.testing.assert_allclose(second, expected, rtol=1e-4, atol=1e-6)
    assert not np.array_equal(first, second)


def test_bound_state_is_made_once_per_data_set(monkeypatch):
    made = []
    original = type(OBJECTIVE.template).bind

    def counting(self, data):
        made.append(1)
        return original(self, data)

    monkeypatch.setattr(type(OBJECTIVE.template), "bind", counting)
    train(rounds=8)
    assert len(made) == 1
    copied = {**PARAMS, "objective": pickle.loads(pickle.dumps(OBJECTIVE))}  # noqa: S301
    data = dataset(TRAIN)
    train(PARAMS, data, rounds=3)
    train(copied, data, rounds=3)  # equal objectives share what is bound
    assert len(made) == 2


def test_the_cache_keeps_no_data_set_alive():
    data = ready(TRAIN)
    OBJECTIVE(np.zeros(TRAIN.n), data)
    NDCG(np.zeros(TRAIN.n), data)
    gone, number = weakref.ref(data), id(data)
    assert number in bindings.states
    del data
    gc.collect()
    assert gone() is None
    assert number not in bindings.states


def test_data_sets_that_reuse_an_address_are_not_mixed_up():
    rng = np.random.default_rng(9)
    for _ in range(30):
        labels = rng.integers(0, 4, 20).astype(np.float32)
        scores = rng.normal(size=20)
        grad, _ = OBJECTIVE(labels, scores, None, np.array([10, 10]))
        expected, _ = OBJECTIVE.gradients(labels, scores, group=[10, 10])
        np.testing.assert_allclose(grad, expected, rtol=1e-4, atol=1e-6)
        del labels


def test_state_found_at_the_address_of_another_data_set_is_not_used():
    labels, other = TRAIN.y.copy(), TRAIN.y.copy()
    OBJECTIVE(labels, np.zeros(TRAIN.n), None, TRAIN.sizes)
    kept = bindings.states[id(labels)]
    bindings.states[id(other)] = kept  # as if the address had been reused
    OBJECTIVE(other, np.zeros(TRAIN.n), None, TRAIN.sizes)
    assert bindings.states[id(other)] is not kept
    assert bindings.states[id(other)].reference() is other


@pytest.mark.parametrize(
    "copied",
    [
        lambda value: pickle.loads(pickle.dumps(value)),  # noqa: S301
        lambda value: cloudpickle.loads(cloudpickle.dumps(value)),
        copy.copy,
        copy.deepcopy,
    ],
    ids=["pickle", "cloudpickle", "copy", "deepcopy"],
)
@pytest.mark.parametrize("value", [OBJECTIVE, NDCG, gbmrank.metric("ndcg@1,5")], ids=str)
def test_objects_survive_copies(copied, value):
    again = copied(value)
    assert again == value
    assert hash(again) == hash(value)
    assert str(again) == str(value)


def test_deep_copies_are_the_object_itself():
    assert copy.deepcopy({"objective": OBJECTIVE})["objective"] is OBJECTIVE


def test_estimators_are_cloned_and_pickled_with_our_objective():
    ranker = lgb.LGBMRanker(n_estimators=4, objective=OBJECTIVE, **TREE_PARAMS)
    clone = sklearn.base.clone(ranker)
    assert clone.objective is OBJECTIVE
    fitted = clone.fit(TRAIN.x, TRAIN.y, group=TRAIN.sizes)
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    np.testing.assert_array_equal(again.predict(VALID.x), fitted.predict(VALID.x))
    assert again.objective == OBJECTIVE


def fit_in_worker(objective):
    ranker = lgb.LGBMRanker(n_estimators=4, objective=objective, **TREE_PARAMS)
    return ranker.fit(TRAIN.x, TRAIN.y, group=TRAIN.sizes).predict(VALID.x)


@pytest.mark.nightly
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
    booster.save_model(tmp_path / "model.txt")
    np.save(tmp_path / "x.npy", VALID.x)
    code = f"""
import sys
sys.modules['gbmrank'] = None
import numpy as np, lightgbm as lgb
booster = lgb.Booster(model_file={str(tmp_path / "model.txt")!r})
np.save({str(tmp_path / "out.npy")!r}, booster.predict(np.load({str(tmp_path / "x.npy")!r})))
"""
    run_python(code)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), booster.predict(VALID.x))


@pytest.mark.parametrize(("bad", "shown"), [(np.inf, "1e+300"), (-np.inf, "-1e+300")])
def test_an_infinite_start_stops_training(bad, shown):
    """LightGBM stores infinity as 1e300."""
    start = np.zeros(TRAIN.n)
    start[TRAIN.sizes[0] + 1] = bad
    with pytest.raises(DataError) as caught:
        train(data=dataset(TRAIN, init_score=start))
    message = str(caught.value)
    assert f"row {TRAIN.sizes[0] + 1}, query 1, is {shown}" in message
    assert "init_score" in message


def test_a_start_that_is_not_a_number_never_arrives():
    """LightGBM stores NaN as 0, so nobody can notice; this shows that it still does."""
    start, zero = np.full(TRAIN.n, 0.25), np.full(TRAIN.n, 0.25)
    start[3], zero[3] = np.nan, 0.0
    assert trees(train(data=dataset(TRAIN, init_score=start))) == trees(
        train(data=dataset(TRAIN, init_score=zero))
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("call", [OBJECTIVE, NDCG], ids=str)
def test_scores_that_are_not_finite_are_refused(bad, call):
    scores = np.zeros(TRAIN.n)
    scores[TRAIN.sizes[0] + 1] = bad
    with pytest.raises(DataError, match=rf"row {TRAIN.sizes[0] + 1}, query 1, is {bad}"):
        call(scores, ready(TRAIN))


def test_labels_outside_the_gain_stop_training():
    low, high = TRAIN.y.copy(), TRAIN.y.copy()
    low[3], high[3] = -1.0, 40.0
    with pytest.raises(LabelRangeError, match=r"not negative, got -1; shift them"):
        train(data=lgb.Dataset(TRAIN.x, low, group=TRAIN.sizes))
    with pytest.raises(LabelRangeError, match=r"largest label is 40.*gain='linear'.*label_gain"):
        train(data=lgb.Dataset(TRAIN.x, high, group=TRAIN.sizes))
    linear = {**PARAMS, "objective": gbmrank.objective("pairwise", target="ndcg(gain=linear)")}
    assert train(linear, lgb.Dataset(TRAIN.x, high, group=TRAIN.sizes)).num_trees() == 5


def test_weights_that_differ_within_a_query_name_the_query():
    weight = np.ones(TRAIN.n)
    weight[TRAIN.sizes[0]] = 2.0
    params = {**PARAMS, "objective": gbmrank.objective("softmax")}
    with pytest.raises(WeightError, match=r"rows of query 1 have different weights.*pointwise"):
        train(params, dataset(TRAIN, weight=weight))
    with pytest.warns(GbmrankWarning, match="metrics weigh whole queries"):
        shown = NDCG(np.linspace(0, 1, TRAIN.n), ready(TRAIN, weight=weight))
    assert shown == NDCG(np.linspace(0, 1, TRAIN.n), ready(TRAIN))


def test_a_bad_weight_stops_training():
    """LightGBM makes NaN weights zero before anybody sees them."""
    weight = np.ones(TRAIN.n)
    weight[2] = np.nan
    with pytest.warns(GbmrankWarning, match="some weights of a data set are 0"):
        train(data=dataset(TRAIN, weight=weight))
    weight[2] = -1.0
    with pytest.raises(WeightError, match="at least 0; got -1"):
        train(data=dataset(TRAIN, weight=weight))


def test_weighted_gradients_are_summed_gradients_of_repeated_queries():
    times = np.arange(len(TRAIN.sizes)) % 3 + 1
    repeated = TRAIN.repeated(times)
    weighted = ready(TRAIN, weight=np.repeat(times.astype(float), TRAIN.sizes))
    scores = np.random.default_rng(0).normal(size=TRAIN.n)
    row_of = np.concatenate(
        [np.flatnonzero(TRAIN.qid == q) for q in np.repeat(np.arange(len(times)), times)]
    )
    parts = OBJECTIVE(scores[row_of], ready(repeated))
    for found, part in zip(OBJECTIVE(scores, weighted), parts, strict=True):
        summed = np.bincount(row_of, part, minlength=TRAIN.n)
        np.testing.assert_allclose(found, summed, rtol=2e-6, atol=1e-9)
    np.testing.assert_allclose(
        NDCG(scores, weighted)[1], NDCG(scores[row_of], ready(repeated))[1], rtol=1e-12
    )


def test_weighted_training_is_training_on_repeated_queries():
    times = np.arange(len(TRAIN.sizes)) % 3 + 1
    params = {**PARAMS, "min_data_in_bin": 1, "min_sum_hessian_in_leaf": 0.0}
    weighted = train(
        params, dataset(TRAIN, weight=np.repeat(times.astype(float), TRAIN.sizes)), rounds=8
    )
    repeated = train(params, dataset(TRAIN.repeated(times)), rounds=8)
    found, expected = (b.predict(VALID.x, raw_score=True) for b in (weighted, repeated))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    plain = train(params, rounds=8).predict(VALID.x, raw_score=True)
    assert np.abs(plain - expected).max() > 0.01  # weights matter here


def test_without_groups_all_rows_are_one_query():
    scores = np.random.default_rng(0).normal(size=TRAIN.n)
    grad, _ = OBJECTIVE(scores, lgb.Dataset(TRAIN.x, TRAIN.y).construct())
    expected, _ = OBJECTIVE.gradients(TRAIN.y, scores)
    np.testing.assert_allclose(grad, expected, rtol=1e-3, atol=1e-6)


def test_no_rows_give_empty_arrays():
    for column in OBJECTIVE(np.empty(0), np.empty(0), None, np.empty(0, np.int32)):
        assert column.shape == (0,)
        assert column.dtype == np.float32


@pytest.mark.parametrize("field", ["label", "group", "weight"])
def test_fields_that_are_set_one_by_one_are_noticed(field):
    """``Dataset.get_label`` and the like go on returning what they returned before."""
    turned = {
        "label": TRAIN.y.max() - TRAIN.y,
        "group": [TRAIN.n],
        "weight": np.repeat(np.linspace(0.1, 2.0, len(TRAIN.sizes)), TRAIN.sizes),
    }[field]
    data, before = ready(TRAIN), OBJECTIVE(np.zeros(TRAIN.n), ready(TRAIN))[0]
    assert OBJECTIVE(np.zeros(TRAIN.n), data)[0].tolist() == before.tolist()
    data.set_field(field, np.asarray(turned, np.int32 if field == "group" else np.float32))
    columns = {"label": TRAIN.y, "group": TRAIN.sizes, "weight": None, field: turned}
    fresh = lgb.Dataset(TRAIN.x, **columns).construct()
    after = OBJECTIVE(np.zeros(TRAIN.n), data)[0]
    assert after.tolist() == OBJECTIVE(np.zeros(TRAIN.n), fresh)[0].tolist()
    assert after.tolist() != before.tolist()


def test_subsets_of_files_that_lost_their_queries(tmp_path):
    path = str(tmp_path / "rows.bin")
    dataset(TRAIN).save_binary(path)
    params = {**PARAMS, "feature_pre_filter": False}

    def stored():
        return lgb.Dataset(path, params={**TREE_PARAMS, "feature_pre_filter": False})

    folds = gbmrank.query_folds(group=TRAIN.sizes, n_folds=3)
    with pytest.raises(GroupError, match=r"lost the queries of a subset .*query_folds\(dataset\)"):
        lgb.cv(params, stored(), 2, folds=folds)
    whole = stored()
    lgb.cv(params, whole, 2, folds=gbmrank.query_folds(whole, n_folds=3), feval=NDCG)


def test_several_scores_per_row_are_refused():
    with pytest.raises(DataError, match=r"passed \d+ scores for \d+ rows; .*num_class"):
        OBJECTIVE(np.zeros(2 * TRAIN.n), ready(TRAIN))


def test_reporting_on_the_training_set_does_not_change_the_model():
    data = dataset(TRAIN)
    reported = train(data=data, valid_sets=[data], feval=gbmrank.metric("ndcg@1,5,10"))
    assert trees(reported) == trees(train())


def test_a_query_of_more_than_ten_thousand_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(10_050, 3))
    y = (x[:, 0] > 2.2).astype(float)
    booster = train(data=lgb.Dataset(x, y, group=[10_050]), rounds=2)
    ranker = lgb.LGBMRanker(n_estimators=2, objective=OBJECTIVE, **TREE_PARAMS)
    ranker.fit(x, y, group=[10_050], eval_set=[(x, y)], eval_group=[[10_050]], eval_metric=NDCG)
    assert trees(ranker.booster_) == trees(booster)
    assert ranker.evals_result_["training"]["gbmrank_ndcg@10"][-1] > 0.9
    with pytest.raises(lgb.basic.LightGBMError, match="upper limit of 10000"):
        lgb.LGBMRanker(objective=OBJECTIVE, n_estimators=2, verbosity=-1).fit(x, y, group=[10_050])


class Boom(Exception):
    """An error only this file knows."""


def test_exceptions_of_a_plugin_reach_the_caller_with_its_name():
    class Broken(AbstractMetric):
        name: ClassVar[str] = "lightgbm_broken"

        def bind(self, data):
            raise Boom("in bind")

    gbmrank.register_metric(Broken)
    with pytest.raises(gbmrank.PluginError, match=r"_broken.*in bind") as caught:
        train(valid_sets=[dataset(VALID)], feval=gbmrank.metric("lightgbm_broken"))
    assert isinstance(caught.value.__cause__, Boom)


class BadGradients(AbstractObjective):
    """An objective whose gradient is not finite from the second call on."""

    name: ClassVar[str] = "bad_gradients"

    @property
    def hessian_trait(self):
        return "constant"

    def bind(self, data):
        return BoundBadGradients(data.groups)


class BoundBadGradients(AbstractBound):
    __slots__ = ("calls",)

    def fill(self, scores, out, *, single):
        self.calls = getattr(self, "calls", 0) + 1
        out.grad[:] = np.linspace(-1.0, 1.0, len(scores))
        out.hess[:] = 1.0
        if self.calls == 2:
            out.grad[TRAIN.sizes[0] + 1] = np.nan

    def losses(self, scores):
        return np.zeros(self.groups.n_queries)


def test_a_gradient_that_is_not_finite_stops_training():
    gbmrank.register_objective(BadGradients)
    with pytest.raises(NumericError) as caught:
        train({**PARAMS, "objective": gbmrank.objective("bad_gradients")})
    message = str(caught.value)
    assert "'bad_gradients' of this process returned gradient nan" in message
    assert "in query 1" in message


@pytest.mark.filterwarnings("ignore:all .* labels of a data set are 0")
def test_a_metric_that_is_undefined_everywhere_says_so():
    nothing = lgb.Dataset(VALID.x, np.zeros(VALID.n), group=VALID.sizes)
    with pytest.raises(DataError, match=r"ndcg@10 is undefined for every query.*empty='zero'"):
        train(valid_sets=[nothing], feval=NDCG)
    evals: dict = {}
    train(
        valid_sets=[lgb.Dataset(VALID.x, np.zeros(VALID.n), group=VALID.sizes)],
        feval=gbmrank.metric("ndcg@10", empty="zero"),
        callbacks=[lgb.record_evaluation(evals)],
    )
    assert evals["valid_0"]["gbmrank_ndcg_empty_zero@10"] == [0.0] * 5


def test_settings_carry_their_reasons():
    params = gbmrank.booster_params(OBJECTIVE, "lightgbm")
    assert dict(params) == {
        "metric": "None",
        "min_sum_hessian_in_leaf": 1e-6,
        "bagging_by_query": False,
    }
    assert params.reasons.keys() == params.keys()
    assert "10,000 rows" in params.reasons["metric"]
    assert "min_sum_hessian_in_leaf = 1e-06: " in str(params)
    with pytest.raises(ParameterError, match="lightgbm, xgboost; got 'catboost'"):
        gbmrank.booster_params(OBJECTIVE, "catboost")


def test_arguments_that_are_nothing_we_know_are_refused():
    with pytest.raises(DataError, match=r"expected \(scores, lightgbm.Dataset\).*got list"):
        OBJECTIVE([1.0, 0.0], [0.0, 0.0])


@pytest.mark.parametrize("call", [OBJECTIVE, NDCG])
def test_a_data_set_that_is_not_constructed_is_refused(call):
    with pytest.raises(DataError, match=r"not constructed yet.*call its construct\(\) first"):
        call(np.zeros(TRAIN.n), dataset(TRAIN))
    assert call(np.zeros(TRAIN.n), ready(TRAIN)) is not None


def test_the_wait_policy_is_advised_once(monkeypatch, caplog):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.setenv("GBMRANK_NUM_THREADS", "2")
    gradients._advise_on_waiting.cache_clear()
    with caplog.at_level(logging.INFO, "gbmrank"):
        train(rounds=2)
    assert caplog.text.count("OMP_WAIT_POLICY=PASSIVE") == 1
    gradients._advise_on_waiting.cache_clear()
