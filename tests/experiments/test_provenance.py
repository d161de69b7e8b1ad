"""Facts about the data; code that is not gbmrank's has one hash for one behaviour."""

import importlib
import sys
from types import FunctionType
from typing import Any

import numpy as np

from gbmrank.experiments.provenance import code_of, data_facts
from gbmrank.experiments.sources import read_source
from gbmrank.losses.base import loss_class
from tests.ranking_tasks import run_python

LOSS = """
import numpy as np
from gbmrank.extend import AbstractBoundMetric, AbstractMetric
from dataclasses import dataclass
from typing import ClassVar

TABLE = np.arange(3.0)
NAMES = frozenset(("a", "b", "c", "d"))

class Bound(AbstractBoundMetric):
    def per_query(self, ranked):
        kept = [one for one in ranked.groups.sizes if one in (1, 2) or str(one) in NAMES]
        return TABLE[:1] * len(kept) + {factor}

@dataclass(frozen=True, slots=True, kw_only=True)
class Odd(AbstractMetric):
    name: ClassVar[str] = "odd"
    share: float = 0.5
    def bind(self, data):
        return Bound(self, data)
"""


def test_the_facts_count_what_is_there():
    x = np.array([[1.0, np.nan], [1.0, np.nan], [1.0, np.inf], [1.0, np.nan], [2.0, 0.0]])
    found = data_facts(read_source((x, [0, 2, 0, 1, 1], ["a", "a", "a", "b", "c"])), ("a note",))
    assert found["duplicate_rows"] == 1  # the row of query b repeats one of another query
    assert found["singletons"] == 2
    assert found["longest"] == 3
    assert found["without_relevant"] == 0
    assert found["label_counts"] == {"0": 2, "1": 2, "2": 1}
    assert found["notes"][-1] == "a note"


def test_queries_that_teach_nothing_are_counted():
    x = np.arange(6.0)[:, None]
    found = data_facts(read_source((x, [0, 0, 1, 1, 0, 1], [1, 1, 2, 2, 3, 3])))
    assert (found["without_relevant"], found["all_labels_equal"]) == (1, 2)
    assert found["duplicate_rows"] == 0


def test_a_missing_value_or_an_infinite_one_is_no_other_value():
    x = np.array([[0.5, 1.0], [np.nan, 1.0], [np.inf, 2.0], [np.inf, 7.0], [-np.inf, 7.0]])
    facts = data_facts(read_source((x, [0, 1, 0, 1, 0], [1] * 5)))
    assert facts["duplicate_rows"] == 0
    twice = data_facts(read_source((np.concatenate([x, x]), [0, 1] * 5, [1] * 10)))
    assert twice["duplicate_rows"] == 5


def code(factor):
    space: dict[str, Any] = {"__name__": "odd_module"}
    sys.modules["odd_module"] = sys.modules[__name__]  # where dataclasses look
    exec(LOSS.format(factor=factor), space)  # noqa: S102
    return code_of(space["Odd"])


def test_what_a_class_calls_counts():
    assert code(1) == code(1)
    assert code(1) != code(2)


def test_another_process_finds_the_same():
    source = "from tests.experiments.test_provenance import code\nprint(code(1), code(2))"
    assert run_python(source, PYTHONHASHSEED="7").split() == [code(1), code(2)]


def test_closures_arrays_and_defaults_count():
    def made(width, table, slope=1.0):
        def own(z, c=slope):
            return width * z * z + table[0], 2 * width * z, 2 * width * c

        return loss_class(own)

    base = code_of(made(1.0, np.array([1.0])))
    assert base == code_of(made(1.0, np.array([1.0])))
    others = {
        code_of(made(2.0, np.array([1.0]))),
        code_of(made(1.0, np.array([2.0]))),
        code_of(made(1.0, np.array([1.0]), 2.0)),
    }
    assert len(others | {base}) == 4


def test_what_is_reached_through_a_module_of_the_package_counts(tmp_path, monkeypatch):
    package = tmp_path / "odd_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "tools.py").write_text("WIDTH = 1.0\ndef slope(z):\n    return z\n")
    (package / "own.py").write_text(
        "import odd_package.tools\nfrom odd_package import tools as near\n\n"
        "class Odd:\n    def value(self, z):\n"
        "        return near.slope(z) * odd_package.tools.WIDTH\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    odd = importlib.import_module("odd_package.own").Odd
    tools = sys.modules["odd_package.tools"]
    base = code_of(odd)
    monkeypatch.setattr(tools, "WIDTH", 2.0)
    wider = code_of(odd)
    monkeypatch.setattr(tools, "slope", other := FunctionType((lambda z: -z).__code__, {}))
    other.__module__ = "odd_package.tools"
    assert len({base, wider, code_of(odd)}) == 3
    for name in ("odd_package", "odd_package.own", "odd_package.tools"):
        del sys.modules[name]
