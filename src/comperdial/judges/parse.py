"""Ratings out of a judge's answer: tolerant of its form, strict about the value, and never a default.

An answer can hold numbers that are no ratings: an echo of the scale, of the evaluation steps, of the text under
judgement. So what a number is said to be decides, in this order; the first kind that is found counts alone:

1. a rating under its name at the start of a line, as a field of JSON or as a cell of a table: ``- Overall: 4/5``;
   ``Rating: 4`` under a heading with the name; ``Rating: 4`` under no heading, where one dimension is asked for or none
   is named;
2. the same below an echo of the prompt, such as ``Response: …``, that nothing ended;
3. a number that is a line, or begins one: ``4``, ``2. somewhat``, ``Response: 4``;
4. a rating under its name in the middle of a line, after the end of a sentence;
5. one in a sentence: "the score for naturalness is 2", "somewhat coherent (2)";
6. a number after the last sentence, ``Rating: 4`` under another heading, a number after another word (``Good: 3``);
7. where there is no number at all: one of the scale's own words, alone or before a reason (``Yes. The response …``), if
   the form has words for its scale.

Two different values of one kind (1 and 2 count as one there) are a failure, since nobody can tell the judge's own from
an echo. There are two exceptions, for models that think aloud: one that is called final or revised wins if no other
comes after it (but not over the one asked for by its name, where what is final has no name), and one that is called
initial yields. In kinds 1 to 4 a number outside the scale, a range and a fraction of another scale count as values:
``7`` beside ``4`` is a failure, and so is ``7`` alone. A last line that is a number must agree with what was found
above it.

Of a calculation, the result is read. A number after a name must end there, or go on with a comment: ``2 problems`` is a
count, and a failure if the line holds no other rating. Thoughts in ``<think>`` before the answer are left out, and so
are lines quoted with ``>`` beside others. A sentence gives no rating where it denies one or tells what was asked for,
nor does an explanation that follows ratings under their names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from comperdial.judges._candidates import Candidate, Kind
from comperdial.judges._json import take
from comperdial.judges._labels import Labels, labels
from comperdial.judges._quotes import after_thinking, blank_quotes, disowned
from comperdial.judges._scan import Scan
from comperdial.judges.base import Form, Parsed

PARSER_VERSION = 2
"""Raised when a change gives other values for some answer; it stands in every signature."""

NO_RATING = "no rating"

_NONE: Mapping[str, float] = MappingProxyType({})
_REASON = re.compile(r"[.,:]\s+(?=(?:the|this) response\b)", re.IGNORECASE)
_BARE = re.compile(r"\s{0,20}(\d{1,3}+(?:\.\d{1,3}+)?)\s{0,20}", re.ASCII)


def parse(answer: str, form: Form) -> Parsed:
    """Find the ratings in an answer.

    Parameters
    ----------
    answer
        The raw text.
    form
        What was asked for.

    Returns
    -------
    Parsed
        Values within the scale. Without the main one there is none at all, and ``failure`` says why.
    """
    if bare := _BARE.fullmatch(answer):
        number = float(bare[1])
        if form.low <= number <= form.high:
            return Parsed({form.main: number})
        return Parsed(_NONE, f"out of scale: {number:g}")
    if not answer.strip():
        return Parsed(_NONE, "an empty answer")
    if found := _as_asked(form.dimensions).fullmatch(answer):
        numbers = [float(text) for text in found.groups()[:-1]]
        if all(form.low <= number <= form.high for number in numbers):
            values = dict(zip(form.dimensions, numbers, strict=True))
            return Parsed(values, None, _clean(found.groups()[-1] or "") or None)
    if (thought := after_thinking(answer)) is not answer:
        # One block only: text under judgement could hold any number of them.
        return parse(thought, form) if after_thinking(thought) is thought else Parsed(_NONE, NO_RATING)
    return _parse(answer, labels(form), form.words)


@lru_cache(maxsize=64)
def _as_asked(dimensions: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern of answers in just the form asked for, which are most: nothing in them can be read otherwise."""
    lines = r"[ \t]*\n\s{0,4}".join(
        rf"(?:- )?{re.escape(name)} {{0,2}}[-:=] {{0,2}}(\d(?:\.\d{{1,4}})?)" for name in dimensions
    )
    rationale = r"(?:[ \t]*\n\s{0,4}Rationale: ([A-Za-z0-9][^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]*))?"
    return re.compile(rf"\s{{0,4}}{lines}{rationale}\s{{0,4}}", re.IGNORECASE | re.ASCII)


def _clean(rationale: str) -> str:
    return rationale.strip(" \t\r\n*_#\"'|-")


def _parse(answer: str, names: Labels, words: Mapping[str, float]) -> Parsed:
    scan = Scan(names)
    text, explained = take(blank_quotes(answer), scan)
    if scan.candidates and disowned(text):
        scan.disown()
    scan.run(text)
    parts = explained + [text[start:end] for start, end in scan.rationales]
    rationale = "\n".join(part for each in parts if (part := _clean(each))) or None
    values: dict[str, float] = {}
    failure: str | None = None
    for dimension in names.dimensions:
        value, why = _decide(scan.candidates, dimension, names)
        if value is not None:
            values[dimension] = value
        elif dimension == names.main:
            failure = why
    if failure == NO_RATING and (worth := _in_a_word(text, words)) is not None:
        return Parsed({names.main: worth}, None, rationale)
    if failure is None and (last := _last_line(text)) is not None and last != values[names.main]:
        failure = f"different ratings: {values[names.main]:g}; {last:g}"
    if failure is not None:
        return Parsed(_NONE, failure, rationale)
    return Parsed(values, None, rationale)


def _last_line(text: str) -> float | None:
    """Return the number that is the last line: it may be the judge's own rating, and one by name before it a quote."""
    found = _BARE.fullmatch(text.rstrip(" \t\r\n`*_").rpartition("\n")[2].strip("*_ \t"))
    return float(found[1]) if found else None


def _in_a_word(text: str, words: Mapping[str, float]) -> float | None:
    """Return the worth of an answer that is one of the scale's own words, or that word and then a reason."""
    # Not any first sentence: "yes . do you know who won ?" is a response, echoed.
    said = _REASON.split(text.strip(), maxsplit=1)[0]
    return words.get(" ".join(said.strip(" .!*_\"'").lower().split()))


def _decide(candidates: Sequence[Candidate], dimension: str, names: Labels) -> tuple[float | None, str]:
    """Return the value of a dimension, or why there is none."""
    unnamed = dimension == names.main and (
        len(names.dimensions) == 1 or all(found.dimension is None for found in candidates)
    )
    own = [
        found
        for found in candidates
        if found.dimension == dimension
        or (found.dimension is None and (unnamed or (dimension == names.main and found.label.final)))
    ]
    rejected = ""
    for kind in Kind:
        found = [each for each in own if each.kind == kind]
        if kind >= Kind.PROSE:
            rejected = rejected or next((each.reading.why for each in found if each.reading.why), "")
            found = [each for each in found if each.reading.why is None]
        if kind == Kind.NAMED:
            # What looks like an echo below it may be the judge's own, and the rating above it the quoted one.
            found += [each for each in own if each.kind == Kind.ECHOED] if found else []
        if found:
            return _agree(found)
    return None, rejected or NO_RATING


def _agree(found: Sequence[Candidate]) -> tuple[float | None, str]:
    """Return what candidates of one kind say together."""
    found = [each for each in found if not each.label.draft] or found
    final = [each for each in found if each.label.final and each.kind != Kind.ECHOED]
    # A "final score" that nobody asked for may be part of a quoted list: no match for a rating under its own name.
    foreign = any(each.dimension is None for each in final) and any(
        each.dimension is not None for each in found if not each.label.final
    )
    if final and not foreign and found[-1] is final[-1] and len({_said(each) for each in final}) == 1:
        found = final
    said = list(dict.fromkeys(_said(each) for each in found))
    if len(said) > 1:
        return None, f"different ratings: {said[0]}; {said[1]}"
    return found[0].reading.value, found[0].reading.why or ""


def _said(candidate: Candidate) -> str:
    return candidate.reading.why or f"{candidate.reading.value:g}"
