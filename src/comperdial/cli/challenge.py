"""Commands that make a benchmark: personas, agents, submissions, simulated ratings, ComperDial's form."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.cli.common import json_object, output_file, output_folder, seconds, whole
from comperdial.core.errors import ConfigError

if TYPE_CHECKING:
    from comperdial.challenge.agents import Limits

_LIMITS = {
    "batch": (whole(1), "conversations a call, at most 50"),
    "load_seconds": (seconds, "to construct the agent"),
    "run_seconds": (seconds, "for all turns of a batch"),
    "calls": (whole(0), "of the language model an utterance"),
    "input_tokens": (whole(0), "a dialogue"),
    "output_tokens": (whole(0), "a dialogue"),
}


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    command = commands.add_parser("personas", help="draw personas from a PeaCoK knowledge graph")
    command.add_argument("graph", type=Path, help="PeaCoK's peacok_kg.json")
    command.add_argument("--constraints", type=Path, default=Path("data/personas"), help="default: data/personas")
    command.add_argument("--count", type=whole(1), required=True)
    command.add_argument("--seed", type=whole(0), required=True)
    command.add_argument("--default-ages", type=whole(0), nargs=2, default=[20, 50], metavar=("FROM", "TO"))
    command.add_argument("--output", type=output_file, required=True, help="a .json file")
    command.set_defaults(run=_personas)

    group = commands.add_parser("challenge", help="run agents of CPD Task 1, and read submissions")
    parts = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
    dialogues = "ComperDial_data.json's schema, or the challenge's test data"
    command = parts.add_parser("run", help="run an agent on dialogues, with gold history")
    command.add_argument("dialogues", type=Path, help=dialogues)
    _add_agent(command, "the submission: a .jsonl file named as the system")
    for name, (kind, about) in _LIMITS.items():
        command.add_argument(f"--{name.replace('_', '-')}", type=kind, help=f"limit: {about}; default: the challenge's")
    command.set_defaults(run=_run)
    command = parts.add_parser("self-chat", help="let an agent talk to itself, and count what goes wrong")
    _add_agent(command, "a .jsonl file of dialogues, named as the system")
    command.add_argument("--openings", type=Path, required=True, help="dialogues, whose personas and first line count")
    command.add_argument("--turns", type=whole(1), required=True, metavar="N", help="how often each of the two speaks")
    command.add_argument("--dialogues", type=whole(1), metavar="M", help="how many; default: one for each opening")
    command.add_argument("--training", type=Path, metavar="FILE", help="the agent's training text: count copies of it")
    command.set_defaults(run=_self_chat)
    command = parts.add_parser("tables", help="turn dialogues and submissions into tables")
    command.add_argument("dialogues", type=Path, help=dialogues)
    command.add_argument("--submissions", type=Path, nargs="+", required=True, help=".jsonl files, or folders of them")
    command.add_argument("--name", required=True, help="the data set's name")
    command.add_argument("--output", type=output_folder, required=True, help="a folder")
    command.set_defaults(run=_tables)
    command = parts.add_parser("ratings", help="check ratings against a challenge's tables, and put them beside these")
    command.add_argument("folder", type=Path, help="the tables")
    command.add_argument("--turn", type=Path, help="ratings of responses: table `ratings`, or a short file")
    command.add_argument("--dialogue", type=Path, help="ratings of whole dialogues, likewise")
    command.set_defaults(run=_ratings)

    command = commands.add_parser("simulate", help="rate a folder of tables with SIMULATED raters, whose truth is kept")
    command.add_argument("folder", type=Path, help="holds contexts and responses; the ratings are written into it")
    command.add_argument("--raters", type=Path, required=True, help="a YAML file as data/demo/raters.yaml")
    command.add_argument("--seed", type=whole(0), required=True)
    command.set_defaults(run=_simulate)

    command = commands.add_parser("export", help="write a folder of tables in ComperDial's published form")
    command.add_argument("folder", type=Path)
    command.add_argument("--output", type=output_folder, required=True, help="a folder")
    command.add_argument("--note", default="", help="what readers of the files must know")
    command.set_defaults(run=_export)

    command = commands.add_parser("import", help="read a folder in ComperDial's published form into tables")
    command.add_argument("folder", type=Path)
    command.add_argument("--name", required=True, help="the data set's name")
    command.add_argument("--columns", type=json_object, metavar="JSON", help="column maps; default: those of `export`")
    command.add_argument("--output", type=output_folder, required=True, help="a folder")
    command.set_defaults(run=_import)


def _add_agent(command: argparse.ArgumentParser, output: str) -> None:
    agent = "a Python file with a class, by default UserAgent"
    command.add_argument("--agent", required=True, metavar="FILE[:CLASS]", help=agent)
    command.add_argument("--options", type=json_object, metavar="JSON", help="arguments of the agent's class")
    command.add_argument("--api", metavar="FILE:CLASS", help="the language model of the API track: count and complete")
    command.add_argument("--output", type=output_file, required=True, help=output)


def _personas(options: argparse.Namespace) -> None:
    from comperdial.challenge.personas import read_constraints, read_graph, write_personas

    if options.default_ages[0] > options.default_ages[1]:
        ages = " ".join(map(str, options.default_ages))
        raise ConfigError(f"ages {ages}", where="--default-ages", expected="the younger age first")
    constraints = read_constraints(options.constraints, default_ages=tuple(options.default_ages))
    write_personas(read_graph(options.graph), constraints, options.output, count=options.count, seed=options.seed)


def _load(options: argparse.Namespace, limits: Limits) -> tuple[Any, Any]:
    """Return the agent, and the language model or None."""
    from comperdial.challenge.agents import load

    model = load(options.api) if options.api else None
    return load(options.agent, options.options, seconds=limits.load_seconds), model


def _system(output: Path) -> str:
    from comperdial.challenge.submissions import NAME

    # Before an agent runs for an hour, and not after.
    if output.suffix != ".jsonl" or not NAME.fullmatch(output.stem):
        expected = "letters, digits, dots, - and _, and .jsonl at the end: the file's name is the system's"
        raise ConfigError(f"the name {output.name!r}", where="--output", expected=expected)
    return output.stem


def _run(options: argparse.Namespace) -> None:
    from comperdial.challenge.agents import Limits, run_agent
    from comperdial.challenge.dialogues import read_dialogues
    from comperdial.challenge.submissions import write_submission

    _system(options.output)
    limits = Limits(**{name: value for name in _LIMITS if (value := getattr(options, name)) is not None})
    if limits.batch > Limits().batch:
        raise ConfigError(f"a batch of {limits.batch}", where="--batch", expected=f"1 to {Limits().batch}")
    dialogues = read_dialogues(options.dialogues)
    agent, model = _load(options, limits)
    responses = run_agent(agent, dialogues, limits=limits, model=model)
    write_submission(options.output, responses)
    print(f"{options.output}: {len(responses)} responses")


def _self_chat(options: argparse.Namespace) -> None:
    from comperdial.challenge.agents import Limits, faults, read_training, self_chat
    from comperdial.challenge.dialogues import read_dialogues
    from comperdial.challenge.pairs import write_dialogues

    system = _system(options.output)
    openings = read_dialogues(options.openings)
    if (options.dialogues or 0) > len(openings):
        # Most agents always give the same answers to the same opening.
        expected = f"at most {len(openings)}, one for each opening of {options.openings}"
        raise ConfigError(f"{options.dialogues} dialogues", where="--dialogues", expected=expected)
    training = read_training(options.training) if options.training else None
    agent, model = _load(options, Limits())
    chats = self_chat(agent, system, openings[: options.dialogues], options.turns, model=model)
    write_dialogues(options.output, chats)
    print(faults(chats, training).report(system))


def _tables(options: argparse.Namespace) -> None:
    from comperdial.challenge.submissions import read_challenge

    failed = read_challenge(options.name, options.dialogues, options.submissions, options.output)
    for system, problem in failed.items():
        print(f"{system}: left out: {problem}")


def _ratings(options: argparse.Namespace) -> None:
    from comperdial.evaluation import aggregate

    aggregate.add_ratings(options.folder, turn=options.turn, dialogue=options.dialogue)


def _simulate(options: argparse.Namespace) -> None:
    from comperdial.challenge import simulation

    simulation.rate_tables(options.folder, options.raters, seed=options.seed)


def _export(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.data import export

    names = ("systems", "contexts", "personas", "responses")
    tables = {name: schema.read(options.folder / f"{name}.parquet", name) for name in names}
    export.export({**tables, "ratings": schema.ratings_in(options.folder)}, options.output, note=options.note)


def _import(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.data import export, readers

    files = export.published_files(options.folder)
    columns = options.columns or export.COLUMNS
    for name, frame in readers.read("comperdial", options.name, files, {"columns": columns}).items():
        schema.write(options.output / f"{name}.parquet", frame, name)
