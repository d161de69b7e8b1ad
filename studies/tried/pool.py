"""Single models of this study: those of the study of quality with other objectives and seeds.

Sets, splits, settings and rounds are the same. Every model is trained once; its scores are kept.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import gbmrank
from gbmrank.boosters.base import Part
from gbmrank.data.queries import RankingData
from studies.quality.models import NATIVE, Cell, Scores, as_part, grow, members_of, split
from studies.sets import RankingSet

GOALS = ("ndcg@10", "err@10", "map")
FOLDS, ROUNDS = 3, 100
SIZE = 4  # models of the default committee
CALIBRATED = "pairwise(target=ndcg@10)"
_SHARES = (0.25, 0.5, 0.75)  # of yetirank in a mix


class Member(NamedTuple):
    """A model: what it minimises, as pages write it, and which of its seeds it has."""

    objective: str
    seed: int


def native(backend: str) -> str:
    """Return the booster's own objective that four seeds are taken of."""
    return NATIVE[backend][0][0]


def swaps(goal: str) -> dict[str, str]:
    """Return ``swap`` for a metric, one parameter changed at a time: by name, the objective.

    Draws and temperature belong to the noise, so they change around ``noise=logistic``.
    """
    changes = [
        "",
        "noise=logistic",
        "noise=gumbel",
        *(f"noise=logistic, draws={count}" for count in (1, 30)),
        *(f"noise=logistic, temperature={heat}" for heat in (0.5, 2.0)),
        "pairs=neighbours",
        *(f"truncation={rank}" for rank in (10, 30)),
        "norm=true",
    ]
    named = {f"swap, {one}" if one else "swap": one for one in changes}
    return {
        name: f"swap(metric={goal}, {one})" if one else f"swap(metric={goal})"
        for name, one in named.items()
    }


def yetiranks() -> dict[str, str]:
    """Return ``yetirank`` with other draws and temperatures."""
    changes = ("draws=1", "draws=30", "temperature=0.5", "temperature=2.0")
    return {"yetirank": "yetirank", **{f"yetirank, {one}": f"yetirank({one})" for one in changes}}


def mixes(hessians: Mapping[str, float] | None = None) -> dict[str, str]:
    """Return sums of ``yetirank`` and ``query_rmse``, the second kind scaled by mean Hessians."""
    found = {}
    for share in _SHARES:
        weights = [share, 1.0 - share]
        found[f"mix, {share} of yetirank"] = f"mix(yetirank, query_rmse, weights={weights})"
    for share in _SHARES:
        name = f"mix, {share} of yetirank, scaled"
        found[name] = name
        if hessians is not None:
            scaled = [share / hessians["yetirank"], (1.0 - share) / hessians["query_rmse"]]
            found[name] = f"mix(yetirank, query_rmse, weights={scaled})"
    return found


def pool(data: RankingSet, backend: str) -> list[Member]:
    """Return the models that committees are made of.

    Member k of a committee has seed k, as in ``GBMRanker``, and 4 + k where there are two of each;
    with seed 0 it stands for its objective alone.
    """
    wanted = dict.fromkeys(Member(native(backend), seed) for seed in range(2 * SIZE))
    for goal in GOALS:
        for at, name in enumerate(members_of(data, goal)):
            wanted |= dict.fromkeys(Member(name, seed) for seed in (0, at, SIZE + at))
    return list(wanted)


@lru_cache(maxsize=8)
def _parts(key: tuple[int, int, int]) -> list[Part]:
    data = _known[key[0]]
    return [as_part(data, rows) for rows in split(data, key[1], key[2], FOLDS)]


_known: dict[int, RankingSet] = {}


def parts_of(data: RankingSet, seed: int, fold: int) -> list[Part]:
    """Return what to train, to validate and to test on."""
    _known[id(data)] = data
    return _parts((id(data), seed, fold))


def query_ids(data: RankingSet, seed: int, fold: int) -> npt.NDArray[np.str_]:
    """Return the names of the test queries."""
    rows = split(data, seed, fold, FOLDS)[2]
    starts = parts_of(data, seed, fold)[2].data.groups.offsets[:-1]
    return data.qid[rows][starts].astype(str)


def train(data: RankingSet, cell: Cell, member: Member, goals: Sequence[str]) -> dict[str, Scores]:
    """Return the standardised scores of a model, by part and metric."""
    parts = parts_of(data, cell.seed, cell.fold)
    text = _text(data, member.objective, parts[0].data)
    seed = 100 * cell.seed + member.seed
    model = grow(data, cell.backend, (text, seed), parts, (ROUNDS, 1))
    return {
        f"{part} {goal}": scores[goal]
        for part, scores in (("valid", model.valid), ("test", model.scores))
        for goal in goals
    }


def _text(data: RankingSet, objective: str, train: RankingData) -> str:
    """Return an objective with the metrics of a set, and with the scales of a mix."""
    if objective.endswith("scaled"):
        zeros, sizes = np.zeros(len(train.labels)), train.groups.sizes
        hessians = {
            name: float(
                gbmrank.objective(name).gradients(train.labels, zeros, group=sizes)[1].mean()
            )
            for name in ("yetirank", "query_rmse")
        }
        return mixes(hessians)[objective]
    for goal in ("err@10", "map"):
        objective = objective.replace(f"={goal}", f"={data.goals[goal]}")
    return objective
