"""Outside implementations: the same numbers where definitions agree, and where they differ."""

import shutil
from typing import Any

import numpy as np
import pytest

from gbmrank.data import RankingData
from gbmrank.metrics import (
    AUC,
    DCG,
    ERR,
    MAP,
    MRR,
    NDCG,
    AbstractMetric,
    HitRate,
    Precision,
    Ranked,
    Recall,
    RPrecision,
    Spearman,
    conventions,
)

QUERIES = 40


def like(metric: type[AbstractMetric], tool: str, **given: Any) -> AbstractMetric:
    return metric(**{**conventions(metric, tool), **given})


def score(metric: AbstractMetric, data: RankingData, scores: np.ndarray) -> float:
    return metric.bind(data).score(Ranked(data.read_scores(scores), data.groups))


def per_query(metric: AbstractMetric, data: RankingData, scores: np.ndarray) -> np.ndarray:
    return metric.bind(data).per_query(Ranked(data.read_scores(scores), data.groups))


def sample(largest: int, *, tied: bool, seed: int = 0) -> tuple[RankingData, np.ndarray]:
    """Queries of 2 to 30 items, some without a relevant one."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 30, QUERIES)
    labels = rng.integers(0, largest + 1, sizes.sum()) * (rng.random(sizes.sum()) < 0.4)
    labels[: sizes[0]] = 0
    scores = rng.permutation(sizes.sum()) / 7.0
    data = RankingData.from_arrays(labels, group=sizes)
    return data, np.floor(scores / 20.0) if tied else scores


def queries(data: RankingData, scores: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    cuts = data.groups.offsets[1:-1]
    return list(zip(np.split(data.labels, cuts), np.split(scores, cuts), strict=True))


# scikit-learn and scipy


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("k", [None, 1, 5, 50])
def test_gains_as_in_sklearn(k: int | None, tied: bool):
    from sklearn.metrics import dcg_score, ndcg_score

    data, scores = sample(4, tied=tied)
    pairs = queries(data, scores)
    for metric, theirs in ((NDCG, ndcg_score), (DCG, dcg_score)):
        want = np.mean([theirs([y], [s], k=k) for y, s in pairs])
        assert score(like(metric, "sklearn", k=k), data, scores) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("tied", [False, True])
def test_auc_as_in_sklearn(tied: bool):
    from sklearn.metrics import roc_auc_score

    data, scores = sample(1, tied=tied)
    got = per_query(like(AUC, "sklearn"), data, scores)
    for value, (y, s) in zip(got, queries(data, scores), strict=True):
        if 0 < y.sum() < len(y):
            assert value == pytest.approx(roc_auc_score(y, s), rel=1e-12)
        else:
            assert np.isnan(value)


@pytest.mark.parametrize("tied", [False, True])
def test_average_precision_as_in_sklearn(tied: bool):
    from sklearn.metrics import average_precision_score

    data, scores = sample(1, tied=tied)
    got = per_query(like(MAP, "sklearn"), data, scores)
    plain = per_query(MAP(), data, scores)
    for value, ours, (y, s) in zip(got, plain, queries(data, scores), strict=True):
        if y.any():
            assert value == pytest.approx(average_precision_score(y, s), rel=1e-12)
            assert tied or ours == pytest.approx(value, rel=1e-15)


def test_spearman_as_in_scipy():
    from scipy.stats import spearmanr

    rng = np.random.default_rng(1)
    labels, scores = rng.permutation(20), rng.normal(size=20)
    want = spearmanr(labels, scores).statistic
    data = RankingData.from_arrays(labels)
    assert score(Spearman(), data, scores) == pytest.approx(want, rel=1e-12)


# trec_eval


def trec_names(data: RankingData, scores: np.ndarray) -> tuple[dict, dict]:
    """Judgements and run with document ids that decrease with the row."""
    judged: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for q, (y, s) in enumerate(queries(data, scores)):
        ids = [f"d{999 - i:03d}" for i in range(len(y))]
        judged[str(q)] = dict(zip(ids, map(int, y), strict=True))
        run[str(q)] = dict(zip(ids, map(float, s), strict=True))
    return judged, run


TREC: list[tuple[type[AbstractMetric], int | None, str]] = [
    (NDCG, None, "ndcg"),
    (NDCG, 5, "ndcg_cut_5"),
    (MAP, None, "map"),
    (MAP, 5, "map_cut_5"),
    (MRR, None, "recip_rank"),
    (Precision, 5, "P_5"),
    (Precision, 100, "P_100"),
    (Recall, 5, "recall_5"),
    (HitRate, 5, "success_5"),
    (RPrecision, None, "Rprec"),
]


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("metric", "k", "name"), TREC, ids=[name for _, _, name in TREC])
def test_as_in_trec_eval(metric: type[AbstractMetric], k: int | None, name: str, tied: bool):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval is not installed")
    data, scores = sample(4, tied=tied)
    judged, run = trec_names(data, scores)
    result = pytrec_eval.RelevanceEvaluator(judged, {name}).evaluate(run)
    want = np.mean([result[str(q)][name] for q in range(QUERIES)])
    given = {} if k is None else {"k": k}
    assert score(like(metric, "trec_eval", **given), data, scores) == pytest.approx(want, rel=1e-12)


def test_err_as_in_gdeval():
    ir_measures = pytest.importorskip("ir_measures", reason="ir_measures is not installed")
    if shutil.which("perl") is None:
        pytest.skip("gdeval, which ir_measures calls for ERR, needs perl")
    data, scores = sample(4, tied=False)
    judged, run = trec_names(data, scores)
    rows = ir_measures.iter_calc([ir_measures.ERR @ 10], judged, run)
    want = {row.query_id: row.value for row in rows}
    got = per_query(ERR(k=10), data, scores)
    assert len(want) > QUERIES / 2
    for query, value in want.items():
        assert got[int(query)] == pytest.approx(value, abs=6e-6)  # it prints five decimals


# Boosters, whose scores are set as start values under zero gradients


def zero_gradients(predictions: np.ndarray, dataset: Any) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(len(predictions)), np.ones(len(predictions))


def lightgbm_scores(
    data: RankingData, scores: np.ndarray, metric: str, cutoffs: list[int]
) -> list[float]:
    lgb = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    rows = np.arange(len(scores), dtype=float)[:, None]
    bins = {"min_data_in_bin": 1, "min_data_in_leaf": 1, "verbosity": -1}
    dataset = lgb.Dataset(
        rows, data.labels, group=data.groups.sizes, init_score=scores, params=bins
    )
    found: dict[str, dict[str, list[float]]] = {}
    params = {"objective": zero_gradients, "metric": metric, "eval_at": cutoffs, "verbosity": -1}
    lgb.train(
        {**params, "num_threads": 1},
        dataset,
        1,
        valid_sets=[dataset],
        valid_names=["set"],
        callbacks=[lgb.record_evaluation(found)],
    )
    return [found["set"][f"{metric}@{k}"][0] for k in cutoffs]


def xgboost_scores(data: RankingData, scores: np.ndarray, metrics: list[str]) -> list[float]:
    xgb = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    rows = np.arange(len(scores), dtype=float)[:, None]
    matrix = xgb.DMatrix(rows, data.labels, base_margin=scores)
    matrix.set_group(data.groups.sizes)
    found: dict[str, dict[str, list[float]]] = {}
    xgb.train(
        {"disable_default_eval_metric": 1, "eval_metric": metrics, "nthread": 1, "base_score": 0},
        matrix,
        1,
        evals=[(matrix, "set")],
        evals_result=found,
        verbose_eval=False,
        obj=zero_gradients,
    )
    return [found["set"][name][0] for name in metrics]


@pytest.mark.parametrize("tied", [False, True])
def test_as_in_lightgbm(tied: bool):
    data, scores = sample(4, tied=tied)
    for metric, name in ((NDCG, "ndcg"), (MAP, "map")):
        for k, want in zip(
            (1, 5, 50), lightgbm_scores(data, scores, name, [1, 5, 50]), strict=True
        ):
            got = score(like(metric, "lightgbm", k=k), data, scores)
            assert got == pytest.approx(want, rel=1e-9), f"{name}@{k}"


XGBOOST: list[tuple[type[AbstractMetric], int, str, dict[str, int]]] = [
    (NDCG, 4, "ndcg@5", {"k": 5}),
    (NDCG, 4, "ndcg", {}),
    (MAP, 1, "map@5", {"k": 5}),
    (MAP, 1, "map", {}),
    (Precision, 1, "pre@5", {"k": 5}),
    (Precision, 1, "pre", {}),
]


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("metric", "largest", "name", "given"), XGBOOST)
def test_as_in_xgboost(
    metric: type[AbstractMetric], largest: int, name: str, given: dict[str, int], tied: bool
):
    data, scores = sample(largest, tied=tied)
    want = xgboost_scores(data, scores, [name])[0]
    assert score(like(metric, "xgboost", **given), data, scores) == pytest.approx(want, rel=1e-6)


def test_xgboost_counts_32_ranks_without_a_cutoff():
    rng = np.random.default_rng(2)
    data = RankingData.from_arrays((rng.random(100) < 0.2).astype(float))
    scores = rng.permutation(100) / 8.0
    for metric, name in ((NDCG, "ndcg"), (MAP, "map"), (Precision, "pre")):
        want = xgboost_scores(data, scores, [name])[0]
        assert score(like(metric, "xgboost"), data, scores) == pytest.approx(want, rel=1e-6)
        assert score(like(metric, "xgboost", k=None), data, scores) != pytest.approx(want, rel=1e-3)


def test_xgboost_ties_scores_that_differ_by_less_than_float32():
    data, scores = RankingData.from_arrays([0, 1]), np.array([1.0, 1.0 + 1e-9])
    theirs = xgboost_scores(data, scores, ["ndcg@1"])[0]
    assert score(like(NDCG, "xgboost", k=1), data, scores) == theirs == 0.0
    assert score(NDCG(k=1), data, scores) == 1.0
    assert score(NDCG(k=1, dtype="float32"), data, scores) == 0.5


@pytest.mark.parametrize(("metric", "name"), [(NDCG, "ndcg"), (MAP, "map")])
def test_the_boosters_reward_row_order_and_we_do_not(metric: type[AbstractMetric], name: str):
    first, last = (RankingData.from_arrays(y) for y in ([1, 0, 0, 0], [0, 0, 0, 1]))
    equal = np.zeros(4)
    native = [lightgbm_scores(data, equal, name, [4])[0] for data in (first, last)]
    native += [xgboost_scores(data, equal, [f"{name}@4"])[0] for data in (first, last)]
    assert native[0] == native[2] == 1.0
    assert native[1] < 0.5
    assert native[3] < 0.5
    assert score(metric(), first, equal) == score(metric(), last, equal)
