"""Training with LightGBM, and its models."""

import io
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, final
from urllib.parse import quote, unquote

import numpy as np

from gbmrank.boosters.base import Job, Part, PooledPart, Trained
from gbmrank.boosters.bindings import keep_rows
from gbmrank.boosters.lightgbm.dataset import READS, import_lightgbm, seed_drops
from gbmrank.boosters.lightgbm.network import OF_NETWORK
from gbmrank.boosters.trees import Tree, Trees
from gbmrank.data.files import BLANK, NAME, with_checksum
from gbmrank.data.row_store import RowStore, by_blocks
from gbmrank.data.schema import Schema, safe_names
from gbmrank.data.tables import Reads, dense
from gbmrank.errors import ConfigError, DataError, NumericError
from gbmrank.types import FloatArray

# A model file lists the parameters of its training, and LightGBM keeps that list when it loads and
# saves. "data", the path of a training file, is the one that does not matter for a model trained
# from memory. The text is percent-encoded, since LightGBM's parser of the list knows no quotes.
_SLOT = re.compile(r"^\[data: [^\]\n]*\]$", re.MULTILINE)
_TREE = re.compile(r"^Tree=\d+\n", re.MULTILINE)
_VALUES = re.compile(r"^(?:leaf_value|leaf_const|leaf_coeff|internal_value)=(.*)$", re.MULTILINE)
_DROPPED = re.compile(r"^shrinkage=-", re.MULTILINE)
_GAINS = re.compile(r"^split_gain=(.*)$", re.MULTILINE)
_OWN = re.compile(r"^(?:objective=.*|average_output)\n", re.MULTILINE)  # no part of raw scores
_HAS_OBJECTIVE = re.compile(r"^objective=", re.MULTILINE)
_RAW = "lambdarank"
_MARK = "gbmrank "
_CATEGORICAL = "categorical_feature"  # which LightGBM wants with the rows
# A data set whose parameters differ from those of the one with its bins gets a warning.
_NOT_OF_ROWS = ("objective", _CATEGORICAL, *OF_NETWORK)
_PLAIN = " (),.@_-=+/"
# With its pre-filter LightGBM fails on few rows; without, a constant model gets a warning.
_QUIET = {"verbosity": -1, "feature_pre_filter": False}
_LAYOUTS = ("force_col_wise", "force_row_wise")


@final
@dataclass(eq=False)
class LightGBMFitted:
    """A LightGBM booster that predicts up to its best round.

    ``threads`` is the number of threads for predictions; LightGBM does not store it in models.
    """

    booster: Any
    n_rounds: int
    threads: int | None = None

    backend: ClassVar[str] = "lightgbm"
    reads: ClassVar[Reads] = READS

    def scores(self, features: Any) -> FloatArray:
        """Return one raw score per row."""
        given = {} if self.threads is None else {"num_threads": self.threads}

        def score(rows: Any) -> FloatArray:
            made = self.booster.predict(rows, raw_score=True, num_iteration=self.n_rounds, **given)
            return np.asarray(made, np.float64)

        return by_blocks(score, features)

    predict = scores

    def importances(self, kind: str | None = None) -> FloatArray:
        """Return the importance of each feature: of a kind of LightGBM's, or summed gain."""
        found = self.booster.feature_importance(kind or "gain", iteration=self.n_rounds)
        return np.asarray(found, np.float64)

    def first(self, rounds: int) -> "LightGBMFitted":
        """Return the model that predicts with its first rounds only."""
        return LightGBMFitted(self.booster, rounds, self.threads)

    @property
    def columns(self) -> Schema:
        """Number of the features, and their names if the training data had any."""
        names = self.booster.feature_name()
        own = all(map(re.compile(r"Column_\d+").fullmatch, names))
        return Schema(self.booster.num_feature(), None if own else safe_names(names))

    def encoded(self, features: Any) -> FloatArray:
        """Return the numbers that the trees compare; categories become codes."""
        return dense(features, self.booster.pandas_categorical or ())

    def trees(self) -> Trees:
        """Return the trees up to the best round."""
        text = self.booster.model_to_string(num_iteration=self.n_rounds)
        head, *blocks = _TREE.split(text.partition("end of trees")[0])
        if "\nnum_tree_per_iteration=1\n" not in head:
            raise ConfigError(
                "the model predicts several scores per row; only one can be explained"
            )
        return Trees.of([_tree(block) for block in blocks], members_left=True)

    def for_converters(self) -> Any:
        """Return a copy that names an objective, which converters require.

        It names lambdarank, whose predictions are raw scores too. The model itself names none, so
        that ``refit`` raises instead of training with lambdarank.
        """
        text = self.booster.model_to_string(num_iteration=self.n_rounds)
        if _HAS_OBJECTIVE.search(text.partition("\nTree=0\n")[0]) is None:
            text = text.replace("\nfeature_names=", f"\nobjective={_RAW}\nfeature_names=", 1)
            text = text.replace("\n[objective: custom]\n", f"\n[objective: {_RAW}]\n", 1)
        return import_lightgbm().Booster(model_str=text)

    def stamp(self, identity: str) -> None:
        """Store a text in the model, and truncate the model after its best round."""
        text = self.booster.model_to_string(num_iteration=self.n_rounds)
        line = f"[data: {_MARK}{quote(identity, safe=_PLAIN)}]"
        self.booster = type(self.booster)(model_str=_SLOT.sub(lambda _: line, text, count=1))
        self.booster.best_iteration = self.n_rounds

    def save(self, path: str) -> None:
        """Write the model in LightGBM's format, with a checksum as a line of its header.

        LightGBM ignores unknown lines, and drops them when it saves.
        """
        first, rest = self.booster.model_to_string(num_iteration=self.n_rounds).split("\n", 1)
        text = f"{first}\n{NAME}={BLANK}\n{rest}"
        Path(path).write_bytes(with_checksum(text.encode()))


def load_model(data: bytes, path: str) -> tuple[LightGBMFitted, str | None]:
    """Read a model file and the text it was stamped with, if any; ``path`` is for messages."""
    lgb = import_lightgbm()
    try:
        text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8").read()
        _check_whole(text)
        booster = lgb.Booster(model_str=text)
    except (lgb.basic.LightGBMError, ValueError) as error:
        raise DataError(f"{path} is a damaged LightGBM model; save it again ({error})") from error
    found = _SLOT.search(text)
    value = "" if found is None else found.group()[len("[data: ") : -1]
    identity = unquote(value.removeprefix(_MARK)) if value.startswith(_MARK) else None
    return LightGBMFitted(booster, booster.current_iteration()), identity


def wrap(model: Any) -> LightGBMFitted | None:
    """Return a Booster or a fitted model of its scikit-learn interface; None for others."""
    lgb = sys.modules.get("lightgbm")
    if lgb is None or not isinstance(model, lgb.Booster | lgb.LGBMModel):
        return None
    booster = model if isinstance(model, lgb.Booster) else model.booster_
    best = booster.best_iteration
    return LightGBMFitted(booster, best if best > 0 else booster.current_iteration())


def merge(
    models: Sequence[LightGBMFitted], factors: Sequence[float], shares: Sequence[float]
) -> LightGBMFitted:
    """Merge models into one whose score is the weighted sum of their scores.

    Gains of splits are in units of the loss of each model; they are scaled so that the gains of
    a model sum to its share.
    """
    texts = [one.booster.model_to_string(num_iteration=one.n_rounds) for one in models]
    blocks = []
    for text, factor, share in zip(texts, factors, shares, strict=True):
        _, *trees = _TREE.split(text.partition("end of trees")[0])
        gain = sum(float(one) for row in _GAINS.findall("".join(trees)) for one in row.split())
        for tree in trees:
            scaled = _scaled(_VALUES, tree, factor)
            blocks.append(_scaled(_GAINS, scaled, share / gain if gain > 0.0 else 1.0))
    head, tail = _TREE.split(texts[0], maxsplit=1)[0], texts[0].partition("end of trees")[2]
    tail = re.sub(r"^\[objective: .*\]$", "[objective: custom]", tail, flags=re.MULTILINE)
    merged = _assembled(_OWN.sub("", head), blocks, tail)
    return LightGBMFitted(merged, len(blocks), models[0].threads)


def _tree(block: str) -> Tree:
    """Read a tree; ``decision_type`` has bits for categories, default side and missing values."""
    lines = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
    if lines.get("is_linear", "0") != "0":
        raise ConfigError(
            "linear_tree=True fits a line in every leaf, which cannot be explained by its splits; "
            "train with linear_tree=False"
        )

    def numbers(name: str, dtype: type = np.int64) -> Any:
        return np.array(lines.get(name, "").split(), np.float64).astype(dtype)

    threshold, kinds = numbers("threshold", np.float64), numbers("decision_type")
    bounds, words = numbers("cat_boundaries"), numbers("cat_threshold")
    by_category, missing = kinds & 1 > 0, kinds >> 2 & 3
    sets = {}
    for split in np.flatnonzero(by_category).tolist():
        at = int(threshold[split])
        found = words[bounds[at] : bounds[at + 1]]
        sets[split] = np.flatnonzero((found[:, None] >> np.arange(32) & 1).ravel())
    # Without its own branch for missing values, a split reads NaN as 0, and a set has no NaN.
    default = np.where(missing == 0, threshold >= 0.0, kinds & 2 > 0) & ~by_category
    children = numbers("left_child"), numbers("right_child")
    zero = (missing == 1) & ~by_category
    values = numbers("leaf_value", np.float64)
    return Tree(numbers("split_feature"), threshold, default, zero, *children, values, sets)


def _appended(first: Any, more: Any) -> Any:
    """Return the trees of a model and those that another one learned on its scores."""
    blocks: list[str] = []
    for one in (first, more):
        body, _, tail = one.model_to_string(num_iteration=-1).partition("end of trees")
        head, *trees = _TREE.split(body)
        blocks += trees
    return _assembled(head, blocks, tail)


def _assembled(head: str, trees: Sequence[str], tail: str) -> Any:
    """Return a booster of trees, and of the text before and after them."""
    blocks = [f"Tree={number}\n{tree}" for number, tree in enumerate(trees)]
    sizes = " ".join(str(len(block.encode())) for block in blocks)
    head = re.sub(r"^tree_sizes=.*$", f"tree_sizes={sizes}", head, flags=re.MULTILINE)
    return import_lightgbm().Booster(model_str=f"{head}{''.join(blocks)}end of trees{tail}")


def _scaled(line: re.Pattern[str], tree: str, factor: float) -> str:
    """Multiply the numbers in matching lines of a tree, keeping the spaces, which matter."""

    def times(number: re.Match[str]) -> str:
        return repr(float(number.group()) * factor)

    def row(found: re.Match[str]) -> str:
        name, _, values = found.group().partition("=")
        return f"{name}={re.sub(r'[^ ]+', times, values)}"

    return line.sub(row, tree)


def _check_whole(text: str) -> None:
    """Raise ValueError unless the model has all its trees: LightGBM might abort otherwise."""
    body, end, rest = text.partition("\nend of trees\n")
    head, _, trees = f"{body}\n".partition("\nTree=0\n")
    sizes = re.search(r"^tree_sizes=([\d ]*)$", head, re.MULTILINE)
    expected = 0 if sizes is None else sum(map(int, sizes.group(1).split()))
    listed = "\npandas_categorical:" in rest and rest.endswith("\n")
    if not end or not listed or expected != (len(f"Tree=0\n{trees}".encode()) if trees else 0):
        raise ValueError("part of it is missing")


def train(job: Job) -> Trained:
    """Train; the error for a gradient that is not finite has the model trained so far."""
    lgb = import_lightgbm()
    # The text "None" turns its metrics off; None would add that of the objective.
    params = {**_QUIET, **job.params, "objective": job.objective, "metric": "None"}
    whole = job.train.pool.part if isinstance(job.train, PooledPart) else job.train
    stored = isinstance(whole.features, RowStore)  # goes on from scores, not from raw rows
    params |= _layout(params) if stored else {}
    job.check_own("LightGBM", lgb.Booster, callable, "functions, as lightgbm.log_evaluation(10) is")
    before = 0 if job.start is None else int(job.start.current_iteration())
    train_set = _data_set(lgb, job, job.train, params, job.bins)
    monitor = job.monitor()
    drops = params.get("boosting") == "dart"
    more = [_seed_drops] if drops and callable(job.objective) else []
    sets = []
    for name, part in job.valid.items():
        same = part is job.train and not drops  # scoring the training set would drop trees
        sets.append(train_set if same else _data_set(lgb, job, part, params, train_set))
        monitor.watch(name, sets[-1])
    grown: list[Any] = []

    def after_round(env: Any) -> None:
        grown[:] = [env.model]
        if monitor.end_round():
            earlier = 0 if stored else before
            raise lgb.callback.EarlyStopException(earlier + monitor.best_round, [])

    after_round.order = 100  # type: ignore[attr-defined]  # after the values of the round
    try:
        booster = lgb.train(
            {key: value for key, value in params.items() if key != _CATEGORICAL},
            train_set,
            job.rounds,
            valid_sets=sets,
            valid_names=list(job.valid),
            feval=monitor if sets else None,
            init_model=None if stored else job.start,
            callbacks=[*job.callbacks, *more, after_round],
        )
    except NumericError as error:
        error.add_note(f"in round {monitor.rounds_done + 1} of {job.rounds}, LightGBM")
        error.model = _fitted(grown[0], 0, params) if grown else None
        raise
    except lgb.basic.LightGBMError as error:
        if "num_features()) > (0)" in str(error):
            raise DataError(
                "there is nothing to learn: LightGBM finds every feature of the training set "
                "constant; check how the features were computed"
            ) from error
        raise ConfigError(f"LightGBM: {error}") from error
    if stored and job.start is not None:
        booster = _appended(job.start, booster)
    kept = job.rounds_kept(monitor, before, booster.best_iteration)
    return job.finished(_fitted(booster, kept, params), monitor, kept, before)


def _layout(params: Any) -> dict[str, bool]:
    """Return the layout of bins that a user left open.

    LightGBM would time both: by rows it copies the bins, and sums have other last bits.
    """
    return {} if any(name in params for name in _LAYOUTS) else {"force_col_wise": True}


def bins(job: Job, part: Part) -> Any:
    """Return a data set of these rows, from whose bins a training can start."""
    lgb = import_lightgbm()
    return _data_set(lgb, job, part, {**_QUIET, **job.params}).construct()


def _seed_drops(env: Any) -> None:
    """Score the training set, as the first round will, then seed the trees that dart drops."""
    if env.iteration == env.begin_iteration:
        env.model.eval_train(lambda scores, data: ("", 0.0, True))
        seed_drops(env.model)


_seed_drops.before_iteration = True  # type: ignore[attr-defined]


def _without_drops(booster: Any) -> Any:
    """Restore the trees of dart that are still dropped, thus negated, after the last round.

    LightGBM leaves them so if that round found no split.
    """
    body, _, tail = booster.model_to_string(num_iteration=-1).partition("end of trees")
    head, *trees = _TREE.split(body)
    if not any(map(_DROPPED.search, trees)):
        return booster
    whole = [_scaled(_VALUES, one, -1.0) if _DROPPED.search(one) else one for one in trees]
    return _assembled(head, [_DROPPED.sub("shrinkage=", one) for one in whole], tail)


def _fitted(booster: Any, n_rounds: int, params: Any) -> LightGBMFitted:
    if params.get("boosting") == "dart":
        booster = _without_drops(booster)
    rounds = n_rounds or booster.current_iteration()
    return LightGBMFitted(booster, rounds, params.get("num_threads"))


def _data_set(
    lgb: Any, job: Job, part: Part | PooledPart, params: Any, reference: Any = None
) -> Any:
    data = part.data
    if isinstance(part, PooledPart):
        whole = part.pool.data_set(lambda every: _data_set(lgb, job, every, params))
        made = whole.subset(part.rows)
        made.free_raw_data = True  # or it would copy the features
        keep_rows(made.construct(), data)
        if data.weight is None and part.pool.part.data.weight is not None:
            made.set_field("weight", None)  # set_weight would keep those of the whole
        return made
    # Only LightGBM's own objectives learn a position bias; ours have already used the positions.
    own = isinstance(job.objective, str) and reference is None
    position = data.columns.get("position") if own else None
    stored = part.features if isinstance(part.features, RowStore) else None
    if stored is not None and (held := stored.data_set(data)) is not None:
        return _continued(stored, held, job.start)
    made = lgb.Dataset(
        part.features if stored is None else _sequence(lgb, stored),
        data.labels,
        group=data.groups.sizes if job.ranks else None,
        weight=data.weight,
        position=None if position is None else position.astype(np.int32),
        reference=reference,
        params={k: v for k, v in params.items() if k not in _NOT_OF_ROWS},
        categorical_feature=params.get(_CATEGORICAL, "auto"),
        free_raw_data=False,  # a model to continue scores the raw rows
        feature_name="auto" if stored is None or stored.names is None else stored.names,
    )
    keep_rows(made, data)
    if stored is None:
        return made
    stored.hold(data, made)
    return _continued(stored, made, job.start)


def _sequence(lgb: Any, store: RowStore) -> Any:
    """Return rows on disk as LightGBM reads them; it keeps a bin of about a byte per value."""

    class Rows(lgb.Sequence):  # type: ignore[misc]
        batch_size = store.block

        def __len__(self) -> int:
            return len(store)

        def __getitem__(self, key: Any) -> Any:
            return np.asarray(store[key], np.float64)

    return Rows()


def _continued(store: RowStore, made: Any, start: Any) -> Any:
    """Let a data set of rows on disk start from the scores of a model."""
    if start is not None:
        made.set_init_score(LightGBMFitted(start, start.current_iteration()).scores(store))
    return made
