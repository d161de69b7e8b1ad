"""``gbmrank distil``: one small model that ranks like a large one."""

import argparse
from dataclasses import replace
from typing import Any

from gbmrank.cli.arguments import add_format, option, whole
from gbmrank.cli.models import ModelFile
from gbmrank.cli.screen import clean, show
from gbmrank.data.readers import FileOptions, read_rows
from gbmrank.data.readers.text import RankingFile, quoted
from gbmrank.errors import ConfigError, DataError
from gbmrank.estimators import GBMRanker, distil
from gbmrank.estimators.distillation import rounds_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    option(parser, "model MODEL", "model file of LightGBM or XGBoost")
    option(parser, "data DATA", "LETOR text, CSV or Parquet, with query ids")
    option(parser, "--out FILE", "file of the small model", required=True)
    option(parser, "--rounds N", "trees (default: a quarter of the model's)", type=whole)
    option(parser, "--test FILE", "labelled rows that say what is lost")
    add_format(parser, "column of the labels")


def run(given: argparse.Namespace) -> int:
    """Read the model and the rows, train the student, write it, say how it differs."""
    model = ModelFile.read(given.model)
    teacher, fitted = model.model, model.fitted
    if teacher is not fitted.booster and not isinstance(teacher, GBMRanker):
        raise ConfigError(f"{given.model} is a {type(teacher).__name__}; distil takes a GBMRanker")
    options: dict[str, Any] = {"n_estimators": given.rounds}
    file = _read(given, model, given.data)
    rows = model.features(file)
    if given.test is not None:
        test = _read(given, model, given.test, labelled=True)
        options |= {"eval_set": (model.features(test), test.labels), "eval_qid": test.qid}
    if isinstance(teacher, GBMRanker):
        student = teacher.distil(rows, qid=file.qid, **options)
    else:
        options["n_estimators"] = given.rounds or rounds_of(fitted.n_rounds)
        if given.test is not None:
            options["eval_scores"] = model.scores(test)
        scores = model.scores(file)
        student = distil(scores, rows, qid=file.qid, backend=fitted.backend, **options)
    student.save(given.out)
    found = student.distillation_
    sizes = {"trees": student.n_estimators, "trees_of_the_model": fitted.n_rounds}
    named = {name: getattr(found, name) for name in found.__slots__}
    text = f"{given.out}: {student.n_estimators} trees instead of {fitted.n_rounds}\n{found}"
    return show(given, {"schema": "gbmrank.distil/1", **sizes, **named}, clean(text))


def _read(
    given: argparse.Namespace, model: ModelFile, path: str, labelled: bool = False
) -> RankingFile:
    header = replace(model.header(given.label_column, given.qid_column), need_label=labelled)
    file = read_rows(path, FileOptions(form=given.format, columns=header))
    if file.qid is None:
        raise DataError(f"{quoted(path)} has no query ids; name their column: --qid-column")
    return file
