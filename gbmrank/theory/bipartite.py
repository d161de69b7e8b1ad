"""Bipartite ranking on a finite support: minimisers of proper, bipartite and push risks.

Instances x have mass ``M_x`` and probability of being relevant ``eta_x``; relevant ones are
distributed as ``P_x = M_x eta_x / pi``, others as ``Q_x = M_x (1 - eta_x) / (1 - pi)``. All
scorers are functions of the instance, so labels of different instances are independent. This
differs from a query whose labels have a joint distribution.

References
----------
Menon and Williamson, "Bayes-optimal scorers for bipartite ranking", COLT 2014.
"""

import itertools
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from gbmrank.data.columns import as_floats, read_number, read_table
from gbmrank.errors import DataError, ParameterError
from gbmrank.losses import Exponential, PClassification
from gbmrank.losses.convex import AbstractOuter, Power
from gbmrank.numerics import logit
from gbmrank.registry.catalogue import LOSSES
from gbmrank.registry.composition import build
from gbmrank.theory.distributions import pair_risk
from gbmrank.theory.minimise import Minimum, Nature, Risk, minimise
from gbmrank.theory.shapes import pair_shape
from gbmrank.theory.user_code import sampled
from gbmrank.types import ArrayLike, FloatArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class FiniteBipartite:
    """A population of finitely many instances with 0/1 labels.

    Parameters
    ----------
    mass : array-like of shape (n,)
        Relative weights of the instances, above 0, on any scale (counts, for example); they are
        divided by their sum.
    eta : array-like of shape (n,)
        Probability of being relevant, strictly between 0 and 1.

    Examples
    --------
    >>> population = FiniteBipartite([1, 1, 2], [0.2, 0.5, 0.8])
    >>> scores = population.bipartite_scorer("logistic").scores
    >>> np.round(scores - scores[1], 6)
    array([-1.386294,  0.      ,  1.386294])
    """

    mass: FloatArray
    eta: FloatArray

    def __init__(self, mass: ArrayLike, eta: ArrayLike) -> None:
        m, e = read_table(mass, "mass"), read_table(eta, "eta")
        shapes = m.shape == e.shape and m.ndim == 1 and len(m) > 0
        if not shapes or not np.all(m > 0) or not np.all((e > 0) & (e < 1)):
            raise DataError(
                "give one positive mass and one eta between 0 and 1 per instance, for at least one"
            )
        object.__setattr__(self, "mass", m / m.sum())
        object.__setattr__(self, "eta", e)

    @classmethod
    def random(cls, n: int, rng: np.random.Generator) -> "FiniteBipartite":
        """Draw a population as in appendix D of the paper: Beta(4, 3) and Beta(6, 2).

        Parameters
        ----------
        n : int
            Number of instances.
        rng : numpy.random.Generator
            Source of random numbers.
        """
        return cls(rng.beta(6.0, 2.0, n), 0.01 + 0.98 * rng.beta(4.0, 3.0, n))

    @property
    def base_rate(self) -> float:
        """Probability pi that an instance is relevant."""
        return float(self.mass @ self.eta)

    @property
    def classes(self) -> tuple[FloatArray, FloatArray]:
        """Distributions P of the relevant instances and Q of the others."""
        pi = self.base_rate
        return self.mass * self.eta / pi, self.mass * (1.0 - self.eta) / (1.0 - pi)

    def proper_scorer(self, loss: Any) -> Minimum:
        """Minimise the pointwise risk ``E l_y(s(x))``: the link of eta."""
        chosen = build(LOSSES, loss)

        def risk(scores: FloatArray) -> tuple[float, FloatArray]:
            useful, useless = (sampled(chosen, each, scores) for each in chosen.partials)
            terms = self.eta[:, None] * useful + (1.0 - self.eta[:, None]) * useless
            return float(self.mass @ terms[:, 0]), self.mass * terms[:, 1]

        return minimise(risk, len(self.mass), _nature(chosen, shift_invariant=False))

    def bipartite_risk(self, loss: Any) -> Risk:
        """Return ``scores -> (sum_xx' P_x Q_x' kappa(s_x - s_x'), gradient)``."""
        return pair_risk(build(LOSSES, loss), np.outer(*self.classes))

    def bipartite_scorer(self, loss: Any) -> Minimum:
        """Minimise the bipartite risk over differences of scores."""
        return minimise(self.bipartite_risk(loss), len(self.mass), _nature(loss))

    def pair_scorer(self, loss: Any, outer: AbstractOuter | None = None) -> FloatArray:
        """Return the best score of every pair, shape (n, n), when any pair score is allowed.

        It is the link of the pair's probability, ``sigmoid(logit eta_x - logit eta_x')``. With an
        outer function G, the best pair scores of the push: the link of ``sigmoid(logit eta_x -
        logit eta_x' + log G'(F_x') - log G'(F_x))``, where F is the cost of each instance at those
        scores (Prop. 13).
        """
        if outer is not None:
            return self._pushed_pairs(loss, outer)
        log_odds = logit(self.eta)
        chances = 1.0 / (1.0 + np.exp(log_odds[None, :] - log_odds[:, None]))
        return build(LOSSES, loss).link(chances)

    def _pushed_pairs(self, loss: Any, outer: AbstractOuter) -> FloatArray:
        chosen, n = build(LOSSES, loss), len(self.mass)
        relevant, other = self.classes

        def risk(flat: FloatArray) -> tuple[float, FloatArray]:
            pairs = flat.reshape(n, n)
            (won, rise, _), (lost, fall, _) = (
                np.moveaxis(sampled(chosen, each, pairs), -1, 0) for each in chosen.partials
            )
            costs = 0.5 * (relevant @ won + lost @ relevant)
            priced = sampled(outer, type(outer).function, costs)
            weight = 0.5 * other * priced[:, 1]
            slopes = np.outer(relevant, weight) * rise + np.outer(weight, relevant) * fall
            return float(other @ priced[:, 0]), slopes.ravel()

        found = minimise(risk, n * n, _nature(chosen, shift_invariant=False))
        return found.scores.reshape(n, n)

    def push_risk(self, loss: Any, outer: AbstractOuter) -> Risk:
        """Return ``scores -> (sum_x' Q_x' G(sum_x P_x kappa(s_x - s_x')), gradient)``."""
        chosen = build(LOSSES, loss)
        relevant, other = self.classes

        def risk(scores: FloatArray) -> tuple[float, FloatArray]:
            table = sampled(chosen, chosen.kappa, scores[:, None] - scores[None, :])
            values, slopes = table[..., 0], table[..., 1]
            priced = sampled(outer, type(outer).function, relevant @ values)
            flow = relevant[:, None] * slopes * (other * priced[:, 1])[None, :]
            return float(other @ priced[:, 0]), flow.sum(axis=1) - flow.sum(axis=0)

        return risk

    def push_scorer(self, loss: Any = "exponential", p: float = 4.0) -> Minimum:
        """Minimise the p-norm push risk."""
        risk = self.push_risk(loss, Power(read_number(p, "p")))
        return minimise(risk, len(self.mass), _nature(loss))

    def zero_one_push_risk(self, scores: ArrayLike, outer: AbstractOuter) -> float:
        """Return ``sum_x' Q_x' G(sum_x P_x 1[s_x < s_x'])``, where ties count one half.

        For linear G, scores that increase with eta minimise it, and only these. For other
        increasing G they do if single instances have little mass (Prop. 15): an exchange of
        neighbours changes the risk by G' times the same difference. Instances of mass 9 and 1 with
        eta .5 and .6 show that G = x^4 may prefer another order.
        """
        relevant, other = self.classes
        costs = relevant @ (1.0 - self._above(scores))
        return float(other @ sampled(outer, type(outer).function, costs)[:, 0])

    def fixed_point(self, loss: Any, scores: ArrayLike) -> FloatArray:
        """Return the probabilities that scores represent in the bipartite risk of a loss.

        ``pi A / (pi A - (1 - pi) B)`` with the mean slopes A of ``l-1`` against relevant and B
        of ``l1`` against other instances: it is eta at the minimiser (Cor. 12).
        """
        chosen = build(LOSSES, loss)
        relevant, other = self.classes
        column = self._scores(scores)
        gaps = column[:, None] - column[None, :]
        rise, fall = (sampled(chosen, each, gaps)[..., 1] for each in chosen.partials)
        a, b = fall @ relevant, rise @ other
        pi = self.base_rate
        return pi * a / (pi * a - (1.0 - pi) * b)

    def squared_scorer(self) -> FloatArray:
        """Return the closed form for the squared margin loss, centred."""
        relevant, other = self.classes
        rho = relevant / (relevant + other)
        kappa = relevant @ rho - other @ rho
        scores = 2.0 / (1.0 + kappa) * rho
        return scores - scores.mean()

    def auc(self, scores: ArrayLike) -> float:
        """Return the population AUC; ties count one half."""
        relevant, other = self.classes
        return float(relevant @ self._above(scores) @ other)

    def _above(self, scores: ArrayLike) -> FloatArray:
        column = self._scores(scores)
        return (column[:, None] > column[None, :]) + 0.5 * (column[:, None] == column[None, :])

    def _scores(self, scores: ArrayLike) -> FloatArray:
        column = read_table(as_floats(scores, "scores"), "scores")
        if len(column) != len(self.mass):
            raise DataError(f"scores are one per instance, {len(self.mass)}; got {len(column)}")
        return column


@final
@dataclass(frozen=True, slots=True)
class FourRisks:
    """Scores of four risks that share one minimiser."""

    proper: FloatArray  #: minimisers, with mean zero
    bipartite: FloatArray
    pairs: FloatArray  #: best pair scores
    push: FloatArray  #: minimisers, with mean zero
    log_odds: FloatArray  #: ``logit(eta) / a`` with mean zero
    #: largest difference between any two of the five, as differences of scores
    largest_difference: float


def four_risks(population: FiniteBipartite, p: float = 4.0) -> FourRisks:
    """Minimise the four equivalent risks of Proposition 17.

    p-classification pointwise, its bipartite risk over scores, over all pair scores, and the
    exponential push with power p: all lead to ``logit(eta) / (p + 1)``.
    """
    loss, pairs = PClassification(p=p), population.pair_scorer(PClassification(p=p))
    columns = [
        population.proper_scorer(loss).scores,
        population.bipartite_scorer(loss).scores,
        population.push_scorer(Exponential(), p).scores,
        logit(population.eta) / (p + 1.0),
    ]
    proper, bipartite, push, log_odds = (one - one.mean() for one in columns)
    gaps = [one[:, None] - one[None, :] for one in (proper, bipartite, push, log_odds)]
    worst = max(float(np.abs(a - b).max()) for a, b in itertools.combinations([pairs, *gaps], 2))
    return FourRisks(proper, bipartite, pairs, push, log_odds, worst)


def auc_regret_bound(loss: Any, auc_regret: float) -> float:
    """Return the least bipartite surrogate regret that an AUC regret implies.

    ``F(x) = Lbar(1/2) - Lbar((1 + x) / 2)`` with Lbar the least conditional risk of the pair
    loss: ``F(AUC* - AUC) <= risk - least risk``. :func:`largest_auc_regret` is its inverse.

    Parameters
    ----------
    loss : loss or str
        With a link ``sigmoid(a v)``; others are not covered.
    auc_regret : float
        Between 0 and 1.

    References
    ----------
    Menon and Williamson 2014, Prop. 10.

    Examples
    --------
    >>> round(auc_regret_bound("exponential", 0.6), 6)
    0.2
    """
    chosen = build(LOSSES, loss)
    rate = pair_shape(chosen).rate
    if rate is None:
        raise ParameterError(f"the link of {chosen.name} is no sigmoid(a v); no bound is known")

    def least(q: float) -> float:
        d = float(logit(np.array([q]))[0]) / rate
        won, lost = sampled(chosen, chosen.kappa, [d, -d])[:, 0]
        return float(q * won + (1 - q) * lost)

    regret = read_number(auc_regret, "auc_regret", 0.0, 1.0)
    return least(0.5) - least(min(0.5 * (1.0 + regret), 1.0 - 1e-15))


def largest_auc_regret(loss: Any, excess: float) -> float:
    """Return the largest AUC regret of scores with an excess bipartite risk: the inverse of F.

    Parameters
    ----------
    loss : loss or str
        As for :func:`auc_regret_bound`.
    excess : float
        Bipartite surrogate risk above its minimum.

    Examples
    --------
    >>> round(largest_auc_regret("exponential", 0.2), 6), largest_auc_regret("logistic", 9.0)
    (0.6, 1.0)
    """
    given, low, high = read_number(excess, "excess", 0.0), 0.0, 1.0
    if given >= auc_regret_bound(loss, 1.0):
        return 1.0
    for _ in range(60):  # F increases, as Lbar is concave and symmetric
        middle = 0.5 * (low + high)
        low, high = (low, middle) if auc_regret_bound(loss, middle) > given else (middle, high)
    return high


def min_max(scores: ArrayLike) -> FloatArray:
    """Return scores scaled to 0..1, which aligns scorers that are equal up to scale and shift.

    As in appendix D of Menon and Williamson 2014; all 0 if scores are equal.

    Examples
    --------
    >>> min_max([3, 1, 2])
    array([1. , 0. , 0.5])
    """
    column = read_table(as_floats(scores, "scores"), "scores")
    return np.asarray((column - column.min()) / (np.ptp(column) or 1.0))


def _nature(loss: Any, shift_invariant: bool = True) -> Nature:
    chosen = build(LOSSES, loss)
    return Nature(shift_invariant, chosen.differentiable, chosen.convex)
