"""The command line: arguments in, library calls out."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from comperdial import __version__
from comperdial.cli.common import named_path
from comperdial.core.errors import ComperdialError, UnknownNameError, shown
from comperdial.core.files import printable
from comperdial.core.terminal import HarmlessFormatter

# As a shell reports a program that Ctrl-C ended.
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``comperdial`` and return its exit status.

    0; 1 for an error of the user's or the data's; 2 for usage; 130 after Ctrl-C.
    """
    debug = False
    with _noting_interrupts() as interrupts:
        try:
            parser = make_parser()
            arguments = sys.argv[1:] if arguments is None else arguments
            for argument in arguments:
                # Names of files stand in tables and records, which are UTF-8.
                if argument != printable(argument):
                    parser.error(f"{printable(argument)}: not UTF-8; rename the file")
            options, unknown = parser.parse_known_args(arguments)
            if unknown:
                _refuse(unknown, parser, arguments)
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
            # The reader of a pipe has seen enough; keep the interpreter from complaining at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except BaseException as error:
            if interrupts or isinstance(error, KeyboardInterrupt):
                message, status = "interrupted", INTERRUPTED
            elif isinstance(error, ComperdialError):
                message, status = f"error: {error}", error.status
            elif isinstance(error, OSError):
                message, status = f"error: {shown(str(error.filename or 'a file'))}: {error.strerror or error}", 1
            elif isinstance(error, Exception):
                # No check foresaw it. Where it happened is for whoever mends that.
                what = f"unexpected {type(error).__name__}: {shown(str(error))!r}"
                message, status = f"error: {what}. `comperdial --debug …` shows where; please report it", 1
            else:
                raise
            if debug:
                raise
            print(f"comperdial: {message}", file=sys.stderr)
            return status


def _refuse(unknown: Sequence[str], parser: argparse.ArgumentParser, arguments: Sequence[str]) -> NoReturn:
    """End with the usage of the command that was given arguments it does not know, and what may be meant by the first."""
    command = parser
    for argument in arguments:
        nested = [action for action in command._actions if isinstance(action, argparse._SubParsersAction)]
        if nested and argument in nested[0].choices:
            command = nested[0].choices[argument]
    known = [name for action in command._actions for name in action.option_strings]
    meant = get_close_matches(unknown[0].partition("=")[0], known, 1)
    hint = f". Did you mean {meant[0]}?" if meant else ""
    command.error(f"unrecognized arguments: {' '.join(map(printable, unknown))}{hint}")


@contextmanager
def _noting_interrupts() -> Iterator[list[int]]:
    """Give a list of the Ctrl-C so far: a library that is interrupted while it is imported raises what it likes."""
    interrupts: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        signal.default_int_handler(number, frame)

    before = signal.getsignal(signal.SIGINT)
    # A program that handles Ctrl-C itself, or calls this in a thread, keeps its ways.
    ours = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield interrupts
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)


class _Parser(argparse.ArgumentParser):
    """A parser, and that of each command below it, that says which known name a wrong one was perhaps meant to be."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - passed on
        super().__init__(*arguments, **options)
        self.register("type", Path, named_path)

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401
        if action.choices is not None and value not in action.choices:
            kind = "command" if isinstance(action, argparse._SubParsersAction) else "choice"
            raise argparse.ArgumentError(action, str(UnknownNameError(kind, str(value), map(str, action.choices))))

    def error(self, message: str) -> NoReturn:
        super().error(shown(message, at_most=3000))


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of ``comperdial`` with all its commands."""
    from comperdial.cli import (
        annotate,
        challenge,
        compare,
        continuity,
        data,
        dimensions,
        evaluate,
        fit,
        judge,
        leaderboard,
        make,
        models,
        perturb,
        preferences,
        prompts,
        rank,
        recorded,
        score_pairs,
        steps,
        train,
        validate,
    )

    groups = (
        compare, continuity, make, steps, evaluate, dimensions, judge, prompts, rank, recorded, data, challenge, perturb,
        models, fit, annotate, preferences, score_pairs, leaderboard, train, validate,
    )  # fmt: skip
    parser = _Parser(prog="comperdial", description="Which automatic metric of dialogue quality agrees with people?")
    parser.add_argument("--version", action="version", version=f"comperdial {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for group in groups:
        group.add_commands(commands)
    return parser
