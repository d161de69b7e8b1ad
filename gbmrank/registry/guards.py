"""Wrap and validate objectives and metrics of plugins, so that errors name the plugin.

Built-in objectives and metrics are not wrapped. Those of plugins get copies of the scores, so
that they cannot modify a booster's arrays. Their exceptions are raised as
:class:`~gbmrank.errors.PluginError` with the original exception as cause, and their return
values are validated.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, final

import numpy as np

from gbmrank.data.queries import RankingData
from gbmrank.errors import GbmrankError, PluginContractError, PluginError, PluginNumericError
from gbmrank.kernels.layout import GradHess
from gbmrank.metrics import AbstractBoundMetric, AbstractMetric, Ranked
from gbmrank.objectives import AbstractBound, AbstractObjective
from gbmrank.registry.catalogue import METRICS, OBJECTIVES, Registry
from gbmrank.types import FloatArray


def is_ours(cls: type) -> bool:
    """Whether a class is part of gbmrank."""
    return cls.__module__.split(".", 1)[0] == "gbmrank"


@contextlib.contextmanager
def naming(registry: Registry[Any], cls: type, what: str) -> Iterator[None]:
    """Convert exceptions of a plugin's class into a PluginError that names its distribution."""
    try:
        yield
    except GbmrankError:
        raise
    except (Exception, SystemExit) as error:
        if is_ours(cls):
            raise
        raise PluginError(f"{_of(registry, cls)} {what}: {error!r}") from error


def bind_objective(objective: AbstractObjective, data: RankingData) -> AbstractBound:
    """Bind an objective to data; a plugin's objective is wrapped."""
    bound = _bind(OBJECTIVES, objective, data, AbstractBound)
    return bound if is_ours(type(objective)) else _PluginBound(type(objective), bound, data)


def bind_metric(metric: AbstractMetric, data: RankingData) -> AbstractBoundMetric:
    """Bind a metric to data; a plugin's metric is wrapped."""
    bound = _bind(METRICS, metric, data, AbstractBoundMetric)
    return bound if is_ours(type(bound)) else _PluginMetric(metric, bound, data)


def _bind(registry: Registry[Any], part: Any, data: RankingData, base: type) -> Any:
    with naming(registry, type(part), "cannot be bound to data"):
        bound = part.bind(data)
    if not isinstance(bound, base):
        raise PluginContractError(
            f"{_of(registry, type(part))}: bind must return a subclass of {base.__name__}, "
            f"got {bound!r}"
        )
    return bound


@final
class _PluginBound(AbstractBound):
    __slots__ = ("bound", "cls")

    def __init__(self, cls: type, bound: AbstractBound, data: RankingData) -> None:
        super().__init__(data.groups)
        self.cls, self.bound = cls, bound

    def fill(self, scores: FloatArray, out: GradHess, *, single: bool) -> None:
        """Let the plugin write into arrays that are initialised with NaN."""
        out.grad[:] = np.nan
        out.hess[:] = np.nan
        with naming(OBJECTIVES, self.cls, "failed to compute gradients"):
            self.bound.fill(scores.copy(), out, single=single)
        if np.isnan(out.grad).any() or np.isnan(out.hess).any():
            row = int(np.argmax(np.isnan(out.grad) | np.isnan(out.hess)))
            raise PluginNumericError(
                f"{_of(OBJECTIVES, self.cls)} returned gradient {out.grad[row]} and Hessian "
                f"{out.hess[row]} in query {self.groups.query_of(row)!r} (rows that it did not "
                "write are NaN)"
            )

    def losses(self, scores: FloatArray) -> FloatArray:
        """Return the losses of the plugin, one per query."""
        with naming(OBJECTIVES, self.cls, "failed to compute losses"):
            values = self.bound.losses(scores.copy())
        losses = _per_query(OBJECTIVES, self.cls, "losses", values, self.groups.n_queries)
        bad = np.flatnonzero(~np.isfinite(losses))
        if len(bad):
            row = int(self.groups.offsets[bad[0]])
            raise PluginNumericError(
                f"{_of(OBJECTIVES, self.cls)} returned the loss {losses[bad[0]]} in query "
                f"{self.groups.query_of(row)!r}"
            )
        return losses


@final
class _PluginMetric(AbstractBoundMetric):
    __slots__ = ("bound", "cls")

    def __init__(
        self, metric: AbstractMetric, bound: AbstractBoundMetric, data: RankingData
    ) -> None:
        super().__init__(metric, data)
        self.cls, self.bound = type(metric), bound

    @property
    def depth(self) -> int | None:
        """Last rank that the plugin's metric uses."""
        return self.bound.depth

    def per_query(self, ranked: Ranked) -> FloatArray:
        """Return the values of the plugin, one per query."""
        with naming(METRICS, self.cls, "failed to compute values"):
            values = self.bound.per_query(Ranked(ranked.scores.copy(), ranked.groups))
        return _per_query(METRICS, self.cls, "per_query", values, self.groups.n_queries)


def _of(registry: Registry[Any], cls: type) -> str:
    name = getattr(cls, "name", cls.__name__)
    return f"the {registry.kind} {name!r} of {registry.origin_of(cls)}"


def _per_query(
    registry: Registry[Any], cls: type, method: str, values: Any, n_queries: int
) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty((0, 0))
    if array.shape != (n_queries,):
        shape = getattr(values, "shape", type(values).__name__)
        raise PluginContractError(
            f"{_of(registry, cls)}: {method} must return one number per query, shape "
            f"({n_queries},); got {shape}"
        )
    return array
