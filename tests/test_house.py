"""What ships with the package."""

from pathlib import Path

import gbmrank

HOUSE = Path(gbmrank.__file__).parent


def test_the_types_are_shipped():
    assert (HOUSE / "py.typed").exists()
