"""What the fuzzer calls: bytes in; nothing but an error of ours may come out."""

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path

from gbmrank.data.readers import Header, Limits, read_csv, read_letor, read_trec
from gbmrank.errors import GbmrankError, SpecError
from gbmrank.registry.spec import parse, parse_list

__all__ = ["SEEDS", "TARGETS"]

_SMALL = Limits(max_bytes=1 << 16, max_line=1 << 12, max_cells=1 << 16, block=256)
_FOLDER = Path(tempfile.mkdtemp(prefix="gbmrank-fuzz-"))


def _file(name: str, raw: bytes) -> Path:
    path = _FOLDER / name
    path.write_bytes(raw)
    return path


def letor(raw: bytes) -> None:
    """LETOR text in three ways; the two that read the same columns must agree."""
    path = _file("letor", raw)
    rows = []
    for options in ({}, {"features": False}, {"zero_based": True, "need_qid": False}):
        with contextlib.suppress(GbmrankError):
            rows.append((options, read_letor(path, limits=_SMALL, **options)))
    found = {tuple(options): file for options, file in rows}
    full, bare = found.get(()), found.get(("features",))
    if full is not None and bare is not None and full.labels.tolist() != bare.labels.tolist():
        raise AssertionError("labels depend on whether features are read")


def csv(raw: bytes) -> None:
    """A table under its usual names, and with every column as a feature."""
    path = _file("table", raw)
    for columns in (None, Header(features=None, need_label=False)):
        with contextlib.suppress(GbmrankError):
            read_csv(path, columns, limits=_SMALL)


def trec(raw: bytes) -> None:
    """Judgments and a run, which a line of dashes separates."""
    judged, _, retrieved = raw.partition(b"---\n")
    qrels, run = _file("qrels", judged), _file("run", retrieved)
    for complete in (False, True):
        with contextlib.suppress(GbmrankError):
            read_trec(qrels, run, complete=complete, limits=_SMALL)


def spec(raw: bytes) -> None:
    """A text, or several; what is read is printed and read again."""
    text = raw.decode("utf-8", "surrogateescape")
    for read in (parse, parse_list):
        try:
            found = read(text)
        except SpecError:
            continue
        for one in found if isinstance(found, tuple) else (found,):
            if parse(str(one)) != one:
                raise AssertionError(f"{text!r} is read as {one!r} and printed as {one}")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "letor": letor,
    "csv": csv,
    "trec": trec,
    "spec": spec,
}
SEEDS: dict[str, tuple[bytes, ...]] = {
    "letor": (b"2 qid:10 1:0.5 2:NULL #docid = a\n0 qid:10 1:1e-3\r\n", b"\xef\xbb\xbf1 1:2\n"),
    "csv": (b"label,qid,score\n1,a,0.5\n0,a,0.25\n", b'label;f\n1;"a ""b"""\n'),
    "trec": (b"q1 0 d1 1\nq1 0 d2 -1\n---\nq1 Q0 d1 1 0.5 run\nq1 Q0 d3 2 0.25 run\n",),
    "spec": (
        b"pairwise(loss=logistic(sigma=2), target=ndcg@10)",
        b"ndcg@1,5, f('a\\n', [1, .5e3])",
    ),
}
