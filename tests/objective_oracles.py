"""Slow twins of losses and objectives: plain loops over items and pairs, one query at a time.

Written from the formulas of the specification; nothing is imported from the code they
judge. Objects are read by attribute (``template.loss.name``), so that a case is described
once. Scalar functions take the library they compute with: ``math`` or ``mpmath``.
"""

import dataclasses
import math
from typing import Any

import mpmath
import numpy as np


def softplus(x: Any, m: Any = math) -> Any:
    return (x if x > 0 else 0 * x) + m.log1p(m.exp(-abs(x)))


def rise(x: Any, m: Any = math) -> Any:
    return 1 / (1 + m.exp(-x)) if x >= 0 else m.exp(x) / (1 + m.exp(x))


def plus(x: Any) -> Any:
    return x if x > 0 else 0 * x


def params_of(item: Any) -> dict[str, Any]:
    return {field.name: getattr(item, field.name) for field in dataclasses.fields(item)}


# ---------------------------------------------------------------------- scalar losses


@dataclasses.dataclass(frozen=True)
class LossOracle:
    """What a loss is by its formula (SPEC 3.1, 5.1, 5.3); parameters come as keywords.

    Functions of a score ``v`` or a probability ``c`` take the library ``m`` next.

    Parameters
    ----------
    value : callable
        ``(v, m, **p) -> (loss of a useful item, loss of a useless item)``.
    slopes : callable or None
        ``(d, **p) -> (value, first, second)`` of the pair penalty on arrays of long doubles; None
        for a loss of items alone.
    link : callable or None
        ``(v, m, **p) -> probability``; None for a loss without a link.
    weight : callable or None
        ``(c, m, **p) -> w(c)`` of a loss with a link.
    kinks : tuple of float
        Scores and margins where a derivative jumps.
    pair : callable or None
        ``(d, m, **p) -> penalty``, where it is not the mean of ``value`` over both items.
    curvature : float or None
        The expected curvature, where it is not ``w(q) q'^2``.
    others : tuple of dict
        Parameters to try besides the defaults.
    """

    value: Any
    slopes: Any = None
    link: Any = None
    weight: Any = None
    kinks: tuple[float, ...] = ()
    pair: Any = None
    curvature: float | None = None
    others: tuple[dict[str, float], ...] = ()


def huber(x: Any, alpha: Any) -> Any:
    if x <= 0:
        return 0 * x
    return x * x / (2 * alpha) if x <= alpha else x - alpha / 2


def expit(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def soft(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def power(x: Any, exponent: float, m: Any) -> Any:
    return x ** m.mpf(exponent)


def _logistic_slopes(d: Any, sigma: float) -> Any:
    s, t = expit(sigma * d), expit(-sigma * d)
    return soft(-sigma * d), -sigma * t, sigma**2 * s * t


def _exponential_slopes(d: Any) -> Any:
    e = np.exp(-d)
    return e, -e, e


def _gap(d: Any, *, square: bool = True) -> Any:
    gap, active = np.maximum(1 - d, 0), (d < 1) + 0 * d
    return (gap**2, -2 * gap, 2 * active) if square else (gap, -active, 0 * d)


def _canonical_slopes(d: Any) -> Any:
    root = np.sqrt(1 + d * d / 4)
    small = 1 / (root + np.abs(d) / 2)
    slope = np.where(d > 0, -small / (2 * root), small / (2 * root) - 1)
    return np.where(d > 0, small, root - d / 2), slope, 1 / (4 * root**3)


def _p_slopes(d: Any, p: float) -> Any:
    e, f = np.exp(-d), np.exp(-p * d)
    return (e + f / p) / 2, -(e + f) / 2, (e + p * f) / 2


def _a_slopes(d: Any) -> Any:
    root, back, other = np.sqrt(expit(-d)), expit(-d), np.sqrt(expit(d))
    value = np.log1p(root) + soft(-d) / 2 + back / other / (1 + other)
    second = (expit(d) * root / 2 + back / other * (1 - back / 2)) / 2
    return value, -(root + back / other) / 2, second


def _b_value(v: Any, m: Any) -> Any:
    if v > 0:
        return m.exp(-v / 2), m.exp(v / 2) - 1 + m.log(2)
    return softplus(-v, m) - m.log(2) + 1, softplus(v, m)


def _b_slopes(d: Any) -> Any:
    e, s, t = np.exp(-d / 2), expit(d), expit(-d)
    return (e + soft(-d)) / 2, -(e / 2 + t) / 2, (e / 4 + s * t) / 2


def _brier_slopes(d: Any) -> Any:
    s, t = expit(d), expit(-d)
    return t**2, -2 * s * t**2, 2 * s * t**2 * (2 * s - t)


def _clipped(v: Any, _m: Any) -> Any:
    return min(max((1 + v) / 2, 0), 1)


LOSSES: dict[str, LossOracle] = {
    "logistic": LossOracle(
        value=lambda v, m, sigma: (softplus(-sigma * v, m), softplus(sigma * v, m)),
        slopes=_logistic_slopes,
        link=lambda v, m, sigma: rise(sigma * v, m),
        weight=lambda c, _m, sigma: 1 / (c * (1 - c)),
        others=({"sigma": 3.0},),
    ),
    "exponential": LossOracle(
        value=lambda v, m: (m.exp(-v), m.exp(v)),
        slopes=_exponential_slopes,
        link=lambda v, m: rise(2 * v, m),
        weight=lambda c, m: 1 / (2 * power(c * (1 - c), 1.5, m)),
    ),
    "squared_margin": LossOracle(
        value=lambda v, _m: ((1 - v) ** 2, (1 + v) ** 2),
        slopes=lambda d: ((1 - d) ** 2, -2 * (1 - d), 2 + 0 * d),
        link=_clipped,
        weight=lambda _c, m: m.mpf(8),
    ),
    "hinge": LossOracle(
        value=lambda v, _m: (plus(1 - v), plus(1 + v)),
        slopes=lambda d: _gap(d, square=False),
        kinks=(-1.0, 1.0),
        curvature=1.0,
    ),
    "squared_hinge_margin": LossOracle(
        value=lambda v, _m: (plus(1 - v) ** 2, plus(1 + v) ** 2),
        slopes=_gap,
        link=_clipped,
        weight=lambda _c, m: m.mpf(8),
        kinks=(-1.0, 1.0),
        curvature=2.0,
    ),
    "squared_hinge": LossOracle(
        value=lambda v, _m, t: (plus(t - v) ** 2, plus(v) ** 2),
        slopes=lambda d, t: _gap(d),
        pair=lambda d, _m, t: plus(1 - d) ** 2,  # DESIGN 2.1: it does not depend on t
        kinks=(0.0, 1.0),
        others=({"t": 2.5},),
    ),
    "differentiable_hinge": LossOracle(
        value=lambda v, _m, alpha: (huber(1 - v, alpha), huber(v, alpha)),
        kinks=(0.0, 0.5, 1.0),
        others=({"alpha": 0.2},),
    ),
    "canonical_boosting": LossOracle(
        value=lambda v, m: (m.sqrt(1 + v * v / 4) - v / 2, m.sqrt(1 + v * v / 4) + v / 2),
        slopes=_canonical_slopes,
        link=lambda v, m: (1 + v / (2 * m.sqrt(1 + v * v / 4))) / 2,
        weight=lambda c, m: 1 / (2 * power(c * (1 - c), 1.5, m)),
    ),
    "p_classification": LossOracle(
        value=lambda v, m, p: (m.exp(-v), m.exp(p * v) / p),
        slopes=_p_slopes,
        link=lambda v, m, p: rise((p + 1) * v, m),
        weight=lambda c, m, p: (
            power(c, -1 - 1 / (p + 1), m) * power(1 - c, 1 / (p + 1) - 2, m) / (p + 1)
        ),
        others=({"p": 0.5}, {"p": 4.0}),
    ),
    "asymmetric_a": LossOracle(
        # 2 artanh(sqrt(rise(-v))), which is infinite where rise(-v) rounds to one.
        value=lambda v, m: (
            2 * m.log1p(m.sqrt(rise(-v, m))) + softplus(-v, m),
            2 * m.sqrt(1 + m.exp(v)) - 2,
        ),
        slopes=_a_slopes,
        link=rise,
        weight=lambda c, m: 1 / (c * power(1 - c, 1.5, m)),
    ),
    "asymmetric_b": LossOracle(
        value=_b_value,
        slopes=_b_slopes,
        link=rise,
        weight=lambda c, m: 1 / (2 * power(c * (1 - c), 1.5, m)) if c > 0.5 else 1 / (c * (1 - c)),
        kinks=(0.0,),
    ),
    "brier_sigmoid": LossOracle(
        value=lambda v, m: (rise(-v, m) ** 2, rise(v, m) ** 2),
        slopes=_brier_slopes,
        link=rise,
        weight=lambda _c, m: m.mpf(2),
    ),
}


def partials(name: str, v: Any, m: Any = math, **p: Any) -> tuple[Any, Any]:
    """Loss of a useful and of a useless item at score v."""
    useful, useless = LOSSES[name].value(v, m, **p)
    return useful, useless


def kappa(name: str, d: Any, m: Any = math, **p: Any) -> Any:
    """Penalty of a pair."""
    if LOSSES[name].pair is not None:
        return LOSSES[name].pair(d, m, **p)
    return (partials(name, d, m, **p)[0] + partials(name, -d, m, **p)[1]) / 2


def expected_curvature(name: str, v: float, **p: Any) -> float:
    """Curvature of the conditional risk at the model's own probability (SPEC 5.1)."""
    loss, m = LOSSES[name], mpmath.mp
    if loss.curvature is not None:
        return loss.curvature
    slope = mpmath.diff(lambda x: loss.link(x, m, **p), v)
    return float(loss.weight(loss.link(mpmath.mpf(v), m, **p), m, **p) * slope**2)


def kappa_slopes(name: str, d: Any, **p: Any) -> Any:
    """Value, first and second derivative of a pair penalty on arrays of long doubles."""
    return LOSSES[name].slopes(d, **p)


# ------------------------------------------------------------------------- utilities


def exp2_gain(y: float) -> float:
    return 2.0**y - 1.0


def _binary(p: Any, y: Any) -> list[float]:
    return [float(label >= p["threshold"]) for label in y] if p.get("threshold") else list(y)


def _over(worth: list[float], total: float) -> list[float] | None:
    return [each / total for each in worth] if total else None


def _ndcg(p: Any, y: Any) -> list[float] | None:
    worth = [exp2_gain(label) for label in y]
    best = sorted(worth, reverse=True)[: p["k"]]
    return _over(worth, sum(gain / math.log2(rank + 2) for rank, gain in enumerate(best)))


def _share(p: Any, y: Any) -> list[float] | None:
    return _over(_binary(p, y), sum(_binary(p, y)))


def _auc(p: Any, y: Any) -> list[float] | None:
    relevant = sum(_binary(p, y))
    return _over(_binary(p, y), relevant * (len(y) - relevant))


def _spearman(_p: Any, y: Any) -> list[float]:
    better = [sum(b > a for b in y) for a in y]
    equal = [sum(b == a for b in y) for a in y]
    return [len(y) - (up + (same + 1) / 2) for up, same in zip(better, equal, strict=True)]


def _disagreement(_p: Any, y: Any) -> list[float] | None:
    return _over([label - min(y) for label in y], sum(abs(a - b) for a in y for b in y) / 2)


UTILITIES: dict[str, Any] = {  # (parameters, labels) -> u, or None where it is undefined
    "identity": lambda _p, y: list(y),
    "dcg": lambda _p, y: [exp2_gain(label) for label in y],
    "ndcg": _ndcg,
    "precision": _binary,
    "wta": _binary,
    "recall": _share,
    "map": _share,
    "auc": _auc,
    "eru": lambda p, y: [plus(label - p["neutral"]) for label in y],
    "pairwise_disagreement": _disagreement,
    "net_degree": lambda _p, y: [sum(a - b for b in y) for a in y],
    "spearman": _spearman,
}
BOUNDS: dict[str, Any] = {  # (parameters, items) -> upper bound of u, if it is not 1
    "dcg": lambda p, _n: exp2_gain(p["max_grade"]),
    "eru": lambda p, _n: p["max_grade"] - p["neutral"],
    "auc": lambda _p, n: 1 / max(n - 1, 1),
    "pairwise_disagreement": lambda _p, n: 1 / max(n - 1, 1),
    "spearman": lambda _p, n: max(n - 1.0, 1.0),
}


def utility(target: Any, y: Any) -> list[float] | None:
    """u of every item, or None where a normaliser is undefined (SPEC 2)."""
    worth: list[float] | None = UTILITIES[target.name](params_of(target), y)
    return worth


def safe_eta(target: Any, n: int) -> float:
    """Upper bound of u (SPEC 2)."""
    return float(BOUNDS.get(target.name, lambda _p, _n: 1.0)(params_of(target), n))


# ------------------------------------------------------------------------- objectives


def scale_of(template: Any, n: int) -> float:
    """Factor of a query (DESIGN 2.1, normalize)."""
    if template.name in ("bipartite", "push"):
        return float(n) if template.normalize == "items" else 1.0
    counts = {"none": 1, "items": n - 1, "pairs": n * (n - 1) / 2}
    return 1 / max(counts[template.normalize], 1)


def query_loss(template: Any, y: Any, s: Any, weight: Any = None) -> float:
    """Loss of one query by the formulas of the specification; ``weight`` has one per item."""
    if template.name == "mix":
        factors = template.weights or [1.0] * len(template.parts)
        parts = zip(factors, template.parts, strict=True)
        return sum(w * query_loss(part, y, s, weight) for w, part in parts)
    y, s = [float(a) for a in y], [float(a) for a in s]
    if weight is not None:
        raw = _WEIGHED[template.name](template, y, s, [float(w) for w in weight])
        return scale_of(template, len(y)) * raw
    return scale_of(template, len(y)) * raw_loss(template, y, s)


def raw_loss(template: Any, y: Any, s: Any, m: Any = math) -> Any:
    """Loss of one query before it is normalised, of scores of the library ``m``."""
    return _RAW[template.name](template, y, s, m)


def _pointwise(template: Any, y: Any, s: Any, m: Any) -> Any:
    u = utility(template.target, y)
    if u is None:
        return 0.0
    if template.loss.name == "squared":
        return sum((v - a) ** 2 for v, a in zip(u, s, strict=True))
    eta = template.eta if template.eta is not None else safe_eta(template.target, len(y))
    total = 0.0
    for v, a in zip(u, s, strict=True):
        useful, useless = partials(template.loss.name, a, m, **params_of(template.loss))
        total += v * useful + (eta - v) * useless
    return total


def _pairwise(template: Any, y: Any, s: Any, m: Any) -> Any:
    u = utility(template.target, y)
    if u is None:
        return 0.0
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if i != j]
    if template.loss.name == "squared":
        return sum((u[i] - u[j] - (s[i] - s[j])) ** 2 for i, j in pairs if i < j)
    loss = template.loss
    return sum(u[i] * kappa(loss.name, s[i] - s[j], m, **params_of(loss)) for i, j in pairs)


def step_weight(weights: Any, label: float, rank: int) -> float:
    """Weight of a label at a rank: 1, a table, or gain times discount up to a cut-off."""
    if weights == "none":
        return 1.0
    if isinstance(weights, tuple):
        return float(weights[rank - 1]) if rank <= len(weights) else 0.0
    gain, k = getattr(weights, "gain", "exp2"), getattr(weights, "k", None)
    discount: Any = getattr(weights, "discount", "log2")
    if k is not None and rank > k:
        return 0.0
    worth = {"exp2": exp2_gain(label), "linear": label}[gain]
    if discount == "log2":
        return worth / math.log2(1 + rank)
    return worth * discount[rank - 1] if rank <= len(discount) else 0.0


def _comparison(template: Any, y: Any, s: Any, m: Any) -> Any:
    total = 0.0
    for i in range(len(y)):
        factor = step_weight(template.weights, y[i], 1 + sum(label > y[i] for label in y))
        for j in range(len(y)):
            if y[i] > y[j]:
                penalty = kappa(template.loss.name, s[i] - s[j], m, **params_of(template.loss))
                total += factor * penalty
    return total


def sides(template: Any, y: list[float], s: list[float]) -> tuple[list[float], list[float]]:
    bar = template.threshold if template.threshold is not None else 1.0
    ups = [a for a, label in zip(s, y, strict=True) if label >= bar]
    return ups, [a for a, label in zip(s, y, strict=True) if label < bar]


def _bipartite(template: Any, y: Any, s: Any, m: Any) -> Any:
    ups, downs = sides(template, y, s)
    if not ups or not downs:
        return 0.0
    loss = template.loss
    total = sum(kappa(loss.name, a - b, m, **params_of(loss)) for a in ups for b in downs)
    return total / (len(ups) * len(downs))


def _push(template: Any, y: Any, s: Any, m: Any) -> Any:
    ups, downs = sides(template, y, s)
    if not ups or not downs:
        return 0.0
    loss, total = template.loss, 0.0
    for b in downs:
        mean = sum(kappa(loss.name, a - b, m, **params_of(loss)) for a in ups) / len(ups)
        if template.g is None or template.g.name == "power":
            total += mean ** (template.p if template.g is None else template.g.p)
        elif template.g.name == "expm1":
            total += m.expm1(mean)
        else:
            raise KeyError(f"write the oracle of the outer function {template.g.name}")
    value = total / len(downs)
    return m.log(value) if template.form == "log" else value


def _linear(template: Any, y: Any, s: Any, m: Any) -> Any:
    total = 0.0
    for i in range(len(y)):
        for j in range(len(y)):
            total += plus(y[i] - y[j]) * (s[j] - s[i])
        total += template.nu * regulariser(template.regulariser, s[i], m)
    return total


def regulariser(r: Any, x: Any, m: Any = math) -> Any:
    forms = {"square": lambda: x * x, "power": lambda: abs(x) ** r.q, "cosh": lambda: m.cosh(x)}
    return forms[r.name]()


def _softmax_term(v: Any, a: Any, m: Any, *, level: Any, total: float, **_: Any) -> Any:
    return x_log_x(v / total) - v / total * (a - level) if total else 0.0


def _entropy_term(v: Any, a: Any, m: Any, *, eta: float, **_: Any) -> Any:
    return eta * (x_log_x(v / eta) + x_log_x(1 - v / eta)) + eta * softplus(a, m) - v * a


GENERATORS: dict[str, Any] = {  # (utility, score, library) -> term of an item
    "squared": lambda v, a, _m, **_: (v - a) ** 2,
    "softmax": _softmax_term,
    "softmax_ce": lambda v, a, _m, *, level, **_: v * (level - a),
    "poisson": lambda v, a, m, **_: x_log_x(v) - v * a - v + m.exp(a),
    "binary_entropy": _entropy_term,
    "itakura_saito": lambda v, a, m, *, eps, **_: (v + eps) * m.exp(-a) + a - math.log(v + eps) - 1,
}


def _bregman(template: Any, y: Any, s: Any, m: Any) -> Any:
    u = utility(template.target, y)
    if u is None:
        return 0.0
    more = {"level": log_sum(s, m), "total": sum(u), **params_of(template.loss)}
    more["eta"] = template.eta if template.eta is not None else safe_eta(template.target, len(y))
    term = GENERATORS[template.loss.name]
    return sum(term(v, a, m, **more) for v, a in zip(u, s, strict=True))


def log_sum(s: Any, m: Any = math) -> Any:
    return max(s) + m.log(sum(m.exp(a - max(s)) for a in s))


def x_log_x(x: float) -> float:
    return x * math.log(x) if x > 0 else 0.0


def _listmle(template: Any, y: Any, s: Any, m: Any) -> Any:
    order = sorted(range(len(y)), key=lambda i: -y[i])
    total = 0.0
    for place, i in enumerate(order[:-1]):
        beta = step_weight(template.weights, y[i], place + 1)
        total += beta * (log_sum([s[k] for k in order[place:]], m) - s[i])
    return total


def _query_rmse(template: Any, y: Any, s: Any, _m: Any) -> Any:
    u = utility(template.target, y)
    if u is None:
        return 0.0
    gaps = [a - v for a, v in zip(s, u, strict=True)]
    best = sum(gaps) / len(gaps)
    return sum((gap - best) ** 2 for gap in gaps)


def _sigmoid_softmax(template: Any, y: Any, s: Any, m: Any) -> Any:
    u = utility(template.target, y)
    if u is None:
        return 0.0
    logs = [-softplus(-a, m) for a in s]
    level = log_sum(logs, m)
    return sum(v * (level - one) for v, one in zip(u, logs, strict=True))


def _calibrated_softmax(template: Any, y: Any, s: Any, m: Any) -> Any:
    u = utility(template.target, y)
    if u is None:
        return 0.0
    level = log_sum([*s, 0 * s[0]], m)
    total = sum(v * (level - a) for v, a in zip(u, s, strict=True))
    return total + template.anchor * level


_RAW = {
    "pointwise": _pointwise,
    "pairwise": _pairwise,
    "comparison": _comparison,
    "bipartite": _bipartite,
    "push": _push,
    "linear": _linear,
    "bregman": _bregman,
    "listmle": _listmle,
    "query_rmse": _query_rmse,
    "sigmoid_softmax": _sigmoid_softmax,
    "calibrated_softmax": _calibrated_softmax,
}


# ---------------------------------------------------- items with weights (SPEC 12.1)


def _weighed_pointwise(template: Any, y: Any, s: Any, w: Any) -> float:
    u = utility(template.target, y)
    if u is None:
        return 0.0
    eta = template.eta if template.eta is not None else safe_eta(template.target, len(y))
    total = 0.0
    for i in range(len(y)):
        if template.loss.name == "squared":
            total += w[i] * (u[i] - s[i]) ** 2
        else:
            useful, useless = partials(template.loss.name, s[i], **params_of(template.loss))
            total += w[i] * (u[i] * useful + (eta - u[i]) * useless)
    return total


def _weighed_pairwise(template: Any, y: Any, s: Any, w: Any) -> float:
    """Utilities times weights; the squared loss keeps the mean weight as a factor."""
    u, n = utility(template.target, y), len(y)
    mean = sum(w) / n
    if u is None or mean == 0.0:
        return 0.0
    total = 0.0
    for i in range(n):
        for j in range(n):
            if template.loss.name == "squared" and i < j:
                gap = (w[i] * u[i] - w[j] * u[j]) / mean - (s[i] - s[j])
                total += mean * gap**2
            elif template.loss.name != "squared" and i != j:
                penalty = kappa(template.loss.name, s[i] - s[j], **params_of(template.loss))
                total += w[i] * u[i] * penalty
    return total


def _weighed_comparison(template: Any, y: Any, s: Any, w: Any) -> float:
    total = 0.0
    for i in range(len(y)):
        factor = step_weight(template.weights, y[i], 1 + sum(label > y[i] for label in y))
        for j in range(len(y)):
            if y[i] > y[j]:
                gap = y[i] - y[j]
                margin = gap if template.margin == "weight" else template.margin
                lead = s[i] - s[j] - margin
                penalty = kappa(template.loss.name, lead, **params_of(template.loss))
                total += w[i] * factor * penalty
    return total


def _weighed_query_rmse(template: Any, y: Any, s: Any, w: Any) -> float:
    u = utility(template.target, y)
    if u is None or sum(w) == 0.0:
        return 0.0
    gaps = [a - v for a, v in zip(s, u, strict=True)]
    best = sum(a * b for a, b in zip(w, gaps, strict=True)) / sum(w)
    return sum(a * (gap - best) ** 2 for a, gap in zip(w, gaps, strict=True))


_WEIGHED = {
    "pointwise": _weighed_pointwise,
    "pairwise": _weighed_pairwise,
    "comparison": _weighed_comparison,
    "query_rmse": _weighed_query_rmse,
}


# ------------------------------------------------ gradients over pairs, in long doubles


def pair_sums(factors: Any, s: Any, slopes: Any) -> tuple[Any, Any, Any, Any]:
    """Sum of ``a_ij f(s_i - s_j)``, gradient, Hessian diagonal, sum of absolute slopes.

    Parameters
    ----------
    factors : array of shape (n, n)
        Weight of "i should be above j"; zero where a pair does not count.
    s : array of shape (n,)
        Scores.
    slopes : callable
        Value and two derivatives of f on an array.
    """
    s = np.asarray(s, np.longdouble)
    value, first, second = slopes(s[:, None] - s[None, :])
    counts = factors != 0
    first, second = (np.where(counts, factors * part, 0) for part in (first, second))
    grad = first.sum(axis=1) - first.sum(axis=0)
    hess = second.sum(axis=1) + second.sum(axis=0)
    size = np.abs(first).sum(axis=1) + np.abs(first).sum(axis=0)
    return np.where(counts, factors * value, 0).sum(), grad, hess, size
