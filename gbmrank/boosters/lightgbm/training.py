"""The text of a LightGBM model, checked before LightGBM reads it.

LightGBM reads trees in threads of its own, where an error ends the whole process, and follows
the numbers of nodes and features wherever they lead.

Training with LightGBM.
"""

import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final
from urllib.parse import quote, unquote

import numpy as np

from gbmrank.boosters.base import Job, Part, import_booster, keep_ids
from gbmrank.boosters.lightgbm.dataset import READS
from gbmrank.data.files import BLANK, NAME, with_checksum
from gbmrank.errors import ConfigError, DataError, NumericError
from gbmrank.types import FloatArray

__all__ = ["LightGBMFitted", "check_model", "load_lightgbm", "train_lightgbm"]


_FLOAT = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d{1,3})?|nan|inf)"
_FLOATS = re.compile(rf"(?:{_FLOAT}(?: +{_FLOAT})*)?", re.ASCII)
_WHOLE = re.compile(r"(?:-?\d{1,18}(?: +-?\d{1,18})*)?", re.ASCII)
_PARAMETER = re.compile(r"\[\w+: .*\]")
_PER_NODE = ("split_gain", "threshold", "internal_value", "internal_weight")
_WHOLE_PER_NODE = ("split_feature", "decision_type", "left_child", "right_child", "internal_count")


def check_model(text: str) -> None:
    """Raise ValueError unless the text is a whole model, every tree of it.

    Parameters
    ----------
    text : str
        As ``lightgbm.Booster.save_model`` writes it.
    """
    head, trees, rest = _cut(text)
    features = _one(head, "max_feature_idx") + 1
    start = 0
    for number, size in enumerate(_whole(head, "tree_sizes")):
        block = trees[start : start + size]
        start += size
        if not block.startswith(f"Tree={number}\n") or not block.endswith("\n\n"):
            raise ValueError(f"tree {number} does not begin or end where the file says")
        try:
            _check_tree(_fields(block), features)
        except ValueError as error:
            raise ValueError(f"tree {number}: {error}") from error
    if trees[start:]:
        raise ValueError("there are more trees than the file says")
    _check_end(rest)


def _cut(text: str) -> tuple[dict[str, str], str, str]:
    """Return the fields of the head, the trees, and what follows them."""
    body, mark, rest = text.partition("\nend of trees\n")
    if not mark:
        raise ValueError("the end of the trees is missing")
    head, mark, trees = f"{body}\n".partition("\nTree=0\n")
    return _fields(head), f"Tree=0\n{trees}" if mark else "", rest


def _check_end(rest: str) -> None:
    listed, mark, end = rest.partition("\nparameters:\n")[2].partition("\nend of parameters\n")
    last = end.strip()
    if not mark or not last.startswith("pandas_categorical:"):
        raise ValueError("its end is missing")
    broken = [line for line in listed.split("\n") if line and not _PARAMETER.fullmatch(line)]
    if broken:
        raise ValueError(f"{broken[0][:40]!r} is no parameter")
    json.loads(last.removeprefix("pandas_categorical:"))


def _fields(block: str) -> dict[str, str]:
    lines = (line.partition("=") for line in block.split("\n"))
    return {name: value for name, mark, value in lines if mark}


def _check_tree(fields: Mapping[str, str], features: int) -> None:
    leaves, categorical = _one(fields, "num_leaves"), _one(fields, "num_cat")
    _check_count("leaf_value", _floats(fields, "leaf_value"), leaves)
    if leaves == 1:
        return  # the other fields are empty
    for name in _PER_NODE:
        _check_count(name, _floats(fields, name), leaves - 1)
    _check_count("leaf_weight", _floats(fields, "leaf_weight"), leaves)
    _check_count("leaf_count", _whole(fields, "leaf_count"), leaves)
    _check_nodes(fields, leaves, features)
    _check_categories(fields, categorical)
    if _one(fields, "is_linear"):
        _check_linear(fields, leaves, features)


def _check_nodes(fields: Mapping[str, str], leaves: int, features: int) -> None:
    nodes = {name: _whole(fields, name) for name in _WHOLE_PER_NODE}
    for name, values in nodes.items():
        _check_count(name, values, leaves - 1)
    if not all(0 <= feature < features for feature in nodes["split_feature"]):
        raise ValueError("it splits on a feature that there is not")
    children = sorted(nodes["left_child"] + nodes["right_child"])
    if children != [*range(-leaves, 0), *range(1, leaves - 1)]:  # each node and leaf once
        raise ValueError("its nodes make no tree")


def _check_categories(fields: Mapping[str, str], categorical: int) -> None:
    if categorical == 0 and not any(kind & 1 for kind in _whole(fields, "decision_type")):
        return
    ends, bits = _whole(fields, "cat_boundaries"), _whole(fields, "cat_threshold")
    if len(ends) != categorical + 1 or ends != sorted(ends) or ends[0] or ends[-1] != len(bits):
        raise ValueError("its sets of categories do not fit together")
    kinds = zip(_whole(fields, "decision_type"), _floats(fields, "threshold"), strict=True)
    if not all(0 <= float(at) < categorical for kind, at in kinds if kind & 1):
        raise ValueError("it splits on a set of categories that there is not")


def _check_linear(fields: Mapping[str, str], leaves: int, features: int) -> None:
    counts, used = _whole(fields, "num_features"), _whole(fields, "leaf_features")
    _check_count("leaf_const", _floats(fields, "leaf_const"), leaves)
    _check_count("num_features", counts, leaves)
    _check_count("leaf_features", used, sum(counts))
    _check_count("leaf_coeff", _floats(fields, "leaf_coeff"), sum(counts))
    if min(counts) < 0 or not all(0 <= feature < features for feature in used):
        raise ValueError("a leaf uses a feature that there is not")


def _check_count(name: str, values: Sequence[object], count: int) -> None:
    if len(values) != count:
        raise ValueError(f"{name} has {len(values)} numbers in place of {count}")


def _one(fields: Mapping[str, str], name: str) -> int:
    values = _whole(fields, name)
    _check_count(name, values, 1)
    return values[0]


def _whole(fields: Mapping[str, str], name: str) -> list[int]:
    return [int(word) for word in _words(fields, name, _WHOLE)]


def _floats(fields: Mapping[str, str], name: str) -> list[str]:
    return _words(fields, name, _FLOATS)


def _words(fields: Mapping[str, str], name: str, numbers: re.Pattern[str]) -> list[str]:
    if name not in fields:
        raise ValueError(f"{name} is missing")
    text = fields[name].strip(" ")
    if numbers.fullmatch(text) is None:
        raise ValueError(f"{name} holds what is no number")
    return text.split()


# A model file lists the parameters of its training, and LightGBM hands that list on when it
# loads and saves. Of all of them "data", the path of a training file, means the least to a model
# made from memory. The text is percent-encoded: LightGBM reads the list without a notion of
# quotes.
_SLOT = re.compile(r"^\[data: [^\]]*\]$", re.MULTILINE)
_MARK = "gbmrank "
_PLAIN = " (),.@_-=+/"


@final
class LightGBMFitted:
    """A LightGBM booster that predicts up to its best round.

    Parameters
    ----------
    booster : lightgbm.Booster
        The model.
    n_rounds : int
        Rounds that count.
    threads : int or None, default=None
        Of predictions; LightGBM does not remember those of the training.
    """

    backend = "lightgbm"
    reads = READS

    def __init__(self, booster: Any, n_rounds: int, threads: int | None = None) -> None:
        self.booster = booster
        self._n_rounds = n_rounds
        self._options = {} if threads is None else {"num_threads": threads}

    @property
    def n_rounds(self) -> int:
        """Number of rounds that count."""
        return self._n_rounds

    def scores(self, features: Any) -> FloatArray:
        """Return one raw score per row."""
        raw = self.booster.predict(
            features, raw_score=True, num_iteration=self._n_rounds, **self._options
        )
        return np.asarray(raw, np.float64)

    def importances(self) -> FloatArray:
        """Return the summed gain of the splits on each feature."""
        gain = self.booster.feature_importance("gain", iteration=self._n_rounds)
        return np.asarray(gain, np.float64)

    def stamp(self, identity: str) -> None:
        """Keep a text in the model, which is cut after its best round."""
        lgb = import_booster("lightgbm")
        text = self.booster.model_to_string(num_iteration=self._n_rounds)
        line = f"[data: {_MARK}{quote(identity, safe=_PLAIN)}]"
        self.booster = lgb.Booster(model_str=_SLOT.sub(lambda _: line, text, count=1))
        self.booster.best_iteration = self._n_rounds

    def save(self, path: str) -> None:
        """Write the model as LightGBM does, and a checksum as a line of its head.

        LightGBM reads past a line it does not know, and leaves it out when it saves.
        """
        first, rest = self.booster.model_to_string(num_iteration=self._n_rounds).split("\n", 1)
        text = f"{first}\n{NAME}={BLANK}\n{rest}"
        Path(path).write_bytes(with_checksum(text.encode()))


def load_lightgbm(data: bytes, path: str) -> tuple[LightGBMFitted, str | None]:
    """Read a model file and the text it was stamped with, if any; ``path`` is for messages."""
    lgb = import_booster("lightgbm")
    try:
        text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8").read()
        check_model(text)
        booster = lgb.Booster(model_str=text)
    except (lgb.basic.LightGBMError, ValueError) as error:
        raise DataError(
            f"{path} is a damaged or cut model of LightGBM: save it anew ({error})"
        ) from error
    found = _SLOT.search(text)
    value = "" if found is None else found.group()[len("[data: ") : -1]
    identity = unquote(value.removeprefix(_MARK)) if value.startswith(_MARK) else None
    return LightGBMFitted(booster, booster.current_iteration()), identity


def train_lightgbm(job: Job) -> LightGBMFitted:
    """Train; on a gradient that is not finite the error carries the model so far."""
    lgb = import_booster("lightgbm")
    # With its filter LightGBM fails on few rows, where a constant model can say why it is one.
    quiet = {"verbosity": -1, "feature_pre_filter": False}
    params = {**quiet, **job.params, "objective": job.objective, "metric": "None"}
    train = _data_set(lgb, job.train, params)
    valid = {
        name: train if part is job.train else _data_set(lgb, part, params, reference=train)
        for name, part in job.valid.items()
    }
    for name, data in valid.items():
        job.monitor.watch(name, data)
    grown: list[Any] = []

    def after_round(env: Any) -> None:
        grown[:] = [env.model]
        if job.monitor.end_round():
            raise lgb.callback.EarlyStopException(job.monitor.best_round, [])

    after_round.order = 100  # type: ignore[attr-defined]  # after the values of the round
    try:
        booster = lgb.train(
            params,
            train,
            job.rounds,
            valid_sets=list(valid.values()),
            valid_names=[f"valid{number}" for number in range(len(valid))],
            feval=job.monitor if valid else None,
            callbacks=[after_round],
        )
    except NumericError as error:
        error.model = _fitted(grown[0], 0, params) if grown else None
        raise
    except lgb.basic.LightGBMError as error:
        if "num_features()) > (0)" in str(error):
            raise DataError(
                "there is nothing to learn: no feature of the training set differs between rows "
                "in a way that LightGBM sees; look at how the features were made"
            ) from error
        raise ConfigError(f"LightGBM: {error}") from error
    return _fitted(booster, job.rounds_to_keep, params)


def _fitted(booster: Any, n_rounds: int, params: Any) -> LightGBMFitted:
    rounds = n_rounds or booster.current_iteration()
    return LightGBMFitted(booster, rounds, params.get("num_threads"))


def _data_set(lgb: Any, part: Part, params: Any, reference: Any = None) -> Any:
    data = part.data
    made = lgb.Dataset(
        part.features,
        data.labels,
        group=data.groups.sizes,
        weight=data.weight,
        reference=reference,
        params={key: value for key, value in params.items() if key != "objective"},
        free_raw_data=False,
    )
    keep_ids(made, data.groups.ids)
    return made
