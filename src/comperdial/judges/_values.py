"""What stands at a label: a rating, a count of something, or a rating in words."""

from __future__ import annotations

import re
from collections.abc import Callable

from comperdial.judges._labels import Labels
from comperdial.judges._numbers import Reading

Read = Callable[[str, int], Reading | None]

_SCALE_WORDS = frozenset(
    """
    very good bad fair poor ok okay excellent great perfect neutral mediocre decent weak strong high low medium moderate
    moderately somewhat fairly quite rather relatively mostly partly slightly highly extremely not at all enough neither
    natural unnatural human humanlike like robotic coherent incoherent engaging interesting uninteresting dull boring
    fluent consistent inconsistent relevant irrelevant specific generic understandable clear unclear acceptable
    satisfactory solid related unrelated yes no
    """.split()  # noqa: SIM905
)
_NAMES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_IN_WORDS = {name: str(value) for value, name in enumerate(_NAMES, 1)}
_WORD = re.compile(
    rf"\s{{0,20}}({'|'.join(_IN_WORDS)})(\s(?:out\sof|of)\s(?:{'|'.join(_IN_WORDS)}))?[\s.!)]{{0,20}}$", re.IGNORECASE
)
_ENDS = re.compile(r"[\s.,;:!)\]'|/<>-]{0,40}$")
# A comment begins with a mark, or with one of these words; any other word may be what was counted: "2 problems".
_GOES_ON = re.compile(
    r"\s{0,20}(?:$|\(|/?[^\w\s?/+=×÷$€£%](?!\d)|[+=](?!\s{0,3}\d)|/(?!\s{0,3}\d)"
    r"|(?:because|since|as|due|for|but|though|although|while|with|given|based|and|so|which|points?|stars?|overall|out"
    r"|([^\W\d]{2,20}))\b)",
    re.IGNORECASE,
)
_CORRECTED = re.compile(
    r"\b(?:no|or|rather|actually|wait|sorry|hmm|make\s(?:it|that)|revised|corrected|changed|change)\b[^\w(]{1,3}"
    r"(?:[^\d\n.()]{0,20}\s)?\d(?:\.\d{1,3})?(?:\s?/\s?\d{1,3})?[\s.!)]{0,10}$",
    re.IGNORECASE,
)
_WORDED = re.compile(r"\s{0,3}([^\W\d][^\W\d \t'-]{0,20}(?:[ '-][^\W\d]{1,20}){0,4})\s{0,3}[,:;( -]\s{0,3}(?=\d)")
_RESULT = re.compile(
    r"\s{0,3}(?:(?:the\s)?(?:weighted\s)?(?:average|avg|mean|sum|frac)\b|[{(])[^=>]{0,200}(?:=[^=>]{0,80}){0,5}[=:]\s{0,3}(?=\d)",
    re.IGNORECASE,
)
_UP_TO = re.compile(r"(?:(?<=[^\W\d])\s?/|\bof|-|\bto)\s?(\d{1,3}(?:\.\d)?)\s?[)\]]{0,2}\s{0,5}[:=|>-]{1,3}\s{0,20}$")
_RESPONSE = re.compile(r"\W{0,9}(?:response|answer)\s(?:\d|[a-c])\W{1,9}", re.IGNORECASE)
_BRACKET = re.compile(r"\(\s?(?=\d{1,3}(?:\.\d{1,3})?\s?/\s?\d{1,3}\s?\)$)")


def is_scale_word(words: str) -> bool:
    """Return whether words are of the kind that scales are made of: good, very bad."""
    found = re.findall(r"[^\W\d_]+", words.lower())
    return bool(found) and all(word in _SCALE_WORDS for word in found)


def is_known(label: str, names: Labels) -> bool:
    """Return whether a label that is none of the form's may stand at a rating all the same: "Good", "Response 1"."""
    last = label.strip(" :-(=").rpartition(" ")[2]
    return is_scale_word(label) or names.stem(last) or _RESPONSE.fullmatch(label) is not None


def in_note(line: str, at: int, read: Read) -> Reading | None:
    """Read the fraction after the French word for a mark, which is also one for a remark."""
    return _whole(line, at, read) if "/" in line[at:] and line[:at].strip(" :-").lower() == "note" else None


def whole_word(line: str, read: Read) -> Reading | None:
    """Read a line that is a number in words."""
    return in_words(line, 0, read) if _WORD.match(line) else None


def in_words(line: str, at: int, read: Read) -> Reading | None:
    """Read what is a rating in words, in whole or before its number: "four", "good, 4", "average of 4 and 2 = 3"."""
    if word := _WORD.match(line, at):
        text = _IN_WORDS[word[1].lower()]
        if word[2]:
            text += "/" + _IN_WORDS[word[2].lower().split()[-1]]
        found = read(text, 0)
        return found and Reading(found.value, found.why, word.end())
    worded = _WORDED.match(line, at)
    if worded and is_scale_word(worded[1]):
        found = _whole(line, worded.end(), read)
        if found:
            return found
    if result := _RESULT.match(line, at):
        return _whole(line, result.end(), read)
    return None


def in_label(label: str, line: str, at: int, read: Read) -> Reading | None:
    """Read a fraction in the brackets of a label that no number follows: ``Humanness (4/5): natural``."""
    found = _BRACKET.search(label, max(0, len(label) - 14))
    if found is None or any(character.isdigit() for character in line[at : at + 200]):
        return None
    reading = read(label, found.end())
    return reading and Reading(reading.value, reading.why, at)


def other_scale(line: str, at: int, high: float) -> str | None:
    """Return why no number after a label, which ends at a place, is a rating: the label names another scale."""
    up_to = _UP_TO.search(line[max(0, at - 40) : at])
    return f"on another scale: up to {up_to[1]}" if up_to and float(up_to[1]) != high else None


def _whole(line: str, at: int, read: Read) -> Reading | None:
    reading = read(line, at)
    return reading if reading and _ENDS.match(line, reading.end) else None


def doubtful(line: str, at: int) -> str | None:
    """Return why a number after a label, which ends at a place, may be no rating, or not the last; None: it is one."""
    follows = _GOES_ON.match(line, at)
    if follows is None or (follows[1] and not is_scale_word(follows[1])):
        return f"no clear rating: {line[max(0, at - 8) : at + 20].strip()}"
    if _CORRECTED.search(line, max(at, len(line) - 80)):
        return f"a rating that is taken back: {line[max(0, at - 8) :][:60].strip()}"
    return None
