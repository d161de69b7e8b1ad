"""Losses from a weight function and a link: against mpmath, refused, pickled, compared."""

import pickle

import cloudpickle
import mpmath
import numpy as np
import pytest

import gbmrank
from gbmrank import theory
from gbmrank.demo_data import demo_data
from gbmrank.errors import ConfigError, ParameterError, RegistrationError
from gbmrank.losses import AsymmetricA, CanonicalBoosting, Logistic
from gbmrank.registry import LOSSES
from gbmrank.theory.weight_losses import LINKS
from tests.ranking_tasks import run_python

QUICK = {"folds": 2, "rounds": 5, "metrics": "ndcg@3", "backends": ["lightgbm"], "isolate": True}


def log_weight(c):
    return 1.0 / (c * (1.0 - c))


def uneven_weight(c):
    return 1.0 + c**2


def own_sigmoid(v):
    q = 1.0 / (1.0 + np.exp(-v))
    return q, q * (1.0 - q)


def gompertz(v):
    e = np.exp(-v)
    return np.exp(-e), e * np.exp(-e)


# w(c) as functions of c and 1 - c, and q(v), both for mpmath.
WEIGHTS = {
    "log": (log_weight, lambda c, rest: 1 / (c * rest)),
    "boosting": (CanonicalBoosting().weight_function, lambda c, rest: 1 / (2 * (c * rest) ** 1.5)),
    "asymmetric": (AsymmetricA().weight_function, lambda c, rest: 1 / (c * rest**1.5)),
    "uneven": (uneven_weight, lambda c, rest: 1 + c**2),
}
INVERSE_LINKS = {
    "logit": lambda v: 1 / (1 + mpmath.exp(-v)),
    "probit": mpmath.ncdf,
    "cloglog": lambda v: 1 - mpmath.exp(-mpmath.exp(v)),
    "cauchit": lambda v: mpmath.mpf(1) / 2 + mpmath.atan(v) / mpmath.pi,
    "algebraic": lambda v: mpmath.mpf(1) / 2 + v / (2 * mpmath.sqrt(4 + v * v)),
    gompertz: lambda v: mpmath.exp(-mpmath.exp(-v)),
}


def by_quadrature(weight, inverse_link, v, rate):
    """SPEC 5: both partial losses with two derivatives, in many digits."""

    def q(x):
        return inverse_link(rate * x)

    def density(x):
        return weight(q(x), 1 - q(x)) * mpmath.diff(q, x)

    def area(part, swap):
        # The integral of c w(c) from 0 to part, with c = part exp(-t); or of its mirror image.
        def integrand(t):
            c = part * mpmath.exp(-t)
            return c * c * (weight(1 - c, c) if swap else weight(c, 1 - c))

        return mpmath.quad(integrand, [0, 1, 5, 20, mpmath.inf])

    v = mpmath.mpf(v)
    for value, slope in (
        (area(1 - q(v), True), lambda x: -(1 - q(x)) * density(x)),
        (area(q(v), False), lambda x: q(x) * density(x)),
    ):
        yield [float(one) for one in (value, slope(v), mpmath.diff(slope, v))]


@pytest.mark.parametrize(
    ("weight", "link"),
    [
        pytest.param(weight, link, marks=() if (i + j) % 4 == 0 else pytest.mark.nightly)
        for i, weight in enumerate(WEIGHTS)
        for j, link in enumerate(INVERSE_LINKS)
    ],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_partial_losses_are_the_integrals_of_the_weight(weight, link):
    given, exact = WEIGHTS[weight]
    rate = 1.5
    built = theory.loss_from_weight(given, link=link, rate=rate, name="for_quadrature")
    with mpmath.workdps(25):
        for v in (-1.9, -0.4, 0.0, 0.7, 1.6):
            expected = by_quadrature(exact, INVERSE_LINKS[link], v, rate)
            for ours, wanted in zip(built.partials, expected, strict=True):
                # A spline's derivative has fewer digits than its values.
                np.testing.assert_allclose(ours(v)[:2], wanted[:2], rtol=2e-7, atol=1e-12)
                np.testing.assert_allclose(ours(v)[2], wanted[2], rtol=1e-5, atol=1e-6)
            chance = float(INVERSE_LINKS[link](mpmath.mpf(rate * v)))
            assert built.inverse_link(np.array([v]))[0] == pytest.approx(chance, rel=1e-12)
    chances = np.array([1e-4, 0.2, 0.5, 0.7, 0.999])
    np.testing.assert_allclose(built.inverse_link(built.link(chances)), chances, rtol=1e-9)


@pytest.mark.parametrize("link", [*LINKS, gompertz], ids=lambda one: getattr(one, "__name__", one))
def test_beyond_the_table_numbers_stay_finite_and_belong_together(link):
    built = theory.loss_from_weight(log_weight, link=link, name="far_away")
    for partial in built.partials:
        for v in (-1e9, -1e6, -1e3, 1e3, 1e6, 1e9):
            assert np.isfinite(partial(v)).all()
            assert partial(v)[0] >= 0.0
        for v in (-25.0, -7.0, 7.0, 25.0):
            width = 1e-4 * abs(v)
            ahead, behind, (_, slope, bend) = partial(v + width), partial(v - width), partial(v)
            near = pytest.approx(slope, rel=1e-4, abs=1e-12 * max(1.0, ahead[0]) / width)
            assert (ahead[0] - behind[0]) / (2 * width) == near
            assert (ahead[1] - behind[1]) / (2 * width) == pytest.approx(bend, rel=1e-3, abs=1e-9)


def test_a_link_turns_a_weight_into_the_canonical_boosting_loss():
    theirs = CanonicalBoosting()
    built = theory.loss_from_weight(theirs.weight_function, link="algebraic", name="canonical")
    for v in (-2000.0, -50.0, -3.0, 0.0, 0.4, 20.0, 2000.0):
        for ours, known in zip(built.partials, theirs.partials, strict=True):
            np.testing.assert_allclose(ours(v)[:2], known(v)[:2], rtol=1e-6, atol=1e-9)
    assert built.convex
    assert theory.decomposable_rate(built) is None


def test_a_function_as_link_is_the_named_one():
    named = theory.loss_from_weight(uneven_weight, rate=2.0, name="named")
    own = theory.loss_from_weight(uneven_weight, rate=2.0, link=own_sigmoid, name="own")
    for v in (-6.0, -1.0, 0.3, 6.0):
        for one, two in zip(named.partials, own.partials, strict=True):
            np.testing.assert_allclose(one(v), two(v), rtol=1e-6)
    labels, scores = [1, 0, 0, 1], [0.3, 0.2, -0.4, 1.0]
    values = [
        gbmrank.objective("bipartite", loss=loss).loss(labels, scores) for loss in (named, own)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-9)


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("probti", "there is no link 'probti'; did you mean 'probit'"),
        (lambda v: v, "must return two arrays"),
        (lambda v: (0.5, np.ones(v.shape)), "must return arrays of the shape of the scores"),
        (lambda v: (v, np.ones(v.shape)), r"must stay inside \(0, 1\).*q\(v\) is -"),
        (lambda v: (np.clip(v, 0, 1), np.ones(v.shape)), r"must stay inside \(0, 1\)"),
        (lambda v: own_sigmoid(-v), "must increase from 0 to 1"),
        (lambda v: (0.1 + 0.9 * own_sigmoid(v)[0], own_sigmoid(v)[1]), "must increase from 0 to 1"),
        (lambda v: own_sigmoid(v + 2 * np.sin(3 * v) * np.exp(-v * v)), "increase strictly"),
        (lambda v: (own_sigmoid(v)[0], 2 * own_sigmoid(v)[1]), "with q' its derivative"),
        (lambda v: (own_sigmoid(v)[0], -own_sigmoid(v)[1]), "must be a positive number"),
    ],
)
def test_what_is_no_link_is_refused(link, words):
    with pytest.raises(ParameterError, match=words):
        theory.loss_from_weight(log_weight, link=link, name="no_link")


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (lambda c: 1 / c**3, r"c w\(c\) diverges near c = 0.*useless items.*like c\^-3"),
        (lambda c: 1 / c**2, r"diverges near c = 0"),
        (lambda c: 1 / (c**2 * -np.log(c / 2)), r"diverges near c = 0"),
        (lambda c: 1 / (1 - c) ** 2, r"\(1 - c\) w\(c\) diverges near c = 1.*useful items"),
        (lambda c: 1 / (1 - c) ** 30, "diverges near c = 1"),
        (lambda c: np.exp(1 / c), r"finite and positive inside \(0, 1\), got w\(1.49.*\) = inf"),
    ],
)
def test_a_weight_whose_integral_diverges_is_refused(weight, words):
    with pytest.raises(ParameterError, match=words):
        theory.loss_from_weight(weight, name="diverging")


def test_a_weight_whose_integral_barely_converges_is_not():
    # int_0^(1/2) c^(1 - 1.97) dc and int_0^(1/2) dc / (c log(c)^2), and the mirror image.
    steep = theory.loss_from_weight(lambda c: c**-1.97, name="barely")
    assert steep.partials[1](0.0)[0] == pytest.approx(0.5**0.03 / 0.03, rel=1e-6)
    mirrored = theory.loss_from_weight(lambda c: (1 - c) ** -1.97, name="barely")
    assert mirrored.partials[0](0.0)[0] == pytest.approx(0.5**0.03 / 0.03, rel=1e-6)
    # Beyond 2^-49 the order of the logarithm is guessed from its last digits.
    slow = theory.loss_from_weight(lambda c: 1 / (c * np.log(c / 3)) ** 2, name="barely")
    assert slow.partials[1](0.0)[0] == pytest.approx(1 / np.log(6.0), rel=5e-3)


@pytest.mark.parametrize("link", ["logit", "probit", gompertz])
def test_it_pickles_where_its_functions_do(link):
    loss = theory.loss_from_weight(uneven_weight, rate=2.0, link=link, name="pickled")
    made = gbmrank.objective("pointwise", loss=loss, target="precision", eta=1.0)
    again = pickle.loads(pickle.dumps(made))  # noqa: S301  (made here)
    assert again == made
    assert hash(again) == hash(made)
    assert again.loss([1, 0], [0.3, 0.1]) == made.loss([1, 0], [0.3, 0.1])
    assert loss != theory.loss_from_weight(uneven_weight, rate=3.0, link=link, name="pickled")


def test_a_lambda_pickles_with_cloudpickle_alone():
    loss = theory.loss_from_weight(lambda c: 1 + c, name="of_lambda")
    again = cloudpickle.loads(cloudpickle.dumps(loss))
    assert again.partials[0](0.3) == loss.partials[0](0.3)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(loss)


def test_a_pickled_loss_opens_in_another_process(tmp_path):
    loss = theory.loss_from_weight(AsymmetricA().weight_function, link="cloglog", name="travels")
    (tmp_path / "loss.pickle").write_bytes(pickle.dumps(loss))
    told = run_python(
        f"import pickle; loss = pickle.load(open({str(tmp_path / 'loss.pickle')!r}, 'rb')); "
        "print(repr(loss.partials[0](0.25)))"
    )
    assert told == repr(loss.partials[0](0.25))


def test_a_fitted_ranker_with_it_pickles():
    rng = np.random.default_rng(0)
    x, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 2, 60), np.repeat(np.arange(6), 10)
    loss = theory.loss_from_weight(log_weight, name="in_a_ranker")
    made = gbmrank.objective("pointwise", loss=loss, target="precision", eta=1.0)
    model = gbmrank.GBMRanker(objective=made, n_estimators=3, backend="lightgbm")
    model.fit(x, y, qid=qid)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301  (made here)
    np.testing.assert_array_equal(again.predict(x), model.predict(x))


def test_it_is_registered_under_its_name_and_made_again_takes_its_place():
    first = theory.loss_from_weight(log_weight, name="made_twice")
    assert LOSSES.get("made_twice") is type(first)
    assert str(LOSSES.entries["made_twice"][0].origin) == "this process"
    assert theory.loss_from_weight(log_weight, name="made_twice") == first
    second = theory.loss_from_weight(uneven_weight, name="made_twice")
    assert LOSSES.get("made_twice") is type(second)
    with pytest.raises(RegistrationError, match="'logistic' is taken by gbmrank"):
        theory.loss_from_weight(log_weight, name="logistic")
    assert LOSSES.get("logistic") is Logistic


def test_objectives_with_it_are_compared():
    loss = theory.loss_from_weight(log_weight, name="mylog")
    pair = [gbmrank.objective("comparison", loss=one) for one in (loss, "logistic")]
    found = gbmrank.compare(demo_data(40, items=6), objectives=pair, **QUICK)
    assert not found.results.failed
    table = found.results.values("ndcg@3")
    np.testing.assert_allclose(table[0], table[1], atol=0.02)


def test_an_objective_whose_name_means_another_by_now_is_not_compared():
    made = gbmrank.objective(
        "comparison", loss=theory.loss_from_weight(log_weight, name="taken_over")
    )
    theory.loss_from_weight(uneven_weight, name="taken_over")
    with pytest.raises(ConfigError, match=r"taken_over.* now refers to another objective"):
        gbmrank.compare(demo_data(40, items=6), objectives=[made], **QUICK)
