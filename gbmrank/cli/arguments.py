"""Parse and validate values on the command line: numbers (ASCII digits only) and names."""

import argparse
import contextlib
import math
import re
from collections.abc import Sequence
from typing import Any

from gbmrank.api.committees import Committee
from gbmrank.boosters.plan import PREFIX, near_native
from gbmrank.data.readers import ROW_FORMATS, FileOptions, Header, Limits
from gbmrank.data.readers.text import to_number
from gbmrank.errors import ConfigError, GbmrankError, PluginError, UnknownNameError
from gbmrank.registry.catalogue import GENERATORS, LOSSES, OBJECTIVES, Registry
from gbmrank.registry.composition import build

_TEMPLATES = ("pairwise", "pointwise", "bregman", "comparison")
DELIMITER_HELP = r"separator of a CSV file, such as '\t' (default: by its first line)"
_WHOLE = re.compile(r"[-+]?\d+", re.ASCII)


def whole(text: str) -> int:
    """Read a whole number, as an option or a part of one."""
    if not _WHOLE.fullmatch(text.strip()):
        raise argparse.ArgumentTypeError(f"a whole number is needed, such as 10; got {text!r}")
    return int(text)


def number(text: str) -> float:
    """Read a number, as an option or a part of one."""
    value = to_number(text.strip())
    if value is None or not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"a number is needed, such as 0.5; got {text!r}")
    return value


def character(text: str) -> str:
    r"""Read one character; a tab may be written as ``\t``.

    >>> character(r"\t"), character(";")
    ('\t', ';')
    """
    text = text.replace("\\t", "\t")
    if len(text) != 1:
        raise argparse.ArgumentTypeError(f"one character is needed, got {text!r}")
    return text


def read_value(text: str) -> bool | int | float | str:
    """Parse the value of a booster parameter: a bool, an int, a float, or else a string.

    >>> read_value("0.05"), read_value("true"), read_value("7"), read_value("dart")
    (0.05, True, 7, 'dart')
    """
    plain = text.strip()
    if plain.lower() in ("true", "false"):
        return plain.lower() == "true"
    for read in (whole, number):
        with contextlib.suppress(argparse.ArgumentTypeError):
            return read(plain)
    return text


def option(group: Any, usage: str, about: str, **how: Any) -> None:
    """Declare an argument by its usage, such as ``--out FILE``; without a value it is a switch."""
    name, _, metavar = usage.partition(" ")
    kind = {"metavar": metavar} if metavar else {"action": "store_true"}
    group.add_argument(name, help=about, **kind, **how)


def add_columns(group: Any) -> None:
    """Declare the options that say how files of rows are read."""
    option(group, "--label-column NAME", "column of the label")
    option(group, "--qid-column NAME", "column of the query id")
    feature = (
        "feature column (an index in LETOR files), or a pattern such as 'bm25_*'; may be repeated "
        "(default: all but ids, scores of models, and text of many values)"
    )
    option(group, "--feature NAME", feature, action="append")
    drop = "column to leave out, or a pattern; may be repeated"
    option(group, "--drop NAME", drop, action="append", default=[])
    option(group, "--delimiter CHAR", DELIMITER_HELP, type=character)
    option(group, "--weight NAME", "column of weights, one per query or per row")
    group.add_argument("--format", choices=ROW_FORMATS, help="default: by name and first line")
    option(group, "--zero-based", "LETOR: indices count from 0")


def add_format(group: Any, labels: str = "column of the labels, which are not used") -> None:
    """Declare the options of a command that reads the rows of a model."""
    option(group, "--label-column NAME", labels)
    option(group, "--qid-column NAME", "column of the query ids")
    group.add_argument("--format", choices=ROW_FORMATS, help="format of DATA (default: guessed)")


def file_options(
    given: argparse.Namespace, limits: Limits | None = None, **columns: Any
) -> FileOptions:
    """Return how files are read, by the options of :func:`add_columns`.

    The weight is a further column of a comparison, which may be a file or an array.
    """
    named = {"label": given.label_column, "qid": given.qid_column, "features": given.feature}
    return FileOptions(
        form=given.format,
        columns=Header(**named, drop=given.drop, **columns),
        delimiter=given.delimiter,
        zero_based=given.zero_based,
        limits=limits or Limits(),
    )


def booster_parameters(texts: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of a booster that are given as NAME=VALUE.

    >>> booster_parameters(["num_leaves=31", "boosting=dart"])
    {'num_leaves': 31, 'boosting': 'dart'}
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name.isidentifier() or not value.strip() or name in found:
            why = " and is given twice" if name in found else ""
            raise ConfigError(f"--param {text}: the form is learning_rate=0.05 for example{why}")
        found[name] = read_value(value)
    return found


def check_not_native(name: str) -> None:
    """Reject native objectives and committees, which have no formula and no verdict."""
    if name.strip() == Committee.name or name.strip().startswith(f"{Committee.name}("):
        raise UnknownNameError(
            f"{name} averages several models and is not one loss; train it with gbmrank compare "
            "--objectives or GBMRanker(objective=...)"
        )
    bare = name.strip().removeprefix(PREFIX)
    native = near_native(bare, cutoff=1.0)
    if name.strip().startswith(PREFIX) or (native is not None and name.strip() not in OBJECTIVES):
        own = f". {bare} without {PREFIX} is gbmrank's own" if bare in OBJECTIVES else ""
        raise UnknownNameError(
            f"{name} is an objective of a booster; gbmrank has no formula for it, so no verdict. "
            f"It can be trained as {native or name}: gbmrank compare --objectives, "
            f"GBMRanker(objective=...){own}"
        )


def is_registered(registry: Registry[Any], text: str) -> bool:
    """Whether a text begins with a registered name, which may be ``distribution:name``.

    >>> is_registered(LOSSES, "gbmrank:logistic(sigma=2)"), is_registered(LOSSES, "ndcg@10")
    (True, False)
    """
    name = re.split(r"[(@]", text, maxsplit=1)[0].strip()
    if ":" not in name:
        return name in registry
    try:
        registry.get(name)
    except UnknownNameError:
        return False
    except PluginError:  # registered, and broken, which is said where it is used
        return True
    return True


def check_no_loss(name: str) -> None:
    """Reject a loss where an objective is needed, and say which objective has it."""
    losses = is_registered(LOSSES, name) or is_registered(GENERATORS, name)
    if is_registered(OBJECTIVES, name) or not losses:
        return
    found = objective_with(name.strip())
    hint = "" if found is None else f"; try {found}"
    raise UnknownNameError(f"{name} is a loss, and an objective is needed{hint}")


def objective_with(loss: str) -> str | None:
    """Return the text of an objective that takes a loss, or None.

    >>> objective_with("logistic")
    'pairwise(loss=logistic)'
    """
    for template in _TEMPLATES:
        text = f"{template}(loss={loss})"
        with contextlib.suppress(GbmrankError):
            build(OBJECTIVES, text)
            return text
    return None
