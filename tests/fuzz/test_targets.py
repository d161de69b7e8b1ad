"""The fuzzer's targets accept their seeds and let through what is not an error of ours."""

import pytest

from gbmrank.errors import DataError
from tests.fuzz import targets

CALLS = {"letor": "read_letor", "csv": "read_csv", "trec": "read_trec", "spec": "parse"}


@pytest.mark.parametrize("name", targets.TARGETS)
def test_seeds_are_read(name, monkeypatch):
    original, seen = getattr(targets, CALLS[name]), []

    def recording(*args, **kwargs):
        seen.append(original(*args, **kwargs))
        return seen[-1]

    monkeypatch.setattr(targets, CALLS[name], recording)
    targets.TARGETS[name](targets.SEEDS[name][0])
    assert seen


@pytest.mark.parametrize("name", targets.TARGETS)
def test_only_errors_of_ours_are_kept_quiet(name, monkeypatch):
    def rejecting(*args, **kwargs):
        raise DataError("a line that cannot be read")

    def breaking(*args, **kwargs):
        raise KeyError("a fault")

    if name != "spec":  # there only SpecError will do
        monkeypatch.setattr(targets, CALLS[name], rejecting)
        targets.TARGETS[name](b"x")
    monkeypatch.setattr(targets, CALLS[name], breaking)
    with pytest.raises(KeyError):
        targets.TARGETS[name](b"x")
