"""Label noise of growing strength on real features: which losses degrade.

``python -m studies noise --data FOLDER`` spoils the labels that LightGBM learns from and stops by,
and judges on clean ones. Two kinds of noise:

- *random*: a label is replaced by one drawn from all labels of the data with probability e.
  The expected gain of a row becomes ``(1 - e) gain + e mean``, which sorts as before, so a
  loss whose minimiser is sorted by expected gain aims at the right order at every e < 1.
- *clicks*: only clicks are seen, of ten noisy visits per row. A row of the best grade is
  clicked with probability 0.9 - e/2, one of the worst with 0.05 + e/2, linearly between;
  the label is the number of clicks cut into grades. Rows of low grades gain clicks and the
  grades are no longer those of the judges, so every loss is off by what the mapping bends.
"""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import gbmrank
from gbmrank.api.training_plans import training_plan
from gbmrank.boosters.base import Part
from gbmrank.boosters.plan import train
from gbmrank.data import Groups, RankingData
from gbmrank.errors import ConfigError
from studies.files import VARIABLE
from studies.report import used_versions
from studies.sets import SETS, RankingSet, demonstration
from studies.study import Option, Page, Settings

TITLE = "Label noise: which losses degrade"
PAPER = ""
NEEDS = "OHSUMED of LETOR 3.0 and LightGBM's ranking example"
FORMULAS = (
    "objectives/bregman.py",
    "objectives/listmle.py",
    "objectives/pairwise.py",
    "objectives/pointwise.py",
)
OPTIONS: Mapping[str, Option] = {
    "sets": Option(("ohsumed", "lightgbm_example"), "data sets", tuple(SETS)),
    "rounds": Option(100, "trees of a model, at most"),
}
OBJECTIVES = (
    "pairwise(target=ndcg@10)",
    "pointwise(loss=squared, target=ndcg@10)",
    "softmax",
    "ranknet",
    "rankboost",
    "ranksvm_squared",
    "listmle",
    "native:lambdarank",
)
STRENGTHS = (0.0, 0.2, 0.4, 0.6)
VISITS, FOLDS = 10, 5
Labels = npt.NDArray[np.float64]
Tables = Mapping[str, Mapping[str, list[float]]]


def random_labels(labels: Labels, strength: float, rng: np.random.Generator) -> Labels:
    """Replace some labels by labels of other rows."""
    return np.where(rng.random(len(labels)) < strength, rng.permutation(labels), labels)


def clicks(labels: Labels, strength: float, rng: np.random.Generator) -> Labels:
    """Replace labels by what ten noisy visits would show, in as many grades."""
    top = labels.max()
    low, high = 0.05 + strength / 2, 0.9 - strength / 2
    seen = rng.binomial(VISITS, low + (high - low) * labels / top)
    return np.rint(seen / VISITS * top)


CAUTION = (
    "Aiming at the right order does not make a loss robust to noise. No interval is given; with "
    "84 and 251 queries, differences below 0.02 are within noise."
)
KINDS = {"random": random_labels, "clicks": clicks}


def run(settings: Settings) -> Page:
    """Train every objective on labels with more and more noise.

    Parameters
    ----------
    settings : Settings
        ``data`` holds the sets; ``small`` takes a made-up one and few rounds instead.
    """
    given = {name: one.default for name, one in OPTIONS.items()} | dict(settings.options)
    if settings.small:
        data, rounds = [demonstration(60)], 5
    elif settings.data is None:
        raise ConfigError(f"no data: give --data FOLDER or set {VARIABLE}. It needs {NEEDS}")
    else:
        data, rounds = [SETS[name](settings.data) for name in given["sets"]], given["rounds"]
    return page(
        {
            f"{one.name}, {kind}": measure(one, kind, rounds, settings)
            for one in data
            for kind in KINDS
        }
    )


def measure(data: RankingSet, kind: str, rounds: int, settings: Settings) -> dict[str, list[float]]:
    """Return NDCG@10 on clean test labels, by objective, for each strength."""
    table: dict[str, list[float]] = {name: [] for name in OBJECTIVES}
    for strength in STRENGTHS:
        noisy = KINDS[kind](data.y, strength, np.random.default_rng(7 + settings.seed))
        for name in OBJECTIVES:
            values = [
                fold_value(data, noisy, name, rounds, fold)
                for fold in gbmrank.query_folds(qid=data.qid, n_folds=FOLDS)
            ]
            table[name].append(float(np.nanmean(np.concatenate(values))))
            settings.report(f"{data.name} {kind} {strength:.1f} {name}: {table[name][-1]:.4f}")
    return table


def fold_value(
    data: RankingSet, noisy: Labels, objective: str, rounds: int, fold: tuple[Any, Any]
) -> Labels:
    """Train on noisy labels of one fold and return NDCG@10 per test query, on clean labels."""
    learn, judge = fold
    inner, watched = gbmrank.query_folds(qid=data.qid[learn], n_folds=5, seed=1)[0]
    plan = training_plan(
        objective=objective,
        metric="ndcg@10",
        rounds=rounds,
        early_stopping=25,
        params={"learning_rate": 0.05},
        threads=1,
    )
    model = train(
        plan, part(data, noisy, learn[inner]), {"valid": part(data, noisy, learn[watched])}
    )
    scores = model.scores(data.X[judge])
    return gbmrank.metric("ndcg@10").per_query(data.y[judge], scores, qid=data.qid[judge])


def part(data: RankingSet, labels: Labels, rows: Any) -> Part:
    """Return some rows in query order."""
    groups = Groups.from_qid(data.qid[rows], len(rows))
    ordered = groups.arrange(rows)
    return Part(data.X[ordered], RankingData.from_arrays(labels[ordered], group=groups.sizes))


def page(tables: Tables) -> Page:
    """Return the page, with its figures beside it and a picture."""
    assert __doc__ is not None
    about = __doc__[__doc__.index("Two kinds of noise:") :].replace("``", "`").strip()
    lines = [
        _headline(tables),
        "",
        "![NDCG@10 against strength of noise](noise.svg)",
        "",
        *_summary(tables),
        "",
        CAUTION,
        "",
        "## The noise",
        "",
        about,
    ]
    for title, table in tables.items():
        lines += ["", f"## {title}", "", "| objective | " + _head() + " | lost at the end |"]
        lines += ["| --- |" + " ---: |" * (len(STRENGTHS) + 1)]
        for name, values in sorted(table.items(), key=lambda item: -item[1][-1]):
            cells = " | ".join(f"{value:.4f}" for value in values)
            native = " (native)" if name.startswith("native:") else ""
            lines.append(f"| {_name(name)}{native} | {cells} | {values[0] - values[-1]:.4f} |")
    notes = [
        (
            f"LightGBM, learning rate 0.05, {FOLDS} folds by query, early stopping on validation "
            "queries with noisy labels; NDCG@10 on test queries with clean ones"
        )
    ]
    files = {"noise.json": partial(_write_figures, tables), "noise.svg": partial(plot, tables)}
    return Page(lines=lines, notes=notes, files=files)


def _write_figures(tables: Tables, path: Path) -> None:
    facts = {"schema": "gbmrank.noise/2", "versions": used_versions(), "ndcg@10": tables}
    path.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _headline(tables: Tables) -> str:
    """Return the result in two sentences."""
    lost = [values[0] - values[-1] for table in tables.values() for values in table.values()]
    best = [_best(table) for table in tables.values()]
    most = max(best, key=best.count)
    names = list(dict.fromkeys(best))
    verdict = (
        f"No loss is best in every setting: with the strongest noise {_listed(names)} end first "
        f"in one setting or more, none in more than {best.count(most)} of {len(best)}."
        if len(names) > 1
        else f"With the strongest noise {_name(most)} ends first in every setting."
    )
    return (
        f"{verdict} From clean labels to the strongest noise, objectives lose {min(lost):.2f} to "
        f"{max(lost):.2f} NDCG@10."
    )


def _best(table: Mapping[str, list[float]]) -> str:
    return max(table, key=lambda name: table[name][-1])


def _listed(names: list[str]) -> str:
    shown = [_name(name) for name in names]
    return " and ".join([", ".join(shown[:-1]), shown[-1]])


def _name(objective: str) -> str:
    return f"`{objective.removeprefix('native:')}`"


def _summary(tables: Tables) -> list[str]:
    """Return one line per setting: who loses least, who most, who ends first."""
    lines = [
        f"| data, noise | loses least from e = 0 to {STRENGTHS[-1]:g} | loses most | ends first |",
        "| --- | --- | --- | --- |",
    ]
    for title, table in tables.items():
        lost = {name: values[0] - values[-1] for name, values in table.items()}
        ends = [min(lost, key=lost.__getitem__), max(lost, key=lost.__getitem__)]
        cells = [f"{_name(name)} ({lost[name]:.3f})" for name in ends]
        best = _best(table)
        lines.append(f"| {title} | {' | '.join(cells)} | {_name(best)} ({table[best][-1]:.3f}) |")
    return lines


def _head() -> str:
    return " | ".join(f"e = {strength:g}" for strength in STRENGTHS)


def plot(tables: Tables, path: Path) -> None:
    """Draw one panel per set and kind of noise."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        1, len(tables), figsize=(3.4 * len(tables), 3.6), layout="constrained", squeeze=False
    )
    for axes, (title, table) in zip(panels[0], tables.items(), strict=True):
        for name, values in table.items():
            native = name.startswith("native:")
            style = {"color": "0.4", "linestyle": "--"} if native else {}
            shown = f"{name.removeprefix('native:')} (native)" if native else name
            axes.plot(STRENGTHS, values, marker="o", markersize=3, label=shown, **style)
        axes.set(title=title, xlabel="strength of noise", xticks=STRENGTHS)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0][0].set_ylabel("NDCG@10, clean labels")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    figure.savefig(path)
