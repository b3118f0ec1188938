"""The judges' prompts: templates by name, from the paper or of the user's own, filled with text that is only data.

A template is jinja2 with the placeholders of :data:`FIELDS`. Whatever stands in a value stays within its line and its
section: see :func:`inline`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import jinja2
from jinja2 import meta, nodes

from comperdial.core.errors import ConfigError, MissingResourceError, UnknownNameError
from comperdial.core.files import read_text
from comperdial.judges import questions
from comperdial.judges._guard import NONE, escape, fact_lines, guarded, history_lines, inline
from comperdial.judges._templates import fill, parse

__all__ = [
    "FIELDS", "NAMES", "NONE", "PAPER", "SOURCES", "STUDY", "Prompt", "fact_lines", "history_lines", "inline", "load",
    "names", "render",
]  # fmt: skip

NAMES = (
    "original_simple",
    "original_detail",
    "cpds_simple_ref",
    "cpds_simple",
    "cpds_detail_ref",
    "cpds_detail",
    "cpds_dialogue",
)
"""CPDScore's prompts and the two that it varies (ComperDial, appendix B)."""
STUDY = ("explicit_turn", "explicit_dialogue", "implicit_turn", "implicit_dialogue")
"""Ratings asked for and questions answered with a label (Zhang et al. 2024, figures 1 and 2)."""
FIELDS = ("history", "response", "reference", "fact", "turn_scores", "responses", "dialogue")
SOURCES = ("ours", "paper")
PAPER = Path("data/prompts/paper")

_OURS = Path(__file__).parent / "prompts"
_QUESTION = "question"
_ASKED = re.compile(r"\{\{-?\s*question\s*-?\}\}")
_HEADERS = (re.compile("^#.*", re.MULTILINE), re.compile("^[A-Z].*:[ \t]*$", re.MULTILINE))


@dataclass(frozen=True)
class Prompt:
    """A template and where it is from.

    Attributes
    ----------
    name
        One of :func:`names`, or the file name of the user's own template without its suffix.
    template
        The text, with the block that asks for a rationale where one is wanted.
    source
        ``ours``, ``paper``, or the path of the user's own template; ``paper's question`` where the question alone is
        the paper's.
    """

    name: str
    template: str
    source: str

    @cached_property
    def hash(self) -> str:
        """Return the sha256 of the template with Unix line ends, in hexadecimal."""
        return hashlib.sha256(_unix(self.template).encode()).hexdigest()

    @cached_property
    def fields(self) -> frozenset[str]:
        """Return the template's placeholders."""
        return _fields(self.template, _where(self))

    @property
    def level(self) -> Literal["turn", "dialogue"]:
        """Return what the prompt rates: a dialogue if it shows ``responses`` or ``dialogue``, else a turn."""
        return "dialogue" if {"responses", "dialogue"} & self.fields else "turn"


def names() -> tuple[str, ...]:
    """Return the names of the prompts that come with the package."""
    return (*NAMES, *STUDY)


def load(
    name: str,
    source: str = "ours",
    *,
    folder: str | Path = PAPER,
    explain: bool = False,
    question: str | None = None,
) -> Prompt:
    """Read a prompt.

    Parameters
    ----------
    name
        One of :func:`names`; or a path to the user's own template, which is what holds a slash or ends in ``.md``.
    source
        ``ours``: the wording that comes with the package; ``paper``: the paper's own, once it is imported. Of no
        account for a path, and for the text of :data:`STUDY`, which that paper shows as pictures: there is ours only.
    folder
        Where the imported prompts lie.
    explain
        Whether to ask for a rationale, in a section of its own before the last one. With none it stands at the end.
    question
        For a template with the placeholder ``question``: a name of :mod:`comperdial.judges.questions`, or a question
        of the user's own. It becomes part of the template, and so of its hash.

    Raises
    ------
    UnknownNameError
        When there is no such prompt, source or question.
    MissingResourceError
        When the paper's prompts have not been imported.
    ConfigError
        When a template has a syntax error, an unknown placeholder, or none for what is to be rated, or holds what could
        run or grow without bound; or when there is a question that it has no place for.
    """
    if "/" in name or name.endswith(".md"):
        prompt = Prompt(Path(name).stem, _unix(read_text(name)), name)
        _check(prompt, name)
    else:
        prompt = _shipped(name, source, Path(folder))
    if question is not None:
        prompt = _asking(prompt, question, source, Path(folder))
    return Prompt(prompt.name, _explained(prompt.template), prompt.source) if explain else prompt


def render(prompt: Prompt, values: Mapping[str, Any]) -> str:
    """Fill a prompt.

    Parameters
    ----------
    prompt
        The prompt; a template is compiled once.
    values
        By placeholder. ``response``, ``reference``: text. ``history``, ``dialogue``: what :func:`history_lines` returns
        or takes. ``fact``: likewise of :func:`fact_lines`. ``turn_scores``, ``responses``: lists of texts, one a turn.
        Others are ignored. Values pass through :func:`inline` here, which changes nothing that has passed through it
        before.

    Returns
    -------
    str
        The message to the judge.

    Raises
    ------
    ConfigError
        When a value is missing or no text, or the template fails on the values or makes too long a text of them.
    """
    given = {field: guarded(field, values[field]) for field in prompt.fields if values.get(field) is not None}
    scores, responses = given.get("turn_scores"), given.get("responses")
    if scores is not None and responses is not None and len(scores) != len(responses):
        raise ConfigError(
            f"{len(scores)} turn scores and {len(responses)} responses",
            where=_where(prompt),
            expected="one each a turn",
        )
    try:
        return fill(_unix(prompt.template), given)
    except (jinja2.TemplateError, ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, jinja2.UndefinedError) and (missing := sorted(prompt.fields - given.keys())):
            named = ", ".join(f"`{field}`" for field in missing)
            raise ConfigError(f"no value for {named}", where=_where(prompt), expected="one for each field") from error
        raise ConfigError(f"the template cannot be filled ({error})", where=_where(prompt)) from error


def _shipped(name: str, source: str, folder: Path) -> Prompt:
    if name not in names():
        raise UnknownNameError("prompt", name, names())
    if source not in SOURCES:
        raise UnknownNameError("source of prompts", source, SOURCES)
    if name in STUDY:
        source = "ours"
    path = (_OURS if source == "ours" else folder) / f"{name}.md"
    if source == "paper" and not path.is_file():
        raise MissingResourceError(
            f"the paper's prompt {name!r} is not here",
            where=str(path),
            expected="the prompts of the paper's appendix B",
            hint="Run `comperdial prompts import PAPER` with the paper's text or HTML, or use `prompts: ours`",
        )
    prompt = Prompt(name, _unix(read_text(path)), source)
    _check(prompt, str(path))
    return prompt


def _asking(prompt: Prompt, question: str, source: str, folder: Path) -> Prompt:
    """Put a question into a template."""
    if _QUESTION not in prompt.fields:
        raise ConfigError(
            f"the question {question!r}, and no place for it",
            where=_where(prompt),
            expected="`question` in the template",
        )
    found = questions.find(question, prompt.level, source, folder)
    template = _ASKED.sub(lambda _: escape(inline(found.text)), prompt.template)
    return Prompt(prompt.name, template, found.source if prompt.name in STUDY else prompt.source)


@cache
def _fields(template: str, where: str) -> frozenset[str]:
    return frozenset(meta.find_undeclared_variables(parse(template, where)))


@cache
def _check(prompt: Prompt, where: str) -> None:
    """Raise :class:`ConfigError` for a template that cannot be filled, whatever the values."""
    tree = parse(prompt.template, where)
    if unknown := sorted(prompt.fields - {*FIELDS, _QUESTION}):
        line = min(node.lineno for node in tree.find_all(nodes.Name) if node.name == unknown[0])
        raise UnknownNameError("placeholder", unknown[0], FIELDS, where=f"{where}, line {line}")
    if not prompt.fields & {"response", "responses", "dialogue"}:
        expected = "`response`, `responses` or `dialogue` in it"
        raise ConfigError("the template shows nothing to rate", where=where, expected=expected)


def _explained(template: str) -> str:
    """Return a template with the block that asks for a rationale, headed as the template's own sections are."""
    block = _unix(read_text(_OURS / "_explain.md")).strip()
    headers = next(filter(None, (list(pattern.finditer(template)) for pattern in _HEADERS)), None)
    if headers is None:
        return f"{template.rstrip()}\n{block}\n"
    last = headers[-1]
    if not last[0].startswith("#"):
        block = block.lstrip("# ")
    return f"{template[: last.start()]}{block}\n{template[last.start() :]}"


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _where(prompt: Prompt) -> str:
    return f"prompt {prompt.name!r} ({prompt.source})"
