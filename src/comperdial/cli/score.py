"""The commands that list metrics and score responses."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

import pandas as pd

from comperdial import schema
from comperdial.config.studies import params_file
from comperdial.core.errors import ConfigError, MissingResourceError
from comperdial.metrics import Batch, Metric, create, kinds, score_files, scoring
from comperdial.metrics.local import Local, score_from
from comperdial.metrics.named import metric_named, option, read_entries, suited_to
from comperdial.models.encoder import STORE_VARIABLE

# A folder of tables, or what a file holds.
Responses = Path | list[tuple[pd.DataFrame, Batch]]


def metrics(options: argparse.Namespace) -> None:
    """List the kinds of metrics and the names of params.yaml."""
    entries = read_entries(options.params)
    for kind in kinds():
        metric = create(kind)
        _show(metric, f"{kind}: {', '.join(metric.outputs)}\n    {metric.signature()}")
    if entries:
        print(f"\nnames of {params_file(options.params)}:")
    for name in entries:
        metric = metric_named(name, entries)
        _show(metric, f"{name}: {metric.signature()}")


def _show(metric: Metric, text: str) -> None:
    print(text)
    if reason := metric.unavailable():
        print(f"    cannot run here: {reason}")


def score(options: argparse.Namespace) -> None:
    """Score a file or a folder of tables with one or several metrics."""
    folder, output = options.input if options.input.is_dir() else None, options.output
    if options.part and not folder:
        raise ConfigError(f"{options.input} is no folder", where="--part", expected="a folder of tables")
    keep_embeddings(options.embeddings)
    if options.metrics:
        return _write(_score_several(options), output)
    metric, name = _metric(options), options.name or options.metric
    if not folder:
        return _write(score_files.score_file(metric, name, options.input), output)
    suited, unsuited = suited_to({name: metric}, (batch for _, batch in scoring.batches(folder)))
    if unsuited:
        name_not_run(unsuited)
        return _write(schema.empty("scores"), output)
    metric, part = suited[name], options.part or schema.WHOLE
    if options.parts:
        if not isinstance(metric, Local):
            raise ConfigError(f"{name} is made of no other metrics", where="--parts", expected="--metric local")
        files = {one: Path(path) for one, _, path in (text.partition("=") for text in options.parts)}
        return score_from(metric, name, folder, files, output)
    if output and output.suffix == ".parquet":
        return scoring.write_scores(metric, name, folder, output, part)
    return _write(scoring.score_tables(metric, name, folder, part), output)


def _metric(options: argparse.Namespace) -> Metric:
    """Return the metric that ``--metric`` names, with its options."""
    try:
        more = dict(map(option, options.option))
    except ConfigError as error:
        raise ConfigError(error.problem, where="--option", expected=error.expected) from None
    if options.options is not None:
        return create(options.metric, **options.options | more)
    return metric_named(options.metric, read_entries(options.params), more)


def _score_several(options: argparse.Namespace) -> pd.DataFrame:
    """Score with each of ``--metrics`` that can run here."""
    for name in ("option", "options", "name", "part", "parts"):
        if getattr(options, name):
            expected = "--metric, or options as in bleu,text=raw"
            raise ConfigError(f"--{name} is for one metric", where="--metrics", expected=expected)
    entries = read_entries(options.params)
    chosen = {name: metric_named(name, entries) for name in options.metrics}
    responses: Responses = options.input
    if not options.input.is_dir():
        records = score_files.read_records(options.input)
        responses = [(records.responses, records.batch())]
    scores, not_run, unsuited = score_with(chosen, responses)
    name_not_run(not_run, chosen.keys() - unsuited, options.input)
    name_not_run(unsuited)
    return scores


def score_with(
    chosen: Mapping[str, Metric], responses: Responses
) -> tuple[pd.DataFrame, dict[str, str], dict[str, str]]:
    """Score with the metrics that suit the responses and can run here.

    Returns table ``scores``; why metrics that suit them were not run; and why others do not suit them.
    """
    first, again = (scoring.batches(responses) if isinstance(responses, Path) else responses for _ in range(2))
    suited, unsuited = suited_to(chosen, (batch for _, batch in first))
    return *scoring.score_many(suited, again), unsuited


def name_not_run(not_run: Mapping[str, str], chosen: Collection[str] = (), where: Path | None = None) -> None:
    """Name on standard error the metrics that were not run; an error if those are all that were chosen."""
    if not_run and len(not_run) == len(chosen):
        problem = "; ".join(f"{name}: {why}" for name, why in not_run.items())
        raise MissingResourceError(f"no metric could be run: {problem}", where=str(where))
    for name, why in not_run.items():
        print(f"{name}: not run: {why}", file=sys.stderr)


def keep_embeddings(folder: Path | None) -> None:
    """Have vectors kept in a folder, if one is given."""
    if folder:
        os.environ[STORE_VARIABLE] = str(folder)


def _write(scores: pd.DataFrame, output: Path | None) -> None:
    """Write scores to a file, or as CSV to standard output."""
    if output:
        schema.write(output, scores, "scores")
    else:
        scores.to_csv(sys.stdout, index=False, lineterminator="\n")


def merge(options: argparse.Namespace) -> None:
    """Append the tables of all parts."""
    if options.output.suffix != ".parquet":
        raise ConfigError(f"{options.output}: unknown kind of file", where="--output", expected=".parquet")
    schema.merge(options.parts, options.output)
