"""Texts of objectives and metrics, right and wrong: read, or rejected by an error of ours."""

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gbmrank
from gbmrank.errors import GbmrankError, SpecError
from gbmrank.registry import (
    GENERATORS,
    LOSSES,
    METRICS,
    OBJECTIVES,
    OUTERS,
    REGULARISERS,
    UTILITIES,
    Registry,
)
from gbmrank.registry.composition import build, spec_of
from gbmrank.registry.spec import Spec, parse, parse_list
from tests.properties.tally import tried

REGISTRIES: dict[str, Registry[Any]] = {
    "objective": OBJECTIVES,
    "metric": METRICS,
    "loss": LOSSES,
    "utility": UTILITIES,
    "generator": GENERATORS,
    "outer": OUTERS,
    "regulariser": REGULARISERS,
}
NAMES = sorted({name for registry in REGISTRIES.values() for name in registry.entries})
KEYS = sorted(
    {
        field.name
        for registry in REGISTRIES.values()
        for name in registry.entries
        if registry.preset(name) is None
        for field in fields(registry.get(name))
    }
)
TOKENS = [*"()[],=@", " ", "'", '"', "\\", "1", "-1", "0.5", "1e3", "inf", "nan", "none", "true"]
soup = st.lists(st.sampled_from([*TOKENS, *NAMES[:12], *KEYS[:8]]), max_size=16).map("".join)
plain = (
    st.none()
    | st.booleans()
    | st.integers(-3, 40)
    | st.integers(-(10**90), 10**90)
    | st.floats(allow_nan=False)
    | st.sampled_from([*NAMES, "skip", "worst", "mean", "linear", "exp2", "pairs", "items", "sum"])
    | st.text(max_size=4)
)


def with_parts(inner):
    return st.lists(inner, max_size=3).map(tuple) | likely_specs(inner, NAMES)


def likely_specs(values, names):
    return st.builds(
        Spec,
        st.sampled_from(names),
        st.dictionaries(st.sampled_from(KEYS), values, max_size=3).map(lambda d: tuple(d.items())),
        st.none() | st.integers(1, 10**9),
        st.just(()) | st.lists(values, max_size=2).map(tuple),
    )


values = st.recursive(plain, with_parts, max_leaves=6)


def known_parameters(registry, name):
    cls = registry.get(name)
    keys = [field.name for field in fields(cls) if not field.metadata.get("data")]
    return st.builds(
        Spec,
        st.just(name),
        st.dictionaries(st.sampled_from(keys), values, max_size=2).map(lambda d: tuple(d.items()))
        if keys
        else st.just(()),
    )


@given(soup)
def test_token_soup_is_read_or_rejected(text):
    for read in (parse, parse_list):
        try:
            found = read(text)
        except SpecError:
            continue
        for spec in found if isinstance(found, tuple) else (found,):
            assert parse(str(spec)) == spec
    tried("grammar")


@given(likely_specs(values, NAMES), st.integers(0, 60), st.sampled_from(["", *TOKENS]))
def test_a_damaged_text_is_read_or_rejected(spec, place, inserted):
    text = str(spec)
    damaged = text[:place] + inserted + text[place + 1 :]
    try:
        again = parse(damaged)
    except SpecError:
        return
    assert parse(str(again)) == again
    tried("grammar")


@pytest.mark.parametrize("kind", REGISTRIES)
def test_any_parameters_build_or_are_rejected_and_print_as_they_were(kind):
    registry = REGISTRIES[kind]
    classes = [name for name in registry.entries if registry.preset(name) is None]
    likely = st.one_of([known_parameters(registry, name) for name in classes])

    @given(likely | likely_specs(values, list(registry.entries)))
    def check(spec):
        try:
            made = build(registry, spec)
        except GbmrankError:
            tried("texts rejected")
            return
        assert build(registry, str(spec_of(made))) == made
        tried("texts built")

    check()


@given(likely_specs(values, NAMES))
def test_public_functions_reject_in_our_words(spec):
    for make in (gbmrank.objective, gbmrank.metric):
        try:
            made = make(str(spec))
        except GbmrankError:
            continue
        assert make(str(made)) == made
    tried("texts in public functions")
