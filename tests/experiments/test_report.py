"""The page is whole, inert, and says what was measured."""

import base64
import gzip
import hashlib
import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

from gbmrank.experiments.comparison import Comparison
from gbmrank.experiments.report import sections, write_report
from gbmrank.experiments.report.markup import (
    Frame,
    Scale,
    breakable,
    color,
    el,
    fixed,
    join,
    path,
    signed,
    ticks,
)
from gbmrank.experiments.report.sections import View
from gbmrank.experiments.results import Measure, System
from gbmrank.experiments.statistics.estimates import analyse
from gbmrank.experiments.store import per_query_csv
from tests.experiments.make_results import SYSTEMS, make_results, table_results

VOID = {"meta", "br", "wbr"}
_TAGS = (
    "html head title style body header nav main section footer aside h1 h2 h3 p ul li dl div dt dd "
    "a b small span code pre table caption thead tbody tr th td details summary figure figcaption "
    "svg g line text desc polyline polygon circle rect script"
)
TAGS = VOID | set(_TAGS.split())
HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "../../x",
    "\x1b[31mred\x1b]0;title\x07",
    "$x^2$",
    "=cmd|' /C calc'!A0",
    "\"quoted\" 'twice' `thrice`",
    "nul\x00bell\x07",
    "right\u202eleft",
    "half\udc80",
    "</style></title>--><b>",
    "javascript:alert(1)",
    "{{ 7 * 7 }} {% raw %}",
)


class Page(HTMLParser):
    """A parser that refuses elements that are not closed in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open, f"{tag} is closed and was not open"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.text.append(data)

    def values(self, name):
        return [value for _, key, value in self.attributes if key == name]

    @property
    def words(self):
        return "".join(self.text)


def written(results, folder, **options):
    path = folder / "report.html"
    write_report(results, analyse(results, **options), path)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def analysis():
    return analyse(make_results(), margin=0.005)


@pytest.fixture(scope="module")
def text(analysis, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    write_report(make_results(), analysis, folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def hostile_results():
    """Results in which everything that has a name has a bad one."""
    plain = make_results(n_queries=60)
    names = [System(HOSTILE[i % 3], name) for i, name in enumerate(HOSTILE[: len(SYSTEMS)])]
    rename = dict(zip(plain.systems, names, strict=True))
    measure = {each.name: f"{each.name}{HOSTILE[7 + i]}" for i, each in enumerate(plain.measures)}
    runs = tuple(
        replace(
            run,
            system=rename[run.system],
            values={measure[name]: values for name, values in run.values.items()},
            warnings=(HOSTILE[8],),
            error=run.error and HOSTILE[9],
            params={HOSTILE[0]: HOSTILE[11]},
        )
        for run in plain.runs
    )
    verdict = dict.fromkeys(("status", "sentence", "reference"), HOSTILE[10])
    return replace(
        plain,
        title=HOSTILE[10],
        systems=tuple(names),
        measures=tuple(Measure(measure[each.name], True) for each in plain.measures),
        runs=runs,
        baseline=names[0],
        verdicts={(name.objective, one): verdict for name in names for one in measure.values()},
        audit={"rows": HOSTILE[1], HOSTILE[0]: HOSTILE[0], "notes": HOSTILE},
        settings={HOSTILE[1]: [HOSTILE[2], {HOSTILE[0]: HOSTILE[0]}]},
        conventions={HOSTILE[0]: {HOSTILE[1]: HOSTILE[2]}},
        environment={"command": HOSTILE[5], "plugins": {HOSTILE[0]: HOSTILE[12]}},
    )


def check_inert(page, text):
    assert set(page.tags) <= TAGS
    assert page.tags.count("script") == 1
    (script,) = re.findall("<script>(.*?)</script>\n?</body>", text, re.DOTALL)
    known = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src &#x27;sha256-{known}&#x27;" in text  # no other script is run
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert not {"src", "srcset", "action", "xlink:href", "style", "background"} & {
        name for _, name, _ in page.attributes
    }
    links = set(page.values("href"))
    inside = r"data:application/gzip;base64,[\w+/=]+"
    assert all(re.fullmatch(rf"#[a-z]+|{inside}", link) for link in links)
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


class TestPage:
    def test_is_whole_and_inert(self, page, text):
        check_inert(page, text)
        assert text.startswith("<!DOCTYPE html>")
        assert not re.search(r"https?:|src=|@import", text)

    def test_forbids_everything_before_anything_else(self, text):
        policy = "default-src &#x27;none&#x27;; style-src &#x27;unsafe-inline&#x27;; script-src "
        assert f'http-equiv="Content-Security-Policy" content="{policy}' in text
        assert text.index("Content-Security-Policy") < text.index("<style>")

    def test_follows_light_and_dark_paper_and_phones(self, text):
        for condition in ("prefers-color-scheme: dark", "@media print", "@media (max-width"):
            assert condition in text
        assert 'name="viewport"' in text

    def test_every_colour_is_defined_for_dark_as_for_light(self):
        style = (files("gbmrank.experiments.report") / "style.css").read_text(encoding="utf-8")
        light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[:2]
        names = [set(re.findall(r"(--[a-z0-9-]+):", part)) for part in (light, dark)]
        assert names[0] == names[1]
        assert set(re.findall(r"var\((--[a-z0-9-]+)\)", style)) <= names[0] | {"--s"}

    def test_every_class_has_a_style(self, page):
        style = (files("gbmrank.experiments.report") / "style.css").read_text(encoding="utf-8")
        used = {name for value in page.values("class") for name in value.split()}
        bare = {"name", "bar-name", "balance", "swatch", "failed"}
        assert {name for name in used if f".{name}" not in style} <= bare

    def test_has_every_section_and_its_links_lead_there(self, page):
        names = set(page.values("id"))
        sections = "results differences queries slices curves ties calibration data failed origin"
        assert set(sections.split()) < names
        assert {link[1:] for link in page.values("href") if link[0] == "#"} <= names
        assert len(names) == len(page.values("id"))

    def test_says_the_verdict_and_what_is_not_established(self, page, analysis):
        assert analysis.verdict in page.words
        for sentence in analysis.not_established:
            assert sentence in page.words

    def test_shows_the_numbers_of_the_analysis(self, page, analysis):
        for measured in analysis.measures:
            for each in measured.summaries:
                assert f"{each.mean:.4f}" in page.words
            for each in measured.comparisons:
                assert f"{each.wins} / {each.ties} / {each.losses}" in page.words
                assert signed(each.difference) in page.words

    def test_tells_about_data_conventions_versions_command_and_failures(self, page):
        results = make_results()
        for part in (
            "19\u2009063",
            "3 queries with one row say nothing",
            "gain: 2^y - 1",
            "lightgbm: 4.7.0",
            "gbmrank-focal 0.1.0",
            results.environment["command"],
            results.failed[0].error,
            "constant scores",
            "is not calibrated for ndcg@10 on every distribution",
            "not calibrated",
            "Ravikumar, Tewari and Yang",
        ):
            assert part in page.words

    def test_pictures_have_an_alternative_in_words(self, page, text):
        names = set(page.values("id"))
        pictures = re.findall(r'<svg [^>]*role="img"[^>]*>', text)
        assert len(pictures) == 1 + 3 + 2 + 2 + 2
        for picture in pictures:
            (tied,) = re.findall(r'aria-labelledby="([^"]+)"', picture)
            assert set(tied.split()) <= names
        assert text.count("<svg ") == len(pictures) + text.count('aria-hidden="true"')

    def test_places_are_numbers(self, page):
        for name in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height"):
            assert all(np.isfinite(float(value)) for value in page.values(name))
        for value in page.values("points"):
            assert np.isfinite([float(one) for one in value.replace(",", " ").split()]).all()

    def test_holds_the_numbers_as_files(self, page, analysis):
        results = make_results()
        assert page.values("download") == ["per_query.csv.gz", "results.json.gz"]
        held = [link.partition(",")[2] for link in page.values("href") if link[0] != "#"]
        values, document = (gzip.decompress(base64.b64decode(one)) for one in held)
        assert values == per_query_csv(results)
        assert json.loads(document)["analysis"] == json.loads(json.dumps(analysis.to_dict()))

    def test_leaves_large_files_out(self, monkeypatch, tmp_path):
        monkeypatch.setattr(sections, "_LARGEST", 1000)
        page = Page(written(make_results(n_queries=40), tmp_path))
        assert page.values("download") == []
        assert "too large for this page" in page.words

    def test_is_small(self, text):
        assert len(re.sub('href="data:[^"]+"', "", text)) < 300_000

    def test_is_the_same_every_time(self, text, tmp_path):
        assert written(make_results(), tmp_path, margin=0.005) == text


def test_hostile_names_are_text(tmp_path):
    text = written(hostile_results(), tmp_path)
    page = Page(text)
    check_inert(page, text)
    assert "<script>alert(1)</script>" in page.words
    assert "=cmd|' /C calc'!A0" in page.words
    assert "\ufffd[31mred" in page.words


@pytest.mark.parametrize(
    "values",
    [
        np.full((2, 5), np.nan),
        np.full((2, 1), 0.5),
        np.full((3, 40), 0.5),
        np.linspace(0.0, 1.0, 30)[None, :],
        [[np.nan, np.nan], [0.5, 0.25], [0.5, 0.5]],
        [[0.5, np.nan], [np.nan, 0.5]],
    ],
    ids=["nothing", "one-query", "all-equal", "one-system", "no-baseline", "no-common-query"],
)
def test_odd_results_have_a_page_too(values, tmp_path):
    results = table_results(values)
    text = written(results, tmp_path)
    page = Page(text)
    check_inert(page, text)
    assert analyse(results).verdict in page.words
    assert ">nan<" not in text


def test_results_without_anything_else_have_a_page(tmp_path):
    results = make_results(n_queries=40)
    runs = tuple(replace(run, history={}, params={}, warnings=()) for run in results.runs)
    bare: dict[str, dict] = {
        "audit": {},
        "settings": {},
        "conventions": {},
        "environment": {},
        "verdicts": {},
    }
    page = Page(written(replace(results, runs=runs, **bare), tmp_path))
    assert "curves" not in page.values("id")


def test_results_where_every_run_failed_have_a_page(tmp_path):
    results = make_results(n_queries=40)
    only = replace(results, systems=results.systems[7:], baseline=results.systems[7])
    only = replace(only, runs=results.failed)
    page = Page(written(only, tmp_path))
    assert "Nothing was measured" in page.words
    assert "NumericError" in page.words


def test_twenty_systems_have_lines_that_differ():
    assert len({color(number) for number in range(20)}) == 20


def test_a_long_history_is_thinned_and_keeps_its_ends():
    xs = np.arange(5000.0)
    frame = Frame.around([0.0, 4999.0], [0.0, 4999.0])
    (points,) = re.findall(r'points="([^"]+)"', path(frame, xs, xs, "curve", None))
    assert len(points.split()) <= 401
    assert points.split()[-1] == f"{frame.x(4999.0):g},{frame.y(4999.0):g}"


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.013, 0.021), (1e-9, 3e-9), (5.0, 1e6)])
def test_ticks_are_round_and_inside(low, high):
    found = ticks(low, high, 6)
    assert 3 <= len(found) <= 8
    assert all(low - 1e-12 <= at <= high + 1e-12 for at in found)
    assert np.diff(found) == pytest.approx(found[1] - found[0])


def test_scales_go_both_ways():
    assert Scale(0.0, 1.0, 200.0, 100.0)(0.25) == 175.0


def test_text_becomes_markup_once():
    cell = el("td", "a & b", el("i", "<"), None, ["x", 1.5])
    assert cell == "<td>a &amp; b<i>&lt;</i>x1.5</td>"
    assert join(cell) == cell
    assert el("a", href='"><script>') == '<a href="&quot;&gt;&lt;script&gt;"></a>'
    assert breakable("<b>(x)") == "&lt;b&gt;(<wbr>x)"


def test_numbers_have_true_signs():
    assert (signed(0.25, 2), signed(-0.25, 2), signed(0.0, 2)) == ("+0.25", "\u22120.25", "0.00")
    assert (fixed(-0.001, 2), signed(0.001, 2)) == ("0.00", "0.00")


def test_the_legend_of_the_curves_names_only_what_is_drawn(tmp_path):
    results = make_results(60, folds=2, seeds=1)
    write_report(results, analyse(results), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    legends = re.findall(r'<ul class="legend">.*?</ul>', page, re.DOTALL)
    curves = next(one for one in legends if "ranknet" in one)
    assert "listmle" in curves
    assert "pnorm_push" not in curves


def test_the_chart_comes_with_the_verdict_and_differences_in_percent(page, text, analysis):
    assert text.index('class="verdict"') < text.index('id="first-title"') < text.index("<nav")
    target = analysis.measures[0]
    base = target.mean(analysis.baseline)
    for each in target.comparisons:
        share = 100.0 * each.difference / base
        assert f"({signed(share, 1)}%)" in page.words


def test_every_point_says_what_it_is(text):
    for kind in ("dot", "best"):
        points = re.findall(rf'<circle [^>]*class="{kind}[^>]*>(.*?)</circle>', text)
        assert points
        assert all(point.startswith("<title>") for point in points)
    bars = re.findall(r'<g class="bar [a-z]+">(.{7})', text)
    assert set(bars) == {"<title>"}


def test_terms_are_defined_where_they_appear(page):
    for part in ("Holm's correction makes it larger", "Tukey's test compares every system"):
        assert part in page.words


def test_queries_of_the_largest_gains_and_losses_are_listed(text, analysis):
    results = make_results()
    view = View.of(results, analysis)
    assert view.challenger is not None
    gaps = view.data.row(view.challenger.system) - view.data.row(results.baseline)
    section = text.partition("Where it gains and loses most")[2].partition("</section>")[0]
    ids = results.queries.ids[view.data.queries]
    listed = re.findall(r'<th scope="row">([^<]*)</th>', section)
    order = np.argsort(-gaps, kind="stable")
    assert listed == [*ids[order[:5]], *ids[order[::-1][:5]]]


def test_a_mean_that_disagrees_with_the_number_of_queries_is_explained(analysis):
    measured = analysis.measures[0]
    one = measured.comparisons[0]
    for wins, losses, difference, said in (
        (10, 30, 0.02, "is better on average and worse on more queries"),
        (30, 10, -0.02, "is worse on average and better on more queries"),
        (30, 10, 0.02, None),
    ):
        changed = replace(one, wins=wins, losses=losses, difference=difference)
        found = sections.mixed(replace(measured, comparisons=(changed,)))
        assert (found is None) == (said is None)
        assert said is None or said in str(found)


def test_a_notebook_shows_the_answer_and_the_table(analysis):
    results = make_results()
    found = Comparison(results, analysis)
    shown = found._repr_html_()
    assert html.escape(found.analysis.verdict) in shown
    assert shown.count("<tr>") == 1 + len(results.systems)
    assert "<script" not in shown


def test_one_seed_is_not_called_seeds(tmp_path):
    results = make_results(n_queries=60, seeds=1)
    results = replace(results, settings={**results.settings, "seeds": [0]})
    write_report(results, analyse(results), tmp_path / "one.html")
    text = (tmp_path / "one.html").read_text()
    assert "<dt>seed</dt><dd>1</dd>" in text
    assert '<th scope="row">seed</th><td data-of="">0</td>' in text
    assert "<dt>seeds</dt>" not in text


def test_boosters_are_named_by_their_titles_and_compared_within(tmp_path):
    results = make_results(n_queries=60)
    results = replace(results, baselines=(results.systems[0], results.systems[5]))
    analysis = analyse(results)
    write_report(results, analysis, tmp_path / "two.html")
    text = (tmp_path / "two.html").read_text()
    assert "<b>LightGBM lambdarank</b>, <b>XGBoost rank:ndcg</b>" in text
    assert ">XGBoost rank:ndcg against LightGBM lambdarank</text>" in text
    assert ">LightGBM pairwise(target=ndcg@10)</text>" in text
    assert "native:" not in analysis.verdict + "".join(analysis.not_established)
    challenger = View.of(results, analysis).challenger
    assert challenger is not None
    assert challenger.system not in results.baselines
