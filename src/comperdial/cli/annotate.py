"""Commands for ratings and choices by people: tasks out, answers in."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from comperdial.cli.common import READ, Commands, add_command, output_folder, output_table, whole
from comperdial.core.errors import ConfigError
from comperdial.core.files import write_table
from comperdial.core.names import RATED_LEVELS

_FOLDER: Any = {"type": output_folder, "required": True, "help": "a folder"}


def add_commands(commands: Commands) -> None:
    """Add this module's commands."""
    group = commands.add_parser("annotate", help="have people rate responses and dialogues, or compare dialogues")
    parts = group.add_subparsers(title="commands", metavar="COMMAND", required=True)

    add = add_command(parts, "export", _export, "turn a folder of tables into Label Studio projects").add_argument
    add("folder", type=Path, help="holds systems, contexts, responses, personas as Parquet")
    add("--output", **_FOLDER)
    add("--level", action="append", choices=RATED_LEVELS, help="may be given twice; default: both")
    add("--systems", nargs="+", metavar="SYSTEM", help="default: all but the references")
    add("--sample", type=whole(1), metavar="N", help="how many dialogues to draw; default: all")
    add("--seed", type=whole(0), default=0, help="of items' names, sample and order; default: 0")

    add = add_command(parts, "pairs", _pairs, "share out pairs of dialogues among annotators").add_argument
    add("dialogues", type=Path, nargs="+", help="files of dialogues, JSON Lines")
    add("--pairs-each", type=whole(1), required=True, metavar="K", help="an annotator, no control")
    add("--question", nargs="+", metavar="NAME", default=["overall"], help="default: overall")
    add("--controls", **READ, help="a CSV of pairs with a known answer")
    what = "two systems; default: each with each"
    add("--compare", nargs=2, action="append", metavar="SYSTEM", default=[], help=what)
    add("--annotators", type=whole(1), required=True, metavar="N", help="for each question")
    add("--questions", **READ, help="a bank of your own; default: ours")
    add("--ties", action="store_true", help='"no difference" may be chosen')
    add("--name", metavar="DATASET", help="the data set's name; default: the output folder's")
    add("--output", **_FOLDER)
    add("--seed", type=whole(0), default=0, help="of everything that is drawn; default: 0")

    about = "turn people's answers into a table of ratings or preferences"
    add = add_command(parts, "import", _import, about).add_argument
    add("answers", type=Path, nargs="+", help="Label Studio's exports, JSON")
    add("--key", type=Path, required=True, help="the key.csv written with the tasks")
    add("--level", choices=(*RATED_LEVELS, "pair"), required=True)
    add("--output", type=output_table, required=True, help="a .parquet, .csv or .jsonl file")
    add("--need-reasons", action="store_true", help="pairs: leave out who never gave a reason")


def _export(options: Namespace) -> None:
    from comperdial.challenge.label_studio import export_ratings

    choice = {"systems": options.systems, "sample": options.sample, "seed": options.seed}
    counts = export_ratings(options.folder, options.output, levels=options.level or RATED_LEVELS, **choice)
    for level, count in counts.items():
        print(f"{options.output / level}: {count} tasks")


def _pairs(options: Namespace) -> None:
    from comperdial.challenge import pairs
    from comperdial.challenge.label_studio import export_pairs

    questions = pairs.chosen(pairs.read_questions(options.questions), options.question)
    dialogues = pairs.read_all(options.dialogues)
    controls = pairs.read_controls(options.controls, dialogues) if options.controls else []
    counts = {name: getattr(options, name) for name in ("annotators", "pairs_each", "seed")}
    design = pairs.make_design(dialogues, questions, controls=controls, compare=options.compare, **counts)
    name = options.name or options.output.resolve().name
    export_pairs(options.output, design, name=name, ties=options.ties, seed=options.seed)
    shared = {task.pair.id: task.pair for task in design.tasks if not task.pair.answer}.values()
    print(
        f"{options.output}: {len(design.tasks)} tasks of {options.annotators * len(questions)} annotators, "
        f"{sum(task.pair.answer is not None for task in design.tasks)} of them controls; {len(shared)} pairs of "
        f"{len({one.key for pair in shared for one in (pair.first, pair.second)})} dialogues"
    )
    if not controls:
        print("no controls: careless annotators will not be noticed (--controls)")
    for note in design.notes:
        print(note)


def _import(options: Namespace) -> None:
    from comperdial import schema
    from comperdial.challenge.label_studio import read_ratings, read_votes

    output = options.output
    if options.level != "pair":
        if options.need_reasons:
            raise ConfigError("given with another level", where="--need-reasons", expected="--level pair")
        ratings = read_ratings(options.answers, options.key, options.level)
        schema.write(output, ratings, "ratings")
        return print(f"{output}: {len(ratings)} records of {ratings['dimension'].nunique()} dimensions")
    votes = read_votes(options.answers, options.key, need_reasons=options.need_reasons)
    schema.write(output, votes.kept, "preferences")
    for note in votes.notes:
        print(note)
    counts = [f"{len(frame)} votes of {frame['annotator_id'].nunique()}" for frame in (votes.kept, votes.removed)]
    print(f"{output}: {counts[0]} annotators, {votes.kept['control'].notna().sum()} of them on controls")
    if len(votes.removed):
        path = output.with_name(f"{output.stem}_removed{output.suffix}")
        write_table(path, votes.removed)
        print(f"{path}: {counts[1]} removed annotators")
