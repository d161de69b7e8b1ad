"""The command ``gbmrank``: exit code 0 is success, 1 a bug in gbmrank, 2 invalid input.

``gbmrank compare`` also returns 3 when it is done and some of its runs failed.

One module per command, imported when that command is called. Each has
``add_arguments(parser)`` and ``run(given)``, which prints and returns an exit code; every command
has the option ``--json``.
"""

import argparse
import difflib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn, final

from gbmrank.cli.screen import clean, system_message
from gbmrank.errors import GbmrankError

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "advise": ("gbmrank.cli.advise", "say which objectives are right for a metric, and why"),
    "check": ("gbmrank.cli.check", "search for a counterexample to calibration"),
    "clicks": ("gbmrank.cli.clicks", "say what a click log can teach, and how to train on it"),
    "compare": ("gbmrank.cli.compare", "train objectives on data and compare them by query"),
    "distil": ("gbmrank.cli.distil", "train one small model that ranks like a large one"),
    "evaluate": ("gbmrank.cli.evaluate", "measure the scores of a model against labels"),
    "explain": ("gbmrank.cli.explain", "say why a model ranks one item above another"),
    "info": ("gbmrank.cli.info", "describe an objective, a loss or a metric"),
    "list": ("gbmrank.cli.listing", "show objectives, metrics, losses and utilities"),
    "plugin": ("gbmrank.cli.plugin", "create a plugin project: gbmrank plugin new NAME"),
    "plugins": ("gbmrank.cli.plugins", "show plugins, and what is wrong with broken ones"),
    "predict": ("gbmrank.cli.predict", "score the rows of files with a model file"),
    "train": ("gbmrank.cli.train", "train a model on files, also larger than memory"),
    "warm": ("gbmrank.cli.warm", "compile kernels ahead, for container images"),
}
"""Module and purpose of each command; a new one is one line here."""

_DONE, _OURS, _INPUT, _INTERRUPTED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    >>> main(["--version"])
    gbmrank 0...
    0
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # others reserve a gigabyte
    if argv is None and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # ids may not fit the encoding
    program = " ".join(["gbmrank", *(name for name in arguments[:1] if name in COMMANDS)])
    try:
        code = _dispatch(program, arguments)
        sys.stdout.flush()
    except SystemExit as ended:  # --help
        return int(ended.code or 0)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:
        return _exit_code(program, error)
    return code


def _dispatch(program: str, arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_overview())
        return _DONE if arguments else _INPUT
    name, *options = arguments
    if name in ("-V", "--version"):
        from gbmrank import __version__

        print(f"gbmrank {__version__}")
        return _DONE
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise _UsageError(f"there is no command {name!r}; {hint}Commands: {', '.join(COMMANDS)}")
    path, about = COMMANDS[name]
    module = importlib.import_module(path)
    parser = _Parser(prog=program, description=f"{about[0].upper()}{about[1:]}.")
    module.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return int(module.run(parser.parse_args(options)))


def _exit_code(program: str, error: Exception) -> int:
    """Print what went wrong and return the exit code."""
    if isinstance(error, OSError):  # Python flushes at exit, and would fail there once more
        try:
            sys.stdout.flush()
        except OSError:  # the reader has gone, or the disk is full
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):  # the reader, head for example, has seen enough
        return _DONE
    code, message = _INPUT, _message(program, error)
    if message is None:
        if os.environ.get("GBMRANK_DEBUG"):
            raise error
        text = f"{type(error).__name__}: {error}"
        code, message = _OURS, f"a bug in gbmrank: {text}; set GBMRANK_DEBUG=1 for the traceback"
    print(f"{program}: error: {clean(message)}", file=sys.stderr)
    return code


def _message(program: str, error: Exception) -> str | None:
    """Return what to say of an error that is no bug."""
    if isinstance(error, _UsageError):
        return f"{error} (see {program} --help)"
    if isinstance(error, OSError) and not isinstance(error, GbmrankError):
        return system_message(error)
    if _lacks_memory(error):
        return "the memory of this process is not enough; raise its limit, or give fewer rows"
    return str(error) if isinstance(error, GbmrankError) else None


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether an error, or its cause, is for want of memory; boosters raise it as their own."""
    if error is None or isinstance(error, MemoryError):
        return error is not None
    return "std::bad_alloc" in str(error) or _lacks_memory(error.__cause__)


class _UsageError(Exception):
    """The command line does not make sense."""


@final
class _Parser(argparse.ArgumentParser):
    """A parser that raises instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        """Raise, so that ``main`` prints the message."""
        raise _UsageError(message)


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {about}\n" for name, (_, about) in COMMANDS.items()]
    return (
        "usage: gbmrank COMMAND ...\n\n"
        "Objectives and metrics for boosted rankers, with calibration proofs.\n\n"
        f"{''.join(lines)}\n"
        "gbmrank COMMAND --help describes a command; gbmrank --version prints the version."
    )
