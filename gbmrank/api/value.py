"""Frozen values: equal by content, printed by their spec, copied as themselves."""

from typing import Any, ClassVar, Generic, TypeVar

from gbmrank.composition import spec_of
from gbmrank.spec import Spec

__all__ = ["AbstractValue"]

P = TypeVar("P")


class AbstractValue(Generic[P]):
    """One composed part with the behaviour of a value.

    Copies, deep copies included, are the object itself: LightGBM deep-copies its
    parameters and scikit-learn clones its estimators, and what was bound to their data
    sets must stay found.
    """

    __slots__ = ("__weakref__", "_part")
    _part: P
    kind: ClassVar[str]

    def __init__(self, part: P) -> None:
        object.__setattr__(self, "_part", part)

    @property
    def spec(self) -> Spec:
        """Canonical spec; its text makes an equal object."""
        return spec_of(self._part)

    @property
    def __name__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return str(self.spec)

    def __repr__(self) -> str:
        return f"gbmrank.{self.kind}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._part == other._part

    def __hash__(self) -> int:
        return hash((type(self), self._part))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"this {self.kind} is frozen; make another with gbmrank.{self.kind}(...)"
        )

    def __copy__(self) -> "AbstractValue[P]":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "AbstractValue[P]":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._part,)
