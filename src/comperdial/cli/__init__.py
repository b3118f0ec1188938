"""The command line: arguments in, library calls out."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from comperdial import __version__
from comperdial.cli.common import named_path
from comperdial.core.errors import ComperdialError, UnknownNameError, shown
from comperdial.core.files import printable
from comperdial.core.terminal import HarmlessFormatter

_MODULES = (
    "evaluate", "continuity", "steps", "dimensions", "judge", "challenge", "annotate", "preferences", "validate",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``comperdial`` and return its exit status.

    0; 1 for an error of the user's or the data's; 2 for usage; 130 after Ctrl-C.
    """
    debug, interrupts = False, list[int]()

    def note(number: int, frame: FrameType | None) -> None:
        # A library that is interrupted while it is imported may raise another error than KeyboardInterrupt.
        interrupts.append(number)
        signal.default_int_handler(number, frame)

    if arguments is None:
        arguments = sys.argv[1:]
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, note)
    try:
        parser = make_parser()
        for argument in arguments:
            # Tables and records hold names of files, and are UTF-8.
            if argument != printable(argument):
                parser.error(f"{printable(argument)}: not UTF-8; rename the file")
        options = parser.parse_args(arguments)
        debug = options.debug
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(HarmlessFormatter("%(levelname)s: %(message)s"))
        logging.basicConfig(level=logging.WARNING, handlers=[handler])
        logging.getLogger("comperdial").setLevel(logging.INFO)
        if not hasattr(options, "run"):
            parser.print_help()
            return 2
        return options.run(options) or 0
    except BrokenPipeError:
        # Without this, the interpreter complains at exit that it cannot write the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except BaseException as error:
        interrupted = bool(interrupts) or isinstance(error, KeyboardInterrupt)
        if debug or not (interrupted or isinstance(error, Exception)):
            raise
        # 130 is what a shell reports of a program that Ctrl-C ended.
        message, status = ("interrupted", 130) if interrupted else _explained(error)
        print(f"comperdial: {message}", file=sys.stderr)
        return status


def _explained(error: BaseException) -> tuple[str, int]:
    """Return the line and the exit status for an error."""
    if isinstance(error, ComperdialError):
        return f"error: {error}", error.status
    if isinstance(error, OSError):
        return f"error: {shown(str(error.filename or 'a file'))}: {error.strerror or error}", 1
    what = f"unexpected {type(error).__name__}: {shown(str(error))!r}"
    return f"error: {what}. `comperdial --debug …` shows where; please report it", 1


class _Parser(argparse.ArgumentParser):
    """A parser, also of each command, that suggests the nearest known name for a wrong one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - passed on
        super().__init__(*arguments, **options)
        self.register("type", Path, named_path)

    def parse_known_args(self, *arguments: Any) -> tuple[argparse.Namespace, list[str]]:  # type: ignore[override]  # noqa: ANN401
        options, unknown = super().parse_known_args(*arguments)
        if unknown:
            near = get_close_matches(unknown[0].partition("=")[0], self._option_string_actions, 1)
            hint = f". Did you mean {near[0]}?" if near else ""
            self.error(f"unrecognized arguments: {' '.join(map(printable, unknown))}{hint}")
        return options, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401
        if action.choices is not None and value not in action.choices:
            kind = "command" if isinstance(action, argparse._SubParsersAction) else "choice"
            raise argparse.ArgumentError(action, str(UnknownNameError(kind, str(value), map(str, action.choices))))

    def error(self, message: str) -> NoReturn:
        super().error(shown(message, at_most=3000))


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of ``comperdial`` with all its commands."""
    parser = _Parser(prog="comperdial", description="Which automatic metric of dialogue quality agrees with people?")
    parser.add_argument("--version", action="version", version=f"comperdial {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name in _MODULES:
        import_module(f"comperdial.cli.{name}").add_commands(commands)
    return parser
