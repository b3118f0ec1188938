"""The arguments of commands of judges: what they would cost, asking them, what they answered, and their prompts."""

from __future__ import annotations

import argparse
import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

from comperdial.cli import common
from comperdial.cli.common import READ, WRITE, Add, Commands, add_command

_DATA: Any = {"type": Path, "help": "a data set's folder of tables"}
_PARAMS: Any = {"type": Path, "help": "default: params.yaml, or the repository's if there is none"}
_ANSWERS = "where answers are: an SQLite file or its folder; default: "


def add_commands(commands: Commands) -> None:
    """Add this module's commands."""
    about = "have responses and dialogues rated by a language model (or by rules)"
    judge = commands.add_parser("judge", help=about).add_subparsers(title="what", metavar="WHAT", required=True)
    for add_some in (_add_tasks, _add_files, _add_answers):
        add_some(judge)
    _add_prompts(commands)


def _add_tasks(commands: Commands) -> None:
    """Add what is done with the tasks of data sets."""
    _add_chosen(commands, "plan", "what can run here: calls, tokens and money of what has no answer yet; asks nothing")
    add = _add_chosen(commands, "run", "ask for what has no answer yet, within the budget; with --output, write scores")
    _add_asking(add)
    add("--output", **WRITE, help="table `scores` of one data set and metric")
    add("--judgements", **WRITE, help="table `judgements`: how each score came about")


def _add_chosen(commands: Commands, name: str, about: str) -> Add:
    """Add a command about data sets, judges and variants that it chooses."""
    add = add_command(commands, name, f"judging:{name}_tasks", about).add_argument
    add("tables", type=Path, nargs="*", help="folders of tables; default: of params.yaml's data sets")
    add("--metric", nargs="+", help="VARIANT_JUDGE; default: all that judge a data set")
    add("--judges", nargs="+", help="default: those that params.yaml names for a data set")
    add("--params", **_PARAMS)
    add("--answers", type=Path, help=f"{_ANSWERS}as params.yaml has it")
    return add


def _add_asking(add: Add) -> None:
    """Add what may be spent, and what is asked again."""
    add("--budget", type=_from_zero, help="US dollars that all answers may cost; default: params.yaml's")
    add("--ask-again", action="store_true", help="ask again what was refused, or has no rating")


def _add_files(commands: Commands) -> None:
    """Add what is done with files of one's own, or with public preferences."""
    about = "have a file of responses rated, as `comperdial score` scores one"
    command = add_command(commands, "file", "judging:judge_file", about)
    add = command.add_argument
    add("file", type=Path, help="JSONL, CSV or Parquet with `response`, `history`, …")
    add("--variant", required=True, help="what is asked: a variant at turn level, such as cpds-d")
    _add_who(command)
    add("--output", **WRITE, required=True, help="the scores: a .jsonl, .csv or .parquet file")
    add("--judgements", **WRITE, help="how each score came about, with rationales: likewise")

    about = "have pairs of dialogues compared, each in both orders"
    command = add_command(commands, "preferences", "judging:judge_preferences", about)
    add = command.add_argument
    add("dialogues", type=Path, nargs="?", help="a file of dialogues (JSON Lines)")
    add("pairs", type=Path, nargs="?", help="CSV, JSONL or Parquet: pairs, or table `preferences`")
    add("--data", metavar="NAME", help="instead of files: public preferences of the catalogue, such as llmfao")
    add("--question", required=True, help="what is asked: in your own words, or the name of a question")
    _add_who(command)
    add("--output", **WRITE, required=True, help="table `preferences`: likewise")
    common.add_catalogue(command)


def _add_who(command: argparse.ArgumentParser) -> None:
    """Add who is asked, where answers are kept and what may be spent."""
    who = command.add_mutually_exclusive_group(required=True).add_argument
    who("--judge", help="who is asked: a judge of params.yaml")
    who("--model", help="who is asked: a model of the server at --base-url, as the server calls it")
    about = "a server of your own (vLLM, Ollama, llama.cpp, …), which needs no params.yaml"
    add = command.add_argument_group(about).add_argument
    add("--base-url", metavar="URL", help="where it listens: http://localhost:8000/v1")
    add("--name", help="what to call the judge in the output; default: made of the model's name")
    add("--key", metavar="NAME", help="the environment variable that holds the server's key")
    what = "whether it costs nothing; default: if it is on this machine"
    add("--free", action=argparse.BooleanOptionalAction, help=what)
    what = "sent with each request, such as temperature=0 or max_completion_tokens=4000; default: max_tokens=512"
    add("--parameter", type=_parameter, action="append", metavar="NAME=VALUE", help=what)
    add("--concurrency", type=common.whole(1), metavar="N", help="requests at a time; default: 16")
    add("--timeout", type=common.seconds, metavar="SECONDS", help="for one answer; default: 300")
    add = command.add_argument
    add("--params", **_PARAMS)
    add("--answers", type=Path, help=f"{_ANSWERS}as params.yaml has it")
    _add_asking(add)


def _add_answers(commands: Commands) -> None:
    """Add what is done with answers that are there."""
    command = add_command(commands, "import", "judging:take", "make tables of a judge's answers that others recorded")
    add = command.add_argument
    add("tables", **_DATA)
    add("--metric", required=True, help="an entry of `recorded_judges`")
    add("--output", **WRITE, required=True, help="table `scores`")
    add("--judgements", **WRITE, required=True, help="table `judgements`")
    what = "CSV: answers that can be read, and agreement"
    add("--coverage", type=common.output_file, metavar="FILE", required=True, help=what)
    add("--params", **READ, help="default: params.yaml")
    common.add_catalogue(command)

    answers: Any = {"type": Path, "default": Path("data/ledger"), "help": f"{_ANSWERS}data/ledger"}
    about = "write answers to a Parquet file without their prompts: for DVC"
    add = add_command(commands, "export-answers", "judging:export_answers", about).add_argument
    add("file", type=common.output_file)
    add("--texts", action="store_true", help="answers in words too, which may repeat a data set's texts")
    add("--dataset", help="about one data set; default: about all")
    add("--answers", **answers)

    about = "take over the answers of another file"
    add = add_command(commands, "import-answers", "judging:import_answers", about).add_argument
    add("file", type=Path, help="Parquet")
    add("--answers", **answers)


def _add_prompts(commands: Commands) -> None:
    group = add_command(commands, "prompts", "judging:list_prompts", "list and show the judges' prompts")
    parts = group.add_subparsers(title="commands", metavar="COMMAND")
    add_command(parts, "list", "judging:list_prompts", "list prompts with hash, level and placeholders (the default)")
    add = add_command(parts, "show", "judging:show_prompt", "print a prompt's template").add_argument
    add("name", metavar="NAME", help="a prompt's name, or the path of a template of your own")
    add("--explain", action="store_true", help="with the block that asks for a rationale")


def _from_zero(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (value := float(text)) < math.inf:
            return value
    raise argparse.ArgumentTypeError(f"{text!r}; expected a number from 0 up")


def _parameter(text: str) -> tuple[str, Any]:
    """Parse a name and a value; what is JSON is read as such, anything else is a text."""
    name, _, value = text.partition("=")
    if not name or not value:
        raise argparse.ArgumentTypeError(f"{text!r}; expected NAME=VALUE, such as max_completion_tokens=4000")
    with suppress(ValueError):
        return name, json.loads(value)
    return name, value
