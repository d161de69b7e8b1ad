"""Calibration functions: certified from below, found from above."""

import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.optimize import minimize

from gbmrank import theory
from gbmrank.errors import LimitError, ParameterError
from gbmrank.extend import AbstractBound, AbstractObjective, RankingData, bind_queries
from tests.theory import test_attack as attack

pytestmark = pytest.mark.compiled  # hundred thousands of risks
TIGHT = {
    "pointwise(loss=squared, target=precision)": ("precision@1", np.sqrt(2), 0.1),
    "pointwise(loss=squared_hinge(t=2), target=precision)": ("precision@1", np.sqrt(2) / 2, 0.1),
    "pairwise(loss=squared, target=dcg)": ("dcg", 1.0, 0.02),
    "bregman(loss=softmax, target=recall)": ("recall@1", np.sqrt(2), 0.02),
}


@pytest.mark.parametrize("objective", TIGHT)
def test_two_items_have_the_published_constants_that_are_tight(objective):
    """SPEC of the regret bounds: c C_phi, with equality as the regret goes to 0."""
    metric, constant, eps = TIGHT[objective]
    found = theory.calibration_function(objective, metric, eps=[eps])
    c_phi = theory.c_phi(theory.positional(metric, [0, 1]).discounts)
    assert found.certified
    for measured in (found.constants(), found.constants(estimate=True)):
        assert measured[0] / c_phi == pytest.approx(constant, rel=5e-4)


def composed(template, loss=None, target=None):
    """A composition in the words of the attack, with a loss by its name."""
    made = {"template": template, "eta": 1.0, "threshold": None}
    if loss is not None:
        made["loss"] = loss if template == "bregman" else LOSSES[loss]
    return made | ({} if target is None else {"target": target})


LOSSES = {loss["name"]: loss for loss in reversed(attack.LOSSES)}
DCG, NDCG = {"name": "dcg", "gain": "exp2"}, {"name": "ndcg", "gain": "exp2", "k": None}
RELEVANT, SHARE = ({"name": name, "threshold": None} for name in ("precision", "recall"))
AUC, BARE = {"name": "auc", "threshold": None}, {"name": "disagreement"}
SPREAD = [  # objective, metric, items
    (composed("pointwise", "squared", RELEVANT), RELEVANT | {"k": 1}, 2),
    (composed("pairwise", "squared", DCG), DCG | {"k": None}, 2),
    (composed("bregman", "softmax", SHARE), SHARE | {"k": 1}, 2),
    (composed("pointwise", "squared", NDCG), NDCG, 3),
    (composed("pointwise", "logistic", RELEVANT), RELEVANT | {"k": 1}, 2),
    (composed("pointwise", "exponential", RELEVANT), RELEVANT | {"k": 2}, 3),
    (composed("pointwise", "squared_hinge", DCG), DCG | {"k": 1}, 3),
    (composed("pointwise", "differentiable_hinge", DCG), DCG | {"k": None}, 2),
    (composed("pairwise", "squared", NDCG), NDCG, 3),
    (composed("pairwise", "logistic", DCG), DCG | {"k": None}, 3),
    (composed("pairwise", "exponential", NDCG), NDCG, 2),
    (composed("pairwise", "squared_hinge", DCG), DCG | {"k": None}, 2),
    (composed("pairwise", "squared_hinge", DCG), DCG | {"k": None}, 3),
    (composed("bregman", "softmax_ce", DCG), DCG | {"k": None}, 3),
    (composed("bregman", "poisson", DCG), DCG | {"k": 1}, 2),
    (composed("comparison", "logistic"), BARE, 2),
    (composed("comparison", "exponential"), DCG | {"k": 1}, 2),
    (composed("comparison", "squared_hinge"), AUC, 2),
    (composed("bipartite", "logistic"), AUC, 2),
    (composed("linear"), BARE, 3),
]
EVERY_RUN = 3  # these are compiled for other tests too


def least(risk, n, order=None):
    """Minimise over scores sorted like an order, or over all if there is none, by scipy."""
    ways, low = np.eye(n), -30.0
    if order is not None:  # item i has the steps of all ranks from its own on
        ways, low = (np.argsort(order)[:, None] <= np.arange(n)[None]).astype(float), 0.0
    box = [*([(low, 30.0)] * (n - 1)), (-30.0, 30.0)]

    def along(x):
        value, slope = risk(ways @ x)
        return value, slope @ ways

    x = np.zeros(n)
    for _ in range(3):
        options = {"ftol": 1e-16, "gtol": 1e-11, "maxiter": 2000}
        x = minimize(along, x, method="L-BFGS-B", jac=True, bounds=box, options=options).x
    return along(x)[0]


def lost(metric, vectors, p, order):
    """What an order loses of a metric, in its own units."""
    wanted = p @ np.array([attack.utility(metric, y) for y in vectors])
    phi = attack.discount(metric, len(order))
    if metric["name"] == "precision":
        phi = phi / metric["k"]
    return max(float(phi @ np.sort(wanted)[::-1] - phi @ wanted[list(order)]), 0.0)  # of two sums


def named(case):
    text = attack.objective_text(case[0])
    bare = text.removesuffix(")") + ("(" if text == "linear" else ", ") + "normalize=none)"
    return bare, attack.text(case[1]), case[2]


@pytest.mark.parametrize("count", [25, pytest.param(1000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("case", [
    pytest.param(case, id="-".join(map(str, named(case))),
                 marks=() if place < EVERY_RUN else pytest.mark.nightly)
    for place, case in enumerate(SPREAD)
])  # fmt: skip
def test_no_distribution_misorders_for_less(case, count):
    """The cheapest scores in a wrong order, by scipy and plain formulas, cost at least that."""
    (objective, metric, n), (text, measure, _) = case, named(case)
    found = theory.calibration_function(text, measure, n, cells=3000)
    assert found.certified
    assert np.all(found.lower <= found.upper)
    assert np.all(found.lower[4:] > 0.0)
    rng, ratios = np.random.default_rng(n), []
    vectors = np.array(list(itertools.product((0.0, 1.0), repeat=n)))
    for turn in range(count):
        p = rng.dirichlet(np.full(len(vectors), rng.choice([0.1, 0.3, 1.0])))
        seen = vectors.any(axis=1) | (objective.get("target") not in (NDCG, SHARE))
        risk = attack.risk(objective, vectors[seen], p[seen])  # no loss where it is undefined
        order = rng.permutation(n)
        held = least(risk, n, order)
        free = min(least(risk, n), held)  # scipy may stop early
        regret = lost(metric, vectors, p, order)
        if turn < 3:  # in the units of the product
            one = theory.Distribution(vectors, p)
            there = rng.normal(size=n)
            apart = one.inner_risk(text, there) - one.inner_risk(text, np.zeros(n))
            assert risk(there)[0] - risk(np.zeros(n))[0] == pytest.approx(apart, rel=1e-9)
            defined = p @ ~np.isnan(one.order_values(measure, there[None])[:, 0])
            theirs = one.regret(measure, -np.argsort(order)) * defined
            assert theirs == pytest.approx(regret, abs=1e-9)
        certified = found(regret)
        assert held - free >= certified - 1e-7, (vectors.tolist(), p.tolist(), order, regret)
        assert regret <= found.regret_bound(max(held - free, 0.0) + 1e-7) + 1e-9
        ratios += [(held - free) / certified] if certified > 0 else []
    assert len(ratios) > count / 10
    assert min(ratios) < 3.0
    print(f"{text} / {measure}, {n} items: {len(ratios)} of {count}, nearest {min(ratios):.4f}")


@pytest.mark.parametrize("grades", [(0, 1), (0, 1, 2)])
def test_four_items_are_certified_and_tell_how_far_they_are(grades):
    """The squared loss of pairs costs just (eps / (sqrt(2 / n) C_phi))^2."""
    objective = "pairwise(loss=squared, target=dcg, normalize=none)"
    lines: list[str] = []
    c_phi = theory.c_phi(theory.positional("dcg", np.zeros(4)).discounts)
    eps = 0.2 * (2.0 ** grades[-1] - 1.0)
    exact = (eps / c_phi) ** 2 * 4 / 2
    found = theory.calibration_function(
        objective, "dcg", 4, grades=grades, eps=[eps], cells=600, report=lines.append
    )
    assert found.certified
    assert 0.9 * exact < found.lower[0] <= exact * (1 + 1e-6)
    assert exact * (1 - 1e-6) < found.upper[0] < 1.1 * exact
    assert len(lines) > 3
    assert f"{found.cells:,} of 600" in lines[-1]
    assert f"{found.cells:,} simplices" in str(found)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("objective", "metric"),
    [
        ("pairwise(loss=squared_hinge, target=dcg)", "dcg"),
        ("pointwise(loss=logistic, target=precision)", "precision@2"),
        ("bregman(loss=softmax, target=recall)", "recall@1"),
    ],
)
def test_four_items_come_to_an_end(objective, metric):
    found = theory.calibration_function(objective, metric, 4)
    assert found.certified
    assert np.all(found.lower[3:] > 0.9 * found.upper[3:])
    assert np.all(found.lower <= found.upper)


def test_a_loss_that_is_linear_in_parts_is_minimised():
    """Utilities 0 and 1/5: apart at 0 and 1/20 they cost 7/40, at the same score 8/45."""
    objective = "pointwise(loss=differentiable_hinge(alpha=0.2), target=dcg, eta=1)"
    eps = 0.2 * (1.0 - 1.0 / np.log2(3.0))
    found = theory.calibration_function(objective, "dcg", eps=[eps], cells=2000)
    assert found.upper[0] == pytest.approx(8 / 45 - 7 / 40, rel=1e-3)
    assert 0.9 * found.upper[0] < found.lower[0] <= found.upper[0]


def test_graphs_of_duchi():
    """Two opposite edges and the linear loss with nu = 1/2: the regret eps costs eps^2."""
    graphs = [[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]]
    found = theory.calibration_function(
        "linear", "pairwise_disagreement(normalize=false)", graphs=graphs, eps=[0.1, 0.5, 1.0]
    )
    assert found.certified
    assert found.largest == 1.0
    np.testing.assert_allclose(found.lower, [0.01, 0.25, 1.0], rtol=1e-3)
    np.testing.assert_allclose(found.upper, [0.01, 0.25, 1.0], rtol=1e-3)


def test_a_loss_that_is_not_calibrated_has_zeros():
    """Duchi, Mackey and Jordan, Theorem 11: at even odds RankNet puts item 2 above item 1."""
    graphs = np.zeros((2, 3, 3))
    graphs[0, 0, 1], graphs[0, 0, 2] = 1.0, 3.0
    graphs[1, 1, 2], graphs[1, 2, 0] = 0.2, 1.0
    raw = "pairwise_disagreement(normalize=false)"
    found = theory.calibration_function("ranknet", raw, graphs=graphs, eps=[0.08, 2.0])
    assert found.upper[0] < 1e-7
    assert found.lower[0] == 0.0
    assert found.lower[1] > 0.1
    assert found.worst[0].regret(raw, found.worst[0].minimiser("ranknet").scores) > 0.05


@pytest.mark.nightly
def test_more_expectations_than_can_be_covered_are_estimated():
    found = theory.calibration_function("ranknet", "dcg", 3, eps=[0.05, 0.4])
    assert not found.certified
    assert np.all(found.lower == 0.0)
    assert 0.0 <= found.upper[0] < found.upper[1]
    assert "estimates" in str(found)
    with pytest.raises(ParameterError, match="estimate=True"):
        found.regret_bound(0.01)
    assert 0.0 < found.regret_bound(0.01, estimate=True) <= found.largest


def test_the_values_in_between_and_the_bound():
    found = theory.calibration_function("pairwise(loss=squared, target=dcg)", "dcg@1", eps=[0.1, 1])
    np.testing.assert_allclose(found.lower, [0.01, 1.0], rtol=1e-3)
    assert (found(0.05), found(0.1), found(0.7)) == (0.0, found.lower[0], found.lower[0])
    assert found.regret_bound(0.0) == pytest.approx(0.1)
    assert found.regret_bound(5.0) == 1.0
    assert found.regret_bound(0.005) == pytest.approx(0.1 + 0.9 / 2, rel=1e-3)


def test_where_every_order_is_best():
    found = theory.calibration_function("pointwise(target=precision)", "precision@2")
    assert (found.largest, found.regret_bound(1.0)) == (0.0, 0.0)


def test_what_is_not_computed():
    with pytest.raises(ParameterError, match="kink"):
        theory.calibration_function("ranksvm", "dcg")
    with pytest.raises(LimitError, match="2 to 4"):
        theory.calibration_function("ranknet", "dcg", 5)
    with pytest.raises(LimitError, match="1,296"):
        theory.calibration_function("ranknet", "dcg", 4, grades=range(6))
    with pytest.raises(ParameterError, match="largest one, 1"):
        theory.calibration_function("ranknet", "dcg@1", eps=[2.0])
    with pytest.raises(ParameterError, match="comparison and linear"):
        theory.calibration_function("listmle", "pairwise_disagreement", graphs=np.zeros((1, 2, 2)))


@pytest.mark.nightly
@pytest.mark.parametrize("metric", ["dcg@1", "dcg@2", "dcg"])
def test_the_smallest_constants_of_cut_offs(metric):
    """For the squared loss c C_phi is attained at every cut-off, times sqrt(2 / n) for pairs.

    Scores sorted like o cost at least |z|^2 with z = U - s and regret a.U <= a.z, |a| the
    distance of the two orders of discounts; equality at U = const + t a and the reverse order.
    """
    n = 3
    phi = theory.positional(metric, np.zeros(n)).discounts
    eps = 0.3 * (phi[0] - phi[-1])
    for objective, constant in {
        "pointwise(loss=squared, target=dcg)": np.sqrt(2),
        "pairwise(loss=squared, target=dcg, normalize=none)": np.sqrt(2 / n),
    }.items():
        found = theory.calibration_function(objective, metric, n, eps=[eps], cells=40_000)
        assert found.constants(estimate=True)[0] <= constant * theory.c_phi(phi) * (1 + 1e-6)
        assert found.constants(estimate=True)[0] == pytest.approx(
            constant * theory.c_phi(phi), rel=0.01
        )
        assert found.constants()[0] >= constant * theory.c_phi(phi) * (1 - 1e-6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wavy(AbstractObjective):
    """A template of a plugin, of whose shape nothing is known."""

    name: ClassVar[str] = "wavy"
    hessian_trait = "exact"

    def bind(self, data: RankingData) -> AbstractBound:
        return bind_queries(self, data, _wave)


def _wave(labels, scores, grad, hess):
    """Two valleys: descent from zero leads to the one at 3, and that at -3 is deeper."""
    bump = np.exp(-(scores**2))
    grad += 0.08 * scores * (scores**2 - 9) - 0.6 * (1 - 2 * scores**2) * bump + 0.3 * labels
    hess += 1.0
    return (0.02 * (scores**2 - 9) ** 2 - 0.6 * scores * bump + 0.3 * labels * scores).sum()


def test_a_template_of_a_plugin_is_not_taken_for_convex():
    with pytest.raises(ParameterError, match="not known to be convex"):
        theory.calibration_function(Wavy(), "precision@1")
    best = theory.Distribution(np.array([[1.0, 1.0]]), [1.0]).minimiser(Wavy())
    assert best.scores == pytest.approx([-3.1, -3.1], abs=0.1)


def test_where_all_orders_are_equally_good_there_is_no_constant():
    found = theory.calibration_function("pointwise(loss=squared, target=dcg)", "recall@5")
    assert found.largest == 0.0
    assert np.isnan(found.constants()).all()
