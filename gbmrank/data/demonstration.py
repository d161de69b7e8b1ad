r"""Synthetic ranking data whose best possible ranking is known.

It simulates product search. Each item of a query has a *match* and a *quality* (standard
normal) and the query has an *ease* (standard normal); together they determine its appeal

.. math::
    a = \text{match} + 0.6 \, \text{quality} + 0.5 \, \text{ease}, \qquad
    \theta = 0.45 \, \sigma(1.2 a - 0.3), \qquad p = 0.35 \, \sigma(1.2 a - 1).

Two out of three items are *proven*: their grade y is binomial, four trials with probability
:math:`\theta`, so the expected gain :math:`E[2^y - 1]` is :math:`(1 + \theta)^4 - 1`. The
others are *long shots*: grade 4 with probability p, else 0, so the expected gain is
:math:`15 p`. A long shot with p = 0.2 is worth three times as much as a proven item with
:math:`\theta` = 0.2, yet it loses most comparisons with it. A loss that learns which of two
items wins ranks long shots too low; a loss that learns the expected gain does not.

The features are match and quality (each transformed by an increasing function), the kind of
the item, the ease of the query, and columns of noise. Grades depend on nothing else, so the
expected gain of every row and the regret of every ranking are known exactly.

A second goal, the margin of an item, is binomial of four trials with probability
:math:`\sigma(0.5 - 1.2 \, \text{quality} - 0.4 \, \text{match})`: what sells well earns less.
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from gbmrank.errors import DataError, ParameterError
from gbmrank.types import ArrayLike, FloatArray, IntArray

FEATURES = ("match", "quality", "hit_or_miss", "ease", *(f"noise_{i}" for i in range(1, 7)))
"""Names of the columns of ``X``."""

_MAX_GRADE = 4
_GRADES = np.arange(_MAX_GRADE + 1)
_GAINS = np.exp2(_GRADES) - 1.0
_HIT_OR_MISS_SHARE = 1.0 / 3.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class DemoData:
    """A sample of queries and the distribution it was drawn from; see :func:`demo_data`.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Features, in the order of ``FEATURES``.
    labels : array of shape (n_rows,)
        Grades 0 to 4.
    qid : array of shape (n_rows,)
        Query id of each row; rows of a query are contiguous.
    sizes : array of shape (n_queries,)
        Rows per query.
    probabilities : array of shape (n_rows, 5)
        The distribution from which each grade was drawn.
    margin : array of shape (n_rows,) or None
        Label 0 to 4 of the second goal, if there is one.
    margin_probabilities : array of shape (n_rows, 5) or None
        The distribution from which each margin was drawn.
    """

    X: FloatArray
    labels: IntArray
    qid: IntArray
    sizes: IntArray
    probabilities: FloatArray
    margin: IntArray | None = None
    margin_probabilities: FloatArray | None = None

    @property
    def columns(self) -> dict[str, IntArray]:
        """Label columns by goal: ``relevance``, and ``margin`` if there are two goals."""
        margin = {} if self.margin is None else {"margin": self.margin}
        return {"relevance": self.labels, **margin}

    @property
    def hit_or_miss(self) -> npt.NDArray[np.bool_]:
        """Whether the item is a long shot: usually worthless, occasionally very valuable."""
        return self.X[:, FEATURES.index("hit_or_miss")] == 1.0

    @property
    def expected_gain(self) -> FloatArray:
        """Expectation of ``2^y - 1`` given the features, shape (n_rows,).

        Ranking by it has the highest possible expected DCG at every cut-off.
        """
        return self.probabilities @ _GAINS

    def expected_dcg(self, scores: ArrayLike, *, k: int | None = None) -> FloatArray:
        """Return the expected DCG of the ranking by these scores, per query.

        Parameters
        ----------
        scores : array-like of shape (n_rows,)
            Larger is ranked first; the result is the mean over all orderings of tied items.
        k : int or None, default=None
            Last rank that counts; ``None`` counts every rank.

        Returns
        -------
        array of shape (n_queries,)
            The exact expectation over the distribution of the grades.
        """
        values = np.asarray(scores, dtype=np.float64)
        if values.shape != self.labels.shape or not np.isfinite(values).all():
            raise DataError(
                f"scores must be {len(self.labels)} finite numbers, one per row; got an array of "
                f"shape {values.shape}"
            )
        starts = np.cumsum(self.sizes) - self.sizes
        rank = np.arange(1, len(values) + 1) - np.repeat(starts, self.sizes)
        counts = True if k is None else rank <= k
        discount = np.where(counts, 1.0 / np.log2(1.0 + rank), 0.0)
        order = np.lexsort((-values, self.qid))
        shared = _mean_over_ties(discount, values[order], self.qid[order])
        return np.add.reduceat(shared * self.expected_gain[order], starts)

    def regret(self, scores: ArrayLike, *, k: int | None = None) -> float:
        """Return the fraction of the best possible expected DCG that these scores lose.

        Parameters
        ----------
        scores, k
            As for :meth:`expected_dcg`.

        Returns
        -------
        float
            From 0, the Bayes-optimal ranking, to below 1.

        Examples
        --------
        >>> data = demo_data(20)
        >>> data.regret(data.expected_gain, k=10)
        0.0
        """
        best = self.expected_dcg(self.expected_gain, k=k).sum()
        return float(1.0 - self.expected_dcg(scores, k=k).sum() / best)


def demo_data(n_queries: int = 2000, items: int = 30, seed: int = 0, *, goals: int = 1) -> DemoData:
    """Draw a sample of the demonstration data.

    Another seed gives another sample of the same distribution with other query ids, for a test
    set: ids count from ``seed * 1_000_000``.

    Parameters
    ----------
    n_queries : int, default=2000
        Number of queries.
    items : int, default=30
        Mean number of items per query; queries have between half and 1.5 times as many.
    seed : int, default=0
        Seed of the random numbers; the same arguments always draw the same sample.
    goals : {1, 2}, default=1
        2 adds the labels of a second goal, ``margin``; everything else stays the same.

    Returns
    -------
    DemoData
        Features, labels and query ids, with the distribution of every label.

    Examples
    --------
    >>> train, test = demo_data(seed=0), demo_data(seed=1)
    >>> (np.bincount(train.labels) / len(train.labels)).round(2)
    array([0.6 , 0.22, 0.1 , 0.03, 0.04])
    """
    if n_queries < 1 or items < 2:
        raise ParameterError(
            f"demo_data needs at least 1 query of 2 items, got n_queries={n_queries}, items={items}"
        )
    if goals not in (1, 2):
        raise ParameterError(f"demo_data has 1 or 2 goals, got goals={goals!r}")
    rng = np.random.default_rng(seed)
    spread = items // 2
    sizes = rng.integers(items - spread, items + spread, size=n_queries, endpoint=True)
    qid = np.repeat(int(seed) * 1_000_000 + np.arange(n_queries), sizes)
    match, quality = rng.standard_normal((2, len(qid)))
    ease = np.repeat(rng.standard_normal(n_queries), sizes)
    hit_or_miss = rng.random(len(qid)) < _HIT_OR_MISS_SHARE
    appeal = match + 0.6 * quality + 0.5 * ease
    proven = _binomial(0.45 * _sigmoid(1.2 * appeal - 0.3))
    hit = 0.35 * _sigmoid(1.2 * appeal - 1.0)
    long_shot = np.outer(1.0 - hit, _GRADES == 0) + np.outer(hit, _GRADES == _MAX_GRADE)
    probabilities = np.where(hit_or_miss[:, None], long_shot, proven)
    noise = rng.standard_normal((len(qid), len(FEATURES) - 4))
    labels = _draw(probabilities, rng)
    margins = _binomial(_sigmoid(0.5 - 1.2 * quality - 0.4 * match)) if goals == 2 else None
    return DemoData(
        X=np.column_stack([np.exp(match), _sigmoid(quality), hit_or_miss, ease, noise]),
        labels=labels,
        qid=qid,
        sizes=sizes,
        probabilities=probabilities,
        margin=None if margins is None else _draw(margins, rng),
        margin_probabilities=margins,
    )


def _binomial(chance: FloatArray) -> FloatArray:
    """Return the distribution of the number of hits in four trials, shape (n_rows, 5)."""
    theta = chance[:, None]
    ways = np.array([math.comb(_MAX_GRADE, grade) for grade in _GRADES])
    return ways * theta**_GRADES * (1.0 - theta) ** (_MAX_GRADE - _GRADES)


def _draw(probabilities: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw one grade per row by inverting its distribution."""
    reached = np.cumsum(probabilities, axis=1)[:, :-1]
    return (rng.random(len(reached))[:, None] > reached).sum(axis=1)


def _mean_over_ties(discount: FloatArray, scores: FloatArray, qid: IntArray) -> FloatArray:
    """Assign tied items of a query the mean of their discounts; rows are in ranked order."""
    new_block = np.ones(len(scores), dtype=bool)
    new_block[1:] = (scores[1:] != scores[:-1]) | (qid[1:] != qid[:-1])
    block = np.cumsum(new_block) - 1
    mean = np.bincount(block, weights=discount) / np.bincount(block)
    return mean[block]


def _sigmoid(x: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + np.exp(-x))
