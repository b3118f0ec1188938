"""The judges' prompts: templates by name, from the paper or of the user's own, filled with text that is only data.

A template is jinja2 with the placeholders of :data:`FIELDS`. Whatever stands in a value stays within its line and its
section: see :func:`inline`.
"""

from __future__ import annotations

import functools
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import jinja2
from jinja2 import meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from comperdial.errors import ConfigError, MissingResourceError, UnknownNameError
from comperdial.files import read_text

NAMES = (
    "original_simple",
    "original_detail",
    "cpds_simple_ref",
    "cpds_simple",
    "cpds_detail_ref",
    "cpds_detail",
    "cpds_dialogue",
)
FIELDS = ("history", "response", "reference", "fact", "turn_scores", "responses")
SOURCES = ("ours", "paper")
PAPER = Path("data/prompts/paper")
NONE = "(none)"

_OURS = Path(__file__).parent / "prompts"
# The lines that open a section or ask for a score in any of the prompts.
_LABELS = (
    "context|response|your response|reference response|instructions?|output format|evaluation criteria|evaluation steps"
    r"|example|conversation history|corresponding fact|corresponding reference response|responses|evaluation form"
    r"|evaluation form \(scores only\)|dialogue turn scores|dialogue interaction evaluation criteria|after the scores"
    "|engagingness|humanness"
)
_LABEL = re.compile(rf"[-*_# ]*(?:{_LABELS})[*_ ]*:[*_ ]*", re.IGNORECASE)
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# Characters without ink that are neither format characters nor marks: fillers and the blank of Braille.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
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
        ``ours``, ``paper``, or the path of the user's own template.
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
        return frozenset(meta.find_undeclared_variables(_environment().parse(self.template)))

    @property
    def level(self) -> Literal["turn", "dialogue"]:
        """Return what the prompt rates: a dialogue if it shows ``responses``, else a turn."""
        return "dialogue" if "responses" in self.fields else "turn"


def names() -> tuple[str, ...]:
    """Return the names of the prompts that come with the package."""
    return NAMES


def load(name: str, source: str = "ours", *, folder: str | Path = PAPER, explain: bool = False) -> Prompt:
    """Read a prompt.

    Parameters
    ----------
    name
        One of :func:`names`; or a path to the user's own template, which is what holds a slash or ends in ``.md``.
    source
        ``ours``: the wording that comes with the package; ``paper``: the paper's own, once it is imported. Of no
        account for a path.
    folder
        Where the imported prompts lie.
    explain
        Whether to ask for a rationale, in a section of its own before the last one. With none it stands at the end.

    Raises
    ------
    UnknownNameError
        When there is no such prompt or source.
    MissingResourceError
        When the paper's prompts have not been imported.
    ConfigError
        When a template has a syntax error, an unknown placeholder, or none for what is to be rated.
    """
    if "/" in name or name.endswith(".md"):
        prompt = Prompt(Path(name).stem, _unix(read_text(name)), name)
        _check(prompt, name)
    else:
        prompt = _shipped(name, source, Path(folder))
    return Prompt(prompt.name, _explained(prompt.template), prompt.source) if explain else prompt


def render(prompt: Prompt, values: Mapping[str, Any]) -> str:
    """Fill a prompt.

    Parameters
    ----------
    prompt
        The prompt; a template is compiled once.
    values
        By placeholder. ``response``, ``reference``: text. ``history``: what :func:`history_lines` returns or takes.
        ``fact``: likewise of :func:`fact_lines`. ``turn_scores``, ``responses``: lists of texts, one a turn. Others
        are ignored. Values pass through :func:`inline` here, which changes nothing that has passed through it before.

    Returns
    -------
    str
        The message to the judge.

    Raises
    ------
    ConfigError
        When a value is missing or no text, or the template fails on the values.
    """
    given = {field: _value(field, values[field]) for field in prompt.fields if values.get(field) is not None}
    scores, responses = given.get("turn_scores"), given.get("responses")
    if scores is not None and responses is not None and len(scores) != len(responses):
        raise ConfigError(
            f"{len(scores)} turn scores and {len(responses)} responses",
            where=_where(prompt),
            expected="one each a turn",
        )
    try:
        return _compiled(_unix(prompt.template)).render(given)
    except (jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, jinja2.UndefinedError) and (missing := sorted(prompt.fields - given.keys())):
            named = ", ".join(f"`{field}`" for field in missing)
            raise ConfigError(f"no value for {named}", where=_where(prompt), expected="one for each field") from error
        raise ConfigError(f"the template cannot be filled ({error})", where=_where(prompt)) from error


def inline(text: str) -> str:
    """Return a text as one line that can neither open a section of a prompt nor stand for an entry of its form.

    Every run of white space, control characters, line separators and halves of surrogate pairs becomes one space, and
    none is left at the ends. A line gets a backslash in front if it begins with ``#``, invisible characters aside, or
    is nothing but the label of a section or entry, such as "Response:" or "- Engagingness:": the sections of
    ``original_detail`` have no other mark. Every other text stays as it is.
    """
    if not text.isprintable():
        text = _CONTROL.sub(" ", text)
    text = " ".join(text.split())
    if text.isascii():
        opens = text.startswith("#") or (text.endswith((":", "*", "_")) and _LABEL.fullmatch(text))
    else:
        seen = "".join(character for character in text if not _invisible(character)).strip()
        opens = seen.startswith("#") or _LABEL.fullmatch(seen)
    return f"\\{text}" if opens else text


def history_lines(history: Iterable[Mapping[str, str]]) -> str:
    """Return utterances (``speaker`` and ``text``) as lines such as "A: text"; without any, the line "(none)"."""
    return "\n".join(inline(f"{turn['speaker']}: {turn['text']}") for turn in history) or NONE


def fact_lines(facts: Iterable[str]) -> str:
    """Return sentences as lines such as "- sentence"; without any, the line "(none)"."""
    return "\n".join(inline(f"- {fact}") for fact in facts) or NONE


class _Responses(tuple[str, ...]):
    """Texts of a dialogue's turns: a template can show them, a line each, count them or loop over them."""

    label = "Turn{}: "

    def __str__(self) -> str:
        return "\n".join(self.label.format(number) + text for number, text in enumerate(self, start=1))


class _TurnScores(_Responses):
    label = "Turn{} Score - "


def _value(field: str, value: Any) -> Any:  # noqa: ANN401
    try:
        if field in ("response", "reference"):
            return inline(value)
        if field in ("history", "fact"):
            lines = history_lines if field == "history" else fact_lines
            return _guarded(value) if isinstance(value, str) else lines(value)
        if isinstance(value, str):
            raise TypeError("a text is no list of texts")
        return (_TurnScores if field == "turn_scores" else _Responses)(inline(text) for text in value)
    except (AttributeError, KeyError, TypeError) as error:
        wanted = "one text" if field in ("response", "reference") else "a list of texts"
        wanted = "utterances with `speaker` and `text`" if field == "history" else wanted
        raise ConfigError(f"the value of `{field}` is a {type(value).__name__}", expected=wanted) from error


# Histories and facts come once for every system; a thousand of them are a few megabytes.
@functools.lru_cache(maxsize=1024)
def _guarded(block: str) -> str:
    return "\n".join(inline(line) for line in block.split("\n"))


def _invisible(character: str) -> bool:
    return not character.isascii() and (character in _BLANK or unicodedata.category(character) in ("Cf", "Mn", "Me"))


def _shipped(name: str, source: str, folder: Path) -> Prompt:
    if name not in NAMES:
        raise UnknownNameError("prompt", name, NAMES)
    if source not in SOURCES:
        raise UnknownNameError("source of prompts", source, SOURCES)
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


def _check(prompt: Prompt, where: str) -> None:
    """Raise :class:`ConfigError` for a template that cannot be filled, whatever the values."""
    try:
        tree = _environment().parse(prompt.template)
        _compiled(prompt.template)
    except jinja2.TemplateSyntaxError as error:
        raise ConfigError(
            f"not a jinja2 template ({error.message})", where=f"{where}, line {error.lineno}", expected="valid jinja2"
        ) from error
    if any(True for _ in meta.find_referenced_templates(tree)):
        raise ConfigError("the template takes in another one", where=where, expected="all of the prompt in one file")
    if unknown := sorted(prompt.fields - set(FIELDS)):
        line = min(node.lineno for node in tree.find_all(nodes.Name) if node.name == unknown[0])
        raise UnknownNameError("placeholder", unknown[0], FIELDS, where=f"{where}, line {line}")
    if not prompt.fields & {"response", "responses"}:
        raise ConfigError("the template shows nothing to rate", where=where, expected="`response` or `responses` in it")


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


@functools.cache
def _environment() -> ImmutableSandboxedEnvironment:
    """Return jinja2 without its global functions, so that whatever a template names is a placeholder."""
    # No escaping: a prompt is no HTML, and the values are guarded by `inline`.
    environment = ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined, autoescape=False)
    environment.globals.clear()
    return environment


@functools.lru_cache(maxsize=64)
def _compiled(template: str) -> jinja2.Template:
    return _environment().from_string(template)
