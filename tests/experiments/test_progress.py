"""Progress in words, on any stream, with nothing that commands a terminal."""

import io

import numpy as np
import pytest

from gbmrank.experiments.design import Task
from gbmrank.experiments.progress import Bars, Lines, outcome, printable, progress_on
from gbmrank.experiments.results import Run, System

HOSTILE = "\x1b]0;title\x07\x1b[31m[bold]x[/bold]\u202e"
TASK = Task(System("lightgbm", HOSTILE), 0, 1)


def make_run(error=None, values=(0.5, np.nan)):
    return Run(
        system=TASK.system,
        seed=0,
        fold=1,
        queries=np.arange(2),
        values={} if error else {"ndcg@3": np.array(values)},
        tied=np.zeros(2),
        history={},
        best_round=6,
        seconds=1.5,
        params={},
        error=error,
    )


def tell(progress):
    progress.begin(3, 1)
    progress.started(TASK)
    progress.rounds(TASK, 5)
    progress.finished(TASK, make_run())
    progress.finished(TASK, make_run(error="ValueError: \x1b[2Jgone\nmore"))
    progress.note("by the way")
    progress.end()


def test_lines_tell_of_every_run_and_clean_names():
    out = io.StringIO()
    tell(Lines(out))
    text = out.getvalue()
    assert "\x1b" not in text
    assert "\u202e" not in text
    lines = text.splitlines()
    assert lines[0] == "1 of 3 runs were done before"
    assert lines[1].startswith("[2/3] lightgbm ")
    assert "fold 2, seed 0: ndcg@3 0.5000  7 rounds  1.5 s" in lines[1]
    assert "failed, ValueError: \\x1b[2Jgone" in lines[2]
    assert lines[3] == "by the way"
    assert lines[4].startswith("3 of 3 runs")


def test_bars_show_failures_and_take_names_as_they_are():
    pytest.importorskip("rich")
    out = io.StringIO()
    tell(Bars(out))
    text = out.getvalue()
    assert "\x1b]0;" not in text
    assert "\x1b[2J" not in text
    assert "[bold]x[/bold]" in text  # no markup
    assert "failed, ValueError" in " ".join(text.split())


def test_a_stream_that_is_no_terminal_gets_lines():
    assert isinstance(progress_on(io.StringIO()), Lines)


def test_a_run_without_values_is_told():
    assert "ndcg@3 nan" in outcome(TASK, make_run(values=(np.nan, np.nan)))


def test_printable_spells_out_what_is_not():
    assert printable("a\nb\x9bc\ud800") == "a\\nb\\x9bc\\ud800"
