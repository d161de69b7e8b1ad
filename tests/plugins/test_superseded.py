"""A plugin whose objectives are built in by now."""

import pytest

import gbmrank
from tests.plugins.fakes import shelf

__all__ = ["shelf"]

SOURCE = """
from dataclasses import dataclass
from typing import Any, ClassVar, final

from gbmrank.extend import AbstractObjective

gbmrank_api = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Old(AbstractObjective):
    name: ClassVar[str] = "lambdarank"
    hessian_trait: ClassVar[Any] = "exact"

    def bind(self, data):
        raise NotImplementedError
"""


def test_the_built_in_objective_wins_with_a_warning(shelf):
    shelf.add("gbmrank-old", SOURCE, objectives={"lambdarank": "Old"})
    with pytest.warns(gbmrank.GbmrankWarning, match="gbmrank-old"):
        made = gbmrank.objective("lambdarank@10")
    assert made.template.name == "swap"
    assert gbmrank.objective("lambdarank") == gbmrank.objective("swap")  # warned once
    assert type(gbmrank.objective("gbmrank-old:lambdarank").template).__name__ == "Old"
