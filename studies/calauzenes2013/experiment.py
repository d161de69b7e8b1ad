"""Regret bounds of order-preserving losses, traced while boosting proceeds; and Theorem 3.3.

Queries are of finitely many types. A type fixes the features of its items and a finite
distribution of their label vectors, so expected losses, their minima and the best expected
NDCG are exact, and both regrets of a model are too.

Theorem 3.3 is about ERR and AP. Labels are (1, 1, 0, 0) or (0, 0, 1, 1) with equal chances. All
items are equally useful in expectation, so an order-preserving loss accepts every order, but ERR
and AP do not.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gbmrank import Groups, RankingData, theory
from gbmrank.api.training_plans import training_plan
from gbmrank.boosters.base import Part, Trained
from gbmrank.boosters.plan import Plan, train
from gbmrank.types import FloatArray, IntArray
from studies.study import Option, Outcome, Settings, Table

TITLE = "Calauzènes et al. 2013: regret bounds"
PAPER = (
    "Calauzenes, Usunier and Gallinari, Calibration and regret bounds for order-preserving "
    "surrogate losses in learning to rank, Machine Learning 93, 2013"
)
OPTIONS: Mapping[str, Option] = {}
FORMULAS = (
    "losses/composite.py",
    "losses/margin.py",
    "losses/gains.py",
    "losses/utilities.py",
    "metrics/positional.py",
    "objectives/levels.py",
    "objectives/pairwise.py",
    "objectives/pointwise.py",
    "theory/bounds.py",
    "theory/distributions.py",
)
NEEDS = ""

_METRIC = "ndcg"
_BACKENDS = ("lightgbm", "xgboost")
_ITEMS, _VECTORS, _FEATURES, _GRADES = 6, 6, 4, 4
_EXACT = 1e-11  # regrets are differences of numbers of order one


class _Loss(NamedTuple):
    """A loss, and its constant as Table 2 prints it, for utilities of at most one."""

    text: str
    formula: str
    printed: float


_LOSSES = (
    _Loss("pointwise(loss=squared, target=ndcg)", "sqrt(2)", np.sqrt(2.0)),
    _Loss("pointwise(loss=logistic, target=ndcg)", "sqrt(eta)", 1.0),
    _Loss("pointwise(loss=exponential, target=ndcg)", "sqrt(eta)", 1.0),
    _Loss("pointwise(loss=squared_hinge, target=ndcg)", "sqrt(2 eta) / t", np.sqrt(2.0)),
    _Loss(
        "pointwise(loss=differentiable_hinge, target=ndcg)",
        "4 sqrt(eta / alpha)",
        4.0 * np.sqrt(2.0),
    ),
    _Loss("pairwise(loss=squared, target=ndcg)", "1", 1.0),
    _Loss("pairwise(loss=logistic, target=ndcg)", "2 sqrt(max U)", 2.0),
    _Loss("pairwise(loss=exponential, target=ndcg)", "2 sqrt(max U)", 2.0),
)
_BASELINE = "comparison(loss=logistic)"  # not order-preserving


class _World(NamedTuple):
    """Query types: features of their items, distributions of their labels."""

    features: FloatArray
    labels: tuple[theory.Distribution, ...]

    def sample(self, times: int, rng: np.random.Generator) -> Part:
        """Draw labels of every type as many times as asked for."""
        drawn = [
            each.labels[rng.choice(len(each.probabilities), times, p=each.probabilities)]
            for each in self.labels
        ]
        labels = np.swapaxes(np.array(drawn), 0, 1).ravel()
        groups = Groups.from_sizes(np.full(times * len(self.labels), _ITEMS), len(labels))
        return Part(np.tile(self.features, (times, 1)), RankingData(labels, groups))


class _Trace(NamedTuple):
    """Regrets of a model after some of its rounds, shape (n_checked, n_types)."""

    rounds: IntArray
    surrogate: FloatArray
    metric: FloatArray


class _Size(NamedTuple):
    types: int
    queries: int
    rounds: int


def run(settings: Settings) -> Outcome:
    """Trace both regrets of every loss and booster, and check the bound at every round.

    Parameters
    ----------
    settings : Settings
        ``data`` is not read. ``small`` takes fewer query types, rounds and losses.
    """
    size = _Size(6, 20, 30) if settings.small else _Size(30, 100, 300)
    losses = _LOSSES[::3] if settings.small else _LOSSES
    rng = np.random.default_rng(settings.seed)
    world = _make_world(size.types, rng)
    sample = world.sample(size.queries, rng)
    texts = [*(loss.text for loss in losses), _BASELINE]
    limits = {text: _limit(world, text) for text in texts}
    traces = {}
    for text in texts:
        for backend in _BACKENDS:
            plan = _plan(text, backend, size.rounds, settings)
            traces[text, backend] = _trace(world, train(plan, sample), limits[text])
            settings.report(f"{text} with {backend}: {size.rounds} rounds")
    factors = {loss.text: theory.regret_bound(loss.text, _METRIC, [_ITEMS], 1.0) for loss in losses}
    return Outcome(
        tables=[_bound_table(losses, factors, traces, limits), *_order_tables()],
        summary=_summary(factors, traces, limits),
        findings=[*_bound_findings(factors, traces, limits), *_order_findings()],
        figures={"regret_bounds": partial(_draw, factors, traces)},
        facts={
            "query types": size.types,
            "items of a query": _ITEMS,
            "label vectors of a type": _VECTORS,
            "queries drawn of each type": size.queries,
            "rounds": size.rounds,
            "learning rate": 0.1,
            "squared hinge": "the squared loss as long as scores stay between 0 and t = eta = 1",
            "C_phi(2) of NDCG": next(iter(factors.values())).c_phi,
            "seed": settings.seed,
        },
    )


def _make_world(types: int, rng: np.random.Generator) -> _World:
    """Draw types whose labels follow their features, with noise that items share."""
    features = rng.normal(size=(types * _ITEMS, _FEATURES))
    worth = 1.6 + 0.9 * features[:, 0] + 0.6 * np.sin(2.0 * features[:, 1])
    distributions = []
    for mean in worth.reshape(types, _ITEMS):
        noise = 1.3 * rng.normal(size=(_VECTORS, _ITEMS))
        labels = np.clip(np.round(mean + noise), 0, _GRADES)
        idle = labels.sum(axis=0) == 0  # a utility of zero has no finite best score
        labels[rng.integers(_VECTORS, size=_ITEMS)[idle], idle] = 1.0
        labels[labels.sum(axis=1) == 0, rng.integers(_ITEMS)] = 1.0
        distributions.append(theory.Distribution(labels, rng.dirichlet(np.full(_VECTORS, 1.5))))
    return _World(features, tuple(distributions))


def _plan(text: str, backend: str, rounds: int, settings: Settings) -> Plan:
    names = {"lightgbm": ("num_leaves", 15), "xgboost": ("max_depth", 4)}
    params = dict([("learning_rate", 0.1), names[backend]])
    return training_plan(
        objective=text,
        metric=_METRIC,
        backend=backend,
        rounds=rounds,
        params=params,
        seed=settings.seed,
        threads=settings.threads,
        keep_best=False,
    )


class _Limit(NamedTuple):
    """Per type: risk, least risk, best NDCG, and the NDCG regret of the minimiser."""

    risks: Sequence[Callable[[FloatArray], tuple[float, FloatArray]]]
    least: FloatArray
    best: FloatArray
    regret: FloatArray


def _limit(world: _World, text: str) -> _Limit:
    minima = [each.minimiser(text) for each in world.labels]
    best = np.array([each.best(_METRIC).value for each in world.labels])
    reached = [
        each.value(_METRIC, np.round(found.scores, 6))  # tells no ties apart by rounding errors
        for each, found in zip(world.labels, minima, strict=True)
    ]
    risks = [each.risk(text) for each in world.labels]
    return _Limit(risks, np.array([m.value for m in minima]), best, best - np.array(reached))


def _trace(world: _World, model: Trained, limit: _Limit) -> _Trace:
    done = model.fitted.n_rounds
    rounds = np.unique(np.geomspace(1, done, 60).round().astype(np.int64))
    surrogate, metric = [], []
    for scores in (_scores_after(model, world.features, int(at)) for at in rounds):
        by_type = scores.reshape(len(world.labels), _ITEMS)
        losses = [risk(row)[0] for risk, row in zip(limit.risks, by_type, strict=True)]
        values = [each.value(_METRIC, row) for each, row in zip(world.labels, by_type, strict=True)]
        surrogate.append(np.array(losses) - limit.least)
        metric.append(limit.best - np.array(values))
    return _Trace(rounds, np.array(surrogate), np.array(metric))


def _scores_after(model: Trained, features: FloatArray, rounds: int) -> FloatArray:
    """Return the scores of the first trees."""
    booster = model.fitted.booster
    if model.fitted.backend == "lightgbm":
        raw = booster.predict(features, raw_score=True, num_iteration=rounds)
    else:
        raw = booster.inplace_predict(
            features, iteration_range=(0, rounds), predict_type="margin", validate_features=False
        )
    return np.asarray(raw, np.float64)


def _used(bound: theory.Bound, trace: _Trace) -> tuple[float, float]:
    """Return the largest share of the bound that was used: by one type, and by the mean."""
    share = trace.metric / (bound.value * np.sqrt(np.maximum(trace.surrogate, _EXACT)))
    means = np.maximum(trace.surrogate.mean(axis=1), _EXACT)
    overall = trace.metric.mean(axis=1) / (bound.value * np.sqrt(means))
    return float(share.max()), float(overall.max())


def _short(text: str) -> str:
    return text.replace("(loss=", " ").replace(", target=ndcg", "").rstrip(")")


def _bound_table(
    losses: Sequence[_Loss],
    factors: Mapping[str, theory.Bound],
    traces: Mapping[tuple[str, str], _Trace],
    limits: Mapping[str, _Limit],
) -> Table:
    columns = ["loss", "booster", "c printed", "c printed, here", "c of gbmrank"]
    columns += ["bound used, one type", "bound used, mean", "surrogate regret, last round"]
    columns += ["NDCG regret, last round", "NDCG regret of the minimiser"]
    printed = {loss.text: (loss.formula, f"{loss.printed:.3f}") for loss in losses}
    rows = []
    for (text, backend), trace in traces.items():
        cells = ["none", "-", "-", "-", "-"]
        if text in factors:
            shares = _used(factors[text], trace)
            cells = [*printed[text], f"{factors[text].constant:.3f}", *(f"{s:.3f}" for s in shares)]
        ends = (trace.surrogate[-1].mean(), trace.metric[-1].mean(), limits[text].regret.mean())
        rows.append([_short(text), backend, *cells, *(f"{abs(end):.5f}" for end in ends)])
    return Table("Table 2: constants, and how much of the bound boosting used", columns, rows)


def _summary(
    factors: Mapping[str, theory.Bound],
    traces: Mapping[tuple[str, str], _Trace],
    limits: Mapping[str, _Limit],
) -> str:
    """Return the result in plain words."""
    covered = {key: trace for key, trace in traces.items() if key[0] in factors}
    checks = sum(trace.metric.size for trace in covered.values())
    kept = checks - _broken(factors, covered)
    floor = limits[_BASELINE].regret
    return (
        f"The paper's bounds on lost NDCG held in {kept:,} of {checks:,} checks with boosted "
        f"trees. A loss that they do not cover ({_short(_BASELINE)}) misses the best order in "
        f"{int(np.sum(floor > 1e-9))} of {len(floor)} query types even at its minimum."
    )


def _broken(factors: Mapping[str, theory.Bound], covered: Mapping[tuple[str, str], _Trace]) -> int:
    """Count the checks in which the metric's regret exceeded the bound."""
    return sum(
        int(np.sum(trace.metric > _allowed(factors[key[0]], trace.surrogate)))
        for key, trace in covered.items()
    )


def _bound_findings(
    factors: Mapping[str, theory.Bound],
    traces: Mapping[tuple[str, str], _Trace],
    limits: Mapping[str, _Limit],
) -> list[str]:
    shares = {
        key: _used(factors[key[0]], trace) for key, trace in traces.items() if key[0] in factors
    }
    checks = sum(traces[key].metric.size for key in shares)
    broken = _broken(factors, {key: traces[key] for key in shares})
    closest = max(shares, key=lambda key: shares[key][0])
    worst = max(float(limits[text].regret.max()) for text in factors)
    floor = limits[_BASELINE].regret
    ends = [traces[_BASELINE, backend].metric[-1].mean() for backend in _BACKENDS]
    return [
        (
            f"Eq. 9 and Table 2: in {checks} checks (rounds, query types, losses, boosters) NDCG "
            f"regret exceeded c C_phi(2) sqrt(surrogate regret) {broken} times; at most "
            f"{shares[closest][0]:.0%} of the bound was used for one query type "
            f"({_short(closest[0])}, {closest[1]}), {max(s[1] for s in shares.values()):.0%} in "
            "the mean over types."
        ),
        (
            "Table 2: c of the differentiable hinge is half of the printed one. A step of the "
            "printed proof fails (eta = 1, alpha = .5, expected utilities 0 and .55); the least "
            "risk is strongly concave with modulus alpha / eta, so c = 2 sqrt(eta / alpha)."
        ),
        (
            f"Thm 3.2: the exact minimisers of the {len(factors)} order-preserving losses have an "
            f"NDCG regret of at most {worst:.1e} for every query type."
        ),
        (
            f"The minimiser of {_short(_BASELINE)}, which is not order-preserving, has a mean NDCG "
            f"regret of {floor.mean():.5f}, above zero in {int(np.sum(floor > 1e-9))} of "
            f"{len(floor)} types; boosting it ended at {min(ends):.5f} to {max(ends):.5f}."
        ),
    ]


def _allowed(bound: theory.Bound, surrogate: FloatArray) -> FloatArray:
    """Return the bound, with room for rounding errors."""
    return bound.value * np.sqrt(np.maximum(surrogate, 0.0) + _EXACT) + _EXACT


def _draw(
    factors: Mapping[str, theory.Bound],
    traces: Mapping[tuple[str, str], _Trace],
    figure: Any,
) -> None:
    """Draw NDCG regret against surrogate regret, one panel per loss."""
    texts = list(dict.fromkeys(text for text, _ in traces))
    across = 3
    down = -(-len(texts) // across)
    figure.set_size_inches(3.4 * across, 2.9 * down)
    figure.set_layout_engine("constrained")
    panels = figure.subplots(down, across, squeeze=False, sharey=True)
    for axes in panels.flat[len(texts) :]:
        axes.set_visible(False)
    for axes, text in zip(panels.flat, texts, strict=False):
        _draw_panel(axes, text, factors.get(text), traces)
    for axes in panels[:, 0]:
        axes.set_ylabel("NDCG regret")
    for axes in panels.flat[max(len(texts) - across, 0) : len(texts)]:
        axes.set_xlabel("surrogate regret")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)


def _draw_panel(
    axes: Any,
    text: str,
    bound: theory.Bound | None,
    traces: Mapping[tuple[str, str], _Trace],
) -> None:
    reached = []
    for backend, colour in zip(_BACKENDS, ("tab:blue", "tab:orange"), strict=True):
        trace = traces[text, backend]
        x, y = trace.surrogate.mean(axis=1), trace.metric.mean(axis=1)
        axes.loglog(x, y, "o-", ms=2.5, lw=0.8, color=colour, label=backend)
        reached += [x.min(), x.max()]
    if bound is not None:
        ends = np.array([min(reached) / 1.5, max(reached) * 1.5])
        axes.loglog(ends, bound.value * np.sqrt(ends), "k--", lw=1, label="bound")
    axes.set_title(_short(text) + ("" if bound is not None else " (no bound)"), fontsize=9)
    axes.tick_params(which="minor", labelbottom=False)
    axes.grid(alpha=0.3, lw=0.5)


_ORDERS = {"0, 1, 2, 3": (4.0, 3.0, 2.0, 1.0), "0, 2, 1, 3": (4.0, 2.0, 3.0, 1.0)}
_PRINTED_CHANGES = {"err(max_grade=1)": (1 / 24, 1 / 48), "map": (-1 / 12, -1 / 24)}
"""The change from the first order to the second: as printed, and as it is."""
_WRONG_FOR = {"err(max_grade=1)": "0, 1, 2, 3", "map": "0, 2, 1, 3"}
_PRESERVING = "pairwise(loss=logistic, target=precision)"
_TILT = 1e-4


def _order_values() -> dict[str, dict[str, float]]:
    """Return ERR and AP of two orders that expected utilities do not tell apart."""
    labels = theory.Distribution([[1, 1, 0, 0], [0, 0, 1, 1]], [0.5, 0.5])
    return {
        measure: {name: labels.value(measure, scores) for name, scores in _ORDERS.items()}
        for measure in ("err(max_grade=1)", "map")
    }


def _tilted(order: str, measure: str, text: str) -> float:
    """Return the regret of a minimiser that a little more relevance turns to an order."""
    first, second, third, _ = (int(item) for item in order.split(", "))
    single = np.eye(4)
    extra = [single[first], single[first], single[first], single[second], single[second]]
    labels = [[1, 1, 0, 0], [0, 0, 1, 1], *extra, single[third]]
    chances = [0.5, 0.5, *[_TILT] * 6]
    tilted = theory.Distribution(labels, chances)
    return tilted.regret(measure, tilted.minimiser(text).scores)


def _order_tables() -> list[Table]:
    """Return both orders, and what minimisers lose when little decides."""
    first, second = _ORDERS
    rows = []
    for measure, values in _order_values().items():
        printed, corrected = _PRINTED_CHANGES[measure]
        gain = values[second] - values[first]
        numbers = (values[first], values[second], gain, corrected, printed)
        rows.append([measure, *(f"{number:.7f}" for number in numbers)])
    columns = ["measure", f"order {first}", f"order {second}", "difference"]
    columns += ["difference, corrected", "difference, printed"]
    title = "Theorem 3.3: labels (1, 1, 0, 0) or (0, 0, 1, 1), equal expected utilities"
    tilted = [
        [measure, order, f"{_tilted(order, measure, _PRESERVING):.6f}"]
        for measure, order in _WRONG_FOR.items()
    ]
    return [
        Table(title, columns, rows),
        Table(
            f"The same with a chance of about {6 * _TILT:g} of one relevant item that decides: "
            f"the minimiser of {_PRESERVING}",
            ["measure", "order of the minimiser", "regret"],
            tilted,
        ),
    ]


def _order_findings() -> list[str]:
    """Say what the two measures lose."""
    values = _order_values()
    first, second = _ORDERS
    gains = {measure: found[second] - found[first] for measure, found in values.items()}
    exact = all(abs(gains[m] - _PRINTED_CHANGES[m][1]) < 1e-12 for m in gains)
    err, precision = (_tilted(_WRONG_FOR[m], m, _PRESERVING) for m in _WRONG_FOR)
    return [
        (
            "Thm 3.3: from order 0, 1, 2, 3 to 0, 2, 1, 3 ERR changes by "
            f"{gains['err(max_grade=1)']:+.6f} and AP by {gains['map']:+.6f}, "
            f"{'exactly' if exact else 'not'} +1/48 and -1/24; the printed 1/24 and 1/12 are sums "
            "over the two label vectors, not means. No order is best for both, and expected "
            "utilities are equal."
        ),
        (
            "Thm 3.3: tilted by little, the minimiser of an order-preserving loss has an ERR "
            f"regret of {err:.5f} or an AP regret of {precision:.5f}, while its surrogate regret "
            "is zero."
        ),
    ]
