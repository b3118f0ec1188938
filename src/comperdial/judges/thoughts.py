"""Separate what a model thinks before it answers from the answer itself.

Models mark their thoughts, each in its own way, and servers pass the marks on in full, in part or not at all: often the
opening mark belongs to the prompt, and only the closing one is seen. So whatever precedes the last closing mark is
thought. A mark that the answer quotes, such as one in the response under judgement, is none.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import NamedTuple

ENDLESS = "thoughts without an end"
AGAIN = "thoughts after an answer"
QUOTED = "a mark of thoughts that may be quoted"
MANY = "too many marks of thoughts"

# So many marks are looked at, and so many characters around each: texts are hostile.
_MOST, _NEAR = 40, 500

_NAME = (
    r"(?:[a-z]{1,12}[:_.-]|ant)?(?:think(?:ing)?|thoughts?|reasoning|analysis|reflection|deliberation|monologue"
    r"|scratch[ _-]?pad|cot|chain[ _-]?of[ _-]?thoughts?)(?:[ _-]?(?:process|content|block|trace))?"
)
_GAP = r"[\s|]{0,3}"
_OPENS, _CLOSES = r"(?:[<◁{【]|&lt;)", r"(?:[>▷}】]|&gt;)"
_END, _BEGIN = r"(?:end|close)[ _-]?(?:of[ _-]?)?", r"(?:begin|start|open)[ _-]?(?:of[ _-]?)?"
_MARK = re.compile(
    rf"(?P<close>{_OPENS}{_GAP}(?:\\?/{_GAP}{_NAME}|{_END}{_NAME}|{_NAME}[ _-](?:end|close)){_GAP}{_CLOSES}"
    rf"|\[\s?/\s?{_NAME}\s?\]|\[(?:end|close)[ _-](?:of[ _-])?{_NAME}\]"
    # gpt-oss, with its special tokens and without; Gemma; Apertus; `ollama run`.
    r"|<\|channel\|>\s{0,3}final\b[^<\n]{0,30}(?:<\|constrain\|>[^<\n]{0,30})?<\|message\|>|(?-i:assistantfinal)"
    r"|<channel\|>|<unused95>|<\|inner_suffix\|>|(?m:^\.{3}\s?done thinking\.?))"
    rf"|(?P<open>{_OPENS}{_GAP}(?:{_BEGIN})?{_NAME}(?:[ _-](?:begin|start|open))?(?:\s[^<>\n]{{0,80}})?{_GAP}{_CLOSES}"
    r"|\[\s?think(?:ing)?\s?\]|<\|channel\|>\s{0,3}(?:analysis|commentary|thought)|\A\s*(?-i:(?:analysis|commentary)(?=[A-Z]))"
    r"|<\|channel>\s{0,3}thought|<unused94>|<\|inner_prefix\|>|\A\s*(?-i:Thinking)\.{3}(?=\s))",
    re.IGNORECASE,
)
# Granite's sentences.
_SPELLED = re.compile(r"\s*Here is my thought process:(?P<thought>.*?)(?:Here is my response:|\Z)", re.DOTALL)
_SPECIAL = re.compile(r"<\|[\w ]{1,40}\|>")
# One character each, so that places stay what they are.
_WIDE = str.maketrans("＜＞｜／［］▁＿", "<>|/[]__")
_SAYING = re.compile(
    r"\b(?:says?|said|reads?|contains?|includes?|wr(?:ites?|ote)|(?:ends?|starts?|begins?) with|inject\w*|marker|tag)"
    r"[\s:]{0,3}\Z",
    re.IGNORECASE,
)
_PAIRS = {'"': '"', "`": "`", "'": "'", "“": "”", "‘": "’", "«": "»", "「": "」"}


class Spoken(NamedTuple):
    """An answer without its thoughts, or why nobody can tell it from them.

    ``rival`` is what else may be the answer, where there are several closing marks: no rating counts that it denies.
    """

    text: str
    failure: str | None = None
    rival: str = ""


def spoken(answer: str) -> Spoken:
    """Return what follows the last closing mark of thoughts; an answer without marks as it is."""
    if found := _SPELLED.match(answer):
        return Spoken(answer[found.end() :]) if found.end() < len(answer) else Spoken("", ENDLESS)
    plain = answer.translate(_WIDE)
    marks = list(islice(_MARK.finditer(plain), _MOST))
    if not marks:
        return Spoken(answer)
    if len(marks) == _MOST:
        return Spoken("", MANY)
    quoted = [mark for mark in marks if _is_quoted(plain, *mark.span())]
    for mark in quoted:
        # Whatever else reads tags shall not take it for one.
        answer = f"{answer[: mark.start()]}{' ' * len(mark[0])}{answer[mark.end() :]}"
    closing = [mark for mark in marks if mark["close"] and mark not in quoted]
    opening = [mark for mark in marks if mark["open"] and mark not in quoted]
    if not closing:
        return Spoken("", ENDLESS) if opening else Spoken(answer)
    if any(mark.start() >= closing[0].end() for mark in opening):
        return Spoken("", AGAIN)
    if _SAYING.search(plain, max(0, closing[-1].start() - 40), closing[-1].start()):
        return Spoken("", QUOTED)
    text = _SPECIAL.sub("\n", answer[closing[-1].end() :])
    return Spoken(text, rival=answer[closing[0].end() : closing[-1].start()])


def has_thoughts(answer: str) -> bool:
    """Say whether there are marks of thoughts in an answer that it does not quote."""
    said = spoken(answer)
    return said.failure is not None or len(said.text) != len(answer)


def _is_quoted(text: str, start: int, end: int) -> bool:
    """Say whether a place lies between the marks of a quotation, on its line."""
    nearby = max(0, start - _NEAR)
    first = max(nearby, text.rfind("\n", nearby, start) + 1)
    before, after = text[first:start], text[end : end + _NEAR].partition("\n")[0]
    if before.lstrip().startswith(">"):
        return True
    for left, right in _PAIRS.items():
        opened = _opened(before, left, right)
        closed = re.search(rf"(?<!\\){re.escape(right)}(?!\w)", after)
        # The first one after the place must be an end, and not the beginning of another quotation.
        if opened is None or closed is None or re.search(rf"(?:\A|[\s(\[:]){re.escape(left)}\w", after[: closed.end()]):
            continue
        whole = not text[: first + opened].strip() and not text[end + closed.end() :].strip()
        if not whole:
            return True
    return False


def _opened(before: str, left: str, right: str) -> int | None:
    """Return where a quotation begins that has no end yet."""
    if left != right:
        place = before.rfind(left)
        return place if place > before.rfind(right) else None
    if left == "'":
        begins = [found.start() for found in re.finditer(r"(?<!\w)'(?!\s)", before)]
        ends = [found.start() for found in re.finditer(r"(?<=\S)'(?!\w)", before)]
        return begins[-1] if begins and not any(place > begins[-1] for place in ends) else None
    places = [found.start() for found in re.finditer(rf"(?<!\\){left}", before)]
    return places[-1] if len(places) % 2 else None
