"""The conformance kit: all checks of a kind on one loss, objective or metric."""

import contextlib
import functools
import warnings
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from gbmrank.errors import GbmrankWarning, ParameterError
from gbmrank.testing.checks import (
    Check,
    ConformanceError,
    LossSubject,
    MetricSubject,
    ObjectiveSubject,
    Report,
    Result,
    SkipCheck,
    kind_of,
)
from gbmrank.testing.loss_checks import LOSS_CHECKS
from gbmrank.testing.metric_checks import METRIC_CHECKS
from gbmrank.testing.objective_checks import OBJECTIVE_CHECKS

CHECKS: Mapping[str, tuple[Check, ...]] = MappingProxyType(
    {"loss": LOSS_CHECKS, "objective": OBJECTIVE_CHECKS, "metric": METRIC_CHECKS}
)
"""All checks by kind."""

_NONE: Mapping[str, str] = MappingProxyType({})


def list_checks(kind: str) -> dict[str, str]:
    """Return the names of the checks of a kind, with a description of each.

    Parameters
    ----------
    kind : {"loss", "objective", "metric"}
        Kind of the subject.

    Returns
    -------
    dict of str to str
        Description by name.

    Examples
    --------
    >>> list_checks("objective")["weights"]
    'weights of queries multiply'
    """
    return {check.name: check.about for check in CHECKS[kind]}


def check_loss(loss: Any, *, expected_failures: Mapping[str, str] = _NONE) -> Report:
    """Run all checks on a loss.

    Parameters
    ----------
    loss : AbstractLoss, type, function or str
        An object, a class with defaults, a scalar function, or text such as
        ``"logistic(sigma=2)"``.
    expected_failures : mapping of str to str
        Names of checks that are known to fail, with the reason of each. If one of them passes,
        that is a failure, so that the list stays up to date.

    Returns
    -------
    Report
        Results of all checks, if none failed.

    Raises
    ------
    ConformanceError
        If a check failed; an AssertionError with the whole report as its text.

    Examples
    --------
    >>> def lopsided(z):
    ...     return z * z - z, 2.0 * z + 1.0, 2.0
    >>> check_loss(lopsided)
    Traceback (most recent call last):
    gbmrank.testing.checks.ConformanceError: loss lopsided(): ...
      ...
    """
    return run_checks(loss, kind="loss", expected_failures=expected_failures).raise_for_failures()


def check_objective(
    objective: Any, *, grades: Any = None, expected_failures: Mapping[str, str] = _NONE
) -> Report:
    """Run all checks on an objective.

    Parameters
    ----------
    objective : Objective, AbstractObjective, type or str
        The objective.
    grades : sequence of float, optional
        Labels to use; by default 0 to 4 if supported, else 0 and 1.
    expected_failures : mapping of str to str
        As in :func:`check_loss`.

    Returns
    -------
    Report
        Results of all checks, if none failed; otherwise ConformanceError is raised.
    """
    return run_checks(
        objective, kind="objective", grades=grades, expected_failures=expected_failures
    ).raise_for_failures()


def check_metric(
    metric: Any, *, grades: Any = None, expected_failures: Mapping[str, str] = _NONE
) -> Report:
    """Run all checks on a metric; parameters as for :func:`check_objective`."""
    return run_checks(
        metric, kind="metric", grades=grades, expected_failures=expected_failures
    ).raise_for_failures()


def run_checks(
    subject: Any,
    *,
    kind: str | None = None,
    grades: Any = None,
    expected_failures: Mapping[str, str] = _NONE,
) -> Report:
    """Run all checks and return the report, also if checks failed.

    Parameters
    ----------
    subject : object
        A loss, an objective or a metric in any form.
    kind : {"loss", "objective", "metric"}, optional
        Needed for a name that is ambiguous.
    grades : sequence of float, optional
        Labels to use.
    expected_failures : mapping of str to str
        Names of checks that are known to fail, with their reasons.

    Returns
    -------
    Report
        Results of all checks.
    """
    kind = kind or kind_of(subject)
    _check_names(kind, expected_failures)
    with _without_warnings_of_losses():
        ready = _read(kind, subject, grades)
        results = tuple(_result(check, ready, expected_failures) for check in CHECKS[kind])
    return Report(kind, _shown(ready), results)


def parametrize_checks(
    *subjects: Any,
    kind: str | None = None,
    grades: Any = None,
    expected_failures: Mapping[str, str] = _NONE,
) -> Any:
    """Return a decorator that parametrizes a pytest test with every check of every subject.

    The test takes one argument, ``check``, and calls it. Parameters are those of
    :func:`run_checks`.

    Examples
    --------
    >>> @parametrize_checks("logistic", "ndcg@5")
    ... def test_contract(check):
    ...     check()
    """
    import pytest

    cases = []
    for subject in subjects:
        found = kind or kind_of(subject)
        _check_names(found, expected_failures)
        name = getattr(subject, "__name__", subject)
        for check in CHECKS[found]:
            case = functools.partial(_run, found, subject, grades, check, expected_failures)
            cases.append(pytest.param(case, id=f"{name}-{check.name}"))
    return pytest.mark.parametrize("check", cases)


def _run(kind: str, subject: Any, grades: Any, check: Check, expected: Mapping[str, str]) -> None:
    """Run one check of one subject as a test, which passes, fails, skips or xfails."""
    import pytest

    with _without_warnings_of_losses():
        ready = _read(kind, subject, grades)
        result = _result(check, ready, expected)
    if result.outcome == "failed":
        raise ConformanceError(f"{kind} {_shown(ready)}: {result}")
    if result.outcome == "skipped":
        pytest.skip(result.message)
    if result.outcome == "expected":
        pytest.xfail(result.message)


@contextlib.contextmanager
def _without_warnings_of_losses() -> Iterator[None]:
    """Suppress the warning about losses of the wrong direction, which a check reports."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the loss .* grows with the margin", GbmrankWarning)
        yield


def _read(kind: str, subject: Any, grades: Any) -> Any:
    if kind == "loss":
        return LossSubject.read(subject)
    reader = ObjectiveSubject if kind == "objective" else MetricSubject
    return reader.read(subject, grades)


def _shown(subject: Any) -> str:
    try:
        return str(subject)
    except Exception:  # the check "spec" tests its text
        return f"(a {type(subject).__name__} without text)"


def _result(check: Check, subject: Any, expected: Mapping[str, str]) -> Result:
    reason = expected.get(check.name)
    try:
        check.run(subject)
    except SkipCheck as skip:
        return Result(check.name, "skipped", str(skip))
    except (Exception, SystemExit) as error:
        text = str(error) if isinstance(error, AssertionError) else repr(error)
        if reason is not None:
            return Result(check.name, "expected", reason)
        return Result(check.name, "failed", f"{text}\n(required: {check.about})")
    if reason is not None:
        return Result(check.name, "failed", f"passes, but is expected to fail: {reason}")
    return Result(check.name, "passed")


def _check_names(kind: str, expected: Mapping[str, str]) -> None:
    known = [check.name for check in CHECKS[kind]]
    unknown = sorted(expected.keys() - set(known))
    if unknown:
        raise ParameterError(
            f"there is no check {unknown[0]!r} of a {kind}; there are {', '.join(known)}"
        )
