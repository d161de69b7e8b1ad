"""Write the reference pages that come from the registry, and the one that comes from tests.

``python docs/generate.py`` writes them; ``python docs/generate.py --check`` fails when one
of them is not what the registry or the tests say, or when the page of a paper in docs/results
has not the stamp of the study's code: then ``make reproduce STUDIES=...`` runs it again.
"""

import argparse
import ast
import sys
from collections.abc import Iterable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import gbmrank
from gbmrank import clicks, plots, theory
from gbmrank.objectives import PRESETS
from gbmrank.registry import GENERATORS, LOSSES, METRICS, OBJECTIVES, UTILITIES, Registry
from gbmrank.registry.composition import spec_of
from gbmrank.registry.spec import Spec, format_value

HERE = Path(__file__).parent
NOTE = "<!-- Written by docs/generate.py from the registry; do not edit. -->\n"


def main() -> int:
    """Write or check every page; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail instead of writing")
    check = parser.parse_args().check
    stale = []
    for name, text in pages().items():
        path = HERE / name
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            stale.append(name)
        elif not check:
            path.write_text(text, encoding="utf-8")
    if stale:
        print(f"not up to date: {', '.join(stale)}; run python docs/generate.py", file=sys.stderr)
    old = _old_results() if check else []
    if old:
        names = " ".join(old)
        print(
            f"results older than their code: {names}; run make reproduce STUDIES='{names}', or, "
            "where no result changes, python -m studies NAME --stamp --out docs/results",
            file=sys.stderr,
        )
    return 1 if stale or old else 0


def _old_results() -> list[str]:
    """Return the studies whose page was made by other code than that of today."""
    sys.path.insert(0, str(HERE.parent))  # studies are not installed
    from studies.__main__ import STUDIES
    from studies.stamps import outdated

    return outdated(HERE / "results", STUDIES)


def pages() -> dict[str, str]:
    """Return the text of every generated page by file name."""
    return {
        "objectives.md": _objectives(),
        "losses.md": _losses(),
        "metrics.md": _metrics(),
        "calibration.md": _calibration(),
        "low_rank.md": _low_rank(),
        "theorems.md": _theorems(),
        "api.md": _api(),
        "faults.md": _faults(),
    }


def _objectives() -> str:
    templates = _table(
        ["template", "formula", "cost", "parameters", "reference"],
        ([_code(c.name), c.formula, c.cost, _parameters(c), c.reference] for c in _own(OBJECTIVES)),
    )
    presets = _table(
        ["preset", "stands for"], ([_code(name), _code(text)] for name, text in PRESETS.items())
    )
    utilities = _table(
        ["target", "utility of an item", "parameters"],
        ([_code(c.name), c.formula, _parameters(c)] for c in _own(UTILITIES)),
    )
    return (
        f"{NOTE}\n# Objectives\n\nAn objective is a template with a loss and, where it takes one, "
        'a target:\n`gbmrank.objective("pairwise", loss="logistic", target="ndcg@10")`, or the '
        f"same as text.\n\n{templates}\n## Presets\n\n{presets}\n## Targets\n\n{utilities}"
    )


def _losses() -> str:
    losses = _table(
        ["loss", "formula", "convex", "parameters", "reference"],
        (
            [_code(c.name), c.formula, "yes" if c.convex else "no", _parameters(c), c.reference]
            for c in _own(LOSSES)
        ),
    )
    generators = _table(
        ["generator", "loss of a query", "parameters"],
        ([_code(c.name), c.formula, _parameters(c)] for c in _own(GENERATORS)),
    )
    return (
        f"{NOTE}\n# Losses\n\nScalar penalties. z is the margin by which the right answer leads, v "
        "a score. A pair of formulas gives\nthe loss of a useful and of a useless item. In the "
        "templates of pairs `squared_hinge` is max(1 - z, 0)^2:\nits t counts in `pointwise` "
        "alone, as `eta` does, which `squared` does not need.\n\n"
        f"{losses}\n## Generators of `bregman`\n\n{generators}"
    )


def _theorems() -> str:
    rows = (
        [r.paper, r.number, r.sentence, _code(f"gbmrank.{r.where}") if r.where else "-",
         _code(r.test.removeprefix("tests/")) if r.test else "-"]
        for r in theory.theorems()
    )  # fmt: skip
    table = _table(["paper", "number", "in words", "where", "checked by"], rows)
    return (
        f"{NOTE}\n# Theorems\n\nThe theorems, propositions, lemmas and corollaries of the five "
        "papers that this project rests on:\nwhat each one says, where it lives, and the test that "
        "checks it. `gbmrank info 'theorem:duchi thm 13'`\nand `theory.theorems('reinforcement')` "
        f"search it. Statements without a place say why.\n\n{table}"
    )


def _metrics() -> str:
    table = _table(
        ["metric", "also written", "formula", "better", "parameters", "reference"],
        (
            [
                _code(c.name),
                ", ".join(map(_code, c.aliases)),
                c.formula,
                "larger" if c.higher_is_better else "smaller",
                _parameters(c),
                c.reference,
            ]
            for c in _own(METRICS)
        ),
    )
    return (
        f"{NOTE}\n# Metrics\n\nOne value per query, the mean over all orderings of tied items, "
        f"then one mean over queries.\nA cut-off is written `name@k`.\n\n{table}"
    )


JUDGED_BY = ("dcg@10", "ndcg@10", "precision@5", "recall@5", "auc", "spearman", "err@10", "map")
MATCHED = ("pointwise(loss=squared)", "pointwise", "pairwise", "pairwise(loss=hinge)")
CONDITIONS = """## Conditions

An *if* comes with an object: `theory.calibration(...).condition.holds(distribution)` tests it on a
`theory.Distribution`, and conditions on labels or lengths on your data.

| condition | says | tested on |
| --- | --- | --- |
| `BinaryLabels`, `LabelsFrom` | labels are 0 and 1; none is below a number | data |
| `MaxItems` | no query is longer than the smallest cut-off | data |
| `IndependentLabels` | labels (0/1, by a threshold, or graded) are independent given the features | distributions; `theory.independence` on repeated judgments |
| `Reinforcement` | who is relevant more often is also relevant more often beside every other item | distributions, `theory.noise_report` |
| `DegreeCondition` | net degrees order pairs as the mean preference graph does; low noise implies it | distributions, `theory.noise_report` |
| `SortsPreferences` | the expectation that is sorted orders pairs as mean preferences do | distributions |
| `AcyclicPreferences` | the mean preference graph has no cycle, for `PairRanker` | distributions, `theory.noise_report` |
| `SortsGraphs` | the expectation of an own f of graphs orders pairs as mean preferences do | distributions of graphs |
| `Assumed` | what no proof covers in a loss, utility or metric of your own | data, where labels show it |

`gbmrank advise METRIC --given independent` puts first what is proven for such labels.

## What a verdict rests on

*Calibrated* needs an argument for all labels that both sides take, all list lengths and all cut-offs. The utility of
a target and that of a metric are compared in symbols: gain, threshold, normaliser and cut-off. Losses declare what is
proven about them (`proven`); one that declares nothing is measured on a grid, which can refute, and its verdict is *if*. A claim of a loss of
yours is compared with numbers, link and least weight included, and a margin that contradicts it is an error; the verdict says "as
declared by" with the `reference` of the loss. On graphs as on labels, the linear loss needs a regulariser without a kink, which is
measured for one of your own.

Arguments that the papers do not have:

- **Independent labels, comparisons.** Let item i be relevant more probably than j. Exchanging their two labels leaves
  the number of relevant items as it is, so the weight of every comparison that i wins is at least that of j, and more
  between the two. With a loss that never rises and falls at zero, scores with i not above j can be improved. Which order
  metrics want is proven below.
- **Padding.** A loss of comparisons that misorders for precision at k does so at k + m: m more items that are nearly
  always relevant take the first places and leave the other scores as they were. Every stored example is solved and
  verified as it is, not in the limit.
- **The parabola over pairs**, `pairwise(loss=squared_margin)`: its minimiser has a closed form that increases with the
  expected utility.
- **Sums.** Losses with bounded curvature that preserve the same order preserve it in a `mix`.

## Uniform calibration

*Calibrated* means: on each distribution P of labels, a small enough surrogate regret makes the metric regret as small as you
like. `Verdict.uniform` says whether one surrogate regret does so on all distributions, with the reason. Fix the number of
items. Let $C_\\sigma$ be the scores sorted like an order $\\sigma$, $g_\\sigma(P) = \\inf_{s \\in C_\\sigma} L_P(s)$ and
$h(P) = \\inf_s L_P(s)$; the least surrogate regret of a metric regret $\\varepsilon$ is the infimum of $g_\\sigma(P) - h(P)$ over
all P and $\\sigma$ whose regret is at least $\\varepsilon$ (`theory.calibration_function` computes it).

- **Finitely many labels.** Distributions form a polytope. $g_\\sigma$ and h are finite infima of functions that are linear in P: concave,
  so lower semicontinuous on a polytope, and upper semicontinuous as infima of continuous functions. So they are continuous, the
  pairs with a regret of at least $\\varepsilon$ are compact, and the infimum is attained: it is above 0. The same holds for closed
  sets of distributions, such as those of independent labels.
- **A constant c that does not depend on P**: the infimum is at least $(\\varepsilon / (c\\, C_\\phi(2)))^2$, for a generator with
  modulus $\\mu$ at least $\\mu\\, \\varepsilon^2 / (4\\, C_\\phi(2)^2)$. A constant with $\\max U$ needs a bound of the utilities.
- **Not under open conditions.** The reinforcement property and the degree condition let two items be as close as you like in what
  is sorted, while their exchange loses as much as before. Graphs: 0 over 1 with weight 1 and 1 over 2 with weight w have net
  degrees 1, w - 1 and -w; as w rises to 2, exchanging 0 and 1 costs 1 and ever less surrogate. Labels (1, 0, 1) and (0, 1, 0)
  with probabilities 2/3 and 1/3: the diagonal ties, and item 1 first loses 0.056 of average precision.

## Cascade metrics and average precision, where labels are independent

In general no order of a fixed utility is best for these metrics: what an item is worth depends on the items above it.
Where the labels of a query's items are independent given the features, one is, and `gbmrank advise err --given
independent` names the losses that learn it.

**Relevance.** Labels are 0 and 1, or a threshold says what is relevant; item i is relevant with probability $p_i$. Let M be
a metric that does not fall when a relevant item changes places with another one right above it. Then every order by
falling p is best for M.

*Proof.* Let a and b be neighbours, and let all other labels be given. The order of the two matters only if exactly one
of them is relevant, and the number P of relevant items is then the same in both cases. Let $g \\ge 0$ be what M gains if
the relevant one comes first. As labels are independent, g does not depend on which one it is, so a before b instead
of b before a changes the expectation by

$$E[g]\\,\\bigl(p_a (1 - p_b) - p_b (1 - p_a)\\bigr) = E[g]\\,(p_a - p_b).$$

This is not negative if $p_a \\ge p_b$, and zero if they are equal. Any order becomes any order by falling p by exchanges of
neighbours whose p rises or is equal, and none of them loses. Where M is undefined for P = 0, it is so for every order,
and the mean over the other cases has the same best orders. ∎

The gain g at the ranks r and r + 1, with v(r) = 1/r up to the cut-off k and 0 beyond it:

| metric | g |
| --- | --- |
| `mrr`, `mrr@k` | v(r) - v(r + 1) if nothing above is relevant, else 0 |
| `hit_rate@k` | 1 if r = k and nothing above is relevant, else 0 |
| `err`, `err@k` (labels 0 and 1) | R (v(r) - v(r + 1)) times the product of 1 - R over relevant items above |
| `map@k` | (c + 1) (v(r) - v(r + 1)) over the denominator, with c relevant items above; both denominators depend on P only |
| `r_precision` | 1/P if r = P, else 0 |
| `ptop` | at least 1 (1/P if normalised) if everything above is relevant, else 0 |
| positional | (phi(r) - phi(r + 1)) times the utility of a relevant item, which depends on P only |

**ERR of grades.** Let $R_i$ be the probability that item i satisfies the reader, a function of its label, and
$r_i = E R_i$. By independence the expectation of ERR is the sum over ranks k of $v(k)\\, r_{o_k} \\prod_{l < k} (1 - r_{o_l})$.
Let a be at rank k and b at rank k + 1, and Q the product over the items above. Exchanging them leaves the terms above
as they are, and those below keep their factor $(1 - r_a)(1 - r_b)$; what changes is

$$Q\\,\\bigl(v(k) r_a + v(k + 1)(1 - r_a) r_b - v(k) r_b - v(k + 1)(1 - r_b) r_a\\bigr)
= Q\\,(r_a - r_b)\\,(v(k) - v(k + 1)).$$

So the order by falling $r_i$ is best, for every v that does not rise. The gain of `dcg` is $2^y - 1 = 2^p R$, so
`target=dcg` learns this order; `max_grade` is a factor. ∎

**Where it fails.** (1) `target=ndcg` divides the gain by the ideal of the query, which depends on the labels of the
other items, and sorts graded labels differently; labels 0 and 1 it sorts alike, by the exchange above. (2) A discount
that rises reverses the sign. (3) MRR and the others need a threshold on grades: the order by the expected label is not
that by the probability of reaching a threshold. (4) Labels that depend on each other: see the counterexamples of
`gbmrank check`. `tests/theory/test_cascades.py` enumerates all orders in random cases, with whole numbers, for the proof
and for each failure.
"""  # noqa: E501
SIGNS = {"calibrated": "yes", "not calibrated": "no", "conditional": "if", "unknown": "?"}


def _calibration() -> str:
    """Return verdicts of templates that take a target, and of presets that take none."""
    head = ["objective", *map(_code, JUDGED_BY)]
    fitting = ([_code(text), *(_matched(text, name) for name in JUDGED_BY)] for text in MATCHED)
    presets = (
        [_code(name), *(_sign(theory.calibration(name, judge)) for judge in JUDGED_BY)]
        for name in PRESETS
    )
    return (
        f"{NOTE}\n# Which loss for which metric\n\nDoes minimising the loss maximise the metric, "
        "given enough data and a rich enough model? *yes*: calibrated,\n*no*: there is a "
        "distribution on which the best scores for the loss are not the best for the metric, "
        "*if*: under a\ncondition, *?*: nothing is known. `gbmrank check NAME --metric METRIC` "
        "gives the theorem, the condition or the\ncounterexample; `theory.calibration` gives it in "
        "Python. Verdicts come from the parts of an objective, so they answer\nfor your own "
        f"losses too.\n\n## With the metric as `target=`\n\n{_table(head, fitting)}\nThere is no "
        "target for ERR and none that is right for MAP everywhere: no utility per item gives their "
        "order.\n\n"
        f"## Named objectives\n\n{_table(head, presets)}\n{CONDITIONS}"
    )


def _matched(text: str, judge: str) -> str:
    try:
        made = gbmrank.objective(text, target=judge)
    except gbmrank.GbmrankError:
        return "-"
    return _sign(theory.calibration(made, judge))


def _sign(verdict: Any) -> str:
    return SIGNS[verdict.status]


ITEMS = (2, 3, 4, 5, 6)
AT_RANKS = ("dcg@2", "precision@2", "recall@2", "err@2", "map@2", "mrr@2")


def _low_rank() -> str:
    """Return how many numbers per list every metric needs, and how an order is found."""
    names = [c.name for c in _own(METRICS)]
    rows = ([_code(name), *_dimensions(name)] for name in (*names, *AT_RANKS))
    graphs = ["`pairwise_disagreement` of graphs", *_dimensions("pairwise_disagreement", True)]
    head = ["metric", *(f"{n} items" for n in ITEMS)]
    return (
        f"{NOTE}\n# How many numbers per list a metric needs\n\nA metric that is a value per item "
        "times a discount per rank needs at most n - 1 numbers for n items, and sorting them\nis "
        "best. One that needs more has no such form, so a score per item does not say which order "
        "is best.\n\nThe table has the rank of the loss over all 0/1 label vectors and all orders, "
        "rows centred (Ramaswamy, Agarwal and\nTewari 2013, Theorem 3). The letter says how the "
        "best order is found from the numbers: *s* by a sort, *a* by assigning\nitems to ranks, "
        "*e* by enumerating the orders. 0 means that all orders are equal.\n\n"
        "`gbmrank.theory.low_rank(metric, items)` gives the factors, the decoder and the bound of "
        "the excess risk. `gbmrank.LowRankRanker`\n"
        f"learns the numbers with a booster.\n\n{_table(head, [*rows, graphs])}\nERR, the "
        "reciprocal rank and PTop need 2^n - n - 1 numbers, nearly as many as there are label "
        "vectors, average\nprecision n(n + 1)/2 - 2. A metric without an entry looks at more than "
        "the order, or is undefined on 0/1 labels.\n"
    )


def _dimensions(name: str, graphs: bool = False) -> list[str]:
    try:
        found = [theory.low_rank(name, n, graphs=graphs) for n in ITEMS]
    except gbmrank.GbmrankError:
        return ["-"] * len(ITEMS)
    return [f"{one.dimension} {one.decoder[0]}" for one in found]


def _api() -> str:
    """Return one entry per public name, drawn from its docstring."""
    names = [name for name in (*gbmrank.__all__, "DaskGBMRanker") if not _is_error(name)]
    parts = [
        f"# API reference\n\nEverything below is `gbmrank.NAME`.\n\n{_directives(names)}",
        f"## Clicks\n\n{_directives(clicks.__all__, 'gbmrank.clicks')}",
        f"## Plots\n\n{_directives(plots.__all__, 'gbmrank.plots')}",
        f"## Theory\n\n{_directives(theory.__all__, 'gbmrank.theory')}",
        "## Errors\n\n```{eval-rst}\n.. automodule:: gbmrank.errors\n```\n",
    ]
    return f"{NOTE}\n" + "\n".join(parts)


TESTS = HERE.parent / "tests"
TOPICS = {
    "data": "Labels and rows",
    "features": "Features",
    "zeros": "Zeros, dense and sparse",
    "categories": "Categories",
    "groups": "Queries",
    "weights": "Weights",
    "training": "Training",
    "boosters": "Training with the boosters' own interfaces",
    "metrics": "Metrics",
    "clicks": "Clicks",
    "goals": "Several goals",
    "dask": "Dask",
    "dask_features": "Features on Dask",
    "readers": "Files",
    "compare": "Comparisons",
    "folders": "Folders of comparisons",
    "explanations": "Explanations",
    "names": "Names",
    "plugins": "Plugins",
    "packages": "Packages",
}


def _faults() -> str:
    """Return what bad input gets, from the marks ``fault(case, promise=...)`` of tests."""
    files = {path.stem.removeprefix("test_"): path for path in (TESTS / "faults").glob("test_*.py")}
    files["dask"] = TESTS / "dask" / "test_faults.py"
    files["dask_features"] = TESTS / "dask" / "test_features.py"
    unknown = sorted(files.keys() ^ TOPICS.keys())
    if unknown:
        raise SystemExit(f"docs/generate.py: give each of {', '.join(unknown)} a file and a title")
    parts = [
        f"## {title}\n\n{_table(['case', 'what you get', 'shown by'], _marked(files[topic]))}"
        for topic, title in TOPICS.items()
    ]
    note = "<!-- Written by docs/generate.py from the tests; do not edit. -->\n"
    return (
        f"{note}\n# Errors and warnings\n\nWhat you get for bad input. Every line is shown by a "
        "test, in both boosters where both are concerned.\nAll errors derive from `GbmrankError` "
        "and from the built-in type that fits; see [Errors](api.md).\n\n" + "\n".join(parts)
    )


def _marked(path: Path) -> list[list[str]]:
    """Read the marked tests of a file, without importing it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [
        [ast.literal_eval(mark.args[0]), ast.literal_eval(mark.keywords[0].value), _code(test.name)]
        for test in tests
        for mark in test.decorator_list
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.fault"
    ]


def _is_error(name: str) -> bool:
    given = getattr(gbmrank, name)
    return isinstance(given, type) and issubclass(given, gbmrank.GbmrankError | Warning)


def _directives(names: Iterable[str], module: str = "gbmrank") -> str:
    lines = []
    for name in sorted(names, key=str.lower):
        given = getattr(sys.modules[module], name)
        kind = "autoclass" if isinstance(given, type) else "autofunction"
        if not isinstance(given, type) and not callable(given):
            kind = "autodata"
        members = "\n   :members:" if kind == "autoclass" else ""
        lines.append(f".. {kind}:: {module}.{name}{members}\n")
    return "```{eval-rst}\n" + "\n".join(lines) + "```\n"


def _own(registry: Registry[Any]) -> list[Any]:
    """Return the classes of gbmrank itself, without presets and plugins."""
    entries = (entry for found in registry.entries.values() for entry in found)
    classes = {
        entry.name: entry.load() for entry in entries if entry.origin.distribution == "gbmrank"
    }
    return [cls for name, cls in classes.items() if cls.name == name]


def _parameters(cls: Any) -> str:
    parts = []
    for field in fields(cls):
        default = field.default if field.default is not MISSING else field.metadata.get("usual", ())
        parts.append(f"{field.name}={_default_text(default)}")
    return ", ".join(map(_code, parts))


def _default_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool | int | float | tuple):
        return format_value(int(value) if isinstance(value, float) and value % 1 == 0 else value)
    spec = spec_of(value)
    return str(Spec(spec.name, (), spec.k))


def _code(text: str) -> str:
    return f"`{text}`"


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

    return line(head) + line("---" for _ in head) + "".join(line(row) for row in rows)


if __name__ == "__main__":
    sys.exit(main())
