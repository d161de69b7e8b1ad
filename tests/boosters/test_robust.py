"""Robust settings: trees of samples, and regularisation in units of an objective's curvature."""

from typing import Any

import numpy as np
import pytest

import gbmrank
from gbmrank import GBMRanker
from gbmrank.errors import ParameterError, UnknownNameError
from tests.ranking_tasks import make_task

TASK = make_task(seed=0)
UNITS = {"lightgbm": ("lambda_l2",), "xgboost": ("lambda", "min_child_weight")}


@pytest.mark.parametrize("backend", UNITS)
def test_a_factor_of_the_loss_changes_the_units_and_not_the_model(backend):
    plain = gbmrank.booster_params("pairwise", backend, preset="robust")
    scaled = gbmrank.mix("pairwise", weights=[8])
    more = gbmrank.booster_params(scaled, backend, preset="robust")
    for name in UNITS[backend]:
        assert more[name] == pytest.approx(8 * plain[name])
    assert {k: v for k, v in more.items() if k not in UNITS[backend]} == {
        k: v for k, v in plain.items() if k not in UNITS[backend]
    }
    one, other = (
        GBMRanker(made, backend, n_estimators=5, **dict[str, Any](params.trees)).fit(
            TASK.x, TASK.y, qid=TASK.qid
        )
        for made, params in (("pairwise", plain), (scaled, more))
    )
    assert len(np.unique(one.predict(TASK.x))) > 10
    np.testing.assert_allclose(one.predict(TASK.x), other.predict(TASK.x), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("backend", UNITS)
def test_seeds_differ_where_settings_are_robust(backend):
    params = gbmrank.booster_params("committee", backend, preset="robust")
    assert params == params.trees
    assert not set(UNITS[backend]) & set(params)
    model = GBMRanker("committee(query_rmse, seeds=2)", backend, n_estimators=3, **params)
    first, second = model.fit(TASK.x, TASK.y, qid=TASK.qid).committee_
    assert first.spread != second.spread


def test_what_an_objective_needs_is_there_too():
    params = gbmrank.booster_params("bipartite", "xgboost", preset="robust")  # 0 and 1 alone
    assert params["base_score"] == 0.0
    assert params["min_child_weight"] > 1e-3
    assert set(params.reasons) == set(params)
    assert "min_child_weight" in str(params)
    assert gbmrank.booster_params("pairwise", "xgboost").trees == {}


def test_a_preset_that_does_not_exist():
    with pytest.raises(ParameterError, match="'fast'"):
        gbmrank.booster_params("pairwise", "lightgbm", preset="fast")
    with pytest.raises(UnknownNameError):
        gbmrank.booster_params("native:lambdarank", "lightgbm")
