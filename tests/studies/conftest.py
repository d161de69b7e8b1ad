"""Whole studies train and compile for minutes: one runs at every change, the others at night."""

from typing import Any

import pytest

STUDIES = ("outcome", "small")  # fixtures that run one
EACH_TIME = "test_duchi2010.py"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    for item in items:
        elsewhere = item.path.parent.name != "studies" or item.path.name == EACH_TIME
        if not elsewhere and {*STUDIES} & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.nightly)
