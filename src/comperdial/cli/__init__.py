"""The command line: arguments in, library calls out.

Each module has the commands of one subject. What a command needs is imported in its function, so that `--help` is fast.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

import typer

from comperdial.cli import doctor, judge, legacy, preferences, validate  # noqa: F401 - they add their commands
from comperdial.cli.options import app
from comperdial.core.errors import ComperdialError, shown
from comperdial.core.files import printable
from comperdial.core.terminal import HarmlessFormatter


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``comperdial`` and return its exit status.

    0; 1 for an error of the user's or the data's; 2 for usage; 130 after Ctrl-C.
    """
    interrupts: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        # A library that is interrupted while it is imported may raise another error than KeyboardInterrupt.
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


def _run(arguments: list[str]) -> int:
    for argument in arguments:
        # Tables and records hold names of files, and are UTF-8.
        if argument != printable(argument):
            print(f"comperdial: error: {printable(argument)}: not UTF-8; rename the file", file=sys.stderr)
            return 2
    command = typer.main.get_command(app)
    known = getattr(command, "commands", {})
    if arguments and arguments[0] not in (*known, "--help", "-h", "--version"):
        options = legacy.make_parser().parse_args(arguments)
        return options.run(options) or 0
    try:
        command.main(arguments, prog_name="comperdial")
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def _explained(error: BaseException) -> tuple[str, int]:
    """Return the line and the exit status for an error."""
    if isinstance(error, ComperdialError):
        return f"error: {error}", error.status
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"error: not installed: {error.name}; expected {doctor.how_to_install(error.name.partition('.')[0])}", 1
    if isinstance(error, OSError):
        return f"error: {shown(str(error.filename or 'a file'))}: {error.strerror or error}", 1
    what = f"unexpected {type(error).__name__}: {shown(str(error))!r}"
    return f"error: {what}. `comperdial --debug …` shows where; please report it", 1
