"""Swap objectives against metrics that are evaluated again, and against the boosters' own."""

import itertools
import math
from functools import partial
from typing import Any

import numpy as np
import pytest

import gbmrank
from gbmrank import ParameterError, RankingData
from gbmrank.kernels.layout import Span
from tests import oracles
from tests.formulas import PLAIN

GRADED = np.array([3.0, 0.0, 1.0, 0.0, 4.0, 1.0, 2.0])
BINARY = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0])
UNTIED = np.array([0.3, 1.2, -0.4, 0.9, 0.1, -1.3, 2.0])
TIED = np.array([0.5, 0.5, 2.0, -1.0, 0.5, -1.0, 0.0])


POSITIONAL = [
    ("dcg", oracles.dcg, GRADED),
    ("dcg(gain=linear)@3", partial(oracles.dcg, k=3, gain="linear"), GRADED),
    ("ndcg", oracles.ndcg, GRADED),
    ("ndcg@3", partial(oracles.ndcg, k=3), GRADED),
    ("precision@3", partial(oracles.precision, k=3), BINARY),
    ("recall@2", partial(oracles.recall, k=2), BINARY),
    ("wta", partial(oracles.precision, k=1), BINARY),
    ("auc", oracles.pair_auc, BINARY),
    ("spearman", oracles.spearman, np.arange(7.0)[[3, 0, 1, 6, 4, 5, 2]]),
    ("eru(half_life=3)", partial(oracles.eru, half_life=3.0), GRADED),
    ("rbp(p=0.6)", partial(oracles.rbp, p=0.6), GRADED),
    ("r_precision", oracles.r_precision, BINARY),
    (
        "positional(utility=identity, discount=[3, 2, 2, 1])",
        lambda y, order: sum(d * y[i] for d, i in zip((3, 2, 2, 1), order, strict=False)),
        GRADED,
    ),
]
OTHERS = [
    ("err", oracles.err, GRADED),
    ("err@3", partial(oracles.err, k=3), GRADED),
    ("err(max_grade=31)", partial(oracles.err, max_grade=31), GRADED * 7.75),
    ("map", oracles.average_precision, BINARY),
    ("map@3", partial(oracles.average_precision, k=3), BINARY),
    ("map(denominator=min)@2", partial(oracles.average_precision, k=2, denominator="min"), BINARY),
    ("mrr", oracles.reciprocal_rank, BINARY),
    ("mrr@2", partial(oracles.reciprocal_rank, k=2), BINARY),
    ("hit_rate@2", partial(oracles.hit_rate, k=2), BINARY),
]
IDS = [name for name, _, _ in (*POSITIONAL, *OTHERS)]


LATER = () if PLAIN else pytest.mark.nightly  # kernels of their own


def weights_of(text, labels, at, **options):
    """Weights of all pairs: with a loss of curvature 2 the loss is a quadratic form of scores."""
    made = gbmrank.objective(text, loss="squared_margin", **options)
    ready: Any = made.bind(RankingData.from_arrays(labels))
    n = len(labels)
    found = np.zeros((n, n))

    def value(*rows):
        scores = np.zeros(n)
        scores[list(rows)] = 1.0
        return ready.frozen_losses(scores, np.asarray(at, float))[0]

    for i, j in itertools.combinations(range(n), 2):
        mixed = value(i, j) - value(i) - value(j) + value()
        found[i, j] = found[j, i] = -mixed / 2.0
    return found


def swapped_weights(measure, labels, order, truncation=math.inf, neighbours=False):
    """The change of a measure when two items of an order swap places."""
    n = len(labels)
    found, value = np.zeros((n, n)), measure(labels, order)
    for a, b in itertools.combinations(range(n), 2):
        if a >= truncation or (neighbours and b > a + 1):
            continue
        other = list(order)
        other[a], other[b] = other[b], other[a]
        i, j = order[a], order[b]
        found[i, j] = found[j, i] = abs(measure(labels, other) - value)
    return found


def mean_weights(measure, labels, scores, **options):
    tables = [
        swapped_weights(measure, labels, each, **options) for each in oracles.orders_of(scores)
    ]
    return np.mean(tables, axis=0)


@pytest.mark.parametrize(("name", "measure", "labels"), [*POSITIONAL, *OTHERS], ids=IDS)
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="all"),
        pytest.param({"truncation": 2}, id="cut", marks=LATER),
        pytest.param({"pairs": "neighbours"}, id="neighbours", marks=LATER),
    ],
)
def test_weights_are_the_change_of_the_metric(name, measure, labels, options):
    rng = np.random.default_rng(3)
    for _ in range(3):
        rows = rng.permutation(len(labels))
        expected = swapped_weights(
            measure,
            labels[rows],
            oracles.first_in_row_order(UNTIED.tolist()),
            truncation=options.get("truncation", math.inf),
            neighbours="pairs" in options,
        )
        found = weights_of(f"swap(metric={name})", labels[rows], UNTIED, **options)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


EACH_TIME = {"ndcg@3": 2, "dcg": None, "spearman": 4, "r_precision": 2}  # with which truncation


@pytest.mark.parametrize(
    ("name", "measure", "labels", "truncation"),
    [
        pytest.param(
            *case,
            truncation,
            marks=() if EACH_TIME.get(case[0], 0) == truncation else pytest.mark.nightly,
            id=f"{truncation}-{case[0]}",
        )
        for case in POSITIONAL
        for truncation in (None, 2, 4)
    ],
)
def test_ties_have_the_mean_over_their_orderings(name, measure, labels, truncation):
    for scores in (TIED, np.zeros(7)):
        n = 7 if scores is TIED else 5
        expected = mean_weights(measure, labels[:n], scores[:n], truncation=truncation or math.inf)
        found = weights_of(f"swap(metric={name})", labels[:n], scores[:n], truncation=truncation)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "measure", "labels"),
    [
        pytest.param(*case, marks=() if case[0] == "err" else pytest.mark.nightly, id=case[0])
        for case in OTHERS
    ],
)
@pytest.mark.compiled
def test_other_ties_are_drawn(name, measure, labels):
    expected = mean_weights(measure, labels[:5], TIED[:5])
    found = weights_of(f"swap(metric={name}, draws=4000)", labels[:5], TIED[:5])
    np.testing.assert_allclose(found, expected, atol=0.04 * expected.max())
    untied = weights_of(f"swap(metric={name}, draws=4000)", labels, UNTIED)
    one = weights_of(f"swap(metric={name}, draws=1)", labels, UNTIED)
    assert untied.tolist() == one.tolist()


@pytest.mark.parametrize("how", ["noise=none", "noise=gumbel", "noise=logistic"])
def test_every_ordering_of_ties_is_drawn_alike_in_every_query(how):
    """Also that successive orderings have nothing to do with each other."""
    data = RankingData.from_arrays([1.0, 0.0, 1.0, 2.0, 0.0], group=[2, 3])
    ready: Any = gbmrank.objective(f"swap(metric=err, {how}, draws=2000)").bind(data)
    ranked = ready._ranked(Span(0, 2, 3), np.array([0.0, 0.0, 5.0, 5.0, 5.0]))
    assert ranked.begins.tolist() == [0, 4000, 10000]
    for begin, n in ((0, 2), (4000, 3)):
        orders = ranked.order[begin : begin + 2000 * n].reshape(2000, n)
        places = list(itertools.permutations(range(n)))
        drawn = np.array([places.index(tuple(order)) for order in orders.tolist()])
        pairs = np.bincount(drawn[:-1] * len(places) + drawn[1:], minlength=len(places) ** 2)
        expected = 1999 / len(pairs)
        assert ((pairs - expected) ** 2 / expected).sum() < len(pairs) + 5 * math.sqrt(
            2 * len(pairs)
        )


@pytest.mark.compiled
@pytest.mark.nightly
def test_ties_of_neighbours_are_drawn():
    expected = mean_weights(oracles.ndcg, GRADED[:5], TIED[:5], neighbours=True)
    found = weights_of("swap(metric=ndcg, pairs=neighbours, draws=4000)", GRADED[:5], TIED[:5])
    np.testing.assert_allclose(found, expected, atol=0.04 * expected.max())


@pytest.mark.parametrize("name", ["ndcg(ties=index)", "err(ties=index)"])
def test_row_order_may_decide(name):
    measure = oracles.ndcg if name.startswith("ndcg") else oracles.err
    expected = swapped_weights(measure, GRADED, oracles.first_in_row_order(TIED.tolist()))
    found = weights_of(f"swap(metric={name})", GRADED, TIED)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_long_lists_of_good_items_do_not_underflow():
    labels, scores = np.full(400, 4.0), -np.arange(400.0)
    labels[[0, 200, 399]] = 0.0
    grad, hess = gbmrank.objective("swap(metric=err)").gradients(labels, scores)
    assert np.isfinite([*grad, *hess]).all()
    assert grad[0] > 0 > grad[1]
    assert abs(grad[399]) < 1e-100  # nobody reads so far


def test_the_chance_of_stopping_stays_below_1():
    """In float64 the best of 60 grades has (2^60 - 1) / 2^60 = 1: nothing would come after it."""
    labels, scores = [60.0, 60.0, 0.0, 3.0], [4.0, 3.0, 2.0, 1.0]
    grad, hess = gbmrank.objective("swap(metric=err(max_grade=60))").gradients(labels, scores)
    assert np.isfinite([*grad, *hess]).all()
    assert grad[1] != 0


def heavy_tailed(z, c=1.0):
    gap = 1.0 - z
    q = c * c + gap * gap
    bend = 2.0 * c * c * (c * c - 3.0 * gap * gap) / q**3
    return gap * gap / q, -2.0 * c * c * gap / q**2, bend


def test_a_loss_of_ones_own_is_compiled_in():
    """Gradient and Hessian are the weights, held fixed, times its derivatives."""
    gbmrank.register_loss(heavy_tailed)
    found = gbmrank.objective("swap(metric=err, loss=heavy_tailed(c=2), hessian=exact)")
    grad, hess = found.gradients(GRADED, UNTIED)
    weights = weights_of("swap(metric=err)", GRADED, UNTIED)
    slopes, bends = np.zeros(7), np.zeros(7)
    for i, j in itertools.permutations(range(7), 2):
        if GRADED[i] > GRADED[j]:
            _, slope, bend = heavy_tailed(UNTIED[i] - UNTIED[j], 2.0)
            slopes[[i, j]] += weights[i, j] * slope * np.array([1.0, -1.0])
            bends[[i, j]] += weights[i, j] * bend
    np.testing.assert_allclose(grad, slopes, rtol=1e-9)
    np.testing.assert_allclose(hess, bends, rtol=1e-9)


@pytest.mark.parametrize(
    "text", ["lambdarank@30", "swap(metric=err@10, norm=true)", "swap(like=lambdarank)"]
)
def test_training_is_nearly_exact(text):
    """In float32, but for queries whose scores are too far apart for it."""
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 5, 320).astype(float), rng.normal(size=320)
    scores[40:80] = np.round(scores[40:80])
    scores[80:160] *= 100.0
    scores[160:200] += 500.0
    weight = rng.uniform(0.5, 2.0, 320)
    data = RankingData.from_arrays(labels, group=[40] * 8, weight=weight)
    ready: Any = gbmrank.objective(text).bind(data)
    exact, single = ready.gradients(scores), ready.gradients(scores, np.float32, single=True)
    for true, found in zip(exact, single, strict=True):
        queries, errors = true.reshape(8, 40), np.abs(found - true).reshape(8, 40)
        assert (errors.max(axis=1) <= 1e-5 * np.abs(queries).max(axis=1)).all()


# ------------------------------------------------------------------------ LambdaLoss


def discount(rank):
    return 1.0 / math.log2(1.0 + rank)


def rho(a, b):
    return abs(discount(a) - discount(b))


def delta(a, b):
    return abs(discount(abs(a - b)) - discount(abs(a - b) + 1))


LAMBDAS = [
    ("lambdarank", rho),
    ("ndcg_loss2", delta),
    ("ndcg_loss2pp", lambda a, b: rho(a, b) + 10.0 * delta(a, b)),
    ("ndcg_loss2pp(mu=2)", lambda a, b: rho(a, b) + 2.0 * delta(a, b)),
]


def lambda_weights(labels, scores, weight, k=math.inf):
    """Gains over the ideal DCG@k times a function of ranks, averaged over orderings of ties."""
    gains = np.exp2(labels) - 1.0
    best = sorted(gains, reverse=True)
    ideal = sum(gain * discount(r) for r, gain in enumerate(best, 1) if r <= k)
    tables = []
    for order in oracles.orders_of(scores):
        table = np.zeros((len(labels), len(labels)))
        for (a, i), (b, j) in itertools.permutations(enumerate(order, 1), 2):
            if min(a, b) <= k:
                table[i, j] = abs(gains[i] - gains[j]) / ideal * weight(a, b)
        tables.append(table)
    return np.mean(tables, axis=0)


@pytest.mark.parametrize("scores", [UNTIED, TIED], ids=["untied", "tied"])
@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize(("name", "weight"), LAMBDAS, ids=[name for name, _ in LAMBDAS])
def test_lambda_presets(name, weight, k, scores):
    options = {} if k is None else {"k": k}
    found = weights_of(name, GRADED, scores, **options)
    expected = lambda_weights(GRADED, scores, weight, k or math.inf)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scores", [UNTIED, TIED, np.zeros(7)], ids=["untied", "tied", "all tied"])
@pytest.mark.parametrize("metric", ["spearman", "eru", "dcg@3"])
def test_distances_of_ranks(metric, scores):
    """Under a discount that grows towards the end, too."""
    found = weights_of(f"swap(metric={metric}, weights=distance)", GRADED, scores)
    utilities, discounts, _ = gbmrank.theory.positional(metric, GRADED)
    tables = []
    for order in oracles.orders_of(scores):
        table = np.zeros((7, 7))
        for (a, i), (b, j) in itertools.permutations(enumerate(order, 1), 2):
            near, far = discounts[abs(a - b) - 1], discounts[abs(a - b)]
            table[i, j] = abs(utilities[i] - utilities[j]) * abs(near - far)
        tables.append(table)
    np.testing.assert_allclose(found, np.mean(tables, axis=0), rtol=1e-9, atol=1e-12)
    made = gbmrank.objective(f"swap(metric={metric}, weights=distance, noise=none)")
    labels, rows = np.concatenate([GRADED[:4], GRADED]), np.concatenate([scores[:4], scores])
    behind, _ = made.gradients(labels, rows, group=[4, 7])
    np.testing.assert_allclose(behind[4:], made.gradients(GRADED, scores)[0], rtol=1e-12)


def test_the_cut_off_of_a_preset_is_its_truncation():
    made = gbmrank.objective("ndcg_loss2pp(mu=2)@3")
    assert made == gbmrank.objective("ndcg_loss2pp", k=3, mu=2)
    template: Any = made.template
    assert template.truncation == 3
    assert template.metric.utility.k == 3
    assert gbmrank.objective(str(made)) == made


# ----------------------------------------------------------------------------- noise


def plackett_luce(scores, order):
    rest, p = list(order), 1.0
    for item in order:
        p *= math.exp(scores[item]) / sum(math.exp(scores[i]) for i in rest)
        rest.remove(item)
    return p


@pytest.mark.parametrize("temperature", [1.0, 0.5])
@pytest.mark.compiled
def test_gumbel_noise_draws_from_plackett_luce(temperature):
    labels, scores = GRADED[[0, 1, 4, 5]], np.array([0.2, 0.9, -0.3, 0.0])
    orders = list(itertools.permutations(range(4)))
    expected = sum(
        plackett_luce(scores / temperature, order) * swapped_weights(oracles.err, labels, order)
        for order in orders
    )
    found = weights_of(
        "swap(metric=err)", labels, scores, noise="gumbel", draws=40_000, temperature=temperature
    )
    np.testing.assert_allclose(found, expected, atol=0.01 * expected.max())


def yeti_weights(labels, scores, draws, decay=0.85, seed=0):
    """The published form: logistic noise, neighbouring ranks, decay^(rank - 1) |y_i - y_j|."""
    rng, n = np.random.default_rng(seed), len(labels)
    total = np.zeros((n, n))
    for _ in range(draws):
        u = rng.random(n)
        order = np.argsort(-(scores + np.log(u / (1.0 - u))))
        for a, (i, j) in enumerate(itertools.pairwise(order)):
            total[i, j] += decay**a * abs(labels[i] - labels[j])
            total[j, i] = total[i, j]
    return total / draws


@pytest.mark.compiled
def test_yetirank_is_its_published_form_in_the_mean():
    found = weights_of("yetirank", GRADED, UNTIED, draws=40_000) / (1.0 - 0.85) ** 2
    expected = yeti_weights(GRADED, UNTIED, 40_000)
    np.testing.assert_allclose(found, expected, atol=0.02 * expected.max())


# Leaves of CatBoost 1.2.10, YetiRank:mode=Classic, one tree with a leaf per row, mean over 4 seeds
# of 20,000 permutations each: -g / h up to a shift that is common to all leaves.
CATBOOST = {
    0.85: (2.583, -3.024, 0.472, -2.631, 3.212, 1.467, 0.104, -2.183),
    0.6: (2.562, -3.002, 0.472, -2.662, 3.254, 1.690, -0.034, -2.280),
}


@pytest.mark.parametrize("decay", CATBOOST)
@pytest.mark.compiled
def test_yetirank_has_the_leaves_of_catboost(decay):
    labels = np.array([3.0, 0.0, 1.0, 0.0, 4.0, 1.0, 2.0, 0.0])
    scores = np.array([0.3, 1.2, -0.4, 0.9, 0.1, -1.3, 2.0, 0.5])
    made = gbmrank.objective("yetirank", metric=f"rbp(p={decay})", draws=80_000)
    grad, hess = made.gradients(labels, scores)
    shift = np.array(CATBOOST[decay]) + grad / hess
    np.testing.assert_allclose(shift, shift.mean(), atol=0.02)


@pytest.mark.parametrize(
    "text",
    [
        "yetirank",
        "swap(metric=err, noise=gumbel)",
        pytest.param("swap(metric=map)", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.compiled
def test_noise_is_a_function_of_what_the_call_sees(text):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 30, 50)
    labels = rng.integers(0, 2, sizes.sum()).astype(float)
    scores = np.round(rng.normal(size=len(labels)), 1)  # with ties
    made = gbmrank.objective(text)
    grad, hess = made.gradients(labels, scores, group=sizes)
    for threads in (1, 3):
        gbmrank.set_num_threads(threads)
        again = gbmrank.objective(str(made)).gradients(labels, scores, group=sizes)
        assert (again[0].tobytes(), again[1].tobytes()) == (grad.tobytes(), hess.tobytes())
    begin = int(sizes[:20].sum())
    part = made.gradients(labels[begin:], scores[begin:], group=sizes[20:])
    assert part[0].tobytes() == grad[begin:].tobytes()
    other = gbmrank.objective(text, seed=1).gradients(labels, scores, group=sizes)[0]
    assert not np.array_equal(other, grad)


def test_other_scores_or_labels_give_other_noise():
    """The weight of the one pair is 0 or 1 by the noise alone."""
    made = gbmrank.objective("swap(metric=wta, noise=logistic, draws=1, truncation=1)")
    labels = np.tile([1.0, 0.0, 0.0], 400)
    scores = np.tile([0.0, 0.0, 0.0], 400)
    equal = made.gradients(labels, scores, group=[3] * 400)[0].reshape(400, 3)
    assert len(np.unique(equal, axis=0)) == 1  # the same query, the same noise
    nearly = scores + 1e-15 * np.repeat(np.arange(400), 3)
    varied = made.gradients(labels, nearly, group=[3] * 400)[0].reshape(400, 3)
    first = np.abs(varied).max(axis=1) > 0
    assert 0.6 < first.mean() <= 1.0
    assert len(np.unique(np.round(varied, 9), axis=0)) > 2


# ------------------------------------------------------------------------ size of steps


@pytest.mark.parametrize("metric", ["ndcg", "err@3"])
def test_steps_like_those_of_lambdarank(metric):
    """The sum of slopes is log2(1 + 6 n r), with r their mean by weight; a step rule alone."""
    plain = gbmrank.objective(f"swap(metric={metric})")
    grad, hess = plain.gradients(GRADED, UNTIED)
    better = GRADED[:, None] > GRADED
    rates = 1.0 / (1.0 + np.exp(UNTIED[:, None] - UNTIED))
    weights = weights_of(f"swap(metric={metric})", GRADED, UNTIED)
    slopes = (weights * rates)[better].sum()
    factor = math.log2(1.0 + 6.0 * 7 * slopes / weights[better].sum()) / (2.0 * slopes)
    made = gbmrank.objective(f"swap(metric={metric}, like=lambdarank)")
    found = made.gradients(GRADED, UNTIED, weight=[3.0] * 7)
    np.testing.assert_allclose(found, 3.0 * factor * np.array([grad, hess]), rtol=1e-9)
    twice = gbmrank.objective(f"swap(metric={metric}, like=rank:ndcg)")
    np.testing.assert_allclose(
        twice.gradients(GRADED, UNTIED), factor * np.array([grad, 2.0 * hess]), rtol=1e-9
    )
    value = factor * plain.loss(GRADED, UNTIED)
    np.testing.assert_allclose(made.loss(GRADED, UNTIED), value, rtol=1e-9)


def test_steps_do_not_depend_on_the_unit_of_the_metric():
    text = "swap(metric={}, pairs=neighbours, noise=logistic, like=lambdarank)"
    first, second = (
        gbmrank.objective(text.format(metric)).gradients(GRADED, TIED) for metric in ("ndcg", "dcg")
    )
    np.testing.assert_allclose(first, second, rtol=1e-9)


@pytest.mark.parametrize("items", [7, 25, 120])
@pytest.mark.parametrize("most", [1, 4])
def test_the_drop_in_has_the_curvature_of_lambdarank(items, most):
    """Where scores begin to differ; whatever the number of items and the labels."""
    rng = np.random.default_rng(items)
    labels = np.minimum(rng.poisson(0.8, 40 * items), most).astype(float)
    scores = 0.1 * rng.normal(size=len(labels)) + 0.05 * labels
    native = gbmrank.objective("lambdarank", k=30, norm=True)
    drop_in = gbmrank.objective("yetirank", like="lambdarank")
    group = [items] * 40
    sums = [one.gradients(labels, scores, group=group)[1].sum() for one in (native, drop_in)]
    assert 0.7 < sums[1] / sums[0] < 1.5


# ----------------------------------------------------------------------- rejections


def test_frozen_weights_have_no_verdict():
    for metric in ("ndcg@10", "err@10"):
        verdict = gbmrank.theory.calibration(f"swap(metric={metric})", metric)
        assert verdict.status == "unknown"
        assert "no fixed loss" in verdict.sentence
        advised = [row.objective for row in gbmrank.theory.advise(metric)]
        assert f"swap(metric={metric}, loss=logistic)" in advised


def test_native_objectives_refer_to_ours():
    with pytest.raises(gbmrank.UnknownNameError, match="lambdarank without native: is gbmrank's"):
        gbmrank.objective("native:lambdarank")


def test_what_is_rejected():
    for text, words in (
        ("swap(metric=ptop)", "ptop"),
        ("swap(metric=pairwise_disagreement)", "pairwise_disagreement"),
        ("swap(metric=ndcg(ties=worst))", "ties=worst"),
        ("swap(metric=err, weights=distance)", "weights=distance"),
        ("swap(truncation=0)", "truncation"),
        ("swap(draws=0)", "draws"),
        ("swap(seed=-1)", "seed"),
        ("swap(temperature=0)", "temperature"),
        ("swap(mu=-1)", "mu"),
        ("swap(pairs=some)", "pairs"),
        ("swap(noise=normal)", "noise"),
        ("swap(like=rank_xendcg)", "rank_xendcg"),
        ("swap(like=lambdarank, norm=true)", "leave out one"),
        ("lambdarank(loss=squared)", "squared"),
    ):
        with pytest.raises(ParameterError) as caught:
            gbmrank.objective(text)
        assert words in str(caught.value)


def test_swap_without_a_metric_takes_ndcg():
    assert gbmrank.objective("swap") == gbmrank.objective("lambdarank")
