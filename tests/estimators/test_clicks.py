"""Rankers that learn from clicks: a bias that is given, estimated first, or learned meanwhile."""

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import gbmrank
from gbmrank import GBMRanker
from gbmrank.clicks import PositionBias, simulate_clicks
from gbmrank.data.demonstration import demo_data
from gbmrank.errors import ConfigError, DataError, GbmrankWarning, ParameterError
from tests.formulas import each

BACKENDS = ["lightgbm", "xgboost"]
IDENTITY = "pairwise(target=identity)"
DATA = demo_data(n_queries=200, seed=0)
BIAS = PositionBias.decaying(10)
SHOWN = GBMRanker("cossock_zhang", n_estimators=10, n_jobs=1).fit(DATA.X, DATA.labels, qid=DATA.qid)


def log_of(bias, sessions):
    """Lists of a fair ranking, and what was clicked there."""
    scores = SHOWN.predict(DATA.X)
    return simulate_clicks(
        DATA.labels, scores, DATA.qid, sessions=sessions, bias=bias, temperature=scores.std()
    )


LOG = log_of(BIAS, 1500)
X = np.asarray(DATA.X)[LOG.row]
POSITIONED = {"position": LOG.position, "position_bias": BIAS}


def ranker(backend="lightgbm", objective=IDENTITY, **options):
    return GBMRanker(objective, backend, **{"n_estimators": 6, "n_jobs": 1, **options})


def fit(backend="lightgbm", objective=IDENTITY, y=None, rows=slice(None), **given):
    options = {key: given.pop(key) for key in ("n_estimators", "metric") if key in given}
    clicks = LOG.clicks if y is None else y
    return ranker(backend, objective, **options).fit(
        X[rows], clicks[rows], qid=LOG.session[rows], **given
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_click_counts_as_one_over_its_propensity(backend):
    made = fit(backend, **POSITIONED)
    labels = BIAS.utilities(LOG.clicks, LOG.position)
    assert made.predict(X).tolist() == fit(backend, y=labels).predict(X).tolist()
    assert made.position_bias_ == BIAS
    assert made.predict(X).tolist() != fit(backend).predict(X).tolist()
    assert not hasattr(fit(backend), "position_bias_")


@pytest.mark.parametrize("backend", BACKENDS)
def test_positions_follow_rows_in_any_order(backend):
    order = np.random.default_rng(0).permutation(len(LOG))
    by_query = np.argsort(order)  # rows of the shuffled table, back in their order
    mixed = ranker(backend).fit(
        X[order],
        LOG.clicks[order],
        qid=LOG.session[order],
        position=LOG.position[order],
        position_bias=BIAS,
    )
    labels = BIAS.utilities(LOG.clicks, LOG.position)
    same = ranker(backend).fit(X[order], labels[order], qid=LOG.session[order])
    assert mixed.predict(X[order])[by_query].tolist() == same.predict(X).tolist()


def test_the_boosters_own_functions_take_positions_by_bind_rows():
    made = gbmrank.objective(IDENTITY)
    bound = made.bind_rows(position=LOG.position, position_bias=BIAS)
    sizes = np.bincount(LOG.session)
    labels = BIAS.utilities(LOG.clicks, LOG.position)
    params = {**gbmrank.booster_params(made, "lightgbm"), "verbose": -1, "num_threads": 1}
    found = [
        lgb.train({**params, "objective": one}, lgb.Dataset(X, y, group=sizes), 5).predict(X)
        for one, y in ((bound, LOG.clicks), (made, labels))
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4, atol=1e-5)  # labels become float32
    params = {**gbmrank.booster_params(made, "xgboost"), "nthread": 1}
    rows = [xgb.DMatrix(X, y, group=sizes) for y in (LOG.clicks, labels)]
    found = [
        xgb.train(params, data, 5, obj=one).predict(data)
        for one, data in zip((bound, made), rows, strict=True)
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4, atol=1e-5)


def test_positions_of_a_data_set_are_not_read_and_say_where_they_belong():
    rows = lgb.Dataset(X, LOG.clicks, group=np.bincount(LOG.session), position=LOG.position)
    params = {"objective": gbmrank.objective(IDENTITY), "verbose": -1, "num_threads": 1}
    with pytest.warns(GbmrankWarning, match=r"position: .*fit\(position=.*bind_rows\(position="):
        lgb.train(params, rows, 2)


@pytest.mark.parametrize("backend", each(2, BACKENDS))
def test_em_estimates_first_and_trains_then(backend):
    made = fit(backend, position=LOG.position, position_bias="em")
    assert made.position_bias_.method == "em"
    again = fit(backend, position=LOG.position, position_bias=made.position_bias_)
    assert made.predict(X).tolist() == again.predict(X).tolist()


@pytest.mark.parametrize(("backend", "suffix"), [("lightgbm", "txt"), ("xgboost", "json")])
def test_the_bias_is_in_the_model_file(backend, suffix, tmp_path):
    made = fit(backend, **POSITIONED)
    path = tmp_path / f"model.{suffix}"
    made.save(path)
    loaded = gbmrank.load(path)
    assert loaded.position_bias_ == BIAS
    loaded.fit(X, LOG.clicks, qid=LOG.session)  # without positions
    assert not hasattr(loaded, "position_bias_")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("metric", ["dcg@5", "precision@3", "rbp(p=0.7)"])
def test_validation_estimates_what_the_ranking_would_have_earned(backend, metric):
    half = LOG.session < 700
    later = ~half
    made = fit(
        backend,
        rows=half,
        position=LOG.position[half],
        position_bias=BIAS,
        metric=metric,
        eval_set=(X[later], LOG.clicks[later]),
        eval_qid=LOG.session[later],
        eval_position=LOG.position[later],
    )
    found = made.evals_result_["valid_0"][metric][-1]
    values = BIAS.utilities(LOG.clicks[later], LOG.position[later])
    linear = {"dcg@5": "dcg(gain=linear)@5", "rbp(p=0.7)": "rbp(p=0.7, gain=linear)"}
    if metric in linear:
        measure = gbmrank.metric(linear[metric])
        expected = measure.score(values, made.predict(X[later]), qid=LOG.session[later])
    else:
        scores = made.predict(X[later])
        expected = np.mean(
            [
                tied_top(scores[LOG.session[later] == one], values[LOG.session[later] == one], 3)
                for one in np.unique(LOG.session[later])
            ]
        )
    assert found == pytest.approx(expected, rel=1e-5)


def tied_top(scores, values, k):
    """Mean over orderings of ties of the mean value of the first k."""
    total, left = 0.0, k
    for level in np.unique(scores)[::-1]:
        block = values[scores == level]
        total += block.mean() * min(left, len(block))
        left -= min(left, len(block))
    return total / k


def test_which_metrics_are_linear():
    linear = {one.name for one in gbmrank.list_metrics() if is_linear(one.name)}
    assert {"dcg", "precision", "wta", "rbp", "eru", "positional"} <= linear
    assert not linear & {"ndcg", "recall", "map", "mrr", "err", "auc", "spearman", "r_precision"}


def is_linear(name):
    return gbmrank.metric(name).measure.linear


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"position": LOG.position}, ParameterError, "go together"),
        ({"position_bias": BIAS}, ParameterError, "go together"),
        ({**POSITIONED, "position_bias": "ips"}, ParameterError, "'ips'"),
        ({**POSITIONED, "position": LOG.position[:-1]}, DataError, f"{len(LOG) - 1} entries"),
        ({**POSITIONED, "position": LOG.position - 1}, DataError, "0"),
        ({**POSITIONED, "position": LOG.position + 0.5}, DataError, "1.5"),
        ({**POSITIONED, "position": LOG.position * 3}, DataError, "beyond 10"),
        ({"position": LOG.position - 1, "position_bias": "em"}, DataError, "0"),
        ({**POSITIONED, "y": LOG.clicks * 2}, DataError, "clicks are 0 or 1"),
        ({**POSITIONED, "objective": "ranknet"}, ParameterError, "pairwise"),
        ({**POSITIONED, "objective": "native:lambdarank"}, ParameterError, "does not support"),
        ({**POSITIONED, "objective": "committee"}, ParameterError, "does not support"),
    ],
)
def test_what_cannot_be_is_said(given, error, message):
    with pytest.raises(error, match=message):
        fit(**given)


def test_validation_needs_a_known_bias_and_a_sum_over_items():
    valid = {
        "eval_set": (X, LOG.clicks),
        "eval_qid": LOG.session + 5000,
        "eval_position": LOG.position,
    }
    with pytest.raises(ParameterError, match=r"ndcg@10 .*metric='dcg@10'"):
        fit(**POSITIONED, **valid)
    with pytest.raises(ParameterError, match="bias of the training rows"):
        fit(metric="dcg@10", **valid)
    with pytest.raises(DataError, match=r"valid_0: .*beyond 10"):
        fit(**POSITIONED, metric="dcg@10", **{**valid, "eval_position": LOG.position + 10})
    bound = gbmrank.objective(IDENTITY).bind_rows(position=LOG.position, position_bias=BIAS)
    with pytest.raises(ConfigError, match="bind_rows"):
        fit(objective=bound)


def test_clicks_to_validate_on_without_positions_get_a_warning():
    given = {**POSITIONED, "n_estimators": 2}
    valid = {"eval_set": (X, LOG.clicks), "eval_qid": LOG.session + 5000}
    with pytest.warns(GbmrankWarning, match=r"valid_0 .*early stopping.*eval_position=") as caught:
        fit(**given, **valid)
    assert len(caught) == 1
    fit(**given, **valid, eval_position=[None])  # judgments of 0 and 1
    fit(**given, eval_set=(X, DATA.labels[LOG.row]), eval_qid=LOG.session + 5000)
    fit(**valid, n_estimators=2)  # nobody speaks of positions


def test_clipping_lowers_what_a_click_far_down_counts():
    made = fit(**POSITIONED, clip=0.5)
    labels = BIAS.utilities(LOG.clicks, LOG.position, clip=0.5)
    assert made.predict(X).tolist() == fit(y=labels).predict(X).tolist()
