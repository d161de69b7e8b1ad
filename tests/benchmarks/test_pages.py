"""Pages of benchmarks: the result first, how it was run last."""

from benchmarks import speed_page
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
