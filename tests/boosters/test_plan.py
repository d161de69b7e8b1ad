"""One training of a ranker: what it validates on, when it stops, what it rejects."""

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import gbmrank
from gbmrank.api.committees import ranking_objective
from gbmrank.api.training_plans import training_plan
from gbmrank.boosters.base import Job, Part
from gbmrank.boosters.lightgbm.parameters import PARAMETERS
from gbmrank.boosters.plan import Native, Plan, train
from gbmrank.boosters.settings import QueryBagging
from gbmrank.boosters.supported import booster_named
from gbmrank.data import RankingData
from gbmrank.errors import (
    ConfigError,
    DataError,
    GbmrankWarning,
    LeakageWarning,
    NoProgressWarning,
    NumericError,
    ParameterError,
    WeightError,
)
from gbmrank.objectives import AbstractBound, AbstractObjective
from tests.ranking_tasks import Task, agreement_metric, is_before, make_task

BACKENDS = ["lightgbm", "xgboost"]
TITLES = {"lightgbm": "LightGBM", "xgboost": "XGBoost"}
NDCG = gbmrank.metric("ndcg@10")
DROPS = pytest.mark.skipif(is_before("xgboost", 3, 4), reason="needs booster=dart before 3.4")


def part(task: Task, prefix: str = "", weight: Any = None) -> Part:
    qid = [f"{prefix}{query}" for query in task.qid]
    return Part(task.x, RankingData.from_arrays(task.y, qid=qid, weight=weight))


def plan(backend: str, **changed: Any) -> Plan:
    given: dict[str, Any] = {"objective": "ranknet", "metric": "ndcg@10", "rounds": 8}
    return training_plan(backend=backend, **{**given, **changed})


TASK, OTHER = make_task(seed=0), make_task(seed=1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_trains_what_the_booster_trains_with_the_same_parameters(backend):
    made = train(plan(backend, params={"max_depth": 3}), part(TASK))
    objective = gbmrank.objective("ranknet")
    params = {**gbmrank.booster_params(objective, backend), "seed": 0, "max_depth": 3}
    if backend == "lightgbm":
        rows = lgb.Dataset(TASK.x, TASK.y, group=TASK.sizes)
        booster = lgb.train({**params, "objective": objective, "verbosity": -1}, rows, 8)
        expected = booster.predict(TASK.x)
    else:
        rows = xgb.QuantileDMatrix(TASK.x, TASK.y, group=TASK.sizes)
        expected = xgb.train(params, rows, 8, obj=objective).predict(rows)
    np.testing.assert_array_equal(made.scores(TASK.x), expected)
    assert made.history == {}
    assert made.best_round == 7


@pytest.mark.parametrize("backend", BACKENDS)
def test_history_holds_every_metric_of_every_set_in_full(backend):
    valid = {"a-b": part(OTHER, "v"), "train": part(TASK)}
    made = train(
        plan(backend, metric=["ndcg@10", "pairwise_disagreement"], keep_best=False),
        part(TASK, "t"),
        valid,
    )
    assert list(made.history) == ["a-b", "train"]
    for name, task in (("a-b", OTHER), ("train", TASK)):
        assert list(made.history[name]) == ["ndcg@10", "pairwise_disagreement"]
        for text, values in made.history[name].items():
            assert len(values) == 8
            exact = gbmrank.metric(text).score(task.y, made.scores(task.x), qid=task.qid)
            assert values[-1] == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_training_set_itself_can_be_a_validation_set(backend):
    own = part(TASK)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeakageWarning)
        made = train(plan(backend, keep_best=False), own, {"train": own})
    exact = NDCG.score(TASK.y, made.scores(TASK.x), qid=TASK.qid)
    assert made.history["train"]["ndcg@10"][-1] == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("higher", [True, False])
@pytest.mark.parametrize("name", ["ndcg_x", "spear", "err_rate", "map_x", "auc_x", "pre_x"])
def test_stopping_goes_by_direction_and_never_by_name(backend, higher, name):
    called = f"{name}_{'up' if higher else 'down'}_{backend}"
    measure = agreement_metric(called, higher)
    made = train(
        plan(backend, metric=measure, rounds=40, early_stopping=4, params={"learning_rate": 0.3}),
        part(TASK, "t"),
        {"valid": part(OTHER, "v")},
    )
    values = np.array(made.history["valid"][called])
    best = int(np.argmax(values if higher else -values))
    assert made.best_round == best
    assert len(values) in (best + 5, 40)
    assert best > 0
    assert made.fitted.n_rounds == best + 1
    exact = measure.score(OTHER.y, made.scores(OTHER.x), qid=OTHER.qid)
    assert exact == pytest.approx(values[best], abs=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_last_set_and_the_first_metric_decide(backend):
    made = train(
        plan(backend, metric="ndcg@10, pairwise_disagreement", rounds=30, early_stopping=3),
        part(TASK, "t"),
        {"one": part(make_task(seed=2), "o"), "two": part(OTHER, "v")},
    )
    assert made.best_round == int(np.argmax(made.history["two"]["ndcg@10"]))


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_best_round_is_kept_unless_all_rounds_are_asked_for(backend):
    data, valid = part(TASK, "t"), {"valid": part(OTHER, "v")}
    quick = {"learning_rate": 0.8}
    best = train(plan(backend, rounds=25, params=quick), data, valid)
    last = train(plan(backend, rounds=25, params=quick, keep_best=False), data, valid)
    assert best.best_round == last.best_round < 24
    assert (best.fitted.n_rounds, last.fitted.n_rounds) == (best.best_round + 1, 25)
    assert not np.array_equal(best.scores(TASK.x), last.scores(TASK.x))


def test_rounds_are_counted():
    seen: list[int] = []
    train(plan("lightgbm"), part(TASK), on_round=seen.append)
    assert seen == list(range(1, 9))


@pytest.mark.parametrize(
    ("backend", "name"), [("lightgbm", "lambdarank"), ("xgboost", "rank:ndcg")]
)
def test_native_objectives_are_the_boosters_own(backend, name):
    made = train(plan(backend, objective=f"native:{name}"), part(TASK))
    if backend == "lightgbm":
        rows = lgb.Dataset(TASK.x, TASK.y, group=TASK.sizes)
        expected = lgb.train({"objective": name, "verbosity": -1}, rows, 8).predict(TASK.x)
    else:
        rows = xgb.QuantileDMatrix(TASK.x, TASK.y, group=TASK.sizes)
        expected = xgb.train({"objective": name}, rows, 8).predict(rows)
    np.testing.assert_array_equal(made.scores(TASK.x), expected)
    assert str(ranking_objective(f" native:{name}")) == f"native:{name}"
    assert ranking_objective(Native(name)) == Native(name)


@pytest.mark.parametrize("backend", BACKENDS)
def test_weights_of_queries_are_those_of_repeated_queries(backend):
    times = np.random.default_rng(0).integers(1, 4, len(TASK.sizes))
    twice = TASK.repeated(times)
    # Features have few values, so repeated rows do not move bins; small trees have no equal splits.
    small = {"max_depth": 2} | ({"min_data_in_leaf": 1} if backend == "lightgbm" else {})
    settings = plan(backend, objective="pairwise", params=small)
    weighted = train(settings, part(TASK, weight=times))
    repeated = train(settings, Part(twice.x, RankingData.from_arrays(twice.y, group=twice.sizes)))
    np.testing.assert_allclose(weighted.scores(TASK.x), repeated.scores(TASK.x), atol=1e-5)
    assert not np.allclose(weighted.scores(TASK.x), train(settings, part(TASK)).scores(TASK.x))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("objective", ["cossock_zhang", "pairwise", "ranknet", "query_rmse"])
def test_weights_of_items_reach_the_objective_of_either_booster(backend, objective):
    """The first round goes by the gradients that array calls give for the same weights."""
    weight = np.random.default_rng(0).uniform(0.5, 2.0, TASK.n)
    settings = plan(backend, objective=objective)
    made = train(settings, part(TASK, weight=weight))
    assert not np.array_equal(made.scores(TASK.x), train(settings, part(TASK)).scores(TASK.x))
    seen = []

    class Spy:
        template = gbmrank.objective(objective).template

        def __call__(self, scores, data):
            seen.append((scores, gbmrank.objective(objective)(scores, data)))
            return seen[-1][1]

        def __deepcopy__(self, memo):
            return self

    own: dict[str, Any] = {"train": part(TASK, weight=weight), "objective": Spy(), "metrics": ()}
    booster_named(backend).train(Job(**own, params={}, rounds=2))
    scores, (grad, _) = seen[-1]
    expected, _ = gbmrank.objective(objective).gradients(
        TASK.y, scores, group=TASK.sizes, weight=weight
    )
    np.testing.assert_allclose(grad, expected, rtol=1e-4, atol=1e-5)


def test_weights_of_items_need_an_objective_that_takes_them():
    own = part(TASK, weight=np.random.default_rng(0).uniform(0.5, 2.0, TASK.n))
    for backend in BACKENDS:
        with pytest.raises(WeightError, match="pairwise, comparison, swap, pointwise"):
            train(plan(backend, objective="softmax"), own)
    with pytest.raises(WeightError, match=r"native:rank:ndcg weighs whole queries.*query '0'"):
        train(plan("xgboost", objective="native:rank:ndcg"), own)


@pytest.mark.parametrize("backend", BACKENDS)
def test_metrics_leave_weights_of_items_out_with_a_warning(backend):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, TASK.n)
    settings = plan(backend, objective="pairwise")
    with pytest.warns(GbmrankWarning, match="metrics weigh whole queries") as caught:
        weighed = train(settings, part(TASK), {"valid": part(TASK, "v", weight)})
    assert len([one for one in caught if "weigh whole queries" in str(one.message)]) == 1
    plain = train(settings, part(TASK), {"valid": part(TASK, "v")})
    assert weighed.history == plain.history


@pytest.mark.parametrize("main", sorted(PARAMETERS.aliases))
def test_the_other_names_are_all_those_lightgbm_knows(main):
    theirs = lgb.basic._ConfigAliases.get(main)
    assert {main, *PARAMETERS.aliases[main]} == theirs


def test_a_parameter_under_another_name_wins_over_what_the_objective_asks_for():
    with pytest.warns(NoProgressWarning, match="min_sum_hessian_in_leaf=1e\\+06 is too large"):
        train(plan("lightgbm", params={"min_child_weight": 1e6}), part(TASK))
    assert PARAMETERS.by_main_names({"eta": 1, "x": 2}) == {"learning_rate": 1, "x": 2}
    with pytest.raises(ConfigError, match="eta and shrinkage_rate are two names"):
        PARAMETERS.by_main_names({"eta": 1, "shrinkage_rate": 1})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("reg_lambda", "lambda_l2"),
        ("reg_alpha", "lambda_l1"),
        ("max_leaves", "num_leaves"),
        ("colsample_bytree", "feature_fraction"),
        ("sub_feature", "colsample_bytree"),
    ],
)
def test_a_parameter_that_gbmrank_does_not_read_has_one_name_too(one, other):
    with pytest.raises(ConfigError, match=f"{one} and {other}"):
        train(plan("lightgbm", params={one: 1, other: 2}), part(TASK))
    assert PARAMETERS.by_main_names({one: 1}) == {one: 1}


@pytest.mark.parametrize(
    ("backend", "params", "message"),
    [
        ("lightgbm", {"objective": "lambdarank"}, "native:lambdarank"),
        ("lightgbm", {"application": "lambdarank"}, "native:lambdarank"),
        ("lightgbm", {"metrics": "ndcg"}, "metric="),
        ("lightgbm", {"ndcg_at": [5]}, "ndcg@10"),
        ("lightgbm", {"num_trees": 5}, "n_estimators="),
        ("lightgbm", {"n_iter_no_change": 5}, "early_stopping_rounds="),
        ("lightgbm", {"task": "refit"}, "cannot refit"),
        ("lightgbm", {"boosting_type": "rf"}, "only for its own objectives"),
        ("lightgbm", {"num_classes": 3}, "one score per row"),
        ("lightgbm", {"label_gain": [0, 1]}, "target=dcg(gain=linear)"),
        ("lightgbm", {"lambdarank_truncation_level": 5}, "has no effect with comparison"),
        ("lightgbm", {"unbalance": True}, "pass weights"),
        ("lightgbm", {"sigmoid": 2.0}, "loss=logistic(sigma=2)"),
        (
            "lightgbm",
            {"bagging_by_query": True, "data_sample_strategy": "goss"},
            "cannot be combined",
        ),
        (
            "lightgbm",
            {"bagging_by_query": True, "bagging_fraction": 0, "bagging_freq": 1},
            "above 0",
        ),
        ("xgboost", {"objective": "rank:ndcg"}, "native:rank:ndcg"),
        ("xgboost", {"eval_metric": "ndcg"}, "metric="),
        ("xgboost", {"n_estimators": 5}, "n_estimators="),
        ("xgboost", {"early_stopping_rounds": 5}, "early_stopping_rounds="),
        ("xgboost", {"num_class": 2}, "one score per row"),
        ("xgboost", {"multi_strategy": "multi_output_tree"}, "one score per row"),
        ("xgboost", {"lambdarank_pair_method": "mean"}, "has no effect with comparison"),
        ("xgboost", {"ndcg_exp_gain": False}, "target=dcg(gain=linear)"),
        ("xgboost", {"base_score": float("nan")}, "finite"),
        ("catboost", {}, "backend must be one of lightgbm, xgboost"),
    ],
)
def test_parameters_that_would_do_nothing_or_harm_are_rejected(backend, params, message):
    with pytest.raises((ConfigError, DataError)) as caught:
        train(plan(backend, params=params), part(TASK))
    assert message in str(caught.value)


def test_native_objectives_keep_their_parameters():
    params = {"lambdarank_truncation_level": 3, "bagging_by_query": True}
    one = train(plan("lightgbm", objective="native:lambdarank", params=params), part(TASK))
    two = train(plan("lightgbm", objective="native:lambdarank"), part(TASK))
    assert not np.array_equal(one.scores(TASK.x), two.scores(TASK.x))
    forest = {"boosting": "rf", "bagging_fraction": 0.5, "bagging_freq": 1}
    train(plan("lightgbm", objective="native:regression", params=forest), part(TASK))


def test_queries_are_sampled_as_asked_for():
    objective, sizes = gbmrank.objective("ranknet"), TASK.sizes
    rows = lgb.Dataset(TASK.x, TASK.y, group=sizes).construct()
    whole = objective(np.zeros(TASK.n), rows)
    bagged = QueryBagging(objective, sizes, 0.25, 2, seed=3)
    drawn = []
    for _ in range(6):
        grad, hess = bagged(np.zeros(TASK.n), rows)
        kept = np.add.reduceat(hess, np.r_[0, np.cumsum(sizes)[:-1]]) > 0
        inside = np.repeat(kept, sizes)
        assert kept.sum() == round(0.25 * len(sizes))
        np.testing.assert_array_equal(grad[inside], whole[0][inside])
        assert not grad[~inside].any()
        drawn.append(kept)
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[1], drawn[2])
    again = QueryBagging(objective, sizes, 0.25, 2, seed=3)(np.zeros(TASK.n), rows)[0]
    np.testing.assert_array_equal(again != 0, np.repeat(drawn[0], sizes) & (whole[0] != 0))


def test_xgboost_is_not_given_what_gbmrank_draws_queries_by():
    params = {"bagging_by_query": True, "bagging_fraction": 0.5, "bagging_freq": 1}
    made = train(plan("xgboost", params=params), part(TASK))  # XGBoost would warn, an error here
    whole = train(plan("xgboost", params={"bagging_by_query": False}), part(TASK))
    np.testing.assert_array_equal(
        whole.scores(TASK.x), train(plan("xgboost"), part(TASK)).scores(TASK.x)
    )
    assert not np.array_equal(made.scores(TASK.x), whole.scores(TASK.x))


def test_bagging_by_query_trains_a_good_model_and_another_for_another_seed():
    params = {"bagging_by_query": True, "subsample": 0.5, "subsample_freq": 1}
    plain = train(plan("lightgbm", rounds=30), part(TASK))
    scores = [
        train(plan("lightgbm", rounds=30, params=params, seed=seed), part(TASK)).scores(TASK.x)
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])
    best = NDCG.score(TASK.y, plain.scores(TASK.x), qid=TASK.qid)
    tied = NDCG.score(TASK.y, np.zeros(TASK.n), qid=TASK.qid)
    assert NDCG.score(TASK.y, scores[0], qid=TASK.qid) > best - 0.2 * (best - tied)
    off = train(plan("lightgbm", rounds=30, params={"bagging_by_query": True}), part(TASK))
    np.testing.assert_array_equal(off.scores(TASK.x), plain.scores(TASK.x))


def test_queries_are_drawn_anew_after_as_many_rounds_as_asked_for():
    def scores(every, rounds):
        params = {"bagging_by_query": True, "bagging_fraction": 0.5, "bagging_freq": every}
        return train(plan("lightgbm", rounds=rounds, params=params), part(TASK)).scores(TASK.x)

    np.testing.assert_array_equal(scores(1, 1), scores(3, 1))
    assert not np.array_equal(scores(1, 2), scores(2, 2))
    np.testing.assert_array_equal(scores(2, 2), scores(3, 2))
    assert not np.array_equal(scores(2, 3), scores(3, 3))
    whole = train(plan("lightgbm", rounds=3), part(TASK)).scores(TASK.x)
    np.testing.assert_array_equal(scores(0, 3), whole)


@pytest.mark.parametrize("off", ["false", "False", "-", " - ", "0", 0, np.False_, None, ""])
def test_bagging_by_query_is_switched_off_in_every_spelling(off):
    rows = {"bagging_fraction": 0.5, "bagging_freq": 1, "bagging_seed": 1}
    given = train(plan("lightgbm", params={**rows, "bagging_by_query": off}), part(TASK))
    expected = train(plan("lightgbm", params=rows), part(TASK))
    np.testing.assert_array_equal(given.scores(TASK.x), expected.scores(TASK.x))


@pytest.mark.parametrize("on", ["true", "+", "1", 1, np.True_])
def test_bagging_by_query_is_switched_on_in_every_spelling(on):
    drawn = {"bagging_fraction": "0.5", "bagging_freq": "1", "bagging_seed": "1"}
    given = train(plan("lightgbm", params={**drawn, "bagging_by_query": on}), part(TASK))
    expected = train(plan("lightgbm", params={**drawn, "bagging_by_query": True}), part(TASK))
    np.testing.assert_array_equal(given.scores(TASK.x), expected.scores(TASK.x))
    goss = {"bagging_by_query": on, "data_sample_strategy": "goss"}
    with pytest.raises(ConfigError, match="cannot be combined"):
        train(plan("lightgbm", params=goss), part(TASK))


@pytest.mark.parametrize(
    ("backend", "params"),
    [
        ("lightgbm", {"boosting": "dart"}),
        ("xgboost", {"booster": "dart"}),
        pytest.param("xgboost", {"rate_drop": 0.2}, marks=DROPS),
        pytest.param("xgboost", {"one_drop": "1"}, marks=DROPS),
    ],
)
@pytest.mark.filterwarnings("ignore:.*booster=dart. is deprecated:UserWarning")  # XGBoost 3.4
def test_models_that_change_earlier_rounds_are_not_cut(backend, params):
    settings = plan(backend, params=params, rounds=12)
    made = train(settings, part(TASK, "t"), {"valid": part(OTHER, "v")})
    assert made.fitted.n_rounds == 12
    with pytest.raises(ConfigError, match=f"does not work with {next(iter(params))}="):
        train(replace(settings, early_stopping=3), part(TASK), {"valid": part(OTHER, "v")})


@pytest.mark.filterwarnings("ignore:.*booster=gblinear. is deprecated:UserWarning")  # XGBoost 3.4
def test_a_linear_booster_trains():
    made = train(
        plan("xgboost", params={"booster": "gblinear", "learning_rate": 0.3}, rounds=20),
        part(TASK, "t"),
        {"valid": part(OTHER, "v")},
    )
    assert made.history["valid"]["ndcg@10"][-1] > 0.8
    with pytest.raises(ConfigError, match="gblinear"):
        made.fitted.importances()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("params", "cause"),
    [
        ({"min_child_weight": 1e5}, "=100000 is too large for the scale of this loss"),
        ({"gamma": 1e9, "min_split_gain": 1e9}, "may exceed the gain of every split"),
        ({"max_depth": 3}, "features that are constant within a query"),
    ],
)
def test_a_model_that_orders_nothing_warns_with_the_cause(backend, params, cause):
    task = TASK
    other = {"gamma": "lightgbm", "min_split_gain": "xgboost"}
    own = {name: value for name, value in params.items() if other.get(name) != backend}
    if "max_depth" in own:
        task = Task(
            np.repeat(np.arange(len(TASK.sizes)) % 7.0, TASK.sizes)[:, None], TASK.y, TASK.sizes
        )
    with pytest.warns(NoProgressWarning, match="all scores of every query are tied") as caught:
        train(plan(backend, params=own), part(task))
    assert cause in str(caught[0].message)
    if "min_child_weight" in params:
        assert "Set it to " in str(caught[0].message)  # a value that fits


def test_a_learning_rate_of_zero_and_few_rows_are_named():
    with pytest.warns(NoProgressWarning, match="the learning rate is 0"):
        train(plan("xgboost", params={"eta": 0}), part(TASK))
    few = part(TASK.rows(0, 2))
    with pytest.warns(NoProgressWarning, match="min_data_in_leaf"):
        train(plan("lightgbm"), few)
    with pytest.warns(NoProgressWarning, match="features that are constant"):
        train(plan("lightgbm"), Part(np.ones((TASK.n, 2)), part(TASK).data))


@pytest.mark.parametrize(
    ("backend", "params", "message"),
    [
        ("lightgbm", {"learning_rate": 0}, "LightGBM: .*learning_rate"),
        ("xgboost", {"max_depth": -4}, "XGBoost: .*max_depth"),
    ],
)
def test_what_a_booster_rejects_is_an_error_of_ours_in_its_words(backend, params, message):
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        train(plan(backend, params=params), part(TASK))


@pytest.mark.parametrize("backend", BACKENDS)
def test_bad_sets_are_rejected(backend):
    settings = plan(backend)
    flat = Part(TASK.x, RankingData.from_arrays(np.ones(TASK.n), group=TASK.sizes))
    with pytest.raises(DataError, match="nothing to learn"):
        train(settings, flat)
    single = Part(TASK.x, RankingData.from_arrays(TASK.y, qid=np.arange(TASK.n)))
    with pytest.raises(DataError, match="nothing to learn"):
        train(settings, single)
    with pytest.raises(DataError, match="0 feature"):
        train(settings, Part(TASK.x[:, :0], part(TASK).data))
    with pytest.raises(DataError, match="5 rows of features and"):
        train(settings, Part(TASK.x[:5], part(TASK).data))
    with pytest.raises(DataError, match="later has 3 features, the training set has 5"):
        train(settings, part(TASK), {"later": Part(OTHER.x[:, :3], part(OTHER, "v").data)})
    with pytest.warns(LeakageWarning, match=r"\b40 queries.*valid"):
        train(settings, part(TASK), {"valid": Part(TASK.x, part(TASK).data)})


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"rounds": 0}, ParameterError, "rounds must be a whole number of at least 1, got 0"),
        ({"rounds": 2.5}, ParameterError, "got 2.5"),
        ({"rounds": True}, ParameterError, "got True"),
        ({"early_stopping": 0}, ParameterError, "early_stopping must be"),
        ({"early_stopping": 5}, ConfigError, "needs a validation set"),
    ],
)
def test_bad_plans_are_rejected(changed, error, message):
    with pytest.raises(error, match=message):
        train(plan("lightgbm", **changed), part(TASK))


class _BreakingBound(AbstractBound):
    """RankNet whose gradient is not a number in row 17 from the fourth round on."""

    def __init__(self, data: RankingData) -> None:
        super().__init__(data.groups)
        self.inner, self.calls = gbmrank.objective("ranknet").bind(data), 0

    def fill(self, scores, out, *, single):
        self.calls += 1
        self.inner.fill(scores, out, single=single)
        if self.calls > 3:  # once per round: the first also measures the curvature of ties
            out.grad[17] = np.nan

    def losses(self, scores):
        return self.inner.losses(scores)


@dataclass(frozen=True, slots=True)
class Breaking(AbstractObjective):
    name: ClassVar[str] = "breaking"

    @property
    def hessian_trait(self):
        return "exact"

    def bind(self, data: RankingData) -> AbstractBound:
        return _BreakingBound(data)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_gradient_that_is_not_finite_stops_and_keeps_the_model(backend):
    gbmrank.register_objective(Breaking)
    with pytest.raises(NumericError) as caught:
        train(plan(backend, objective="breaking"), part(TASK))
    message = str(caught.value)
    assert "breaking" in message
    assert caught.value.__notes__ == [f"in round 4 of 8, {TITLES[backend]}"]
    query = int(np.searchsorted(np.cumsum(TASK.sizes), 17, side="right"))
    assert f"query {str(query)!r}" in message  # the id it was given
    model: Any = caught.value.model
    assert model.n_rounds == 3
    expected = train(plan(backend, rounds=3), part(TASK)).scores(TASK.x)
    np.testing.assert_allclose(model.scores(TASK.x), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("backend", "meant"), [("lightgbm", "num_leaves"), ("xgboost", "max_leaves")]
)
def test_a_misspelt_parameter_is_suggested_by_its_main_name(backend, meant):
    with pytest.raises(ConfigError, match=rf"'num_leafs'; did you mean {meant}\?"):
        train(plan(backend, params={"num_leafs": 3}), part(TASK))
