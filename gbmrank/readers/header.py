"""The header of a table: which column is what."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from gbmrank.errors import ConfigError, DataError
from gbmrank.readers.text import PathLike, quoted

__all__ = ["Columns", "check_header"]

_USUAL: Mapping[str, tuple[str, ...]] = {
    "label": ("label", "labels", "relevance", "grade", "rating", "target", "y"),
    "qid": ("qid", "query_id", "queryid", "query", "topic", "group", "group_id"),
    "score": ("score", "scores", "prediction", "pred", "preds", "y_score"),
    "docid": ("docid", "doc_id", "document_id", "docno", "id"),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which columns of a table to read.

    A column that is not named is looked for under its usual names (``label``, ``relevance``;
    ``qid``, ``query_id``; ``score``, ``prediction``; ``docid``; upper or lower case).

    Parameters
    ----------
    label, qid, score, docid : str, optional
        Names of columns. Only the label has to be there; a column that is named has to be
        there as well.
    features : sequence of str or None, default=()
        Columns of ``X``; ``None`` is all that are left over. The label and the query id are
        refused among them.
    need_label : bool, default=True
        Whether a table without labels is refused; otherwise its labels are zeros.
    """

    label: str | None = None
    qid: str | None = None
    score: str | None = None
    docid: str | None = None
    features: Sequence[str] | None = ()
    need_label: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.features, str):
            raise ConfigError(f"features is a list of names; say [{self.features!r}]")
        object.__setattr__(self, "features", _listed_once(self.features))
        named = self._named_parts()
        for name in (*named.values(), *(self.features or ())):
            if not isinstance(name, str):
                raise ConfigError(
                    f"columns are named by text, got {name!r} of type {type(name).__name__}; say "
                    f"{str(name)!r} for a column that is called so"
                )
        for part, name in named.items():
            first = next(other for other, taken in named.items() if taken == name)
            if first != part:
                raise ConfigError(
                    f"the column {quoted(name)} is named as {first} and as {part}; each needs a "
                    "column of its own"
                )

    def _named_parts(self) -> dict[str, str]:
        """Return the columns that were named, by their part."""
        return {part: name for part in _USUAL if (name := getattr(self, part)) is not None}

    def found(self, header: Sequence[str], path: PathLike) -> dict[str, str]:
        """Return the name in the file of each column that is there, by its part.

        Raises
        ------
        DataError
            When a column is named and not there, or no column of labels, or none at all, is found.
        """
        named = self._named_parts()
        free = [name for name in header if name not in named.values()]
        lowered = {name.lower(): name for name in reversed(free)}
        parts: dict[str, str] = {}
        for part, usual in _USUAL.items():
            if part in named:
                parts[part] = _named(named[part], header, path)
            else:
                match = next((lowered[name] for name in usual if name in lowered), None)
                if match is not None:
                    parts[part] = match
        if "label" not in parts and self.need_label:
            raise DataError(
                f"{quoted(path)} has no column of labels under a usual name "
                f"({', '.join(_USUAL['label'])}); its columns are {_listed(header)}: name one "
                "with label= (--label-column)"
            )
        if not parts and self.features == ():
            raise DataError(
                f"{quoted(path)} has no column under a usual name; its columns are "
                f"{_listed(header)}: name one, or say what is between columns (--delimiter)"
            )
        return parts

    def feature_names(
        self, header: Sequence[str], taken: Mapping[str, str], path: PathLike
    ) -> tuple[str, ...]:
        """Return the names of the feature columns."""
        if self.features is None:
            return tuple(name for name in header if name not in taken.values())
        for part in ("label", "qid"):
            if taken.get(part) in self.features:
                raise ConfigError(
                    f"{quoted(taken[part])} is the column of the {part} of {quoted(path)} and "
                    "among the features: a model would learn from what it is judged by; leave it "
                    f"out, or name another column as {part}"
                )
        return tuple(_named(name, header, path) for name in self.features)

    def notes(self, taken: Mapping[str, str], names: Sequence[str]) -> tuple[str, ...]:
        """Say which columns became features, or did not, by their names alone."""
        if self.features is not None:
            return ()
        left_out = {"score": "scores", "docid": "document ids"}
        told = [
            f"the column {quoted(taken[part])} of {what} was left out of the features; to use it, "
            "name them all"
            for part, what in left_out.items()
            if part in taken
        ]
        told += [
            f"the column {quoted(name)} is a feature, although it is called as a {what} may be; if "
            "it is one, name the features without it"
            for part, what in {"label": "label", "qid": "query id"}.items()
            for name in names
            if name.lower() in _USUAL[part]
        ]
        return tuple(told)


def check_header(header: Sequence[str], path: PathLike) -> None:
    """Raise DataError for a table without columns, and for two columns of one name."""
    if not header:
        raise DataError(f"{quoted(path)} is empty; the first line of a table names its columns")
    twice = next((name for i, name in enumerate(header) if name in header[:i]), None)
    if twice is not None:
        raise DataError(f"{quoted(path)} has two columns called {quoted(twice)}; rename one")


def _listed_once(features: Iterable[str] | None) -> tuple[str, ...] | None:
    if features is None:
        return None
    try:
        names = tuple(features)
    except TypeError:
        raise ConfigError(f"features is a list of names, got {features!r}") from None
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise ConfigError(f"the feature {twice!r} is asked for twice")
    return names


def _named(name: str, header: Sequence[str], path: PathLike) -> str:
    if name in header:
        return name
    near = difflib.get_close_matches(name, header, n=1)
    hint = f"did you mean {quoted(near[0])}?" if near else f"its columns are {_listed(header)}"
    raise DataError(f"{quoted(path)} has no column {quoted(name)}; {hint}")


def _listed(header: Sequence[str]) -> str:
    shown = ", ".join(quoted(name) for name in header[:20])
    return shown + (f" and {len(header) - 20} more" if len(header) > 20 else "")
