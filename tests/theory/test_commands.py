"""``gbmrank advise``, ``info`` and ``check``."""

import json
import time

import pytest

import gbmrank
from gbmrank.cli import main
from gbmrank.theory import advise
from tests.ranking_tasks import run_python


def _out(capsys, *arguments):
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_advice_for_ndcg(capsys):
    out = _out(capsys, "advise", "ndcg@10", "--all")
    lines = out.splitlines()
    assert lines[3].startswith("pairwise(loss=logistic, target=ndcg@10)")
    assert "calibrated" in lines[3]
    assert "2 sqrt(max U)" in lines[3]
    assert "Take yetirank: " in out
    assert "take pairwise(loss=logistic, target=ndcg@10): " in out
    ranknet = next(line for line in lines if line.startswith("comparison(loss=logistic)"))
    assert "not calibrated" in ranknet


def test_advice_takes_less_than_two_seconds():
    code = (
        "import time; t = time.process_time()\n"  # other processes may be busy
        "import contextlib, io; from gbmrank.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()): main(['advise', 'ndcg@10'])\n"
        "print(time.process_time() - t)"
    )
    assert any(float(run_python(code)) < 2.0 for _ in range(3))  # the first may compile


def test_honest_advice_for_err(capsys):
    out = _out(capsys, "advise", "err@10", "--all")
    assert "No objective is known to be calibrated for err@10." in out
    assert "A distribution that shows it:" in out
    assert "minimising scores" in out
    assert "Thm 3.3" in out


def test_advice_as_json(capsys):
    found = json.loads(_out(capsys, "advise", "map", "--json"))
    assert found["schema"] == "gbmrank.advise/1"
    first = found["advice"][0]
    assert first["status"] == "conditional"
    assert "reinforcement" in first["condition"]
    statuses = [row["status"] for row in found["advice"]]
    order = ["calibrated", "conditional", "unknown", "not calibrated"]
    assert statuses == sorted(statuses, key=order.index)


@pytest.mark.parametrize("native", ["lambdarank", "rank:ndcg"])
def test_the_drop_in_for_a_native_objective(native, capsys):
    assert f"Take yetirank(like={native})." in _out(capsys, "advise", "--instead-of", native)
    found = json.loads(_out(capsys, "advise", "--instead-of", native, "--json"))
    made = gbmrank.objective(found["objective"])
    assert made == gbmrank.objective("yetirank", like=native)
    assert main(["advise", "ndcg@10", "--instead-of", native]) == 2
    assert main(["advise"]) == 2


@pytest.mark.parametrize("metric", ["auc", "spearman", "eru", "precision@5", "recall@5", "wta"])
def test_every_positional_metric_has_a_calibrated_objective(metric):
    assert advise(metric)[0].verdict.status == "calibrated"


def test_disagreement_of_labels_has_one_too():
    best = advise("pairwise_disagreement(normalize=false)")[0]
    assert best.verdict.status == "calibrated"


def test_info_names_the_targets_that_make_an_objective_calibrated(capsys):
    told = "With the metric as target, such as target=dcg@10: calibrated for dcg@10, ndcg@10, "
    assert told in _out(capsys, "info", "pairwise")
    rows = json.loads(_out(capsys, "info", "pairwise", "--json"))["verdicts"]
    found = {row["metric"]: row.get("calibrated_with_target") for row in rows}
    assert found["ndcg@10"] == "ndcg@10"
    assert found["err@10"] is None
    own = _out(capsys, "info", "pairwise(target=ndcg@10)")
    assert "calibrated for dcg@10, precision@10" in own
    assert "With the metric as target" not in _out(capsys, "info", "ranknet")


def test_info_on_an_objective(capsys):
    out = _out(capsys, "info", "pairwise(loss=logistic, target=ndcg@10)")
    for words in ("formula", "PARAMETERS", "TRAITS", "VERDICTS", "* value", "ndcg@10"):
        assert words in out
    found = json.loads(_out(capsys, "info", "ranknet", "--json"))
    assert found["kind"] == "objective"
    assert found["cost"].startswith("O(pairs)")
    verdicts = {row["metric"]: row["status"] for row in found["verdicts"]}
    assert verdicts["dcg@10"] == "not calibrated"


def test_info_on_losses_and_metrics(capsys):
    out = _out(capsys, "info", "exponential")
    assert "sigmoid(2 v)" in out
    assert "least weight w(c)" in out
    assert "useless item" in _out(capsys, "info", "asymmetric_a", "--kind", "loss")
    assert "(u - s)^2" in _out(capsys, "info", "squared")
    metric = _out(capsys, "info", "ndcg@10")
    assert "gbmrank advise ndcg@10" in metric


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_info_writes_pictures(capsys, tmp_path, ending):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"loss.{ending}"
    _out(capsys, "info", "logistic", "--plot", str(path))
    assert path.stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["info", "nothing"], "there is no objective, loss or metric 'nothing'"),
        (["info", "logistic", "--plot", "x.gif"], ".png, .svg or .pdf"),
        (["info", "listmle", "--plot", "x.png"], "no loss"),
        (["check", "ranknet", "--items", "a"], "numbers separated by commas"),
        (["advise", "nothing@10"], "no metric is called"),
    ],
)
def test_mistakes_are_told(capsys, arguments, words):
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_check_finds_and_says_so(capsys):
    out = _out(capsys, "check", "ranknet", "--metric", "dcg", "--items", "3", "--grades", "0,1")
    assert "verdict: not calibrated" in out
    assert "misorders for dcg" in out
    found = json.loads(_out(capsys, "check", "ranknet", "--graphs", "--json"))
    assert found["checks"][0]["found"]["best_order"] == [0, 1, 2]


def test_check_finds_nothing_where_nothing_is(capsys):
    started = time.perf_counter()
    arguments = ["check", "pairwise(target=ndcg)", "--metric", "ndcg", "--budget", "20"]
    out = _out(capsys, *arguments)
    assert (
        "search: none found in 20 distributions; 3 have no minimum, because scores diverge" in out
    )
    assert time.perf_counter() - started < 60


def test_check_searches_beyond_the_cut_off(capsys):
    out = _out(capsys, "check", "ranknet", "--metric", "precision@5")
    assert "misorders for precision@5" in out
    found = json.loads(_out(capsys, "check", "ranknet", "--metric", "precision@40", "--json"))
    assert "found by adding items to a smaller counterexample" in found["checks"][0]["text"]
    found = json.loads(_out(capsys, "check", "mix(ranknet)", "--metric", "precision@40", "--json"))
    row = found["checks"][0]
    assert row["tried"] == row["failed"] == 0
    assert row["text"].startswith("the search says nothing: every order of up to 12 items")
