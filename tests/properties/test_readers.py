"""Readers on random bytes: read, or rejected by an error of ours."""

import contextlib
import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gbmrank.data.readers import Header, Limits, read_column, read_csv, read_letor, read_parquet
from gbmrank.data.readers.trec import read_trec
from gbmrank.errors import GbmrankError
from tests.properties.tally import tried

SMALL = Limits(max_bytes=1 << 16, max_line=1 << 12, max_cells=1 << 16, block=64)
LETOR = ["0", "1", "2.5", "-1", "qid:1", "qid:b", "1:0.5", "2:NULL", "1:", ":", "3:1e999", "0:1"]
LETOR += ["#", "docid = a", "999999999:1", "qid:", "nan", "1:nan", "1_0:1", "\u0661:2"]
TREC = ["q1", "q2", "0", "Q0", "d1", "d2", "1", "-1", "2.5", "nan", "1e999", "run", "\u0661"]
TABLE = [
    "label",
    "qid",
    "score",
    "docid",
    "f1",
    "0",
    "1",
    "0.5",
    "a",
    "",
    '"',
    "nan",
    "inf",
    "1e999",
]
MARKS = [
    " ",
    "\t",
    "\n",
    "\r\n",
    "\r",
    ",",
    ";",
    '"',
    "\0",
    "\ufeff",
    "#",
    "\u2028",
    "\x1c",
    "\x85",
]


def lines(words, separators):
    line = st.lists(st.sampled_from(words), max_size=6).map(lambda w: w)
    text = st.builds(
        lambda rows, mark, end: end.join(mark.join(row) for row in rows),
        st.lists(line, max_size=6),
        st.sampled_from(separators),
        st.sampled_from(["\n", "\r\n", "\n\n"]),
    )
    odd = st.lists(st.sampled_from([*words, *MARKS]), max_size=20).map("".join)
    bytes_ = (text | odd).map(lambda t: t.encode("utf-8"))
    damaged = st.builds(lambda a, b, at: a[:at] + b + a[at:], bytes_, st.binary(max_size=3),
                        st.integers(0, 40))  # fmt: skip
    packed = damaged.map(lambda raw: gzip.compress(raw, mtime=0))
    cut = st.builds(lambda raw, n: raw[: max(len(raw) - n, 2)], packed, st.integers(0, 12))
    return bytes_ | damaged | st.binary(max_size=80) | packed | cut


def letor(path):
    read_letor(path, limits=SMALL)
    read_letor(path, limits=SMALL, features=False, need_qid=False)
    read_letor(path, limits=SMALL, zero_based=True)


def table(path):
    read_csv(path, limits=SMALL)
    read_csv(path, Header(features=None, need_label=False), limits=SMALL)


READERS = {
    "letor": (letor, lines(LETOR, [" ", "\t", "  "])),
    "csv": (table, lines(TABLE, [",", ";", "\t"])),
    "column": (lambda path: read_column(path, SMALL), lines(["1", "-2.5", "1e999", "x"], [" "])),
    "parquet": (
        lambda path: read_parquet(path, limits=SMALL),
        st.binary(max_size=60).map(lambda raw: b"PAR1" + raw + b"PAR1") | st.binary(max_size=60),
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_any_bytes_are_read_or_rejected(name, tmp_path):
    reader, contents = READERS[name]
    path = tmp_path / "file"

    @given(contents)
    def check(raw):
        path.write_bytes(raw)
        with contextlib.suppress(GbmrankError):
            reader(path)
        tried(f"{name} reader")

    check()


def test_any_two_files_of_trec_are_matched_or_rejected(tmp_path):
    qrels, run = tmp_path / "qrels", tmp_path / "run"

    @given(lines(TREC, [" ", "\t"]), lines(TREC, [" ", "\t"]), st.booleans())
    def check(judged, retrieved, complete):
        qrels.write_bytes(judged)
        run.write_bytes(retrieved)
        try:
            found = read_trec(qrels, run, complete=complete, limits=SMALL)
        except GbmrankError:
            tried("trec reader")
            return
        assert found.scores is not None
        assert np.isfinite(found.scores).all()
        assert np.isfinite(found.labels).all()
        tried("trec reader")

    check()
