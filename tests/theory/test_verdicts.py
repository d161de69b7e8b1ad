"""Verdicts: derived from what templates, losses, utilities and measures do."""

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
import pytest

import gbmrank
from gbmrank import theory
from gbmrank.boosters.plan import Native
from gbmrank.losses.base import AbstractMarginLoss, loss_class
from gbmrank.losses.utilities import AbstractUtility, PrecisionUtility
from gbmrank.metrics import Positional
from gbmrank.objectives.base import Mix
from gbmrank.registry import UTILITIES
from gbmrank.registry.composition import as_objective, build
from gbmrank.theory.verdicts.calibration import _warned
from studies.counterexamples import TABLE_METRICS, table_objectives


def _status(objective, metric):
    return theory.calibration(objective, metric).status


@pytest.mark.parametrize(
    ("target", "metric"),
    [
        ("dcg", "dcg@3"),
        ("ndcg@10", "ndcg@10"),
        ("ndcg(gain=linear)@5", "ndcg(gain=linear)@5"),
        ("precision", "precision@5"),
        ("precision", "wta"),
        ("dcg", "precision@5"),  # the metric takes 0/1 labels only, where 2^y - 1 = y
        ("recall", "recall@3"),
        ("map", "recall@3"),
        ("auc", "auc"),
        ("auc", "pairwise_disagreement"),  # 0/1 labels: weights over their total are y/(PN)
        ("spearman", "spearman"),
        ("eru", "eru(half_life=3)"),
        ("identity", "eru"),
        ("dcg", "err@1"),
        ("precision", "mrr@1"),
        ("recall", "map@1"),
        ("identity", "pairwise_disagreement(normalize=false)"),
    ],
)
def test_a_loss_that_preserves_the_right_order_is_calibrated(target, metric):
    verdict = theory.calibration(f"pairwise(loss=logistic, target={target})", metric)
    assert verdict.status == "calibrated"
    assert verdict
    assert str(verdict.constant) == "2 sqrt(max U)"
    assert "Calauzenes" in verdict.reference


@pytest.mark.parametrize(
    ("target", "metric"),
    [
        ("ndcg", "dcg"),
        ("dcg", "ndcg"),
        ("precision", "recall@2"),
        ("recall", "precision@2"),
        ("auc", "recall@2"),
        ("ndcg@2", "ndcg"),
        ("eru(neutral=1)", "eru"),
        ("ndcg", "err"),
        ("dcg", "map"),
        ("dcg", "mrr"),
        ("dcg", "ptop"),
        ("spearman", "dcg(gain=linear)@2"),
    ],
)
def test_another_utility_is_not_calibrated_and_the_example_shows_it(target, metric):
    verdict = theory.calibration(f"pairwise(loss=squared, target={target})", metric)
    if isinstance(verdict.condition, theory.BinaryLabels | theory.LabelsFrom):
        return
    independent = verdict.condition == theory.IndependentLabels()
    assert verdict.status == ("conditional" if independent else "not calibrated")
    example = verdict.counterexample
    distribution = example.distribution
    found = distribution.minimiser(f"pairwise(loss=squared, target={target})")
    assert distribution.regret(metric, found.scores) > 1e-6


def test_the_cut_off_of_ndcg_matters_beyond_it():
    verdict = theory.calibration("pairwise(target=ndcg@10)", "ndcg@5")
    assert verdict.condition == theory.MaxItems(5)
    assert verdict.condition.holds(gbmrank.RankingData.from_arrays([1, 0, 2]))
    assert not verdict.condition.holds(gbmrank.RankingData.from_arrays(np.zeros(6)))
    far = theory.calibration("pairwise(target=ndcg)", "ndcg@1000")
    assert far.condition == theory.MaxItems(1000)
    assert str(far.condition) == "no query has more than 1000 items"


def test_utilities_that_agree_on_binary_labels_make_a_condition():
    verdict = theory.calibration("pairwise(loss=squared, target=identity)", "dcg")
    assert verdict.condition == theory.BinaryLabels()
    assert verdict.condition.holds(gbmrank.RankingData.from_arrays([1, 0]))
    assert not verdict.condition.holds(gbmrank.RankingData.from_arrays([2, 0]))


def test_softmax_sorts_shares_and_softmax_ce_utilities():
    assert _status("bregman(loss=softmax, target=recall)", "recall@2") == "calibrated"
    assert _status("bregman(loss=softmax, target=precision)", "recall@2") == "calibrated"
    other = theory.calibration("bregman(loss=softmax, target=precision)", "precision@2")
    assert other.condition == theory.IndependentLabels()
    assert other.counterexample.regret > 0
    assert _status("bregman(loss=softmax_ce, target=precision)", "precision@2") == "calibrated"
    # SPEC 3.3: (1, 0, 0) with .55 and (0, 3, 3) with .45.
    distribution = theory.Distribution([[1, 0, 0], [0, 3, 3]], [0.55, 0.45])
    shares = distribution.minimiser("bregman(loss=softmax, target=identity)").scores
    utilities = distribution.minimiser("bregman(loss=softmax_ce, target=identity)").scores
    assert shares.argmax() == 0
    assert utilities.argmin() == 0


@pytest.mark.parametrize(
    ("target", "metric"), [("dcg", "dcg@10"), ("recall", "recall@2"), ("auc", "auc")]
)
def test_a_kink_ties_items_whatever_the_target(target, metric):
    objective = f"pairwise(loss=hinge, target={target})"
    verdict = theory.calibration(objective, metric)
    assert verdict.status == "not calibrated"
    assert "kink" in verdict.sentence
    distribution = verdict.counterexample.distribution
    found = distribution.minimiser(objective)
    np.testing.assert_allclose(found.scores, verdict.counterexample.scores, atol=1e-5)
    assert distribution.regret(metric, found.scores) > 1e-3


def test_the_hinge_in_the_order_preserving_template_is_not():
    verdict = theory.calibration("pairwise(loss=hinge, target=ndcg)", "ndcg")
    assert verdict.status == "not calibrated"
    assert verdict.counterexample is not None


@pytest.mark.parametrize("objective", ["ranknet", "ranksvm", "rankboost", "ranksvm_squared"])
@pytest.mark.parametrize("metric", ["dcg", "ndcg@10", "auc", "pairwise_disagreement"])
def test_comparisons_are_calibrated_for_none(objective, metric):
    verdict = theory.calibration(objective, metric)
    assert verdict.counterexample is not None
    if metric == "auc" and objective != "ranksvm":  # 0/1 labels, and no kink
        assert verdict.condition == theory.IndependentLabels()
        return
    assert verdict.status == "not calibrated"
    assert "Duchi et al. 2010, Thm 11" in verdict.reference


def test_normalisation_and_curvature_do_not_change_a_verdict():
    changed = "comparison(loss=logistic, normalize=pairs, hessian=majorise, engine=pairs)"
    verdict = theory.calibration(changed, "wta")
    assert verdict.condition == theory.IndependentLabels()
    assert verdict.counterexample.objective == "comparison(loss=logistic)"


def test_linear_on_labels_and_on_graphs():
    metric = "pairwise_disagreement(normalize=false)"
    assert _status("linear", metric) == "calibrated"
    on_graphs = theory.calibration("linear", metric, graphs=True)
    assert on_graphs.condition == theory.DegreeCondition()
    fine = np.array([[0, 0.5, 1.5], [0, 0, 0.1], [0.5, 0, 0]])
    chain = np.array([[0, 1.0, 0], [0, 0, 6.0], [0, 0, 0]])
    assert on_graphs.condition.holds(fine)
    assert not on_graphs.condition.holds(chain)
    assert theory.calibration("ranknet", metric, graphs=True).status == "not calibrated"
    assert theory.calibration("softmax", metric, graphs=True).status == "unknown"
    assert theory.calibration("linear", "dcg", graphs=True).status == "unknown"


def test_preferences_in_hand_mean_graphs():
    graphs = gbmrank.PreferenceGraphs.from_edges([0, 1], [1, 2], group=[3])
    objective = gbmrank.objective("linear", preferences=graphs)
    verdict = theory.calibration(objective, "pairwise_disagreement(normalize=false)")
    assert verdict.condition == theory.DegreeCondition()
    leading = theory.calibration(
        "comparison(margin=1)", "pairwise_disagreement(normalize=false)", graphs=True
    )
    assert leading.reference.startswith("Duchi et al. 2010, Thm 12")
    assert _status("comparison(margin=1)", "dcg") == "unknown"


def test_err_has_a_theorem_and_average_precision_a_condition():
    err = theory.calibration("pairwise(target=ndcg@10)", "err@10")
    assert err.status == "not calibrated"
    assert "Thm 3.3" in err.reference
    assert isinstance(theory.calibration("map_diagonal", "map").condition, theory.Reinforcement)
    assert _status("map_diagonal", "map@5") == "not calibrated"


def test_metrics_without_discounts_take_every_loss():
    assert _status("listmle", "precision") == "calibrated"
    assert _status("ranknet", "recall") == "calibrated"


def test_rules_that_reward_ties_are_left_alone():
    assert _status("pairwise(target=dcg)", "dcg(ties=best)") == "unknown"
    assert _status("pairwise(target=dcg)", "dcg(ties=index)") == "calibrated"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mix(pairwise(target=dcg), pointwise(loss=squared, target=dcg))", "calibrated"),
        ("mix(pairwise(target=dcg), pairwise(loss=exponential, target=dcg))", "unknown"),
        ("mix(pairwise(target=dcg), pairwise(target=ndcg))", "unknown"),
        ("mix(pairwise(target=dcg), ranknet)", "unknown"),
    ],
)
def test_sums_of_losses_claim_what_is_proven(text, expected):
    assert _status(text, "dcg") == expected


def _soft_step(z, width=1.0):
    """Convex, decreasing, differentiable: sqrt(z^2 + width) - z."""
    root = (z * z + width) ** 0.5
    return root - z, z / root - 1.0, width / root**3


def _rising(z):
    """Convex, but it grows with the margin."""
    return z * z + z, 2.0 * z + 1.0, 2.0


def _falling_line(z):
    """Without a lower bound."""
    return -z, -1.0, 0.0


@pytest.mark.filterwarnings("ignore:the loss .* grows with the margin")
@pytest.mark.parametrize(
    ("function", "expected"),
    [(_soft_step, "conditional"), (_rising, "unknown"), (_falling_line, "unknown")],
)
def test_losses_of_plugins_are_measured(function, expected):
    objective = gbmrank.objective("pairwise", loss=loss_class(function)(), target="dcg")
    verdict = theory.calibration(objective, gbmrank.metric("dcg@10"))
    assert verdict.status == expected
    if expected == "conditional":
        assert "convex" in str(verdict.condition)
        assert verdict.constant is None


@final
@dataclass(frozen=True, slots=True)
class _SoftStep(AbstractMarginLoss):
    name: ClassVar[str] = "soft_step"
    proven: ClassVar[tuple[str, ...]] = ("convex", "decreasing", "differentiable", "bounded_below")
    phi = staticmethod(_soft_step)


def test_a_loss_that_declares_what_is_proven_is_calibrated():
    objective = gbmrank.objective("pairwise", loss=_SoftStep(), target="dcg")
    assert _status(objective, "dcg@10") == "calibrated"
    # A bound of the curvature is not declared, so sums are not covered.
    assert _status("mix(pairwise(target=dcg), pairwise(target=dcg))", "dcg") == "calibrated"
    mixed = Mix(parts=(as_objective(objective), as_objective("pairwise(target=dcg)")))
    assert _status(mixed, "dcg") == "unknown"


def _hidden_kink(z):
    """A kink at 1 beside a steep parabola."""
    gap = max(1.0 - z, 0.0)
    inside = z < 1.0
    return gap + 10 * gap**2, (-1.0 - 20.0 * gap) if inside else 0.0, 20.0 if inside else 0.0


def test_curvature_does_not_hide_a_kink():
    loss = loss_class(_hidden_kink)()
    assert not loss.differentiable
    objective = gbmrank.objective("pairwise", loss=loss, target="dcg")
    assert _status(objective, "dcg") not in ("calibrated", "conditional")
    assert loss_class(_soft_step)().differentiable
    assert loss_class(_smooth_hinge)().differentiable


def _smooth_hinge(z):
    """A parabola below 1: its second derivative jumps, its first does not."""
    gap = max(1.0 - z, 0.0)
    return 1e3 * gap**2, -2e3 * gap, 2e3 if gap > 0 else 0.0


def test_a_plugin_loss_in_the_comparison_template_meets_the_theorem():
    objective = gbmrank.objective("comparison", loss=loss_class(_soft_step)())
    verdict = theory.calibration(objective, "dcg")
    assert verdict.status == "not calibrated"
    example = verdict.counterexample
    found = example.distribution.minimiser(objective)
    assert example.distribution.regret("dcg", found.scores) == pytest.approx(example.regret)
    given = theory.calibration(objective, "precision@2").condition
    assert given.parts[0] == theory.IndependentLabels()
    assert "convex" in str(given.parts[1])


@final
@dataclass(frozen=True, slots=True)
class _SquaredLabel(AbstractUtility):
    name: ClassVar[str] = "squared_label"

    def values(self, data):
        return 7.0 * data.labels**2 + 3.0

    def upper_bounds(self, sizes):
        return None


@final
@dataclass(frozen=True, slots=True)
class _Scaled(AbstractUtility):
    name: ClassVar[str] = "scaled"

    def values(self, data):
        return np.where(data.labels < 50, 3.0 * data.labels, 7.0)

    def upper_bounds(self, sizes):
        return None


def test_metrics_and_utilities_of_plugins_are_compared_as_functions():
    metric = Positional(utility=_SquaredLabel(), discount="reciprocal")
    same = gbmrank.objective("pairwise", loss="squared", target=_SquaredLabel())
    assert _status(same, metric) == "calibrated"
    assert _status("pairwise(loss=squared, target=dcg)", metric) == "not calibrated"
    assert _status("pairwise(loss=squared, target=ndcg)", metric) == "not calibrated"
    scaled = Positional(utility=_Scaled(), discount="reciprocal")
    verdict = theory.calibration("pairwise(loss=squared, target=identity)", scaled)
    assert verdict.status == "conditional"  # looking does not prove that it is linear everywhere
    assert verdict.condition.holds(gbmrank.RankingData.from_arrays([1, 0, 2, 1], group=[2, 2]))
    assert not verdict.condition.holds(
        gbmrank.RankingData.from_arrays([100, 0, 0, 1], group=[2, 2])
    )
    rbp = Positional(utility=PrecisionUtility(), discount=lambda k: 0.8**k)
    assert _status("pointwise(loss=logistic, target=precision)", rbp) == "calibrated"


def test_a_verdict_is_plain_data():
    verdict = theory.calibration("ranknet", "dcg")
    plain = verdict.as_dict()
    assert plain["status"] == "not calibrated"
    assert plain["counterexample"]["best_order"] == (0, 1, 2)
    assert str(verdict).startswith("not calibrated: ")
    assert not verdict


def test_the_warning_comes_once():
    _warned.clear()
    advice = r"pairwise\(loss=logistic, target=dcg\).*gbmrank check '.*' --metric dcg$"
    with pytest.warns(gbmrank.CalibrationWarning, match=advice):
        theory.warn_if_not_calibrated("ranknet", "dcg")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        theory.warn_if_not_calibrated("ranknet", "dcg")
        assert theory.warn_if_not_calibrated("pairwise(target=dcg)", "dcg")


def test_conditions_that_data_cannot_show_say_so():
    data = gbmrank.RankingData.from_arrays([1, 0])
    for condition in (theory.IndependentLabels(), theory.Reinforcement()):
        with pytest.raises(gbmrank.ParameterError, match=r"theory\.Distribution"):
            condition.holds(data)


def test_names_lead_to_objects():
    assert set(theory.__all__) <= set(dir(theory))
    for name in theory.__all__:
        assert getattr(theory, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = theory.nothing
    with pytest.raises(gbmrank.ParameterError, match="one metric at a time"):
        theory.calibration("ranknet", [gbmrank.metric("dcg")])


@pytest.mark.parametrize(
    "objective",
    [
        "bipartite(loss=logistic)",
        "bipartite(loss=p_classification)",
        "bipartite(loss=asymmetric_a)",
        "pointwise(loss=logistic, target=identity, eta=1)",
        "pointwise(loss=asymmetric_a, target=precision)",
        "pointwise(loss=squared, target=identity)",
        pytest.param("pointwise(loss=brier_sigmoid, target=precision)", marks=pytest.mark.nightly),
        "pairwise(loss=exponential, target=precision)",
        "bregman(loss=binary_entropy, target=precision)",
        "linear",
    ],
)
def test_sorting_the_probability_of_relevance_is_right_for_auc_of_independent_labels(objective):
    verdict = theory.calibration(objective, "auc")
    assert verdict.status == "conditional"
    assert verdict.condition == theory.IndependentLabels()
    assert "Menon and Williamson 2014" in verdict.reference
    vectors = np.array(np.meshgrid(*[[0.0, 1.0]] * 4)).reshape(4, -1).T
    rng = np.random.default_rng(3)
    for _ in range(4):
        eta = rng.uniform(0.05, 0.95, 4)
        distribution = theory.Distribution(
            vectors, np.prod(np.where(vectors == 1, eta, 1 - eta), axis=1)
        )
        assert verdict.condition.holds(distribution)
        scores = distribution.minimiser(objective).scores
        assert np.argsort(scores).tolist() == np.argsort(eta).tolist()
        assert distribution.regret("auc", scores) < 1e-9


@pytest.mark.parametrize(
    ("objective", "metric"),
    [
        ("pointwise(loss=squared, target=identity)", "auc(threshold=2)"),
        ("ranksvm", "auc"),
        ("ranknet", "auc(threshold=2)"),
        ("listmle", "auc"),
        ("bipartite(threshold=2)", "auc(threshold=3)"),
        ("bipartite(loss=squared_margin)", "auc"),
    ],
)
def test_independence_is_no_excuse_elsewhere(objective, metric):
    assert _status(objective, metric) != "conditional"
    assert _status(objective, metric) != "calibrated"


@pytest.mark.parametrize("objective", table_objectives())
def test_precision_at_the_first_rank_is_winner_takes_all(objective):
    first, winner = (theory.calibration(objective, metric) for metric in ("precision@1", "wta"))
    assert first.status == winner.status
    if first.counterexample is not None:
        example = first.counterexample
        assert example.metric == "precision@1"
        lost = example.distribution.regret("precision@1", example.scores)
        assert lost == pytest.approx(example.regret, rel=1e-6)


@pytest.mark.parametrize("objective", ["duchi_linear", "linear(regulariser=cosh)"])
def test_advice_is_about_what_the_objective_has(objective):
    verdict = theory.calibration(objective, "pairwise_disagreement")
    assert isinstance(verdict.condition, theory.SortsPreferences)
    assert not verdict.condition.holds(verdict.counterexample.distribution)
    assert "target" not in verdict.sentence
    right = "pairwise_disagreement(normalize=false)"
    assert verdict.sentence.endswith(f"it is right for {right}")
    assert _status(objective, right) == "calibrated"
    other = theory.calibration(objective, "ndcg").sentence
    assert "linear takes no target; gbmrank advise ndcg" in other


@pytest.mark.parametrize("objective", table_objectives())
def test_targets_that_are_advised_help(objective):
    for metric in TABLE_METRICS:
        sentence = theory.calibration(objective, metric).sentence
        if "; set target=" not in sentence:
            continue
        target, *without = sentence.split("; set target=")[1].split(" and leave out ")
        target, inside, _ = target.partition(" in its parts")
        template: Any = as_objective(objective)
        assert bool(inside) == (template.name == "mix")
        aimed = [
            replace(each, target=build(UTILITIES, target), **dict.fromkeys(names))
            for each in getattr(template, "parts", (template,))
            for names in [[x for y in without for x in y.split(" and ") if hasattr(each, x)]]
        ]
        made = replace(template, parts=tuple(aimed)) if inside else aimed[0]
        assert _status(made, metric) == "calibrated"


def test_options_of_parts_within_parts_are_named():
    inner = "mix(pointwise(target=dcg, max_grade=2), sigmoid_softmax(target=dcg))"
    for text in (inner, f"mix({inner}, sigmoid_softmax(target=dcg))"):
        sentence = theory.calibration(text, "ndcg").sentence
        assert sentence.endswith("set target=ndcg in its parts and leave out max_grade")


@pytest.mark.parametrize(
    "objective", ["native:rank:pairwise", "native:lambdarank", Native("rank:ndcg")]
)
def test_objectives_of_boosters_have_no_theorem(objective):
    verdict = theory.calibration(objective, "dcg")
    assert verdict.status == "unknown"
    assert "booster's own objective" in verdict.sentence
    assert str(objective) in verdict.sentence
    assert theory.warn_if_not_calibrated(objective, "dcg") == verdict
    with pytest.raises(gbmrank.UnknownNameError, match="no metric is called"):
        theory.calibration(objective, "nothing")


STATUSES = ("calibrated", "conditional", "not calibrated", "unknown")


@pytest.mark.parametrize(
    "objective",
    [
        "map_diagonal(threshold=1)",
        pytest.param("pointwise(loss=squared, target=map, threshold=2)", marks=pytest.mark.nightly),
        "pairwise(target=map, threshold=1)",
        pytest.param(
            "bregman(loss=squared, target=precision, threshold=1)", marks=pytest.mark.nightly
        ),
        "asymmetric_a(threshold=2)",
        pytest.param("p_classification(threshold=2)", marks=pytest.mark.nightly),
        "pnorm_push(threshold=1)",
        "bipartite(threshold=1)",
        "mix(map_diagonal, ranknet)",
    ],
)
def test_options_of_a_target_are_no_hindrance(objective):
    for metric in TABLE_METRICS:
        assert theory.calibration(objective, metric).status in STATUSES


def test_options_of_a_target_go_with_it():
    verdict = theory.calibration("map_diagonal(threshold=1)", "ndcg@10")
    assert verdict.sentence.endswith("set target=ndcg@10 and leave out threshold")
    gbmrank.objective("map_diagonal", target="ndcg@10")  # what is advised is accepted
