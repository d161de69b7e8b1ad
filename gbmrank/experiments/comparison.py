"""``gbmrank.compare``: train objectives fold by fold and compare them query by query."""

import contextlib
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, final

from gbmrank.data.files import write_whole
from gbmrank.data.readers import FileOptions, Header
from gbmrank.errors import ConfigError, DataError, LeakageWarning, NoProgressWarning, warn
from gbmrank.experiments import provenance, summary
from gbmrank.experiments.design import Design, Task, plain_seeds
from gbmrank.experiments.pool import run_here, run_in_processes
from gbmrank.experiments.preparation import Prepared, Settings, demonstration, prepare
from gbmrank.experiments.progress import Progress, duration, printable, progress_on
from gbmrank.experiments.results import DEBIASED, Measure, Results, Run, split_name
from gbmrank.experiments.sources import Source, further_columns, read_source
from gbmrank.experiments.splits import time_table
from gbmrank.experiments.statistics.analysis import Analysis
from gbmrank.experiments.statistics.estimates import analyse
from gbmrank.experiments.store import (
    Store,
    check_folder,
    json_bytes,
    locked,
    per_query_csv,
    results_to_json,
)
from gbmrank.experiments.systems import find_baseline, own_baselines
from gbmrank.experiments.trial import failed_run, regret_name, seconds_needed


@final
@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Result of :func:`gbmrank.compare`.

    Parameters
    ----------
    results : Results
        Every run, with the values of single queries.
    analysis : Analysis
        Means, intervals, tests.
    """

    results: Results
    analysis: Analysis

    @property
    def notes(self) -> tuple[str, ...]:
        """Caveats about the table: failures, ties, queries that do not count."""
        return summary.notes(self.results, self.analysis)

    def table(self) -> str:
        """Return the results as text: the verdict, then one row per system, the best first."""
        shown = summary.as_text(summary.summary_table(self.results, self.analysis))
        lines = [*map(printable, self.verdict), "", shown, *summary.footnotes(self.results), ""]
        last = [self.analysis.verdict, *(f"note: {note}" for note in self.notes)]
        return "\n".join([*lines, *map(printable, last)])

    @property
    def verdict(self) -> tuple[str, ...]:
        """What wins, what it costs, and what is not established; or why there is no result."""
        failure = summary.failure_sentence(self.results)
        if failure is not None:
            return (failure,)
        found = summary.verdict_of(self.results, self.analysis)
        return (self.analysis.verdict,) if found is None else tuple(found)

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """Return the verdict and the table as HTML, for notebooks."""
        from gbmrank.experiments.report import notebook

        head, rows, _ = summary.summary_table(self.results, self.analysis)
        told = [*summary.footnotes(self.results), self.analysis.verdict, *self.notes]
        return str(notebook(self.verdict, head, rows, told))

    def to_html(self, path: str | Path) -> None:
        """Write a self-contained HTML report; an existing file is replaced."""
        from gbmrank.experiments.report import write_report

        write_report(self.results, self.analysis, path)

    def to_json(self, path: str | Path) -> None:
        """Write all measurements and the analysis as JSON; an existing file is replaced."""
        document = {**results_to_json(self.results), "analysis": self.analysis.to_dict()}
        write_whole(Path(path).absolute(), json_bytes(document))

    def to_csv(self, path: str | Path) -> None:
        """Write the value of every query as CSV; an existing file is replaced."""
        write_whole(Path(path).absolute(), per_query_csv(self.results))


def compare(  # noqa: PLR0913  (every option of the public call has a name)
    data: Any = None,
    *,
    objectives: Any = None,
    quick: bool = False,
    metrics: Any = None,
    backends: Sequence[str] | None = None,
    folds: int = 5,
    seeds: int | Sequence[int] = 1,
    rounds: int = 300,
    early_stopping: int | None = 30,
    valid_share: float = 0.2,
    params: Mapping[str, Any] | None = None,
    params_for: Mapping[str, Mapping[str, Any]] | None = None,
    tune: int = 0,
    tuner: str = "random",
    baseline: str | None = None,
    margin: float = 0.0,
    label: str | None = None,
    qid: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    weight: Any = None,
    position: Any = None,
    position_bias: Any = None,
    clip: float | None = None,
    truth: Any = None,
    time: Any = None,
    scores: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    jobs: int | None = None,
    threads: int | None = None,
    isolate: bool = True,
    progress: bool = False,
) -> Comparison:
    """Compare objectives on data.

    Every objective is trained in every booster on the same queries, stopped early by the first
    metric on validation queries, and evaluated query by query on test queries. Options,
    parameters and splits are validated before the first training. A run that fails is reported;
    the others continue.

    Parameters
    ----------
    data : path, list of paths, (X, y, qid), frame, mapping or None
        LETOR, CSV or Parquet files; arrays; a pandas, polars or pyarrow table; ``{"train":
        ..., "valid": ..., "test": ...}`` of these for predefined splits. None is the built-in
        demonstration, where the exact regret of every ranking is also measured.
    objectives : list of str or Objective, or str, optional
        Objectives to compare, as a list or separated by commas; ``native:lambdarank``,
        ``native:rank_xendcg``, ``native:regression``, ``native:rank:ndcg``,
        ``native:rank:pairwise``, ``native:rank:map``, ``native:reg:squarederror`` for the
        boosters' own; ``crossfit:committee`` trains in folds, on validation queries too
        (:class:`gbmrank.GBMRanker`), and ``distilled:committee`` is the one model learned from
        that. By default the recommended objective for the first metric, the committee,
        the ranking loss of each booster, its squared error, and as many models of its ranking
        loss as the committee has: what the committee must beat, at equal cost.
    quick : bool, default=False
        Leave the committees out of the default objectives: they train several models.
    metrics : str or list, optional
        Metrics to report. The first is used for early stopping, tuning and the order of the
        table; ``ndcg@10`` by default.
    backends : list of {"lightgbm", "xgboost"}, optional
        Boosters; by default all that are installed.
    folds : int, default=5
        Folds of queries; not used with predefined splits. With ``time``, 1 is allowed.
    seeds : int or list of int, default=1
        Number of repetitions, or their seeds, for the booster and the choice of validation
        queries.
    rounds : int, default=300
        Maximum number of boosting rounds per run.
    early_stopping : int or None, default=30
        Rounds without improvement before a run stops.
    valid_share : float, default=0.2
        Share of the training queries of a run that is used for validation.
    params : dict, optional
        Parameters of the boosters; the learning rate is 0.1 unless set here.
    params_for : dict of dict, optional
        Parameters of one backend, one objective, or one system (``"lightgbm ranknet"``).
    tune : int, default=0
        Parameter settings tried per run, the same number for every system; the first one is the
        parameters as given.
    tuner : {"random", "optuna"}, default="random"
        How the other settings are drawn.
    baseline : str, optional
        System that the others are compared with: an objective, ``"backend objective"`` or a name of
        ``scores``. By default the first of ``scores``. Without them, every system is compared with
        the first native objective of its own booster that could be trained, else its first
        objective; the baselines of the boosters are compared with each other.
    margin : float, default=0.0
        Smallest difference that matters in practice.
    label, qid : str, optional
        Columns of a table; by default found by their usual names.
    features : list of str, optional
        Columns of a table, or indices of a LETOR file as strings; patterns such as ``bm25_*``
        are allowed. By default all other columns, except those that look like an id, another
        label or the score of a model, and text of many values: a note lists them.
    drop : list of str, default=()
        Columns to leave out, or patterns.
    categorical : list of str, default=()
        Names of categorical features, besides columns of a categorical type. Boosters read them
        from pandas data frames, so pandas is needed.
    weight : str or array, optional
        Weights for training and validation: a column, or an array with one entry per row or per
        query (in the order of their first rows). If the rows of a query differ, they are weights
        of items: runs of objectives that do not support them fail, and validation ignores them.
        All test queries have equal weight.
    position : str or array, optional
        Position at which each row was shown, from 1. Labels are then clicks, 0 or 1, each query
        is one list that was shown, and objectives may correct for positions:
        ``debiased:pairwise(target=identity)``, ``debiased:native:lambdarank`` (LightGBM's
        ``position``), ``debiased:native:rank:ndcg`` (XGBoost's ``lambdarank_unbiased``). Early
        stopping and evaluation use estimates from clicks over propensities, so metrics must be sums
        over items, ``dcg@10`` by default.
    position_bias : PositionBias or "em", default="em"
        Examination propensities. ``"em"`` estimates them from the training queries of each fold for
        training, and from all queries for the evaluation.
    clip : float, optional
        Propensities below this are raised to it in training and validation.
    truth : str or array, optional
        With ``position``: true labels, for example in simulations. Systems are trained on clicks
        and evaluated on the truth; metrics after the first may then be any.
    time : str or array, optional
        Time of each query: numbers or dates; the earliest of its rows counts. Queries are then
        split into ``folds + 1`` blocks by time; fold f is trained on the blocks up to f, whose
        latest queries are used for validation, and tested on the next one. Queries of equal time
        are never on both sides. The first block is never tested.
    scores : dict, optional
        Scores of existing models by name, such as ``{"production": "old_score"}``: a column, an
        array with one score per row, or a ``pathlib.Path`` to a file with one number per line.
        They are evaluated on the same queries as the others and not trained. With predefined
        splits, an array or file has the rows of ``test``; for other columns give a mapping such as
        ``{"train": ..., "test": ...}``.
    out : path, optional
        Folder in which every finished run is kept.
    resume : bool, default=False
        Continue the comparison in ``out``.
    force : bool, default=False
        Overwrite the comparison in ``out``.
    jobs : int, optional
        Runs in parallel; by default as many as threads.
    threads : int, optional
        Threads of all runs together; by default all of the machine.
    isolate : bool, default=True
        Run in separate processes. With losses that were registered in this process, everything
        runs here, sequentially, regardless of this option.
    progress : bool, default=False
        Show progress on standard error.

    Returns
    -------
    Comparison
        ``print`` it, or see ``.table()``, ``.analysis``, ``.to_html(path)``.

    Examples
    --------
    >>> from gbmrank.data.demonstration import demo_data
    >>> found = compare(
    ...     demo_data(60), objectives=["pairwise", "ranknet"], metrics="ndcg@10",
    ...     backends=["lightgbm"], folds=2, rounds=5, isolate=False,
    ... )
    >>> len(found.results.runs), found.results.measures[-1]
    (4, Measure(name='regret@10', higher_is_better=False))
    """
    given = dict(locals())
    given |= {"seeds": plain_seeds(seeds), "progress": progress_on() if progress else None}
    names = {one.name for one in fields(Settings)} & given.keys()
    settings = Settings(**{name: given[name] for name in names})
    columns = Header(label=label, qid=qid, features=features, drop=drop, categorical=categorical)
    if data is None:
        settings = demonstration(settings)
    further = further_columns(weight, position, time, scores, truth)
    source = read_source(data, FileOptions(columns=columns), further)
    if (leakage := source.leakage()) is not None:
        warn(leakage, LeakageWarning)
    return compare_source(source, settings)


def compare_source(
    source: Source, settings: Settings, finish: Callable[[Comparison], None] | None = None
) -> Comparison:
    """Compare on a source; ``finish`` may write into the folder while it is locked."""
    prepared = prepare(source, settings)
    with _opened(prepared, settings) as store:
        _run_all(prepared, store, settings.progress or Progress())
        tasks = prepared.design.tasks
        lost = DataError("the run could not be saved; is the disk full?")
        runs = tuple(store.load(task) or failed_run(prepared.design, task, lost) for task in tasks)
        results = _results(prepared, runs, settings)
        found = Comparison(results, analyse(results, margin=prepared.margin))
        if finish is not None:
            finish(found)
    constant = Counter(run.system for run in runs if summary.is_constant(run))
    for system, times in constant.items():
        warn(
            f"{system}: all scores are equal in {times} runs, so nothing was learned; check the "
            "learning rate, the smallest leaf weight and the features",
            NoProgressWarning,
        )
    return found


@contextlib.contextmanager
def _opened(prepared: Prepared, settings: Settings) -> Iterator[Store]:
    """Open the folder of the runs, or a temporary one if none is given."""
    source = prepared.source
    counts = {"rows": source.data.groups.n_rows, "queries": source.n_queries}
    width = int(source.X.shape[1])
    plan = {
        "data": {**counts, "features": width, "sha256": source.digest()},
        "design": prepared.design.to_json(),
        "versions": provenance.versions(),
        "code": provenance.fingerprints([*prepared.chosen.objectives.values(), prepared.metrics]),
    }
    if settings.out is not None:
        folder, how = Path(settings.out), {"resume": settings.resume, "force": settings.force}
        check_folder(folder, **how)
        with locked(folder, (settings.progress or Progress()).note):
            yield Store.begin(folder, plan, **how)
        return
    if settings.resume:
        raise ConfigError("resume needs the folder of the comparison: give out")
    with tempfile.TemporaryDirectory(prefix="gbmrank-") as folder_name:
        yield Store.begin(Path(folder_name), plan)


def _run_all(prepared: Prepared, store: Store, progress: Progress) -> None:
    """Run the tasks that are not done yet; on Ctrl-C report what was kept."""
    design = prepared.design
    done = {Task(run.system, run.seed, run.fold) for run in store.done(design.tasks)}
    waiting = [task for task in design.tasks if task not in done]
    if type(progress) is not Progress:  # somebody reads it
        progress.note(prepared.source.described())
        progress.note(_ahead(prepared, waiting))
    progress.begin(len(design.tasks), len(done))
    try:
        if prepared.jobs and waiting:
            run_in_processes(prepared.source, design, waiting, store, progress, prepared.jobs)
        else:
            run_here(prepared.source, design, waiting, store, progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"stopped; {_kept(design, store)}") from None
    except OSError as error:  # a full disk
        error.add_note(_kept(design, store))
        raise
    finally:
        progress.end()


def _ahead(prepared: Prepared, waiting: Sequence[Task]) -> str:
    """Say what will be done, and about how long it takes."""
    design, jobs = prepared.design, max(prepared.jobs, 1)
    text = f"{len(waiting)} runs of up to {design.rounds} rounds, {jobs} at a time"
    with warnings.catch_warnings(), contextlib.suppress(Exception):  # the runs will raise it
        warnings.simplefilter("ignore")
        seconds = seconds_needed(prepared.source, design, waiting) / jobs
        text += f": about {duration(seconds)}, less where early stopping ends a run"
    return text


def _kept(design: Design, store: Store) -> str:
    return f"{sum(1 for _ in store.done(design.tasks))} of {len(design.tasks)} runs are done"


def _results(prepared: Prepared, runs: tuple[Run, ...], settings: Settings) -> Results:
    design, metrics, chosen = prepared.design, prepared.metrics, prepared.chosen
    source = prepared.source
    notes = [*provenance.column_notes(source, design), *chosen.notes]
    if (leakage := source.leakage()) is not None:
        notes.append(leakage)
    audit = provenance.data_facts(source, notes)
    if design.clicks is not None:
        audit["judged_by"] = design.clicks.sentence()
    if source.times is not None:
        audit["split_by_time"] = time_table(source.times, design.folds, design.valid_share)
    k, judged = design.regret_k, chosen.objectives
    if design.clicks is not None:  # no verdicts on uncorrected clicks as labels
        judged = {name: one for name, one in judged.items() if split_name(name)[0] == DEBIASED}
    regret = () if k is None else (Measure(regret_name(k), higher_is_better=False),)
    return Results(
        title=source.title,
        systems=chosen.systems,
        measures=(*(Measure(str(one), one.higher_is_better) for one in metrics), *regret),
        queries=provenance.queries_of(source, design.folds),
        runs=runs,
        **_baselines(prepared, runs, settings),
        verdicts=provenance.verdicts(judged, metrics, k),
        audit=audit,
        settings={**design.to_json(), "margin": prepared.margin},
        conventions={str(one): provenance.conventions(one) for one in metrics},
        environment=provenance.environment(settings.command),
    )


def _baselines(prepared: Prepared, runs: tuple[Run, ...], settings: Settings) -> dict[str, Any]:
    """Return the baseline, and by default that of each booster, among systems with values."""
    # A default baseline that could not be trained would leave nothing to compare with.
    measured = {run.system for run in runs if run.error is None}
    good = [system for system in prepared.chosen.systems if system in measured]
    if settings.baseline is not None or not good:
        return {"baseline": prepared.baseline}
    return {"baseline": find_baseline(good, None), "baselines": own_baselines(good)}
