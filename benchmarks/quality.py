"""Which objective ranks best on real data: gbmrank's at their defaults against the boosters' own.

``python -m benchmarks.quality --data FOLDER --out docs/results`` runs every set found in a
folder (see ``quality_sets.py``), folds by query, both boosters and CatBoost where it is
installed, and writes ``quality.md``, ``quality.json`` and ``quality.svg``. ``--tune N`` gives
every objective the same number of random trials, leaves CatBoost out, and writes
``quality_tuned.*``. Runs are kept in ``--work``, so a second call goes on where the first stopped.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gbmrank
from benchmarks.machine import versions
from benchmarks.quality_catboost import BACKEND as CATBOOST
from benchmarks.quality_catboost import with_catboost
from benchmarks.quality_sets import SETS, RankingSet
from gbmrank.errors import ConfigError
from gbmrank.experiments.results import Results, System

DEVELOPMENT = ("ohsumed", "movielens")  # named before anything was run; defaults were chosen here
NATIVE = ("native:lambdarank", "native:rank_xendcg", "native:rank:ndcg", "native:rank:pairwise")
OURS = (
    "pairwise(target=ndcg@10)",
    "pairwise(target=dcg)",
    "pointwise(loss=squared, target=ndcg@10)",
    "pointwise(loss=squared, target=dcg)",
    "softmax",
    "ranknet",
    "w_ranknet",
    "rankboost",
    "ranksvm_squared",
    "duchi_linear",
    "listmle",
    "w_listmle",
)
BINARY = ("bipartite", "pnorm_push", "map_diagonal")
DEFAULT = OURS[0]
DRAWS = 2000


class Contest(NamedTuple):
    """The best of ours against the best native objective of one booster on one set."""

    set: str
    queries: int
    backend: str
    native: str
    native_value: float
    ours: str
    ours_value: float
    difference: float
    low: float
    high: float


def main() -> None:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    parser.add_argument("--work", type=Path, default=Path("build/quality"))
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--objectives", nargs="*", help="instead of the usual ones")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--tune", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    found: dict[str, tuple[RankingSet, Results]] = {}
    for name in given.sets:
        try:
            data = SETS[name](given.data)
        except ConfigError as error:
            print(f"{name} is left out: {error}")
            continue
        comparison = run_set(data, given)
        print(f"\n{name}: {data.about}\n{comparison}\n", flush=True)
        results = comparison.results
        if not given.tune:
            results = with_catboost(data, results, given.rounds, given.jobs)
        found[name] = data, results
    given.out.mkdir(parents=True, exist_ok=True)
    write(found, given)


def run_set(data: RankingSet, given: Any) -> Any:
    """Compare everything on one set."""
    ours = given.objectives or [
        *OURS,
        *(f"{name}(threshold={data.threshold:g})" for name in BINARY),
    ]
    folder = given.work / f"{data.name}-tune{given.tune}"
    return gbmrank.compare(
        (data.X, data.y, data.qid),
        objectives=[*ours, *NATIVE],
        metrics=data.metrics,
        folds=5,
        rounds=given.rounds,
        tune=given.tune,
        params={"learning_rate": 0.05},
        out=folder,
        resume=folder.exists(),
        jobs=given.jobs,
        threads=given.jobs,
        progress=True,
    )


def contests(
    data: RankingSet, results: Results, pick: str | None = None, peer: str | None = None
) -> list[Contest]:
    """Set the best of ours (or one that is named) against the best native, by booster.

    With ``peer`` the native objectives are those of that booster instead.
    """
    values = results.values("ndcg@10").mean(axis=1)
    means = np.nanmean(values, axis=1)

    def best(backend: str, native: bool) -> int:
        able = [
            at
            for at, system in enumerate(results.systems)
            if system.backend == backend
            and system.objective.startswith("native:") == native
            and (native or pick is None or system.objective == pick)
            and not np.isnan(means[at])
        ]
        return max(able, key=lambda at: means[at])

    made = []
    for backend in ("lightgbm", "xgboost"):
        first, second = best(peer or backend, native=True), best(backend, native=False)
        low, high = interval(values[second] - values[first])
        made.append(
            Contest(
                data.name,
                int(np.isfinite(values[first]).sum()),
                backend,
                results.systems[first].objective,
                float(means[first]),
                results.systems[second].objective,
                float(means[second]),
                float(means[second] - means[first]),
                low,
                high,
            )
        )
    return made


def interval(differences: Any) -> tuple[float, float]:
    """Return a 95% bootstrap interval of a mean over queries."""
    defined = differences[np.isfinite(differences)]
    rng = np.random.default_rng(0)
    draws = rng.integers(len(defined), size=(DRAWS, len(defined)))
    low, high = np.quantile(defined[draws].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def write(found: dict[str, tuple[RankingSet, Results]], given: Any) -> None:
    """Write page, figures and plot."""
    default = [c for data, results in found.values() for c in contests(data, results, DEFAULT)]
    best = [c for data, results in found.values() for c in contests(data, results)]
    stem = "quality_tuned" if given.tune else "quality"
    command = _command(given)
    at_defaults = "" if given.tune else ", at its defaults,"
    seconds = sum(run.seconds for _, results in found.values() for run in results.runs)
    facts = {
        "command": command,
        "versions": versions(*(() if given.tune else (CATBOOST,))),
        "minutes of training": round(seconds / 60, 1),
    }
    page = [
        "# Real data: gbmrank against the boosters' own ranking losses\n",
        (
            f"`{command}` on {', '.join(found)}; 5 folds by query, learning rate 0.05, early "
            f"stopping on NDCG@10, {given.tune or 'no'} tuning trials per objective, all else at "
            f"its default. {facts['versions']}. {facts['minutes of training']} minutes of "
            f"training. Defaults of gbmrank were chosen on {' and '.join(DEVELOPMENT)}.\n"
        ),
        f"## `{DEFAULT}`{at_defaults} against the best native objective\n",
        _contest_table(default),
        "The best native objective is picked on the same test queries, which favours it.\n",
        "## The best of gbmrank against the best native objective\n",
        _contest_table(best),
        "Both are picked on the same test queries; the interval does not know of the choice.\n",
        f"![differences]({stem}.svg)\n",
    ]
    if others := [
        contest
        for data, results in found.values()
        if any(system.backend == CATBOOST for system in results.systems)
        for contest in contests(data, results, DEFAULT, CATBOOST)
    ]:
        page += [
            "## Against CatBoost's ranking losses\n",
            _contest_table(others),
            (
                "CatBoost grows its own kind of trees, so this compares tools rather than losses. "
                "The better of its two losses is picked on the same test queries.\n"
            ),
        ]
    for data, results in found.values():
        page += [f"## {data.name}\n", f"{data.about}\n", _full_table(results)]
    (given.out / f"{stem}.md").write_text("\n".join(page), encoding="utf-8")
    document = {
        "schema": "gbmrank.quality/1",
        **facts,
        "default": [c._asdict() for c in default],
        "best": [c._asdict() for c in best],
        "catboost": [c._asdict() for c in others],
        "means": {name: _means(results) for name, (_, results) in found.items()},
    }
    text = json.dumps(document, indent=1)
    (given.out / f"{stem}.json").write_text(text + "\n", encoding="utf-8")
    _plot(default, best, given.out / f"{stem}.svg")


def _command(given: Any) -> str:
    """Return what to type for the same run."""
    parts = [f"python -m benchmarks.quality --data DATA --rounds {given.rounds}"]
    parts += [f"--tune {given.tune}"] if given.tune else []
    parts += [f"--sets {' '.join(given.sets)}"] if given.sets != list(SETS) else []
    if given.objectives:
        parts.append("--objectives " + " ".join(f"'{one}'" for one in given.objectives))
    return " ".join(parts)


def _contest_table(made: Sequence[Contest]) -> str:
    lines = [
        "| set | queries | booster | native | NDCG@10 | gbmrank | NDCG@10 | difference (95%) |",
        "| --- | ---: | --- | --- | ---: | --- | ---: | --- |",
    ]
    lines += [
        f"| {c.set} | {c.queries} | {c.backend} | `{c.native.removeprefix('native:')}` "
        f"| {c.native_value:.4f} | `{c.ours}` | {c.ours_value:.4f} "
        f"| {c.difference:+.4f} ({c.low:+.4f} to {c.high:+.4f}) |"
        for c in made
    ]
    return "\n".join(lines) + "\n"


def _means(results: Results) -> dict[str, dict[str, float | None]]:
    table: dict[str, dict[str, float | None]] = {str(system): {} for system in results.systems}
    for measure in results.measures:
        values = results.values(measure.name).mean(axis=1)
        for system, row in zip(results.systems, values, strict=True):
            known = np.isfinite(row).any()
            table[str(system)][measure.name] = round(float(np.nanmean(row)), 5) if known else None
    return table


def _full_table(results: Results) -> str:
    names = [measure.name for measure in results.measures]
    means = _means(results)
    order = sorted(results.systems, key=lambda s: -(means[str(s)][names[0]] or 0.0))
    lines = [
        "| booster | objective | " + " | ".join(names) + " |",
        "| --- | --- |" + " ---: |" * len(names),
    ]
    for system in order:
        cells = [_shown(means[str(system)][name]) for name in names]
        lines.append(f"| {system.backend} | `{_plain(system)}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _plain(system: System) -> str:
    return system.objective.replace("|", "\\|")


def _shown(value: float | None) -> str:
    return "failed" if value is None else f"{value:.4f}"


def _plot(default: Sequence[Contest], best: Sequence[Contest], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    labels = [f"{c.set}, {c.backend} ({c.queries} queries)" for c in default]
    at = np.arange(len(labels))[::-1]
    figure, axes = plt.subplots(figsize=(8, 0.5 * len(labels) + 1.6), layout="constrained")
    for shift, made, name, colour in (
        (0.14, default, DEFAULT, "#0072b2"),
        (-0.14, best, "best of gbmrank", "#d55e00"),
    ):
        middle = np.array([c.difference for c in made])
        reach = np.array([[c.difference - c.low, c.high - c.difference] for c in made]).T
        axes.errorbar(middle, at + shift, xerr=reach, fmt="o", color=colour, label=name, capsize=2)
    axes.axvline(0.0, color="0.5", linewidth=1)
    axes.set_yticks(at, labels)
    axes.set_xlabel("NDCG@10 less that of the best native objective of the booster")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.12), ncols=2)
    figure.savefig(path)


if __name__ == "__main__":
    main()
