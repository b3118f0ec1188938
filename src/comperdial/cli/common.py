"""Arguments that several commands share."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comperdial.sharding import Shard


def add_catalogue(command: argparse.ArgumentParser) -> None:
    """Add ``--catalogue``."""
    command.add_argument("--catalogue", type=Path, default=Path("data/sources.yaml"), help="default: data/sources.yaml")


def json_object(text: str) -> dict[str, Any]:
    """Parse an argument that holds a JSON object."""
    from comperdial.errors import FileError
    from comperdial.files import parse_json

    try:
        value = parse_json(text, "the option's JSON", expected="a JSON object")
    except FileError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("expected a JSON object")
    return value


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
    from comperdial.sharding import WHOLE, Shard

    return Shard.parse(options.shard) if options.shard is not None else WHOLE


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
    """Add a kind of rendered output, which may take files (named ``inputs`` in the usage) and writes ``--output``.

    With ``--made-from`` it leaves a record (:mod:`comperdial.provenance`) beside the table and each figure.
    """
    kind: argparse.ArgumentParser = kinds.add_parser(name, help=about)
    if inputs:
        kind.add_argument("inputs", type=Path, nargs="+", metavar=inputs.upper())
    kind.add_argument("--output", type=Path, required=True, help=output)
    kind.add_argument(
        "--made-from",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="all files that it is made of: writes a record of them beside the output",
    )
    kind.add_argument("--code", metavar="MODULES@HASH", help="the package's modules that make it, for the record")
    kind.set_defaults(run=partial(_run_and_record, run), what=name)
    return kind


# What an option says that is no parameter of the result.
_NO_PARAMETERS = {"code", "debug", "figure", "inputs", "made_from", "output", "run", "what"}


def _run_and_record(run: Callable[[argparse.Namespace], None], options: argparse.Namespace) -> None:
    """Make an output, and beside it the record of what it was made of."""
    if not options.made_from:
        run(options)
        return
    from comperdial import provenance
    from comperdial.closure import files_of_version
    from comperdial.report.figures import saving

    with saving() as figures:
        run(options)
    # A folder is no table: what lies in it are the figures that were saved.
    stems = {provenance.record_path(stem): stem for stem in figures}
    if not options.output.is_dir():
        stems[provenance.record_path(options.output)] = options.output
    parameters = {name: value for name, value in vars(options).items() if name not in _NO_PARAMETERS}
    code = files_of_version(options.code) if options.code else []
    made_from = [*options.made_from, *getattr(options, "inputs", []), *code]
    for stem in stems.values():
        provenance.write(stem, f"render {options.what}", parameters, made_from)


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


def add_titles(kind: argparse.ArgumentParser) -> None:
    """Add ``--titles``."""
    kind.add_argument("--titles", type=json_object, default={}, metavar="JSON", help="a title for each data set")


def suffix(options: argparse.Namespace) -> str:
    """Return what a caption ends with."""
    from comperdial.report.document import SIMULATED

    return SIMULATED if options.simulated else ""
