"""The commands that correlate scores with ratings, see how ranks change with less data, and rank over data sets."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import evaluation, schema
from comperdial.cli.common import analysis_of
from comperdial.config.studies import params_file
from comperdial.core.errors import ConfigError
from comperdial.core.files import read_json
from comperdial.core.names import LEVELS
from comperdial.data.catalogue import load_catalogue
from comperdial.evaluation import aggregate, overall, results
from comperdial.evaluation.expected import Expected
from comperdial.evaluation.rated_data import read_rated
from comperdial.evaluation.samples import Tables
from comperdial.selection import Selection, describe


def correlate(options: argparse.Namespace) -> None:
    """Write correlations, and if asked for tests of pairs and ceilings."""
    if options.pairs and not options.resamples:
        raise ConfigError("no resamples", where="--resamples", expected="2 or more, for tests of pairs")
    folder, tables, about = _input(options)
    expected = about.get("expected")
    same = ("compared", "restricted", "raters", "tests", "resamples", "seed")
    made = results.correlate(
        tables,
        outputs=options.outputs,
        targets=options.detail_target,
        main_target=about.get("main_target"),
        levels=options.level or LEVELS,
        expected=Expected.of(expected, schema.read(folder / "contexts.parquet", "contexts")) if expected else None,
        options=replace(analysis_of(options), systems="fixed" if options.systems_given else "sampled"),
        allow_missing=folder.is_dir(),
        **{name: getattr(options, name) for name in same},
    )
    for note in made.notes:
        print(note, file=sys.stderr)
    for name in ("pairs", "ceilings"):
        if path := getattr(options, name):
            schema.write(path, getattr(made, name), name)
    if options.output:
        schema.write(options.output, made.correlations, "correlations")
    else:
        made.correlations.to_csv(sys.stdout, index=False, lineterminator="\n")


def _input(options: argparse.Namespace) -> tuple[Path, Tables, Mapping[str, Any]]:
    """Return the input, its tables, and what --about or params.yaml says of it; fill in the options that this decides."""
    first = options.input[0]
    others = {"a further input": options.input[1:], "--ratings": options.ratings, "--contexts": options.contexts}
    others |= {"--systems": options.systems}
    if first.is_dir() and (given := [name for name, value in others.items() if value]):
        expected = "the folder alone, with its own tables, and --scores FILE …"
        raise ConfigError(f"{given[0]} beside a folder of tables", where=str(first), expected=expected)
    if not first.is_dir() and (options.scores or options.about):
        problem = f"{'--scores' if options.scores else '--about'} beside files of scores"
        raise ConfigError(problem, where=str(first), expected="a folder of tables, or files of scores alone")
    if not first.is_dir():
        return first, _files(options), {}
    about: dict[str, Any] = {}
    if options.about:
        about = read_json(options.about)
    elif params_file().is_file() and first.name in (selection := Selection.read()).datasets:
        about = {**describe(selection, first.name), "expected": selection.expected(first.name)}
    options.outputs = about.get("outputs") if options.outputs is None else options.outputs
    options.detail_target = options.detail_target or ([about["target"]] if about.get("target") else None)
    return first, Tables.read(first, options.scores, options.source or about.get("source", "human")), about


def _files(options: argparse.Namespace) -> Tables:
    """Read files of scores, and the ratings to compare them with."""
    scores = aggregate.read_scores(options.input)
    names = scores["dataset"].unique()
    dataset = names[0] if len(names) == 1 else None
    tables, _ = read_rated(None, ratings=options.ratings, contexts=options.contexts, dataset=dataset)
    systems = schema.read(options.systems, "systems") if options.systems else None
    return replace(tables, scores=scores, systems=systems, source=options.source or "human")


def robustness(options: argparse.Namespace) -> None:
    """Write learning curves and the power of a test."""
    folder, tables, about = _input(options)
    samples = tables.samples(options.level or LEVELS, allow_missing=folder.is_dir())
    targets, main = options.detail_target, about.get("main_target")
    detail = results.detail_of(samples, options.outputs, targets, main, seed=options.seed)
    detail.check(samples, allow_missing=folder.is_dir())
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
    frame, tests = overall.overall(board, samples, outputs, **drawing)
    systems = {name: schema.read(path / "systems.parquet", "systems") for name, path in folders.items()}
    kinds = {name: dict(zip(one["system_id"], one["kind"], strict=True)) for name, one in systems.items()}
    schema.write(options.output, frame, "overall")
    schema.write(options.comparisons, tests, "overall_comparisons")
    schema.write(options.pairs, overall.pairs_of_systems(board, samples, kinds), "overall_pairs")
