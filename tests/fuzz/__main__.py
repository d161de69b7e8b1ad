"""Coverage-guided fuzzing: ``python -m tests.fuzz --seconds 60 [--target letor]``.

Each target runs in a process of its own, since the fuzzer ends its process. Anything but an
error of ours is a failure; the input that led to it is printed and kept in ``build/fuzz``.
"""

import argparse
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz.targets import SEEDS, TARGETS

_DONE = re.compile(r"^Done (\d+) runs? in (\d+) second", re.MULTILINE)


def main() -> int:
    options = _options()
    if find_spec("atheris") is None:
        print("no coverage-guided fuzzing: atheris is not installed (pip install atheris)")
        return 0
    if options.inside:
        _run_inside(options.target, options.seconds, options.folder)
        return 0
    bad = [name for name in options.targets if not _run(name, options.seconds, options.folder)]
    return 1 if bad else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="per target")
    parser.add_argument("--target", choices=sorted(TARGETS), help="default: all")
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.targets = [options.target] if options.target else list(TARGETS)
    return options


def _run(name: str, seconds: int, folder: Path) -> bool:
    """Fuzz one target in a child; say how many inputs it tried."""
    command = [sys.executable, "-m", "tests.fuzz", "--inside", "--target", name]
    command += ["--seconds", str(seconds), "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    text = done.stdout + done.stderr
    found = _DONE.search(text)
    if done.returncode == 0 and found is not None:
        print(f"{name:8} {int(found[1]):>12,} inputs in {found[2]} seconds, no failure", flush=True)
        return True
    print(f"{name:8} FAILED\n" + text[-4000:], flush=True)
    return False


def _run_inside(name: str, seconds: int, folder: Path) -> None:
    import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]

    corpus = folder / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS[name]):
        (corpus / f"seed-{number}").write_bytes(seed)
    for module in ("gbmrank.registry.spec", "gbmrank.data.readers"):
        for loaded in [key for key in sys.modules if key.startswith((module, "tests.fuzz.t"))]:
            del sys.modules[loaded]
    with atheris.instrument_imports(include=["gbmrank.registry.spec", "gbmrank.data.readers"]):
        from tests.fuzz.targets import TARGETS as INSTRUMENTED
    target = INSTRUMENTED[name]
    flags = [f"-max_total_time={seconds}", "-max_len=400", "-timeout=20", "-print_final_stats=1"]
    flags += [f"-artifact_prefix={folder}/{name}-"]
    atheris.Setup(["fuzz", *flags, str(corpus)], target)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
