"""Gradients against 50 digits where scores are huge, close together, or both.

The bounds are relative to the sum of the absolute terms of an item, S:

- arrays: ``(1e-13 + 1e-15 max|s|) S``, a few units of the last place of the scores;
- boosters, which get float32: ``4e-7 S``, a few units of its last place.

Below 1e-30 (1e-37 in float32) numbers count as zero. Terms above 1e37, which only losses of
exponential growth reach, are an error in training, and are clipped or an error on arrays.
"""

import numpy as np
import pytest

import gbmrank
from gbmrank.boosters.gradients import in_training, training_gradients
from gbmrank.errors import NumericError
from tests import objective_oracles as oracle
from tests.formulas import PLAIN
from tests.objectives.cases import is_compiled_each_time, one_per_kernel
from tests.precision.exact import gradient, mp

LABELS = np.array([2.0, 0.0, 4.0, 1.0, 3.0, 0.5])
TOO_LARGE = 1e37
NOISE = 1e-30
# Numbers of float32, which XGBoost has, but for the last.
SCORES = {
    "huge": [1e4, -1e4, 5e3, -2.5e3, 0.25, 9999.5],
    "wide": [300.0, -300.0, 120.5, -40.25, 0.375, 298.25],
    "tiny": np.array([0.0, 1e-9, -1e-12, 1e-30, -3e-9, 2e-8], np.float32).astype(float),
    "mixed": np.array([1e4, 1e-20, -1e-8, 3.25, -1e4, -699.5], np.float32).astype(float),
    "high and close": 1e4 + np.array([0, 1e-10, -3e-10, 2e-9, 7e-9, -5e-9]),
}
TEXTS = [
    pytest.param(text, marks=pytest.mark.compiled if is_compiled_each_time(text) else ())
    for text in one_per_kernel()
    if not text.startswith("mix")  # mixes are sums
]


def errors(found, exact, noise):
    """Return |found - exact| / S for every item."""
    gaps = [abs(mp.mpf(float(a)) - b) for a, b in zip(found, exact.grad, strict=True)]
    return [
        float(gap / size) if gap > noise else 0.0
        for gap, size in zip(gaps, exact.size, strict=True)
    ]


@pytest.mark.parametrize("case", SCORES)
@pytest.mark.parametrize("text", TEXTS)
def test_extreme_scores(text, case):
    made, scores = gbmrank.objective(text), np.array(SCORES[case])
    exact = gradient(made.template, LABELS, scores)
    if max(exact.size) > TOO_LARGE:
        if PLAIN:
            pytest.skip("powers of Python raise an error where compiled ones are infinite")
        stops_or_clips(made, scores)
        return
    grad, _ = made.gradients(LABELS, scores)
    assert max(errors(grad, exact, NOISE)) <= 1e-13 + 1e-15 * np.abs(scores).max()
    if case != "high and close":
        bound = made.bind(gbmrank.RankingData.from_arrays(LABELS))
        single, _ = training_gradients(in_training(bound), scores, text, 1)
        assert max(errors(single, exact, 1e-37)) <= 4e-7


def stops_or_clips(made, scores):
    """Training stops; arrays stop too, or hold the sums of terms clipped at exp(700)."""
    bound = made.bind(gbmrank.RankingData.from_arrays(LABELS))
    with pytest.raises(NumericError):
        training_gradients(in_training(bound), scores, made, 1)
    try:
        grad, hess = made.gradients(LABELS, scores)
    except NumericError:
        return
    assert np.isfinite(grad).all()
    assert np.isfinite(hess).all()


@pytest.mark.parametrize("spread", [1.0, 30.0, 1e4])
@pytest.mark.parametrize("text", ["comparison(loss=logistic)", "pairwise(target=dcg)"])
def test_float32_scores_of_a_longer_query(text, spread):
    """Queries of this length are summed in float32 lanes; the bound is that of 100 such terms."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 100).astype(float)
    scores = (spread * rng.normal(size=100)).astype(np.float32)
    made = gbmrank.objective(text, normalize="none")
    if "pairwise" in text:
        factors = np.repeat((2**labels - 1)[:, None], 100, axis=1) * (1 - np.eye(100))
    else:
        factors = (labels[:, None] > labels).astype(float)
    _, exact, bends, size = oracle.pair_sums(
        factors, scores, lambda d: oracle.kappa_slopes("logistic", d, sigma=1.0)
    )
    grad, hess = made(labels, scores)
    assert np.all(np.abs(grad - exact) <= 1e-6 * size + 1e-37)
    usual = made.gradients(labels, np.zeros(100))[1].mean()
    floor = 1e-3 * max(bends.mean(), min(np.abs(exact).mean(), usual))
    np.testing.assert_allclose(hess, np.maximum(bends, floor).astype(float), rtol=1e-4)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("pointwise(loss=squared, target=identity)", 1e6 * np.arange(20.0)),
        ("cossock_zhang", np.arange(20.0)),
        ("pairwise(loss=squared, target=identity)", np.array([1e6, 0.0, 3e5])),
        ("duchi_linear", np.arange(10_000) % 5.0),
    ],
)
def test_boosters_get_the_exact_curvature_however_large_the_slope(text, labels):
    made = gbmrank.objective(text)
    scores = np.zeros(len(labels))
    _, exact = made.gradients(labels, scores, group=[len(labels)])
    state = in_training(made.bind(gbmrank.RankingData.from_arrays(labels)))
    _, hess = training_gradients(state, scores, made, 1)
    np.testing.assert_allclose(hess, exact, rtol=1e-6)
