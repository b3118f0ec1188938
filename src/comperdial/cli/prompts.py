"""Commands about the judges' prompts: list, show, import the paper's."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

_PAPER = Path("data/prompts/paper")


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    group = commands.add_parser("prompts", help="list and show the judges' prompts, import the paper's own")
    group.set_defaults(run=_list, folder=_PAPER)
    parts = group.add_subparsers(title="commands", metavar="COMMAND")

    command = parts.add_parser("list", help="list the prompts with hash, level and placeholders (the default)")
    _add_folder(command)
    command.set_defaults(run=_list)

    command = parts.add_parser("show", help="print a prompt's template")
    command.add_argument("name", metavar="NAME", help="a prompt's name, or the path of a template of your own")
    command.add_argument("--source", default="ours", help="`ours` (the default) or `paper`")
    command.add_argument("--explain", action="store_true", help="with the block that asks for a rationale")
    command.add_argument("--question", help="what a prompt with a place for a question asks: a name or a text")
    _add_folder(command)
    command.set_defaults(run=_show)

    command = parts.add_parser("import", help="take prompts, or questions, of appendix B from a paper's text or HTML")
    command.add_argument(
        "paper", type=Path, metavar="PAPER", help="ComperDial's, or that of LLMs as dialogue evaluators: text or HTML"
    )
    command.add_argument("--output", type=Path, default=_PAPER, help=f"the folder to write; default: {_PAPER}")
    command.set_defaults(run=_import)


def _add_folder(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--folder", type=Path, default=_PAPER, help=f"where the paper's prompts were imported to; default: {_PAPER}"
    )


def _list(options: argparse.Namespace) -> None:
    from comperdial.judges import prompting, questions

    here = [name for name in prompting.NAMES if (options.folder / f"{name}.md").is_file()]
    for source, names in (("ours", prompting.names()), ("paper", here)):
        for name in names:
            prompt = prompting.load(name, source, folder=options.folder)
            fields = ", ".join(field for field in (*prompting.FIELDS, "question") if field in prompt.fields)
            print(f"{source:5}  {name:17}  {prompt.hash[:16]}  {prompt.level:8}  {fields}")
    asked = options.folder / questions.FILE
    for source, known in (("ours", questions.read()), ("paper", questions.read(asked) if asked.is_file() else {})):
        for level, texts in known.items():
            print(f"{source:5}  questions          {'':16}  {level:8}  {', '.join(texts)}")
    if not here:
        print("The papers' own: `comperdial prompts import PAPER`, with a paper's text or HTML.")


def _show(options: argparse.Namespace) -> None:
    from comperdial.judges import prompting

    prompt = prompting.load(
        options.name, options.source, folder=options.folder, explain=options.explain, question=options.question
    )
    print(prompt.template, end="" if prompt.template.endswith("\n") else "\n")


def _import(options: argparse.Namespace) -> None:
    from comperdial.judges.paper_prompts import import_paper, read_paper
    from comperdial.judges.paper_questions import holds_questions, import_questions
    from comperdial.judges.questions import FILE

    if holds_questions(read_paper(options.paper)):
        for level, texts in import_questions(options.paper, options.output).items():
            print(f"{options.output / FILE}  {level}: {', '.join(texts)}")
        print("The prompts around the questions are pictures in this paper (figures 1 and 2): they stay ours.")
        return
    for name, prompt in import_paper(options.paper, options.output).items():
        print(f"{options.output / name}.md  {prompt.hash[:16]}")
