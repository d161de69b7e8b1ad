"""The program around the commands, and ``gbmrank list``."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import gbmrank
from gbmrank.cli import COMMANDS, advise, listing, main, screen
from gbmrank.registry import METRICS, Entry, Origin
from tests.ranking_tasks import run_python


def test_without_a_command_all_are_shown(capsys):
    assert main([]) == 2
    shown = capsys.readouterr().out
    assert main(["--help"]) == 0
    assert capsys.readouterr().out == shown
    assert all(f"\n  {name} " in shown for name in COMMANDS)
    assert "with calibration proofs" in shown
    assert "search for a counterexample to calibration" in shown


@pytest.mark.parametrize(
    ("name", "hint"), [("evalute", "did you mean evaluate? Commands:"), ("x", "Commands:")]
)
def test_an_unknown_command_lists_what_exists(capsys, name, hint):
    assert main([name]) == 2
    message = capsys.readouterr().err
    assert f"there is no command '{name}'; {hint}" in message
    assert all(command in message for command in COMMANDS)


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(capsys, option):
    assert main([option]) == 0
    assert capsys.readouterr().out == f"gbmrank {gbmrank.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(capsys, name):
    assert main([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: gbmrank {name}")
    assert COMMANDS[name][1][1:] in out


def test_a_mistake_of_ours_is_exit_code_one(capsys, monkeypatch):
    def broken(_given):
        raise RuntimeError("\x1b[31mboom")

    monkeypatch.delenv("GBMRANK_DEBUG", raising=False)
    monkeypatch.setattr(listing, "run", broken)
    assert main(["list"]) == 1
    assert capsys.readouterr().err == (
        "gbmrank list: error: a bug in gbmrank: RuntimeError: boom; set GBMRANK_DEBUG=1 for the "
        "traceback\n"
    )
    monkeypatch.setenv("GBMRANK_DEBUG", "1")
    with pytest.raises(RuntimeError, match="boom"):
        main(["list"])


def test_too_little_memory_is_no_mistake_of_ours(capsys, monkeypatch):
    def greedy(_given):
        raise MemoryError

    monkeypatch.setattr(listing, "run", greedy)
    assert main(["list"]) == 2
    assert "the memory of this process is not enough" in capsys.readouterr().err


def test_an_interrupt_has_its_own_exit_code(monkeypatch):
    def interrupted(_given):
        raise KeyboardInterrupt

    monkeypatch.setattr(listing, "run", interrupted)
    assert main(["list"]) == 130


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m gbmrank list --json | head -c 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("{0\n", "")


def test_listing_imports_no_compiler_and_no_booster():
    heavy = "{'numba', 'lightgbm', 'xgboost', 'pandas', 'pyarrow', 'sklearn'}"
    code = (
        "import io, contextlib, sys\n"
        "from gbmrank.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    main(['list'])\n"
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    assert run_python(code) == "[]"


# --- list ------------------------------------------------------------------------------------

LISTS: dict[str, Callable[[], list[Any]]] = {
    "objectives": gbmrank.list_objectives,
    "metrics": gbmrank.list_metrics,
    "losses": gbmrank.list_losses,
    "utilities": gbmrank.list_utilities,
}


@pytest.mark.parametrize("kind", LISTS)
def test_list_shows_every_entry_on_one_aligned_line(capsys, kind, monkeypatch):
    monkeypatch.setattr("gbmrank.cli.listing.line_width", lambda: 400)
    assert main(["list", kind]) == 0
    lines = capsys.readouterr().out.splitlines()
    for entry in LISTS[kind]():
        (line,) = [line for line in lines if line.split(" ", 1)[0] == entry.name]
        assert line.endswith(str(entry.origin))
    origins = {line.index(" gbmrank ") for line in lines if " gbmrank " in line}
    assert len(origins) <= 2  # one column per table; presets have a table of their own


def test_list_of_everything(capsys, monkeypatch):
    assert main(["list"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100
    monkeypatch.setattr("gbmrank.cli.listing.line_width", lambda: 400)
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert all(f"{kind.upper()}\n" in out for kind in LISTS)
    assert "ranknet           comparison(loss=logistic)" in out
    assert "logistic              log(1 + exp(-sigma z))" in out
    assert "O(n^2), O(n) for long queries" in out
    assert "Chapelle et al. 2009" in out
    assert "\x1b" not in out


def test_list_as_json(capsys):
    assert main(["list", "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out.pop("schema") == "gbmrank.list/1"
    assert out["objectives"].pop()["name"] == "committee"
    assert {kind: [row["name"] for row in rows] for kind, rows in out.items()} == {
        kind: [entry.name for entry in entries()] for kind, entries in LISTS.items()
    }
    rows = {row["name"]: row for row in out["objectives"]}
    assert rows["ranknet"] == {
        "name": "ranknet",
        "formula": rows["comparison"]["formula"],
        "preset": "comparison(loss=logistic)",
        "cost": rows["comparison"]["cost"],
        "reference": rows["comparison"]["reference"],
        "distribution": "gbmrank",
        "version": gbmrank.__version__,
        "status": "ok",
        "error": None,
    }


def test_an_unknown_kind(capsys):
    assert main(["list", "models"]) == 2
    assert "invalid choice: 'models'" in capsys.readouterr().err


@pytest.fixture
def foreign(monkeypatch):
    """A plugin that cannot be loaded, with a name that would colour the terminal."""

    def load():
        raise SystemExit("\x1b[31mno\nway")

    entry = Entry("evil\x1b[2J", "metric", Origin("evil-dist", "9\x07"), load)
    kinds = {**listing._KINDS, "metrics": (METRICS, lambda: [entry])}
    monkeypatch.setattr(listing, "_KINDS", kinds)


@pytest.mark.usefixtures("foreign")
def test_a_broken_plugin_is_listed_with_its_cause(capsys):
    assert main(["list", "metrics"]) == 0
    out = capsys.readouterr().out
    assert "evil  cannot be loaded: SystemExit: no way  broken  evil-dist 9" in out
    assert "\x1b" not in out
    assert main(["list", "metrics", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["metrics"]
    assert row["error"] == "SystemExit: \x1b[31mno\nway"


# --- the screen ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("plain é 漢\nnext", "plain é 漢\nnext"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1bP1;2q...\x1b\\x", "x"),
        ("\x1b]0;never ended", ""),
        ("\x1bcreset", "reset"),
        ("\x9b31mx\r\x08\x00\x7f", "31mx"),
        ("a\tb", "a b"),
        ("\u202eabc\u2066", "abc"),
        ("a\udcffb", "a\\udcffb"),
    ],
)
def test_clean(text, want):
    assert screen.clean(text) == want


class Terminal(io.StringIO):
    """Output that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_bold_heads_unless_told_not_to(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert screen.bold("x") == "\x1b[1mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "")
    assert screen.bold("x") == "x"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert screen.bold("x") == "x"


def test_a_narrow_terminal_gets_a_paragraph_per_entry(capsys, monkeypatch):
    monkeypatch.setattr(listing, "line_width", lambda: 80)
    assert main(["list", "objectives"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    at = lines.index("pairwise")
    assert lines[at + 1].startswith("  formula sum_i u_i sum_j phi(s_i - s_j); cost O(n^2), O(n)")


def test_a_list_leaves_out_columns_to_fit_the_terminal(capsys, monkeypatch):
    assert main(["list", "losses"]) == 0
    whole = capsys.readouterr().out
    assert " reference" in whole  # a pipe gets everything
    monkeypatch.setattr(listing, "line_width", lambda: 120)
    assert main(["list", "losses"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 120
    assert out.splitlines()[1].startswith("name ")
    assert "Left out to fit the terminal: from" in out


def test_advice_begins_with_what_to_do_and_is_short(capsys):
    assert main(["advise", "ndcg@10"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("Take yetirank: ")
    assert lines[3].startswith("For a guarantee, take pairwise(loss=logistic, target=ndcg@10): ")
    assert len(lines) < 40
    assert "--all" in lines[-1]
    assert main(["advise", "dcg@10"]) == 0
    assert "Take pairwise(loss=logistic, target=dcg@10): " in capsys.readouterr().out
    assert main(["advise", "err@10"]) == 0
    assert "Try swap(metric=err@10, loss=logistic): " in capsys.readouterr().out


def test_advice_fits_a_narrow_terminal(capsys, monkeypatch):
    for module in (advise, screen):
        monkeypatch.setattr(module, "line_width", lambda: 80)
    assert main(["advise", "ndcg@10", "--all"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "  verdict calibrated; c " in out
    assert main(["advise", "ndcg@10"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.parametrize("name", ["exponential", "pairwise", "ndcg"])
def test_texts_for_the_terminal_have_no_markup(capsys, name):
    assert main(["info", name]) == 0
    assert "`" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "logistic"], "logistic is a loss, and an objective is needed; try pairwise("),
        (["check", "softmax_ce"], "try bregman(loss=softmax_ce)"),
        (["check", "gbmrank:logistic"], "try pairwise(loss=gbmrank:logistic)"),
        (["check", "native:lambdarank"], "no verdict"),
        (["info", "native:lambdarank"], "gbmrank compare --objectives, GBMRanker(objective="),
    ],
)
def test_names_in_the_wrong_place_are_explained(capsys, arguments, words):
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        (["info", "rank:ndcg"], "native:rank:ndcg"),
        (["check", "rank:pairwise"], "native:rank:pairwise"),
        (["info", "ndcg10"], "'ndcg@10'"),
        (["advise", "ndcg10"], "'ndcg@10'"),
        (["evaluate", "--labels", "rows.txt", "--metrics", "ndcg10"], "'ndcg@10'"),
    ],
)
def test_names_of_other_tools_get_the_one_that_is_meant(command, meant, capsys):
    assert main(command) == 2
    assert meant in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("gbmrank:logistic", "LOSS logistic"),
        ("gbmrank:ndcg@5", "METRIC ndcg@5"),
        ("gbmrank:ranknet", "OBJECTIVE comparison(loss=logistic)"),
    ],
)
def test_a_name_may_say_its_distribution(capsys, name, title):
    assert main(["info", name]) == 0
    assert capsys.readouterr().out.startswith(title)
    assert main(["info", f"other-{name}"]) == 2
    assert "there is no objective, loss or metric 'other-" in capsys.readouterr().err


def test_warm_compiles_what_is_named_and_says_what_it_could_not(capsys):
    assert main(["warm", "wta", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["error"]) for row in found["warmed"]] == [("wta", None)]
    assert "kernels-" in found["folder"]
    assert main(["warm", "wta", "gbmrank:precision@3"]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()[:2]] == [
        "1/2 wta",
        "2/2 gbmrank",
    ]
    assert main(["warm", "logistic"]) == 2
    assert "pairwise(loss=logistic)" in capsys.readouterr().out
    assert main(["warm", "wta", "--all"]) == 2
