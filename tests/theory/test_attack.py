"""Random compositions, attacked by an optimiser that shares no code with what it attacks.

Losses, utilities and metrics are written again here, in numpy, from their formulas; scipy
minimises. Every "calibrated" verdict is attacked on distributions near which the metric changes its
mind, every "not calibrated" one is verified again on its counterexample.
"""

import os
from collections import Counter

import numpy as np
import pytest
from scipy.optimize import minimize

from gbmrank import theory

DRAWS = int(os.environ.get("GBMRANK_ATTACKS", "1500"))
SEEDS = range(int(os.environ.get("GBMRANK_ATTACK_SEEDS", "2")))


# Gains and utilities ------------------------------------------------------------------------


def gain(kind, y):
    if kind == "exp2":
        return 2.0**y - 1.0
    if kind == "linear":
        return y
    return np.array(kind, float)[y.astype(int)]


def relevance(threshold, y):
    return (y > 0 if threshold is None else y >= threshold).astype(float)


def log2(n, k=None):
    phi = 1.0 / np.log2(np.arange(2, n + 2))
    return np.where(np.arange(n) < (k or n), phi, 0.0)


def utility(part, y):
    """Return u of one label vector; zeros where undefined."""
    name, n = part["name"], len(y)
    if name in ("identity", "disagreement"):
        return y
    if name == "net_degree":
        return n * y - y.sum()
    if name == "dcg":
        return gain(part["gain"], y)
    if name == "ndcg":
        g = gain(part["gain"], y)
        ideal = np.sort(g)[::-1] @ log2(n, part["k"])
        return g / ideal if ideal > 0 else 0 * g
    if name == "spearman":
        return np.array([(y < one).sum() + 0.5 * ((y == one).sum() - 1) for one in y])
    if name == "eru":
        worth = np.maximum(y - part["neutral"], 0.0)
        if not part.get("normalize"):
            return worth
        best = np.sort(worth)[::-1] @ 2.0 ** (-np.arange(n) / 4.0)
        return worth / best if best > 0 else worth
    if name == "disagreement_share":
        total = np.abs(y[:, None] - y[None]).sum() / 2
        return y / total if total > 0 else 0 * y
    r = relevance(part["threshold"], y)
    p = r.sum()
    if name in ("precision", "wta"):
        return r
    if name in ("recall", "map"):
        return r / p if p else r
    return r / (p * (n - p)) if 0 < p < n else 0 * r  # auc


def takes(part, pool):
    """Whether a utility takes labels of a pool (an array of different labels)."""
    if part["name"] in ("dcg", "ndcg"):
        if isinstance(part["gain"], tuple):
            return bool(np.all(np.isin(pool, np.arange(len(part["gain"])))))
        return pool.min() >= 0
    if part["name"] in ("precision", "wta", "recall", "map", "auc") and part["threshold"] is None:
        return set(pool) <= {0.0, 1.0}
    return True


def discount(part, n):
    name = part["name"]
    if name in ("dcg", "ndcg"):
        return log2(n, part["k"])
    if name in ("precision", "recall", "wta"):
        k = 1 if name == "wta" else part["k"]
        return (np.arange(n) < (k or n)).astype(float)
    if name == "eru":
        return 2.0 ** (-np.arange(n) / 4.0)
    return np.arange(n - 1.0, -1.0, -1.0)  # auc, spearman, disagreement


def text(part):
    name = {"disagreement": "pairwise_disagreement", "disagreement_share": "pairwise_disagreement"}
    options = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in part.items()
        if key in ("gain", "threshold", "neutral") and value is not None
    }
    if part["name"] == "eru" and part.get("normalize"):
        options["normalize"] = "true"
    if part["name"] == "eru" and not part.get("metric"):
        options["max_grade"] = 9
    if part["name"] == "disagreement":
        options["normalize"] = "false"
    inside = ", ".join(f"{key}={value}" for key, value in options.items())
    cut = f"@{part['k']}" if part.get("k") else ""
    return name.get(part["name"], part["name"]) + (f"({inside})" if inside else "") + cut


# Losses: value and slope ---------------------------------------------------------------------


def _soft(z):
    return np.logaddexp(0.0, z)


def _sigma(z):
    return 1.0 / (1.0 + np.exp(-np.clip(z, -500, 500)))


def margin(loss, z):
    """Return phi(z) and its slope, z an array of margins."""
    name = loss["name"]
    if name == "logistic":
        a = loss["sigma"]
        return _soft(-a * z), -a * _sigma(-a * z)
    if name == "exponential":
        e = np.exp(np.clip(-z, None, 200))
        return e, -e
    if name == "squared_margin":
        return (1 - z) ** 2, -2 * (1 - z)
    if name in ("squared_hinge", "squared_hinge_margin"):
        gap = np.maximum(1 - z, 0)
        return gap**2, -2 * gap
    if name == "canonical_boosting":
        root = np.sqrt(1 + z * z / 4)
        return root - z / 2, z / (4 * root) - 0.5
    if name == "brier_sigmoid":
        s = _sigma(-z)
        return s**2, -2 * s * s * (1 - s)
    if name == "p_classification":
        p = loss["p"]
        one, two = np.exp(np.clip(-z, None, 200)), np.exp(np.clip(-p * z, None, 200))
        return 0.5 * (one + two / p), -0.5 * (one + two)
    raise ValueError(name)


def partials(loss, s):
    """Return l1, its slope, l-1 and its slope."""
    name = loss["name"]
    if name == "squared_hinge":
        t = loss["t"]
        return (np.maximum(t - s, 0) ** 2, -2 * np.maximum(t - s, 0), np.maximum(s, 0) ** 2,
                2 * np.maximum(s, 0))  # fmt: skip
    if name == "differentiable_hinge":
        a = loss["alpha"]

        def bent(x):
            inside = np.clip(x, 0, a)
            return inside * (np.maximum(x, 0) - inside / 2) / a, inside / a

        (one, slope_1), (two, slope_2) = bent(1 - s), bent(s)
        return one, -slope_1, two, slope_2
    if name == "p_classification":
        p = loss["p"]
        one, two = np.exp(np.clip(-s, None, 200)), np.exp(np.clip(p * s, None, 200))
        return one, -one, two / p, two
    (one, slope_1), (two, slope_2) = margin(loss, s), margin(loss, -s)
    return one, slope_1, two, -slope_2


LOSSES = (
    {"name": "logistic", "sigma": 1.0},
    {"name": "logistic", "sigma": 0.3},
    {"name": "exponential"},
    {"name": "squared"},
    {"name": "squared_margin"},
    {"name": "squared_hinge", "t": 2.0},
    {"name": "squared_hinge_margin"},
    {"name": "canonical_boosting"},
    {"name": "brier_sigmoid"},
    {"name": "p_classification", "p": 3.0},
    {"name": "differentiable_hinge", "alpha": 0.2},
)
GENERATORS = ("squared", "softmax", "softmax_ce", "poisson", "binary_entropy", "itakura_saito")


def loss_text(loss):
    options = ", ".join(f"{key}={value}" for key, value in loss.items() if key != "name")
    return loss["name"] + (f"({options})" if options else "")


def risk(objective, vectors, p):
    """Return the expected loss of scores and its gradient, as a function."""
    if objective["template"] == "mix":
        parts = [risk(part, vectors, p) for part in objective["parts"]]
        factors = objective["weights"]
        return lambda s: tuple(
            sum(w * one for w, one in zip(factors, each, strict=True))
            for each in zip(*(part(s) for part in parts), strict=True)
        )
    rows = [(q, *_terms(objective, y)) for q, y in zip(p, vectors, strict=True)]

    def expected(s):
        values = [(q, loss(s)) for q, loss in rows]
        return sum(q * v[0] for q, v in values), sum(q * v[1] for q, v in values)

    return expected


def _terms(objective, y):
    template = objective["template"]
    if template == "comparison":
        return (lambda s: _pairs(objective["loss"], (y[:, None] > y[None]).astype(float), s),)
    if template == "bipartite":
        r = relevance(objective["threshold"], y)
        pairs = max(r.sum() * (1 - r).sum(), 1.0)
        return (lambda s: _pairs(objective["loss"], np.outer(r, 1 - r) / pairs, s),)
    if template == "linear":
        f = len(y) * y - y.sum()
        return (lambda s: (-f @ s + 0.5 * s @ s, s - f),)
    u = utility(objective["target"], y)
    if template == "pairwise":
        if objective["loss"]["name"] == "squared":
            n = len(u)

            def difference(s):
                r = (s - u) - (s - u).mean()
                return n * r @ r, 2 * n * r

            return (difference,)
        weights = np.outer(u, np.ones(len(u))) * (1 - np.eye(len(u)))
        return (lambda s: _pairs(objective["loss"], weights, s),)
    if template == "pointwise":
        return (lambda s: _items(objective, u, s),)
    return (lambda s: _bregman(objective, u, s),)


def _pairs(loss, weights, s):
    value, slope = margin(loss, s[:, None] - s[None])
    slopes = weights * slope
    return float((weights * value).sum()), slopes.sum(axis=1) - slopes.sum(axis=0)


def _items(objective, u, s):
    if objective["loss"]["name"] == "squared":
        return float(((u - s) ** 2).sum()), 2 * (s - u)
    eta = objective["eta"]
    one, slope_1, two, slope_2 = partials(objective["loss"], s)
    return float((u * one + (eta - u) * two).sum()), u * slope_1 + (eta - u) * slope_2


def _bregman(objective, u, s):
    name, e = objective["loss"], np.exp(np.clip(s, None, 200))
    if name == "squared":
        return float(((u - s) ** 2).sum()), 2 * (s - u)
    if name == "poisson":
        return float((e - u * s).sum()), e - u
    if name == "binary_entropy":
        eta = objective["eta"]
        return float((eta * _soft(s) - u * s).sum()), eta * _sigma(s) - u
    if name == "itakura_saito":
        ratio = (u + 1e-3) / e
        return float((ratio + s).sum()), 1 - ratio
    total = u.sum()
    if name == "softmax":
        u, total = (u / total, 1.0) if total > 0 else (u, 0.0)
    top = s.max()
    lse = top + np.log(np.exp(s - top).sum())
    return float((u * (lse - s)).sum()), total * np.exp(s - lse) - u


def minimiser(expected, n):
    """Return the best of a few descents, and its slope."""
    found = []
    for start in (np.zeros(n), np.random.default_rng(n).normal(size=n)):
        at = start
        for _ in range(3):
            options = {"ftol": 1e-16, "gtol": 1e-12, "maxiter": 3000, "maxls": 60}
            box = [(-60.0, 60.0)] * n
            at = minimize(expected, at, (), "L-BFGS-B", True, bounds=box, options=options).x
        found.append((expected(at)[0], at))
    return min(found, key=lambda one: one[0])[1]


# Compositions ---------------------------------------------------------------------------------


def pick(rng, *choices):
    return choices[int(rng.integers(len(choices)))]


def draw_gain(rng):
    tables = ((0, 1, 10), (0, 1, 3, 7), (0, 3, 2, 1), (0, 2, 20), (1, 2, 4), (0, 1, 1))
    return pick(rng, "exp2", "linear", *tables)


def draw_target(rng):
    name = pick(rng, "identity", "dcg", "dcg", "ndcg", "ndcg", "precision", "recall", "auc", "map",
                "spearman", "eru", "net_degree")  # fmt: skip
    part = {"name": name, "threshold": pick(rng, None, 0.5, 1, 2, 5), "gain": draw_gain(rng)}
    part |= {"k": pick(rng, None, 1, 3, 5, 10), "neutral": pick(rng, 0, 1, 2, 5, -1)}
    keep = {"dcg": ("gain",), "ndcg": ("gain", "k"), "eru": ("neutral",)}
    keep |= dict.fromkeys(("precision", "recall", "auc", "map"), ("threshold",))
    return {key: value for key, value in part.items() if key in ("name", *keep.get(name, ()))}


def draw_metric(rng, target):
    """Return a metric: often that of the target, or a neighbour of it."""
    if rng.random() < 0.6 and target is not None and target["name"] not in ("identity", "map"):
        part = dict(target)
        part["name"] = {"net_degree": "disagreement"}.get(part["name"], part["name"])
        if rng.random() < 0.4:
            part |= {key: value for key, value in draw_target(rng).items() if key in part}
            part["name"] = {"net_degree": "disagreement"}.get(target["name"], target["name"])
        if part["name"] in ("dcg", "precision", "recall"):
            part["k"] = pick(rng, 1, 2, 5) if part["name"] != "dcg" else pick(rng, None, 1, 5)
    else:
        part = draw_target(rng)
        rename = {"identity": "disagreement", "map": "wta", "net_degree": "disagreement_share"}
        part["name"] = rename.get(part["name"], part["name"])
        if part["name"] in ("dcg", "precision", "recall"):
            part["k"] = pick(rng, 1, 2, 5, 10)
    if part["name"] == "eru":
        part |= {"normalize": bool(rng.random() < 0.3)}
    return part | {"metric": True}


def draw_objective(rng, depth=0):
    template = pick(rng, "pairwise", "pairwise", "pointwise", "pointwise", "bregman", "linear",
                    *(("mix", "comparison", "bipartite") if depth == 0 else ("mix",)))  # fmt: skip
    if template == "mix" and depth < 2:
        first = draw_objective(rng, 2)
        parts = [first]
        for _ in range(int(rng.integers(1, 3))):
            other = draw_objective(rng, depth + 1)
            if "target" in first and "target" in other and rng.random() < 0.8:
                other["target"] = dict(first["target"])
                if "k" in first["target"]:
                    other["target"]["k"] = pick(rng, first["target"]["k"], None, 5, 10)
            parts.append(other)
        return {"template": "mix", "parts": parts, "weights": rng.uniform(0.2, 2, len(parts))}
    if template == "linear":
        return {"template": "linear"}
    if template == "comparison":
        return {"template": template, "loss": pick(rng, *LOSSES[:3], LOSSES[7])}
    if template == "bipartite":
        loss = pick(rng, *LOSSES[:3], LOSSES[7])
        return {"template": template, "loss": loss, "threshold": pick(rng, None, 1, 2)}
    made = {"template": "pairwise" if template == "mix" else template, "target": draw_target(rng)}
    made["loss"] = pick(rng, *GENERATORS) if template == "bregman" else pick(rng, *LOSSES)
    if made["template"] == "pairwise" and made["loss"]["name"] == "differentiable_hinge":
        made["loss"] = LOSSES[0]
    return made | {"eta": float(pick(rng, 1, 2, 15, 40))}


def objective_text(objective):
    if objective["template"] == "mix":
        inside = ", ".join(map(objective_text, objective["parts"]))
        return f"mix({inside}, weights={[round(float(w), 3) for w in objective['weights']]})"
    options = {}
    if "loss" in objective:
        loss = objective["loss"]
        options["loss"] = loss if isinstance(loss, str) else loss_text(loss)
    if "target" in objective:
        options["target"] = text(objective["target"])
    if bounded(objective):
        options["eta"] = objective["eta"]
    if objective.get("threshold") is not None:
        options["threshold"] = objective["threshold"]
    inside = ", ".join(f"{key}={value}" for key, value in options.items())
    return f"{objective['template']}({inside})" if inside else objective["template"]


def bounded(objective):
    name = objective.get("loss") if isinstance(objective.get("loss"), str) else None
    squared = not isinstance(objective.get("loss"), str) and objective.get("loss", {}).get("name")
    return (objective["template"] == "pointwise" and squared != "squared") or (
        name == "binary_entropy"
    )


def accepts(objective, vectors):
    """Whether an objective takes label vectors."""
    if objective["template"] == "mix":
        return all(accepts(part, vectors) for part in objective["parts"])
    pool = np.unique(vectors)
    if objective["template"] == "bipartite":
        return objective["threshold"] is not None or set(pool) <= {0.0, 1.0}
    if "target" not in objective:
        return True
    if not takes(objective["target"], pool):
        return False
    u = np.array([utility(objective["target"], y) for y in vectors])
    squared = objective["loss"] == "squared" or (
        not isinstance(objective["loss"], str) and objective["loss"]["name"] == "squared"
    )
    top = objective["eta"] if bounded(objective) else np.inf
    return squared or bool(u.min() >= 0 and u.max() <= top)


POOLS = (
    (0, 1), (0, 1, 2), (0, 1, 2, 3), (0, 1, 2, 3, 4, 5, 6), (0, 0.5, 1), (0, 0.3, 1.7, 2.2, 3.9),
    (-2, -0.5, 0, 1, 2.5), (4, 5, 5.5, 6, 7), (0, 7),
)  # fmt: skip


def distributions(rng, objective, metric):
    """Yield label vectors and probabilities near which the metric changes its mind."""
    for _ in range(12):
        n = int(pick(rng, 2, 3, 4, 4, 6, 6, 8, 11, 12, 21, 30))
        pool = np.array(pick(rng, *POOLS), float)
        if not takes(metric, pool):
            continue
        m = int(pick(rng, 2, 2, 3, 4))
        density = rng.random()
        vectors = np.where(rng.random((m, n)) < density, rng.choice(pool, (m, n)), pool[0])
        vectors = np.concatenate(
            [vectors, rng.permutation(vectors.T).T[:1], rng.choice(pool, (2, n))]
        )
        if not accepts(objective, vectors):
            continue
        p = np.concatenate([rng.dirichlet(np.ones(m + 1)), [0.04, 0.03]])
        u = np.array([utility(metric, y) for y in vectors])
        i, j = rng.choice(n, 2, replace=False)
        gap = u[:, i] - u[:, j]
        up, down = p @ np.maximum(gap, 0), p @ np.maximum(-gap, 0)
        if up > 0 and down > 0:  # make the two nearly equal in worth, on one side or the other
            near = 1.0 + rng.choice([-1, 1]) * rng.choice([0.02, 0.1])
            p = np.where(gap > 0, p * near * down / up, p)
        yield vectors, p / p.sum()


def regret(metric, vectors, p, scores):
    """Return what ranking by scores loses, relative to the range of values."""
    wanted = p @ np.array([utility(metric, y) for y in vectors])
    phi = discount(metric, len(scores))
    best = phi @ np.sort(wanted)[::-1]
    worst = phi @ np.sort(wanted)
    # Ties within the accuracy of the optimiser in favour of the metric.
    rounded = np.round(scores / max(np.abs(scores).max(), 1.0), 4)
    order = np.lexsort((-wanted, -rounded))
    return (best - phi @ wanted[order]) / max(best - worst, 1e-12)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", SEEDS)
def test_no_calibrated_verdict_falls(seed):
    rng = np.random.default_rng(seed)
    counts: Counter[str] = Counter()
    for _ in range(DRAWS):
        objective = draw_objective(rng)
        parts = objective.get("parts", [objective])
        metric = draw_metric(rng, parts[0].get("target"))
        words = (objective_text(objective), text(metric))
        verdict = theory.calibration(*words)
        counts[verdict.status] += 1
        limit = verdict.condition.n if isinstance(verdict.condition, theory.MaxItems) else 99
        binary = isinstance(verdict.condition, theory.BinaryLabels)
        low = getattr(verdict.condition, "low", -np.inf)
        sure = limit < 99 or binary or low > -np.inf or verdict.status == "calibrated"
        if verdict.counterexample is not None:
            counts["examples"] += _verified(objective, metric, verdict.counterexample, words)
        for vectors, p in distributions(rng, objective, metric) if sure else ():
            if vectors.shape[1] > limit or vectors.min() < low:
                continue
            if binary and not np.isin(vectors, (0.0, 1.0)).all():
                continue
            counts["attacks"] += 1
            expected = risk(objective, vectors, p)
            lost = regret(metric, vectors, p, minimiser(expected, vectors.shape[1]))
            assert lost < 1e-3, (words, vectors.tolist(), p.tolist(), lost)
    print(f"seed {seed}: {dict(counts)}")
    assert counts["attacks"] >= DRAWS // 4
    assert counts["calibrated"] >= DRAWS // 20


def _verified(objective, metric, example, words):
    """Verify a counterexample: the minimiser of my own loses."""
    vectors, p = np.array(example.labels), np.array(example.probabilities)
    assert accepts(objective, vectors), (words, example)
    assert takes(metric, np.unique(vectors)), (words, example)
    expected = risk(objective, vectors, p / p.sum())
    scores = minimiser(expected, vectors.shape[1])
    lost = regret(metric, vectors, p / p.sum(), scores)
    flat = np.abs(scores).max() > 25  # a minimum that is not attained: scores run off
    assert lost > 1e-6 or flat, (words, example, scores)
    return int(not flat)


def test_the_attack_notices_a_wrong_order():
    """The optimiser and the judge are worth something: a wrong target falls at once."""
    rng = np.random.default_rng(0)
    target = {"name": "dcg", "gain": "linear"}
    objective = {"template": "pairwise", "loss": {"name": "squared"}, "target": target, "eta": 1.0}
    metric = {"name": "dcg", "gain": (0, 1, 10), "k": None, "metric": True}
    lost = [
        regret(metric, vectors, p, minimiser(risk(objective, vectors, p), vectors.shape[1]))
        for _ in range(8)
        for vectors, p in distributions(rng, objective, metric)
    ]
    assert np.mean(np.array(lost) > 1e-3) > 0.1
