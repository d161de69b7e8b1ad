"""What is rejected, and that the message says what to do."""

import numpy as np
import pytest

import gbmrank
from gbmrank import DataError, LabelRangeError, ParameterError, UnknownNameError
from tests.objectives.cases import TEMPLATES, template_of


def rejection(spec, **params):
    with pytest.raises(ParameterError) as rejected:
        gbmrank.objective(spec, **params)
    return str(rejected.value)


@pytest.mark.parametrize("template", ["comparison", "bipartite", "push"])
def test_losses_that_need_utilities_are_rejected_over_pairs(template):
    assert "use squared_margin" in rejection(template, loss="squared")
    assert "use squared_hinge" in rejection(template, loss="differentiable_hinge")


def test_losses_for_items_and_for_pairs():
    assert "squared_hinge" in rejection("pairwise", loss="differentiable_hinge")
    text = rejection("pointwise", loss="hinge")
    assert "squared_hinge" in text
    assert "differentiable_hinge" in text
    assert gbmrank.objective("pairwise", loss="hinge").template.hessian_trait == "heuristic"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("listmle(seed=-1)", "listmle: seed must be a whole number of at least 0 or none, got -1"),
        ("push(p=inf)", "p must be at least 1 (above 0 for the exponential loss) and finite"),
        ("pointwise(target=dcg, max_grade=40)", "dcg: max_grade must be above 0 and at most 31"),
        ("pointwise(target=dcg, max_grade=-1)", "dcg: max_grade must be above 0 and at most 31"),
        ("pointwise(target=dcg, max_grade=0)", "at most 31, got 0"),
        ("bregman(target=dcg(gain=linear), max_grade=inf)", "at most 1e+150, got inf"),
        ("pointwise(target=eru, max_grade=inf)", "max_grade must be above neutral=0, got inf"),
    ],
)
def test_parameters_that_could_only_fail_later_are_rejected_at_once(spec, message):
    assert message in rejection(spec)


@pytest.mark.parametrize("template", ["comparison", "bipartite", "push", "listmle", "linear"])
def test_templates_without_a_target_reject_one(template):
    text = rejection(template, target="ndcg")
    assert text.startswith(f"{template} takes no target")
    assert "pointwise, pairwise and bregman" in text


@pytest.mark.parametrize("template", ["pairwise", "comparison", "bipartite"])
@pytest.mark.parametrize(
    ("engine", "loss", "advice"),
    [
        (
            "closed",
            "logistic",
            "engine=closed is for exponential, p_classification, squared_margin",
        ),
        ("closed", "hinge", "use engine=auto"),
        ("sorted", "logistic", "engine=sorted is for hinge, squared_hinge, squared_hinge_margin"),
        ("sorted", "exponential", "use engine=auto"),
        ("linear", "hinge", "not twice differentiable; use engine=auto"),
        ("linear", "squared_hinge", "not twice differentiable"),
        ("quick", "logistic", "engine must be one of auto, pairs, closed, sorted, linear"),
    ],
)
def test_engines_that_cannot_serve_are_rejected_at_once(template, engine, loss, advice):
    text = rejection(template, engine=engine, loss=loss)
    assert text.startswith(f"{template}: ")
    assert advice in text


def test_engines_of_a_push_and_of_squared_differences():
    assert "auto, pairs, closed, linear" in rejection("push", engine="sorted")
    assert "exponential loss" in rejection("push", engine="closed", loss="logistic")
    assert "does not support hinge" in rejection("push", engine="linear", loss="hinge")
    assert "auto, closed" in rejection("pairwise", loss="squared", engine="linear")


def test_a_forced_engine_does_not_mind_short_queries():
    """A fold may hold queries of one item only; that is no reason to fail."""
    grad, _ = gbmrank.objective("pairwise(engine=linear)").gradients([1, 0], [0, 0], group=[1, 1])
    assert not grad.any()


def test_powers_of_a_push():
    assert "p must be at least 1" in rejection("push", p=0.5, loss="logistic")
    assert "p must be" in rejection("push", p=0.0, loss="exponential")
    gbmrank.objective("push", p=0.5, loss="exponential")
    assert "form=log is for the exponential loss" in rejection("push", form="log", loss="logistic")
    for engine in ("pairs", "linear"):  # would sum the raw form
        given = {"form": "log", "loss": "exponential", "engine": engine}
        assert f"engine={engine} visits pairs" in rejection("push", **given)
    assert "form must be one of raw, log" in rejection("push", form="ratio")
    assert "p must be at least 1" in rejection("push", g="power(p=0.5)")


def test_prices_of_a_push():
    def cube(x):
        return x**3, 3 * x**2, 6 * x

    for given in (cube, 3):
        text = rejection("push", g=given)
        assert "'expm1'" in text
        assert f"got {type(given).__name__}" in text
    with pytest.raises(UnknownNameError, match="known: expm1, power"):
        gbmrank.objective("push", g="cube")


def test_a_power_is_given_once():
    for g in ("power(p=3)", "expm1"):
        assert "p=2 and g=" in (text := rejection("push", p=2, g=g))
        assert "leave out one of them" in text
    assert gbmrank.objective("push", g="power(p=3)") == gbmrank.objective("push(p=3)")
    assert gbmrank.objective("push", p=3, g="power(p=3)") == gbmrank.objective("push(p=3)")
    made = gbmrank.objective("push(g=expm1)")
    assert gbmrank.objective(str(made)) == made


@pytest.mark.parametrize(
    ("spec", "advice"),
    [
        ("push(hessian=majorise)", "hessian=auto"),
        ("linear(hessian=expected)", "hessian=auto"),
        ("listmle(hessian=expected)", "exact, majorise or constant"),
        ("pairwise(loss=hinge, hessian=majorise)", "needs a convex loss with curvature"),
        ("pairwise(loss=brier_sigmoid, hessian=majorise)", "needs a convex loss"),
        ("pointwise(loss=exponential, hessian=majorise)", "has no bound; use hessian=auto"),
        ("bregman(loss=poisson, hessian=majorise)", "hessian=auto"),
        ("pairwise(hessian=newton)", "auto, exact, majorise, expected, constant"),
        ("pairwise(normalize=rows)", "none, items, pairs"),
        ("linear(nu=0)", "nu must be above 0"),
        ("pointwise(eta=0)", "eta must be above 0"),
        ("bregman(loss=binary_entropy, eta=-1)", "eta must be above 0"),
        ("bregman(loss=binary_entropy, eta=0)", "eta must be above 0"),
        ("comparison(weights=ndcg)", "none, gain_discount"),
        ("listmle(weights=ndcg)", "none, gain_discount"),
        ("listmle(weights=[1, -1])", "not negative"),
        ("comparison(weights=[0, 0])", "not all zero"),
        ("comparison(weights=gain_discount(k=0))", "at least 1"),
        ("comparison(weights=gain_discount(discount=[1, 2]))", "do not increase"),
        ("comparison(weights=gain_discount(gain=log))", "gain='log'"),
        ("comparison(weights=gain_discount(cut=3))", "has no parameter 'cut'"),
        ("pointwise(target=ndcg, threshold=1)", "target=ndcg takes no threshold"),
        ("pointwise(target=ndcg, max_grade=4)", "target=ndcg takes no max_grade"),
        ("mix(ranknet, softmax, weights=[1])", "one factor above 0 for each of 2"),
        ("mix(ranknet, weights=[-1])", "one factor above 0"),
        ("mix", "name the objectives to add"),
        ("mix(ranknet, normalize=items)", "in its parts"),
    ],
)
def test_options_out_of_range(spec, advice):
    assert advice in rejection(spec)


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_checks_what_all_have(template):
    assert "normalize must be one of none, items, pairs" in rejection(template, normalize="rows")
    assert "hessian must be one of auto, exact" in rejection(template, hessian="newton")


def test_a_generator_is_no_loss():
    with pytest.raises(UnknownNameError, match="no generator is called 'logistic'"):
        gbmrank.objective("bregman", loss="logistic")
    with pytest.raises(UnknownNameError, match="no loss is called 'softmax'"):
        gbmrank.objective("pointwise", loss="softmax")


SCORES = np.zeros(3)


def test_identity_needs_an_explicit_eta():
    with pytest.raises(ParameterError, match=r"target=identity has no upper bound.*eta="):
        gbmrank.objective("pointwise(target=identity)").gradients([1, 0, 1], SCORES)
    gbmrank.objective("pointwise(loss=squared, target=identity)").gradients([9, 0, -1], SCORES)


def test_eta_is_the_safe_bound_and_never_read_off_the_data():
    grad, _ = gbmrank.objective("pointwise(target=dcg)").gradients([0, 0, 0], SCORES)
    assert grad.tolist() == [7.5] * 3  # (2^4 - 1) sigma(0)
    grad, _ = gbmrank.objective("pointwise(target=dcg, max_grade=2)").gradients([0, 0, 0], SCORES)
    assert grad.tolist() == [1.5] * 3
    grad, _ = gbmrank.objective("pointwise(target=auc)").gradients([1, 0, 0], SCORES)
    assert grad.tolist() == [-0.25, 0.25, 0.25]  # eta = 1 / (n - 1), u = 1 / 2


@pytest.mark.parametrize("spec", ["pointwise(target=dcg)", "pointwise(target=dcg, eta=10)",
                                  "bregman(loss=binary_entropy, target=dcg)"])  # fmt: skip
def test_utilities_above_eta_are_rejected_with_advice(spec):
    with pytest.raises(LabelRangeError, match=r"query 0 lies outside 0\.\.eta=.*raise eta"):
        gbmrank.objective(spec).gradients([5, 0, 1], SCORES)


def test_negative_utilities_are_rejected_where_they_are_weights():
    for spec in ("pairwise(target=identity)", "bregman(target=identity)",
                 "bregman(loss=poisson, target=net_degree)"):  # fmt: skip
        with pytest.raises(LabelRangeError, match=r"negative.*loss=squared"):
            gbmrank.objective(spec).gradients([-1, 0, 1], SCORES)
    with pytest.raises(LabelRangeError, match=r"outside 0.*labels 0/1 or -1/\+1.*threshold="):
        gbmrank.objective("asymmetric_a").gradients([-1, 0, 1], SCORES)


def test_negative_utilities_are_not_mended_by_a_larger_bound():
    made = gbmrank.objective("pointwise(target=net_degree, eta=9)")
    with pytest.raises(LabelRangeError, match=r"outside 0\.\.eta=9.*use loss=squared") as rejected:
        made.gradients([2, 0, 1], SCORES)
    assert "raise eta" not in str(rejected.value)
    gbmrank.objective("pointwise(target=net_degree, loss=squared)").gradients([2, 0, 1], SCORES)


def test_max_grade_is_advised_where_the_target_has_one():
    for spec, has in (("pointwise(target=dcg, eta=2)", True), ("pointwise(eta=0.1)", False)):
        with pytest.raises(LabelRangeError, match="raise eta") as rejected:
            gbmrank.objective(spec).gradients([2, 0, 1], SCORES)
        assert ("max_grade" in str(rejected.value)) is has


BINARY_PRESETS = ("p_classification", "asymmetric_a", "asymmetric_b")


@pytest.mark.parametrize(
    "spec", [*BINARY_PRESETS, "bregman(loss=binary_entropy, target=identity, eta=1)"]
)
def test_probabilities_may_be_signs_or_have_a_threshold(spec):
    """DESIGN 2.1: binary objectives take 0/1 or -1/+1, and graded labels with a threshold."""
    made, scores = gbmrank.objective(spec), np.array([0.3, -0.2, 1.0])
    grad, hess = made.gradients([1, 0, 0], scores)
    for same in (
        made.gradients([1, -1, -1], scores),
        gbmrank.objective(spec, threshold=2).gradients([2, 0, 1], scores),
    ):
        assert same[0].tolist() == grad.tolist()
        assert same[1].tolist() == hess.tolist()
    assert made.loss([1, -1, -1], scores) == made.loss([1, 0, 0], scores)
    half = made.gradients([1, 0.5, 0], scores)[0]  # probabilities stay what they are
    assert grad[1] != half[1] != made.gradients([1, 1, 0], scores)[0][1]
    with pytest.raises(LabelRangeError, match=r"query 0.*labels 0/1 or -1/\+1.*threshold="):
        made.gradients([2, 0, 1], scores)
    other = gbmrank.objective(made, eta=2)
    with pytest.raises(LabelRangeError, match=r"-1 of .*outside 0\.\.eta=2.*threshold="):
        other.gradients([1, -1, -1], scores)


@pytest.mark.parametrize(
    "spec", ["bipartite", "pnorm_push", "pairwise(target=map)", "map_diagonal"]
)
def test_binary_labels_and_the_threshold(spec):
    made, scores = gbmrank.objective(spec), np.array([0.3, -0.2, 1.0])
    zeros = made.gradients([1, 0, 0], scores)[0]
    assert made.gradients([1, -1, -1], scores)[0].tolist() == zeros.tolist()
    with pytest.raises(DataError, match=r"0/1 or -1/\+1.*query 0.*threshold=1"):
        made.gradients([2, 0, 1], scores)
    advised = gbmrank.objective(spec, threshold=2.0)
    assert advised.gradients([2, 0, 1], scores)[0].tolist() == zeros.tolist()


def test_a_threshold_of_pairwise_is_its_targets():
    for target in ("precision", "recall", "wta", "auc", "map"):
        made = gbmrank.objective("pairwise", target=target, threshold=2)
        assert made == gbmrank.objective("pairwise", target=f"{target}(threshold=2)")
        assert gbmrank.objective(str(made)) == made
        assert template_of(f"pairwise(target={target}, threshold=3)").target.threshold == 3
    assert "use a target that has it: precision" in rejection("pairwise(target=ndcg, threshold=1)")


def test_labels_above_31_are_rejected_for_gains_only():
    for spec in ("pairwise", "w_ranknet", "w_listmle", "cossock_zhang"):
        with pytest.raises(LabelRangeError, match="largest label is 40"):
            gbmrank.objective(spec).gradients([40, 0, 1], SCORES)
    grad = gbmrank.objective("pairwise(target=ndcg(gain=linear))").gradients([40, 0, 1], SCORES)[0]
    assert grad.any()
    for spec in ("ranknet", "listmle", "linear", "pairwise(loss=squared, target=spearman)"):
        assert gbmrank.objective(spec).gradients([40, -3.5, 1], SCORES)[0].any()


@pytest.mark.parametrize("spec", ["w_ranknet", "w_listmle"])
@pytest.mark.parametrize(("label", "words"), [(40, "largest label is 40"), (-1, "label is -1")])
def test_gain_weights_advise_what_they_take(spec, label, words):
    with pytest.raises(LabelRangeError, match=f"{words}.*use weights=none") as rejected:
        gbmrank.objective(spec).gradients([label, 0, 1], SCORES)
    assert "gain=" not in str(rejected.value)  # they have no such parameter
    assert "target" not in str(rejected.value)
    assert gbmrank.objective(spec, weights="none").gradients([label, 0, 1], SCORES)[0].any()


@pytest.mark.parametrize("name", ["native:lambdarank", "native:rank:ndcg"])
def test_names_of_the_boosters_own_objectives_are_sent_there(name):
    for spec in (name, f"mix(ranknet, {name})"):
        with pytest.raises(
            UnknownNameError, match=f"{name} is a booster's built-in objective"
        ) as rejected:
            gbmrank.objective(spec)
        for place in ("GBMRanker(objective=", "compare(objectives=", "to the booster itself"):
            assert place in str(rejected.value)
        assert "did you mean" not in str(rejected.value)


def test_only_pointwise_scores_are_probabilities():
    made = gbmrank.objective("pointwise(loss=exponential)")
    assert made.inverse_link([0.0, 1.0]).tolist() == pytest.approx([0.5, 1 / (1 + np.exp(-2))])
    with pytest.raises(ParameterError, match="have no link to probabilities"):
        gbmrank.objective("pairwise").inverse_link([0.0])
    with pytest.raises(ParameterError, match="has no link"):
        gbmrank.objective("cossock_zhang").inverse_link([0.0])


@pytest.mark.parametrize("eps", [0, -1])
def test_what_eps_adds_is_positive(eps):
    with pytest.raises(ParameterError, match=r"itakura_saito.*eps"):
        gbmrank.objective(f"bregman(loss=itakura_saito(eps={eps}))")


def test_defaults_and_presets_are_the_design():
    assert gbmrank.objective("pointwise") == gbmrank.objective(
        "pointwise(loss=logistic, target=ndcg)"
    )
    assert gbmrank.objective("push") == gbmrank.objective("push(loss=logistic, p=4, form=raw)")
    assert gbmrank.objective("linear") == gbmrank.objective("linear(regulariser=square, nu=0.5)")
    assert template_of("linear(regulariser=power)").regulariser.q == 3
    assert template_of("bregman(loss=itakura_saito)").loss.eps == 1e-3
    for name, text in {
        "ranknet": "comparison(loss=logistic)",
        "ranksvm": "comparison(loss=hinge)",
        "ranksvm_squared": "comparison(loss=squared_hinge)",
        "rankboost": "comparison(loss=exponential)",
        "w_ranknet": "comparison(loss=logistic, weights=gain_discount)",
        "w_listmle": "listmle(weights=gain_discount)",
        "cossock_zhang": "pointwise(loss=squared, target=dcg)",
        "duchi_linear": "linear",
        "pnorm_push": "push(loss=exponential, p=4)",
        "p_classification": "pointwise(loss=p_classification, target=identity, eta=1)",
        "asymmetric_a": "pointwise(loss=asymmetric_a, target=identity, eta=1)",
        "asymmetric_b": "pointwise(loss=asymmetric_b, target=identity, eta=1)",
        "map_diagonal": "pointwise(loss=squared, target=map)",
        "softmax": "bregman(loss=softmax_ce)",
    }.items():
        assert gbmrank.objective(name) == gbmrank.objective(text)
