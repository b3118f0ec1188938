"""The judges' prompts: templates by name, ours or in a folder of the user's, filled with text that is only data.

A template is jinja2 with the placeholders of :data:`FIELDS`: ``if``, ``for`` and filters, of which none can run or grow
without bound. Whatever stands in a value stays within its line and its section: see :func:`inline`.
"""

from __future__ import annotations

import functools
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jinja2
from jinja2 import filters, meta, nodes
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment, SecurityError

from comperdial.config import load_yaml
from comperdial.core.errors import ConfigError, MissingResourceError, UnknownNameError
from comperdial.core.files import read_text
from comperdial.core.names import RATED_LEVELS

OURS = "ours"
NAMES = (
    "original_simple", "original_detail", "cpds_simple_ref", "cpds_simple", "cpds_detail_ref", "cpds_detail",
    "cpds_dialogue",
)  # fmt: skip
"""CPDScore's prompts and the two that it varies (ComperDial, appendix B)."""
STUDY = (
    "explicit_turn", "explicit_dialogue", "implicit_turn", "implicit_dialogue", "rating_turn", "rating_dialogue",
)  # fmt: skip
"""Ratings asked for and questions answered with a label (Zhang et al. 2024, figures 1 and 2)."""
FIELDS = ("history", "response", "reference", "fact", "turn_scores", "responses", "dialogue")

_FOLDER = Path(__file__).parent / "prompts"
QUESTIONS = "questions.yaml"
_NONE = "(none)"
_QUESTION = re.compile(r"\{\{-?\s*question\s*-?\}\}")
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
        ``ours``, or the user's file: the template, or the questions that ours asks one of.
    """

    name: str
    template: str
    source: str

    @cached_property
    def hash(self) -> str:
        """Return the template's sha256, in hexadecimal."""
        return hashlib.sha256(self.template.encode()).hexdigest()

    @property
    def fields(self) -> frozenset[str]:
        """Return the template's placeholders."""
        return self._parsed.fields

    @property
    def level(self) -> Literal["turn", "dialogue"]:
        """Return what the prompt rates: a dialogue if it shows ``responses`` or ``dialogue``, else a turn."""
        return "dialogue" if {"responses", "dialogue"} & self.fields else "turn"

    @property
    def where(self) -> str:
        """Return how messages name it."""
        return f"prompt {self.name!r} ({self.source})"

    @cached_property
    def _parsed(self) -> _Parsed:
        return _parse(self.template, self.where)


def names() -> tuple[str, ...]:
    """Return the names of the prompts that come with the package."""
    return (*NAMES, *STUDY)


def load(name: str, source: str = OURS, *, explain: bool = False, question: str | None = None) -> Prompt:
    """Read a prompt.

    Parameters
    ----------
    name
        One of :func:`names`; or a path to the user's own template, which is what holds a slash or ends in ``.md``.
    source
        ``ours``, or a folder with a paper's own wording as ``NAME.md``. Of no account for a path, and for
        :data:`STUDY`, which that paper shows as pictures: there is ours only.
    explain
        Whether to ask for a rationale, in a section of its own before the last one. With none it stands at the end.
    question
        For a template with the placeholder ``question``, as :func:`find_question` takes it. It becomes part of the
        template, and so of its hash.

    Raises
    ------
    UnknownNameError, MissingResourceError
        When there is no such prompt or question, or none in the folder.
    ConfigError
        When a template is faulty or could run or grow without bound, when a saved prompt does not have our outline, or
        when there is a question that it has no place for.
    """
    if "/" in name or name.endswith(".md"):
        prompt = Prompt(Path(name).stem, _read(name), name)
    elif name not in names():
        raise UnknownNameError("prompt", name, names())
    else:
        prompt = Prompt(name, _read(_FOLDER / f"{name}.md"), OURS)
        if source != OURS and name in NAMES:
            ours, path = prompt.template, _saved(source, f"{name}.md")
            prompt = Prompt(name, _read(path), str(path))
            _check_outline(prompt, ours)
    _check_fields(prompt)
    if question is not None:
        if "question" not in prompt.fields:
            problem = f"the question {question!r}, and no place for it"
            raise ConfigError(problem, where=prompt.where, expected="`question` in the template")
        text = find_question(question, prompt.level, source)
        prompt = replace(prompt, template=_QUESTION.sub(lambda _: _escape(inline(text)), prompt.template))
        if source != OURS and name in STUDY and text != question:
            prompt = replace(prompt, source=str(Path(source) / QUESTIONS))
    return replace(prompt, template=_explained(prompt.template)) if explain else prompt


def find_question(question: str, level: str, source: str = OURS) -> str:
    """Return the text of a question: of a dimension such as ``relevance``, or the user's own, known by its spaces."""
    if len(question.split()) > 1:
        return question
    known = questions(source)[level]
    if question not in known:
        raise UnknownNameError(f"question at {level} level", question, known, where=f"{QUESTIONS} ({source})")
    return known[question]


def questions(source: str = OURS) -> dict[str, dict[str, str]]:
    """Return what implicit scoring asks, by level and dimension: ours, or those of a folder's ``questions.yaml``.

    Every question is worded so that the first label, such as Yes, is the good answer.
    """
    path = _FOLDER / QUESTIONS if source == OURS else _saved(source, QUESTIONS)
    content = load_yaml(path)
    for level in RATED_LEVELS:
        asked = content.get(level)
        texts = asked.values() if isinstance(asked, dict) else [None]
        if not all(isinstance(text, str) and text.strip() for text in texts):
            raise ConfigError(f"no questions at {level} level", where=str(path), expected="a text for each dimension")
    return content


def render(prompt: Prompt, values: Mapping[str, Any]) -> str:
    """Return the message to the judge.

    Parameters
    ----------
    prompt
        The prompt; a template is compiled once.
    values
        By placeholder. ``response``, ``reference``: text. ``history``, ``dialogue``: what :func:`history_lines` returns
        or takes. ``fact``: likewise of :func:`fact_lines`. ``turn_scores``, ``responses``: lists of texts, one a turn.
        Others are ignored. Values pass through :func:`inline` here, and need not have passed through it before.

    Raises
    ------
    ConfigError
        When a value is missing or no text, or the template fails on the values or makes too long a text of them.
    """
    parsed = prompt._parsed
    given = {field: _guarded(field, values[field]) for field in parsed.fields if values.get(field) is not None}
    scores, responses = given.get("turn_scores"), given.get("responses")
    if scores is not None and responses is not None and len(scores) != len(responses):
        problem = f"{len(scores)} turn scores and {len(responses)} responses"
        raise ConfigError(problem, where=prompt.where, expected="one each a turn")
    missing = parsed.fields - given.keys()
    try:
        if parsed.plain is not None and not missing:
            return _join([parsed.plain % given])
        return _join(parsed.compiled.generate(given))
    except (jinja2.TemplateError, ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, jinja2.UndefinedError) and missing:
            named = ", ".join(f"`{field}`" for field in sorted(missing))
            raise ConfigError(f"no value for {named}", where=prompt.where, expected="one for each field") from error
        raise ConfigError(f"the template cannot be filled ({error})", where=prompt.where) from error


# ---- Templates as files


def _read(path: str | Path) -> str:
    return read_text(path).replace("\r\n", "\n").replace("\r", "\n")


def _escape(text: str) -> str:
    """Return a text as a template that renders to it."""
    return text.replace("{", "{{ '{' }}")


def _saved(folder: str, name: str) -> Path:
    """Return a file of the user's folder."""
    path = Path(folder) / name
    if not path.is_file():
        raise MissingResourceError(
            f"there is no {name!r} in the folder that `prompts` names",
            where=str(path),
            expected="a paper's prompts as NAME.md, its questions as questions.yaml",
            hint="Save it as docs/judges.md says (Prompts), or use `prompts: ours`",
        )
    return path


def _check_fields(prompt: Prompt) -> None:
    if unknown := sorted(prompt.fields - {*FIELDS, "question"}):
        tree = _environment().parse(prompt.template)
        line = min(node.lineno for node in tree.find_all(nodes.Name) if node.name == unknown[0])
        raise UnknownNameError("placeholder", unknown[0], FIELDS, where=f"{prompt.where}, line {line}")
    if not prompt.fields & {"response", "responses", "dialogue"}:
        expected = "`response`, `responses` or `dialogue` in it"
        raise ConfigError("the template shows nothing to rate", where=prompt.where, expected=expected)


# What two wordings of a prompt share: headers, placeholders, the lines of the form, the numbers of steps.
_OUTLINE = re.compile(
    r"^(?:#.*|[A-Z][\w ()]*:(?=\n(?:\{|- \w+:|1\.))|\{\{ \w+ \}\}|[\w ]+ - x|- \w+:)$|^\d+\.", re.MULTILINE
)


def _check_outline(prompt: Prompt, ours: str) -> None:
    """Raise :class:`ConfigError` unless a saved prompt has the lines of our outline in order, and words where ours has.

    Empty lines do not count. Words take any number of lines; those of a step begin on its own.
    """
    lines = [(number, line.strip()) for number, line in enumerate(prompt.template.split("\n"), 1) if line.strip()]
    lines.append((len(prompt.template.rstrip().split("\n")), ""))
    place, end, before = 0, 0, "at the top"
    for mark in _OUTLINE.finditer(ours):
        step, words = mark[0][0].isdigit(), bool(ours[end : mark.start()].strip())
        wanted = f"'{mark[0]} …'" if step else repr(mark[0])
        for found in range(place + 1, len(lines)) if words else (place,):
            if lines[found][1] == mark[0] or (step and lines[found][1].startswith(mark[0])):
                break
        else:
            number, line = lines[place]
            here = "no words followed by" if words else f"{line!r} instead of" if line else "the end instead of"
            raise ConfigError(
                f"{here} {wanted}",
                where=f"{prompt.where}, line {number}",
                expected=f"{'both' if words else 'it'} {before}",
                hint=f"`comperdial prompts show {prompt.name}` prints the lines to keep: headers, placeholders and form",
            )
        place, end, before = found + (not step), mark.end(), f"below {wanted}"
    number, line = lines[place]
    if line:
        raise ConfigError(f"{line!r} {before}", where=f"{prompt.where}, line {number}", expected="nothing")


def _explained(template: str) -> str:
    """Return a template with the block that asks for a rationale, headed as the template's own sections are."""
    block = _read(_FOLDER / "_explain.md").strip()
    headers = next(filter(None, (list(pattern.finditer(template)) for pattern in _HEADERS)), None)
    if headers is None:
        return f"{template.rstrip()}\n{block}\n"
    last = headers[-1]
    if not last[0].startswith("#"):
        block = block.lstrip("# ")
    return f"{template[: last.start()]}{block}\n{template[last.start() :]}"


# ---- Values: whatever stands in a text under judgement stays within its line and its section

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


def _invisible(character: str) -> bool:
    return not character.isascii() and (character in _BLANK or unicodedata.category(character) in ("Cf", "Mn", "Me"))


def history_lines(history: Iterable[Mapping[str, str]]) -> str:
    """Return utterances (``speaker`` and ``text``) as lines such as "A: text"; without any, the line "(none)"."""
    return "\n".join(inline(f"{turn['speaker']}: {turn['text']}") for turn in history) or _NONE


def fact_lines(facts: Iterable[str]) -> str:
    """Return sentences as lines such as "- sentence"; without any, the line "(none)"."""
    return "\n".join(inline(f"- {fact}") for fact in facts) or _NONE


class _Responses(tuple[str, ...]):
    """Texts of a dialogue's turns: a template can show them, a line each, count them or loop over them."""

    label = "Turn{}: "

    def __str__(self) -> str:
        return "\n".join(self.label.format(number) + text for number, text in enumerate(self, start=1))


class _TurnScores(_Responses):
    label = "Turn{} Score - "


def _guarded(field: str, value: Any) -> Any:  # noqa: ANN401
    """Return the value of a placeholder, harmless."""
    try:
        if field in ("response", "reference"):
            return inline(value)
        if field in ("history", "dialogue", "fact"):
            lines = fact_lines if field == "fact" else history_lines
            return _block(value) if isinstance(value, str) else lines(value)
        if isinstance(value, str):
            raise TypeError("a text is no list of texts")
        return (_TurnScores if field == "turn_scores" else _Responses)(inline(text) for text in value)
    except (AttributeError, KeyError, TypeError) as error:
        wanted = "one text" if field in ("response", "reference") else "a list of texts"
        wanted = "utterances with `speaker` and `text`" if field in ("history", "dialogue") else wanted
        raise ConfigError(f"the value of `{field}` is a {type(value).__name__}", expected=wanted) from error


# Histories and facts come once for every system; a thousand of them are a few megabytes.
@functools.lru_cache(maxsize=1024)
def _block(text: str) -> str:
    return "\n".join(inline(line) for line in text.split("\n"))


# ---- jinja2

# Characters of a prompt, more than any judge reads; and the largest number that a template reckons with.
_LONGEST = 1_000_000
# None of them makes long text of short; `join` is our own.
_FILTERS = (
    "abs", "capitalize", "count", "d", "default", "first", "float", "int", "last", "length", "list", "lower", "max",
    "min", "reject", "reverse", "round", "select", "sort", "string", "striptags", "title", "trim", "truncate", "unique",
    "upper", "wordcount",
)  # fmt: skip
# Methods of texts that do.
_GROWING = frozenset(
    {"center", "expandtabs", "format", "format_map", "join", "ljust", "replace", "rjust", "translate", "zfill"}
)


class _Parsed(NamedTuple):
    fields: frozenset[str]
    compiled: jinja2.Template
    # For Python's `%`, which is quicker: of a template that is text and placeholders and nothing else.
    plain: str | None


@functools.lru_cache(maxsize=256)
def _parse(template: str, where: str) -> _Parsed:
    """Compile a template, unless it is not valid or has what could run or grow without bound, such as a macro."""
    environment = _environment()
    try:
        tree = environment.parse(template)
        # Finds what parsing does not: filters that there are none of, and what Python will not nest.
        compiled = environment.from_string(template)
    except jinja2.TemplateSyntaxError as error:
        is_filter = (error.message or "").startswith("No filter")
        expected = f"one of {', '.join(sorted((*_FILTERS, 'join')))}" if is_filter else "valid jinja2"
        problem = f"not a jinja2 template ({error.message})"
        raise ConfigError(problem, where=f"{where}, line {error.lineno}", expected=expected) from error
    except (RecursionError, MemoryError, SyntaxError) as error:
        raise ConfigError("the template is nested too deeply", where=where, expected="fewer brackets or ifs") from error
    for node in tree.find_all(nodes.Stmt):
        looping = isinstance(node, nodes.For) and (node.recursive or node.find(nodes.For))
        if looping or not isinstance(node, nodes.Output | nodes.If | nodes.For):
            kind = "`for` that is recursive or holds another" if looping else f"`{type(node).__name__.lower()}`"
            place, expected = f"{where}, line {node.lineno}", "placeholders, `if`, `for` and filters alone"
            raise ConfigError(f"the template has a {kind}", where=place, expected=expected)
    pieces = [piece for output in tree.body for piece in getattr(output, "nodes", [output])]
    plain = None
    if all(isinstance(piece, nodes.TemplateData | nodes.Name) for piece in pieces):
        plain = "".join(
            p.data.replace("%", "%%") if isinstance(p, nodes.TemplateData) else f"%({p.name})s" for p in pieces
        )
    return _Parsed(frozenset(meta.find_undeclared_variables(tree)), compiled, plain)


def _join(items: Iterable[Any], separator: str = "") -> str:
    """Return the items as text with a separator between them, unless that is too long: jinja2's filter, bounded."""
    parts, length = [], 0
    for item in items:
        parts.append(str(item))
        length += len(parts[-1]) + len(separator)
        if length > _LONGEST:
            raise SecurityError(f"it makes more than {_LONGEST:,} characters")
    return separator.join(parts)


class _Environment(ImmutableSandboxedEnvironment):
    # What is listed here is not computed while a template is compiled, either.
    intercepted_binops = frozenset({"*", "**", "%"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401
        for value in (left, right):
            if not isinstance(value, int | float) or abs(value) > _LONGEST:
                raise SecurityError(f"`{operator}` is for numbers up to {_LONGEST:,}")
        return super().call_binop(context, operator, left, right)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:  # noqa: ANN401
        if not isinstance(obj, str | tuple | list | LoopContext) or attr in _GROWING:
            return False
        return super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> None:  # noqa: ANN401
        return None


@functools.cache
def _environment() -> _Environment:
    """Return jinja2 without its global functions, so that whatever a template names is a placeholder."""
    # No escaping: a prompt is no HTML, and the values are guarded by `inline`.
    environment = _Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    environment.globals.clear()
    environment.filters = {name: filters.FILTERS[name] for name in _FILTERS} | {"join": _join}
    return environment
