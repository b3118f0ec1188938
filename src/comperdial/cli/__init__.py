"""The command line: parses arguments and calls the library.

Each module defines commands for one subject. Commands import what they need inside their functions, so that `--help` is fast.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from types import FrameType
from typing import Any

import typer

from comperdial.cli.doctor import how_to_install
from comperdial.cli.options import app
from comperdial.core.errors import ComperdialError, shown
from comperdial.core.files import printable
from comperdial.core.terminal import HarmlessFormatter

# Commands are registered in the order of the help.
for _module in (
    "doctor", "audit", "compare", "score", "validate", "preferences", "correlate", "judge", "data", "models", "perturb",
    "studies", "challenge", "continuity",
):  # fmt: skip
    import_module(f"comperdial.cli.{_module}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``comperdial`` and return its exit status.

    0; 1 for errors in the user's input or data; 2 for usage errors; 130 after Ctrl-C.
    """
    interrupts: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        # A library interrupted during its import may raise something other than KeyboardInterrupt.
        interrupts.append(number)
        signal.default_int_handler(number, frame)

    if arguments is None:
        arguments = sys.argv[1:]
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, note)
    debug = "--debug" in arguments
    try:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(HarmlessFormatter("%(levelname)s: %(message)s"))
        logging.basicConfig(level=logging.WARNING, handlers=[handler])
        logging.getLogger("comperdial").setLevel(logging.INFO)
        return _run([argument for argument in arguments if argument != "--debug"])
    except BrokenPipeError:
        # Otherwise the interpreter complains at exit that it cannot flush its output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except BaseException as error:
        interrupted = bool(interrupts) or isinstance(error, KeyboardInterrupt)
        if debug or not (interrupted or isinstance(error, Exception)):
            raise
        # 130 is the shell's status of a program ended by Ctrl-C.
        message, status = ("interrupted", 130) if interrupted else _explained(error)
        print(f"comperdial: {message}", file=sys.stderr)
        return status


@cache
def _program() -> Any:  # noqa: ANN401 - typer takes most of a second to build it
    return typer.main.get_command(app)


def _run(arguments: list[str]) -> int:
    for argument in arguments:
        # Tables and records contain file names, and are UTF-8.
        if argument != printable(argument):
            print(f"comperdial: error: {printable(argument)}: not UTF-8; rename the file", file=sys.stderr)
            return 2
        # Typically an unset shell variable; as a path it would mean the current folder.
        if re.fullmatch("(--[a-z-]+=)?", argument):
            print(f"comperdial: error: {argument.strip('=') or 'an argument'}: is empty", file=sys.stderr)
            return 2
    try:
        # Not `main`, which ends the interpreter.
        program = _program()
        with program.make_context("comperdial", arguments) as context:
            return program.invoke(context) or 0
    except typer.Exit as end:
        return end.exit_code
    except typer.TyperException as error:
        lines = error.message.removeprefix("Value error, ").split("\n")
        error.message = "\n".join(shown(line, at_most=3000) for line in lines)
        error.show()  # type: ignore[attr-defined]  # of its usage errors
        return error.exit_code


def _explained(error: BaseException) -> tuple[str, int]:
    """Return the message and the exit status for an error."""
    if isinstance(error, ComperdialError):
        return f"error: {error}", error.status
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"error: not installed: {error.name}; expected {how_to_install(error.name.partition('.')[0])}", 1
    if isinstance(error, OSError):
        return f"error: {shown(str(error.filename or 'a file'))}: {error.strerror or error}", 1
    what = f"unexpected {type(error).__name__}: {shown(str(error))!r}"
    return f"error: {what}. `comperdial --debug …` shows where; please report it", 1
