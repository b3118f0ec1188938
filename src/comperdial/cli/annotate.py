"""Commands for ratings and choices by people: tasks out, answers in."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.cli.common import output_folder, output_table, whole
from comperdial.core.names import RATED_LEVELS

if TYPE_CHECKING:
    from comperdial.challenge.pairs.design import Design

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
        "answers", type=Path, nargs="+", metavar="ANSWERS", help="Label Studio's JSON or JSON-MIN, or a page's file"
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
    _add_design(command)
    command.set_defaults(run=_pairs)

    command = parts.add_parser("try-questions", help="ask all wordings of a question about one clear pair")
    command.add_argument("pair", type=Path, help="one pair with a known answer, in ParlAI's form")
    command.add_argument("--family", required=True, help="whose questions to try, such as engagingness")
    _add_design(command, annotators=20)
    command.set_defaults(run=_try_questions)

    command = parts.add_parser("best-question", help="say on which wording annotators agree most")
    command.add_argument("preferences", type=Path, help="table preferences")
    command.add_argument("--better", metavar="SYSTEM", help="known to be better; default: whom most chose")
    command.set_defaults(run=_best_question)

    command = parts.add_parser("simulate-votes", help="fill in a design's pages with SIMULATED annotators")
    command.add_argument("folder", type=Path, help="what `annotate pairs` wrote")
    command.add_argument("--roster", type=Path, required=True, help="whose skills are the truth")
    command.add_argument(
        "--sharpness", type=float, default=6.0, help="how much a difference in skill shows; default: 6"
    )
    command.add_argument(
        "--careless", type=float, default=0.0, help="share of annotators who choose by chance; default: 0"
    )
    command.add_argument("--seed", type=whole(0), default=0)
    command.set_defaults(run=_simulate_votes)


def _add_design(command: argparse.ArgumentParser, annotators: int | None = None) -> None:
    command.add_argument(
        "--annotators",
        type=whole(1),
        required=annotators is None,
        default=annotators,
        metavar="N",
        help="for each question" + (f"; default: {annotators}" if annotators else ""),
    )
    command.add_argument("--questions", type=Path, metavar="FILE", help="a bank of your own; default: ours")
    command.add_argument("--ties", action="store_true", help='"no difference" may be chosen')
    command.add_argument("--name", metavar="DATASET", help="the data set's name; default: the output folder's")
    command.add_argument("--output", type=output_folder, required=True, help="a folder")
    command.add_argument("--seed", type=whole(0), default=0, help="of everything that is drawn; default: 0")


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
    _write_design(design, options)
    if not material.controls:
        print("no controls: careless annotators will not be noticed (--controls)")
    for sentence in design.broken:
        print(sentence)


def _try_questions(options: argparse.Namespace) -> None:
    from comperdial.challenge.pairs.design import make_design
    from comperdial.challenge.pairs.questions import candidates, read_questions
    from comperdial.challenge.pairs.reading import Material, read_controls
    from comperdial.core.errors import SchemaError

    questions = candidates(read_questions(options.questions), options.family)
    pairs = read_controls(options.pair, {})
    if len(pairs) != 1:
        raise SchemaError(f"{len(pairs)} pairs", where=str(options.pair), expected="one, on which the answer is clear")
    pair = pairs[0]
    material = Material({dialogue.key: dialogue for dialogue in (pair.first, pair.second)}, pairs)
    design = make_design(material, questions, annotators=options.annotators, pairs_each=1, seed=options.seed)
    _write_design(design, options)
    better = pair.first if pair.answer == "first" else pair.second
    print(f"{len(questions)} wordings; known to be better: {better.system_id} (for `annotate best-question --better`)")


def _write_design(design: Design, options: argparse.Namespace) -> None:
    from comperdial.challenge.pairs.collection import write_collection
    from comperdial.report.document import number_of

    name = options.name or options.output.resolve().name
    write_collection(options.output, design, name=name, ties=options.ties, seed=options.seed)
    pairs = {task.pair.id for task in design.tasks if not task.is_control}
    controls = sum(task.is_control for task in design.tasks)
    print(
        f"{options.output}: {number_of(len(design.annotators()), 'annotator')}, "
        f"{number_of(len(design.tasks) - controls, 'task')} and {number_of(controls, 'control')}, "
        f"{number_of(len(pairs), 'pair')} of {number_of(len(design.dialogues()), 'dialogue')}"
    )


def _best_question(options: argparse.Namespace) -> None:
    from comperdial.challenge.pairs.preferences import read_preferences
    from comperdial.challenge.pairs.trying import difference, try_questions

    tried = try_questions(read_preferences(options.preferences), options.better)
    width = max(len(one.question) for one in tried)
    for one in tried:
        share = one.agreement
        print(f"{one.question:{width}}  {share.value:.1%} [{share.low:.1%}, {share.high:.1%}]  {one.hits} of {share.n}")
    if len(tried) > 1:
        p = difference(tried[0], tried[1])
        verdict = "significantly better" if p < 0.05 else "not significantly better"
        print(f"best: {tried[0].question}, {verdict} than {tried[1].question} (Fisher's exact test, p = {p:.3f})")


def _simulate_votes(options: argparse.Namespace) -> None:
    from comperdial.challenge.pairs.simulation import simulate_votes
    from comperdial.challenge.roster import read_roster

    written = simulate_votes(
        options.folder,
        read_roster(options.roster).skills,
        sharpness=options.sharpness,
        careless=options.careless,
        seed=options.seed,
    )
    print(f"{options.folder / 'answers'}: {len(written)} files of SIMULATED annotators")


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
    from comperdial.report.document import number_of

    votes = read_votes(options.answers, options.key, need_reasons=options.need_reasons)
    schema.write(options.output, votes.kept, "preferences")
    for sentence in votes.said:
        print(sentence)
    kept = votes.kept
    controls = int(kept["control"].notna().sum())
    print(
        f"{options.output}: {number_of(len(kept) - controls, 'vote')} and {number_of(controls, 'control')} of "
        f"{number_of(kept['annotator_id'].nunique(), 'annotator')}; "
        f"the first of a pair stood left in {(kept['left'] == 'first').mean():.0%}"
        if len(kept)
        else f"{options.output}: no votes"
    )
    if len(votes.removed):
        path = options.output.with_name(f"{options.output.stem}_removed{options.output.suffix}")
        write_table(path, votes.removed)
        removed = number_of(votes.removed["annotator_id"].nunique(), "removed annotator")
        print(f"{path}: {number_of(len(votes.removed), 'vote')} of {removed}")
