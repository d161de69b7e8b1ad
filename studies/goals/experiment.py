"""Two goals: a dial of two or three models against nine trainings on mixtures of the utilities.

``python -m studies goals --data FOLDER`` trains, on every set and split, eleven models of
equal size: each goal alone, and nine mixtures of the two utilities at weights .1 to .9. The dial
has the two models of single goals, or these and the even mixture; the rival has the nine mixtures.

P_A and P_B are the shares of what each goal can gain: 1 for the model of that goal alone, 0 for
the model of the other. Two summaries, both valued on test queries:

- *balance*: mean over l = .1 to .9 of min(P_A / l, P_B / (1 - l)), where the setting for each l is
  chosen on validation queries;
- *hypervolume*: the area of (P_A, P_B) that the settings dominate, from (0, 0).

The promise of ``pick`` is tried on fresh queries of the demonstration data: validation queries are
drawn again and again, and the true share is taken from many others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import gbmrank
from gbmrank.data.queries import Groups
from gbmrank.demo_data import demo_data
from gbmrank.errors import ConfigError
from gbmrank.estimators.goal_front import Front
from studies.files import VARIABLE
from studies.intervals import over_runs
from studies.sets import SETS
from studies.study import Option, Page, Settings

TITLE = "Two goals: one model each and a dial, against trainings on mixtures"
PAPER = ""
NEEDS = "OHSUMED, MQ2008 and MovieLens 100k"
FORMULAS = ("objectives/pairwise.py", "estimators/goal_ranker.py", "estimators/goal_front.py")
OPTIONS: Mapping[str, Option] = {
    "sets": Option(("demonstration", "ohsumed", "mq2008", "movielens"), "data sets"),
    "splits": Option(3, "splits of each set"),
    "rounds": Option(100, "trees of a model"),
    "runs": Option(1000, "draws of validation queries for the promise of pick"),
}
BACKENDS = ("lightgbm", "xgboost")
GOALS = {
    "relevance": "query_rmse(target=ndcg@10)",
    "other": "query_rmse(target=ndcg(gain=linear)@10)",
}
METRICS = ("ndcg@10", "ndcg(gain=linear)@10")
CONTENDERS = {"two models": [0, 10], "three models": [0, 5, 10], "nine mixtures": None}
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """Rows of queries with one label column per goal."""

    X: Floats
    columns: Mapping[str, Any]
    qid: npt.NDArray[Any]

    def only(self, chosen: npt.NDArray[np.bool_]) -> "Rows":
        """Return some rows."""
        columns = {goal: y[chosen] for goal, y in self.columns.items()}
        return Rows(self.X[chosen], columns, self.qid[chosen])


def read(name: str, settings: Settings) -> Rows:
    """Return a set with a second goal.

    On real sets it is the feature that goes most against the labels within queries, cut into five
    grades of equal size; it is no feature then.
    """
    if name == "demonstration":
        data = demo_data(600, goals=2)
        margin = np.asarray(data.margin, np.float64)
        return Rows(data.X, {"relevance": data.labels * 1.0, "other": margin}, data.qid)
    if settings.data is None:
        raise ConfigError(f"no data: give --data FOLDER or set {VARIABLE}. It needs {NEEDS}")
    data_set = SETS[name](settings.data).capped(20_000)
    x = data_set.X.astype(np.float64)
    groups = Groups.from_qid(data_set.qid, len(x))

    def centred(values: Floats) -> Floats:
        arranged = groups.arrange(values)
        means = np.add.reduceat(arranged, groups.offsets[:-1]) / groups.sizes
        return groups.restore(arranged - groups.spread(means))

    label = centred(data_set.y)
    found = []
    for column in x.T:
        values = centred(column)
        apart = np.sqrt(np.mean(values**2) * np.mean(label**2))
        found.append(np.mean(values * label) / apart if apart > 1e-9 else 1.0)
    at = int(np.argmin(found))
    cuts = np.quantile(x[:, at], [0.2, 0.4, 0.6, 0.8])
    other = np.searchsorted(cuts, x[:, at]).astype(np.float64)
    kept = np.delete(x, at, axis=1)
    return Rows(kept, {"relevance": data_set.y, "other": other}, data_set.qid)


def run(settings: Settings) -> Page:
    """Train all models on every split and compare what their settings reach."""
    given = {name: one.default for name, one in OPTIONS.items()} | dict(settings.options)
    if settings.small:
        given |= {"sets": ("demonstration",), "splits": 1, "rounds": 10, "runs": 20}
    found: dict[tuple[str, str], list[Mapping[str, tuple[float, float]]]] = {}
    for name in given["sets"]:
        data = read(name, settings)
        for backend in BACKENDS:
            for split in range(given["splits"]):
                values = compared(data, backend, split, given["rounds"], settings)
                found.setdefault((name, backend), []).append(values)
                shown = ", ".join(f"{one} {b:.3f} {h:.3f}" for one, (b, h) in values.items())
                settings.report(f"{name} {backend} split {split}: {shown}")
    promise = promises(given["runs"], given["rounds"], settings)
    return page(found, promise, given)


def compared(
    data: Rows, backend: str, split: int, rounds: int, settings: Settings
) -> dict[str, tuple[float, float]]:
    """Return balance and hypervolume of every contender on the test queries of one split."""
    ids, at = np.unique(data.qid, return_inverse=True)
    part = np.random.default_rng(100 + split).permutation(len(ids)) % 4
    train, valid, test = (data.only(np.isin(part[at], one)) for one in ((0, 1), (2,), (3,)))
    model = gbmrank.GoalRanker(
        GOALS,
        middle=9,
        backend=backend,
        n_estimators=rounds,
        learning_rate=0.1,
        n_jobs=settings.threads,
        seed=settings.seed + split,
    ).fit(train.X, train.columns, qid=train.qid)
    scores = [
        np.stack(
            [
                one.predict(rows.X) / spread
                for one, spread in zip(model._models, model._spreads, strict=True)
            ]
        )
        for rows in (valid, test)
    ]
    ends = [values(rows, found[[0, 10]]) for rows, found in zip((valid, test), scores, strict=True)]
    made = {}
    for name, nodes in CONTENDERS.items():
        mixed = [found[1:10] if nodes is None else along(found[nodes]) for found in scores]
        seen, fresh = (
            shares(values(rows, each), end)
            for rows, each, end in zip((valid, test), mixed, ends, strict=True)
        )
        made[name] = balance(seen, fresh), hypervolume(fresh)
    return made


def along(nodes: Floats) -> Floats:
    """Return the scores at 41 settings of a dial through the models."""
    places = np.linspace(0.0, len(nodes) - 1.0, 41)
    factors = np.maximum(0.0, 1.0 - np.abs(places[:, None] - np.arange(len(nodes))))
    return factors @ nodes


def values(rows: Rows, scores: Floats) -> Floats:
    """Return the mean of both metrics for each row of scores, shape (n, 2)."""
    return np.array(
        [
            [
                np.nanmean(gbmrank.metric(m).per_query(y, one, qid=rows.qid))
                for m, y in zip(METRICS, rows.columns.values(), strict=True)
            ]
            for one in scores
        ]
    )


def shares(found: Floats, ends: Floats) -> Floats:
    """Return (P_A, P_B): ends[0] is the second goal alone, ends[1] the first."""
    first = (found[:, 0] - ends[0, 0]) / (ends[1, 0] - ends[0, 0])
    second = (found[:, 1] - ends[1, 1]) / (ends[0, 1] - ends[1, 1])
    return np.column_stack([first, second])


def balance(seen: Floats, fresh: Floats) -> float:
    """Return the mean over nine demands of the smaller fulfilment, chosen on other queries."""
    reached = []
    for demand in np.arange(1, 10) / 10.0:
        wanted = np.array([demand, 1.0 - demand])
        chosen = int(np.argmax((seen / wanted).min(axis=1)))
        reached.append((fresh[chosen] / wanted).min())
    return float(np.mean(reached))


def hypervolume(points: Floats) -> float:
    """Return the area above (0, 0) that points dominate, with both ends (1, 0) and (0, 1)."""
    whole = np.vstack([np.maximum(points, 0.0), [[1.0, 0.0], [0.0, 1.0]]])
    area, height = 0.0, 0.0
    for first, second in whole[np.argsort(-whole[:, 0], kind="stable")]:
        area += first * max(second - height, 0.0)
        height = max(height, second)
    return float(area)


def promises(runs: int, rounds: int, settings: Settings) -> list[tuple[str, float, int, float]]:
    """Return how often the true share is as large as demanded, for demands and confidences."""
    train, pool = (
        demo_data(400, goals=2),
        demo_data(300 if settings.small else 8000, seed=9, goals=2),
    )
    level = demo_data(200, seed=8, goals=2)
    goals = {"relevance": GOALS["relevance"], "margin": GOALS["other"]}
    ranker = gbmrank.GoalRanker(goals, n_estimators=rounds, n_jobs=settings.threads).fit(
        train.X,
        train.columns,
        qid=train.qid,
        eval_set=[(level.X, level.columns), (pool.X, pool.columns)],
        eval_qid=[level.qid, pool.qid],
    )
    front = ranker.front_
    truth = np.nanmean(front.per_query[:, 0], axis=1)
    truth = truth / truth[-1]
    rng = np.random.default_rng(settings.seed)
    made = []
    for queries in (100, 300):
        for confidence in (0.5, 0.9, 0.95):
            kept = 0
            for _ in range(runs):
                drawn = rng.integers(front.per_query.shape[2], size=queries)
                one = Front(
                    front.goals,
                    front.metrics,
                    front.at,
                    front.weights,
                    front.per_query[:, :, drawn],
                    front.served,
                )
                at = one.pick({"relevance": 0.95}, confidence).at
                kept += bool(truth[int(np.argmin(np.abs(front.at - at)))] >= 0.95)
            made.append((f"{queries} queries", confidence, runs, kept / runs))
            settings.report(f"pick, {queries} queries, {confidence:.0%}: kept in {kept / runs:.1%}")
    return made


def with_error(values: Sequence[float]) -> str:
    """Return the mean of splits and its standard error, which needs two.

    >>> with_error([1.0, 2.0, 3.0]), with_error([0.5])
    ('2.000 ± 0.577', '0.500')
    """
    mean = f"{np.mean(values):.3f}"
    if len(values) < 2:
        return mean
    return f"{mean} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.3f}"


def page(
    found: Mapping[tuple[str, str], list[Mapping[str, tuple[float, float]]]],
    promise: list[tuple[str, float, int, float]],
    given: Mapping[str, Any],
) -> Page:
    """Return the page."""
    pooled = {
        (name, which): over_runs(
            np.array(
                [
                    one[name][which] - one["nine mixtures"][which]
                    for v in found.values()
                    for one in v
                ]
            )
        )
        for name in ("two models", "three models")
        for which in (0, 1)
    }
    two, three = pooled["two models", 0], pooled["three models", 0]
    lines = [
        (
            f"Against nine trainings on mixtures, the balance of a dial of two models differs "
            f"by {two}, and with one training in the middle by {three}; the hypervolume by "
            f"{pooled['two models', 1]} and {pooled['three models', 1]}."
        ),
        "",
        "| data | booster | " + " | ".join(CONTENDERS) + " |",
        "| --- | --- |" + " ---: |" * len(CONTENDERS),
    ]
    for (name, backend), runs in found.items():
        cells = [
            " / ".join(with_error([one[c][which] for one in runs]) for which in (0, 1))
            for c in CONTENDERS
        ]
        lines.append(f"| {name} | {backend} | {' | '.join(cells)} |")
    lines += [
        "",
        (
            "Balance / hypervolume, means over splits ± one standard error; larger is better. "
            "Splits share their queries, so the errors tell how much splits differ. Differences "
            "are paired over sets, boosters and splits."
        ),
        "",
        "## The promise of `pick`",
        "",
        (
            "`pick({'relevance': .95}, confidence)` on queries drawn anew, and how often the "
            "setting keeps 95% on all other queries:"
        ),
        "",
        "| validation | confidence | draws | kept |",
        "| --- | ---: | ---: | ---: |",
        *(f"| {what} | {c:.0%} | {n} | {share:.1%} |" for what, c, n, share in promise),
    ]
    assert __doc__ is not None
    about = __doc__.partition("\n\n")[2].replace("``", "`").strip()
    lines += ["", "## How", "", about]
    notes = [
        (
            f"{given['splits']} splits of every set (half to train, a quarter each to choose and "
            f"to value), {given['rounds']} trees, learning rate 0.1"
        )
    ]
    return Page(lines=lines, notes=notes)
