"""Commands that render ComperDial's own tables and figures, for any data set in its form."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from comperdial.cli.common import add_kind, add_not_run, add_paper, add_simulated, add_target, read_target
from comperdial.cli.data_set import rated_levels, read_ratings, suffix_of, table_of
from comperdial.errors import NothingToShowError


def add_kinds(kinds: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's kinds of tables and figures."""
    kind = add_kind(kinds, "systems", _systems, "every system with its ratings and scores", inputs="scores")
    kind.add_argument("--outputs", nargs="+", required=True, metavar="METRIC:OUTPUT")
    kind.add_argument("--submissions", type=Path, help="the submissions.json of `challenge tables`")
    add_target(kind)
    add_not_run(kind)
    _dataset(kind)
    kind = add_kind(kinds, "alpha", _alpha, "Krippendorff's alpha at both levels, and each rater's bias", inputs=None)
    kind.add_argument("--seed", type=int, required=True)
    kind.add_argument("--resamples", type=int, required=True)
    _dataset(kind)
    kind = add_kind(kinds, "level-differences", _level_differences, "ComperDial's Table 13", inputs=None)
    kind.add_argument("--count", type=int, default=3)
    _dataset(kind)
    kind = add_kind(kinds, "example", _example, "personas and dialogue, ComperDial's Tables 2 and 12", inputs=None)
    kind.add_argument("--dialogue", help="which dialogue; default: the first")
    _dataset(kind)
    kind = add_kind(kinds, "counts", _counts, "ComperDial's Table 8 beside what our tables hold", inputs=None)
    add_paper(kind)
    _dataset(kind)
    add_paper(add_kind(kinds, "benchmarks", _benchmarks, "ComperDial's Tables 1 and 7", inputs=None))
    for name, about in (("names", "Table 9"), ("family", "Table 10"), ("ages", "Table 11")):
        add_kind(kinds, name, _constraints, f"ComperDial's {about}, from a file of constraints")


def _dataset(kind: argparse.ArgumentParser) -> None:
    kind.add_argument("--tables", type=Path, required=True, help="the data set's folder of tables")
    kind.add_argument(
        "--rated",
        nargs="*",
        choices=["turn", "dialogue"],
        help="whose levels' ratings to read; default: what lies there",
    )
    kind.add_argument("--title", required=True, help="the data set's title")
    kind.add_argument("--source", default="human", help="whose ratings (default: human)")
    add_simulated(kind)


def _systems(options: argparse.Namespace) -> None:
    from comperdial import aggregate
    from comperdial.files import read_json
    from comperdial.report import document, systems

    levels = [read_ratings(options, level) for level in ("turn", "dialogue")]
    frame = systems.systems_frame(
        table_of(options, "systems"),
        aggregate.read_scores(options.inputs),
        *levels,
        outputs=options.outputs,
        dimension=read_target(options, aggregate.rated_dimensions(levels, options.source)),
        source=options.source,
    )
    failed = read_json(options.submissions)["failed"] if options.submissions else {}
    found = systems.systems_document(
        frame, options.title, failed=failed, not_run=options.not_run, suffix=suffix_of(options)
    )
    document.write(found, options.output)


def _alpha(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial import ratings
    from comperdial.report import document
    from comperdial.report.document import SIMULATED
    from comperdial.report.ratings import agreement_document

    turn, dialogue = read_ratings(options, "turn"), read_ratings(options, "dialogue")
    alphas = ratings.alphas(
        turn,
        dialogue,
        table_of(options, "contexts"),
        seed=options.seed,
        resamples=options.resamples,
        source=options.source,
    )
    if not alphas["items"].any():
        raise NothingToShowError("nothing was rated by two raters or more: no agreement to measure, no human ceiling")
    levels = [level for level in (turn, dialogue) if level is not None]
    bias = pd.concat([ratings.annotator_bias(level, source=options.source) for level in levels], ignore_index=True)
    ending = suffix_of(options)
    found = agreement_document(alphas, bias, options.title, simulated=ending == SIMULATED, suffix=ending)
    document.write(found, options.output)


def _level_differences(options: argparse.Namespace) -> None:
    from comperdial import ratings
    from comperdial.report import document
    from comperdial.report.ratings import level_difference_document

    turn, dialogue = read_ratings(options, "turn"), read_ratings(options, "dialogue")
    if turn is None or dialogue is None:
        raise NothingToShowError("it takes ratings of turns and of dialogues")
    contexts, systems = table_of(options, "contexts"), table_of(options, "systems")
    cases = ratings.table13_cases(turn, dialogue, contexts, count=options.count, systems=systems, source=options.source)
    found = level_difference_document(
        cases, turn, dialogue, contexts, table_of(options, "responses"), systems, options.title,
        suffix=suffix_of(options), source=options.source,
    )  # fmt: skip
    document.write(found, options.output)


def _example(options: argparse.Namespace) -> None:
    from comperdial.report import document, personas

    contexts = table_of(options, "contexts")
    name = options.dialogue or str(contexts["dialogue_id"].min())
    found = personas.example_document(contexts, table_of(options, "personas"), name, suffix_of(options))
    document.write(found, options.output)


def _counts(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial.report import comperdial, document, tables

    counted = comperdial.count_tables(options.tables, source=options.source, levels=rated_levels(options))
    name = str(table_of(options, "systems")["dataset"].iloc[0])
    ours = pd.DataFrame([{"dataset": name, "title": options.title, **counted}])
    reported = tables.read_reported(options.paper / "annotation_counts.csv", comperdial.COUNT_COLUMNS)
    document.write(comperdial.counts_document(reported, ours, suffix_of(options)), options.output)


def _benchmarks(options: argparse.Namespace) -> None:
    from comperdial.report import comperdial, document, tables

    reported = tables.read_reported(options.paper / "benchmarks.csv", comperdial.BENCHMARK_COLUMNS)
    document.write(comperdial.benchmarks_document(reported), options.output)


def _constraints(options: argparse.Namespace) -> None:
    from comperdial.files import read_table
    from comperdial.report import document, personas

    make = {
        "names": personas.names_document,
        "family": personas.family_document,
        "ages": personas.ages_document,
    }[options.what]
    document.write(make(read_table(options.inputs[0])), options.output)
