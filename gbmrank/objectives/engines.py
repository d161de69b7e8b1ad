"""Which curvature and which engine sums the pairs of an objective."""

import functools
import math
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

from gbmrank.errors import LimitError, ParameterError
from gbmrank.kernels import compiler
from gbmrank.kernels.layout import Engines
from gbmrank.kernels.linear_plan import LinearPlan, PlanReport, Tail, make_plan
from gbmrank.losses import BUILTIN_LOSSES, AbstractLoss
from gbmrank.losses.base import ScalarFunction, with_curvature
from gbmrank.objectives.base import HessianTrait, check_choice
from gbmrank.types import IntArray

__all__ = [
    "ENGINES",
    "Curvature",
    "PairEngine",
    "check_engine",
    "linear_accuracy",
    "pair_curvature",
    "pair_engine",
]

ENGINES = ("auto", "pairs", "closed", "sorted", "linear")
ACCURACY = 1e-10
_NEVER = 2**62
_PATIENCE = 60.0  # seconds a round for one query
_SORTED = ("hinge", "squared_hinge")
_KINDS = {"all_pairs": "pairs", "level_pairs": "levels", "push": "push"}
_CLOSED_FORMS = {
    "exponential": "exponential_sums",
    "p_classification": "exponential_sums",
    "squared_margin": "square_sums",
    "hinge": "hinge_sums",
    "squared_hinge": "hinge_sums",
}
_NO_PLAN = LinearPlan(1.0, 0.0, Tail(0, 0.0, 0.0), Tail(0, 0.0, 0.0))


class Curvature(NamedTuple):
    """How second derivatives enter: the loss with its bend, a factor, and what that is."""

    phi: ScalarFunction
    bend: float
    factor: float
    trait: HessianTrait


class PairEngine(NamedTuple):
    """Compiled kernels and the choice among them."""

    kernels: ModuleType
    training_kernels: ModuleType  # with float32 lanes where the loss has them
    engines: Engines
    linear_kernels: Any  # the linear-time engine, or None where no query needs it
    long_kernels: Any  # kernels that hand long queries to it, or None
    report: PlanReport | None
    exact_up_to: int  # items up to which calls outside of training visit every pair

    def choose(self, single: bool) -> tuple[tuple[ModuleType, ...], Engines]:
        """Return kernels, each for what those before it leave, and their settings for one call.

        Parameters
        ----------
        single : bool
            Training: float32 lanes and interpolation where they are safe and faster.
            Otherwise queries of moderate length are summed exactly.
        """
        if single:
            same = self.training_kernels is self.kernels
            return (() if same else (self.training_kernels,)) + (self.kernels,), self.engines
        linear_from = max(self.engines.linear_from, self.exact_up_to)
        return (self.kernels,), self.engines._replace(linear_from=linear_from)


def pair_curvature(owner: str, loss: AbstractLoss, hessian: str) -> Curvature:
    """Resolve ``hessian=`` for the pairs of a loss."""
    exact = Curvature(loss.kappa, math.nan, 1.0, "exact")
    if hessian == "constant":
        return exact._replace(trait="constant")
    if hessian == "majorise":
        if not (loss.convex and loss.exact_curvature):
            raise ParameterError(
                f"{owner}: hessian=majorise needs a convex loss with curvature, and {loss.name} is "
                "not one; use hessian=auto"
            )
        return exact._replace(factor=2.0, trait="bound")
    expected = loss.expected_curvature
    wanted = hessian == "expected" or (hessian == "auto" and not loss.exact_curvature)
    if expected is None or not wanted:
        return exact
    constant = loss.constant_curvature
    trait: HessianTrait = "heuristic" if loss.curvature_trait == "heuristic" else "expected"
    bend = math.inf if constant is None else constant
    return Curvature(with_curvature(loss.kappa, expected), bend, 1.0, trait)


def pair_engine(
    template: str,
    loss: AbstractLoss,
    curvature: Curvature,
    engine: str,
    sizes: IntArray,
    **more: Callable[..., Any],
) -> PairEngine:
    """Load the kernels of a pair template and decide which queries take which way.

    Parameters
    ----------
    template : {"all_pairs", "level_pairs", "push"}
        The kernel template.
    loss : AbstractLoss
        Penalty of a pair.
    curvature : Curvature
        From :func:`pair_curvature`.
    engine : str
        One of ``ENGINES``.
    sizes : array of shape (n_queries,)
        Items per query; the linear-time engine is only compiled for long ones.
    **more : callable
        Further slots of the template.
    """
    kind = _KINDS[template]
    fast = loss.closed_form == "logistic"
    linear_from = _linear_from(kind, loss, curvature, engine)
    soonest = {"auto": 350 if loss.closed_form in _SORTED else 1, "closed": 1, "sorted": 1}
    closed_from = soonest.get(engine, _NEVER)
    longest = int(sizes.max(initial=0))
    report = _linear_report(loss, curvature) if longest >= linear_from else None
    served = report is not None and report.plan is not None
    linear = compiler.load("linear_time", phi=curvature.phi) if served else None
    if linear is not None and compiler.is_plain(linear):
        linear, served = None, False  # vector code has no form in plain Python
    engines = Engines(
        closed_from=closed_from,
        linear_from=linear_from if served else _NEVER,
        linear_range=(0.0 if engine == "linear" else 30.0 if fast else 8.0),
        bend=curvature.bend,
        plan=report.plan if report is not None and report.plan is not None else _NO_PLAN,
    )
    closed = longest >= closed_from
    ways = ({}, {}) if kind == "push" else _shortcuts(kind, loss, curvature, closed)
    exact, training = (
        compiler.load(template, phi=curvature.phi, **more, **shortcuts) for shortcuts in ways
    )
    long = (
        None
        if linear is None
        else compiler.load(f"long_{kind}", **more, **_linear_slot(kind, linear))
    )
    if engine == "auto" and not served and (kind == "push" or loss.closed_form is None):
        _check_affordable(loss, longest)
    exact_up_to = 0 if engine == "linear" else 4096 if fast else 1024
    return PairEngine(exact, training, engines, linear, long, report, exact_up_to)


def _linear_from(kind: str, loss: AbstractLoss, curvature: Curvature, engine: str) -> int:
    """Items from which a query is left to the linear-time engine, where the loss allows it."""
    if engine == "auto" and kind != "push" and _has_closed_form(loss, curvature):
        return _NEVER
    short = 400 if loss.closed_form == "logistic" else 250
    return {"auto": short, "linear": 2}.get(engine, _NEVER)


def linear_accuracy(template: str, loss: AbstractLoss, hessian: str, engine: str) -> float | None:
    """Return the largest relative error of the linear-time engine, or None if it never serves.

    The parameters are those of :func:`pair_engine` and :func:`pair_curvature`.
    """
    curvature = pair_curvature(template, loss, hessian)
    if _linear_from(_KINDS[template], loss, curvature, engine) == _NEVER:
        return None
    report = _linear_report(loss, curvature)
    return None if report.plan is None else report.error


def _check_affordable(loss: AbstractLoss, longest: int) -> None:
    """Raise LimitError when visiting every pair of the longest query takes minutes a round."""
    seconds = 1.5e-9 * longest**2
    if seconds > _PATIENCE:
        most = int(math.sqrt(_PATIENCE / 1.5e-9))
        raise LimitError(
            f"the loss {loss.name} has no fast sum, and visiting every pair of a query of "
            f"{longest:,} items takes about {seconds:,.0f} s a round; the cap is {most:,} items. "
            "Cut the query, use a smooth loss such as logistic, or insist with engine=pairs"
        )


def check_engine(owner: str, loss: AbstractLoss, hessian: str, engine: str) -> None:
    """Raise ParameterError unless an engine can sum the pairs of a loss."""
    check_choice(owner, "engine", engine, ENGINES)
    closed = _CLOSED_FORMS.keys() - set(_SORTED)
    allowed = {"closed": closed, "sorted": set(_SORTED)}.get(engine)
    if allowed is not None and loss.closed_form not in allowed:
        raise ParameterError(
            f"{owner}: engine={engine} is for {_names(allowed)}; for {loss.name} use engine=auto"
        )
    if engine == "linear":
        report = _linear_report(loss, pair_curvature(owner, loss, hessian))
        if report.plan is None:
            raise ParameterError(
                f"{owner}: engine=linear cannot serve {loss.name}: {report.reason}"
            )


def _names(closed_forms: set[str]) -> str:
    return ", ".join(sorted(cls.name for cls in BUILTIN_LOSSES if cls.closed_form in closed_forms))


def _has_closed_form(loss: AbstractLoss, curvature: Curvature) -> bool:
    """Whether a sum that visits no pair serves every query, but for the widest ones."""
    summed = loss.closed_form in _CLOSED_FORMS and loss.closed_form not in _SORTED
    return summed and (math.isnan(curvature.bend) or loss.closed_form == "squared_margin")


@functools.lru_cache(maxsize=256)
def _plan(phi: ScalarFunction, params: tuple[float, ...]) -> PlanReport:
    return make_plan(phi, params, ACCURACY)


def _linear_report(loss: AbstractLoss, curvature: Curvature) -> PlanReport:
    if not loss.smooth:
        return PlanReport(None, math.inf, "the loss is not twice differentiable; use engine=auto")
    return _plan(curvature.phi, loss.params)


def _shortcuts(
    kind: str, loss: AbstractLoss, curvature: Curvature, closed: bool
) -> Iterator[dict[str, Callable[..., Any]]]:
    """Functions that replace visiting pairs one by one, where this loss has them.

    Two choices: in double precision, and in single precision where that is faster.
    """
    from gbmrank.kernels import declined, logistic

    module = _CLOSED_FORMS.get(loss.closed_form or "") if closed else None
    summed = (
        getattr(declined, f"no_closed_{kind}")
        if module is None
        else getattr(compiler.load(module), f"{loss.closed_form}_{kind}")
    )
    fast = loss.closed_form == "logistic" and math.isnan(curvature.bend)
    for precision in ("dense", "single"):
        every = getattr(logistic, f"{precision}_{kind}") if fast else declined.no_dense
        yield {f"closed_{kind}": summed, f"dense_{kind}": every}


def _linear_slot(kind: str, linear: ModuleType) -> dict[str, Callable[..., Any]]:
    """What the linear-time engine is called in the kernels of long queries."""
    if kind == "push":
        return {"linear_fields": linear.cross_fields}
    if kind == "pairs":
        return {"linear_pairs": linear.all_pairs}
    return {"linear_cross": linear.cross_pairs}
