"""The program, the base class of its commands, and shared option types."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer
import typer.core
from typer import Option

from comperdial import __version__
from comperdial.core.errors import FileError, UnknownNameError
from comperdial.core.files import TABLE_SUFFIXES, check_output, check_suffix, parse_json
from comperdial.core.names import LEVELS

if TYPE_CHECKING:
    import pandas as pd


class Command(typer.core.TyperCommand):
    """A command whose list options take several values: ``--metrics bleu f1`` is ``--metrics bleu --metrics f1``.

    Without a value, as when a workflow rule passes an empty list, such an option counts as not given.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer does not export its class
        """Repeat the option before each value."""
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
        bool, Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, Option("--debug", help="Show the traceback of an error.")] = False,
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


def output_of(*suffixes: str) -> Callable[[str], Path]:
    """Return a parser of output files with one of these suffixes."""

    def parse(text: str) -> Path:
        path = output_file(text)
        check_suffix(path, suffixes)
        return path

    return parse


output_table = output_of(*TABLE_SUFFIXES)


def json_object(text: str) -> dict[str, Any]:
    """Parse a JSON object."""
    try:
        value = parse_json(text, "the option's JSON", expected="a JSON object")
    except FileError as error:
        raise ValueError(str(error)) from None
    if not isinstance(value, dict):
        raise ValueError("expected a JSON object")
    return value


def option(metavar: str, about: str, **more: Any) -> Any:  # noqa: ANN401 - as typer does
    """Return an option with a placeholder for its value, and a help text."""
    return Option(metavar=metavar, help=about, **more)


def written(about: str, parser: Callable[[str], Path] = output_table) -> Any:  # noqa: ANN401
    """Return an option for an output path: a table, or what ``parser`` accepts."""
    return option("FOLDER" if parser is output_folder else "FILE", about, parser=parser)


def a_json(about: str) -> Any:  # noqa: ANN401
    """Return an option for a JSON object."""
    return option("JSON", about, parser=json_object)


def one_or_more(names: Sequence[str], about: str, metavar: str | None = None) -> Any:  # noqa: ANN401
    """Return a list option with choices, which typer supports only for single values."""

    def parse(text: str) -> str:
        if text not in names:
            raise ValueError(str(UnknownNameError("choice", text, names)))
        return text

    return option(metavar or "|".join(names), about, parser=parse)


def given(options: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the named options that the user set; ``options`` are a command's ``locals()``."""
    chosen = {name: options[name] for name in names if name in options}
    return {name: value for name, value in chosen.items() if value is not None and value is not False and value != []}


def write(output: Path | None, table: pd.DataFrame, name: str, *, shown: bool = False) -> None:
    """Write a table to the output that the user gave; without one, and if ``shown``, as CSV to standard output."""
    from comperdial import schema

    if output:
        schema.write(output, table, name)
    elif shown:
        table.to_csv(sys.stdout, index=False, lineterminator="\n")


# Optional values.
File = Path | None
Files = list[Path] | None
Name = str | None
Names = list[str] | None
Range = tuple[float, float] | None

# Shared options.
CATALOGUE = Path("data/sources.yaml")
Catalogue = Annotated[Path, Option(help="Catalogue of data sets.")]
Seed = Annotated[int, Option(min=0, help="Random seed.")]
Output = Annotated[Path, written("A .csv, .jsonl or .parquet file.")]

# How to read a file of ratings or votes.
READING = ("columns", "scale", "labels", "lower_is_better", "sheet", "strip_markup")
Columns = Annotated[dict | None, a_json("Map from our column names to the file's.")]
Scale = Annotated[Range, option("LOW HIGH", "Lowest and highest possible rating of a file.")]
Labels = Annotated[dict | None, a_json('Map from labels to numbers: {"Yes": 1, "No": 0}.')]
LowerIsBetter = Annotated[Names, option("NAME", "Dimensions in which low ratings are good.")]
Sheet = Annotated[Name, option("NAME", "Sheet of an Excel workbook; default: all with the same columns.")]
StripMarkup = Annotated[bool, Option("--strip-markup", help="Remove HTML tags, entities and error marks from texts.")]

# The ratings to compare scores with.
_RATINGS = "Table `ratings`, or context_id (or dialogue_id), system_id, rating; several allowed."
Ratings = Annotated[Files, option("FILE", _RATINGS)]
Contexts = Annotated[File, option("FILE", "Table `contexts`, for the dialogue of each context.")]
Source = Annotated[Name, option("NAME", "Source of the ratings; default: human, or the only one.")]
Levels = Annotated[Names, one_or_more(LEVELS, "Levels; default: all.")]

# Options of an analysis.
_SUBSET = "Only matching units, by turn=1 or a column of the file; several: any value of a column, all columns."
Subset = Annotated[Names, option("COLUMN=VALUE", _SUBSET)]
Missing = Annotated[
    Literal["left-out", "worst"],
    Option(help="Rated units without a score: left out for that metric, or given its lowest score."),
]
Resamples = Annotated[int, Option(min=2, help="Resamples for intervals and tests.")]

# The metrics, and how they run.
Params = Annotated[File, option("FILE", "Configuration of metrics; default: params.yaml if it exists.")]
Embeddings = Annotated[File, option("FOLDER", "Cache of embeddings; default: none.")]
OutputTable = Annotated[File, written("A .jsonl, .csv or .parquet file; default: CSV on standard output.")]
