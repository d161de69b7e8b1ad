"""``gbmrank clicks``: whether a click log identifies examination, and how to train on it."""

import argparse

import numpy as np

from gbmrank.cli.arguments import option
from gbmrank.cli.screen import clean, filled, show, table
from gbmrank.clicks import ClickDiagnosis, diagnose
from gbmrank.data.readers import FileOptions, Header, guess_format, read_rows
from gbmrank.data.readers.text import quoted
from gbmrank.errors import ConfigError

_ROLES = ("clicks", "position", "query", "item", "session")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    option(parser, "log LOG", "CSV or Parquet, one row per item shown")
    for role in _ROLES:
        option(parser, f"--{role} NAME", f"column of {role} (default: {role})", default=role)
    option(parser, "--plot FILE", "write a picture of the positions")


def run(given: argparse.Namespace) -> int:
    """Read the log, diagnose it, print."""
    form = guess_format(given.log)
    if form not in ("csv", "parquet"):
        raise ConfigError(f"{quoted(given.log)} is not CSV or Parquet, which have named columns")
    # The role "time" is the one whose cells may be any text.
    columns = {"position": given.position, "time": given.session}
    header = Header(label=given.clicks, qid=given.query, docid=given.item, columns=columns)
    file = read_rows(given.log, FileOptions(form=form, columns=header))
    ids = [
        np.array([str(one) or None for one in np.asarray(column).tolist()], dtype=object)
        for column in (file.qid, file.ids, file.columns["time"])
    ]
    rows = [file.labels, file.columns["position"], *ids]
    found = diagnose(dict(zip(_ROLES, rows, strict=True)))
    if given.plot is not None:
        found.plot().figure.savefig(given.plot)
    return show(given, found.to_dict(), clean(_as_text(found)))


def _as_text(found: ClickDiagnosis) -> str:
    """Return a table of positions, and the sentences."""
    examined = ["-"] * len(found.shown)
    if found.bias is not None:
        examined = [f"{theta:.3f}" for theta in found.bias.propensity]
    rows = [
        (k + 1, found.shown[k], f"{found.click_rate[k]:.3f}", f"{found.overlap[k]:.0%}",
         f"{found.effective_clicks[k]:.0f}", examined[k])
        for k in range(len(found.shown))
    ]  # fmt: skip
    head = ["position", "shown", "click rate", "shown elsewhere", "effective clicks", "examination"]
    return "\n".join([table(head, rows, ">>>>>>"), "", *map(filled, found.sentences())])
