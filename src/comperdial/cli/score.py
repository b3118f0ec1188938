"""The commands that list metrics and score responses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, BadParameter, Option

from comperdial.cli import options as o
from comperdial.core.errors import ConfigError

if TYPE_CHECKING:
    from comperdial.metrics import Metric


@o.command()
def metrics(params: o.Params = None) -> None:
    """List the metrics, and whether they can run here."""
    from comperdial.config.studies import params_file
    from comperdial.metrics import create, kinds
    from comperdial.metrics.named import metric_named, read_entries

    def show(metric: Metric, text: str) -> None:
        print(text)
        if reason := metric.unavailable():
            print(f"    cannot run here: {reason}")

    entries = read_entries(params)
    for kind in kinds():
        metric = create(kind)
        show(metric, f"{kind}: {', '.join(metric.outputs)}\n    {metric.signature()}")
    if entries:
        print(f"\nnames of {params_file(params)}:")
    for name in entries:
        metric = metric_named(name, entries)
        show(metric, f"{name}: {metric.signature()}")


_PART = "Score only this part, such as 3-of-16 (docs/metrics.md)."


def _part(text: str) -> tuple[int, int]:
    number, _, count = text.partition("-of-")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ValueError(f"{text!r}; expected a part and the number of parts, such as 3-of-16")
    return int(number), int(count)


@o.command()
def score(
    input: Annotated[Path, Argument(help="A file with `response`, `references`, …, or a folder of tables.")],
    metric: Annotated[o.Name, o.option("NAME", "A metric from `comperdial metrics`.", show_default=False)] = None,
    metrics: Annotated[o.Names, o.option("NAME", "Several metrics, with options as in bleu,text=raw.")] = None,
    params: o.Params = None,
    option: Annotated[o.Names, o.option("NAME=VALUE", "Options of --metric.")] = None,
    name: Annotated[o.Name, Option(help="Name of --metric in the table; default: NAME.", show_default=False)] = None,
    part: Annotated[tuple | None, o.option("I-of-N", _PART, parser=_part)] = None,
    parts: Annotated[o.Names, o.option("NAME=FILE", "Scores of the metrics that --metric combines.")] = None,
    embeddings: o.Embeddings = None,
    output: o.OutputTable = None,
) -> None:
    """Score a file of responses or a folder of tables."""
    import comperdial
    from comperdial import schema
    from comperdial.metrics import named, scoring
    from comperdial.metrics.local import Local, score_from
    from comperdial.models.encoder import STORE_VARIABLE

    if bool(metric) == bool(metrics):
        raise BadParameter("expected one of --metric and --metrics")
    if part and not input.is_dir():
        raise ConfigError(f"{input} is not a folder", where="--part", expected="a folder of tables")
    if embeddings:
        os.environ[STORE_VARIABLE] = str(embeddings)
    if metrics:
        for_one = {"option": option, "name": name, "part": part, "parts": parts}
        if wrong := next((text for text, value in for_one.items() if value), None):
            expected = "--metric, or options as in bleu,text=raw"
            raise ConfigError(f"--{wrong} is for one metric", where="--metrics", expected=expected)
        return o.write(output, comperdial.score(input, metrics, params=params), "scores", shown=True)
    try:
        changes = dict(map(named.option, option or ()))
    except ConfigError as error:
        raise ConfigError(error.problem, where="--option", expected=error.expected) from None
    made, called = named.metric_named(str(metric), named.read_entries(params), changes), name or str(metric)
    if not input.is_dir():
        return o.write(output, comperdial.score(input, {called: made}), "scores", shown=True)
    suited, unsuited = named.suited_to({called: made}, (batch for _, batch in scoring.batches(input)))
    if unsuited:
        from comperdial.api import name_not_run

        name_not_run(unsuited)
        return o.write(output, schema.empty("scores"), "scores", shown=True)
    made = suited[called]
    if parts:
        if not isinstance(made, Local):
            raise ConfigError(f"{called} does not combine other metrics", where="--parts", expected="--metric local")
        if not output:
            raise ConfigError("no output file", where="--output", expected="a file, with --parts")
        files = {one: Path(path) for one, _, path in (text.partition("=") for text in parts)}
        return score_from(made, called, input, files, output)
    if output and output.suffix == ".parquet":
        return scoring.write_scores(made, called, input, output, part or schema.WHOLE)
    return o.write(output, scoring.score_tables(made, called, input, part or schema.WHOLE), "scores", shown=True)


@o.command()
def merge(
    parts: Annotated[list[Path], Argument(metavar="PART...", help="All parts, .parquet files in any order.")],
    output: Annotated[Path, o.written("A .parquet file.", o.output_of(".parquet"))],
) -> None:
    """Merge the tables from `score --part`."""
    from comperdial import schema

    schema.merge(parts, output)
