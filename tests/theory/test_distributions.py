"""Inner risks, minimisers and best rankings on finite distributions."""

import itertools

import numpy as np
import pytest

import gbmrank
from gbmrank import theory
from gbmrank.theory import Distribution
from tests import oracles

# SPEC 3.4: a distribution on which comparisons misorder items 1 and 2.
COMPARED = ([[0, 0, 1], [1, 0, 0], [1, 1, 0]], [0.2, 0.5, 0.3])


def _graph(*edges):
    graph = np.zeros((3, 3))
    for i, j, weight in edges:
        graph[i, j] = weight
    return graph


# SPEC 4.4: the proof of Theorem 11 of Duchi et al.; low noise, best order 0, 1, 2.
GRAPHS = Distribution(
    [_graph((0, 1, 1), (0, 2, 3)), _graph((1, 2, 0.2), (2, 0, 1))],
    [0.5, 0.5],
)
DISAGREEMENT = "pairwise_disagreement(normalize=false)"


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        ("ranknet", (1.259801, -0.681053, -0.578748)),
        ("rankboost", (0.654634, -0.400134, -0.254500)),
        ("ranksvm_squared", (0.493333, -0.266667, -0.226667)),
    ],
)
def test_minimisers_of_comparisons(objective, expected):
    distribution = Distribution(*COMPARED)
    found = distribution.minimiser(objective)
    assert found.attained
    np.testing.assert_allclose(found.scores, expected, atol=6e-7)
    assert distribution.regret("dcg", found.scores) > 0.01


def test_the_hinge_ties_what_should_be_ordered():
    distribution = Distribution(*COMPARED)
    found = distribution.minimiser(gbmrank.objective("ranksvm", normalize="none"))
    assert found.value == pytest.approx(0.9)
    assert found.scores[1] == found.scores[2]


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        ("ranknet", (1.060294, -0.840220, -0.220075)),
        ("rankboost", (0.589632, -0.536479, -0.053153)),
        ("ranksvm_squared", (0.44, -0.32, -0.12)),
    ],
)
def test_minimisers_on_graphs(objective, expected):
    found = GRAPHS.minimiser(objective)
    np.testing.assert_allclose(found.scores, expected, atol=6e-7)
    assert GRAPHS.best(DISAGREEMENT).orders == ((0, 1, 2),)
    assert GRAPHS.regret(DISAGREEMENT, found.scores) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("logistic", (1.843659, -2.355928, 0.512269)),
        ("exponential", (0.749127, -1.072959, 0.323831)),
        ("squared_hinge", (0.873268, -1.001539, 0.128271)),
    ],
)
def test_margins_do_not_help(loss, expected):
    # SPEC 4.4, Theorem 12: low noise with equality.
    graph = _graph((0, 1, 0.25), (1, 2, 0.01), (0, 2, 0.5), (2, 0, 0.24))
    distribution = Distribution([graph], [1.0])
    found = distribution.minimiser(f"comparison(loss={loss}, margin=1)")
    np.testing.assert_allclose(found.scores, expected, atol=6e-7)
    assert distribution.regret(DISAGREEMENT, found.scores) == pytest.approx(0.01)
    by_weight = distribution.minimiser(f"comparison(loss={loss}, margin=weight)").scores
    winner, loser = np.nonzero(graph)
    edges = gbmrank.PreferenceGraphs.from_edges(winner, loser, graph[winner, loser], group=[3])
    objective = gbmrank.objective("comparison", loss=loss, preferences=edges, margin="weight")
    np.testing.assert_allclose(objective.gradients(np.zeros(3), by_weight)[0], 0.0, atol=1e-12)


def test_the_linear_loss_is_right_on_that_graph():
    found = GRAPHS.minimiser("linear")
    np.testing.assert_allclose(found.scores, [1.5, -0.4, -1.1], atol=1e-8)
    assert GRAPHS.regret(DISAGREEMENT, found.scores) == 0.0


def test_theorem_3_3_with_the_corrected_numbers():
    # Calauzenes et al. print the sums over both labels, 1/24 and 1/12.
    distribution = Distribution([[1, 1, 0, 0], [0, 0, 1, 1]], [0.5, 0.5])
    first, second = [4.0, 3.0, 2.0, 1.0], [4.0, 2.0, 3.0, 1.0]  # orders 0123 and 0213
    gain = {
        metric: distribution.value(metric, second) - distribution.value(metric, first)
        for metric in ("err(max_grade=1)", "map")
    }
    assert gain["err(max_grade=1)"] == pytest.approx(1 / 48, abs=1e-15)
    assert gain["map"] == pytest.approx(-1 / 24, abs=1e-15)
    np.testing.assert_allclose(distribution.expected_utilities("recall"), 0.25)


@pytest.mark.parametrize(
    "metric", ["dcg@2", "ndcg", "precision@2", "auc", "spearman", "eru", DISAGREEMENT]
)
def test_sorting_expected_utilities_is_best_for_positional_metrics(metric):
    rng = np.random.default_rng(3)
    for _ in range(5):
        labels = rng.integers(0, 2, size=(3, 4))
        labels[:, :2] = [1, 0]  # every label vector has both classes
        distribution = Distribution(labels, rng.dirichlet(np.ones(3)))
        by_utility = distribution.value(metric, distribution.expected_utilities(metric))
        assert by_utility == pytest.approx(distribution.best(metric).value, abs=1e-12)


def test_values_are_means_over_labels_and_over_orders_of_ties():
    labels, p, scores = [[1, 0, 0, 1], [0, 1, 1, 0]], [0.25, 0.75], [1.0, 2.0, 1.0, 1.0]
    expected = sum(
        weight * oracles.mean_over_orders(oracles.average_precision, y, scores)
        for weight, y in zip(p, labels, strict=True)
    )
    assert Distribution(labels, p).value("map", scores) == pytest.approx(expected, abs=1e-14)


def test_label_vectors_without_a_value_are_left_out_or_filled():
    distribution = Distribution([[1, 0], [0, 0]], [0.5, 0.5])
    assert distribution.value("map", [1.0, 0.0]) == 1.0
    assert distribution.value("map(empty=zero)", [1.0, 0.0]) == 0.5


@pytest.mark.parametrize(("empty", "expected"), [("skip", 1.0), ("zero", 0.5), ("one", 1.0)])
def test_graphs_without_a_value_are_left_out_or_filled(empty, expected):
    metric = f"pairwise_disagreement(empty={empty})"
    graphs = Distribution([[[0, 1], [0, 0]], [[0, 0], [0, 0]]], [0.5, 0.5])
    assert graphs.value(metric, [0.0, 1.0]) == expected
    assert Distribution([[1, 0], [0, 0]], [0.5, 0.5]).value(metric, [0.0, 1.0]) == expected


def test_ties_of_graphs_count_as_the_metric_says():
    first = Distribution([[[0, 3], [1, 0]]], [1.0])
    for ties, expected in (("mean", 2.0), ("duchi", 3.0), ("index", 1.0)):
        metric = f"pairwise_disagreement(normalize=false, ties={ties})"
        assert first.value(metric, [1.0, 1.0]) == expected


def test_where_a_metric_is_undefined_no_order_is_better():
    empty = Distribution([[0, 0]], [1.0])
    assert np.isnan(empty.value("ndcg", [1.0, 0.0]))
    assert np.isnan(empty.regret("map", [1.0, 0.0]))
    assert empty.best("ndcg").orders == ((0, 1), (1, 0))
    assert empty.value("ndcg(empty=one)", [1.0, 0.0]) == 1.0


def test_the_best_order_of_err_is_found_by_trying_all():
    labels, p = [[2, 0, 1], [0, 3, 1]], [0.6, 0.4]
    distribution = Distribution(labels, p)
    values = {
        order: sum(w * oracles.err(y, order) for w, y in zip(p, labels, strict=True))
        for order in itertools.permutations(range(3))
    }
    best = distribution.best("err")
    assert best.value == pytest.approx(max(values.values()), abs=1e-14)
    assert best.orders[0] == max(values, key=values.__getitem__)


def test_long_queries_are_sorted_and_others_refused():
    labels = np.zeros((2, 12))
    labels[0, :5], labels[1, 4:7] = 1, 1
    distribution = Distribution(labels, [0.5, 0.5])
    assert distribution.best("precision@1").orders[0][0] == 4
    with pytest.raises(gbmrank.LimitError, match="at most 8"):
        distribution.best("err")


@pytest.mark.parametrize("objective", ["pairwise(target=dcg)", "softmax", "ranknet"])
def test_a_minimum_that_is_not_attained_is_noticed(objective):
    sure = Distribution([[1, 0, 0]], [1.0])
    assert not sure.minimiser(objective).attained
    assert Distribution([[2, 1, 1], [1, 1, 2]], [0.5, 0.5]).minimiser("pairwise").attained


def test_inner_risk_is_the_mean_loss():
    objective = gbmrank.objective("pairwise(target=dcg)")
    scores = np.array([0.3, -0.2, 0.1])
    labels, p = COMPARED
    expected = sum(w * objective.loss(y, scores) for w, y in zip(p, labels, strict=True))
    distribution = Distribution(labels, p)
    assert distribution.inner_risk(objective, scores) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(
    ("labels", "p", "words"),
    [
        ([[1, 0]], [0.5, 0.5], "m probabilities"),
        ([[1, 0]], [-1.0], "not negative"),
        ([[1, 0], [0]], [0.5, 0.5], "rows of equal length"),
        ([["a", "b"]], [1.0], "label vectors must be numbers"),
        (
            [[1, 0], [0, 1]],
            [[0.5], [0.2, 0.3]],
            "probabilities must be numbers in rows of equal length",
        ),
        ([[1, 0]], 1, "m probabilities"),
        ([[]], [1.0], "m probabilities"),
        ([[np.nan, 1]], [1.0], "got nan at index 0, 0"),
        ([[np.inf, 1]], [1.0], "got inf at index 0, 0"),
        ([[1, 0]], [np.inf], "probabilities must be finite"),
        ([[1j, 0]], [1.0], "not a real number"),
        (np.ma.array([[1.0, 0.0]], mask=[[False, True]]), [1.0], "masked"),
        ([[[0, -1], [0, 0]]], [1.0], "weight of 0 over 1 is -1"),
        ([[[0, np.nan], [0, 0]]], [1.0], "finite"),
        ([[[2, 1], [0, 0]]], [1.0], "zero on the diagonal"),
    ],
)
def test_what_is_no_distribution_is_refused(labels, p, words):
    with pytest.raises(gbmrank.DataError, match=words):
        Distribution(labels, p)


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([1.0], "one per item, 3; got 1"),
        ([1.0, 2.0, 3.0, 4.0], "one per item, 3; got 4"),
        ([np.nan, 1.0, 2.0], "finite"),
        ([np.inf, 1.0, 2.0], "finite"),
        (["a", "b", "c"], "must be one column of numbers"),
        ([[1.0, 2.0, 3.0]] * 2, "must be one column"),
        (np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False]), "finite"),
    ],
)
@pytest.mark.parametrize(
    "ask",
    [
        lambda d, s: d.inner_risk("ranknet", s),
        lambda d, s: d.value("dcg", s),
        lambda d, s: d.regret("dcg", s),
    ],
)
def test_scores_that_do_not_fit_are_refused(ask, scores, words):
    with pytest.raises(gbmrank.DataError, match=words):
        ask(Distribution(*COMPARED), scores)


@pytest.mark.parametrize(
    "distribution", [Distribution(*COMPARED), GRAPHS], ids=["labels", "graphs"]
)
def test_risks_refuse_another_number_of_scores(distribution):
    risk = distribution.risk("ranknet")
    for scores in (np.zeros(2), np.zeros(4), [1.0]):
        with pytest.raises(gbmrank.DataError, match="one per item, 3"):
            risk(scores)
    with pytest.raises(gbmrank.DataError, match="one per item, 3"):
        distribution.order_values("pairwise_disagreement", np.zeros((2, 4)))


def test_graphs_take_graph_losses_and_disagreement_alone():
    with pytest.raises(gbmrank.ParameterError, match="comparison and linear"):
        GRAPHS.minimiser("softmax")
    with pytest.raises(gbmrank.ParameterError, match="metric of graphs"):
        GRAPHS.value("dcg", [1.0, 0.0, 0.0])
    with pytest.raises(gbmrank.ParameterError, match="positional family"):
        Distribution(*COMPARED).expected_utilities("err")
    with pytest.raises(gbmrank.ParameterError, match="label vectors"):
        GRAPHS.expected_utilities("dcg")


def test_normalised_disagreement_weighs_every_graph_alike():
    # Totals 4 and 1.2: the order 0, 2, 1 contradicts 1->2 in the second graph, and 2->0.
    value = GRAPHS.value("pairwise_disagreement", [3.0, 1.0, 2.0])
    assert value == pytest.approx(0.5 * (0.2 + 1.0) / 1.2)


def test_probabilities_are_relative():
    labels = [[1, 0], [0, 1]]
    np.testing.assert_array_equal(Distribution(labels, [6, 2]).probabilities, [0.75, 0.25])
    population = gbmrank.theory.FiniteBipartite([6, 2], [0.5, 0.6])
    np.testing.assert_array_equal(population.mass, [0.75, 0.25])


def test_preferences_of_other_rows_do_not_count_in_place_of_labels():
    graphs = gbmrank.PreferenceGraphs.from_edges([0, 3], [1, 4], group=[3, 3])
    own = gbmrank.objective("comparison", preferences=graphs)
    labels = Distribution([[1, 0, 0], [0, 0, 1]], [0.5, 0.5])  # as many rows as the preferences
    words = "holds preferences of other rows, which would count in place of the labels"
    for objective in (own, gbmrank.mix("ranknet", own)):
        with pytest.raises(gbmrank.ParameterError, match=words):
            labels.inner_risk(objective, [0, 0, 1])
        with pytest.raises(gbmrank.ParameterError, match=words):
            theory.search(objective, "dcg", budget=1)
    metric = gbmrank.metric("pairwise_disagreement", preferences=graphs)
    with pytest.raises(gbmrank.ParameterError, match=words):
        labels.value(metric, [0, 0, 1])
    graph = Distribution([[[0, 1, 0], [0, 0, 0], [0, 0, 0]]], [1.0])
    assert graph.value(metric, [0, 1, 1]) == 1.0
    assert graph.inner_risk(own, [0, 0, 1]) == graph.inner_risk("comparison", [0, 0, 1])
