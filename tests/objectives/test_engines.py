"""Every engine against sums over all pairs in long doubles."""

import itertools
import json
from typing import Any

import numpy as np
import pytest

import gbmrank
from gbmrank import RankingData
from gbmrank.cli import main
from gbmrank.objectives import pair_sums
from tests import objective_oracles as oracle
from tests.formulas import PLAIN
from tests.objectives.test_values import pair_factors

pytestmark = pytest.mark.compiled


@pytest.fixture
def rng():
    """The same draws for a test whatever ran before it."""
    return np.random.default_rng(17)


def score_vectors(n, rng):
    """Random and adversarial scores."""
    normal = rng.normal(size=n)
    return {
        "normal": normal,
        "equal": np.full(n, 0.37),
        "ties": np.round(2 * normal) / 2,
        "clusters": normal + 1e3 * (np.arange(n) % 2),
        "near clusters": normal + 50.0 * (np.arange(n) % 2),
        "heavy tails": np.clip(rng.standard_cauchy(n), -1e4, 1e4),
        "far away": normal + 1e4,
    }


def labels_of(n, levels, rng):
    if levels >= n:
        return rng.permutation(n).astype(float)
    return (np.arange(n) % levels).astype(float)[rng.permutation(n)]


ENGINES = [
    ("pairs", "logistic"),
    ("pairs", "asymmetric_b"),
    ("pairs", "squared_hinge"),
    ("closed", "exponential"),
    ("closed", "p_classification"),
    ("closed", "squared_margin"),
    ("sorted", "hinge"),
    ("sorted", "squared_hinge"),
    ("linear", "logistic"),
    ("linear", "canonical_boosting"),
    ("linear", "brier_sigmoid"),
    ("linear", "exponential"),
    ("auto", "logistic"),
    ("auto", "squared_hinge"),
]


NIGHT: Any = () if PLAIN else pytest.mark.nightly  # compiled
EACH_TIME = (
    ("pairs", "logistic"),
    ("closed", "exponential"),
    ("sorted", "squared_hinge"),
    ("linear", "logistic"),
    ("auto", "logistic"),
)


def engines() -> Any:
    """Every engine and loss; those of every run compile the least and differ the most."""
    return pytest.mark.parametrize(
        ("engine", "loss"),
        [
            pytest.param(
                engine,
                loss,
                marks=() if (engine, loss) in EACH_TIME else NIGHT,
            )
            for engine, loss in ENGINES
        ],
    )


STEEP = ("exponential", "p_classification", "asymmetric_b")
LONGEST = 420  # engine=auto sorts from 350 items, and interpolates from 400
# Rounding of a difference of scores is part of every engine: it grows with their size.
EXACT, LINEAR = 1e-10, 1e-8


def check(spec: str, labels: Any, scores: Any, tolerance: float) -> None:
    made: Any = gbmrank.objective(spec, hessian="exact")
    template, n = made.template, len(labels)
    factors = pair_factors(template, labels) * oracle.scale_of(template, n)
    loss = template.loss
    value, g, h, size = oracle.pair_sums(
        factors, scores, lambda d: oracle.kappa_slopes(loss.name, d, **oracle.params_of(loss))
    )
    grad, hess = made.gradients(labels, scores)
    # The linear-time engine leaves out what a tail adds below 1e-18 of the loss near zero.
    reach = (1e-17 if tolerance == LINEAR else 0.0) * (factors.sum(axis=0) + factors.sum(axis=1))
    if loss.name == "squared_margin":
        # Its slopes 1 - d cancel across the terms of the closed form.
        terms = factors * (1 + np.abs(scores[:, None] - scores[None, :]))
        reach = 1e-14 * (terms.sum(axis=0) + terms.sum(axis=1)) * (1 + np.ptp(scores))
    np.testing.assert_array_less(np.abs(grad - g), tolerance * size + reach + 1e-290)
    bends = size if loss.name == "brier_sigmoid" else h  # its curvatures have both signs
    np.testing.assert_array_less(np.abs(hess - h), 2 * tolerance * bends + reach + 1e-290)
    assert abs(made.loss(labels, scores) - value) <= tolerance * value + reach.sum() + 1e-290


@pytest.mark.parametrize("n", [1, 2, 3, 40, LONGEST])
@engines()
def test_all_pairs(engine, loss, n, rng):
    for scores in score_vectors(n, rng).values():
        if loss in STEEP and np.ptp(scores) > 300:
            continue  # exponents are clipped there
        text = f"pairwise(loss={loss}, target=identity, engine={engine})"
        tolerance = LINEAR if engine in ("linear", "auto") else EXACT
        for labels in (labels_of(n, 5, rng), np.eye(1, n, int(np.argmax(scores)))[0]):
            check(text, labels, scores, tolerance)


@pytest.mark.parametrize("levels", [2, 5, 10**6])
@engines()
def test_levels(engine, loss, levels, rng):
    for n in (2, 3, 60, LONGEST if engine == "auto" else 260):
        if levels == 5 and n < 60:
            continue
        for scores in score_vectors(n, rng).values():
            if loss in STEEP and np.ptp(scores) > 300:
                continue
            tolerance = LINEAR if engine in ("linear", "auto") else EXACT
            check(
                f"comparison(loss={loss}, engine={engine})",
                labels_of(n, levels, rng),
                scores,
                tolerance,
            )
            if levels == 2:
                check(
                    f"bipartite(loss={loss}, engine={engine})",
                    labels_of(n, 2, rng),
                    scores,
                    tolerance,
                )


@pytest.mark.parametrize(
    ("loss", "engines"),
    [
        ("logistic", ("auto", "linear")),
        pytest.param("exponential", ("closed",), marks=NIGHT),
        pytest.param("exponential", ("auto", "linear"), marks=pytest.mark.nightly),
    ],
)
def test_engines_of_a_push_agree(loss, engines, rng):
    for n in (2, 3, 50, LONGEST):
        for name, scores in score_vectors(n, rng).items():
            if loss in STEEP and np.ptp(scores) > 150:
                continue
            labels = labels_of(n, 2, rng)
            exact = gbmrank.objective(f"push(loss={loss}, p=4, engine=pairs)")
            expected, value = exact.gradients(labels, scores), exact.loss(labels, scores)
            for engine in engines:
                made = gbmrank.objective(f"push(loss={loss}, p=4, engine={engine})")
                found = made.gradients(labels, scores)
                # Each sum is accurate relative to the largest it stands beside.
                for part, whole in zip(found, expected, strict=True):
                    limit = 1e-8 * np.abs(whole).max() + 1e-17  # see check()
                    assert np.abs(part - whole).max() <= limit, (name, engine)
                assert made.loss(labels, scores) == pytest.approx(value, rel=1e-8, abs=1e-17)


def test_long_queries_of_a_push_do_not_see_each_other(rng):
    made = gbmrank.objective("push(p=4, engine=linear)")
    sizes = [40, 30, 50]
    labels = np.concatenate([labels_of(n, 2, rng) for n in sizes])
    scores = np.concatenate([rng.normal(size=n) + 100.0 * at for at, n in enumerate(sizes)])
    together = made.gradients(labels, scores, group=sizes)
    ends = np.cumsum(sizes)[:-1]
    alone = [
        made.gradients(*parts)
        for parts in zip(np.split(labels, ends), np.split(scores, ends), strict=True)
    ]
    for found, *parts in zip(together, *alone, strict=True):
        np.testing.assert_allclose(found, np.concatenate(parts), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(
    "spec",
    [
        "pairwise(target=identity)",
        "comparison",
        "bipartite",
        pytest.param("pairwise(loss=hinge, target=identity)", marks=NIGHT),
    ],
)
def test_automatic_choice_is_seamless(spec, rng):
    for n in (249, 250, 349, 350, 399, 400, 401, 799, 800, 801):
        labels, scores = labels_of(n, 2, rng), rng.normal(size=n)
        found = gbmrank.objective(spec).gradients(labels, scores)
        exact = gbmrank.objective(spec, engine="pairs").gradients(labels, scores)
        for part, whole in zip(found, exact, strict=True):
            assert np.abs(part - whole).max() <= 1e-8 * np.abs(whole).max()


def test_a_useful_item_far_above_the_rest_loses_no_digits():
    """The pair (i, i) is never subtracted: its rounding would outweigh the true gradient."""
    labels, scores = np.array([1.0, 0, 0]), np.array([60.0, 0, 1])
    for loss in ("exponential", "p_classification"):
        made = gbmrank.objective(f"pairwise(loss={loss}, target=identity, normalize=none)")
        pull = -(np.exp(-60.0) + np.exp(-59.0)) * (1.0 if loss == "exponential" else 0.5)
        grad, hess = made.gradients(labels, scores)
        assert grad[0] == pytest.approx(pull, rel=1e-13)
        assert hess[0] == pytest.approx(-pull, rel=1e-13)
        assert abs(grad.sum()) <= 1e-13 * abs(pull)


def test_the_squared_margin_far_from_zero_loses_no_digits():
    """The mean of such scores is rounded, so what is left over by it must stay in the sums."""
    labels, scores = np.array([2.0, 0.0, 1.0]), 1e8 + np.array([0.31, 0.12, 0.77])
    assert np.sum(scores - scores.mean()) != 0.0
    text = "pairwise(loss=squared_margin, target=identity, normalize=none, engine=closed)"
    made = gbmrank.objective(text)
    d = scores[:, None] - scores[None, :]  # exact: they are close to each other
    factors = labels[:, None] * (1 - np.eye(3))
    slopes = -2 * factors * (1 - d)
    assert made.loss(labels, scores) == pytest.approx((factors * (1 - d) ** 2).sum(), rel=1e-13)
    grad, _ = made.gradients(labels, scores)
    np.testing.assert_allclose(grad, slopes.sum(axis=1) - slopes.sum(axis=0), rtol=1e-13)


# ------------------------------------------------------------ one query for all threads

LONG = 200_001


@pytest.fixture(scope="module")
def long_query():
    rng = np.random.default_rng(1)
    return (np.arange(LONG) % 5).astype(float), rng.normal(size=LONG) * 2


@pytest.mark.parametrize(
    "spec",
    [
        "pairwise(target=identity)",
        "comparison",
        "bipartite(threshold=3)",
        "pairwise(loss=exponential, target=identity)",
    ],
)
def test_long_queries(spec, long_query):
    labels, scores = long_query
    made: Any = gbmrank.objective(spec)
    grad, hess = made.gradients(labels, scores, group=[LONG])
    loss, template = made.template.loss, made.template
    scale = oracle.scale_of(template, LONG)
    if template.name == "bipartite":
        up = labels >= 3
        scale /= up.sum() * (~up).sum()
    for row in range(0, LONG, 40_011):
        down = oracle.kappa_slopes(loss.name, scores[row] - scores, **oracle.params_of(loss))
        up = oracle.kappa_slopes(loss.name, scores - scores[row], **oracle.params_of(loss))
        if template.name == "pairwise":
            better, worse = np.full(LONG, labels[row]), labels.copy()
            better[row] = worse[row] = 0.0
        else:
            grade = labels if template.name == "comparison" else (labels >= 3).astype(float)
            better, worse = (grade[row] > grade).astype(float), (grade > grade[row]).astype(float)
        g = (better * down[1] - worse * up[1]).sum() * scale
        size = (np.abs(better * down[1]) + np.abs(worse * up[1])).sum() * scale
        h = (better * down[2] + worse * up[2]).sum() * scale
        assert abs(grad[row] - g) <= 1e-8 * size
        assert hess[row] == pytest.approx(h, rel=1e-8)
    ready = made.bind(RankingData.from_arrays(labels))
    single = ready.gradients(scores, np.float32, single=True)
    assert np.abs(single[0] - grad).max() <= 1e-5 * np.abs(grad).max()


def test_long_queries_with_many_levels_do_not_pay_for_each_level():
    """As many levels as items would cost cells each: such a query is not long."""
    labels = np.arange(LONG, dtype=float)
    ready: Any = gbmrank.objective("comparison").bind(RankingData.from_arrays(labels))
    assert ready.long is None
    few: Any = gbmrank.objective("comparison").bind(RankingData.from_arrays(labels // 1000))
    assert few.long[0].tolist() == [0]


def test_a_closed_form_serves_long_queries_too(long_query):
    ready: Any = gbmrank.objective("rankboost").bind(RankingData.from_arrays(long_query[0]))
    assert ready.closed is not None
    assert ready.long is None


def test_long_and_short_queries_side_by_side(long_query):
    labels, scores = long_query
    more = np.concatenate([labels, labels[:7]]), np.concatenate([scores, scores[:7]])
    made = gbmrank.objective("ranknet")
    grad, hess = made.gradients(*more, group=[LONG, 7], weight=[2.0, 3.0])
    alone = made.gradients(labels, scores, group=[LONG])[0]
    np.testing.assert_allclose(grad[:LONG], 2 * alone, rtol=1e-12)
    np.testing.assert_allclose(
        hess[LONG:], 3 * made.gradients(labels[:7], scores[:7])[1], rtol=1e-12
    )


@pytest.mark.parametrize(
    "spec",
    [
        "pairwise",
        "comparison",
        "push",
        pytest.param("pairwise(loss=canonical_boosting)", marks=pytest.mark.nightly),
    ],
)
def test_queries_of_all_lengths_side_by_side(spec, rng):
    """Long ones, long ones whose scores lie too far apart, one class only, and short ones."""
    sizes = [3, 1300, 1, 700, 2, 5000, 1200, 60]
    labels = np.concatenate([labels_of(size, 2, rng) for size in sizes])
    scores = 2.0 * rng.normal(size=sum(sizes))
    starts = np.cumsum([0, *sizes])
    scores[starts[3] : starts[4]] *= 100.0
    labels[starts[6] : starts[7]] = 1.0
    weight = rng.uniform(0.5, 2.0, len(sizes))
    weight[1] = 0.0
    auto, pairs = gbmrank.objective(spec), gbmrank.objective(spec, engine="pairs")
    data = RankingData.from_arrays(labels, group=sizes, weight=weight)
    bound: Any = auto.bind(data)
    assert bound.long is not None
    exact = pairs.bind(data).gradients(scores)
    for found in (bound.gradients(scores), bound.gradients(scores, np.float32, single=True)):
        for part, whole in zip(found, exact, strict=True):
            for first, last in itertools.pairwise(starts.tolist()):
                size = np.abs(whole[first:last]).max()
                assert np.abs(part[first:last] - whole[first:last]).max() <= 2e-6 * size
    np.testing.assert_allclose(bound.losses(scores), pairs.bind(data).losses(scores), rtol=1e-9)


@pytest.mark.parametrize("spec", ["pairwise", "ranknet"])
def test_single_precision_over_wide_ranges(spec, rng):
    """Float32 lanes reach as far as their exponentials; the next kernels take what they leave."""
    widths = np.array([70.0, 85.0, 300.0, 690.0, 710.0, 5000.0])
    labels = np.concatenate([labels_of(300, 3, rng) for _ in widths])
    scores = np.concatenate([[0.0, width, *(width * rng.random(298))] for width in widths])
    sizes = [300] * len(widths)
    bound: Any = gbmrank.objective(spec).bind(RankingData.from_arrays(labels, group=sizes))
    single, exact = bound.gradients(scores, np.float32, single=True), bound.gradients(scores)
    for part, whole in zip(single, exact, strict=True):
        error = np.abs(part - whole).reshape(len(widths), -1).max(axis=1)
        size = np.abs(whole).reshape(len(widths), -1).max(axis=1)
        assert error[0] <= 1e-5 * size[0]
        assert (error[1:] <= 1e-7 * size[1:]).all()  # in double, but for the rounded result
    precisions = [precision for precision, _, _ in bound.ways]
    assert precisions == [np.float32, np.float64, np.float64]


@pytest.mark.parametrize("spec", ["pairwise", "push(p=200)", "comparison"])
def test_long_queries_of_no_weight_are_left_out_however_far(spec):
    """The price of a useless item overflows, and no factor of zero makes up for that."""
    labels, scores = np.tile([1.0, 0.0], 60), np.tile([-1500.0, 1500.0], 60)
    scores[60:] = 0.0
    data = RankingData.from_arrays(labels, group=[60, 60], weight=[0.0, 1.0])
    bound = gbmrank.objective(spec, engine="linear").bind(data)
    for part in (*bound.gradients(scores), *bound.gradients(scores, np.float32, single=True)):
        assert not part[:60].any()
        assert part[60:].any()
    assert bound.losses(scores)[0] == 0.0


@pytest.mark.parametrize("spec", ["pairwise(loss=canonical_boosting)", "comparison"])
def test_a_query_that_linear_time_declines_is_summed_like_others(spec, rng):
    """Beyond the reach of the linear-time engine, every pair is visited."""
    labels, scores = labels_of(1900, 2, rng), rng.normal(size=1900)
    scores[7], scores[1500] = 1e300, -1e9  # the plan does not reach that far in the first query
    data = RankingData.from_arrays(labels, group=[1000, 900])
    bound: Any = gbmrank.objective(spec).bind(data)
    assert bound.long[0].tolist() == [0, 1]
    exact = gbmrank.objective(spec, engine="pairs").bind(data)
    for part, whole in zip(bound.gradients(scores), exact.gradients(scores), strict=True):
        np.testing.assert_allclose(part, whole, rtol=1e-8, atol=1e-9 * np.abs(whole).max())


def test_a_push_with_a_vanishing_loss_stays_finite():
    """The second derivative of x^p once divided by x * x, which underflows."""
    labels, scores = np.array([1.0, 0.0]), np.array([1e3, 0.0])
    for p in (1, 1.5, 4):
        grad, hess = gbmrank.objective(f"push(loss=logistic, p={p})").gradients(labels, scores)
        assert np.isfinite([*grad, *hess]).all()


@pytest.mark.parametrize("template", ["pairwise", "comparison", "bipartite"])
@pytest.mark.parametrize(
    "loss", ["logistic", pytest.param("brier_sigmoid", marks=pytest.mark.nightly)]
)
def test_the_reported_accuracy_holds(template, loss, rng):
    """Relative to the sum of absolute terms, against long doubles."""
    target = ", target=identity" if template == "pairwise" else ""
    spec = f"{template}(loss={loss}{target}, engine=linear)"
    accuracy = gbmrank.objective(spec, hessian="exact").accuracy
    assert accuracy is not None
    assert 0.0 < accuracy <= 1e-10
    for spread in (1.0, 3.0, 10.0):
        check(spec, labels_of(700, 2, rng), spread * rng.normal(size=700), accuracy)


def test_the_reported_accuracy_holds_in_a_push(rng):
    made, exact = (gbmrank.objective("push", engine=engine) for engine in ("linear", "pairs"))
    accuracy, labels, scores = made.accuracy, labels_of(700, 2, rng), 3.0 * rng.normal(size=700)
    assert accuracy == gbmrank.objective("push").accuracy
    assert accuracy is not None
    assert exact.accuracy is None
    pairs = (made.gradients(labels, scores), exact.gradients(labels, scores))
    for found, whole in zip(*pairs, strict=True):
        assert np.abs(found - whole).max() <= accuracy * np.abs(whole).max()
    assert made.loss(labels, scores) == pytest.approx(exact.loss(labels, scores), rel=accuracy)


def test_accuracy_is_reported_where_the_engine_serves():
    for spec in ("softmax", "listmle", "linear", "pointwise", "ranksvm", "ranksvm_squared",
                 "rankboost", "pnorm_push", "pairwise(loss=squared)", "comparison(margin=1)",
                 "pairwise(loss=exponential)", "pairwise(engine=pairs)"):  # fmt: skip
        assert gbmrank.objective(spec).accuracy is None
    served = ("ranknet", "pairwise(loss=exponential, engine=linear)", "push(g=expm1)",
              "push(loss=exponential, engine=linear)", "pairwise(loss=asymmetric_a)")  # fmt: skip
    assert all((gbmrank.objective(spec).accuracy or 1.0) <= 1e-10 for spec in served)
    mixed = gbmrank.objective("mix(ranknet, softmax, pairwise(loss=asymmetric_a))")
    assert mixed.accuracy == gbmrank.objective("ranknet").accuracy
    graphs = gbmrank.PreferenceGraphs.from_edges([0, 1], [1, 2], group=[3])
    assert gbmrank.objective("ranknet", preferences=graphs).accuracy is None


def test_info_shows_the_accuracy_and_the_prices_of_a_push(capsys):
    assert main(["info", "push"]) == 0
    shown = capsys.readouterr().out
    accuracy = gbmrank.objective("push").accuracy
    assert f"{accuracy:.1e} of the sum of absolute terms" in shown
    assert "g may be expm1, power, or an object" in shown
    assert "gbmrank.extend.AbstractOuter" in shown
    assert main(["info", "ranksvm"]) == 0
    assert "absolute terms" not in capsys.readouterr().out
    assert main(["info", "linear", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["choices"] == {"regulariser": "cosh, power, square"}


def test_the_accuracy_is_that_of_the_bound_engine(rng):
    data = RankingData.from_arrays(labels_of(LONG, 2, rng))
    made: Any = gbmrank.objective("comparison")
    loss = made.template.loss
    curvature = pair_sums.pair_curvature("comparison", loss, made.template.hessian)
    report = pair_sums._linear_report(loss, curvature)
    assert made.bind(data).long.tables.plan == report.plan
    assert report.error == made.accuracy
