"""Commands about the judges' prompts: list and show."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    group = commands.add_parser("prompts", help="list, check and show the judges' prompts, ours or a folder's")
    group.set_defaults(run=_list, prompts="ours")
    parts = group.add_subparsers(title="commands", metavar="COMMAND")

    command = parts.add_parser("list", help="list the prompts with hash, level and placeholders (the default)")
    _add_prompts(command)
    command.set_defaults(run=_list)

    command = parts.add_parser("show", help="print a prompt's template")
    command.add_argument("name", metavar="NAME", help="a prompt's name, or the path of a template of your own")
    _add_prompts(command)
    command.add_argument("--explain", action="store_true", help="with the block that asks for a rationale")
    command.add_argument("--question", help="what a prompt with a place for a question asks: a name or a text")
    command.set_defaults(run=_show)


def _add_prompts(command: argparse.ArgumentParser) -> None:
    help_text = "`ours` (the default), or a folder with a paper's prompts, which are checked"
    command.add_argument("--prompts", default="ours", metavar="FOLDER", help=help_text)


def _list(options: argparse.Namespace) -> None:
    from comperdial.judges import prompting

    names: tuple[str, ...] = (*prompting.NAMES, *prompting.STUDY)
    asked = True
    if options.prompts != prompting.OURS:
        folder = Path(options.prompts)
        names = tuple(name for name in prompting.NAMES if (folder / f"{name}.md").is_file())
        asked = (folder / prompting.QUESTIONS).is_file()
        if absent := [name for name in prompting.NAMES if name not in names]:
            print(f"not in {folder}: {', '.join(absent)}")
    for name in names:
        prompt = prompting.load(name, options.prompts)
        fields = ", ".join(field for field in (*prompting.FIELDS, "question") if field in prompt.fields)
        print(f"{name:17}  {prompt.hash[:16]}  {prompt.level:8}  {fields}")
    for level, texts in prompting.questions(options.prompts).items() if asked else ():
        print(f"{'questions':17}  {'':16}  {level:8}  {', '.join(texts)}")


def _show(options: argparse.Namespace) -> None:
    from comperdial.judges import prompting

    prompt = prompting.load(options.name, options.prompts, explain=options.explain, question=options.question)
    print(prompt.template, end="" if prompt.template.endswith("\n") else "\n")
