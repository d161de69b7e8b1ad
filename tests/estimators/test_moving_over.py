"""Arguments and attributes under the names that the boosters' own rankers give them."""

from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost as xgb

import gbmrank
from gbmrank import GBMRanker
from gbmrank.errors import DataError, GbmrankWarning, GroupError
from tests.ranking_tasks import make_task

TASK, OTHER = make_task(seed=0, queries=40), make_task(seed=1, queries=15)
BOTH = pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])


def ranker(backend, **options):
    return GBMRanker(backend=backend, n_estimators=6, n_jobs=1, **options)


@BOTH
@pytest.mark.parametrize("single", [True, False])
def test_sizes_of_queries_train_the_same_model_as_ids(backend, single):
    sets: Any = (OTHER.x, OTHER.y)
    sizes: Any = OTHER.sizes
    ids: Any = OTHER.qid
    if not single:
        sets, sizes, ids = [sets], [sizes], [ids]
    by_size = ranker(backend).fit(TASK.x, TASK.y, group=TASK.sizes, eval_set=sets, eval_group=sizes)
    by_id = ranker(backend).fit(TASK.x, TASK.y, qid=TASK.qid, eval_set=sets, eval_qid=ids)
    np.testing.assert_array_equal(by_size.predict(OTHER.x), by_id.predict(OTHER.x))
    assert by_size.evals_result_ == by_id.evals_result_


@BOTH
@pytest.mark.parametrize("to", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_a_data_frame_may_have_the_ids_in_a_column(backend, to):
    """As in XGBRanker: no feature, in no method."""
    train, test = (
        pd.DataFrame(one.x, columns=[f"f{at}" for at in range(one.x.shape[1])]).assign(qid=one.qid)
        for one in (TASK, OTHER)
    )
    own = ranker(backend).fit(to(train), TASK.y, eval_set=(to(test), OTHER.y))
    bare = to(test.drop(columns="qid"))
    other = ranker(backend).fit(
        to(train.drop(columns="qid")), TASK.y, qid=TASK.qid,
        eval_set=(bare, OTHER.y), eval_qid=OTHER.qid,
    )  # fmt: skip
    assert "qid" not in own.feature_names_in_
    assert own.evals_result_ == other.evals_result_
    np.testing.assert_array_equal(own.predict(to(test)), other.predict(bare))
    np.testing.assert_array_equal(own.rank(to(test)), other.rank(bare, qid=OTHER.qid))
    assert own.top_k(to(test), 2).tolist() == other.top_k(bare, 2, qid=OTHER.qid).tolist()
    assert own.score(to(test), OTHER.y) == other.score(bare, OTHER.y, qid=OTHER.qid)
    student = own.distil(to(train))
    assert student.predict(to(test)).shape == (OTHER.n,)
    assert own.explain(to(test)).table().shape[0] == OTHER.n
    feature = ranker(backend).fit(to(train), TASK.y, qid=TASK.qid)  # ids are given: a feature
    assert "qid" in feature.feature_names_in_
    assert len(feature.predict(to(test))) == OTHER.n


def test_sizes_that_say_too_much_or_too_little():
    for given, error, message in (
        ({"group": TASK.sizes, "qid": TASK.qid}, GroupError, "both given"),
        ({"group": TASK.sizes[:-1]}, GroupError, "there are"),
        ({"group": TASK.sizes, "eval_group": TASK.sizes}, DataError, "without eval_set"),
    ):
        with pytest.raises(error, match=message):
            ranker("lightgbm").fit(TASK.x, TASK.y, **given)
    with pytest.warns(GbmrankWarning, match="shuffled"), pytest.raises(DataError):
        ranker("lightgbm").fit(TASK.x[:120], TASK.y[:120], group=np.ones(120))


@BOTH
def test_the_names_of_the_boosters_are_there(backend):
    model = ranker(backend, metric="ndcg@10, err@10")
    model.fit(
        TASK.x, TASK.y, qid=TASK.qid, eval_set=(OTHER.x, OTHER.y), eval_group=OTHER.sizes,
        eval_at=[3, 5],
    )  # fmt: skip
    assert list(model.evals_result()["valid_0"]) == ["ndcg@3", "ndcg@5", "err@3", "err@5"]
    history = model.evals_result_["valid_0"]
    last = {name: values[model.best_iteration_] for name, values in history.items()}
    assert model.best_score_ == {"valid_0": last}
    kind = lgb.Booster if backend == "lightgbm" else xgb.Booster
    assert isinstance(model.get_booster(), kind)


@pytest.mark.parametrize(("name", "meant"), [("map_at", "map@12"), ("ndcg_eval_at", "ndcg@12")])
def test_the_metric_that_was_asked_for_is_suggested(name, meant):
    objective = gbmrank.objective("pairwise")
    params = {"objective": objective, "verbosity": -1, "metric": "None", name: [12]}
    with pytest.warns(GbmrankWarning, match=rf"gbmrank.metric\('{meant}'\)"):
        lgb.train(params, lgb.Dataset(TASK.x, TASK.y, group=TASK.sizes), 1)
