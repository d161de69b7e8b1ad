"""Which compositions are compiled at every change."""

from typing import Any

import pytest

from tests.objectives.cases import is_compiled_each_time, is_nightly


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    for item in items:
        if "tests/objectives" not in item.path.as_posix():
            continue
        callspec = getattr(item, "callspec", None)
        parameters = {} if callspec is None else callspec.params
        parts = [str(parameters[key]) for key in ("text", "spec", "loss") if key in parameters]
        if parts:
            if is_nightly(parts[0]):
                item.add_marker(pytest.mark.nightly)
            elif is_compiled_each_time(parts[0]):
                item.add_marker(pytest.mark.compiled)
