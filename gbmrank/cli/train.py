"""``gbmrank train``: from files to a model file, also from more rows than memory holds."""

import argparse
import contextlib
import gc
import hashlib
import shutil
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gbmrank.api.training_plans import training_plan
from gbmrank.boosters.base import Part
from gbmrank.boosters.supported import BACKENDS, booster_named
from gbmrank.cli.arguments import add_columns, booster_parameters, file_options, option, whole
from gbmrank.cli.screen import bold, clean, filled, show, system_message
from gbmrank.data.readers.stream import StoredRows, files_in, store_rows
from gbmrank.data.schema import Schema, renamed
from gbmrank.errors import ConfigError, GbmrankWarning
from gbmrank.estimators import GBMRanker
from gbmrank.estimators.display import shown
from gbmrank.estimators.file_training import Checkpoints, train_in_parts

_OBJECTIVE = "pairwise(loss=logistic, target=ndcg@10)"
_SHOWN = "(default: %(default)s)"
_ROLES = {"label": "label", "qid": "query id"}
_NAMES = {"rounds": "--rounds", "early_stopping": "--early-stopping", "valid": "--valid"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    data = parser.add_argument_group(
        "data",
        "LETOR or svmlight text with qid, CSV or Parquet; .gz is fine. A folder stands for its "
        "files, sorted by name. Rows of a query must be adjacent.",
    )
    option(data, "data DATA", "files or folders to train on", nargs="+")
    option(data, "--valid DATA", "files to validate on", nargs="+")
    add_columns(parser.add_argument_group("columns of a table"))
    training = parser.add_argument_group("training")
    training.add_argument("--objective", default=_OBJECTIVE, help=_SHOWN)
    option(training, "--metric LIST", f"the first one stops early {_SHOWN}", default="ndcg@10")
    training.add_argument("--backend", choices=BACKENDS, default=BACKENDS[0], help=_SHOWN)
    option(training, "--rounds N", _SHOWN, type=whole, default=200)
    patience = "rounds without improvement on --valid before training stops"
    option(training, "--early-stopping N", patience, type=whole)
    folds = "train as many models, each stopped on queries it did not see, and merge them"
    option(training, "--folds N", folds, type=whole)
    option(training, "--threads N", "threads (default: all of the machine)", type=whole)
    option(training, "--seed N", _SHOWN, type=whole, default=0)
    option(training, "--param NAME=VALUE", "of the booster", action="append", default=[])
    distil = "with --folds or a committee: one small model that ranks like all of them"
    option(training, "--distil", distil)
    output = parser.add_argument_group("output")
    option(output, "--out MODEL", "model file to write", required=True)
    keep = f"keep the model every N rounds, in MODEL.work; the same command goes on {_SHOWN}"
    option(output, "--checkpoint N", keep, type=whole, default=50)
    option(output, "--force", "start over, and overwrite the model file")
    option(output, "--quiet", "show no progress")


def run(given: argparse.Namespace) -> int:
    """Read, train, write, print."""
    out = _checked_out(given)
    work = out.with_name(f"{out.name}.work")
    for path in files_in([*given.data, *(given.valid or [])]):
        path.stat()  # raises before anything is written
    if given.force:
        shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    for left in work.glob("*.xgboost-*"):  # by a run that was killed; their names have an address
        left.unlink()
    try:
        with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", GbmrankWarning)  # shown below as notes
            train, valid = _read(given, work)
            model = _trained(given, work, train, valid)
            if given.distil:
                model = model.distil(train.features, qid=_ids(train))
    except OSError as error:
        raise ConfigError(
            f"{system_message(error)}; what was finished is kept in {work}. The same command goes "
            "on from there"
        ) from error
    model.save(out)
    for rows in (train, valid):
        if rows is not None:
            rows.features.release()
    gc.collect()  # XGBoost removes its files with the last of its data sets
    shutil.rmtree(work)
    told = _told(given, model, train)
    told["notes"] += dict.fromkeys(str(one.message) for one in said)
    return show(given, told, partial(_as_text, told))


def _checked_out(given: argparse.Namespace) -> Path:
    """Return the file to write, after checks of the options that need no data."""
    out, suffixes = Path(given.out), booster_named(given.backend).suffixes
    if out.suffix not in suffixes:
        raise ConfigError(
            f"--out {given.out}: a model of {given.backend} is saved as *{' or *'.join(suffixes)}"
        )
    if out.exists() and not given.force:
        raise ConfigError(f"{out} exists; give another --out, or overwrite it with --force")
    if given.checkpoint < 1:
        about = "--checkpoint is a number of rounds of at least 1"
        raise ConfigError(f"{about}, got {given.checkpoint}")
    return out


def _read(given: argparse.Namespace, work: Path) -> tuple[StoredRows, StoredRows | None]:
    weight = {} if given.weight is None else {"weight": given.weight}
    options = file_options(given, columns=weight)
    dtype = booster_named(given.backend).reads.floats
    train = store_rows(given.data, options, work / "train.rows", dtype)
    print(filled(_about(train)), flush=True)
    if given.valid is None:
        return train, None
    return train, store_rows(given.valid, options, work / "valid.rows", dtype)


def _trained(
    given: argparse.Namespace, work: Path, train: StoredRows, valid: StoredRows | None
) -> GBMRanker:
    options = {
        **{name: getattr(given, name) for name in ("objective", "backend", "metric", "seed")},
        "n_estimators": given.rounds,
        "early_stopping_rounds": given.early_stopping,
        "n_jobs": given.threads,
        **booster_parameters(given.param),
    }
    if given.folds is not None:
        return _folded(given, options, train, valid)
    schema = Schema.of(train.features, booster_named(given.backend).reads)
    same = ("objective", "metric", "backend", "rounds", "early_stopping", "seed", "threads")
    plan = training_plan(
        **{name: getattr(given, name) for name in same},
        params=booster_parameters(given.param),
        columns=schema,
        keep_best=given.early_stopping is not None,
        names=_NAMES,
    )
    part = Part(renamed(train.features), train.data)
    sets = {} if valid is None else {"valid": Part(renamed(valid.features), valid.data)}
    checkpoints = Checkpoints(work, given.checkpoint, _key(given))
    with shown(_verbose(given), given.rounds) as report:
        trained = train_in_parts(plan, part, sets, checkpoints, report)
    return GBMRanker.from_trained(trained, schema, **options)


def _folded(
    given: argparse.Namespace, options: dict[str, Any], train: StoredRows, valid: StoredRows | None
) -> GBMRanker:
    """Train on folds, without checkpoints; features stay on disk, but for those of one fold."""
    known: dict[str, Any] = {}
    if valid is not None:
        labels = valid.data.labels
        known = {"eval_set": [(valid.features, labels)], "eval_qid": [_ids(valid)]}
    return GBMRanker(folds=given.folds, **options).fit(
        train.features,
        train.data.labels,
        qid=_ids(train),
        sample_weight=train.data.weight,
        verbose=_verbose(given),
        **known,
    )


def _ids(rows: StoredRows) -> Any:
    """Return the query id of each row."""
    groups = rows.data.groups
    return groups.spread(np.asarray(groups.ids))


def _key(given: argparse.Namespace) -> str:
    """Return a hash of everything a checkpoint depends on."""
    free = ("out", "force", "quiet", "json", "rounds", "early_stopping", "threads", "metric")
    known = {name: value for name, value in sorted(vars(given).items()) if name not in free}
    found = [(one, one.stat()) for one in files_in([*given.data, *(given.valid or [])])]
    files = [(str(path), about.st_size, about.st_mtime_ns) for path, about in found]
    return hashlib.sha256(repr((known, files)).encode()).hexdigest()


def _verbose(given: argparse.Namespace) -> Any:
    return False if given.quiet else "bar" if sys.stderr.isatty() else given.checkpoint


def _about(rows: StoredRows) -> str:
    n_rows, width = rows.features.shape
    names = rows.features.names or []
    listed = f": {', '.join(names[:6])}{', ...' if len(names) > 6 else ''}" if names else ""
    roles = [f"{what} {rows.roles[one]}" for one, what in _ROLES.items() if one in rows.roles]
    counts = f"{n_rows:,} rows in {rows.data.groups.n_queries:,} queries"
    return ", ".join([counts, *roles, f"{width} features{listed}"])


def _told(given: argparse.Namespace, model: GBMRanker, train: StoredRows) -> dict[str, Any]:
    kept = model.best_iteration_
    return {
        "schema": "gbmrank.train/1",
        "model": given.out,
        "objective": str(model.objective),
        "backend": given.backend,
        "rounds": kept + 1,
        "rows": train.features.shape[0],
        "queries": train.data.groups.n_queries,
        "features": train.features.shape[1],
        "values": {
            name: {metric: column[min(kept, len(column) - 1)] for metric, column in found.items()}
            for name, found in model.evals_result_.items()
        },
        "peak_bytes": _peak(),
        "notes": list(train.notes),
    }


def _peak() -> int | None:
    """Return the most memory that this process used; None on systems that do not count it."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _as_text(told: dict[str, Any]) -> str:
    lines = [
        ("model", f"{told['model']}: {told['objective']}, {told['rounds']} rounds"),
        *(
            (name, ", ".join(f"{metric} {value:.4f}" for metric, value in found.items()))
            for name, found in told["values"].items()
        ),
        *(("note", note) for note in told["notes"]),
        ("next", f"gbmrank predict {told['model']} DATA --out scores.csv"),
        ("", f"gbmrank explain {told['model']} DATA --query Q"),
    ]
    return "\n".join(f"{bold(f'{what:<6}')}  {clean(text)}" for what, text in lines)
