"""Ratings in sentences: "the score for naturalness is 2", "somewhat coherent (2)", "a solid 4/5"."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
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
# "2 of its sentences", "2 problems": a count.
_COUNTED = re.compile(
    r"\s(?:of\s(?:the|its|these|those|my|all)\b"
    r"|(?!(?:points|stars|as|is|this|its|has|was|thus|plus|minus|less|means)\b)[a-z]{2,20}s\b)",
    re.IGNORECASE,
)
_OVER = re.compile(r"(?<![\w.,/])\d[\d.,]{0,6}\s?(?:/|out of)\s?\d[\d.,]{0,6}(?!\s+of\b|\s?/)")
_DENIED = re.compile(
    r"\b(?:not|cannot|never|nor|no|without|\w{2,8}n't|can't|(?:could|would|should)(?!\s(?:\w{1,12}ly\s)?(?:give|rate|score|assign"
    r"|say|award|grade|go|be\s(?:rated|scored|given|a)))|if|too)\b",
    re.IGNORECASE,
)
_ASKED = re.compile(
    r"\b(?:asks?|asked|asking|says|saying|said|demand(?:s|ed|ing)?|instruct\w*|inject\w*|claim(?:s|ed|ing)?|ends?\swith|contain(?:s|ed|ing)?"
    r"|request(?:s|ed|ing)?|tells?|told|refus\w*|ignor\w*|attempt\w*|tries|tried|manipulat\w*|orders?|insists?)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[.!?;]\s")
_CLAUSE = re.compile(
    r"[.!?;,:]\s|\b(?:so|but|and|therefore|thus|hence|because|since|although|though|while|which)\s", re.IGNORECASE
)
_BRACKETED = re.compile(r"\((?=\d[\d.,/]{0,8}\))")
_QUOTED = re.compile(r"[\"“][^\"“”\n]{1,400}[\"”]")


def in_sentences(line: str, at: int, names: Labels) -> Iterator[tuple[str | None, Reading]]:
    """Find the numbers that a line calls ratings, and the dimension where it names one."""
    refused: list[list[tuple[int, int]]] | None = None
    for dimension, place in _places(line, at, names):
        refused = _refused(line, at, names) if refused is None else refused
        if any(_inside(parts, place) for parts in refused):
            continue
        reading = read(line, place, names.low, names.high)
        if reading is not None and not _MEANS.match(line, reading.end) and not _COUNTED.match(line, reading.end):
            yield dimension, reading


def _refused(line: str, at: int, names: Labels) -> list[list[tuple[int, int]]]:
    """Return what in a line gives no rating.

    Clauses that deny or imagine one, or are of another quality, and sentences that tell what was asked for.
    """
    kinds = ((_DENIED, _CLAUSE), (names.foreign, _CLAUSE), (_ASKED, _SENTENCE))
    return [_parts_with(words, ends, line, at) for words, ends in kinds]


def _parts_with(words: re.Pattern[str], ends: re.Pattern[str], line: str, at: int) -> list[tuple[int, int]]:
    places = [word.start() for word in words.finditer(line, at)]
    if not places:
        return []
    bounds = [at, *(end.end() for end in ends.finditer(line, at)), len(line) + 1]
    parts = dict.fromkeys(bisect_right(bounds, place) for place in places)
    return [(bounds[part - 1], bounds[part]) for part in parts]


def _inside(parts: list[tuple[int, int]], place: int) -> bool:
    before = bisect_right(parts, (place, sys.maxsize))
    return before > 0 and place < parts[before - 1][1]


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
