"""The statements of the five papers: where each one lives here, and the test that checks it."""

import json
from pathlib import Path
from typing import NamedTuple, final

_FILE = Path(__file__).with_name("theorems.json")
_SHORT = {"theorem": "thm", "proposition": "prop", "corollary": "cor"}


@final
class Statement(NamedTuple):
    """A theorem, proposition, lemma or corollary; without ``where`` it is left out, and says why.

    ``where`` is a name in gbmrank, ``test`` a test of its repository.
    """

    paper: str
    number: str
    sentence: str
    where: str
    test: str

    def __str__(self) -> str:
        here = f"\n  gbmrank.{self.where}, checked by {self.test}" if self.where else ""
        return f"{self.paper}, {self.number}: {self.sentence}{here}"


def theorems(words: str = "") -> list[Statement]:
    """Return the statements that contain all words, in any order; all of them without words.

    Parameters
    ----------
    words : str
        Such as ``"duchi thm 13"`` or ``"reinforcement"``; upper and lower case are the same.

    Examples
    --------
    >>> [one.number for one in theorems("duchi theorem 13")]
    ['Thm 13']
    """
    rows = [Statement(*row) for row in json.loads(_FILE.read_text(encoding="utf-8"))]
    for word in (_SHORT.get(word, word) for word in words.lower().split()):
        if word[0].isdigit():  # a word of the statement's number; others are anywhere
            rows = [row for row in rows if word in row.number.lower().split()]
        else:
            rows = [row for row in rows if word in " ".join(row).lower()]
    return rows
