"""Pages of our own studies: the result first, how it was run last."""

from studies.clicks import experiment as clicks
from studies.noise import experiment as noise


def text_of(page):
    return "\n".join(page.lines)


def test_the_page_of_clicks_tells_real_sets_from_the_synthetic_one():
    values = {"debiased": 0.5, "naive": 0.4, "oracle": 0.6, "LightGBM position": 0.51}
    done = {
        (name, condition, system, seed): values.get(system, 0.3) + 0.01 * seed * (name == "ohsumed")
        for name in ("demonstration", "ohsumed")
        for condition in clicks.CONDITIONS
        for system in clicks.SYSTEMS
        for seed in (0, 1)
    }
    page = text_of(clicks.page(done))
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
    page = noise.page(tables)
    first = page.lines[0]
    assert first.startswith("No loss is best in every setting")
    assert "`ranknet` and `softmax` end first" in first
    assert list(page.files) == ["noise.json", "noise.svg"]
    assert "a, clicks" in text_of(page)
