"""Numbers and parameters on the command line."""

import pytest

from gbmrank.cli import main
from gbmrank.cli.arguments import read_value


def refused(capsys, *arguments):
    assert main(list(arguments)) == 2
    return capsys.readouterr().err


def test_values_on_the_command_line_have_types():
    assert [read_value(text) for text in ("1", "1e-3", "False", "gbtree")] == [
        *(1, 0.001, False),
        "gbtree",
    ]
    assert isinstance(read_value("1"), int)


@pytest.mark.parametrize("option", ["--folds", "--rounds", "--jobs", "--seeds", "--max-bytes"])
@pytest.mark.parametrize("text", ["1_0", "\uff19", "\u0663", "1e1", "ten", ""])
def test_whole_numbers_are_ascii_digits(capsys, tmp_path, option, text):
    told = refused(capsys, "compare", option, text, "--out", str(tmp_path / "out"))
    assert f"{text!r}" in told


@pytest.mark.parametrize("text", ["1_0", "\uff10.5", "nan", "inf", "1e999", "half"])
def test_numbers_are_those_of_files(capsys, tmp_path, text):
    told = refused(capsys, "compare", "--margin", text, "--out", str(tmp_path / "out"))
    assert f"a number is needed, such as 0.5; got {text!r}" in told


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--param", "num_leaves="], "--param num_leaves=: the form is NAME=VALUE"),
        (["--param", "a=1", "--param", "a=2"], "--param a=2: a is given twice"),
        (["--param-for", "x:a=1", "--param-for", "x:a=1"], "--param-for x:a=1: a is given twice"),
    ],
)
def test_parameters_without_a_value_or_given_twice_are_refused(capsys, tmp_path, options, words):
    assert words in refused(capsys, "compare", *options, "--out", str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--budget", "-1"], "--budget must be at least 1"),
        (["--budget", "0"], "--budget must be at least 1"),
        (["--budget", "1_0"], "a whole number is needed"),
        (["--seed", "-1"], "--seed at least 0"),
        (["--items", "50"], "--items goes up to 12"),
        (["--items", "3.5"], "--items takes numbers separated by commas"),
        (["--items", "1"], "a search needs at least 2 items"),
        (["--grades", "0"], "--grades needs at least two different labels"),
        (["--grades", "1,1"], "--grades needs at least two different labels"),
    ],
)
def test_searches_that_would_find_nothing_are_refused(capsys, options, words):
    assert words in refused(capsys, "check", "ranknet", "--metric", "dcg", *options)
