"""Public ways to train a ranker on synthetic data, with only the objective replaced.

Six scripts with their own parameters, in both boosters, learn from 250 queries with noisy labels.
The drop-in stands in for the booster's objective, and nothing else changes. Test queries have clean
labels. One training gives both columns: all rounds, and the rounds at which a patience of 30 on
the metric of held-out queries (with noisy labels, as a user has) would have stopped it.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np
import numpy.typing as npt
import xgboost as xgb
from scipy.special import stdtr

import gbmrank
from gbmrank.experiments.statistics.resampling import holm
from studies.study import Option, Page, Settings

TITLE = "Public scripts with only the objective replaced"
PAPER = ""
NEEDS = ""
FORMULAS = ("objectives/swap.py",)
OPTIONS: Mapping[str, Option] = {}
NATIVE = {"lightgbm": "lambdarank", "xgboost": "rank:ndcg"}
NOISES = (0.0, 0.2, 0.4)
SEEDS = 6
PATIENCE = 30
STEPS = ("all rounds", "early stopping")
OTHERS = (
    "yetirank",
    "swap(metric=ndcg@10, noise=logistic, like=LIKE)",
    "swap(metric=ndcg@10, norm=true)",
    "pairwise(target=ndcg@10)",
    "query_rmse",
)
Values = npt.NDArray[np.float64]
_CUTS = {"graded": (0.5, 1.6, 2.6, 3.6), "binary": (3.0,)}


class Rows(NamedTuple):
    """Features, labels and rows per query."""

    x: Values
    y: Values
    group: npt.NDArray[np.int64]


class Pattern(NamedTuple):
    """What a public script sets, and what its data look like."""

    name: str
    labels: str
    metric: str
    queries: int
    lightgbm: Mapping[str, Any]
    xgboost: Mapping[str, Any]
    rounds: tuple[int, int]


PATTERNS = (
    Pattern(
        "OTTO", "binary", "recall@20", 250,
        {"boosting": "dart"}, {"tree_method": "hist"}, (100, 50),
    ),
    Pattern("H&M", "binary", "map@12", 250, {}, {"learning_rate": 0.1}, (100, 100)),
    Pattern(
        "PyTerrier", "graded", "ndcg@10", 250,
        {
            "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 100, "num_leaves": 7,
            "learning_rate": 0.1,
        },
        {"learning_rate": 0.1, "gamma": 1.0, "min_child_weight": 0.1, "max_depth": 6}, (10, 100),
    ),
    Pattern(
        "slow, large trees", "graded", "ndcg@10", 250,
        {"num_leaves": 31, "learning_rate": 0.05}, {"learning_rate": 0.05, "max_depth": 6},
        (300, 300),
    ),
    Pattern(
        "small trees", "graded", "err@10", 250,
        {"num_leaves": 15, "learning_rate": 0.1}, {"learning_rate": 0.1, "max_depth": 4},
        (100, 100),
    ),
    Pattern(
        "little data", "graded", "ndcg@10", 80,
        {"learning_rate": 0.1}, {"learning_rate": 0.1}, (200, 200),
    ),
)  # fmt: skip
SINGLE = PATTERNS[4]._replace(metric="ndcg@10")


def drop_in(backend: str) -> str:
    """Return the objective that replaces the booster's own."""
    return f"yetirank(like={NATIVE[backend]})"


def rows_of(pattern: Pattern, noise: float, seed: int, test: int = 400) -> tuple[Rows, Rows, Rows]:
    """Draw queries to learn from, to stop by and to test; the labels of the last are clean.

    A label is replaced, with the probability ``noise``, by that of a random row.
    """
    found: list[Rows] = []
    rng = np.random.default_rng([seed, 37])
    for n in (pattern.queries, pattern.queries // 2, test):
        sizes = rng.integers(10, 40, n)
        query = np.repeat(np.arange(n), sizes)
        x = rng.normal(size=(len(query), 15))
        x[:, -1] = rng.normal(size=n)[query]
        value = 1.2 * x[:, 0] + x[:, 1] * x[:, 2] + np.sin(2.0 * x[:, 3])
        value += 0.7 * np.maximum(x[:, 4], 0.0) + 0.5 * x[:, 5] * (x[:, -1] > 0.0)
        value += 1.2 * rng.normal(size=len(query))
        y = np.digitize(value, _CUTS[pattern.labels]).astype(float)
        spoilt = np.where(rng.random(len(y)) < noise, rng.permutation(y), y)
        found.append(Rows(x, y if len(found) == 2 else spoilt, sizes))
    return found[0], found[1], found[2]


def _stopped(curve: Sequence[float]) -> int:
    """Return how many rounds early stopping keeps."""
    best = 0
    for at, value in enumerate(curve):
        if value > curve[best]:
            best = at
        elif at - best >= PATIENCE:
            break
    return best + 1


def trained(pattern: Pattern, backend: str, objective: Any, data: Any) -> list[float]:
    """Return the metric on test queries after all rounds, and after those of early stopping."""
    metric = gbmrank.metric(pattern.metric)
    run = _lightgbm if backend == "lightgbm" else _xgboost
    curve, scores = run(pattern, objective, metric, data)
    test = data[2]
    return [
        float(np.nanmean(metric.per_query(test.y, scores(n), group=test.group)))
        for n in (len(curve), _stopped(curve))
    ]


def _lightgbm(pattern: Pattern, objective: Any, metric: Any, data: Any) -> Any:
    train, valid, test = data
    params = {
        "verbosity": -1, "seed": 0, "deterministic": True, "force_row_wise": True,
        "num_threads": 1, "metric": "None", **pattern.lightgbm, "objective": objective,
    }  # fmt: skip
    rows = lgb.Dataset(train.x, train.y, group=train.group, params={"verbosity": -1})
    held = lgb.Dataset(valid.x, valid.y, group=valid.group, reference=rows)
    seen: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of leaf limits that a script's parameters set
        model = lgb.train(
            params, rows, pattern.rounds[0], valid_sets=[held], feval=metric,
            callbacks=[lgb.record_evaluation(seen)],
        )  # fmt: skip
    (curve,) = seen["valid_0"].values()
    return curve, lambda n: model.predict(test.x, num_iteration=n, num_threads=1)


def _xgboost(pattern: Pattern, objective: Any, metric: Any, data: Any) -> Any:
    train, valid, test = (xgb.DMatrix(one.x, one.y, nthread=1) for one in data)
    for made, one in zip((train, valid, test), data, strict=True):
        made.set_group(one.group)
    own = isinstance(objective, str)
    params = {"nthread": 1, "seed": 0, "disable_default_eval_metric": 1, **pattern.xgboost}
    seen: dict[str, Any] = {}
    model = xgb.train(
        {**params, **({"objective": objective} if own else {})}, train, pattern.rounds[1],
        evals=[(valid, "valid")], obj=None if own else objective, custom_metric=metric,
        evals_result=seen, verbose_eval=False,
    )  # fmt: skip
    (curve,) = seen["valid"].values()
    return curve, lambda n: model.predict(test, iteration_range=(0, n), output_margin=True)


Key = tuple[str, str, float, str]
"""Pattern, booster, noise, and ``STEPS`` or the objective."""


def _against(pattern: Pattern, objectives: Sequence[str], settings: Settings) -> dict[Any, Values]:
    """Return values by booster, noise and objective, shape (seeds, 2); the native is first."""
    seeds, test = (2, 50) if settings.small else (SEEDS, 400)
    if settings.small:
        pattern = pattern._replace(queries=40, rounds=(5, 5))
    found = {}
    for noise in NOISES[1:2] if settings.small else NOISES:
        data = [rows_of(pattern, noise, settings.seed + seed, test) for seed in range(seeds)]
        for backend, native in NATIVE.items():
            for text in (native, *objectives):
                named = text.replace("DROP-IN", drop_in(backend)).replace("LIKE", native)
                one = native if text == native else gbmrank.objective(named)
                values = [trained(pattern, backend, one, each) for each in data]
                found[backend, noise, text if text == native else named] = np.array(values)
        settings.report(f"{pattern.name}, noise {noise:g}: done")
    return found


def curvatures(settings: Settings) -> list[tuple[str, list[str]]]:
    """Return the Hessian per row of natives and drop-ins by items per query, over rounds."""
    rounds = (1, 2, 20, 100) if not settings.small else (1, 2, 3, 4)
    found = []
    for backend, native in NATIVE.items():
        for objective in (native, gbmrank.objective(drop_in(backend))):
            cells = []
            for items in (7, 25, 120):
                n = max(3000 // items, 20) if not settings.small else 5
                many = rows_of(PATTERNS[3]._replace(queries=n), 0.2, settings.seed, test=2)[0]
                rng = np.random.default_rng(0)
                pick = rng.permutation(np.resize(np.arange(len(many.y)), n * items))
                rows = Rows(many.x[pick], many.y[pick], np.full(n, items))
                cells.append(_curvature(backend, objective, rows, rounds))
            found.append((str(native if objective == native else drop_in(backend)), cells))
    return found


def _curvature(backend: str, objective: Any, rows: Rows, rounds: tuple[int, ...]) -> str:
    own = isinstance(objective, str)
    if backend == "lightgbm":
        params = {
            "verbosity": -1,
            "num_threads": 1,
            "min_sum_hessian_in_leaf": 1e-9,
            "min_data_in_leaf": 1,
        }
        data = lgb.Dataset(rows.x, rows.y, group=rows.group, params={"verbosity": -1})
        made = lgb.train({**params, "num_leaves": 15, "objective": objective}, data, rounds[-1])
        table = made.trees_to_dataframe()
        sums = table[table["left_child"].isna()].groupby("tree_index")["weight"].sum()
    else:
        matrix = xgb.DMatrix(rows.x, rows.y, nthread=1)
        matrix.set_group(rows.group)
        given = {
            "nthread": 1,
            "eta": 0.1,
            "min_child_weight": 0,
            **({"objective": objective} if own else {}),
        }
        table = xgb.train(given, matrix, rounds[-1], obj=None if own else objective)
        table = table.trees_to_dataframe()
        sums = table[table["Node"] == 0].groupby("Tree")["Cover"].sum()
    each = sums.to_numpy() / len(rows.y)
    return ", ".join(f"{each[one - 1]:.3f}" for one in rounds)


def run(settings: Settings) -> Page:
    """Train by every pattern with the native objective and with the drop-in.

    Parameters
    ----------
    settings : Settings
        ``small`` takes one seed of noise, few queries and few rounds.
    """
    gaps: dict[Key, Values] = {}
    for pattern in PATTERNS[:2] if settings.small else PATTERNS:
        found = _against(pattern, ("DROP-IN",), settings)
        for backend, noise, text in found:
            if text != drop_in(backend):
                continue
            gap = found[backend, noise, text] - found[backend, noise, NATIVE[backend]]
            dart = backend == "lightgbm" and pattern.lightgbm.get("boosting") == "dart"
            for at, step in enumerate(STEPS[:1] if dart else STEPS):
                gaps[pattern.name, backend, noise, step] = gap[:, at]
    singles: dict[Key, Values] = {}
    found = _against(SINGLE, ("DROP-IN", *OTHERS), settings)
    for backend, noise, text in found:
        if text != NATIVE[backend]:
            gap = found[backend, noise, text] - found[backend, noise, NATIVE[backend]]
            name = "drop-in" if text == drop_in(backend) else text.replace(NATIVE[backend], "LIKE")
            for at, step in enumerate(STEPS):
                singles[name, backend, noise, step] = gap[:, at]
    return page(gaps, singles, curvatures(settings))


class Gap(NamedTuple):
    """A mean difference with its standard error and the p value of the paired t test."""

    mean: float
    error: float
    p: float

    def __str__(self) -> str:
        return f"{self.mean:+.4f} ± {self.error:.4f}"


def gap_of(values: Sequence[Values]) -> Gap:
    """Return the mean of cells, with runs of one seed taken together.

    The cells of a seed share its data, so their mean is one observation.
    """
    each = np.mean(values, axis=0)
    mean, error = float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))
    if error == 0.0:
        return Gap(mean, error, float(mean == 0.0))
    return Gap(mean, error, float(2.0 * stdtr(len(each) - 1, -abs(mean / error))))


def page(
    gaps: Mapping[Key, Values],
    singles: Mapping[Key, Values],
    curved: Sequence[tuple[str, Sequence[str]]],
) -> Page:
    """Return the page."""
    cells = {key: gap_of([value]) for key, value in gaps.items()}
    corrected = dict(zip(cells, holm([one.p for one in cells.values()]), strict=True))
    sure = {key for key, p in corrected.items() if p < 0.05}
    behind = [key for key in sure if cells[key].mean < 0.0]
    ahead = len(sure) - len(behind)
    low = [key for key, one in cells.items() if one.mean < -2.0 * one.error]
    high = [key for key, one in cells.items() if one.mean > 2.0 * one.error]
    noises = sorted({key[2] for key in gaps})
    kinds = {one.name: one.metric for one in PATTERNS}
    other = [v for k, v in gaps.items() if k[2] == 0.0 and not kinds[k[0]].startswith("ndcg")]
    where = "; ".join(f"{k[0]}, {k[1]}, noise {k[2]:g}, {k[3]}" for k in sorted(behind)) or "none"
    lines = [
        (
            f"With only the objective replaced by `{drop_in('lightgbm')}` or "
            f"`{drop_in('xgboost')}`, all else as the script has it, the metric changes by "
            f"{gap_of(list(gaps.values()))} in the mean of {len(cells)} settings. After Holm's "
            f"correction the drop-in is behind in {len(behind)} of them and ahead in {ahead}; "
            f"by more than two standard errors, without correction, behind in {len(low)} and "
            f"ahead in {len(high)}."
        ),
        "",
        f"Behind after Holm's correction: {where}.",
        *([f"Without noise, where the metric is not NDCG: {gap_of(other)}."] if other else []),
        "",
        "## Pooled",
        "",
        "| | label noise | all rounds | early stopping |",
        "| --- | --- | ---: | ---: |",
    ]
    for backend in NATIVE:
        for noise in noises:
            row = [
                str(gap_of([v for k, v in gaps.items() if k[1:] == (backend, noise, step)]))
                for step in STEPS
            ]
            lines.append(f"| {backend} | {noise:g} | {' | '.join(row)} |")
    lines += [
        "",
        "## Each script",
        "",
        (
            "Drop-in less native, with its standard error over seeds. A bold difference is more "
            "than two standard errors; * marks those that remain after Holm's correction over "
            "all cells of this table (paired t tests). LightGBM has no early stopping with dart."
        ),
        "",
        "| script | booster | metric | stop | " + " | ".join(f"noise {n:g}" for n in noises) + " |",
        "| --- | --- | --- | --- |" + " ---: |" * len(noises),
    ]
    for name, backend, step in dict.fromkeys((k[0], k[1], k[3]) for k in gaps):
        row = []
        for noise in noises:
            key = (name, backend, noise, step)
            text = f"**{cells[key]}**" if key in {*low, *high} else str(cells[key])
            row.append(text + " *" * (key in sure))
        lines.append(f"| {name} | {backend} | {kinds[name]} | {step} | {' | '.join(row)} |")
    lines += [
        "",
        "## Which single objective",
        "",
        (
            "Small trees, judged by NDCG@10: difference to the booster's own objective, with the "
            "parameters as they are. LIKE is `lambdarank` in LightGBM and `rank:ndcg` in XGBoost. "
            "Without `like=`, XGBoost's L2 term and leaf limit mean something else."
        ),
        "",
        "| objective | booster | stop | " + " | ".join(f"noise {n:g}" for n in noises) + " |",
        "| --- | --- | --- |" + " ---: |" * len(noises),
    ]
    for name, backend, step in dict.fromkeys((k[0], k[1], k[3]) for k in singles):
        row = [str(gap_of([singles[name, backend, noise, step]])) for noise in noises]
        lines.append(f"| `{name}` | {backend} | {step} | {' | '.join(row)} |")
    lines += [
        "",
        "## Parameters of the scripts",
        "",
        "| script | queries | labels | LightGBM | XGBoost | rounds |",
        "| --- | ---: | --- | --- | --- | --- |",
        *(
            f"| {one.name} | {one.queries} | {one.labels} | {_given(one.lightgbm)} | "
            f"{_given(one.xgboost)} | {one.rounds[0]}, {one.rounds[1]} |"
            for one in PATTERNS
        ),
        "",
        "## Curvature",
        "",
        (
            "Hessian per row in the rounds 1, 2, 20 and 100, for queries of 7, 25 and 120 items: "
            "what leaf limits and L2 terms are compared with."
        ),
        "",
        "| objective | 7 items | 25 items | 120 items |",
        "| --- | --- | --- | --- |",
        *(f"| `{name}` | {' | '.join(each)} |" for name, each in curved),
    ]
    notes = [
        (
            f"synthetic queries of 10 to 39 items, 15 features; half as many queries to stop by, "
            f"400 to test on; {SEEDS} seeds of data. With the probability of the noise a label is "
            "that of a random row"
        ),
        (
            "the objective of each script is `lambdarank` or `rank:ndcg`, also where its XGBoost "
            "form has another; one training gives both columns, with a patience of "
            f"{PATIENCE} rounds"
        ),
        "pooled rows: cells of a seed share data, so the error is over the means of the seeds",
    ]
    return Page(lines=lines, notes=notes)


def _given(params: Mapping[str, Any]) -> str:
    return ", ".join(f"`{key}={value}`" for key, value in params.items()) or "defaults"
