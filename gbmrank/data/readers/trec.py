"""TREC judgments (qrels) and runs, joined as trec_eval does.

========  =====================================  =========================================
file      columns                                notes
========  =====================================  =========================================
qrels     topic, iteration, document, grade      iteration is ignored; lines that start with
                                                 ``#`` and are not judgments are comments
run       topic, Q0, document, rank, score, tag  documents are ordered by score, not by rank;
                                                 anything after the tag is ignored
========  =====================================  =========================================
"""

import math
from typing import NamedTuple

import numpy as np

from gbmrank.data.readers.text import (
    Limits,
    PathLike,
    RankingFile,
    fail,
    quoted,
    read_lines,
    text_array,
    to_number,
)
from gbmrank.errors import DataError

Topics = dict[str, dict[str, float]]


class _Form(NamedTuple):
    """Line format of a qrels or run file."""

    columns: str
    least: int
    most: float
    value: int
    what: str


_QRELS = _Form("topic iteration document grade", 4, 4, 3, "grade")
_RUN = _Form("topic Q0 document rank score tag", 6, math.inf, 4, "score")


def read_trec(
    qrels: PathLike, run: PathLike, *, complete: bool = False, limits: Limits | None = None
) -> RankingFile:
    """Read judgments and a run, and match them by topic and document.

    As in trec_eval, topics that occur in only one of the files are left out. Retrieved documents
    without a judgment have grade 0, and negative grades count as 0. Relevant documents that were
    not retrieved belong to the topic but not to its ranking: they become rows marked
    ``unranked``, with a score below that of every retrieved document, so that they count in the
    number of relevant documents and in the ideal ranking. An evaluation must not credit them at
    the ranks they appear to have; ``gbmrank evaluate`` takes care of that.

    Rows of a topic are in the order in which trec_eval breaks ties: by decreasing document id,
    compared byte by byte. ``ties="index"`` reproduces its ranking.
    ``complete`` keeps judged topics that are not in the run (trec_eval's ``-c``).
    """
    limits = limits or Limits()
    judged = _by_topic(qrels, _QRELS, limits)
    retrieved = _by_topic(run, _RUN, limits)
    topics = [topic for topic in retrieved if topic in judged]
    if not topics:
        raise DataError(
            f"{quoted(qrels)} and {quoted(run)} have no topic in common: the judgments are for "
            f"{_some(judged)}, the run for {_some(retrieved)}"
        )
    absent = [topic for topic in judged if topic not in retrieved]
    notes = _notes(judged, retrieved, len(absent), complete)
    chosen = topics + (absent if complete else [])
    lowest = min(score for topic in topics for score in retrieved[topic].values())
    below = max(lowest - max(abs(lowest), 1.0), -float(np.finfo(np.float64).max))
    found = {topic: retrieved.get(topic, {}) for topic in chosen}
    rows = [(topic, doc) for topic in chosen for doc in _documents(judged[topic], found[topic])]
    unranked = np.array([doc not in found[topic] for topic, doc in rows])
    if unranked.any():
        notes = (*notes, f"{_count(int(unranked.sum()), 'relevant document')} not in the run")
    return RankingFile(
        labels=np.array([max(judged[topic].get(doc, 0.0), 0.0) for topic, doc in rows]),
        scores=np.array([found[topic].get(doc, below) for topic, doc in rows]),
        qid=text_array([topic for topic, _ in rows], qrels, limits),
        ids=text_array([doc for _, doc in rows], run, limits),
        unranked=unranked,
        notes=notes,
    )


def _documents(grades: dict[str, float], retrieved: dict[str, float]) -> list[str]:
    """Return retrieved documents, then relevant ones that were not, by decreasing id."""
    hidden = [doc for doc, grade in grades.items() if grade > 0 and doc not in retrieved]
    if not retrieved and not hidden:
        hidden = list(grades)  # keep the topic, so that metrics see it
    parts = (retrieved, hidden)
    return [doc for part in parts for doc in sorted(part, key=str.encode, reverse=True)]


def _by_topic(path: PathLike, form: _Form, limits: Limits) -> Topics:
    topics: Topics = {}
    for number, line in read_lines(path, limits):
        words = line.split()
        if not words or (form is _QRELS and _is_comment(words)):
            continue
        if not form.least <= len(words) <= form.most:
            raise fail(path, number, 1, f"expected {form.columns}; got {len(words)} columns")
        topic, document, text = words[0], words[2], words[form.value]
        value = to_number(text)
        if value is None or not math.isfinite(value):
            reason = f"a {form.what} must be a finite number, got {quoted(text)}"
            where = line.rindex(text) + 1
            raise fail(path, number, where, f"{reason}; the columns are: {form.columns}")
        documents = topics.setdefault(topic, {})
        if document in documents:
            twice = f"document {quoted(document)} occurs twice in topic {quoted(topic)}"
            raise fail(path, number, 1, twice)
        documents[document] = value
    if not topics:
        raise DataError(f"{quoted(path)} is empty; its lines are: {form.columns}")
    return topics


def _is_comment(words: list[str]) -> bool:
    """Whether a line starts with ``#``; ``#7 0 doc 1`` is a judgment of the topic ``#7``."""
    judged = len(words) == _QRELS.least and to_number(words[_QRELS.value]) is not None
    return words[0] == "#" or (words[0].startswith("#") and not judged)


def _notes(judged: Topics, retrieved: Topics, absent: int, complete: bool) -> tuple[str, ...]:
    notes = []
    if extra := sum(topic not in judged for topic in retrieved):
        notes.append(f"{_count(extra, 'topic')} of the run without judgments left out")
    if absent:
        kept = "kept (complete)" if complete else "left out; --complete keeps them"
        notes.append(f"{_count(absent, 'judged topic')} not in the run {kept}")
    if negative := sum(grade < 0 for grades in judged.values() for grade in grades.values()):
        notes.append(f"{_count(negative, 'negative grade')} taken as 0")
    unjudged = sum(
        doc not in judged[topic]
        for topic, docs in retrieved.items()
        if topic in judged
        for doc in docs
    )
    if unjudged:
        notes.append(f"{_count(unjudged, 'document')} of the run without judgment taken as grade 0")
    return tuple(notes)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _some(topics: Topics) -> str:
    names = [quoted(name) for name in list(topics)[:3]]
    return ", ".join(names) + (" ..." if len(topics) > 3 else "")
