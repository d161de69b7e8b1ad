"""Comparisons on clicks: how systems correct for position bias, and how they are evaluated.

A system uses clicks as labels (naive), or a prefix of its name says how it corrects them for
positions: ``debiased:`` divides a click by the propensity of its position, or leaves it to the
booster for a native objective. Early stopping uses clicks over propensities for all systems, and
so does the evaluation on the test queries, unless the truth is given.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from gbmrank.api import MetricList, Objective
from gbmrank.api.committees import Committee
from gbmrank.boosters.base import Part
from gbmrank.boosters.plan import PREFIX, Native
from gbmrank.boosters.supported import BOOSTERS, booster_named
from gbmrank.clicks import PositionBias, estimate_bias
from gbmrank.data.columns import read_number
from gbmrank.data.position_bias import read_positions, utilities_of
from gbmrank.data.queries import RankingData
from gbmrank.errors import ConfigError, DataError, GbmrankError, GbmrankWarning
from gbmrank.estimators.click_training import ClickTraining
from gbmrank.experiments.results import DEBIASED, split_name
from gbmrank.experiments.sources import Source
from gbmrank.experiments.splits import cut, judged
from gbmrank.objectives import check_takes_bias
from gbmrank.types import IntArray

METHOD = "em"
"""Method that estimates the bias if none is given."""
_NAIVE = "pairwise(target=identity)"
_SHOWN = 10  # propensities in a sentence


def check_correction(one: Objective | Native | Committee) -> None:
    """Raise unless an objective supports the correction of clicks."""
    if isinstance(one, Objective):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GbmrankWarning)  # every run warns
            check_takes_bias(one.template)
        return
    able = [f"{DEBIASED}:{PREFIX}{name}" for booster in BOOSTERS for name in booster.debiased]
    if f"{DEBIASED}:{one}" not in able:
        raise ConfigError(
            f"{DEBIASED}:{one} is not supported. Use {', '.join(able)}, or an objective of gbmrank "
            f"that supports a position bias, such as {DEBIASED}:{_NAIVE}"
        )


def click_objectives() -> list[str]:
    """Return the default objectives on clicks: naive, corrected, and native ones."""
    own = (f"{PREFIX}{name}" for booster in BOOSTERS for name in booster.debiased[:1])
    return [_NAIVE, f"{DEBIASED}:{_NAIVE}", *(f"{DEBIASED}:{name}" for name in own)]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Clicks:
    """Position bias by which clicks are corrected; a part of the design."""

    judge: PositionBias  # estimated from all queries, for the evaluation of every system
    # One per fold, of its training queries, to train corrected systems and to stop all early.
    learned: tuple[PositionBias, ...]
    clip: float | None = None  # smallest propensity in training and validation, not in evaluation
    truth: str | None = None  # where the truth comes from, if it is given

    def to_json(self) -> dict[str, Any]:
        """Return plain data, which is saved with the results."""
        biases = {"judge": self.judge.to_dict(), "learned": [one.to_dict() for one in self.learned]}
        return {**biases, "clip": self.clip, "truth": self.truth}

    def training(self, objective: str, fold: int, part: Part) -> Part:
        """Return the training rows of a system, with corrected clicks if it corrects them."""
        how, minimised = split_name(objective)
        position = part.data.columns["position"]
        plain = Part(part.features, replace(part.data, columns={}))
        if how is None:
            return plain
        if minimised.startswith(PREFIX):  # the booster reads the positions
            return Part(part.features, plain.data.with_columns({"position": position}))
        return ClickTraining(position, self.learned[fold], self.clip).with_positions(plain)

    def validation(self, fold: int, part: Part) -> Part:
        """Return validation rows whose clicks count one over their propensities."""
        worth = utilities_of(part.data, self.learned[fold], self.clip)
        return Part(part.features, replace(part.data, columns={}).with_clicks(worth))

    def judged(self, data: RankingData) -> RankingData:
        """Return test rows, with the truth or with clicks over propensities as labels."""
        plain = replace(data, columns={})
        if self.truth is not None:
            return replace(plain, labels=np.nan_to_num(data.columns["truth"]))
        return plain.with_clicks(utilities_of(data, self.judge))

    def check_metrics(self, metrics: MetricList) -> None:
        """Raise for metrics that cannot be estimated from clicks."""
        needed = list(metrics)[: None if self.truth is None else 1]
        bent = next((one for one in needed if not one.measure.linear), None)
        if bent is not None:
            why = " and early stopping goes by clicks" if self.truth is not None else ""
            raise ConfigError(
                f"{bent} cannot be estimated from clicks and positions: it is not a sum over items"
                f"{why}. Put dcg@10 first, or another one of dcg, precision, wta, rbp and eru"
            )

    def sentence(self) -> str:
        """Return a sentence about how systems are evaluated."""
        few = ", ".join(f"{one:.2f}" for one in self.judge.propensity[:_SHOWN])
        more = ", ..." if self.judge.n_positions > _SHOWN else ""
        source = "as given" if self.judge.method == "given" else f"estimated ({self.judge.method})"
        bias = f"the propensity of its position, {source}: {few}{more}"
        if self.truth is not None:
            return (
                f"labels are clicks, and systems are judged by the truth ({self.truth}), which "
                f"none has seen; they stop early by clicks, each over {bias}"
            )
        return (
            "labels are clicks, and values are estimates from clicks, no judgments: on test "
            f"queries a click counts as one over {bias}. Where these are wrong, so are the values, "
            "in favour of systems that are trained with them"
        )


def read_log(
    source: Source, folds: int, share: float, bias: Any, clip: float | None, backend: str
) -> tuple[Clicks | None, tuple[str, ...]]:
    """Validate clicks and positions, and estimate the bias; warnings become notes."""
    if "position" not in source.data.columns:
        asked = {"position_bias": bias, "clip": clip, "truth": source.data.columns.get("truth")}
        useless = next((name for name, given in asked.items() if given is not None), None)
        if useless is not None:
            raise ConfigError(
                f"{useless} needs clicks with positions; name the column of positions (position, "
                "--position)"
            )
        return None, ()
    _check_log(source, folds)
    if clip is not None:
        clip = read_number(clip, "clip", 0.0, 1.0)
    truth = source.origins["truth"] if "truth" in source.data.columns else None
    if isinstance(bias, PositionBias):
        bias.theta(source.data.columns["position"])
        return Clicks(judge=bias, learned=(bias,) * folds, clip=clip, truth=truth), ()
    if bias not in (None, METHOD):
        raise ConfigError(
            f"position_bias must be a gbmrank.clicks.PositionBias or {METHOD!r}, got {bias!r}"
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        judge = _estimate(source, np.arange(source.n_queries), backend)
        messages = tuple(str(one.message) for one in caught if one.category is GbmrankWarning)
        learned = []
        for fold in range(folds):  # from the training and validation queries, for every seed
            split = cut(source.scheme, folds=folds, share=share, at=(0, fold))
            queries = np.sort(np.concatenate([split.train, split.valid]))
            learned.append(_estimate(source, queries, backend))
    return Clicks(judge=judge, learned=tuple(learned), clip=clip, truth=truth), messages


def _check_log(source: Source, folds: int) -> None:
    data = source.data
    graded = np.flatnonzero(~np.isin(data.labels, (0.0, 1.0)))
    if len(graded):
        raise DataError(
            "with positions labels are clicks, and clicks are 0 or 1; query "
            f"{data.groups.query_of(int(graded[0]))!r} has {data.labels[graded[0]]:g}. For graded "
            "labels leave positions out; for counts of clicks give one row per impression"
        )
    try:
        read_positions(data.columns["position"])
    except DataError as error:
        raise DataError(f"{error} (rows are numbered query by query)") from error
    truth = data.columns.get("truth")
    if truth is None:
        return
    tested = np.zeros(source.n_queries, dtype=bool)
    tested[judged(source.scheme, folds)] = True
    missing = np.flatnonzero(data.groups.spread(tested) & ~np.isfinite(truth))
    if len(missing):
        raise DataError(
            f"{len(missing)} rows of test queries have no truth, first one of query "
            f"{data.groups.query_of(int(missing[0]))!r}; leave these queries out"
        )


def _estimate(source: Source, queries: IntArray, backend: str) -> PositionBias:
    """Estimate the bias from some queries, reproducibly for any number of threads."""
    groups = source.data.groups
    query, booster = groups.spread(np.arange(groups.n_queries)), booster_named(backend)
    rows = np.flatnonzero(np.isin(query, queries))
    try:
        return estimate_bias(
            source.data.labels[rows],
            source.data.columns["position"][rows],
            qid=query[rows],
            X=source.X[rows],
            method=METHOD,
            resamples=0,
            backend=backend,
            **{**booster.tuning.repeatable, booster.parameters.threads: 1},
        )
    except GbmrankError as error:
        error.add_note("while the position bias was estimated; give position_bias= if you know it")
        raise
