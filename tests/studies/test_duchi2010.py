"""The study of sampled pairs: data without leaks, the loss of the paper, what it says."""

import gzip

import numpy as np
import pytest

from gbmrank.errors import DataError
from studies.duchi2010 import experiment as study
from studies.intervals import Estimate
from studies.movielens import (
    FEATURES,
    features,
    read_movielens,
    sample_pairs,
    simulate_ratings,
)
from studies.study import Settings


@pytest.fixture(scope="module")
def ratings():
    return simulate_ratings(np.random.default_rng(1), n_users=12, n_items=25)


@pytest.fixture(scope="module")
def split(ratings):
    part = study._five_parts(ratings.user, np.random.default_rng(2))
    return part < 3, part == 4


def write_movies(folder, lines: list[str]) -> None:
    (folder / "u.item").write_bytes("\n".join(lines).encode("latin-1"))


def movie(number: int, date: str, genre: int, title: str = "A film") -> str:
    flags = "|".join("1" if place == genre else "0" for place in range(19))
    return f"{number}|{title}|{date}||http://x|{flags}"


def test_files_are_read_in_their_public_format(tmp_path):
    write_movies(
        tmp_path, [movie(7, "01-Jan-1995", 3, "Léon"), movie(2, "", 5), movie(9, "14-Feb-1931", 0)]
    )
    text = "5\t9\t4\t881250949\n1\t7\t2\t881250949\n5\t2\t1\t881250949\n"
    (tmp_path / "u.data.gz").write_bytes(gzip.compress(text.encode()))
    read = read_movielens(tmp_path)
    np.testing.assert_array_equal(read.user, [0, 1, 1])
    np.testing.assert_array_equal(read.item, [1, 0, 2])  # movies 7, 2, 9 by number: 2, 7, 9
    np.testing.assert_array_equal(read.rating, [2.0, 1.0, 4.0])
    np.testing.assert_array_equal(read.year, [np.nan, 1995.0, 1931.0])
    assert read.genres.argmax(axis=1).tolist() == [5, 3, 0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("1\t7\t2\t0\n1\t7\n", "row 2"),
        ("1\t7\tgood\t0\n", "'good'"),
        ("1\t7\t2\t0\n1\t8\t2\t0\n", "8"),
    ],
)
def test_broken_files_are_not_read(tmp_path, data, message):
    write_movies(tmp_path, [movie(7, "01-Jan-1995", 3)])
    (tmp_path / "u.data").write_text(data)
    with pytest.raises((ValueError, KeyError), match=message):
        read_movielens(tmp_path)


def test_features_never_see_a_rating_outside_the_reference(ratings, split):
    reference, rows = split
    before = features(ratings, reference, rows)
    shuffled = ratings.rating.copy()
    shuffled[~reference] = np.random.default_rng(0).permutation(shuffled[~reference])
    changed = type(ratings)(ratings.user, ratings.item, shuffled, ratings.genres, ratings.year)
    np.testing.assert_array_equal(features(changed, reference, rows), before)
    shuffled = 6.0 - ratings.rating
    changed = type(ratings)(ratings.user, ratings.item, shuffled, ratings.genres, ratings.year)
    assert not np.allclose(features(changed, reference, rows), before)
    with pytest.raises(ValueError, match="part of its own features"):
        features(ratings, reference | rows, rows)


def test_features_are_what_their_names_say(ratings, split):
    reference, rows = split
    table = features(ratings, reference, rows)
    assert table.shape == (rows.sum(), len(FEATURES))
    known = {
        (u, i): y
        for u, i, y in zip(
            ratings.user[reference], ratings.item[reference], ratings.rating[reference], strict=True
        )
    }
    overall = np.mean(list(known.values()))

    def shrunk(values, towards=overall, by=5.0):
        return (sum(values) + by * towards) / (len(values) + by)

    mean = {u: shrunk([y for (v, _), y in known.items() if v == u]) for u in range(12)}
    centred = {(u, i): y - mean[u] for (u, i), y in known.items()}

    def alike(u, v):
        both = [i for (w, i) in known if w == u and (v, i) in known]
        a, b = ([centred[w, i] for i in both] for w in (u, v))
        if u == v or not any(a) or not any(b):
            return 0.0
        return np.dot(a, b) / np.sqrt(np.dot(a, a) * np.dot(b, b)) * len(both) / (len(both) + 10)

    for row in (0, 5, len(table) - 1):
        u, i = ratings.user[rows][row], ratings.item[rows][row]
        assert table[row, 0] == 1998.0 - ratings.year[i]
        np.testing.assert_array_equal(table[row, 1:20], ratings.genres[i])
        by_genre = [
            shrunk([c for (v, j), c in centred.items() if v == u and ratings.genres[j, g]], 0.0)
            for g in np.flatnonzero(ratings.genres[i])
        ]
        others = {v: alike(u, v) for v in range(12) if (v, i) in known}
        expected = [
            np.mean(by_genre),
            shrunk([y for (_, j), y in known.items() if j == i]),
            *(
                sum(max(sign * a, 0.0) * centred[v, i] for v, a in others.items())
                / (1.0 + sum(max(sign * a, 0.0) for a in others.values()))
                for sign in (1, -1)
            ),
        ]
        np.testing.assert_allclose(table[row, 20:], expected, rtol=1e-9, atol=1e-12)


def test_every_user_is_dealt_to_five_parts_evenly(ratings):
    part = study._five_parts(ratings.user, np.random.default_rng(0))
    for user in range(12):
        counts = np.bincount(part[ratings.user == user], minlength=5)
        assert counts.max() - counts.min() <= 1
    again = study._five_parts(ratings.user, np.random.default_rng(1))
    assert not np.array_equal(part, again)


def test_pairs_are_of_one_user_with_the_better_rated_first(ratings):
    user = np.append(ratings.user, [12, 12])  # one more user, whose ratings are equal
    rating = np.append(ratings.rating, [3.0, 3.0])
    pairs = sample_pairs(np.random.default_rng(0), user, rating, 6000)
    np.testing.assert_array_equal(user[pairs.winner], user[pairs.loser])
    np.testing.assert_array_equal(pairs.weight, rating[pairs.winner] - rating[pairs.loser])
    assert pairs.weight.min() >= 1.0
    counts = np.bincount(user[pairs.winner], minlength=13)
    starts = np.flatnonzero(np.diff(user)) + 1
    assert counts[12] == 0
    # A user comes up as often as two of its rows, drawn at random, have different ratings.
    share = np.array([np.not_equal.outer(y, y).mean() for y in np.split(rating, starts)[:12]])
    expected = 6000 * share / share.sum()
    assert np.all(np.abs(counts[:12] - expected) < 5 * np.sqrt(expected))
    first = pairs.first(50)
    np.testing.assert_array_equal(first.winner, pairs.winner[:50])
    with pytest.raises(DataError, match="no user gave two different ratings"):
        sample_pairs(np.random.default_rng(0), np.zeros(3, int), np.ones(3), 5)


def test_the_loss_is_that_of_equation_7(ratings):
    pairs = sample_pairs(np.random.default_rng(3), ratings.user, ratings.rating, 500)
    scores = np.random.default_rng(4).integers(0, 4, len(ratings.user)).astype(float)  # many ties
    total, charged = 0.0, 0
    for i, j, weight in zip(pairs.winner, pairs.loser, pairs.weight, strict=True):
        tied = scores[i] == scores[j]
        charged += bool(tied and i < j)
        total += weight * (scores[i] < scores[j] or (tied and i < j))
    assert 0 < charged < 500
    assert pairs.judge()(scores) == pytest.approx(total / 500, rel=1e-12)


def test_the_linear_loss_regularises_both_scores_of_every_pair(ratings):
    pairs = sample_pairs(np.random.default_rng(5), ratings.user, ratings.rating, 300)
    scores = np.random.default_rng(6).normal(size=len(ratings.user))
    objective, data, rows = study._bound(pairs, "linear")
    assert rows is not None
    found = objective.bind(data).losses(scores[rows]).sum()
    better, worse = scores[pairs.winner], scores[pairs.loser]
    linear = (pairs.weight * (worse - better)).sum()
    assert found == pytest.approx(linear + 1e-4 * (better**2 + worse**2).sum(), rel=1e-10)
    objective, data, rows = study._bound(pairs, study._SUMMED)
    assert rows is None
    found = objective.bind(data).losses(scores).sum()
    assert found == pytest.approx(linear + 1e-4 * (scores**2).sum(), rel=1e-10)
    objective, data, _ = study._bound(pairs, "hinge")
    expected = (pairs.weight * np.maximum(0.0, 1.0 - (better - worse))).sum()
    assert objective.bind(data).losses(scores).sum() == pytest.approx(expected, rel=1e-10)


@pytest.fixture(scope="module")
def outcome():
    return study.run(Settings(small=True, threads=1, report=lambda _: None))


def test_a_small_run_learns_and_compares(outcome):
    levels, differences = outcome.tables
    assert {tuple(row[:3]) for row in levels.rows} == {
        *(
            ("linear", n, name)
            for n in ("200", "800")
            for name in (*study._OBJECTIVES, study._SUMMED)
        ),
        *(("trees", "800", name) for name in study._OBJECTIVES),
    }
    means = {tuple(row[:3]): float(row[3].split()[0]) for row in levels.rows}
    assert max(means.values()) < 0.45  # random scores lose half the mean weight, about 0.7
    for model, n, names, ours, printed in differences.rows:
        name, other = names.rsplit(" - ", 1)
        expected = means[model, n, name] - means[model, n, other]
        assert float(ours.split()[0]) == pytest.approx(expected, abs=2e-4)  # four decimals
        assert printed == ""
    assert outcome.findings[0].startswith("This is a short run on made-up ratings")
    assert not any("printed" in sentence for sentence in outcome.findings)


def test_the_seed_decides_everything(outcome):
    rng = np.random.default_rng
    ratings = simulate_ratings(rng(0))
    part = study._five_parts(ratings.user, rng(1))
    folds = [study._fold(ratings, part, study._SMALL, rng(seed)) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(folds[0].test.winner, folds[1].test.winner)
    np.testing.assert_array_equal(folds[0].features[2], folds[1].features[2])
    assert not np.array_equal(folds[0].test.winner, folds[2].test.winner)
    assert outcome.facts["seed"] == 0


def test_the_plot_shows_every_loss(outcome):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    outcome.figures["losses"](figure)
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert labels == list(study._OBJECTIVES)  # and no printed numbers, whose sizes are others


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (Estimate(-0.01, -0.02, -0.005), "linear has a lower loss than hinge, as printed"),
        (Estimate(-0.01, -0.02, 0.005), "does not differ clearly from hinge (printed: lower)"),
        (Estimate(0.01, 0.005, 0.02), "a higher loss than hinge, against the printed direction"),
    ],
)
def test_claims_say_what_the_interval_says(last, said):
    by_size = {20_000: Estimate(-0.01, -0.02, -0.005), 160_000: last}
    sentence = study._claim("linear", "linear", "hinge", by_size)
    assert said in sentence
    assert str(last) in sentence
    lower, higher = 1 + (last.sign < 0), int(last.sign > 0)
    assert f"2 sizes of the training set, {lower} show it lower and {higher} higher" in sentence
