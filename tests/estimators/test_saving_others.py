"""Pair rankers and rankers of short lists are saved and loaded like any other."""

import random
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gbmrank
from gbmrank import LowRankRanker, PairRanker
from gbmrank.errors import ConfigError, DataError, GbmrankError
from tests.ranking_tasks import run_python

FAST: dict[str, Any] = {"n_estimators": 4, "learning_rate": 0.3, "min_child_samples": 5}
LIGHT = {name: value for name, value in FAST.items() if name != "min_child_samples"}


def rows(lists=60, seed=0):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(lists), rng.integers(2, 4, lists))
    x = rng.normal(size=(len(qid), 2))
    return x, (x[:, 0] + rng.normal(size=len(qid)) > 0).astype(int), qid


RANKERS: list[tuple[Any, str]] = [
    (PairRanker(**FAST), "m.txt"),
    (PairRanker("map", decoder="greedy", threshold=1, seed=3, **FAST), "m.txt"),
    (PairRanker(backend="xgboost", features="difference", pair_budget=None, **LIGHT), "m.json"),
    (PairRanker("map", backend="xgboost", **LIGHT), "m.ubj"),
    (LowRankRanker("err(max_grade=1)", **FAST), "m.zip"),
    (LowRankRanker("map", "xgboost", arrangements=2, **LIGHT), "m.zip"),
    (LowRankRanker("ndcg", seed=5, **FAST), "m.zip"),
]


@pytest.mark.parametrize(("ranker", "file"), RANKERS)
def test_a_saved_ranker_comes_back_whole(ranker, file, tmp_path):
    x, y, qid = rows()
    frame = pd.DataFrame(x, columns=["naïve", "a b"])
    model = ranker.fit(frame, y, qid=qid)
    expected = model.predict(frame, qid=qid)
    model.save(tmp_path / file)
    assert [path.name for path in tmp_path.iterdir()] == [file]
    again = gbmrank.load(str(tmp_path / file))
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.predict(frame, qid=qid), expected)
    np.testing.assert_array_equal(again.rank(frame, qid=qid), model.rank(frame, qid=qid))
    assert again.feature_names_in_.tolist() == ["naïve", "a b"]
    assert again.n_features_in_ == 2
    assert again.score(frame, y, qid=qid) == model.score(frame, y, qid=qid)
    again.save(tmp_path / f"second_{file}")
    assert (tmp_path / f"second_{file}").read_bytes() == (tmp_path / file).read_bytes()
    with pytest.raises(DataError, match=r"feature names|columns"):
        again.predict(frame[["a b", "naïve"]], qid=qid)
    again.fit(frame, y, qid=qid)
    np.testing.assert_array_equal(again.predict(frame, qid=qid), expected)


def test_a_loss_matrix_comes_back(tmp_path):
    x, y, _ = rows()
    qid, costs = np.arange(len(x)), np.array([[0.0, 1.0], [3.0, 0.0]])
    factors = gbmrank.theory.low_rank(costs)
    for params in ({"loss_matrix": costs}, {"alpha": factors.alpha, "beta": factors.beta}):
        model = LowRankRanker(**params, **FAST).fit(x, y, qid=qid)
        model.save(tmp_path / "costs.zip")
        again = gbmrank.load(tmp_path / "costs.zip")
        np.testing.assert_array_equal(again.decide(x, qid=qid), model.decide(x, qid=qid))
        assert again.score(x, y, qid=qid) == model.score(x, y, qid=qid)


def test_another_process_needs_the_files_alone(tmp_path):
    x, y, qid = rows()
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "qid.npy", qid)
    expected, files = [], []
    for at in (0, 2, 4):
        ranker, file = RANKERS[at]
        files.append(str(tmp_path / f"{at}{file}"))
        ranker.fit(x, y, qid=qid).save(files[-1])
        expected.append(ranker.predict(x, qid=qid).tobytes().hex())
    code = (
        "import numpy as np, gbmrank\n"
        f"x, qid = np.load({str(tmp_path / 'x.npy')!r}), np.load({str(tmp_path / 'qid.npy')!r})\n"
        f"for file in {files!r}:\n"
        "    print(gbmrank.load(file).predict(x, qid=qid).tobytes().hex())"
    )
    assert run_python(code).split() == expected


def test_a_damaged_archive_is_refused(tmp_path):
    x, y, qid = rows(30)
    path = tmp_path / "m.zip"
    LowRankRanker("mrr", **FAST).fit(x, y, qid=qid).save(path)
    whole, draw = path.read_bytes(), random.Random(0)
    cut = [whole[:length] for length in (0, 1, 2, 9, len(whole) - 1, len(whole) // 2)]
    mixed = [whole + b"x", b"PK" + draw.randbytes(300), whole[:-20]]
    for _ in range(200):
        changed = bytearray(whole)
        changed[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        mixed.append(bytes(changed))
    for data in (*cut, *mixed):
        path.write_bytes(data)
        with pytest.raises(GbmrankError):
            gbmrank.load(path)
    path.write_bytes(whole)
    gbmrank.load(path)


def test_what_cannot_be_saved_says_so(tmp_path):
    x, y, qid = rows()
    own = PairRanker(features=lambda left, right: left - right, **FAST).fit(x, y, qid=qid)
    with pytest.raises(ConfigError, match="features is a function"):
        own.save(tmp_path / "m.txt")
    pairs, lists = PairRanker(**FAST), LowRankRanker("ndcg", **FAST)
    for ranker in (pairs, lists):
        with pytest.raises(gbmrank.errors.NotFittedError):
            ranker.save(tmp_path / "m.txt")
        with pytest.raises(ConfigError, match="is saved as"):
            ranker.fit(x, y, qid=qid).save(tmp_path / "m.model")
    with pytest.raises(FileNotFoundError):
        lists.save(tmp_path / "none" / "m.zip")
    pairs.set_params(surrogate="map")
    lists.set_params(metric="err")
    for ranker, file in ((pairs, "m.txt"), (lists, "m.zip")):
        with pytest.raises(ConfigError, match="changed since training"):
            ranker.save(tmp_path / file)
    assert not list(tmp_path.iterdir())
