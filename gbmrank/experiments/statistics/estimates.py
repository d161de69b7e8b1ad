"""Statistics of results, over the queries for which every system has a value."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.bootstrap import bootstrap_means, tails
from gbmrank.experiments.results import Measure, Results, System
from gbmrank.experiments.statistics.analysis import (
    Analysis,
    Comparison,
    Interval,
    MeasureAnalysis,
    Outcome,
    Pair,
    Summary,
    not_established,
    verdict,
)
from gbmrank.experiments.statistics.resampling import flip_p_values, holm, range_p_values
from gbmrank.types import FloatArray, IntArray

_RESAMPLES = 10_000
_SLICE_RESAMPLES = 2_000
_SLICES = 4
_TIED = 1e-12
_DEALT = 1.5e8  # values permuted by all Tukey tests together; two seconds
_FEWEST = 1_000


@final
@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """Values of one measure that can be compared query by query."""

    systems: tuple[System, ...]  # those with values
    excluded: tuple[System, ...]  # every run failed, or the measure is undefined everywhere
    table: FloatArray  # (n_systems, n_queries): mean over seeds, without NaN
    queries: IntArray  # their numbers, in Results.queries
    left_out: int  # queries that only some of the systems have a value for
    undefined: int  # queries that no system has a value for
    by_seed: FloatArray  # (n_systems, n_seeds): over the same queries; NaN where one is missing

    def row(self, system: System) -> FloatArray:
        """Return the values of one system, per query."""
        return self.table[self.systems.index(system)]


class Slice(NamedTuple):
    """Mean difference over the queries of one part; the interval is NaN below two queries."""

    label: str
    n_queries: int
    difference: float
    interval: Interval


def analyse(
    results: Results, *, margin: float = 0.0, level: float = 0.95, seed: int = 0
) -> Analysis:
    """Compare systems over queries.

    The unit is the query: values are first averaged over seeds. Only queries for which every
    system has a value are compared. Intervals are paired percentile bootstrap intervals, p values
    against the baseline come from paired randomisation tests with Holm's correction within a
    measure, and those of all pairs from randomised Tukey HSD. If each booster has a baseline of its
    own (``Results.baselines``), the correction is over all comparisons with any of them, including
    those of the baselines with each other: one per system but the first baseline.
    """
    cells = len(results.systems) * len(results.queries) * len(results.measures)
    tukey = int(np.clip(_DEALT / max(cells, 1), _FEWEST, _RESAMPLES))
    measures: list[MeasureAnalysis] = []
    for at, measure in enumerate(results.measures):
        # A stream for each test, so that the numbers of one do not depend on the others.
        intervals, flips, deals = (np.random.default_rng([seed, at, stream]) for stream in range(3))
        data = paired(results, measure.name)
        draws = np.full((1, len(data.systems)), np.nan)
        if len(data.queries) > 1:
            draws = bootstrap_means(data.table, _RESAMPLES, intervals)
        found = (
            tuple(_summaries(data, draws, level)),
            tuple(_comparisons(results, measure, data, draws, (level, margin), flips)),
            _pairs(data, tukey, deals),
        )
        counts = len(data.queries), data.left_out, data.undefined
        measures.append(MeasureAnalysis(measure, *counts, *found, data.excluded))
    return Analysis(
        results.baseline,
        results.baselines or (results.baseline,),
        *(level, margin, seed, _RESAMPLES, tukey),
        tuple(measures),
        verdict(measures[0], results, level),
        tuple(not_established(results, measures, margin, level)),
    )


def paired(results: Results, measure: str) -> Paired:
    """Average over seeds, and keep the queries for which every system has a value.

    A system without any value is excluded, since no query would be left. Values that are not
    finite count as undefined.
    """
    values = results.values(measure)
    finite = np.isfinite(values)
    present: npt.NDArray[np.bool_] = np.asarray(finite.any(axis=(1, 2)))
    known = np.where(finite, values, 0.0)[present]
    count = finite[present].sum(axis=1)
    complete = (count > 0).all(axis=0) & present.any()
    some = (count > 0).any(axis=0)
    table = known.sum(axis=1)[:, complete] / count[:, complete]
    whole = finite[present][:, :, complete].all(axis=2)
    n_queries = max(int(complete.sum()), 1)
    by_seed = np.where(whole, known[:, :, complete].sum(axis=2) / n_queries, np.nan)
    systems = np.arange(len(results.systems))
    return Paired(
        tuple(results.systems[at] for at in systems[present]),
        tuple(results.systems[at] for at in systems[~present]),
        np.ascontiguousarray(table),
        np.flatnonzero(complete),
        int((some & ~complete).sum()),
        int((~some).sum()),
        by_seed,
    )


def slices(
    differences: FloatArray, sizes: IntArray, *, level: float = 0.95, seed: int = 0
) -> tuple[Slice, ...]:
    """Split queries into at most four parts of similar size, and average differences in each.

    Intervals are not corrected for the number of parts: they are exploratory, not tests.

    >>> parts = slices(np.array([0.5, 0.25, 0.0]), np.array([1, 1, 7]))
    >>> [(part.label, part.n_queries, part.difference) for part in parts]
    [('1', 2, 0.375), ('7', 1, 0.0)]
    """
    rng = np.random.default_rng([seed, len(differences)])
    found = []
    for label, inside in _parts(np.asarray(sizes)):
        values = differences[inside]
        ends = Interval(math.nan, math.nan)
        if len(values) > 1:
            ends = _interval(bootstrap_means(values[None, :], _SLICE_RESAMPLES, rng), level)
        found.append(Slice(label, len(values), float(values.mean()), ends))
    return tuple(found)


def _interval(draws: FloatArray, level: float) -> Interval:
    """Return the percentile interval of bootstrap draws."""
    low, high = np.quantile(draws, tails(level))
    return Interval(float(low), float(high))


def _summaries(data: Paired, draws: FloatArray, level: float) -> Iterator[Summary]:
    for i, system in enumerate(data.systems):
        seeds = data.by_seed[i][np.isfinite(data.by_seed[i])]
        mean = float(data.table[i].mean()) if len(data.queries) else math.nan
        seed_sd = float(seeds.std(ddof=1)) if len(seeds) > 1 else math.nan
        yield Summary(system, mean, _interval(draws[:, i], level), seed_sd)


def _comparisons(
    results: Results,
    measure: Measure,
    data: Paired,
    draws: FloatArray,
    setting: tuple[float, float],
    rng: np.random.Generator,
) -> Iterator[Comparison]:
    """Yield the comparisons with the baselines; ``setting`` is the level and the margin."""
    level, margin = setting
    known = {system: i for i, system in enumerate(data.systems)}
    against = map(results.compared_with, data.systems)
    bases = {i: known[base] for i, base in enumerate(against) if base in known}
    if not bases or len(data.queries) == 0:
        return
    differences = (data.table[[*bases]] - data.table[[*bases.values()]]).T
    p_values = flip_p_values(differences, _RESAMPLES, rng)
    corrected = holm(p_values)
    for column, (i, base) in enumerate(bases.items()):
        ahead = measure.sign * differences[:, column]
        ends = _interval(draws[:, i] - draws[:, base], level)
        spread = ahead.std(ddof=1) if len(ahead) > 1 else 0.0
        decided: Outcome = "better" if ahead.mean() > 0.0 else "worse"
        yield Comparison(
            data.systems[i],
            data.systems[base],
            float(differences[:, column].mean()),
            ends,
            float(p_values[column]),
            float(corrected[column]),
            float(ahead.mean() / spread) if spread > _TIED else math.nan,
            int((ahead > _TIED).sum()),
            int((np.abs(ahead) <= _TIED).sum()),
            int((ahead < -_TIED).sum()),
            decided if corrected[column] <= 1.0 - level else "undecided",
            ends.inside(margin),
        )


def _pairs(data: Paired, resamples: int, rng: np.random.Generator) -> tuple[Pair, ...]:
    n_systems = len(data.systems)
    if n_systems < 3 or len(data.queries) == 0:
        return ()
    p_values = range_p_values(data.table, resamples, rng)
    means = data.table.mean(axis=1)
    return tuple(
        Pair(data.systems[i], data.systems[j], float(means[j] - means[i]), float(p_values[i, j]))
        for i in range(n_systems)
        for j in range(i + 1, n_systems)
    )


def _parts(sizes: IntArray) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    lasts, first = np.unique(sizes), -np.inf
    if len(lasts) > _SLICES:
        cuts = np.quantile(sizes, np.linspace(0.0, 1.0, _SLICES + 1)[1:], method="lower")
        lasts = np.unique(cuts)
    for last in lasts:
        inside = (sizes > first) & (sizes <= last)
        low, high = sizes[inside].min(), sizes[inside].max()
        yield (f"{low}" if low == high else f"{low} to {high}"), inside
        first = last
