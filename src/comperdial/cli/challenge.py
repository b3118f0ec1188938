"""Commands that make a benchmark: personas, agents, submissions, simulated ratings, ComperDial's form."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from comperdial.cli.common import Add, Commands, add_command, json_object, output_file, output_folder, whole
from comperdial.core.errors import ConfigError

_DIALOGUES: Any = {"type": Path, "help": "a file in ComperDial_data.json's form"}


def add_commands(commands: Commands) -> None:
    """Add this module's commands."""
    add = add_command(commands, "personas", _personas, "draw personas from a PeaCoK knowledge graph").add_argument
    add("graph", type=Path, help="PeaCoK's peacok_kg.json")
    add("--constraints", type=Path, default=Path("data/personas"), help="default: data/personas")
    add("--count", type=whole(1), required=True)
    add("--seed", type=whole(0), required=True)
    add("--default-ages", type=whole(0), nargs=2, default=[20, 50], metavar=("FROM", "TO"))
    add("--output", type=output_file, required=True, help="a .json file")

    group = commands.add_parser("challenge", help="run agents of CPD Task 1, and read submissions")
    parts = group.add_subparsers(title="commands", metavar="COMMAND", required=True)

    add = add_command(parts, "run", _run, "run an agent on dialogues, with gold history").add_argument
    add("dialogues", **_DIALOGUES)
    _add_agent(add, "the submission: a .jsonl file named as the system")

    add = add_command(parts, "self-chat", _self_chat, "let an agent talk to itself").add_argument
    _add_agent(add, "a .jsonl file of dialogues, named as the system")
    add("--openings", type=Path, required=True, help="dialogues, whose personas and first line count")
    add("--turns", type=whole(1), required=True, metavar="N", help="how often each of the two speaks")
    add("--dialogues", type=whole(1), metavar="M", help="how many; default: one for each opening")

    add = add_command(parts, "tables", _tables, "turn dialogues and submissions into tables").add_argument
    add("dialogues", **_DIALOGUES)
    add("--submissions", type=Path, nargs="+", required=True, help=".jsonl files, or folders of them")
    add("--name", required=True, help="the data set's name")
    add("--output", type=output_folder, required=True, help="a folder")

    about = "check ratings against a challenge's tables, and put them beside these"
    add = add_command(parts, "ratings", _ratings, about).add_argument
    add("folder", type=Path, help="the tables")
    add("--turn", type=Path, help="ratings of responses: table `ratings`, or a short file")
    add("--dialogue", type=Path, help="ratings of whole dialogues, likewise")

    about = "rate a folder of tables with SIMULATED raters, whose truth is kept"
    add = add_command(commands, "simulate", _simulate, about).add_argument
    add("folder", type=Path, help="holds contexts and responses; the ratings are written into it")
    add("--raters", type=Path, required=True, help="a YAML file as data/demo/raters.yaml")
    add("--seed", type=whole(0), required=True)

    add = add_command(
        commands, "export", _export, "write a folder of tables in ComperDial's published form"
    ).add_argument
    add("folder", type=Path)
    add("--output", type=output_folder, required=True, help="a folder")
    add("--note", default="", help="what readers of the files must know")

    about = "read a folder in ComperDial's published form into tables"
    add = add_command(commands, "import", _import, about).add_argument
    add("folder", type=Path)
    add("--name", required=True, help="the data set's name")
    add("--columns", type=json_object, metavar="JSON", help="column maps; default: those of `export`")
    add("--output", type=output_folder, required=True, help="a folder")


def _add_agent(add: Add, output: str) -> None:
    add("--agent", required=True, metavar="FILE[:CLASS]", help="a Python file with a class, by default UserAgent")
    add("--options", type=json_object, metavar="JSON", help="arguments of the agent's class")
    add("--output", type=output_file, required=True, help=output)


def _personas(options: Namespace) -> None:
    from comperdial.challenge import personas

    youngest, oldest = options.default_ages
    if youngest > oldest:
        raise ConfigError(f"ages {youngest} {oldest}", where="--default-ages", expected="the younger age first")
    constraints = personas.read_constraints(options.constraints, default_ages=(youngest, oldest))
    graph = personas.read_graph(options.graph)
    personas.write_personas(graph, constraints, options.output, count=options.count, seed=options.seed)


def _system(output: Path) -> str:
    """Return the system's name, which the output has; a wrong one is refused before an agent runs for an hour."""
    from comperdial.challenge.submissions import NAME

    if output.suffix != ".jsonl" or not NAME.fullmatch(output.stem):
        expected = "letters, digits, dots, - and _, and .jsonl at the end: the file's name is the system's"
        raise ConfigError(f"the name {output.name!r}", where="--output", expected=expected)
    return output.stem


def _run(options: Namespace) -> None:
    from comperdial.challenge import agents, dialogues, submissions

    _system(options.output)
    given = dialogues.read_dialogues(options.dialogues)
    responses = agents.run_agent(agents.load(options.agent, options.options), given)
    submissions.write_submission(options.output, responses)
    print(f"{options.output}: {len(responses)} responses")


def _self_chat(options: Namespace) -> None:
    from comperdial.challenge import agents, dialogues, pairs

    system = _system(options.output)
    openings = dialogues.read_dialogues(options.openings)
    if (options.dialogues or 0) > len(openings):
        # Most agents always give the same answers to the same opening.
        expected = f"at most {len(openings)}, one for each opening of {options.openings}"
        raise ConfigError(f"{options.dialogues} dialogues", where="--dialogues", expected=expected)
    agent = agents.load(options.agent, options.options)
    chats = agents.self_chat(agent, system, openings[: options.dialogues], options.turns)
    pairs.write_dialogues(options.output, chats)
    print(f"{options.output}: {len(chats)} self-chats")


def _tables(options: Namespace) -> None:
    from comperdial.challenge.submissions import read_challenge

    failed = read_challenge(options.name, options.dialogues, options.submissions, options.output)
    for system, problem in failed.items():
        print(f"{system}: left out: {problem}")


def _ratings(options: Namespace) -> None:
    from comperdial.evaluation import aggregate

    aggregate.add_ratings(options.folder, turn=options.turn, dialogue=options.dialogue)


def _simulate(options: Namespace) -> None:
    from comperdial.challenge import simulation

    simulation.rate_tables(options.folder, options.raters, seed=options.seed)


def _export(options: Namespace) -> None:
    from comperdial import schema
    from comperdial.data import export

    names = ("systems", "contexts", "personas", "responses")
    tables = {name: schema.read(options.folder / f"{name}.parquet", name) for name in names}
    export.export({**tables, "ratings": schema.ratings_in(options.folder)}, options.output, note=options.note)


def _import(options: Namespace) -> None:
    from comperdial import schema
    from comperdial.data import export, readers

    files = export.published_files(options.folder)
    columns = {"columns": options.columns or export.COLUMNS}
    for name, frame in readers.read("comperdial", options.name, files, columns).items():
        schema.write(options.output / f"{name}.parquet", frame, name)
