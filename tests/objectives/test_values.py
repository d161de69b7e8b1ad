"""Value, gradient and Hessian of every composition against loops and differences."""

import dataclasses
import itertools
import math
from typing import Any, ClassVar

import numpy as np
import pytest

import gbmrank
from gbmrank import ParameterError, RankingData
from gbmrank.extend import AbstractOuter
from tests import objective_oracles as oracle
from tests.formulas import PLAIN
from tests.objectives.cases import (
    EVERY_TIME,
    SIZES,
    bound,
    compositions,
    differences,
    labels_for,
    one_per_kernel,
    scores_for,
    slices,
    template_of,
)

STEP = 1e-3  # fourth order: truncation below 1e-11, rounding below 1e-12 of the loss


@pytest.mark.parametrize("text", compositions())
def test_value_is_the_formula(text):
    labels, scores = labels_for(text), scores_for()
    template = template_of(text)
    expected = [oracle.query_loss(template, labels[part], scores[part]) for part in slices()]
    found = gbmrank.objective(text).loss(labels, scores, group=SIZES, per_query=True)
    size = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13 * size)


@pytest.mark.parametrize("text", compositions())
def test_gradient_is_the_slope_of_the_value(text):
    scores, ready = scores_for(), bound(text)
    grad, _ = ready.gradients(scores)
    slope = differences(ready.losses, scores, STEP)
    # Rounding of the differences is relative to the loss of the query.
    size = np.repeat(np.abs(ready.losses(scores)), SIZES) + np.abs(grad) + 1.0
    assert np.all(np.abs(grad - slope) <= 1e-9 * size)


@pytest.mark.parametrize("text", compositions())
def test_hessian_is_what_its_trait_says(text):
    template, scores, ready = template_of(text), scores_for(), bound(text)
    _, hess = ready.gradients(scores)
    exact = differences(lambda s: ready.gradients(s)[0], scores, STEP)
    size = np.abs(exact) + np.abs(ready.gradients(scores)[0]) + 1.0
    size *= 100.0 if "power(q=1.5)" in text else 1.0  # its third derivative blows up at zero
    if template.hessian_trait == "exact":
        assert np.all(np.abs(hess - exact) <= 1e-8 * size)
    elif template.hessian_trait == "bound":
        assert np.all(hess >= exact - 1e-8 * size)
    else:
        assert template.hessian_trait in ("expected", "heuristic")
        np.testing.assert_allclose(hess, curvature(template, labels_for(text), scores), rtol=1e-10)


def is_nightly_with(text: str, hessian: str) -> bool:
    """Expected curvatures compile another kernel; the losses that run every time cover them."""
    template = template_of(text)
    return (
        not PLAIN
        and (template.name, hessian) == ("pairwise", "expected")
        and template.loss.name not in EVERY_TIME
    )


@pytest.mark.parametrize(
    ("text", "hessian"),
    [
        pytest.param(*pair, marks=pytest.mark.nightly if is_nightly_with(*pair) else ())
        for pair in itertools.product(
            one_per_kernel(), ("exact", "majorise", "expected", "constant")
        )
    ],
)
def test_every_kind_of_hessian_is_what_its_trait_says(text, hessian):
    template = template_of(text)
    if template.name == "mix":
        pytest.skip("the parts of a mix have their own Hessians")
    common = template.name not in ("comparison", "bipartite", "push") or PLAIN
    if (
        hessian == "expected"
        and not common
        and template.loss.name not in ("hinge", "brier_sigmoid")
    ):
        pytest.skip("another kernel to compile; pairwise runs the same code for every loss")
    try:
        chosen = str(gbmrank.objective(text, hessian=hessian))
    except ParameterError as rejected:
        assert str(rejected).startswith(f"{template.name}: ")  # noqa: PT017
        return
    trait = gbmrank.objective(chosen).template.hessian_trait
    if trait == "constant":
        weight = np.linspace(0.5, 2, len(SIZES))
        _, hess = bound(chosen, labels_for(text), weight=weight).gradients(scores_for())
        assert hess.tolist() == np.repeat(weight, SIZES).tolist()
    else:
        assert (trait, hessian) in {
            ("exact", "exact"),
            ("bound", "majorise"),
            ("expected", "expected"),
            ("heuristic", "expected"),
            ("exact", "expected"),  # where the expected curvature is the exact one
            ("exact", "majorise"),  # a constant curvature bounds itself
        }
        test_hessian_is_what_its_trait_says(chosen)


def curvature(template: Any, labels: Any, scores: Any) -> Any:
    """Expected and heuristic curvatures by their formulas, in the order of rows."""
    rows = [_curvature_of_query(template, labels[part], scores[part]) for part in slices()]
    return np.concatenate(rows)


def _curvature_of_query(template: Any, y: Any, s: Any) -> Any:
    n, scale = len(y), oracle.scale_of(template, len(y))
    if template.name == "linear":
        return scale * _secants(template, y, s)
    if template.name == "mix":
        parts = [_exact_or_expected(part, y, s) for part in template.parts]
        return sum(w * part for w, part in zip(template.weights or (1.0, 1.0), parts, strict=True))
    if template.name == "sigmoid_softmax":
        return scale * _share_curvature(template, y, s)
    if template.name == "bregman":
        assert template.loss.name == "itakura_saito"
        return np.full(n, scale) * (oracle.utility(template.target, y) is not None)

    def bend(z: float) -> float:
        return oracle.expected_curvature(template.loss.name, z, **oracle.params_of(template.loss))

    if template.name == "pointwise":
        if oracle.utility(template.target, y) is None:
            return np.zeros(n)
        eta = template.eta or oracle.safe_eta(template.target, n)
        return scale * np.array([eta * bend(z) for z in s])
    if template.name == "push":
        return scale * _push_curvature(template, y, s, bend)
    factors = pair_factors(template, y)
    bends = np.array([[bend(a - b) for b in s] for a in s]) * factors
    return scale * (bends.sum(axis=0) + bends.sum(axis=1))


def _exact_or_expected(template: Any, y: Any, s: Any) -> Any:
    if template.hessian_trait != "exact":
        return _curvature_of_query(template, y, s)
    assert (template.name, template.loss.name) == ("pointwise", "logistic")
    p = 1 / (1 + np.exp(-s))
    return template.eta * p * (1 - p)


def _share_curvature(template: Any, y: Any, s: Any) -> Any:
    """SPEC 13 without the part that can be negative."""
    u = oracle.utility(template.target, y)
    if u is None:
        return np.zeros(len(y))
    p = 1 / (1 + np.exp(-np.asarray(s)))
    q = p / p.sum()
    return sum(u) * (1 - p) ** 2 * q * (1 - q)


def _secants(template: Any, y: Any, s: Any) -> Any:
    out = []
    for label, score in zip(y, s, strict=True):
        slope = (len(y) * label - y.sum()) / template.nu
        kind = template.regulariser.name
        if kind == "power":
            q = template.regulariser.q
            best = math.copysign((abs(slope) / q) ** (1 / (q - 1)), slope)
            here = q * math.copysign(abs(score) ** (q - 1), score)
        else:
            best, here = math.asinh(slope), math.sinh(score)
        out.append(template.nu * (here - slope) / (score - best))
    return np.array(out)


def _push_curvature(template: Any, y: Any, s: Any, bend: Any) -> Any:
    """SPEC 5.4 with another curvature in place of kappa''."""
    loss, ups = template.loss, np.flatnonzero(y >= (template.threshold or 1.0))
    downs = np.flatnonzero(y < (template.threshold or 1.0))
    out = np.zeros(len(y))
    if not len(ups) or not len(downs):
        return out
    p, many = template.p, len(ups)
    for j in downs:
        margins = s[ups] - s[j]
        values, slopes, _ = oracle.kappa_slopes(loss.name, margins, **oracle.params_of(loss))
        bends = np.array([bend(z) for z in margins])
        mean = values.mean()
        first, second = p * mean ** (p - 1), p * (p - 1) * mean ** (p - 2)
        out[j] = (first * bends.mean() + second * slopes.mean() ** 2) / len(downs)
        out[ups] += (first * bends + second * slopes**2 / many) / (len(downs) * many)
    return out


def pair_factors(template: Any, y: Any) -> Any:
    """Weight of every ordered pair (better, worse) of one query, before normalisation."""
    n = len(y)
    if template.name == "pairwise":
        u = oracle.utility(template.target, y)
        factors = np.tile(np.array(u if u is not None else np.zeros(n))[:, None], (1, n))
        np.fill_diagonal(factors, 0.0)
        return factors
    if template.name == "bipartite":
        up = y >= (template.threshold or 1.0)
        return np.outer(up, ~up) / max(up.sum() * (~up).sum(), 1)
    factors = (y[:, None] > y[None, :]).astype(float)
    better = (y[None, :] > y[:, None]).sum(axis=1)
    weights = [
        oracle.step_weight(template.weights, a, 1 + n) for a, n in zip(y, better, strict=True)
    ]
    return factors * np.array(weights)[:, None]


PAIR_TEXTS = [
    text
    for text in one_per_kernel()
    if template_of(text).name in ("pairwise", "comparison", "bipartite") and "squared," not in text
]


@pytest.mark.parametrize("text", PAIR_TEXTS)
def test_pair_kernels_agree_with_sums_in_long_doubles(text):
    template, labels, scores = template_of(text), labels_for(text), scores_for(3.0)
    exact = bound(str(gbmrank.objective(text, hessian="exact")), labels)
    grad, hess = exact.gradients(scores)
    for part in slices():
        factors = pair_factors(template, labels[part])
        factors *= oracle.scale_of(template, part.stop - part.start)
        loss = template.loss
        _, g, h, size = oracle.pair_sums(
            factors,
            scores[part],
            lambda d, loss=loss: oracle.kappa_slopes(loss.name, d, **oracle.params_of(loss)),
        )
        assert np.all(np.abs(grad[part] - g) <= 1e-13 * size)
        np.testing.assert_allclose(hess[part], h.astype(float), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("text", PAIR_TEXTS)
def test_twice_the_diagonal_bounds_the_whole_hessian(text):
    """SPEC 7.3: the Hessian of a convex pair loss is a Laplacian below twice its diagonal."""
    if not template_of(text).loss.convex:
        pytest.skip("not convex")
    try:
        chosen = str(gbmrank.objective(text, hessian="majorise"))
    except ParameterError as rejected:
        assert "convex" in str(rejected)  # noqa: PT017
        return
    ready, scores, step = bound(chosen, labels_for(text)), scores_for(), 1e-4
    _, hess = ready.gradients(scores)
    for part in slices():
        matrix = np.empty((part.stop - part.start,) * 2)
        for k, row in enumerate(range(part.start, part.stop)):
            moved = np.zeros(len(scores))
            moved[row] = step
            up, down = ready.gradients(scores + moved)[0], ready.gradients(scores - moved)[0]
            matrix[k] = (up - down)[part] / (2 * step)
        lowest = np.linalg.eigvalsh(np.diag(hess[part]) - (matrix + matrix.T) / 2).min()
        assert lowest >= -1e-6 * max(1.0, float(hess[part].max()))


def test_listmle_and_softmax_bounds_dominate_the_whole_hessian():
    for text in ("listmle(hessian=majorise)", "softmax(hessian=majorise)"):
        test = str(gbmrank.objective(text))
        ready, scores, step = bound(test), scores_for(), 1e-4
        _, hess = ready.gradients(scores)
        columns = []
        for row in range(len(scores)):
            moved = np.zeros(len(scores))
            moved[row] = step
            change = ready.gradients(scores + moved)[0] - ready.gradients(scores - moved)[0]
            columns.append(change / (2 * step))
        gap = np.diag(hess) - np.array(columns)
        assert np.linalg.eigvalsh((gap + gap.T) / 2).min() >= -1e-7


@pytest.mark.parametrize("normalize", ["none", "items", "pairs"])
@pytest.mark.parametrize("text", ["pairwise", "comparison", "bipartite(threshold=2)", "listmle",
                                  "push(threshold=2)", "linear", "bregman", "pointwise",
                                  "bregman(loss=poisson)", "pairwise(loss=squared)"])  # fmt: skip
def test_normalize_divides_as_written(text, normalize):
    chosen = gbmrank.objective(text, normalize=normalize)
    labels, scores = labels_for(str(chosen)), scores_for()
    expected = [oracle.query_loss(chosen.template, labels[part], scores[part]) for part in slices()]
    found = chosen.loss(labels, scores, group=SIZES, per_query=True)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    plain, _ = bound(str(gbmrank.objective(text, normalize="none")), labels).gradients(scores)
    grad, _ = bound(str(chosen), labels).gradients(scores)
    factor = np.repeat([oracle.scale_of(chosen.template, n) for n in SIZES], SIZES)
    np.testing.assert_allclose(grad, plain * factor, rtol=1e-12, atol=1e-15)


def test_default_normalisation_is_the_design():
    by_items = {"pairwise", "comparison", "bipartite", "push", "linear"}
    for name in ("pointwise", "pairwise", "comparison", "bipartite", "push", "linear", "bregman"):
        chosen = gbmrank.objective(name).template.normalize
        assert chosen == ("items" if name in by_items else "none")


@pytest.mark.parametrize("text", one_per_kernel())
def test_a_composition_survives_text_and_pickle(text):
    import pickle

    made = gbmrank.objective(text)
    assert gbmrank.objective(str(made)) == made
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301
    assert dataclasses.is_dataclass(made.template)


def test_listmle_draws_equal_labels_from_the_seed_and_the_size_alone():
    labels, scores = np.array([1.0, 1, 0, 0, 0]), np.array([0.3, -1, 0.5, 2, 0.1])
    by_rows = gbmrank.objective("listmle(seed=none)")
    expected = oracle.query_loss(by_rows.template, labels, scores)  # a stable sort of the rows
    assert by_rows.loss(labels, scores) == pytest.approx(expected)
    orders = {
        round(gbmrank.objective(f"listmle(seed={k})").loss(labels, scores), 9) for k in range(20)
    }
    assert len(orders) > 3
    data = RankingData.from_arrays(np.tile(labels, 2), group=[5, 5])
    twice = gbmrank.objective("listmle").bind(data).losses(np.tile(scores, 2))
    assert twice[0] == twice[1] == gbmrank.objective("listmle").loss(labels, scores)


def _cube(x: float, scale: float) -> tuple[float, float, float]:
    return scale * x**3, 3.0 * scale * x**2, 6.0 * scale * x


@dataclasses.dataclass(frozen=True, slots=True)
class Cube(AbstractOuter):
    scale: float = 1.0
    name: ClassVar[str] = "cube"
    function = staticmethod(_cube)


def test_a_push_with_a_price_of_ones_own():
    labels, scores = (labels_for("ranknet") >= 2).astype(float), scores_for()
    made = gbmrank.objective("push", g=Cube(scale=2.0))
    ready = made.bind(RankingData.from_arrays(labels, group=SIZES))
    cubed = gbmrank.objective("push", p=3)
    grad, hess = ready.gradients(scores)
    slope = differences(ready.losses, scores, STEP)
    assert grad.any()
    assert np.all(np.abs(grad - slope) <= 1e-9 * (np.abs(grad) + 1.0))
    bend = differences(lambda s: ready.gradients(s)[0], scores, STEP)
    assert np.all(np.abs(hess - bend) <= 1e-8 * (np.abs(bend) + 1.0))
    twice = 2.0 * cubed.gradients(labels, scores, group=SIZES)[0]
    np.testing.assert_allclose(grad, twice, rtol=1e-12, atol=1e-15)
    assert made.loss(labels, scores, group=SIZES) == pytest.approx(
        2.0 * cubed.loss(labels, scores, group=SIZES), rel=1e-12
    )
