"""Arguments that several commands share."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comperdial.core.sharding import Shard


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
    """Return the reader's options that the two say."""
    said = {"columns": options.columns, "scale": options.scale}
    return {name: value for name, value in said.items() if value is not None}


def add_shard(command: argparse.ArgumentParser) -> None:
    """Add ``--shard``."""
    command.add_argument("--shard", metavar="I/N", help="only the I-th of N parts, such as 3/16 (docs/metrics.md)")


def shard_of(options: argparse.Namespace) -> Shard:
    """Return the shard that ``--shard`` names; without it, the whole.

    Raises
    ------
    ConfigError
        When it names none.
    """
    from comperdial.core.sharding import WHOLE, Shard

    return Shard.parse(options.shard) if options.shard is not None else WHOLE


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
