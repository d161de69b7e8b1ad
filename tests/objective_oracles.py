"""Slow twins of losses and objectives: plain loops over items and pairs, one query at a time.

Written from the formulas of the specification; nothing is imported from the code they
judge. Objects are read by attribute (``template.loss.name``), so that a case is described
once. Scalar functions take the library they compute with: ``math`` or ``mpmath``.
"""

import dataclasses
import math
from typing import Any

import numpy as np


def softplus(x: Any, m: Any = math) -> Any:
    return (x if x > 0 else 0 * x) + m.log1p(m.exp(-abs(x)))


def sigma(x: Any, m: Any = math) -> Any:
    return 1 / (1 + m.exp(-x)) if x >= 0 else m.exp(x) / (1 + m.exp(x))


def plus(x: Any) -> Any:
    return x if x > 0 else 0 * x


def params_of(item: Any) -> dict[str, Any]:
    return {field.name: getattr(item, field.name) for field in dataclasses.fields(item)}


# ---------------------------------------------------------------------- scalar losses


def partials(name: str, v: Any, m: Any = math, **p: Any) -> tuple[Any, Any]:
    """Loss of a useful and of a useless item at score v (SPEC 3.1 and 5.1)."""
    if name == "logistic":
        return softplus(-p["sigma"] * v, m), softplus(p["sigma"] * v, m)
    if name == "exponential":
        return m.exp(-v), m.exp(v)
    if name == "squared_margin":
        return (1 - v) ** 2, (1 + v) ** 2
    if name == "hinge":
        return plus(1 - v), plus(1 + v)
    if name == "squared_hinge_margin":
        return plus(1 - v) ** 2, plus(1 + v) ** 2
    if name == "squared_hinge":
        return plus(p["t"] - v) ** 2, plus(v) ** 2
    if name == "differentiable_hinge":
        return huber(1 - v, p["alpha"]), huber(v, p["alpha"])
    if name == "canonical_boosting":
        root = m.sqrt(1 + v * v / 4)
        return root - v / 2, root + v / 2
    if name == "p_classification":
        return m.exp(-v), m.exp(p["p"] * v) / p["p"]
    if name == "asymmetric_a":
        # 2 artanh(sqrt(sigma(-v))), which is infinite where sigma(-v) rounds to one.
        useful = 2 * m.log1p(m.sqrt(sigma(-v, m))) + softplus(-v, m)
        return useful, 2 * m.sqrt(1 + m.exp(v)) - 2
    if name == "asymmetric_b":
        if v > 0:
            return m.exp(-v / 2), m.exp(v / 2) - 1 + m.log(2)
        return softplus(-v, m) - m.log(2) + 1, softplus(v, m)
    if name == "brier_sigmoid":
        return sigma(-v, m) ** 2, sigma(v, m) ** 2
    raise KeyError(f"write the oracle of the loss {name}")


def huber(x: Any, alpha: Any) -> Any:
    if x <= 0:
        return 0 * x
    return x * x / (2 * alpha) if x <= alpha else x - alpha / 2


def kappa(name: str, d: Any, m: Any = math, **p: Any) -> Any:
    """Penalty of a pair (SPEC 5.3; DESIGN 2.1 for the squared hinge)."""
    if name == "squared_hinge":
        return plus(1 - d) ** 2
    if name == "hinge":
        return plus(1 - d)
    return (partials(name, d, m, **p)[0] + partials(name, -d, m, **p)[1]) / 2


def inverse_link(name: str, v: Any, m: Any = math, **p: Any) -> Any:
    """Probability that a score stands for (SPEC 5.1)."""
    rates = {"exponential": 2, "p_classification": p.get("p", 0) + 1, "logistic": p.get("sigma")}
    if name in ("squared_margin", "squared_hinge_margin"):
        return min(max((1 + v) / 2, 0), 1)
    if name == "canonical_boosting":
        return (1 + v / (2 * m.sqrt(1 + v * v / 4))) / 2
    return sigma(rates.get(name, 1) * v, m)


def weight(name: str, c: Any, m: Any = math, **p: Any) -> Any:
    """Weight function w(c) (SPEC 5.1); that of the logistic loss does not depend on sigma."""
    both = c * (1 - c)
    if name == "logistic":
        return 1 / both
    if name in ("exponential", "canonical_boosting"):
        return 1 / (2 * both ** m.mpf(1.5))
    if name in ("squared_margin", "squared_hinge_margin"):
        return m.mpf(8)
    if name == "p_classification":
        r = 1 / m.mpf(p["p"] + 1)
        return r * c ** (-1 - r) * (1 - c) ** (-2 + r)
    if name == "asymmetric_a":
        return 1 / (c * (1 - c) ** m.mpf(1.5))
    if name == "asymmetric_b":
        return 1 / (2 * both ** m.mpf(1.5)) if c > 0.5 else 1 / both
    if name == "brier_sigmoid":
        return m.mpf(2)
    raise KeyError(name)


def expected_curvature(name: str, v: float, **p: Any) -> float:
    """Curvature of the conditional risk at the model's own probability (SPEC 5.1)."""
    s, t = sigma(v), sigma(-v)
    if name == "exponential":
        return 1 / math.cosh(v)
    if name == "p_classification":
        q = sigma((p["p"] + 1) * v)
        r = 1 / (p["p"] + 1)
        return (p["p"] + 1) * q ** (1 - r) * (1 - q) ** r
    if name == "asymmetric_a":
        return s * math.sqrt(t)
    if name == "asymmetric_b":
        return math.sqrt(s * t) / 2 if v > 0 else s * t
    if name == "brier_sigmoid":
        return 2 * (s * t) ** 2
    return {"squared_hinge_margin": 2.0, "hinge": 1.0}[name]


# ------------------------------------------------------------------------- utilities


def exp2_gain(y: float) -> float:
    return 2.0**y - 1.0


def utility(target: Any, y: Any) -> list[float] | None:
    """u of every item, or None where a normaliser is undefined (SPEC 2)."""
    n, p, name = len(y), params_of(target), target.name
    positive = [float(label >= p["threshold"]) for label in y] if p.get("threshold") else list(y)
    relevant = sum(positive)
    if name == "identity":
        return list(y)
    if name == "dcg":
        return [exp2_gain(label) for label in y]
    if name == "ndcg":
        best = sorted((exp2_gain(label) for label in y), reverse=True)[: p["k"]]
        ideal = sum(gain / math.log2(rank + 2) for rank, gain in enumerate(best))
        return [exp2_gain(label) / ideal for label in y] if ideal else None
    if name in ("precision", "wta"):
        return positive
    if name in ("recall", "map"):
        return [label / relevant for label in positive] if relevant else None
    if name == "auc":
        pairs = relevant * (n - relevant)
        return [label / pairs for label in positive] if pairs else None
    if name == "eru":
        return [plus(label - p["neutral"]) for label in y]
    if name == "pairwise_disagreement":
        total = sum(abs(a - b) for a in y for b in y) / 2
        return [(label - min(y)) / total for label in y] if total else None
    if name == "net_degree":
        return [sum(a - b for b in y) for a in y]
    if name == "spearman":
        better = [sum(b > a for b in y) for a in y]
        equal = [sum(b == a for b in y) for a in y]
        return [n - (up + (same + 1) / 2) for up, same in zip(better, equal, strict=True)]
    raise KeyError(f"write the oracle of the utility {name}")


def safe_eta(target: Any, n: int) -> float:
    """Upper bound of u (SPEC 2)."""
    if target.name == "dcg":
        return exp2_gain(target.max_grade)
    if target.name == "eru":
        return target.max_grade - target.neutral
    if target.name in ("auc", "pairwise_disagreement"):
        return 1 / max(n - 1, 1)
    return {"spearman": max(n - 1.0, 1.0)}.get(target.name, 1.0)


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


def _bregman(template: Any, y: Any, s: Any, m: Any) -> Any:
    u = utility(template.target, y)
    name = template.loss.name
    if u is None or (name == "softmax" and sum(u) == 0):
        return 0.0
    level = log_sum(s, m)
    total = 0.0
    for v, a in zip(u, s, strict=True):
        if name == "squared":
            total += (v - a) ** 2
        elif name == "softmax":
            share = v / sum(u)
            total += x_log_x(share) - share * (a - level)
        elif name == "softmax_ce":
            total += v * (level - a)
        elif name == "poisson":
            total += x_log_x(v) - v * a - v + m.exp(a)
        elif name == "binary_entropy":
            eta = template.eta if template.eta is not None else safe_eta(template.target, len(y))
            total += eta * (x_log_x(v / eta) + x_log_x(1 - v / eta)) + eta * softplus(a, m) - v * a
        elif name == "itakura_saito":
            raised = v + template.loss.eps
            total += raised * m.exp(-a) + a - math.log(raised) - 1
        else:
            raise KeyError(f"write the oracle of the generator {name}")
    return total


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


def kappa_slopes(name: str, d: Any, **p: Any) -> tuple[Any, Any, Any]:
    """Value, first and second derivative of a pair penalty on arrays of long doubles."""
    zero = 0 * d
    if name == "logistic":
        z = p["sigma"] * d
        e = np.exp(-np.abs(z))
        lower = np.where(z > 0, e, 1) / (1 + e)
        value = np.maximum(-z, 0) + np.log1p(e)
        return value, -p["sigma"] * lower, p["sigma"] ** 2 * e / (1 + e) ** 2
    if name in ("hinge", "squared_hinge", "squared_hinge_margin"):
        gap, active = np.maximum(1 - d, 0), (d < 1) + zero
        return (gap, -active, zero) if name == "hinge" else (gap**2, -2 * gap, 2 * active)
    if name == "squared_margin":
        return (1 - d) ** 2, -2 * (1 - d), 2 + zero
    if name == "canonical_boosting":
        root = np.sqrt(1 + d * d / 4)
        small = 1 / (root + np.abs(d) / 2)
        slope = np.where(d > 0, -small / (2 * root), small / (2 * root) - 1)
        return np.where(d > 0, small, root - d / 2), slope, 1 / (4 * root**3)
    if name == "brier_sigmoid":
        s, t = expit(d), expit(-d)
        return t**2, -2 * s * t**2, 2 * s * t**2 * (2 * s - t)
    rates: dict[str, Any] = {
        "exponential": [(1.0, 1.0)],
        "p_classification": [(1.0, 0.5), (p.get("p"), 0.5 / p.get("p", 1.0))],
    }
    if name in rates:
        terms = [(r, c * np.exp(-r * d)) for r, c in rates[name]]
        return tuple(sum((-r) ** k * e for r, e in terms) for k in range(3))
    if name == "asymmetric_b":
        e, s, t = np.exp(-d / 2), expit(d), expit(-d)
        value = np.maximum(-d, 0) + np.log1p(np.exp(-np.abs(d)))
        return (e + value) / 2, -(e / 2 + t) / 2, (e / 4 + s * t) / 2
    if name == "asymmetric_a":
        s, root = expit(d), np.sqrt(expit(-d))
        back, other = expit(-d), np.sqrt(expit(d))
        value = np.log1p(root) + (np.maximum(-d, 0) + np.log1p(np.exp(-np.abs(d)))) / 2
        value = value + back / other / (1 + other)
        second = (s * root / 2 + back / other * (1 - back / 2)) / 2
        return value, -(root + back / other) / 2, second
    raise KeyError(f"write the long-double oracle of the loss {name}")


def expit(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


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
