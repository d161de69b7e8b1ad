"""Arguments that are not matrices, scores or numbers are rejected, with what is allowed."""

import contextlib
from typing import Any

import numpy as np
import pytest

import gbmrank
from gbmrank import decoders, theory
from gbmrank.data.preferences import PreferenceGraphs

GRAPHS = PreferenceGraphs.from_edges([0], [1], group=[2])
MASKED: Any = np.ma.array([[0.0, 1.0], [5.0, 0.0]], mask=[[False, False], [True, False]])
OF_MATRICES = [
    decoders.graph_order,
    decoders.exact_disagreement,
    decoders.exact_map,
    decoders.greedy_map,
    decoders.diagonal,
    theory.difference_graph,
    theory.net_degree,
    theory.is_acyclic,
    theory.is_low_noise,
    theory.degree_condition,
    theory.reinforces,
]


@pytest.mark.parametrize("function", OF_MATRICES, ids=lambda one: one.__name__)
@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[0, 1], [2]], "rows of equal length"),
        ([["a", "b"], ["c", "d"]], "must be numbers .*, got list"),
        ([[0, 1j], [0, 0]], "not a real number"),
        (MASKED, "have masked entries"),
        ([[0, np.nan], [0, 0]], "finite and at most 1e\\+150, got nan at index 0, 1"),
        ([[np.inf, 0], [0, 1]], "got inf at index 0, 0"),
        ([[0, 1e308], [0, 0]], "got 1e\\+308 at index 0, 1"),
        ([[0, 1]], "square matrix, got an array of shape \\(1, 2\\)"),
        (None, "are numbers, got NoneType|finite"),
    ],
)
def test_what_is_no_matrix(function, matrix, words):
    with pytest.raises(gbmrank.DataError, match=words):
        function(matrix)


@pytest.mark.parametrize("function", OF_MATRICES[5:10], ids=lambda one: one.__name__)
def test_graphs_of_many_queries_are_no_matrix(function):
    with pytest.raises(gbmrank.DataError, match="to_matrix"):
        function(GRAPHS)


def test_a_graph_of_no_items_meets_every_condition():
    empty = np.zeros((0, 0))
    for function in (theory.is_acyclic, theory.is_low_noise, theory.degree_condition):
        assert function(empty)


def test_entries_that_are_not_symmetric_are_named():
    with pytest.raises(gbmrank.DataError, match=r"entry \(0, 1\) is 1 and \(1, 0\) is 2"):
        theory.reinforces([[0, 1], [2, 0]])
    with pytest.raises(gbmrank.DataError, match=r"entry \(0, 1\) is 1 and \(1, 0\) is 3"):
        decoders.orders(np.array([0, 1, 3, 0.0]), [2], "map", "exact")
    for apart, refused in ((1e-12, False), (1e-7, True)):
        nearly = [[2.0, 1.0], [1.0 + apart, 2.0]]
        with pytest.raises(gbmrank.DataError) if refused else contextlib.nullcontext():
            theory.reinforces(nearly)


@pytest.mark.parametrize("order", [[0, 0], [0.9, 1.9], [0, -1], [0], [0, 2], ["a", "b"]])
def test_what_is_no_order(order):
    with pytest.raises(gbmrank.DataError, match="order"):
        decoders.map_value(np.eye(2), order)


@pytest.mark.parametrize("sizes", [[2.5], [-2], [0], ["a"], 2.5])
def test_what_are_no_sizes(sizes):
    with pytest.raises(gbmrank.DataError, match="sizes"):
        decoders.orders(np.zeros(4), sizes, "disagreement")


@pytest.mark.parametrize(
    ("values", "sizes", "words"),
    [
        (np.zeros(4), 2, "sizes must be one column"),
        (["a"] * 4, [2], "pair values must be numbers"),
        ([0.0, 1.0, 1e200, 0.0], [2], "at most 1e\\+150"),
    ],
)
def test_what_many_matrices_are_not(values, sizes, words):
    with pytest.raises(gbmrank.DataError, match=words):
        decoders.orders(values, sizes, "disagreement")


REFUSED = {
    "c_phi of a number": (lambda: theory.c_phi(1.0), "phi must be one column"),
    "c_phi of a table": (lambda: theory.c_phi([[1, 0.5], [1, 0.2]]), "phi must be one column"),
    "c_phi of nan": (lambda: theory.c_phi([1, np.nan]), "phi must be finite"),
    "c_phi p text": (lambda: theory.c_phi([1, 0.5], p="2"), "c_phi: p must be a .*number from 1"),
    "c_phi p nan": (lambda: theory.c_phi([1, 0.5], p=np.nan), "number from 1"),
    "essential k 0": (lambda: theory.essential_loss([2, 0], [0, 1], k=0), "k must be a whole"),
    "essential k -1": (lambda: theory.essential_loss([2, 0], [0, 1], k=-1), "k must be a whole"),
    "essential k 1.5": (lambda: theory.essential_loss([2, 0], [0, 1], k=1.5), "k must be a whole"),
    "essential k True": (
        lambda: theory.essential_loss([2, 0], [0, 1], k=True),
        "k must be a whole",
    ),
    "essential preferences": (
        lambda: theory.essential_check(
            [2, 0], [0, 1], objective=gbmrank.objective("ranknet", preferences=GRAPHS)
        ),
        "preferences",
    ),
    "essential margin": (
        lambda: theory.essential_check(
            [1, 0], [0, 1], objective="comparison(loss=logistic, margin=-5)"
        ),
        "margin",
    ),
    "auc regret 2": (lambda: theory.auc_regret_bound("exponential", 2), "from 0 up to 1, got 2"),
    "auc regret -0.6": (lambda: theory.auc_regret_bound("exponential", -0.6), "from 0 up to 1"),
    "auc regret nan": (lambda: theory.auc_regret_bound("exponential", np.nan), "from 0 up to 1"),
    "grades nan": (lambda: theory.falsify("ranknet", "dcg", grades=(0, np.nan)), "grades"),
    "one grade": (lambda: theory.falsify("ranknet", "dcg", grades=(0,)), "two different"),
    "items 2.5": (lambda: theory.falsify("ranknet", "dcg", items=(3, 2.5)), "items must be"),
    "items 3.0": (lambda: theory.falsify("ranknet", "dcg", items=3.0), "items must be"),
    "items text": (lambda: theory.falsify("ranknet", "dcg", items="3"), "items must be"),
    "seed 1.5": (lambda: theory.falsify("ranknet", "dcg", seed=1.5), "seed must be"),
    "seed -1": (lambda: theory.falsify("ranknet", "dcg", seed=-1), "seed must be"),
    "budget -1": (lambda: theory.falsify("ranknet", "dcg", budget=-1), "budget must be"),
    "budget 1.5": (lambda: theory.falsify_on_graphs("ranknet", budget=1.5), "budget must be"),
    "graph seed": (lambda: theory.falsify_on_graphs("ranknet", seed=-1), "seed must be"),
    "mass inf": (lambda: theory.FiniteBipartite([np.inf, 1], [0.2, 0.3]), "mass must be finite"),
    "mass huge": (
        lambda: theory.FiniteBipartite([1e308, 1e308], [0.2, 0.3]),
        "mass must be finite",
    ),
    "mass text": (lambda: theory.FiniteBipartite(["a"], [0.5]), "mass must be numbers"),
    "no instance": (lambda: theory.FiniteBipartite([], []), "at least one"),
    "auc nan": (lambda: _two().auc([np.nan, 1]), "scores must be finite"),
    "auc length": (lambda: _two().auc([1, 2, 3]), "one per instance, 2; got 3"),
    "fixed point length": (lambda: _two().fixed_point("logistic", [1.0]), "one per instance"),
    "push p": (lambda: _two().push_scorer(p="4"), "p must be a finite number"),
    "rate text": (lambda: theory.loss_from_weight(np.ones_like, rate="1"), "rate must be"),
    "weight of another shape": (
        lambda: theory.loss_from_weight(lambda c: np.ones((3, 3))),
        "must return one number per c",
    ),
    "degrees of a list": (lambda: theory.DegreeCondition().holds([0, 1]), "square matrix"),
}


def _two():
    return theory.FiniteBipartite([1, 1], [0.2, 0.3])


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    call, words = REFUSED[case]
    with pytest.raises(gbmrank.GbmrankError, match=words):
        call()


def test_what_can_be_read_is_taken():
    for items in (np.int64(3), [3], range(3, 5), np.array([3])):
        found = theory.search("ranknet", "dcg", items=items, grades=np.array([0, 1]), budget=1)
        assert found.tried == 1
    scores = [0.0, 1.0]
    np.testing.assert_allclose(
        _two().fixed_point("logistic", scores), _two().fixed_point("logistic", np.array(scores))
    )


@pytest.mark.parametrize(
    ("phi", "p", "expected"),
    [
        ([1, 0.5], 1e6, 0.5),
        ([1e140, 0, 0, 0], 2.0, 1e140),
        ([1e-200, 0.0], 2.0, 1e-200),
        ([3.0, 4.0, 0.0, 0.0], 2.0, 5.0),
        ([1.0, 1.0], 2.0, 0.0),
    ],
)
def test_c_phi_neither_underflows_nor_overflows(phi, p, expected):
    assert theory.c_phi(phi, p=p) == pytest.approx(expected, rel=1e-12)


def test_labels_with_more_digits_than_float64_has():
    with pytest.raises(gbmrank.DataError, match="more digits than float64 can represent"):
        theory.Distribution([[2**53 + 1, 2**53]], [1.0])
