"""Gradients of one query at 50 digits.

Slopes of scalar penalties are central differences with steps of 1e-45 at 160 digits, so
more than 60 digits of them are right; points lie away from kinks.
"""

import itertools
from typing import Any, NamedTuple

import mpmath

from tests import objective_oracles as oracle

mp = mpmath.mp.clone()
mp.dps = 160
STEP = mp.mpf(10) ** -45


class Exact(NamedTuple):
    """Gradient of each item, and the sum of the absolute terms it is made of."""

    grad: list[Any]
    size: list[Any]


def slope(function: Any, at: Any) -> Any:
    """Return the derivative of a function of one number."""
    return (function(at + STEP) - function(at - STEP)) / (2 * STEP)


def gradient(template: Any, labels: Any, scores: Any) -> Exact:
    """Return the gradient of one query at its float64 scores."""
    y, s = [float(a) for a in labels], [mp.mpf(float(a)) for a in scores]
    found = _BY_TEMPLATE.get(template.name, _by_differences)(template, y, s)
    scale = mp.mpf(oracle.scale_of(template, len(y)))
    return Exact([scale * g for g in found.grad], [abs(scale) * g for g in found.size])


def _pairs(template: Any, y: Any, s: Any) -> Exact:
    """Sum of a_ij kappa(s_i - s_j)."""
    factors = _factors(template, y)
    grad, size = [mp.mpf(0)] * len(y), [mp.mpf(0)] * len(y)
    for i, j in itertools.permutations(range(len(y)), 2):
        if factors[i][j]:
            term = factors[i][j] * slope(lambda d: _kappa(template, d), s[i] - s[j])
            grad[i], grad[j] = grad[i] + term, grad[j] - term
            size[i], size[j] = size[i] + abs(term), size[j] + abs(term)
    return Exact(grad, size)


def _squares(template: Any, y: Any, s: Any) -> Exact:
    """Sum of (u_i - u_j - (s_i - s_j))^2 over pairs."""
    u = [mp.mpf(v) for v in oracle.utility(template.target, y) or [0.0] * len(y)]
    grad, size = [mp.mpf(0)] * len(y), [mp.mpf(0)] * len(y)
    for i, j in itertools.permutations(range(len(y)), 2):
        grad[i] += 2 * (s[i] - s[j]) - 2 * (u[i] - u[j])
        size[i] += 2 * abs(s[i] - s[j]) + 2 * abs(u[i] - u[j])
    return Exact(grad, size)


def _pairwise(template: Any, y: Any, s: Any) -> Exact:
    return (_squares if template.loss.name == "squared" else _pairs)(template, y, s)


def _kappa(template: Any, d: Any) -> Any:
    return oracle.kappa(template.loss.name, d, mp, **oracle.params_of(template.loss))


def _factors(template: Any, y: Any) -> Any:
    n = len(y)
    if template.name == "pairwise":
        u = oracle.utility(template.target, y) or [0.0] * n
        return [[u[i]] * n for i in range(n)]
    if template.name == "bipartite":
        bar = 1.0 if template.threshold is None else template.threshold
        ups = sum(label >= bar for label in y)
        share = mp.mpf(1) / max(ups * (n - ups), 1)
        return [[share if a >= bar > b else 0 for b in y] for a in y]
    gain = [oracle.step_weight(template.weights, a, 1 + sum(b > a for b in y)) for a in y]
    if template.weights == "gain_discount":
        gain = [oracle.exp2_gain(a) / mp.log(2 + sum(b > a for b in y), 2) for a in y]
    return [[gain[i] if y[i] > b else 0 for b in y] for i in range(n)]


def _pointwise(template: Any, y: Any, s: Any) -> Exact:
    u = oracle.utility(template.target, y) or [0.0] * len(y)
    eta = template.eta if template.eta is not None else oracle.safe_eta(template.target, len(y))
    params = oracle.params_of(template.loss)
    terms = []
    for v, a in zip(u, s, strict=True):
        if template.loss.name == "squared":
            terms.append((2 * a, -2 * mp.mpf(v)))
            continue
        sides = [
            slope(lambda x, k=k: oracle.partials(template.loss.name, x, mp, **params)[k], a)
            for k in (0, 1)
        ]
        terms.append((v * sides[0], (mp.mpf(eta) - v) * sides[1]))
    return Exact([a + b for a, b in terms], [abs(a) + abs(b) for a, b in terms])


def _bregman(template: Any, y: Any, s: Any) -> Exact:
    name = template.loss.name
    if name.startswith("softmax"):
        return _by_differences(template, y, s)
    u = [mp.mpf(v) for v in oracle.utility(template.target, y) or [0.0] * len(y)]
    eta = template.eta if template.eta is not None else oracle.safe_eta(template.target, len(y))
    terms = {
        "squared": lambda v, a: (2 * a, -2 * v),
        "poisson": lambda v, a: (mp.exp(a), -v),
        "binary_entropy": lambda v, a: (eta * oracle.rise(a, mp), -v),
        "itakura_saito": lambda v, a: (mp.mpf(1), -(v + template.loss.eps) * mp.exp(-a)),
    }
    found = [terms[name](v, a) for v, a in zip(u, s, strict=True)]
    return Exact([a + b for a, b in found], [abs(a) + abs(b) for a, b in found])


def _linear(template: Any, y: Any, s: Any) -> Exact:
    regulariser = template.regulariser
    slopes = {
        "square": lambda a: 2 * a,
        "power": lambda a: regulariser.q * mp.sign(a) * abs(a) ** mp.mpf(regulariser.q - 1),
        "cosh": mp.sinh,
    }
    pulls = [mp.fsum(y) - len(y) * mp.mpf(label) for label in y]
    bends = [template.nu * slopes[regulariser.name](a) for a in s]
    return Exact(
        [a + b for a, b in zip(pulls, bends, strict=True)],
        [abs(a) + abs(b) + len(y) * max(y) for a, b in zip(pulls, bends, strict=True)],
    )


def _by_differences(template: Any, y: Any, s: Any) -> Exact:
    """Differences of the loss; the size is that of the largest slope of the query."""

    def value(i: int, step: Any) -> Any:
        return oracle.raw_loss(template, y, [*s[:i], s[i] + step, *s[i + 1 :]], mp)

    grad = [(value(i, STEP) - value(i, -STEP)) / (2 * STEP) for i in range(len(s))]
    return Exact(grad, [max(map(abs, grad))] * len(grad))


_BY_TEMPLATE = {
    "pairwise": _pairwise,
    "comparison": _pairs,
    "bipartite": _pairs,
    "pointwise": _pointwise,
    "bregman": _bregman,
    "linear": _linear,
}
