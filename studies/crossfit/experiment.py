"""Cross-fitted rankers and a model distilled from them, against training on a fixed split.

``python -m studies crossfit --data FOLDER`` holds out a third of the queries for the test, in
turn. Of the rest, systems with a fixed split train on three quarters and stop on one; cross-fitted
ones use all of them in four folds. A draw is one such split and one cut into folds.
"""

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import gbmrank
from gbmrank import GBMRanker
from gbmrank.errors import ConfigError
from studies.files import VARIABLE
from studies.quality.models import NATIVE, PARAMS
from studies.sets import SETS, RankingSet, demonstration
from studies.study import Option, Outcome, Settings, Table

TITLE = "One model that beats four: folds and distillation"
PAPER = ""
NEEDS = "OHSUMED of LETOR 3.0, MQ2008 of LETOR 4.0 and LightGBM's ranking example"
FORMULAS = ("estimators/crossfit.py", "estimators/distillation.py")
OPTIONS: Mapping[str, Option] = {
    "sets": Option(("ohsumed", "mq2008", "lightgbm_example"), "data sets", tuple(SETS)),
    "backends": Option(("lightgbm", "xgboost"), "boosters", ("lightgbm", "xgboost")),
    "rounds": Option(300, "trees of a model, at most"),
    "draws": Option(3, "splits and cuts into folds"),
    "minutes": Option(60, "a draw that is not complete by then is left out", quoted=False),
}
PATIENCE, TEST_FOLDS, LEARN_FOLDS = 30, 3, 4
ONE, FOUR = "one native model", "four native, fixed split"
FIXED = "committee, fixed split"
NATIVE_FOLDS, FOLDS = "four native, cross-fitted", "committee, cross-fitted"
SMALL = "one model, distilled from it"
SYSTEMS = (ONE, FOUR, FIXED, NATIVE_FOLDS, FOLDS, SMALL)
Values = npt.NDArray[np.float64]


class Result(NamedTuple):
    """What one draw of a set and a booster gave, by system: values per query, and costs."""

    set: str
    backend: str
    values: dict[str, Values]
    fit: dict[str, float]  # CPU seconds
    predict: dict[str, float]
    trees: dict[str, float]


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
    elif settings.data is None:
        raise ConfigError(f"no data: give --data FOLDER or set {VARIABLE}. It needs {NEEDS}")
    else:
        sets = [SETS[name](settings.data) for name in given["sets"]]
    ends = time.perf_counter() + 60 * given["minutes"]
    results: list[Result] = []
    for backend in given["backends"]:  # compile and import, which is not to be timed
        measure(demonstration(60), backend, 0, 2)
    for draw in range(given["draws"]):
        cells = [(data, backend) for data in sets for backend in given["backends"]]
        made: list[Result] = []
        for data, backend in cells:
            if time.perf_counter() < ends:
                done = measure(data, backend, settings.seed + draw, given["rounds"])
                made.append(done)
                means = ", ".join(f"{np.nanmean(done.values[name]):.4f}" for name in SYSTEMS)
                settings.report(f"draw {draw} {data.name} {backend}: {means}")
        results += made if len(made) == len(cells) else []
    drawn = len(results) // (len(sets) * len(given["backends"]))
    return outcome(results, sets, drawn, given)


def measure(data: RankingSet, backend: str, seed: int, rounds: int) -> Result:
    """Return NDCG@10 of every query of a set, each tested once."""
    _, query = np.unique(data.qid, return_inverse=True)
    values = {name: np.full(int(query.max()) + 1, np.nan) for name in SYSTEMS}
    totals: dict[str, dict[str, float]] = {
        kind: dict.fromkeys(SYSTEMS, 0.0) for kind in ("fit", "predict", "trees")
    }
    ndcg = gbmrank.metric("ndcg@10")
    for learned, tested in gbmrank.query_folds(qid=data.qid, n_folds=TEST_FOLDS, seed=seed):
        models = trained(data, backend, learned, seed, rounds)
        first = np.unique(query[tested], return_index=True)[1]
        for name, (model, seconds) in models.items():
            start = time.process_time()
            scores = model.predict(data.X[tested])
            totals["predict"][name] += time.process_time() - start
            totals["fit"][name] += seconds
            totals["trees"][name] += (model.best_iteration_ + 1) / TEST_FOLDS
            found = ndcg.per_query(data.y[tested], scores, qid=data.qid[tested])
            values[name][query[tested][np.sort(first)]] = found
    return Result(data.name, backend, values, totals["fit"], totals["predict"], totals["trees"])


def trained(
    data: RankingSet, backend: str, learned: npt.NDArray[np.int64], seed: int, rounds: int
) -> dict[str, tuple[GBMRanker, float]]:
    """Return every system with its CPU seconds."""
    cut = gbmrank.query_folds(qid=data.qid[learned], n_folds=LEARN_FOLDS, seed=seed)[0]
    train, stop = learned[cut[0]], learned[cut[1]]
    native = NATIVE[backend][0][0]
    fixed = {"eval_set": (data.X[stop], data.y[stop]), "eval_qid": data.qid[stop]}
    plans: dict[str, tuple[str, dict[str, Any], Any, dict[str, Any]]] = {
        ONE: (native, {}, train, fixed),
        FOUR: (f"committee({native}, seeds={LEARN_FOLDS})", {}, train, fixed),
        FIXED: ("committee", {}, train, fixed),
        NATIVE_FOLDS: (native, {"folds": LEARN_FOLDS}, learned, {}),
        FOLDS: ("committee", {"folds": LEARN_FOLDS}, learned, {}),
    }
    made: dict[str, tuple[GBMRanker, float]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (objective, options, rows, given) in plans.items():
            start = time.process_time()
            model = GBMRanker(
                objective,
                backend,
                n_estimators=rounds,
                early_stopping_rounds=PATIENCE,
                seed=100 * seed,
                n_jobs=1,
                **options,
                **PARAMS[backend],
            )
            model.fit(data.X[rows], data.y[rows], qid=data.qid[rows], **given)
            made[name] = model, time.process_time() - start
        start = time.process_time()
        student = made[FOLDS][0].distil(data.X[learned], qid=data.qid[learned])
        made[SMALL] = student, time.process_time() - start
    return made


def outcome(
    results: Sequence[Result], sets: Sequence[RankingSet], drawn: int, given: Mapping[str, Any]
) -> Outcome:
    """Return tables of gains, of single sets, and of costs."""
    gains, costs, findings = [], [], []
    names = [one.name for one in sets]
    for backend in given["backends"]:
        mine = [one for one in results if one.backend == backend]
        pooled = {name: pooled_gain(mine, names, name, FOUR) for name in SYSTEMS}
        above = {name: pooled_gain(mine, names, name, ONE) for name in SYSTEMS}
        for name in SYSTEMS:
            cells = [_shown(*set_gain(mine, one, name, FOUR)) for one in names]
            pooled_cell = "0" if name == FOUR else f"**{_shown(*pooled[name])}**"
            gains.append([backend, name, *cells, pooled_cell, _shown(*above[name])])
            cost = [sum(getattr(one, kind)[name] for one in mine) for kind in ("fit", "predict")]
            base = [sum(getattr(one, kind)[ONE] for one in mine) for kind in ("fit", "predict")]
            trees = np.mean([one.trees[name] for one in mine])
            more = cost[0] + (sum(one.fit[FOLDS] for one in mine) if name == SMALL else 0.0)
            ratio = cost[1] / base[1]
            costs.append([backend, name, f"{more / base[0]:.1f}", f"{trees:.0f}", f"{ratio:.1f}"])
        findings.append(_sentence(backend, pooled, above))
        shares = [sum(one.fit[SMALL] for one in mine) / sum(one.fit[FOLDS] for one in mine)]
        findings.append(
            f"{backend}: the student costs {shares[0]:.0%} of the training of its teacher."
        )
    spread = draw_spread(results, names, given["backends"])
    if spread is not None:
        findings.append(
            "Between draws, the pooled gain of the cross-fitted committee has a standard "
            f"deviation of {spread:.1f}; the errors above are over queries."
        )
    columns = ["booster", "system", *names, "pooled", "pooled, to one native model"]
    tables = [
        Table("NDCG@10 to four native models on a fixed split, times 10,000", columns, gains),
        Table(
            "Costs, one native model being 1",
            ["booster", "system", "training", "trees", "prediction"],
            costs,
        ),
    ]
    facts = {
        "data": "; ".join(f"{one.name}: {one.about}" for one in sets),
        "draws": drawn,
        "models": (
            f"at most {given['rounds']} rounds, early stopping after {PATIENCE}, one thread, "
            "parameters of the study of quality; all systems are tested on the same queries"
        ),
        "errors": "standard errors over queries, of the mean over draws; sets count equally",
        "prediction": "CPU time of GBMRanker.predict on the test rows",
    }
    return Outcome(tables=tables, findings=findings, facts=facts, summary=_summary(results, names))


def set_gain(results: Sequence[Result], name: str, system: str, base: str) -> tuple[float, float]:
    """Return mean and standard error over queries of a difference, averaged over draws."""
    own = [one.values[system] - one.values[base] for one in results if one.set == name]
    apart = np.nanmean(np.array(own), axis=0)
    apart = apart[~np.isnan(apart)] * 1e4
    return float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(len(apart)))


def pooled_gain(
    results: Sequence[Result], names: Sequence[str], system: str, base: str
) -> tuple[float, float]:
    """Return the mean over sets and its standard error."""
    found = np.array([set_gain(results, name, system, base) for name in names])
    return float(found[:, 0].mean()), float(np.sqrt((found[:, 1] ** 2).sum()) / len(names))


def draw_spread(
    results: Sequence[Result], names: Sequence[str], backends: Sequence[str]
) -> float | None:
    """Return the standard deviation between draws of the pooled gain, or None for one draw."""
    by_draw: dict[int, list[float]] = {}
    for backend in backends:
        for name in names:
            own = [one for one in results if (one.set, one.backend) == (name, backend)]
            for draw, one in enumerate(own):
                by_draw.setdefault(draw, []).append(set_gain([one], name, FOLDS, FOUR)[0])
    means = [float(np.mean(one)) for one in by_draw.values()]
    return float(np.std(means, ddof=1)) if len(means) > 1 else None


def _sentence(
    backend: str, pooled: Mapping[str, tuple[float, float]], above: Mapping[str, Any]
) -> str:
    kept = above[SMALL][0] / above[FOLDS][0]
    return (
        f"{backend}: to four native models on a fixed split, the committee gains "
        f"{_shown(*pooled[FIXED])}, four cross-fitted native models {_shown(*pooled[NATIVE_FOLDS])}"
        f", the cross-fitted committee {_shown(*pooled[FOLDS])}, and one model distilled from it "
        f"{_shown(*pooled[SMALL])}. The distilled model keeps {kept:.0%} of the gain of the "
        "cross-fitted committee over one native model."
    )


def _summary(results: Sequence[Result], names: Sequence[str]) -> str:
    gain = {name: pooled_gain(results, names, name, FOUR) for name in SYSTEMS}
    return (
        "Using every labelled query for training and for stopping, and averaging, is worth "
        f"{_shown(*gain[NATIVE_FOLDS])} (NDCG@10 times 10,000, with its standard error) over four "
        "native models on a fixed split; with a committee of four losses it is "
        f"{_shown(*gain[FOLDS])}, and one distilled model, with a quarter of the trees, has "
        f"{_shown(*gain[SMALL])}. Anyone can cross-fit by hand, in about 40 lines."
    )


def _shown(mean: float, error: float) -> str:
    return f"{mean:+.0f} ({error:.0f})"
