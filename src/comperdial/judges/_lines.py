"""Patterns of the parts of an answer's line. They are bounded, so that time stays linear."""

from __future__ import annotations

import re

MARKS = re.compile(r"[\s>|<+•·●▪◦(\[,'-]{0,40}+((?:\(?\d{1,2}[.)](?=\s*[^\W\d]|\s+[(\[]?\d))?)[\s>|+•·●(\['-]{0,10}+")
# What stands between a label and its value. A hyphen inside a word does not.
LABEL = re.compile(
    r"([^\W\d](?:\([^()\n]{0,80}\)|\d{1,20}\s?(?:-|to)\s?\d{1,20}(?=\s*[:=|])|[^:=|>\n.!?;(]){0,79}?)"
    r"\s{0,20}(?:(:|=+>?|->|\||>|-+(?=\s)|\s-+(?=\d)|-(?=\d[\d.,/ ]{0,10}$))|\s(?=\d[\d.,/ ]{0,10}$))\s{0,20}+"
)
SOFT = re.compile(
    r"(?:(?:is|are|of|as|an?|about|around|approximately|approx|score|rating|value|=|:|\|)(?:\.?\s{1,5}|(?<=[=:|])))"
    r"{0,4}+",
    re.IGNORECASE,
)
GAP = re.compile(
    r"[\s,;|/.)\]'-]{0,10}+(?:(?:points?|stars?)\b)?(?:\((?![^()\n\d]{2,40}[:=-]\s?\d)[^()\n]{0,80}\))?[\s,;|/.)\]']{0,10}+(?:and\s+)?\(?",
    re.IGNORECASE,
)
SENTENCE_END = re.compile(r"[.!?;)]\s{1,4}(?=[^\W\d])")
TAIL = re.compile(r"[.!?]\s{0,4}-?\s{1,4}(?=\d[\d.,/]{0,8}$)")
REST = re.compile(r"[\s.,;:!)\]'|/<>-]{0,40}")
COMMENT = re.compile(
    r"[.):,;\]'|-]{1,3}\s+\(?[^\W\d]|[:.-]?\s?\([^()\n]{1,80}\)|\s?-+\s?[^\W\d]"
    r"|\s(?:because|since|as|due|points?|stars?)\b",
    re.IGNORECASE,
)


def heads(raw: str) -> str:
    """Return what a line is as a heading of a section."""
    return "marked" if raw.lstrip().startswith("#") else "plain"
