"""What is known about an objective and a metric, as plain frozen data."""

from dataclasses import dataclass
from typing import Any, Literal, final

from gbmrank.theory.conditions import AbstractCondition

__all__ = ["Constant", "Status", "Verdict"]

Status = Literal["calibrated", "conditional", "not calibrated", "unknown"]


@final
@dataclass(frozen=True, slots=True)
class Constant:
    """The constant c of ``R* - R <= c C_phi(2) sqrt(L - L*)``.

    Parameters
    ----------
    text : str
        Its formula.
    factor : float
        Number in front.
    power : float
        Power of the bound of the utilities in it.
    of : {"none", "eta", "largest", "sum"}
        What is bounded: nothing, what the loss takes (eta), the largest expected utility, or
        their sum over a query.
    """

    text: str
    factor: float
    power: float = 0.0
    of: Literal["none", "eta", "largest", "sum"] = "none"

    def value(self, bound: float = 1.0) -> float:
        """Return c for utilities bounded by this number.

        Examples
        --------
        >>> Constant("2 sqrt(max U)", 2.0, 0.5, "largest").value(4.0)
        4.0
        """
        return float(self.factor * bound**self.power)

    def __str__(self) -> str:
        return self.text


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether minimising an objective maximises a metric.

    Parameters
    ----------
    status : {"calibrated", "conditional", "not calibrated", "unknown"}
        On every distribution; on those that meet ``condition``; not on every one, as
        ``counterexample`` shows; or no answer.
    condition : AbstractCondition or None
        What has to hold, as an object with a test.
    constant : Constant or None
        The constant c of the regret bound, where one is known.
    reference : str
        Where it is proven.
    sentence : str
        The answer in plain words.
    counterexample : Counterexample or None
        A distribution on which the minimiser ranks suboptimally.
    """

    status: Status
    condition: AbstractCondition | None
    constant: Constant | None
    reference: str
    sentence: str
    counterexample: Any = None

    def __bool__(self) -> bool:
        """Return whether the objective is calibrated on every distribution."""
        return self.status == "calibrated"

    def __str__(self) -> str:
        return f"{self.status}: {self.sentence} [{self.reference}]"

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data, for JSON."""
        return {
            "status": self.status,
            "condition": None if self.condition is None else str(self.condition),
            "constant": None if self.constant is None else str(self.constant),
            "reference": self.reference,
            "sentence": self.sentence,
            "counterexample": None
            if self.counterexample is None
            else self.counterexample.as_dict(),
        }
