"""The command ``gbmrank``: exit code 0 is done, 2 a mistake in the input, 1 one of ours.

``gbmrank compare`` returns 3 when it is done and some of its runs failed.

One module per command, imported when that command is called. Each has
``add_arguments(parser)`` and ``run(given)``, which prints and returns an exit code.
"""

import argparse
import difflib
import importlib
import io
import os
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NoReturn, final

from gbmrank.cli.screen import clean, told
from gbmrank.errors import GbmrankError

__all__ = ["COMMANDS", "main"]

COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "advise": ("gbmrank.cli.advise", "say which objectives are right for a metric, and why"),
        "check": ("gbmrank.cli.check", "search for a distribution on which a loss misleads"),
        "compare": ("gbmrank.cli.compare", "train objectives on data and compare them by query"),
        "evaluate": ("gbmrank.cli.evaluate", "measure the scores of a model against labels"),
        "info": ("gbmrank.cli.info", "show all about an objective, a loss or a metric"),
        "list": ("gbmrank.cli.listing", "show objectives, metrics, losses and utilities"),
        "plugin": ("gbmrank.cli.plugin", "write a new plugin: gbmrank plugin new NAME"),
        "plugins": ("gbmrank.cli.plugins", "show plugins, and what is wrong with broken ones"),
    }
)
"""Module and purpose of each command; a new one is one line here."""

_DONE, _OURS, _INPUT, _INTERRUPTED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the program's name; those of this process by default.

    Examples
    --------
    >>> main(["--version"])
    gbmrank 0...
    0
    """
    if argv is None:
        _prepare_streams()
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _dispatched(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        return _unheard()
    except OSError as error:  # the output leads to a full disk
        code = _complain("gbmrank", _message(error))
        _unheard()
    return code


def _prepare_streams() -> None:
    """Have two streams that take any text; a closed one (``>&-``) takes it nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # ids that its encoding lacks


def _unheard() -> int:
    """Go quietly: the reader, head for example, has seen enough, or a stream takes no more."""
    from gbmrank.experiments.progress import mute

    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            mute(stream)
    return _DONE


def _dispatched(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_overview())
        return _DONE if arguments else _INPUT
    if arguments[0] == "--version":
        from gbmrank import __version__

        print(f"gbmrank {__version__}")
        return _DONE
    name = arguments[0]
    if name not in COMMANDS:
        return _complain("gbmrank", _unknown(name))
    return _run(name, arguments[1:])


def _run(name: str, arguments: Sequence[str]) -> int:
    path, about = COMMANDS[name]
    program = f"gbmrank {name}"
    try:
        module = importlib.import_module(path)
        parser = _Parser(prog=program, description=f"{about[0].upper()}{about[1:]}.")
        module.add_arguments(parser)
        code = int(module.run(parser.parse_args(arguments)))
        sys.stdout.flush()
    except BaseException as error:
        return _answer(program, error)
    return code


def _answer(program: str, error: BaseException) -> int:
    """Say what went wrong and return the exit code."""
    if isinstance(error, SystemExit):  # --help
        return int(error.code or 0)
    if isinstance(error, KeyboardInterrupt):
        return _INTERRUPTED
    if isinstance(error, BrokenPipeError):
        raise error
    if isinstance(error, _UsageError):
        return _complain(program, f"{error} (see {program} --help)")
    if isinstance(error, GbmrankError | OSError):
        return _complain(program, _message(error))
    if os.environ.get("GBMRANK_DEBUG"):
        raise error
    text = f"{type(error).__name__}: {error}"
    _complain(program, f"a mistake of ours, {text}; set GBMRANK_DEBUG=1 to see where")
    return _OURS


def _message(error: GbmrankError | OSError) -> str:
    return str(error) if isinstance(error, GbmrankError) else told(error)


class _UsageError(Exception):
    """The command line does not make sense."""


@final
class _Parser(argparse.ArgumentParser):
    """A parser that raises instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        """Raise, so that the caller prints it in our form."""
        raise _UsageError(message)


def _complain(program: str, message: str) -> int:
    try:
        print(f"{program}: error: {clean(message)}", file=sys.stderr, flush=True)
    except OSError:
        _unheard()
    return _INPUT


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"no command is called {name!r}; {hint}There are: {', '.join(COMMANDS)}"


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {about}" for name, (_, about) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: gbmrank COMMAND ...",
            "",
            "Objectives and metrics for boosted rankers, with the theory attached.",
            "",
            *lines,
            "",
            "gbmrank COMMAND --help says more; gbmrank --version tells which one this is.",
        ]
    )
