"""The picture of the README, drawn from results."""

import importlib.util
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from gbmrank.experiments.statistics.estimates import analyse
from tests.experiments.make_results import make_results

SVG = "{http://www.w3.org/2000/svg}"
SCRIPT = Path(__file__).parents[2] / "docs" / "picture.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("picture", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def drawn(script, results):
    return ET.fromstring(script.draw(results, analyse(results)))  # noqa: S314  (our own text)


def test_shows_regret_with_the_least_on_top(script):
    results = make_results(n_queries=80)
    root = drawn(script, results)
    regret = next(each for each in analyse(results).measures if each.measure.name == "regret")
    means = sorted(each.mean for each in regret.summaries)
    shown = [each.text for each in root.iter(f"{SVG}text") if each.get("class") == "end"]
    assert shown == [f"{100 * mean:.1f}%" for mean in means]
    dots = [each for each in root.iter(f"{SVG}circle") if float(each.get("cy", 0)) > script.TOP]
    places = [float(each.get("cx", 0)) for each in dots]
    assert places == sorted(places)
    assert len(places) == 7


def test_colours_tell_the_verdicts(script):
    results = make_results(n_queries=80)
    dots = [each.get("class") for each in drawn(script, results).iter(f"{SVG}circle")]
    assert {kind: dots.count(f"dot {kind}") - 1 for kind in script.KINDS} == {
        "proven": 3,
        "wrong": 1,
        "open": 3,
    }


def test_names_a_background_for_light_and_dark(script):
    root = drawn(script, make_results(n_queries=40))
    paper = next(root.iter(f"{SVG}rect"))
    assert paper.get("class") == "paper"
    style = next(root.iter(f"{SVG}style")).text or ""
    assert style.count(".paper { fill: #") == 2
    assert "var(" not in style  # which librsvg does not know


def test_draws_the_target_where_there_is_no_regret(script):
    results = make_results(n_queries=40)
    root = drawn(script, replace(results, measures=results.measures[:1]))
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert "Mean ndcg@10" in texts
