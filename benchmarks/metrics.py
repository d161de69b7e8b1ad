"""Evaluation of 10,000 queries with 100 documents against the usual tools and the boosters.

Every tool gets its inputs ready-made: ranx its ``Qrels`` and ``Run``, pytrec_eval its
dictionaries, scikit-learn its matrices, the boosters their data sets (with the scores as
``init_score`` or ``base_margin`` and a model without trees), and ours the bound labels that a
callback keeps. Part of the gap to ranx and pytrec_eval is their interface of string ids. All
tools are given gains 2^y - 1 and untied scores, so that they measure the same; their values
are printed. ERR is ours alone, and LightGBM's AP is cut off at 10 like its NDCG. ranx and
pytrec_eval are left out where they are not installed; give them an environment of their own:
``python -m venv peers && peers/bin/pip install -e .[all] ranx pytrec_eval``, then
``peers/bin/python -m benchmarks metrics``.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import gbmrank
from benchmarks.settings import Settings
from benchmarks.timing import Times, interleave, print_table, ratio, speed
from gbmrank.metrics import Ranked

_LABEL_SHARES = (0.52, 0.32, 0.13, 0.02, 0.01)  # of MSLR-WEB10K
_NDCG, _ALL = "ndcg@10", "ndcg@10, map(threshold=1), err@10"
_BOUND, _ARRAYS, _BY_ID = (
    "gbmrank, labels bound",
    "gbmrank, from arrays",
    "gbmrank, from arrays with ids",
)
_TARGETS = {"ranx": 60, "pytrec_eval": 20, "scikit-learn": 20, "lightgbm": 5, "xgboost": 4}
_FROM_ARRAYS = {"lightgbm": 1.3, _ARRAYS: 0.95}  # with ids: as fast as with sizes, within noise

_WAYS = {
    _BOUND: "with labels prepared once, as in training",
    _ARRAYS: "from arrays",
}

Variants = dict[str, Callable[[], object]]


class _LeftOutError(Exception):
    """A tool that does not take part."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """Labels and scores, one row per query."""

    labels: npt.NDArray[np.float64]
    scores: npt.NDArray[np.float64]

    @property
    def gains(self) -> npt.NDArray[np.int64]:
        return (np.exp2(self.labels) - 1).astype(np.int64)

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        return np.full(len(self.labels), self.labels.shape[1])


def run(settings: Settings) -> list[str]:
    """Print times, queries per second and the ratios that are promised; return them in words."""
    gbmrank.set_num_threads(settings.threads)
    sample = _draw(200 if settings.quick else 10_000, 100)
    n_queries = len(sample.labels)
    print(f"\n{n_queries:,} queries x {sample.labels.shape[1]} documents")
    said: list[str] = []
    for title, text in (("NDCG@10", _NDCG), ("NDCG@10 + AP + ERR@10", _ALL)):
        variants = _variants(sample, text, settings.threads)
        _print_values(variants)
        times = interleave(variants, settings.repeats(12))
        print_table(
            [f"{title}, ms", "min / median", "queries per second (of min)"],
            [[name, str(taken), f"{n_queries / taken.min:,.0f}"] for name, taken in times.items()],
        )
        _print_ratios(title, times, targets=text == _NDCG)
        said.append(_said(title, times))
    return said


def _said(title: str, times: dict[str, Times]) -> str:
    """Return the speed as multiples of that of others, in words."""
    parts = []
    for name, shown in _WAYS.items():
        peers = [f"{speed(times[name], times[peer])}x {peer}" for peer in _TARGETS if peer in times]
        parts.append(f"{', '.join(peers)} {shown}")
    return f"Speed of {title}: {'; '.join(parts)}."


def _draw(n_queries: int, n_documents: int, seed: int = 0) -> _Sample:
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((n_queries, n_documents))
    relevance = scores + rng.standard_normal(scores.shape)
    limits = np.quantile(relevance, np.cumsum(_LABEL_SHARES)[:-1])
    scores = scores.astype(np.float32).astype(np.float64)  # as XGBoost sees them
    return _Sample(np.searchsorted(limits, relevance).astype(np.float64), scores)


def _variants(sample: _Sample, text: str, threads: int) -> Variants:
    makers: dict[str, Callable[[_Sample, str, int], Callable[[], object]]] = {
        _BOUND: _bound,
        "gbmrank as feval of lightgbm": _as_feval,
        _ARRAYS: _from_arrays,
        _BY_ID: _from_arrays_by_id,
        "lightgbm": _lightgbm,
        "xgboost": _xgboost,
        "scikit-learn": _sklearn,
        "pytrec_eval": _pytrec_eval,
        "ranx": _ranx,
    }
    variants: Variants = {}
    for name, make in makers.items():
        try:
            variants[name] = make(sample, text, threads)
        except (ImportError, _LeftOutError) as error:
            print(f"{name} is left out: {error}")
    return variants


def _print_values(variants: Variants) -> None:
    for name, call in variants.items():
        print(f"  {name:<30} {call()}", flush=True)


def _print_ratios(title: str, times: dict[str, Times], *, targets: bool) -> None:
    for ours, wanted in ((_BOUND, _TARGETS), (_ARRAYS, _FROM_ARRAYS), (_BY_ID, _FROM_ARRAYS)):
        rows = [
            [name, ratio(times[name], times[ours]), wanted[name] if targets else ""]
            for name in wanted
            if name in times and name != ours
        ]
        print_table([f"{title}, {ours}: times faster than", "min / median", "at least"], rows)


def _bound(sample: _Sample, text: str, _threads: int) -> Callable[[], object]:
    data = gbmrank.RankingData.from_arrays(sample.labels.ravel(), group=sample.sizes)
    bound = [item.measure.bind(data) for item in gbmrank.metrics_callback(text)]
    scores = sample.scores.ravel()

    def call() -> list[float]:
        ranked = Ranked(scores, data.groups).prepare(*(one.depth for one in bound))
        return [one.score(ranked) for one in bound]

    return call


def _as_feval(sample: _Sample, text: str, threads: int) -> Callable[[], object]:
    data = _lightgbm_data(sample, threads)
    metrics = gbmrank.metrics_callback(text)
    scores = sample.scores.ravel()
    return lambda: [value for _, value, _ in metrics(scores, data)]


def _from_arrays(sample: _Sample, text: str, _threads: int) -> Callable[[], object]:
    metrics = gbmrank.metrics_callback(text)
    labels, scores = sample.labels.ravel(), sample.scores.ravel()
    return lambda: list(metrics.score(labels, scores, group=sample.sizes).values())


def _from_arrays_by_id(sample: _Sample, text: str, _threads: int) -> Callable[[], object]:
    metrics = gbmrank.metrics_callback(text)
    labels, scores = sample.labels.ravel(), sample.scores.ravel()
    qid = np.repeat(np.arange(len(sample.sizes)), sample.sizes)
    return lambda: list(metrics.score(labels, scores, qid=qid).values())


def _lightgbm_data(sample: _Sample, threads: int) -> Any:
    import lightgbm as lgb

    features = (np.arange(sample.labels.size) % 2).astype(np.float32)[:, None]
    return lgb.Dataset(
        features,
        sample.labels.ravel(),
        group=sample.sizes,
        init_score=sample.scores.ravel(),
        params={"num_threads": threads, "verbose": -1},
        free_raw_data=False,
    ).construct()


def _lightgbm(sample: _Sample, text: str, threads: int) -> Callable[[], object]:
    import lightgbm as lgb

    data = _lightgbm_data(sample, threads)
    params = {"objective": "none", "eval_at": [10], "num_threads": threads, "verbose": -1}
    params["metric"] = ["ndcg"] if text == _NDCG else ["ndcg", "map"]
    booster = lgb.Booster(params, data)
    return lambda: [float(value) for _, _, value, _ in booster.eval_train()]


def _xgboost(sample: _Sample, text: str, threads: int) -> Callable[[], object]:
    import xgboost as xgb

    columns: list[tuple[str, npt.NDArray[Any]]] = [("ndcg@10", sample.labels)]
    if text != _NDCG:
        columns.append(("map@100", (sample.labels >= 1).astype(np.float64)))  # takes 0 and 1 alone
    calls = []
    for name, labels in columns:
        features = (np.arange(labels.size) % 2).astype(np.float32)[:, None]
        data = xgb.DMatrix(features, labels.ravel(), nthread=threads)
        data.set_group(sample.sizes)
        data.set_base_margin(sample.scores.ravel())
        params = {"objective": "rank:ndcg", "eval_metric": name, "nthread": threads}
        calls.append((xgb.Booster(params, [data]), data))
    return lambda: [float(booster.eval(data).rsplit(":", 1)[1]) for booster, data in calls]


def _sklearn(sample: _Sample, text: str, _threads: int) -> Callable[[], object]:
    from sklearn.metrics import ndcg_score

    if text != _NDCG:
        raise _LeftOutError("it has AP for one query at a time only, in Python")
    gains = sample.gains
    return lambda: [ndcg_score(gains, sample.scores, k=10)]


def _by_id(values: npt.NDArray[Any]) -> dict[str, dict[str, Any]]:
    documents = [f"d{i}" for i in range(values.shape[1])]
    return {
        f"q{i}": dict(zip(documents, row.tolist(), strict=True)) for i, row in enumerate(values)
    }


def _pytrec_eval(sample: _Sample, text: str, _threads: int) -> Callable[[], object]:
    import pytrec_eval

    measures = {"ndcg_cut.10"} | (set() if text == _NDCG else {"map"})
    evaluator = pytrec_eval.RelevanceEvaluator(_by_id(sample.gains), measures)
    scores = _by_id(sample.scores)

    def call() -> list[float]:
        queries = evaluator.evaluate(scores).values()
        names = sorted(next(iter(queries)), reverse=True)
        return [float(np.mean([query[name] for query in queries])) for name in names]

    return call


def _ranx(sample: _Sample, text: str, threads: int) -> Callable[[], object]:
    import ranx

    qrels, scores = ranx.Qrels(_by_id(sample.gains)), ranx.Run(_by_id(sample.scores))
    measures = ["ndcg@10"] if text == _NDCG else ["ndcg@10", "map"]

    def call() -> list[float]:
        values = ranx.evaluate(qrels, scores, measures, save_results_in_run=False, threads=threads)
        return [float(value) for value in (values.values() if len(measures) > 1 else [values])]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its compiler, about integers
        call()
    return call


if __name__ == "__main__":
    run(Settings())
