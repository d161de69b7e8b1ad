"""Symbolic utilities: whether two give the same order in every expectation.

u and u' do if ``u'(y) = a(n) u(y) + b(y)`` with a > 0 on all label vectors that both support. With
``u = gain(y_i) / total(y)`` (:class:`gbmrank.losses.utilities.Form`) this follows from two facts:

* the gains are affine in each other, with a positive factor, on the common labels. Between
  numbers of an interval the gains are known functions (a line, 2^y, a step, an excess), and
  different ones are affine in each other on no three labels on either side of a bend; on finitely
  many labels all entries are compared, each to the rounding of its own digits;
* the totals are the same up to a factor. Totals of gains that take two values depend on the
  number of larger ones alone: a sum is ``P + c n``, pairs and differences are ``P N``, an ideal
  cut off at 1 is constant. Ideals and sums of other gains are equal for proportional gains, ideals
  with different cut-offs for lists that reach neither.

If u is undefined, all gains are equal, so it has no order. The test is conservative: two forms
may be equivalent without being recognised.
"""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

from gbmrank.losses.utilities import Form

_EPS = 2.0**-52


@final
@dataclass(frozen=True, slots=True)
class Labels:
    """A set of labels: an interval, or finitely many."""

    low: float = -math.inf
    high: float = math.inf
    only: tuple[float, ...] | None = None

    def __and__(self, other: "Labels") -> "Labels":
        low, high = max(self.low, other.low), min(self.high, other.high)
        if self.only is None and other.only is None:
            return Labels(low, high)
        listed = self.only if self.only is not None else other.only
        return Labels.of(y for y in listed or () if y in self and y in other)

    def __contains__(self, label: float) -> bool:
        return self.low <= label <= self.high and (self.only is None or label in self.only)

    @property
    def several(self) -> bool:
        """Whether there are two different ones."""
        return self.low < self.high and (self.only is None or len(self.only) > 1)

    @staticmethod
    def of(values: Iterable[float]) -> "Labels":
        """Return these labels alone."""
        listed = tuple(sorted(set(map(float, values))))
        return Labels(*((listed[0], listed[-1]) if listed else (0.0, 0.0)), listed)

    def __str__(self) -> str:
        if self.only is not None:
            return "labels " + ", ".join(f"{y:g}" for y in self.only)
        if math.isinf(self.low):
            return "any labels" if math.isinf(self.high) else f"labels up to {self.high:g}"
        if math.isinf(self.high):
            return f"labels of at least {self.low:g}"
        return f"labels between {self.low:g} and {self.high:g}"


BINARY = Labels.of((0.0, 1.0))
SIGNS = Labels.of((-1.0, 1.0))


@final
@dataclass(frozen=True, slots=True)
class Alike:
    """Whether two utilities give the same order on some labels."""

    holds: bool | None  #: proven or not; None if one is a function without a symbolic form
    up_to: int | None = None  #: longest list for which it is proven, if not for all


def legal(form: Form) -> tuple[Labels, ...]:
    """Return the sets of labels that a utility supports; data must be from one of them."""
    if form.gain == "table":
        return (Labels.of(range(len(form.at))),)
    if form.gain == "step" and form.at is None:
        return BINARY, SIGNS
    return (Labels(form.low, form.high),)


def bounded(form: Form, labels: Labels, most: float = math.inf) -> Labels:
    """Return a superset of the labels whose utility is between 0 and a bound.

    The total of a query is ignored, so with a total the bound does not restrict the labels.
    """
    if form.signed:
        return Labels.of(())
    if form.over != "one" or form.gain in ("ranks", "own"):
        return labels
    if labels.only is not None:
        return Labels.of(y for y in labels.only if 0.0 <= _gain(form, y) <= most * (1 + 1e-12))
    low, high = labels.low, labels.high
    if form.gain == "linear":
        return labels & Labels(0.0, most)
    if form.gain == "exp2":
        high = min(high, math.log2(1.0 + most))
    if form.gain == "excess":
        high = min(high, form.at + most)
    return Labels(low, high)


def common(first: Iterable[Labels], second: Iterable[Labels]) -> tuple[Labels, ...]:
    """Return the sets of two or more labels that both support."""
    there = tuple(second)
    both = (one & two for one in first for two in there)
    return tuple(dict.fromkeys(each for each in both if each.several))


def shares(form: Form) -> Form:
    """Return utilities divided by their sum: the total cancels, and ranks have the same sum."""
    return form if form.gain == "ranks" else replace(form, over="sum", discount=None, k=None)


def is_constant(form: Form, labels: Labels) -> bool:
    """Whether all items of every query have the same utility."""
    return _curve(form, labels).kind == "constant"


def weighs_relevance(form: Form) -> bool:
    """Whether relevant items have a larger utility, by a function of P and n, for 0/1 labels."""
    curve = _curve(form, BINARY)
    return curve.kind == "values" and curve.at[1] > curve.at[0]


def alike(first: Form, second: Form, labels: Labels) -> Alike:
    """Return whether two utilities give the same order of expectations, on these labels."""
    one, two = _curve(first, labels), _curve(second, labels)
    if two.kind == "constant" or (first == second and first.gain == "own"):
        return Alike(True)
    if "own" in (one.kind, two.kind):
        return Alike(None)
    related = _related(one, two)
    if related is None:
        return Alike(False)
    total, its = _total(first, one), _total(second, two)
    if total == its and (related == "proportional" or total[0] not in ("gains", "ideal of gains")):
        return Alike(True)
    ideals = total[0] == its[0] and total[0].startswith("ideal") and total[:-1] == its[:-1]
    if ideals and (related == "proportional" or total[0] == "ideal"):
        cuts = [k for k in (total[-1], its[-1]) if k is not None]
        return Alike(False, min(cuts) if min(cuts) > 1 else None)
    return Alike(False)


def probes(forms: Iterable[Form], labels: Labels) -> tuple[float, ...]:
    """Return labels that distinguish gains: around bends and steps, and beyond."""
    if labels.only is not None:
        few = labels.only
        return few if len(few) <= 6 else (*few[:3], *few[-3:])
    bends = [float(f.at) for f in forms if f.gain in ("step", "excess") and f.at is not None]
    at = sorted({*bends, *(y for y in (labels.low, labels.high) if math.isfinite(y))}) or [0.0]
    around = {y + d for y in at for d in (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)}
    between = {0.5 * (a + b) for a, b in itertools.pairwise(at)}
    usual = {0.0, 1.0, 2.0} if len(at) < 2 else set()
    return tuple(sorted(y for y in around | between | usual if y in labels))[:14]


class _Curve(NamedTuple):
    """A gain on some labels: its entries, or what it is between the ends of an interval."""

    kind: str  # "constant", "values", "affine", "exp2", "step", "excess", "ranks" or "own"
    at: Any = None  # the entries, the offset of a line, the label of a step or a bend


def _gain(form: Form, label: float) -> float:
    if form.gain == "table":
        return float(form.at[int(label)])
    if form.gain == "step":
        return float(label >= (1.0 if form.at is None else form.at))
    if form.gain == "excess":
        return max(label - float(form.at), 0.0)
    if form.gain == "exp2":
        whole = label == math.floor(label)
        return 2.0**label - 1.0 if whole else math.expm1(label * math.log(2.0))
    return float(label)


def _curve(form: Form, labels: Labels) -> _Curve:
    if not labels.several:
        return _Curve("constant")
    if form.gain == "own":
        return _Curve("own")
    if labels.only is None:
        return _curve_between(form, labels.low, labels.high)
    if form.gain == "ranks" and len(labels.only) > 2:
        return _Curve("ranks")
    entries = tuple(_gain(form, y) for y in labels.only)
    return _Curve("constant") if len(set(entries)) == 1 else _Curve("values", entries)


def _curve_between(form: Form, low: float, high: float) -> _Curve:
    if form.gain == "linear":
        return _Curve("affine", 0.0)
    if form.gain == "excess" and form.at <= low:
        return _Curve("affine", -float(form.at))
    if form.gain not in ("excess", "step"):
        return _Curve(form.gain)
    bends = form.at < high if form.gain == "excess" else low < form.at <= high
    return _Curve(form.gain, form.at) if bends else _Curve("constant")


def _related(one: _Curve, two: _Curve) -> str | None:
    """Return how the second gain is related to the first by a positive factor, if it is."""
    if one.kind != two.kind or one.kind == "constant":
        return None
    if one.kind == "values":
        return _related_entries(one.at, two.at)
    return "proportional" if one.at == two.at else "affine" if one.kind == "affine" else None


def _related_entries(one: tuple[float, ...], two: tuple[float, ...]) -> str | None:
    low, high = one.index(min(one)), one.index(max(one))
    factor = (two[high] - two[low]) / (one[high] - one[low])
    if not 0.0 < factor < math.inf:
        return None

    def near(gap: float, *sizes: float) -> bool:
        return abs(gap) <= 8.0 * _EPS * sum(map(abs, sizes))

    for x, y in zip(one, two, strict=True):
        gap = (y - two[low]) - factor * (x - one[low])
        if not near(gap, y, two[low], factor * x, factor * one[low]):
            return None
    origin = near(two[low] - factor * one[low], two[low], factor * one[low])
    return "proportional" if origin else "affine"


def _total(form: Form, curve: _Curve) -> tuple[Any, ...]:
    """Return what identifies the total: equal ones are equal up to a factor of n."""
    entries = (0.0, 1.0) if curve.kind == "step" else curve.at if curve.kind == "values" else ()
    if form.over == "one" or form.gain == "ranks":
        return ("one",)
    if len(set(entries)) != 2:
        kinds = {"sum": ("gains",), "ideal": ("ideal of gains", form.discount, form.k)}
        return kinds.get(form.over, (form.over,))
    if form.over in ("pairs", "differences"):
        return ("pairs",)
    if form.over == "ideal" and form.k == 1:
        return ("one",)
    ratio = min(entries) / max(entries)
    return ("sum", ratio) if form.over == "sum" else ("ideal", form.discount, ratio, form.k)
