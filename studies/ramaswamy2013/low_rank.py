"""Least-squares surrogates of low rank, and query types on which they are right or wrong.

A surrogate maps a label (a vector or a graph) to a target, fits the mean of the targets, and
decodes an order from it. Query types are finite distributions of labels. They are drawn at
random until the condition of a theorem holds, or fails, and until surrogates that no theorem
covers are wrong. Boosted models are trained on queries whose type and item are the features.
"""

import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from gbmrank import Groups, PairRanker, PreferenceGraphs, RankingData, objective, theory
from gbmrank.api.training_plans import training_plan
from gbmrank.boosters.base import Part
from gbmrank.boosters.plan import train
from gbmrank.errors import CalibrationWarning, NoProgressWarning
from gbmrank.kernels.decode.orders import orders
from gbmrank.types import FloatArray, IntArray

ITEMS = 5
_VECTORS, _GRADES, _NEUTRAL = 4, 4, 1.0
_WRONG = 0.01  # regret from which a surrogate counts as wrong
_MOST_DRAWS = 200_000


@final
@dataclass(frozen=True, slots=True)
class Surrogate:
    """What is fitted by least squares, and how an order is read from it.

    Parameters
    ----------
    name : str
        In words.
    target : callable
        Labels, shape (m, n) or (m, n, n), to what is fitted, shape (m, d).
    decoder : str or None
        For pair values; None sorts.
    pairs : {"map", "disagreement"}, default="map"
        What pair values stand for.
    objective : str or None
        The same for a booster, where a score is fitted.
    """

    name: str
    target: Callable[[FloatArray], FloatArray]
    decoder: str | None = None
    pairs: str = "map"
    objective: str | None = None

    def scores(self, fitted: FloatArray) -> FloatArray:
        """Decode fitted means, shape (rows, d), into scores, shape (rows, n)."""
        if self.decoder is None:
            return fitted
        n = int(np.sqrt(fitted.shape[1]))
        order = orders(fitted.ravel(), np.full(len(fitted), n), self.pairs, self.decoder)
        scores = np.empty((len(fitted), n))
        np.put_along_axis(scores, order.reshape(-1, n), -np.arange(n)[None, :], axis=1)
        return scores


def _labels(y: FloatArray) -> FloatArray:
    return y


def _above_neutral(y: FloatArray) -> FloatArray:
    return np.maximum(y - _NEUTRAL, 0.0)


def _gains(y: FloatArray) -> FloatArray:
    return 2.0**y - 1.0


def _shares(y: FloatArray) -> FloatArray:
    return y / np.maximum(y.sum(axis=1, keepdims=True), 1.0)


def _joint(y: FloatArray) -> FloatArray:
    return (_shares(y)[:, :, None] * y[:, None, :]).reshape(len(y), -1)


def _wins(graphs: FloatArray) -> FloatArray:
    return np.asarray(graphs.sum(axis=2))


def _net_degrees(graphs: FloatArray) -> FloatArray:
    return np.asarray(graphs.sum(axis=2) - graphs.sum(axis=1))


def _edges(graphs: FloatArray) -> FloatArray:
    return graphs.reshape(len(graphs), -1)


SURROGATES = {
    one.name: one
    for one in (
        Surrogate("y", _labels, objective="pointwise(loss=squared, target=identity)"),
        Surrogate(
            "(y - 1)+", _above_neutral, objective="pointwise(loss=squared, target=eru(neutral=1))"
        ),
        Surrogate("2^y - 1", _gains, objective="pointwise(loss=squared, target=dcg)"),
        Surrogate("y / P", _shares, objective="pointwise(loss=squared, target=map)"),
        Surrogate("y y' / P, exact decoder", _joint, "exact"),
        Surrogate("wins", _wins),
        Surrogate("net degree", _net_degrees, objective="linear"),
        Surrogate("edges, Algorithm 1", _edges, "graph", "disagreement"),
        Surrogate("edges, exact decoder", _edges, "exact", "disagreement"),
    )
}


@final
@dataclass(frozen=True, slots=True)
class Task:
    """A measure, what is assumed of query types, and which surrogates are right then.

    Parameters
    ----------
    name : str
        The measure and the condition.
    metric : str
        The measure.
    right : mapping of str to str
        Names of surrogates that are right, and what says so.
    wrong : tuple of str
        Names of surrogates that nothing covers.
    draw : callable
        Draws a query type.
    condition : callable
        Whether a type is as the theorem wants it, or as it does not.
    """

    name: str
    metric: str
    right: Mapping[str, str]
    wrong: tuple[str, ...]
    draw: Callable[[np.random.Generator], theory.Distribution]
    condition: Callable[[theory.Distribution], bool]


def _binary(rng: np.random.Generator) -> theory.Distribution:
    labels = (rng.random((_VECTORS, ITEMS)) < 0.4).astype(np.float64)
    labels[labels.sum(axis=1) == 0, rng.integers(ITEMS)] = 1.0
    return theory.Distribution(labels, rng.dirichlet(np.ones(_VECTORS)))


def _independent(rng: np.random.Generator) -> theory.Distribution:
    """Draw chances of items that are relevant independently, given that one is."""
    labels = np.array(list(itertools.product((0.0, 1.0), repeat=ITEMS)))[1:]
    chance = rng.uniform(0.1, 0.9, ITEMS)
    return theory.Distribution(labels, np.where(labels == 1.0, chance, 1.0 - chance).prod(axis=1))


def _graded(rng: np.random.Generator) -> theory.Distribution:
    labels = rng.integers(_GRADES + 1, size=(_VECTORS, ITEMS)).astype(np.float64)
    return theory.Distribution(labels, rng.dirichlet(np.ones(_VECTORS)))


def _graphs(rng: np.random.Generator) -> theory.Distribution:
    """Draw graphs without a cycle; the weights of their mean sum to one."""
    graphs = []
    for _ in range(_VECTORS):
        order = rng.permutation(ITEMS)
        weights = rng.exponential(size=(ITEMS, ITEMS)) * (rng.random((ITEMS, ITEMS)) < 0.6)
        graphs.append(np.triu(weights, 1)[np.ix_(order, order)])
    drawn = theory.Distribution(graphs, rng.dirichlet(np.ones(_VECTORS)))
    total = drawn.mean_graph().sum()
    return theory.Distribution(drawn.labels / max(total, 1e-9), drawn.probabilities)


def _any(_: theory.Distribution) -> bool:
    return True


def _joint_mean(one: theory.Distribution) -> FloatArray:
    return (one.probabilities @ _joint(one.labels)).reshape(ITEMS, ITEMS)


def _reinforcing(one: theory.Distribution) -> bool:
    return bool(theory.reinforces(_joint_mean(one)))


def _not_reinforcing(one: theory.Distribution) -> bool:
    return not _reinforcing(one)


def _degrees_decide(one: theory.Distribution) -> bool:
    return bool(theory.degree_condition(one.mean_graph()))


def _acyclic_only(one: theory.Distribution) -> bool:
    mean = one.mean_graph()
    return bool(theory.is_acyclic(theory.difference_graph(mean))) and not _degrees_decide(one)


def _cyclic(one: theory.Distribution) -> bool:
    return not theory.is_acyclic(theory.difference_graph(one.mean_graph()))


def tasks() -> tuple[Task, ...]:
    """Return the seven tasks of the study.

    In P_reinforce labels themselves sort like ``y / P``: summing the condition over g gives
    ``E y_i >= E y_j``. Independent labels are in it.
    """
    precise, first, exact = "y y' / P, exact decoder", "edges, Algorithm 1", "edges, exact decoder"
    lost = "pairwise_disagreement(normalize=false)"
    eru = "eru(neutral=1, half_life=3)"
    reinforced = {"y / P": "Cor 5", precise: "Thm 3", "y": "Thm 4, summed"}
    ordered = {"net degree": "Thm 6", first: "Thm 7", exact: "Thm 3"}
    acyclic, always = {first: "Thm 7", exact: "Thm 3"}, {exact: "Thm 3"}
    shares, joint = ("y / P", "y"), {precise: "Thm 3"}
    degrees = ("net degree", "wins")
    return (
        Task("Precision@2", "precision@2", {"y": "sec. 4"}, ("y / P", precise), _binary, _any),
        Task("ERU", eru, {"(y - 1)+": "sec. 5"}, ("y", "2^y - 1"), _graded, _any),
        Task("MAP, in P_reinforce", "map", reinforced, (), _independent, _reinforcing),
        Task("MAP, not in P_reinforce", "map", joint, shares, _binary, _not_reinforcing),
        Task("PD, in P_f", lost, ordered, ("wins",), _graphs, _degrees_decide),
        Task("PD, in P_DAG, not in P_f", lost, acyclic, degrees, _graphs, _acyclic_only),
        Task("PD, not in P_DAG", lost, always, (first, *degrees), _graphs, _cyclic),
    )


def draw_types(task: Task, count: int, rng: np.random.Generator) -> list[theory.Distribution]:
    """Draw query types that meet a task's condition and mislead its wrong surrogates.

    Parameters
    ----------
    task : Task
        What is asked of them.
    count : int
        How many.
    rng : numpy.random.Generator
        Draws them.
    """
    found: list[theory.Distribution] = []
    for _ in range(_MOST_DRAWS):
        if len(found) == count:
            break
        one = task.draw(rng)
        if task.condition(one) and _misleads(task, one):
            found.append(one)
    return found


def regrets(task: Task, name: str, one: theory.Distribution, means: FloatArray) -> FloatArray:
    """Return the regret of a surrogate for rows of fitted means, shape (rows,)."""
    scores = SURROGATES[name].scores(means)
    return np.abs(one.best(task.metric).value - one.expected_values(task.metric, scores))


def _misleads(task: Task, one: theory.Distribution) -> bool:
    for name in task.wrong:
        mean = one.probabilities @ SURROGATES[name].target(one.labels)
        if regrets(task, name, one, mean[None, :])[0] < _WRONG:
            return False
    return True


def limits(task: Task, types: Sequence[theory.Distribution], name: str) -> FloatArray:
    """Return the regret of a surrogate's population minimiser for each type, shape (types,)."""
    target = SURROGATES[name].target
    return np.array(
        [
            regrets(task, name, one, (one.probabilities @ target(one.labels))[None, :])[0]
            for one in types
        ]
    )


_BACKEND = "xgboost"  # LightGBM never splits on the type here, which has no gain at the root
_ROUNDS, _RATE, _DEPTH = 60, 0.3, 6


def boosted_scores(
    surrogate: Surrogate,
    types: list[theory.Distribution],
    counts: list[IntArray],
    threads: int | None = None,
) -> FloatArray:
    """Train XGBoost on sampled queries and return the scores of every type, shape (types, n).

    Parameters
    ----------
    surrogate : Surrogate
        With an objective, or with pair values: those are fitted by a :class:`PairRanker`.
    types : list of Distribution
        Where queries come from.
    counts : list of array
        How often each label of a type was drawn.
    threads : int, optional
        Of the booster.
    """
    labels = np.concatenate(
        [np.repeat(one.labels, drawn, axis=0) for one, drawn in zip(types, counts, strict=True)]
    )
    kind = np.repeat(np.arange(len(types)), [drawn.sum() for drawn in counts])
    x, rows = _features(kind), _features(np.arange(len(types)))
    params: dict[str, Any] = {"learning_rate": _RATE, "max_depth": _DEPTH}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # some are wrong on purpose
        warnings.simplefilter("ignore", NoProgressWarning)
        if surrogate.decoder is None:
            scores = _fit_scores(surrogate, (x, labels), rows, (params, threads))
        else:
            made = PairRanker(
                surrogate.pairs,
                _BACKEND,
                surrogate.decoder,
                n_estimators=_ROUNDS,
                **params,
                nthread=threads or 0,
            )
            made.fit(x, _supervision(labels), qid=np.repeat(np.arange(len(labels)), ITEMS))
            scores = made.predict(rows, qid=np.repeat(np.arange(len(types)), ITEMS))
    return scores.reshape(len(types), ITEMS)


def _fit_scores(
    surrogate: Surrogate,
    given: tuple[FloatArray, FloatArray],
    rows: FloatArray,
    options: tuple[dict[str, Any], int | None],
) -> FloatArray:
    x, labels = given
    seen = _supervision(labels)
    groups = Groups.from_sizes(np.full(len(labels), ITEMS), len(x))
    if isinstance(seen, PreferenceGraphs):
        target = objective(str(surrogate.objective), preferences=seen)
        data = RankingData(np.zeros(len(x)), groups, preferences=seen)
    else:
        target = objective(str(surrogate.objective))
        data = RankingData(seen, groups)
    plan = training_plan(
        objective=target,
        metric="ndcg",
        backend=_BACKEND,
        rounds=_ROUNDS,
        params=options[0],
        threads=options[1],
    )
    return train(plan, Part(x, data)).scores(rows)


def _features(kinds: IntArray) -> FloatArray:
    """Return the type and the number of each item."""
    items = np.tile(np.arange(ITEMS), len(kinds))
    return np.column_stack([np.repeat(kinds, ITEMS), items]).astype(np.float64)


def _supervision(labels: FloatArray) -> FloatArray | PreferenceGraphs:
    """Return labels as one column, or graphs as edges."""
    if labels.ndim == 2:
        return labels.ravel()
    query, winner, loser = np.nonzero(labels)
    return PreferenceGraphs.from_edges(
        query * ITEMS + winner,
        query * ITEMS + loser,
        labels[query, winner, loser],
        group=np.full(len(labels), ITEMS),
    )
