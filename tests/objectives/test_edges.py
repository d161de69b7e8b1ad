"""Tied labels, useless queries, best scores and bounds: formulas at their edges, by hand."""

import numpy as np
import pytest

import gbmrank
from tests import objective_oracles as oracle
from tests.objectives.cases import slices, template_of


def by_oracle(text, labels, scores, sizes):
    template = template_of(text)
    return [oracle.query_loss(template, labels[part], scores[part]) for part in slices(sizes)]


TRAITS = {
    # A hinge has no curvature beyond its kink, so the bound is taken.
    "pointwise(loss=squared_hinge)": "bound",
    "pointwise(loss=squared_hinge_margin)": "bound",
    "pointwise(loss=differentiable_hinge)": "bound",
    "pointwise(loss=squared_hinge, hessian=exact)": "exact",
    "pointwise(loss=logistic)": "exact",
    "pointwise(loss=exponential)": "exact",
    "pointwise(loss=brier_sigmoid)": "expected",  # its curvature may be negative
    "pointwise(loss=squared)": "exact",
    "pointwise(loss=squared, hessian=constant)": "constant",
    "pairwise(loss=squared)": "exact",
    "pairwise(loss=squared, hessian=majorise)": "bound",
    "linear": "exact",
    "linear(regulariser=power)": "heuristic",
    "linear(regulariser=cosh)": "heuristic",
    "linear(regulariser=power, hessian=exact)": "exact",
    "linear(regulariser=power, hessian=constant)": "constant",
    # The expected curvature of Itakura-Saito is 1.
    "bregman(loss=itakura_saito)": "expected",
    "bregman(loss=itakura_saito, hessian=expected)": "expected",
    "bregman(loss=itakura_saito, hessian=exact)": "exact",
    "bregman(loss=itakura_saito, hessian=constant)": "constant",
    "bregman(loss=poisson, hessian=expected)": "exact",
    "bregman(loss=softmax, hessian=majorise)": "bound",
    "listmle": "exact",
    "listmle(hessian=majorise)": "bound",
}


@pytest.mark.parametrize(("text", "trait"), TRAITS.items(), ids=TRAITS)
def test_which_hessian_is_taken(text, trait):
    assert template_of(text).hessian_trait == trait


@pytest.mark.parametrize("text", ["w_ranknet", "w_ranknet(loss=squared_hinge)"])
def test_comparison_counts_the_better_labels_of_its_own_query(text):
    """Tied items share a rank, and a query begins at rank 1 whatever came before."""
    labels = np.array([4.0, 3, 4, 3, 2, 2, 0, 2, 2, 1])  # each begins with the label before it
    scores = np.array([0.3, -0.2, 0.9, 0.1, -1.0, 0.4, 0.0, 0.8, -0.5, 0.2])
    sizes = (3, 3, 4)
    found = gbmrank.objective(text).loss(labels, scores, group=sizes, per_query=True)
    np.testing.assert_allclose(found, by_oracle(text, labels, scores, sizes), rtol=1e-12)


@pytest.mark.parametrize("loss", ["asymmetric_b", "canonical_boosting"])
def test_comparison_bends_by_the_weight_of_its_pairs(loss):
    """The diagonal of the Hessian is the slope of the gradient, weights included."""
    labels, scores = np.array([3.0, 0, 1, 2, 3]), np.array([0.5, 0.9, -0.2, 0.1, 0.3])
    options = {"loss": loss, "weights": "gain_discount", "engine": "pairs", "hessian": "exact"}
    made = gbmrank.objective("comparison", **options)
    _, hess = made.gradients(labels, scores)
    for row, step in enumerate(1e-5 * np.eye(5)):
        up, down = (made.gradients(labels, scores + sign * step)[0][row] for sign in (1, -1))
        assert hess[row] == pytest.approx((up - down) / 2e-5, rel=1e-7)


@pytest.mark.parametrize("engine", ["pairs", "sorted"])
@pytest.mark.parametrize(
    ("loss", "hessian", "bend"), [("hinge", "auto", 1), ("squared_hinge_margin", "expected", 2)]
)
def test_pairwise_hinges_bend_by_the_weight_of_their_pairs(loss, hessian, bend, engine):
    """All pairs of an item count, whether or not they are active."""
    labels, scores = np.array([2.0, 0, 1, 2, 3]), np.array([0.5, 3.0, -0.2, 0.1, 9.0])
    options = {"loss": loss, "hessian": hessian, "engine": engine, "normalize": "none"}
    _, hess = gbmrank.objective("comparison", **options).gradients(labels, scores)
    assert hess.tolist() == [bend * np.sum(labels != label) for label in labels]
    _, hess = gbmrank.objective("pairwise", target="identity", **options).gradients(labels, scores)
    assert hess.tolist() == [bend * (3 * label + labels.sum()) for label in labels]


@pytest.mark.parametrize("hessian", ["exact", "majorise"])
def test_pairwise_squared_differences_have_a_constant_curvature(hessian):
    """H = 2 (n I - 1 1'), and twice its diagonal is a safe bound."""
    text = f"pairwise(loss=squared, target=dcg, normalize=none, hessian={hessian})"
    labels, n = np.array([3.0, 0, 1, 2]), 4
    _, hess = gbmrank.objective(text).gradients(labels, np.zeros(n))
    assert hess.tolist() == [(2.0 if hessian == "exact" else 4.0) * (n - 1)] * n


@pytest.mark.parametrize("scores", [(1e200, 1e200, -1e200), (-1e200, 1e200, 0.0)])
def test_pairwise_items_of_no_use_count_nothing_however_far(scores):
    """Only margins of useful items enter, so others may overflow."""
    made = gbmrank.objective("pairwise(loss=squared_hinge, target=precision, normalize=none)")
    labels = np.array([1.0, 0, 0] if scores[0] > 0 else [0.0, 0, 0])
    assert made.loss(labels, scores) == labels.sum()  # (1 - 0)^2 against the tied item
    grad, hess = made.gradients(labels, scores)
    assert grad.tolist() == [-2.0 * labels[0], 2.0 * labels[0], 0.0]
    assert hess.tolist() == [2.0 * labels[0], 2.0 * labels[0], 0.0]


@pytest.mark.parametrize("engine", ["pairs", "auto", "sorted"])
@pytest.mark.parametrize("template", ["pairwise(target=identity)", "comparison"])
def test_queries_of_no_weight_count_nothing_however_far(template, engine):
    """Zero times a margin that overflows would not be zero."""
    options = {"engine": engine, "normalize": "none", "hessian": "exact"}
    made = gbmrank.objective(template, loss="squared_hinge", **options)
    labels, scores = np.array([1.0, 0, 1, 0]), np.array([0.5, 0.25, -1.5e308, 1.5e308])
    found = made.loss(labels, scores, group=[2, 2], weight=[2.0, 0.0], per_query=True)
    assert found.tolist() == [2.0 * 0.75**2, 0.0]
    grad, hess = made.gradients(labels, scores, group=[2, 2], weight=[2.0, 0.0])
    assert grad.tolist() == [-3.0, 3.0, 0.0, 0.0]
    assert hess.tolist() == [4.0, 4.0, 0.0, 0.0]


@pytest.mark.parametrize("engine", ["pairs", "auto"])
def test_push_leaves_out_queries_of_no_weight_however_far(engine):
    """Their price overflows: (1e100^2)^4."""
    made = gbmrank.objective("push(loss=squared_margin, normalize=none)", engine=engine)
    labels, scores = np.array([1.0, 0, 1, 0]), np.array([0.5, 0.25, -1e100, 1e100])
    found = made.loss(labels, scores, group=[2, 2], weight=[2.0, 0.0], per_query=True)
    assert found.tolist() == [2.0 * (1 - 0.25) ** 8, 0.0]
    for column in made.gradients(labels, scores, group=[2, 2], weight=[2.0, 0.0]):
        assert column[:2].all()
        assert not column[2:].any()


@pytest.mark.parametrize("engine", ["pairs", "closed"])
def test_exponential_push_leaves_out_queries_of_no_weight_however_far(engine):
    """Zero times a price that overflows would not be zero: e^8000."""
    made = gbmrank.objective("push(loss=exponential, p=4, normalize=none)", engine=engine)
    labels, scores = np.array([1.0, 0, 1, 0]), np.array([0.5, 0.25, -1e3, 1e3])
    found = made.loss(labels, scores, group=[2, 2], weight=[2.0, 0.0], per_query=True)
    np.testing.assert_allclose(found, [2.0 * np.exp(-1.0), 0.0], rtol=1e-14)
    for column, first in zip(
        made.gradients(labels, scores, group=[2, 2], weight=[2.0, 0.0]), (-8.0, 32.0), strict=True
    ):
        np.testing.assert_allclose(column[0], first * np.exp(-1.0), rtol=1e-14)
        assert not column[2:].any()


@pytest.mark.parametrize("weights", ["none", "gain_discount"])
def test_listmle_is_bounded_by_its_sum_of_probabilities(weights):
    """Sum over p < n of beta_p times the chance of an item at place p."""
    labels, scores = np.array([1.0, 3, 0, 2]), np.array([0.4, -0.3, 1.1, 0.2])
    made = gbmrank.objective("listmle", weights=weights, normalize="none", hessian="majorise")
    order, want = np.argsort(-labels), np.zeros(4)
    for place, row in enumerate(order[:-1]):
        gain = (2.0 ** labels[row] - 1) / np.log2(place + 2)
        rest = np.exp(scores[order[place:]])
        want[order[place:]] += (1.0 if weights == "none" else gain) * rest / rest.sum()
    np.testing.assert_allclose(made.gradients(labels, scores)[1], want, rtol=1e-14)


@pytest.mark.parametrize("loss", ["softmax", "softmax_ce"])
@pytest.mark.parametrize("target", ["dcg", "ndcg", "auc(threshold=1)", "recall(threshold=1)"])
def test_bregman_leaves_out_queries_without_utility(loss, target):
    """The sum of utilities is zero or undefined, and nothing is learned."""
    text = f"bregman(loss={loss}, target={target})"
    labels, scores = np.array([0.0, 0, 0, 1, 0, 0]), np.array([0.5, -1.0, 0.3, -0.4, 0.6, 0.1])
    made = gbmrank.objective(text)
    grad, hess = made.gradients(labels, scores, group=[3, 3])
    assert not grad[:3].any()
    assert not hess[:3].any()
    assert (grad[3:] != 0).all()
    found = made.loss(labels, scores, group=[3, 3], per_query=True)
    assert found[0] == 0.0
    assert found[1] == pytest.approx(by_oracle(text, labels[3:], scores[3:], [3])[0], rel=1e-12)


@pytest.mark.parametrize("regulariser", ["power", "power(q=1.5)", "cosh"])
def test_linear_curvature_next_to_the_best_score(regulariser):
    """Where both ends of the way round to one number, the mean curvature is that at it."""
    labels = np.array([3.0, 0, 1, 7])
    made = gbmrank.objective("linear", regulariser=regulariser, nu=0.7, normalize="none")
    best = made.minimiser(labels)
    exact = gbmrank.objective(made, hessian="exact")
    for scores in (best, np.nextafter(best, 9.0), np.nextafter(best, -9.0), best * (1 + 1e-13)):
        bends = exact.gradients(labels, scores)[1]
        np.testing.assert_allclose(made.gradients(labels, scores)[1], bends, rtol=1e-6)


def test_linear_curvature_on_a_longer_way_is_the_mean_one():
    """r = |s|^3 with nu = 1/2 has the slope 3 s |s| / 2 and the best score below."""
    labels, scores = np.array([2.0, 0.0]), np.array([0.0, 0.5])
    made = gbmrank.objective("linear(regulariser=power, normalize=none)")
    best = np.sign([2.0, -2.0]) * np.sqrt(4.0 / 3.0)
    want = (1.5 * scores * np.abs(scores) - [2.0, -2.0]) / (scores - best)
    np.testing.assert_allclose(made.gradients(labels, scores)[1], want, rtol=1e-13)
    exact = gbmrank.objective(made, hessian="exact").gradients(labels, scores)[1]
    np.testing.assert_allclose(exact, 3.0 * np.abs(scores), rtol=1e-13)
    made = gbmrank.objective("linear(regulariser=cosh, nu=2, normalize=none)")
    _, hess = made.gradients([1.0, 1.0], np.array([1.0, -2.0]))  # no preference: best is zero
    np.testing.assert_allclose(hess, [2.0 * np.sinh(1.0), np.sinh(2.0)], rtol=1e-13)


@pytest.mark.parametrize(
    ("text", "separable"),
    [
        ("pointwise(target=dcg)", True),
        ("pointwise(target=dcg, normalize=items)", False),
        ("pointwise(target=ndcg)", False),
        ("bregman(loss=poisson, target=dcg)", True),
        ("bregman(loss=softmax_ce, target=dcg)", False),
        ("mix(pointwise(target=dcg), ranknet)", False),
        ("pairwise", False),
    ],
)
def test_a_sum_over_rows_needs_no_queries(text, separable):
    assert gbmrank.objective(text).template.separable == separable
