"""``gbmrank distil``: one small model that ranks like a large one."""

import argparse
import json
from dataclasses import replace
from typing import Any

from gbmrank.cli.arguments import whole
from gbmrank.cli.models import ModelFile
from gbmrank.cli.screen import clean
from gbmrank.data.readers import ROW_FORMATS, FileOptions, read_rows
from gbmrank.data.readers.text import RankingFile, quoted
from gbmrank.errors import ConfigError, DataError
from gbmrank.estimators import GBMRanker, distil
from gbmrank.estimators.distillation import rounds_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", metavar="MODEL", help="model file of LightGBM or XGBoost")
    parser.add_argument("data", metavar="DATA", help="LETOR text, CSV or Parquet, with query ids")
    parser.add_argument("--out", metavar="FILE", required=True, help="file of the small model")
    parser.add_argument(
        "--rounds", type=whole, metavar="N", help="trees (default: a quarter of the model's)"
    )
    parser.add_argument("--test", metavar="FILE", help="labelled rows that say what is lost")
    parser.add_argument("--label-column", metavar="NAME", help="column of the labels")
    parser.add_argument("--qid-column", metavar="NAME", help="column of the query ids")
    parser.add_argument("--format", choices=ROW_FORMATS, help="format of DATA (default: guessed)")


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
    if given.json:
        named = {name: getattr(found, name) for name in found.__slots__}
        print(json.dumps({"schema": "gbmrank.distil/1", **sizes, **named}, indent=2))
    else:
        print(clean(f"{given.out}: {student.n_estimators} trees instead of {fitted.n_rounds}"))
        print(clean(found))
    return 0


def _read(
    given: argparse.Namespace, model: ModelFile, path: str, labelled: bool = False
) -> RankingFile:
    header = replace(model.header(given.label_column, given.qid_column), need_label=labelled)
    file = read_rows(path, FileOptions(form=given.format, columns=header))
    if file.qid is None:
        raise DataError(f"{quoted(path)} has no query ids; name their column: --qid-column")
    return file
