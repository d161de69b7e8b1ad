"""From text to objects and back."""

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Optional

import numpy as np
import pytest

import gbmrank
from gbmrank.errors import ParameterError, UnknownNameError
from gbmrank.losses import AbstractLoss, Logistic
from gbmrank.losses.base import AbstractMarginLoss
from gbmrank.losses.utilities import DcgUtility, NdcgUtility
from gbmrank.objectives import Pairwise
from gbmrank.registry import LOSSES, METRICS, OBJECTIVES, UTILITIES, Registry
from gbmrank.registry.composition import build, spec_of
from gbmrank.registry.spec import Spec, parse

TEXTS = [
    "pairwise(loss=logistic, target=ndcg)",
    "pairwise(loss=logistic, target=ndcg@10)",
    "pairwise(loss=logistic(sigma=2), target=dcg(gain=linear))",
    "pairwise(loss=logistic(sigma=0.25), target=dcg(gain=[0, 1, 3.5], max_grade=2))",
    "pairwise(loss=logistic, target=precision(threshold=1)@5, normalize=pairs)",
    "pairwise(loss=logistic, target=eru(neutral=-1, half_life=2.5), hessian=majorise)",
    "pairwise(loss=logistic, target=auc, normalize='none', hessian=constant)",
]


@pytest.mark.parametrize("text", TEXTS)
def test_canonical_text_reads_back_as_an_equal_object(text):
    made = build(OBJECTIVES, text)
    assert str(spec_of(made)) == text
    again = build(OBJECTIVES, str(spec_of(made)))
    assert again == made
    assert hash(again) == hash(made)


def test_every_builtin_without_needed_parameters_prints_and_reads_back():
    registries: list[Any] = [LOSSES, UTILITIES, METRICS]
    for registry in registries:
        for name in registry:
            made = build(registry, name)
            assert build(registry, str(spec_of(made))) == made


def test_text_spec_parts_and_objects_make_the_same():
    parts: list[Any] = [
        build(OBJECTIVES, "pairwise(loss=logistic(sigma=2), target=ndcg@10)"),
        build(OBJECTIVES, "pairwise", loss="logistic(sigma=2)", target="ndcg@10"),
        build(OBJECTIVES, parse("pairwise(target=ndcg@10)"), loss=Logistic(sigma=2)),
        build(OBJECTIVES, "PairWise", loss=Spec("logistic", (("sigma", 2.0),)), target="NDCG@10"),
        Pairwise(loss=Logistic(sigma=2.0), target=NdcgUtility(k=10)),
    ]
    assert all(part == parts[0] for part in parts)
    assert len({str(spec_of(part)) for part in parts}) == 1


def test_defaults_are_left_out_and_what_matters_is_shown():
    assert str(spec_of(build(OBJECTIVES, "pairwise(normalize=items, hessian=auto)"))) == (
        "pairwise(loss=logistic, target=ndcg)"
    )


def test_the_word_none_is_a_word_where_a_word_is_expected():
    for text in ("pairwise(normalize=none)", "pairwise(normalize='none')"):
        assert build(OBJECTIVES, text) == Pairwise(normalize="none")
    assert build(OBJECTIVES, "pairwise", normalize="none") == Pairwise(normalize="none")
    assert build(UTILITIES, "precision(threshold=none)") == build(UTILITIES, "precision")


def test_numbers_are_printed_alike_however_they_were_given():
    texts = {
        str(spec_of(build(LOSSES, "logistic", sigma=sigma)))
        for sigma in (2, 2.0, np.float64(2.0), np.float32(2.0), np.int64(2), np.array(2.0))
    }
    assert texts == {"logistic(sigma=2)"}
    assert str(spec_of(Logistic(sigma=np.float64(0.5)))) == "logistic(sigma=0.5)"


def test_tables_may_be_lists_tuples_or_arrays():
    made = [
        build(UTILITIES, "dcg", gain=table)
        for table in ([0, 1, 3], (0.0, 1.0, 3.0), np.array([0.0, 1.0, 3.0]))
    ]
    assert made[0] == made[1] == made[2] == DcgUtility(gain=(0.0, 1.0, 3.0))
    assert {str(spec_of(one)) for one in made} == {"dcg(gain=[0, 1, 3])"}


def test_an_object_is_returned_as_it_is_or_with_other_parameters():
    made = Pairwise(loss=Logistic(sigma=3.0), hessian="majorise")
    assert build(OBJECTIVES, made) is made
    other = build(OBJECTIVES, made, target="dcg", hessian="exact")
    assert other == Pairwise(loss=Logistic(sigma=3.0), target=DcgUtility(), hessian="exact")


@pytest.mark.parametrize(
    ("text", "params", "error", "message"),
    [
        ("pairwise(los=logistic)", {}, ParameterError, "pairwise has no parameter 'los'; did you"),
        ("pairwise(q=1)", {}, ParameterError, "its parameters are normalize, hessian, loss"),
        ("pairwise@10", {}, ParameterError, "pairwise has no k; write target='ndcg@10'"),
        ("pairwise", {"target": "ndcg", "k": 10}, ParameterError, "write target='ndcg@10'"),
        ("swap", {"metric": "ndcg", "k": 10}, ParameterError, "write metric='ndcg@10'"),
        ("ranknet@10", {}, ParameterError, "comparison takes no cut-off"),
        (
            "pairwise(loss=hinge(k=3))",
            {},
            ParameterError,
            "hinge has no parameter 'k'; it takes none",
        ),
        ("pairwise(target=ndgc)", {}, UnknownNameError, "did you mean 'ndcg'?"),
        (
            "pairwise(target=auc(k=2)@3)",
            {},
            ParameterError,
            "auc: the cut-off is set twice, as k=2",
        ),
        ("pairwise(ndcg)", {}, ParameterError, "pairwise: write parameters as key=value"),
        ("pairwise(loss=logistic)", {"loss": "logistic"}, ParameterError, "loss is set in the"),
        ("pairwise(loss=logistc)", {}, UnknownNameError, "did you mean 'logistic'?"),
        ("pairwise(target=ndgc@10)", {}, UnknownNameError, "did you mean 'ndcg'"),
        ("pairwise(loss=3)", {}, ParameterError, "a loss must be text such as 'logistic'"),
        (len, {}, ParameterError, "text such as 'pairwise(target=ndcg@10)'"),
        (len, {}, ParameterError, "gbmrank.register_loss"),
        ("pairwise", {"loss": Logistic}, ParameterError, "or an object, got ABCMeta"),
        (
            "pairwise(loss=logistic(sigma=big))",
            {},
            ParameterError,
            "sigma must be float, got 'big'",
        ),
        (
            "pairwise(loss=logistic(sigma=true))",
            {},
            ParameterError,
            "sigma must be float, got True",
        ),
        (
            "pairwise(loss=logistic(sigma=none))",
            {},
            ParameterError,
            "sigma must be float, got None",
        ),
        ("pairwise(loss=logistic(sigma=0))", {}, ParameterError, "number above 0, got 0"),
        ("pairwise(loss=logistic(sigma=inf))", {}, ParameterError, "above 0, got inf"),
        ("pairwise(normalize=maybe)", {}, ParameterError, "one of none, items, pairs; got 'maybe'"),
        ("pairwise(hessian=1)", {}, ParameterError, "hessian must be str, got 1"),
        ("pairwise(target=ndcg(k=1.5))", {}, ParameterError, "k must be int or none, got 1.5"),
        (
            "pairwise(target=ndcg(gain=cube))",
            {},
            ParameterError,
            "gain='cube' is not known; use 'exp2', 'linear'",
        ),
        ("pairwise(target=ndcg(gain=[]))", {}, ParameterError, "a gain table holds finite gains"),
        ("pairwise(target=ndcg(gain=[0, -1]))", {}, ParameterError, "not negative, got (0, -1)"),
        (
            "pairwise(target=ndcg(gain=[0, a]))",
            {},
            ParameterError,
            "every entry must be a number, got a",
        ),
        ("pairwise(target=ndcg(gain=[0, inf]))", {}, ParameterError, "finite gains"),
        (
            "mix(ranknet, softmax, weights=[1, a])",
            {},
            ParameterError,
            "mix: weights: every entry must be a number, got a",
        ),
    ],
)
def test_errors_say_what_was_given_and_what_is_allowed(text, params, error, message):
    with pytest.raises(error, match=re.escape(message)):
        build(OBJECTIVES, text, **params)


def test_annotations_that_are_not_classes_are_left_to_the_plugin():
    @dataclass(frozen=True, slots=True)
    class Odd(AbstractMarginLoss):
        mode: Literal["a", "b"] = "a"
        size: Optional[float] = None  # noqa: UP045  (what a plugin may write)
        free: Any = None
        name: ClassVar[str] = "odd"

    registry: Registry[AbstractLoss] = Registry("loss", AbstractLoss, (Odd,))
    made: Any = build(registry, "odd(mode=b, size=3, free=[1, x])")
    assert (made.mode, made.size, made.free) == ("b", 3.0, (1, "x"))
    assert isinstance(made.size, float)
    with pytest.raises(ParameterError, match="size must be float or none, got 'big'"):
        build(registry, "odd(size=big)")


@pytest.mark.parametrize(
    "text",
    ["ndcg@10", "dcg", "dcg(gain=linear)", "precision@5", "recall", "wta", "auc", "spearman",
     "eru(neutral=1)", "map(threshold=2)@5", "ndcg(gain=[0, 1, 5])"],
)  # fmt: skip
@pytest.mark.parametrize("template", ["pairwise", "pointwise", "bregman"])
def test_a_metric_as_target_stands_for_its_utility(template, text):
    made = gbmrank.objective(template, target=gbmrank.metric(text))
    assert made == gbmrank.objective(template, target=text)
    bare = gbmrank.objective(template, target=gbmrank.metric(text).measure)
    assert bare == made


def test_metrics_without_a_utility_are_no_targets():
    for text in ("err@10", "mrr", "ptop"):
        with pytest.raises(ParameterError, match="cannot be a target"):
            gbmrank.objective("pairwise", target=gbmrank.metric(text))
    own = gbmrank.metric("positional(utility=dcg(gain=linear))")
    assert gbmrank.objective("pairwise", target=own) == gbmrank.objective(
        "pairwise(target=dcg(gain=linear))"
    )
    with pytest.raises(ParameterError, match=r"a loss must be text .* got NDCG"):
        gbmrank.objective("pairwise", loss=gbmrank.metric("ndcg"))


def test_public_functions_take_text_parts_and_objects():
    made = gbmrank.objective("pairwise", loss="logistic", target="ndcg@10")
    assert made == gbmrank.objective("pairwise(loss=logistic, target=ndcg@10)")
    assert gbmrank.objective(made) == made
    assert gbmrank.objective(made.template) == made
    assert gbmrank.objective(made.spec) == made
    assert str(gbmrank.objective(made, target="dcg")) == "pairwise(loss=logistic, target=dcg)"
    assert repr(made) == "gbmrank.objective('pairwise(loss=logistic, target=ndcg@10)')"
    assert made != gbmrank.metric("ndcg@10")


def test_a_class_is_no_number():
    with pytest.raises(
        ParameterError, match=r"ndcg: dtype must be str, got <class 'numpy\.float32'>"
    ):
        gbmrank.metric("ndcg", dtype=np.float32)


def test_a_discount_that_is_a_function_has_a_text():
    metric = gbmrank.metric("positional", discount=lambda ranks: 1.0 / ranks)
    assert str(metric) == "positional(utility=dcg, discount='<lambda>')"
    assert repr(metric) == f"gbmrank.metric({str(metric)!r})"
    assert metric.name_in("xgboost").endswith("positional_utility_dcg_discount_lambda")
    assert metric.score([1, 0], [1, 2]) == 0.5
    with pytest.raises(ParameterError, match="one of log2"):
        gbmrank.metric(str(metric))
    report = gbmrank.testing.check_metric(metric)
    assert {one.check for one in report.results if one.outcome == "skipped"} == {"pickling", "spec"}


@pytest.mark.parametrize("name", ["ranksvm", "pnorm_push", "w_ranknet", "lambdarank@5"])
def test_a_preset_is_the_same_with_the_name_of_gbmrank_before_it(name):
    assert gbmrank.objective(f"gbmrank:{name}") == gbmrank.objective(name)


@pytest.mark.parametrize("name", ["lambdarank", "ndcg_loss2", "ndcg_loss2pp"])
def test_no_cut_off_is_the_preset_without_one(name):
    assert gbmrank.objective(name, k=None) == gbmrank.objective(name)
    assert gbmrank.objective(f"{name}(k=none)") == gbmrank.objective(name)


def test_a_preset_without_a_cut_off_takes_none():
    with pytest.raises(ParameterError, match="takes no cut-off"):
        gbmrank.objective("ranknet", k=None)
