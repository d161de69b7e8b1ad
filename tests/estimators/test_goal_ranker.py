"""Several goals: one model each, mixed when they serve."""

import json
from typing import Any

import numpy as np
import pytest

import gbmrank
from gbmrank import GoalRanker
from gbmrank.data.demonstration import demo_data
from gbmrank.errors import ConfigError, DataError, GbmrankWarning, ParameterError
from gbmrank.estimators.goal_front import Front

BACKENDS = ("lightgbm", "xgboost")
CLOSE = {"lightgbm": 1e-12, "xgboost": 1e-6}
GOALS = {
    "relevance": "query_rmse(target=ndcg@10)",
    "margin": "query_rmse(target=ndcg(gain=linear)@10)",
}
FAST: dict[str, Any] = {"n_estimators": 20, "learning_rate": 0.2, "n_jobs": 1}


def parts():
    return [demo_data(150, 12, seed=seed, goals=2) for seed in (0, 1, 2)]


def fitted(backend="lightgbm", columns=None, goals=None, **given):
    train, valid, _ = parts()
    model = GoalRanker(goals or GOALS, backend=backend, **FAST, **given)
    change = columns or (lambda found: found)
    return model.fit(
        train.X,
        change(train.columns),
        qid=train.qid,
        eval_set=(valid.X, change(valid.columns)),
        eval_qid=valid.qid,
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_ends_are_the_goals_alone(backend):
    ranker, test = fitted(backend), parts()[2]
    for goal, at in (("relevance", 1.0), ("margin", 0.0)):
        alone = ranker.rankers_[goal].predict(test.X) / ranker.spreads_[goal]
        found = ranker.predict(test.X, weights={goal: 3})
        np.testing.assert_allclose(found, alone, rtol=1e-12)
        np.testing.assert_array_equal(ranker.predict(test.X, at=at), found)
        ranks = ranker.rankers_[goal].rank(test.X, qid=test.qid)
        np.testing.assert_array_equal(ranker.rank(test.X, qid=test.qid, at=at), ranks)


@pytest.mark.parametrize("seed", [0, 1, 6])
def test_the_ends_are_the_goals_alone_where_mixtures_are_as_good(seed):
    train, valid = (demo_data(60, 8, seed=one, goals=2) for one in (seed, seed + 50))
    ranker = GoalRanker(GOALS, n_estimators=10, learning_rate=0.3, n_jobs=1).fit(
        train.X,
        train.columns,
        qid=train.qid,
        eval_set=(valid.X, valid.columns),
        eval_qid=valid.qid,
    )
    for goal, at in (("relevance", 1.0), ("margin", 0.0)):
        alone = ranker.predict(valid.X, weights={goal: 1})
        np.testing.assert_array_equal(ranker.predict(valid.X, at=at), alone)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("setting", [{"at": 0.3}, {"at": 0.7}, {"weights": {"margin": 1}}])
def test_one_setting_is_one_model_file(backend, setting, tmp_path):
    ranker, test = fitted(backend), parts()[2]
    path = tmp_path / ("model.txt" if backend == "lightgbm" else "model.ubj")
    ranker.export(path, **setting)
    want = ranker.predict(test.X, **setting)
    found = gbmrank.load(path).predict(test.X)
    np.testing.assert_allclose(found, want, atol=CLOSE[backend] * np.abs(want).max())


@pytest.mark.parametrize("backend", BACKENDS)
def test_files_per_goal_add_up(backend, tmp_path):
    ranker, test = fitted(backend), parts()[2]
    ranker.export(tmp_path / "goals")
    dial = json.loads((tmp_path / "goals/dial.json").read_text())
    scores = [gbmrank.load(tmp_path / "goals" / name).predict(test.X) for name in dial["models"]]
    for each in dial["settings"][::5]:
        want = ranker.predict(test.X, at=each["at"])
        mixed = sum(f * s for f, s in zip(each["factors"].values(), scores, strict=True))
        np.testing.assert_allclose(mixed, want, atol=1e-9)


def test_goals_whose_names_look_alike_have_files_of_their_own(tmp_path):
    alike = dict(zip(("net margin", "net_margin"), GOALS.values(), strict=True))

    def renamed(columns):
        return dict(zip(alike, (columns[goal] for goal in GOALS), strict=True))

    ranker, test = fitted(goals=alike, columns=renamed), parts()[2]
    ranker.export(tmp_path / "goals")
    names = json.loads((tmp_path / "goals/dial.json").read_text())["models"]
    assert len(set(names)) == 3
    for name, model in zip(names, ranker._models, strict=True):
        found = gbmrank.load(tmp_path / "goals" / name).predict(test.X)
        np.testing.assert_array_equal(found, model.predict(test.X))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_saved_ranker_has_the_same_dial_and_front(backend, tmp_path):
    ranker, test = fitted(backend), parts()[2]
    ranker.save(tmp_path / "goals.zip")
    again = gbmrank.load(tmp_path / "goals.zip")
    for at in (0.0, 0.2, 0.5, 1.0):
        np.testing.assert_array_equal(again.predict(test.X, at=at), ranker.predict(test.X, at=at))
    np.testing.assert_array_equal(again.front_.per_query, ranker.front_.per_query)
    assert again.pick({"relevance": 0.9}) == ranker.pick({"relevance": 0.9})
    assert again.spreads_ == ranker.spreads_
    assert again.get_params() == {**ranker.get_params(), "metric": again.metric}


def test_the_middle_is_trained_on_the_mixed_utilities():
    """The middle of two query_rmse minimises the mean of both losses, up to a constant."""
    train = parts()[0]
    ranker = fitted(middle=1)
    first, middle, second = ranker._models[::-1]
    assert (first, second) == (ranker.rankers_["relevance"], ranker.rankers_["margin"])
    labels = train.labels.astype(float)
    gains = []
    for goal, target in (("relevance", "ndcg@10"), ("margin", "ndcg(gain=linear)@10")):
        y = train.columns[goal]
        ideal = gbmrank.metric(target.replace("ndcg", "dcg")).per_query(y, y, qid=train.qid)
        gain = (2.0**y - 1 if goal == "relevance" else y) / np.repeat(
            np.where(ideal > 0, ideal, 1.0), train.sizes
        )
        mean = np.repeat(np.bincount(np.repeat(np.arange(150), train.sizes), gain), train.sizes)
        apart = gain - mean / np.repeat(train.sizes, train.sizes)
        gains.append(gain / np.sqrt(np.mean(apart**2)))
    want = gbmrank.GBMRanker("query_rmse(target=identity)", **FAST).fit(
        train.X, (gains[0] + gains[1]) / 2, qid=train.qid
    )
    np.testing.assert_allclose(middle.predict(train.X), want.predict(train.X), rtol=1e-6, atol=1e-9)
    assert len(labels) == len(train.qid)


def test_scales_of_labels_do_not_move_the_levelled_dial():
    plain = fitted()
    scaled = fitted(columns=lambda found: {**found, "margin": found["margin"] * 1000.0})
    for t in np.linspace(0.0, 1.0, 11):
        one, two = plain._weights(t, None), scaled._weights(t, None)
        assert abs(one["relevance"] - two["relevance"]) <= 0.05


def test_half_way_keeps_equal_shares_of_what_can_be_gained():
    ranker, test = fitted(), parts()[2]
    value: dict[float, list[float]] = {}
    for at in (0.0, 0.5, 1.0):
        scores = ranker.predict(test.X, at=at)
        value[at] = [
            gbmrank.metric(m).score(test.columns[goal], scores, qid=test.qid)
            for goal, m in (("relevance", "ndcg@10"), ("margin", "ndcg(gain=linear)@10"))
        ]
    first = (value[0.5][0] - value[0.0][0]) / (value[1.0][0] - value[0.0][0])
    second = (value[0.5][1] - value[1.0][1]) / (value[0.0][1] - value[1.0][1])
    assert abs(first - second) < 0.15
    assert first + second > 1.0  # better than giving each goal half of the queries


def test_equal_goals_have_no_dial_and_one_order():
    def same(found):
        return dict.fromkeys(found, found["relevance"])

    goals = dict.fromkeys(GOALS, GOALS["relevance"])
    ranker, test = fitted(columns=same, goals=goals, middle=0), parts()[2]
    with pytest.raises(ConfigError, match=r"no levelled dial: the model of relevance alone"):
        ranker.predict(test.X, at=0.5)
    want = ranker.rankers_["relevance"].rank(test.X, qid=test.qid)
    np.testing.assert_array_equal(ranker.rank(test.X, qid=test.qid), want)
    chosen = ranker.pick({"relevance": 0.98})
    assert chosen.met
    assert chosen.text.startswith("No trade-off is seen: relevance differs by 0.0000")


def test_pick_walks_from_the_named_goal():
    ranker = fitted()
    strict, loose = ranker.pick({"relevance": 0.99}), ranker.pick({"relevance": 0.6})
    assert strict.met
    assert loose.met
    assert loose.at < strict.at <= 1.0
    assert loose.shares["relevance"] >= 0.6
    other = ranker.pick({"margin": 0.9})
    assert other.met
    assert other.at < 0.5
    both = ranker.pick({"relevance": 0.999, "margin": 0.999})
    assert not both.met
    assert both.text.startswith("No setting is shown to keep 100% of relevance and 100% of margin.")
    surer = ranker.pick({"relevance": 0.9}, confidence=0.999)
    assert surer.at >= ranker.pick({"relevance": 0.9}, confidence=0.6).at


def front_of(first, second):
    """Return a front whose settings have these means in every query, and little noise."""
    rng = np.random.default_rng(0)
    values = np.stack([first, second], axis=1)[:, :, None] + 0.01 * rng.normal(size=(1, 1, 200))
    at = np.linspace(0.0, 1.0, len(first))
    weights = np.column_stack([at, 1.0 - at])
    return Front(("a", "b"), ("ndcg", "ndcg"), at, weights, values, len(first) // 2)


def test_dominated_settings_are_marked():
    front = front_of(np.array([0.1, 0.3, 0.25, 0.4]), np.array([0.9, 0.8, 0.7, 0.6]))
    assert front.dominated.tolist() == [False, False, True, False]


def test_differences_are_to_the_served_setting():
    front = front_of(np.array([0.1, 0.3, 0.4]), np.array([0.9, 0.8, 0.7])).serving(1.0)
    means, widths = front.differences()
    np.testing.assert_allclose(means[:, 0], [-0.3, -0.1, 0.0], atol=1e-12)
    assert (widths < 1e-9).all()
    assert front.table()["dominated"].tolist() == [False] * 3


def test_intervals_of_the_front_hold_for_all_settings_at_once():
    """Of 200 draws of queries, about 95% or more have all differences in their intervals."""
    rng = np.random.default_rng(1)
    at = np.linspace(0.0, 1.0, 9)
    weights = np.column_stack([at, 1.0 - at])
    held = 0
    for draw in range(200):
        base, slope = rng.normal(size=(2, 2, 60))
        values = at[:, None, None] * (0.2 + slope) + base
        front = Front(("a", "b"), ("x", "y"), at, weights, values, 4)
        means, widths = front.differences(seed=draw)
        truth = 0.2 * (at - at[4])
        held += bool((np.abs(means - truth[:, None]) <= widths + 1e-12).all())
    assert held >= 180


def test_several_goals_are_mixed_from_one_model_each(tmp_path):
    goals = {**GOALS, "match": "query_rmse(target=identity)"}

    def three(found):
        more = np.clip(found["relevance"], 0, 1) + 0.5 * found["margin"]
        return {**found, "match": more}

    ranker, test = fitted(columns=three, goals=goals), parts()[2]
    weights = {"relevance": 0.2, "margin": 0.5, "match": 0.3}
    want = sum(
        share * ranker.rankers_[goal].predict(test.X) / ranker.spreads_[goal]
        for goal, share in weights.items()
    )
    np.testing.assert_allclose(ranker.predict(test.X, weights=weights), want, rtol=1e-9, atol=1e-12)
    assert len(ranker.front_.weights) <= 60
    np.testing.assert_allclose(ranker.front_.weights.sum(axis=1), 1.0)
    with pytest.raises(ConfigError, match="pick walks along a dial between two goals"):
        ranker.pick({"match": 0.9})
    ranker.save(tmp_path / "three.zip")
    again = gbmrank.load(tmp_path / "three.zip")
    found = again.predict(test.X, weights=weights)
    np.testing.assert_array_equal(found, ranker.predict(test.X, weights=weights))


def test_queries_with_missing_labels_are_left_out_of_their_goal_alone():
    train = parts()[0]
    margin = train.margin.astype(float)
    margin[train.qid < 50] = np.nan
    model = GoalRanker(GOALS, middle=0, **FAST)
    with pytest.warns(GbmrankWarning, match=r"50 of 150 queries have a missing label of margin"):
        model.fit(train.X, {"relevance": train.labels, "margin": margin}, qid=train.qid)
    kept = train.qid >= 50
    alone = gbmrank.GBMRanker(GOALS["margin"], metric="ndcg(gain=linear)@10", **FAST)
    alone.fit(train.X[kept], train.margin[kept], qid=train.qid[kept])
    np.testing.assert_allclose(model.rankers_["margin"].predict(train.X), alone.predict(train.X))


def test_negative_labels_are_shifted_per_query():
    train = parts()[0]
    model = GoalRanker(GOALS, middle=0, **FAST)
    shifted = {"relevance": train.labels, "margin": train.margin - 2.0}
    model.fit(train.X, shifted, qid=train.qid)
    lowest = np.minimum.reduceat(shifted["margin"], np.cumsum(train.sizes) - train.sizes)
    want = shifted["margin"] - np.repeat(np.minimum(lowest, 0.0), train.sizes)
    alone = gbmrank.GBMRanker(GOALS["margin"], metric="ndcg(gain=linear)@10", **FAST)
    alone.fit(train.X, want, qid=train.qid)
    np.testing.assert_allclose(model.rankers_["margin"].predict(train.X), alone.predict(train.X))


def test_native_objectives_and_frames():
    pd = pytest.importorskip("pandas")
    train = parts()[0]
    frame, labels = pd.DataFrame(train.X).add_prefix("f"), pd.DataFrame(train.columns)
    goals = {"relevance": "native:lambdarank", "margin": GOALS["margin"]}
    with pytest.raises(ConfigError, match="set middle=0"):
        GoalRanker(goals, **FAST).fit(frame, labels, qid=train.qid)
    order = np.random.default_rng(0).permutation(len(train.qid))
    model = GoalRanker(goals, middle=0, **FAST)
    model.fit(frame.iloc[order], labels.iloc[order], qid=train.qid[order])
    assert list(model.feature_names_in_) == list(frame.columns)
    assert model.predict(frame).shape == train.qid.shape


def test_two_evaluation_sets_level_and_value():
    train, valid, test = parts()
    model = GoalRanker(GOALS, early_stopping_rounds=5, **FAST).fit(
        train.X,
        train.columns,
        qid=train.qid,
        eval_set=[(valid.X, valid.columns), (test.X, test.columns)],
        eval_qid=[valid.qid, test.qid],
    )
    scores = model.predict(test.X, at=0.5)
    want = gbmrank.metric("ndcg@10").per_query(test.labels, scores, qid=test.qid)
    np.testing.assert_allclose(model.front_.per_query[20, 0], want)
    assert set(model.rankers_["margin"].evals_result_) == {"valid_0"}


def without(name):
    return lambda found: {goal: y for goal, y in found.items() if goal != name}


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        (without("margin"), "has no labels for the goal 'margin'; it has relevance"),
        (lambda found: {**found, "margin": np.ones(len(found["margin"]))}, "are the same for all"),
        (lambda found: {**found, "margin": np.full(len(found["margin"]), np.nan)}, "are missing"),
        (lambda found: {**found, "margin": found["margin"][:-1]}, "margin has .* labels, but"),
        (lambda found: {**found, "margin": found["margin"] * np.inf}, "is infinite|missing"),
        (lambda found: np.column_stack(list(found.values())), "must be a mapping or a data frame"),
    ],
)
def test_bad_columns(columns, match):
    with pytest.raises(DataError, match=match), np.errstate(invalid="ignore"):
        fitted(columns=columns)


def test_bad_arguments():
    train, valid, _ = parts()
    with pytest.raises(ConfigError, match="two or more names"):
        GoalRanker({"relevance": "query_rmse"}).fit(train.X, train.columns, qid=train.qid)
    with pytest.raises(ConfigError, match="metric= has no goal 'price'"):
        GoalRanker(GOALS, metric={"price": "ndcg"}).fit(train.X, train.columns, qid=train.qid)
    with pytest.raises(ConfigError, match="needs eval_set="):
        GoalRanker(GOALS, early_stopping_rounds=3).fit(train.X, train.columns, qid=train.qid)
    few = valid.qid % 1_000_000 < 15
    with pytest.raises(DataError, match="each needs at least 10"):
        GoalRanker(GOALS, **FAST).fit(
            train.X,
            train.columns,
            qid=train.qid,
            eval_set=(valid.X[few], {goal: y[few] for goal, y in valid.columns.items()}),
            eval_qid=valid.qid[few],
        )
    ranker = GoalRanker(GOALS, **FAST).fit(train.X, train.columns, qid=train.qid)
    with pytest.raises(ConfigError, match="pick values settings on validation queries"):
        ranker.pick({"relevance": 0.9})
    with pytest.raises(ConfigError, match="fit got no validation queries"):
        ranker.predict(train.X, at=0.2)
    with pytest.raises(ConfigError, match="there is no goal 'price'"):
        ranker.predict(train.X, weights={"price": 1})
    with pytest.raises(ConfigError, match="all weights are 0"):
        ranker.predict(train.X, weights={"margin": 0})
    ranker = fitted()
    with pytest.raises(ParameterError, match="at_least= names goals"):
        ranker.pick({"price": 0.9})
    with pytest.raises(ParameterError, match="share of relevance"):
        ranker.pick({"relevance": 1.2})
    with pytest.raises(ParameterError, match="at must be"):
        ranker.predict(train.X, at=1.5)


def test_it_is_a_scikit_learn_estimator():
    sklearn = pytest.importorskip("sklearn.base")
    ranker = GoalRanker(GOALS, middle=0, num_leaves=7)
    again = sklearn.clone(ranker)
    assert again.get_params() == ranker.get_params()
    assert repr(again).startswith("GoalRanker(goals=")


def test_the_page_of_a_front_is_whole(tmp_path):
    front = fitted().front_
    page = front.to_html(tmp_path / "front.html")
    assert (tmp_path / "front.html").read_text(encoding="utf-8") == page
    assert page.count("<circle") == 42
    assert "served" in page
    assert str(front).splitlines()[0].split() == ["at", "relevance", "margin"]


def test_the_plot_has_both_goals():
    pytest.importorskip("matplotlib").use("agg")
    axes = fitted().front_.plot()
    assert axes.get_xlabel() == "relevance (ndcg@10)"
    assert axes.get_ylabel() == "margin (ndcg(gain=linear)@10)"


def test_the_demonstration_has_a_second_goal_and_stays_the_same():
    one, two = demo_data(20), demo_data(20, goals=2)
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(one.labels, two.labels)
    assert list(one.columns) == ["relevance"]
    assert two.margin is not None
    assert two.margin.shape == two.labels.shape
    assert two.margin_probabilities is not None
    np.testing.assert_allclose(two.margin_probabilities.sum(axis=1), 1.0)
    with pytest.raises(ParameterError, match="1 or 2 goals"):
        demo_data(20, goals=3)
