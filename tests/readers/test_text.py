"""Blocks of lines, columns of numbers, strict numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gbmrank.data.readers import Limits, read_column
from gbmrank.data.readers.text import read_blocks, read_lines, to_number
from gbmrank.errors import ParseError


@given(
    st.lists(st.text("ab \t", max_size=6), max_size=12),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.integers(1, 20),
)
def test_blocks_are_the_lines_of_the_file(tmp_path_factory, lines, end, ended, block):
    path = tmp_path_factory.getbasetemp() / "lines.txt"
    path.write_bytes((end.join(lines) + (end if ended and lines else "")).encode())
    got: list[str] = []
    for first, text in read_blocks(path, Limits(block=block)):
        assert first == len(got) + 1
        assert text.endswith(b"\n")
        got += text.decode().split("\n")[:-1]
    want = lines if ended or not lines or lines[-1] else lines[:-1]
    assert got == want


def test_lines_have_their_numbers(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("a\n\n \nb")
    assert list(read_lines(path, Limits())) == [(1, "a"), (4, "b")]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_a_column_of_numbers(tmp_path_factory, values):
    path = tmp_path_factory.getbasetemp() / "column.txt"
    path.write_text("".join(f" {value!r}\n" for value in values))
    np.testing.assert_array_equal(read_column(path), values)


@pytest.mark.parametrize("text", ["x", "1 2", "nan", "inf", "1_0", "1e999", "\u0661"])
def test_what_is_not_one_finite_number(tmp_path, text):
    path = tmp_path / "column.txt"
    path.write_text(f"1\n  {text}\n")
    with pytest.raises(ParseError, match=r"column\.txt:2:3: "):
        read_column(path)


@pytest.mark.parametrize(
    "text", ["1_0", "0x1", "1e", ".", "", " 1", "1d0", "nano", "\u0661", "1,5"]
)
def test_numbers_that_are_none(text):
    assert to_number(text) is None


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_exact(value):
    assert to_number(repr(value)) == value
