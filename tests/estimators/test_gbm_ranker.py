"""GBMRanker: rows in any order and form, stopping, scores, guards."""

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.base import clone

import gbmrank
from gbmrank import GBMRanker
from gbmrank.api.training_plans import training_plan
from gbmrank.boosters.base import Part
from gbmrank.boosters.plan import train
from gbmrank.errors import (
    CalibrationWarning,
    ConfigError,
    DataError,
    GroupError,
    LeakageWarning,
    MetricError,
    NoProgressWarning,
    NumericError,
    ParameterError,
    UnknownNameError,
    WeightError,
)
from gbmrank.theory.verdicts import calibration
from tests.boosters.test_plan import Breaking
from tests.formulas import each
from tests.ranking_tasks import is_before, make_task, run_python

BACKENDS = ["lightgbm", "xgboost"]
TASK, OTHER = make_task(seed=0), make_task(seed=1)
VALID_QID = OTHER.qid + 1000
NAMES = ["a", "b", "c", "d", "e"]
MIXED = np.random.default_rng(3).permutation(TASK.n)


def ranker(backend: str = "lightgbm", **params: Any) -> GBMRanker:
    return GBMRanker(**{"backend": backend, "n_estimators": 8, **params})


def fitted(backend: str = "lightgbm", **params: Any) -> GBMRanker:
    return ranker(backend, **params).fit(TASK.x, TASK.y, qid=TASK.qid)


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_is_the_one_training(backend):
    model = fitted(backend, objective="ranknet", max_depth=3, seed=4)
    plan = training_plan(
        objective="ranknet",
        metric="ndcg@10",
        backend=backend,
        rounds=8,
        params={"max_depth": 3},
        seed=4,
    )
    data = gbmrank.RankingData.from_arrays(TASK.y, qid=TASK.qid)
    np.testing.assert_array_equal(
        model.predict(TASK.x), train(plan, Part(TASK.x, data)).scores(TASK.x)
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_in_any_order_give_the_same_model(backend):
    """Only the order of queries and of rows within them differs, so sums differ by rounding."""
    model = ranker(backend, max_depth=3).fit(TASK.x, TASK.y, qid=TASK.qid)
    ids = np.array([f"q{query:03d}" for query in TASK.qid])
    mixed = ranker(backend, max_depth=3).fit(TASK.x[MIXED], TASK.y[MIXED], qid=ids[MIXED])
    np.testing.assert_allclose(mixed.predict(TASK.x), model.predict(TASK.x), atol=1e-5)
    np.testing.assert_array_equal(model.predict(TASK.x[MIXED]), model.predict(TASK.x)[MIXED])
    weights = np.random.default_rng(0).uniform(0.5, 2, len(TASK.sizes))[TASK.qid]
    one = ranker(backend, max_depth=3).fit(TASK.x, TASK.y, qid=TASK.qid, sample_weight=weights)
    two = ranker(backend, max_depth=3).fit(
        TASK.x[MIXED], TASK.y[MIXED], qid=TASK.qid[MIXED], sample_weight=weights[MIXED]
    )
    np.testing.assert_allclose(one.predict(TASK.x), two.predict(TASK.x), atol=1e-5)
    assert not np.allclose(one.predict(TASK.x), model.predict(TASK.x), atol=1e-3)


def as_form(form: str, x: Any) -> Any:
    return {
        "list": x.tolist,
        "float32": lambda: x.astype(np.float32),
        "fortran": lambda: np.asfortranarray(x),
        "pandas": lambda: pd.DataFrame(x, columns=NAMES),
        "polars": lambda: pl.DataFrame(x, schema=NAMES),
        "pyarrow": lambda: pa.table(dict(zip(NAMES, x.T, strict=True))),
        "csr": lambda: scipy.sparse.csr_matrix(x),
        "csc": lambda: scipy.sparse.csc_array(x),
    }[form]()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "form", ["list", "float32", "fortran", "pandas", "polars", "pyarrow", "csr", "csc"]
)
def test_features_of_every_form_give_the_same_model(backend, form):
    """Values are whole numbers from 1, so every form holds them exactly and none is missing."""
    x = TASK.x + 1.0
    valid = OTHER.x + 1.0
    if form == "polars" and backend == "lightgbm" and is_before("lightgbm", 4, 7):
        with pytest.raises(DataError, match=r"pip install 'lightgbm>=4\.7', or pass X\.to_pandas"):
            ranker(backend).fit(as_form(form, x), TASK.y, qid=TASK.qid)
        return
    if form == "pyarrow" and backend == "lightgbm" and is_before("lightgbm", 4, 7):
        pytest.importorskip("cffi")
    plain = ranker(backend).fit(x[MIXED], TASK.y[MIXED], qid=TASK.qid[MIXED])
    model = ranker(backend, early_stopping_rounds=8).fit(
        as_form(form, x[MIXED]),
        TASK.y[MIXED],
        qid=TASK.qid[MIXED],
        eval_set=(as_form(form, valid), OTHER.y),
        eval_qid=VALID_QID,
    )
    kept = ranker(backend, n_estimators=model.best_iteration_ + 1).fit(
        x[MIXED], TASK.y[MIXED], qid=TASK.qid[MIXED]
    )
    np.testing.assert_array_equal(model.predict(as_form(form, x)), kept.predict(x))
    assert plain.n_features_in_ == model.n_features_in_ == 5
    framed = form in ("pandas", "polars", "pyarrow")
    assert hasattr(model, "feature_names_in_") == framed
    if framed:
        assert model.feature_names_in_.tolist() == NAMES
        assert model.booster_.feature_name() == NAMES if backend == "lightgbm" else True
        turned = as_form("pandas", x)[NAMES[::-1]]
        with pytest.raises(DataError, match="not those of the training data: got e, d"):
            model.predict(turned)
        with pytest.raises(DataError, match="the columns of valid_0 are not those"):
            ranker(backend).fit(
                as_form(form, x),
                TASK.y,
                qid=TASK.qid,
                eval_set=(turned, TASK.y),
                eval_qid=VALID_QID,
            )


@pytest.mark.parametrize("backend", BACKENDS)
def test_names_that_boosters_refuse_are_changed_and_kept(backend):
    names = ["a b", "a_b", "x[0]", 'say "hi"', "<script>"]
    frame = pd.DataFrame(TASK.x, columns=names)
    model = ranker(backend).fit(frame, TASK.y, qid=TASK.qid)
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(model.predict(frame), fitted(backend).predict(TASK.x))
    shown = model.booster_.feature_name() if backend == "lightgbm" else model.booster_.feature_names
    assert shown == ["a_b", "a_b_1", "x_0_", "say__hi_", "_script>"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_categories_of_a_frame_are_used(backend):
    codes = pd.Categorical.from_codes((TASK.x[:, 0] * 5 % 8).astype(int), list("hgfedcba"))
    frame = pd.DataFrame({"kind": codes, "other": TASK.x[:, 1]})
    model = ranker(backend).fit(frame.iloc[MIXED], TASK.y[MIXED], qid=TASK.qid[MIXED])
    assert model.score(frame, TASK.y, qid=TASK.qid) > 0.85
    one = frame.iloc[[3]]
    np.testing.assert_array_equal(model.predict(one), model.predict(frame)[[3]])


@pytest.mark.parametrize("backend", BACKENDS)
def test_score_is_the_mean_over_queries_and_larger_is_better(backend):
    model = fitted(backend, metric=["ndcg@5", "map(threshold=1)"])
    scores = model.predict(TASK.x)
    per_query = gbmrank.metric("ndcg@5").per_query(TASK.y, scores, qid=TASK.qid)
    assert model.score(TASK.x, TASK.y, qid=TASK.qid) == pytest.approx(np.nanmean(per_query))
    mixed = model.score(TASK.x[MIXED], TASK.y[MIXED], qid=TASK.qid[MIXED])
    assert mixed == pytest.approx(np.nanmean(per_query))
    weight = np.arange(1.0, len(TASK.sizes) + 1)
    weighted = model.score(TASK.x, TASK.y, qid=TASK.qid, sample_weight=weight)
    known = ~np.isnan(per_query)
    assert weighted == pytest.approx(np.average(per_query[known], weights=weight[known]))
    model.set_params(metric="pairwise_disagreement")
    value = gbmrank.metric("pairwise_disagreement").score(TASK.y, scores, qid=TASK.qid)
    assert model.score(TASK.x, TASK.y, qid=TASK.qid) == pytest.approx(-value)
    with pytest.raises(GroupError, match="enable_metadata_routing"):
        model.score(TASK.x, TASK.y)


@pytest.mark.parametrize("backend", BACKENDS)
def test_ranks_are_those_of_the_scores(backend):
    model = fitted(backend)
    ranks = model.rank(TASK.x[MIXED], qid=TASK.qid[MIXED])
    scores = model.predict(TASK.x[MIXED])
    for query in range(len(TASK.sizes)):
        own = np.flatnonzero(TASK.qid[MIXED] == query)
        expected = np.argsort(np.argsort(-scores[own], kind="stable"), kind="stable") + 1
        assert ranks[own].tolist() == expected.tolist()


@pytest.mark.filterwarnings("ignore::gbmrank.errors.CalibrationWarning")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("metric", ["ndcg@10", "pairwise_disagreement"])
def test_stopping_keeps_the_best_round(backend, metric):
    model = ranker(backend, metric=metric, n_estimators=60, learning_rate=0.5, seed=1)
    model.set_params(early_stopping_rounds=5, objective__target="identity")
    model.fit(
        TASK.x,
        TASK.y,
        qid=TASK.qid,
        eval_set=[(TASK.x, TASK.y), (OTHER.x, OTHER.y)],
        eval_qid=[TASK.qid - 1000, VALID_QID],
        eval_names=["own", "held out"],
    )
    assert list(model.evals_result_) == ["own", "held out"]
    values = np.array(model.evals_result_["held out"][metric])
    best = int(np.argmin(values) if metric == "pairwise_disagreement" else np.argmax(values))
    assert 0 < model.best_iteration_ == best < 59
    assert len(values) == best + 6
    score = model.score(OTHER.x, OTHER.y, qid=OTHER.qid)
    assert abs(score) == pytest.approx(values[best], abs=1e-6)
    rounds = model.booster_.current_iteration if backend == "lightgbm" else None
    count = rounds() if rounds else model.booster_.num_boosted_rounds()
    assert count == best + 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_stopping_all_rounds_are_kept(backend):
    model = ranker(backend, learning_rate=0.8, n_estimators=25)
    model.fit(TASK.x, TASK.y, qid=TASK.qid, eval_set=[(OTHER.x, OTHER.y)], eval_qid=[VALID_QID])
    plain = fitted(backend, learning_rate=0.8, n_estimators=25)
    np.testing.assert_array_equal(model.predict(TASK.x), plain.predict(TASK.x))
    assert model.best_iteration_ < plain.best_iteration_ == 24
    assert plain.evals_result_ == {}


@pytest.mark.parametrize("backend", BACKENDS)
def test_importances_are_shares_of_gain(backend):
    shares = fitted(backend).feature_importances_
    assert shares.shape == (5,)
    assert shares.sum() == pytest.approx(1.0)
    assert shares[0] == shares.max()
    with pytest.raises(AttributeError, match="not trained yet"):
        _ = ranker(backend).feature_importances_


@pytest.mark.parametrize("name", ["native:lambdarank", "native:rank_xendcg"])
def test_native_objectives_of_lightgbm(name):
    assert (
        fitted(objective=name, lambdarank_truncation_level=5).score(TASK.x, TASK.y, qid=TASK.qid)
        > 0.85
    )


def test_native_objectives_of_xgboost():
    model = fitted("xgboost", objective="native:rank:ndcg", lambdarank_pair_method="topk")
    assert model.score(TASK.x, TASK.y, qid=TASK.qid) > 0.85
    assert [name for name in model.get_params() if name.startswith("objective__")] == []
    with pytest.raises(ParameterError, match="no nested parameter 'objective__loss'"):
        model.set_params(objective__loss="hinge")


def test_parameters_of_the_objective_can_be_set_one_by_one():
    model = GBMRanker(n_estimators=3, num_leaves=4)
    params = model.get_params()
    assert params["objective__loss"] == "logistic"
    assert params["objective__loss__sigma"] == 1.0
    assert params["objective__target__k"] == 10
    assert params["num_leaves"] == 4
    assert "objective__loss" not in model.get_params(deep=False)
    model.set_params(objective__loss__sigma=np.float64(2), objective__target__k=5)
    assert str(model.objective) == "pairwise(loss=logistic(sigma=2), target=ndcg@5)"
    model.set_params(objective__loss="squared_hinge", objective="pnorm_push")
    assert str(model.objective).startswith("push(loss=squared_hinge")
    model.set_params(objective="pnorm_push", objective__p=8)
    assert model.get_params()["objective__p"] == 8
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(ParameterError, match="has no parameter 'q'"):
        model.set_params(objective__q=1)
    with pytest.raises(ParameterError, match="'p' with parameters of its own"):
        model.set_params(objective__p__x=1)
    with pytest.raises(ParameterError, match="no nested parameter 'metric__k'"):
        model.set_params(metric__k=1)
    assert GBMRanker("no such").get_params()["objective"] == "no such"


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_clones_copies_and_pickles(backend):
    model = fitted(backend, objective=gbmrank.objective("ranknet"), learning_rate=0.2)
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):  # noqa: S301
        np.testing.assert_array_equal(twin.predict(TASK.x), model.predict(TASK.x))
        np.testing.assert_array_equal(twin.feature_importances_, model.feature_importances_)
    fresh = clone(model)
    assert not hasattr(fresh, "booster_")
    fresh.fit(TASK.x, TASK.y, qid=TASK.qid)
    np.testing.assert_array_equal(fresh.predict(TASK.x), model.predict(TASK.x))
    shown = "" if backend == "lightgbm" else "backend='xgboost', "
    expected = f"GBMRanker(objective={model.objective!r}, {shown}n_estimators=8, learning_rate=0.2)"
    assert repr(model) == expected


@pytest.mark.parametrize("backend", BACKENDS)
def test_training_again_forgets_the_names(backend):
    model = ranker(backend).fit(pd.DataFrame(TASK.x, columns=NAMES), TASK.y, qid=TASK.qid)
    model.fit(TASK.x[:, :3], TASK.y, qid=TASK.qid)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_gradient_that_is_not_finite_leaves_a_ranker_on_the_error(backend):
    gbmrank.register_objective(Breaking)
    model = ranker(backend, objective="breaking")
    with pytest.raises(NumericError, match="breaking") as caught:
        model.fit(TASK.x, TASK.y, qid=TASK.qid)
    assert not hasattr(model, "booster_")
    so_far: Any = caught.value.model
    assert isinstance(so_far, GBMRanker)
    assert so_far.best_iteration_ == 2
    assert so_far.score(TASK.x, TASK.y, qid=TASK.qid) > 0.8
    so_far.set_params(num_leaves=3)
    assert "num_leaves" not in model.get_params()
    again = ranker(backend)
    again.set_params(objective="ranknet", n_estimators=3).fit(TASK.x, TASK.y, qid=TASK.qid)
    np.testing.assert_allclose(so_far.predict(TASK.x), again.predict(TASK.x), atol=1e-6)


def test_a_loss_that_is_wrong_for_the_metric_that_stops_it_warns_once():
    calibration._warned.clear()
    valid: dict[str, Any] = {"eval_set": (OTHER.x, OTHER.y), "eval_qid": VALID_QID}
    fitted(objective="ranknet")
    ranker(objective="ranknet").fit(TASK.x, TASK.y, qid=TASK.qid, **valid)
    model = ranker(objective="ranknet", early_stopping_rounds=5)
    with pytest.warns(CalibrationWarning, match="not calibrated for ndcg@10") as caught:
        model.fit(TASK.x, TASK.y, qid=TASK.qid, **valid)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "pairwise(loss=logistic, target=ndcg@10)" in message
    assert "gbmrank check 'comparison(loss=logistic)' --metric ndcg@10" in message
    assert "\n" not in message
    assert caught[0].filename == __file__
    model.fit(TASK.x, TASK.y, qid=TASK.qid, **valid)
    ranker(early_stopping_rounds=5).fit(TASK.x, TASK.y, qid=TASK.qid, **valid)


X, Y, Q = np.arange(8.0).reshape(4, 2), np.array([1.0, 0, 1, 0]), [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("params", "call", "error", "message"),
    [
        ({}, {"qid": None}, GroupError, "each row of the training set belongs to: qid="),
        ({}, {"qid": Q[:3]}, GroupError, "qid has 3 entries, but there are 4 rows"),
        ({}, {"qid": [0, 0, None, 1]}, GroupError, "qid is missing in 1 rows"),
        ({}, {"y": None}, DataError, "requires y to be passed"),
        ({}, {"y": [1, 0, np.nan, 0]}, DataError, "the training set: 1 of 4 labels are NaN"),
        ({}, {"y": Y[:2]}, DataError, "y has 2 entries, but there are 4 rows"),
        ({}, {"y": np.ones(4)}, DataError, "nothing to learn"),
        ({}, {"X": np.empty((0, 2)), "y": [], "qid": []}, DataError, "0 sample(s)"),
        ({}, {"X": X[:, :0]}, DataError, "0 feature(s)"),
        ({}, {"X": X[:, 0]}, DataError, "table of rows and columns"),
        ({}, {"X": X.astype(str)}, DataError, "X must contain numbers"),
        ({}, {"X": X.astype(complex)}, DataError, "real numbers"),
        ({}, {"sample_weight": [1, 2, 3]}, WeightError, "one per query (2) or one per row (4)"),
        ({}, {"sample_weight": [1, -1]}, WeightError, "at least 0; got -1"),
        ({}, {"sample_weight": [0, 0]}, WeightError, "all weights are zero"),
        ({}, {"eval_set": [(X, Y)]}, GroupError, "each row of valid_0 belongs to"),
        ({}, {"eval_set": (X, Y)}, GroupError, "each row of valid_0 belongs to"),
        ({}, {"eval_set": [X, Y], "eval_qid": [Q, Q]}, DataError, "must be (X, y) or a list"),
        (
            {},
            {"eval_set": [(X, Y)], "eval_qid": [[5] * 4], "eval_names": ["a", "b"]},
            DataError,
            "names has 2 entries for 1 evaluation sets",
        ),
        (
            {},
            {"eval_set": [(X, Y)] * 2, "eval_qid": [[5] * 4] * 2, "eval_names": ["a", "a"]},
            DataError,
            "different names",
        ),
        (
            {},
            {"eval_set": [(X[:, :1], Y)], "eval_qid": [[5] * 4]},
            DataError,
            "valid_0 has 1 features, the training set has 2",
        ),
        (
            {},
            {"eval_set": [(X, [1, 0, 1, np.inf])], "eval_qid": [[5] * 4]},
            DataError,
            "valid_0: 1 of 4 labels are NaN or infinite",
        ),
        ({"early_stopping_rounds": 3}, {}, ConfigError, "needs a validation set"),
        ({"backend": "cat"}, {}, ConfigError, "backend must be one of"),
        ({"objective": "pairwize"}, {}, UnknownNameError, "pairwise"),
        ({"metric": "ndgc"}, {}, UnknownNameError, "ndcg"),
        ({"metric": "ndcg@0"}, {}, MetricError, "0"),
        ({"n_estimators": 0}, {}, ParameterError, "at least 1"),
        ({"boosting": "rf"}, {}, ConfigError, "random"),
        ({"label_gain": [1, 2]}, {}, ConfigError, "has no effect"),
    ],
)
def test_bad_input_is_refused(params, call, error, message):
    with pytest.raises(error) as caught:
        GBMRanker(**params).fit(**{"X": X, "y": Y, "qid": Q, **call})
    assert message in str(caught.value)


def test_what_cannot_be_predicted_is_refused():
    with pytest.raises(ConfigError, match="not trained yet"):
        GBMRanker().predict(X)
    with pytest.raises(ConfigError, match="not trained yet"):
        GBMRanker().save("x.txt")
    with pytest.raises(DataError, match="2 features, but GBMRanker is expecting 5"):
        fitted().predict(X)


@pytest.mark.parametrize("backend", BACKENDS)
def test_shared_queries_and_models_that_order_nothing_warn(backend):
    with pytest.warns(LeakageWarning, match="40 queries are in the training set and in valid_0"):
        ranker(backend).fit(
            TASK.x, TASK.y, qid=TASK.qid, eval_set=(TASK.x, TASK.y), eval_qid=TASK.qid
        )
    with pytest.warns(NoProgressWarning, match="min_"):
        ranker(backend, min_child_weight=1e9).fit(TASK.x, TASK.y, qid=TASK.qid)


def test_it_needs_no_scikit_learn():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import numpy as np, gbmrank\n"
        "from gbmrank.demo_data import demo_data\n"
        "d = demo_data(n_queries=30, seed=0)\n"
        "m = gbmrank.GBMRanker(n_estimators=3).fit(d.X, d.labels, qid=d.qid)\n"
        "print(m.score(d.X, d.labels, qid=d.qid) > 0.5)\n"
        "try:\n    m.set_fit_request(qid=True)\n"
        "except gbmrank.MissingPackageError as error:\n    print('gbmrank[sklearn]' in str(error))"
    )
    assert run_python(code) == "True\nTrue"


def test_preferences_of_a_metric_are_scored_without_labels():
    best = np.flatnonzero(TASK.y == TASK.y.max())[0]
    other = np.flatnonzero((TASK.qid == TASK.qid[best]) & (TASK.y < TASK.y[best]))[0]
    graphs = gbmrank.PreferenceGraphs.from_edges([best], [other], qid=TASK.qid)
    metric = gbmrank.metric("pairwise_disagreement", preferences=graphs)
    model = ranker("lightgbm", metric=metric).fit(TASK.x, TASK.y, qid=TASK.qid)
    expected = -metric.score(None, model.predict(TASK.x), qid=TASK.qid)
    assert model.score(TASK.x, None, qid=TASK.qid) == expected
    assert model.score(TASK.x, TASK.y, qid=TASK.qid) == expected
    with pytest.raises(gbmrank.DataError, match=f"y has 5 entries, but X has {TASK.n} rows"):
        model.score(TASK.x, TASK.y[:5], qid=TASK.qid)


@pytest.mark.parametrize("backend", BACKENDS)
def test_preferences_follow_rows_in_any_order(backend):
    rng = np.random.default_rng(0)
    winner, loser = [], []
    for query in range(len(TASK.sizes)):
        rows = np.flatnonzero(TASK.qid == query)
        pairs = rng.permuted(np.tile(rows, (8, 1)), axis=1)[:, :2]
        better = TASK.x[pairs[:, 0], 0] > TASK.x[pairs[:, 1], 0]
        winner += np.where(better, pairs[:, 0], pairs[:, 1]).tolist()
        loser += np.where(better, pairs[:, 1], pairs[:, 0]).tolist()
    place = np.argsort(MIXED)  # where a row of the task is among the mixed ones
    models = []
    for edges, rows in (
        ((winner, loser), np.arange(TASK.n)),
        ((place[winner], place[loser]), MIXED),
    ):
        graphs = gbmrank.PreferenceGraphs.from_edges(*edges, qid=TASK.qid[rows])
        objective = gbmrank.objective("linear", preferences=graphs)
        model = ranker(backend, objective=objective, max_depth=3)
        models.append(model.fit(TASK.x[rows], TASK.y[rows], qid=TASK.qid[rows]))
    one, two = (model.predict(TASK.x) for model in models)
    np.testing.assert_allclose(one, two, atol=1e-4)
    clear = TASK.x[winner, 0] > TASK.x[loser, 0]  # edges of other rows would agree half the time
    assert np.mean(one[winner][clear] > one[loser][clear]) > 0.8


@pytest.mark.parametrize("backend", each(2, BACKENDS))
def test_mixtures_of_objectives_with_preferences(backend):
    """Without labels, and in rows of any order, as their parts are."""
    graphs = gbmrank.PreferenceGraphs.from_labels(TASK.y[MIXED], qid=TASK.qid[MIXED])
    parts = [gbmrank.objective(name, preferences=graphs) for name in ("linear", "comparison")]
    inner = gbmrank.mix(parts[0], weights=[0.5])
    both = gbmrank.mix(inner, parts[1], weights=[0.6, 0.7])
    scores = TASK.x[MIXED, 0]
    expected = [
        0.3 * one + 0.7 * two
        for one, two in zip(*(part.gradients(None, scores) for part in parts), strict=True)
    ]
    for found, wanted in zip(both.gradients(None, scores), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    model = ranker(backend, objective=both)
    model.fit(TASK.x[MIXED], np.zeros(TASK.n), qid=TASK.qid[MIXED])
    assert gbmrank.metric("ndcg").score(TASK.y, model.predict(TASK.x), qid=TASK.qid) > 0.85
    half = gbmrank.mix(parts[0], "ranknet")
    with pytest.raises(DataError, match="labels"):
        half.gradients(None, scores)
    ranker(backend, objective=half).fit(TASK.x[MIXED], TASK.y[MIXED], qid=TASK.qid[MIXED])


def test_preferences_of_other_rows_and_of_no_rows_are_refused():
    other = gbmrank.PreferenceGraphs.from_edges([0], [1], group=[2])
    with pytest.raises(DataError, match="the preferences are for 2 rows"):
        fitted(objective=gbmrank.objective("linear", preferences=other))
    none = gbmrank.PreferenceGraphs.from_edges([], [], group=TASK.sizes)
    with pytest.raises(DataError, match="no edge"):
        fitted(objective=gbmrank.objective("linear", preferences=none))
