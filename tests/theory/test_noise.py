"""Noise conditions against loops over their definitions, and the numbers of the papers."""

import itertools

import numpy as np
import pytest

from gbmrank import theory
from gbmrank.data.preferences import PreferenceGraphs
from gbmrank.errors import DataError, GroupError


def differences(a):
    n = len(a)
    return [[max(a[i][j] - a[j][i], 0) for j in range(n)] for i in range(n)]


def degrees(a):
    n = len(a)
    return [sum(a[i][j] - a[j][i] for j in range(n)) for i in range(n)]


def low_noise_by_loops(a):
    d = differences(a)
    return all(
        a[i][k] - a[k][i] >= d[i][j] + d[j][k] - 1e-9
        for i, j, k in itertools.permutations(range(len(a)), 3)
        if d[i][j] > 0 and d[j][k] > 0
    ) and not any(d[i][j] > 0 and d[j][i] > 0 for i, j in itertools.combinations(range(len(a)), 2))


def degree_by_loops(a):
    f = degrees(a)
    pairs = itertools.permutations(range(len(a)), 2)
    return all(f[i] > f[k] + 1e-9 for i, k in pairs if a[i][k] > a[k][i])


def acyclic_by_enumeration(a):
    n = len(a)
    return any(
        all(a[order[y]][order[x]] == 0 for x in range(n) for y in range(x + 1, n))
        for order in itertools.permutations(range(n))
    )


def reinforces_by_loops(u):
    n = len(u)
    return all(
        u[i][i]
        >= u[j][j] + sum(max(u[j][g] - u[i][g], 0) for g in range(n) if g not in (i, j)) - 1e-9
        for i, j in itertools.permutations(range(n), 2)
        if u[i][i] >= u[j][j]
    )


def random_graph(seed):
    """Graphs that meet each condition often enough, with weights of one decimal."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    if seed % 4 == 0:  # from labels: low noise with equality
        mean = rng.integers(0, 6, (3, n)) / 2
        return sum(np.maximum(y[:, None] - y[None, :], 0) for y in mean)
    a = rng.integers(0, 8, (n, n)) / 4 * (rng.random((n, n)) < (0.3 if seed % 4 == 1 else 0.8))
    np.fill_diagonal(a, 0)
    return np.triu(a) + 0.3 * np.tril(a) if seed % 4 == 2 else a


@pytest.mark.parametrize("seed", range(400))
def test_conditions_are_their_definitions(seed):
    a = random_graph(seed)
    d = theory.difference_graph(a)
    np.testing.assert_allclose(d, differences(a.tolist()))
    np.testing.assert_allclose(theory.net_degree(a), degrees(a.tolist()), atol=1e-12)
    low, degree = theory.is_low_noise(a), theory.degree_condition(a)
    dag = theory.is_acyclic(d)
    assert bool(low) == low_noise_by_loops(a.tolist())
    assert bool(degree) == degree_by_loops(a.tolist())
    assert bool(dag) == acyclic_by_enumeration(d.tolist())
    assert bool(theory.is_acyclic(a)) == acyclic_by_enumeration(a.tolist())
    assert not low or (degree and dag)  # Duchi et al., Lemma 14
    assert not degree or dag


@pytest.mark.parametrize("seed", range(100))
def test_witnesses_break_the_condition(seed):
    a = random_graph(seed)
    d, f = theory.difference_graph(a), theory.net_degree(a)
    low, degree, dag = theory.is_low_noise(a), theory.degree_condition(a), theory.is_acyclic(d)
    if not low:
        i, j, k = low.witness
        assert d[i, j] > 0
        assert d[j, k] > 0
        assert a[i, k] - a[k, i] < d[i, j] + d[j, k]
    if not degree:
        i, k = degree.witness
        assert a[i, k] > a[k, i]
        assert f[i] <= f[k] + 1e-9
    if not dag:
        cycle = dag.witness
        assert len(set(cycle)) == len(cycle) >= 2
        assert all(d[i, j] > 0 for i, j in zip(cycle, [*cycle[1:], cycle[0]], strict=True))


def test_low_noise_needs_the_corrected_condition_of_theorem_11():
    printed = np.zeros((3, 3))  # SPEC 9, D1: meets the printed recipe and is not low noise
    printed[0, 2], printed[0, 1], printed[2, 0], printed[1, 2] = 2, 1.5, 1.9, 0.25
    assert theory.is_low_noise(printed).witness == (0, 1, 2)
    right = np.zeros((3, 3))
    right[0, 1], right[0, 2], right[1, 2], right[2, 0] = 0.5, 1.5, 0.1, 0.5
    assert theory.is_low_noise(right)
    assert theory.degree_condition(right)
    np.testing.assert_allclose(theory.net_degree(right), [1.5, -0.4, -1.1])
    equality = np.zeros((3, 3))  # Thm 12: .26 = .26
    equality[0, 1], equality[1, 2], equality[0, 2], equality[2, 0] = 0.25, 0.01, 0.5, 0.24
    assert theory.is_low_noise(equality)


def test_a_chain_is_a_dag_without_the_degree_condition():
    chain = np.zeros((3, 3))
    chain[0, 1], chain[1, 2] = 1.0, 6.0
    assert theory.is_acyclic(theory.difference_graph(chain))
    answer = theory.degree_condition(chain)
    assert answer.witness == (0, 1)
    assert answer.reason == "0 is preferred to 1, with a net degree of 1 against 5"


@pytest.mark.parametrize("seed", range(200))
def test_reinforcement_is_its_definition(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    labels = rng.integers(0, 2, (3, n)).astype(float)
    p = rng.dirichlet(np.ones(3))
    u = sum(w * np.outer(y, y) / max(y.sum(), 1) for w, y in zip(p, labels, strict=True))
    assert bool(theory.reinforces(u)) == reinforces_by_loops(u.tolist())


def test_reinforcement_fails_in_the_example_of_the_specification():
    labels = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 1]], dtype=float)
    u = sum(p * np.outer(y, y) / y.sum() for p, y in zip((0.3, 0.2, 0.5), labels, strict=True))
    assert theory.reinforces(u).witness == (0, 3)


def test_the_report_counts_queries_with_judgments():
    # Query 0: low noise. Query 1: a chain. Query 2: a cycle. Query 3: nothing.
    winner, loser = [0, 3, 4, 6, 7, 8], [1, 4, 5, 7, 8, 6]
    graphs = PreferenceGraphs.from_edges(winner, loser, [1, 1, 6, 1, 1, 1], group=[3, 3, 3, 2])
    report = theory.noise_report(graphs)
    assert report.queries.tolist() == [0, 1, 2]
    assert [report.share(name) for name in ("low_noise", "degree", "acyclic")] == [
        1 / 3,
        1 / 3,
        2 / 3,
    ]
    assert [query for query, _ in report.failures("acyclic")] == [2]
    assert next(report.failures("degree"))[1].witness == (0, 1)
    assert "in 67% of your 3 queries the difference graph has no cycle" in str(report)


def test_the_report_on_labels_of_one_judge_is_always_yes():
    labels = np.random.default_rng(0).integers(0, 5, 60)
    report = theory.noise_report(PreferenceGraphs.from_labels(labels, group=[6] * 10))
    assert report.share("low_noise") == report.share("degree") == report.share("acyclic") == 1.0


def test_judgments_add_the_reinforcement_condition():
    labels = np.repeat([[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 1]], [3, 2, 5], axis=0).T
    graphs = PreferenceGraphs.from_edges([0], [1], group=[4])
    report = theory.noise_report(graphs, judgments=labels)
    assert report.share("reinforcement") == 0.0
    with pytest.raises(DataError, match="one column per judge"):
        theory.noise_report(graphs, judgments=labels[:2])


def test_bad_graphs_are_refused():
    with pytest.raises(DataError, match="weight of 0 over 1 is -1"):
        theory.net_degree([[0, -1], [0, 0]])
    with pytest.raises(DataError, match="weight of 1 over 1 is 2"):
        theory.is_low_noise([[0, 0], [0, 2]])
    with pytest.raises(DataError, match=r"shape \(1, 2\)"):
        theory.is_acyclic([[0, 1]])
    with pytest.raises(DataError, match="no query has a preference"):
        theory.noise_report(PreferenceGraphs.from_edges([], [], group=[2]))


def test_any_f_can_be_put_to_the_test():
    """SPEC 6.6 on the graph of 4.4 that net degrees misorder: 0 over 1 by 1, 1 over 2 by 6."""
    chain = np.array([[0, 1.0, 0], [0, 0, 6.0], [0, 0, 0]])
    by_degree = theory.degree_condition(chain)
    assert by_degree.witness == (0, 1)
    assert theory.degree_condition(chain, f=theory.net_degree(chain)).witness == (0, 1)
    assert theory.degree_condition(chain, f=[3, 2, 1])
    wrong = theory.degree_condition(chain, f=[3.0, 1.0, 1.0])
    assert wrong.witness == (1, 2)
    assert wrong.reason == "1 is preferred to 2, with an f of 1 against 1"


@pytest.mark.parametrize("f", [[1.0, 2.0], [[1.0, 2.0, 3.0]], [1.0, np.nan, 2.0]])
def test_f_has_one_number_per_item(f):
    with pytest.raises(DataError, match=r"one finite number per item of the graph \(3\)"):
        theory.degree_condition(np.zeros((3, 3)), f=f)


@pytest.mark.parametrize("group", [[2, 3], [9], [-2, 10], [4.5, 3.5]])
def test_groups_of_judgments_cover_all_rows(group):
    judgments = np.random.default_rng(0).random((8, 20)) < 0.4
    with pytest.raises(GroupError, match="group size"):
        theory.independence(judgments, group=group)
