"""What every part of the page looks at: the results, their analysis, and an order of systems."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from gbmrank.experiments.report.markup import Html, breakable, color, el
from gbmrank.experiments.results import Results, Run, System
from gbmrank.experiments.statistics import Analysis, Comparison, MeasureAnalysis, Paired, paired

__all__ = ["View", "system_name"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Results and analysis, with what several sections derive from them.

    Parameters
    ----------
    results : Results
        What was measured.
    analysis : Analysis
        Its statistics.
    data : Paired
        Values of the target measure per query.
    """

    results: Results
    analysis: Analysis
    data: Paired

    @classmethod
    def of(cls, results: Results, analysis: Analysis) -> "View":
        """Return the view of results."""
        return cls(results, analysis, paired(results, results.measures[0].name))

    @property
    def target(self) -> MeasureAnalysis:
        """Statistics of the target measure."""
        return self.analysis.measures[0]

    @property
    def order(self) -> tuple[System, ...]:
        """Systems, best mean of the target first; those without values last."""
        sign = -1.0 if self.target.measure.higher_is_better else 1.0
        means = {
            each.system: sign * each.mean
            for each in self.target.summaries
            if not math.isnan(each.mean)
        }
        return tuple(sorted(self.results.systems, key=lambda each: means.get(each, math.inf)))

    @property
    def challenger(self) -> Comparison | None:
        """The best system that is not the baseline, if there is one."""
        compared = (self.target.comparison(system) for system in self.order)
        return next((each for each in compared if each is not None), None)

    def rank(self, system: System) -> int:
        """Return the place of a system in the order, from 1."""
        return self.order.index(system) + 1

    def runs(self, system: System) -> Iterator[Run]:
        """Return the finished runs of a system."""
        return (run for run in self.results.runs if run.system == system and run.error is None)

    def color(self, objective: str) -> tuple[str, str | None]:
        """Return class and dashes of an objective: the same in every booster."""
        base = self.results.baseline.objective
        names = list(dict.fromkeys(each.objective for each in self.results.systems))
        others = [name for name in names if name != base]
        return ("cb", None) if objective == base else color(others.index(objective))


def system_name(system: System) -> Html:
    """Return objective and booster, to be told apart at a glance."""
    return el(
        "span",
        el("span", breakable(system.objective), class_="objective"),
        " ",
        el("span", system.backend, class_="booster"),
        class_="system",
    )
