"""The command that audits a judge."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Exit, Option

from comperdial.cli.options import (
    Columns,
    Ratings,
    Scale,
    Sheet,
    command,
    given,
    json_object,
    output_file,
    output_table,
)
from comperdial.core.errors import ConfigError
from comperdial.core.files import write_table, write_text

_FORMS = (".txt", ".md", ".html", ".json", ".csv")
_REQUIRE = "alt-test, pearson=VALUE, spearman=VALUE, kappa=VALUE; with --baseline: no-shift, flips=VALUE. Exits with 1 if unmet."


@command()
def audit(
    input: Annotated[
        Path | None,
        Argument(metavar="[FILE]", help="Human and judge labels: ratings or votes.", show_default=False),
    ] = None,
    example: Annotated[
        bool, Option("--example", help="Use the bundled example: PandaLM's votes, with gpt-3.5-turbo as the judge.")
    ] = False,
    judge: Annotated[
        str | None, Option(metavar="NAME", help="The judge's column or source, if there are several.")
    ] = None,
    human: Annotated[str | None, Option(metavar="NAME", help="The column or source of the human ratings.")] = None,
    ratings: Ratings = None,
    target: Annotated[str | None, Option(metavar="NAME", help="The rated dimension, or the question of votes.")] = None,
    level: Annotated[
        Literal["turn", "dialogue"] | None, Option(help="Level of the ratings; default: turn, if there are any.")
    ] = None,
    raters: Annotated[
        Literal["crowd", "trained", "experts"],
        Option(help="Kind of raters: the judge may be worse than one by 0.1, 0.15 or 0.2."),
    ] = "crowd",
    clusters: Annotated[
        str, Option(metavar="NAME", help="What groups the items: dialogue (or context), system, none, or a column.")
    ] = "dialogue",
    judge_scale: Annotated[
        tuple[float, float] | None,
        Option(metavar="LOW HIGH", help="The judge's scale, if it differs from the human one."),
    ] = None,
    require: Annotated[list[str] | None, Option(metavar="WHAT", help=_REQUIRE)] = None,
    baseline: Annotated[
        Path | None, Option(metavar="FILE", help="The judge's earlier scores of the same items.")
    ] = None,
    half_width: Annotated[
        float | None, Option(help="Compute the labels needed for this half-width of the interval of the mean.")
    ] = None,
    next: Annotated[
        Path | None, Option(parser=output_table, metavar="FILE", help="Write the items to label next to this file.")
    ] = None,
    count: Annotated[int, Option(min=1, help="Number of items in --next.")] = 100,
    columns: Columns = None,
    scale: Scale = None,
    labels: Annotated[
        dict | None,
        Option(parser=json_object, metavar="JSON", help="Map from labels to numbers, or from values to votes."),
    ] = None,
    nominal: Annotated[bool, Option("--nominal", help="Labels are unordered classes: report kappa, no means.")] = False,
    sheet: Sheet = None,
    output: Annotated[
        list[Path] | None,
        Option(parser=output_file, metavar="FILE", help="A .html, .json, .csv, .md or .txt file; several allowed."),
    ] = None,
) -> None:
    """Check whether a judge can replace a human rater, and where it errs; estimate the human mean of everything it judged."""
    from comperdial import api
    from comperdial.report import render
    from comperdial.report.audit import document

    if example and input is None:
        input, judge = Path(str(files("comperdial") / "examples/pandalm.csv")), judge or "gpt-3.5-turbo"
    elif example or input is None:
        raise ConfigError("no input, or two inputs", expected="a FILE or --example")
    for path in output or ():
        if path.suffix not in _FORMS:
            raise ConfigError(f"{path}: unknown kind of file", where="--output", expected=", ".join(_FORMS))
    made = api.audit(
        input,
        raters=raters,
        clusters=clusters,
        nominal=nominal,
        **given(
            judge=judge, human=human, ratings=ratings, baseline=baseline, target=target, level=level, judge_scale=judge_scale,
            half_width=half_width, columns=columns, scale=scale, labels=labels, sheet=sheet,
        ),
    )  # fmt: skip
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
