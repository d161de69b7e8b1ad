"""Position bias: examination propensities, and the labels that correct clicks for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.columns import as_floats, read_ids, read_number, read_wholes
from gbmrank.data.queries import RankingData
from gbmrank.errors import NEEDS_MATPLOTLIB, DataError, ParameterError, WeightError, import_optional
from gbmrank.types import ArrayLike, FloatArray, IntArray

_COLUMNS = 30  # characters of the longest bar


@final
@dataclass(frozen=True, slots=True, eq=False)
class PositionBias:
    r"""Position bias: the probability that an item is examined, by its position.

    A click needs examination and relevance. With the propensity :math:`\theta_k` of position k,
    counted from 1, and relevance :math:`\rho_i` (the probability of a click once examined),

    .. math::
        P(c_i = 1) = \theta_{k_i} \rho_i + b_{k_i}, \qquad
        \hat u_i = \frac{c_i - b_{k_i}}{\theta_{k_i}}, \qquad E \hat u_i = \rho_i.

    b is zero unless users click some positions regardless of relevance (trust bias). The utility
    :math:`\hat u_i` replaces the click as the label. It is not a weight of the row: an
    item that was not clicked is not known to be irrelevant.

    Users who found what they wanted read on less often: after a click of the session every
    propensity is multiplied by ``after_click``.

    A common factor of all propensities changes no ranking, so estimates have
    :math:`\theta_1 = 1`; given ones are used as they are.

    Parameters
    ----------
    propensity : array-like of shape (n_positions,)
        :math:`\theta_1, \theta_2, \ldots`, above 0 and at most 1.
    false_clicks : array-like of shape (n_positions,), optional
        :math:`b_1, b_2, \ldots`, the probability that an irrelevant item is clicked;
        not negative, and at most 1 together with the propensity.
    after_click : float, default=1
        Factor of the propensities below an earlier click of the session, above 0 and at most 1.
    low, high : array-like of shape (n_positions,), optional
        Ends of an interval for each propensity.
    level : float, default=0.95
        Probability with which an interval should contain the propensity.
    method : str, default="given"
        How the propensities were obtained.

    References
    ----------
    Joachims, Swaminathan and Schnabel, "Unbiased learning-to-rank with biased feedback", WSDM
    2017, sec. 4. Vardasbi, Oosterhuis and de Rijke, "When inverse propensity scoring does not
    work: affine corrections for unbiased learning to rank", CIKM 2020.

    Examples
    --------
    >>> bias = PositionBias([1.0, 0.5, 0.25])
    >>> bias.utilities(clicks=[1, 0, 1], position=[1, 2, 3])
    array([1., 0., 4.])
    >>> print(bias)
    position bias (given)
    position  propensity
           1       1.000  ##############################
           2       0.500  ###############
           3       0.250  ########
    """

    propensity: FloatArray
    false_clicks: FloatArray | None
    low: FloatArray | None
    high: FloatArray | None
    after_click: float
    level: float
    method: str

    def __init__(  # noqa: PLR0913  (one argument per column)
        self,
        propensity: ArrayLike,
        *,
        false_clicks: ArrayLike | None = None,
        after_click: float = 1.0,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        level: float = 0.95,
        method: str = "given",
    ) -> None:
        theta = _column(propensity, "propensity")
        if not len(theta):
            raise DataError("propensity is empty; give one number per position, from position 1")
        _check_share(theta, "propensity", theta > 0.0, "above 0 and at most 1")
        columns: dict[str, FloatArray | None] = {"propensity": theta}
        for name, given in (("false_clicks", false_clicks), ("low", low), ("high", high)):
            columns[name] = column = None if given is None else _column(given, name)
            if column is not None and len(column) != len(theta):
                raise DataError(f"{name} has {len(column)} entries for {len(theta)} positions")
        if (b := columns["false_clicks"]) is not None:
            allowed = (b >= 0.0) & (b + theta <= 1.0 + 1e-12)  # estimates sum to 1 up to rounding
            _check_share(b, "false_clicks", allowed, "from 0 to 1 minus the propensity")
        numbers = {
            "after_click": read_number(after_click, "after_click", 1e-9, 1.0),
            "level": read_number(level, "level", 0.0, 1.0),
        }
        for name, value in {**columns, **numbers, "method": str(method)}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def decaying(cls, n_positions: int, power: float = 1.0) -> "PositionBias":
        r"""Return :math:`\theta_k = k^{-\text{power}}`, the usual bias of simulations.

        Parameters
        ----------
        n_positions : int
            Number of positions.
        power : float, default=1
            Strength of the bias; 0 is none.

        Returns
        -------
        PositionBias
            Without false clicks and intervals.

        Examples
        --------
        >>> PositionBias.decaying(4).propensity
        array([1.        , 0.5       , 0.33333333, 0.25      ])
        """
        return cls(np.arange(1.0, n_positions + 1.0) ** -read_number(power, "power", 0.0))

    @property
    def n_positions(self) -> int:
        """The last position whose propensity is known."""
        return len(self.propensity)

    def theta(self, position: ArrayLike, after: npt.NDArray[np.bool_] | None = None) -> FloatArray:
        """Return the propensity of each row, by its position from 1.

        ``after`` says which rows are below a click of their session: ``after_click`` counts there.
        """
        theta = self.propensity[self._at(position)]
        return theta if after is None else np.where(after, self.after_click * theta, theta)

    def utilities(
        self,
        clicks: ArrayLike,
        position: ArrayLike,
        *,
        clip: float | None = None,
        impressions: ArrayLike | None = None,
        session: ArrayLike | None = None,
    ) -> FloatArray:
        r"""Return :math:`(c_i - b_{k_i}) / \theta_{k_i}`, whose mean is the relevance.

        Parameters
        ----------
        clicks : array-like of shape (n_rows,)
            0 or 1; with ``impressions`` the number of clicks.
        position : array-like of shape (n_rows,)
            Position at which the item was shown, from 1.
        clip : float, optional
            Propensities below this are raised to it, which reduces variance for a bias of at most
            :math:`\rho_i (1 - \theta_{k_i} / \text{clip})` per row.
        impressions : array-like of shape (n_rows,), optional
            How often the item was shown at that position, for aggregated rows; the utility is
            then that of the click rate.
        session : array-like of shape (n_rows,), optional
            The session of each row, needed if ``after_click`` is below 1.

        Returns
        -------
        array of shape (n_rows,)
            Labels for training with ``target=identity``. They may exceed 1, and are negative for
            items that were not clicked at a position with false clicks.
        """
        rate = read_clicks(clicks, impressions)
        at = self._at(position, len(rate))
        if self.after_click < 1.0 and session is None:
            raise ParameterError(
                f"examination depends on earlier clicks (after_click={self.after_click:.3g}), so "
                "the sessions are needed: give session="
            )
        after = None if self.after_click == 1.0 else follows_click(rate, at, session)
        theta = self.theta(at + 1, after)
        if clip is not None:
            theta = np.maximum(theta, read_number(clip, "clip", 0.0, 1.0))
        if self.false_clicks is not None:
            rate = rate - self.false_clicks[at]
        with np.errstate(over="ignore"):
            made = rate / theta
        if len(wrong := np.flatnonzero(~(np.abs(made) <= 1e150))):
            raise WeightError(
                f"the click in row {wrong[0]} divided by its propensity {theta[wrong[0]]:g} "
                "overflows; clip the propensities, for example clip=0.01"
            )
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain numbers and strings, suitable for JSON.

        Examples
        --------
        >>> PositionBias.from_dict(PositionBias([1.0, 0.5]).to_dict()).propensity
        array([1. , 0.5])
        """
        columns = ("propensity", "false_clicks", "low", "high")
        given = {name: getattr(self, name) for name in columns}
        made = {name: column.tolist() for name, column in given.items() if column is not None}
        factor = {} if self.after_click == 1.0 else {"after_click": self.after_click}
        return {**made, **factor, "level": self.level, "method": self.method}

    @classmethod
    def from_dict(cls, made: Mapping[str, Any]) -> "PositionBias":
        """Return the bias from the dictionary of :meth:`to_dict`."""
        return cls(**made)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositionBias) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.propensity.tobytes(), self.method))

    def __str__(self) -> str:
        interval = f"  {f'{self.level:.0%} interval':15}" if self.low is not None else ""
        trust = "  false clicks" if self.false_clicks is not None else ""
        lines = [
            f"position bias ({self.method})",
            f"position  propensity{interval}{trust}".rstrip(),
        ]
        for k, theta in enumerate(self.propensity):
            line = f"{k + 1:8d}  {theta:10.3f}"
            if self.low is not None and self.high is not None:
                line += f"  {self.low[k]:.3f} to {self.high[k]:.3f} "
            if self.false_clicks is not None:
                line += f"  {self.false_clicks[k]:12.3f}"
            length = max(1, round(_COLUMNS * theta / self.propensity.max()))
            lines.append(f"{line}  {'#' * length}")
        if self.after_click < 1.0:
            lines.append(f"after a click: all times {self.after_click:.3f}")
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Plot the propensities by position with their intervals, on axes or in a new figure."""
        ax = axes(ax)
        at = np.arange(1, self.n_positions + 1)
        ax.bar(at, self.propensity, color="#7aa6c2", label="propensity")
        if self.low is not None and self.high is not None:
            ends = np.abs(np.vstack([self.propensity - self.low, self.high - self.propensity]))
            name = f"{self.level:.0%} interval"
            ax.errorbar(at, self.propensity, ends, fmt="none", color="#1d3c53", label=name)
        if self.false_clicks is not None:
            ax.bar(at, self.false_clicks, width=0.4, color="#c98a5b", label="false clicks")
        ax.set_xlabel("position")
        ax.set_ylabel("chance of examination")
        ax.set_ylim(0.0, None)
        ax.legend(frameon=False)
        return ax

    def _at(self, position: ArrayLike, count: int | None = None) -> IntArray:
        """Return the index of each position."""
        found = read_positions(position, count)
        if len(beyond := np.flatnonzero(found > self.n_positions)):
            row = int(beyond[0])
            raise DataError(
                f"position {found[row]} in row {row} is beyond {self.n_positions}, the last one "
                f"whose bias is known ({len(beyond)} such rows). Leave these rows out, or "
                "estimate the bias from a log with these positions"
            )
        return found - 1


def axes(ax: Any, width: float = 6.0, height: float = 3.2) -> Any:
    """Return the axes, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    plt = import_optional("matplotlib.pyplot", NEEDS_MATPLOTLIB)
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def follows_click(clicks: FloatArray, position: IntArray, session: Any) -> npt.NDArray[np.bool_]:
    """Whether a row is below a click of its session.

    >>> follows_click(np.array([0.0, 1.0, 0.0]), np.array([1, 2, 3]), [7, 7, 7])
    array([False, False,  True])
    """
    _, number = np.unique(read_ids(session, "session"), return_inverse=True)
    first = np.full(int(number.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    clicked = clicks > 0.0
    np.minimum.at(first, number[clicked], position[clicked])
    return np.asarray(position > first[number])


def utilities_of(data: RankingData, bias: PositionBias, clip: float | None = None) -> FloatArray:
    """Return the utilities of clicks in query order; each query is a session."""
    session = data.groups.spread(np.arange(data.groups.n_queries))
    return bias.utilities(data.labels, data.columns["position"], clip=clip, session=session)


def read_positions(position: ArrayLike, count: int | None = None) -> IntArray:
    """Return positions as whole numbers from 1; ``count`` is the number of clicks, if known."""
    if position is None:
        raise DataError("position is missing; give one number per row, 1 for the top of the list")
    found = read_wholes(position, "positions", 1)
    if count is not None and len(found) != count:
        raise DataError(f"position has {len(found)} rows, clicks has {count}")
    return found


def read_clicks(clicks: ArrayLike, impressions: ArrayLike | None = None) -> FloatArray:
    """Return the click rate of each row: clicks are 0 or 1, or counts with impressions."""
    values = as_floats(clicks, "clicks")
    shown = np.ones(len(values))
    if impressions is not None:
        shown = read_wholes(impressions, "impressions", 1).astype(np.float64)
        if len(shown) != len(values):
            raise DataError(f"impressions has {len(shown)} rows, clicks has {len(values)}")
    whole = (values >= 0.0) & (values <= shown) & (values == np.floor(values))
    if len(wrong := np.flatnonzero(~whole)):
        row = int(wrong[0])
        allowed = "whole numbers from 0 to the impressions of the row"
        if impressions is None:
            allowed = "0 or 1; for counts give impressions=, one number per row"
        raise DataError(f"clicks are {allowed}; got {values[row]:g} in row {row}")
    return values / shown


def _column(values: ArrayLike, what: str) -> FloatArray:
    column = np.array(as_floats(values, what))
    column.flags.writeable = False
    return column


def _check_share(values: FloatArray, what: str, allowed: Any, words: str) -> None:
    if len(wrong := np.flatnonzero(~(allowed & (values <= 1.0)))):
        k = int(wrong[0])
        raise DataError(f"{what} must be {words}; got {values[k]:g} at position {k + 1}")
