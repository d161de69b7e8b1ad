"""The tables of a report, and the view of the results that its sections share."""

import base64
import gzip
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from gbmrank.experiments.report.markup import (
    Child,
    Html,
    breakable,
    color,
    details,
    el,
    fixed,
    number,
    percent,
    signed,
    table,
)
from gbmrank.experiments.results import Results, System
from gbmrank.experiments.statistics.analysis import Analysis, Comparison, Interval, MeasureAnalysis
from gbmrank.experiments.statistics.estimates import Paired, paired
from gbmrank.experiments.store import json_bytes, per_query_csv, results_to_json
from gbmrank.experiments.systems import title_of

_MARKS = {"better": "\u25b2", "worse": "\u25bc", "undecided": ""}
_TONES = {"calibrated": "better", "conditional": "same", "not calibrated": "worse"}
_FACTS = {
    "rows": "Rows",
    "queries": "Queries",
    "features": "Features",
    "longest": "Longest query, rows",
    "singletons": "Queries of one row",
    "without_relevant": "Queries without a relevant row",
    "all_labels_equal": "Queries with equal labels",
    "duplicate_rows": "Duplicate rows",
    "label_counts": "Rows by label",
    "categorical": "Categorical features",
    "weights": "Weights",
    "positions": "Positions",
    "given_scores": "Given scores",
}
_LARGEST = 3_000_000  # bytes of the largest embedded file
_INSIDE = {"per_query.csv": "values per query, as CSV", "results.json": "all measurements, as JSON"}


@final
@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Results and analysis, with values that several sections use."""

    results: Results
    analysis: Analysis
    data: Paired  # of the target measure

    @classmethod
    def of(cls, results: Results, analysis: Analysis) -> "View":
        """Return the view of results."""
        return cls(results, analysis, paired(results, results.measures[0].name))

    @property
    def target(self) -> MeasureAnalysis:
        """Statistics of the target measure."""
        return self.analysis.measures[0]

    @property
    def order(self) -> tuple[System, ...]:
        """Systems, best mean of the target first; those without values last."""
        return tuple(self.target.ranked(self.results.systems))

    @property
    def challenger(self) -> Comparison | None:
        """The best system that is not a baseline, if there is one; else a baseline of a booster."""
        order = sorted(self.order, key=lambda each: each in self.analysis.baselines)
        compared = (self.target.comparison(system) for system in order)
        return next((each for each in compared if each is not None), None)

    def rank(self, system: System) -> int:
        """Return the place of a system in the order, from 1."""
        return self.order.index(system) + 1

    def color(self, objective: str) -> tuple[str, str | None]:
        """Return class and dashes of an objective: the same in every booster."""
        base = self.results.baseline.objective
        names = list(dict.fromkeys(each.objective for each in self.results.systems))
        others = [name for name in names if name != base]
        return ("cb", None) if objective == base else color(others.index(objective))


def system_name(system: System) -> Html:
    """Return objective and booster, styled differently."""
    return el(
        "span",
        el("span", breakable(system.objective), class_="objective"),
        " ",
        el("span", system.backend, class_="booster"),
        class_="system",
    )


def chip(text: Child, kind: str = "") -> Html:
    """Return a coloured label."""
    return el("span", text, class_=f"chip {kind}".rstrip())


def measure_table(view: View, measured: MeasureAnalysis) -> Html:
    """Return one line per system with everything about one measure."""
    head = (
        *("System", f"Mean {measured.measure.name}", "Difference to baseline", "Outcome"),
        *("Corrected p", "Wins / ties / losses", "Effect d", "Seed sd", "Rounds", "Seconds"),
    )
    rows = [_row(view, measured, system) for system in view.order]
    return table(head, rows, class_="results")


def mixed(measured: MeasureAnalysis) -> Html | None:
    """Explain means that disagree with the number of queries won and lost."""
    items = []
    for each in measured.comparisons:
        ahead = measured.measure.sign * each.difference
        if ahead * (each.wins - each.losses) < 0.0:
            turn = 1 if ahead > 0.0 else -1
            words, sides = ("better", "worse")[::turn], ("gains", "losses")[::turn]
            text = (
                f" is {words[0]} on average and {words[1]} on more queries: better on "
                f"{number(each.wins)}, worse on {number(each.losses)}. Its {sides[0]} are larger "
                f"than its {sides[1]}."
            )
            items.append(el("li", el("b", title_of(each.system)), text))
    return el("ul", items, class_="mixed") if items else None


def queries_table(view: View, challenger: Comparison, count: int = 5) -> Html:
    """Return the queries on which the challenger gains and loses most."""
    mine, base = view.data.row(challenger.system), view.data.row(challenger.baseline)
    ahead = view.target.measure.sign * (mine - base)
    order = np.argsort(-ahead, kind="stable")
    best = [at for at in order[:count] if ahead[at] > 0.0]
    worst = [at for at in order[::-1][:count] if ahead[at] < 0.0]
    queries, known = view.results.queries, view.data.queries
    rows: list[list[Child]] = [
        [
            str(queries.ids[known[at]]),
            chip(word, class_),
            fixed(base[at]),
            fixed(mine[at]),
            signed(mine[at] - base[at]),
            number(queries.sizes[known[at]]),
            number(queries.relevant[known[at]]),
        ]
        for chosen, word, class_ in ((best, "gains", "better"), (worst, "loses", "worse"))
        for at in chosen
    ]
    head = ("Query", "", "Baseline", "Challenger", "Difference", "Rows", "Relevant rows")
    return table(head, rows, class_="results")


def notebook(
    verdict: Sequence[str], head: list[str], rows: list[list[str]], notes: Sequence[str]
) -> Html:
    """Return the verdict, the table and the notes, for notebooks."""
    return el(
        "div",
        el("ul", [el("li", el("b", line)) for line in verdict]),
        table(head, rows),
        el("ul", [el("li", note) for note in notes]) if notes else None,
    )


def overview(view: View) -> Html:
    """Return systems by measures: the mean, and the difference to the baseline."""
    head: list[Child] = ["System"]
    for one in view.results.measures:
        side = "higher" if one.higher_is_better else "lower"
        head.append([one.name, el("small", f"{side} is better")])
    rows = [
        [
            _named(view, system),
            *(_overview_cell(view, each, system) for each in view.analysis.measures),
        ]
        for system in view.order
    ]
    return table(head, rows, class_="results")


def all_pairs(view: View, measured: MeasureAnalysis) -> Html | None:
    """Return Tukey's p of all pairs as a matrix; None for one pair or none."""
    if not measured.pairs:
        return None
    p = {(each.first, each.second): each.p for each in measured.pairs}
    p |= {(second, first): value for (first, second), value in p.items()}
    systems = [each for each in view.order if each not in measured.excluded]
    rows = [
        [_named(view, one), *(_pair_cell(view, p.get((one, other))) for other in systems)]
        for one in systems
    ]
    about = (
        "Tukey's test compares every system with every other, and its p says how often the largest "
        "difference of all pairs would be as large if the systems were equal. So it stays valid "
        "however many pairs there are. Bold: decided."
    )
    shown = table(["", *(str(view.rank(each)) for each in systems)], rows, class_="pairs")
    return details("All pairs: p of randomised Tukey HSD", note(about), shown)


def tie_table(view: View) -> Html:
    """Return how often scores are equal, per system."""
    rows = []
    for system in view.order:
        runs, sizes = view.results.finished(system), view.results.queries.sizes
        values = np.concatenate([np.zeros(0), *(run.tied[sizes[run.queries] > 1] for run in runs)])
        values = values[np.isfinite(values)]
        constant = int((values >= 1.0).sum())
        share = f"{100 * values.mean():.2f}%" if len(values) else "\u2013"
        mark = chip("constant scores", "worse") if constant else None
        cell = [f"{number(constant)} of {number(len(values))} ", mark]
        rows.append([system_name(system), share, cell])
    return table(["System", "Tied pairs", "Queries with one score for all rows"], rows)


def warnings_list(view: View) -> Html | None:
    """Return the warnings, with the number of runs."""
    found = Counter((run.system, text) for run in view.results.runs for text in run.warnings)
    if not found:
        return None
    items = [
        el("li", system_name(system), el("span", f" {message}"), el("small", f" \u00d7{count}"))
        for (system, message), count in found.items()
    ]
    return el("div", el("h3", "Warnings of the runs"), el("ul", items))


def calibration(view: View) -> Html:
    """Return the matrix of objectives and measures, with the sentence and its source inside."""
    measures = [measure.name for measure in view.results.measures]
    trained = [each for each in view.results.systems if not each.is_given]
    rows: list[list[Child]] = []
    for name in dict.fromkeys(each.objective for each in trained):
        title = el("span", breakable(name), class_="objective")
        rows.append([title, *(_verdict(view, name, each) for each in measures)])
    return table(["Objective", *measures], rows, class_="verdicts")


def data_table(view: View) -> Html:
    """Return facts about the data, and the queries that do not count."""
    found = view.results.audit
    rows = [(title, _plain(found[key])) for key, title in _FACTS.items() if key in found]
    own = (*_FACTS, "notes", "split_by_time", "judged_by")
    rows += [(key, _plain(value)) for key, value in found.items() if key not in own]
    counts = [
        [each.measure.name, *map(number, (each.n_queries, each.left_out, each.undefined))]
        for each in view.analysis.measures
    ]
    head = ("Queries", "Compared", "Left out: a system has no value", "No system has a value")
    notes = [el("li", str(note)) for note in found.get("notes", ())]
    return el(
        "div",
        table(["Data", ""], rows, class_="facts"),
        el("ul", notes) if notes else None,
        _time_table(found.get("split_by_time", ())),
        table(head, counts),
    )


def _time_table(folds: Sequence[Mapping[str, Any]]) -> Html | None:
    """Return the time span of the queries of each fold, if they are split by time."""
    if not folds:
        return None
    rows: list[list[Child]] = []
    for fold in folds:
        rows.append([f"Fold {fold['fold']}"])
        for part in (fold["train"], fold["valid"], fold["test"]):
            ends = " to ".join(dict.fromkeys([part["from"], part["to"]]))
            rows[-1].append([f"{number(part['queries'])} queries", el("small", ends)])
    about = (
        "Every fold is tested on queries that are later than all it was trained and validated on; "
        "queries of equal time are on the same side."
    )
    shown = table(["", "Trained on", "Validated on", "Tested on"], rows)
    return el("div", el("h3", "Split by time"), shown, note(about))


def note(text: Child) -> Html:
    """Return a remark below a table or a chart."""
    return el("p", text, class_="note")


def origins(view: View) -> Iterator[Html]:
    """Return conventions, settings, versions and the command."""
    results, made = view.results, view.results.environment
    if results.conventions:
        yield el("h3", "Conventions")
        rows = [(name, _plain(each)) for name, each in results.conventions.items()]
        yield table(["Measure", ""], rows, class_="facts")
    if results.settings:
        yield el("h3", "Settings")
        known = {key: each for key, each in results.settings.items() if key != "systems"}
        one_seed = len(known.get("seeds", ())) == 1
        names = {"seeds": "seed"} if one_seed else {}
        yield _fact_table({names.get(key, key): each for key, each in known.items()})
    yield el("h3", "Where it ran")
    known = {key: value for key, value in made.items() if key != "command"}
    seeds = {} if "seeds" in results.settings else {"seeds": list(results.seeds)}
    used = view.analysis
    draws = f"{number(used.resamples)} draws, {number(used.tukey_resamples)} for all pairs"
    resampling = f"{draws}, seed {used.seed}, level {used.level:g}"
    yield _fact_table({**known, **seeds, "resampling": resampling})
    trained = [run for run in results.runs if run.error is None and not run.system.is_given]
    params = {run.system: _plain(run.params) for run in trained}
    if params:
        yield details(
            "Parameters of the boosters, as used in the last run of each system",
            table(["", ""], [(system_name(who), text) for who, text in params.items()], "facts"),
        )
    if "command" in made:
        yield el("h3", "Reproduce it")
        yield el("pre", el("code", _plain(made["command"])))


def failures(view: View) -> Html | None:
    """Return the runs that failed, with their errors; None where there is none."""
    if not view.results.failed:
        return None
    found: dict[tuple[System, str], list[str]] = {}
    for run in view.results.failed:
        place = f"seed {run.seed} fold {run.fold}"
        found.setdefault((run.system, run.error or ""), []).append(place)
    rows: list[list[Child]] = [
        [system_name(system), [len(places), el("small", ", ".join(places))], el("code", error)]
        for (system, error), places in found.items()
    ]
    return table(["System", "Runs", "Error"], rows, class_="failed")


def files(view: View) -> Html:
    """Return links that save the results embedded in the page."""
    document = {**results_to_json(view.results), "analysis": view.analysis.to_dict()}
    made = {"per_query.csv": per_query_csv(view.results), "results.json": json_bytes(document)}
    items = []
    for name, text in made.items():
        data = gzip.compress(text, mtime=0)
        if len(data) > _LARGEST:
            link: Child = f"{name} (too large for this page, see the folder of the comparison)"
        else:
            inside = f"data:application/gzip;base64,{base64.b64encode(data).decode('ascii')}"
            link = el("a", f"{name}.gz", href=inside, download=f"{name}.gz")
        items.append(el("li", link, f": {_INSIDE[name]}"))
    return el("ul", items)


def _row(view: View, measured: MeasureAnalysis, system: System) -> list[Child]:
    summary, name = measured.summary(system), _named(view, system)
    if summary is None:
        return [name, "\u2013", "\u2013", chip("no values", "worse"), *["\u2013"] * 6]
    return [
        name,
        [el("b", fixed(summary.mean)), _ends(summary.interval)],
        *_compared(view, measured, system),
        "\u2013" if system.is_given else fixed(summary.seed_sd),
        *_cost(view, system),
    ]


def _compared(view: View, measured: MeasureAnalysis, system: System) -> list[Child]:
    """Return the cells of a comparison; dashes for the baseline."""
    base = chip("baseline") if system in view.analysis.baselines else None
    compared = measured.comparison(system)
    if compared is None:
        return ["\u2013", base or "\u2013", "\u2013", "\u2013", "\u2013"]
    outcome = compared.outcome
    chips: list[Child] = [chip([_MARKS[outcome], " ", outcome], outcome)]
    if compared.equivalent:
        chips += [" ", chip("\u2248 within margin", "same")]
    if base is not None:
        against = f"against {title_of(compared.baseline)}"
        chips += [" ", base, el("small", against, class_="against")]
    share = percent(compared.difference, measured.mean(compared.baseline))
    counts = {"better": compared.wins, "undecided": compared.ties, "worse": compared.losses}
    return [
        [el("b", signed(compared.difference)), f" {share}", _ends(compared.interval, True)],
        chips,
        _p(compared.p_holm),
        [_balance(counts), el("small", " / ".join(map(str, counts.values())))],
        signed(compared.effect, 2),
    ]


def _cost(view: View, system: System) -> Iterator[Child]:
    runs = [] if system.is_given else view.results.finished(system)
    if not runs:
        yield from ("\u2013", "\u2013")
        return
    rounds = [run.best_round + 1 for run in runs]
    span = f"{min(rounds)} to {max(rounds)}"
    yield [f"{np.median(rounds):.0f}", el("small", span) if len(runs) > 1 else None]
    seconds = [run.seconds for run in runs]
    yield f"{np.median(seconds):.2f}" if max(seconds) < 100 else f"{np.median(seconds):.0f}"


def _overview_cell(view: View, measured: MeasureAnalysis, system: System) -> list[Child]:
    summary, compared = measured.summary(system), measured.comparison(system)
    if summary is None:
        return ["\u2013"]
    mean = fixed(summary.mean)
    shown: Child = el("b", mean) if summary is measured.best else mean
    if compared is None:
        return [shown, el("small", "baseline") if system in view.analysis.baselines else None]
    text = f"{signed(compared.difference)} {_MARKS[compared.outcome]}"
    return [shown, el("small", text, class_=f"mark {compared.outcome}")]


def _pair_cell(view: View, p: float | None) -> Child:
    if p is None:
        return ""
    return el("span", _p(p), class_="decided" if p <= 1.0 - view.analysis.level else "open")


def _named(view: View, system: System) -> Html:
    rank = el("span", view.rank(system), class_="rank")
    return el("span", rank, system_name(system), class_="named")


def _ends(ends: Interval, sign: bool = False) -> Html | None:
    if math.isnan(ends.low):
        return None
    shown = signed if sign else fixed
    return el("small", f"{shown(ends.low)} to {shown(ends.high)}")


def _p(p: float) -> str:
    return "<\u200a0.001" if p < 0.001 else f"{p:.3f}"


def _balance(counts: Mapping[str, int]) -> Html:
    total, parts, x = max(sum(counts.values()), 1), [], 0.0
    for kind, count in counts.items():
        width = 96.0 * count / total
        parts.append(el("rect", x=x, y=0, width=width, height=7, class_=f"part {kind}"))
        x += width
    return el("svg", parts, viewBox="0 0 96 7", class_="balance", aria_hidden="true")


def _plain(value: Any) -> str:
    """Return nested data as one line of text.

    >>> _plain({"folds": 5, "seeds": [0, 1], "tuned": None})
    'folds: 5, seeds: [0, 1], tuned: none'
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_inner(each)}" for key, each in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(_inner(each) for each in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return number(value)
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _inner(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"({_plain(value)})"
    return f"[{_plain(value)}]" if isinstance(value, list | tuple) else _plain(value)


def _verdict(view: View, objective: str, measure: str) -> Child:
    verdict = view.results.verdicts.get((objective, measure))
    if not verdict:
        return el("span", "\u2013", title="No verdict")
    status = str(verdict.get("status", "unknown"))
    sentence, source = (str(verdict.get(key, "")) for key in ("sentence", "reference"))
    mark = chip(status, _TONES.get(status, "undecided"))
    return details(mark, el("p", sentence), el("p", el("small", source)))


def _fact_table(values: Mapping[str, Any]) -> Html:
    rows = [(str(key).replace("_", " "), _plain(value)) for key, value in values.items()]
    return table(["", ""], rows, class_="facts")
