"""Cross-fitted rankers and a model distilled from them, against training on a fixed split.

``python -m studies crossfit --data FOLDER`` holds out a third of the queries for the test, in
turn. Of the rest, systems with a fixed split train on three quarters and stop on one; cross-fitted
ones use all of them in four folds; refitted ones train on all of them for as many rounds as the
cross-fitted had in the mean. A draw is one such split and one cut into folds.

Finished draws are kept in ``--work``, and an interrupted run continues there.
"""

import json
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import gbmrank
from gbmrank import GBMRanker
from gbmrank.errors import ConfigError
from studies.files import VARIABLE
from studies.quality.models import NATIVE, PARAMS, as_part, grow_catboost
from studies.sets import SETS, RankingSet, demonstration
from studies.study import Option, Outcome, Settings, Table

TITLE = "One model that beats four: folds and distillation"
PAPER = ""
NEEDS = (
    "OHSUMED of LETOR 3.0, MQ2008 of LETOR 4.0, rows of MSLR-WEB10K, MovieLens 100k, ModeCanada, "
    "and the ranking examples of LightGBM and CatBoost"
)
FORMULAS = ("estimators/crossfit.py", "estimators/distillation.py")
BOOSTERS = ("lightgbm", "xgboost")
CATBOOST = ("YetiRank", "QueryRMSE")
OPTIONS: Mapping[str, Option] = {
    "sets": Option(tuple(SETS), "data sets", tuple(SETS)),
    "backends": Option(
        (*BOOSTERS, *CATBOOST), "boosters, or losses of CatBoost", (*BOOSTERS, *CATBOOST)
    ),
    "rows": Option(15_000, "rows of a set, by drawing queries"),
    "rounds": Option(300, "trees of a model, at most"),
    "draws": Option(3, "splits and cuts into folds"),
    "work": Option(Path("build/crossfit"), "where finished draws are kept", quoted=False),
    "finished": Option(False, "train nothing: the page of finished draws", quoted=False),
}
PATIENCE, TEST_FOLDS, LEARN_FOLDS = 30, 3, 4
ONE, FOUR = "one native model", "four native, fixed split"
FIXED = "committee, fixed split"
NATIVE_FOLDS, FOLDS = "four native, cross-fitted", "committee, cross-fitted"
REFITTED = "four native, refitted on all"
SMALL = "one model, distilled from it"
SYSTEMS = (ONE, FOUR, FIXED, NATIVE_FOLDS, REFITTED, FOLDS, SMALL)
METRIC = "ndcg@10"
_TITLES = {"lightgbm": "LightGBM", "xgboost": "XGBoost"}
_STRONG, _WEAK = "#0b5394", "#8ab6dd"
Values = npt.NDArray[np.float64]


class Result(NamedTuple):
    """What one draw of a set and a booster gave: values per query, and costs, by system."""

    set: str
    backend: str
    draw: int
    values: dict[str, dict[str, Values]]  # by metric
    fit: dict[str, float]  # CPU seconds
    predict: dict[str, float]
    trees: dict[str, float]

    @classmethod
    def read(cls, line: str) -> "Result":
        """Read a line that ``line`` wrote."""
        found = json.loads(line)
        values = {
            metric: {name: np.array(each, np.float64) for name, each in by.items()}
            for metric, by in found.pop("values").items()
        }
        return cls(**found, values=values)

    def line(self) -> str:
        """Return the result as one line of JSON; None stands for NaN."""
        values = {
            metric: {
                name: [None if np.isnan(one) else round(float(one), 6) for one in each]
                for name, each in by.items()
            }
            for metric, by in self.values.items()
        }
        return json.dumps({**self._asdict(), "values": values}) + "\n"


class Timed(NamedTuple):
    """A trained system: its scores of features, the trees it keeps, and its CPU seconds."""

    predict: Any
    trees: float
    seconds: float


def run(settings: Settings) -> Outcome:
    """Train all systems on every set, booster and draw.

    Parameters
    ----------
    settings : Settings
        ``data`` holds the sets; ``small`` takes a made-up one and few rounds instead.
    """
    given = {name: one.default for name, one in OPTIONS.items()} | dict(settings.options)
    if settings.small:
        sets, given["rounds"], given["draws"] = [demonstration(150)], 10, 1
        given |= {"backends": BOOSTERS, "work": given["work"] / "small"}
    elif settings.data is None:
        raise ConfigError(f"no data: give --data FOLDER or set {VARIABLE}. It needs {NEEDS}")
    else:
        sets = [SETS[name](settings.data).capped(given["rows"]) for name in given["sets"]]
    path = given["work"] / "draws.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    results = [Result.read(line) for line in lines]
    done = {(one.set, one.backend, one.draw) for one in results}
    cells = [
        (data, backend, draw)
        for draw in range(settings.seed, settings.seed + given["draws"])
        for backend in given["backends"]
        for data in sets
    ]
    waiting = [] if given["finished"] else [c for c in cells if (c[0].name, *c[1:]) not in done]
    for backend in {backend for _, backend, _ in waiting}:  # compile, which is not to be timed
        measure(demonstration(60), backend, 0, 2)
    for data, backend, draw in waiting:
        results.append(measure(data, backend, draw, given["rounds"]))
        with path.open("a", encoding="utf-8") as file:
            file.write(results[-1].line())
        means = ", ".join(f"{np.nanmean(v):.4f}" for v in results[-1].values[METRIC].values())
        settings.report(f"draw {draw} {data.name} {backend}: {means}")
    asked = {(data.name, backend, draw) for data, backend, draw in cells}
    return outcome(
        [one for one in results if (one.set, one.backend, one.draw) in asked], sets, given
    )


def measure(data: RankingSet, backend: str, draw: int, rounds: int) -> Result:
    """Return the metrics of every query of a set, each tested once."""
    _, query = np.unique(data.qid, return_inverse=True)
    totals: dict[str, dict[str, float]] = {"fit": {}, "predict": {}, "trees": {}}
    values: dict[str, dict[str, Values]] = {metric: {} for metric in data.goals}
    for learned, tested in gbmrank.query_folds(qid=data.qid, n_folds=TEST_FOLDS, seed=draw):
        first = query[tested][np.sort(np.unique(query[tested], return_index=True)[1])]
        for name, model in trained(data, backend, learned, draw, rounds):
            start = time.process_time()
            scores = model.predict(data.X[tested])
            costs = model.seconds, time.process_time() - start, model.trees / TEST_FOLDS
            for kind, cost in zip(totals, costs, strict=True):
                totals[kind][name] = totals[kind].get(name, 0.0) + cost
            for metric, text in data.goals.items():
                found = gbmrank.metric(text).per_query(data.y[tested], scores, qid=data.qid[tested])
                empty = np.full(int(query.max()) + 1, np.nan)
                values[metric].setdefault(name, empty)[first] = found
    return Result(data.name, backend, draw, values, **totals)


def trained(
    data: RankingSet, backend: str, learned: npt.NDArray[np.int64], seed: int, rounds: int
) -> Iterator[tuple[str, Timed]]:
    """Yield every system with its name."""
    cut = gbmrank.query_folds(qid=data.qid[learned], n_folds=LEARN_FOLDS, seed=seed)
    folds = [(learned[train], learned[stop]) for train, stop in cut]
    if backend in CATBOOST:
        yield from of_catboost(data, backend, folds, seed, rounds)
        return
    native = NATIVE[backend][0][0]
    stop = folds[0][1]
    fixed = {"eval_set": (data.X[stop], data.y[stop]), "eval_qid": data.qid[stop]}
    four = f"committee({native}, seeds={LEARN_FOLDS})"
    plans: dict[str, tuple[str, dict[str, Any], Any, dict[str, Any]]] = {
        ONE: (native, {}, folds[0][0], fixed),
        FOUR: (four, {}, folds[0][0], fixed),
        FIXED: ("committee", {}, folds[0][0], fixed),
        NATIVE_FOLDS: (native, {"folds": LEARN_FOLDS}, learned, {}),
        REFITTED: (four, {"early_stopping_rounds": None}, learned, {}),
        FOLDS: ("committee", {"folds": LEARN_FOLDS}, learned, {}),
    }
    common = {"seed": 100 * seed, "n_jobs": 1, **PARAMS[backend]}
    made: dict[str, GBMRanker] = {}
    for name, (objective, options, rows, given) in plans.items():
        start = time.process_time()
        own = {"n_estimators": rounds, "early_stopping_rounds": PATIENCE, **options}
        if name == REFITTED:
            own["n_estimators"] = round(_trees(made[NATIVE_FOLDS]) / LEARN_FOLDS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made[name] = GBMRanker(objective, backend, **own, **common)
            made[name].fit(data.X[rows], data.y[rows], qid=data.qid[rows], **given)
        seconds = time.process_time() - start
        yield name, Timed(made[name].predict, _trees(made[name]), seconds)
    start = time.process_time()
    student = made[FOLDS].distil(data.X[learned], qid=data.qid[learned])
    yield SMALL, Timed(student.predict, _trees(student), time.process_time() - start)


def _trees(model: GBMRanker) -> int:
    return int(model.best_iteration_) + 1


def of_catboost(
    data: RankingSet, loss: str, folds: Sequence[Any], seed: int, rounds: int
) -> Iterator[tuple[str, Timed]]:
    """Yield CatBoost's systems: models stop where NDCG@10 was best, as a user would by hand."""

    def system(pairs: Sequence[tuple[int, Any]]) -> Timed:
        start = time.process_time()
        models = [grown(at, *rows) for at, rows in pairs]
        seconds = time.process_time() - start
        trees = float(sum(model.rounds[METRIC] for model in models))
        scores = np.mean([model.scores[METRIC] for model in models], axis=0)
        return Timed(lambda _: scores, trees, seconds)  # of the test, scored when they were made

    def grown(at: int, train: Any, stop: Any) -> Any:
        apart = np.setdiff1d(np.arange(len(data.y)), np.concatenate([train, stop]))
        parts = [as_part(data, rows) for rows in (train, stop, apart)]
        what = f"native:{loss}", 100 * seed + at
        return grow_catboost(data, "catboost", what, parts, (rounds, 1))

    yield ONE, system([(0, folds[0])])
    yield FOUR, system([(at, folds[0]) for at in range(LEARN_FOLDS)])
    yield NATIVE_FOLDS, system(list(enumerate(folds)))


def outcome(
    results: Sequence[Result], sets: Sequence[RankingSet], given: Mapping[str, Any]
) -> Outcome:
    """Return tables of gains, of single sets, of other metrics, and of costs."""
    names = [one.name for one in sets]
    gains, others, costs, findings = [], [], [], []
    for backend in given["backends"]:
        mine = [one for one in results if one.backend == backend]
        if not mine:
            continue
        systems = [name for name in SYSTEMS if name in mine[0].fit]
        for name in systems:
            cells = [_shown(set_gain(mine, one, (name, FOUR))) for one in names]
            pooled = [pooled_gain(mine, names, (name, base)) for base in (FOUR, ONE)]
            gains.append([backend, name, *cells, f"**{_shown(pooled[0])}**", _shown(pooled[1])])
            more = [pooled_gain(mine, names, (name, FOUR), one) for one in ("err@10", "map")]
            others.append([backend, name, *(_shown(one) for one in more)])
            costs.append([backend, name, *_costs(mine, name)])
        if backend in BOOSTERS:
            findings += _sentences(backend, mine, names)
    findings += _beside_catboost(results, names, given["backends"])
    spread = draw_spread(results, names)
    if spread is not None:
        findings.append(
            "Between draws, the pooled gain of the cross-fitted committee has a standard "
            f"deviation of {spread:.1f}; the errors above are over queries."
        )
    columns = ["booster", "system", *names, "pooled", "pooled, to one native model"]
    tables = [
        Table("NDCG@10 to four native models on a fixed split, times 10,000", columns, gains),
        Table(
            "Other metrics, pooled, to four native models, times 10,000",
            ["booster", "system", "ERR@10", "MAP"],
            others,
        ),
        Table(
            "Costs, one native model being 1",
            ["booster", "system", "training", "trees", "prediction"],
            costs,
        ),
    ]
    spent = sum(sum(one.fit.values()) for one in results) / 60
    facts = {
        "data": "; ".join(f"{one.name}: {one.about}" for one in sets),
        "draws": ", ".join(
            f"{len({one.draw for one in results if one.backend == backend})} with {backend}"
            for backend in given["backends"]
        ),
        "training": f"{spent:.0f} CPU minutes; the time above is without draws that were kept",
        "models": (
            f"at most {given['rounds']} rounds, early stopping after {PATIENCE}, one thread, "
            "parameters of the study of quality; all systems are tested on the same queries"
        ),
        "errors": "standard errors over queries, of the mean over draws; sets count equally",
        "prediction": "CPU time of GBMRanker.predict on the test rows",
    }
    return Outcome(
        tables=tables,
        findings=findings,
        figures={"gain": partial(draw, results, names)},
        facts=facts,
        summary=_summary(results, names),
    )


def draw(results: Sequence[Result], names: Sequence[str], figure: Any) -> None:
    """Draw what each system gains over one native model, beside what it costs."""
    backends = [one for one in BOOSTERS if any(each.backend == one for each in results)]
    systems = [name for name in SYSTEMS if name != ONE]
    figure.set_size_inches(8.8, 3.6)
    panels = figure.subplots(1, len(backends), sharey=True, squeeze=False)[0]
    for panel, backend in zip(panels, backends, strict=True):
        mine = [one for one in results if one.backend == backend]
        panel.axvline(0.0, color="0.35", linewidth=1)
        side = {"transform": panel.get_yaxis_transform(), "va": "center", "ha": "right"}
        columns: list[tuple[float, str, str]] = [(-0.75, "training", "trees")]
        for place, name in enumerate(systems):
            gain, error = (each / 1e4 for each in pooled_gain(mine, names, (name, ONE)))
            color = _STRONG if name in (FOLDS, SMALL) else _WEAK
            panel.errorbar(gain, place, xerr=1.96 * error, fmt="o", color=color)
            fit, trees, _ = _costs(mine, name)
            columns.append((place, fit, f"{float(trees) / float(_costs(mine, ONE)[1]):.1f}"))
        for height, *texts in columns:
            for x, text in zip((0.86, 1.0), texts, strict=True):
                panel.text(x, height, text, color="0.25", fontsize=9, **side)
        panel.set_title(f"{_TITLES[backend]}: gain over one native model", fontsize=10.5)
        panel.set_xlim(right=panel.get_xlim()[1] * 1.55)
        panel.set_ylim(len(systems) - 0.5, -1.1)
        panel.tick_params(axis="y", length=0)
        panel.grid(axis="x", color="0.9")
        panel.set_axisbelow(True)
        panel.spines[["top", "right", "left"]].set_visible(False)
    panels[0].set_yticks(range(len(systems)), systems)
    figure.supxlabel(
        f"NDCG@10, mean of {len(names)} real sets with 95% intervals; all systems have the same "
        "labels. Costs: times one native model",
        fontsize=9,
    )
    figure.patch.set_facecolor("white")


Pair = tuple[str, str]  # a system and the one it is compared with
Gain = tuple[float, float]  # times 10,000, with its standard error


def _differences(results: Sequence[Result], name: str, pair: Pair, metric: str) -> Values:
    """Return the differences of a set's queries, averaged over draws."""
    own = [one.values[metric] for one in results if one.set == name]
    if not own:
        return np.zeros(0)
    found = np.nanmean(np.array([one[pair[0]] - one[pair[1]] for one in own]), axis=0)
    return found[~np.isnan(found)] * 1e4


def _gain(apart: Values) -> Gain:
    if len(apart) < 2:
        return np.nan, np.nan
    return float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(len(apart)))


def _pooled(found: Sequence[Gain]) -> Gain:
    known = np.array([one for one in found if not np.isnan(one[0])])
    return float(known[:, 0].mean()), float(np.sqrt((known[:, 1] ** 2).sum()) / len(known))


def set_gain(results: Sequence[Result], name: str, pair: Pair, metric: str = METRIC) -> Gain:
    """Return the mean difference of two systems on a set and its standard error over queries."""
    return _gain(_differences(results, name, pair, metric))


def pooled_gain(
    results: Sequence[Result], names: Sequence[str], pair: Pair, metric: str = METRIC
) -> Gain:
    """Return the mean over sets and its standard error."""
    return _pooled([set_gain(results, name, pair, metric) for name in names])


def draw_spread(results: Sequence[Result], names: Sequence[str]) -> float | None:
    """Return the standard deviation between draws of the pooled gain, or None for one draw."""
    means = []
    for draw in sorted({one.draw for one in results}):
        own = [one for one in results if one.draw == draw and one.backend in BOOSTERS]
        gains = [
            set_gain([one for one in own if one.backend == backend], name, (FOLDS, FOUR))[0]
            for backend in BOOSTERS
            for name in names
        ]
        means.append(float(np.nanmean(gains)))
    return float(np.std(means, ddof=1)) if len(means) > 1 else None


def _costs(mine: Sequence[Result], name: str) -> list[str]:
    """Return training, with what it builds on, trees and prediction."""

    def total(kind: str, system: str) -> float:
        return float(sum(getattr(one, kind)[system] for one in mine))

    first = {SMALL: FOLDS, REFITTED: NATIVE_FOLDS}.get(name)  # the teacher; the numbers of rounds
    fit = total("fit", name) + (0.0 if first is None else total("fit", first))
    trees = np.mean([one.trees[name] for one in mine])
    ratio = total("predict", name) / total("predict", ONE)
    shown = "-" if mine[0].backend in CATBOOST else f"{ratio:.1f}"
    return [f"{fit / total('fit', ONE):.1f}", f"{trees:.0f}", shown]


def _sentences(backend: str, mine: Sequence[Result], names: Sequence[str]) -> list[str]:
    to_four = {name: pooled_gain(mine, names, (name, FOUR)) for name in SYSTEMS}
    to_one = {name: pooled_gain(mine, names, (name, ONE))[0] for name in (FOLDS, SMALL)}
    losses = pooled_gain(mine, names, (FOLDS, NATIVE_FOLDS))
    share = sum(one.fit[SMALL] for one in mine) / sum(one.fit[FOLDS] for one in mine)
    found = (
        f"{backend}: to four native models on a fixed split, the committee gains "
        f"{_shown(to_four[FIXED])}, four cross-fitted native models {_shown(to_four[NATIVE_FOLDS])}"
        f", four refitted on all {_shown(to_four[REFITTED])}, the cross-fitted committee "
        f"{_shown(to_four[FOLDS])}, and one model distilled from it {_shown(to_four[SMALL])}. Of "
        f"the cross-fitted committee, the four losses make {_shown(losses)}."
    )
    kept = (
        f"{backend}: the distilled model keeps {to_one[SMALL] / to_one[FOLDS]:.0%} of the gain of "
        f"the cross-fitted committee over one native model, and its training costs {share:.0%} of "
        "that of its teacher."
    )
    return [found, kept]


def _beside_catboost(
    results: Sequence[Result], names: Sequence[str], backends: Sequence[str]
) -> list[str]:
    """Compare the cross-fitted committees with CatBoost's cross-fitted models, query by query."""
    by = {(one.set, one.backend, one.draw): one for one in results}
    said = []
    for backend in (one for one in BOOSTERS if one in backends):
        for loss in (one for one in CATBOOST if one in backends):
            gains = []
            for name in names:
                apart = [
                    one.values[METRIC][FOLDS] - other.values[METRIC][NATIVE_FOLDS]
                    for one in results
                    if (one.set, one.backend) == (name, backend)
                    and (other := by.get((name, loss, one.draw))) is not None
                ]
                if apart:
                    mean = np.nanmean(np.array(apart), axis=0)
                    gains.append(_gain(mean[~np.isnan(mean)] * 1e4))
            if gains:
                said.append(
                    f"{backend}: against four models of CatBoost's {loss}, cross-fitted by hand, "
                    f"the cross-fitted committee is at {_shown(_pooled(gains))}."
                )
    return said


def _summary(results: Sequence[Result], names: Sequence[str]) -> str:
    ours = [one for one in results if one.backend in BOOSTERS]

    def both(system: str, base: str = FOUR) -> str:
        found = [
            pooled_gain([one for one in ours if one.backend == backend], names, (system, base))
            for backend in dict.fromkeys(one.backend for one in ours)
        ]
        return " and ".join(_shown(one) for one in found)

    where = " and ".join(dict.fromkeys(one.backend for one in ours))
    return (
        f"NDCG@10 times 10,000 in {where}, with standard errors. Averaging four native models "
        f"gains {both(FOUR, ONE)} over one. Using every labelled query, for training and for "
        f"stopping, gains {both(NATIVE_FOLDS)} more; with four losses instead of one it is "
        f"{both(FOLDS)}, and one model distilled from these, with a quarter of the trees, has "
        f"{both(SMALL)}. Anyone can cross-fit by hand, in about 40 lines."
    )


def _shown(gain: Gain) -> str:
    return "-" if np.isnan(gain[0]) else f"{gain[0]:+.0f} ({gain[1]:.0f})"
