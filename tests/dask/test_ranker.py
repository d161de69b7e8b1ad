"""The estimator."""

import pickle
from typing import Any

import cloudpickle
import dask.array as da
import numpy as np
import pytest

import gbmrank
from gbmrank.dask import DaskGBMRanker
from gbmrank.errors import ConfigError
from tests.dask.tables import NAMES, arrays, frame
from tests.ranking_tasks import make_task, run_python

TASK = make_task(seed=1, queries=40)
CUTS = [0, 10, 40]


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_fit_predict_score_and_back_to_one_machine(client, backend, tmp_path):
    x, y, qid = arrays(TASK, CUTS)
    model = DaskGBMRanker("ranknet", backend, "ndcg@5", 5, client=client, learning_rate=0.3)
    assert model.fit(x, y, qid=qid, eval_set=[(x, y)], eval_qid=[qid]) is model
    scores = model.predict(x)
    assert isinstance(scores, da.Array)
    here = gbmrank.metric("ndcg@5").score(TASK.y, scores.compute(), group=TASK.sizes)
    assert model.score(x, y, qid=qid) == pytest.approx(here, rel=1e-12)
    assert model.evals_result_["valid_0"]["ndcg@5"][-1] == pytest.approx(here, rel=1e-12)
    local = model.to_local()
    assert isinstance(local, gbmrank.GBMRanker)
    assert (local.predict(TASK.x) == scores.compute()).all()
    assert local.get_params(deep=False)["learning_rate"] == 0.3
    path = tmp_path / {"lightgbm": "m.txt", "xgboost": "m.ubj"}[backend]
    local.save(path)
    assert (gbmrank.load(path).predict(TASK.x) == scores.compute()).all()
    assert model.best_iteration_ == int(np.argmax(model.evals_result_["valid_0"]["ndcg@5"]))
    assert model.n_features_in_ == 5


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_a_committee_is_merged_of_members_trained_on_the_cluster(client, backend):
    x, y, qid = arrays(TASK, CUTS)
    options = {"n_estimators": 3, "client": client, "early_stopping_rounds": 2}
    valid = {"eval_set": [(x, y)], "eval_qid": [qid]}
    text = "committee(pairwise, query_rmse(target=ndcg@10), weights=[3, 1])"
    model = DaskGBMRanker(text, backend, **options).fit(x, y, qid=qid, **valid)
    expected = np.zeros(TASK.n)
    for member in model.committee_:
        alone = DaskGBMRanker(member.objective, backend, seed=member.seed, **options)
        scores = alone.fit(x, y, qid=qid, **valid).predict(TASK.x)
        means = np.add.reduceat(scores, np.cumsum([0, *TASK.sizes[:-1]])) / TASK.sizes
        spread = np.sqrt(np.mean((scores - np.repeat(means, TASK.sizes)) ** 2))
        assert member.rounds == alone.best_iteration_ + 1
        expected += member.weight * scores / spread
    np.testing.assert_allclose(model.predict(TASK.x), expected, rtol=0, atol=1e-6)
    here = gbmrank.metric("ndcg@10").score(TASK.y, model.predict(TASK.x), group=TASK.sizes)
    assert model.evals_result_ == {"valid_0": {"ndcg@10": [pytest.approx(here)]}}
    local = model.to_local()
    assert local.committee_ == model.committee_
    assert (local.predict(TASK.x) == model.predict(TASK.x)).all()


def test_a_frame_keeps_its_names(client):
    table = frame(TASK, CUTS)
    model = DaskGBMRanker(n_estimators=2, client=client).fit(table, "label", qid="query")
    local = model.to_local()
    assert list(local.feature_names_in_) == NAMES
    features = table[NAMES]
    assert (local.predict(features.compute()) == model.predict(features).compute()).all()


def test_it_can_be_pickled_and_leaves_the_client_behind(client):
    x, y, qid = arrays(TASK, CUTS)
    model = DaskGBMRanker(n_estimators=2, client=client).fit(x, y, qid=qid)
    copy = cloudpickle.loads(pickle.dumps(model))
    assert copy.client is None
    assert (copy.predict(TASK.x) == model.predict(TASK.x)).all()


def test_it_says_when_it_is_not_trained():
    with pytest.raises(ConfigError, match="not trained yet"):
        DaskGBMRanker().predict(TASK.x)
    with pytest.raises(ConfigError, match="not trained yet"):
        DaskGBMRanker().to_local()


def test_what_is_for_one_machine_is_rejected(client):
    x, y, qid = arrays(TASK, CUTS)
    for name in ("callbacks", "init_model", "verbose"):
        given: dict[str, Any] = {name: None}
        with pytest.raises(ConfigError, match=f"{name}= is for one machine"):
            DaskGBMRanker(client=client).fit(x, y, qid=qid, **given)
    model = DaskGBMRanker(backend="xgboost", client=client, feature_weights=[1.0] * 5)
    with pytest.raises(ConfigError, match="feature_weights= is for one machine"):
        model.fit(x, y, qid=qid)
    with pytest.raises(TypeError, match="colour"):
        DaskGBMRanker(client=client).fit(x, y, qid=qid, colour="red")


@pytest.mark.nightly
def test_it_is_found_without_importing_dask_first():
    code = (
        "import sys, gbmrank; before = 'dask' in sys.modules; "
        "print(before, gbmrank.DaskGBMRanker.__name__, gbmrank.dask.train.__name__)"
    )
    assert run_python(code) == "False DaskGBMRanker train"
