"""The table of theorems: names and tests exist, and the page and the command find them."""

import ast
import json
from pathlib import Path

import pytest

import gbmrank
from gbmrank import theory
from gbmrank.cli import main

ROOT = Path(__file__).parents[2]
PAPERS = {"Calauzenes et al. 2013", "Ramaswamy et al. 2013", "Chen et al. 2009",
          "Duchi et al. 2010", "Menon and Williamson 2014"}  # fmt: skip


@pytest.mark.parametrize("row", theory.theorems(), ids=lambda row: f"{row.paper} {row.number}")
def test_what_a_row_names_exists(row):
    if not row.where:
        assert "Left out" in row.sentence
        return
    part = gbmrank
    *path, last = row.where.split(".")
    for name in path:
        part = getattr(part, name)
    assert hasattr(part, last)
    file, _, name = row.test.partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_paper_has_rows_once():
    rows = theory.theorems()
    assert {row.paper for row in rows} == PAPERS
    assert len({(row.paper, row.number) for row in rows}) == len(rows) > 40


def test_words_find_rows():
    assert [row.number for row in theory.theorems("Duchi theorem 13")] == ["Thm 13"]
    assert [row.number for row in theory.theorems("proposition 17")] == ["Prop 17"]
    assert theory.theorems("no such statement") == []


def test_the_command_finds_them(capsys):
    assert main(["info", "theorem:ramaswamy thm 7"]) == 0
    assert "Algorithm 1" in capsys.readouterr().out
    assert main(["info", "theorem:reinforcement", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) >= 1
    assert main(["info", "theorem:nothing at all"]) != 0
    assert "theorem:" in capsys.readouterr().err
