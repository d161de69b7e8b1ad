"""Labels pooled over sessions: their formula, what is proven about them, and when not to pool."""

import json
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln

import gbmrank
from gbmrank.clicks import PositionBias, estimate_bias, pooled_labels, simulate_clicks
from gbmrank.errors import ConfigError, DataError, GbmrankWarning, GroupError, ParameterError
from tests.clicks.worlds import TRUTH, world
from tests.formulas import each

mpl.use("Agg")
IDENTITY = "pairwise(target=identity)"
MADE = world(0, sessions=3000, temperature=1.0, queries=60)


def columns_of(log):
    """The columns of a log, by argument."""
    return {
        "clicks": log.clicks,
        "position": log.position,
        "qid": log.query,
        "item": log.row,
        "session": log.session,
    }


def pooled(log, **given):
    columns = columns_of(log) | given
    return pooled_labels(columns.pop("clicks"), columns.pop("position"), **columns)


def complete_log(seed=0, sessions=3000, truth=TRUTH, **options):
    """Sessions that show all ten items of 40 queries; relevance follows one of two features."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(400, 2))
    rho = 1.0 / (1.0 + np.exp(2.0 - 1.5 * x[:, 0]))
    scores = x[:, 0] + x[:, 1]
    log = simulate_clicks(
        rho,
        scores,
        np.repeat(np.arange(40), 10),
        sessions=sessions,
        bias=truth,
        temperature=0.7,
        max_grade=None,
        seed=seed,
        **options,
    )
    return x, rho, log


def reading(seed, logs, sessions, theta, factor):
    """Lists in random order, read by users whose attention falls after a click.

    Returns item, whether an earlier item was clicked, position and click, of shape (logs,
    sessions, items).
    """
    rng = np.random.default_rng(seed)
    rho = np.linspace(0.05, 0.9, len(theta))
    item = rng.permuted(np.tile(np.arange(len(theta)), (logs * sessions, 1)), axis=1)
    clicked, after = np.zeros(item.shape, bool), np.zeros(item.shape, bool)
    for k in range(len(theta)):
        after[:, k] = clicked[:, :k].any(axis=1)
        chance = theta[k] * np.where(after[:, k], factor, 1.0) * rho[item[:, k]]
        clicked[:, k] = rng.random(len(item)) < chance
    shape = (logs, sessions, len(theta))
    return rho, item.reshape(shape), after.reshape(shape), clicked.reshape(shape)


@pytest.mark.parametrize(
    ("theta", "factor"),
    [(np.arange(1, 7) ** -1.0, 1.0), (np.ones(6), 0.0), (np.arange(1, 7) ** -0.5, 0.4)],
    ids=["position", "cascade", "both"],
)
def test_clicks_less_relevance_times_exposure_have_mean_zero(theta, factor):
    """Over 2,000 logs, also where exposure depends on earlier clicks; for every item."""
    rho, item, after, clicked = reading(1, 2000, 10, theta, factor)
    exposure = theta * np.where(after, factor, 1.0)
    apart = np.zeros((2000, 6))
    for one in range(6):
        apart[:, one] = ((clicked - rho[one] * exposure) * (item == one)).sum(axis=(1, 2))
    error = apart.std(axis=0, ddof=1) / np.sqrt(2000)
    assert np.abs(apart.mean(axis=0) / error).max() < 3.5
    if factor < 1.0:  # what ignores earlier clicks is far off
        ignored = ((clicked - rho[item] * theta) * (item == 5)).sum(axis=(1, 2))
        assert ignored.mean() / (ignored.std() / np.sqrt(2000)) < -10.0


def test_labels_are_those_of_the_formula():
    x, _, log = complete_log(sessions=500)
    bias = PositionBias.decaying(10, 0.9)
    made = pooled(log, bias=bias, X=x[log.row])
    rows = pd.DataFrame({"row": log.row, "clicks": log.clicks, "theta": log.position**-0.9})
    sums = rows.groupby("row").sum()
    np.testing.assert_array_equal(made.clicks, sums["clicks"])
    np.testing.assert_allclose(made.exposure, sums["theta"])
    strength, prior = made.strength, made.prior
    total = strength * prior + made.clicks
    np.testing.assert_allclose(made.label, total / (strength + made.exposure))
    np.testing.assert_allclose(made.error, np.sqrt(total) / (strength + made.exposure))
    same = prior + (made.clicks - made.exposure * prior) / (strength + made.exposure)
    np.testing.assert_allclose(made.label, same)
    assert made.qid.tolist() == np.repeat(np.arange(40), 10).tolist()
    assert log.row[made.row].tolist() == list(range(400))
    sessions = pd.DataFrame({"q": log.query, "s": log.session}).groupby("q")["s"].nunique()
    assert made.weight.tolist() == sessions.repeat(10).tolist()


def test_the_strength_of_the_prior_maximises_the_likelihood():
    x, _, log = complete_log()
    made = pooled(log, bias=TRUTH, X=x[log.row])

    def likelihood(k):
        shape = k * made.prior
        binomial = gammaln(shape + made.clicks) - gammaln(shape) + shape * np.log(k)
        return (binomial - (shape + made.clicks) * np.log(k + made.exposure)).sum()

    best = likelihood(made.strength)
    assert all(best >= likelihood(made.strength * change) - 1e-6 for change in (0.5, 0.9, 1.1, 2.0))


def test_labels_are_closer_to_relevance_than_clicks_over_exposure():
    x, rho, log = complete_log()
    with_features, without = pooled(log, X=x[log.row]), pooled(log)
    own = with_features.clicks / with_features.exposure
    errors = [((one - rho) ** 2).mean() for one in (with_features.label, without.label, own)]
    assert errors[0] < errors[1] < 0.9 * errors[2]
    within = np.abs(with_features.label - rho) < 2.0 * with_features.error
    assert within.mean() > 0.9


def test_the_error_falls_as_exposure_grows():
    errors = []
    for sessions in (300, 3000, 30_000):
        _, rho, log = complete_log(sessions=sessions)
        errors.append(((pooled(log, bias=TRUTH).label - rho) ** 2).mean())
    assert errors[0] > 2.0 * errors[1] > 8.0 * errors[2]


def test_the_power_maximises_the_conditional_likelihood():
    _, _, log = complete_log()
    bias = estimate_bias(log.clicks, log.position, qid=log.query, item=log.row, method="power")
    power = -np.log(bias.propensity[-1]) / np.log(10)
    counts = pd.crosstab(log.row, log.position).to_numpy()
    clicks = np.zeros(counts.shape)
    np.add.at(clicks, (log.row, log.position - 1), log.clicks)

    def likelihood(b):
        share = counts * np.arange(1, 11) ** -b
        share = share / share.sum(axis=1, keepdims=True)
        return (clicks[counts > 0] * np.log(share[counts > 0])).sum()

    assert likelihood(power) >= max(likelihood(power + 1e-3), likelihood(power - 1e-3))
    assert abs(power - 1.0) < 0.2
    assert bias.low is not None
    assert bias.high is not None
    assert bias.low[-1] < 0.1 < bias.high[-1]


@pytest.mark.nightly
def test_intervals_of_the_power_contain_the_truth():
    found = []
    for seed in range(60):
        _, _, log = complete_log(seed)
        bias = estimate_bias(log.clicks, log.position, qid=log.query, item=log.row, method="power")
        assert bias.low is not None
        assert bias.high is not None
        found.append(bias.low[-1] <= 0.1 <= bias.high[-1])
    assert np.mean(found) >= 0.95 - 3.0 * np.sqrt(0.95 * 0.05 / 60)


@pytest.mark.parametrize(("factor", "least", "most"), [(0.3, 0.2, 0.42), (1.0, 1.0, 1.0)])
def test_attention_after_a_click_is_found(factor, least, most):
    theta = np.arange(1, 7) ** -0.5
    _, item, _, clicked = reading(2, 100, 20, theta, factor)
    session = np.repeat(np.arange(2000), 6)
    bias = estimate_bias(
        clicked.ravel(),
        np.tile(np.arange(1, 7), 2000),
        qid=np.repeat(np.arange(100), 120),
        item=item.ravel(),
        session=session,
        method="power",
    )
    assert least <= bias.after_click <= most
    assert PositionBias.from_dict(bias.to_dict()) == bias
    if factor < 1.0:
        assert f"after a click: all times {bias.after_click:.3f}" in str(bias)


def test_utilities_need_sessions_if_attention_falls_after_a_click():
    bias = PositionBias([1.0, 0.5, 0.5], after_click=0.5)
    made = bias.utilities([0, 1, 1], [1, 2, 3], session=[4, 4, 4])
    assert made.tolist() == [0.0, 2.0, 4.0]
    with pytest.raises(ParameterError, match=r"after_click=0\.5.*session="):
        bias.utilities([0, 1, 1], [1, 2, 3])


def ranker(backend="lightgbm", **given):
    options = {"n_estimators": 10, "num_leaves": 4, "n_jobs": 1} | given
    if backend == "xgboost":
        options["max_depth"] = options.pop("num_leaves") // 2
    return gbmrank.GBMRanker(IDENTITY, backend, **options)


def fitted(log, x, backend="lightgbm", **given):
    columns = columns_of(log)
    y = columns.pop("clicks")
    given = {"position_bias": "pooled", **columns, **given}
    options = {"metric": "dcg@5", **given.pop("ranker", {})}
    return ranker(backend, **options).fit(x[log.row], y, **given)


@pytest.mark.parametrize("backend", each(2, ["lightgbm", "xgboost"]))
def test_a_ranker_trains_on_pooled_labels(backend):
    x, rho, log = complete_log()
    model = fitted(log, x, backend)
    made = pooled(log, X=x[log.row], backend=backend)
    same = made.fit(ranker(backend))
    assert model.predict(x).tolist() == same.predict(x).tolist()
    assert model.position_bias_ == made.bias
    assert model.pooled_labels_.label.tolist() == made.label.tolist()
    assert np.corrcoef(model.predict(x), rho)[0, 1] > 0.8
    model.fit(x[log.row], log.clicks, qid=log.session)
    assert not hasattr(model, "pooled_labels_")


def test_a_data_frame_and_a_validation_set_of_sessions():
    x, _, log = complete_log()
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1]})
    late = log.session > 2500
    model = ranker(metric="dcg@5").fit(
        frame.iloc[log.row],
        log.clicks,
        **{key: one for key, one in columns_of(log).items() if key != "clicks"},
        position_bias="pooled",
        eval_set=(frame.iloc[log.row[late]], log.clicks[late]),
        eval_qid=log.session[late],
        eval_position=log.position[late],
    )
    assert list(model.feature_names_in_) == ["a", "b"]
    scores = model.predict(frame.iloc[log.row[late]])
    value = gbmrank.clicks.offline_value(
        "dcg@5", log.clicks[late], log.position[late], scores, log.session[late],
        bias=model.position_bias_, resamples=1,
    )  # fmt: skip
    assert model.evals_result_["valid_0"]["dcg@5"][-1] == pytest.approx(value.value, rel=1e-5)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"position_bias": "em"}, ParameterError, "item= and session="),
        ({"sample_weight": np.ones(40)}, ParameterError, "sample_weight="),
        ({"session": None}, DataError, "session= is missing"),
        ({"item": None}, DataError, "item= is missing"),
        ({"position": None}, ParameterError, "go together"),
        ({"ranker": {"calibrate": "cross-fit"}}, ConfigError, "labels are clicks"),
        ({"ranker": {"folds": 2, "pool_eval_set": True}}, ParameterError, "exclude each other"),
    ],
)
def test_arguments_that_do_not_fit(given, error, message):
    x, _, log = complete_log(sessions=300)
    with pytest.raises(error, match=message):
        fitted(log, x, **given)


def test_folds_keep_groups_of_pooled_queries():
    x, _, log = complete_log()
    market = log.query // 2
    model = fitted(log, x, fold_groups=market, ranker={"folds": 2})
    assert len(model.oof_scores_) == len(model.pooled_labels_) == 400
    with pytest.raises(DataError, match="are in different groups"):
        fitted(log, x, fold_groups=log.session, ranker={"folds": 2})


def broken(name, at, value):
    log = complete_log(sessions=300)[2]
    column = columns_of(log)[name].astype(object)
    column[at] = value
    return {name: column}


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        (broken("session", 3, None), GroupError, "session is missing in 1 rows, first in row 3"),
        (broken("item", 5, None), GroupError, "item is missing in 1 rows, first in row 5"),
        (broken("position", 1, 1), DataError, "session 0 has two rows at position 1"),
        (broken("qid", 0, 1000), DataError, "session 0 has rows of two queries"),
        (broken("clicks", 2, 3), DataError, "clicks are 0 or 1.*got 3 in row 2"),
        (broken("position", 2, 0), DataError, "index 2"),
        ({"item": [1, 2]}, GroupError, "item has 2 entries"),
        ({"X": np.zeros((2, 1))}, DataError, "X has 2 rows"),
        ({"bias": "em"}, ParameterError, "got 'em'"),
    ],
)
def test_logs_that_cannot_be_read(changed, error, message):
    with pytest.raises(error, match=message):
        pooled(complete_log(sessions=300)[2], **changed)


def only(log, rows):
    return {name: column[rows] for name, column in columns_of(log).items()}


def without_repeats():
    log = complete_log()[2]
    first = np.unique(log.query, return_index=True)[1]
    kept = only(log, np.isin(log.session, log.session[first]))
    return {**kept, "clicks": np.where(kept["position"] < 4, 1, 0)}


def fixed_positions():
    rho, query = np.linspace(0.1, 0.9, 40), np.repeat(np.arange(4), 10)
    log = simulate_clicks(rho, -np.arange(40.0), query, sessions=400, max_grade=None, bias=TRUTH)
    return columns_of(log)


def truncated():
    return columns_of(MADE.log)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (without_repeats(), "seen again"),
        (fixed_positions(), "two positions"),
        (truncated(), "of the items that are shown for its query"),
        (only(complete_log()[2], slice(0, 300)), "clicks, fewer than 100"),
    ],
    ids=["once", "fixed", "truncated", "few"],
)
def test_labels_are_not_pooled_where_that_is_worse(columns, reason):
    given = dict(columns)
    clicks, position = given.pop("clicks"), given.pop("position")
    with pytest.warns(GbmrankWarning, match=f"not pooled: .*{reason}") as caught:
        made = pooled_labels(clicks, position, **given)
    assert len(caught) == 1
    assert reason in made.fallback
    assert reason in str(made)
    assert made.row.tolist() == list(range(len(clicks)))
    assert made.qid.tolist() == given["session"].tolist()
    np.testing.assert_allclose(made.label, made.bias.utilities(clicks, position, clip=0.2))
    json.dumps(made.to_dict(), allow_nan=False)


def test_without_pooling_a_ranker_trains_as_before():
    made, log = MADE, MADE.log
    with pytest.warns(GbmrankWarning, match="not pooled"):
        model = fitted(log, made.features)
    bias = model.position_bias_
    same = ranker().fit(
        made.shown, log.clicks, qid=log.session, position=log.position, position_bias=bias, clip=0.2
    )
    np.testing.assert_array_equal(model.predict(made.features), same.predict(made.features))


def test_without_a_bias_nothing_is_corrected():
    x, _, log = complete_log(truth=PositionBias(np.ones(10)))
    with pytest.warns(GbmrankWarning, match="examined equally"):
        made = pooled(log, X=x[log.row])
    assert made.bias.propensity.tolist() == [1.0] * 10
    np.testing.assert_array_equal(made.exposure, np.bincount(log.row))


def test_a_power_that_few_clicks_leave_open_is_not_used():
    _, _, log = complete_log(sessions=130)
    options = {"qid": log.query, "item": log.row, "method": "power", "resamples": 0}
    plain = estimate_bias(log.clicks, log.position, pretest=False, **options)
    assert plain.propensity[-1] < 0.4
    with pytest.warns(GbmrankWarning, match="too few to say how far"):
        bias = estimate_bias(log.clicks, log.position, **options)
    assert bias.propensity.tolist() == [1.0] * 10


def test_what_is_shown_of_the_labels():
    x, _, log = complete_log()
    made = pooled(log, X=x[log.row])
    assert "pooled labels of 400 items of 40 queries" in str(made)
    assert len(made) == 400
    plain = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert plain["label"] == made.label.tolist()
    assert PositionBias.from_dict(plain["bias"]) == made.bias
    assert made.plot().get_ylabel() == "label"
    with pytest.raises(ParameterError, match="X="):
        pooled(log).fit(ranker())


def test_a_seed_decides_and_the_order_of_rows_does_not():
    x, _, log = complete_log()
    first, again = pooled(log, X=x[log.row]), pooled(log, X=x[log.row])
    assert first.label.tolist() == again.label.tolist()
    order = np.random.default_rng(0).permutation(len(log))
    mixed = pooled(log, X=x[log.row[order]], **only(log, order))
    np.testing.assert_allclose(mixed.label, first.label, rtol=1e-6)


def test_features_that_say_nothing_do_no_harm():
    _, rho, log = complete_log()
    noise = np.random.default_rng(5).normal(size=(400, 3))
    errors = [
        ((pooled(log, **given).label - rho) ** 2).mean() for given in ({"X": noise[log.row]}, {})
    ]
    assert errors[0] < 1.1 * errors[1]


def test_ids_may_be_texts():
    x, _, log = complete_log()
    texts = {"item": [f"i{one}" for one in log.row], "session": [f"s{one}" for one in log.session]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = pooled(log, X=x[log.row], **texts)
    assert sorted(made.clicks) == sorted(pooled(log, X=x[log.row]).clicks)
