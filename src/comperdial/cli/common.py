"""Arguments that several commands share."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any


def add_catalogue(command: argparse.ArgumentParser) -> None:
    """Add ``--catalogue``."""
    command.add_argument("--catalogue", type=Path, default=Path("data/sources.yaml"), help="default: data/sources.yaml")


def json_object(text: str) -> dict[str, Any]:
    """Parse an argument that holds a JSON object."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("expected a JSON object")
    return value


def seconds(text: str) -> float:
    """Parse an argument that is a number of seconds above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a number of seconds above 0")
    return value


def add_kind(
    kinds: Any,  # noqa: ANN401 - argparse does not export the type
    name: str,
    run: Callable[[argparse.Namespace], None],
    about: str,
    output: str = "the files' common name, without suffix",
    *,
    inputs: str | None = "inputs",
) -> argparse.ArgumentParser:
    """Add a kind of rendered output, which may take files (named ``inputs`` in the usage) and writes ``--output``."""
    kind: argparse.ArgumentParser = kinds.add_parser(name, help=about)
    if inputs:
        kind.add_argument("inputs", type=Path, nargs="+", metavar=inputs.upper())
    kind.add_argument("--output", type=Path, required=True, help=output)
    kind.set_defaults(run=run, what=name)
    return kind


def add_target(kind: argparse.ArgumentParser) -> None:
    """Add ``--target``."""
    kind.add_argument("--target", default="Overall", help="a rated dimension (default: Overall)")


def add_not_run(kind: argparse.ArgumentParser) -> None:
    """Add ``--not-run``."""
    kind.add_argument("--not-run", type=json_object, default={}, metavar="JSON", help="metrics that could not run: why")


def add_paper(kind: argparse.ArgumentParser) -> None:
    """Add ``--paper``."""
    kind.add_argument("--paper", type=Path, default=Path("data/paper"), help="folder of reported numbers")


def add_simulated(kind: argparse.ArgumentParser) -> None:
    """Add ``--simulated``."""
    kind.add_argument("--simulated", action="store_true", help="say in the caption that the data is SIMULATED")


def suffix(options: argparse.Namespace) -> str:
    """Return what a caption ends with."""
    from comperdial.report.document import SIMULATED

    return SIMULATED if options.simulated else ""
