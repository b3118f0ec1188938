"""Arguments that several commands share, and types of arguments."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from comperdial.core.errors import FileError
from comperdial.core.files import check_output, check_suffix, parse_json
from comperdial.core.names import LEVELS

if TYPE_CHECKING:
    from comperdial.evaluation.options import Options

Run = Callable[[argparse.Namespace], int | None]
# What `add_subparsers` returns, which argparse does not export, and what `add_argument` is.
Commands = Any
Add = Callable[..., Any]


def add_command(commands: Commands, name: str, run: str | Run, about: str) -> argparse.ArgumentParser:
    """Add a command that runs a function, or ``module:function`` of this package, which is imported only then."""
    command: argparse.ArgumentParser = commands.add_parser(name, help=about)
    resolved = (lambda options: resolve_name(f"comperdial.cli.{run}")(options)) if isinstance(run, str) else run
    command.set_defaults(run=resolved)
    return command


# Types of arguments. An output that cannot be written raises FileError before any work.


def named_path(text: str) -> Path:
    """Parse a path; to `pathlib`, "" would be the folder "."."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty; expected a file or folder")
    return Path(text)


def output_folder(text: str) -> Path:
    """Parse the name of a folder to write to, new or there already."""
    path = named_path(text)
    there = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not there.is_dir():
        raise FileError("is no folder", where=str(there), expected="a folder to write to, new or there already")
    if not os.access(there, os.W_OK | os.X_OK):
        raise FileError("nothing may be written there", where=str(there), expected="a folder to write to")
    return path


def output_stem(text: str) -> Path:
    """Parse the common name of several files to write."""
    path = named_path(text)
    output_folder(str(path.parent))
    return path


def output_file(text: str) -> Path:
    """Parse the name of a file to write."""
    path = output_stem(text)
    check_output(path)
    return path


def output_table(text: str) -> Path:
    """Parse the name of a table to write, whose suffix says its form."""
    path = output_file(text)
    check_suffix(path)
    return path


def json_object(text: str) -> dict[str, Any]:
    """Parse a JSON object."""
    try:
        value = parse_json(text, "the option's JSON", expected="a JSON object")
    except FileError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("expected a JSON object")
    return value


def part_of(text: str) -> tuple[int, int]:
    """Parse ``3-of-16``: which part, and how many there are."""
    number, _, count = text.partition("-of-")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r}; expected which part and how many there are, such as 3-of-16")
    return int(number), int(count)


def whole(least: int) -> Callable[[str], int]:
    """Return a type of arguments: whole numbers from ``least`` up."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number from {least} up")
        return int(text)

    return parse


def seconds(text: str) -> float:
    """Parse a number of seconds above 0."""
    with suppress(ValueError):
        if 0 < (value := float(text)) < math.inf:
            return value
    raise argparse.ArgumentTypeError(f"{text!r}; expected a number of seconds above 0")


# Arguments.

READ: dict[str, Any] = {"type": Path, "metavar": "FILE"}
WRITE: dict[str, Any] = {"type": output_table, "metavar": "FILE"}


def add_catalogue(command: argparse.ArgumentParser) -> None:
    """Add ``--catalogue``."""
    command.add_argument("--catalogue", type=Path, default=Path("data/sources.yaml"), help="default: data/sources.yaml")


def add_rated_file(command: argparse.ArgumentParser) -> None:
    """Add what says how a file of rated responses is read."""
    add = command.add_argument
    add("--columns", type=json_object, metavar="JSON", help="of a file of ratings: our names of columns -> the file's")
    add("--scale", type=float, nargs=2, metavar=("LOW", "HIGH"), help="of a file of ratings: lowest, highest possible")
    add("--labels", type=json_object, metavar="JSON", help='numbers of labels: {"Yes": 1, "No": 0}')
    add(
        "--lower-is-better",
        action="append",
        metavar="NAME",
        help="a dimension of which low ratings are good; again for more",
    )
    add("--sheet", metavar="NAME", help="which sheet of an Excel workbook; default: all with the same columns")
    add(
        "--strip-markup",
        action="store_true",
        default=None,
        help="remove HTML tags, entities and error marks from texts",
    )


def rated_file_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the reader's options that these set."""
    names = ("columns", "scale", "labels", "lower_is_better", "sheet", "strip_markup")
    return {name: value for name in names if (value := getattr(options, name)) is not None}


def add_rated(add: Add, **several: str) -> None:
    """Add which ratings scores are compared with; ``several`` says how an option takes more than one value."""
    what = "table `ratings`, or context_id (or dialogue_id), system_id, rating; again for more files"
    add("--ratings", type=Path, action="append", default=[], help=what)
    add("--contexts", type=Path, help="table `contexts`: which dialogue a context belongs to")
    add("--source", help="whose ratings; default: human (of `compare`: or the only one)")
    add("--level", choices=LEVELS, help="default: all", **several)
    add("--seed", type=int, default=2024, help="of all that is drawn (default: 2024)")


def add_analysis(add: Add) -> None:
    """Add the options of an analysis: which units, and what becomes of missing scores."""
    what = "only units that have it, such as turn=1 or a column of the file; again: any value of a column, all of the columns"
    add("--subset", action="append", default=[], metavar="COLUMN=VALUE", help=what)
    what = "rated units without a score: left out of that metric (default), or its lowest score"
    add("--missing", choices=("left-out", "worst"), default="left-out", help=what)


def analysis_of(options: argparse.Namespace) -> Options:
    """Return what the options of an analysis say."""
    from comperdial.evaluation.options import Options, parsed_subset

    return Options(parsed_subset(options.subset), options.missing)
