"""Numbers in answers: any script's digits, read against a scale. Patterns are bounded, so that time stays linear."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_ALIKE = {
    **dict.fromkeys("‐‑‒–—―−﹘﹣－", "-"),
    **dict.fromkeys("：﹕", ":"),
    **dict.fromkeys("→⇒➜➔", ">"),
    **dict.fromkeys("≈≃≅", "="),
    **dict.fromkeys("✕✖⋅", "×"),
    **dict.fromkeys("／∕⁄", "/"),
    **dict.fromkeys("．。｡٫", "."),
    **dict.fromkeys("，、،", ","),
    **dict.fromkeys("＝", "="),
    **dict.fromkeys("｜│", "|"),
    **dict.fromkeys("（", "("),
    **dict.fromkeys("）", ")"),
    **dict.fromkeys("［【", "["),
    **dict.fromkeys("］】", "]"),
    **dict.fromkeys("’‘", "'"),
    **dict.fromkeys("\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", "\n"),
    **dict.fromkeys('*_`"“”„«»{}#\\~\t', " "),
    "％": "%",
    "٪": "%",
}


class _Plain(dict[int, str]):
    """Translation of a character when it is first met."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        found = _ALIKE.get(character)
        if found is None:
            digit = unicodedata.decimal(character, None)
            # A circled digit stands alone by its nature; a superscript stands at another number.
            if digit is None and unicodedata.decomposition(character).startswith("<circle>"):
                digit = unicodedata.digit(character, None)
            if digit is not None:
                found = str(digit)
            elif unicodedata.category(character) in ("Zs", "Cf", "Cc", "Me") or code == 0xFE0F:
                found = "\n" if character == "\n" else " "
            else:
                found = character
        self[code] = found
        return found


_PLAIN = _Plain()


def plain(text: str) -> str:
    """Return text of the same length with ASCII digits and punctuation, and with spaces in place of markup."""
    return text.translate(_PLAIN)


@dataclass(frozen=True, slots=True)
class Reading:
    """A number, or why it is no rating; ``end`` is where it ends."""

    value: float | None
    why: str | None
    end: int


_FIGURE = r"\d{1,20}+(?:[.,]\d{1,20}+)?+"
# Not a rating: 4th, 80%, 4:30, 4.5.6. Points are written without a space in some languages.
_ALONE = r"(?!(?![分点點점])[\w%‰°$€£])(?![.,:]\d)"
_NUMBER = re.compile(rf"[ ('\[]{{0,6}}+([+-]?)({_FIGURE}){_ALONE}")
_THOUSANDS = re.compile(r"[1-9]\d*,\d{3}")
_OVER = re.compile(
    rf"\s{{0,3}}[\])]?\s?(?:/|\(?\s?(?:out\s{{1,3}}of|of)(?:\s{{1,3}}a)?(?:\s{{1,3}}(?:possible|total|maximum)(?:\sof)?)?\s)"
    rf"\s{{0,3}}[(\[]?({_FIGURE}){_ALONE}(?!\s?/\s?\d)",
    re.IGNORECASE,
)
_SCALE = re.compile(
    rf"\s{{0,3}}[(,]?\s?(?:on|in)\s(?:a|the)\s(?:\S{{1,12}}\s)?(?:scale|range)\s(?:of\s|from\s)?({_FIGURE})\s?(?:-|to)\s?({_FIGURE})",
    re.IGNORECASE,
)
_MORE = re.compile(
    rf"(?:\s{{0,3}}-\s{{0,3}}|\s{{1,3}}(?:to|or|and|through)\s{{1,3}}|\s{{0,3}},\s{{0,3}}(?:(?:or|and)\s{{1,3}})?|\s{{1,3}})({_FIGURE}){_ALONE}",
    re.IGNORECASE,
)


_TOKEN = re.compile(
    rf"\s{{0,6}}(?:(?P<number>{_FIGURE})|(?P<equals>=+(?!>)|rounded\s(?:up\s|down\s)?to\b)|(?P<arrow>[-=]*>)"
    r"|(?P<sum>(?:[+÷·×x]|(?:plus|minus|times|divided\sby)\b)(?=\s{0,3}[\d(\[]))|(?P<mark>[-/])"
    r"|(?P<open>[(\[])|(?P<close>[)\]]))",
    re.IGNORECASE,
)
_TOKENS = 200
_POINT = re.compile(r"\s?[分点點점]")


def _float(figure: str) -> float:
    return float(figure.replace(",", "."))


def read(text: str, at: int, low: float, high: float) -> Reading | None:
    """Read the number at a place of :func:`plain` text; None where there is none, or the scale itself stands there.

    ``4/5`` and ``4 out of 5`` are read as 4 when the scale ends in 5, and are no rating otherwise. A range such as
    ``3-4`` is no rating either. Of a calculation, ``(4 + 2) / 2 = 3``, the result is read.
    """
    found = _NUMBER.match(text, at)
    if found is None:
        return None
    sign, figure = found.groups()
    value, end = _float(figure), found.end()
    if worked := _worked_out(text, found.start(2), low, high):
        return worked
    if point := _POINT.match(text, end):
        end = point.end()
    if "," in figure and ("[" in text[max(0, at - 4) : found.start(2)] or _THOUSANDS.fullmatch(figure)):
        return Reading(None, f"several numbers, or a large one: {figure}", end)
    several = [value]
    while len(several) < 20 and (more := _MORE.match(text, end)):
        several.append(_float(more[1]))
        end = more.end()
    if len(several) > 1:
        if (several[0], several[-1]) == (low, high):
            return None
        return Reading(None, f"several numbers: {several[0]:g} and {several[-1]:g}", end)
    over = _OVER.match(text, end)
    if over is not None:
        end = over.end()
        if _float(over[1]) != high:
            return Reading(None, f"on another scale: {value:g}/{_float(over[1]):g}", end)
    elif scale := _SCALE.match(text, end):
        end = scale.end()
        if (_float(scale[1]), _float(scale[2])) != (low, high):
            return Reading(None, f"on another scale: {value:g} of {scale[1]} to {scale[2]}", end)
    if sign == "-":
        value = -value
    if not low <= value <= high:
        return Reading(None, f"out of scale: {value:g}", end)
    return Reading(value, None, end)


def _worked_out(text: str, at: int, low: float, high: float) -> Reading | None:
    """Read the result of a calculation that begins at a number; None where it is a number alone."""
    before, result, end = "", None, at
    summed = changed = False
    for _ in range(_TOKENS):
        token = _TOKEN.match(text, end)
        # "4 (1 = bad)" is a number with a comment.
        if token is None or (token.lastgroup == "open" and before == "number"):
            break
        end, kind = token.end(), token.lastgroup or ""
        if kind == "number":
            summed = summed or before == "sum"
            if before in ("equals", "arrow"):
                result = token.start(kind)
        elif kind in ("sum", "mark"):
            changed = True
        if kind not in ("open", "close"):
            # An arrow from one rating to another: nobody says which of them holds.
            if kind == "arrow" and not changed and before == "number" and re.match(r"\s{0,6}\d", text[end : end + 8]):
                return Reading(None, f"several numbers: {text[at : end + 8].strip()}", end)
            before = kind
    else:
        return Reading(None, "a long calculation", end)
    if result is not None and result > at:
        found = read(text, result, low, high)
        if found is not None:
            return found
    return Reading(None, f"a calculation without its result: {text[at:end].strip()[:40]}", end) if summed else None
