"""Arguments that several commands share."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comperdial.evaluation.options import Options


def output_file(text: str) -> Path:
    """Parse an argument that names a file to write; one that cannot be written is refused before any work.

    Raises
    ------
    FileError
        When there is something that is no file, or its folder cannot be one.
    """
    from comperdial.core.files import check_output

    path = named_path(text)
    output_folder(str(path.parent))
    check_output(path)
    return path


def output_stem(text: str) -> Path:
    """Parse an argument that is the common name of several files to write, as :func:`output_file`."""
    path = named_path(text)
    output_folder(str(path.parent))
    return path


def output_table(text: str) -> Path:
    """Parse an argument that names a table to write: a file, by a suffix that says its form.

    Raises
    ------
    FileError
        When the suffix is unknown, or as :func:`output_file`.
    """
    from comperdial.core.files import check_suffix

    path = output_file(text)
    check_suffix(path)
    return path


def output_folder(text: str) -> Path:
    """Parse an argument that names a folder to write to, new or there already.

    Raises
    ------
    FileError
        When there is something else, or nothing may be written there.
    """
    from comperdial.core.errors import FileError

    path = named_path(text)
    there = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not there.is_dir():
        raise FileError("is no folder", where=str(there), expected="a folder to write to, new or there already")
    if not os.access(there, os.W_OK | os.X_OK):
        raise FileError("nothing may be written there", where=str(there), expected="a folder to write to")
    return path


def named_path(text: str) -> Path:
    """Parse an argument that is a path; to `pathlib`, "" is the folder "."."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty; expected a file or folder")
    return Path(text)


def add_catalogue(command: argparse.ArgumentParser) -> None:
    """Add ``--catalogue``."""
    command.add_argument("--catalogue", type=Path, default=Path("data/sources.yaml"), help="default: data/sources.yaml")


def json_object(text: str) -> dict[str, Any]:
    """Parse an argument that holds a JSON object."""
    from comperdial.core.errors import FileError
    from comperdial.core.files import parse_json

    try:
        value = parse_json(text, "the option's JSON", expected="a JSON object")
    except FileError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("expected a JSON object")
    return value


def add_rated_file(command: argparse.ArgumentParser) -> None:
    """Add ``--columns`` and ``--scale``, which say how a file of rated responses is read."""
    command.add_argument(
        "--columns", type=json_object, metavar="JSON", help="of a file of ratings: our names of columns -> the file's"
    )
    command.add_argument(
        "--scale",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="of a file of ratings: lowest and highest possible",
    )


def rated_file_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the reader's options that these two set."""
    given = {"columns": options.columns, "scale": options.scale}
    return {name: value for name, value in given.items() if value is not None}


def add_analysis(command: argparse.ArgumentParser) -> None:
    """Add the options of an analysis: which units, missing scores, outliers, and what ranks are made of."""
    command.add_argument(
        "--subset",
        action="append",
        default=[],
        metavar="COLUMN=VALUE",
        help="only units that have it, such as turn=1 or a column of the file; again: any value of a column, all of the columns",
    )
    command.add_argument(
        "--missing",
        choices=("left-out", "worst", "error"),
        default="left-out",
        help="rated units without a score: left out of that metric (default), its lowest score, or an error",
    )
    command.add_argument(
        "--outliers",
        choices=("none", "mad"),
        default="none",
        help="mad: at system level, leave out systems rated over 2.5 median absolute deviations off the median",
    )
    command.add_argument(
        "--correction",
        choices=("holm", "fdr", "none"),
        default="holm",
        help="how the p-values of all pairs are corrected, which makes the ranks (default: holm)",
    )


def analysis_of(options: argparse.Namespace) -> Options:
    """Return what the options of an analysis say."""
    from comperdial.evaluation.options import Options, parsed_subset

    return Options(parsed_subset(options.subset), options.missing, options.outliers)


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
    """Parse an argument that is a number of seconds above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a number of seconds above 0")
    return value
