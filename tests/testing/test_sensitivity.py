"""Wrong losses, objectives and metrics are caught, each by the check that is meant for it."""

import itertools
import json
import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from gbmrank.cli import main
from gbmrank.extend import (
    AbstractBound,
    AbstractBoundMetric,
    AbstractMarginLoss,
    AbstractMetric,
    AbstractObjective,
)
from gbmrank.testing import (
    ConformanceError,
    check_loss,
    check_metric,
    check_objective,
    list_checks,
    parametrize_checks,
    run_checks,
)

# --- losses ------------------------------------------------------------------------------------


def right(z):
    """log(1 + exp(-z))"""
    e = np.exp(-abs(z))
    p = (e if z > 0.0 else 1.0) / (1.0 + e)
    return max(-z, 0.0) + np.log1p(e), -p, e / ((1.0 + e) * (1.0 + e))


def wrong_sign(z):
    value, first, second = right(z)
    return value, -first, second


def wrong_bend(z):
    value, first, second = right(z)
    return value, first, 2.0 * second


def wrong_tail(z):
    value, first, second = right(z)
    return value, (1.1 if z > 13.0 else 1.0) * first, second


def wrong_tail_beside_steep_slopes(z):
    value = np.exp(-min(z, 700.0) if z > -700.0 else 700.0)
    return value, -(1.1 if z > 4.0 else 1.0) * value, value


def wrong_bend_in_the_tail(z):
    value, first, second = right(z)
    return value, first, (0.9 if z < -9.0 else 1.0) * second


def wrong_bend_beside_steep_slopes(z):
    value = np.exp(-min(z, 700.0) if z > -700.0 else 700.0)
    return value, -value, (0.9 if z > 4.0 else 1.0) * value


def wrong_way(z):
    value, first, second = right(-z)
    return value, -first, second


def overflows(z):
    return np.float64(1.0) + z * z * z * z * 1e300, -1.0 + 4e300 * z * z * z, 12e300 * z * z


def sigmoid_of_margin(z):
    p = 1.0 / (1.0 + np.exp(min(z, 700.0)))
    return p, -p * (1.0 - p), p * (1.0 - p) * (1.0 - 2.0 * p)


@dataclass(frozen=True, slots=True)
class ClaimsConvex(AbstractMarginLoss):
    name: ClassVar[str] = "claims_convex"
    phi = staticmethod(sigmoid_of_margin)


def hinge(z):
    return max(1.0 - z, 0.0), (-1.0 if z < 1.0 else 0.0), 0.0


@dataclass(frozen=True, slots=True)
class ClaimsSmooth(AbstractMarginLoss):
    name: ClassVar[str] = "claims_smooth"
    phi = staticmethod(hinge)


@dataclass(frozen=True, slots=True)
class ClaimsMajorant(AbstractMarginLoss):
    name: ClassVar[str] = "claims_majorant"
    phi = staticmethod(right)

    @property
    def majorant(self):
        return 0.2


@dataclass(frozen=True, slots=True)
class WrongLink(AbstractMarginLoss):
    name: ClassVar[str] = "wrong_link"
    phi = staticmethod(right)

    def link(self, probabilities):
        return 2.0 * np.log(probabilities / (1.0 - probabilities))

    def inverse_link(self, scores):
        return 1.0 / (1.0 + np.exp(-0.5 * scores))


def run_alone(loss, check):
    """Run one check of a loss: the others would compile kernels of every wrong one."""
    (case,) = (
        parameter.values[0]
        for parameter in parametrize_checks(loss, kind="loss").args[1]
        if parameter.id == f"{loss.__name__}-{check}"
    )
    case()


def failed(subject):
    return run_checks(subject).failed


@pytest.mark.parametrize(
    ("loss", "check"),
    [
        (wrong_sign, "first_derivative"),
        (wrong_bend, "second_derivative"),
        (wrong_tail, "first_derivative"),
        (wrong_tail_beside_steep_slopes, "first_derivative"),
        (wrong_bend_in_the_tail, "second_derivative"),
        (wrong_bend_beside_steep_slopes, "second_derivative"),
        (wrong_way, "direction"),
        (ClaimsConvex, "convexity"),
        (ClaimsSmooth, "smoothness"),
        (ClaimsMajorant, "majorant"),
        (WrongLink, "link"),
    ],
)
def test_wrong_losses(loss, check):
    with pytest.raises(ConformanceError, match=rf"{check} +FAILED"):
        run_alone(loss, check)


def test_overflow_is_caught():
    with pytest.raises(Exception, match=r"extremes +FAILED|not finite"):
        run_alone(overflows, "extremes")


# --- objectives --------------------------------------------------------------------------------


class _Squares(AbstractBound):
    """Half the squared distance of centred labels and scores: right, and spoilt on request."""

    __slots__ = ("data", "how", "labels")

    def __init__(self, objective, data):
        super().__init__(data.groups)
        self.data, self.how, self.labels = data, objective.how, data.labels.copy()

    def parts(self, scores):
        weight = self.data.query_weight()
        for q, (a, b) in enumerate(itertools.pairwise(self.groups.offsets.tolist())):
            s, y = scores[a:b], self.labels[a:b]
            if self.how == "ties":
                s = s + 1e-3 * np.argsort(np.argsort(-s, kind="stable"), kind="stable")
            residual = (s - s.mean()) - (y - y.mean())
            factor = 1.0 if weight is None or self.how == "weight" else weight[q]
            if self.how == "leak":
                factor *= 1.0 + 0.1 * np.abs(scores).max()
            yield slice(a, b), q, residual, factor

    def fill(self, scores, out, *, single):
        for rows, _, residual, factor in self.parts(scores):
            n = len(residual)
            out.grad[rows] = factor * residual
            out.hess[rows] = factor * (1.0 - 1.0 / n)
            if self.how == "hessian":
                out.hess[rows] *= 1.5
            if self.how == "nan":
                out.grad[rows.start] = np.nan
            if self.how == "skips":
                out.grad[rows.start] = out.grad[rows.start] if n > 1 else np.nan
        if self.how == "sign":
            out.grad[:] = -out.grad
        if self.how == "mutates":
            scores += 1.0
        if self.how == "random":
            out.grad[:] += 1e-6 * np.random.default_rng().normal(size=len(scores))
        if self.how == "noise":
            out.grad[:] = np.random.default_rng().normal(size=len(scores))
        if self.how == "float32":
            out.grad[:] = out.grad * (1.1 if out.grad.dtype == np.float32 else 1.0)

    def losses(self, scores):
        values = np.zeros(self.groups.n_queries)
        for _, q, residual, factor in self.parts(scores):
            values[q] = 0.5 * factor * (residual @ residual)
        if self.how == "extreme" and np.abs(scores).max() > 1e3:
            values[:] = np.inf
        return values[:, None] if self.how == "shape" else values


@dataclass(frozen=True, slots=True, kw_only=True)
class Squares(AbstractObjective):
    how: str = "right"
    hidden: object = None
    name: ClassVar[str] = "squares"
    shift_invariant: ClassVar[bool] = True
    hessian_trait: ClassVar[str] = "exact"  # type: ignore[assignment]

    def bind(self, data):
        return _Squares(self, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifty(AbstractObjective):
    name: ClassVar[str] = "shifty"
    shift_invariant: ClassVar[bool] = True
    hessian_trait: ClassVar[str] = "exact"  # type: ignore[assignment]

    def bind(self, data):
        return _Shifty(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overclaims(Squares):
    """Says that it takes weights of items and estimates of relevance, and does not."""

    item_weights: ClassVar[bool] = True
    linear_in_utility: ClassVar[bool] = True


class _Shifty(AbstractBound):
    __slots__ = ("labels",)

    def __init__(self, data):
        super().__init__(data.groups)
        self.labels = data.labels

    def fill(self, scores, out, *, single):
        out.grad[:] = scores - self.labels
        out.hess[:] = 1.0

    def losses(self, scores):
        return np.add.reduceat(0.5 * (scores - self.labels) ** 2, self.groups.offsets[:-1])


def test_the_right_one_passes_all_but_what_needs_a_registration():
    assert failed(Squares) == ("spec",)


@pytest.mark.parametrize(
    ("how", "check"),
    [
        ("sign", "gradient"),
        ("sign", "lightgbm"),
        ("sign", "xgboost"),
        ("hessian", "hessian"),
        ("weight", "weights"),
        ("leak", "query_independence"),
        ("ties", "ties"),
        ("mutates", "inputs"),
        ("random", "determinism"),
        ("nan", "shapes"),
        ("shape", "shapes"),
        ("skips", "singletons"),
        ("float32", "single_precision"),
        ("extreme", "extremes"),
    ],
)
def test_wrong_objectives(how, check):
    assert check in failed(Squares(how=how))


def test_a_random_gradient_is_told_apart_from_a_wrong_hessian():
    results = {one.check: one for one in run_checks(Squares(how="noise")).results}
    assert results["hessian"].outcome == "failed"
    assert "the gradient has no derivative at most scores" in results["hessian"].message


def test_a_wrong_trait_is_caught():
    assert "shift_invariance" in failed(Shifty)
    assert "singletons" in failed(Shifty)
    assert {"weights", "clicks"} <= set(failed(Overclaims))


def test_what_cannot_be_pickled_is_caught():
    assert "pickling" in failed(Squares(hidden=lambda: 0))


def test_a_false_claim_of_calibration_is_caught():
    from gbmrank.objectives import Comparison

    class Claims(Comparison):  # type: ignore[misc]
        name: ClassVar[str] = "claims"
        calibrated_for: ClassVar[tuple[str, ...]] = ("dcg",)

    assert "calibration" in failed(Claims)


# --- metrics -----------------------------------------------------------------------------------


class _BoundShare(AbstractBoundMetric):
    """Share of the largest label that the first item has: right, and spoilt on request."""

    __slots__ = ("calls", "how", "labels")

    def __init__(self, metric, data):
        super().__init__(metric, data)
        self.how, self.labels = metric.how, data.labels

    def per_query(self, ranked):
        values = []
        for a, b in itertools.pairwise(self.groups.offsets.tolist()):
            y, s = self.labels[a:b], ranked.scores[a:b]
            top = s == s.max()
            best = float(y.max())
            share = float(y[top].mean()) if self.how != "index" else float(y[np.argmax(s)])
            values.append(share / best if best > 0 else np.nan)
        found = np.array(values)
        if self.how == "direction":
            found = -found
        if self.how == "leak":
            found = found + 0.1 * ranked.scores.max()
        if self.how == "mutates":
            ranked.scores[:] = 0.0
        if self.how == "random":
            found = found + 1e-9 * np.random.default_rng().random(len(found))
        if self.how == "infinite":
            found = np.nan_to_num(found, nan=np.inf)
        return found[:1] if self.how == "shape" else found

    def score(self, ranked):
        if self.how == "weight":
            return float(np.nanmean(self.per_query(ranked)))
        return super().score(ranked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share(AbstractMetric):
    how: str = "right"
    name: ClassVar[str] = "share"

    def bind(self, data):
        return _BoundShare(self, data)


def test_the_right_metric_passes_all_but_what_needs_a_registration():
    assert failed(Share) == ("spec",)


@pytest.mark.parametrize(
    ("how", "check"),
    [
        ("direction", "best_order"),
        ("index", "ties"),
        ("leak", "query_independence"),
        ("leak", "monotone"),
        ("mutates", "inputs"),
        ("random", "determinism"),
        ("shape", "shapes"),
        ("infinite", "equal_labels"),
    ],
)
def test_wrong_metrics(how, check):
    assert check in failed(Share(how=how))


# --- the kit itself ----------------------------------------------------------------------------


def test_the_report_can_be_read():
    with pytest.raises(ConformanceError) as caught:
        check_loss(wrong_sign)
    text = str(caught.value)
    assert isinstance(caught.value, AssertionError)
    assert "checks failed" in text.splitlines()[0]
    assert "the first derivative of kappa at -6.03 is 0.99760" in text
    assert "differences give -0.99760" in text
    assert "(required: it is the derivative of the value)" in text


def test_expected_failures_are_strict():
    with pytest.raises(ConformanceError, match="passes, but is expected to fail: why not"):
        check_objective("ranknet", expected_failures={"weights": "why not"})
    reason = {"permutation": "drawn by row", "ties": "drawn by row"}
    report = check_objective("listmle", expected_failures=reason)
    assert {one.check for one in report.results if one.outcome == "expected"} == set(reason)
    with pytest.raises(ValueError, match="there is no check 'wieghts' of a metric"):
        check_metric("ndcg", expected_failures={"wieghts": ""})


def test_a_text_with_two_meanings_needs_its_kind():
    with pytest.raises(ConformanceError, match="is a loss and an objective; give kind='loss'"):
        run_checks("p_classification")
    with pytest.raises(ConformanceError, match="there is no loss, objective or metric 'nothing'"):
        run_checks("nothing")


def test_every_check_says_what_it_asks_for():
    for kind in ("loss", "objective", "metric"):
        names = list_checks(kind)
        assert len(names) >= 14
        assert all(names.values())


@parametrize_checks("listmle", expected_failures={"permutation": "by row", "ties": "by row"})
def test_parametrized(check):
    check()


def test_the_kit_from_the_command_line(capsys):
    assert main(["check", "ndcg@5", "--kit"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("metric ndcg@5: ok\n")
    assert re.search(r"ties +ok", out)
    assert main(["check", "listmle", "--kit", "--json"]) == 2
    shown = json.loads(capsys.readouterr().out)
    outcomes = {row["check"]: row["outcome"] for row in shown["results"]}
    assert shown["schema"] == "gbmrank.kit/1"
    assert (outcomes["ties"], outcomes["weights"]) == ("failed", "passed")
    assert main(["check", "p_classification", "--kit"]) == 2
    assert "give kind='loss'" in capsys.readouterr().err
