"""Base classes of losses: scalar penalties that objectives sum over items or pairs.

A loss is defined by plain functions ``(z, *params) -> (value, first, second)`` of floats.
Objectives compile them; they can also be called from Python.

:func:`loss_class` makes a loss of one such function of the margin: its further arguments, which
need defaults, are the parameters. The traits that the theory uses (convexity, slope, smoothness)
are measured numerically for the given parameters.
"""

import functools
import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, make_dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from gbmrank.errors import GbmrankWarning, ParameterError, PluginContractError, waiting_for
from gbmrank.numerics import expit, logit
from gbmrank.types import FloatArray

ScalarFunction: TypeAlias = Callable[..., tuple[float, float, float]]
"""``(z, *params) -> (value, first derivative, second derivative)``, compilable."""
LeastWeights: TypeAlias = tuple[float | None, float | None]
PROVEN: tuple[str, ...] = (
    "proper",  # items: l1' < l-1', and l-1' / (l-1' - l1') rises continuously from 0 to 1
    "differentiable",
    "convex",  # this and the rest are about the loss of pairs
    "decreasing",  # nowhere rising
    "bounded_below",
    "bounded_curvature",
    "parabola",
)
"""What a loss may declare in its ``proven``."""
_HALVINGS = 42
_PROBES: FloatArray = np.concatenate([np.linspace(-8.0, 8.0, 321), [-30.0, 30.0]])


@dataclass(frozen=True, slots=True)
class AbstractParametric(ABC):
    """Base of named functions whose parameters are numbers, declared as dataclass fields."""

    name: ClassVar[str]
    formula: ClassVar[str] = ""

    @property
    def params(self) -> tuple[float, ...]:
        """Parameters as the compiled functions receive them."""
        return tuple(float(getattr(self, field.name)) for field in fields(self))


@dataclass(frozen=True, slots=True)
class AbstractLoss(AbstractParametric):
    """A penalty for scoring useful items too low or useless items too high.

    The dataclass fields are its parameters; they are passed to the compiled functions as
    floats, in the order of declaration. ``partials`` are the losses of a useful and of a
    useless item; ``kappa`` is the loss of a pair. Either may be missing.
    """

    reference: ClassVar[str] = ""
    convex: ClassVar[bool] = True
    differentiable: ClassVar[bool] = True
    smooth: ClassVar[bool] = True  # twice differentiable: the linear-time engine may serve it
    exact_curvature: ClassVar[bool] = True  # the second derivative is positive where it matters
    curvature_trait: ClassVar[str] = "expected"  # what expected_curvature is; or "heuristic"
    pair_form: ClassVar[str] = "margin"  # "difference" compares utilities too; "none": items only
    closed_form: ClassVar[str | None] = None  # name of the kernels that sum it faster
    link_rate: ClassVar[float | None] = None  # a where the inverse link is sigmoid(a v)
    expected_of: ClassVar[Any] = None  # expected_curvature: a function, or one number
    weight_of: ClassVar[Any] = None  # w(c, *params), on arrays, of a proper loss
    proven: ClassVar[tuple[str, ...]] = ()
    """Properties that are proven for every margin and all parameters: see ``PROVEN``. A verdict
    of "calibrated" relies on these; properties that are only measured make it "conditional". The
    conformance tests search for margins that contradict them."""

    def __init_subclass__(cls) -> None:
        base, claimed = AbstractLoss, set(cls.proven)
        other = (cls.expected_curvature, cls.expected_of) != (base.expected_curvature, None)
        bounded = cls.pair_form == "none" and cls.majorant is not base.majorant
        wrong = {
            "exact_curvature=False needs a curvature to use instead, expected_curvature": (
                not (cls.exact_curvature or other or bounded)
            ),
            "curvature_trait='heuristic' needs the expected_curvature that it describes": (
                cls.curvature_trait == "heuristic" and not other
            ),
            "smooth=True contradicts differentiable=False": cls.smooth and not cls.differentiable,
            "what proven claims contradicts convex=False or differentiable=False": (
                bool(claimed & {"convex", "parabola"} and not cls.convex)
                or ("differentiable" in claimed and not cls.differentiable)
            ),
            "a parabola is nowhere decreasing for good": {"parabola", "decreasing"} <= claimed,
        }
        for reason in (reason for reason, found in wrong.items() if found):
            raise PluginContractError(f"the loss {getattr(cls, 'name', cls.__name__)}: {reason}")

    @property
    @abstractmethod
    def partials(self) -> tuple[ScalarFunction, ScalarFunction]:
        """Losses of an item that is useful and of one that is not, as functions of its score."""

    @property
    @abstractmethod
    def kappa(self) -> ScalarFunction:
        """Penalty of a pair, as a function of the margin by which the better item leads."""

    @property
    def expected_curvature(self) -> Callable[..., float] | None:
        """Second derivative of the conditional risk at the model's own probability, or None."""
        given = type(self).expected_of
        return always(given) if isinstance(given, float) else given

    @property
    def constant_curvature(self) -> float | None:
        """The expected curvature if it is the same for every margin, or None."""
        given = type(self).expected_of
        return given if isinstance(given, float) else None

    @property
    def majorant(self) -> float | None:
        """Upper bound of the second derivatives of both partials, or None."""
        return None

    @property
    def rate(self) -> float | None:
        """Rate a of the inverse link ``sigmoid(a v)`` for these parameters, or None."""
        return self.link_rate

    @property
    def least_weights(self) -> LeastWeights:
        """Infimum of w(c) for items and for pairs (phi(d), phi(-d)), where a formula gives it."""
        return None, None

    def inverse_link(self, scores: FloatArray) -> FloatArray:
        """Return the probability that a score stands for."""
        return expit(self._linked() * scores)

    def link(self, probabilities: FloatArray) -> FloatArray:
        """Return the score that stands for a probability."""
        return logit(probabilities) / self._linked()

    def _linked(self) -> float:
        if self.rate is None:
            raise ParameterError(f"the loss {self.name} has no link: scores are not probabilities")
        return self.rate

    def weight_function(self, probabilities: FloatArray) -> FloatArray:
        """Return w(c), the weight that the loss puts on the cost ratio c."""
        if type(self).weight_of is None:
            raise ParameterError(f"the loss {self.name} has no weight function")
        weights: FloatArray = type(self).weight_of(probabilities, *self.params)
        return weights


@functools.cache
def always(curvature: float) -> Callable[..., float]:
    """Return a function of a margin and parameters that is constant."""

    def constant(z: float, *params: float) -> float:  # noqa: ARG001
        return curvature

    return constant


@dataclass(frozen=True, slots=True)
class AbstractMarginLoss(AbstractLoss):
    """A loss that depends only on the margin by which the better item leads.

    ``phi`` is a plain function ``(z, *params) -> (value, first, second)``.
    """

    phi: ClassVar[Any]

    @property
    def partials(self) -> tuple[ScalarFunction, ScalarFunction]:
        """The loss of the score, and of its negative."""
        phi = type(self).phi
        return phi, mirrored(phi)

    @property
    def kappa(self) -> ScalarFunction:
        """The loss itself."""
        return type(self).phi


@functools.cache
def mirrored(phi: ScalarFunction) -> ScalarFunction:
    """Return ``v -> phi(-v)`` with its derivatives."""

    def mirror(v: float, *params: float) -> tuple[float, float, float]:
        value, first, second = phi(-v, *params)
        return value, -first, second

    return mirror


@functools.cache
def pair_penalty(positive: ScalarFunction, negative: ScalarFunction) -> ScalarFunction:
    """Return ``d -> (positive(d) + negative(-d)) / 2`` with its derivatives."""

    def penalty(d: float, *params: float) -> tuple[float, float, float]:
        value_1, first_1, second_1 = positive(d, *params)
        value_2, first_2, second_2 = negative(-d, *params)
        return 0.5 * (value_1 + value_2), 0.5 * (first_1 - first_2), 0.5 * (second_1 + second_2)

    return penalty


@functools.cache
def with_curvature(phi: ScalarFunction, curvature: Callable[..., float]) -> ScalarFunction:
    """Return ``phi`` with another function in place of its second derivative."""

    def curved(z: float, *params: float) -> tuple[float, float, float]:
        value, first, _ = phi(z, *params)
        return value, first, curvature(z, *params)

    curved.__name__ = getattr(phi, "__name__", "curved")
    return curved


def positive_number(owner: str, name: str, value: float) -> None:
    """Raise ParameterError unless a parameter is a finite number above zero."""
    if not (np.isfinite(value) and value > 0):
        raise ParameterError(f"{owner}: {name} must be a finite number above 0, got {value}")


@dataclass(frozen=True, slots=True)
class AbstractFunctionLoss(AbstractMarginLoss):
    """A margin loss made from a function; pickled by that function and its parameters."""

    function: ClassVar[Any]
    defaults: ClassVar[tuple[float, ...]]

    def __post_init__(self) -> None:
        try:
            _traits(type(self).function, self.params, self.name)
        except PluginContractError as error:
            raise ParameterError(f"{error}, for {self}") from error
        slope = float(type(self).function(0.0, *self.params)[1])
        if slope > 0:
            warnings.warn(
                f"the loss {self} grows with the margin (its slope at 0 is {slope:g}), so models "
                "learn the reverse order. A loss should decrease as the better item gets ahead; "
                "check the sign of the margin and of the derivative",
                GbmrankWarning,
                stacklevel=3,
            )

    @property
    def expected_curvature(self) -> Callable[..., float] | None:
        """The constant 1, as a scale, if the second derivative cannot be used."""
        return None if self.exact_curvature else always(1.0)

    @property
    def constant_curvature(self) -> float | None:
        """The same constant."""
        return None if self.exact_curvature else 1.0

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self).function, type(self).name, self.params)


def loss_class(function: ScalarFunction, name: str | None = None) -> type[AbstractMarginLoss]:
    """Return the loss class of a function ``(z, *params) -> (value, first, second)``.

    Every parameter needs a default. Raises PluginContractError if the signature, or the values at
    a few margins, are not those of a loss.
    """
    return _made(function, name or function.__name__)


class _Traits(NamedTuple):
    convex: bool
    differentiable: bool
    smooth: bool
    exact_curvature: bool


class _Measured:
    """A trait measured at the parameters of a loss; on the class, at the defaults."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, loss: "AbstractFunctionLoss | None", cls: Any) -> bool:
        params = cls.defaults if loss is None else loss.params
        return bool(getattr(_traits(cls.function, params, cls.name), self.name))


@functools.cache
def _made(function: ScalarFunction, label: str) -> type[AbstractMarginLoss]:
    parameters = _parameters(function, label)
    defaults = tuple(parameters.values())
    _traits(function, defaults, label)
    traits: dict[str, Any] = {
        "name": label,
        "formula": (inspect.getdoc(function) or label).splitlines()[0].rstrip("."),
        "reference": f"{function.__module__}.{function.__qualname__}",
        **{name: _Measured(name) for name in _Traits._fields},
        "curvature_trait": "heuristic",
        "defaults": defaults,
        "function": staticmethod(function),
        "phi": staticmethod(function),
        "__doc__": inspect.getdoc(function),
        "__repr__": _show,
    }
    made = make_dataclass(
        label,
        [(key, float, value) for key, value in parameters.items()],
        bases=(AbstractFunctionLoss,),
        namespace=traits,
        frozen=True,
        slots=True,
    )
    made.__module__ = function.__module__  # newer versions of Python name the caller's
    return made


@functools.lru_cache(maxsize=1024)
def _traits(function: ScalarFunction, params: tuple[float, ...], label: str) -> _Traits:
    _, slopes, bends = _probe(function, params, label).T
    rising = np.diff(slopes[:-2])
    scale = max(float(np.abs(slopes).max()), 1e-12)
    convex = bool(np.all(rising >= -1e-9 * scale) and np.all(bends >= -1e-9 * scale))
    near = (
        min(scale, 1.0) + np.abs(slopes[:-3]) + np.abs(slopes[1:-2])
    )  # it may grow fast elsewhere
    kink = any(_jump(function, params, at, slopes) > 1e-6 * near[at] for at in range(len(rising)))
    jump = bool(np.any(np.abs(np.diff(bends[:-2])) > 0.5 * max(float(np.abs(bends).max()), 1e-12)))
    return _Traits(convex, not kink, not (kink or jump), convex and bool(bends[160] > 0))


def _jump(
    function: ScalarFunction, params: tuple[float, ...], at: int, slopes: FloatArray
) -> float:
    """Return the rise of the slope over a shrinking interval: it stays positive at a kink."""
    low, high = float(_PROBES[at]), float(_PROBES[at + 1])
    below, above = float(slopes[at]), float(slopes[at + 1])
    for _ in range(_HALVINGS):
        if below == above:
            break
        middle = 0.5 * (low + high)
        slope = float(function(middle, *params)[1])
        if abs(slope - below) >= abs(above - slope):
            high, above = middle, slope
        else:
            low, below = middle, slope
    return abs(above - below)


def _restored(function: ScalarFunction, name: str, params: tuple[float, ...]) -> AbstractMarginLoss:
    return loss_class(function, name)(*params)


def _show(self: AbstractFunctionLoss) -> str:
    names = inspect.signature(type(self).function).parameters
    pairs = zip(list(names)[1:], self.params, strict=True)
    return f"{self.name}({', '.join(f'{key}={value}' for key, value in pairs)})"


def _parameters(function: Callable[..., Any], label: str) -> dict[str, float]:
    arguments = list(inspect.signature(function).parameters.values())
    plain = all(one.kind is one.POSITIONAL_OR_KEYWORD for one in arguments)
    if not arguments or not plain or any(one.default is one.empty for one in arguments[1:]):
        raise PluginContractError(
            f"the loss {label!r} must be a function of the margin and of parameters with defaults, "
            f"such as f(z, alpha=0.5); got {label}{inspect.signature(function)}"
        )
    try:
        return {one.name: float(one.default) for one in arguments[1:]}
    except (TypeError, ValueError, OverflowError) as error:
        raise PluginContractError(
            f"the loss {label!r}: the defaults of its parameters must be numbers; "
            f"got {label}{inspect.signature(function)}"
        ) from error


def _probe(function: ScalarFunction, params: tuple[float, ...], label: str) -> FloatArray:
    try:
        with waiting_for(f"the loss {label!r}"):
            rows = np.array([function(float(z), *params) for z in _PROBES], dtype=np.float64)
    except Exception as error:
        raise PluginContractError(f"the loss {label!r} fails at some margin: {error!r}") from error
    if rows.shape != (len(_PROBES), 3):
        raise PluginContractError(
            f"the loss {label!r} must return (value, first derivative, second derivative)"
        )
    if not np.isfinite(rows).all():
        at = _PROBES[int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])]
        raise PluginContractError(f"the loss {label!r} is not finite at the margin {at:g}")
    return rows
