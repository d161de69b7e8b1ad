"""Every error and warning gbmrank raises.

A message says what was given, what is allowed and what to do. Each class is also the
built-in exception a caller would expect, so ``except ValueError`` keeps working::

    GbmrankError
    ├── DataError (ValueError)            labels, scores or their shapes
    │   ├── GroupError                    query sizes or query ids
    │   ├── WeightError                   weights
    │   ├── LabelRangeError               labels outside the range of a gain or a metric
    │   └── ParseError                    a place in a file that cannot be read
    ├── SpecError (ValueError)            the text form ``name(key=value)@k``
    ├── ParameterError (ValueError)       a parameter of an objective, loss or metric
    │   ├── MetricError                   a metric's name, cut-off or option
    │   └── ConfigError                   settings of a booster or of a run
    │       └── NotFittedError            an estimator that is not trained yet; scikit-learn's too
    ├── NumericError (ArithmeticError)    a gradient or Hessian that is not finite
    ├── LimitError (ValueError)           more work or memory than a limit allows
    ├── UnknownNameError (LookupError)    a name that is not registered
    ├── RegistrationError (ValueError)    a name taken twice, or not a name
    ├── PluginError (ImportError)         a plugin that does not load
    │   └── PluginContractError           a plugin that violates the plugin contract
    │       └── PluginNumericError        its gradient is NaN; a NumericError too
    ├── WorkerLostError (RuntimeError)    a worker died during distributed training
    └── MissingPackageError (ImportError) an optional package
        └── MissingBackendError           lightgbm or xgboost

    GbmrankWarning (UserWarning)
    ├── CalibrationWarning                a loss that is not calibrated for the target metric
    ├── NoProgressWarning                 a constant model, or no tree grown
    └── LeakageWarning                    a query in training and in validation
"""

import contextlib
import importlib
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

__all__ = [
    "CalibrationWarning",
    "ConfigError",
    "DataError",
    "GbmrankError",
    "GbmrankWarning",
    "GroupError",
    "LabelRangeError",
    "LeakageWarning",
    "LimitError",
    "MetricError",
    "MissingBackendError",
    "MissingPackageError",
    "NoProgressWarning",
    "NotFittedError",
    "NumericError",
    "ParameterError",
    "ParseError",
    "PluginContractError",
    "PluginError",
    "PluginNumericError",
    "RegistrationError",
    "SpecError",
    "UnknownNameError",
    "WeightError",
    "WorkerLostError",
]


NEEDS_MATPLOTLIB = "plots need matplotlib: pip install 'gbmrank[report]'"


class GbmrankError(Exception):
    """Base of every error raised by gbmrank."""


class DataError(GbmrankError, ValueError):
    """Labels, scores or their shapes are not usable."""


class GroupError(DataError):
    """Query sizes or query ids do not describe the rows."""


class WeightError(DataError):
    """Weights have the wrong length or contain an invalid value."""


class LabelRangeError(DataError):
    """A label is outside the range a gain or a metric is defined for."""


class ParseError(DataError):
    """A file cannot be read; the message begins with file, line and column."""


class SpecError(GbmrankError, ValueError):
    """A spec such as ``ndcg@10`` or ``pairwise(loss=logistic)`` cannot be parsed."""


class ParameterError(GbmrankError, ValueError):
    """A parameter of an objective, a loss or a metric has an invalid value."""


class MetricError(ParameterError):
    """A metric's name, cut-off or option is invalid."""


class ConfigError(ParameterError):
    """Settings of a booster or of a run contradict each other."""


class NotFittedError(ConfigError, AttributeError):
    """An estimator is not trained yet.

    If scikit-learn is imported, it is also a ``sklearn.exceptions.NotFittedError``.
    """


class NumericError(GbmrankError, ArithmeticError):
    """A gradient or Hessian is not finite.

    Attributes
    ----------
    model : object or None
        The model after the last good round, if gbmrank ran the training.
    """

    model: object = None


class LimitError(GbmrankError, ValueError):
    """The request needs more work or memory than a documented limit allows."""


class UnknownNameError(GbmrankError, LookupError):
    """No registered entry has this name."""


class RegistrationError(GbmrankError, ValueError):
    """A name is taken twice or is not a valid name."""


class PluginError(GbmrankError, ImportError):
    """A plugin could not be loaded; ``__cause__`` is the plugin's exception."""


class PluginContractError(PluginError):
    """A plugin was loaded but violates the plugin contract."""


class PluginNumericError(PluginContractError, NumericError):
    """A plugin returned a gradient or Hessian that is NaN."""


class WorkerLostError(GbmrankError, RuntimeError):
    """A worker died during distributed training; there is no result."""


class MissingPackageError(GbmrankError, ImportError):
    """An optional package is not installed; the message names the extra."""


class MissingBackendError(MissingPackageError):
    """A booster is not installed or is too old."""


class GbmrankWarning(UserWarning):
    """Base of every warning issued by gbmrank."""


class CalibrationWarning(GbmrankWarning):
    """For some distribution, minimising the loss does not maximise the metric."""


class NoProgressWarning(GbmrankWarning):
    """Training ended with a constant model or without a tree."""


class LeakageWarning(GbmrankWarning):
    """The same query is used for training and for validation."""


_PATIENCE = 5.0  # with the code of a plugin, in seconds
_PASSED = ("gbmrank.", "lightgbm.", "xgboost.")  # boosters call objectives and metrics


def import_optional(module: str, missing: str) -> Any:
    """Import a module of an optional package, or raise MissingPackageError with this message."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPackageError(missing) from error


def warn(message: str, category: type[GbmrankWarning]) -> None:
    """Issue a warning that points at the user's line: the first one outside of these packages."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(_PASSED):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextlib.contextmanager
def waiting_for(what: str) -> Iterator[None]:
    """Log as a warning, thus on standard error, what is checked if it takes many seconds."""
    line = "gbmrank is still checking %s, after %g s; Ctrl-C stops it"
    log = logging.getLogger("gbmrank").warning
    timer = threading.Timer(_PATIENCE, log, (line, what, _PATIENCE))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
