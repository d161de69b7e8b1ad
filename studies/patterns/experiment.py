"""Ten public ways to train a ranker, each with only the objective replaced.

Parameters are those of the examples, tuned for the boosters' own objectives. ``normalize=items``
gives curvature of another scale, so the objective is multiplied by the factor of docs/boosters.md.
The data are LightGBM's ranking example, with 50 queries to test on: a difference counts when it is
more than two standard errors of the paired difference. Early stopping uses every fourth training
query, and the model learns from the others.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np
import xgboost as xgb
from sklearn.datasets import load_svmlight_file

import gbmrank
from gbmrank.demo_data import demo_data
from studies.files import find_files
from studies.study import Option, Page, Settings

TITLE = "Ten public ways to train a ranker"
PAPER = ""
NEEDS = "LightGBM's ranking example: rank.train, rank.test and their .query files"
FORMULAS = ("objectives/pairwise.py",)
OPTIONS: Mapping[str, Option] = {}
TARGET = "pairwise(target=ndcg@10)"
LAMBDARANK, XGBOOST = 3.0, 6.0
_QUIET = {"verbosity": -1, "seed": 0, "deterministic": True, "force_row_wise": True}


class Rows(NamedTuple):
    """Features, labels and rows per query."""

    x: Any
    y: Any
    group: Any


class Pattern(NamedTuple):
    """How a public script trains; ``scores(objective)`` of the test rows, native without one."""

    name: str
    source: str
    native: str
    factor: float
    scores: Callable[["Bench", Any], Any]


class Bench(NamedTuple):
    """The data of all patterns, and the threads of boosters."""

    train: Rows
    test: Rows
    threads: int


_FILES = ("rank.train", "rank.test", "rank.train.query", "rank.test.query")


def _bench(settings: Settings) -> Bench:
    threads = settings.threads or 1
    if settings.small:
        data = demo_data(n_queries=80, seed=settings.seed)
        query = np.unique(data.qid, return_inverse=True)[1]
        rows = Rows(data.X, data.labels.astype(float), None)
        train, test = (_part(rows, query % 4 == at, query) for at in (0, 1))
        return Bench(train, test, threads)
    paths = find_files(settings.data, _FILES, NEEDS)
    return Bench(_rows(paths, _FILES[0]), _rows(paths, _FILES[1]), threads)


def _rows(paths: Mapping[str, Path], name: str) -> Rows:
    x, y = load_svmlight_file(str(paths[name]), n_features=301)
    return Rows(x.toarray(), y, np.loadtxt(paths[f"{name}.query"], dtype=int))


def _lgb(params: dict[str, Any], rounds: int) -> Callable[[Bench, Any], Any]:
    def scores(bench: Bench, objective: Any) -> Any:
        rows = lgb.Dataset(*bench.train[:2], group=bench.train.group)
        given = {**_QUIET, **params, "objective": objective, "num_threads": bench.threads}
        return lgb.train(given, rows, rounds).predict(bench.test.x)

    return scores


def _split(rows: Rows) -> tuple[Rows, Rows]:
    """Return rows to learn from and to stop by: every fourth query is for the latter."""
    query = np.repeat(np.arange(len(rows.group)), rows.group)
    return _part(rows, query % 4 != 3, query), _part(rows, query % 4 == 3, query)


def _part(rows: Rows, chosen: Any, query: Any) -> Rows:
    return Rows(rows.x[chosen], rows.y[chosen], np.unique(query[chosen], return_counts=True)[1])


def _ranker(fit: dict[str, Any] | None = None, **params: Any) -> Callable[[Bench, Any], Any]:
    def scores(bench: Bench, objective: Any) -> Any:
        given = {**_QUIET, **params, "objective": objective, "n_jobs": bench.threads}
        train, more = bench.train, {}
        if fit is not None:
            train, valid = _split(train)
            more = {"eval_X": (valid.x,), "eval_y": (valid.y,), "eval_group": [valid.group], **fit}
        model = lgb.LGBMRanker(**given).fit(train.x, train.y, group=train.group, **more)
        return model.predict(bench.test.x)

    return scores


def _matrix(rows: Rows) -> Any:
    made = xgb.DMatrix(rows.x, rows.y)
    made.set_group(rows.group)
    return made


def _xgb(params: dict[str, Any], rounds: int, grade: int = 0) -> Callable[[Bench, Any], Any]:
    def scores(bench: Bench, objective: Any) -> Any:
        y = (bench.train.y >= grade).astype(float) if grade else bench.train.y
        custom = None if isinstance(objective, str) else objective
        given = {**params, "nthread": bench.threads, "seed": 0}
        if custom is None:
            given["objective"] = objective
        model = xgb.train(given, _matrix(bench.train._replace(y=y)), rounds, obj=custom)
        return model.predict(_matrix(bench.test), output_margin=True)

    return scores


def _estimator(params: dict[str, Any], rounds: int) -> Callable[[Bench, Any], Any]:
    def scores(bench: Bench, objective: Any) -> Any:
        qid = np.repeat(np.arange(len(bench.train.group)), bench.train.group)
        named = f"native:{objective}" if isinstance(objective, str) else objective
        model = gbmrank.GBMRanker(
            named, "xgboost", metric="ndcg@10", n_estimators=rounds, n_jobs=bench.threads, **params
        )
        return model.fit(*bench.train[:2], qid=qid).predict(bench.test.x)

    return scores


def _lgb_cv(bench: Bench, objective: Any) -> Any:
    rows = lgb.Dataset(*bench.train[:2], group=bench.train.group, free_raw_data=False)
    given = {**_QUIET, "objective": objective, "metric": "None", "num_threads": bench.threads}
    found = lgb.cv(
        given, rows, 40, folds=gbmrank.query_folds(rows, n_folds=3),
        feval=gbmrank.metric("ndcg@10"), callbacks=[lgb.early_stopping(10, verbose=False)],
        return_cvbooster=True,
    )  # fmt: skip
    return np.mean([one.predict(bench.test.x) for one in found["cvbooster"].boosters], axis=0)


def _xgb_cv(bench: Bench, objective: Any) -> Any:
    custom = None if isinstance(objective, str) else objective
    given = {"eta": 0.1, "max_depth": 6, "disable_default_eval_metric": 1, "seed": 0}
    given |= {"nthread": bench.threads, **({"objective": objective} if custom is None else {})}
    found = xgb.cv(
        given, _matrix(bench.train), 40, nfold=3, obj=custom, early_stopping_rounds=10,
        custom_metric=gbmrank.metric("ndcg@10"), maximize=True,
    )  # fmt: skip
    rounds = len(found)
    model = xgb.train(given, _matrix(bench.train), rounds, obj=custom)
    return model.predict(_matrix(bench.test), output_margin=True)


_EXAMPLE: dict[str, Any] = {
    "learning_rate": 0.1, "num_leaves": 31, "bagging_freq": 1, "bagging_fraction": 0.9,
    "min_data_in_leaf": 50, "min_sum_hessian_in_leaf": 5.0,
}  # fmt: skip
_DEMO: dict[str, Any] = {"eta": 0.1, "gamma": 1.0, "min_child_weight": 0.1, "max_depth": 6}
_TERRIER: dict[str, Any] = {
    "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 100, "max_bin": 255, "num_leaves": 7,
    "metric": "ndcg", "ndcg_eval_at": [1, 3, 5, 10], "learning_rate": 0.1, "num_iterations": 10,
}  # fmt: skip
_STOP: dict[str, Any] = {"eval_at": [1, 3], "callbacks": [lgb.early_stopping(20, verbose=False)]}

PATTERNS = (
    Pattern(
        "`lgb.train`, parameters of the example",
        "LightGBM examples/lambdarank/train.conf", "lambdarank", LAMBDARANK, _lgb(_EXAMPLE, 100),
    ),
    Pattern(
        "`LGBMRanker` with early stopping on `ndcg@1,3`",
        "LightGBM tests and documentation", "lambdarank", LAMBDARANK,
        _ranker(_STOP, n_estimators=100),
    ),
    Pattern(
        "`LGBMRanker` with early stopping on a metric of gbmrank",
        "README of gbmrank", "rank_xendcg", LAMBDARANK,
        _ranker(
            {
                "eval_metric": gbmrank.metric("ndcg@10"),
                "callbacks": [lgb.early_stopping(20, verbose=False)],
            },
            n_estimators=100, metric="None",
        ),
    ),
    Pattern(
        "`LGBMRanker`, `min_sum_hessian_in_leaf=100`",
        "PyTerrier, learning to rank", "lambdarank", LAMBDARANK, _ranker(**_TERRIER),
    ),
    Pattern(
        "`LGBMRanker(boosting_type='dart')`", "public notebooks of recommendation contests",
        "lambdarank", LAMBDARANK,
        _ranker(boosting_type="dart", n_estimators=50, importance_type="gain"),
    ),
    Pattern("`lgb.cv` with early stopping", "LightGBM", "lambdarank", LAMBDARANK, _lgb_cv),
    Pattern(
        "`xgb.train`, `gamma=1`, 4 rounds", "XGBoost demo/rank", "rank:pairwise", XGBOOST,
        _xgb(_DEMO, 4),
    ),
    Pattern(
        "`xgb.train` with defaults on 0/1 labels", "public notebooks of the OTTO contest",
        "rank:pairwise", XGBOOST, _xgb({"tree_method": "hist"}, 50, grade=2),
    ),
    Pattern("`xgb.cv` with early stopping", "XGBoost", "rank:ndcg", XGBOOST, _xgb_cv),
    Pattern(
        "`XGBRanker`'s settings in `GBMRanker`, `gamma=1`", "PyTerrier, learning to rank",
        "rank:ndcg", XGBOOST,
        _estimator(_DEMO, 50),
    ),
)  # fmt: skip


def _trained(pattern: Pattern, bench: Bench, objective: Any) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = np.asarray(pattern.scores(bench, objective), dtype=np.float64)
    told = [str(one.message) for one in caught if issubclass(one.category, gbmrank.GbmrankWarning)]
    values = gbmrank.metric("ndcg@10").per_query(bench.test.y, scores, group=bench.test.group)
    return values, list(dict.fromkeys(told))


class Result(NamedTuple):
    """NDCG@10 of a pattern with the native objective and with ours."""

    pattern: Pattern
    native: float
    ours: float
    difference: float
    error: float
    warnings: int

    @property
    def verdict(self) -> str:
        """Better, worse or within noise: two standard errors."""
        if abs(self.difference) <= 2 * self.error:
            return "within noise"
        return "better" if self.difference > 0.0 else "worse"

    def __str__(self) -> str:
        one = self.pattern
        return (
            f"| {one.name} | {one.source} | `{one.native}` | {self.native:.4f} | {self.ours:.4f} | "
            f"{self.difference:+.4f} ± {self.error:.4f} | {self.verdict} | {self.warnings} |"
        )


def _result(pattern: Pattern, bench: Bench, report: Callable[[str], None]) -> Result:
    objective = gbmrank.mix(TARGET, weights=[pattern.factor])
    native, _ = _trained(pattern, bench, pattern.native)
    ours, told = _trained(pattern, bench, objective)
    gap = (ours - native)[np.isfinite(ours) & np.isfinite(native)]
    error = float(np.std(gap, ddof=1) / np.sqrt(len(gap)))
    for text in told:
        report(f"warning in {pattern.name}: {text}")
    means = float(np.nanmean(native)), float(np.nanmean(ours))
    return Result(pattern, *means, float(gap.mean()), error, len(told))


def curvatures(bench: Bench, rounds: int = 20) -> dict[str, tuple[float, float]]:
    """Return the mean Hessian per row, at equal scores and over the first rounds, by objective."""
    n_rows = len(bench.train.y)
    found = {}
    plain = {**_QUIET, "num_threads": bench.threads, "min_data_in_leaf": 1}
    for name in ("lambdarank", "rank_xendcg", TARGET, "ranknet", "softmax"):
        objective = name if name in ("lambdarank", "rank_xendcg") else gbmrank.objective(name)
        rows = lgb.Dataset(*bench.train[:2], group=bench.train.group)
        given = {**plain, "objective": objective, "min_sum_hessian_in_leaf": 1e-9}
        table = lgb.train(given, rows, rounds).trees_to_dataframe()
        leaves = table[table["left_child"].isna()].groupby("tree_index")["weight"].sum() / n_rows
        found[name] = float(leaves.iloc[0]), float(leaves.mean())
    for name in ("rank:ndcg", "rank:pairwise"):
        given = {"objective": name, "eta": 0.1, "min_child_weight": 1e-9, "nthread": bench.threads}
        table = xgb.train(given, _matrix(bench.train), rounds).trees_to_dataframe()
        roots = table[table["Node"] == 0].groupby("Tree")["Cover"].sum() / n_rows
        found[name] = float(roots.iloc[0]), float(roots.mean())
    return found


_HEAD = (
    "| pattern | from | native objective | native | gbmrank | difference | verdict | warnings |\n"
    "| --- | --- | --- | ---: | ---: | ---: | --- | ---: |"
)


def run(settings: Settings) -> Page:
    """Train by every pattern twice, and measure the curvature of objectives.

    Parameters
    ----------
    settings : Settings
        ``data`` holds LightGBM's ranking example; ``small`` takes two patterns and made-up data.
    """
    bench = _bench(settings)
    found = []
    for pattern in PATTERNS[:2] if settings.small else PATTERNS:
        found.append(_result(pattern, bench, settings.report))
        settings.report(str(found[-1]))
    return page(found, curvatures(bench), len(bench.test.group))


def page(found: Sequence[Result], curved: Mapping[str, tuple[float, float]], queries: int) -> Page:
    """Return the page."""
    by = {
        word: [one.pattern.name for one in found if one.verdict == word]
        for word in ("better", "worse")
    }
    clear = "; ".join(f"{word} in {', '.join(names)}" for word, names in by.items() if names)
    same = sum(one.verdict == "within noise" for one in found)
    warned = sum(one.warnings > 0 for one in found)
    lines = [
        (
            f"With only the objective replaced, NDCG@10 stays within noise in {same} of "
            f"{len(found)} public training scripts{'; it is ' if clear else ''}{clear}. "
            f"gbmrank warned in {warned} of them."
        ),
        "",
        _HEAD,
        *map(str, found),
        "",
        (
            f"NDCG@10 on {queries} test queries, with the standard error of the paired "
            "difference; *within noise* is two of them. With so few queries only large "
            "differences show: the table says that the scripts train and that nothing breaks."
        ),
        "",
        "## What was changed",
        "",
        (
            "Each script is trained twice: with the booster's own objective and with "
            f'`gbmrank.mix("{TARGET}", weights=[c])`. All parameters are those of the script. '
            f"The factor c is {LAMBDARANK:g} for LightGBM and {XGBOOST:g} for XGBoost "
            "([why](../boosters.md)). PyTerrier's `min_sum_hessian_in_leaf=100` leaves "
            "`lambdarank` itself few splits on this small set. Without the factor no tree "
            "splits there, and gbmrank warns."
        ),
        "",
        "## Curvature",
        "",
        "| objective | Hessian per row at equal scores | mean of 20 rounds |",
        "| --- | ---: | ---: |",
        *(f"| `{name}` | {first:.3f} | {mean:.3f} |" for name, (first, mean) in curved.items()),
    ]
    notes = [
        (
            "LightGBM's ranking example: its training and test files. Scripts with early stopping "
            "learn from three quarters of the training queries and stop by the others; `cv` makes "
            "folds of queries"
        )
    ]
    return Page(lines=lines, notes=notes)
