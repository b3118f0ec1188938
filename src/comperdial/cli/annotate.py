"""Commands for ratings and choices by people: tasks out, answers in."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from comperdial.cli.common import output_folder, output_table, whole
from comperdial.core.names import RATED_LEVELS

PAIR = "pair"


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    group = commands.add_parser("annotate", help="have people rate responses and dialogues, or compare dialogues")
    parts = group.add_subparsers(title="commands", metavar="COMMAND", required=True)

    command = parts.add_parser("export", help="turn a folder of tables into Label Studio projects")
    command.add_argument("folder", type=Path, help="holds systems, contexts, responses, personas as Parquet")
    command.add_argument("--output", type=output_folder, required=True, help="a folder")
    command.add_argument("--level", action="append", choices=RATED_LEVELS, help="may be given twice; default: both")
    command.add_argument("--systems", nargs="+", metavar="SYSTEM", help="default: all but the references")
    command.add_argument("--sample", type=int, metavar="N", help="how many dialogues to draw; default: all")
    command.add_argument("--seed", type=int, default=0, help="of items' names, sample and order; default: 0")
    command.set_defaults(run=_export)

    _add_pairs(parts)

    command = parts.add_parser("import", help="turn what people answered into a table of ratings or preferences")
    command.add_argument(
        "answers", type=Path, nargs="+", metavar="ANSWERS", help="Label Studio's exports, JSON or JSON-MIN"
    )
    command.add_argument("--key", type=Path, required=True, help="the key.csv written with the tasks")
    command.add_argument("--level", choices=(*RATED_LEVELS, PAIR), required=True)
    command.add_argument("--output", type=output_table, required=True, help="a .parquet, .csv or .jsonl file")
    command.add_argument(
        "--need-reasons", action="store_true", help="pairs: leave out annotators who never gave a reason"
    )
    command.set_defaults(run=_import)


def _add_pairs(parts: Any) -> None:  # noqa: ANN401
    command = parts.add_parser("pairs", help="share out pairs of dialogues among annotators")
    command.add_argument(
        "dialogues",
        type=Path,
        nargs="+",
        metavar="DIALOGUES",
        help="a file of dialogues, ParlAI's pairings.jsonl or self-chats, or a folder of tables",
    )
    command.add_argument(
        "--pairs-each", type=whole(1), required=True, metavar="K", help="pairs an annotator, no control"
    )
    command.add_argument("--question", nargs="+", metavar="NAME", default=["overall"], help="default: overall")
    command.add_argument(
        "--controls", type=Path, metavar="FILE", help="pairs with a known answer: ParlAI's form, or CSV"
    )
    command.add_argument(
        "--compare",
        nargs=2,
        action="append",
        metavar="SYSTEM",
        help="two systems; may be given several times; default: each with each",
    )
    command.add_argument("--annotators", type=whole(1), required=True, metavar="N", help="for each question")
    command.add_argument("--questions", type=Path, metavar="FILE", help="a bank of your own; default: ours")
    command.add_argument("--ties", action="store_true", help='"no difference" may be chosen')
    command.add_argument("--name", metavar="DATASET", help="the data set's name; default: the output folder's")
    command.add_argument("--output", type=output_folder, required=True, help="a folder")
    command.add_argument("--seed", type=whole(0), default=0, help="of everything that is drawn; default: 0")
    command.set_defaults(run=_pairs)


def _export(options: argparse.Namespace) -> None:
    from comperdial.challenge import annotation

    counts = annotation.export(
        options.folder,
        options.output,
        levels=options.level or RATED_LEVELS,
        systems=options.systems,
        sample=options.sample,
        seed=options.seed,
    )
    for level, count in counts.items():
        print(f"{options.output / level}: {count} tasks")


def _pairs(options: argparse.Namespace) -> None:
    from comperdial.challenge.pairs.design import make_design
    from comperdial.challenge.pairs.export import export
    from comperdial.challenge.pairs.questions import chosen, read_questions
    from comperdial.challenge.pairs.reading import read_controls, read_material

    questions = chosen(read_questions(options.questions), options.question)
    material = read_material(options.dialogues)
    if options.controls:
        material.controls += read_controls(options.controls, material.dialogues)
    design = make_design(
        material,
        questions,
        annotators=options.annotators,
        pairs_each=options.pairs_each,
        compare=options.compare or (),
        seed=options.seed,
    )
    name = options.name or options.output.resolve().name
    export(options.output, design, name=name, ties=options.ties, seed=options.seed)
    pairs = {task.pair.id for task in design.tasks if not task.is_control}
    print(
        f"{options.output}: {len(design.tasks)} tasks of {len(design.annotators())} annotators, "
        f"{sum(task.is_control for task in design.tasks)} of them controls; "
        f"{len(pairs)} pairs of {len(design.dialogues())} dialogues"
    )
    if not material.controls:
        print("no controls: careless annotators will not be noticed (--controls)")
    for sentence in design.broken:
        print(sentence)


def _import(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.challenge import annotation
    from comperdial.core.errors import ConfigError

    if options.level == PAIR:
        _import_pairs(options)
        return
    if options.need_reasons:
        raise ConfigError("given with another level", where="--need-reasons", expected="--level pair")
    ratings = annotation.read_ratings(options.answers, options.key, options.level)
    schema.write(options.output, ratings, "ratings")
    print(f"{options.output}: {len(ratings)} records of {ratings['dimension'].nunique()} dimensions")


def _import_pairs(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.challenge.pairs.importing import read_votes
    from comperdial.core.files import write_table

    votes = read_votes(options.answers, options.key, need_reasons=options.need_reasons)
    schema.write(options.output, votes.kept, "preferences")
    for note in votes.notes:
        print(note)
    print(
        f"{options.output}: {len(votes.kept)} votes of {votes.kept['annotator_id'].nunique()} annotators, "
        f"{votes.kept['control'].notna().sum()} of them on controls"
    )
    if len(votes.removed):
        path = options.output.with_name(f"{options.output.stem}_removed{options.output.suffix}")
        write_table(path, votes.removed)
        print(f"{path}: {len(votes.removed)} votes of {votes.removed['annotator_id'].nunique()} removed annotators")
