"""The trees of a trained model, in one form for all boosters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from gbmrank.kernels.layout import Paths
from gbmrank.types import BoolArray, FloatArray, IntArray

_ZERO = 1e-35  # LightGBM's limit for zeros that count as missing
_WORD = 32  # categories per word


class Tree(NamedTuple):
    """One tree; a child is the number of a split, or ``~leaf``.

    A number goes left if it is at most ``threshold``, a missing one if ``missing_left``. A split
    by category has an entry in ``categories``: the set whose members go left.
    """

    feature: IntArray
    threshold: FloatArray
    missing_left: BoolArray
    zero_missing: BoolArray
    left: IntArray
    right: IntArray
    values: FloatArray
    categories: dict[int, IntArray]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """All trees of a model that predicts one score.

    ``members_left`` says whether the members of a set of categories go left, or all others.
    ``words`` are the sets as bits; a split has ``n_words`` of them from ``first_word`` on, or none
    if it compares numbers. ``splits`` and ``leaves`` are where those of each tree begin.
    """

    paths: Paths
    threshold: FloatArray
    missing_left: BoolArray
    zero_missing: BoolArray
    first_word: IntArray
    n_words: IntArray
    words: npt.NDArray[np.uint32]
    members_left: bool
    splits: IntArray
    leaves: IntArray

    @classmethod
    def of(cls, trees: Sequence[Tree], members_left: bool) -> "Trees":
        """Join the trees of a model."""
        splits = np.cumsum([0, *(len(tree.feature) for tree in trees)], dtype=np.int64)
        leaves = np.cumsum([0, *(len(tree.values) for tree in trees)], dtype=np.int64)
        above, from_left = np.full(splits[-1], -1), np.zeros(splits[-1], np.bool_)
        leaf_above, leaf_from_left = np.full(leaves[-1], -1), np.zeros(leaves[-1], np.bool_)
        n_words, words = np.zeros(splits[-1], np.int64), [np.zeros(0, np.uint32)]
        for tree, split, leaf in zip(trees, splits, leaves, strict=False):
            parents = np.arange(split, split + len(tree.feature))
            for children, is_left in ((tree.left, True), (tree.right, False)):
                inner, at = children >= 0, ~children
                above[split + children[inner]] = parents[inner]
                from_left[split + children[inner]] = is_left
                leaf_above[leaf + at[~inner]] = parents[~inner]
                leaf_from_left[leaf + at[~inner]] = is_left
            for number, members in sorted(tree.categories.items()):
                words.append(_bits(members))
                n_words[split + number] = len(words[-1])
        paths = Paths(
            _joined([tree.feature for tree in trees]).astype(np.int64),
            above,
            from_left,
            leaf_above,
            leaf_from_left,
            _joined([tree.values for tree in trees]),
        )
        return cls(
            paths,
            _joined([tree.threshold for tree in trees]),
            _joined([tree.missing_left for tree in trees]).astype(np.bool_),
            _joined([tree.zero_missing for tree in trees]).astype(np.bool_),
            np.cumsum(n_words) - n_words,
            n_words,
            np.concatenate(words),
            members_left,
            splits,
            leaves,
        )

    @property
    def depth(self) -> int:
        """Number of splits on the longest path."""
        deepest, level = 0, self.paths.leaf_above
        while len(level := level[level >= 0]):
            deepest, level = deepest + 1, np.unique(self.paths.above[level])
        return deepest

    def goes_left(self, rows: FloatArray, first: int, last: int) -> BoolArray:
        """Return which rows go left at the splits from ``first`` to ``last - 1``.

        Rows are as the model's ``encoded`` gives them; the result has one row per split.
        """
        here = slice(first, last)
        values = rows.T[self.paths.feature[here]]
        missing = np.isnan(values)
        left = values <= self.threshold[here, None]
        for split in np.flatnonzero(self.n_words[here]):
            left[split] = self._is_member(values[split], first + int(split)) == self.members_left
        zeros = np.flatnonzero(self.zero_missing[here])
        missing[zeros] |= np.abs(values[zeros]) <= _ZERO
        return np.where(missing, self.missing_left[here, None], left)

    def _is_member(self, values: FloatArray, split: int) -> BoolArray:
        """Return which values are in the set of a split."""
        known = (values >= 0) & (values < self.n_words[split] * _WORD)
        codes = np.where(known, values, 0.0).astype(np.int64)
        words = self.words[self.first_word[split] + codes // _WORD].astype(np.int64)
        return np.asarray(known & ((words >> (codes % _WORD)) & 1 > 0))


def _joined(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return np.concatenate([np.zeros(0), *parts])


def _bits(members: IntArray) -> npt.NDArray[np.uint32]:
    """Return a set of categories as words of bits; at least one word."""
    words = np.zeros(int(members.max(initial=0)) // _WORD + 1, np.uint32)
    np.bitwise_or.at(words, members // _WORD, np.uint32(1) << (members % _WORD).astype(np.uint32))
    return words
