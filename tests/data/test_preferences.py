"""Preference graphs: what they hold, what they reject, and that pairs are not listed."""

import gzip
import pickle
import time
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gbmrank
from gbmrank.data import Groups
from gbmrank.data.preferences import PreferenceGraphs
from gbmrank.errors import (
    DataError,
    GbmrankError,
    GroupError,
    LimitError,
    NumericError,
    ParameterError,
    WeightError,
)


def matrices_by_loops(winner, loser, weight, sizes):
    """Dense graphs of contiguous queries, edge by edge."""
    begins = np.concatenate([[0], np.cumsum(sizes)])
    graphs = [np.zeros((n, n)) for n in sizes]
    for i, j, w in zip(winner, loser, weight, strict=True):
        query = max(q for q in range(len(sizes)) if begins[q] <= i)
        graphs[query][i - begins[query], j - begins[query]] += w
    return graphs


def label_matrix(labels, unit):
    return np.array([[float(a > b) if unit else max(a - b, 0.0) for b in labels] for a in labels])


def random_edges(seed, sizes):
    """Edges that repeat, some of weight zero."""
    rng = np.random.default_rng(seed)
    begins = np.concatenate([[0], np.cumsum(sizes)])
    winner, loser = [], []
    for _ in range(60):
        query = rng.integers(len(sizes))
        if sizes[query] > 1:
            i, j = rng.choice(sizes[query], 2, replace=False) + begins[query]
            winner.append(int(i))
            loser.append(int(j))
    return winner, loser, rng.integers(0, 4, len(winner)).astype(float)


@pytest.mark.parametrize("seed", range(20))
def test_edges_add_up_and_give_the_dense_graph(seed):
    sizes = np.random.default_rng(seed).integers(1, 6, 7)
    winner, loser, weight = random_edges(seed, sizes)
    graphs = PreferenceGraphs.from_edges(winner, loser, weight, group=sizes)
    expected = matrices_by_loops(winner, loser, weight, sizes)
    for query, matrix in enumerate(expected):
        np.testing.assert_array_equal(graphs.to_matrix(query), matrix)
    assert graphs.n_edges == sum(int((matrix > 0).sum()) for matrix in expected)
    degrees = np.concatenate([m.sum(axis=1) - m.sum(axis=0) for m in expected])
    np.testing.assert_allclose(graphs.net_degree(), degrees, atol=1e-12)
    edges = graphs.to_edges()
    assert edges.offsets.tolist()[-1] == graphs.n_edges
    assert np.all(edges.weight > 0)


def test_rows_of_queries_need_not_be_together():
    qid = ["b", "a", "b", "a"]
    graphs = PreferenceGraphs.from_edges([2, 1], [0, 3], [2.0, 1.0], qid=qid)
    assert graphs.net_degree().tolist() == [-2.0, 1.0, 2.0, -1.0]
    assert graphs.net_degree(in_query_order=True).tolist() == [-2.0, 2.0, 1.0, -1.0]
    assert graphs.to_matrix(0).tolist() == [[0, 0], [2, 0]]


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_labels_are_all_their_pairs(seed, unit):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, 6)
    labels = rng.integers(0, 3, sizes.sum()) + (1e6 if seed == 9 else 0.0)
    weights = "unit" if unit else "difference"
    graphs = PreferenceGraphs.from_labels(labels, group=sizes, weights=weights)
    assert graphs.edges is None
    expected = [label_matrix(part, unit) for part in np.split(labels, np.cumsum(sizes)[:-1])]
    for query, matrix in enumerate(expected):
        np.testing.assert_array_equal(graphs.to_matrix(query), matrix)
    degrees = np.concatenate([m.sum(axis=1) - m.sum(axis=0) for m in expected])
    np.testing.assert_allclose(graphs.net_degree(), degrees, atol=1e-9)
    assert graphs.n_edges == sum(int((matrix > 0).sum()) for matrix in expected)
    edges = graphs.to_edges()
    listed = PreferenceGraphs.from_edges(edges.winner, edges.loser, edges.weight, group=sizes)
    for query, matrix in enumerate(expected):
        np.testing.assert_array_equal(listed.to_matrix(query), matrix)


def test_a_million_labelled_rows_are_never_compared_pair_by_pair():
    labels = np.random.default_rng(0).integers(0, 5, 1_000_000).astype(float)
    sizes = np.full(10_000, 100)  # 49.5 million pairs: more than a gigabyte as a list
    tracemalloc.start()
    start = time.perf_counter()
    for weights in ("difference", "unit"):
        graphs = PreferenceGraphs.from_labels(labels, group=sizes, weights=weights)
        degrees = graphs.net_degree()
        n_edges = graphs.n_edges
    seconds = time.perf_counter() - start
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_edges > 35_000_000
    assert peak < 150e6  # some columns of 8 MB
    assert seconds < 10.0
    first = label_matrix(labels[:100], unit=True)
    np.testing.assert_allclose(degrees[:100], first.sum(axis=1) - first.sum(axis=0))


def test_listing_too_many_pairs_is_rejected_with_what_to_do():
    graphs = PreferenceGraphs.from_labels(np.arange(30_000.0))
    with pytest.raises(LimitError, match=r"4.5e\+08 edges.*200,000,000"):
        graphs.to_edges()


def test_rankings_of_several_judges_add_up():
    nan = float("nan")
    ranks = np.array([[1, 3, nan], [2, 1, 1], [2, 2, 2]])
    graphs = PreferenceGraphs.from_rankings(ranks)
    # Judge 0: row 0 over 1 and 2, which tie. Judge 1: 1, 2, 0. Judge 2: 1 over 2.
    assert graphs.to_matrix(0).tolist() == [[0, 1, 1], [1, 0, 2], [1, 0, 0]]
    last = PreferenceGraphs.from_rankings(ranks, unranked="last")
    assert last.to_matrix(0).tolist() == [[0, 1, 1], [2, 0, 2], [2, 0, 0]]
    far = PreferenceGraphs.from_rankings(ranks, weights="distance")
    assert far.to_matrix(0).tolist() == [[0, 1, 1], [2, 0, 2], [1, 0, 0]]


def test_one_total_order_is_not_listed():
    graphs = PreferenceGraphs.from_rankings([2, 1, 3, 1, 2], group=[3, 2])
    assert graphs.edges is None
    assert graphs.net_degree().tolist() == [0, 2, -2, 1, -1]
    partial = PreferenceGraphs.from_rankings([1, np.nan, 2], unranked="last")
    assert partial.edges is None
    assert partial.net_degree().tolist() == [2, -2, 0]
    assert PreferenceGraphs.from_rankings([1, np.nan, 2]).net_degree().tolist() == [1, 0, -1]


def test_duels_are_counted_both_ways():
    graphs = PreferenceGraphs.from_duels([0, 1, 0], [1, 0, 2], [1, 1, 0.5], group=[3])
    assert graphs.to_matrix(0).tolist() == [[0, 1, 0.5], [1, 0, 0], [0.5, 0, 0]]
    counted = PreferenceGraphs.from_duels([0], [1], [7], [3], group=[2])
    assert counted.to_matrix(0).tolist() == [[0, 7], [3, 0]]
    with pytest.raises(WeightError, match="duel 1 has wins=2"):
        PreferenceGraphs.from_duels([0, 0], [1, 1], [1, 2], group=[2])


FRAME = {"winner": ["x", "y", "x"], "loser": ["y", "x", "y"], "qid": [7, 9, 7], "weight": [1, 2, 3]}


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_of_every_kind_are_read(make):
    graphs = PreferenceGraphs.from_frame(make(FRAME), items=["x", "y", "x", "y"], qid=[7, 7, 9, 9])
    assert graphs.to_matrix(0).tolist() == [[0, 4], [0, 0]]
    assert graphs.to_matrix(1).tolist() == [[0, 0], [2, 0]]
    rows = PreferenceGraphs.from_frame(make({"winner": [1], "loser": [0]}), group=[2])
    assert rows.net_degree().tolist() == [-1, 1]


def test_query_ids_of_many_digits_in_a_table_stay_apart():
    ids = [7, 7, 2**63 + 1, 2**63 + 1, 2**63 + 2, 2**63 + 2]
    table = {"winner": ["x", "y", "x"], "loser": ["y", "x", "y"], "qid": [7, ids[2], ids[4]]}
    graphs = PreferenceGraphs.from_frame(table, items=["x", "y"] * 3, qid=ids)
    assert graphs.weights(np.array([0, 3, 4]), np.array([1, 2, 5])).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv.csv", ".tsv", ".parquet"])
def test_files_are_read(tmp_path, suffix):
    path, frame = tmp_path / f"edges{suffix}", pd.DataFrame(FRAME)
    if suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    graphs = PreferenceGraphs.from_file(path, items=["x", "y", "x", "y"], qid=[7, 7, 9, 9])
    assert graphs.net_degree().tolist() == [4, -4, -2, 2]
    with pytest.raises(ParameterError, match=r"edges.txt"):
        PreferenceGraphs.from_file(tmp_path / "edges.txt", group=[2])


@pytest.mark.parametrize("kind", [int, float, str])
def test_ids_in_files_have_no_type(tmp_path, kind):
    path = tmp_path / "edges.csv"
    path.write_text("qid,winner,loser\n7,1,2\n8,2,1\n")
    items, qid = (np.array(ids).astype(kind) for ids in ([1, 2, 1, 2], [7, 7, 8, 8]))
    graphs = PreferenceGraphs.from_file(path, items=items, qid=qid)
    assert graphs.net_degree().tolist() == [1, -1, -1, 1]


def test_ids_in_files_are_as_they_are_written(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("qid,winner,loser\n07,1,01\n7,NA,1\n")
    items, qid = ["1", "01", "1", "NA"], ["07", "07", "7", "7"]
    graphs = PreferenceGraphs.from_file(path, items=items, qid=qid)
    assert graphs.net_degree().tolist() == [1, -1, -1, 1]
    path.write_text("qid,winner,loser\n7,1,002\n")
    with pytest.raises(DataError, match=r"edge 0: .*'002'.*'7'"):
        PreferenceGraphs.from_file(path, items=[1, 2], qid=[7, 7])
    path.write_text("winner,loser,weight\n1,0,2\n0,,1\n")
    with pytest.raises(DataError, match="loser"):
        PreferenceGraphs.from_file(path, group=[2])
    path.write_text("winner,loser,weight\n1,0,\n0,1,1\n")
    with pytest.raises(GbmrankError, match="weight"):
        PreferenceGraphs.from_file(path, group=[2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("winner,loser\n0,1,2\n1,2,3\n", r"edges\.csv:2:1: 3 cells, but the header has 2"),
        ("winner,loser\n0,1\n1,2,3\n", r"edges\.csv:3:1: 3 cells"),
        ("winner,winner,loser\n0,1,2\n", "two columns called 'winner'"),
        ("winner,loser\n1_0,1\n", "edge 0: the winner '1_0' is not a number"),
        ("winner,loser,weight\n0,1,2\n1,2,\u0663\n", "edge 1: the weight '\u0663' is not a number"),
        ("winner,loser\nTrue,0\n", "edge 0: the winner 'True' is not a number"),
        ("", r"edges\.csv' is empty"),
    ],
)
def test_files_that_could_be_misread_are_rejected(tmp_path, text, message):
    path = tmp_path / "edges.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        PreferenceGraphs.from_file(path, group=[12])


@pytest.mark.parametrize("name", ["edges.csv.gz", "edges.parquet"])
def test_damaged_files_get_an_error_of_gbmrank(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"winner,loser\n0,1\n")[:-9])
    with pytest.raises(DataError, match=name):
        PreferenceGraphs.from_file(path, group=[2])


@pytest.mark.parametrize(
    ("table", "items", "message"),
    [
        ({"winner": [None], "loser": ["a"]}, [None, "a"], "items is missing at index 0"),
        ({"winner": [None], "loser": ["a"]}, ["b", "a"], "winner is missing at index 0"),
        ({"winner": ["NaT"], "loser": ["2020"]}, ["NaT", "2020"], "items is missing at index 0"),
        (
            {"winner": [2**63 + 2, -1], "loser": [-1, 2**63 + 2]},
            [2**63 + 1, -1],
            "not among items=",
        ),
        (
            {"winner": ["a\0"], "loser": ["b"]},
            ["a", "b"],
            r"the winner 'a\\x00' is not among items=",
        ),
        ({"winner": "a", "loser": "b"}, ["a", "b"], "winner must be one column of ids"),
        ({"winner": ["a"], "loser": ["b"]}, 5, "items must be one column of ids"),
        ({"winner": ["a"], "loser": ["b"], "qid": [1, 1]}, ["a", "b"], "qid has 2 entries and win"),
        ({"winner": ["a", "b"], "loser": ["b", "a"], "qid": [1]}, ["a", "b"], "qid has 1 entries"),
    ],
)
def test_ids_that_are_missing_or_others_are_rejected(table, items, message):
    if items == ["NaT", "2020"]:
        items = np.array(items, dtype="M8[ns]")
        table = {name: np.array(column, dtype="M8[ns]") for name, column in table.items()}
    with pytest.raises(DataError, match=message):
        PreferenceGraphs.from_frame(table, items=items, qid=[1, 1])


def test_the_column_qid_has_an_entry_per_edge_beside_row_numbers():
    table = {"winner": [0, 1], "loser": [1, 0], "qid": [1]}
    with pytest.raises(DataError, match="qid has 1 entries and winner has 2"):
        PreferenceGraphs.from_frame(table, qid=[1, 1])


def test_two_columns_of_one_name_are_rejected():
    table = pd.DataFrame([[0, 1, 1, 0]], columns=["winner", "winner", "loser", "loser"])
    with pytest.raises(DataError, match="two columns called winner"):
        PreferenceGraphs.from_frame(table, group=[2])


def test_tuples_may_be_ids():
    table = {"winner": [("a", 2)], "loser": [("a", 1)]}
    graphs = PreferenceGraphs.from_frame(table, items=[("a", 1), ("a", 2)], group=[2])
    assert graphs.net_degree().tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("edges", "error", "message"),
    [
        (([0, 9], [1, 0]), DataError, "edge 1: the winner 9 is not a row; rows are whole numbers"),
        (([0], [-1]), DataError, "edge 0: the loser -1 is not a row"),
        (([0], [0.5]), DataError, "edge 0: the loser 0.5 is not a row"),
        (([0], [float("nan")]), DataError, "edge 0: the loser nan is not a row"),
        (([0, 2], [1, 2]), DataError, "edge 1 (row 2 over row 2) goes from a row to itself"),
        (([0, 1], [1, 2]), GroupError, "edge 1 (row 1 over row 2) joins query 'a' and query 'b'"),
        (([0, 1], [1]), DataError, "winner has 2 entries and loser has 1"),
        (([0, 1], [1, 0], [1, -2]), WeightError, "edge 1 (row 1 over row 0) has the weight -2.0"),
        (([0], [1], [float("nan")]), WeightError, "edge 0 (row 0 over row 1) has the weight nan"),
        (([0], [1], [float("inf")]), WeightError, "edge 0 (row 0 over row 1) has the weight inf"),
        (([0], [1], [1, 1]), WeightError, "weight has 2 entries, but there are 1 edges"),
    ],
)
def test_bad_edges_are_named(edges, error, message):
    with pytest.raises(error) as caught:
        PreferenceGraphs.from_edges(*edges, qid=["a", "a", "b", "b"])
    assert message in str(caught.value)


def test_cycles_are_named_where_they_are_forbidden():
    edges = [0, 2, 3, 4, 5], [1, 3, 4, 5, 3]
    qid = ["a", "a", "b", "b", "b", "b"]
    assert PreferenceGraphs.from_edges(*edges, qid=qid).find_cycle() == [3, 4, 5]
    with pytest.raises(DataError, match=r"query 'b'.* 3 over 4 over 5 over 3"):
        PreferenceGraphs.from_edges(*edges, qid=qid, acyclic=True)
    assert PreferenceGraphs.from_edges([0, 0], [1, 2], group=[3], acyclic=True).n_edges == 2
    scattered = ["a", "b", "a", "b"]
    with pytest.raises(DataError, match="query 'b' has a cycle: row 1 over 3 over 1"):
        PreferenceGraphs.from_edges([1, 3], [3, 1], qid=scattered, acyclic=True)


@pytest.mark.parametrize("seed", range(30))
def test_the_cycle_that_is_found_is_one(seed):
    rng = np.random.default_rng(seed)
    matrix = (rng.random((8, 8)) < 0.2) * (1.0 - np.eye(8))
    winner, loser = np.nonzero(matrix)
    cycle = PreferenceGraphs.from_edges(winner, loser, group=[8]).find_cycle()
    reachable = np.linalg.matrix_power(matrix + np.eye(8), 8) > 0
    closed = reachable & reachable.T & ~np.eye(8, dtype=bool)
    assert (cycle is not None) == closed.any()
    if cycle is not None:
        assert len(set(cycle)) == len(cycle)
        assert all(matrix[i, j] for i, j in zip(cycle, [*cycle[1:], cycle[0]], strict=True))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: PreferenceGraphs.from_edges([0], [1]),
            GroupError,
            "pass either group= (rows per query)",
        ),
        (
            lambda: PreferenceGraphs.from_edges([0], [1], group=[2], qid=[1, 1]),
            GroupError,
            "pass either group=",
        ),
        (lambda: PreferenceGraphs.from_labels([1, np.nan]), DataError, "1 of 2 labels are NaN"),
        (lambda: PreferenceGraphs.from_labels([1], weights="x"), ParameterError, "got 'x'"),
        (lambda: PreferenceGraphs.from_labels([2**53 + 1, 0]), DataError, "more digits"),
        (lambda: PreferenceGraphs.from_labels([1e308, -1e308]), DataError, "beyond 1e+150"),
        (
            lambda: PreferenceGraphs.from_edges([0], [1], [1e308], group=[2]),
            WeightError,
            "between 0 and 1e+150",
        ),
        (lambda: PreferenceGraphs.from_rankings(["a"]), DataError, "ranks must be numbers"),
        (lambda: PreferenceGraphs.from_frame(None, group=[2]), DataError, "got NoneType"),
        (
            lambda: PreferenceGraphs.from_frame(pl.DataFrame(FRAME).lazy(), group=[2]),
            DataError,
            "got LazyFrame",
        ),
        (
            lambda: PreferenceGraphs.from_frame(
                {"winner": [0, 2], "loser": [1, 3], "qid": [7, 7]}, qid=["7", "7", "9", "9"]
            ),
            GroupError,
            "edge 1 has qid '7', but its winner, row 2, belongs to query '9'",
        ),
        (
            lambda: PreferenceGraphs.from_frame(
                {"winner": [5], "loser": [6]},
                items=np.ma.array([5, 6], mask=[False, True]),
                group=[2],
            ),
            DataError,
            "items is missing at index 1",
        ),
        (lambda: PreferenceGraphs.from_rankings([0, 1]), DataError, "ranks count from 1"),
        (
            lambda: PreferenceGraphs.from_frame({"winner": [0]}, group=[2]),
            DataError,
            "no column loser",
        ),
        (
            lambda: PreferenceGraphs.from_frame(FRAME, items=["x", "z"], qid=[7, 7]),
            DataError,
            "edge 1: the winner 'y' of query 9 is not among items=",
        ),
        (
            lambda: PreferenceGraphs.from_frame(FRAME, items=["x", "y", "x", "y"], group=[2, 2]),
            DataError,
            "pass qid=",
        ),
        (
            lambda: PreferenceGraphs.from_frame(
                {"winner": ["x"], "loser": ["y"]}, items=["x", "y", "x"], group=[2, 1]
            ),
            DataError,
            "the item 'x' is in rows 0 and 2; add a column qid to the table",
        ),
    ],
)
def test_other_bad_input_is_rejected(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def test_taking_rows_keeps_the_edges_between_them():
    graphs = PreferenceGraphs.from_edges([0, 1, 3, 4], [1, 2, 4, 5], [1, 2, 3, 4], group=[3, 3])
    part = graphs.take(np.array([1, 2, 3, 5]))
    assert part.groups.sizes.tolist() == [2, 2]
    assert part.net_degree().tolist() == [2, -2, 0, 0]
    labelled = PreferenceGraphs.from_labels([2, 1, 0, 5, 4, 3], group=[3, 3])
    assert labelled.take(np.array([3, 5])).net_degree().tolist() == [2, -2]
    with pytest.raises(DataError, match="increasing"):
        graphs.take(np.array([1, 0]))
    with pytest.raises(GroupError, match="contiguous"):
        PreferenceGraphs.from_edges([0], [2], qid=[1, 2, 1]).take(np.array([0]))


def test_graphs_are_values():
    one = PreferenceGraphs.from_edges([0, 0], [1, 1], group=[2])
    same = PreferenceGraphs.from_edges([0], [1], [2.0], group=[2])
    assert one == same == pickle.loads(pickle.dumps(one))  # noqa: S301
    assert hash(one) == hash(same)
    assert one != PreferenceGraphs.from_edges([0], [1], [3.0], group=[2])
    assert one != PreferenceGraphs.from_edges([0], [1], [2.0], group=[3])
    assert one != PreferenceGraphs.from_labels([2.0, 0.0])
    difference = PreferenceGraphs.from_labels([1.0, 0.0])
    assert difference != PreferenceGraphs.from_labels([1.0, 0.0], weights="unit")
    assert repr(one) == "PreferenceGraphs(1 edges listed, 1 queries, 2 rows)"


def test_a_data_set_of_another_shape_is_rejected_with_both_numbers():
    graphs = PreferenceGraphs.from_edges([0], [1], group=[2, 2])
    graphs.check_rows(Groups.from_sizes([2, 2], 4))
    with pytest.raises(DataError, match=r"4 rows in 2 queries.*5 rows in 1"):
        graphs.check_rows(Groups.single(5))
    with pytest.raises(DataError, match="their sizes or order differ"):
        graphs.check_rows(Groups.from_sizes([1, 3], 4))


@pytest.mark.parametrize("use", ["metric", "objective", "pairs"])
def test_queries_in_another_order_or_of_another_data_set_are_rejected(use):
    graphs = PreferenceGraphs.from_edges([0, 2], [1, 3], qid=["a", "a", "b", "b"])
    scores = np.array([1.0, 2.0, 3.0, 4.0])

    def matched(qid):
        if use == "metric":
            metric = gbmrank.metric("pairwise_disagreement", preferences=graphs)
            return metric.score(None, scores, qid=qid)
        if use == "objective":
            return gbmrank.objective("ranknet", preferences=graphs).loss(None, scores, qid=qid)
        model = gbmrank.PairRanker(n_estimators=1, min_data_in_leaf=1)
        return model.fit(scores[:, None], qid=qid, preferences=graphs)

    matched(["a", "a", "b", "b"])
    for qid in (["b", "b", "a", "a"], ["b", "b", "c", "c"], [7, 7, 8, 8], ["x", "x", "b", "b"]):
        with pytest.raises(DataError, match=f"query 'a' where the data set has '{qid[0]}'"):
            matched(qid)


def test_ids_that_are_written_otherwise_are_the_same():
    graphs = PreferenceGraphs.from_edges([0], [1], qid=[7, 7, 8])
    for qid in ([7.0, 7.0, 8.0], ["7", "7", "8"]):
        graphs.check_rows(Groups.from_qid(qid, 3))


@pytest.mark.parametrize("rows", [[-1, 0], [-3, -2, -1], [0, 9], [0.5, 1], [[0, 1], [2, 3]], "a"])
def test_rows_that_are_not_there_are_not_taken(rows):
    graphs = PreferenceGraphs.from_edges([0, 3], [1, 2], group=[2, 2])
    assert graphs.take([]).n_rows == 0
    assert graphs.take([2, 3]).net_degree().tolist() == [-1, 1]
    with pytest.raises(DataError, match="row"):
        graphs.take(rows)


@pytest.mark.parametrize(
    "queries",
    [{"group": [np.nan]}, {"group": [np.inf, 1]}, {"qid": 5}, {"qid": "a"}, {"qid": [[1, 2], [3]]}],
)
def test_queries_that_are_none_get_an_error_of_gbmrank(queries):
    with pytest.raises(GroupError, match=next(iter(queries))):
        PreferenceGraphs.from_edges([0], [1], **queries)


def test_no_rows_and_no_edges_are_fine():
    graphs = PreferenceGraphs.from_edges([], [], group=[3])
    assert graphs.n_edges == 0
    assert graphs.net_degree().tolist() == [0, 0, 0]
    assert graphs.find_cycle() is None
    empty = PreferenceGraphs.from_labels([])
    assert empty.net_degree().tolist() == []
    assert empty.n_edges == 0


def test_ragged_ranks_are_rejected():
    with pytest.raises(DataError, match="one row per item and one column per judge"):
        PreferenceGraphs.from_rankings([[1, 2], [2]])


def test_masked_ranks_are_not_ranked():
    ranks = np.ma.array([1, 2, 3], mask=[False, True, False])
    masked = PreferenceGraphs.from_rankings(ranks)
    assert masked == PreferenceGraphs.from_rankings([1, np.nan, 3])
    assert masked.n_edges == 1
    two = np.ma.array([[1, 2], [2, 1]], mask=[[False, False], [True, False]])
    assert PreferenceGraphs.from_rankings(two).to_matrix(0).tolist() == [[0, 0], [1, 0]]


@pytest.mark.parametrize("query", [2, -1])
def test_a_matrix_is_asked_for_by_the_number_of_its_query(query):
    graphs = PreferenceGraphs.from_labels([1, 0, 2], group=[2, 1])
    assert graphs.to_matrix(1).shape == (1, 1)
    with pytest.raises(ParameterError, match="from 0 to 1"):
        graphs.to_matrix(query)


def test_a_column_qid_that_agrees_is_taken_beside_row_numbers():
    table = {"winner": [3, 0], "loser": [2, 1], "qid": [9.0, 7.0]}
    graphs = PreferenceGraphs.from_frame(table, qid=["7", "7", "9", "9"])
    assert graphs.net_degree().tolist() == [1, -1, -1, 1]
    assert PreferenceGraphs.from_frame(table, group=[2, 2]) == graphs


@pytest.mark.parametrize(
    "text", ["linear(regulariser=power(q=1.0001))", "linear(nu=1e-300)", "linear(nu=1e-299)"]
)
def test_a_minimiser_beyond_float64_is_an_error(text):
    with pytest.raises(NumericError, match=r"query 1 is -inf"):
        gbmrank.objective(text).minimiser([1, 1, 0, 1e10, 1e10, 0], group=[2, 2, 2])
    with pytest.raises(NumericError, match=r"query 0 is inf"):
        gbmrank.objective(text).minimiser([1e10, 0, 0, 1e10], group=[2, 2])


def test_the_first_minimiser_beyond_float64_is_named():
    made = gbmrank.objective("linear(regulariser=power(q=1.0001))")
    with pytest.raises(NumericError, match=r"a score .* of query 0 is inf"):
        made.minimiser([0.4, 0, 0, 0, 1], group=[3, 2])  # net degrees 0.8, -0.4, -0.4 and -1, 1
