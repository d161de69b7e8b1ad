"""Readers that go away, and disks that are full."""

import json
import os
import subprocess
import sys

import pytest

from gbmrank.cli import main
from tests.cli.test_compare import letor

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs a shell")
LATER = pytest.mark.nightly  # a process each
GBMRANK = f"{sys.executable} -m gbmrank"
QUICK = "--backends lightgbm --objectives native:lambdarank --metrics ndcg@3 --folds 2 --rounds 150"


def shell(command, **options):
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, timeout=300, **options
    )


@pytest.mark.parametrize("command", [pytest.param("--help", marks=LATER), "compare --help",
                                     pytest.param("--version", marks=LATER), "list"])  # fmt: skip
def test_a_reader_that_goes_away_at_once(command):
    done = shell(f"{GBMRANK} {command} | true; echo ${{PIPESTATUS[0]}}")
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", [pytest.param("--help", marks=LATER),
                                     pytest.param("--version", marks=LATER), "list"])  # fmt: skip
def test_streams_that_lead_to_a_full_disk(command):
    done = shell(f"{GBMRANK} {command} >/dev/full")
    assert done.returncode == 2
    assert done.stderr.endswith("error: No space left on device\n")
    assert done.stderr.count("\n") == 1


def test_a_comparison_goes_on_when_nobody_reads_its_progress(tmp_path):
    rows = letor(tmp_path / "rows.txt")
    command = f"{GBMRANK} compare {rows} {QUICK} --in-process --out {tmp_path}/out"
    done = shell(f"{command} 2>&1 | head -n 1; echo ${{PIPESTATUS[0]}}")
    first, code = done.stdout.splitlines()
    assert first.startswith("4 features")
    assert code == "0"
    assert (tmp_path / "out" / "report.html").exists()
    assert not done.stderr


FULL = """
import resource, signal, sys
from gbmrank.cli import main
import lightgbm, scipy.sparse, numba
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.exit(main(sys.argv[2:]))
"""


def on_a_small_disk(limit, *arguments):
    """Run gbmrank where files have few bytes; those that measure coverage would have more."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    command = [sys.executable, "-c", FULL, str(limit), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, env=kept
    )


@pytest.mark.parametrize(
    ("limit", "file", "kept"),
    [(2500, "runs", "0 of 2"), pytest.param(9000, "results.json", "2 of 2", marks=LATER)],
)
def test_a_full_disk_is_told_with_the_file_and_what_was_kept(tmp_path, limit, file, kept):
    rows, out = letor(tmp_path / "rows.txt", queries=60), tmp_path / "out"
    options = [rows, *QUICK.split(), "--early-stopping", "0", "--in-process", "--out", str(out)]
    done = on_a_small_disk(limit, "compare", *options)
    assert done.returncode == 4, done.stderr
    told = done.stderr.splitlines()[-1]
    assert told.startswith(f"gbmrank compare: error: {out}/{file}")
    assert told.endswith(
        f"File too large; {kept} runs are done and kept in {out}; continue with the same command "
        "and --resume"
    )
    assert main(["compare", *options, "--quiet", "--resume"]) == 0


@LATER
def test_a_disk_that_is_too_small_for_the_rows(tmp_path):
    rows, out = letor(tmp_path / "rows.txt", queries=60), tmp_path / "out"
    options = [rows, *QUICK.split(), "--threads", "1", "--out", str(out)]
    done = on_a_small_disk(4000, "compare", *options)
    assert done.returncode == 4, done.stderr
    told = done.stderr.splitlines()[-1]
    assert f"{out}/work: the rows cannot be written, is the disk full?" in told
    assert "0 of 2 runs are done and kept" in told
    assert {path.name for path in out.iterdir()} - {".lock"} == {"plan.json", "runs"}


def test_files_from_standard_input(tmp_path, capsys):
    labels, scores = tmp_path / "qrels", tmp_path / "run"
    labels.write_text("# judged by hand\n1 0 a 1\n1 0 b 0\n")
    scores.write_text("1 Q0 a 1 2.0 t\n1 Q0 b 2 3.0 t\n")

    def evaluated(given, piped=""):
        done = shell(f"{piped}{GBMRANK} evaluate --json {given}")
        assert not done.stderr
        return json.loads(done.stdout)["metrics"]

    assert main(["evaluate", "--json", "--labels", str(labels), "--scores", str(scores)]) == 0
    whole = json.loads(capsys.readouterr().out)["metrics"]
    assert evaluated(f"--labels {labels} --scores -", f"cat {scores} | ") == whole
    assert evaluated(f"--labels - --scores {scores} --format trec < {labels}") == whole
    assert main(["evaluate", "--labels", "-", "--scores", "-"]) == 2
    assert "--labels and --scores" in capsys.readouterr().err
