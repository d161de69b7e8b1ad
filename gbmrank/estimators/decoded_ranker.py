"""Base of the rankers whose regressions estimate what a decoder turns into an order."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gbmrank.boosters.base import Fitted, Part
from gbmrank.boosters.plan import Native, Plan, train
from gbmrank.boosters.supported import booster_named
from gbmrank.data.queries import Groups, RankingData
from gbmrank.data.schema import Schema, check_names
from gbmrank.data.tables import column_names, read_matrix
from gbmrank.estimators.base import AbstractEstimator, read_queries
from gbmrank.estimators.model_file import Identity
from gbmrank.types import ArrayLike, FloatArray

Matrix = npt.NDArray[Any]
_EVALUATION = "metric eval_at eval_metric early_stopping_round early_stopping_rounds maximize"
_UNUSED = dict.fromkeys(_EVALUATION.split(), "nothing is evaluated during training; leave it out")


def read_rows(X: Any, qid: Any, single: bool = False) -> tuple[Matrix, Groups]:  # noqa: N803
    """Read features into query order."""
    x = read_matrix(X)
    groups = read_queries(qid, len(x), single=single)
    return np.asarray(groups.arrange(x)), groups


class AbstractDecodedRanker(AbstractEstimator, ABC):
    """Base class of rankers that regress on pairs or lists, which are rows without queries."""

    _row: ClassVar[str]  # what a row of the regressions is
    _target: ClassVar[str]  # what they estimate
    backend: str
    n_estimators: int
    seed: int
    n_features_in_: int

    def _regression(self, table: Matrix, targets: FloatArray, weight: Any = None) -> Fitted:
        """Minimise squared error."""
        plan = Plan(
            objective=Native(booster_named(self.backend).squared_error),
            metric=(),
            backend=self.backend,
            rounds=self.n_estimators,
            params=self._booster_params,
            seed=self.seed,
            ranks=False,
            columns=Schema(table.shape[1]),
            names={"rounds": "n_estimators", "features": self._row},
            hints={
                "objective": f"{self._target} are conditional means, which need squared error",
                **_UNUSED,
            },
        )
        data = RankingData.from_arrays(targets, group=[len(targets)], weight=weight)
        return train(plan, Part(table, data)).fitted

    @abstractmethod
    def _check_learned(self) -> None:
        """Raise unless the ranker is trained, with the parameters that it has now."""

    @abstractmethod
    def _check_lengths(self, groups: Groups) -> None:
        """Raise for queries that cannot be decoded."""

    @abstractmethod
    def _places(self, x: Matrix, groups: Groups) -> FloatArray:
        """Return the place of each row in its query, from 0, in query order."""

    def _read_new(self, X: Any, qid: Any, single: bool = False) -> tuple[Matrix, Groups]:  # noqa: N803
        """Read rows that have the columns of the training data."""
        self._check_learned()
        x, groups = read_rows(X, qid, single)
        Schema(self.n_features_in_).check_count(x, "X", type(self).__name__)
        check_names("X", column_names(X), self._names_in())
        self._check_lengths(groups)
        return x, groups

    def _ranked_below(self, X: ArrayLike, qid: ArrayLike | None) -> FloatArray:  # noqa: N803
        """Return the number of rows of its query that are ranked below each row."""
        x, groups = self._read_new(X, qid)
        below = groups.spread(groups.sizes) - 1.0 - self._places(x, groups)
        return np.asarray(groups.restore(below), np.float64)

    def _names_in(self) -> list[str] | None:
        names = vars(self).get("feature_names_in_")
        return None if names is None else list(names)

    def _identity_of(self, backend: str, rounds: int, **more: Any) -> Identity:
        """Return the metadata of a model file."""
        return Identity(
            ranker=type(self).__name__,
            backend=backend,
            objective=booster_named(backend).squared_error,
            best_iteration=rounds - 1,
            n_features=self.n_features_in_,
            feature_names=self._names_in(),
            **{"metric": "", "params": self.get_params(deep=False), **more},
        )
