"""The table of single queries, as spreadsheets read it."""

import cProfile
import csv
from dataclasses import replace

import numpy as np
import pytest

from gbmrank.experiments.results import System
from gbmrank.experiments.store import json_bytes, per_query_csv, results_to_json
from tests.experiments.make_results import make_results, table_results


def rows(results, folder):
    path = folder / "per_query.csv"
    path.write_bytes(per_query_csv(results))
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_values_come_back(tmp_path):
    results = make_results(n_queries=50)
    cube = {each.name: results.values(each.name) for each in results.measures}
    found = {name: np.full_like(values, np.nan) for name, values in cube.items()}
    numbers = {name: at for at, name in enumerate(results.queries.ids)}
    for row in rows(results, tmp_path):
        system = results.systems.index(System(row["backend"], row["objective"]))
        at = numbers[row["query"]]
        assert int(row["rows"]) == results.queries.sizes[at]
        assert int(row["relevant"]) == results.queries.relevant[at]
        found[row["measure"]][system, int(row["seed"]), at] = float(row["value"] or "nan")
    for name, values in cube.items():
        np.testing.assert_array_equal(found[name], values)


@pytest.mark.parametrize("bad", ["=1+1", "+cmd", "-cmd|x", "@sum(a)", "\t=x", "\r=x"])
def test_formulas_are_text(bad, tmp_path):
    plain = table_results([[0.5]])
    system = System(bad, bad)
    results = replace(
        plain,
        systems=(system,),
        baseline=system,
        runs=tuple(replace(run, system=system) for run in plain.runs),
        queries=replace(plain.queries, ids=np.array([bad])),
    )
    (row,) = rows(results, tmp_path)
    assert (row["query"], row["backend"], row["objective"]) == (f"'{bad}",) * 3


def test_numbers_stay_numbers(tmp_path):
    plain = table_results([[-0.5, 0.25]])
    results = replace(plain, queries=replace(plain.queries, ids=np.array(["-5", "7"])))
    assert [(row["query"], row["value"]) for row in rows(results, tmp_path)] == [
        ("-5", "-0.5"),
        ("7", "0.25"),
    ]


def test_odd_characters_are_kept_in_their_cell(tmp_path):
    plain = table_results([[0.5, np.nan]])
    ids = np.array(['a,"b"\nc', "nul\x00half\udc80\x1b[31mred"])
    found = rows(replace(plain, queries=replace(plain.queries, ids=ids)), tmp_path)
    assert [row["query"] for row in found] == ['a,"b"\nc', "nul\\x00half\\udc80\\x1b[31mred"]
    assert [row["value"] for row in found] == ["0.5", ""]


def test_writing_takes_calls_per_run_and_not_per_value():
    def calls(n_queries):
        results, profile = make_results(n_queries=n_queries), cProfile.Profile()
        profile.runcall(lambda: (per_query_csv(results), json_bytes(results_to_json(results))))
        return sum(each.callcount for each in profile.getstats())

    few, many = make_results(n_queries=50), make_results(n_queries=850)
    values = sum(run.values[one.name].size for run in many.runs for one in many.measures)
    values -= sum(run.values[one.name].size for run in few.runs for one in few.measures)
    assert calls(850) - calls(50) < values / 2


def test_a_run_is_one_line_of_the_results():
    results = make_results(n_queries=50)
    lines = json_bytes(results_to_json(results)).decode().splitlines()
    assert sum(line.startswith('{"system": ') for line in lines) == len(results.runs)
