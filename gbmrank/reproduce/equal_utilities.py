"""Theorem 3.3 of Calauzenes et al.: what expected utilities do not tell about ERR and AP.

Labels are (1, 1, 0, 0) or (0, 0, 1, 1) with equal chances. All items are equally useful in
expectation, so an order-preserving loss accepts every order, but ERR and AP do not.
"""

import numpy as np

from gbmrank import theory
from gbmrank.reproduce.study import Table

__all__ = ["findings", "tables"]

_ORDERS = {"0, 1, 2, 3": (4.0, 3.0, 2.0, 1.0), "0, 2, 1, 3": (4.0, 2.0, 3.0, 1.0)}
_PRINTED = {"err(max_grade=1)": (1 / 24, 1 / 48), "map": (-1 / 12, -1 / 24)}
"""The change from the first order to the second: as printed, and as it is."""
_WRONG_FOR = {"err(max_grade=1)": "0, 1, 2, 3", "map": "0, 2, 1, 3"}
_PRESERVING = "pairwise(loss=logistic, target=precision)"
_TILT = 1e-4


def _values() -> dict[str, dict[str, float]]:
    """Return ERR and AP of two orders that expected utilities do not tell apart."""
    labels = theory.Distribution([[1, 1, 0, 0], [0, 0, 1, 1]], [0.5, 0.5])
    return {
        measure: {name: labels.value(measure, scores) for name, scores in _ORDERS.items()}
        for measure in ("err(max_grade=1)", "map")
    }


def _tilted(order: str, measure: str, text: str) -> float:
    """Return the regret of a minimiser that a little more relevance turns to an order."""
    first, second, third, _ = (int(item) for item in order.split(", "))
    single = np.eye(4)
    extra = [single[first], single[first], single[first], single[second], single[second]]
    labels = [[1, 1, 0, 0], [0, 0, 1, 1], *extra, single[third]]
    chances = [0.5, 0.5, *[_TILT] * 6]
    tilted = theory.Distribution(labels, chances)
    return tilted.regret(measure, tilted.minimiser(text).scores)


def tables() -> list[Table]:
    """Return both orders, and what minimisers lose when little decides."""
    first, second = _ORDERS
    rows = []
    for measure, values in _values().items():
        printed, corrected = _PRINTED[measure]
        gain = values[second] - values[first]
        numbers = (values[first], values[second], gain, corrected, printed)
        rows.append([measure, *(f"{number:.7f}" for number in numbers)])
    columns = ["measure", f"order {first}", f"order {second}", "difference"]
    columns += ["difference, corrected", "difference, printed"]
    title = "Theorem 3.3: labels (1, 1, 0, 0) or (0, 0, 1, 1), equal expected utilities"
    tilted = [
        [measure, order, f"{_tilted(order, measure, _PRESERVING):.6f}"]
        for measure, order in _WRONG_FOR.items()
    ]
    return [
        Table(title, columns, rows),
        Table(
            f"The same with a chance of about {6 * _TILT:g} of one relevant item that decides: "
            f"the minimiser of {_PRESERVING}",
            ["measure", "order of the minimiser", "regret"],
            tilted,
        ),
    ]


def findings() -> list[str]:
    """Say what the two measures lose."""
    values = _values()
    first, second = _ORDERS
    gains = {measure: found[second] - found[first] for measure, found in values.items()}
    exact = all(abs(gains[m] - _PRINTED[m][1]) < 1e-12 for m in gains)
    err, precision = (_tilted(_WRONG_FOR[m], m, _PRESERVING) for m in _WRONG_FOR)
    return [
        (
            "Thm 3.3: from order 0, 1, 2, 3 to 0, 2, 1, 3 ERR changes by "
            f"{gains['err(max_grade=1)']:+.6f} and AP by {gains['map']:+.6f}, "
            f"{'exactly' if exact else 'not'} +1/48 and -1/24; the printed 1/24 and 1/12 are sums "
            "over the two label vectors, not means. No order is best for both, and expected "
            "utilities are equal."
        ),
        (
            "Thm 3.3: tilted by little, the minimiser of an order-preserving loss has an ERR "
            f"regret of {err:.5f} or an AP regret of {precision:.5f}, while its surrogate regret "
            "is zero."
        ),
    ]
