"""Pages of our own studies: the result first, how it was run last."""

import numpy as np
import pytest

from studies.clicks import experiment as clicks
from studies.noise import experiment as noise
from studies.patterns import experiment as patterns


def text_of(page):
    return "\n".join(page.lines)


def test_the_page_of_clicks_compares_with_naive_and_names_the_cells_behind_it():
    values = {"debiased": 0.5, "naive": 0.4, "oracle": 0.6, "pooled": 0.52}
    noise = np.random.default_rng(0)
    done = {
        (name, condition, system, seed): (
            values.get(system, 0.3)
            + 1e-3 * noise.random()
            - 0.2 * (where == "top" and system == "pooled"),
            0.5,
        )
        for name in ("demonstration", "ohsumed")
        for condition in clicks.CONDITIONS
        for where in [condition[:3]]
        for system in clicks.systems_of(condition)
        for seed in (0, 1, 2)
    }
    page = text_of(clicks.page(done))
    assert "with OHSUMED: *pooled* is +20." in page
    assert "correction over 18 cells: demonstration, top 10 shown; ohsumed, top 10 shown." in page
    assert "*debiased* is behind *naive* after Holm's correction over 18 cells: in none." in page
    assert "## demonstration (synthetic)" in page
    assert "## ohsumed (real)" in page
    assert "| seeds | 3 |" in page


def test_holm_rejects_in_order_until_one_is_kept():
    assert clicks.holm({"a": 0.001, "b": 0.02, "c": 0.03, "d": 0.9}) == ["a"]
    assert clicks.holm({"a": 0.001, "b": 0.016, "c": 0.9}) == ["a", "b"]


def test_the_page_of_noise_names_who_ends_first():
    flat = {key: [0.5, 0.5, 0.5, 0.4] for key in noise.OBJECTIVES}
    tables = {
        "a, random": {**flat, "ranknet": [0.5] * 4},
        "a, clicks": {**flat, "softmax": [0.6] * 4},
    }
    page = noise.page(tables)
    first = page.lines[0]
    assert first.startswith("No loss is best in every setting")
    assert "`ranknet` and `softmax` end first" in first
    assert list(page.files) == ["noise.json", "noise.svg"]
    assert "a, clicks" in text_of(page)


def test_the_page_of_patterns_says_where_the_drop_in_is_behind():
    rng = np.random.default_rng(0)
    gaps = {
        (one.name, backend, noise, step): 0.004 + 0.004 * rng.normal(size=6)
        for one in patterns.PATTERNS
        for backend in patterns.NATIVE
        for noise in patterns.NOISES
        for step in patterns.STEPS
    }
    gaps["H&M", "xgboost", 0.2, "early stopping"] = -0.5 + 0.001 * np.arange(6.0)
    singles = {("drop-in", *key[1:]): gap for key, gap in gaps.items()}
    text = text_of(patterns.page(gaps, singles, []))
    assert "behind in 1 of them" in text
    assert "Behind after Holm's correction: H&M, xgboost, noise 0.2, early stopping." in text
    assert "**-0.4975 ± 0.0008** *" in text


def test_runs_of_one_seed_count_once():
    """Cells of a seed share data: doubling the cells changes no error."""
    values = np.array([0.1, 0.2, 0.4])
    once, twice = patterns.gap_of([values]), patterns.gap_of([values, values])
    assert once == twice
    assert once.mean == pytest.approx(0.7 / 3)
    assert once.error == pytest.approx(np.std(values, ddof=1) / np.sqrt(3))


def test_patience_counts_rounds_without_a_new_best():
    curve = [0.1, 0.3, *[0.2] * patterns.PATIENCE, 0.9]
    assert patterns._stopped(curve) == 2
    assert patterns._stopped([0.1, 0.3, *[0.2] * (patterns.PATIENCE - 1), 0.9]) == len(curve) - 1
