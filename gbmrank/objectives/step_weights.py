"""Weights of the steps of a ranking: gain of a label times discount of a rank, or a table.

Chen et al. write a ranking as a sequence of steps: step p picks the best of the remaining items.
With weights on the steps, the comparison and likelihood losses are bounds of NDCG.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, final

import numpy as np

from gbmrank.errors import ParameterError
from gbmrank.losses.gains import Gain, check_gain, discounts, gains
from gbmrank.losses.utilities import Form, gain_form
from gbmrank.objectives.base import check_choice, gain_weights
from gbmrank.types import FloatArray, IntArray, is_whole


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GainDiscount:
    r"""Gain of the label at a step times the discount of its rank, the weights of DCG.

    .. math:: \beta_p = G(y_{o_p})\, D(p)

    Parameters
    ----------
    gain : {"exp2", "linear"} or tuple of float, default="exp2"
        How labels become gains: :math:`2^y - 1`, y, or a table indexed by labels.
    discount : "log2" or tuple of float, default="log2"
        :math:`1 / \log_2(1 + p)`, or a table for ranks 1, 2, ..., not increasing, zero beyond.
    k : int or None, default=None
        Last rank that counts.
    """

    gain: Gain = "exp2"
    discount: str | tuple[float, ...] = "log2"
    k: int | None = None

    name: ClassVar[str] = "gain_discount"
    formula: ClassVar[str] = "G(y) D(rank)"

    def __post_init__(self) -> None:
        check_gain(self.gain)
        if isinstance(self.discount, str):
            check_choice(self.name, "discount", self.discount, ("log2",))
        else:
            _check_table(f"{self.name}: discount", self.discount)
            if np.any(np.diff(self.discount) > 0):
                raise ParameterError(
                    f"{self.name}: discounts do not increase with the rank, got {self.discount}"
                )
        if self.k is not None and (not is_whole(self.k) or self.k < 1):
            raise ParameterError(
                f"{self.name}: k is a whole number of at least 1 or none, got {self.k!r}"
            )

    def values(self, owner: str, labels: FloatArray, ranks: IntArray) -> FloatArray:
        """Return the weight of each label at its rank, from 1."""
        gained = gain_weights(owner, labels) if self.gain == "exp2" else gains(labels, self.gain)
        last = int(ranks.max(initial=0))
        if isinstance(self.discount, str):
            return np.asarray(gained * discounts(last, self.k)[ranks - 1], np.float64)
        kept = self.discount if self.k is None else self.discount[: self.k]
        return np.asarray(gained * _looked_up(kept, ranks), np.float64)


Weights: TypeAlias = str | tuple[float, ...] | GainDiscount
"""``none``, ``gain_discount``, with options or without, or a table: beta of step 1, 2, ..."""

BUILTIN_WEIGHTS: tuple[type[GainDiscount], ...] = (GainDiscount,)


def check_weights(owner: str, weights: Weights) -> None:
    """Raise ParameterError unless weights are a known name, GainDiscount or a table."""
    if isinstance(weights, str):
        check_choice(owner, "weights", weights, ("none", "gain_discount"))
    elif isinstance(weights, tuple):
        _check_table(f"{owner}: weights", weights)


def step_weights(owner: str, weights: Weights, labels: FloatArray, ranks: IntArray) -> FloatArray:
    """Return the weight of each label at its rank, from 1; zero beyond the end of a table."""
    if isinstance(weights, tuple):
        return _looked_up(weights, ranks)
    if weights == "none":
        return np.ones(len(labels))
    made = GainDiscount() if isinstance(weights, str) else weights
    return made.values(owner, labels, ranks)


def _check_table(what: str, table: tuple[float, ...]) -> None:
    values = np.asarray(table, dtype=np.float64)
    if not len(values) or not np.all(np.isfinite(values) & (values >= 0)) or not values.any():
        raise ParameterError(
            f"{what} given as a table are finite numbers for ranks 1, 2, ..., not negative and not "
            f"all zero; got {list(table)}"
        )


def _looked_up(table: tuple[float, ...], ranks: IntArray) -> FloatArray:
    padded = np.append(np.asarray(table, dtype=np.float64), 0.0)
    return np.asarray(padded[np.minimum(ranks - 1, len(table))], np.float64)


def weights_form(weights: Any) -> Form:
    """Return the gain of ``weights=`` in symbols; anything without a gain takes any label."""
    chosen = GainDiscount() if weights == GainDiscount.name else weights
    return gain_form(chosen.gain) if isinstance(chosen, GainDiscount) else Form("linear")
