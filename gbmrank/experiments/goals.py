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
from gbmrank.types import FloatArray, IntArray

_EVERY = 4  # of the 41 settings of a dial one in four is shown
_MOST_GRADE = 31  # of exponential gains
_LINES, _SCHEMA = "goals.jsonl", "gbmrank.goals/1"
_Goals: TypeAlias = Mapping[str, Mapping[str, str]]
_Line: TypeAlias = dict[str, Any]


class _System(NamedTuple):
    """Settings of one system."""

    name: str
    at: FloatArray
    weights: FloatArray
    values: FloatArray  # of shape (n_settings, n_goals, n_queries)

    def names(self, goals: Sequence[str]) -> Iterator[str]:
        """Yield the name of each setting; that of given scores is empty."""
        for at, weights in zip(self.at, self.weights, strict=True):
            if weights.max() == 1.0:
                yield f"{goals[int(np.argmax(weights))]} alone"
            elif not np.isnan(at):
                yield f"at {at:.1f}"
            else:
                known = weights[~np.isnan(weights)]
                yield " ".join(f"{one:.2f}" for one in known)


@final
@dataclass(frozen=True, slots=True, eq=False)
class GoalComparison:
    """What every setting of every system is worth, on test queries.

    Parameters
    ----------
    title : str
        Name of the data.
    goals : dict
        Column, objective and metric of each goal.
    front : Front
        Settings of all systems, one after the other; ``served`` is the one differences are to.
    systems : dict
        Rows of the front that belong to each system.
    names : tuple of str
        Name of each setting.
    failed : tuple of dict
        Runs that failed, and why.
    notes : tuple of str
        What to know about the data and the runs.
    """

    title: str
    goals: _Goals
    front: Front
    systems: Mapping[str, IntArray]
    names: tuple[str, ...]
    failed: tuple[_Line, ...]
    notes: tuple[str, ...]

    @property
    def reference(self) -> str:
        """Name of the setting that differences are taken to."""
        at = self.front.served
        system = next(name for name, rows in self.systems.items() if at in rows)
        return " ".join(filter(None, (system, self.names[at])))

    @property
    def about(self) -> str:
        """What the numbers are."""
        queries = self.front.per_query.shape[2]
        return (
            f"Means over {queries:,} test queries; behind each its difference to {self.reference}, "
            "paired by query, with intervals that hold for all rows at once (95%)."
        )

    def mark(self, row: int) -> str:
        """Return what is special about a row."""
        if row == self.front.served:
            return "reference"
        return "dominated" if self.front.dominated[row] else ""

    def to_html(self) -> str:
        """Return a page with the picture and the table, which loads nothing from elsewhere."""
        from gbmrank.experiments.report.goals import comparison_page

        return comparison_page(self)

    def to_json(self) -> _Line:
        """Return everything as plain data."""
        front, (means, widths) = self.front, self.front.differences()
        owner = {row: name for name, rows in self.systems.items() for row in rows.tolist()}
        settings = []
        for row, name in enumerate(self.names):
            known = zip(front.goals, front.values[row], means[row], widths[row], strict=True)
            settings.append(
                {
                    "system": owner[row],
                    "setting": name,
                    "at": _plain(front.at[row]),
                    "weights": _plain(front.weights[row]),
                    "values": {
                        goal: {"mean": value, "difference": mean, "half_width": width}
                        for goal, value, mean, width in known
                    },
                    "dominated": bool(front.dominated[row]),
                }
            )
        return {
            "schema": _SCHEMA,
            "title": self.title,
            "goals": self.goals,
            "queries": front.per_query.shape[2],
            "reference": self.reference,
            "settings": settings,
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
    labels = {goal: source.data.columns[goal_key(goal)] for goal in columns}
    for goal, values in labels.items():
        _check_labels(source, goal, columns[goal], values)
    goals = _goals(columns, settings.metrics, labels)
    design = _design(source, goals, settings)
    plan = {
        "goals": goals,
        "data": {"queries": source.n_queries, "sha256": source.digest()},
        "design": design.to_json(),
        "versions": provenance.versions(),
        "code": provenance.fingerprints([metric(one["metric"]) for one in goals.values()]),
    }
    given = [_given(source, goals, name, design.folds) for name in source.scores]
    folder, progress = Path(settings.out or "."), settings.progress or Progress()
    with locked(folder, progress.note):
        store = Store.begin(folder, plan, resume=not settings.force, force=settings.force)
        lines, failed = _lines(source, design, goals, store.runs / _LINES, progress)
        if not lines:
            raise DataError(f"every run failed; the first: {failed[0]['error']}")
        found = _comparison(source, design, goals, given, lines, failed)
        finish(found)
    return found


def _check_labels(source: Source, goal: str, column: str, labels: FloatArray) -> None:
    starts = source.data.groups.offsets[:-1]
    if np.isnan(labels).all():
        raise DataError(f"all labels of {goal} (column {column!r}) are missing")
    if not (np.minimum.reduceat(labels, starts) < np.maximum.reduceat(labels, starts)).any():
        raise DataError(
            f"the labels of {goal} (column {column!r}) are the same for all rows of every query "
            "that has all of them, so there is no order to learn; leave this goal out"
        )


def _goals(
    columns: Mapping[str, str], metrics: Any, labels: Mapping[str, FloatArray]
) -> dict[str, dict[str, str]]:
    """Return column, objective and metric of each goal.

    The first is valued by NDCG with exponential gains if it has grades, the others by linear ones.
    """
    first = next(iter(labels.values()))
    known = first[~np.isnan(first)]
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


def _lines(
    source: Source,
    design: Design,
    goals: _Goals,
    path: Path,
    progress: Progress,
) -> tuple[list[_Line], tuple[_Line, ...]]:
    """Return the lines of finished runs, after the runs that are missing, and those that failed."""
    done = _finished(path)
    write_whole(path, "".join(f"{json.dumps(one)}\n" for one in done.values()).encode())
    failed = []
    progress.begin(len(design.tasks), len(done))
    try:
        for task in design.tasks:
            key = task.system.backend, task.seed, task.fold
            if key in done:
                continue
            progress.started(task)
            try:
                line, run = _trained(source, design, goals, task)
            except Exception as error:
                run = failed_run(design, task, error)
                about = dict(zip(("backend", "seed", "fold"), key, strict=True))
                failed.append({**about, "error": run.error})
            else:
                with path.open("a", encoding="utf-8") as file:
                    file.write(f"{json.dumps(line, allow_nan=False)}\n")
                done[key] = line
            progress.finished(task, run)
    except (KeyboardInterrupt, OSError) as stopped:
        kept = f"{len(done)} of {len(design.tasks)} runs are done"
        if isinstance(stopped, KeyboardInterrupt):
            raise KeyboardInterrupt(f"stopped; {kept}") from None
        stopped.add_note(kept)
        raise
    finally:
        progress.end()
    return list(done.values()), tuple(failed)


def _finished(path: Path) -> dict[tuple[str, int, int], _Line]:
    """Return the lines of finished runs; one that a killed process left unfinished is dropped."""
    done = {}
    for text in path.read_text("utf-8").splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):
            line = json.loads(text)
            done[line["backend"], line["seed"], line["fold"]] = line
    return done


def _trained(source: Source, design: Design, goals: _Goals, task: Task) -> tuple[_Line, Run]:
    """Train on one fold; the test queries value the front and serve nothing else."""
    split, started = split_of(source, design, task), time.perf_counter()
    learned, valid, test = (part_of(source, queries) for queries in split)
    sets = [
        (
            (part.features, {goal: part.data.columns[goal_key(goal)] for goal in goals}),
            np.repeat(queries, part.data.groups.sizes),
        )
        for part, queries in zip((learned, valid, test), split, strict=True)
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
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(
            *sets[0][0],
            qid=sets[0][1],
            sample_weight=learned.data.weight,
            eval_set=[one for one, _ in sets[1:]],
            eval_qid=[ids for _, ids in sets[1:]],
        )
    shown = slice(None, None, -_EVERY if len(goals) == 2 else -1)  # the first goal alone first
    front = model.front_
    line = {
        "backend": task.system.backend,
        "seed": task.seed,
        "fold": task.fold,
        "seconds": time.perf_counter() - started,
        "at": None if np.isnan(front.at).any() else front.at[shown].tolist(),
        "weights": front.weights[shown].tolist(),
        "values": _plain(front.per_query[shown]),
        "warnings": [
            str(one.message) for one in caught if issubclass(one.category, GbmrankWarning)
        ],
    }
    values = {str(front.metrics[0]): front.per_query[front.served, 0]}
    best, seconds = model.rankers_[front.goals[0]].best_iteration_, line["seconds"]
    return line, Run(**task._asdict(), values=values, best_round=best, seconds=seconds)


def _comparison(
    source: Source,
    design: Design,
    goals: _Goals,
    given: Sequence[_System],
    lines: Sequence[_Line],
    failed: Sequence[_Line],
) -> GoalComparison:
    """Put the settings of all systems into one front, over the queries all have values of."""
    parts = list(given)
    notes = [*source.notes, *provenance.column_notes(source, design)]
    if (leakage := source.leakage()) is not None:
        notes.append(leakage)
    for system in design.systems:
        own = [line for line in lines if line["backend"] == system.backend]
        if own:
            parts.append(_pooled(source, design, system, own))
        flat = sum(line["at"] is None for line in own)
        if flat and len(goals) == 2:
            notes.append(
                f"{system.backend}: in {flat} of {len(own)} runs the models of the two goals do "
                "not clearly differ, so settings are weights there and no levelled dial"
            )
        notes += [
            f"{system.backend}, fold {line['fold'] + 1}: {text}"
            for line in own
            for text in line["warnings"]
        ]
    known = np.logical_and.reduce([~np.isnan(one.values).all(axis=(0, 1)) for one in parts])
    if not known.any():
        raise DataError(f"no query has values of all systems; {len(failed)} runs failed")
    if not known.all():
        notes.append(f"{int((~known).sum())} queries without values of all systems are left out")
    weights = np.concatenate([one.weights for one in parts])
    even = np.abs(parts[0].weights - 1.0 / len(goals)).sum(axis=1)
    middle = len(even) // 2 if len(goals) == 2 else int(np.argmin(even))
    front = Front(
        goals=tuple(goals),
        metrics=tuple(one["metric"] for one in goals.values()),
        at=np.concatenate([one.at for one in parts]),
        weights=weights,
        per_query=np.concatenate([one.values for one in parts])[:, :, known],
        served=0 if source.scores else middle,
    )
    ends = np.cumsum([len(one.at) for one in parts])
    return GoalComparison(
        title=source.title,
        goals=goals,
        front=front,
        systems={
            one.name: np.arange(end - len(one.at), end)
            for one, end in zip(parts, ends, strict=True)
        },
        names=tuple(name for one in parts for name in one.names(list(goals))),
        failed=tuple(failed),
        notes=tuple(dict.fromkeys(notes)),
    )


def _pooled(source: Source, design: Design, system: System, lines: Sequence[_Line]) -> _System:
    """Return the settings of a booster: means over seeds, of all test queries."""
    weights = np.mean([line["weights"] for line in lines], axis=0)
    tested = judged(source.scheme, design.folds)
    values = np.full((len(design.seeds), *weights.shape, len(tested)), np.nan)
    for line in lines:
        task = Task(system, line["seed"], line["fold"])
        places = np.searchsorted(tested, split_of(source, design, task).test)
        values[design.seeds.index(task.seed)][:, :, places] = np.array(line["values"], np.float64)
    at = next((line["at"] for line in lines if line["at"] is not None), [np.nan] * len(weights))
    count = (~np.isnan(values)).sum(axis=0)
    mean = np.where(count > 0, np.nansum(values, axis=0) / np.maximum(count, 1), np.nan)
    return _System(f"{system.backend} GoalRanker", np.array(at), weights, mean)


def _given(source: Source, goals: _Goals, name: str, folds: int) -> _System:
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
    return _System(name, np.array([np.nan]), np.full((1, len(goals)), np.nan), values)


def _plain(values: Any) -> Any:
    """Return numbers as nested lists, with None for NaN."""
    shown = np.array(values, dtype=object)
    shown[np.isnan(values)] = None
    return shown.tolist()
