"""Fronts of several goals side by side: ``gbmrank compare --goals``.

A run is one :class:`gbmrank.GoalRanker` on the queries of a fold. The folder keeps one line of JSON
for each that is finished, and the same comparison continues from there.
"""

import contextlib
import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from gbmrank.api import metric, objective
from gbmrank.boosters.supported import BACKENDS
from gbmrank.data.files import write_whole
from gbmrank.errors import ConfigError, DataError, GbmrankWarning
from gbmrank.estimators import Front
from gbmrank.estimators.goal_ranker import FEWEST, GoalRanker
from gbmrank.experiments import provenance
from gbmrank.experiments.design import Design, Options, Task
from gbmrank.experiments.preparation import Settings, check_plans, shares
from gbmrank.experiments.progress import Progress
from gbmrank.experiments.results import Run, System
from gbmrank.experiments.sources import Source, goal_key
from gbmrank.experiments.splits import check_split, judged
from gbmrank.experiments.store import Store, locked
from gbmrank.experiments.systems import installed_backends, split_list
from gbmrank.experiments.trial import failed_run, part_of, split_of
from gbmrank.types import FloatArray

_EVERY = 4  # of the 41 settings of a dial one in four is shown
_MOST_GRADE = 31  # of exponential gains
_LINES, _SCHEMA = "goals.jsonl", "gbmrank.goals/1"
_Goals: TypeAlias = Mapping[str, Mapping[str, str]]
_Line: TypeAlias = dict[str, Any]


class _Settings(NamedTuple):
    """Settings of one system; NaN weights are those of given scores."""

    system: str
    at: FloatArray
    weights: FloatArray
    values: FloatArray  # of shape (n_settings, n_goals, n_queries)


@final
@dataclass(frozen=True, slots=True, eq=False)
class GoalComparison:
    """What every setting of every system is worth, on test queries.

    The front has the settings of all systems; differences are to the one that is ``served``.
    """

    title: str
    goals: _Goals  # column, objective and metric of each
    front: Front
    systems: tuple[str, ...]  # of each setting
    failed: tuple[_Line, ...]
    notes: tuple[str, ...]

    @property
    def about(self) -> str:
        """What the numbers are."""
        queries, at = self.front.per_query.shape[2], self.front.served
        reference = f"{self.systems[at]} {self.setting(at)}".strip()
        return (
            f"Means over {queries:,} test queries; behind each its difference to {reference}, "
            "paired by query, with intervals that hold for all rows at once (95%)."
        )

    def setting(self, row: int) -> str:
        """Return the name of a setting; that of given scores is empty."""
        at, weights = self.front.at[row], self.front.weights[row]
        if weights.max() == 1.0:
            return f"{self.front.goals[int(np.argmax(weights))]} alone"
        if np.isnan(weights).any():
            return ""
        return " ".join(f"{one:.2f}" for one in weights) if np.isnan(at) else f"at {at:.1f}"

    def rows(self) -> list[list[str]]:
        """Return system, setting, a cell for each goal, and a mark, for each setting."""
        front, (means, widths) = self.front, self.front.differences()
        dominated, made = front.dominated, []
        for row, known in enumerate(zip(front.values, means, widths, strict=True)):
            cells = [f"{v:.4f} {d:+.4f} ±{wide:.4f}" for v, d, wide in zip(*known, strict=True)]
            mark = "dominated" if dominated[row] else ""
            mark = "reference" if row == front.served else mark
            made.append([self.systems[row], self.setting(row), *cells, mark])
        return made

    def to_html(self) -> str:
        """Return a page with the picture and the table, which loads nothing from elsewhere."""
        from gbmrank.experiments.report.goals import comparison_page

        return comparison_page(self)

    def to_json(self) -> _Line:
        """Return everything as plain data."""
        columns = {name: _plain(column) for name, column in self.front.table().items()}
        names = [self.setting(row) for row in range(len(self.systems))]
        columns = {"system": self.systems, "setting": names, **columns}
        return {
            "schema": _SCHEMA,
            "title": self.title,
            "goals": self.goals,
            "about": self.about,
            "settings": [
                dict(zip(columns, one, strict=True)) for one in zip(*columns.values(), strict=True)
            ],
            "failed": list(self.failed),
            "notes": list(self.notes),
        }


def compare_goals(
    source: Source,
    settings: Settings,
    finish: Callable[[GoalComparison], None],
    *,
    columns: Mapping[str, str],
) -> GoalComparison:
    """Train a ranker of all goals in every booster, and value its settings on test queries.

    ``columns`` has the name of each goal's label column; the labels are columns of the source.
    ``finish`` may write into the folder while it is locked.
    """
    goals = _goals(source, columns, settings.metrics)
    design = _design(source, goals, settings)
    plan = {
        "goals": goals,
        "data": {"queries": source.n_queries, "sha256": source.digest()},
        "design": design.to_json(),
        "versions": provenance.versions(),
        "code": provenance.fingerprints([metric(one["metric"]) for one in goals.values()]),
    }
    parts = [_given(source, goals, name, design.folds) for name in source.scores]
    folder, progress = Path(settings.out or "."), settings.progress or Progress()
    with locked(folder, progress.note):
        store = Store.begin(folder, plan, resume=not settings.force, force=settings.force)
        done, failed = _run_all(source, design, goals, store.runs / _LINES, progress)
        if not done:
            raise DataError(f"every run failed; the first: {failed[0]['error']}")
        for system in design.systems:
            if own := {task: done[task] for task in done if task.system == system}:
                parts.append(_pooled(source, design, own))
        notes = [*_notes(source, design, done)]
        found = _comparison(source, goals, parts, failed, notes)
        finish(found)
    return found


def _goals(source: Source, columns: Mapping[str, str], metrics: Any) -> dict[str, dict[str, str]]:
    """Return column, objective and metric of each goal.

    The first is valued by NDCG with exponential gains if it has grades, the others by linear ones.
    """
    labels = [source.data.columns[goal_key(goal)] for goal in columns]
    starts = source.data.groups.offsets[:-1]
    for goal, one in zip(columns, labels, strict=True):
        if not (np.minimum.reduceat(one, starts) < np.maximum.reduceat(one, starts)).any():
            raise DataError(
                f"the labels of {goal} (column {columns[goal]!r}) are missing, or the same for all "
                "rows of a query, in every query; leave this goal out"
            )
    known = labels[0][~np.isnan(labels[0])]
    grades = (known == np.floor(known)).all() and known.min() >= 0 and known.max() <= _MOST_GRADE
    linear = "ndcg(gain=linear)@10"
    usual = ["ndcg@10" if grades else linear, *[linear] * (len(columns) - 1)]
    given = usual if metrics is None else split_list(metrics)
    if len(given) not in (1, len(columns)):
        raise ConfigError(
            f"with goals, --metrics is one metric for all goals or one for each of "
            f"{', '.join(columns)}; got {len(given)}"
        )
    given = [str(metric(one)) for one in given] * (len(columns) if len(given) == 1 else 1)
    return {
        goal: {"column": column, "objective": f"query_rmse(target={name})", "metric": name}
        for (goal, column), name in zip(columns.items(), given, strict=True)
    }


def _design(source: Source, goals: _Goals, settings: Settings) -> Design:
    """Validate everything that can be validated before the first training."""
    backends = tuple(settings.backends or installed_backends())
    if unknown := [one for one in (*backends, *(settings.params_for or ())) if one not in BACKENDS]:
        raise ConfigError(
            f"{unknown[0]!r} is not a booster; with goals, --backends and --param-for name "
            f"{' or '.join(BACKENDS)}"
        )
    objectives = [str(objective(one["objective"])) for one in goals.values()]  # raises if invalid
    design = Design(
        **{one.name: getattr(settings, one.name) for one in fields(Options)},
        systems=tuple(System(one, objectives[0]) for one in dict.fromkeys(backends)),
        metrics=tuple(dict.fromkeys(one["metric"] for one in goals.values())),
    )
    folds = design.folds if source.parts is None else 1
    # A folder with runs is continued, with their number of threads.
    _, threads = shares(replace(settings, resume=not settings.force), 1, here=True)
    design = replace(design, folds=folds, threads=threads)
    check_plans(design)
    check_split(source.scheme, folds)
    for task in design.tasks:
        split = split_of(source, design, task)
        if min(len(split.valid), len(split.test)) < FEWEST:
            raise DataError(
                f"fold {task.fold + 1} has {len(split.valid)} validation and {len(split.test)} "
                f"test queries, but a dial needs {FEWEST} of each; give more queries, fewer folds "
                "or another share for validation (--folds, --valid-share)"
            )
    return design


def _run_all(
    source: Source, design: Design, goals: _Goals, path: Path, progress: Progress
) -> tuple[dict[Task, _Line], list[_Line]]:
    """Do the runs that are missing; return what is known of finished ones, and of those failed."""
    done: dict[Task, _Line] = {}
    for text in path.read_text("utf-8").splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):  # a line that a killed process left unfinished
            line = json.loads(text)
            done[Task(System(*line["system"]), line["seed"], line["fold"])] = line
    write_whole(path, "".join(f"{json.dumps(line)}\n" for line in done.values()).encode())
    failed = []
    progress.begin(len(design.tasks), len(done))
    try:
        for task in [one for one in design.tasks if one not in done]:
            progress.started(task)
            try:
                line, run = _trained(source, design, goals, task)
            except Exception as error:
                run = failed_run(design, task, error)
                failed.append({**task._asdict(), "error": run.error})  # tried again next time
            else:
                with path.open("a", encoding="utf-8") as file:
                    file.write(f"{json.dumps(line, allow_nan=False)}\n")
                done[task] = line
            progress.finished(task, run)
    except (KeyboardInterrupt, OSError) as stopped:  # Ctrl-C, a full disk
        kept = f"{len(done)} of {len(design.tasks)} runs are done"
        if isinstance(stopped, KeyboardInterrupt):
            raise KeyboardInterrupt(f"stopped; {kept}") from None
        stopped.add_note(kept)
        raise
    finally:
        progress.end()
    return {task: done[task] for task in design.tasks if task in done}, failed


def _trained(source: Source, design: Design, goals: _Goals, task: Task) -> tuple[_Line, Run]:
    """Train on one fold; the test queries value the front and serve nothing else."""
    split, started = split_of(source, design, task), time.perf_counter()
    parts = [part_of(source, queries) for queries in split]
    ids = [np.repeat(one, part.data.groups.sizes) for one, part in zip(split, parts, strict=True)]
    sets = [
        (part.features, {goal: part.data.columns[goal_key(goal)] for goal in goals})
        for part in parts
    ]
    model = GoalRanker(
        {goal: one["objective"] for goal, one in goals.items()},
        backend=task.system.backend,
        metric={goal: one["metric"] for goal, one in goals.items()},
        n_estimators=design.rounds,
        early_stopping_rounds=design.early_stopping,
        seed=task.seed,
        n_jobs=design.threads,
        **design.params_of(task.system),
    )
    weight = parts[0].data.weight
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*sets[0], qid=ids[0], sample_weight=weight, eval_set=sets[1:], eval_qid=ids[1:])
    front, seconds = model.front_, time.perf_counter() - started
    shown = slice(None, None, -_EVERY if len(goals) == 2 else -1)  # the first goal alone first
    told = [str(one.message) for one in caught if issubclass(one.category, GbmrankWarning)]
    line = {
        **task._asdict(),
        "seconds": seconds,
        "at": _plain(front.at[shown]),
        "weights": front.weights[shown].tolist(),
        "values": _plain(front.per_query[shown]),
        "warnings": told,
    }
    values = {front.metrics[0]: front.per_query[front.served, 0]}
    best = model.rankers_[front.goals[0]].best_iteration_
    return line, Run(**task._asdict(), values=values, best_round=best, seconds=seconds)


def _pooled(source: Source, design: Design, lines: Mapping[Task, _Line]) -> _Settings:
    """Return the settings of one booster: all test queries, means over seeds."""
    weights = np.mean([line["weights"] for line in lines.values()], axis=0)
    tested = judged(source.scheme, design.folds)
    values = np.full((len(design.seeds), *weights.shape, len(tested)), np.nan)
    for task, line in lines.items():
        places = np.searchsorted(tested, split_of(source, design, task).test)
        values[design.seeds.index(task.seed)][:, :, places] = np.array(line["values"], np.float64)
    count = (~np.isnan(values)).sum(axis=0)
    mean = np.where(count > 0, np.nansum(values, axis=0) / np.maximum(count, 1), np.nan)
    dials = np.array([line["at"] for line in lines.values()], np.float64)
    at = dials[int(np.argmin(np.isnan(dials).any(axis=1)))]  # the same in all runs that have one
    return _Settings(f"{next(iter(lines)).system.backend} GoalRanker", at, weights, mean)


def _notes(source: Source, design: Design, lines: Mapping[Task, _Line]) -> Iterator[str]:
    yield from (*source.notes, *provenance.column_notes(source, design))
    if (leakage := source.leakage()) is not None:
        yield leakage
    for system in design.systems:
        own = [None in line["at"] for task, line in lines.items() if task.system == system]
        if any(own) and len(next(iter(lines.values()))["weights"][0]) == 2:
            yield (
                f"{system.backend}: in {sum(own)} of {len(own)} runs the models of the goals do "
                "not clearly differ, so settings are weights there and no levelled dial"
            )
    for task, line in lines.items():
        where = f"{task.system.backend}, fold {task.fold + 1}, seed {task.seed}"
        yield from (f"{where}: {text}" for text in line["warnings"])


def _comparison(
    source: Source, goals: _Goals, parts: Sequence[_Settings], failed: Sequence[_Line], notes: Any
) -> GoalComparison:
    """Put the settings of all systems into one front, over the queries all have values of."""
    known = np.logical_and.reduce([~np.isnan(one.values).all(axis=(0, 1)) for one in parts])
    if not known.any():
        raise DataError(f"no query has values of all systems; {len(failed)} runs failed")
    for one in failed:
        where = Task(one["system"], one["seed"], one["fold"])
        notes = [*notes, f"{where}: failed, {one['error']}"]
    if not known.all():
        notes = [*notes, f"{(~known).sum()} queries without values of all systems are left out"]
    first = parts[0].weights
    even = np.abs(first - 1.0 / len(goals)).sum(axis=1)
    front = Front(
        goals=tuple(goals),
        metrics=tuple(one["metric"] for one in goals.values()),
        at=np.concatenate([one.at for one in parts]),
        weights=np.concatenate([one.weights for one in parts]),
        per_query=np.concatenate([one.values for one in parts])[:, :, known],
        served=len(first) // 2 if len(goals) == 2 else int(np.argmin(even)),
    )
    systems = tuple(one.system for one in parts for _ in one.at)
    return GoalComparison(source.title, goals, front, systems, tuple(failed), tuple(notes))


def _given(source: Source, goals: _Goals, name: str, folds: int) -> _Settings:
    """Return scores of an existing model, valued as GoalRanker values its settings."""
    groups, tested = source.data.groups, judged(source.scheme, folds)
    rows = groups.spread(np.isin(np.arange(groups.n_queries), tested))
    scores, sizes = source.scores[name][rows], groups.sizes[tested]
    if not np.isfinite(scores).all():
        raise DataError(
            f"{int((~np.isfinite(scores)).sum())} rows of test queries have no finite score of "
            f"{name!r}; leave these queries out, or give unranked rows the lowest score"
        )
    values = np.full((1, len(goals), len(tested)), np.nan)
    for number, (goal, about) in enumerate(goals.items()):
        labels, measure = source.data.columns[goal_key(goal)][rows], metric(about["metric"])
        lowest = np.minimum(np.minimum.reduceat(labels, np.cumsum(sizes) - sizes), 0.0)
        known = ~np.isnan(lowest)
        kept = np.repeat(known, sizes)
        shifted = (labels - np.repeat(lowest, sizes))[kept]
        found = measure.per_query(shifted, scores[kept], group=sizes[known])
        values[0, number, known] = found if measure.higher_is_better else -found
    return _Settings(name, np.array([np.nan]), np.full((1, len(goals)), np.nan), values)


def _plain(values: Any) -> Any:
    """Return numbers as nested lists, with None for NaN."""
    shown = np.array(values, dtype=object)
    shown[np.isnan(values)] = None
    return shown.tolist()
