"""The study of regret bounds: exact regrets, the bound, and the example of Theorem 3.3."""

import itertools

import numpy as np
import pytest

from gbmrank import theory
from gbmrank.boosters.plan import train
from studies.calauzenes2013 import experiment as study
from studies.study import Settings

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def outcome():
    return study.run(Settings(small=True, threads=1, report=lambda line: None))


@pytest.fixture(scope="module")
def world():
    return study._make_world(4, np.random.default_rng(3))


def column(table, name: str) -> list[str]:
    return [row[list(table.columns).index(name)] for row in table.rows]


def test_no_share_of_the_bound_is_above_one(outcome):
    table = outcome.tables[0]
    for name in ("bound used, one type", "bound used, mean"):
        shares = [float(cell) for cell in column(table, name) if cell != "-"]
        assert len(shares) == 2 * 3
        assert 0.0 < max(shares) < 1.0
    assert " 0 times" in outcome.findings[0]


def test_a_broken_bound_would_be_seen():
    bound = theory.regret_bound("pairwise(loss=squared, target=ndcg)", "ndcg", [6], 1.0)
    surrogate = np.array([[0.04, 0.01], [0.01, 0.01]])
    allowed = bound.value * np.sqrt(surrogate)
    kept = study._Trace(np.array([1, 2]), surrogate, 0.5 * allowed)
    broken = study._Trace(np.array([1, 2]), surrogate, allowed * [[0.5, 1.2], [0.5, 0.5]])
    assert study._used(bound, kept)[0] == pytest.approx(0.5)
    assert study._used(bound, broken)[0] == pytest.approx(1.2)
    assert np.sum(broken.metric > study._allowed(bound, surrogate)) == 1


def test_boosting_lowers_both_regrets(outcome):
    assert all(float(cell) < 0.05 for cell in column(outcome.tables[0], "NDCG regret, last round"))
    least = [float(cell) for cell in column(outcome.tables[0], "NDCG regret of the minimiser")]
    assert least[:-2] == [0.0] * 6  # order-preserving
    assert least[-1] > 0.001  # pairs of labels


def test_every_type_has_finite_minimisers_and_a_defined_metric(world):
    for one in world.labels:
        assert (one.labels.sum(axis=1) > 0).all()
        assert (one.expected_utilities("ndcg") > 0).all()
        assert one.minimiser("pairwise(loss=logistic, target=ndcg)").attained


def test_samples_come_from_the_types_in_the_order_of_their_features(world):
    part = world.sample(500, np.random.default_rng(0))
    drawn = part.data.labels.reshape(500, 4, 6)
    np.testing.assert_array_equal(part.features[:24], part.features[-24:])
    for number, one in enumerate(world.labels):
        mean = one.probabilities @ one.labels
        np.testing.assert_allclose(drawn[:, number].mean(axis=0), mean, atol=0.35)


def test_regrets_after_a_round_are_those_of_the_first_trees(world):
    sample = world.sample(20, np.random.default_rng(0))
    for backend in ("lightgbm", "xgboost"):
        plans = [
            study._plan("pointwise(loss=squared, target=ndcg)", backend, rounds, Settings())
            for rounds in (3, 9)
        ]
        few, many = (train(plan, sample) for plan in plans)
        early = study._scores_after(many, world.features, 3)
        np.testing.assert_allclose(early, few.scores(world.features), rtol=1e-6, atol=1e-7)
        assert np.abs(early - many.scores(world.features)).max() > 1e-3


def plain_err(labels, order) -> float:
    value, left = 0.0, 1.0
    for rank, item in enumerate(order, start=1):
        value += left * 0.5 * labels[item] / rank  # a relevant item satisfies every second time
        left *= 1.0 - 0.5 * labels[item]
    return value


def plain_ap(labels, order) -> float:
    found = np.cumsum([labels[item] for item in order])
    return sum(found[k] / (k + 1) for k, item in enumerate(order) if labels[item]) / found[-1]


def test_theorem_3_3_by_plain_loops(outcome):
    both = ((1, 1, 0, 0), (0, 0, 1, 1))
    rows = outcome.tables[1].rows
    for plain, row, change in ((plain_err, rows[0], 1 / 48), (plain_ap, rows[1], -1 / 24)):
        first, second = (
            np.mean([plain(labels, order) for labels in both])
            for order in ((0, 1, 2, 3), (0, 2, 1, 3))
        )
        assert second - first == pytest.approx(change, abs=1e-12)
        assert [float(cell) for cell in row[1:4]] == pytest.approx(
            [first, second, change], abs=1e-7
        )
    best = [
        max(itertools.permutations(range(4)), key=lambda o: sum(plain(y, o) for y in both))
        for plain in (plain_err, plain_ap)
    ]
    assert set(best[0][:2]) != {0, 1}
    assert set(best[1][:2]) == {0, 1}


def test_little_tilts_the_minimiser_to_the_wrong_order(monkeypatch):
    for measure, order in study._WRONG_FOR.items():
        regret = study._tilted(order, measure, study._PRESERVING)
        assert regret == pytest.approx(abs(study._PRINTED_CHANGES[measure][1]), rel=0.01)
        right = next(other for other in study._ORDERS if other != order)
        assert study._tilted(right, measure, study._PRESERVING) < 1e-12


def test_the_plot_has_a_panel_per_loss_and_the_bound_above_the_traces(outcome):
    from matplotlib.figure import Figure

    figure = Figure()
    outcome.figures["regret_bounds"](figure)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [len(axes.lines) for axes in shown] == [3, 3, 3, 2]
    for axes in shown[:3]:
        *traces, bound = axes.lines
        slope = bound.get_ydata() / np.sqrt(bound.get_xdata())
        for trace in traces:
            assert (trace.get_ydata() < slope[0] * np.sqrt(trace.get_xdata())).all()
