"""Models of the study of quality: one training serves every metric it is judged by.

A model is grown to the last round and judged on the validation queries after every round; for
each metric it counts up to its best round there. Scores of committees and of bagged models are
means of standardised scores, which is what their merged files give.
"""

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import gbmrank
from gbmrank.api.training_plans import training_plan
from gbmrank.boosters.base import Part
from gbmrank.boosters.plan import squared_deviations, train
from gbmrank.data.queries import RankingData
from gbmrank.estimators.committee import default_members
from studies.sets import RankingSet

Scores = npt.NDArray[np.float64]

BAGGED = 4  # models of a bagged system: as many as a committee has members
NATIVE: Mapping[str, tuple[tuple[str, int], ...]] = {  # with the number of models to grow
    "lightgbm": (("native:lambdarank", BAGGED), ("native:rank_xendcg", 1)),
    "xgboost": (("native:rank:ndcg", BAGGED), ("native:rank:pairwise", 1)),
    "catboost": (("native:YetiRank", BAGGED), ("native:QueryRMSE", BAGGED)),
}
PARAMS: Mapping[str, Mapping[str, Any]] = {  # chosen on OHSUMED and MovieLens
    "lightgbm": {
        "learning_rate": 0.1,
        "num_leaves": 15,
        "min_data_in_leaf": 20,
        "bagging_fraction": 0.7,
        "bagging_freq": 1,
        "feature_fraction": 0.5,
    },
    "xgboost": {
        "learning_rate": 0.1,
        "grow_policy": "lossguide",
        "max_leaves": 15,
        "max_depth": 0,
        "subsample": 0.7,
        "colsample_bytree": 0.5,
    },
    "catboost": {"learning_rate": 0.1},
}


class Cell(NamedTuple):
    """What is trained together: everything of one booster on one split."""

    set: str
    seed: int
    fold: int
    backend: str


class Model(NamedTuple):
    """Scores of a model by metric, divided by their spread within training queries."""

    scores: dict[str, Scores]  # of the test rows
    valid: dict[str, Scores]
    rounds: dict[str, int]


def members_of(data: RankingSet, goal: str) -> list[str]:
    """Return the members of a committee for a metric, by the labels of this benchmark."""
    found = default_members(gbmrank.metric(data.goals[goal]))
    return [_label(data, str(one)) for one in found]


def split(data: RankingSet, seed: int, fold: int, folds: int) -> list[npt.NDArray[np.int64]]:
    """Return rows to train, to validate and to test on; queries stay whole and in order."""
    _, first, query = np.unique(data.qid, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))[query]  # queries by their first row
    order = np.lexsort((np.arange(len(place)), place))
    rng = np.random.default_rng([seed, 0])
    if data.part is None:
        turn = rng.permutation(len(first)) % folds
        held = np.where(turn == fold, 2, 0)
        learned = np.flatnonzero(held == 0)
        held[rng.permutation(learned)[: len(learned) // 4]] = 1
        part = held[place]
    else:
        part = data.part
        if not (part == 1).any():
            learned = np.unique(place[part == 0])
            chosen = rng.permutation(learned)[: len(learned) // 5]
            part = np.where(np.isin(place, chosen), 1, part)
    return [order[part[order] == number] for number in range(3)]


def run_cell(data: RankingSet, cell: Cell, folds: int, rounds: int, threads: int) -> dict[str, Any]:
    """Train all models of a booster on one split; return the values per query of all systems."""
    began = time.process_time()
    parts = [as_part(data, rows) for rows in split(data, cell.seed, cell.fold, folds)]
    train_one = grow_catboost if cell.backend == "catboost" else grow
    models: dict[str, list[Model]] = {}
    for objective, seeds in _wanted(data, cell.backend):
        models[_label(data, objective)] = [
            train_one(
                data, cell.backend, (objective, 100 * cell.seed + at), parts, (rounds, threads)
            )
            for at in seeds
        ]
    found: dict[str, dict[str, Scores]] = {goal: {} for goal in data.goals}
    for goal in data.goals:
        for label, grown in models.items():
            found[goal][label] = grown[0].scores[goal]
            if len(grown) > 1:
                bag = np.mean([one.scores[goal] for one in grown], axis=0)
                found[goal][f"committee({label}, seeds={len(grown)})"] = bag
        if cell.backend != "catboost":
            members = [models[name][0].scores[goal] for name in members_of(data, goal)]
            found[goal]["committee"] = np.mean(members, axis=0)
    test = parts[2].data
    ids = data.qid[split(data, cell.seed, cell.fold, folds)[2]][test.groups.offsets[:-1]]
    return {
        **cell._asdict(),
        "queries": [str(one) for one in ids],
        "values": {
            goal: {name: _values(data.goals[goal], scores, test) for name, scores in by.items()}
            for goal, by in found.items()
        },
        "rounds": {name: [one.rounds for one in grown] for name, grown in models.items()},
        "cpu": round(time.process_time() - began, 2),
    }


def _wanted(data: RankingSet, backend: str) -> Sequence[tuple[str, range]]:
    """Return the objectives to train with a booster, and the seeds of the models of each.

    The seed of a member is its place, as in ``GBMRanker(objective="committee")``.
    """
    ours: dict[str, range] = {}
    if backend != "catboost":
        for text in data.goals.values():
            for at, one in enumerate(default_members(gbmrank.metric(text))):
                ours[str(one)] = range(at, at + 1)
    return [*ours.items(), *((name, range(count)) for name, count in NATIVE[backend])]


def _label(data: RankingSet, objective: str) -> str:
    """Return the text of an objective without what is special to the labels of a set."""
    for goal, text in data.goals.items():
        objective = objective.replace(text, goal)
    for name in ("yetirank", "query_rmse"):
        if objective == str(gbmrank.objective(name)):
            return name
    return objective.replace("loss=logistic, ", "").replace(", loss=logistic", "")


def as_part(data: RankingSet, rows: npt.NDArray[np.int64]) -> Part:
    """Return rows as a part of a training."""
    _, first, at = np.unique(data.qid[rows], return_index=True, return_inverse=True)
    sizes = np.bincount(at)[np.argsort(first)]
    return Part(
        np.ascontiguousarray(data.X[rows]), RankingData.from_arrays(data.y[rows], group=sizes)
    )


def grow(
    data: RankingSet,
    backend: str,
    what: tuple[str, int],
    parts: Sequence[Part],
    size: tuple[int, int],
) -> Model:
    """Train an objective with a seed, by LightGBM or XGBoost; size is rounds and threads."""
    plan = training_plan(
        objective=what[0],
        metric=list(data.goals.values()),
        backend=backend,
        rounds=size[0],
        params=PARAMS[backend],
        seed=what[1],
        threads=size[1],
        keep_best=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trained = train(plan, parts[0], {"valid": parts[1]})
    curves = {goal: trained.history["valid"][text] for goal, text in data.goals.items()}
    booster = trained.fitted.booster
    if backend == "lightgbm":

        def scores(features: Any, rounds: int) -> Any:
            return booster.predict(features, raw_score=True, num_iteration=rounds, num_threads=1)

        return _judged(curves, scores, parts)
    xgb = __import__("xgboost")
    tables = {id(part.features): xgb.DMatrix(part.features) for part in parts}

    def margins(features: Any, rounds: int) -> Any:
        table = tables[id(features)]
        return booster.predict(table, output_margin=True, iteration_range=(0, rounds))

    return _judged(curves, margins, parts)


def grow_catboost(
    data: RankingSet,
    backend: str,
    what: tuple[str, int],
    parts: Sequence[Part],
    size: tuple[int, int],
) -> Model:
    """Train with CatBoost, with all else at its defaults."""
    from catboost import CatBoost, Pool

    def pool(part: Part) -> Any:
        groups = part.data.groups
        ids = groups.spread(np.arange(groups.n_queries))
        return Pool(part.features, part.data.labels, group_id=ids)

    model = CatBoost(
        {
            "loss_function": what[0].removeprefix("native:"),
            "iterations": size[0],
            "random_seed": what[1],
            "thread_count": size[1],
            "allow_writing_files": False,
            "verbose": False,
            **PARAMS[backend],
        }
    )
    model.fit(pool(parts[0]))
    staged = model.staged_predict(parts[1].features, thread_count=size[1])
    stages = [np.asarray(one, np.float64) for one in staged]
    valid = parts[1].data
    columns = {"group": valid.groups.sizes}
    curves = {
        goal: [gbmrank.metric(text).score(valid.labels, one, **columns) for one in stages]
        for goal, text in data.goals.items()
    }

    def scores(features: Any, rounds: int) -> Any:
        return model.predict(features, ntree_end=rounds, thread_count=size[1])

    return _judged(curves, scores, parts)


def _judged(curves: Mapping[str, Sequence[float]], scores: Any, parts: Sequence[Part]) -> Model:
    """Return what a model gives at its best round for each metric."""
    made: dict[int, list[Scores]] = {}
    rounds = {goal: int(np.argmax(curve)) + 1 for goal, curve in curves.items()}
    for count in set(rounds.values()):
        known = np.asarray(scores(parts[0].features, count), np.float64)
        groups = parts[0].data.groups
        spread = np.sqrt(squared_deviations(known, groups.sizes) / groups.n_rows)
        both = [np.asarray(scores(part.features, count), np.float64) for part in parts[1:]]
        made[count] = [one / spread if spread > 0.0 else np.zeros(len(one)) for one in both]
    valid, test = ({goal: made[count][at] for goal, count in rounds.items()} for at in (0, 1))
    return Model(test, valid, rounds)


def _values(metric: str, scores: Scores, test: RankingData) -> list[float | None]:
    found = gbmrank.metric(metric).per_query(test.labels, scores, group=test.groups.sizes)
    return [None if np.isnan(one) else round(float(one), 6) for one in found]
