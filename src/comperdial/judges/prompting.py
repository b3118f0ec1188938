"""Prompts: Jinja templates in files, filled with untrusted texts.

Values cannot leave their line or section: see :func:`inline`.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import jinja2
from jinja2 import meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from comperdial.config import load_yaml
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.core.files import read_text
from comperdial.judges.requests import digest

OURS = "ours"
NAMES = (
    "original_simple", "original_detail", "cpds_simple_ref", "cpds_simple", "cpds_detail_ref", "cpds_detail",
    "cpds_dialogue",
)  # fmt: skip
"""CPDScore's prompts and the two that it varies (ComperDial, appendix B)."""
STUDY = (
    "explicit_turn", "explicit_dialogue", "implicit_turn", "implicit_dialogue", "rating_turn", "rating_dialogue",
)  # fmt: skip
"""Ratings asked for and questions answered with a label (Zhang et al. 2024, figures 1 and 2, which are pictures)."""
FIELDS = ("history", "response", "reference", "fact", "turn_scores", "responses", "dialogue")

_FOLDER = Path(__file__).parent / "prompts"
_QUESTION = re.compile(r"\{\{-?\s*question\s*-?\}\}")
_HEADERS = (re.compile("^#.*", re.MULTILINE), re.compile("^[A-Z].*:[ \t]*$", re.MULTILINE))
# No global functions, so that all names in a template are placeholders. No escaping, since a prompt is not HTML.
_ENVIRONMENT = ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined, autoescape=False)
_ENVIRONMENT.globals.clear()


@dataclass(frozen=True)
class Prompt:
    """A template and its origin."""

    name: str  # its name, or the file name of the user's template without suffix
    template: str  # the text, including its question and the rationale block if requested
    source: str  # ``ours``, or the user's file
    renamed: tuple[tuple[str, str], ...] = ()  # the user's placeholder names, and the fields they represent

    @cached_property
    def hash(self) -> str:
        """Return the template's SHA-256 as hex."""
        return digest(self.template)

    @cached_property
    def fields(self) -> frozenset[str]:
        """Return the fields used in the template, by our names."""
        return frozenset(dict(self.renamed).get(name, name) for name in self.placeholders)

    @property
    def placeholders(self) -> frozenset[str]:
        """Return the template's placeholders, by its own names."""
        return self._parsed[1]

    @property
    def level(self) -> Literal["turn", "dialogue"]:
        """Return ``dialogue`` if the prompt shows ``responses`` or ``dialogue``, else ``turn``."""
        return "dialogue" if {"responses", "dialogue"} & self.fields else "turn"

    @property
    def where(self) -> str:
        """Return the prompt's name for messages."""
        return f"prompt {self.name!r} ({self.source})"

    @cached_property
    def _parsed(self) -> tuple[jinja2.Template, frozenset[str]]:
        try:
            parsed = _ENVIRONMENT.parse(self.template)
            return _ENVIRONMENT.from_string(parsed), frozenset(meta.find_undeclared_variables(parsed))
        except (jinja2.TemplateSyntaxError, RecursionError) as error:
            line = f", line {error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
            problem = f"not a jinja2 template ({error})"
            raise ConfigError(problem, where=f"{self.where}{line}", expected="valid jinja2") from error

    def render(self, values: Mapping[str, Any]) -> str:
        """Return the message to the judge.

        Parameters
        ----------
        values
            By field: texts, or lists of lines. ``turn_scores`` and ``responses`` are lists with a text per turn; ``history``
            and ``dialogue`` come from :func:`history_lines`, ``fact`` from :func:`fact_lines`.

        Raises
        ------
        ConfigError
            If a value is missing, or the template fails on the values.
        """
        fields = {name: dict(self.renamed).get(name, name) for name in self.placeholders}
        given = {name: _guarded(field, values[field]) for name, field in fields.items() if field in values}
        try:
            return self._parsed[0].render(given)
        except (jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ConfigError(f"the template cannot be filled ({error})", where=self.where) from error


def is_file(name: str) -> bool:
    """Return whether a prompt name is a template's path: no built-in prompt has a slash or a dot."""
    return "/" in name or "." in name


@functools.lru_cache(maxsize=256)
def load(
    name: str, *, explain: bool = False, question: str | None = None, renamed: tuple[tuple[str, str], ...] = ()
) -> Prompt:
    """Read a prompt.

    Parameters
    ----------
    name
        A name, or the path of the user's template.
    explain
        Ask for a rationale, in a section before the last one.
    question
        For a template with the placeholder ``question``: the argument of :func:`find_question`. It becomes part of the template
        and its hash.
    renamed
        For the user's template: placeholders whose names differ from ours, and the fields they represent.

    Raises
    ------
    UnknownNameError
        If the prompt, question or a placeholder does not exist.
    ConfigError
        If the template is invalid, shows nothing to rate, or has no place for the question.
    """
    if is_file(name):
        prompt = own_template(name, renamed)
    elif name not in (*NAMES, *STUDY, "pair"):
        raise UnknownNameError("prompt", name, (*NAMES, *STUDY))
    else:
        prompt = Prompt(name, _read(_FOLDER / f"{name}.md"), OURS)
    known = {*FIELDS, "question", *dict(renamed).values(), *(("first", "second") if name == "pair" else ())}
    if unknown := sorted(prompt.fields - known):
        raise UnknownNameError("placeholder", unknown[0], FIELDS, where=prompt.where)
    if not prompt.fields & {"response", "responses", "dialogue", "first"}:
        expected = "`response`, `responses` or `dialogue` in it"
        raise ConfigError("the template shows nothing to rate", where=prompt.where, expected=expected)
    template = prompt.template
    if question is not None:
        if "question" not in prompt.fields:
            problem = f"the question {question!r}, and no place for it"
            raise ConfigError(problem, where=prompt.where, expected="`question` in the template")
        escaped = inline(find_question(question, prompt.level)).replace("{", "{{ '{' }}")
        template = _QUESTION.sub(lambda _: escaped, template)
    return Prompt(prompt.name, _explained(template) if explain else template, prompt.source, renamed)


def own_template(path: str, renamed: tuple[tuple[str, str], ...] = ()) -> Prompt:
    """Read a user's template without checks: Jinja, or plain text with placeholders such as ``{response}``."""
    template = _read(path)
    if "{{" not in template and "{%" not in template:
        template = re.sub(r"\{(\w+)\}", r"{{ \1 }}", template)
    return Prompt(Path(path).stem, template, path, renamed)


def find_question(question: str, level: str) -> str:
    """Return the text of a question: for a dimension such as ``relevance``, or the user's own, recognized by its spaces."""
    if len(question.split()) > 1:
        return question
    known = questions()[level]
    if question not in known:
        raise UnknownNameError(f"question at {level} level", question, known)
    return known[question]


def questions() -> dict[str, dict[str, str]]:
    """Return the questions of implicit scoring by level and dimension; the first label, such as Yes, is the good answer."""
    return load_yaml(_FOLDER / "questions.yaml")


def _read(path: str | Path) -> str:
    return read_text(path).replace("\r\n", "\n").replace("\r", "\n")


def _explained(template: str) -> str:
    """Add the block that asks for a rationale, with a heading in the template's style."""
    block = _read(_FOLDER / "_explain.md").strip()
    headers = next(filter(None, (list(pattern.finditer(template)) for pattern in _HEADERS)), None)
    if headers is None:
        return f"{template.rstrip()}\n{block}\n"
    last = headers[-1]
    if not last[0].startswith("#"):
        block = block.lstrip("# ")
    return f"{template[: last.start()]}{block}\n{template[last.start() :]}"


# Values

# Lines that open a section or ask for a score in any of the prompts.
_LABEL = re.compile(
    r"[-*_# ]*(?:context|response|your response|reference response|instructions?|output format|evaluation criteria"
    r"|evaluation steps|example|conversation history|corresponding fact|corresponding reference response|responses"
    r"|evaluation form|evaluation form \(scores only\)|dialogue turn scores|dialogue interaction evaluation criteria"
    r"|after the scores|engagingness|humanness)[*_ ]*:[*_ ]*",
    re.IGNORECASE,
)
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# Invisible characters that are neither format characters nor marks: fillers and the Braille blank.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def inline(text: str) -> str:
    """Return a text as one line that cannot open a section of a prompt or look like an entry of its form.

    Runs of white space, control characters, line separators and lone surrogates become one space, and are stripped at the ends.
    A line gets a leading backslash if it begins with ``#``, ignoring invisible characters, or consists of a section or entry
    label, such as "Response:" or "- Engagingness:": the sections of ``original_detail`` have no other marker. All other text is
    kept.
    """
    if not text.isprintable():
        text = _CONTROL.sub(" ", text)
    text = " ".join(text.split())
    seen = text if text.isascii() else "".join(filter(_visible, text)).strip()
    opens = seen.startswith("#") or (seen.endswith((":", "*", "_")) and _LABEL.fullmatch(seen))
    return f"\\{text}" if opens else text


def _visible(character: str) -> bool:
    return character.isascii() or (
        character not in _BLANK and unicodedata.category(character) not in ("Cf", "Mn", "Me")
    )


def history_lines(history: Iterable[Mapping[str, str]]) -> str:
    """Return utterances (``speaker`` and ``text``) as lines such as "A: text"; "(none)" if there are none."""
    return "\n".join(inline(f"{turn['speaker']}: {turn['text']}") for turn in history) or "(none)"


def fact_lines(facts: Iterable[str]) -> str:
    """Return sentences as lines such as "- sentence"; "(none)" if there are none."""
    return "\n".join(inline(f"- {fact}") for fact in facts) or "(none)"


class _Turns(tuple[str, ...]):
    """Texts of a dialogue's turns, which a template can print one per line, count or loop over."""

    label = ""

    def __str__(self) -> str:
        return "\n".join(f"Turn{number}{self.label}{text}" for number, text in enumerate(self, start=1))


class _Responses(_Turns):
    label = ": "


class _TurnScores(_Turns):
    label = " Score - "


def _guarded(field: str, value: Any) -> Any:  # noqa: ANN401
    """Return a placeholder's value, sanitized."""
    if not isinstance(value, str):
        return {"responses": _Responses, "turn_scores": _TurnScores}.get(field, tuple)(map(inline, value))
    return inline(value) if field in ("response", "reference") else _block(value)


# Histories and facts repeat for every system.
@functools.lru_cache(maxsize=1024)
def _block(text: str) -> str:
    return "\n".join(inline(line) for line in text.split("\n"))
