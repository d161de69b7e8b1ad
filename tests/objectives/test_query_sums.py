"""Objectives of one function per query, against the same sums over whole columns."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from gbmrank import PluginContractError, RankingData
from gbmrank.extend import AbstractObjective, bind_queries

SIZES = (3, 1, 2, 4)
LABELS = np.array([1.0, 0, 2, 3, 0, 1, 2, 0, 0, 1])
SCORES = np.array([0.3, -0.5, 0.8, 0.1, 1e3, 1e3, -0.2, 0.6, 0.0, -1.1])
OTHERS = np.array([0.1, 0.4, -0.7, 0.9, 0.2, 0.5, -0.3, 0.8, 1.2, -0.6])
WEIGHT = np.array([0.5, 2.0, 0.0, 3.0])  # the third query overflows and does not count


def weighted_poisson(
    labels: Any, scores: Any, at: Any, grad: Any, hess: Any, power: float
) -> float:
    """Sum of ``at^2 (power e^s - y s)``, the factor being constant; reads what it has added."""
    value = 0.0
    for i in range(len(scores)):
        factor, e = at[i] * at[i], power * np.exp(scores[i])
        grad[i] += factor * (e - labels[i])
        hess[i] += factor * e
        value += hess[i] + (grad[i] - hess[i]) * scores[i]
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen(AbstractObjective):
    normalize: str = "items"
    name: ClassVar[str] = "frozen"
    gradient: ClassVar[Any] = "frozen_weights"
    hessian_trait: ClassVar[Any] = "exact"

    def bind(self, data: RankingData) -> Any:
        return bind_queries(self, data, weighted_poisson, (1.5,))


def test_every_query_is_scaled_and_kept_apart():
    ready = Frozen().bind(RankingData.from_arrays(LABELS, group=SIZES, weight=WEIGHT))
    scale = np.repeat(WEIGHT / np.maximum(np.array(SIZES) - 1, 1), SIZES)
    counts = scale > 0
    e = 1.5 * np.exp(np.where(counts, SCORES, 0.0))
    for found, want in zip(
        ready.gradients(SCORES), (SCORES**2 * (e - LABELS), SCORES**2 * e), strict=True
    ):
        np.testing.assert_allclose(found, np.where(counts, scale * want, 0.0), rtol=1e-14)
    starts = np.cumsum((0, *SIZES))[:-1]
    for at, found in (
        (SCORES, ready.losses(SCORES)),
        (OTHERS, ready.frozen_losses(SCORES, OTHERS)),
    ):
        rows = np.where(counts, scale * at**2 * (e - LABELS * SCORES), 0.0)
        np.testing.assert_allclose(found, np.add.reduceat(rows, starts), rtol=1e-13)


def lengths(labels: Any, scores: Any, at: Any, grad: Any, hess: Any) -> float:
    grad[0] += len(grad)
    hess[0] += len(hess)
    return len(labels) + 10.0 * len(scores) + 100.0 * len(at) + 1e3 * len(grad) + 1e4 * len(hess)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths(AbstractObjective):
    normalize: str = "none"
    name: ClassVar[str] = "lengths"
    gradient: ClassVar[Any] = "frozen_weights"
    hessian_trait: ClassVar[Any] = "exact"

    def bind(self, data: RankingData) -> Any:
        return bind_queries(self, data, lengths, ())


def test_every_array_ends_with_its_query():
    ready = Lengths().bind(RankingData.from_arrays(LABELS, group=SIZES))
    first = np.cumsum((0, *SIZES))[:-1]
    for found in ready.gradients(SCORES):
        assert found[first].tolist() == list(SIZES)
        assert found.sum() == sum(SIZES)
    assert ready.losses(SCORES).tolist() == [11_111.0 * n for n in SIZES]


def spread(labels: Any, scores: Any, grad: Any, hess: Any) -> float:
    """Sum of the squares of ``s - y`` less its mean."""
    n, mean, total = len(scores), 0.0, 0.0
    for i in range(n):
        mean += (scores[i] - labels[i]) / n
    for i in range(n):
        rest = scores[i] - labels[i] - mean
        total += rest * rest
        grad[i] += 2.0 * rest
        hess[i] += 2.0 - 2.0 / n
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread(AbstractObjective):
    normalize: str = "none"
    name: ClassVar[str] = "spread"
    shift_invariant: ClassVar[bool] = True
    hessian_trait: ClassVar[Any] = "exact"

    def bind(self, data: RankingData) -> Any:
        return bind_queries(self, data, spread)


@pytest.mark.parametrize("offset", [2.0**27, -(2.0**40)])
def test_shift_invariant_functions_keep_their_digits_far_from_zero(offset: float):
    ready = Spread().bind(RankingData.from_arrays(LABELS, group=SIZES))
    near = np.round(64.0 * OTHERS) / 64.0  # few bits, so that the shift itself rounds nothing
    for found, want in zip(ready.gradients(near + offset), ready.gradients(near), strict=True):
        np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(ready.losses(near + offset), ready.losses(near))


def test_labels_of_another_length_are_rejected():
    data = RankingData.from_arrays(LABELS, group=SIZES)
    wrong: list[Any] = [LABELS[:-1], np.append(LABELS, 1.0), 1.0]
    for labels in wrong:
        with pytest.raises(PluginContractError, match="labels of lengths must be 10 real numbers"):
            bind_queries(Lengths(), data, lengths, (), labels)
