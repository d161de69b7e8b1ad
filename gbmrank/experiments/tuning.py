"""A few settings of a booster tried on the queries that are watched, before judging."""

import importlib
from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from gbmrank.errors import MissingPackageError

__all__ = ["SPACES", "Range", "best_of", "candidates", "check_tuner"]

T = TypeVar("T")


class Range(NamedTuple):
    """Values between two bounds, even on the scale of logarithms."""

    low: float
    high: float
    whole: bool = False

    def at(self, share: float) -> float:
        """Return the value at a share of the way, from 0 to 1.

        Examples
        --------
        >>> Range(1.0, 100.0).at(0.5), Range(2, 32, whole=True).at(1.0)
        (10.0, 32)
        """
        value = min(self.low * (self.high / self.low) ** share, self.high)
        return round(value) if self.whole else value


SPACES: Mapping[str, Mapping[str, Range]] = {
    "lightgbm": {
        "learning_rate": Range(0.02, 0.3),
        "num_leaves": Range(4, 128, whole=True),
        "min_data_in_leaf": Range(5, 100, whole=True),
        "lambda_l2": Range(1e-3, 10.0),
    },
    "xgboost": {
        "learning_rate": Range(0.02, 0.3),
        "max_depth": Range(2, 10, whole=True),
        "min_child_weight": Range(1e-3, 10.0),
        "reg_lambda": Range(1e-2, 10.0),
    },
}
"""What is searched, by booster; parameters that were asked for stay as they are."""
_ALIASES: Mapping[str, tuple[str, ...]] = {
    "learning_rate": ("eta", "shrinkage_rate"),
    "num_leaves": ("num_leaf", "max_leaves", "max_leaf", "max_leaf_nodes"),
    "min_data_in_leaf": ("min_child_samples", "min_data", "min_data_per_leaf", "min_samples_leaf"),
    "lambda_l2": ("reg_lambda", "lambda", "l2_regularization"),
    "reg_lambda": ("lambda",),
}
Candidates: TypeAlias = Generator[dict[str, Any], float, None]


def candidates(
    backend: str, asked: Mapping[str, Any], *, budget: int, tuner: str, stream: tuple[int, ...]
) -> Candidates:
    """Yield settings to try; send back the value of each, larger is better.

    The first is empty: the parameters as they were asked for. Every objective gets the same
    number, and with ``random`` the same draws.

    Parameters
    ----------
    backend : str
        The booster.
    asked : mapping
        Parameters that are not to be changed.
    budget : int
        How many settings.
    tuner : {"random", "optuna"}
        How they are drawn.
    stream : tuple of int
        Seed and fold: where the random numbers come from.
    """
    space = {
        name: bounds
        for name, bounds in SPACES[backend].items()
        if not asked.keys() & {name, *_ALIASES.get(name, ())}
    }
    return (_random if tuner == "random" else _optuna)(space, budget, stream)


def best_of(tried: Candidates, attempt: Callable[[dict[str, Any]], tuple[float, T]]) -> T:
    """Try settings one after the other and return the result with the largest value.

    Parameters
    ----------
    tried : generator
        As :func:`candidates` gives it.
    attempt : callable
        Returns the value of settings, larger is better, and the result to keep. The first of
        equal ones is kept.
    """
    best_value, best = attempt(next(tried))
    value = best_value
    while True:
        try:
            settings = tried.send(value)
        except StopIteration:
            return best
        value, result = attempt(settings)
        if value > best_value:
            best_value, best = value, result


def check_tuner(tuner: str) -> None:
    """Raise when a tuner's package is not installed."""
    if tuner == "optuna":
        _imported()


def _random(space: Mapping[str, Range], budget: int, stream: tuple[int, ...]) -> Candidates:
    rng = np.random.default_rng([*stream, 2])
    yield {}
    for _ in range(budget - 1 if space else 0):
        shares = rng.random(len(space))
        yield {
            name: bounds.at(float(share))
            for (name, bounds), share in zip(space.items(), shares, strict=True)
        }


def _optuna(space: Mapping[str, Range], budget: int, stream: tuple[int, ...]) -> Candidates:
    optuna = _imported()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seed = int(np.random.default_rng([*stream, 2]).integers(2**31))
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=max(budget // 3, 1))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    yield {}
    for _ in range(budget - 1 if space else 0):
        trial = study.ask()
        tried = {name: _suggested(trial, name, bounds) for name, bounds in space.items()}
        value = yield tried
        study.tell(trial, value)


def _suggested(trial: Any, name: str, bounds: Range) -> float:
    if bounds.whole:
        return int(trial.suggest_int(name, int(bounds.low), int(bounds.high), log=True))
    return float(trial.suggest_float(name, bounds.low, bounds.high, log=True))


def _imported() -> Any:
    try:
        optuna = importlib.import_module("optuna")
    except ImportError as error:
        raise MissingPackageError(
            "tuner=optuna needs optuna: pip install optuna, or use tuner=random"
        ) from error
    return optuna
