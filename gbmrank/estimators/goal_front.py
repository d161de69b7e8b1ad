"""What every setting of a dial between goals is worth, with intervals over queries."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple, final

import numpy as np

from gbmrank.data.bootstrap import bootstrap_means
from gbmrank.data.columns import read_number
from gbmrank.data.files import write_whole
from gbmrank.data.position_bias import axes
from gbmrank.errors import ConfigError, ParameterError
from gbmrank.types import FloatArray

_RESAMPLES = 2_000
_CLEAR = 2.0  # standard errors
_RISK = 0.8


class Difference(NamedTuple):
    """A mean over queries with its standard error."""

    mean: float
    error: float

    @classmethod
    def of(cls, values: FloatArray) -> "Difference":
        """Return mean and standard error over the queries that have a value."""
        known = values[~np.isnan(values)]
        if len(known) < 2:
            return cls(float("nan"), float("inf"))
        return cls(float(known.mean()), float(known.std(ddof=1) / np.sqrt(len(known))))

    @property
    def is_clear(self) -> bool:
        """Whether the mean is more than two standard errors above 0."""
        return self.mean > _CLEAR * self.error

    def __str__(self) -> str:
        return f"{self.mean:.4f} +- {_CLEAR * self.error:.4f}"


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the dial, and what is known of it.

    Attributes
    ----------
    at : float
        Where the dial stands: 1 is the first goal alone, 0 the second.
    weights : dict
        Weight of each goal in the score.
    shares : dict
        Of what each goal reaches alone, the share that it keeps on the validation queries.
    met : bool
        Whether the demand is shown to hold.
    text : str
        The answer in words.
    """

    at: float
    weights: dict[str, float]
    shares: dict[str, float]
    met: bool
    text: str

    def __str__(self) -> str:
        return self.text


@final
@dataclass(frozen=True, slots=True, eq=False)
class Front:
    """Values of every goal at every measured setting, on validation queries.

    Attributes
    ----------
    goals : tuple of str
        Names of the goals.
    metrics : tuple of str
        The metric that values each goal.
    at : array of shape (n_settings,)
        The levelled dial; NaN where there is none.
    weights : array of shape (n_settings, n_goals)
        Weight of each goal in the score.
    per_query : array of shape (n_settings, n_goals, n_queries)
        Values; NaN where a metric is undefined.
    served : int
        The setting that differences are taken to.
    """

    goals: tuple[str, ...]
    metrics: tuple[str, ...]
    at: FloatArray
    weights: FloatArray
    per_query: FloatArray
    served: int

    @property
    def values(self) -> FloatArray:
        """Mean value of each goal, shape (n_settings, n_goals)."""
        return np.nanmean(self.per_query, axis=2)

    @property
    def dominated(self) -> Any:
        """Whether another setting is better in one goal and as good in all others."""
        value = self.values
        least = (value[:, None] >= value[None]).all(axis=2)
        more = (value[:, None] > value[None]).any(axis=2)
        return (least & more).any(axis=0)

    def serving(self, at: float) -> "Front":
        """Return the same front with differences to the setting nearest to ``at``."""
        if np.isnan(self.at).any():
            raise ConfigError("this front has no levelled dial, so no setting is at a place of it")
        at = read_number(at, "at", 0.0, 1.0)
        return replace(self, served=int(np.argmin(np.abs(self.at - at))))

    def differences(self, level: float = 0.95, seed: int = 0) -> tuple[FloatArray, FloatArray]:
        """Return differences to the served setting, and half-widths of their intervals.

        The intervals hold for all settings and goals at once: half-widths are standard errors
        times a quantile of the largest deviation over bootstrap draws of queries.
        """
        read_number(level, "level", 0.5, 1.0)
        means, widths = [], []
        rng = np.random.default_rng(seed)
        for goal in range(len(self.goals)):
            values = self.per_query[:, goal]
            values = values[:, ~np.isnan(values).any(axis=0)]
            paired = values - values[self.served]
            mean, error = paired.mean(axis=1), paired.std(axis=1) / np.sqrt(paired.shape[1])
            draws = bootstrap_means(paired, _RESAMPLES, rng) - mean
            moves = error > 0.0
            apart = np.abs(draws[:, moves] / error[moves]).max(axis=1, initial=0.0)
            share = 1.0 - (1.0 - level) / len(self.goals)
            means.append(mean)
            widths.append(error * np.quantile(apart, share))
        return np.stack(means, axis=1), np.stack(widths, axis=1)

    def table(self) -> dict[str, Any]:
        """Return one row per setting as columns: the dial, weights, values, differences."""
        means, widths = self.differences()
        columns: dict[str, Any] = {"at": self.at}
        for number, goal in enumerate(self.goals):
            columns[f"weight of {goal}"] = self.weights[:, number]
            columns[goal] = self.values[:, number]
            columns[f"{goal}: difference"] = means[:, number]
            columns[f"{goal}: +-"] = widths[:, number]
        return columns | {"dominated": self.dominated}

    def __str__(self) -> str:
        means, widths = self.differences()
        value, dominated, dial = self.values, self.dominated, not np.isnan(self.at).any()
        head = "   at" if dial else "  ".join(f"w({goal})"[:8].rjust(8) for goal in self.goals)
        lines = [head + "".join(f"  {goal[:22]:>22}" for goal in self.goals)]
        shown = range(0, len(value), max(1, (len(value) - 1) // 10))
        for row in sorted({*shown, self.served}):
            start = (
                f"{self.at[row]:5.2f}"
                if dial
                else "  ".join(f"{weight:8.2f}" for weight in self.weights[row])
            )
            cells = "".join(
                f"  {value[row, g]:.4f} {means[row, g]:+.4f}+-{widths[row, g]:.4f}"
                for g in range(len(self.goals))
            )
            note = " served" if row == self.served else " dominated" if dominated[row] else ""
            lines.append(start + cells + note)
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Draw the value of the second goal against that of the first, for every setting.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; a new figure when not given.
        """
        ax = axes(ax, height=4.5)
        first, second = self.values[:, 0], self.values[:, 1]
        kept = ~self.dominated
        ax.plot(first[kept], second[kept], "o-", color="#1d3c53", markersize=3, label="settings")
        if not kept.all():
            ax.plot(first[~kept], second[~kept], "x", color="#888888", label="dominated")
        _, widths = self.differences()
        ax.errorbar(
            first,
            second,
            xerr=widths[:, 0],
            yerr=widths[:, 1],
            fmt="none",
            ecolor="#7aa6c2",
            alpha=0.35,
        )
        ax.plot(first[self.served], second[self.served], "D", color="#c98a5b", label="served")
        ax.set_xlabel(f"{self.goals[0]} ({self.metrics[0]})")
        ax.set_ylabel(f"{self.goals[1]} ({self.metrics[1]})")
        ax.legend(frameon=False)
        return ax

    def to_html(self, path: str | Path | None = None) -> str:
        """Return a page with the picture and the table, which loads nothing from elsewhere.

        Parameters
        ----------
        path : str or path, optional
            File to write it to.
        """
        page = importlib.import_module("gbmrank.experiments.report.goals").page(self)
        if path is not None:
            write_whole(Path(path).absolute(), page.encode("utf-8"))
        return str(page)

    def pick(self, at_least: Mapping[str, float], confidence: float) -> Setting:
        """Return the last setting that is shown to keep the demanded shares.

        Settings are tried one after the other, from the first demanded goal alone, and the walk
        ends at the first whose bound fails. Such a sequence needs no correction for its length.
        """
        unknown = [goal for goal in at_least if goal not in self.goals]
        if unknown or not at_least:
            raise ParameterError(
                f"at_least= names goals and shares, such as {{{self.goals[0]!r}: 0.98}}; the goals "
                f"are {', '.join(self.goals)}, got {dict(at_least)!r}"
            )
        for goal, share in at_least.items():
            read_number(share, f"the share of {goal}", 0.0, 1.0)
        read_number(confidence, "confidence", 0.5, 1.0)
        if len(self.goals) != 2:
            raise ConfigError(
                f"pick walks along a dial between two goals, but there are {len(self.goals)}. "
                "Choose a row of front_.table() and give its weights to predict"
            )
        lead = self.goals.index(next(iter(at_least)))
        walk = range(len(self.at) - 1, -1, -1) if lead == 0 else range(len(self.at))
        # A fifth of the risk is kept back: standard errors are estimates too.
        quantile = NormalDist().inv_cdf(1.0 - _RISK * (1.0 - confidence))
        reached, others = walk[0], True
        for setting in walk:
            if self._bound(setting, lead, at_least[self.goals[lead]], quantile) < 0.0:
                break
            reached = setting
        for goal, share in list(at_least.items())[1:]:
            others &= self._bound(reached, self.goals.index(goal), share, quantile) >= 0.0
        return self._told(reached, at_least, confidence, reached != walk[0] or others, others)

    def _alone(self, goal: int) -> int:
        return len(self.at) - 1 if goal == 0 else 0

    def _bound(self, setting: int, goal: int, share: float, quantile: float) -> float:
        """Return the lower end of what is kept beyond the share, corrected for skewness (Hall)."""
        if setting == self._alone(goal):
            return 0.0
        values = self.per_query[:, goal]
        kept = values[setting] - share * values[self._alone(goal)]
        kept = kept[~np.isnan(kept)]
        mean, error = Difference.of(kept)
        apart = kept - kept.mean()
        skew = np.mean(apart**3) / max(np.mean(apart**2) ** 1.5, 1e-300)
        quantile -= skew * (2.0 * quantile**2 + 1.0) / (6.0 * np.sqrt(len(kept)))
        return float(mean - quantile * error)

    def _told(
        self,
        setting: int,
        at_least: Mapping[str, float],
        confidence: float,
        moved: bool,
        others: bool,
    ) -> Setting:
        value = self.values
        shares = {
            goal: float(value[setting, at] / value[self._alone(at), at])
            for at, goal in enumerate(self.goals)
        }
        lead = next(iter(at_least))
        number = self.goals.index(lead)
        other = 1 - number
        gap = (
            self.per_query[self._alone(number), number] - self.per_query[self._alone(other), number]
        )
        demand = " and ".join(f"{share:.0%} of {goal}" for goal, share in at_least.items())
        kept = ", ".join(f"{share:.1%} of {goal}" for goal, share in shares.items())
        weights = dict(zip(self.goals, self.weights[setting].tolist(), strict=True))
        where = f"at={self.at[setting]:.2f}"
        if np.isnan(self.at[setting]):
            where = "weights={" + ", ".join(f"{g!r}: {w:.2f}" for g, w in weights.items()) + "}"
        if not others:
            text = (
                f"No setting is shown to keep {demand}. The last one that keeps "
                f"{at_least[lead]:.0%} of {lead} is {where}; it keeps {kept}."
            )
        elif not Difference.of(gap).is_clear:
            text = (
                f"No trade-off is seen: {lead} differs by {Difference.of(gap)} over the whole "
                f"dial. {where} keeps {kept}."
            )
        elif setting == self._alone(number):
            text = f"Only '{lead} alone' is shown to keep {demand}, with {confidence:.0%}."
        else:
            text = f"{where} keeps {kept}; {demand} is kept with a confidence of {confidence:.0%}."
        return Setting(float(self.at[setting]), weights, shares, moved and others, text)
