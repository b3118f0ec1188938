"""The program, the base class of its commands, and shared option types."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer
import typer.core

from comperdial import __version__
from comperdial.core.errors import FileError, UnknownNameError
from comperdial.core.files import check_output, check_suffix, parse_json
from comperdial.core.names import LEVELS


class Command(typer.core.TyperCommand):
    """A command whose list options take several values: ``--metrics bleu f1`` is ``--metrics bleu --metrics f1``.

    Without a value, as when a workflow rule passes an empty list, such an option counts as not given.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer does not export its class
        """Repeat the option before each value; reject a second --sheet, which would replace the first."""
        if sum(argument.partition("=")[0] == "--sheet" for argument in args) > 1:
            raise typer.BadParameter("--sheet was given twice; expected once")
        lists = {name for option in self.params if getattr(option, "multiple", False) for name in option.opts}
        repeated: list[str] = []
        current = ""
        for place, argument in enumerate(args):
            if argument == "--":
                repeated += args[place:]
                break
            if argument.startswith("--"):
                current = argument if argument in lists else ""
                repeated += [] if current else [argument]
            else:
                repeated += [current, argument] if current else [argument]
        return super().parse_args(ctx, repeated)


def group(about: str, name: str | None = None) -> typer.Typer:
    """Return the program, or a named group of its commands."""
    made = typer.Typer(
        help=about,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    if name:
        app.add_typer(made, name=name)
    return made


app = group("Evaluate automatic dialogue metrics and LLM judges against human ratings.")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"comperdial {__version__}")
        raise typer.Exit


@app.callback(help=app.info.help)
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Declare the options of the program; ``main`` reads ``--debug``."""


def command(name: str | None = None, *, of: typer.Typer = app) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a command: its parameters are the arguments, its docstring is the help."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        # Typer would evaluate each annotation four times, a third of the time of `--help`.
        function.__annotations__ = get_type_hints(function, include_extras=True)
        return of.command(name, cls=Command)(function)

    return add


# Argument types: a ValueError is a usage error. Unwritable outputs raise FileError before any work.


def output_folder(text: str) -> Path:
    """Parse the path of an output folder, new or existing."""
    path = Path(text)
    there = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not there.is_dir():
        raise FileError("is not a folder", where=str(there), expected="a new or existing output folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise FileError("is not writable", where=str(there), expected="a writable folder")
    return path


def output_stem(text: str) -> Path:
    """Parse the common path of several output files."""
    output_folder(str(Path(text).parent))
    return Path(text)


def output_file(text: str) -> Path:
    """Parse the path of an output file."""
    path = output_stem(text)
    check_output(path)
    return path


def output_table(text: str) -> Path:
    """Parse the path of an output table; its suffix is the format."""
    path = output_file(text)
    check_suffix(path)
    return path


def json_object(text: str) -> dict[str, Any]:
    """Parse a JSON object."""
    try:
        value = parse_json(text, "the option's JSON", expected="a JSON object")
    except FileError as error:
        raise ValueError(str(error)) from None
    if not isinstance(value, dict):
        raise ValueError("expected a JSON object")
    return value


def part_of(text: str) -> tuple[int, int]:
    """Parse ``3-of-16``: the number of a part, and the number of parts."""
    number, _, count = text.partition("-of-")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ValueError(f"{text!r}; expected a part and the number of parts, such as 3-of-16")
    return int(number), int(count)


def one_of(*names: str) -> Callable[[str], str]:
    """Return a parser of names for list options (typer supports choices only for single values)."""

    def parse(text: str) -> str:
        if text not in names:
            raise ValueError(str(UnknownNameError("choice", text, names)))
        return text

    return parse


def given(**options: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the options that the user set: ``given(columns=columns, scale=scale, …)``."""
    return {name: value for name, value in options.items() if value is not None and value is not False and value != []}


def written(about: str, parser: Callable[[str], Path] = output_table) -> Any:  # noqa: ANN401 - what typer returns
    """Return an option for an output path: a table, or what ``parser`` accepts."""
    return typer.Option(parser=parser, metavar="FOLDER" if parser is output_folder else "FILE", help=about)


# Optional values.
File = Path | None
Files = list[Path] | None
Names = list[str] | None

# Shared options.
CATALOGUE = Path("data/sources.yaml")
Catalogue = Annotated[Path, typer.Option(help="Catalogue of data sets.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]

# How to read a file of ratings or votes.
Columns = Annotated[
    dict | None, typer.Option(parser=json_object, metavar="JSON", help="Map from our column names to the file's.")
]
Scale = Annotated[
    tuple[float, float] | None,
    typer.Option(metavar="LOW HIGH", help="Lowest and highest possible rating of a file."),
]
Labels = Annotated[
    dict | None,
    typer.Option(parser=json_object, metavar="JSON", help='Map from labels to numbers: {"Yes": 1, "No": 0}.'),
]
LowerIsBetter = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Dimensions in which low ratings are good.")
]
Sheet = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Sheet of an Excel workbook; default: all with the same columns."),
]
StripMarkup = Annotated[
    bool, typer.Option("--strip-markup", help="Remove HTML tags, entities and error marks from texts.")
]

# The ratings to compare scores with.
Ratings = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE", help="Table `ratings`, or context_id (or dialogue_id), system_id, rating; several allowed."
    ),
]
Contexts = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Table `contexts`, for the dialogue of each context.")
]
Source = Annotated[
    str | None, typer.Option(metavar="NAME", help="Source of the ratings; default: human, or the only one.")
]
Levels = Annotated[
    list[str] | None,
    typer.Option("--level", parser=one_of(*LEVELS), metavar="|".join(LEVELS), help="Levels; default: all."),
]

# Options of an analysis.
Subset = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=VALUE",
        help="Only matching units, by turn=1 or a column of the file; several: any value of a column, all columns.",
    ),
]
Missing = Annotated[
    Literal["left-out", "worst"],
    typer.Option(help="Rated units without a score: left out for that metric, or given its lowest score."),
]
Resamples = Annotated[int, typer.Option(min=2, help="Resamples for intervals and tests.")]

# The metrics, and how they run.
Params = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Configuration of metrics; default: params.yaml if it exists.")
]
Embeddings = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Cache of embeddings; default: none.")]
OutputTable = Annotated[
    Path | None,
    typer.Option(
        parser=output_table, metavar="FILE", help="A .jsonl, .csv or .parquet file; default: CSV on standard output."
    ),
]
