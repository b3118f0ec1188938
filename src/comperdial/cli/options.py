"""The program, what its commands have in common, and the types of their options."""

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
    """A command whose options of lists take several values: ``--metrics bleu f1`` is ``--metrics bleu --metrics f1``.

    Without a value, as a rule of the workflow writes an empty list, such an option counts as not given.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer does not export its class
        """Repeat the option before each value; refuse several sheets, of which the last alone would be read."""
        if sum(argument.partition("=")[0] == "--sheet" for argument in args) > 1:
            raise typer.BadParameter("--sheet is given twice; expected once")
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
    """Return the program, or a group of commands of it, by name."""
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


app = group("Which automatic metric of dialogue quality agrees with people?")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"comperdial {__version__}")
        raise typer.Exit


@app.callback(help=app.info.help)
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Declare the options of the program; ``main`` reads ``--debug``."""


def command(name: str | None = None, *, of: typer.Typer = app) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function as a command: its parameters are the arguments, its docstring is the help."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        # Typer would evaluate the text of each annotation four times, which takes a third of the time of `--help`.
        function.__annotations__ = get_type_hints(function, include_extras=True)
        return of.command(name, cls=Command)(function)

    return add


# Types of arguments: a ValueError is bad usage. An output that cannot be written raises FileError before any work.


def output_folder(text: str) -> Path:
    """Parse the name of a folder to write to, new or there already."""
    path = Path(text)
    there = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not there.is_dir():
        raise FileError("is no folder", where=str(there), expected="a folder to write to, new or there already")
    if not os.access(there, os.W_OK | os.X_OK):
        raise FileError("nothing may be written there", where=str(there), expected="a folder to write to")
    return path


def output_stem(text: str) -> Path:
    """Parse the common name of several files to write."""
    output_folder(str(Path(text).parent))
    return Path(text)


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
        raise ValueError(str(error)) from None
    if not isinstance(value, dict):
        raise ValueError("expected a JSON object")
    return value


def part_of(text: str) -> tuple[int, int]:
    """Parse ``3-of-16``: which part, and how many there are."""
    number, _, count = text.partition("-of-")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ValueError(f"{text!r}; expected which part and how many there are, such as 3-of-16")
    return int(number), int(count)


def one_of(*names: str) -> Callable[[str], str]:
    """Return a parser of names, for options that take several (typer knows choices of single values alone)."""

    def parse(text: str) -> str:
        if text not in names:
            raise ValueError(str(UnknownNameError("choice", text, names)))
        return text

    return parse


def given(**options: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the options that a user has set: ``given(columns=columns, scale=scale, …)``."""
    return {name: value for name, value in options.items() if value is not None and value is not False and value != []}


def written(about: str, parser: Callable[[str], Path] = output_table) -> Any:  # noqa: ANN401 - what typer returns
    """Return an option that names what a command writes: a table, unless the parser says otherwise."""
    return typer.Option(parser=parser, metavar="FOLDER" if parser is output_folder else "FILE", help=about)


# Values that need not be given.
File = Path | None
Files = list[Path] | None
Names = list[str] | None

# Options of several commands.
CATALOGUE = Path("data/sources.yaml")
Catalogue = Annotated[Path, typer.Option(help="The catalogue of data sets.")]
Seed = Annotated[int, typer.Option(min=0, help="Of all that is drawn.")]

# How a file of ratings or votes is read.
Columns = Annotated[
    dict | None, typer.Option(parser=json_object, metavar="JSON", help="Our names of columns -> the file's.")
]
Scale = Annotated[
    tuple[float, float] | None,
    typer.Option(metavar="LOW HIGH", help="Of a file of ratings: the lowest and the highest possible."),
]
Labels = Annotated[
    dict | None,
    typer.Option(parser=json_object, metavar="JSON", help='Numbers of labels: {"Yes": 1, "No": 0}.'),
]
LowerIsBetter = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="A dimension of which low ratings are good; or several.")
]
Sheet = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Which sheet of an Excel workbook; default: all with the same columns."),
]
StripMarkup = Annotated[
    bool, typer.Option("--strip-markup", help="Remove HTML tags, entities and error marks from texts.")
]

# Which ratings scores are compared with.
Ratings = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE", help="Table `ratings`, or context_id (or dialogue_id), system_id, rating; or several."
    ),
]
Contexts = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Table `contexts`: which dialogue a context belongs to.")
]
Source = Annotated[str | None, typer.Option(metavar="NAME", help="Whose ratings; default: human, or the only one.")]
Levels = Annotated[
    list[str] | None,
    typer.Option("--level", parser=one_of(*LEVELS), metavar="|".join(LEVELS), help="One or more; default: all."),
]

# What an analysis is made of.
Subset = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=VALUE",
        help="Only units that have it, such as turn=1 or a column of the file; of several: any value of a column, all of "
        "the columns.",
    ),
]
Missing = Annotated[
    Literal["left-out", "worst"],
    typer.Option(help="Rated units without a score: left out of that metric, or given its lowest score."),
]
Resamples = Annotated[int, typer.Option(min=2, help="For intervals and tests.")]

# Which metrics, and how they run.
Params = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Names of metrics; default: params.yaml if it exists.")
]
Embeddings = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Keep vectors there; default: nowhere.")]
OutputTable = Annotated[
    Path | None,
    typer.Option(
        parser=output_table, metavar="FILE", help="A .jsonl, .csv or .parquet file; default: CSV on standard output."
    ),
]
