"""What scikit-learn does with the rankers: routing, grids, pipelines, its own checks."""

from typing import Any

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import gbmrank
from gbmrank import GBMRanker, PairRanker
from gbmrank.errors import GroupError
from tests.ranking_tasks import make_task

BACKENDS = ["lightgbm", "xgboost"]
TASK = make_task(seed=0, queries=36)
MIXED = np.random.default_rng(1).permutation(TASK.n)
X, Y, QID = TASK.x[MIXED], TASK.y[MIXED], TASK.qid[MIXED]
GRID = {"objective__loss": ["logistic", "squared_hinge"], "objective__target__k": [2, 10]}


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def ranker(backend: str, **params: Any) -> GBMRanker:
    return GBMRanker(backend=backend, n_estimators=6, n_jobs=1, **params)


def by_hand(model: GBMRanker, weight: Any = None) -> list[float]:
    """Scores of the folds: whole queries left out, metric over them."""
    scores = []
    for rows, left_out in GroupKFold(3).split(X, Y, QID):
        own = None if weight is None else weight[rows]
        fold = clone(model).fit(X[rows], Y[rows], qid=QID[rows], sample_weight=own)
        predicted = fold.predict(X[left_out])
        value = gbmrank.metric(model.metric).score(Y[left_out], predicted, qid=QID[left_out])
        scores.append(value)
    return scores


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_grid_over_the_objective_scores_as_a_loop_by_hand(backend):
    search = GridSearchCV(ranker(backend), GRID, cv=GroupKFold(3))
    search.fit(X, Y, qid=QID, groups=QID)
    seen = set()
    for number, params in enumerate(search.cv_results_["params"]):
        loss, k = params["objective__loss"], params["objective__target__k"]
        text = f"pairwise(loss={loss}, target=ndcg@{k})"
        expected = by_hand(ranker(backend, objective=text))
        found = [search.cv_results_[f"split{fold}_test_score"][number] for fold in range(3)]
        assert found == expected
        seen.add(tuple(found))
    assert len(seen) == 4  # the parameters did something
    whole = clone(search.best_estimator_).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(search.predict(X), whole.predict(X))
    assert search.score(X, Y, qid=QID) == whole.score(X, Y, qid=QID)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("backend", BACKENDS)
def test_weights_and_queries_are_cut_with_the_rows(backend):
    weight = np.random.default_rng(0).uniform(0.2, 3.0, len(TASK.sizes))[QID]
    model = ranker(backend).set_score_request(sample_weight=False)
    given = {"qid": QID, "groups": QID, "sample_weight": weight}
    found = cross_validate(model, X, Y, cv=GroupKFold(3), params=given)["test_score"]
    assert found.tolist() == by_hand(ranker(backend), weight)
    assert found.tolist() != by_hand(ranker(backend))
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        cross_validate(ranker(backend), X, Y, cv=GroupKFold(3), params=given)


@pytest.mark.usefixtures("routing")
def test_a_pipeline_hands_queries_on():
    steps = make_pipeline(StandardScaler(), ranker("lightgbm"))
    found = cross_validate(
        steps, X, Y, cv=GroupKFold(3), params={"qid": QID, "groups": QID}, error_score="raise"
    )["test_score"]
    expected = []
    for rows, left_out in GroupKFold(3).split(X, Y, QID):
        scaler = StandardScaler().fit(X[rows])
        fold = ranker("lightgbm").fit(scaler.transform(X[rows]), Y[rows], qid=QID[rows])
        expected.append(fold.score(scaler.transform(X[left_out]), Y[left_out], qid=QID[left_out]))
    assert found.tolist() == expected


@pytest.mark.usefixtures("routing")
def test_pair_models_are_routed_too():
    model = PairRanker(n_estimators=5)
    found = cross_validate(
        model, X, Y, cv=GroupKFold(3), params={"qid": QID, "groups": QID}, error_score="raise"
    )["test_score"]
    expected = [
        clone(model).fit(X[a], Y[a], qid=QID[a]).score(X[b], Y[b], qid=QID[b])
        for a, b in GroupKFold(3).split(X, Y, QID)
    ]
    assert found.tolist() == expected


def test_without_routing_a_score_without_queries_is_refused():
    with pytest.raises(GroupError, match="enable_metadata_routing=True"):
        cross_validate(ranker("lightgbm"), X, Y, params={"qid": QID}, error_score="raise")
    steps = make_pipeline(StandardScaler(), ranker("lightgbm"))
    steps.fit(X, Y, gbmranker__qid=QID)
    scaled = StandardScaler().fit_transform(X)
    expected = ranker("lightgbm").fit(scaled, Y, qid=QID).predict(scaled)
    np.testing.assert_array_equal(steps.predict(X), expected)


def test_requests_can_be_changed_and_are_cloned():
    model = ranker("lightgbm").set_fit_request(sample_weight="w", eval_set=True)
    asked = clone(model).get_metadata_routing().fit.requests
    assert asked["sample_weight"] == "w"
    assert asked["eval_set"] is True
    assert asked["qid"] is True
    assert ranker("lightgbm").get_metadata_routing().fit.requests["sample_weight"] is True
    with pytest.raises(TypeError, match="score takes no metadata 'colour'"):
        model.set_score_request(colour=True)


class Ranker(GBMRanker):  # type: ignore[misc]  # final to users; the checks give no query ids
    """GBMRanker that deals rows out to queries of about ten."""

    def fit(self, X, y=None, *, sample_weight=None):  # type: ignore[override]  # no ids
        return super().fit(X, y, qid=self._deal(X), sample_weight=sample_weight)

    def score(self, X, y):  # type: ignore[override]  # no ids
        return super().score(X, y, qid=self._deal(X))

    @staticmethod
    def _deal(X):
        return np.random.default_rng(0).integers(max(1, count(X) // 10), size=count(X))


def count(X):
    return X.shape[0] if getattr(X, "shape", ()) else len(np.asarray(X))


class Pairs(PairRanker):  # type: ignore[misc]  # final to users; the checks give no query ids
    """PairRanker whose rows are all one query."""

    def fit(self, X, y=None):  # type: ignore[override]  # no ids
        return super().fit(X, y, qid=self._one(X))

    def predict(self, X, *, qid=None):
        return super().predict(X, qid=self._one(X))

    def score(self, X, y):  # type: ignore[override]  # no ids
        return super().score(X, y, qid=self._one(X))

    @staticmethod
    def _one(X):
        return np.zeros(count(X), int)


EXEMPT = {
    "check_dtype_object": "a table that holds no numbers is a DataError, which is a ValueError; "
    "the check wants a TypeError",
}
EXEMPT_XGBOOST = EXEMPT | dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "the checks compare rows of weight 2 with repeated rows, and XGBoost makes bins of features "
    "by one weight per query",
)


@pytest.mark.filterwarnings("ignore::gbmrank.errors.NoProgressWarning")  # few rows, large leaves
@pytest.mark.filterwarnings("ignore:.*does not inherit from .*BaseEstimator.*:UserWarning")
@pytest.mark.parametrize(("backend", "exempt"), [("lightgbm", EXEMPT), ("xgboost", EXEMPT_XGBOOST)])
def test_the_checks_of_scikit_learn_pass_but_for_the_exempt_ones(backend, exempt):
    """A pointwise objective, since the checks weigh rows and use labels of any sign."""
    model = Ranker("pointwise(loss=squared, target=identity)", backend, "pairwise_disagreement", 5)
    hold_checks(model, exempt, 40)


EXEMPT_PAIRS = EXEMPT | {
    "check_methods_subset_invariance": "a score counts the rows of the query that are ranked "
    "below, so it depends on which rows there are",
}


@pytest.mark.filterwarnings("ignore::gbmrank.errors.NoProgressWarning")  # few rows, large leaves
@pytest.mark.filterwarnings("ignore:.*does not inherit from .*BaseEstimator.*:UserWarning")
@pytest.mark.parametrize("backend", BACKENDS)
def test_pair_models_pass_the_checks_that_apply_to_them(backend):
    hold_checks(Pairs(backend=backend, n_estimators=5), EXEMPT_PAIRS, 35)


def hold_checks(model, exempt, least):
    """Run the checks of scikit-learn; those that fail must be the exempt ones."""
    failed, passed = {}, 0
    for estimator, check in estimator_checks_generator(model):
        name = getattr(check, "func", check).__name__
        try:
            check(estimator)
            passed += 1
        except Exception as error:
            if type(error).__name__ != "SkipTest":
                failed[name] = error
    assert set(failed) == set(exempt), failed
    assert passed >= least
