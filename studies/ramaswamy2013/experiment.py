"""Regret of least-squares surrogates against the number of queries, where each is right or wrong.

The paper has theorems and no experiments; this is what they say, simulated. With finitely many
query types and a model that can tell every type and item apart, the minimiser of the empirical
squared error is the mean of the targets of each type, so it is computed as that. Boosted models
of the same surrogates are trained on some of the samples.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gbmrank import theory
from gbmrank.types import FloatArray, IntArray
from studies.intervals import Estimate, over_runs
from studies.ramaswamy2013.low_rank import (
    SURROGATES,
    Task,
    boosted_scores,
    draw_types,
    limits,
    regrets,
    tasks,
)
from studies.study import Option, Outcome, Settings, Table

TITLE = "Ramaswamy et al. 2013: low-rank surrogates"
PAPER = (
    "Ramaswamy, Agarwal and Tewari, Convex calibrated surrogates for low-rank loss matrices with "
    "applications to subset ranking losses, NIPS 2013"
)
OPTIONS: Mapping[str, Option] = {}
FORMULAS = (
    "losses/gains.py",
    "losses/utilities.py",
    "metrics/disagreement.py",
    "metrics/positional.py",
    "metrics/precision.py",
    "objectives/pointwise.py",
    "theory/distributions.py",
    "theory/noise.py",
)
NEEDS = ""


class _Size(NamedTuple):
    """How much is drawn; ``queries`` counts those of each type."""

    types: int
    queries: tuple[int, ...]
    repeats: int
    boosted: tuple[int, ...]
    boosted_repeats: int


_FULL = _Size(6, (10, 30, 100, 300, 1000, 3000, 10000, 30000), 100, (30, 300), 5)
_SMALL = _Size(3, (10, 100, 1000), 20, (50,), 1)


class _Curve(NamedTuple):
    """Regrets of one surrogate on one task.

    Parameters
    ----------
    limit : array of shape (n_types,)
        Of the population minimiser.
    fitted : array of shape (n_sizes, n_repeats)
        Of the empirical minimiser, mean over types.
    boosted : array of shape (n_boosted_sizes, n_repeats) or None
        Of a booster.
    """

    limit: FloatArray
    fitted: FloatArray
    boosted: FloatArray | None


Curves = Mapping[tuple[str, str], _Curve]
"""By name of task and surrogate."""


def run(settings: Settings) -> Outcome:
    """Draw query types for every task, and samples of growing size from them.

    Parameters
    ----------
    settings : Settings
        ``data`` is not read. ``small`` takes fewer types, sizes and repetitions.
    """
    size = _SMALL if settings.small else _FULL
    curves: dict[tuple[str, str], _Curve] = {}
    for number, task in enumerate(tasks()):
        rng = np.random.default_rng([settings.seed, number])
        types = draw_types(task, size.types, rng)
        for name in (*task.right, *task.wrong):
            curves[task.name, name] = _curve(task, name, types, size, settings)
        settings.report(f"{task.name}: {len(types)} query types")
    return Outcome(
        tables=[_table(curves, size)],
        summary=_plain_words(curves),
        findings=[
            *(_finding(task, curves, size) for task in tasks()),
            *_summary(curves, size),
        ],
        figures={"regret": partial(_draw, curves, size)},
        facts={
            "query types of a task": size.types,
            "items of a query": 5,
            "types": "drawn until the condition holds and surrogates not covered lose 0.01 or more",
            "pairwise disagreement": "weights of the mean graph of a type sum to 1",
            "model": "mean target of each type, the minimiser of the empirical squared error",
            "repetitions": size.repeats,
            "booster": "XGBoost, 60 rounds; features are the numbers of type and item",
            "repetitions of the booster": size.boosted_repeats,
            "seed": settings.seed,
        },
    )


def _curve(
    task: Task, name: str, types: list[theory.Distribution], size: _Size, settings: Settings
) -> _Curve:
    """Measure a surrogate; every one sees the same samples."""
    rng = np.random.default_rng([settings.seed, 1])
    fitted = np.array([_fitted(task, name, types, (n, size.repeats), rng) for n in size.queries])
    boosted = None
    surrogate = SURROGATES[name]
    if surrogate.objective is not None or surrogate.decoder is not None:
        rng = np.random.default_rng([settings.seed, 2])
        rows = []
        for n in size.boosted:
            samples = [_counts(types, n, rng) for _ in range(size.boosted_repeats)]
            rows.append([_boosted(task, name, types, one, settings) for one in samples])
        boosted = np.array(rows)
    return _Curve(limits(task, types, name), fitted, boosted)


def _fitted(
    task: Task,
    name: str,
    types: Sequence[theory.Distribution],
    shape: tuple[int, int],
    rng: np.random.Generator,
) -> FloatArray:
    """Return the regret of empirical means, averaged over types, for each repetition."""
    queries, repeats = shape
    total = np.zeros(repeats)
    for one in types:
        shares = rng.multinomial(queries, one.probabilities, size=repeats) / queries
        means = shares @ SURROGATES[name].target(one.labels)
        total += regrets(task, name, one, means)
    return total / len(types)


def _counts(
    types: Sequence[theory.Distribution], queries: int, rng: np.random.Generator
) -> list[IntArray]:
    return [rng.multinomial(queries, one.probabilities) for one in types]


def _boosted(
    task: Task,
    name: str,
    types: list[theory.Distribution],
    counts: list[IntArray],
    settings: Settings,
) -> float:
    scores = boosted_scores(SURROGATES[name], types, counts, settings.threads)
    values = [one.value(task.metric, row) for one, row in zip(types, scores, strict=True)]
    best = [one.best(task.metric).value for one in types]
    return float(np.mean(np.abs(np.array(best) - values)))


def _plain(found: Estimate) -> str:
    return f"{found.mean:.4f} [{max(found.low, 0.0):.4f}, {found.high:.4f}]"


def _boosted_cell(curve: _Curve, at: int) -> str:
    return "-" if curve.boosted is None else f"{curve.boosted[at].mean():.4f}"


def _table(curves: Curves, size: _Size) -> Table:
    by_name = {task.name: task for task in tasks()}
    shown = [0, len(size.queries) // 2, len(size.queries) - 1]
    columns = ["task", "fitted target", "right by", "regret, exact limit"]
    columns += [f"{size.queries[at]} queries of each type" for at in shown]
    columns += [f"XGBoost, {n} queries" for n in size.boosted]
    rows = []
    for (task, name), curve in curves.items():
        reason = by_name[task].right.get(name, "nothing")
        row = [task, name, reason, f"{curve.limit.mean():.4f}"]
        row += [_plain(over_runs(curve.fitted[at])) for at in shown]
        rows.append(row + [_boosted_cell(curve, at) for at in range(len(size.boosted))])
    return Table("Mean regret over query types, with 95% intervals over repetitions", columns, rows)


def _finding(task: Task, curves: Curves, size: _Size) -> str:
    """Say what is left of the regret at the largest sample."""
    parts = []
    for name in (*task.right, *task.wrong):
        curve = curves[task.name, name]
        last = over_runs(curve.fitted[-1])
        side = f"right by {task.right[name]}" if name in task.right else "not covered"
        parts.append(f"{name} ({side}) {_plain(last)}, limit {curve.limit.mean():.4f}")
    return f"{task.name}, regret with {size.queries[-1]} queries of each type: {'; '.join(parts)}."


def _plain_words(curves: Curves) -> str:
    right = {(task.name, name) for task in tasks() for name in task.right}
    best = sum(float(curves[key].limit.max()) < 1e-9 for key in right)
    least = min(float(curve.limit.min()) for key, curve in curves.items() if key not in right)
    return (
        f"With enough data, {best} of the {len(right)} surrogates that the theory covers find the "
        f"best ranking on every query type; the {len(curves) - len(right)} others lose at least "
        f"{least:.3f}, on query types drawn to show it."
    )


def _summary(curves: Curves, size: _Size) -> list[str]:
    right = {(task.name, name) for task in tasks() for name in task.right}
    worst = max(float(curves[key].limit.max()) for key in right)
    least = min(float(curve.limit.min()) for key, curve in curves.items() if key not in right)
    last = max(float(curves[key].fitted[-1].mean()) for key in right)
    sentences = [
        (
            f"In the limit the {len(right)} pairs of surrogate and task that theory covers have a "
            f"regret of at most {worst:.1e} for every query type; the {len(curves) - len(right)} "
            f"others at least {least:.3f}, as the types were drawn for that. With "
            f"{size.queries[-1]} queries of each type the covered ones are at {last:.4f} or below."
        )
    ]
    tried = {key: curve for key, curve in curves.items() if curve.boosted is not None}
    gaps = [_gap(curve, size) for curve in tried.values()]
    sentences.append(
        f"Boosted models of {len(tried)} surrogates on {size.boosted[-1]} queries of each type: "
        f"their mean regret differs from the empirical minimiser's by {np.mean(gaps):+.4f} on "
        f"average and by {max(gaps, key=abs):+.4f} at most."
    )
    return sentences


def _gap(curve: _Curve, size: _Size) -> float:
    """Return the booster's regret minus the interpolated one of the empirical minimiser."""
    means = np.interp(np.log(size.boosted[-1]), np.log(size.queries), curve.fitted.mean(axis=1))
    return 0.0 if curve.boosted is None else float(curve.boosted[-1].mean() - means)


def _draw(curves: Curves, size: _Size, figure: Any) -> None:
    """Draw regret against the number of queries, one panel per task."""
    shown = [task for task in tasks() if any(name == task.name for name, _ in curves)]
    across, down = 4, -(-(len(shown) + 1) // 4)
    figure.set_size_inches(3.1 * across, 2.9 * down)
    figure.set_layout_engine("constrained")
    panels = figure.subplots(down, across, squeeze=False)
    lines: dict[str, Any] = {}
    for axes, task in zip(panels.flat, shown, strict=False):
        lines |= _draw_task(axes, task, curves, size)
    for axes in panels[:, 0]:
        axes.set_ylabel("regret")
    for axes in panels.flat[len(shown) :]:
        axes.set_axis_off()
    names = [name for name in SURROGATES if name in lines]
    legend = panels.flat[len(shown)].legend(
        [lines[name] for name in names], names, loc="center", fontsize=9, frameon=False
    )
    legend.set_title("fitted target\n(dashed: not covered; x: XGBoost)", {"size": 9})


def _draw_task(axes: Any, task: Task, curves: Curves, size: _Size) -> dict[str, Any]:
    """Draw one panel and return its lines by surrogate."""
    lines = {}
    for name in (*task.right, *task.wrong):
        curve, colour = curves[task.name, name], f"C{list(SURROGATES).index(name)}"
        style = "-" if name in task.right else "--"
        found = [over_runs(row) for row in curve.fitted]
        (lines[name],) = axes.plot(size.queries, [e.mean for e in found], style, color=colour)
        low, high = [max(e.low, 0.0) for e in found], [e.high for e in found]
        axes.fill_between(size.queries, low, high, color=colour, alpha=0.2, lw=0)
        if curve.boosted is not None:
            axes.plot(size.boosted, curve.boosted.mean(axis=1), "x", color=colour, ms=6)
    axes.set_xscale("log")
    axes.set_ylim(bottom=-0.002)
    axes.set_title(task.name, fontsize=9)
    axes.set_xlabel("queries of each type")
    axes.grid(alpha=0.3, lw=0.5)
    return lines
