"""Arguments that several commands share."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.errors import NothingToShowError

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


def _run(run: Callable[[argparse.Namespace], None], options: argparse.Namespace) -> None:
    """Make an output; where the data lack what it shows, one that says so in its place."""
    try:
        run(options)
    except NothingToShowError as error:
        from comperdial.report import nothing

        title = getattr(options, "title", None) or ", ".join(getattr(options, "titles", {}).values())
        simulated = getattr(options, "simulated", False)
        if options.what.startswith("plot-"):
            nothing.write_figure(options.output, title, str(error), simulated=simulated)
        else:
            nothing.write_table(options.output, title, str(error), simulated=simulated)


# What an option says that is no parameter of the result.
_NO_PARAMETERS = {"code", "debug", "figure", "inputs", "made_from", "output", "run", "what"}


def _run_and_record(run: Callable[[argparse.Namespace], None], options: argparse.Namespace) -> None:
    """Make an output, and beside it the record of what it was made of."""
    if not options.made_from:
        _run(run, options)
        return
    from comperdial import provenance
    from comperdial.closure import files_of_version
    from comperdial.report.figures import saving

    with saving() as figures:
        _run(run, options)
    # A folder is no table: what lies in it are the figures that were saved.
    stems = {provenance.record_path(stem): stem for stem in (*figures, options.output)}
    parameters = {name: value for name, value in vars(options).items() if name not in _NO_PARAMETERS}
    code = files_of_version(options.code) if options.code else []
    made_from = [*options.made_from, *getattr(options, "inputs", []), *code]
    for stem in stems.values():
        provenance.write(stem, f"render {options.what}", parameters, made_from)


def add_target(kind: argparse.ArgumentParser) -> None:
    """Add ``--target`` and ``--main-target``, which :func:`read_target` reads."""
    kind.add_argument("--target", help="a rated dimension; default: what --main-target says")
    kind.add_argument(
        "--main-target",
        default="Overall",
        metavar="TARGET",
        help="the dimension shown where it was rated, else the first by name (default: Overall)",
    )


def read_target(options: argparse.Namespace, rated: Iterable[str]) -> str:
    """Return the rated dimension that an output is of."""
    from comperdial.schema.dimensions import main_dimension

    return str(options.target) if options.target is not None else main_dimension(options.main_target, rated)


def add_not_run(kind: argparse.ArgumentParser) -> None:
    """Add ``--not-run``."""
    kind.add_argument("--not-run", type=json_object, default={}, metavar="JSON", help="metrics that could not run: why")


def add_paper(kind: argparse.ArgumentParser) -> None:
    """Add ``--paper``."""
    kind.add_argument("--paper", type=Path, default=Path("data/paper"), help="folder of reported numbers")


def add_simulated(kind: argparse.ArgumentParser) -> None:
    """Add ``--simulated`` and ``--rated-by``: what captions say of ratings that are not people's."""
    kind.add_argument("--simulated", action="store_true", help="say in the caption that the data is SIMULATED")
    kind.add_argument("--rated-by", metavar="NAME", help="say in the caption who rated, if it was not people")


def add_titles(kind: argparse.ArgumentParser) -> None:
    """Add ``--titles``."""
    kind.add_argument("--titles", type=json_object, default={}, metavar="JSON", help="a title for each data set")


def suffix(options: argparse.Namespace) -> str:
    """Return what a caption ends with."""
    from comperdial.report.document import SIMULATED

    if options.rated_by:
        return f"The ratings are those of {options.rated_by}, not people's."
    return SIMULATED if options.simulated else ""
