"""The command that audits a judge."""

from __future__ import annotations

import sys
from importlib.resources import files
from inspect import signature
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Exit, Option

from comperdial.cli import options as o
from comperdial.core.errors import ConfigError
from comperdial.core.files import write_table, write_text

_FORMS = (".txt", ".md", ".html", ".json", ".csv")
_EXAMPLE = "Use the bundled example: PandaLM's votes, with gpt-3.5-turbo as the judge."
_RATERS = "Kind of raters: the judge may be worse than one by 0.1, 0.15 or 0.2."
_CLUSTERS = "What groups the items: dialogue (or context), system, none, or a column."
_REQUIRE = "alt-test, pearson=VALUE, spearman=VALUE, kappa=VALUE; with --baseline: no-shift, flips=VALUE. Exits with 1 if unmet."
_HALF_WIDTH = "Compute the labels needed for this half-width of the interval of the mean."


@o.command()
def audit(
    input: Annotated[
        Path | None,
        Argument(metavar="[FILE]", help="Human and judge labels: ratings or votes.", show_default=False),
    ] = None,
    example: Annotated[bool, Option("--example", help=_EXAMPLE)] = False,
    judge: Annotated[o.Name, o.option("NAME", "The judge's column or source, if there are several.")] = None,
    human: Annotated[o.Name, o.option("NAME", "The column or source of the human ratings.")] = None,
    ratings: o.Ratings = None,
    target: Annotated[o.Name, o.option("NAME", "The rated dimension, or the question of votes.")] = None,
    level: Annotated[
        Literal["turn", "dialogue"] | None, Option(help="Level of the ratings; default: turn, if there are any.")
    ] = None,
    raters: Annotated[Literal["crowd", "trained", "experts"], Option(help=_RATERS)] = "crowd",
    clusters: Annotated[str, o.option("NAME", _CLUSTERS)] = "dialogue",
    judge_scale: Annotated[
        o.Range, o.option("LOW HIGH", "The judge's scale, if it differs from the human one.")
    ] = None,
    require: Annotated[o.Names, o.option("WHAT", _REQUIRE)] = None,
    baseline: Annotated[o.File, o.option("FILE", "The judge's earlier scores of the same items.")] = None,
    half_width: Annotated[float | None, Option(help=_HALF_WIDTH)] = None,
    next: Annotated[o.File, o.written("Write the items to label next to this file.")] = None,
    count: Annotated[int, Option(min=1, help="Number of items in --next.")] = 100,
    columns: o.Columns = None,
    scale: o.Scale = None,
    labels: Annotated[dict | None, o.a_json("Map from labels to numbers, or from values to votes.")] = None,
    nominal: Annotated[bool, Option("--nominal", help="Labels are unordered classes: report kappa, no means.")] = False,
    sheet: o.Sheet = None,
    output: Annotated[
        o.Files, o.written("A .html, .json, .csv, .md or .txt file; several allowed.", o.output_of(*_FORMS))
    ] = None,
) -> None:
    """Check whether a judge can replace a human rater, and where it errs; estimate the human mean of everything it judged."""
    options = locals()
    from comperdial import api
    from comperdial.report import render
    from comperdial.report.audit import document

    if example and input is None:
        input = Path(str(files("comperdial") / "examples/pandalm.csv"))
        options["judge"] = judge or "gpt-3.5-turbo"
    elif example or input is None:
        raise ConfigError("no input, or two inputs", expected="a FILE or --example")
    made = api.audit(input, **o.given(options, signature(api.audit).parameters))
    failed = made.failures(require or [])
    sys.stdout.write(str(made))
    for path in output or ():
        table = document(made)
        contents = {".html": render.page, ".md": render.markdown, ".csv": render.csv}
        own = {".txt": made.__str__, ".json": made.to_json}
        write_text(path, own[path.suffix]() if path.suffix in own else contents[path.suffix](table))
    if next:
        write_table(next, made.next_labels(count))
    for text in failed:
        print(f"comperdial: not met: {text}", file=sys.stderr)
    if failed:
        raise Exit(1)
