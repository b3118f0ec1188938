"""What in an answer is thought or quoted, and so is no rating."""

from __future__ import annotations

import re

_THINK = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
_THOUGHT = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]{0,3}```", re.MULTILINE)
_QUOTE = re.compile(r"^[ \t]{0,20}>[^\n]*", re.MULTILINE)
_TAG = re.compile(r"</\w{1,40}>(?=\s{0,10}<\w)")
_FROM_THERE = re.compile(
    r"\b(?:was|is|were|are|came|comes|appears|stands)\s(?:in|from|part\sof|quoted)\s(?:the|this)\s(?:response|text|reply)\b",
    re.IGNORECASE,
)
_SUSPECT = re.compile(
    r"\b(?:inject\w*|manipulat\w*|instruct\w*|attempt\w*|quot(?:e|es|ed|ing|ation)|ignor\w*|refus\w*|trick\w*"
    r"|attack\w*|jailbreak\w*)\b|" + _FROM_THERE.pattern,
    re.IGNORECASE,
)


def after_thinking(answer: str) -> str:
    """Return an answer without the thoughts before it; nothing is left where they have no end."""
    if (opened := _THINK.match(answer)) is None:
        return answer
    closed = _THOUGHT.search(answer, opened.end())
    return answer[closed.end() :] if closed else ""


def blank_quotes(text: str) -> str:
    """Return text of the same length with its quotes blanked, unless there is nothing else."""
    text = _TAG.sub(lambda tag: "\n" + " " * (len(tag[0]) - 1), text)
    if ">" in text:
        text = _unless_all(text, _QUOTE.sub(lambda line: " " * len(line[0]), text))
    if "```" in text:
        fences = [found.start() for found in _FENCE.finditer(text)]
        if len(fences) % 2:
            fences.append(len(text))
        outside, last = [], 0
        for start, end in zip(fences[::2], fences[1::2], strict=True):
            outside += [text[last:start], re.sub(r"[^\n]", " ", text[start:end])]
            last = end
        rest = "".join([*outside, text[last:]])
        # A model may put its own rating into a fence: only beside talk of a quotation it is none.
        if _SUSPECT.search(rest):
            text = rest
    return text


def disowned(text: str) -> bool:
    """Return whether the text around JSON says that the JSON is not the judge's."""
    return _FROM_THERE.search(text) is not None


def _unless_all(text: str, blanked: str) -> str:
    return blanked if blanked.strip() else text
