"""TREC qrels and runs."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gbmrank.data.readers import read_trec
from gbmrank.errors import DataError, ParseError


def read(folder: Path, qrels: str, run: str, **options):
    (folder / "qrels").write_text(qrels)
    (folder / "run").write_text(run)
    return read_trec(folder / "qrels", folder / "run", **options)


QRELS = "1 0 a 2\n1 0 b -1\n1 0 z 1\n1 0 y 0\n2 0 a 1\n"
RUN = "1 Q0 a 9 0.5 tag and more\n1\tQ0\tb\t1\t 0.25\ttag\n1 Q0 c 3 0.5 tag\n3 Q0 a 1 1 tag\n"


@pytest.mark.parametrize("blank", ["", "  \t", "\u2028", "\u00a0 \u3000"])
def test_blank_lines_are_skipped(tmp_path, blank):
    plain, spaced = (
        read(tmp_path, f"{more}{QRELS}", f"{more}{RUN}") for more in ("", f"{blank}\n")
    )
    assert spaced.labels.tolist() == plain.labels.tolist()


def test_files_are_matched_as_trec_eval_does(tmp_path):
    got = read(tmp_path, QRELS, RUN)
    assert got.ids is not None
    assert got.qid is not None
    assert got.scores is not None
    assert got.ids.tolist() == ["c", "b", "a", "z"]  # by decreasing id, then what is missing
    assert got.labels.tolist() == [0.0, 0.0, 2.0, 1.0]
    assert got.scores.tolist()[:3] == [0.5, 0.25, 0.5]
    assert got.scores[3] < 0.25
    assert got.unranked is not None
    assert got.unranked.tolist() == [False, False, False, True]
    assert set(got.qid.tolist()) == {"1"}
    assert got.notes == (
        "1 topic of the run without judgments left out",
        "1 judged topic not in the run left out; --complete keeps them",
        "1 negative grade taken as 0",
        "1 document of the run without judgment taken as grade 0",
        "1 relevant document not in the run",
    )


def test_lines_of_qrels_that_are_comments(tmp_path):
    """A topic may be called #7; what starts with # and is no judgment is a comment."""
    qrels = "# topic iteration document grade\n#made by hand\n#7 0 a 1\n# 7 0 4\n7 0 a 2\n"
    got = read(tmp_path, qrels, "#7 Q0 a 1 1.0 t\n7 Q0 a 1 1.0 t\n")
    assert got.qid is not None
    assert dict(zip(got.qid.tolist(), got.labels.tolist(), strict=True)) == {"#7": 1.0, "7": 2.0}
    with pytest.raises(DataError, match="is empty"):
        read(tmp_path, "# nothing\n", RUN)
    with pytest.raises(ParseError, match=":1:1: expected topic Q0 document"):
        read(tmp_path, QRELS, "# of a run\n")


def test_topics_the_run_lacks_can_be_kept(tmp_path):
    got = read(tmp_path, QRELS, RUN, complete=True)
    assert got.qid is not None
    assert got.unranked is not None
    assert got.qid.tolist() == ["1"] * 4 + ["2"]
    assert got.unranked.tolist() == [False] * 3 + [True] * 2


def test_ids_are_compared_byte_by_byte(tmp_path):
    run = "".join(f"1 Q0 {doc} 1 1.0 t\n" for doc in ("B", "a", "é", "Z9", "Z10"))
    got = read(tmp_path, "1 0 a 1\n", run)
    assert got.ids is not None
    assert got.ids.tolist() == ["é", "a", "Z9", "Z10", "B"]


@pytest.mark.parametrize(
    ("qrels", "run", "message"),
    [
        ("1 0 a\n", RUN, r"qrels:1:1: expected topic iteration document grade; got 3 columns"),
        ("1 0 a 1 x\n", RUN, r"qrels:1:1: expected .*; got 5 columns"),
        ("1 0 a x\n", RUN, r"qrels:1:7: a grade must be a finite number, got 'x'"),
        ("1 0 a 1\n1 0 a 2\n", RUN, r"qrels:2:1: document 'a' occurs twice in topic '1'"),
        (QRELS, "1 Q0 a 1 0.5\n", r"run:1:1: expected topic Q0 .*; got 5 columns"),
        (QRELS, "1 Q0 a 1 nan t\n", r"run:1:10: a score must be a finite number, got 'nan'"),
        (QRELS, "1 Q0 a 1 1 t\n1 Q0 a 2 1 t\n", r"run:2:1: document 'a' occurs twice"),
        ("1 0 a\0 1\n", RUN, r"qrels:1:6: a NUL byte"),
    ],
)
def test_bad_lines_are_named_with_their_place(tmp_path, qrels, run, message):
    with pytest.raises(ParseError, match=message):
        read(tmp_path, qrels, run)


@pytest.mark.parametrize(
    ("qrels", "run", "message"),
    [
        ("\n", RUN, "is empty; its lines are: topic iteration document grade"),
        ("7 0 a 1\n", RUN, "no topic in common: the judgments are for '7', the run for '1', '3'"),
    ],
)
def test_files_that_do_not_fit(tmp_path, qrels, run, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path, qrels, run)


documents = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-1, 3), min_size=1)
scores = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(-1e6, 1e6), min_size=1)


@given(
    st.dictionaries(st.sampled_from("123"), documents, min_size=3),
    st.dictionaries(st.sampled_from("123"), scores, min_size=1),
)
def test_what_is_written_is_read(tmp_path_factory, judged, retrieved):
    folder = tmp_path_factory.getbasetemp()
    qrels = "".join(f"{t} 0 {d} {g}\n" for t, docs in judged.items() for d, g in docs.items())
    run = "".join(
        f"{t} Q0 {d} 0 {s!r} x\n" for t, docs in retrieved.items() for d, s in docs.items()
    )
    got = read(folder, qrels, run)
    assert got.qid is not None
    assert got.ids is not None
    assert got.unranked is not None
    assert got.scores is not None
    seen = {topic: {} for topic in retrieved}  # type: dict[str, dict[str, float]]
    for topic, doc, label, score, hidden in zip(
        got.qid, got.ids, got.labels, got.scores, got.unranked, strict=True
    ):
        assert label == max(judged[topic].get(doc, 0), 0)
        if hidden:
            assert label > 0
            assert doc not in retrieved[topic]
        else:
            seen[topic][doc] = score
    assert seen == retrieved
    lowest = min(score for docs in retrieved.values() for score in docs.values())
    assert np.all(got.scores[got.unranked] < lowest)
