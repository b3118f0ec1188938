"""Commands that make a benchmark: personas, agents, submissions, simulated ratings, ComperDial's form."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from comperdial.cli.common import json_object, output_file, output_folder, seconds, whole
from comperdial.core.errors import ConfigError


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    command = commands.add_parser("personas", help="draw personas from a PeaCoK knowledge graph")
    command.add_argument("graph", type=Path, help="peacok_kg.json in either layout, or head<TAB>relation<TAB>tail")
    command.add_argument("--constraints", type=Path, default=Path("data/personas"), help="default: data/personas")
    command.add_argument("--count", type=whole(1), required=True)
    command.add_argument("--seed", type=whole(0), required=True)
    command.add_argument("--default-ages", type=whole(0), nargs=2, default=[20, 50], metavar=("FROM", "TO"))
    command.add_argument("--output", type=output_file, required=True, help="a .json file")
    command.set_defaults(run=_personas)

    group = commands.add_parser("challenge", help="run agents of CPD Task 1, and read submissions")
    parts = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_run(parts)
    _add_self_chat(parts)
    command = parts.add_parser("tables", help="turn dialogues and submissions into tables")
    command.add_argument("dialogues", type=Path, help="ComperDial_data.json's schema, or the challenge's test data")
    command.add_argument("--submissions", type=Path, nargs="+", required=True, help=".jsonl files, or folders of them")
    command.add_argument("--roster", type=Path, help="whose track and descriptions to take")
    command.add_argument("--runs", type=Path, help="the report of `challenge run`, whose failures are reported again")
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
    command.add_argument("--roster", type=Path, help="whose skills to take")
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


def _add_run(parts: Any) -> None:  # noqa: ANN401
    command = parts.add_parser("run", help="run one agent or a roster of agents on dialogues, with gold history")
    command.add_argument("dialogues", type=Path, help="ComperDial_data.json's schema, or the challenge's test data")
    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument("--agent", metavar="FILE[:CLASS]", help="a Python file with a class, by default UserAgent")
    which.add_argument("--roster", type=Path, help="a YAML file that lists agents")
    command.add_argument(
        "--options", type=json_object, default={}, metavar="JSON", help="arguments of the agent's class"
    )
    command.add_argument("--api", metavar="FILE:CLASS", help="the language model of the API track: count and complete")
    command.add_argument(
        "--output", type=output_file, required=True, help="the submission: a .jsonl file named as the system"
    )
    command.add_argument("--report", type=output_file, help="a .json file: what came of each agent")
    command.add_argument(
        "--ledger",
        type=Path,
        default=Path("data/ledger"),
        help="where the answers of a roster's service are kept, to be asked for once; default: data/ledger",
    )
    command.add_argument("--jobs", type=whole(1), default=1, help="agents at a time (default: 1)")
    for name, kind, about in (
        ("batch", whole(1), "conversations a call (at most 50)"),
        ("load-seconds", seconds, "to construct the agent"),
        ("run-seconds", seconds, "for all turns of a batch"),
        ("calls", whole(0), "of the language model an utterance"),
        ("input-tokens", whole(0), "a dialogue"),
        ("output-tokens", whole(0), "a dialogue"),
    ):
        command.add_argument(f"--{name}", type=kind, help=f"limit: {about}; default: the challenge's")
    command.set_defaults(run=_run)


def _add_self_chat(parts: Any) -> None:  # noqa: ANN401
    command = parts.add_parser("self-chat", help="let agents of a roster talk to themselves, and count what goes wrong")
    command.add_argument("roster", type=Path, metavar="AGENTS", help="a YAML file that lists agents")
    command.add_argument("--agents", nargs="+", metavar="ID", help="which of them; default: all")
    command.add_argument(
        "--openings", type=Path, required=True, help="dialogues (as for `run`), whose personas and first line are taken"
    )
    command.add_argument("--turns", type=whole(1), required=True, metavar="N", help="how often each of the two speaks")
    command.add_argument(
        "--dialogues", type=whole(1), metavar="M", help="for each agent; default: one for each opening"
    )
    command.add_argument(
        "--training", type=Path, metavar="FILE", help="what the agents learned from: count copies of it"
    )
    command.add_argument("--output", type=output_file, required=True, help="a .jsonl file of dialogues")
    command.add_argument("--ledger", type=Path, default=Path("data/ledger"), help="as for `run`; default: data/ledger")
    command.set_defaults(run=_self_chat)


def _personas(options: argparse.Namespace) -> None:
    from comperdial.challenge import personas

    if options.default_ages[0] > options.default_ages[1]:
        ages = " ".join(map(str, options.default_ages))
        raise ConfigError(f"ages {ages}", where="--default-ages", expected="the younger age first")
    constraints = personas.read_constraints(options.constraints, default_ages=tuple(options.default_ages))
    drawn = personas.generate(personas.read_graph(options.graph), constraints, count=options.count, seed=options.seed)
    personas.write_personas(drawn, options.output)


def _run(options: argparse.Namespace) -> int:
    from comperdial.challenge.api import closing
    from comperdial.challenge.dialogues import read_dialogues
    from comperdial.challenge.limits import Limits
    from comperdial.challenge.roster import read_roster
    from comperdial.challenge.runner import run_agent, run_roster, write_runs
    from comperdial.challenge.submissions import is_name

    names = ("batch", "load_seconds", "run_seconds", "calls", "input_tokens", "output_tokens")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    limits = Limits(**given)
    if limits.batch > Limits.batch:
        raise ConfigError(f"a batch of {limits.batch}", where="--batch", expected=f"1 to {Limits.batch}")
    # Before agents run for an hour, and not after.
    if options.output.suffix != ".jsonl" or not is_name(options.output.stem):
        raise ConfigError(
            f"the name {options.output.name!r}",
            where="--output",
            expected="letters, digits, dots, - and _, and .jsonl at the end: the file's name is the system's",
        )
    if options.roster and options.options:
        raise ConfigError("given with --roster", where="--options", expected="options of agents in the roster itself")
    dialogues = read_dialogues(options.dialogues)
    api = _load_api(options.api) if options.api else None
    model = None
    if options.roster:
        roster = read_roster(options.roster, None if api else partial(_make_api, ledger=options.ledger))
        model = roster.model
        runs = run_roster(roster.agents, dialogues, limits=limits, api=api or roster.api, jobs=options.jobs)
    else:
        spec = _class(options.agent) | {"options": options.options}
        runs = iter([run_agent(options.output.stem, spec, dialogues, limits=limits, api=api, show=True)])
    with closing(model):
        reports = write_runs(runs, options.output, options.report, named=bool(options.roster))
    return int(all(report["problem"] is not None for report in reports))


def _self_chat(options: argparse.Namespace) -> int:
    from tqdm import tqdm

    from comperdial.challenge.api import closing
    from comperdial.challenge.dialogues import read_dialogues
    from comperdial.challenge.pairs.dialogues import write_dialogues
    from comperdial.challenge.roster import read_roster
    from comperdial.challenge.self_chat import faults, read_training, report, self_chat
    from comperdial.core.errors import UnknownNameError

    if options.output.suffix != ".jsonl":
        raise ConfigError(f"the name {options.output.name!r}", where="--output", expected="a .jsonl file")
    openings = read_dialogues(options.openings)
    count = options.dialogues or len(openings)
    if count > len(openings):
        raise ConfigError(
            f"{count} dialogues",
            where="--dialogues",
            expected=f"at most {len(openings)}, one for each opening of {options.openings}: most agents always say the "
            "same to the same opening",
        )
    training = read_training(options.training) if options.training else None
    roster = read_roster(options.roster, partial(_make_api, ledger=options.ledger))
    entries = {entry["id"]: entry for entry in roster.agents}
    for name in options.agents or ():
        if name not in entries:
            raise UnknownNameError("agent", name, entries, where=str(options.roster))
    chosen = [entries[name] for name in dict.fromkeys(options.agents or entries)]
    with closing(roster.model):
        found = [
            self_chat(entry, openings[:count], options.turns, api=roster.api)
            for entry in tqdm(chosen, desc="agents", disable=None)
        ]
    whole_chats = [chat for chat in found if chat.problem is None]
    write_dialogues(options.output, (dialogue for chat in whole_chats for dialogue in chat.dialogues))
    for line in report((chat.system_id, faults(chat.dialogues, training)) for chat in whole_chats):
        print(line)
    for chat in found:
        if chat.problem is not None:
            print(f"{chat.system_id}: no self-chats: {chat.problem}")
    print(
        f"{options.output}: {sum(len(chat.dialogues) for chat in whole_chats)} self-chats of {len(whole_chats)} agents"
    )
    return int(not whole_chats)


def _class(text: str) -> dict[str, Any]:
    file, _, name = text.partition(":")
    return {"file": file, "class": name or None}


def _make_api(options: Mapping[str, Any], where: str, *, ledger: Path) -> Any:  # noqa: ANN401 - a judges' class
    from comperdial.judges.chat_api import make_api

    return make_api(options, where, ledger=ledger)


def _load_api(text: str) -> Any:  # noqa: ANN401 - any class of a user's
    from comperdial.challenge.worker import load

    try:
        api = load(_class(text))
    except ConfigError:
        raise
    # A user's file may raise anything.
    except Exception as error:
        raise ConfigError(
            f"it raised {type(error).__name__}: {error}", where=f"--api {text}", expected="FILE:CLASS of a model"
        ) from error
    if missing := [name for name in ("count", "complete") if not callable(getattr(api, name, None))]:
        raise ConfigError(
            f"no method {missing[0]}", where=f"--api {text}", expected="count(messages), complete(messages, max_tokens)"
        )
    return api


def _tables(options: argparse.Namespace) -> None:
    from comperdial.challenge import build

    failed = build.build(
        options.name, options.dialogues, options.submissions, options.output, roster=options.roster, runs=options.runs
    )
    for system, problem in failed.items():
        print(f"{system}: left out: {problem}")


def _ratings(options: argparse.Namespace) -> None:
    from comperdial.evaluation import aggregate

    aggregate.add_ratings(options.folder, turn=options.turn, dialogue=options.dialogue)


def _simulate(options: argparse.Namespace) -> None:
    from comperdial.challenge import simulation

    simulation.rate_tables(options.folder, options.raters, options.roster, seed=options.seed)


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
