"""The text form: printing and parsing are inverse, and errors point at the place."""

import keyword
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gbmrank.errors import SpecError
from gbmrank.registry.spec import Spec, format_value, parse, parse_list

RESERVED = {"true", "false", "none", "inf", "nan"}
names = st.from_regex(r"[A-Za-z][A-Za-z0-9_.:-]{0,8}", fullmatch=True).filter(
    lambda name: name.lower() not in RESERVED
)
cutoffs = st.none() | st.integers(1, 10**9)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**60), 10**60)
    | st.floats(allow_nan=False)
    | st.text(max_size=12)
    | names
)


def not_bare(spec):
    return spec != Spec(spec.name)  # a bare name as a value is a string


def specs(values):
    return st.builds(
        Spec,
        names,
        st.dictionaries(names, values, max_size=3).map(lambda d: tuple(d.items())),
        cutoffs,
        st.lists(values, max_size=2).map(tuple),
    )


values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | specs(inner).filter(not_bare),
    max_leaves=12,
)


@given(specs(values))
def test_printing_and_parsing_are_inverse(spec):
    assert parse(str(spec)) == spec


@given(st.lists(specs(values), min_size=1, max_size=3))
def test_lists_of_specs_read_back(several):
    assert parse_list(", ".join(map(str, several))) == tuple(several)


@given(specs(values), st.integers(0, 3))
def test_blanks_between_tokens_do_not_matter(spec, blanks):
    space = " " * blanks
    plain = str(Spec(spec.name, (), spec.k))
    assert parse(space + plain.replace("@", f"{space}@{space}") + space) == Spec(
        spec.name, (), spec.k
    )


@given(st.text(max_size=60))
def test_any_text_is_read_or_rejected(text):
    try:
        spec = parse(text)
    except SpecError:
        return
    assert parse(str(spec)) == spec


def test_values_have_the_types_they_look_like():
    spec = parse("f(a=1, b=-2.5, c=true, d=None, e=x, g='a b', h=[1, [y]], i=n@3, j=-inf, k=1e3)")
    assert dict(spec.params) == {
        "a": 1,
        "b": -2.5,
        "c": True,
        "d": None,
        "e": "x",
        "g": "a b",
        "h": (1, ("y",)),
        "i": Spec("n", k=3),
        "j": -math.inf,
        "k": 1000.0,
    }
    assert type(dict(spec.params)["a"]) is int
    assert type(dict(spec.params)["k"]) is float


def test_nested_specs_and_arguments_without_a_key():
    spec = parse("mix(ranknet, pairwise(target=ndcg@10), weights=[0.7, 0.3])")
    assert spec.args == ("ranknet", Spec("pairwise", (("target", Spec("ndcg", k=10)),)))
    assert spec.params == (("weights", (0.7, 0.3)),)


@pytest.mark.parametrize("word", ["inf-x", "nan:a", "infinity", "nano", "true_", "none.x"])
def test_words_that_begin_like_a_number_or_keyword_are_names(word):
    assert dict(parse(f"f(a={word})").params) == {"a": word}
    assert parse(word).name == word


def test_namespaces_are_part_of_the_name():
    assert parse("native:rank:ndcg").name == "native:rank:ndcg"
    assert parse("my-plugin:loss_2@5") == Spec("my-plugin:loss_2", k=5)


@pytest.mark.parametrize(
    ("text", "reason", "column"),
    [
        ("", "expected a name", 0),
        ("   ", "expected a name", 3),
        ("5", "expected a name", 0),
        ("ndcg@", "whole number of at least 1", 5),
        ("ndcg@0", "whole number of at least 1", 5),
        ("ndcg@-1", "whole number of at least 1", 5),
        ("ndcg@x", "whole number of at least 1", 5),
        ("ndcg@1.5", "whole number of at least 1", 5),
        ("ndcg@10)", "expected the end", 7),
        ("f(a=1", "expected ','", 5),
        ("f(a=1 b=2)", "expected ','", 6),
        ("f(a=)", "expected a value", 4),
        ("f(a=1,)", "expected a value", 6),
        ("f(a=$)", "unexpected character", 4),
        ("f(a=1, a=2)", "'a' is given twice", 9),
        ("f(a=1, 2)", "must come before", 8),
        ("f(a='x)", "unexpected character", 4),
        ("f(a=nan)", "a parameter cannot have this number", 4),
        ("f(a=1e999)", "a parameter cannot have this number", 4),
        ("f(a=10abc)", "unexpected character", 4),
        ("f(a=[1, 2)", "expected ','", 9),
    ],
)
def test_errors_show_the_text_the_place_and_an_example(text, reason, column):
    with pytest.raises(SpecError) as caught:
        parse(text)
    first, shown, marker, advice = str(caught.value).split("\n")
    assert reason in first
    assert shown == f"    {text}"
    assert marker == "    " + " " * column + "^"
    assert "name(key=value, ...)@k" in advice


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f(" * 50 + ")" * 50, "nested more than 20 deep"),
        ("f(a=" + "[" * 5_000, "nested more than 20 deep"),
        ("f(a=" + "1" * 9_000 + ")", "a parameter cannot have this number"),
        ("f(a=__import__('os'))", "unexpected character"),
        ("ndcg\x00@10", "unexpected character"),
        ("ndcg@10; rm -rf", "unexpected character"),
    ],
)
def test_hostile_text_is_rejected(text, message):
    with pytest.raises(SpecError, match=re.escape(message)):
        parse(text)


@pytest.mark.parametrize("value", [None, b"ndcg@10", 10, ["ndcg"]])
def test_only_text_is_parsed(value):
    with pytest.raises(SpecError, match=f"got {type(value).__name__}"):
        parse(value)


def test_a_list_repeats_the_last_name_for_bare_cutoffs():
    assert [str(spec) for spec in parse_list("ndcg(gain=linear)@1,5, map, err@10 , 20")] == [
        "ndcg(gain=linear)@1",
        "ndcg(gain=linear)@5",
        "map",
        "err@10",
        "err@20",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("map, 5", "expected a name"),
        ("ndcg@1, 0", "whole number of at least 1"),
        ("ndcg@1,", "expected a name"),
        ("ndcg@1 5", "expected the end"),
    ],
)
def test_lists_reject_what_is_not_a_cutoff(text, reason):
    with pytest.raises(SpecError, match=reason):
        parse_list(text)


def test_numbers_of_numpy_print_as_plain_numbers():
    assert format_value(np.float64(0.1)) == "0.1"
    assert format_value((np.float64(2.5), 3)) == "[2.5, 3]"


def test_strings_that_look_like_values_are_quoted():
    for text in ["true", "None", "inf", "NaN", "1", "a b", "", "it's", "back\\slash", "x\ny"]:
        assert dict(parse(f"f(a={format_value(text)})").params) == {"a": text}


@pytest.mark.parametrize("word", [w for w in keyword.kwlist if w not in {"True", "False", "None"}])
def test_python_keywords_are_ordinary_names(word):
    assert parse(f"{word}({word}={word})") == Spec(word, ((word, word),))
