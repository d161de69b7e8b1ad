"""Tables on a terminal: every id is seen, and columns stay under their heads."""

from gbmrank.cli.screen import table


def test_a_cell_of_nothing_but_an_escape_is_spelt_out():
    lines = table(["qid", "ndcg"], [["\x1b[31m", "0.5"], ["", "1"]]).splitlines()
    assert lines[2].split() == ["\\x1b[31m", "0.5"]
    assert lines[3].split() == ["1"]


def test_wide_letters_and_marks_do_not_shift_the_columns():
    rows = [["\u4e2d\u6587", "1"], ["abcd", "2"], ["e\u0301tes", "3"]]
    _, _, wide, plain, marked = table(["qid", "n"], rows).splitlines()
    assert plain.index("2") == 6
    assert wide.index("1") == plain.index("2") - 2  # two letters of two columns each
    assert marked.index("3") == plain.index("2") + 1  # a mark of none


def test_right_aligned_wide_letters():
    _, _, wide, plain = table(["name"], [["\u4e2d"], ["abcd"]], right=">").splitlines()
    assert (wide, plain) == ("  \u4e2d", "abcd")
