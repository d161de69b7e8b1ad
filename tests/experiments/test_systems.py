"""Which objectives run in which boosters."""

import pytest

import gbmrank
from gbmrank.boosters.supported import BACKENDS, BOOSTERS
from gbmrank.errors import (
    ConfigError,
    GbmrankError,
    MissingBackendError,
    UnknownNameError,
)
from gbmrank.experiments import systems
from gbmrank.experiments.provenance import needs_this_process
from gbmrank.experiments.results import GIVEN, System
from gbmrank.experiments.systems import (
    choose_systems,
    default_objectives,
    find_baseline,
    own_baselines,
    split_list,
)
from gbmrank.numerics import sigmoid, softplus


def test_native_objectives_run_where_they_exist():
    chosen = choose_systems(["ranknet", "native:rank:ndcg", "native:lambdarank"], BACKENDS)
    assert [str(system) for system in chosen.systems] == [
        "lightgbm ranknet",
        "lightgbm native:lambdarank",
        "xgboost ranknet",
        "xgboost native:rank:ndcg",
    ]
    assert chosen.notes == ()


def test_a_native_objective_of_another_booster_is_left_out_with_a_note():
    chosen = choose_systems(["ranknet", "native:rank:ndcg"], ["lightgbm"])
    assert chosen.systems == (System("lightgbm", "ranknet"),)
    assert "native:rank:ndcg was left out: it belongs to xgboost" in chosen.notes[0]
    with pytest.raises(ConfigError, match="nothing can run"):
        choose_systems(["native:rank:ndcg"], ["lightgbm"])


def test_an_unknown_native_objective_lists_those_that_exist():
    with pytest.raises(UnknownNameError, match="did you mean native:lambdarank") as caught:
        choose_systems(["native:lambdrank"], None)
    for names in (booster.native for booster in BOOSTERS):
        assert all(f"native:{name}" in str(caught.value) for name in names)


@pytest.mark.parametrize(
    "objectives",
    [
        ["ranknet", "ranknet"],
        ["ranknet", " ranknet "],
        ["ranknet", "comparison(loss=logistic)"],
        ["ranknet", gbmrank.objective("ranknet")],
        ["native:lambdarank", "native:lambdarank"],
    ],
)
def test_the_same_objective_twice_is_refused_however_it_is_written(objectives):
    with pytest.raises(ConfigError, match="given twice"):
        choose_systems(objectives, ["lightgbm"])


def test_names_that_do_not_exist_are_refused():
    with pytest.raises(GbmrankError, match="ranknet"):
        choose_systems(["ranknett"], None)
    with pytest.raises(UnknownNameError, match=r"catboost.*lightgbm, xgboost"):
        choose_systems(["ranknet"], ["catboost"])
    with pytest.raises(ConfigError, match="'lightgbm' is given twice"):
        choose_systems(["ranknet"], ["lightgbm", "lightgbm"])
    with pytest.raises(ConfigError, match="no objective is given"):
        choose_systems([], None)
    with pytest.raises(ConfigError, match="backends is empty"):
        choose_systems(["ranknet"], [])


def test_a_missing_booster_comes_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr(systems, "installed_backends", lambda: ("lightgbm",))
    with pytest.raises(MissingBackendError, match=r"pip install 'gbmrank\[xgboost\]'"):
        choose_systems(["ranknet"], ["xgboost"])
    assert choose_systems(["ranknet"], None).systems == (System("lightgbm", "ranknet"),)
    monkeypatch.setattr(systems, "installed_backends", lambda: ())
    with pytest.raises(MissingBackendError, match="no booster is installed"):
        choose_systems(["ranknet"], None)


def test_preferences_of_other_rows_are_refused():
    graphs = gbmrank.PreferenceGraphs.from_edges([0], [1], group=[2])
    with pytest.raises(ConfigError, match="which folds cannot use"):
        choose_systems([gbmrank.objective("linear", preferences=graphs)], None)


def test_the_baseline_is_the_first_native_one_unless_named():
    chosen = choose_systems(["ranknet", "native:rank:ndcg", "softmax"], BACKENDS).systems
    assert find_baseline(chosen, None) == System("xgboost", "native:rank:ndcg")
    assert find_baseline(chosen[:1], None) == System("lightgbm", "ranknet")
    assert find_baseline(chosen, "softmax") == System("lightgbm", "softmax")
    assert find_baseline(chosen, "xgboost  softmax") == System("xgboost", "softmax")
    with pytest.raises(UnknownNameError, match="did you mean 'xgboost softmax'"):
        find_baseline(chosen, "xgboost softmux")


def test_each_booster_has_a_baseline_unless_one_serves_all():
    both = choose_systems(
        ["ranknet", "native:lambdarank", "native:rank:ndcg"], ["lightgbm", "xgboost"]
    ).systems
    native = System("lightgbm", "native:lambdarank"), System("xgboost", "native:rank:ndcg")
    assert own_baselines(both) == native
    assert own_baselines(native) == ()
    assert own_baselines(both[:2]) == ()
    assert own_baselines([*both, System(GIVEN, "production")]) == ()
    assert own_baselines(
        choose_systems(["ranknet", "softmax"], ["xgboost", "lightgbm"]).systems
    ) == (
        System("xgboost", "ranknet"),
        System("lightgbm", "ranknet"),
    )


@pytest.mark.parametrize("target", ["ndcg@10", "dcg@5", "err@10", "map", "mrr", "auc"])
def test_default_objectives_can_be_made_for_every_target(target):
    texts = default_objectives(gbmrank.metric(target))
    assert len(choose_systems(texts, BACKENDS).objectives) == len(texts)


def test_lists_are_cut_outside_of_brackets_and_quotes():
    text = "mix(ranknet, softmax, weights=[1, 2]), 'a,b', native:rank:map,"
    assert split_list(text) == ["mix(ranknet, softmax, weights=[1, 2])", "'a,b'", "native:rank:map"]


def test_what_a_decorator_registered_needs_this_process():
    @gbmrank.register_loss
    def compare_test_loss(z):
        """Logistic loss under another name."""
        p, q = sigmoid(-z), sigmoid(z)
        return softplus(-z), -p, p * q

    own = gbmrank.objective("pairwise", loss="compare_test_loss")
    assert needs_this_process(own)
    assert needs_this_process(gbmrank.mix("ranknet", own))
    assert not needs_this_process(gbmrank.objective("pairwise"))
    assert not needs_this_process(gbmrank.metric("ndcg@1,5"))


def test_objectives_can_be_one_text_with_commas():
    text = "pairwise(loss=logistic, target=dcg), ranknet, native:rank:ndcg"
    assert choose_systems(text, BACKENDS) == choose_systems(split_list(text), BACKENDS)
    assert len(choose_systems("ranknet", BACKENDS).objectives) == 1
