"""Values of prompts: whatever stands in a text under judgement stays within its line and its section."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from comperdial.core.errors import ConfigError

NONE = "(none)"

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


def escape(text: str) -> str:
    """Return a text as a template that renders to it."""
    return text.replace("{", "{{ '{' }}")


def guarded(field: str, value: Any) -> Any:  # noqa: ANN401
    """Return the value of a placeholder, harmless; see :func:`~comperdial.judges.prompting.render`.

    Raises
    ------
    ConfigError
        When it is no value of this placeholder.
    """
    try:
        if field in ("response", "reference"):
            return inline(value)
        if field in ("history", "dialogue", "fact"):
            lines = fact_lines if field == "fact" else history_lines
            return _guarded(value) if isinstance(value, str) else lines(value)
        if isinstance(value, str):
            raise TypeError("a text is no list of texts")
        return (_TurnScores if field == "turn_scores" else _Responses)(inline(text) for text in value)
    except (AttributeError, KeyError, TypeError) as error:
        wanted = "one text" if field in ("response", "reference") else "a list of texts"
        wanted = "utterances with `speaker` and `text`" if field in ("history", "dialogue") else wanted
        raise ConfigError(f"the value of `{field}` is a {type(value).__name__}", expected=wanted) from error


# Histories and facts come once for every system; a thousand of them are a few megabytes.
@functools.lru_cache(maxsize=1024)
def _guarded(block: str) -> str:
    return "\n".join(inline(line) for line in block.split("\n"))


def _invisible(character: str) -> bool:
    return not character.isascii() and (character in _BLANK or unicodedata.category(character) in ("Cf", "Mn", "Me"))
