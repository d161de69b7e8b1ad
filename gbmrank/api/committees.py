"""What rankers minimise: an objective, one of the booster's own, or a committee of these."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

from gbmrank.api.objectives import COMMITTEE, Objective, names_committee, objective
from gbmrank.boosters.plan import PREFIX, Native
from gbmrank.errors import ParameterError
from gbmrank.registry.spec import Spec, Value, format_value, parse
from gbmrank.types import is_whole


@final
@dataclass(frozen=True, slots=True)
class Committee:
    """Objectives whose models are averaged; ``committee(yetirank, query_rmse, seeds=2)`` as text.

    Parameters
    ----------
    members : tuple of Objective or Native, default=()
        Objectives of the models; by default four that suit the metric.
    weights : tuple of float or None, default=None
        Weight of each member in the mean; equal by default.
    seeds : int, default=1
        Number of models per member, trained with different seeds.

    Examples
    --------
    >>> str(Committee((objective("yetirank"), Native("lambdarank")), seeds=2)).count("native:")
    1
    """

    members: tuple[Objective | Native, ...] = ()
    weights: tuple[float, ...] | None = None
    seeds: int = 1

    name: ClassVar[str] = COMMITTEE

    def __post_init__(self) -> None:
        if not is_whole(self.seeds) or self.seeds < 1:
            raise ParameterError(
                f"committee: seeds must be a whole number of at least 1, got {self.seeds!r}"
            )
        bad = [one for one in self.weights or () if not _is_above_zero(one)]
        if self.weights == () or bad:
            raise ParameterError(
                f"committee: weights must be numbers above 0, one for each member; got "
                f"{format_value(tuple(self.weights or ()))}"
            )
        if self.members and self.weights and len(self.weights) != len(self.members):
            raise ParameterError(
                f"committee: {len(self.members)} members, but {len(self.weights)} weights"
            )

    def __str__(self) -> str:
        given: dict[str, Value] = {"weights": self.weights, "seeds": self.seeds}
        usual = {"weights": None, "seeds": 1}
        params = tuple((key, each) for key, each in given.items() if each != usual[key])
        args = (one.spec if isinstance(one, Objective) else str(one) for one in self.members)
        return str(Spec(self.name, params, args=tuple(args)))

    @classmethod
    def from_text(cls, text: str) -> "Committee":
        """Parse ``committee(member, ..., weights=[...], seeds=...)``."""
        spec = parse(text)
        given: dict[str, Any] = dict(spec.params)
        unknown = [*(["@"] if spec.k is not None else []), *(given.keys() - {"weights", "seeds"})]
        if unknown:
            raise ParameterError(
                f"committee has no parameter {unknown[0]!r}; it takes objectives, weights= and "
                "seeds=. Write the parameters of a member in its own brackets"
            )
        if isinstance(given.get("weights", ()), int | float | str):
            raise ParameterError(f"committee: weights must be a list, got {given['weights']!r}")
        members = tuple(ranking_objective(format_value(each)) for each in spec.args)
        nested = next((one for one in members if isinstance(one, Committee)), None)
        if nested is not None:
            raise ParameterError(f"committee: {nested} cannot be a member; list its members")
        return cls(members, **given)  # type: ignore[arg-type]


def _is_above_zero(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 < value < math.inf


def ranking_objective(given: Any) -> Objective | Native | Committee:
    """Parse an objective: text or an object, ``native:NAME``, or a committee of these."""
    if isinstance(given, Objective | Native | Committee):
        return given
    if names_committee(given):
        return Committee.from_text(given)
    if isinstance(given, str) and given.strip().startswith(PREFIX):
        return Native(given.strip().removeprefix(PREFIX))
    return objective(given)


def objectives_in(target: Objective | Native | Committee) -> tuple[Objective, ...]:
    """Return gbmrank's objectives in a target; native ones are left out."""
    if isinstance(target, Committee):
        return tuple(one for one in target.members if isinstance(one, Objective))
    return (target,) if isinstance(target, Objective) else ()
