"""What must not change, what must be zero, and what must be rejected or stay finite."""

import numpy as np
import pytest

import gbmrank
from gbmrank import NumericError, RankingData, WeightError
from tests.formulas import PLAIN
from tests.objectives.cases import (
    ROWS,
    SIZES,
    bound,
    compositions,
    labels_for,
    one_per_kernel,
    scores_for,
    slices,
    template_of,
)

KERNELS = one_per_kernel()
SHIFT_INVARIANT = [
    text for text in compositions() if gbmrank.objective(text).template.shift_invariant
]
ROW_WEIGHTS = ("pointwise", "bregman")


def is_shift_invariant(text):
    return gbmrank.objective(text).template.shift_invariant


def test_the_right_objectives_are_shift_invariant():
    yes = ["pairwise", "comparison", "bipartite", "push", "listmle", "softmax", "listnet"]
    yes += ["mix(ranknet, softmax)"]
    no = ["pointwise", "linear", "bregman(loss=poisson)", "mix(ranknet, cossock_zhang)"]
    assert all(is_shift_invariant(text) for text in yes)
    assert not any(is_shift_invariant(text) for text in no)


@pytest.mark.parametrize("text", SHIFT_INVARIANT)
def test_gradients_sum_to_zero_and_a_common_shift_changes_nothing(text):
    scores, ready = scores_for(2.0), bound(text)
    grad, hess = ready.gradients(scores)
    for part in slices():
        assert abs(grad[part].sum()) <= 1e-13 * max(np.abs(grad[part]).sum(), 1e-300)
    shift = np.repeat(np.arange(len(SIZES)) - 3.0, SIZES)
    moved, moved_hess = ready.gradients(scores + shift)
    np.testing.assert_allclose(
        ready.losses(scores + shift), ready.losses(scores), rtol=1e-11, atol=1e-12
    )
    assert np.all(np.abs(moved - grad) <= 1e-11 * (np.abs(grad) + hess + 1e-3))
    np.testing.assert_allclose(moved_hess, hess, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("offset", [2.0**27, -(2.0**40)])
@pytest.mark.parametrize("text", SHIFT_INVARIANT)
def test_scores_far_from_zero_keep_their_digits(text, offset):
    """Scores of few bits, so that the shift itself rounds nothing."""
    scores, ready = np.round(64.0 * scores_for(2.0)) / 64.0, bound(text)
    grad, hess = ready.gradients(scores)
    moved, moved_hess = ready.gradients(scores + offset)
    assert np.all(np.abs(moved - grad) <= 1e-11 * (np.abs(grad) + hess + 1e-3))
    np.testing.assert_allclose(moved_hess, hess, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        ready.losses(scores + offset), ready.losses(scores), rtol=1e-11, atol=1e-12
    )


@pytest.mark.parametrize("text", KERNELS)
def test_order_of_rows_and_of_queries_does_not_matter(text):
    labels, scores = labels_for(text), scores_for()
    grad, hess = bound(text).gradients(scores)
    rng = np.random.default_rng(5)
    order = np.concatenate(
        [part.start + rng.permutation(part.stop - part.start) for part in slices()]
    )
    if "mix" not in text or "listmle" not in text:
        again, bends = bound(text, labels[order]).gradients(scores[order])
        np.testing.assert_allclose(again, grad[order], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(bends, hess[order], rtol=1e-12, atol=1e-13)
    queries = rng.permutation(len(SIZES))
    rows = np.concatenate([np.arange(slices()[q].start, slices()[q].stop) for q in queries])
    sizes = np.array(SIZES)[queries]
    again, bends = bound(text, labels[rows], sizes).gradients(scores[rows])
    assert again.tolist() == grad[rows].tolist()
    assert bends.tolist() == hess[rows].tolist()


@pytest.mark.parametrize("text", KERNELS)
def test_a_query_depends_on_itself_alone(text):
    labels, scores = labels_for(text), scores_for()
    grad, hess = bound(text).gradients(scores)
    values = bound(text).losses(scores)
    for query, part in enumerate(slices()):
        alone = bound(text, labels[part], [part.stop - part.start])
        found = alone.gradients(scores[part])
        assert found[0].tolist() == grad[part].tolist()
        assert found[1].tolist() == hess[part].tolist()
        assert alone.losses(scores[part])[0] == values[query]


@pytest.mark.parametrize("text", KERNELS)
def test_weights_multiply(text):
    labels, scores, objective = labels_for(text), scores_for(), gbmrank.objective(text)
    weight = np.linspace(0.0, 3.0, len(SIZES))
    grad, hess = objective.gradients(labels, scores, group=SIZES)
    found = objective.gradients(labels, scores, group=SIZES, weight=weight)
    np.testing.assert_allclose(found[0], grad * np.repeat(weight, SIZES), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(found[1], hess * np.repeat(weight, SIZES), rtol=1e-13, atol=1e-15)
    values = objective.loss(labels, scores, group=SIZES, per_query=True)
    weighted = objective.loss(labels, scores, group=SIZES, weight=weight, per_query=True)
    np.testing.assert_allclose(weighted, values * weight, rtol=1e-13, atol=1e-15)
    rows = np.linspace(0.5, 2.0, ROWS)
    if objective.template.item_weights:
        found = objective.gradients(labels, scores, group=SIZES, weight=rows)
        assert not np.allclose(found[0], grad)  # test_item_weights.py has the formulas
    else:
        with pytest.raises(WeightError, match="rows of query 0 have different weights"):
            objective.gradients(labels, scores, group=SIZES, weight=rows)


# One item, equal labels, nothing relevant, all relevant: what SPEC 3.7 says of each loss.
PULLS_TOGETHER = ("pairwise",)
ORDINARY = ("pointwise", "linear", "calibrated_softmax")


@pytest.mark.parametrize("text", KERNELS)
def test_one_item(text):
    template = template_of(text)
    labels = np.array([1.0])
    grad, hess = bound(text, labels, [1]).gradients(np.array([0.7]))
    assert np.isfinite([*grad, *hess]).all()
    undefined = "auc" in text
    softmax = template.name == "bregman" and template.loss.term is None
    ordinary = template.name in ORDINARY or (template.name == "bregman" and not softmax)
    if template.name != "mix":
        assert (grad[0] != 0.0) == (ordinary and not undefined)
        assert ordinary or (
            hess[0] == 0.0 and bound(text, labels, [1]).losses(np.array([0.7]))[0] == 0.0
        )


@pytest.mark.parametrize("normalize", ["none", "items", "pairs"])
@pytest.mark.parametrize(
    "text", ["pointwise(loss=squared, target=dcg)", "bregman(loss=poisson, target=dcg)", "linear"]
)
def test_one_item_is_not_normalised(text, normalize):
    """There are no others and no pairs to divide by."""
    plain = gbmrank.objective(text, normalize="none")
    made = gbmrank.objective(text, normalize=normalize)
    scores = np.array([0.7, -0.3, 0.4])
    one, two = (slice(0, 1), slice(1, 3))
    for found, whole in zip(
        made.gradients([1, 2, 0], scores, group=[1, 2]),
        plain.gradients([1, 2, 0], scores, group=[1, 2]),
        strict=True,
    ):
        assert whole.any()
        assert found[one].tolist() == whole[one].tolist()
        assert found[two].tolist() == whole[two].tolist()  # one other, one pair
    grad, _ = made.gradients([1, 2, 0, 3], np.zeros(4), group=[1, 3])
    full, _ = plain.gradients([1, 2, 0, 3], np.zeros(4), group=[1, 3])
    factor = {"none": 1.0, "items": 1 / 2, "pairs": 1 / 3}[normalize]
    np.testing.assert_allclose(grad, full * np.array([1.0, factor, factor, factor]), rtol=1e-15)


@pytest.mark.parametrize(
    ("text", "slope"),
    [
        ("pointwise(loss=squared, target=spearman)", 2 * 0.7),
        ("bregman(loss=squared, target=spearman)", 2 * 0.7),
        ("bregman(loss=poisson, target=spearman)", np.exp(0.7)),
        ("bregman(loss=itakura_saito, target=spearman)", 1 - 1e-3 * np.exp(-0.7)),
        ("bregman(loss=softmax_ce, target=spearman)", 0.0),
        ("pairwise(loss=squared, target=spearman)", 0.0),
    ],
)
def test_one_item_is_worth_nothing_to_spearman(text, slope):
    """SPEC 2 and 3.7: u = n - rank = 0, and an ordinary term where one item has one."""
    grad, _ = gbmrank.objective(text).gradients([3.0], [0.7])
    assert grad[0] == pytest.approx(slope, rel=1e-12)


@pytest.mark.parametrize("grade", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("text", KERNELS)
def test_equal_labels(text, grade):
    template, scores = template_of(text), np.array([0.5, -1.0, 2.0])
    if "eta=1" in text and "eta=15" not in text:
        grade = min(grade, 1.0)
    if text.startswith("pointwise(loss=squared, target=map"):
        grade = min(grade, 1.0)
    ready = bound(text, np.full(3, grade), [3])
    grad, hess = ready.gradients(scores)
    assert np.isfinite([*grad, *hess, *ready.losses(scores)]).all()
    if template.name in ("comparison", "bipartite", "push"):
        assert not grad.any()
        assert not hess.any()
        assert ready.losses(scores)[0] == 0.0
    elif template.name == "pairwise" and template.loss.name != "squared":
        useful = grade > 0
        assert grad.any() == useful
        if useful and template.loss.name != "squared_margin" and template.loss.differentiable:
            assert grad[2] > 0 > grad[1]  # together
    elif template.name == "listmle" and "gain" in str(template.weights) and grade == 0.0:
        assert not grad.any()  # gains of zero


@pytest.mark.parametrize(
    "target", ["ndcg", "recall(threshold=2)", "map(threshold=2)", "auc(threshold=2)"]
)
@pytest.mark.parametrize(
    "template",
    [
        "pointwise",
        "pairwise",
        "bregman",
        "pairwise(loss=squared)",
        "pointwise(loss=squared)",
        "bregman(loss=squared)",
        "bregman(loss=poisson)",
        "bregman(loss=softmax)",
    ],
)
def test_an_undefined_normaliser_gives_nothing(template, target):
    objective = gbmrank.objective(template, target=target)
    labels, scores = np.array([0.0, 0, 0, 3, 0]), np.array([0.5, -1.0, 2.0, 0.3, 0.1])
    grad, _ = objective.gradients(labels, scores, group=[3, 2])
    values = objective.loss(labels, scores, group=[3, 2], per_query=True)
    assert not grad[:3].any()
    assert values[0] == 0.0
    assert grad[3:].any()


def test_zero_utility_is_information_where_it_is_defined():
    """SPEC 3.7: all u = 0 pulls pointwise scores down, and squared pairs together."""
    labels, scores = np.zeros(3), np.array([0.5, -1.0, 2.0])
    assert (gbmrank.objective("pointwise(target=dcg)").gradients(labels, scores)[0] > 0).all()
    assert not gbmrank.objective("pairwise(target=dcg)").gradients(labels, scores)[0].any()
    grad, _ = gbmrank.objective("pairwise(loss=squared, target=dcg)").gradients(labels, scores)
    assert grad[2] > 0 > grad[1]
    assert not gbmrank.objective("bregman(target=dcg)").gradients(labels, scores)[0].any()


# ------------------------------------------------------------------- extreme scores

STEEP = ("exponential", "p_classification", "asymmetric_a", "asymmetric_b", "poisson",
         "itakura_saito", "cosh", "expm1", "push")  # fmt: skip


def extreme(size):
    signs = np.where(np.random.default_rng(2).random(ROWS) < 0.5, -1.0, 1.0)
    return {"ties": np.full(ROWS, size), "both": size * signs, "mixed": scores_for() + size * signs}


@pytest.mark.parametrize("size", [1e3, 1e4])
@pytest.mark.parametrize("text", KERNELS)
def test_extreme_scores_give_finite_numbers_or_an_error(text, size):
    ready = bound(text)
    steep = any(word in text for word in STEEP)
    for scores in extreme(size).values():
        for ask in (ready.gradients, ready.losses):
            try:
                found = ask(scores)
            except NumericError as error:
                assert steep, text
                assert "choose a loss with bounded slope" in str(error)  # noqa: PT017
            except OverflowError:  # of Python; compiled numbers are infinite instead
                assert PLAIN
                assert steep, text
            else:
                assert np.isfinite(found).all()


@pytest.mark.parametrize("text", KERNELS)
def test_equal_scores_are_smooth(text):
    ready = bound(text)
    at, near = np.zeros(ROWS), 1e-9 * scores_for()
    found, close = ready.gradients(at), ready.gradients(near)
    if "power" not in text:
        np.testing.assert_allclose(found[0], close[0], rtol=1e-6, atol=1e-7)
    assert np.isfinite(found).all()


def test_overflow_is_an_error_that_names_the_query_and_advises():
    labels, scores = np.array([1.0, 0, 1, 0]), np.array([0.0, 0.0, -1e3, 1e3])
    push = gbmrank.objective("pnorm_push")
    with pytest.raises(NumericError, match=r"query 1\b.*-1000 to 1000.*form=log"):
        push.gradients(labels, scores, group=[2, 2])
    with pytest.raises(NumericError, match=r"loss of query 1 is inf.*bounded slope"):
        push.loss(labels, scores, group=[2, 2])
    with pytest.raises(ArithmeticError):
        gbmrank.mix(push, "ranknet").gradients(labels, scores, group=[2, 2])
    logarithm = gbmrank.objective("pnorm_push(form=log)")
    grad, hess = logarithm.gradients(labels, scores, group=[2, 2])
    assert np.isfinite([*grad, *hess, logarithm.loss(labels, scores, group=[2, 2])]).all()


@pytest.mark.parametrize("text", ["pnorm_push", "rankboost", "mix(rankboost, pnorm_push)"])
def test_overflow_in_a_callback_is_an_error(text):
    labels, scores = np.array([1.0, 0.0]), np.array([-1e3, 1e3])
    with pytest.raises(NumericError, match="lower the learning rate or choose a loss"):
        gbmrank.objective(text)(labels, scores, None, np.array([2]))


CALLBACK = ["pairwise", "ranknet", "bipartite(threshold=2)", "softmax", "w_listmle", "linear",
            "push(threshold=2)", "pointwise", "pairwise(loss=squared)", "ranksvm",
            "mix(ranknet, softmax)"]  # fmt: skip


@pytest.mark.parametrize("text", CALLBACK)
def test_float32_in_callbacks_is_close_to_float64(text):
    text = str(gbmrank.objective(text))
    scores, ready = scores_for(4.0), bound(text)
    exact, single = ready.gradients(scores), ready.gradients(scores, np.float32, single=True)
    for wide, narrow in zip(exact, single, strict=True):
        assert narrow.dtype == np.float32
        for part in slices():
            size = np.abs(wide[part]).max(initial=1e-30)
            assert np.abs(narrow[part] - wide[part]).max() <= 1e-5 * size


def test_binding_leaves_the_data_alone():
    data = RankingData.from_arrays(labels_for("pairwise"), group=SIZES)
    scores = scores_for()
    scores.flags.writeable = False
    for text in CALLBACK:
        gbmrank.objective(text).bind(data).gradients(scores)
