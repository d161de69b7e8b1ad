"""Pages of benchmarks: the result first, how it was run last."""

import pytest

from benchmarks import clicks, noise, speed_page
from benchmarks.timing import Times, print_table, speed


def test_a_page_of_speed_has_results_tables_and_the_machine():
    with speed_page.printed() as text:
        print("\n20 queries")
        print("  a value that is left out")
        print_table(["ms", "min / median"], [["ours", "1.00 / 2.00"]])
    one = speed_page.Section("rounds of boosters", ["It is fast.", "Very."], text.getvalue())
    page = speed_page.speed_page([one], "python -m benchmarks rounds", "a machine\nof two cores\n")
    assert page.startswith("# Speed\n\nIt is fast.\n\n- Very.\n\nThese are ratios of medians")
    assert "20 queries\n\n| ms | min / median |\n| --- | ---: |\n| ours | 1.00 / 2.00 |\n" in page
    assert page.endswith("- `python -m benchmarks rounds`\n- a machine\n- of two cores\n")
    assert "left out" not in page


def test_speed_is_a_ratio_of_medians():
    assert speed(Times((1.0, 2.0, 3.0)), Times((1.0, 10.1, 90.0))) == "5.0"
    assert speed(Times((1.0,)), Times((67.8,))) == "68"


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.setattr(clicks, "PAGE", tmp_path)

    def write(done):
        clicks.write_page(done)
        return (tmp_path / "clicks.md").read_text()

    return write


def test_the_page_of_clicks_tells_real_sets_from_the_synthetic_one(written):
    values = {"debiased": 0.5, "naive": 0.4, "oracle": 0.6, "LightGBM position": 0.51}
    done = {
        (name, condition, system, seed): values.get(system, 0.3) + 0.01 * seed * (name == "ohsumed")
        for name in ("demonstration", "ohsumed")
        for condition in clicks.CONDITIONS
        for system in clicks.SYSTEMS
        for seed in (0, 1)
    }
    page = written(done)
    assert "On the real data sets *debiased* is ahead of clicks taken for labels (+0.1000" in page
    assert "behind LightGBM's `position` (-0.0100" in page
    assert "## demonstration (synthetic)" in page
    assert "## ohsumed (real)" in page
    assert "| LightGBM position | **0.5150** (+0.0100 ± 0.0000; 0 of 5) |" in page
    assert "| debiased | 0.5050 | 0.5000 | 0.5025 |" in page
    assert "nowhere" in page


def test_the_page_of_noise_names_who_ends_first():
    flat = {key: [0.5, 0.5, 0.5, 0.4] for key in noise.OBJECTIVES}
    tables = {
        "a, random": {**flat, "ranknet": [0.5] * 4},
        "a, clicks": {**flat, "softmax": [0.6] * 4},
    }
    page = noise.page(tables, "a command", 1.0, "some versions")
    first = page.split("\n")[2]
    assert first.startswith("No loss is best in every setting")
    assert "`ranknet` and `softmax` end first" in first
    assert page.endswith("`a command`, 1.0 minutes. some versions.\n")
