"""How many examples the property tests tried, by what they are about."""

from collections import Counter

from hypothesis import settings

TRIED: Counter[str] = Counter()


def tried(what: str) -> None:
    """Count one example that was run to its end."""
    TRIED[what] += 1


def fewer(part: int) -> settings:
    """Return settings with a part of the examples of the profile, for what is slow."""
    usual = settings.default
    assert usual is not None
    return settings(max_examples=max(usual.max_examples // part, 1))
