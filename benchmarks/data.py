"""Data of the size and shape of MSLR-WEB10K, made up."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_LABEL_SHARES = (0.52, 0.32, 0.13, 0.02, 0.01)  # of MSLR-WEB10K
_MEAN_SIZE, _SIZE_DEVIATION = 120.0, 59.0
_INFORMATIVE = 20


@dataclass(frozen=True, slots=True)
class RankingSample:
    """Features, labels and query sizes, with scores of a half-trained model."""

    features: npt.NDArray[np.float32]
    labels: npt.NDArray[np.float32]
    sizes: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]

    @property
    def pairs(self) -> float:
        """Unordered pairs of items, summed over queries."""
        return float((self.sizes * (self.sizes - 1.0) / 2.0).sum())

    def __str__(self) -> str:
        return (
            f"{len(self.sizes):,} queries, {len(self.labels):,} rows, "
            f"{self.features.shape[1]} features, {self.pairs / 1e6:.1f} million pairs"
        )


def mslr_like(n_queries: int, n_features: int = 136, seed: int = 0) -> RankingSample:
    """Draw queries of about 120 rows with the label shares of MSLR-WEB10K, 20 features or more."""
    rng = np.random.default_rng(seed)
    shape = (_MEAN_SIZE / _SIZE_DEVIATION) ** 2
    sizes = np.maximum(rng.gamma(shape, _MEAN_SIZE / shape, n_queries).astype(np.int64), 1)
    features = rng.standard_normal((int(sizes.sum()), n_features), dtype=np.float32)
    features[:, 1::4] = np.exp(features[:, 1::4])  # skewed, as word counts and lengths are
    features[:, 2::4] = np.maximum(np.round(2 * features[:, 2::4]), 0)  # few values, many zeros
    signal = features[:, :_INFORMATIVE] @ rng.normal(0.0, 0.4, _INFORMATIVE).astype(np.float32)
    relevance = signal / signal.std() + rng.standard_normal(len(signal))
    limits = np.quantile(relevance, np.cumsum(_LABEL_SHARES)[:-1])
    labels = np.searchsorted(limits, relevance).astype(np.float32)
    scores = 1.5 * signal / signal.std() + 0.3 * rng.standard_normal(len(signal))
    return RankingSample(features, labels, sizes, scores.astype(np.float64))


def one_query(n_rows: int, seed: int = 0) -> RankingSample:
    """Draw one query of this many rows, with one feature."""
    rng = np.random.default_rng(seed)
    scores = 1.5 * rng.standard_normal(n_rows)
    limits = np.quantile(scores, np.cumsum(_LABEL_SHARES)[:-1])
    labels = np.searchsorted(limits, scores + rng.standard_normal(n_rows)).astype(np.float32)
    features = rng.integers(0, 2, (n_rows, 1)).astype(np.float32)
    return RankingSample(features, labels, np.array([n_rows]), scores)
