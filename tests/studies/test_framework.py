"""Studies as a list, as a command and as pages; where data is looked for."""

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import gbmrank
from gbmrank.errors import ConfigError, UnknownNameError
from studies import stamps
from studies.__main__ import PAPERS, STUDIES, load_study, main, run_study
from studies.files import data_folder, find_files, find_parts
from studies.intervals import over_queries, over_runs
from studies.report import Report
from studies.study import Outcome, Settings, Table

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def report():
    outcome = Outcome(
        tables=[Table("Values | all", ["a|b", "c"], [["1", "x\ny"]])],
        findings=["It is above [0.1, 0.2].", "It is below."],
        figures={"line": lambda figure: figure.subplots().plot([1, 2], [3, 4])},
        facts={"rows": 3, "seed": 5},
        summary="It holds.",
    )
    settings = Settings(data=Path("/somewhere/private"), seed=5, threads=2)
    return Report("duchi2010", "Somebody, a paper, 2010", settings, outcome, 61.4, "Somebody 2010")


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_keeps_the_contract(name):
    study = load_study(name)
    assert len(study.PAPER) > 20 if name in PAPERS else not study.PAPER
    assert name[-4:] + ": " in study.TITLE if name in PAPERS else len(study.TITLE) > 10
    assert all(len(option.about) > 5 for option in study.OPTIONS.values())
    assert isinstance(study.NEEDS, str)
    assert all((ROOT / "gbmrank" / one).is_file() for one in study.FORMULAS)
    assert f"gbmrank/{sorted(study.FORMULAS)[-1]}" in stamps.stamp(name)
    assert callable(study.run)


def test_studies_are_listed(capsys):
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n{name} " in shown for name in STUDIES)
    assert "u.data and u.item" in shown
    data = {line.split()[0]: line.split()[1] for line in shown.splitlines()[2 : 2 + len(STUDIES)]}
    assert data["duchi2010"] == "needed"
    assert data["calauzenes2013"] == "none"
    assert main(["--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["schema"] == "gbmrank.reproduce/1"
    assert [one["name"] for one in listed["studies"]] == list(STUDIES)


def test_an_unknown_study_suggests_the_nearest(capsys):
    with pytest.raises(UnknownNameError, match="did you mean duchi2010"):
        load_study("duchi2011")
    assert main(["nothing"]) == 2
    assert "There are: chen2009" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "files"), [("duchi2010", "u.data and u.item"), ("chen2009", "S1.txt to S5.txt")]
)
def test_missing_data_is_explained(capsys, monkeypatch, tmp_path, name, files):
    monkeypatch.delenv("GBMRANK_DATA", raising=False)
    assert main([name]) == 2
    message = capsys.readouterr().err
    assert "give --data FOLDER or set GBMRANK_DATA" in message
    assert files in message
    assert main([name, "--data", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert str(tmp_path) in message
    assert files in message


@pytest.mark.parametrize("option", [["--seed", "-1"], ["--threads", "0"]])
def test_options_are_checked(capsys, option):
    assert main(["duchi2010", "--small", *option]) == 2
    assert option[1] in capsys.readouterr().err


def test_the_folder_is_given_or_named_by_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("GBMRANK_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    (tmp_path / "other").mkdir()
    assert data_folder(tmp_path / "other") == tmp_path / "other"
    with pytest.raises(ConfigError, match="--data must name a folder that exists, got"):
        data_folder(tmp_path / "nowhere")
    monkeypatch.setenv("GBMRANK_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="GBMRANK_DATA must name a folder"):
        data_folder()
    monkeypatch.setenv("GBMRANK_DATA", "")
    assert data_folder() is None


def test_files_are_found_below_and_compressed(tmp_path):
    below = tmp_path / "movies" / "raw"
    below.mkdir(parents=True)
    (tmp_path / "u.data").write_text("")  # alone, without its companion
    (below / "u.item").write_text("")
    with pytest.raises(ConfigError, match=r"has no u.item \(plain or .gz\). Get it there"):
        find_files(tmp_path, ("u.data", "u.item"), "Get it there")
    (below / "u.data.gz").write_bytes(gzip.compress(b""))
    found = find_files(tmp_path, ("u.data", "u.item"), "")
    assert found == {"u.data": below / "u.data.gz", "u.item": below / "u.item"}
    (below / "u.data").write_text("")
    assert find_files(tmp_path, ("u.data",), "")["u.data"] == tmp_path / "u.data"


def test_the_version_normalised_per_query_is_preferred(tmp_path):
    folder = tmp_path / "ohsumed"
    folder.mkdir()
    for part in (1, 2, 3, 5):
        for kind in ("min", "norm"):
            (folder / f"{kind}.S{part}.txt.gz").write_bytes(b"")
    parts = find_parts(tmp_path, "")
    assert {number: path.name for number, path in parts.items()} == {
        part: f"norm.S{part}.txt.gz" for part in (1, 2, 3, 5)
    }
    with pytest.raises(ConfigError, match=r"has 4 parts S1.txt, S2.txt, ..; 5 needed. See there"):
        find_parts(tmp_path, "See there", least=5)


def test_plain_parts_are_found_in_the_folder_itself(tmp_path):
    for part in (1, 2, 3):
        (tmp_path / f"S{part}.txt").write_text("")
    (tmp_path / "notes.txt").write_text("")
    assert [path.name for path in find_parts(tmp_path, "").values()] == [
        "S1.txt",
        "S2.txt",
        "S3.txt",
    ]


def test_a_page_tells_all_but_where_the_data_lies(report):
    page = report.as_markdown(["duchi2010-line.svg"])
    assert "- command: `python -m studies duchi2010 --data DATA --seed 5 --threads 2`" in page
    assert "/somewhere/private" not in page
    assert "# Somebody 2010\n\nIt holds.\n\nPaper: Somebody, a paper, 2010.\n" in page
    assert "- time: 61 seconds" in page
    assert f"gbmrank {gbmrank.__version__}" in page
    assert "- It is below." in page
    assert "| a\\|b | c |\n| --- | --- |\n| 1 | x y |" in page
    assert "![duchi2010-line.svg](duchi2010-line.svg)" in page
    assert "- rows: 3" in page


def test_saving_writes_page_plot_and_index(report, tmp_path):
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    (folder / "duchi2010-old.svg").write_text("")
    (folder / "other.md").write_text("# by hand\n")
    written = report.save(folder)
    assert [path.name for path in written] == ["duchi2010.md", "duchi2010-line.svg", "index.md"]
    assert not (folder / "duchi2010-old.svg").exists()
    drawn = (folder / "duchi2010-line.svg").read_bytes()
    assert ET.fromstring(drawn).tag.endswith("svg")  # noqa: S314  (our own file)
    index = (folder / "index.md").read_text()
    assert (
        "## [Somebody 2010](duchi2010.md)\n\nIt holds.\n\nPaper: Somebody, a paper, 2010.\n"
        in index
    )
    assert "- It is above [0.1, 0.2].\n- It is below.\n" in index
    assert "by hand" not in index
    report.save(folder)
    assert (folder / "duchi2010-line.svg").read_bytes() == drawn


def test_without_matplotlib_there_are_no_plots(report, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as if it were not installed
    assert [path.name for path in report.save(tmp_path)] == ["duchi2010.md", "index.md"]
    assert ".svg" not in (tmp_path / "duchi2010.md").read_text()


def test_threads_hold_for_kernels_while_a_study_runs():
    seen: list[object] = []
    gbmrank.set_num_threads(2)
    with pytest.raises(ConfigError):  # it reads its data after it was told the threads
        run_study("duchi2010", Settings(threads=1, report=seen.append))
    assert gbmrank.get_num_threads() == 2

    def watch(_line):
        seen.append(gbmrank.get_num_threads())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study("duchi2010", Settings(small=True, threads=1, report=watch))
    assert seen == [1]
    assert gbmrank.get_num_threads() == 2


def test_intervals_cover_what_they_should():
    rng = np.random.default_rng(0)
    inside = {"runs": 0, "queries": 0}
    for _ in range(60):
        values = rng.normal(1.0, 2.0, size=15)
        runs = over_runs(values)
        queries = over_queries(rng.normal(1.0, 2.0, size=80), rng)
        inside["runs"] += runs.low < 1.0 < runs.high
        inside["queries"] += queries.low < 1.0 < queries.high
    # 95% of 60 is 57, standard deviation 1.7; the bootstrap is a little short
    assert inside["runs"] >= 51
    assert inside["queries"] >= 50


def test_one_run_has_no_interval_and_no_sign():
    one = over_runs(np.array([3.0]))
    assert one.mean == 3.0
    assert np.isnan(one.low)
    assert one.sign == 0
    assert [over_runs(np.array([s, 1.1 * s])).sign for s in (1.0, -1.0)] == [1, -1]


def test_the_command_runs_as_a_module_from_the_root():
    done = subprocess.run(
        [sys.executable, "-m", "studies", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("usage: python -m studies ")


def copied_studies(folder, monkeypatch):
    """Copy the code of the studies, so that it can be changed."""
    shutil.copytree(ROOT / "studies", folder / "studies")
    monkeypatch.setattr(stamps, "_HERE", folder / "studies")
    return folder / "studies"


def test_a_page_is_outdated_when_the_code_of_its_study_changes(report, tmp_path, monkeypatch):
    copy = copied_studies(tmp_path, monkeypatch)
    out = tmp_path / "pages"
    report.save(out)
    assert stamps.outdated(out, ["duchi2010"]) == []
    assert stamps.outdated(out, ["duchi2010", "chen2009"]) == ["chen2009"]  # no page yet
    used, other = copy / "movielens.py", copy / "chen2009" / "experiment.py"
    before = used.read_text(encoding="utf-8")
    used.write_text(f"{before}\n# a comment\nimport os\n", encoding="utf-8")
    other.write_text("RATE = 2\n", encoding="utf-8")
    assert stamps.outdated(out, ["duchi2010"]) == []
    used.write_text(f"{before}\nRATE = 2\n", encoding="utf-8")
    assert stamps.outdated(out, ["duchi2010"]) == ["duchi2010"]
    report.save(out)
    used.write_text(f'{before}\nRATE = 2  # of what\n"""Of all."""\n', encoding="utf-8")
    assert stamps.outdated(out, ["duchi2010"]) == []
    used.write_text(f"{before}\nRATE = '# 2'\n", encoding="utf-8")
    assert stamps.outdated(out, ["duchi2010"]) == ["duchi2010"]
    assert main(["duchi2010", "--stamp", "--out", str(out)]) == 0
    assert stamps.outdated(out, ["duchi2010"]) == []
    text = (out / "duchi2010.md").read_text(encoding="utf-8")
    assert text.count("- stamp: ") == text.count("stamped without a new run") == 1


def test_a_page_is_outdated_when_a_formula_of_its_study_changes(report, tmp_path, monkeypatch):
    for name in ("losses", "metrics", "objectives"):
        shutil.copytree(ROOT / "gbmrank" / name, tmp_path / name)
    monkeypatch.setattr(stamps, "_PACKAGE", tmp_path)
    out = tmp_path / "pages"
    report.save(out)
    used, other = tmp_path / "losses" / "margin.py", tmp_path / "losses" / "utilities.py"
    before = used.read_text(encoding="utf-8")
    other.write_text("RATE = 2\n", encoding="utf-8")
    used.write_text(f"{before}\n# a comment\n", encoding="utf-8")
    assert stamps.outdated(out, ["duchi2010"]) == []
    used.write_text(before.replace("1.0", "2.0"), encoding="utf-8")
    assert stamps.outdated(out, ["duchi2010"]) == ["duchi2010"]


def test_a_stamp_covers_modules_that_are_imported_from_the_package():
    assert "bayes_scorers.py" in stamps.stamp("menon2014")


def test_a_stamp_needs_a_page(capsys):
    assert main(["duchi2010", "--stamp"]) == 2
    assert "--out" in capsys.readouterr().err
