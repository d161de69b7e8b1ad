"""Generators of yours, tested on a few numbers: the link they imply, and a declared modulus."""

import itertools
from typing import Any

import numpy as np

from gbmrank.errors import NumericError
from gbmrank.losses.convex import AbstractGenerator
from gbmrank.theory.minimise import Nature, Risk, minimise
from gbmrank.theory.user_code import sampled
from gbmrank.types import FloatArray


def generates(generator: AbstractGenerator, eta: float | None) -> bool:
    """Whether a generator of yours sorts expected utilities, as far as a few numbers show."""
    top = 1.0 if eta is None else eta
    if generator.of_query is not None:
        return _generates_queries(generator, top)
    s = np.linspace(-8.0, 8.0, 161)
    slopes = np.stack([_terms(generator, s, v * top, top)[1] for v in (0.0, 0.5, 1.0)], axis=1)
    fall = slopes[:, 0] - slopes[:, 2]
    bent = np.abs(slopes[:, 0] - 2.0 * slopes[:, 1] + slopes[:, 2])
    with np.errstate(invalid="ignore", divide="ignore"):
        link = slopes[:, 0] / fall
    straight = np.all(bent <= 1e-9 * np.abs(slopes).max(axis=1))
    return bool(straight and np.all(fall > 0) and np.all(np.diff(link) >= 0) and np.ptp(link) > 0)


def _terms(generator: AbstractGenerator, s: FloatArray, v: Any, eta: float) -> FloatArray:
    """Return value and slope of a separable generator at scores, for utilities, shape (2, n)."""
    rows = [
        sampled(generator, lambda z, *p, u=u: generator.term(z, u, eta, *p), z)[:2]
        for z, u in zip(s, np.broadcast_to(v, s.shape).tolist(), strict=True)
    ]
    return np.array(rows).T


def _risk(generator: AbstractGenerator, utilities: FloatArray, eta: float) -> Risk:
    """Return the loss of one query as a function of scores, with its gradient."""
    if generator.of_query is None:

        def summed(scores: FloatArray) -> tuple[float, FloatArray]:
            values, slopes = _terms(generator, scores, utilities, eta)
            return float(values.sum()), slopes

        return summed

    def whole(scores: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = generator.of_query(scores, utilities, *generator.params)
        return float(value), np.asarray(gradient, dtype=np.float64)

    return whole


def _generates_queries(generator: AbstractGenerator, top: float) -> bool:
    """Whether gradients are affine in the utilities, and minimisers sorted like them."""
    rng = np.random.default_rng(0)
    for _ in range(12):
        s, (u, v) = rng.normal(size=3), top * rng.uniform(0.05, 1.0, (2, 3))
        each = [_risk(generator, w, top)(s)[1] for w in (u, v, 0.5 * (u + v))]
        if np.abs(each[0] + each[1] - 2.0 * each[2]).max() > 1e-9 * (1.0 + np.abs(each).max()):
            return False
        nature = Nature(shift_invariant=generator.shift_invariant)
        try:
            found = minimise(_risk(generator, u, top), 3, nature)
        except NumericError:
            return False
        if not found.attained or np.any(np.argsort(found.scores) != np.argsort(u)):
            return False
    return True


def modulus_contradiction(generator: AbstractGenerator) -> str:
    """Return two expected utilities whose tie costs less than ``mu (U_i - U_j)^2 / 4``, or ''."""
    nature, ties = Nature(shift_invariant=generator.shift_invariant), np.linspace(-8.0, 8.0, 161)
    for top, low, high in itertools.product((1.0, 4.0), (0.05, 0.4, 0.7), (0.6, 1.0)):
        if low >= high or generator.mu is None:
            continue
        risk = _risk(generator, np.array([high, low]) * top, top)
        try:
            least = minimise(risk, 2, nature).value
        except NumericError:
            continue
        cost = min(risk(np.array([t, t]))[0] for t in ties.tolist()) - least
        if cost < 0.25 * generator.mu * ((high - low) * top) ** 2 * (1.0 - 1e-6) - 1e-9:
            pair = f"{high * top:g} and {low * top:g}"
            return f"mu={generator.mu:g}, but a tie of the utilities {pair} costs only {cost:.6g}"
    return ""
