"""Commands for building a benchmark: personas, agents, submissions, simulated ratings, file formats, annotation tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from comperdial.cli import options as o
from comperdial.core.errors import ConfigError
from comperdial.core.names import RATED_LEVELS

challenge = o.group("Run agents of CPD Task 1, and read submissions.", "challenge")
annotate = o.group("Collect human ratings of responses and dialogues, or comparisons of dialogues.", "annotate")

_Dialogues = Annotated[Path, Argument(help="A file in the format of ComperDial_data.json.")]
_Tables = Annotated[Path, Argument(help="A folder of tables.")]
_Folder = Annotated[Path, o.written("Output folder.", o.output_folder)]
_Agent = Annotated[str, o.option("FILE[:CLASS]", "A Python file with a class, by default UserAgent.")]
_Arguments = Annotated[dict | None, o.a_json("Arguments of the agent's class.")]
_Name = Annotated[str, Option(help="Name of the data set.")]


def _submission(text: str) -> Path:
    from comperdial.challenge.submissions import NAME

    output = o.output_file(text)
    if output.suffix != ".jsonl" or not NAME.fullmatch(output.stem):
        expected = "a name of letters, digits, dots, - and _ that ends in .jsonl and names the system"
        raise ConfigError(f"the name {output.name!r}", where="--output", expected=expected)
    return output


_System = Annotated[Path, o.written("A .jsonl file named after the system.", _submission)]


@o.command()
def personas(
    graph: Annotated[Path, Argument(help="PeaCoK's peacok_kg.json.")],
    count: Annotated[int, Option(min=1, help="Number of personas.")],
    seed: o.Seed,
    output: Annotated[Path, o.written("A .json file.", o.output_file)],
    constraints: Annotated[Path, o.option("FOLDER", "Lists of names, ages and more.")] = Path("data/personas"),
    default_ages: Annotated[tuple[int, int], Option(min=0, metavar="FROM TO", help="Ages of other heads.")] = (20, 50),
) -> None:  # fmt: skip
    """Draw personas from a PeaCoK knowledge graph."""
    from comperdial.challenge import personas

    youngest, oldest = default_ages
    if youngest > oldest:
        raise ConfigError(f"ages {youngest} {oldest}", where="--default-ages", expected="the younger age first")
    limits = personas.read_constraints(constraints, default_ages=default_ages)
    personas.write_personas(personas.read_graph(graph), limits, output, count=count, seed=seed)


@o.command("run", of=challenge)
def run_agent(dialogues: _Dialogues, agent: _Agent, output: _System, options: _Arguments = None) -> None:
    """Run an agent on dialogues, with gold history."""
    from comperdial.challenge import agents, submissions
    from comperdial.challenge.dialogues import read_dialogues

    given = read_dialogues(dialogues)
    responses = agents.run_agent(agents.load(agent, options), given)
    submissions.write_submission(output, responses)
    print(f"{output}: {len(responses)} responses")


@o.command(of=challenge)
def self_chat(
    agent: _Agent,
    openings: Annotated[Path, o.option("FILE", "Dialogues that provide personas and first lines.")],
    turns: Annotated[int, Option(min=1, help="Turns per speaker.")],
    output: _System,
    dialogues: Annotated[int | None, Option(min=1, help="Number of dialogues; default: one per opening.")] = None,
    options: _Arguments = None,
) -> None:
    """Let an agent talk to itself."""
    from comperdial.challenge import agents, pairs
    from comperdial.challenge.dialogues import read_dialogues

    there = read_dialogues(openings)
    if (dialogues or 0) > len(there):
        # Most agents always give the same answers to the same opening.
        expected = f"at most {len(there)}, one per opening in {openings}"
        raise ConfigError(f"{dialogues} dialogues", where="--dialogues", expected=expected)
    chats = agents.self_chat(agents.load(agent, options), output.stem, there[:dialogues], turns)
    pairs.write_dialogues(output, chats)
    print(f"{output}: {len(chats)} self-chats")


@o.command("tables", of=challenge)
def read_challenge(
    dialogues: _Dialogues,
    submissions: Annotated[list[Path], o.option("FILE", ".jsonl files, or folders of them.")],
    name: _Name,
    output: _Folder,
) -> None:
    """Convert dialogues and submissions to tables."""
    from comperdial.challenge.submissions import read_challenge

    for system, problem in read_challenge(name, dialogues, submissions, output).items():
        print(f"{system}: left out: {problem}")


@o.command("ratings", of=challenge)
def add_ratings(
    folder: _Tables,
    turn: Annotated[o.File, o.option("FILE", "Ratings of responses: table `ratings`, or a short file.")] = None,
    dialogue: Annotated[o.File, o.option("FILE", "Ratings of dialogues, in the same formats.")] = None,
) -> None:
    """Validate ratings against a challenge's tables, and add them."""
    from comperdial.evaluation import aggregate

    aggregate.add_ratings(folder, turn=turn, dialogue=dialogue)


@o.command()
def simulate(
    folder: Annotated[Path, Argument(help="Folder with contexts and responses; ratings are written to it.")],
    raters: Annotated[Path, o.option("FILE", "A YAML file like data/demo/raters.yaml.")],
    seed: o.Seed,
) -> None:
    """Rate a folder of tables with SIMULATED raters, and store their truth."""
    from comperdial.challenge import simulation

    simulation.rate_tables(folder, raters, seed=seed)


@o.command()
def export(
    folder: _Tables,
    output: _Folder,
    note: Annotated[str, Option(help="Warning to readers of the files.")] = "",
) -> None:
    """Write a folder of tables in ComperDial's published format."""
    from comperdial import schema
    from comperdial.data import export

    names = ("systems", "contexts", "personas", "responses")
    tables = {name: schema.read(folder / f"{name}.parquet", name) for name in names}
    export.export({**tables, "ratings": schema.ratings_in(folder)}, output, note=note)


@o.command("import")
def read_published(
    folder: Annotated[Path, Argument(help="Folder with the published files.")],
    name: _Name,
    output: _Folder,
    columns: o.Columns = None,
) -> None:
    """Read a folder in ComperDial's published format into tables."""
    from comperdial import schema
    from comperdial.data import export, readers

    maps = {"columns": columns or export.COLUMNS}
    for table, frame in readers.read("comperdial", name, export.published_files(folder), maps).items():
        schema.write(output / f"{table}.parquet", frame, table)


@o.command("export", of=annotate)
def export_tasks(
    folder: Annotated[Path, Argument(help="Folder with systems, contexts, responses, personas as Parquet.")],
    output: _Folder,
    level: Annotated[o.Names, o.one_or_more(RATED_LEVELS, "Levels to rate; default: both.")] = None,
    systems: Annotated[o.Names, o.option("SYSTEM", "Systems to rate; default: all except references.")] = None,
    sample: Annotated[int | None, Option(min=1, help="Number of dialogues to draw; default: all.")] = None,
    seed: o.Seed = 0,
) -> None:
    """Convert a folder of tables to Label Studio projects."""
    from comperdial.challenge.label_studio import export_ratings

    levels = level or RATED_LEVELS
    counts = export_ratings(folder, output, levels=levels, systems=systems, sample=sample, seed=seed)
    for name, count in counts.items():
        print(f"{output / name}: {count} tasks")


@o.command("pairs", of=annotate)
def export_pairs(
    dialogues: Annotated[list[Path], Argument(help="Files of dialogues, JSON Lines.")],
    pairs_each: Annotated[int, Option(min=1, help="Pairs per annotator, without controls.")],
    annotators: Annotated[int, Option(min=1, help="Annotators per question.")],
    output: _Folder,
    question: Annotated[o.Names, o.option("NAME", "Questions; default: overall.")] = None,
    controls: Annotated[o.File, o.option("FILE", "A CSV of pairs with a known answer.")] = None,
    compare: Annotated[
        o.Names, o.option("SYSTEM SYSTEM", "Two systems, repeatable; default: all pairs.")
    ] = None,
    questions: Annotated[o.File, o.option("FILE", "Your own bank of questions; default: the built-in one.")] = None,
    ties: Annotated[bool, Option("--ties", help='Allow "no difference".')] = False,
    name: Annotated[o.Name, Option(help="Name of the data set; default: the output folder's.")] = None,
    seed: o.Seed = 0,
) -> None:  # fmt: skip
    """Assign pairs of dialogues to annotators, as Label Studio projects."""
    from comperdial.challenge import label_studio, pairs

    if len(compare or ()) % 2:
        raise ConfigError(f"{' '.join(compare or ())}", where="--compare", expected="an even number of systems")
    chosen = pairs.chosen(pairs.read_questions(questions), question or ["overall"])
    there = pairs.read_all(dialogues)
    known = pairs.read_controls(controls, there) if controls else []
    design = pairs.make_design(
        there, chosen, controls=known, compare=[*zip(*[iter(compare or ())] * 2, strict=True)],
        annotators=annotators, pairs_each=pairs_each, seed=seed,
    )  # fmt: skip
    label_studio.export_pairs(output, design, name=name or output.resolve().name, ties=ties, seed=seed)
    shared = {task.pair.id: task.pair for task in design.tasks if not task.pair.answer}.values()
    print(
        f"{output}: {len(design.tasks)} tasks of {annotators * len(chosen)} annotators, "
        f"{sum(task.pair.answer is not None for task in design.tasks)} of them controls; {len(shared)} pairs of "
        f"{len({one.key for pair in shared for one in (pair.first, pair.second)})} dialogues"
    )
    if not known:
        print("no controls: careless annotators will not be noticed (--controls)")
    for note in design.notes:
        print(note)


@o.command("import", of=annotate)
def import_answers(
    answers: Annotated[list[Path], Argument(help="Label Studio's exports, JSON.")],
    key: Annotated[Path, o.option("FILE", "The key.csv written with the tasks.")],
    level: Annotated[Literal["turn", "dialogue", "pair"], Option(help="Level of the answers.")],
    output: Annotated[Path, o.written("A .parquet, .csv or .jsonl file.")],
    need_reasons: Annotated[
        bool, Option("--need-reasons", help="For pairs: exclude annotators who never gave a reason.")
    ] = False,
) -> None:
    """Convert annotators' answers to a table of ratings or preferences."""
    from comperdial import schema
    from comperdial.challenge.label_studio import read_ratings, read_votes
    from comperdial.core.files import write_table

    if level != "pair":
        if need_reasons:
            raise ConfigError("given with another level", where="--need-reasons", expected="--level pair")
        ratings = read_ratings(answers, key, level)
        schema.write(output, ratings, "ratings")
        return print(f"{output}: {len(ratings)} records of {ratings['dimension'].nunique()} dimensions")
    votes = read_votes(answers, key, need_reasons=need_reasons)
    schema.write(output, votes.kept, "preferences")
    for note in votes.notes:
        print(note)
    counts = [f"{len(frame)} votes of {frame['annotator_id'].nunique()}" for frame in (votes.kept, votes.removed)]
    print(f"{output}: {counts[0]} annotators, {votes.kept['control'].notna().sum()} of them on controls")
    if len(votes.removed):
        path = output.with_name(f"{output.stem}_removed{output.suffix}")
        write_table(path, votes.removed)
        print(f"{path}: {counts[1]} removed annotators")
