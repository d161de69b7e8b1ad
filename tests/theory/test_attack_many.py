"""At least 10^5 checks of verdicts, many distributions at once, by an optimiser of its own.

Probabilities are ratios of small whole numbers and labels have one decimal, so that exact ties are
common; expected utilities that nearly tie are compared as fractions. ``GBMRANK_MANY_CHECKS`` is
the number of checks of a night.
"""

import itertools
import math
import os
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import gbmrank
from gbmrank import theory
from gbmrank.errors import GbmrankError
from gbmrank.registry.catalogue import LOSSES as REGISTERED
from tests.theory import test_attack as attack
from tests.theory.test_premises import _exact_reinforcement

CHECKS = int(os.environ.get("GBMRANK_MANY_CHECKS", "110000"))
BATCH = 96


# Losses of strange shape -----------------------------------------------------------------------


def bent_line(z):
    """A line that bends softly: sqrt(1 + (z - 1)^2) - (z - 1)."""
    root = np.sqrt(1.0 + (z - 1.0) ** 2)
    return root - (z - 1.0), (z - 1.0) / root - 1.0, 1.0 / root**3


def late(z, shift=2.0):
    """A softplus that only falls beyond a margin of 2."""
    e = np.exp(-np.abs(shift - z))
    p = np.where(shift > z, 1.0, e) / (1.0 + e)
    return np.logaddexp(0.0, shift - z), -p, p * (1.0 - p)


def two_slopes(z):
    """The sum of a steep and of a flat softplus."""
    one, two = late(4.0 * z, 0.0), late(0.25 * z, 0.0)
    return one[0] + two[0], 4 * one[1] + 0.25 * two[1], 16 * one[2] + two[2] / 16


def cubed_hinge(z):
    """max(1 - z, 0)^3."""
    gap = np.maximum(1.0 - z, 0.0)
    return gap**3, -3.0 * gap**2, 6.0 * gap


STRANGE = {
    "bent_line": bent_line,
    "late": late,
    "two_slopes": two_slopes,
    "cubed_hinge": cubed_hinge,
}


@pytest.fixture
def strange(monkeypatch):
    monkeypatch.setattr(REGISTERED, "_own", dict(REGISTERED._own))
    for function in STRANGE.values():
        gbmrank.register_loss(function)


def _margin(loss, z):
    if loss["name"] in STRANGE:
        value, slope, _ = STRANGE[loss["name"]](z)
        return value, slope
    return attack.margin(loss, z)


# Expected losses of many distributions ---------------------------------------------------------


def _utilities(part, labels):
    rows = labels.reshape(-1, labels.shape[-1])
    known: dict[tuple[float, ...], np.ndarray] = {}
    for row in map(tuple, rows.tolist()):
        if row not in known:
            known[row] = np.asarray(attack.utility(part, np.array(row)), float)
    return np.array([known[tuple(row)] for row in rows.tolist()]).reshape(labels.shape)


def _pairs(loss, w, s):
    value, slope = _margin(loss, s[:, :, None] - s[:, None])
    slopes = w * slope
    return (w * value).sum((1, 2)), slopes.sum(2) - slopes.sum(1)


def expected(objective, labels, p):
    """Return scores (B, n) -> losses (B,) and gradients, for labels (B, m, n) and p (B, m)."""
    template, n = objective["template"], labels.shape[-1]
    if template == "mix":
        parts = [expected(part, labels, p) for part in objective["parts"]]

        def mixed(s):
            found = [(w, part(s)) for w, part in zip(objective["weights"], parts, strict=True)]
            return sum(w * one[0] for w, one in found), sum(w * one[1] for w, one in found)

        return mixed
    if template in ("comparison", "bipartite"):
        wins = (labels[..., :, None] > labels[..., None, :]) * 1.0
        if template == "bipartite":
            r = attack.relevance(objective["threshold"], labels)
            count = np.maximum(r.sum(-1) * (1 - r).sum(-1), 1.0)
            wins = r[..., :, None] * (1 - r)[..., None, :] / count[..., None, None]
        w = np.einsum("bm,bmij->bij", p, wins)
        return lambda s: _pairs(objective["loss"], w, s)
    if template == "linear":
        f = np.einsum("bm,bmn->bn", p, n * labels - labels.sum(-1, keepdims=True))
        return lambda s: ((0.5 * s * s - f * s).sum(1), s - f)
    u = _utilities(objective["target"], labels)
    if objective["loss"] == "softmax":
        total = u.sum(-1, keepdims=True)
        u = np.where(total > 0, u / np.where(total > 0, total, 1.0), 0.0)
    mean = np.einsum("bm,bmn->bn", p, u)
    if template == "pairwise":
        if objective["loss"]["name"] == "squared":
            return lambda s: _parabola(s - mean)
        return lambda s: _pairs(objective["loss"], mean[:, :, None] * (1 - np.eye(n)), s)
    return _items(objective, mean)


def _parabola(gap):
    centred = gap - gap.mean(1, keepdims=True)
    return gap.shape[1] * (centred**2).sum(1), 2 * gap.shape[1] * centred


def _items(objective, mean):
    name, weight = objective["loss"], objective.get("item_weights", np.ones(5))[: mean.shape[1]]
    if name == "softmax_ce" or name == "softmax":
        total = mean.sum(1, keepdims=True)

        def soft(s):
            top = s.max(1, keepdims=True)
            e = np.exp(s - top)
            lse = top + np.log(e.sum(1, keepdims=True))
            return (mean * (lse - s)).sum(1), total * e / e.sum(1, keepdims=True) - mean

        return soft

    def summed(s):
        e, eta = np.exp(np.clip(s, None, 60)), objective.get("eta", 1.0)
        if name == "squared" or (isinstance(name, dict) and name["name"] == "squared"):
            each, slope = (s - mean) ** 2, 2 * (s - mean)
        elif name == "poisson":
            each, slope = e - mean * s, e - mean
        elif name == "binary_entropy":
            each, slope = eta * np.logaddexp(0, s) - mean * s, eta / (1 + np.exp(-s)) - mean
        elif name == "itakura_saito":
            each, slope = (mean + 1e-3) / e + s, 1 - (mean + 1e-3) / e
        else:
            one, slope_1, two, slope_2 = (
                attack.partials(name, s) if name["name"] not in STRANGE
                else (*_margin(name, s), _margin(name, -s)[0], -_margin(name, -s)[1])
            )  # fmt: skip
            each = mean * one + (eta - mean) * two
            slope = mean * slope_1 + (eta - mean) * slope_2
        return (weight * each).sum(1), weight * slope

    return summed


def minimisers(risk, count, n):
    """Damped Newton steps on all distributions at once; scores, and which are minima."""
    best, value = np.zeros((count, n)), np.full(count, np.inf)
    for start in (np.zeros(n), np.random.default_rng(n).normal(size=n)):
        s = np.tile(start, (count, 1))
        now, grad = risk(s)
        damping = np.full(count, 1e-8)
        for _ in range(70):
            columns = [(risk(s + 1e-5 * e)[1] - risk(s - 1e-5 * e)[1]) / 2e-5 for e in np.eye(n)]
            hessian = np.stack(columns, 1)
            values, vectors = np.linalg.eigh(0.5 * (hessian + hessian.transpose(0, 2, 1)))
            scale = np.abs(values).max(1, keepdims=True) + 1e-12
            along = np.einsum("bij,bi->bj", vectors, -grad)
            bends = np.maximum(np.abs(values), 1e-9 * scale) + damping[:, None] * scale
            step = np.einsum("bij,bj->bi", vectors, along / bends)
            step *= np.minimum(1.0, 4.0 / np.maximum(np.abs(step).max(1, keepdims=True), 1e-12))
            tried = np.clip(s + step, -40.0, 40.0)
            new, slope = risk(tried)
            good = new <= now + 1e-15 * (1 + np.abs(now))
            s = np.where(good[:, None], tried, s)
            grad = np.where(good[:, None], slope, grad)
            now = np.where(good, new, now)
            damping = np.where(
                good, np.maximum(damping * 0.1, 1e-12), np.maximum(damping * 10, 1e-6)
            )
            if np.all((np.abs(grad).max(1) < 1e-10 * (1 + np.abs(now))) | (damping > 1e8)):
                break
        lower = now < value
        best, value = np.where(lower[:, None], s, best), np.where(lower, now, value)
    flat = np.abs(risk(best)[1]).max(1) < 1e-6 * (1 + np.abs(value))
    return best, flat & (np.abs(best).max(1) < 25)


# Judging ---------------------------------------------------------------------------------------

RATIONAL = {"dcg", "precision", "recall", "wta", "auc", "spearman", "disagreement", "map"}


def _exact_utility(part, y):
    """Return u as fractions, for utilities that are rational at these labels; else None."""
    y, n = [Fraction(round(10 * v), 10) for v in y], len(y)
    name, gain = part["name"], part.get("gain")
    if name == "disagreement":
        return y
    if name == "spearman":
        return [sum((b < a) + Fraction(b == a, 2) for b in y) - Fraction(1, 2) for a in y]
    if name == "dcg":
        if gain == "linear":
            return y
        if any(v.denominator > 1 for v in y):
            return None
        return [Fraction(2 ** int(v) - 1 if gain == "exp2" else gain[int(v)]) for v in y]
    at = part.get("threshold")
    r = [Fraction(v > 0 if at is None else v >= Fraction(round(10 * at), 10)) for v in y]
    total = sum(r)
    over = {"recall": total, "map": total, "auc": total * (n - total)}.get(name, Fraction(1))
    return [v / over if over else Fraction(0) for v in r]


def _lost(metric, labels, weights, u, scores):
    """Return what sorting by these scores loses; expected utilities that nearly tie are exact."""
    p = weights / weights.sum()
    mean = p @ u
    phi = attack.discount(metric, len(scores))
    rounded = np.round(scores / max(np.abs(scores).max(), 1.0), 5)
    order = np.lexsort((-mean, -rounded))
    best = np.sort(mean)[::-1]
    lost = phi @ best - phi @ mean[order]
    size = max(phi @ best - phi @ best[::-1], 1e-9)
    inverted = [(a, b) for a, b in itertools.combinations(order, 2) if mean[a] < mean[b]]
    exact = bool(inverted) and metric["name"] in RATIONAL and max(
        mean[b] - mean[a] for a, b in inverted) < 1e-9  # fmt: skip
    if exact:
        rows = [_exact_utility(metric, y) for y in labels]
        if None not in rows:
            whole = [sum(int(w) * row[i] for w, row in zip(weights, rows, strict=True))
                     for i in range(len(scores))]  # fmt: skip
            assert all(whole[a] >= whole[b] for a, b in inverted) or lost <= 1e-9 * size
    return lost / size


def _conditions(verdict):
    condition = verdict.condition
    return condition.parts if isinstance(condition, theory.AllOf) else (
        () if condition is None else (condition,))  # fmt: skip


def _drawn(rng, objective, metric, parts):
    """Return labels (B, m, n) and whole weights (B, m) of distributions that meet a condition."""
    limit = min([5, *(each.n for each in parts if isinstance(each, theory.MaxItems))])
    n = int(rng.integers(2, limit + 1))
    kinds = tuple(type(each) for each in parts)
    if theory.IndependentLabels in kinds:
        if any(getattr(each, "threshold", None) is not None or each.graded
               for each in parts if isinstance(each, theory.IndependentLabels)):  # fmt: skip
            return None
        n = min(n, 3)
        vectors = np.array(list(itertools.product((0.0, 1.0), repeat=n)))
        eta = rng.integers(1, 10, (BATCH, 1, n))
        weights = np.where(vectors[None] == 1.0, eta, 10 - eta).prod(-1)
        return np.tile(vectors, (BATCH, 1, 1)), weights
    pool = np.array(attack.pick(rng, *attack.POOLS), float)
    if theory.BinaryLabels in kinds:
        pool = np.array([0.0, 1.0])
    low = max([-math.inf, *(each.low for each in parts if isinstance(each, theory.LabelsFrom))])
    pool = pool[pool >= low]
    if len(pool) < 2 or not attack.takes(metric, pool):
        return None
    labels = np.round(rng.choice(pool, (BATCH, 5, n)), 1)
    weights = rng.integers(1, 10, (BATCH, 5))
    if not attack.accepts(objective, labels.reshape(-1, n)):
        return None
    holds = [all(each.holds(theory.Distribution(y, w)) for each in parts
                 if not isinstance(each, theory.MaxItems | theory.BinaryLabels | theory.LabelsFrom))
             for y, w in zip(labels, weights, strict=True)]  # fmt: skip
    return (labels[holds], weights[holds]) if any(holds) else None


TABLES = ((0, 0, 1), (1, 1, 1, 2), (0, 0, 3, 3), (0, 5, 5), (2, 2, 7))


def _composition(rng):
    objective = attack.draw_objective(rng)
    for part in objective.get("parts", [objective]):
        if part.get("target", {}).get("gain") and rng.random() < 0.3:
            part["target"]["gain"] = attack.pick(rng, *TABLES)
        if isinstance(part.get("loss"), dict) and rng.random() < 0.25:
            part["loss"] = {"name": attack.pick(rng, *STRANGE)}
    if objective["template"] == "pointwise":  # in a sum they would move one part alone
        objective["item_weights"] = rng.integers(1, 9, 5) / 3.0
    metric = attack.draw_metric(rng, objective.get("parts", [objective])[0].get("target"))
    return objective, metric


def _run(rng, wanted):
    counts: Counter[str] = Counter()
    while counts["checks"] < wanted:
        objective, metric = _composition(rng)
        try:
            words = attack.objective_text(objective), attack.text(metric)
            verdict = theory.calibration(*words)
        except GbmrankError:  # a loss that a template rejects, such as an item loss of pairs
            counts["rejected"] += 1
            continue
        counts[verdict.status] += 1
        if verdict.status not in ("calibrated", "conditional"):
            continue
        for _ in range(2):
            drawn = _drawn(rng, objective, metric, _conditions(verdict))
            if drawn is None:
                continue
            labels, weights = drawn
            p = weights / weights.sum(1, keepdims=True)
            risk = expected(objective, labels, p)
            scores, sure = minimisers(risk, len(labels), labels.shape[-1])
            u = _utilities(metric, labels)
            counts["diverge"] += int((~sure).sum())
            for row in np.flatnonzero(sure):
                lost = _lost(metric, labels[row], weights[row], u[row], scores[row])
                assert lost < 1e-3, (words, labels[row].tolist(), weights[row].tolist(), lost)
            counts["checks"] += int(sure.sum())
            counts.update({str(type(each).__name__): int(sure.sum())
                           for each in _conditions(verdict)})  # fmt: skip
    return counts


@pytest.mark.parametrize("checks", [3000, pytest.param(CHECKS, marks=pytest.mark.nightly)])
@pytest.mark.usefixtures("strange")
def test_no_verdict_falls_on_distributions_that_meet_its_condition(checks):
    counts = _run(np.random.default_rng(checks), checks)
    print(dict(counts))
    assert counts["checks"] >= checks
    assert counts["calibrated"] > checks // 600


def _average_precision(labels, order):
    hits, total = 0, Fraction(0)
    for rank, i in enumerate(order, 1):
        hits += labels[i]
        total += Fraction(hits * labels[i], rank)
    return total / sum(labels) if any(labels) else Fraction(0)


@pytest.mark.parametrize("checks", [200, pytest.param(CHECKS // 20, marks=pytest.mark.nightly)])
def test_reinforcement_decides_average_precision_exactly(checks):
    """Where it holds exactly, no order by the diagonal, ties in any order, loses anything."""
    rng, done = np.random.default_rng(7), 0
    while done < checks:
        n = int(rng.integers(2, 5))
        vectors = rng.integers(0, 2, (int(rng.integers(1, 5)), n)).tolist()
        weights = [int(w) for w in rng.integers(1, 7, len(vectors))]
        if not _exact_reinforcement(vectors, weights):
            continue
        done += 1
        orders = list(itertools.permutations(range(n)))
        values = [sum(w * _average_precision(y, o) for w, y in zip(weights, vectors, strict=True))
                  for o in orders]  # fmt: skip
        share = [sum(Fraction(w * y[i], max(sum(y), 1))
                     for w, y in zip(weights, vectors, strict=True)) for i in range(n)]  # fmt: skip
        for order, value in zip(orders, values, strict=True):
            if all(share[a] >= share[b] for a, b in itertools.pairwise(order)):
                assert value == max(values), (vectors, weights, order)


@pytest.mark.parametrize("checks", [200, pytest.param(CHECKS // 5, marks=pytest.mark.nightly)])
def test_the_degree_condition_decides_graphs_exactly(checks):
    """Where it holds, sorting net degrees is best of all orders, with fractions."""
    rng, done = np.random.default_rng(8), 0
    condition = theory.calibration(
        "linear", "pairwise_disagreement(normalize=false)", graphs=True
    ).condition
    while done < checks:
        n = int(rng.integers(2, 5))
        tenths = (
            rng.integers(0, 5, (n, n)) * (rng.random((n, n)) < 0.7) * (1 - np.eye(n, dtype=int))
        )
        if not tenths.any() or not condition.holds(theory.Distribution([tenths / 10], [1.0])):
            continue
        done += 1
        a = tenths.tolist()
        degree = [sum(a[i]) - sum(row[i] for row in a) for i in range(n)]
        cost = {o: sum(a[j][i] for i, j in itertools.combinations(o, 2))
                for o in itertools.permutations(range(n))}  # fmt: skip
        for order, value in cost.items():
            if all(degree[x] >= degree[y] for x, y in itertools.pairwise(order)):
                assert value == min(cost.values()), (a, order)
