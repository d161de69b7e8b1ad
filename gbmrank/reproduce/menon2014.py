"""Proper, bipartite and p-norm push risks with five losses on four UCI sets, and Figures 1-4."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gbmrank.reproduce import bayes_scorers
from gbmrank.reproduce.bipartite_fits import LOSSES, Grid, evaluate_split, method_names
from gbmrank.reproduce.bipartite_sets import FILES, BipartiteSet, load_uci, simulated
from gbmrank.reproduce.intervals import over_runs
from gbmrank.reproduce.menon2014_printed import MEASURES, PRINTED, PRINTED_RANKS, Cell
from gbmrank.reproduce.study import Outcome, Settings, Table
from gbmrank.types import FloatArray

__all__ = ["NEEDS", "PAPER", "run"]

PAPER = "Menon and Williamson, Bayes-optimal scorers for bipartite ranking, COLT 2014"
NEEDS = (
    f"four files of the UCI repository as published, in one folder: {', '.join(FILES)}; "
    "https://archive.ics.uci.edu"
)

_FULL = Grid(tuple(10.0 ** np.arange(1.0, -7.0, -1.0)), (1, 2, 4, 8, 16, 32), 5)
_SMALL = Grid((1.0, 0.1, 0.01), (1, 4), 3)
_COMPARABLE = ("AUC", "AP", "PTop")
_SHARED = [loss for loss in LOSSES if loss != "P-Classification"]

Values = Mapping[tuple[str, str], FloatArray]
"""By method and measure: one value per split."""


def run(settings: Settings) -> Outcome:
    """Tune and train 14 methods on every split of every set, and minimise risks on populations.

    Parameters
    ----------
    settings : Settings
        ``data`` holds the UCI files; ``small`` takes a simulated set instead.
    """
    rng = np.random.default_rng(settings.seed)
    sets = [simulated(rng)] if settings.small else load_uci(settings.data, NEEDS)
    splits, grid = (2, _SMALL) if settings.small else (5, _FULL)
    results = {}
    for number, data in enumerate(sets):
        results[data.name] = _on_set(data, grid, splits, (settings.seed, number), settings)
    found = bayes_scorers.minimise_all(2 if settings.small else 3, rng)
    ranks = _average_ranks(results)
    return Outcome(
        tables=[
            *(_set_table(name, values) for name, values in results.items()),
            _rank_table(ranks, settings.small),
            bayes_scorers.table(found),
        ],
        findings=[
            *_level_findings(results),
            *_family_findings(results),
            *_rank_findings(ranks, settings.small),
            _column_finding(sets, results),
            *bayes_scorers.findings(found),
        ],
        figures={
            "average_precision": partial(_draw, results),
            **bayes_scorers.figures(found),
        },
        facts={
            "sets": "; ".join(f"{d.name}: {d.y.sum():.0f} of {len(d.y)} relevant" for d in sets),
            "splits": f"{splits}, 2:1, stratified",
            "model": "linear, features standardised on the training part, L-BFGS",
            "objective": "mean loss + l2 / 2 |w|^2; the intercept of pointwise risks is free",
            "l2": ", ".join(f"{value:g}" for value in grid.penalties),
            "p": ", ".join(f"{value:g}" for value in grid.powers),
            "tuned on": f"AP, {grid.folds}-fold cross-validation",
            "intervals": "Student's t over the splits of all sets; splits of one set overlap",
            "seed": settings.seed,
        },
    )


def _on_set(
    data: BipartiteSet, grid: Grid, splits: int, seed: tuple[int, int], settings: Settings
) -> Values:
    rows = []
    for split in range(splits):
        rows.append(evaluate_split(data, grid, (*seed, split)))
        settings.report(f"{data.name}: split {split + 1} of {splits}")
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


def _cell(values: FloatArray) -> Cell:
    return Cell(float(values.mean()), float(values.std(ddof=1)))


def _text(cell: Cell) -> str:
    return f"{cell.mean:.4f} +- {cell.spread:.4f}"


def _set_table(name: str, values: Values) -> Table:
    printed = PRINTED.get(name)
    columns = ["method"]
    for measure in MEASURES:
        columns += [measure, f"{measure} printed"] if printed else [measure]
    rows = []
    for method in method_names():
        row = [method]
        for measure in MEASURES:
            row.append(_text(_cell(values[method, measure])))
            row += [_text(printed[method, measure])] if printed else []
        rows.append(row)
    numbers = {"ionosphere": 3, "housing": 4, "german": 5, "car": 6}
    title = f"Table {numbers[name]}: {name}" if printed else f"{name}, nothing printed"
    return Table(f"{title}; mean and standard deviation over splits", columns, rows)


def _average_ranks(results: Mapping[str, Values]) -> dict[tuple[str, str], float]:
    """Return dense ranks of the means, 1 for the best, averaged over the sets."""
    ranks: dict[tuple[str, str], float] = {}
    for measure in MEASURES:
        total = np.zeros(len(method_names()))
        for values in results.values():
            means = [round(float(values[m, measure].mean()), 4) for m in method_names()]
            levels = sorted(set(means), reverse=True)
            total += np.array([levels.index(mean) + 1 for mean in means])
        for method, rank in zip(method_names(), total / len(results), strict=True):
            ranks[method, measure] = float(rank)
    return ranks


def _rank_table(ranks: Mapping[tuple[str, str], float], small: bool) -> Table:
    sources = {"": ranks} if small else {"": ranks, " printed": PRINTED_RANKS}
    columns = ["method", *(f"{measure}{source}" for measure in MEASURES for source in sources)]
    rows = [
        [method, *(f"{s[method, m]:.2f}" for m in MEASURES for s in sources.values())]
        for method in method_names()
    ]
    return Table("Table 7: average dense ranks over the sets", columns, rows)


def _level_findings(results: Mapping[str, Values]) -> list[str]:
    """Say how far our means are from the printed ones, in printed standard deviations."""
    sentences = []
    for name, values in results.items():
        if name not in PRINTED:
            continue
        parts = []
        for measure in _COMPARABLE:
            printed = [PRINTED[name][method, measure] for method in method_names()]
            ours = [_cell(values[method, measure]) for method in method_names()]
            within = sum(
                abs(a.mean - b.mean) <= np.hypot(a.spread, b.spread)
                for a, b in zip(ours, printed, strict=True)
            )
            means = np.mean([a.mean for a in ours]), np.mean([b.mean for b in printed])
            parts.append(f"{measure} {means[0]:.4f} (printed {means[1]:.4f}, {within} of 14)")
        sentences.append(
            f"Level on {name}, mean over the 14 methods, and how many of them lie within the root "
            f"of the sum of both variances of the printed mean: {', '.join(parts)}."
        )
    return sentences


def _family_findings(results: Mapping[str, Values]) -> list[str]:
    sentences = []
    for family in ("Bipartite", "P-Norm"):
        pairs = [(f"{family} {loss}", f"Proper {loss}") for loss in _SHARED]
        sentences.append(f"{family} minus Proper risks, mean over {len(pairs)} losses: ")
        sentences[-1] += _differences(results, pairs)
    for loss in ("Asymmetric A", "Asymmetric B"):
        pairs = [(f"{f} {loss}", f"{f} Logistic") for f in ("Proper", "Bipartite", "P-Norm")]
        sentences.append(f"{loss} minus Logistic, mean over the three risks: ")
        sentences[-1] += _differences(results, pairs)
    return sentences


def _differences(results: Mapping[str, Values], pairs: Sequence[tuple[str, str]]) -> str:
    """Return mean differences over all splits of all sets, with intervals over splits."""
    texts = []
    for measure in _COMPARABLE:
        gaps = [
            np.mean([values[a, measure] - values[b, measure] for a, b in pairs], axis=0)
            for values in results.values()
        ]
        found = over_runs(np.concatenate(gaps))
        verdict = ("the second is better", "not told apart", "the first is better")[found.sign + 1]
        texts.append(f"{measure} {found} ({verdict})")
    return ", ".join(texts) + f" over {sum(map(len, gaps))} splits."


def _rank_findings(ranks: Mapping[tuple[str, str], float], small: bool) -> list[str]:
    """Compare the best methods of Table 7, and its ranks, with ours."""
    sentences = []
    for measure in () if small else _COMPARABLE:
        ours = np.array([ranks[method, measure] for method in method_names()])
        printed = np.array([PRINTED_RANKS[method, measure] for method in method_names()])
        r = float(np.corrcoef(ours, printed)[0, 1])
        low, high = np.tanh(np.arctanh(r) + np.array([-1.96, 1.96]) / np.sqrt(len(ours) - 3))
        best, first = method_names()[int(printed.argmin())], method_names()[int(ours.argmin())]
        sentences.append(
            f"Average ranks, {measure}: the printed best is {best} ({printed.min():.2f}; "
            f"{ranks[best, measure]:.2f} here), ours is {first} ({ours.min():.2f}); correlation "
            f"of the 14 ranks {r:+.2f} [{low:+.2f}, {high:+.2f}]."
        )
    return sentences


def _column_finding(sets: Sequence[BipartiteSet], results: Mapping[str, Values]) -> str:
    """Say why the MRR and DCG columns cannot be compared."""
    parts = []
    for data in sets:
        ranks = np.arange(1.0, round(len(data.y) / 3) + 1.0)
        chance = {"MRR": np.mean(1.0 / ranks), "DCG": np.mean(1.0 / np.log2(1.0 + ranks))}
        texts = []
        for measure, random in chance.items():
            ours = np.mean([results[data.name][m, measure].mean() for m in method_names()])
            text = f"{measure} {ours:.4f} here, {random:.4f} for a random order"
            if data.name in PRINTED:
                printed = np.mean([PRINTED[data.name][m, measure].mean for m in method_names()])
                text += f", {printed:.4f} printed"
            texts.append(text)
        parts.append(f"{data.name}: {'; '.join(texts)}")
    return (
        "The printed MRR and DCG columns are at the level of a random order of the test part, if "
        "read as means over relevant rows of 1/rank and 1/log2(1 + rank), which does not go with "
        f"the printed AUC; they are not matched. {'. '.join(parts)}."
    )


def _draw(results: Mapping[str, Values], figure: Any) -> None:
    """Draw AP of every method, ours and as printed, one panel per set."""
    names = method_names()
    figure.set_size_inches(2.0 + 2.3 * len(results), 4.4)
    figure.set_layout_engine("constrained")
    panels = figure.subplots(1, len(results), squeeze=False, sharey=True)[0]
    place = np.arange(len(names))
    for axes, (name, values) in zip(panels, results.items(), strict=True):
        columns = {"ours": [_cell(values[method, "AP"]) for method in names]}
        if name in PRINTED:
            columns["printed"] = [PRINTED[name][method, "AP"] for method in names]
        for shift, (label, cells) in zip((-0.16, 0.16), columns.items(), strict=False):
            mean, spread = np.array(cells).T
            look = {"ours": "o", "printed": "D"}[label]
            axes.errorbar(
                mean, place + shift, xerr=spread, fmt=look, ms=3.5, lw=1, capsize=2, label=label
            )
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("AP, mean and sd")
        axes.grid(axis="x", alpha=0.3, lw=0.5)
    panels[0].set_yticks(place, names, fontsize=8)
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False)
