"""Where the papers' data lies on this machine."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from gbmrank.errors import ConfigError

VARIABLE = "GBMRANK_DATA"
"""Environment variable that names the folder with data."""

_DEPTH = 4  # of folders below the given one that are looked into
_PART = re.compile(r"(?P<kind>.*?)[._-]?S(?P<part>[1-9])\.txt(?:\.gz)?")


def data_folder(given: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the folder with data: the given one, else that of ``GBMRANK_DATA``, else None.

    Parameters
    ----------
    given : path, optional
        What the user says.

    Raises
    ------
    ConfigError
        When it is no folder.
    """
    named = os.environ.get(VARIABLE) or None if given is None else given
    if named is None:
        return None
    folder = Path(named)
    if not folder.is_dir():
        source = VARIABLE if given is None else "--data"
        raise ConfigError(f"{source} must name a folder that exists, got {str(named)!r}")
    return folder


def find_files(folder: Path | None, names: Sequence[str], needs: str) -> dict[str, Path]:
    """Return where files are: in a folder or below it, plain or as ``.gz``, all side by side.

    Parameters
    ----------
    folder : Path or None
        Where to look.
    names : sequence of str
        Names of the files.
    needs : str
        What to tell a user who lacks them.

    Raises
    ------
    ConfigError
        When no folder is given, or none holds all files.
    """
    best: dict[str, Path] = {}
    for place in _folders(folder, needs):
        found = {name: path for name in names for path in _either(place / name)}
        if len(found) == len(names):
            return found
        best = max(best, found, key=len)
    missing = [name for name in names if name not in best]
    raise ConfigError(f"{folder} has no {' and no '.join(missing)} (plain or .gz). {needs}")


def find_parts(folder: Path | None, needs: str, *, least: int = 3) -> dict[int, Path]:
    """Return the parts S1, S2, ... of a LETOR data set, by number.

    Files are called ``S1.txt`` or, where several versions lie together, ``norm.S1.txt``; they
    may end in ``.gz``. Of several versions the one normalised per query counts.

    Parameters
    ----------
    folder : Path or None
        Where to look.
    needs : str
        What to tell a user who lacks them.
    least : int, default=3
        Parts that there must be.

    Raises
    ------
    ConfigError
        When there are fewer parts.
    """
    versions: dict[tuple[str, str], dict[int, Path]] = {}
    for place in _folders(folder, needs):
        for path in sorted(place.iterdir()):
            match = _PART.fullmatch(path.name)
            if match and path.is_file():
                key = str(place.relative_to(folder or place)), match["kind"]
                parts = versions.setdefault(key, {})
                parts.setdefault(int(match["part"]), path)
    enough = {key: parts for key, parts in versions.items() if len(parts) >= least}
    if not enough:
        most = max(map(len, versions.values()), default=0)
        raise ConfigError(f"{folder} has {most} parts S1.txt, S2.txt, ..; {least} needed. {needs}")
    chosen = min(enough, key=lambda key: (*_preference(*key), -len(enough[key]), key))
    return dict(sorted(enough[chosen].items()))


def _preference(place: str, kind: str) -> tuple[bool, bool]:
    text = f"{place}/{kind}".lower()
    return "ohsumed" not in text, "norm" not in text


def _folders(folder: Path | None, needs: str) -> Iterator[Path]:
    """Yield a folder and those below it, by name."""
    if folder is None:
        raise ConfigError(f"no data: give --data FOLDER or set {VARIABLE}. {needs}")
    for place, below, _ in os.walk(folder):
        below[:] = sorted(name for name in below if not name.startswith("."))
        if len(Path(place).relative_to(folder).parts) >= _DEPTH:
            below.clear()
        yield Path(place)


def _either(path: Path) -> list[Path]:
    """Return the plain file, else the compressed one, else nothing."""
    candidates = (path, path.with_name(f"{path.name}.gz"))
    return [one for one in candidates if one.is_file()][:1]
