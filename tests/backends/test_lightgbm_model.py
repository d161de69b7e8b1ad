"""Damage to the text of a model is found before LightGBM reads it."""

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest

from gbmrank import GBMRanker
from gbmrank.boosters.lightgbm.training import check_model
from tests.ranking_tasks import make_task

TASK = make_task(seed=0, queries=20)
KINDS = pd.DataFrame(
    {"kind": pd.Categorical((TASK.x[:, 0] * 9).astype(int) % 7), "b c": TASK.x[:, 1]}
)
MANY = {"max_cat_to_onehot": 1, "min_data_per_group": 1, "cat_smooth": 0}


def text_of(table=TASK.x, **params):
    params = {"n_estimators": 3, "n_jobs": 1, "min_data_in_leaf": 2, **params}
    model = GBMRanker("ranknet", **params)
    return model.fit(table, TASK.y, qid=TASK.qid).booster_.model_to_string()


PLAIN, LINEAR, GROUPED = text_of(), text_of(linear_tree=True), text_of(KINDS, **MANY)


@pytest.mark.filterwarnings("ignore::gbmrank.NoProgressWarning")
def test_whole_models_are_taken():
    assert "cat_threshold" in GROUPED
    assert "is_linear=1" in LINEAR
    constant, dart = text_of(min_data_in_leaf=10_000), text_of(boosting="dart")
    for text in (PLAIN, LINEAR, GROUPED, constant, dart):
        check_model(text)


def test_a_model_of_no_trees_is_taken():
    rows = lgb.Dataset(TASK.x, TASK.y, params={"verbosity": -1})
    check_model(lgb.Booster({"verbosity": -1}, rows).model_to_string())


def changed(text, name, change):
    """Return a model with another value of a field of its first tree, of the old length."""
    head, mark, rest = text.partition(f"\n{name}=")
    value, end, rest = rest.partition("\n")
    made = change(value)
    assert mark
    assert made != value
    return f"{head}{mark}{made[: len(value)].ljust(len(value))}{end}{rest}"


@pytest.mark.parametrize(
    ("text", "name", "change", "words"),
    [
        (PLAIN, "leaf_value", lambda v: "x" + v[1:], "tree 0: leaf_value holds what is no number"),
        (PLAIN, "leaf_value", lambda v: v.replace(".", " ", 1), "tree 0: leaf_value has .* in pl"),
        (PLAIN, "threshold", lambda v: v.replace(" ", "\v", 1), "threshold holds what is no num"),
        (PLAIN, "left_child", lambda v: "0" + v[1:], "its nodes make no tree"),
        (PLAIN, "right_child", lambda v: v.rpartition(" ")[0] + " 99", "its nodes make no tree"),
        (PLAIN, "split_feature", lambda v: "9" + v[1:], "a feature that there is not"),
        (PLAIN, "num_leaves", lambda v: "1x", "num_leaves holds what is no number"),
        (PLAIN, "num_leaves", lambda v: "9", "leaf_value has .* numbers in place of 9"),
        (PLAIN, "Tree", lambda v: "7", "tree 0 does not begin or end where the file says|no tree"),
        (PLAIN, "tree_sizes", lambda v: "1" + v, "does not begin or end where the"),
        (PLAIN, "tree_sizes", lambda v: v.rpartition(" ")[0], "more trees than the file says"),
        (PLAIN, "max_feature_idx", lambda v: "0", "a feature that there is not"),
        (LINEAR, "num_features", lambda v: "9" + v[1:], "leaf_features has"),
        (LINEAR, "leaf_const", lambda v: "?" + v[1:], "leaf_const holds what is no number"),
        (GROUPED, "cat_boundaries", lambda v: "1" + v[1:], "sets of categories do not fit"),
        (GROUPED, "num_cat", lambda v: "0", "sets of categories do not fit"),
    ],
)
def test_damage_is_named(text, name, change, words):
    with pytest.raises(ValueError, match=words):
        check_model(changed(text, name, change))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("\nend of trees\n", "\n", "the end of the trees is missing"),
        ("\nend of parameters\n", "\n", "its end is missing"),
        ("[boosting: gbdt]", "[boosting gbdt]", "is no parameter"),
        ("pandas_categorical:", "pandas_categorical:[", "Expecting"),
        ("num_cat=", "numcat=", "tree 0"),
    ],
)
def test_missing_parts_are_named(old, new, words):
    assert old in PLAIN
    with pytest.raises(ValueError, match=words):
        check_model(PLAIN.replace(old, new, 1))


def test_no_cut_is_taken():
    for length in np.linspace(5, len(PLAIN.rstrip()) - 2, 60).astype(int):
        with pytest.raises(ValueError, match=r"\w"):
            check_model(PLAIN[:length])
