"""ListMLE: the likelihood of the ranking by labels."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.queries import RankingData
from gbmrank.errors import ParameterError
from gbmrank.kernels.jit import compiler
from gbmrank.kernels.layout import ItemQueries
from gbmrank.losses.utilities import Form
from gbmrank.objectives.base import (
    AbstractBound,
    AbstractObjective,
    BoundSums,
    HessianTrait,
    constant_hessian,
    query_scale,
)
from gbmrank.objectives.step_weights import Weights, check_weights, step_weights, weights_form
from gbmrank.types import is_whole


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ListMLE(AbstractObjective):
    r"""Negative log-likelihood of the order by labels under the Plackett-Luce model.

    With a target order o, best label first, and :math:`L_p = \log \sum_{k \ge p} e^{s_{o_k}}`,

    .. math::
        L = \sum_{p=1}^{n-1} \beta_p (L_p - s_{o_p}).

    Equal labels are ordered at random, depending only on ``seed`` and the number of items, so
    that a query trains the same wherever it is in the data; ``seed=none`` uses the order of
    rows. If all labels are equal, it learns that arbitrary order.

    Parameters
    ----------
    weights : "none", "gain_discount" or tuple of float, default="none"
        Factor of position p: 1, or the gain of the label there divided by ``log2(1 + p)``, with
        options as in ``gain_discount(gain=linear, discount=[1, 0.5], k=10)``, or a table that is
        zero beyond its end.
    seed : int or None, default=0
        Seed of the order of equal labels; ``None`` uses the order of rows.

    References
    ----------
    Xia et al., "Listwise approach to learning to rank", ICML 2008. Weights: Chen, Liu, Lan,
    Ma and Li, "Ranking measures and loss functions in learning to rank", NIPS 2009.
    """

    weights: Weights = field(default="none", metadata={"nested": "weights"})
    seed: int | None = 0

    name: ClassVar[str] = "listmle"
    formula: ClassVar[str] = "sum_p beta_p (LSE(s from p on) - s_p), items sorted by label"
    cost: ClassVar[str] = "O(n)"
    reference: ClassVar[str] = "Xia et al. 2008; weights: Chen et al. 2009"
    shift_invariant: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super(ListMLE, self).__post_init__()
        check_weights(self.name, self.weights)
        if self.seed is not None and (not is_whole(self.seed) or self.seed < 0):
            raise ParameterError(
                f"listmle: seed must be a whole number of at least 0 or none, got {self.seed!r}"
            )
        if self.hessian == "expected":
            raise ParameterError("listmle: hessian is exact, majorise or constant")

    @property
    def label_form(self) -> Form:
        """That of the gain among the weights, if there is one."""
        return weights_form(self.weights)

    @property
    def hessian_trait(self) -> HessianTrait:
        """What the returned Hessian is."""
        traits: dict[str, HessianTrait] = {"majorise": "bound", "constant": "constant"}
        return traits.get(self.hessian, "exact")

    def bind(self, data: RankingData) -> AbstractBound:
        """Sort each query by label."""
        order = _target_order(data, self.seed)
        sizes, offsets = data.groups.sizes, data.groups.offsets
        position = np.arange(len(order)) - data.groups.spread(offsets[:-1])
        beta = step_weights(self.name, self.weights, data.labels[order], 1 + position)
        beta[offsets[1:] - 1] = 0.0
        scale = query_scale(data, self.normalize)
        queries = ItemQueries(offsets, order, beta, sizes, scale)
        majorise, kernels = self.hessian == "majorise", compiler.load("closed.lists")
        return BoundSums(
            data.groups,
            60.0 * sizes + 20.0,
            lambda span, scores, out: kernels.listmle_gradients(
                queries, span, scores, majorise, out
            ),
            lambda span, scores, out: kernels.listmle_values(queries, span, scores, out),
            constant_hessian(self.hessian, data),
        )


def _target_order(data: RankingData, seed: int | None) -> npt.NDArray[Any]:
    """Return the rows of each query by label, best first, equal labels shuffled."""
    queries = data.groups.spread(np.arange(data.groups.n_queries))
    place = np.arange(len(queries)) - data.groups.spread(data.groups.offsets[:-1])
    if seed is not None:
        sizes = data.groups.sizes
        shuffles = {n: np.random.default_rng([seed, n]).permutation(n) for n in set(sizes.tolist())}
        place = np.concatenate([shuffles[n] for n in sizes.tolist()]) if len(sizes) else place
    return np.lexsort((place, -data.labels, queries))
