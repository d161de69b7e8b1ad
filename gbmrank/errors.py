"""Every error and warning gbmrank raises.

A message says what was given, what is allowed and what to do. Each class is also the
built-in exception a caller would expect, so ``except ValueError`` keeps working::

    GbmrankError
    ├── DataError (ValueError)            labels, scores or their shapes
    │   ├── GroupError                    query sizes or query ids
    │   ├── WeightError                   weights
    │   ├── LabelRangeError               labels outside what a gain or a measure takes
    │   └── ParseError                    a place in a file that cannot be read
    ├── SpecError (ValueError)            the text form ``name(key=value)@k``
    ├── ParameterError (ValueError)       a parameter of an objective, loss or metric
    │   ├── MetricError                   a metric's name, cut-off or option
    │   └── ConfigError                   settings of a booster or of a run
    │       └── NotFittedError            an estimator that is not trained yet; scikit-learn's too
    ├── NumericError (ArithmeticError)    a gradient or Hessian that is not finite
    ├── LimitError (ValueError)           more work or memory than a stated cap
    ├── UnknownNameError (LookupError)    a name that is not registered
    ├── RegistrationError (ValueError)    a name taken twice, or not a name
    ├── PluginError (ImportError)         a plugin that does not load
    │   └── PluginContractError           a plugin that breaks its contract
    │       └── PluginNumericError        its gradient is NaN; a NumericError too
    ├── WorkerLostError (RuntimeError)    a worker died during distributed training
    └── MissingPackageError (ImportError) an optional package
        └── MissingBackendError           lightgbm or xgboost

    GbmrankWarning (UserWarning)
    ├── CalibrationWarning                a loss that is wrong for the metric it is judged by
    ├── NoProgressWarning                 a constant model, or no tree grown
    └── LeakageWarning                    a query in training and in validation
"""

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


class GbmrankError(Exception):
    """Base of every error raised by gbmrank."""


class DataError(GbmrankError, ValueError):
    """Labels, scores or their shapes are not usable."""


class GroupError(DataError):
    """Query sizes or query ids do not describe the rows."""


class WeightError(DataError):
    """Weights have the wrong length or hold values that are not weights."""


class LabelRangeError(DataError):
    """A label lies outside what a gain or a measure is defined for."""


class ParseError(DataError):
    """A file cannot be read; the message begins with file, line and column."""


class SpecError(GbmrankError, ValueError):
    """A text such as ``ndcg@10`` or ``pairwise(loss=logistic)`` cannot be read."""


class ParameterError(GbmrankError, ValueError):
    """A parameter of an objective, a loss or a metric is not allowed."""


class MetricError(ParameterError):
    """A metric's name, cut-off or option is not allowed."""


class ConfigError(ParameterError):
    """Settings of a booster or of a run contradict each other."""


class NotFittedError(ConfigError, AttributeError):
    """An estimator is not trained yet.

    Where scikit-learn is in use, it is also ``sklearn.exceptions.NotFittedError``.
    """


class NumericError(GbmrankError, ArithmeticError):
    """A gradient or Hessian is not finite.

    Attributes
    ----------
    model : object or None
        The model of the rounds before, where gbmrank ran the training.
    """

    model: object = None


class LimitError(GbmrankError, ValueError):
    """The request needs more work or memory than a stated cap."""


class UnknownNameError(GbmrankError, LookupError):
    """No registered entry has this name."""


class RegistrationError(GbmrankError, ValueError):
    """A name is taken twice or is not a valid name."""


class PluginError(GbmrankError, ImportError):
    """A plugin could not be loaded; its own exception is the cause."""


class PluginContractError(PluginError):
    """A plugin was loaded and breaks the contract of its kind."""


class PluginNumericError(PluginContractError, NumericError):
    """A plugin gave a gradient or Hessian that is not a number."""


class WorkerLostError(GbmrankError, RuntimeError):
    """A worker died during distributed training; there is no result."""


class MissingPackageError(GbmrankError, ImportError):
    """An optional package is not installed; the message names the extra."""


class MissingBackendError(MissingPackageError):
    """A booster is not installed or is too old."""


class GbmrankWarning(UserWarning):
    """Base of every warning issued by gbmrank."""


class CalibrationWarning(GbmrankWarning):
    """Minimising the loss does not maximise the metric, on some distribution."""


class NoProgressWarning(GbmrankWarning):
    """Training ended with a constant model or without a tree."""


class LeakageWarning(GbmrankWarning):
    """The same query is used for training and for validation."""
