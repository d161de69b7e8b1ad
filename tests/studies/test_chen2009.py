"""The study of weighted losses: folds, choice on validation, what it says."""

import contextlib
import io
import json
from pathlib import Path

import numpy as np
import pytest

import gbmrank
from gbmrank.errors import ConfigError
from studies.__main__ import main
from studies.chen2009 import experiment as study
from studies.intervals import Estimate
from studies.study import Settings

MODELS = ("linear", "lightgbm", "xgboost")
METHODS = (
    *("RankNet", "W-RankNet", "ListMLE", "W-ListMLE", "Regression"),
    *("Ranking SVM", "RankBoost", "ListNet"),
)


def rows(number: int, features: int = 2) -> study._Rows:
    x = np.full((4, features), float(number))
    return study._Rows(
        x, np.array([1.0, 0.0, 0.0, 1.0]), np.array([number] * 2 + [number + 10] * 2)
    )


def write_part(path: Path, number: int, features: int = 2) -> None:
    cells = " ".join(f"{index}:{number}" for index in range(1, features + 1))
    path.write_text("".join(f"{y} qid:{number} {cells}\n" for y in (2, 0, 1)))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The printed JSON and the folder of pages of a small run."""
    folder = tmp_path_factory.mktemp("pages")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        options = ["--small", "--json", "--threads", "1", "--out", str(folder)]
        assert main(["chen2009", *options]) == 0
    return json.loads(out.getvalue()), folder


def test_five_parts_make_the_official_folds():
    folds = list(study._folds([rows(number) for number in range(1, 6)]))
    used = [[sorted(set(part.qid % 10)) for part in fold] for fold in folds]
    assert used == [
        [[1, 2, 3], [4], [5]],
        [[2, 3, 4], [5], [1]],
        [[3, 4, 5], [1], [2]],
        [[1, 4, 5], [2], [3]],
        [[1, 2, 5], [3], [4]],
    ]


def test_every_query_tests_once_and_is_never_trained_on_in_that_fold():
    folds = list(study._folds([rows(number) for number in range(1, 5)]))
    for fold in folds:
        sets = [set(part.qid.tolist()) for part in fold]
        assert sum(map(len, sets)) == len(set.union(*sets))
    tested = np.concatenate([fold.test.qid for fold in folds])
    assert sorted(set(tested)) == [1, 2, 3, 4, 11, 12, 13, 14]
    assert len(tested) == 16


def test_parts_are_read_from_letor_text(tmp_path):
    for number in (1, 2, 3):
        write_part(tmp_path / f"S{number}.txt", number)
    said: list[str] = []
    parts = study._read_parts(Settings(data=tmp_path, report=said.append))
    assert [part.qid[0] for part in parts] == ["1", "2", "3"]
    np.testing.assert_array_equal(parts[1].features, np.full((3, 2), 2.0))
    assert said == ["9 rows in parts S1.txt, S2.txt, S3.txt"]
    write_part(tmp_path / "S2.txt", 2, features=3)
    with pytest.raises(ConfigError, match=r"the parts have \[2, 3\] features"):
        study._read_parts(Settings(data=tmp_path, report=said.append))


def test_settings_are_chosen_by_the_validation_part():
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    valid = study._Rows(x[:, None], (x > 0.5).astype(np.float64), np.repeat(np.arange(8), 10))
    test_scores = [np.full(5, float(number)) for number in range(3)]
    tried = list(zip((-x, x + 0.1 * rng.normal(size=80), 0.0 * x), test_scores, strict=True))
    assert study._chosen(tried, valid) is test_scores[1]
    assert study._chosen(tried[::-2], valid) is test_scores[2]  # ties are worth more than reversal


def test_seeds_are_for_what_depends_on_chance():
    plan = study._FULL
    assert study._seeds("linear", "ranknet", plan, 0) == range(1)
    assert study._seeds("linear", "w_listmle", plan, 5) == range(5, 8)
    assert study._seeds("xgboost", "ranknet", plan, 0) == range(3)
    assert study._seeded("w_listmle", 2) == "listmle(weights=gain_discount, seed=2)"
    assert study._seeded("ranknet", 2) == "ranknet"


def test_list_net_is_the_cross_entropy_of_top_one_probabilities():
    labels, scores = np.array([2.0, 0.0, 1.0]), np.array([0.3, -0.2, 0.9])
    wanted = np.exp(scores) / np.exp(scores).sum() - np.exp(labels) / np.exp(labels).sum()
    grad, _ = gbmrank.objective(study._OBJECTIVES["ListNet"]).gradients(labels, scores)
    np.testing.assert_allclose(grad, wanted, atol=1e-12)


def test_a_small_run_has_every_model_and_method_and_no_printed_number(small):
    found, _ = small
    levels, differences = found["tables"]
    assert [tuple(row[:2]) for row in levels["rows"]] == [(a, b) for a in MODELS for b in METHODS]
    values = np.array([[float(row[2]), float(row[4])] for row in levels["rows"]])
    assert np.all((values > 0.3) & (values < 1.0))
    assert all(row[3] == row[5] == "" for row in levels["rows"])
    assert len(differences["rows"]) == 3 * 2 * 2
    assert found["findings"][0].startswith("This is a short run on made-up data")
    assert not any("printed" in sentence for sentence in found["findings"])


def test_differences_are_those_of_the_means(small):
    levels, differences = small[0]["tables"]
    means = {(row[0], row[1]): (float(row[2]), float(row[4])) for row in levels["rows"]}
    for model, names, measure, ours, _ in differences["rows"]:
        weighted, plain = names.split(" - ")
        column = ["NDCG@5", "NDCG@10"].index(measure)
        expected = means[model, weighted][column] - means[model, plain][column]
        mean, low, high = (float(text.strip("[],")) for text in ours.split())
        assert mean == pytest.approx(expected, abs=2e-4)  # four decimals are shown
        assert low <= mean <= high


def test_a_small_run_leaves_a_page_with_a_plot(small):
    found, folder = small
    page = (folder / "chen2009.md").read_text()
    assert f"`{found['command']}`" in page
    assert found["command"] == "python -m studies chen2009 --small --threads 1"
    assert "(chen2009-differences.svg)" in page
    assert "weighted - plain" in (folder / "chen2009-differences.svg").read_text()
    assert "](chen2009.md)" in (folder / "index.md").read_text()


@pytest.mark.parametrize(
    ("estimate", "said"),
    [
        (Estimate(0.02, 0.01, 0.03), "W-RankNet is above RankNet, as printed"),
        (Estimate(0.02, -0.01, 0.05), "does not differ clearly from RankNet (printed: above)"),
        (Estimate(-0.02, -0.03, -0.01), "is below RankNet, against the printed direction"),
    ],
)
def test_findings_say_what_the_interval_says(estimate, said):
    found = {
        (model, weighted, name): estimate
        for model in MODELS
        for weighted in ("W-RankNet", "W-ListMLE")
        for name in ("ndcg@5", "ndcg@10")
    }
    sentences = study._findings(found, {("linear", "RankNet"): np.zeros((2, 7))}, small=False)
    assert said in sentences[0]
    assert str(estimate) in sentences[0]
    raised = 12 if estimate.mean > 0 else 0
    assert f"raise the mean in {raised} of 12 comparisons" in sentences[-1]
    assert "with 7 queries" in sentences[-1]
