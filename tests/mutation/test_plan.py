"""What is mutated, and what is said about mutants, is still there."""

from pathlib import Path

import pytest

from tests.mutation import plan
from tests.mutation.explained import explanations, reason_for
from tests.mutation.mutants import mutants_of
from tests.mutation.plan import MODULES, SLOW

ROOT = Path(__file__).parent.parent.parent
SOURCE = """
class Scale:
    def times(self, x):
        def twice(y):
            return 2 * y

        for _ in range(3):
            if x > 0:
                continue
        return twice(x)

LIMIT = 3
"""


@pytest.mark.parametrize("module", MODULES)
def test_modules_and_their_tests_exist(module):
    assert mutants_of((ROOT / module).read_text(encoding="utf-8"))
    *tests, option, about = plan.tests_of(module)
    assert option == "-k"
    assert about
    for name in (*tests, *SLOW):
        file, _, function = name.partition("::")
        source = (ROOT / file).read_text(encoding="utf-8")
        assert f"def {function.partition('[')[0]}" in source, name


@pytest.mark.parametrize("module", dict.fromkeys(module for module, *_ in explanations()))
def test_explanations_are_of_mutants_that_exist(module):
    """A line that was changed or moved to another function has to be thought over again."""
    assert module in MODULES
    source = (ROOT / module).read_text(encoding="utf-8")
    there = {(one.function, one.text, one.after) for one in mutants_of(source)}
    explained = {tuple(rest) for where, *rest in explanations() if where == module}
    assert explained - there == set()


def test_an_explanation_holds_for_its_place_alone():
    module, function, text, after = next(explanations())
    assert reason_for(module, function, text, after).startswith("equivalent: ")
    assert reason_for(module, "other", text, after) == ""
    assert reason_for(module, function, f"{text} + 1", after) == ""


def test_mutants_tell_where_they_are():
    found = {(one.function, one.text, one.after) for one in mutants_of(SOURCE)}
    assert found == {
        ("Scale.times", "return 2 * y", "2 / y"),
        ("Scale.times", "return 2 * y", "3"),
        ("Scale.times", "for _ in range(3):", "4"),
        ("Scale.times", "if x > 0:", "x >= 0"),
        ("Scale.times", "if x > 0:", "x <= 0"),
        ("Scale.times", "if x > 0:", "1"),
        ("Scale.times", "if x > 0: continue", "pass"),
    }
