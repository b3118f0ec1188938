"""The commands that correlate scores with ratings, see how ranks change with less data, and rank over data sets."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import evaluation, schema
from comperdial.cli.common import analysis_of
from comperdial.config.studies import params_file
from comperdial.core.errors import ConfigError
from comperdial.core.files import read_json, write_table
from comperdial.core.names import LEVELS
from comperdial.data.catalogue import load_catalogue
from comperdial.evaluation import aggregate, overall, results
from comperdial.evaluation.options import Tables, analysed
from comperdial.report.ranking import corrected, with_ranks
from comperdial.schema.dimensions import chosen_dimension
from comperdial.selection import Selection, describe


def correlate(options: argparse.Namespace) -> None:
    """Write correlations, and if asked for tests of pairs, ceilings and corrected tests."""
    folder = _folder(options)
    made = _of_folder(options, folder) if folder else _of_files(options)
    correlations = made.correlations
    if options.pairs:
        schema.write(options.pairs, made.pairs, "pairs")
    if options.ceilings:
        schema.write(options.ceilings, made.ceilings, "ceilings")
    if options.comparisons:
        correlations = with_ranks(correlations, made.pairs, options.correction)
        write_table(options.comparisons, corrected(made.pairs))
    if not options.output:
        correlations.to_csv(sys.stdout, index=False, lineterminator="\n")
    elif options.comparisons:
        # The table `correlations` has no columns of ranks.
        write_table(options.output, correlations)
    else:
        schema.write(options.output, correlations, "correlations")


def _folder(options: argparse.Namespace) -> Path | None:
    """Return the folder of tables that is the input; None if files of scores are."""
    return options.input[0] if len(options.input) == 1 and options.input[0].is_dir() else None


def _of_files(options: argparse.Namespace) -> results.Results:
    tested = options.pairs or options.comparisons
    if tested and not options.resamples:
        raise ConfigError("no resamples", where="--resamples", expected="2 or more, for tests of pairs")
    levels, targets = options.level or LEVELS, options.target
    samples, notes = analysed(_tables(options), analysis_of(options), levels=levels, targets=targets)
    for note in notes:
        print(note, file=sys.stderr)
    detail = None
    if options.resamples:
        named = options.outputs, options.detail_target, options.resamples, options.seed, options.tests
        detail = evaluation.Detail.named(*named)
        detail.check(samples)
    known: evaluation.Known = {}
    return results.Results(
        evaluation.correlations(samples, detail=detail, known=known),
        evaluation.pairs(samples, detail=detail, known=known) if tested and detail else pd.DataFrame(),
        evaluation.ceilings(samples) if options.ceilings else pd.DataFrame(),
    )


def _of_folder(options: argparse.Namespace, folder: Path) -> results.Results:
    if options.subset or options.missing != "left-out" or options.outliers != "none" or options.comparisons:
        what = "--subset, --missing, --outliers and --comparisons are for files"
        raise ConfigError(what, where="correlate", expected="tables `scores` and --ratings")
    about = _about(options, folder)
    same = ("compared", "restricted", "raters", "tests", "resamples", "seed")
    return results.correlate(
        folder,
        options.scores,
        outputs=about.get("outputs") if options.outputs is None else options.outputs,
        source=options.source or about.get("source", "human"),
        target=options.detail_target[0] if options.detail_target else about.get("target"),
        main_target=about.get("main_target"),
        levels=options.level or LEVELS,
        expected=about.get("expected"),
        fixed=options.systems_given,
        **{name: getattr(options, name) for name in same},
    )


def _tables(options: argparse.Namespace) -> Tables:
    """Read files of scores, and the ratings to compare them with."""
    if not options.ratings:
        raise ConfigError("no ratings", expected="--ratings, or a folder of tables with --scores")
    scores = aggregate.read_scores(options.input)
    names = scores["dataset"].unique()
    dataset = names[0] if len(names) == 1 else None
    ratings = aggregate.read_ratings_of(options.ratings, dataset=dataset)
    contexts = aggregate.read_contexts(options.contexts, dataset=dataset) if options.contexts else None
    systems = schema.read(options.systems, "systems") if options.systems else None
    return Tables(scores, ratings, contexts, systems, options.source or "human")


def _about(options: argparse.Namespace, folder: Path) -> Mapping[str, Any]:
    """Return what --about says of a data set; without it, what params.yaml says of one with the folder's name."""
    about: dict[str, Any] = {}
    if options.about:
        about = read_json(options.about)
    elif params_file().is_file() and folder.name in (selection := Selection.read()).datasets:
        about = {**describe(selection, folder.name), "expected": selection.expected(folder.name)}
    return about


def robustness(options: argparse.Namespace) -> None:
    """Write learning curves and the power of a test."""
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
        samples = _tables(options).samples(levels, options.target)
    detail = evaluation.Detail.named(outputs, targets, evaluation.Detail.resamples, options.seed)
    detail.check(samples, allow_missing=folder is not None)
    subsampling = evaluation.Subsampling(options.coefficient, options.repeats, options.seed)
    judgements = [schema.read(path, "judgements") for path in options.judgements]
    every = pd.concat(judgements, ignore_index=True) if judgements else None
    curves = evaluation.curves(samples, detail=detail, subsampling=subsampling, judgements=every)
    schema.write(options.curves, curves, "curves")
    schema.write(options.power, evaluation.power(samples, detail=detail, subsampling=subsampling), "power")


def rank(options: argparse.Namespace) -> None:
    """Write the ranking of a board, the tests of pairs of metrics, and the counts of pairs of systems."""
    entry = overall.board_of(options.board, overall.read_boards(options.boards))
    board = overall.Board.of(options.board, entry["tasks"])
    outputs = [(row["metric"], row["output"]) for row in entry["outputs"]]
    folders = {path.name: path for path in options.tables if path.name in board.datasets}
    known = load_catalogue(options.catalogue).datasets
    targets = {name: known[name].target for name in folders if name in known}
    of = {"level": entry["level"], "source": entry["source"], "targets": targets}
    scores = pd.concat([schema.read(path, "scores") for path in options.scores], ignore_index=True)
    samples = overall.read_samples(folders, scores, outputs, **of)
    drawing = {"resamples": options.resamples, "seed": options.seed}
    frame, tests = overall.overall(board, samples, outputs, missing=entry["missing"], **drawing)
    systems = {name: schema.read(path / "systems.parquet", "systems") for name, path in folders.items()}
    kinds = {name: dict(zip(one["system_id"], one["kind"], strict=True)) for name, one in systems.items()}
    schema.write(options.output, frame, "overall")
    schema.write(options.comparisons, tests, "overall_comparisons")
    schema.write(options.pairs, overall.pairs_of_systems(board, samples, kinds), "overall_pairs")
