"""Commands for ratings and choices by people: tasks out, answers in."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from comperdial.cli.common import output_folder, output_table, whole
from comperdial.core.errors import ConfigError
from comperdial.core.names import RATED_LEVELS


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    group = commands.add_parser("annotate", help="have people rate responses and dialogues, or compare dialogues")
    parts = group.add_subparsers(title="commands", metavar="COMMAND", required=True)

    command = parts.add_parser("export", help="turn a folder of tables into Label Studio projects")
    command.add_argument("folder", type=Path, help="holds systems, contexts, responses, personas as Parquet")
    command.add_argument("--output", type=output_folder, required=True, help="a folder")
    command.add_argument("--level", action="append", choices=RATED_LEVELS, help="may be given twice; default: both")
    command.add_argument("--systems", nargs="+", metavar="SYSTEM", help="default: all but the references")
    command.add_argument("--sample", type=whole(1), metavar="N", help="how many dialogues to draw; default: all")
    command.add_argument("--seed", type=whole(0), default=0, help="of items' names, sample and order; default: 0")
    command.set_defaults(run=_export)

    command = parts.add_parser("pairs", help="share out pairs of dialogues among annotators")
    command.add_argument("dialogues", type=Path, nargs="+", help="files of dialogues, or folders of tables")
    command.add_argument("--pairs-each", type=whole(1), required=True, metavar="K", help="an annotator, no control")
    command.add_argument("--question", nargs="+", metavar="NAME", default=["overall"], help="default: overall")
    command.add_argument("--controls", type=Path, metavar="FILE", help="a CSV of pairs with a known answer")
    each = "two systems; default: each with each"
    command.add_argument("--compare", nargs=2, action="append", metavar="SYSTEM", default=[], help=each)
    command.add_argument("--annotators", type=whole(1), required=True, metavar="N", help="for each question")
    command.add_argument("--questions", type=Path, metavar="FILE", help="a bank of your own; default: ours")
    command.add_argument("--ties", action="store_true", help='"no difference" may be chosen')
    command.add_argument("--name", metavar="DATASET", help="the data set's name; default: the output folder's")
    command.add_argument("--output", type=output_folder, required=True, help="a folder")
    command.add_argument("--seed", type=whole(0), default=0, help="of everything that is drawn; default: 0")
    command.set_defaults(run=_pairs)

    command = parts.add_parser("import", help="turn people's answers into a table of ratings or preferences")
    command.add_argument("answers", type=Path, nargs="+", help="Label Studio's exports, JSON or JSON-MIN")
    command.add_argument("--key", type=Path, required=True, help="the key.csv written with the tasks")
    command.add_argument("--level", choices=(*RATED_LEVELS, "pair"), required=True)
    command.add_argument("--output", type=output_table, required=True, help="a .parquet, .csv or .jsonl file")
    command.add_argument("--need-reasons", action="store_true", help="pairs: leave out who never gave a reason")
    command.set_defaults(run=_import)


def _export(options: argparse.Namespace) -> None:
    from comperdial.challenge.label_studio import export_ratings

    choice = {"systems": options.systems, "sample": options.sample, "seed": options.seed}
    counts = export_ratings(options.folder, options.output, levels=options.level or RATED_LEVELS, **choice)
    for level, count in counts.items():
        print(f"{options.output / level}: {count} tasks")


def _pairs(options: argparse.Namespace) -> None:
    from comperdial.challenge.label_studio import export_pairs
    from comperdial.challenge.pairs import chosen, make_design, read_all, read_controls, read_questions

    questions = chosen(read_questions(options.questions), options.question)
    dialogues = read_all(options.dialogues)
    controls = read_controls(options.controls, dialogues) if options.controls else []
    counts = {"annotators": options.annotators, "pairs_each": options.pairs_each, "seed": options.seed}
    design = make_design(dialogues, questions, controls=controls, compare=options.compare, **counts)
    name = options.name or options.output.resolve().name
    export_pairs(options.output, design, name=name, ties=options.ties, seed=options.seed)
    pairs = {task.pair.id: task.pair for task in design.tasks if not task.pair.answer}
    print(
        f"{options.output}: {len(design.tasks)} tasks of {options.annotators * len(questions)} annotators, "
        f"{sum(task.pair.answer is not None for task in design.tasks)} of them controls; {len(pairs)} pairs of "
        f"{len({d.key for pair in pairs.values() for d in (pair.first, pair.second)})} dialogues"
    )
    if not controls:
        print("no controls: careless annotators will not be noticed (--controls)")
    for note in design.notes:
        print(note)


def _import(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.challenge.label_studio import read_ratings, read_votes
    from comperdial.core.files import write_table

    if options.level != "pair":
        if options.need_reasons:
            raise ConfigError("given with another level", where="--need-reasons", expected="--level pair")
        ratings = read_ratings(options.answers, options.key, options.level)
        schema.write(options.output, ratings, "ratings")
        print(f"{options.output}: {len(ratings)} records of {ratings['dimension'].nunique()} dimensions")
        return
    votes = read_votes(options.answers, options.key, need_reasons=options.need_reasons)
    schema.write(options.output, votes.kept, "preferences")
    for note in votes.notes:
        print(note)
    counts = [f"{len(frame)} votes of {frame['annotator_id'].nunique()}" for frame in (votes.kept, votes.removed)]
    print(f"{options.output}: {counts[0]} annotators, {votes.kept['control'].notna().sum()} of them on controls")
    if len(votes.removed):
        path = options.output.with_name(f"{options.output.stem}_removed{options.output.suffix}")
        write_table(path, votes.removed)
        print(f"{path}: {counts[1]} removed annotators")
