"""The command that compares metrics on a file of rated responses."""

from __future__ import annotations

import sys
from inspect import signature
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from comperdial.cli import options as o
from comperdial.core.errors import ConfigError
from comperdial.core.files import write_text
from comperdial.stats import COEFFICIENTS, OF_SYSTEMS

_FORMS = {".txt": "text", ".md": "markdown", ".tex": "latex", ".csv": "csv"}
_METRICS = (
    "Metrics (see `comperdial metrics`), with options as in bleu,text=raw, or columns of the input. Default, "
    "without --scores: all main metrics that run here within a minute."
)
_AGAINST = "Compare only this metric with each other one, which requires fewer tests."
_COEFFICIENTS = (*COEFFICIENTS, *OF_SYSTEMS)
_COEFFICIENT = (
    f"One or more of {', '.join(_COEFFICIENTS)}, the last five over pairs of systems; default: spearman pearson."
)
_SYSTEMS = "fixed: systems are not a sample, intervals and tests are over contexts; always for two or three systems."
_FORMAT = "Default: by the suffix of --output, else text."


@o.command()
def compare(
    input: Annotated[
        Path | None, Argument(help="A file with `response`, `rating`, …, or a folder of tables.", show_default=False)
    ] = None,
    metrics: Annotated[o.Names, o.option("METRIC[:OUTPUT]", _METRICS)] = None,
    against: Annotated[o.Name, o.option("METRIC[:OUTPUT]", _AGAINST)] = None,
    params: o.Params = None,
    scores: Annotated[o.Files, o.option("FILE", "Scores from any program: context_id, system_id, value.")] = None,
    columns: o.Columns = None,
    scale: o.Scale = None,
    labels: o.Labels = None,
    lower_is_better: o.LowerIsBetter = None,
    sheet: o.Sheet = None,
    strip_markup: o.StripMarkup = False,
    ratings: o.Ratings = None,
    contexts: o.Contexts = None,
    source: o.Source = None,
    level: o.Levels = None,
    seed: o.Seed = 2024,
    target: Annotated[o.Names, o.option("DIMENSION", "Rated dimensions; default: all.")] = None,
    coefficient: Annotated[o.Names, o.one_or_more(_COEFFICIENTS, _COEFFICIENT, "NAME")] = None,
    subset: o.Subset = None,
    missing: o.Missing = "left-out",
    correction: Annotated[
        Literal["holm", "fdr", "none"], Option(help="Correction of the p-values behind ranks.")
    ] = "holm",
    systems: Annotated[Literal["sampled", "fixed"], Option(help=_SYSTEMS)] = "sampled",
    resamples: o.Resamples = 1000,
    embeddings: o.Embeddings = None,
    format: Annotated[
        Literal["text", "markdown", "latex", "csv"] | None, Option(help=_FORMAT, show_default=False)
    ] = None,
    output: Annotated[
        o.File, o.written("A .txt, .md, .tex or .csv file; default: standard output.", o.output_file)
    ] = None,
) -> None:
    """Find the metric or judge that agrees best with the ratings of a file."""
    options = locals()
    from comperdial import api

    if not format and output and output.suffix not in _FORMS:
        expected = f"{', '.join(_FORMS)}, or --format"
        raise ConfigError(f"{output}: unknown kind of file", where="--output", expected=expected)
    if not input and not scores:
        raise ConfigError("no metrics", expected="a file or folder of responses, --scores or both")
    reading = o.given(options, o.READING)
    if reading and (ratings or not input):
        raise ConfigError(
            "--columns, --scale and similar options apply to a file with its own ratings",
            expected="none of them with ratings from a separate file",
        )
    data = api.read(input, **reading) if input and not ratings else input
    result = api.compare(data, **o.given(options, signature(api.compare).parameters))
    content = result.rendered(format or (_FORMS[output.suffix] if output else "text"))
    if output:
        write_text(output, content)
    else:
        sys.stdout.write(content)
