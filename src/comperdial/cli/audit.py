"""The command that says whether a judge can be trusted."""

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
_REQUIRE = "alt-test, pearson=VALUE, spearman=VALUE, kappa=VALUE; with --baseline no-shift, flips=VALUE. Status 1 if one fails."


@command()
def audit(
    input: Annotated[
        Path | None,
        Argument(metavar="[FILE]", help="Labels of people and of a judge: ratings or votes.", show_default=False),
    ] = None,
    example: Annotated[
        bool, Option("--example", help="The example that ships: PandaLM's votes, gpt-3.5-turbo as the judge.")
    ] = False,
    judge: Annotated[
        str | None, Option(metavar="NAME", help="A column of scores, or whose votes; if there are several.")
    ] = None,
    human: Annotated[
        str | None, Option(metavar="NAME", help="The column of people's ratings, or their source.")
    ] = None,
    ratings: Ratings = None,
    target: Annotated[str | None, Option(metavar="NAME", help="One rated dimension, or question of votes.")] = None,
    level: Annotated[
        Literal["turn", "dialogue"] | None, Option(help="Of ratings; default: turn, if there are any.")
    ] = None,
    raters: Annotated[
        Literal["crowd", "trained", "experts"],
        Option(help="Who the people are: a judge may be worse by 0.1, 0.15 or 0.2."),
    ] = "crowd",
    clusters: Annotated[
        str, Option(metavar="NAME", help="What belongs together: dialogue (or context), system, none, or a column.")
    ] = "dialogue",
    judge_scale: Annotated[
        tuple[float, float] | None, Option(metavar="LOW HIGH", help="The judge's, if it is not people's.")
    ] = None,
    require: Annotated[list[str] | None, Option(metavar="WHAT", help=_REQUIRE)] = None,
    baseline: Annotated[
        Path | None, Option(metavar="FILE", help="The judge's earlier scores of the same items.")
    ] = None,
    half_width: Annotated[
        float | None, Option(help="Of the wanted interval of the mean: how many labels it takes.")
    ] = None,
    next: Annotated[
        Path | None, Option(parser=output_table, metavar="FILE", help="Write there what to label next.")
    ] = None,
    count: Annotated[int, Option(min=1, help="How many items --next draws.")] = 100,
    columns: Columns = None,
    scale: Scale = None,
    labels: Annotated[
        dict | None, Option(parser=json_object, metavar="JSON", help="Numbers of labels, or what a vote is written as.")
    ] = None,
    nominal: Annotated[
        bool, Option("--nominal", help="Labels are names without an order, such as classes: kappa, no means.")
    ] = False,
    sheet: Sheet = None,
    output: Annotated[
        list[Path] | None,
        Option(parser=output_file, metavar="FILE", help="A .html, .json, .csv, .md or .txt file; or several."),
    ] = None,
) -> None:
    """Say whether a judge can be trusted, where it is wrong, and what people would say of all that it judged."""
    from comperdial import api
    from comperdial.report import render
    from comperdial.report.audit import document

    if example and input is None:
        input, judge = Path(str(files("comperdial") / "examples/pandalm.csv")), judge or "gpt-3.5-turbo"
    elif example or input is None:
        raise ConfigError("no labels, or several", expected="a FILE or --example")
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
