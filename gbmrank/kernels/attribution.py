r"""Shapley values of the trees' scores, with other rows of the list as the reference.

With reference b, the score of a coalition S is that of a row with the features in S from a and the
others from b. A leaf of value v is reached if the features on its path that only a satisfies are in
S, and those that only b satisfies are not; let there be p and q of them. Then each of the p
features earns v (p-1)! q! / (p+q)!, and each of the q features -v p! (q-1)! / (p+q)!. A leaf where
some feature satisfies neither is out of reach.

Rows that satisfy the same features of a path are treated as one, so a list costs about as many
steps as it has rows, not pairs of rows.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank.kernels.jit.decorators import entry, inner
from gbmrank.kernels.layout import Paths
from gbmrank.types import BoolArray, FloatArray, IntArray


class Workspace(NamedTuple):
    """Buffers for the longest list (n) and the longest path (d)."""

    splits: IntArray  # (d,) of the path, with side and number of the feature on this path
    sides: BoolArray
    places: IntArray
    features: IntArray  # (d,) on the path, each once
    fails: npt.NDArray[np.uint8]  # (d, n) whether a row fails a test of a feature
    group: IntArray  # (n,) of a row
    patterns: npt.NDArray[np.uint8]  # (n, d) what a group fails
    share: FloatArray  # (n,) weight of a group as reference
    counts: IntArray  # (3, n) rows of a group, those that fail, the number of the new group
    earned: FloatArray  # (n, d) by a group


def workspace(longest: int, depth: int) -> Workspace:
    """Return buffers for lists and paths of up to these lengths."""
    n, d = max(longest, 1), max(depth, 1)
    return Workspace(
        np.empty(d, np.int64),
        np.empty(d, np.bool_),
        np.empty(d, np.int64),
        np.empty(d, np.int64),
        np.empty((d, n), np.uint8),
        np.empty(n, np.int64),
        np.empty((n, d), np.uint8),
        np.empty(n),
        np.empty((3, n), np.int64),
        np.empty((n, d)),
    )


def coalition_shares(depth: int) -> FloatArray:
    """Return ``(p-1)! q! / (p+q)!`` for p in rows and q in columns, up to ``depth``.

    >>> coalition_shares(2)[1:, :2]
    array([[1.        , 0.5       ],
           [0.5       , 0.16666667]])
    """
    shares = np.zeros((depth + 1, depth + 1))
    p = np.arange(1, depth + 1)
    shares[1:, 0] = 1.0 / p
    for q in range(1, depth + 1):
        shares[1:, q] = shares[1:, q - 1] * q / (p + q)
    return shares


@inner
def _follow(paths: Paths, leaf: int, work: Workspace) -> tuple[int, int]:
    """Collect the path to a leaf and number its features; return how many splits and features."""
    n_steps, n_features = 0, 0
    split, side = paths.leaf_above[leaf], paths.leaf_from_left[leaf]
    while split >= 0:
        feature, place = paths.feature[split], 0
        while place < n_features and work.features[place] != feature:
            place += 1
        if place == n_features:
            work.features[place] = feature
            n_features += 1
        work.splits[n_steps] = split
        work.sides[n_steps] = side
        work.places[n_steps] = place
        n_steps += 1
        side = paths.from_left[split]
        split = paths.above[split]
    return n_steps, n_features


@inner
def _test(left: BoolArray, begin: int, n: int, path: tuple[int, int, int], work: Workspace) -> None:
    """Test the rows of a list on a path, given its splits, features and the first row of left."""
    n_steps, n_features, first_split = path
    for place in range(n_features):
        for i in range(n):
            work.fails[place, i] = 0
    for step in range(n_steps):
        split, side = work.splits[step] - first_split, work.sides[step]
        place = work.places[step]
        for i in range(n):
            work.fails[place, i] |= left[split, begin + i] != side


@inner
def _count(place: int, n: int, n_groups: int, work: Workspace) -> int:
    """Count the rows of each group that fail a test, and return how many rows do."""
    failing = 0
    for g in range(n_groups):
        work.counts[1, g] = 0
        work.counts[2, g] = g
    for i in range(n):
        work.counts[1, work.group[i]] += work.fails[place, i]
        failing += work.fails[place, i]
    return failing


@inner
def _part(place: int, n: int, n_groups: int, work: Workspace) -> int:
    """Part the groups whose rows differ in a feature; return how many there are then."""
    fails, group, patterns, counts = work.fails, work.group, work.patterns, work.counts
    made = n_groups
    for g in range(n_groups):
        patterns[g, place] = counts[1, g] == counts[0, g]
        if 0 < counts[1, g] < counts[0, g]:
            for other in range(place):
                patterns[made, other] = patterns[g, other]
            patterns[made, place] = 1
            counts[0, made] = counts[1, g]
            counts[0, g] -= counts[1, g]
            counts[2, g] = made
            made += 1
    if made > n_groups:
        for i in range(n):
            group[i] = counts[2, group[i]] if fails[place, i] else group[i]
    return made


@inner
def _group(n: int, n_features: int, work: Workspace) -> int:
    """Group the rows that fail the same features; return how many groups there are.

    Returns 0 if all rows fail some feature: then no mixture of them reaches the leaf.
    """
    n_groups, work.counts[0, 0] = 1, n
    for i in range(n):
        work.group[i] = 0
    for place in range(n_features):
        if _count(place, n, n_groups, work) == n:
            return 0
        n_groups = _part(place, n, n_groups, work)
    return n_groups


@inner
def _meet(a: int, b: int, n_features: int, work: Workspace) -> tuple[int, int]:
    """Return how many features only a satisfies, and only b; -1 if they cannot reach the leaf."""
    p, q = 0, 0
    for place in range(n_features):
        fails_a, fails_b = work.patterns[a, place], work.patterns[b, place]
        if fails_a + fails_b == 2:
            return -1, -1
        p += fails_b
        q += fails_a
    return p, q


@inner
def _earn(
    value: float, n_groups: int, n_features: int, shares: FloatArray, work: Workspace
) -> None:
    """Compute what a leaf of this value earns the features of each group."""
    earned = work.earned
    for a in range(n_groups):
        for place in range(n_features):
            earned[a, place] = 0.0
        for b in range(n_groups):
            p, q = _meet(a, b, n_features, work) if work.share[b] > 0.0 else (-1, -1)
            if p < 0:
                continue
            up, down = value * work.share[b] * shares[p, q], value * work.share[b] * shares[q, p]
            for place in range(n_features):
                earned[a, place] += up * work.patterns[b, place] - down * work.patterns[a, place]


@entry
def add_contributions(
    paths: Paths,
    first_split: int,
    leaves: tuple[int, int],
    left: BoolArray,
    offsets: IntArray,
    weight: FloatArray,
    shares: FloatArray,
    work: Workspace,
    sums: FloatArray,
) -> None:
    """Add what each feature earns each row, through the leaves from the first to the last.

    ``left`` says which rows (columns) go left at which splits, from ``first_split`` on. Rows of
    list l are ``offsets[l]`` to ``offsets[l + 1] - 1``; their ``weight`` as references sums to 1.
    """
    for leaf in range(leaves[0], leaves[1]):
        n_steps, n_features = _follow(paths, leaf, work)
        for one in range(len(offsets) - 1):
            begin, n = offsets[one], offsets[one + 1] - offsets[one]
            _test(left, begin, n, (n_steps, n_features, first_split), work)
            n_groups = _group(n, n_features, work)
            if n_groups < 2:
                continue
            for g in range(n_groups):
                work.share[g] = 0.0
            for i in range(n):
                work.share[work.group[i]] += weight[begin + i]
            _earn(paths.value[leaf], n_groups, n_features, shares, work)
            for i in range(n):
                for place in range(n_features):
                    sums[begin + i, work.features[place]] += work.earned[work.group[i], place]
