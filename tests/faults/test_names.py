"""Names of files, queries, objectives and features that try to be more than names."""

import csv
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gbmrank
from gbmrank import PairRanker
from gbmrank.cli import main
from gbmrank.cli.screen import clean
from gbmrank.demo_data import demo_data
from gbmrank.errors import ConfigError, DataError, GbmrankError, GbmrankWarning
from gbmrank.experiments.progress import printable
from gbmrank.experiments.report import write_report
from gbmrank.experiments.statistics.estimates import analyse
from gbmrank.experiments.store import per_query_csv, slug
from gbmrank.registry import LOSSES
from tests.experiments.make_results import table_results
from tests.experiments.test_report import hostile_results
from tests.faults.interfaces import BACKENDS, TASK, ranker
from tests.ranking_tasks import is_before

HOSTILE = ("../../x", "a\x00b", "CON", "<script>alert(1)</script>", "$x^2$", "\x1b]0;title\x07x")
RESERVED = {"con", "prn", "aux", "nul", *(f"com{i}" for i in range(10)), "lpt1", "lpt9"}


@pytest.mark.fault(
    "names such as `../../x`, with NUL, or reserved by Windows",
    promise="files get harmless names, different for different names",
)
def test_names_of_files():
    made = [slug(name) for name in (*HOSTILE, *RESERVED, "", "a" * 500)]
    assert all(re.fullmatch(r"[a-z0-9-]{8,60}", one) for one in made)
    assert len(set(made)) == len(made)
    assert not RESERVED & set(made)


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags: list = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words += data


@pytest.mark.fault(
    "markup or `$` in the name of an objective, a query or the data",
    promise="shown as text; the page forbids scripts but its own, and everything from elsewhere",
)
def test_markup_in_names(tmp_path):
    results = hostile_results()
    write_report(results, analyse(results), tmp_path / "report.html")
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    names = [tag for tag, _ in page.tags]
    assert not {"img", "iframe", "object", "link", "base", "form"} & set(names)
    assert list(names).count("script") == 1  # its own
    assert not any(key.startswith("on") for _, attrs in page.tags for key in attrs)
    policy = next(a["content"] for t, a in page.tags if t == "meta" and "http-equiv" in a)
    assert "default-src 'none'" in policy
    for name in ("<script>alert(1)</script>", "$x^2$"):
        assert name in page.words


@pytest.mark.fault(
    "markup or a formula in a name that is registered", promise="rejected: names are words"
)
@pytest.mark.parametrize("name", ["<script>", "$x$", "a b", "../x", "=1+1", "a\x1b[31m"])
def test_names_that_are_registered(name):
    with pytest.raises(GbmrankError):
        LOSSES.register(type("Odd", (), {"name": name}))
    assert name not in LOSSES


@pytest.mark.fault("escape sequences in names", promise="stripped or spelt out on a terminal")
def test_escapes_in_names(tmp_path, capsys):
    assert clean("\x1b[31mred\x1b]0;title\x07\x9b31m") == "red31m"
    assert "\x1b" not in printable("\x1b[31mred")
    path = tmp_path / "\x1b]0;title\x07rows.csv"
    path.write_text("label,qid,score\n1,1,0.3\n0,1,0.2\n")
    assert main(["evaluate", "--labels", str(path)]) == 0
    assert main(["evaluate", "--labels", str(path), "--score-column", "\x1b[2J"]) == 2
    said = capsys.readouterr()
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", said.out + said.err) is None


@pytest.mark.fault(
    "a cell that a spreadsheet takes for a formula (`=`, `+`, `-`, `@`)",
    promise="gets an apostrophe in front in CSV files; numbers stay numbers",
)
def test_formulas_in_cells(tmp_path):
    results = table_results(np.array([[0.5] * 5]))
    results.queries.ids[:] = ["=1+1", "+x", "-x", "@x", "-5"]
    (tmp_path / "values.csv").write_bytes(per_query_csv(results))
    with (tmp_path / "values.csv").open(newline="") as file:
        cells = [row[0] for row in csv.reader(file)][1:]
    assert cells == ["'=1+1", "'+x", "'-x", "'@x", "-5"]


@pytest.mark.fault(
    'feature names that a booster changes or rejects (blanks, `,:[]{}"<`)',
    promise="given to it in another spelling, all different; the names as given are kept",
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_names_of_features(backend):
    names = ["a b", "a_b", "x[0]", 'say: {"hi"}', "<script>"]
    frame = pd.DataFrame(TASK.x, columns=names)
    model = ranker(backend).fit(frame, TASK.y, qid=TASK.qid)
    assert model.feature_names_in_.tolist() == names
    booster = model.booster_
    shown = booster.feature_name() if backend == "lightgbm" else booster.feature_names
    assert len(set(shown)) == 5
    assert not re.search(r'[\s,:\[\]{}"<]', "".join(shown))
    plain = ranker(backend).fit(TASK.x, TASK.y, qid=TASK.qid)
    assert model.predict(frame).tolist() == plain.predict(TASK.x).tolist()


@pytest.mark.fault(
    "feature names that are empty, hold NUL, are no text, or become equal to another one",
    promise="given to the booster in another spelling, all different",
)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "names",
    [
        ["a_b_2", "a b", "a_b", "a:b", "z"],
        ["", "_", "a\0b", "a\0c", "\x1f"],
        [0, "a", 1.5, ("x", 1), None],
        pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("b", "z")]),
    ],
)
def test_names_of_features_that_are_no_words(backend, names, tmp_path):
    frame = pd.DataFrame(TASK.x).set_axis(names, axis=1)
    model = ranker(backend).fit(frame, TASK.y, qid=TASK.qid)
    booster = model.booster_
    shown = booster.feature_name() if backend == "lightgbm" else booster.feature_names
    assert len(set(shown)) == 5
    plain = ranker(backend).fit(TASK.x, TASK.y, qid=TASK.qid).predict(TASK.x).tolist()
    assert model.predict(frame).tolist() == plain
    file = tmp_path / ("model.txt" if backend == "lightgbm" else "model.ubj")
    model.save(file)
    assert gbmrank.load(file).predict(frame).tolist() == plain


@pytest.mark.fault(
    "features in another order than in the training",
    promise="`DataError` with both orders, also where the names are numbers",
)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "names",
    [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], list("43210"), [0, "a", "b", "c", "d"], list("abcde")],
)
def test_features_in_another_order(backend, names):
    frame = pd.DataFrame(TASK.x).set_axis(names, axis=1)
    model = ranker(backend).fit(frame, TASK.y, qid=TASK.qid)
    turned = frame[names[::-1]]
    with pytest.raises(DataError, match=f"expected {', '.join(map(str, names))}, in this order"):
        model.predict(turned)
    with pytest.raises(DataError, match="columns of valid_0 are not those of the training"):
        ranker(backend).fit(
            frame, TASK.y, qid=TASK.qid, eval_set=(turned, TASK.y), eval_qid=TASK.qid + 100
        )
    pairs = PairRanker(backend=backend, n_estimators=3).fit(frame, TASK.y, qid=TASK.qid)
    with pytest.raises(DataError, match="columns of X are not those of the training"):
        pairs.predict(turned, qid=TASK.qid)


TABLES = {
    "array": lambda x: x,
    "list": lambda x: x.tolist(),
    "sparse": sp.csr_matrix,
    "numbers of pandas": pd.DataFrame,
    "numbers of polars": pl.DataFrame,
}


def by_position(what, call):
    """Return what a call gives, which says once that columns have no names to go by."""
    with pytest.warns(
        GbmrankWarning, match=f"the columns of {what} .* matched by position"
    ) as seen:
        found = call()
    assert len(seen) == 1
    assert seen[0].filename == __file__
    return np.asarray(found).tolist()


@pytest.mark.fault(
    "a table without names (an array, a sparse matrix, numbers that pandas or polars made up) for "
    "a model of named columns, or the other way round, also one that was saved and loaded",
    promise="goes by position, with one `GbmrankWarning` that says so, and what to do",
)
@pytest.mark.parametrize("form", TABLES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_names_in_one_table_alone(backend, form, tmp_path):
    if form == "numbers of polars" and backend == "lightgbm" and is_before("lightgbm", 4, 7):
        pytest.skip("LightGBM 4.6 does not read polars")
    named = pd.DataFrame(TASK.x + 1.0, columns=["a b", *"cdef"])  # no cell is 0
    plain = TABLES[form](TASK.x + 1.0)
    expected = ranker(backend).fit(named, TASK.y, qid=TASK.qid).predict(named).tolist()
    file = tmp_path / ("model.txt" if backend == "lightgbm" else "model.ubj")
    for first, second in ((named, plain), (plain, named)):
        fitted = ranker(backend).fit(first, TASK.y, qid=TASK.qid)
        assert fitted.predict(first).tolist() == expected
        fitted.save(file)
        for model in (fitted, gbmrank.load(file)):
            if form.startswith("numbers") and first is plain:
                with pytest.raises(DataError, match="not those of the training"):
                    model.predict(second)
                continue
            assert by_position("X", lambda m=model, x=second: m.predict(x)) == expected
            by_position("X", lambda m=model, x=second: m.score(x, TASK.y, qid=TASK.qid))
            by_position("X", lambda m=model, x=second: m.rank(x, qid=TASK.qid))


@pytest.mark.parametrize("backend", BACKENDS)
def test_names_of_a_pair_ranker_alone(backend):
    named = pd.DataFrame(TASK.x, columns=list("abcde"))
    for first, second in ((named, TASK.x), (TASK.x, named)):
        model = PairRanker(backend=backend, n_estimators=3).fit(first, TASK.y, qid=TASK.qid)
        expected = model.predict(first, qid=TASK.qid).tolist()
        assert by_position("X", lambda m=model, x=second: m.predict(x, qid=TASK.qid)) == expected
        for method in (model.rank, model.pair_values):
            with pytest.warns(GbmrankWarning, match="matched by position"):
                method(second, qid=TASK.qid)
        by_position("X", lambda m=model, x=second: m.score(x, TASK.y, qid=TASK.qid))


@pytest.mark.fault(
    "an evaluation set with names of columns beside a training set without, or the other way round",
    promise="goes by position, with one `GbmrankWarning` that names the set",
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_names_in_one_set_alone(backend):
    named = pd.DataFrame(TASK.x, columns=["a b", *"cdef"])

    def watched(first, second):
        return ranker(backend).fit(
            first, TASK.y, qid=TASK.qid, eval_set=(second, TASK.y), eval_qid=TASK.qid + 100
        )

    expected = watched(TASK.x, TASK.x).evals_result_
    for first, second in ((named, TASK.x), (TASK.x, named)):
        with pytest.warns(GbmrankWarning, match="the columns of valid_0 .* by position") as seen:
            found = watched(first, second).evals_result_
        assert found == expected
        assert len(seen) == 1


@pytest.mark.parametrize("model", [ranker("lightgbm"), PairRanker(n_estimators=3)])
def test_tools_of_scikit_learn_go_without_a_word(model):
    """Warnings are errors here, so none was given."""
    table = pd.DataFrame(TASK.x, columns=list("abcde"))
    given = {"qid": TASK.qid, "groups": TASK.qid}
    with config_context(enable_metadata_routing=True):
        for features in (TASK.x, table, pd.DataFrame(TASK.x)):
            for steps in (model, make_pipeline(StandardScaler(), model)):
                search = GridSearchCV(
                    steps, {}, cv=GroupKFold(2), error_score="raise", return_train_score=True
                )
                search.fit(features, TASK.y, **given).score(features, TASK.y, qid=TASK.qid)
        framed = make_pipeline(StandardScaler(), model).set_output(transform="pandas")
        framed.fit(table, TASK.y, qid=TASK.qid).score(table, TASK.y, qid=TASK.qid)


@pytest.mark.fault(
    "constraints on features that are none: signs but -1, 0 and 1, columns that there are not",
    promise="`ConfigError`; LightGBM would take any text for 0 and 2 for 1, and both boosters go "
    "past columns that there are not",
)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("monotone_constraints", [2, 0, 0, 0, 0], "2; an entry must be 1"),
        ("monotone_constraints", ["a"] * 5, "'a'; an entry must be 1"),
        ("monotone_constraints", [0.5, 0, 0, 0, 0], "0.5; an entry must be 1"),
        ("monotone_constraints", 5, "must be -1, 0 or 1 per column"),
        ("interaction_constraints", [[0, 9]], "names the column 9, .* there are 5; pass"),
        ("interaction_constraints", [[0, -1]], "names the column -1, .* there are 5"),
        ("interaction_constraints", [[0.5, 1]], "names the column 0.5"),
        ("interaction_constraints", [0, 1], "a list of lists of columns; got None and"),
    ],
)
def test_constraints_that_are_none(backend, name, given, words):
    with pytest.raises(ConfigError, match=words):
        ranker(backend, **{name: given}).fit(TASK.x, TASK.y, qid=TASK.qid)


@pytest.mark.parametrize("backend", BACKENDS)
def test_constraints_on_pairs(backend):
    """They are about the features of a pair, as many as there are."""
    made = {"n_estimators": 3, "backend": backend, "features": "difference"}
    free = PairRanker(**made).fit(TASK.x, TASK.y, qid=TASK.qid)
    falling = PairRanker(**made, monotone_constraints=[-1, 0, 0, 0, 0])
    falling.fit(TASK.x, TASK.y, qid=TASK.qid)
    assert falling.predict(TASK.x, qid=TASK.qid).tolist() != (
        free.predict(TASK.x, qid=TASK.qid).tolist()
    )
    with pytest.raises(ConfigError, match="has 2 entries, but a pair has 5 columns"):
        falling.set_params(monotone_constraints=[1, 0]).fit(TASK.x, TASK.y, qid=TASK.qid)


@pytest.mark.fault(
    "constraints on features as a list, or by the names of the columns, in any spelling",
    promise="taken by both boosters; `ConfigError` for a column that there is not, and for a "
    "number of entries that is not that of the columns",
)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("name", "forms"),
    [
        ("monotone_constraints", [[0, 0, 1, 0, 0], {"x:y": 1}, np.array([0, 0, 1, 0, 0])]),
        ("interaction_constraints", [[[0, 2], [1, 3, 4]], [["a b", "x:y"], ["c", "e", "f"]]]),
    ],
)
def test_constraints_on_features(backend, name, forms):
    table = pd.DataFrame(TASK.x, columns=["a b", "c", "x:y", "e", "f"])
    free = ranker(backend).fit(table, TASK.y, qid=TASK.qid).predict(table).tolist()
    found = [
        ranker(backend, **{name: form}).fit(table, TASK.y, qid=TASK.qid).predict(table).tolist()
        for form in forms
    ]
    assert all(one == found[0] != free for one in found)
    for wrong in ({"zz": 1}, [1, 0]) if name.startswith("mono") else ([["a b", "zz"]],):
        words = "has 2 entries" if isinstance(wrong, list) and len(wrong) == 2 else "column 'zz'"
        with pytest.raises(ConfigError, match=words):
            ranker(backend, **{name: wrong}).fit(table, TASK.y, qid=TASK.qid)
    with pytest.raises(ConfigError, match="columns of X have no names, and there are 5; pass"):
        ranker(backend, **{name: forms[1]}).fit(TASK.x, TASK.y, qid=TASK.qid)


def test_a_warning_reaches_code_that_is_in_no_module():
    named = pd.DataFrame(TASK.x, columns=list("abcde"))
    model = ranker("lightgbm").fit(named, TASK.y, qid=TASK.qid)
    with pytest.warns(GbmrankWarning, match="matched by position"):
        exec("model.predict(x)", {"model": model, "x": TASK.x})  # noqa: S102


@pytest.mark.fault(
    "hostile names of columns and queries in a comparison",
    promise="harmless in every file it writes",
)
def test_a_hostile_table(tmp_path, capsys):
    data = demo_data(12, items=5)
    frame = pd.DataFrame({"<script>": data.X[:, 0], "$f$": data.X[:, 1], "../../x": data.X[:, 2]})
    frame["label"], frame["qid"] = data.labels, [f"=cmd|{q}<b>" for q in data.qid]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "out"
    quick = "--folds 2 --rounds 2 --in-process --quiet --backends xgboost --objectives ranknet"
    assert main(["compare", str(tmp_path / "rows.csv"), "--out", str(out), *quick.split()]) == 0
    page = Page(Path(out, "report.html").read_text(encoding="utf-8"))
    assert [tag for tag, _ in page.tags].count("script") == 1  # its own
    lines = Path(out, "per_query.csv").read_text().splitlines()
    assert not any(line.startswith("=") for line in lines)
    assert all(re.fullmatch(r"[\w.-]+", path.name) for path in out.rglob("*"))
    capsys.readouterr()
