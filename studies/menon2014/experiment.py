"""Proper, bipartite and p-norm push risks with five losses on four UCI sets, and Figures 1-4."""

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gbmrank.types import FloatArray
from studies.intervals import over_runs
from studies.menon2014 import bayes_scorers
from studies.menon2014.bipartite import (
    FILES,
    LOSSES,
    MEASURES,
    BipartiteSet,
    Grid,
    evaluate_split,
    load_uci,
    method_names,
    simulated,
)
from studies.study import Option, Outcome, Settings, Table

TITLE = "Menon and Williamson 2014: bipartite ranking"
PAPER = "Menon and Williamson, Bayes-optimal scorers for bipartite ranking, COLT 2014"
OPTIONS: Mapping[str, Option] = {}
FORMULAS = (
    "losses/composite.py",
    "losses/convex.py",
    "losses/margin.py",
    "losses/gains.py",
    "losses/utilities.py",
    "metrics/positional.py",
    "metrics/precision.py",
    "objectives/levels.py",
    "objectives/pointwise.py",
    "objectives/push.py",
    "theory/bipartite.py",
)
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


class Cell(NamedTuple):
    """A mean over splits, and its standard deviation."""

    mean: float
    spread: float


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
        summary="" if settings.small else _summary(results),
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
            "relevant": "housing CHAS = 1 and car vgood are inferred from the printed class rates",
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
        parts, gaps = [], []
        for measure in _COMPARABLE:
            printed = [PRINTED[name][method, measure] for method in method_names()]
            ours = [_cell(values[method, measure]) for method in method_names()]
            within = sum(
                abs(a.mean - b.mean) <= np.hypot(a.spread, b.spread)
                for a, b in zip(ours, printed, strict=True)
            )
            means = np.mean([a.mean for a in ours]), np.mean([b.mean for b in printed])
            gaps.append((means[0] - means[1]) if measure != "PTop" else 0.0)
            parts.append(f"{measure} {means[0]:.4f} (printed {means[1]:.4f}, {within} of 14)")
        sentences.append(
            f"Level on {name}, mean over the 14 methods, and how many of them lie within the root "
            f"of the sum of both variances of the printed mean: {', '.join(parts)}."
        )
        lower = [part for part, gap in zip(parts, gaps, strict=True) if gap < -0.015]
        if lower:
            sentences.append(f"{name} is below the printed level, for no reason known: {lower[0]}.")
    return sentences


def _summary(results: Mapping[str, Values]) -> str:
    """Return the result in plain words."""
    told = " ".join(_family_findings(results))
    unclear = told.count("no clear difference")
    clear = told.count("the first is better") + told.count("the second is better")
    return (
        f"{clear} of {unclear + clear} differences between kinds of risk and between losses are "
        f"clearly different from zero, on {len(results)} data sets; about "
        f"{0.05 * (unclear + clear):.1f} would be by chance if there were none."
    )


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
        verdict = ("the second is better", "no clear difference", "the first is better")[
            found.sign + 1
        ]
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


_IONOSPHERE = """
0.9113 0.0208  0.0422 0.0115  0.1966 0.0108  0.9243 0.0339  13.0000 17.0880
0.9128 0.0166  0.0482 0.0078  0.2034 0.0070  0.9262 0.0318  12.8000 12.9499
0.9152 0.0160  0.0426 0.0106  0.1973 0.0100  0.9349 0.0232  11.6000 8.8487
0.9133 0.0250  0.0470 0.0089  0.2020 0.0081  0.9336 0.0360  16.8000 10.8720
0.9135 0.0161  0.0470 0.0064  0.2019 0.0062  0.9249 0.0289  9.6000 12.4016
0.9157 0.0195  0.0492 0.0047  0.2039 0.0036  0.9316 0.0315  14.8000 15.1228
0.9149 0.0149  0.0424 0.0116  0.1970 0.0109  0.9292 0.0292  13.0000 12.7475
0.9151 0.0287  0.0473 0.0111  0.2017 0.0104  0.9294 0.0361  15.6000 14.6731
0.9176 0.0187  0.0475 0.0094  0.2022 0.0087  0.9343 0.0298  13.6000 13.0499
0.9147 0.0160  0.0448 0.0078  0.1998 0.0073  0.9308 0.0277  13.6000 14.2934
0.9129 0.0182  0.0436 0.0094  0.1988 0.0084  0.9314 0.0292  14.0000 11.6833
0.9154 0.0147  0.0460 0.0081  0.2006 0.0076  0.9354 0.0222  12.0000 9.5131
0.9142 0.0169  0.0395 0.0105  0.1947 0.0092  0.9330 0.0275  13.0000 10.9087
0.9155 0.0169  0.0448 0.0083  0.2001 0.0076  0.9317 0.0263  11.4000 11.8870
"""
_HOUSING = """
0.7597 0.0415  0.0435 0.0441  0.1924 0.0364  0.1490 0.0623  0.0000 0.0000
0.7563 0.0824  0.0540 0.0436  0.2008 0.0455  0.1762 0.0752  0.4000 0.8944
0.7344 0.0964  0.0324 0.0149  0.1841 0.0168  0.1404 0.0628  0.0000 0.0000
0.7560 0.0462  0.0398 0.0301  0.1889 0.0319  0.1475 0.0630  0.0000 0.0000
0.7633 0.0362  0.0495 0.0627  0.1953 0.0538  0.1496 0.0612  0.0000 0.0000
0.7280 0.1085  0.0364 0.0229  0.1828 0.0209  0.1707 0.0839  0.4000 0.8944
0.7306 0.0882  0.0635 0.0536  0.2090 0.0508  0.1740 0.0837  0.4000 0.8944
0.7282 0.0889  0.0372 0.0212  0.1856 0.0217  0.1704 0.0841  0.4000 0.8944
0.7534 0.0823  0.0356 0.0189  0.1847 0.0178  0.1754 0.0760  0.4000 0.8944
0.7252 0.1077  0.0418 0.0375  0.1863 0.0360  0.1709 0.0840  0.4000 0.8944
0.6987 0.1159  0.0286 0.0134  0.1802 0.0202  0.1190 0.0501  0.0000 0.0000
0.7377 0.0691  0.0320 0.0197  0.1803 0.0196  0.1442 0.0621  0.0000 0.0000
0.7548 0.0650  0.0559 0.0716  0.1990 0.0597  0.1403 0.0592  0.0000 0.0000
0.7549 0.0510  0.0694 0.0622  0.2127 0.0568  0.1390 0.0543  0.0000 0.0000
"""
_GERMAN = """
0.8125 0.0281  0.0156 0.0036  0.1513 0.0043  0.6245 0.0629  2.4000 1.9494
0.8131 0.0311  0.0196 0.0064  0.1547 0.0069  0.6218 0.0676  1.8000 2.0494
0.8115 0.0282  0.0193 0.0049  0.1552 0.0043  0.6226 0.0621  2.4000 2.3022
0.8130 0.0284  0.0155 0.0075  0.1497 0.0080  0.6261 0.0604  3.2000 2.2804
0.8129 0.0274  0.0177 0.0096  0.1533 0.0096  0.6246 0.0627  2.0000 2.0000
0.8140 0.0295  0.0166 0.0034  0.1528 0.0041  0.6241 0.0676  2.6000 2.7019
0.8118 0.0268  0.0219 0.0058  0.1563 0.0044  0.6216 0.0631  2.4000 1.9494
0.8131 0.0298  0.0216 0.0037  0.1569 0.0034  0.6245 0.0657  2.2000 1.6432
0.8131 0.0306  0.0200 0.0045  0.1554 0.0049  0.6224 0.0709  2.6000 2.7019
0.8115 0.0255  0.0191 0.0048  0.1532 0.0054  0.6209 0.0601  2.2000 1.7889
0.8140 0.0286  0.0157 0.0036  0.1510 0.0051  0.6258 0.0625  2.8000 2.5884
0.8105 0.0277  0.0195 0.0047  0.1556 0.0055  0.6206 0.0614  2.0000 2.0000
0.8121 0.0291  0.0168 0.0044  0.1531 0.0053  0.6236 0.0634  2.2000 2.1679
0.8148 0.0282  0.0159 0.0019  0.1521 0.0018  0.6276 0.0628  2.2000 2.1679
"""
_CAR = """
0.9976 0.0012  0.0237 0.0261  0.1506 0.0226  0.9391 0.0370  13.2000 3.9623
0.9976 0.0012  0.0080 0.0017  0.1327 0.0046  0.9376 0.0339  12.8000 3.9623
0.9968 0.0022  0.0099 0.0048  0.1366 0.0073  0.9316 0.0394  12.8000 3.9623
0.9976 0.0012  0.0157 0.0180  0.1416 0.0187  0.9385 0.0367  13.0000 3.9370
0.9974 0.0009  0.0075 0.0034  0.1313 0.0081  0.9297 0.0309  12.0000 4.4721
0.9976 0.0013  0.0106 0.0098  0.1347 0.0117  0.9371 0.0375  12.8000 3.9623
0.9976 0.0012  0.0089 0.0055  0.1345 0.0103  0.9364 0.0348  12.2000 4.1473
0.9977 0.0012  0.0063 0.0027  0.1293 0.0062  0.9394 0.0340  12.4000 4.1593
0.9977 0.0012  0.0081 0.0028  0.1337 0.0047  0.9401 0.0350  13.2000 3.9623
0.9976 0.0011  0.0085 0.0036  0.1335 0.0083  0.9392 0.0337  13.0000 4.0000
0.9976 0.0013  0.0170 0.0094  0.1437 0.0109  0.9392 0.0384  13.2000 3.9623
0.9968 0.0021  0.0119 0.0060  0.1397 0.0102  0.9307 0.0370  12.8000 3.9623
0.9966 0.0022  0.0150 0.0097  0.1418 0.0109  0.9289 0.0382  13.0000 3.9370
0.9972 0.0014  0.0151 0.0088  0.1444 0.0140  0.9333 0.0340  12.4000 3.9115
"""
_RANKS = """
6.0000  7.7500  8.0000  7.7500  3.2500
5.2500  5.5000  5.7500  7.2500  4.5000
7.0000  8.7500  8.5000  7.7500  4.5000
5.2500  7.5000  7.5000  5.0000  1.5000
4.7500  7.7500  7.5000  9.0000  6.2500
4.5000  7.0000  7.7500  6.2500  2.5000
6.7500  5.5000  6.2500  8.2500  4.0000
5.2500  7.2500  7.5000  5.7500  3.0000
3.0000  7.0000  6.7500  3.7500  2.5000
8.0000  7.7500  9.0000  7.0000  3.2500
7.5000  9.0000  10.0000  7.0000  2.2500
6.7500  7.5000  7.2500  8.7500  4.7500
7.0000  7.2500  7.7500  9.2500  3.7500
3.2500  5.7500  5.5000  7.2500  5.2500
"""


def _read(text: str) -> dict[tuple[str, str], Cell]:
    """Read lines of means, each followed by its standard deviation."""
    cells = {}
    for method, line in zip(method_names(), text.strip().splitlines(), strict=True):
        numbers = [float(word) for word in line.split()]
        for measure, *cell in zip(MEASURES, numbers[::2], numbers[1::2], strict=True):
            cells[method, measure] = Cell(*cell)
    return cells


def _read_ranks(text: str) -> dict[tuple[str, str], float]:
    return {
        (method, measure): float(word)
        for method, line in zip(method_names(), text.strip().splitlines(), strict=True)
        for measure, word in zip(MEASURES, line.split(), strict=True)
    }


PRINTED = MappingProxyType(
    {
        "ionosphere": _read(_IONOSPHERE),
        "housing": _read(_HOUSING),
        "german": _read(_GERMAN),
        "car": _read(_CAR),
    }
)
"""By data set, then by method and measure."""
PRINTED_RANKS = MappingProxyType(_read_ranks(_RANKS))
"""Table 7: mean over the data sets of dense ranks, by method and measure."""
