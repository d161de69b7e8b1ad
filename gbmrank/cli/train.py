"""``gbmrank train``: from files to a model file, also from more rows than memory holds."""

import argparse
import contextlib
import gc
import hashlib
import json
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gbmrank.api.training_plans import training_plan
from gbmrank.boosters.base import Part
from gbmrank.boosters.supported import BACKENDS, booster_named
from gbmrank.cli.arguments import add_columns, booster_parameters, file_options, whole
from gbmrank.cli.screen import bold, clean, filled, system_message
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
    data.add_argument("data", nargs="+", metavar="DATA", help="files or folders to train on")
    data.add_argument("--valid", nargs="+", metavar="DATA", help="files to validate on")
    add_columns(parser.add_argument_group("columns of a table"))
    training = parser.add_argument_group("training")
    training.add_argument("--objective", default=_OBJECTIVE, help=_SHOWN)
    training.add_argument(
        "--metric", default="ndcg@10", metavar="LIST", help=f"the first one stops early {_SHOWN}"
    )
    training.add_argument("--backend", choices=BACKENDS, default=BACKENDS[0], help=_SHOWN)
    training.add_argument("--rounds", type=whole, default=200, metavar="N", help=_SHOWN)
    for option, about in (
        ("--early-stopping", "rounds without improvement on --valid before training stops"),
        ("--folds", "train as many models, each stopped on queries it did not see, and merge them"),
        ("--threads", "threads (default: all of the machine)"),
    ):
        training.add_argument(option, type=whole, metavar="N", help=about)
    training.add_argument("--seed", type=whole, default=0, metavar="N", help=_SHOWN)
    training.add_argument(
        "--param", metavar="NAME=VALUE", action="append", default=[], help="of the booster"
    )
    distil = "with --folds or a committee: one small model that ranks like all of them"
    training.add_argument("--distil", action="store_true", help=distil)
    output = parser.add_argument_group("output")
    output.add_argument("--out", required=True, metavar="MODEL", help="model file to write")
    output.add_argument(
        "--checkpoint",
        type=whole,
        default=50,
        metavar="N",
        help=f"keep the model every N rounds, in MODEL.work; the same command goes on {_SHOWN}",
    )
    for option, about in (
        ("--force", "start over, and overwrite the model file"),
        ("--quiet", "show no progress"),
    ):
        output.add_argument(option, action="store_true", help=about)


def run(given: argparse.Namespace) -> int:
    """Read, train, write, print."""
    out = _checked_out(given)
    work = out.with_name(f"{out.name}.work")
    for path in files_in([*given.data, *(given.valid or [])]):
        path.stat()  # raises before anything is written
    if given.force:
        shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
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
    print(json.dumps(told, indent=2) if given.json else _as_text(told))
    return 0


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
        raise ConfigError(
            f"--checkpoint is a number of rounds of at least 1, got {given.checkpoint}"
        )
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
        "objective": given.objective,
        "backend": given.backend,
        "metric": given.metric,
        "n_estimators": given.rounds,
        "early_stopping_rounds": given.early_stopping,
        "seed": given.seed,
        "n_jobs": given.threads,
        **booster_parameters(given.param),
    }
    if given.folds is not None:
        return _folded(given, options, train, valid)
    schema = Schema.of(train.features, booster_named(given.backend).reads)
    plan = training_plan(
        objective=given.objective,
        metric=given.metric,
        backend=given.backend,
        rounds=given.rounds,
        early_stopping=given.early_stopping,
        params=booster_parameters(given.param),
        columns=schema,
        seed=given.seed,
        threads=given.threads,
        keep_best=given.early_stopping is not None,
        names=_NAMES,
    )
    sets = {} if valid is None else {"valid": Part(renamed(valid.features), valid.data)}
    with _progress(given) as report:
        trained = train_in_parts(
            plan,
            Part(renamed(train.features), train.data),
            sets,
            Checkpoints(work, given.checkpoint, _key(given)),
            report,
        )
    return GBMRanker.from_trained(trained, schema, **options)


def _folded(
    given: argparse.Namespace,
    options: dict[str, Any],
    train: StoredRows,
    valid: StoredRows | None,
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
        verbose=False if given.quiet else "bar" if sys.stderr.isatty() else given.checkpoint,
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
    files = [
        (str(path), path.stat().st_size, path.stat().st_mtime_ns)
        for path in files_in([*given.data, *(given.valid or [])])
    ]
    return hashlib.sha256(repr((known, files)).encode()).hexdigest()


@contextlib.contextmanager
def _progress(given: argparse.Namespace) -> Iterator[Any]:
    verbose: Any = False if given.quiet else "bar" if sys.stderr.isatty() else given.checkpoint
    with shown(verbose, given.rounds) as report:
        yield report


def _about(rows: StoredRows) -> str:
    n_rows, width = rows.features.shape
    names = rows.features.names or []
    listed = f": {', '.join(names[:6])}{', ...' if len(names) > 6 else ''}" if names else ""
    roles = [f"{what} {rows.roles[one]}" for one, what in _ROLES.items() if one in rows.roles]
    queries = rows.data.groups.n_queries
    return ", ".join(
        [f"{n_rows:,} rows in {queries:,} queries", *roles, f"{width} features{listed}"]
    )


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
