"""Simulated clicks on ranked lists: logs whose true relevance is known."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.columns import read_number, read_whole
from gbmrank.data.position_bias import PositionBias
from gbmrank.data.queries import RankingData
from gbmrank.errors import LabelRangeError, ParameterError
from gbmrank.types import ArrayLike, BoolArray, FloatArray, IntArray

_MODELS = ("position", "cascade", "dependent")


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClickLog:
    """A log of simulated impressions and clicks: one row per item shown.

    Made by :func:`simulate_clicks`. Features of a row are ``X[log.row]``; train on them with
    ``qid=log.session``.
    """

    session: IntArray
    """Number of the session (one list), from 0; its rows are adjacent, sorted by position."""
    query: npt.NDArray[Any]
    """The caller's id of the query of that list."""
    row: IntArray
    """Row of the caller's items."""
    position: IntArray
    """Position at which it was shown, from 1."""
    clicks: IntArray
    """1 where it was clicked, else 0."""
    relevance: FloatArray
    """True probability of a click once examined, which real logs do not have."""

    @property
    def n_sessions(self) -> int:
        """Number of lists that were shown."""
        return int(self.session[-1]) + 1 if len(self.session) else 0

    def __len__(self) -> int:
        return len(self.session)

    def __str__(self) -> str:
        shown = np.bincount(self.position)[1:]
        rates = np.bincount(self.position, self.clicks)[1:] / np.maximum(shown, 1)
        listed = ", ".join(f"{rate:.3f}" for rate in rates[:10])
        return (
            f"{self.n_sessions} sessions, {len(self)} impressions, {int(self.clicks.sum())} clicks"
            f"\nclicks per impression by position: {listed}{', ...' if len(rates) > 10 else ''}"
        )


def simulate_clicks(
    labels: ArrayLike,
    scores: ArrayLike,
    qid: ArrayLike,
    *,
    model: str = "position",
    sessions: int = 1000,
    seed: int = 0,
    k: int = 10,
    bias: PositionBias | None = None,
    temperature: float = 0.0,
    continuation: float = 0.5,
    max_grade: float | None = 4.0,
    noise: float = 0.1,
) -> ClickLog:
    r"""Simulate clicks on ranked lists.

    Every session draws a query, shows its k items with the highest scores, and simulates a user
    by one of three click models. The probability of a click on an examined item of label y is

    .. math::
        \rho = \epsilon + (1 - \epsilon) \frac{2^y - 1}{2^{y_{\max}} - 1}.

    - ``"position"``: position k is examined with probability :math:`\theta_k`, independently of the
      other items, and clicked with :math:`\theta_k \rho + b_k` (false clicks b: trust bias).
    - ``"cascade"``: from the top, every item is examined until the first click.
    - ``"dependent"``: from the top; after a click the user continues with probability
      ``continuation``, otherwise always.

    Parameters
    ----------
    labels : array-like of shape (n_rows,)
        Grades from 0 to ``max_grade``.
    scores : array-like of shape (n_rows,)
        Scores of the logged ranking; tied items are in a new random order in every session.
    qid : array-like of shape (n_rows,)
        One query id per row.
    model : {"position", "cascade", "dependent"}, default="position"
        Click model.
    sessions : int, default=1000
        Number of lists shown.
    seed : int, default=0
        The same seed gives the same log.
    k : int, default=10
        Items shown.
    bias : PositionBias, optional
        Position bias of the model ``"position"``; :math:`1/k` when not given.
    temperature : float, default=0
        Scale of Gumbel noise that is added to the scores in every session (a Plackett-Luce
        ranking); infinity is a random order.
    continuation : float, default=0.5
        Probability to continue after a click, in the model ``"dependent"``.
    max_grade : float or None, default=4
        The highest label; None uses the labels as the probabilities :math:`\rho`.
    noise : float, default=0.1
        :math:`\epsilon`, the probability of a click on an examined item of label 0.

    Returns
    -------
    ClickLog
        One row per item shown.

    References
    ----------
    Chuklin, Markov and de Rijke, "Click models for web search", 2015, ch. 3.

    Examples
    --------
    >>> log = simulate_clicks([4, 0, 1], [3, 2, 1], qid=[0, 0, 0], sessions=2000, noise=0)
    >>> print(log)
    2000 sessions, 6000 impressions, 2043 clicks
    clicks per impression by position: 1.000, 0.000, 0.021
    """
    if model not in _MODELS:
        raise ParameterError(f"model must be one of {', '.join(_MODELS)}; got {model!r}")
    if bias is not None and model != "position":
        raise ParameterError(f"bias= needs model='position', got model={model!r}")
    data = RankingData.from_arrays(labels, qid=qid)
    rho = _relevance(data, max_grade, noise)
    depth = read_whole(k, "k", 1)
    rng = np.random.default_rng(read_whole(seed, "seed", 0))
    heat = read_number(temperature, "temperature", 0.0, np.inf)
    count = read_whole(sessions, "sessions", 1)
    query = rng.integers(data.groups.n_queries, size=count)
    shown = _rankings(data, data.read_scores(scores), query, depth, (heat, rng))
    there = shown >= 0
    chance = np.where(there, rho[shown], 0.0)
    if model == "position":
        clicked = _by_position(chance, there, bias, rng)
    else:
        stays = read_number(continuation, "continuation", 0.0, 1.0) if model == "dependent" else 0.0
        clicked = _from_the_top(chance, stays, rng)
    session, place = np.nonzero(there)
    row, groups = shown[there], data.groups
    ids = np.arange(groups.n_queries) if groups.ids is None else groups.ids
    return ClickLog(
        session.astype(np.int64),
        ids[query[session]],
        row if groups.row_order is None else groups.row_order[row],
        place.astype(np.int64) + 1,
        clicked[there].astype(np.int64),
        chance[there],
    )


def _relevance(data: RankingData, max_grade: float | None, noise: float) -> FloatArray:
    """Return the probability of a click on each row once it is examined."""
    high = 1.0 if max_grade is None else read_number(max_grade, "max_grade", 1e-9, 1000.0)
    wrong = np.flatnonzero(~((data.labels >= 0.0) & (data.labels <= high)))
    if len(wrong):
        raise LabelRangeError(
            f"labels are grades from 0 to {high:g}, got {data.labels[wrong[0]]:g}; give "
            "max_grade=, the highest grade there is"
        )
    if max_grade is None:
        return data.labels
    floor = read_number(noise, "noise", 0.0, 1.0)
    log = np.log(2.0)
    return floor + (1.0 - floor) * np.expm1(data.labels * log) / np.expm1(high * log)


def _rankings(
    data: RankingData,
    scores: FloatArray,
    query: IntArray,
    depth: int,
    noise: tuple[float, np.random.Generator],
) -> IntArray:
    """Return the rows shown in each session, best first, shape (sessions, depth); -1 is none."""
    groups, (temperature, rng) = data.groups, noise
    # Noise below 1 only breaks ties between whole ranks.
    keys = scores / temperature if temperature > 0.0 else np.unique(scores, return_inverse=True)[1]
    shown = np.full((len(query), min(depth, int(groups.sizes.max()))), -1, dtype=np.int64)
    order = np.argsort(query, kind="stable")
    ends = np.searchsorted(query[order], np.arange(groups.n_queries + 1))
    for q in np.unique(query):
        first, last = groups.offsets[q], groups.offsets[q + 1]
        wanted = order[ends[q] : ends[q + 1]]
        size = (len(wanted), last - first)
        extra = rng.gumbel(size=size) if temperature > 0.0 else rng.random(size)
        best = np.argsort(-(keys[first:last] + extra), axis=1)[:, : shown.shape[1]]
        shown[wanted, : best.shape[1]] = first + best
    return shown


def _by_position(
    chance: FloatArray, there: BoolArray, bias: PositionBias | None, rng: np.random.Generator
) -> BoolArray:
    """Click each position independently of the others."""
    used = PositionBias.decaying(chance.shape[1]) if bias is None else bias
    at = np.broadcast_to(np.arange(1, chance.shape[1] + 1), chance.shape)[there]
    clicked = np.zeros(chance.shape, dtype=bool)
    wanted = used.theta(at) * chance[there]
    if used.false_clicks is not None:
        wanted = wanted + used.false_clicks[at - 1]
    clicked[there] = rng.random(len(wanted)) < wanted
    return clicked


def _from_the_top(chance: FloatArray, continuation: float, rng: np.random.Generator) -> BoolArray:
    """Click from the top; after a click continue with a probability."""
    clicked = np.zeros(chance.shape, dtype=bool)
    reading = np.ones(len(chance), dtype=bool)
    for position in range(chance.shape[1]):
        clicked[:, position] = reading & (rng.random(len(chance)) < chance[:, position])
        reading &= ~clicked[:, position] | (rng.random(len(chance)) < continuation)
    return clicked
