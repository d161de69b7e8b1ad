"""A model file on the command line, and the columns of data that it reads."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from gbmrank.boosters.base import Fitted
from gbmrank.data.readers import Header, RankingFile
from gbmrank.data.schema import Schema
from gbmrank.data.tables import category_frame
from gbmrank.estimators import load
from gbmrank.estimators.model_file import read_model
from gbmrank.types import FloatArray, IntArray


@final
@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model and its columns; ``model`` is a ranker if gbmrank saved it, else a booster."""

    model: Any
    fitted: Fitted
    columns: Schema

    @classmethod
    def read(cls, path: str) -> "ModelFile":
        """Read the file."""
        fitted, text = read_model(Path(path), True)
        if text is None:
            return cls(fitted.booster, fitted, fitted.columns)
        model = load(path)
        return cls(model, fitted, model._columns)

    def header(self, label: str | None, qid: str | None) -> Header:
        """Return which columns to read: those of the model by name, where it has names."""
        names = self.columns.names
        kinds = [names[at] for at in self.columns.categorical or ()] if names else []
        return Header(label=label, qid=qid, features=names, need_label=False, categorical=kinds)

    def features(self, file: RankingFile, rows: IntArray | None = None) -> Any:
        """Return the features of rows; LETOR files may leave out the last zeros."""
        values = np.zeros((0, 0)) if file.X is None else file.X
        values = values if rows is None else values[rows]
        if file.by_index and values.shape[1] < self.columns.count:
            values = np.pad(values, ((0, 0), (0, self.columns.count - values.shape[1])))
        if file.by_index or (self.columns.names is None and not file.categories):
            return values
        names = list(file.feature_names)
        coded = {names.index(k): v for k, v in file.categories.items()}
        return category_frame(values, names, coded)

    def scores(self, file: RankingFile) -> FloatArray:
        """Return the scores of all rows."""
        return self.columns.scores(self.fitted, self.features(file), who="the model")
