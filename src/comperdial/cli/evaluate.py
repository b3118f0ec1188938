"""Commands that score responses and correlate scores with ratings."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.cli.common import (
    add_analysis,
    analysis_of,
    json_object,
    output_file,
    output_table,
    part_of,
)
from comperdial.core.errors import ConfigError, MissingResourceError
from comperdial.core.names import LEVELS
from comperdial.stats import COEFFICIENTS, OF_SYSTEMS

if TYPE_CHECKING:
    from comperdial.evaluation.options import Tables
    from comperdial.metrics import Metric


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    command = commands.add_parser("metrics", help="list the metrics, their outputs and whether they can run here")
    add_params(command)
    command.set_defaults(run=_metrics)

    command = commands.add_parser("score", help="score a file of responses, or a folder of tables, with metrics")
    command.add_argument("input", type=Path, help="JSONL, CSV or Parquet with `response`, `references`, …; or a folder")
    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--metric", metavar="NAME", help="a kind of metric or a name of params.yaml: `comperdial metrics`"
    )
    which.add_argument("--metrics", nargs="+", metavar="NAME", help="several; options follow, as in bleu,text=raw")
    add_params(command)
    command.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an option of --metric")
    command.add_argument(
        "--options",
        type=json_object,
        metavar="JSON",
        help="all options of --metric as one JSON object; NAME is a kind then, whatever params.yaml has",
    )
    command.add_argument("--name", help="what to call --metric in the table; default: NAME")
    command.add_argument(
        "--part", type=part_of, metavar="I-of-N", help="only the I-th of N parts, such as 3-of-16 (docs/metrics.md)"
    )
    command.add_argument(
        "--parts", nargs="*", default=[], metavar="NAME=FILE", help="scores of metrics that --metric is made of"
    )
    _embeddings(command)
    _output(command)
    command.set_defaults(run=_score)

    command = commands.add_parser("merge", help="append the tables that `score --part` has made")
    command.add_argument("parts", type=Path, nargs="+", metavar="PART", help="all of them, .parquet files in any order")
    command.add_argument("--output", type=output_file, required=True, help="a .parquet file")
    command.set_defaults(run=_merge)

    command = commands.add_parser("correlate", help="correlate scores with human ratings")
    command.add_argument(
        "input", type=Path, nargs="+", help="a folder of tables, with --scores; or tables `scores`, with --ratings"
    )
    command.add_argument(
        "--scores", type=Path, nargs="+", default=[], metavar="FILE", help="scores of a folder of tables"
    )
    command.add_argument(
        "--about",
        type=Path,
        metavar="FILE",
        help="about.json of the folder: source, dimension, main outputs; default: params.yaml",
    )
    for name, what in (
        ("compared", "outputs that studies show: intervals and tests of Pearson and Spearman"),
        ("restricted", "outputs to correlate within systems and without human systems, too"),
    ):
        command.add_argument(f"--{name}", nargs="*", default=[], metavar="METRIC:OUTPUT", help=f"of a folder: {what}")
    command.add_argument(
        "--raters", nargs="*", default=[], metavar="SOURCE", help="of a folder: whose mean ratings are scores, too"
    )
    command.add_argument(
        "--systems-given", action="store_true", help="of a folder: intervals and tests are over contexts, these systems"
    )
    _sampled(command)
    add_analysis(command)
    command.add_argument(
        "--resamples",
        type=int,
        default=1000,
        help="for the details, intervals and tests (default: 1000); 0: no details",
    )
    command.add_argument(
        "--tests",
        nargs="+",
        choices=OF_SYSTEMS,
        default=[],
        help="also test these over systems; accuracy and spa are tested anyway where there are few systems",
    )
    command.add_argument(
        "--ceilings", type=output_table, metavar="FILE", help="write how one annotator agrees with the others"
    )
    command.add_argument("--pairs", type=output_table, metavar="FILE", help="write tests of pairs, not corrected")
    command.add_argument(
        "--comparisons",
        type=output_table,
        metavar="FILE",
        help="of files: write tests, corrected over all pairs; adds ranks",
    )
    _output(command)
    command.set_defaults(run=_correlate)

    command = commands.add_parser("robustness", help="how ranks change with fewer systems, dialogues, …")
    command.add_argument(
        "input", type=Path, nargs="+", help="a folder of tables, with --scores; or tables `scores`, with --ratings"
    )
    command.add_argument("--scores", type=Path, nargs="+", default=[], metavar="FILE", help="scores of a folder")
    command.add_argument("--about", type=Path, metavar="FILE", help="about.json of the folder; default: params.yaml")
    _sampled(command)
    command.add_argument("--judgements", type=Path, nargs="*", default=[], help="tables `judgements`: single samples")
    command.add_argument("--coefficient", default="spearman", choices=COEFFICIENTS)
    command.add_argument("--repeats", type=int, default=100, help="subsets for each size (default: 100)")
    command.add_argument("--curves", type=output_table, required=True, metavar="FILE", help="write the learning curves")
    command.add_argument(
        "--power", type=output_table, required=True, metavar="FILE", help="write the power of a 5 %% test"
    )
    command.set_defaults(run=_robustness)


def _sampled(command: argparse.ArgumentParser) -> None:
    """Add what says which scores and ratings are compared, and how thoroughly."""
    command.add_argument(
        "--ratings", type=Path, action="append", default=[],
        help="table `ratings`, or context_id (or dialogue_id), system_id, rating; may be given several times",
    )  # fmt: skip
    command.add_argument("--systems", type=Path, help="table `systems`: which of the rated systems are references")
    command.add_argument("--contexts", type=Path, help="table `contexts`: which dialogue a context belongs to")
    command.add_argument("--source", help="whose ratings (default: human)")
    command.add_argument("--level", action="append", choices=LEVELS, help="default: all")
    command.add_argument("--target", action="append", help="a rated dimension; default: all")
    command.add_argument(
        "--detail-target", action="append", metavar="TARGET", help="a dimension to detail; default: all"
    )
    command.add_argument("--outputs", nargs="*", metavar="METRIC:OUTPUT", help="scores to detail; default: all")
    command.add_argument("--seed", type=int, default=2024, help="of all that is drawn (default: 2024)")


def _embeddings(command: argparse.ArgumentParser) -> None:
    command.add_argument("--embeddings", type=Path, metavar="FOLDER", help="keep vectors there (default: nowhere)")


def _output(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--output", type=output_table, help="a .jsonl, .csv or .parquet file; default: CSV on standard output"
    )


def add_params(command: argparse.ArgumentParser) -> None:
    """Add ``--params``, which names of metrics are looked up in."""
    command.add_argument(
        "--params", type=Path, metavar="FILE", help="names of metrics; default: params.yaml if it exists"
    )


def _metrics(options: argparse.Namespace) -> None:
    from comperdial.config.studies import params_file
    from comperdial.metrics import create, kinds
    from comperdial.metrics.named import metric_named, read_entries

    def show(metric: Metric, text: str) -> None:
        print(text)
        if reason := metric.unavailable():
            print(f"    cannot run here: {reason}")

    for kind in kinds():
        metric = create(kind)
        show(metric, f"{kind}: {', '.join(metric.outputs)}\n    {metric.signature()}")
    entries = read_entries(options.params)
    if entries:
        print(f"\nnames of {params_file(options.params)}:")
    for name in entries:
        metric = metric_named(name, entries)
        show(metric, f"{name}: {metric.signature()}")


def _metric(options: argparse.Namespace) -> Metric:
    """Return what ``--metric`` names, with its options."""
    from comperdial.metrics import create
    from comperdial.metrics.named import metric_named, option, read_entries

    try:
        more = dict(map(option, options.option))
    except ConfigError as error:
        raise ConfigError(error.problem, where="--option", expected=error.expected) from None
    if options.options is not None:
        return create(options.metric, **options.options | more)
    return metric_named(options.metric, read_entries(options.params), more)


def _emit(frame: Any, output: Path | None, table: str) -> None:  # noqa: ANN401
    from comperdial import schema

    if output:
        schema.write(output, frame, table)
    else:
        frame.to_csv(sys.stdout, index=False, lineterminator="\n")


def _score(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.metrics import score_files, scoring
    from comperdial.metrics.named import suited_to

    part = options.part or schema.WHOLE
    if options.part and not options.input.is_dir():
        raise ConfigError(f"{options.input} is no folder", where="--part", expected="a folder of tables")
    keep_embeddings(options)
    if options.metrics:
        _score_several(options)
        return
    metric = _metric(options)
    name = options.name or options.metric
    if not options.input.is_dir():
        _emit(score_files.score_file(metric, name, options.input), options.output, "scores")
        return
    metrics, unsuited = suited_to({name: metric}, (batch for _, batch in scoring.batches(options.input)))
    if unsuited:
        _name_not_run(unsuited)
        _emit(schema.empty("scores"), options.output, "scores")
    elif options.parts:
        from comperdial.metrics.local import Local, score_from

        files = {name: Path(path) for name, _, path in (part.partition("=") for part in options.parts)}
        if not isinstance(combined := metrics[name], Local):
            raise ConfigError(f"{name} is made of no other metrics", where="--parts", expected="--metric local")
        score_from(combined, name, options.input, files, options.output)
    elif options.output and options.output.suffix == ".parquet":
        scoring.write_scores(metrics[name], name, options.input, options.output, part)
    else:
        _emit(scoring.score_tables(metrics[name], name, options.input, part), options.output, "scores")


def _merge(options: argparse.Namespace) -> None:
    from comperdial import schema

    if options.output.suffix != ".parquet":
        raise ConfigError(f"{options.output}: unknown kind of file", where="--output", expected=".parquet")
    schema.merge(options.parts, options.output)


def _score_several(options: argparse.Namespace) -> None:
    """Score with ``--metrics`` into one table, as far as each can run."""
    from comperdial.metrics import score_files, scoring
    from comperdial.metrics.named import metric_named, read_entries, suited_to

    for name in ("option", "options", "name", "part", "parts"):
        if getattr(options, name):
            raise ConfigError(
                f"--{name} is for one metric", where="--metrics", expected="--metric, or options as in bleu,text=raw"
            )
    entries = read_entries(options.params)
    metrics = {name: metric_named(name, entries) for name in options.metrics}
    if options.input.is_dir():
        parts: Any = scoring.batches(options.input)
        suited, unsuited = suited_to(metrics, (batch for _, batch in scoring.batches(options.input)))
    else:
        records = score_files.read_records(options.input)
        parts = [(records.responses, records.batch())]
        suited, unsuited = suited_to(metrics, [parts[0][1]])
    scores, not_run = scoring.score_many(suited, parts)
    if suited:
        say_not_run(not_run, suited, options.input)
    _name_not_run(unsuited)
    _emit(scores, options.output, "scores")


def say_not_run(not_run: Mapping[str, str], metrics: Collection[str], where: Path) -> None:
    """Name on standard error the metrics that were not run; an error where that is all of them."""
    if len(not_run) == len(metrics):
        problem = "; ".join(f"{name}: {why}" for name, why in not_run.items())
        raise MissingResourceError(f"no metric could be run: {problem}", where=str(where))
    _name_not_run(not_run)


def _name_not_run(not_run: Mapping[str, str]) -> None:
    for name, why in not_run.items():
        print(f"{name}: not run: {why}", file=sys.stderr)


def keep_embeddings(options: argparse.Namespace) -> None:
    """Have vectors kept in the folder `--embeddings`."""
    if options.embeddings:
        from comperdial.models.encoder import STORE_VARIABLE

        os.environ[STORE_VARIABLE] = str(options.embeddings)


def _tables(options: argparse.Namespace, scores: list[Path]) -> Tables:
    from comperdial import schema
    from comperdial.evaluation import aggregate
    from comperdial.evaluation.options import Tables

    if not options.ratings:
        raise ConfigError("no ratings", expected="--ratings, or a folder of tables with --scores")
    table = aggregate.read_scores(scores)
    names = table["dataset"].unique()
    dataset = names[0] if len(names) == 1 else None
    return Tables(
        table,
        aggregate.read_ratings_of(options.ratings, dataset=dataset),
        aggregate.read_contexts(options.contexts, dataset=dataset) if options.contexts else None,
        schema.read(options.systems, "systems") if options.systems else None,
        options.source or "human",
    )


def _folder(options: argparse.Namespace) -> Path | None:
    """Return the folder of tables that is the input; None if files of scores are."""
    return options.input[0] if len(options.input) == 1 and options.input[0].is_dir() else None


def _correlate(options: argparse.Namespace) -> None:
    from comperdial import evaluation, schema
    from comperdial.core.files import write_table
    from comperdial.evaluation.options import analysed
    from comperdial.report.ranking import corrected, with_ranks

    if folder := _folder(options):
        _correlate_folder(options, folder)
        return
    if (options.pairs or options.comparisons) and not options.resamples:
        raise ConfigError("no resamples", where="--resamples", expected="2 or more, for tests of pairs")
    samples, notes = analysed(
        _tables(options, options.input),
        analysis_of(options),
        levels=options.level or LEVELS,
        targets=options.target,
    )
    for note in notes:
        print(note, file=sys.stderr)
    detail = None
    if options.resamples:
        named = options.outputs, options.detail_target, options.resamples, options.seed, options.tests
        detail = evaluation.Detail.named(*named)
        detail.check(samples)
    known: evaluation.Known = {}
    correlations = evaluation.correlations(samples, detail=detail, known=known)
    if (options.pairs or options.comparisons) and detail:
        pairs = evaluation.pairs(samples, detail=detail, known=known)
        if options.pairs:
            schema.write(options.pairs, pairs, "pairs")
        if options.comparisons:
            correlations = with_ranks(correlations, pairs, options.correction)
            write_table(options.comparisons, corrected(pairs))
    if options.ceilings:
        schema.write(options.ceilings, evaluation.ceilings(samples), "ceilings")
    if options.output and options.comparisons:
        # Ranks are no columns of the table.
        write_table(options.output, correlations)
    else:
        _emit(correlations, options.output, "correlations")


def _correlate_folder(options: argparse.Namespace, folder: Path) -> None:
    from comperdial import schema
    from comperdial.evaluation.results import correlate

    if options.subset or options.missing != "left-out" or options.outliers != "none" or options.comparisons:
        raise ConfigError(
            "--subset, --missing, --outliers and --comparisons are for files",
            where="correlate",
            expected="tables `scores` and --ratings",
        )
    about = _about(options, folder)
    results = correlate(
        folder,
        options.scores,
        outputs=options.outputs if options.outputs is not None else about.get("outputs"),
        compared=options.compared,
        restricted=options.restricted,
        raters=options.raters,
        source=options.source or about.get("source", "human"),
        target=options.detail_target[0] if options.detail_target else about.get("target"),
        main_target=about.get("main_target"),
        levels=options.level or LEVELS,
        expected=about.get("expected"),
        fixed=options.systems_given,
        tests=options.tests,
        resamples=options.resamples,
        seed=options.seed,
    )
    if options.pairs:
        schema.write(options.pairs, results.pairs, "pairs")
    if options.ceilings:
        schema.write(options.ceilings, results.ceilings, "ceilings")
    _emit(results.correlations, options.output, "correlations")


def _about(options: argparse.Namespace, folder: Path) -> Mapping[str, Any]:
    """Return what is known of a data set: by --about, or from params.yaml if it selects a data set of the folder's name."""
    from comperdial.config.studies import params_file
    from comperdial.core.files import read_json

    if options.about:
        about: Mapping[str, Any] = read_json(options.about)
        return about
    if not params_file().is_file():
        return {}
    from comperdial.selection import Selection, describe

    selection = Selection.read()
    dataset = folder.name
    known = dataset in selection.datasets
    return describe(selection, dataset) | {"expected": selection.expected(dataset)} if known else {}


def _robustness(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial import evaluation, schema
    from comperdial.evaluation.options import Tables
    from comperdial.schema.dimensions import chosen_dimension

    if options.repeats < 1:
        raise ConfigError(f"{options.repeats} subsets", where="--repeats", expected="1 or more")
    levels, outputs, targets = options.level or LEVELS, options.outputs, options.detail_target
    if folder := _folder(options):
        about = _about(options, folder)
        tables = Tables.read(folder, options.scores, options.source or about.get("source", "human"))
        samples = tables.samples(levels, options.target, allow_missing=True)
        if samples and about and not targets:
            rated = {sample.target for sample in samples}
            targets = [chosen_dimension(about.get("target"), about.get("main_target"), rated)]
        outputs = about.get("outputs") if outputs is None else outputs
        # A data set may have no scores of the main metrics: then all that have scores are shown.
        if not {":".join(name) for sample in samples for name in sample.names} & {*(outputs or ())}:
            outputs = None
    else:
        samples = _tables(options, options.input).samples(levels, options.target)
    detail = evaluation.Detail.named(outputs, targets, evaluation.Detail.resamples, options.seed)
    detail.check(samples, allow_missing=folder is not None)
    subsampling = evaluation.Subsampling(options.coefficient, options.repeats, options.seed)
    judgements = [schema.read(path, "judgements") for path in options.judgements]
    curves = evaluation.curves(
        samples, detail=detail, subsampling=subsampling,
        judgements=pd.concat(judgements, ignore_index=True) if judgements else None,
    )  # fmt: skip
    schema.write(options.curves, curves, "curves")
    schema.write(options.power, evaluation.power(samples, detail=detail, subsampling=subsampling), "power")
