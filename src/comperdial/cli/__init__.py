"""The command line: arguments in, library calls out."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from comperdial import __version__
from comperdial.cli import (
    annotate,
    challenge,
    compare,
    data,
    dimensions,
    evaluate,
    judge,
    models,
    perturb,
    prompts,
    recorded,
    render,
    score_all,
    shards,
    validate,
    why,
)
from comperdial.errors import ComperdialError, UnknownNameError, shown
from comperdial.files import printable

_GROUPS = (
    compare, evaluate, score_all, shards, dimensions, judge, prompts, recorded, data, challenge, perturb, models,
    annotate, render, validate, why,
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``comperdial`` and return its exit status: 0, 1 for an error of the user's or the data's, 2 for usage."""
    parser = make_parser()
    arguments = sys.argv[1:] if arguments is None else arguments
    for argument in arguments:
        # Names of files stand in tables and records, which are UTF-8.
        if argument != printable(argument):
            parser.error(f"{printable(argument)}: not UTF-8; rename the file")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s", stream=sys.stderr)
    logging.getLogger("comperdial").setLevel(logging.INFO)
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    try:
        status: int | None = options.run(options)
    except ComperdialError as error:
        if options.debug:
            raise
        print(f"comperdial: error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of a pipe has seen enough; keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if options.debug:
            raise
        where = shown(str(error.filename or "a file"))
        print(f"comperdial: error: {where}: {error.strerror or error}", file=sys.stderr)
        return 1
    return status or 0


class _Parser(argparse.ArgumentParser):
    """A parser whose message about an unknown command or choice says which known one was perhaps meant."""

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
    for group in _GROUPS:
        group.add_commands(commands)
    return parser
