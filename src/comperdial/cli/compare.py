"""The command that compares metrics on a file of rated responses."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from comperdial.cli.options import (
    Columns,
    Contexts,
    Embeddings,
    Labels,
    Levels,
    LowerIsBetter,
    Missing,
    Params,
    Ratings,
    Resamples,
    Scale,
    Seed,
    Sheet,
    Source,
    StripMarkup,
    Subset,
    command,
    given,
    one_of,
    output_file,
)
from comperdial.core.errors import ConfigError
from comperdial.core.files import write_text
from comperdial.stats import COEFFICIENTS, OF_SYSTEMS

_FORMS = {".txt": "text", ".md": "markdown", ".tex": "latex", ".csv": "csv"}
_METRICS = (
    "Metrics (see `comperdial metrics`), with options as in bleu,text=raw, or columns of the input. Default, "
    "without --scores: all main metrics that run here within a minute."
)
_AGAINST = "Compare only this metric with each other one, which requires fewer tests."


@command()
def compare(
    input: Annotated[
        Path | None, Argument(help="A file with `response`, `rating`, …, or a folder of tables.", show_default=False)
    ] = None,
    metrics: Annotated[list[str] | None, Option(metavar="METRIC[:OUTPUT]", help=_METRICS)] = None,
    against: Annotated[str | None, Option(metavar="METRIC[:OUTPUT]", help=_AGAINST)] = None,
    params: Params = None,
    scores: Annotated[
        list[Path] | None, Option(metavar="FILE", help="Scores from any program: context_id, system_id, value.")
    ] = None,
    columns: Columns = None,
    scale: Scale = None,
    labels: Labels = None,
    lower_is_better: LowerIsBetter = None,
    sheet: Sheet = None,
    strip_markup: StripMarkup = False,
    ratings: Ratings = None,
    contexts: Contexts = None,
    source: Source = None,
    level: Levels = None,
    seed: Seed = 2024,
    target: Annotated[list[str] | None, Option(metavar="DIMENSION", help="Rated dimensions; default: all.")] = None,
    coefficient: Annotated[
        list[str] | None,
        Option(
            parser=one_of(*COEFFICIENTS, *OF_SYSTEMS),
            metavar="NAME",
            help=f"One or more of {', '.join((*COEFFICIENTS, *OF_SYSTEMS))}, the last five over pairs of systems; default: "
            "spearman pearson.",
        ),
    ] = None,
    subset: Subset = None,
    missing: Missing = "left-out",
    correction: Annotated[
        Literal["holm", "fdr", "none"], Option(help="Correction of the p-values behind ranks.")
    ] = "holm",
    systems: Annotated[
        Literal["sampled", "fixed"],
        Option(
            help="fixed: systems are not a sample, intervals and tests are over contexts; always for two or three systems."
        ),
    ] = "sampled",
    resamples: Resamples = 1000,
    embeddings: Embeddings = None,
    format: Annotated[
        Literal["text", "markdown", "latex", "csv"] | None,
        Option(help="Default: by the suffix of --output, else text.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        Option(parser=output_file, metavar="FILE", help="A .txt, .md, .tex or .csv file; default: standard output."),
    ] = None,
) -> None:
    """Find the metric or judge that agrees best with the ratings of a file."""
    from comperdial import api

    if not format and output and output.suffix not in _FORMS:
        expected = f"{', '.join(_FORMS)}, or --format"
        raise ConfigError(f"{output}: unknown kind of file", where="--output", expected=expected)
    if not input and not scores:
        raise ConfigError("no metrics", expected="a file or folder of responses, --scores or both")
    reading = given(
        columns=columns,
        scale=scale,
        labels=labels,
        lower_is_better=lower_is_better,
        sheet=sheet,
        strip_markup=strip_markup,
    )
    if reading and (ratings or not input):
        raise ConfigError(
            "--columns, --scale and similar options apply to a file with its own ratings",
            expected="none of them with ratings from a separate file",
        )
    result = api.compare(
        api.read(input, **reading) if input and not ratings else input,
        **given(
            metrics=metrics, scores=scores, against=against, params=params, ratings=ratings, contexts=contexts, source=source,
            level=level, target=target, coefficient=coefficient, subset=subset, embeddings=embeddings,
        ),
        missing=missing,
        correction=correction,
        systems=systems,
        resamples=resamples,
        seed=seed,
    )  # fmt: skip
    content = result.rendered(format or (_FORMS[output.suffix] if output else "text"))
    if output:
        write_text(output, content)
    else:
        sys.stdout.write(content)
