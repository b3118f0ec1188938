"""Ratings in sentences: "the score for naturalness is 2", "somewhat coherent (2)", "a solid 4/5"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from comperdial.judges._labels import Labels
from comperdial.judges._numbers import Reading, plain, read

_KEYWORD = re.compile(
    r"\b(?:scor(?:e|es|ed|ing)|rat(?:e|es|ed|ing)|grade[ds]?|give[ns]?|gave|assign(?:ed|s)?|award(?:ed|s)?|deserves?"
    r"|boxed)\b",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"[^\d\n.!?;|]{0,80}+")
_LINK = re.compile(
    r"(?:\b(?:is|of|be|as|at|an?|to|it|gets?|receives?|deserves?|boxed|only|just|with|scored|rated|score|rating)|[:=(-])"
    r"[\s('\[]*$",
    re.IGNORECASE,
)
# "A score of 2 (somewhat) means …" describes the scale.
_MEANS = re.compile(r"[\s(),'a-z-]{0,40}?\b(?:means?|indicates?|represents?|would|could|if)\b", re.IGNORECASE)
_OVER = re.compile(r"(?<![\w.,/])\d[\d.,]{0,6}\s?(?:/|out of)\s?\d[\d.,]{0,6}(?!\s+of\b|\s?/)")
_BRACKETED = re.compile(r"\((?=\d[\d.,/]{0,8}\))")
_QUOTED = re.compile(r"[\"“][^\"“”\n]{1,400}[\"”]")


def in_sentences(line: str, at: int, names: Labels) -> Iterator[tuple[str | None, Reading]]:
    """Find the numbers that a line calls ratings, and the dimension where it names one."""
    for dimension, place in _places(line, at, names):
        reading = read(line, place, names.low, names.high)
        if reading is not None and not _MEANS.match(line, reading.end):
            yield dimension, reading


def _places(line: str, at: int, names: Labels) -> Iterator[tuple[str | None, int]]:
    for keyword in _KEYWORD.finditer(line, at):
        end = _leads_to(line, keyword)
        if end is not None:
            yield None, end
    for name in names.pattern.finditer(line, at):
        end = _leads_to(line, name)
        if end is not None and not names.pattern.search(line, name.end(), end):
            yield names.classify(name[0]).dimension, end
    for bracket in _BRACKETED.finditer(line, at):
        yield None, bracket.end()
    for fraction in _OVER.finditer(line, at):
        yield None, fraction.start()


def _leads_to(line: str, word: re.Match[str]) -> int | None:
    """Return where the number stands that a word leads to, if it does."""
    between = _BETWEEN.match(line, word.end())
    end = between.end() if between else word.end()
    return end if _LINK.search(line[word.start() : end]) else None


def unquoted(line: str, raw: str) -> str:
    """Return the line without what it quotes."""
    if '"' not in raw and "“" not in raw:
        return line
    return plain(_QUOTED.sub(lambda quoted: " " * len(quoted[0]), raw))
