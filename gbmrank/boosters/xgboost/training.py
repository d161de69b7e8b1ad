"""Training with XGBoost, and its models."""

import contextlib
import errno
import itertools
import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np

from gbmrank.boosters.base import Job, Part, PooledPart, Trained
from gbmrank.boosters.bindings import keep_rows
from gbmrank.boosters.trees import Tree, Trees
from gbmrank.boosters.xgboost.dataset import READS, import_xgboost, repeated
from gbmrank.boosters.xgboost.parameters import OF_DATA_SET
from gbmrank.data.files import BLANK, NAME, with_checksum
from gbmrank.data.queries import RankingData, sorted_ties
from gbmrank.data.row_store import RowStore, by_blocks
from gbmrank.data.schema import Schema, safe_names
from gbmrank.data.tables import Reads, categorical_columns, column_names, first_infinite, take_rows
from gbmrank.errors import ConfigError, DataError, NumericError, WeightError
from gbmrank.types import FloatArray, IntArray

_SLOT = "gbmrank"
_RAW = {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}}  # no link
_BYTES_ON_DISK = 2  # per value: a bin, by rows and by columns
_BATCHES = 8  # copies of rows that are made one after the other
_UNSEEN = re.compile(r"category not in the training set for the (\d+)\D.*column: `(.*)`")


@final
@dataclass(eq=False)
class XGBoostFitted:
    """An XGBoost booster, truncated after its best round; ``threads`` are for predictions."""

    booster: Any
    threads: int | None = None

    backend: ClassVar[str] = "xgboost"
    reads: ClassVar[Reads] = READS

    @property
    def n_rounds(self) -> int:
        """Number of rounds that count."""
        return int(self.booster.num_boosted_rounds())

    def scores(self, features: Any) -> FloatArray:
        """Return one raw score per row."""
        xgb = import_xgboost()

        def score(table: Any) -> FloatArray:
            with _explaining(xgb, table, "X"):
                rows = xgb.DMatrix(table, enable_categorical=True, nthread=self.threads)
                # Names were compared before, with those of the user; the model has others.
                raw = self.booster.predict(rows, output_margin=True, validate_features=False)
            return np.asarray(raw, np.float64)

        return by_blocks(score, features)

    predict = scores

    def importances(self, kind: str | None = None) -> FloatArray:
        """Return the importance of each feature, of one of XGBoost's kinds or summed gain."""
        width = self.booster.num_features()
        names = self.booster.feature_names or [f"f{number}" for number in range(width)]
        try:
            gain = self.booster.get_score(importance_type=kind or "total_gain")
        except ValueError as error:
            raise ConfigError(f"booster=gblinear has no splits: {error}") from error
        return np.array([gain.get(name, 0.0) for name in names], np.float64)

    def first(self, rounds: int) -> "XGBoostFitted":
        """Return the model that predicts with its first rounds only."""
        return XGBoostFitted(first_rounds(self.booster, rounds), self.threads)

    @property
    def columns(self) -> Schema:
        """Number of the features, and their names if the training data had any."""
        names = self.booster.feature_names
        return Schema(self.booster.num_features(), None if names is None else safe_names(names))

    def encoded(self, features: Any) -> FloatArray:
        """Return the numbers that the trees compare; categories become codes."""
        xgb = import_xgboost()
        known = self.booster.get_categories() if categorical_columns(features) else None
        with _explaining(xgb, features, "X"):
            rows = xgb.DMatrix(
                features, enable_categorical=True, feature_types=known, nthread=self.threads
            ).get_data()
        made = np.full(rows.shape, np.nan)  # what is not stored is missing
        made[np.repeat(np.arange(len(made)), np.diff(rows.indptr)), rows.indices] = rows.data
        return made

    def trees(self) -> Trees:
        """Return all trees."""
        learner = _document(self.booster)["learner"]
        grown, factors = _trees_of(learner["gradient_booster"], "explaining a score")
        several = any(int(tree["tree_param"]["size_leaf_vector"]) > 1 for tree in grown["trees"])
        if several or any(grown["tree_info"]):
            raise ConfigError(
                "the model predicts several scores per row; only one can be explained"
            )
        pairs = zip(grown["trees"], factors, strict=True)
        return Trees.of([_tree(tree, factor) for tree, factor in pairs], members_left=False)

    def for_converters(self) -> Any:
        """Return a copy with a plain objective: converters may take ranking for classification."""
        made = self.booster.copy()
        made.set_param({"objective": "reg:squarederror"})
        return made

    def stamp(self, identity: str) -> None:
        """Store a text in the model, as an attribute."""
        self.booster.set_attr(**{_SLOT: identity, NAME: BLANK})

    def save(self, path: str) -> None:
        """Write the model in XGBoost's format, with a checksum as an attribute."""
        if self.booster.attr(NAME) != BLANK:
            self.booster.set_attr(**{NAME: BLANK})
        target = Path(path)
        target.write_bytes(with_checksum(bytes(self.booster.save_raw(target.suffix[1:]))))


def load_model(data: bytes, path: str) -> tuple[XGBoostFitted, str | None]:
    """Read a model file and the text it was stamped with, if any; ``path`` is for messages."""
    xgb = import_xgboost()
    try:
        if not data.rstrip().endswith(b"}"):  # XGBoost would read out of bounds
            raise ValueError("its end is missing")
        booster = xgb.Booster(model_file=bytearray(data))
        booster.set_attr(**{NAME: BLANK})  # later changes are not covered by the checksum
        return XGBoostFitted(booster), booster.attr(_SLOT)
    except (xgb.core.XGBoostError, ValueError, RecursionError) as error:
        raise DataError(
            f"{path} is a damaged XGBoost model; save it again ({_first_line(error)})"
        ) from error


def wrap(model: Any) -> XGBoostFitted | None:
    """Return a Booster or a fitted model of its scikit-learn interface; None for others."""
    xgb = sys.modules.get("xgboost")
    if xgb is None or not isinstance(model, xgb.Booster | xgb.XGBModel):
        return None
    if isinstance(model, xgb.Booster):
        return XGBoostFitted(model)
    booster = model.get_booster()
    best = booster.attr("best_iteration")  # which only this interface uses for predictions
    return XGBoostFitted(booster if best is None else first_rounds(booster, int(best) + 1))


def train(job: Job) -> Trained:
    """Train; the error for a gradient that is not finite has the model trained so far."""
    xgb = import_xgboost()
    native = isinstance(job.objective, str)
    params = {"disable_default_eval_metric": 1, "verbosity": 1, **job.params}
    rows = job.train
    if native:
        params["objective"] = job.objective
        if "position" in rows.data.columns:  # XGBoost takes the order of rows for positions
            rows = _as_shown(rows)
            params = {"lambdarank_unbiased": True, **params}
    base = xgb.callback.TrainingCallback
    own = "instances of xgboost.callback.TrainingCallback"
    job.check_own("XGBoost", xgb.Booster, lambda one: isinstance(one, base), own)
    before = 0 if job.start is None else int(job.start.num_boosted_rounds())
    train_set = _data_set(xgb, job, rows, params, "the training set")
    monitor = job.monitor()
    sets = []
    for name, part in job.valid.items():
        same = part is job.train
        sets.append(train_set if same else _data_set(xgb, job, part, params, name, train_set))
        monitor.watch(name, sets[-1])
    grown: list[Any] = []

    class AfterRound(xgb.callback.TrainingCallback):  # type: ignore[name-defined, misc]
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            grown[:] = [model]
            return monitor.end_round()

    try:
        booster = xgb.train(
            {key: value for key, value in params.items() if key not in OF_DATA_SET},
            train_set,
            job.rounds,
            obj=None if native else job.objective,
            # XGBoost puts this name before that of a metric, with a dash.
            evals=[(s, re.sub(r"[-:\s]+", "_", n)) for s, n in zip(sets, job.valid, strict=True)],
            custom_metric=monitor if sets else None,
            verbose_eval=False,
            xgb_model=job.start,
            callbacks=[*job.callbacks, AfterRound()],
        )
    except NumericError as error:
        error.add_note(f"in round {monitor.rounds_done + 1} of {job.rounds}, XGBoost")
        error.model = XGBoostFitted(grown[0], params.get("nthread")) if grown else None
        raise
    except xgb.core.XGBoostError as error:
        _explain_unseen(error, job.train.features, "a validation set")
        plain = str(error).partition("\nStack trace")[0].strip()
        raise ConfigError(f"XGBoost: {plain}") from error
    stopped, threads = booster.attr("best_iteration"), params.get("nthread")
    kept = job.rounds_kept(monitor, before, 0 if stopped is None else int(stopped) + 1)
    model = first_rounds(booster, kept, threads) if kept else booster
    return job.finished(XGBoostFitted(model, threads), monitor, kept, before)


def bins(job: Job, part: Part) -> Any:
    """Return a data set of these rows, from whose bins a training can start."""
    params = job.params
    return None if needs_all_values(params) else _data_set(import_xgboost(), job, part, params, "X")


def _as_shown(part: Part) -> Part:
    """Return the rows of every query in the order of their positions."""
    data = part.data
    order, _, _ = sorted_ties(data.columns["position"], data.groups)
    arranged = replace(
        data,
        labels=data.labels[order],
        weight=None if data.weight is None else data.weight[order],
        columns={name: column[order] for name, column in data.columns.items()},
    )
    return Part(take_rows(part.features, order), arranged)


def first_rounds(booster: Any, rounds: int, threads: int | None = None) -> Any:
    """Return the first rounds of a model, with its categories.

    XGBoost's slice loses the category codes of training, and would read the codes of another
    table in the order they have there.
    """
    made = booster[:rounds]
    if "c" not in (booster.feature_types or ()):
        return made
    known = _document(booster)["learner"]["gradient_booster"]["model"]["cats"]
    document = _document(made)
    document["learner"]["gradient_booster"]["model"]["cats"] = known
    return _booster(document, threads)


def _document(booster: Any) -> Any:
    return json.loads(booster.save_raw("json"))


def _booster(document: Any, threads: int | None) -> Any:
    options = {} if threads is None else {"nthread": threads}
    raw = bytearray(json.dumps(document).encode())
    return import_xgboost().Booster(options, model_file=raw)


def merge(
    models: Sequence[XGBoostFitted], factors: Sequence[float], shares: Sequence[float]
) -> XGBoostFitted:
    """Merge models into one whose score is the weighted sum of their scores.

    Gains of splits are in units of the loss of each model; they are scaled so that the gains of
    a model sum to its share. Trees of dart are scaled by their dart weights.
    """
    threads, start = models[0].threads, 0.0
    merged: dict[str, list[Any]] = {"trees": [], "tree_info": [], "iteration_indptr": [0]}
    for one, factor, share in zip(models, factors, shares, strict=True):
        learner = _document(one.booster)["learner"]
        grown, kept = _trees_of(learner["gradient_booster"])
        gain = sum(sum(tree["loss_changes"]) for tree in grown["trees"])
        for tree, rest in zip(grown["trees"], kept, strict=True):
            tree["id"] = len(merged["trees"])
            merged["trees"].append(_scaled(tree, factor * rest, share / gain if gain else 1.0))
        merged["tree_info"] += grown["tree_info"]
        before = merged["iteration_indptr"][-1]
        merged["iteration_indptr"] += [before + end for end in grown["iteration_indptr"][1:]]
        start += factor * _start(one.booster, threads)
    document = _document(models[0].booster)
    learner = document["learner"]
    grown, _ = _trees_of(learner["gradient_booster"])
    grown.update(merged)
    grown["gbtree_model_param"]["num_trees"] = str(len(merged["trees"]))
    learner["gradient_booster"] = {"model": grown, "name": "gbtree"}
    learner["learner_model_param"]["base_score"] = repr(start)
    learner["objective"] = dict(_RAW)
    learner["attributes"] = {}
    return XGBoostFitted(_booster(document, threads), threads)


def _trees_of(grown: Any, who: str = "a committee") -> tuple[Any, list[float]]:
    """Return the trees of a model and their factors, which only dart has; ``who`` needs them.

    From 3.4 on dart is a kind of gbtree, and its factors are beside the trees.
    """
    if grown["name"] == "gblinear":
        raise ConfigError(
            f"booster='gblinear' grows no trees, which {who} needs; use a tree booster"
        )
    model = grown["gbtree"]["model"] if "gbtree" in grown else grown["model"]
    factors = grown.get("weight_drop") or model.pop("weight_drop", None)
    return model, factors or [1.0] * len(model["trees"])


def _tree(tree: Any, factor: float) -> Tree:
    """Read a tree; a number goes left if it is less than the threshold, not if it is equal."""
    leaf = np.array(tree["left_children"]) == -1
    number = np.where(leaf, ~(np.cumsum(leaf) - 1), np.cumsum(~leaf) - 1)
    conditions = np.array(tree["split_conditions"], np.float32).astype(np.float64)
    starts, sizes = tree["categories_segments"], tree["categories_sizes"]
    members = np.array(tree["categories"], np.int64)
    return Tree(
        np.array(tree["split_indices"], np.int64)[~leaf],
        np.nextafter(conditions[~leaf], -np.inf),
        np.array(tree["default_left"], np.bool_)[~leaf],
        np.zeros(int((~leaf).sum()), np.bool_),
        number[np.array(tree["left_children"])[~leaf]],
        number[np.array(tree["right_children"])[~leaf]],
        factor * conditions[leaf],
        {
            int(number[node]): members[start : start + size]
            for node, start, size in zip(tree["categories_nodes"], starts, sizes, strict=True)
        },
    )


def _scaled(tree: Any, factor: float, gain: float) -> Any:
    """Scale a tree; a leaf keeps its value where other nodes keep their threshold."""
    leaf = [child == -1 for child in tree["left_children"]]
    values = zip(leaf, tree["split_conditions"], strict=True)
    tree["split_conditions"] = [one * factor if is_leaf else one for is_leaf, one in values]
    tree["base_weights"] = [one * factor for one in tree["base_weights"]]
    tree["loss_changes"] = [one * gain for one in tree["loss_changes"]]
    return tree


def _start(booster: Any, threads: int | None) -> float:
    """Return the score before the first tree: what a model without trees predicts."""
    document = _document(booster)
    grown, _ = _trees_of(document["learner"]["gradient_booster"])
    grown |= {"trees": [], "tree_info": [], "iteration_indptr": [0]}
    grown["gbtree_model_param"]["num_trees"] = "0"
    document["learner"]["gradient_booster"] = {"model": grown, "name": "gbtree"}
    row = import_xgboost().DMatrix(np.zeros((1, booster.num_features())), nthread=1)
    scored = _booster(document, threads).predict(row, output_margin=True, validate_features=False)
    return float(scored[0])


def _data_set(
    xgb: Any, job: Job, part: Part | PooledPart, params: Any, what: str, reference: Any = None
) -> Any:
    data, whole = part.data, part
    columns = {
        "label": data.labels,
        "weight": _query_weight(data, job.objective) if job.ranks else data.weight,
        "group": data.groups.sizes if job.ranks else None,
        "feature_weights": params.get("feature_weights") if reference is None else None,
    }
    if isinstance(part, PooledPart):
        whole = part.pool.part
        if reference is None and not needs_all_values(params):
            binned = part.pool.data_set(lambda every: _data_set(xgb, job, every, params, what))
            return _in_batches(xgb, part, columns, params, binned)
    width = whole.features.shape[1]
    for name in OF_DATA_SET:
        if params.get(name) is not None and len(params[name]) != width:  # XGBoost takes fewer
            raise ConfigError(
                f"{name} has {len(params[name])} entries, but {what} has {width} columns; pass one "
                "entry per column"
            )
    features = part.features
    if isinstance(features, RowStore):
        return _of_store(xgb, features, data, columns, params, reference)
    options = {
        "nthread": params.get("nthread"),
        "enable_categorical": True,
        "feature_types": params.get("feature_types"),
    }
    with _explaining(xgb, features, what, data.groups.row_order):
        if needs_all_values(params):
            made = xgb.DMatrix(features, **columns, **options)
        else:
            most, like = params.get("max_bin"), job.bins if reference is None else reference
            made = xgb.QuantileDMatrix(features, max_bin=most, ref=like, **columns, **options)
    if reference is not None:  # columns were compared; XGBoost needs names in all sets or in none
        made.feature_names = reference.feature_names
    keep_rows(made, data)
    return made


def _of_store(
    xgb: Any, store: RowStore, data: RankingData, columns: Any, params: Any, reference: Any
) -> Any:
    """Return a data set that XGBoost keeps on disk, beside the rows; it is made once."""
    if (held := store.data_set(data)) is not None:
        return held
    _check_disk(store)
    weight, offsets = columns["weight"], data.groups.offsets
    pages = np.arange(0, len(store) + store.block, store.block)
    cuts = np.searchsorted(offsets, pages).clip(max=len(offsets) - 1)

    def batches() -> Iterator[Mapping[str, Any]]:
        for first, last in itertools.pairwise(cuts):
            start, end = int(offsets[first]), int(offsets[last])
            if start < end:
                yield {
                    "data": store.rows(start, end),
                    "label": data.labels[start:end],
                    "qid": np.repeat(np.arange(first, last), data.groups.sizes[first:last]),
                    "weight": None if weight is None else weight[first:last],
                    "feature_names": store.names,
                }

    made = xgb.ExtMemQuantileDMatrix(
        repeated(batches, f"{store.path}.xgboost"),
        nthread=params.get("nthread"),
        max_bin=params.get("max_bin"),
        ref=reference,
    )
    if columns["feature_weights"] is not None:
        made.set_info(feature_weights=columns["feature_weights"])
    keep_rows(made, data)
    store.hold(data, made)
    return made


def _check_disk(store: RowStore) -> None:
    """Raise OSError for a disk without space for XGBoost's bins: it would abort the process."""
    needed = _BYTES_ON_DISK * store.shape[0] * store.shape[1]
    free = shutil.disk_usage(store.path.parent).free
    if free < needed:
        raise OSError(
            errno.ENOSPC,
            f"No space left on device: XGBoost needs {needed / 1e6:,.0f} MB, "
            f"{free / 1e6:,.0f} are free",
            str(store.path.parent),
        )


def _in_batches(xgb: Any, part: PooledPart, columns: Any, params: Any, binned: Any) -> Any:
    """Return some rows of a binned data set; their features are copied in small batches."""

    def batches() -> Iterator[Mapping[str, Any]]:
        for rows in np.array_split(part.rows, _BATCHES):
            features = take_rows(part.pool.part.features, rows)
            yield {"data": features, "feature_types": params.get("feature_types")}

    made = xgb.QuantileDMatrix(
        repeated(batches),
        max_bin=params.get("max_bin"),
        ref=binned,
        nthread=params.get("nthread"),
        enable_categorical=True,
    )
    made.set_info(**columns)
    keep_rows(made, part.data)
    return made


@contextlib.contextmanager
def _explaining(
    xgb: Any, features: Any, what: str, order: IntArray | None = None
) -> Iterator[None]:
    """Add the row and column to XGBoost's error for an infinite number."""
    try:
        yield
    except xgb.core.XGBoostError as error:
        _explain_unseen(error, features, what)
        if (found := first_infinite(features)) is None:
            raise DataError(f"XGBoost: {_first_line(error)}") from error
        row, column = found
        at = row if order is None else int(order[row])
        raise DataError(infinite_message(column, what, f", in row {at}")) from error


def infinite_message(column: Any, what: str, where: str = "") -> str:
    """Return the message for an infinite feature."""
    return (
        f"the column {column!r} of {what} is infinite, or larger than the largest float32{where}, "
        "which XGBoost does not support; clip it, or set it to NaN (missing)"
    )


def unseen_message(column: Any, what: str, category: str) -> str:
    """Return the message for a category that training did not have."""
    return (
        f"the column {column!r} of {what} has the category {category!r}, which the training data "
        "did not have, so XGBoost cannot score it; set the categories of the training data "
        "(cat.set_categories), which makes others missing"
    )


def _explain_unseen(error: Exception, features: Any, what: str) -> None:
    """Raise for an unseen category, of which XGBoost's error only has the column number."""
    if (found := _UNSEEN.search(str(error))) is None:
        return
    number, category = int(found.group(1)), found.group(2)
    names = column_names(features)
    column = number if names is None else names[number]
    raise DataError(unseen_message(column, what, category)) from error


def _first_line(error: Exception) -> str:
    """Return the first line of XGBoost's message."""
    return str(error).strip().partition("\n")[0]


def needs_all_values(params: Mapping[str, Any]) -> bool:
    """Whether training uses feature values, not histogram bins."""
    histograms = params.get("tree_method", "hist") in ("hist", "auto")
    return not histograms or params.get("booster") == "gblinear"


def _query_weight(data: RankingData, objective: Any) -> FloatArray | None:
    """Return one weight per query for XGBoost; item weights are stored outside the data set."""
    if not isinstance(objective, str):
        return data.split_weight()[0].query_weight()
    try:
        return data.query_weight()
    except WeightError as error:
        raise WeightError(
            f"native:{objective} weighs whole queries, but "
            f"{error.args[0].partition(', but')[0]}; give each query one weight, or use an "
            "objective of gbmrank such as pairwise"
        ) from error
