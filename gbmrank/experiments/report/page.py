"""The report: sections put together into one file."""

import base64
import hashlib
from collections.abc import Iterable, Iterator
from importlib.resources import files as package_files
from pathlib import Path

from gbmrank.data.files import write_whole
from gbmrank.experiments.report import charts, sections
from gbmrank.experiments.report.markup import FOOTER, Child, Html, details, el, number, page
from gbmrank.experiments.report.sections import View
from gbmrank.experiments.results import Results, System
from gbmrank.experiments.statistics.analysis import Analysis, Comparison
from gbmrank.experiments.statistics.estimates import slices
from gbmrank.experiments.summary import verdict_of
from gbmrank.experiments.systems import title_of

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'; img-src data:"


def write_report(results: Results, analysis: Analysis, path: str | Path) -> None:
    """Write one self-contained HTML file: no network, no fonts, no other files.

    The values per query and all measurements are embedded, and can be saved from the page. A short
    script sorts and filters tables; everything else works without it.
    """
    write_whole(Path(path).absolute(), render(results, analysis).encode("utf-8"))


def render(results: Results, analysis: Analysis) -> str:
    """Return the page that ``write_report`` writes."""
    view = View.of(results, analysis)
    script = "\n" + (package_files(__package__) / "script.js").read_text(encoding="utf-8")
    known = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    parts = list(_sections(view))
    links = [el("a", title, href=f"#{name}") for name, title, _ in parts]
    policy = el("meta", http_equiv="Content-Security-Policy", content=_POLICY.format(known))
    body = [
        _top(view),
        el("nav", links, aria_label="Sections"),
        el("main", [el("section", el("h2", title), part, id=name) for name, title, part in parts]),
        el("footer", FOOTER),
        Html(f"<script>{script}</script>"),
    ]
    return page(f"{results.title}: comparison of rankers", body, policy)


def _top(view: View) -> Html:
    results = view.results
    facts = (
        (len(results.systems), "system", "systems"),
        (view.target.n_queries, "query compared", "queries compared"),
        (len({run.fold for run in results.runs}), "fold", "folds"),
        (len(results.seeds), "seed", "seeds"),
        (sum(not run.system.is_given for run in results.runs), "run", "runs"),
    )
    missing = [el("li", text) for text in view.analysis.not_established]
    verdict = verdict_of(results, view.analysis) or (view.analysis.verdict,)
    counts = [
        el("div", el("dt", one if count == 1 else many), el("dd", number(count)))
        for count, one, many in facts
    ]
    first, *others = view.analysis.baselines
    whose, base = "Baseline ", f"Difference to the baseline {title_of(first)}"
    if others:
        whose = "Each system is compared with the baseline of its booster: "
        base = "Difference to the baseline of the booster"
    lead: list[Child] = ["Target ", el("b", view.target.measure.name), ". ", whose, _named(first)]
    lead += [[", ", _named(each)] for each in others]
    lead.append(". Intervals and tests are over queries, after averaging over seeds.")
    if results.audit.get("split_by_time"):
        lead.append(
            " Every fold is tested on later queries than it was trained on (Data says when)."
        )
    if results.audit.get("judged_by"):
        lead.append(f" How they are evaluated: {results.audit['judged_by']}.")
    about = [el("dl", counts), el("p", lead, class_="lead")]
    if missing:
        about.append(el("aside", el("h2", "Not established"), el("ul", missing)))
    chart = None
    if view.target.comparisons:
        drawn = charts.differences(view, view.target, "first")
        chart = el("figure", el("figcaption", base), drawn, class_="first")
    return el(
        "header",
        el("p", "Comparison of rankers", class_="kind"),
        el("h1", results.title),
        el("p", results.audit["columns"], class_="kind") if "columns" in results.audit else None,
        el("ul", [el("li", line) for line in verdict], class_="verdict"),
        el("div", chart, el("div", about), class_="opening"),
    )


def _named(system: System) -> Html:
    return el("b", title_of(system))


def _sections(view: View) -> Iterator[tuple[str, str, Child]]:
    yield "results", "Results", list(_results(view))
    if view.target.comparisons:
        yield "differences", "Differences to the baseline", list(_differences(view))
    challenger = view.challenger
    if challenger is not None:
        yield "queries", "Query by query", list(_queries(view, challenger))
        yield "slices", "Short and long queries", list(_slices(view, challenger))
    backends = dict.fromkeys(each.backend for each in view.results.systems)
    plots = [(charts.curves(view, name, f"curves-{at}"), name) for at, name in enumerate(backends)]
    drawn = [(plot, name) for plot, name in plots if plot is not None]
    if drawn:
        about = (
            "Median over folds and seeds while at least half of the runs continue, stopped ones "
            "with their last value; the dot is the median of the best rounds. The first rounds "
            "are cut off."
        )
        yield "curves", "Learning curves", [_grid(drawn), _legend(view), sections.note(about)]
    yield "ties", "Ties and warnings", [sections.tie_table(view), sections.warnings_list(view)]
    theory = (
        "Whether minimising the objective maximises the measure, given enough data: a "
        "statement about the loss, not about these runs. Click a verdict for its reason."
    )
    parts = [sections.note(theory), sections.calibration(view)]
    yield "calibration", "Is the objective right for the measure?", parts
    yield "data", "Data", sections.data_table(view)
    failed = sections.failures(view)
    if failed is not None:
        yield "failed", "Failed runs", failed
    yield "origin", "How it was made", list(sections.origins(view))
    yield "files", "The numbers as files", sections.files(view)


def _results(view: View) -> Iterator[Child]:
    target, level = view.target, 100 * view.analysis.level
    yield el("p", view.analysis.verdict)
    if target.comparisons and target.pairs:  # whose p differ
        yield sections.note(
            f"p of the verdict is corrected for {number(len(target.comparisons))} comparisons "
            f"with a baseline (Holm); the table of all {number(len(target.pairs))} pairs below "
            "corrects for every pair (Tukey), so p of the same two systems is usually larger there."
        )
    yield sections.measure_table(view, target)
    yield sections.note(
        f"Small numbers are {level:g}% intervals, each on its own; percentages are of the mean of "
        "the baseline. p is how often a difference as large would arise if both systems were "
        "equal (paired randomisation test). Holm's correction makes it larger the more systems are "
        "compared with a baseline, so that one of many is not called better by chance; an interval "
        "can therefore exclude zero although the outcome is undecided. Effect d is the mean "
        "difference over its standard deviation, positive if the system is better. Seed sd is the "
        "standard deviation of the mean over seeds, which intervals do not include. Rounds and "
        "seconds are medians of the runs."
    )
    yield sections.mixed(target)
    if any(each.measure.is_regret for each in view.analysis.measures):
        yield sections.note(
            "Regret is the share of the best possible expected DCG that a ranking loses; it is "
            "known here because the data are synthetic, and 0 is perfect."
        )
    yield sections.all_pairs(view, target)
    if len(view.analysis.measures) > 1:
        yield el("h3", "All measures")
        yield sections.overview(view)
        yield sections.note(
            "The difference to the baseline is below the mean; \u25b2 better and \u25bc worse "
            "are decided by the corrected test, the best mean is bold."
        )
    for each in view.analysis.measures[1:]:
        yield details(
            f"Everything about {each.measure.name}",
            sections.measure_table(view, each),
            sections.all_pairs(view, each),
        )


def _differences(view: View) -> Iterator[Child]:
    yield _grid(
        (charts.differences(view, each, f"differences-{at}"), each.measure.name)
        for at, each in enumerate(view.analysis.measures)
        if each.comparisons
    )
    yield _key()
    margin = view.analysis.margin
    if margin > 0.0:
        yield sections.note(
            f"The band is the margin of \u00b1{margin:g} that does not matter in practice."
        )


def _queries(view: View, challenger: Comparison) -> Iterator[Child]:
    yield el(
        "p",
        ["The best system that is not a baseline, ", _named(challenger.system)],
        [", compared with ", _named(challenger.baseline), "."],
    )
    ordered = charts.sorted_differences(view, challenger)
    dots = charts.scatter(view, challenger), "One dot per query"
    yield _grid([dots, (ordered, "Differences of all queries, largest first")])
    yield el("h3", "Where it gains and loses most")
    yield sections.queries_table(view, challenger)


def _slices(view: View, challenger: Comparison) -> Iterator[Child]:
    gaps = view.data.row(challenger.system) - view.data.row(challenger.baseline)
    queries, level = view.results.queries, view.analysis.level
    plots = []
    for name, what, sizes in (
        ("length", "rows", queries.sizes),
        ("relevant", "relevant rows", queries.relevant),
    ):
        parts = slices(gaps, sizes[view.data.queries], level=level, seed=view.analysis.seed)
        plot = charts.sliced(view, parts, f"slices-{name}", what)
        plots.append((plot, f"By number of {what}"))
    yield _grid(plots)
    about = (
        " minus the baseline. Intervals here are not corrected for the number of slices: they "
        "show where to look and are not tests."
    )
    yield sections.note([_named(challenger.system), about])


def _grid(plots: Iterable[tuple[Html, str]]) -> Html:
    figures = [el("figure", plot, el("figcaption", caption)) for plot, caption in plots]
    return el("div", figures, class_="grid")


def _legend(view: View) -> Html:
    items = []
    drawn = [each for each in view.results.systems if len(charts.curve(view, each)[0])]
    for objective in dict.fromkeys(each.objective for each in drawn):
        class_, dash = view.color(objective)
        line = el("line", x1=0, y1=5, x2=26, y2=5, class_="curve", stroke_dasharray=dash)
        swatch = el("svg", line, viewBox="0 0 26 10", class_=f"swatch {class_}", aria_hidden="true")
        items.append(el("li", swatch, objective))
    return el("ul", items, class_="legend")


def _key() -> Html:
    items, circle = [], el("circle", cx=5, cy=5, r=4.5)
    for word in ("better", "worse", "undecided"):
        kind = f"swatch bar {word}"
        swatch = el("svg", circle, viewBox="0 0 10 10", class_=kind, aria_hidden="true")
        items.append(el("li", swatch, word))
    return el("ul", items, class_="legend")
