"""A doctor for click logs: whether they identify examination, and what to do with them."""

import contextlib
import warnings
from dataclasses import asdict, dataclass, replace
from typing import Any, final

import numpy as np

from gbmrank.clicks.estimation import after_click_test, cells_of
from gbmrank.clicks.pooling import (
    Sessions,
    complete,
    examination,
    moved,
    read_sessions,
    repeated,
    why_not,
)
from gbmrank.clicks.simulation import ClickLog
from gbmrank.data.bootstrap import sums_by
from gbmrank.data.position_bias import PositionBias, axes
from gbmrank.errors import DataError, GbmrankWarning
from gbmrank.types import FloatArray

_GAIN = (
    "On simulated logs of this kind it closed about half of the gap between training on plain "
    "clicks and training on the true relevance, less where the logged ranking was very good."
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClickDiagnosis:
    """What a click log can teach; made by :func:`diagnose`. Lists have one entry per position."""

    n_sessions: int
    n_impressions: int
    n_clicks: int
    n_queries: int
    n_items: int
    """Items are counted within their queries."""
    repeated: float
    """Share of impressions whose item was shown in another session of its query."""
    moved: int
    """Number of items that were shown at several positions."""
    complete: float
    """Share of the items shown for a query that a session shows."""
    shown: list[float]
    """Impressions."""
    click_rate: list[float]
    """Clicks per impression, which is not examination."""
    overlap: list[float]
    """Share of impressions whose item was shown elsewhere too."""
    effective_clicks: list[float]
    """Clicks that tell examination there from other positions."""
    bias: PositionBias | None
    """Examination; all 1 if clicks do not reject that, None if nothing identifies it."""
    after_click: float
    """Examination below a click of the session, relative to elsewhere."""
    after_click_z: float
    """Standard errors by which clicks below a click are rarer (negative) than elsewhere."""
    method: str
    """What to train with: ``"pooled"``, ``"harvesting"`` or ``"none"``."""
    reason: str
    """Why it is not ``"pooled"``."""

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def sentences(self) -> list[str]:
        """Return the findings, one sentence or two per line."""
        return [
            (
                f"{self.n_sessions} sessions of {self.n_queries} queries, {self.n_impressions} "
                f"impressions of {self.n_items} items, {self.n_clicks} clicks."
            ),
            (
                f"Repeats: {self.repeated:.0%} of the impressions show an item that another "
                f"session of the query shows too, and {self.moved} items were shown at several "
                "positions."
            ),
            f"Lists: a session shows {self.complete:.0%} of the items shown for its query.",
            self._about_bias(),
            (
                "After a click: no sign that users stop reading."
                if self.after_click == 1.0
                else f"After a click: items below are examined {self.after_click:.0%} as often as "
                f"elsewhere at their positions ({self.after_click_z:.1f} standard errors)."
            ),
            *self._advice(),
        ]

    def _about_bias(self) -> str:
        if self.bias is None:
            return "Position bias: unknown, since no clicked item was shown at two positions."
        last = len(self.shown)
        if self.bias.propensity.min() == 1.0:
            return "Position bias: none that the clicks show, so all positions count alike."
        power = -np.log(self.bias.propensity[-1] / self.bias.propensity[0]) / np.log(last)
        return (
            f"Position bias: yes, about 1 / k^{power:.2f}: position {last} is examined "
            f"{self.bias.propensity[-1]:.0%} as often as position 1."
        )

    def _advice(self) -> list[str]:
        if self.method == "pooled":
            return [
                'Recommended: GBMRanker.fit(position_bias="pooled"), or pooled_labels. ' + _GAIN
            ]
        how = {
            "harvesting": "use estimate_bias and GBMRanker.fit(position_bias=bias, clip=0.2); "
            "expect little",
            "none": "train on clicks as they are"
            + (self.bias is None)
            * ", biased as they may be. To measure the bias, swap "
            "neighbouring items in some sessions",
        }[self.method]
        return [f"Labels should not be pooled: {self.reason}.", f"Recommended: {how}."]

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain numbers and strings, suitable for JSON."""
        bias = None if self.bias is None else self.bias.to_dict()
        return {**asdict(self), "bias": bias, "sentences": self.sentences()}

    def plot(self, ax: Any = None) -> Any:
        """Plot click rates, examination and effective clicks, on axes or in a new figure."""
        ax = axes(ax)
        at = np.arange(1, len(self.shown) + 1)
        rate = np.array(self.click_rate)
        ax.plot(at, rate / max(rate.max(), 1e-12), "o-", color="#c98a5b", label="click rate")
        if self.bias is not None:
            ax.bar(at, self.bias.propensity, color="#7aa6c2", label="examination")
            for k, clicks in zip(at, self.effective_clicks, strict=True):
                ax.annotate(f"{clicks:.0f}", (k, 0.02), ha="center", fontsize=7)
        ax.set(xlabel="position (below: effective clicks)", ylabel="relative to the highest")
        ax.legend(frameon=False)
        return ax


def diagnose(
    log: Any,
    *,
    clicks: str = "clicks",
    position: str = "position",
    qid: str = "query",
    item: str = "item",
    session: str = "session",
) -> ClickDiagnosis:
    """Examine a click log: what it identifies, and how to train on it.

    Parameters
    ----------
    log : data frame, mapping of columns or ClickLog
        One row per item shown.
    clicks, position, qid, item, session : str
        Names of the columns: 0 or 1; from 1; the same query in all its sessions; the item within
        its query; one list that was shown. They are not used for a ClickLog.

    Returns
    -------
    ClickDiagnosis
        Findings and advice: ``print`` shows sentences, ``plot`` a picture.

    Examples
    --------
    >>> from gbmrank.clicks import simulate_clicks
    >>> labels, qid = np.tile([4, 2, 1, 0], 50), np.repeat(np.arange(50), 4)
    >>> found = diagnose(simulate_clicks(labels, np.zeros(200), qid, sessions=5000))
    >>> found.method
    'pooled'
    """
    if isinstance(log, ClickLog):
        columns: list[Any] = [log.clicks, log.position, log.query, log.row, log.session]
    else:
        columns = [_column(log, name) for name in (clicks, position, qid, item, session)]
    seen = read_sessions(*columns)
    reason = why_not(seen)
    rows, n_positions = seen.log, seen.log.n_positions
    bias, effective = None, np.zeros(n_positions)
    factor, z = after_click_test(rows, seen.after)
    if moved(seen):
        with (
            warnings.catch_warnings(action="ignore", category=GbmrankWarning),
            contextlib.suppress(DataError),  # no item at several positions was clicked
        ):
            bias = examination(seen, session=seen.session, method="power")
            effective = _effective(seen, bias)
    biased = bias is not None and bias.propensity.min() < bias.propensity.max()
    shown = np.bincount(rows.position, minlength=n_positions)
    return ClickDiagnosis(
        n_sessions=int(seen.session.max()) + 1,
        n_impressions=len(seen.pair),
        n_clicks=int(rows.clicks.sum()),
        n_queries=int(rows.query.max()) + 1,
        n_items=int(seen.pair.max()) + 1,
        repeated=repeated(seen),
        moved=moved(seen),
        complete=complete(seen),
        shown=shown.tolist(),
        click_rate=(rows.by_position(rows.clicks) / np.maximum(shown, 1)).tolist(),
        overlap=(_elsewhere(seen) / np.maximum(shown, 1)).tolist(),
        effective_clicks=effective.tolist(),
        bias=bias,
        after_click=factor,
        after_click_z=z,
        method="pooled" if not reason else "harvesting" if biased else "none",
        reason=reason,
    )


def _column(log: Any, name: str) -> Any:
    try:
        return log[name]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise DataError(
            f"the log has no column {name!r}. It needs one row per item shown, with the columns "
            "clicks, position, query, item and session, or their names: qid='...' for the query"
        ) from error


def _elsewhere(seen: Sessions) -> FloatArray:
    """Return the impressions of items that were shown at another position too, by position."""
    cells = cells_of(seen.log)
    several = np.bincount(cells.pair)[cells.pair] > 1
    shown = np.bincount(seen.pair * seen.log.n_positions + seen.log.position)
    return sums_by(cells.position, np.where(several, shown[shown > 0], 0.0), seen.log.n_positions)


def _effective(seen: Sessions, bias: PositionBias) -> FloatArray:
    """Return the information about the logarithm of each propensity, which is one per click."""
    log = seen.log
    cells = cells_of(replace(log, shown=np.where(seen.after, bias.after_click, 1.0)))
    expected = cells.shown * bias.propensity[cells.position]
    share = expected / sums_by(cells.pair, expected)[cells.pair]
    total = sums_by(cells.pair, cells.clicks)[cells.pair]
    return sums_by(cells.position, total * share * (1.0 - share), log.n_positions)
