"""The study of bipartite risks: data, tuning, printed tables, and best scores."""

import numpy as np
import pytest

from gbmrank.api import metric
from gbmrank.data import RankingData
from gbmrank.errors import ConfigError
from studies.linear import fit_linear, standardise
from studies.menon2014 import bayes_scorers
from studies.menon2014 import bipartite as fits
from studies.menon2014 import experiment as study
from studies.menon2014.bipartite import MEASURES, load_uci, simulated, split_two_to_one, stratified
from studies.menon2014.experiment import PRINTED, PRINTED_RANKS
from studies.study import Settings

IONOSPHERE = "1,0,0.5,-0.25,g\n0,0,0.1,0.2,b\n"
HOUSING = " 0.006  18.0  2.31  0  0.53\n 0.027   0.0  7.07  1  0.46\n"
GERMAN = "   1   6   4   1\n   2  48   2   2\n"
CAR = "vhigh,2,small,unacc\nlow,4,big,vgood\nlow,2,big,acc\n"
TEXTS = {
    "ionosphere.data": IONOSPHERE,
    "housing.data": HOUSING,
    "german.data-numeric": GERMAN,
    "car.data": CAR,
}


METHODS = fits.method_names()


@pytest.fixture(scope="module")
def outcome():
    return study.run(Settings(small=True, threads=1, report=lambda line: None))


def write(folder, **changed: str) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in {**TEXTS, **{key.replace("_", "."): changed[key] for key in changed}}.items():
        (folder / name).write_text(text)


def test_files_are_read_as_published(tmp_path):
    write(tmp_path / "uci")
    radar, homes, credit, cars = load_uci(tmp_path, "")
    np.testing.assert_array_equal(radar.y, [1, 0])
    np.testing.assert_array_equal(radar.X[0], [1, 0, 0.5, -0.25])
    np.testing.assert_array_equal(homes.y, [0, 1])
    np.testing.assert_array_equal(homes.X[1], [0.027, 0.0, 7.07, 0.46])
    np.testing.assert_array_equal(credit.y, [0, 1])
    np.testing.assert_array_equal(credit.X, [[1, 6, 4], [2, 48, 2]])
    np.testing.assert_array_equal(cars.y, [0, 1, 0])
    np.testing.assert_array_equal(  # low, vhigh; 2, 4; big, small
        cars.X, [[0, 1, 1, 0, 0, 1], [1, 0, 0, 1, 1, 0], [1, 0, 1, 0, 1, 0]]
    )


def test_what_is_missing_or_broken_is_named(tmp_path):
    write(tmp_path / "uci", car_data="low,2,small,unacc\nlow,2\n")
    with pytest.raises(ValueError, match="number of columns changed from 4 to 2 at row 2"):
        load_uci(tmp_path, "")
    (tmp_path / "uci" / "car.data").unlink()
    with pytest.raises(ConfigError, match=r"no car\.data.*UCI repository"):
        study.run(Settings(data=tmp_path))


def test_splits_keep_the_share_of_relevant_rows():
    y = np.repeat([1.0, 0.0], [30, 90])
    train, test = split_two_to_one(y, np.random.default_rng(0))
    assert sorted([*train, *test]) == list(range(120))
    assert (len(test), y[test].sum()) == (40, 10)
    folds = stratified(y, 5, np.random.default_rng(1))
    assert [y[folds == fold].sum() for fold in range(5)] == [6] * 5


def test_printed_ranks_are_the_dense_ranks_of_the_printed_means():
    for measure in MEASURES:
        ranks = np.zeros(len(METHODS))
        for cells in PRINTED.values():
            means = [cells[method, measure].mean for method in METHODS]
            ranks += [1 + len({other for other in means if other > mean}) for mean in means]
        printed = [PRINTED_RANKS[method, measure] for method in METHODS]
        np.testing.assert_allclose(ranks / len(PRINTED), printed, atol=1e-9)


def test_our_ranks_are_dense_and_averaged():
    def made(values: list[float]) -> dict:
        return {
            (method, measure): np.array([value, value])
            for method, value in zip(METHODS, values, strict=True)
            for measure in MEASURES
        }

    first, second = made([0.5] * 2 + [0.9] * 12), made([0.8] + [0.7] * 12 + [0.1])
    ranks = study._average_ranks({"a": first, "b": second})
    assert [ranks[method, "AP"] for method in METHODS] == [1.5, 2.0, *[1.5] * 11, 2.0]


def test_mean_reciprocal_rank_and_dcg_are_means_over_relevant_rows():
    y, scores = np.array([0.0, 1.0, 0.0, 1.0]), np.array([4.0, 3.0, 2.0, 1.0])
    by_name = {name: metric(text).score(y, scores) for name, text in MEASURES.items()}
    assert by_name["MRR"] == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert by_name["DCG"] == pytest.approx((1 / np.log2(3) + 1 / np.log2(5)) / 2)
    assert by_name["AUC"] == pytest.approx(1 / 4)


def test_a_push_of_power_one_is_the_bipartite_risk():
    data = simulated(np.random.default_rng(0), 90)
    (x,) = standardise(data.X)
    models = [
        fits._fit(fits._Candidate(text, 0.1), x, data.y, None).w
        for text in (
            "bipartite(loss=exponential, normalize=none)",
            "push(loss=exponential, p=1, normalize=none)",
        )
    ]
    np.testing.assert_allclose(models[0], models[1], atol=1e-4)


def test_pointwise_risks_are_means_with_a_free_intercept():
    data = simulated(np.random.default_rng(0), 90)
    (x,) = standardise(data.X)
    text = "pointwise(loss=logistic, target=precision)"
    ours = fits._fit(fits._Candidate(text, 0.1), x, data.y, None)
    summed = fit_linear(text, RankingData.from_arrays(data.y), x, l2=0.1 * len(x))
    np.testing.assert_allclose(ours.w, summed.w, atol=1e-4)
    chance = 1.0 / (1.0 + np.exp(-ours.scores(x)))
    assert chance.mean() == pytest.approx(data.y.mean(), abs=1e-4)


def test_tuning_takes_the_penalty_with_the_best_precision():
    data = simulated(np.random.default_rng(2))
    folds = stratified(data.y, 3, np.random.default_rng(0))
    noise = np.random.default_rng(1).normal(size=(len(data.y), 60))
    wide = np.column_stack([data.X, noise])
    grid = fits.Grid((1.0, 1e-6), (1,), 3)
    chosen = fits._tuned(wide, data.y, folds, "Proper Logistic", grid)
    assert chosen.penalty == 1.0  # without a penalty 65 features fit the noise


def test_every_method_ranks_better_than_chance(outcome):
    table = outcome.tables[0]
    assert [row[0] for row in table.rows] == METHODS
    for row in table.rows:
        values = dict(
            zip(table.columns[1:], (float(cell.split()[0]) for cell in row[1:]), strict=True)
        )
        assert 0.7 < values["AUC"] < 1.0
        assert values["AP"] > 0.5  # chance: 0.3
    assert "printed" not in " ".join(table.columns)


def test_best_scores_follow_the_links_that_are_sigmoids(outcome):
    rows = {(row[0], row[1]): row for row in outcome.tables[-1].rows}
    for loss in ("logistic", "exponential", "p_classification(p=2)", "asymmetric_a"):
        assert float(rows["bipartite", loss][3]) < 1e-8
    for loss in ("squared_margin", "canonical_boosting"):
        assert float(rows["bipartite", loss][3]) > 0.01
    assert float(rows["exponential push", "p = 8"][3]) < 1e-8
    assert {row[4] for row in rows.values()} == {"yes"}
    assert any("logit(eta) / 3" in sentence for sentence in outcome.findings)


def test_distance_ignores_a_shift_and_order_is_seen():
    eta = np.array([0.2, 0.8, 0.5])
    shifted = bayes_scorers.Scored(eta, eta + 3.0, eta)
    assert shifted.distance == pytest.approx(0.0, abs=1e-12)
    assert shifted.increasing
    assert not bayes_scorers.Scored(eta, -eta, eta).increasing


def test_level_and_differences_are_told_whichever_way_they_come_out():
    values = {
        (method, measure): np.array([0.8, 0.9]) + 0.1 * method.startswith("Bipartite")
        for method in METHODS
        for measure in MEASURES
    }
    told = study._family_findings({"car": values})
    assert "AUC +0.1000 [+0.1000, +0.1000] (the first is better)" in told[0]
    assert "AUC +0.0000 [+0.0000, +0.0000] (no clear difference)" in told[1]
    level = study._level_findings({"car": values})[0]
    assert level.startswith("Level on car")
    printed = np.mean([PRINTED["car"][method, "PTop"].mean for method in METHODS])
    ours = 0.85 + 0.1 * 5 / 14
    assert f"PTop {ours:.4f} (printed {printed:.4f}, 0 of 14)" in level


def test_plots_are_drawn(outcome):
    figures = pytest.importorskip("matplotlib.figure")
    panels = {}
    for name, draw in outcome.figures.items():
        figure = figures.Figure()
        draw(figure)
        panels[name] = sum(axes.get_visible() for axes in figure.axes)
    assert list(panels.values()) == [1, 5, 2, 4, 3]
