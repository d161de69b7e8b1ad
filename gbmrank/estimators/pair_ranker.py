"""A ranker that predicts a value per pair of items and decodes a ranking from them."""

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, final

import numpy as np
import numpy.typing as npt

from gbmrank.api import metric
from gbmrank.boosters.base import Fitted
from gbmrank.boosters.settings import check_seed
from gbmrank.data.preferences import PreferenceGraphs
from gbmrank.data.queries import Groups, RankingData
from gbmrank.data.query_order import query_sums
from gbmrank.data.tables import column_names
from gbmrank.errors import ConfigError, DataError, LimitError, ParameterError
from gbmrank.estimators.base import (
    check_count,
    ranks_within,
    read_queries,
    reject_column_names,
    reject_unknown,
    top_rows,
)
from gbmrank.estimators.decoded_ranker import AbstractDecodedRanker, Matrix, read_rows
from gbmrank.estimators.model_file import Identity, write_model
from gbmrank.kernels.decode.orders import check_decoder, query_matrices, tied_places
from gbmrank.losses.gains import binarise
from gbmrank.types import ArrayLike, FloatArray, IntArray, is_whole

PairFeatures: TypeAlias = str | Callable[[Matrix, Matrix], Matrix]
_FEATURES = ("concatenation", "difference")


class Rows(NamedTuple):
    """Training rows: features, targets and one weight per row, or None."""

    features: npt.NDArray[np.float32]
    targets: FloatArray
    weight: FloatArray | None


class Pairs(NamedTuple):
    """Pairs of different rows of a query, in query order, with inverse sampling probability."""

    first: IntArray
    second: IntArray
    weight: FloatArray


def sample_pairs(groups: Groups, budget: int | None, seed: int | None) -> Pairs:
    """Return every unordered pair once, or a sample of ``budget`` pairs of a longer query.

    Sampling ignores the labels, so weighting each pair by one over its probability leaves
    expectations unchanged.
    """
    rng = np.random.default_rng(seed)
    firsts, seconds, weights = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
    for begin, n in zip(groups.offsets[:-1].tolist(), groups.sizes.tolist(), strict=True):
        total = n * (n - 1) // 2
        if budget is None or total <= budget:
            chosen, weight = np.arange(total), 1.0
        else:
            chosen = np.sort(rng.choice(total, budget, replace=False, shuffle=False))
            weight = total / budget
        second = ((1.0 + np.sqrt(1.0 + 8.0 * chosen)) / 2.0).astype(np.int64)
        second -= second * (second - 1) // 2 > chosen  # rounding of the square root
        second += second * (second + 1) // 2 <= chosen
        firsts.append(chosen - second * (second - 1) // 2 + begin)
        seconds.append(second + begin)
        weights.append(np.full(len(chosen), weight))
    return Pairs(np.concatenate(firsts), np.concatenate(seconds), np.concatenate(weights))


def ordered_pairs(groups: Groups, most: int) -> Iterator[tuple[int, int, IntArray, IntArray]]:
    """Yield runs of queries with all ordered pairs of their rows, a row with itself included.

    A run has about ``most`` pairs at most, or is one query.
    """
    ends = np.concatenate([[0], np.cumsum(groups.sizes.astype(np.int64) ** 2)])
    first = 0
    while first < groups.n_queries:
        last = int(np.searchsorted(ends, ends[first] + most, side="right")) - 1
        last = max(last, first + 1)
        runs = [np.arange(*groups.offsets[q : q + 2]) for q in range(first, last)]
        left = np.concatenate([np.repeat(rows, len(rows)) for rows in runs])
        yield first, last, left, np.concatenate([np.tile(rows, len(rows)) for rows in runs])
        first = last


def pair_features(
    x: Matrix, first: IntArray, second: IntArray, features: PairFeatures
) -> npt.NDArray[np.float32]:
    """Return the features of pairs of rows.

    ``difference`` is ``x_i - x_j``; ``concatenation`` is ``(x_i, x_j, x_i - x_j)``; a function
    receives the two blocks of rows.
    """
    left, right = x[first], x[second]
    if callable(features):
        made = np.asarray(features(left, right), np.float32)
        if made.ndim != 2 or len(made) != len(first):
            raise DataError(
                f"the features of {len(first)} pairs must have as many rows; got an array of shape "
                f"{made.shape}"
            )
        return made
    if features == "difference":
        return (left - right).astype(np.float32)
    return np.concatenate(
        [left, right, left - right], axis=1, dtype=np.float32, casting="same_kind"
    )


def disagreement_rows(
    x: Matrix, graphs: PreferenceGraphs, pairs: Pairs, features: PairFeatures, seed: int | None
) -> Rows:
    """Return every pair, in one of its two orders, with the target ``A_ij - A_ji``.

    The order is random, and predictions are made antisymmetric afterwards. With both orders a
    feature of the query has a gain of exactly zero at the root of every tree, and LightGBM
    never considers such a feature again further down.
    """
    turned = np.random.default_rng(seed).random(len(pairs.first)) < 0.5
    first = np.where(turned, pairs.second, pairs.first)
    second = np.where(turned, pairs.first, pairs.second)
    lead = graphs.weights(first, second) - graphs.weights(second, first)
    weight = None if np.all(pairs.weight == 1.0) else pairs.weight
    return Rows(pair_features(x, first, second, features), lead, weight)


def precision_rows(
    x: Matrix, relevant: FloatArray, groups: Groups, pairs: Pairs, features: PairFeatures
) -> Rows:
    """Return both orders of every pair, and every row with itself, with ``y_i y_j / P``."""
    count = query_sums(relevant, groups)
    share = relevant / groups.spread(np.where(count > 0, count, 1.0))
    own = np.arange(groups.n_rows)
    first = np.concatenate([pairs.first, pairs.second, own])
    second = np.concatenate([pairs.second, pairs.first, own])
    weight = np.concatenate([pairs.weight, pairs.weight, np.ones(len(own))])
    made = with_itself(pair_features(x, first, second, features), first, second)
    return Rows(made, share[first] * relevant[second], weight)


def with_itself(
    made: npt.NDArray[np.float32], first: IntArray, second: IntArray
) -> npt.NDArray[np.float32]:
    """Add a column that tells an item paired with itself from two items with equal features."""
    return np.column_stack([made, (first == second).astype(np.float32)])


MOST_ITEMS = 4000  # 16 million pair values
_PAIRS_AT_ONCE = 250_000


@final
class PairRanker(AbstractDecodedRanker):
    r"""Boosted regression on pairs of items, with a decoder from pair values to a ranking.

    A score per item cannot be optimal for pairwise disagreement or average precision on every
    distribution; a value per pair can. With ``surrogate="disagreement"`` the model estimates
    :math:`A_{ij} - A_{ji}` by least squares on pairs in random order, which is the
    :math:`r(r-1)`-dimensional surrogate up to terms that the decoders ignore; it is calibrated
    if the expected difference graph has no cycle. With ``surrogate="map"`` it estimates
    :math:`y_i y_j / P`, the :math:`r(r+1)/2`-dimensional surrogate, calibrated for every
    distribution if the decoder is exact.

    Parameters
    ----------
    surrogate : {"disagreement", "map"}, default="disagreement"
        Quantity that the pair values estimate.
    backend : {"lightgbm", "xgboost"}, default="lightgbm"
        The booster.
    decoder : str, default="auto"
        For disagreement ``graph`` (Algorithm 1; among items without predecessors, the one with
        larger sorted pair values comes first), ``graph_degree`` (the same, but the one with the
        largest net degree comes first) or ``exact``; for map ``diagonal``, ``exact`` or
        ``greedy``.
        ``auto`` is exact up to 12 items, then ``graph_degree`` or ``greedy``.
    features : {"concatenation", "difference"} or callable, default="concatenation"
        ``(x_i, x_j, x_i - x_j)``, the difference alone, or a function of two arrays of shape
        (n_pairs, n_features) that returns the features of the pairs.
    pair_budget : int or None, default=2000
        Maximum number of training pairs per query. Longer queries are sampled independently of
        the labels and weighted by the inverse probability. None uses all pairs.
    n_estimators : int, default=100
        Number of trees.
    threshold : float or None, default=None
        With ``surrogate="map"``, labels of at least this are relevant.
    seed : int, default=0
        Seed of the sample of pairs and of the booster.
    **booster_params : object
        Other parameters of the booster, such as ``learning_rate`` or ``num_leaves``.

    Attributes
    ----------
    model_ : object
        The trained regression.
    n_features_in_ : int
        Number of features of an item.
    feature_names_in_ : array of shape (n_features,)
        Names of the columns, if the features had any.

    References
    ----------
    Ramaswamy, Agarwal and Tewari, "Convex calibrated surrogates for low-rank loss matrices with
    applications to subset ranking losses", NIPS 2013.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(600, 2))
    >>> y, qid = np.round(x[:, 0]), np.repeat(np.arange(100), 6)
    >>> model = PairRanker(n_estimators=30, learning_rate=0.3).fit(x, y, qid=qid)
    >>> model.score(x, y, qid=qid) > 0.9
    True
    """

    _requests: ClassVar[Mapping[str, Mapping[str, bool | None]]] = {
        "fit": {"qid": True, "preferences": None},
        "predict": {"qid": True},
        # A pipeline passes sample_weight=None along; actual weights are rejected.
        "score": {"qid": True, "preferences": None, "sample_weight": None},
    }
    _row = "a pair"
    _target = "pair values"

    model_: Fitted

    def __init__(
        self,
        surrogate: str = "disagreement",
        backend: str = "lightgbm",
        decoder: str = "auto",
        *,
        features: PairFeatures = "concatenation",
        pair_budget: int | None = 2000,
        n_estimators: int = 100,
        threshold: float | None = None,
        seed: int = 0,
        **booster_params: Any,
    ) -> None:
        self.surrogate, self.backend, self.decoder = surrogate, backend, decoder
        self.features, self.pair_budget = features, pair_budget
        self.n_estimators, self.threshold, self.seed = n_estimators, threshold, seed
        self._booster_params = booster_params

    def fit(
        self,
        X: ArrayLike,  # noqa: N803
        y: Any = None,
        *,
        qid: ArrayLike | None = None,
        preferences: PreferenceGraphs | None = None,
        **unknown: Any,
    ) -> Self:
        """Train the regression on pairs.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features of items.
        y : array-like of shape (n_rows,) or PreferenceGraphs, optional
            Labels, larger is better; or preferences.
        qid : array-like of shape (n_rows,)
            One query id per row, in any order.
        preferences : PreferenceGraphs, optional
            Instead of labels, for ``surrogate="disagreement"``.
        **unknown : object
            Not supported: any other argument raises; for ``group`` the error shows the ``qid``.

        Returns
        -------
        PairRanker
            The estimator itself.
        """
        reject_unknown(unknown, "PairRanker")
        reject_column_names("PairRanker", y, qid)
        self._check_parameters()
        x, groups = read_rows(X, qid)
        seed = check_seed(self.seed, least=0)  # it also seeds the sample of pairs
        pairs = sample_pairs(groups, self.pair_budget, seed)
        if self.surrogate == "map":
            relevant = self._relevant(y, preferences, groups)
            rows = precision_rows(x, relevant, groups, pairs, self.features)
        else:
            graphs = _read_preferences(y, preferences, groups)
            rows = disagreement_rows(x, graphs, pairs, self.features, seed)
        if not np.any(rows.targets):
            raise DataError(
                f"there is nothing to learn: no query of the {len(x)} samples has a preference "
                "among the sampled pairs; give labels that differ within queries, or a larger "
                "pair_budget"
            )
        self._width = rows.features.shape[1]
        self.model_ = self._regression(*rows)
        self.n_features_in_ = x.shape[1]
        self._keep_names(column_names(X))
        self._learned = (self.surrogate, self.features)
        return self

    @property
    def decoded(self) -> Any:
        """What is fitted and how it is decoded, for :func:`gbmrank.theory.calibration`."""
        check_decoder(self.surrogate, self.decoder)
        theory = importlib.import_module("gbmrank.theory.verdicts.pairs")
        measure = metric("map", threshold=self.threshold).measure
        return theory.Decoded(
            self.surrogate, self.decoder, measure if self.surrogate == "map" else None
        )

    def rank(self, X: ArrayLike, *, qid: ArrayLike | None = None) -> IntArray:  # noqa: N803
        """Return the rank of each row within its query, 1 for the best.

        Rows with equal scores (see :meth:`predict`) keep their order.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features of items.
        qid : array-like of shape (n_rows,), optional
            One query id per row, in any order; without it all rows are one query.
        """
        x, groups = self._read_new(X, qid, single=True)
        return ranks_within(self._places(x, groups), groups)

    def top_k(self, X: ArrayLike, k: int, *, qid: ArrayLike | None = None) -> IntArray:  # noqa: N803
        """Return the row numbers of the k best rows of each query, best first.

        Queries are in order of their first row. ``k`` is the number of rows per query; the other
        parameters are those of :meth:`rank`.
        """
        ranks = self.rank(X, qid=qid)
        return top_rows(ranks, read_queries(qid, len(ranks), single=True), k)

    def predict(self, X: ArrayLike, *, qid: ArrayLike | None = None) -> FloatArray:  # noqa: N803
        """Return a score per row: the number of rows of its query that are ranked below it.

        Rows tie when the model cannot tell them apart: their pair values are equal, with each
        other and with every third row or one with equal features (with ``decoder="diagonal"``,
        when their values on the diagonal are equal). Each counts as half a row below the other,
        so the score is the mean over all orderings of tied rows. The order of the rows in X makes
        no difference: when a decoder could put either of two rows first, their pair values
        decide.

        Parameters are those of :meth:`rank`. Scores are comparable only within a query.

        Examples
        --------
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(600, 2))
        >>> y, qid = np.round(x[:, 0]), np.repeat(np.arange(100), 6)
        >>> model = PairRanker(n_estimators=30, learning_rate=0.3).fit(x, y, qid=qid)
        >>> model.predict([[0.0, 0.0], [0.0, 0.0], [2.0, 0.0], [-2.0, 0.0]], qid=[0, 0, 0, 0])
        array([1.5, 1.5, 3. , 0. ])
        """
        return self._ranked_below(X, qid)

    def pair_values(self, X: ArrayLike, *, qid: ArrayLike | None = None) -> list[FloatArray]:  # noqa: N803
        """Return the matrix of pair values of each query, rows in query order.

        For disagreement it is the estimate of ``A_ij - A_ji``, antisymmetric; for map that of
        ``y_i y_j / P``, symmetric.
        """
        x, groups = self._read_new(X, qid)
        matrices: list[FloatArray] = []
        for first, last, values in self._blocks(x, groups):
            matrices.extend(query_matrices(values, groups.sizes[first:last]))
        return matrices

    def score(
        self,
        X: ArrayLike,  # noqa: N803
        y: Any = None,
        *,
        qid: ArrayLike | None = None,
        preferences: PreferenceGraphs | None = None,
        **unknown: Any,
    ) -> float:
        """Return the quality of the ranking, larger is better; parameters as for :meth:`fit`.

        One minus the pairwise disagreement, or mean average precision; NaN, with a warning that
        says why, if no query counts.
        """
        reject_unknown(unknown, "PairRanker")
        predicted = self.predict(X, qid=qid)
        if self.surrogate == "map":
            _labels_or_preferences(y, None)
            return float(metric("map", threshold=self.threshold).score(y, predicted, qid=qid))
        y, preferences = _labels_or_preferences(y, preferences)
        measure = metric("pairwise_disagreement", preferences=preferences)
        return 1.0 - float(measure.score(y, predicted, qid=qid))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model in the booster's own format, as :meth:`gbmrank.GBMRanker.save` does.

        Raises
        ------
        ConfigError
            When ``features`` is a function, which cannot be in a file.
        """
        self._check_learned()
        if callable(self.features):
            raise ConfigError(
                "features is a function, and no file has code. Use features=concatenation or "
                "difference, or pickle the ranker"
            )
        identity = self._identity_of(self.model_.backend, self.model_.n_rounds)
        self.model_.stamp(identity.to_text())
        write_model(self.model_, path)

    @classmethod
    def from_file(cls, fitted: Fitted, identity: Identity) -> "PairRanker":
        """Return the ranker of a model file; :func:`gbmrank.load` calls it."""
        made = cls(**identity.params)
        made.model_, made.n_features_in_ = fitted, identity.n_features
        parts = 1 if made.features == "difference" else 3
        made._width = parts * identity.n_features + (made.surrogate == "map")
        made._learned = (made.surrogate, made.features)
        made._keep_names(identity.feature_names)
        return made

    def _check_learned(self) -> None:
        self._check_fitted("model_")
        if self._learned != (self.surrogate, self.features):
            raise ConfigError("surrogate or features have changed since training; call fit again")

    def _check_parameters(self) -> None:
        check_decoder(self.surrogate, self.decoder)
        if not callable(self.features) and self.features not in _FEATURES:
            raise ParameterError(
                f"features must be one of {', '.join(_FEATURES)} or a function of two arrays; "
                f"got {self.features!r}"
            )
        if self.features == "difference" and self.surrogate == "map":
            raise ParameterError(
                "surrogate=map needs the features of both items, and their difference is not "
                "enough: use features=concatenation"
            )
        budget = self.pair_budget
        if budget is not None and not (is_whole(budget) and budget >= 1):
            raise ParameterError(
                f"pair_budget must be a whole number of at least 1 or None, got {budget!r}"
            )

    def _relevant(self, y: Any, preferences: PreferenceGraphs | None, groups: Groups) -> FloatArray:
        if preferences is not None or isinstance(y, PreferenceGraphs):
            raise ParameterError(
                "surrogate=map needs relevant items, and preferences do not define them; give "
                "labels, or use surrogate=disagreement"
            )
        return binarise(_read_labels(y, groups), self.threshold, groups)

    def _check_lengths(self, groups: Groups) -> None:
        if groups.longest > MOST_ITEMS:
            raise LimitError(
                f"a query of {groups.longest} items has {groups.longest**2:,} pair values; pair "
                f"models rank up to {MOST_ITEMS} items: rerank the best ones of a GBMRanker"
            )

    def _places(self, x: Matrix, groups: Groups) -> FloatArray:
        places = np.empty(groups.n_rows)
        for first, last, values in self._blocks(x, groups):
            rows = slice(groups.offsets[first], groups.offsets[last])
            sizes = groups.sizes[first:last]
            places[rows] = tied_places(values, sizes, self.surrogate, self.decoder)
        return places

    def _blocks(self, x: Any, groups: Groups) -> Any:
        """Yield runs of queries with their pair values, (anti)symmetric, one after the other."""
        for first, last, left, right in ordered_pairs(groups, _PAIRS_AT_ONCE):
            runs = [slice(at, at + _PAIRS_AT_ONCE) for at in range(0, len(left), _PAIRS_AT_ONCE)]
            made = np.concatenate([self._predict_pairs(x, left[run], right[run]) for run in runs])
            sign = 1.0 if self.surrogate == "map" else -1.0
            matrices = query_matrices(made, groups.sizes[first:last])
            yield first, last, np.concatenate([0.5 * (u + sign * u.T).ravel() for u in matrices])

    def _predict_pairs(self, x: Any, left: IntArray, right: IntArray) -> FloatArray:
        made = pair_features(x, left, right, self.features)
        if self.surrogate == "map":
            made = with_itself(made, left, right)
        if made.shape[1] != self._width:  # XGBoost would accept fewer
            raise DataError(f"features gave {self._width} columns in training, {made.shape[1]} now")
        return self.model_.scores(made)


def _labels_or_preferences(
    y: Any, preferences: PreferenceGraphs | None
) -> tuple[Any, PreferenceGraphs | None]:
    """Return labels and preferences, one of which is None; ``y`` may be preferences."""
    if isinstance(y, PreferenceGraphs) and preferences is None:
        y, preferences = None, y
    if (y is None) == (preferences is None):
        both = "" if y is None else ", not both"
        raise ConfigError(f"give labels (y) or preferences{both}")
    return y, preferences


def _read_labels(y: Any, groups: Groups) -> FloatArray:
    _labels_or_preferences(y, None)
    check_count(y, groups.n_rows)
    return np.asarray(groups.arrange(RankingData.from_arrays(y).labels), np.float64)


def _read_preferences(
    y: Any, preferences: PreferenceGraphs | None, groups: Groups
) -> PreferenceGraphs:
    y, preferences = _labels_or_preferences(y, preferences)
    if preferences is None:
        return PreferenceGraphs(groups, None, _read_labels(y, groups))
    preferences.check_rows(groups)
    return preferences
