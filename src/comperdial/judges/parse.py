"""Ratings out of a judge's answer: tolerant of its form, strict about the value, and never a default.

Thoughts before the answer are left out (:mod:`comperdial.judges.thoughts`). Then only the first match of these counts:

1. a rating under its name: a field of JSON, or at the start of a line, ``- Overall: 4/5``; ``Rating: 4`` under a heading
   with the name, or where one dimension is asked for or none is named;
2. a number that is a line, or begins one: ``4``, ``4. It reads well.``, ``Response: 4``;
3. if no dimension has a rating under its name, a sentence of known words only: "The score for naturalness is 2",
   "Somewhat coherent (2)"; or a number after the last sentence;
4. one of the scale's own words, alone or before a reason, if the form has words for its scale.

Two different values are a failure, since nobody can tell the judge's own from an echo of the prompt; but the last one
goes before the others if it is called final or revised, and one that is called initial yields. A number outside the
scale, a range, a fraction of another scale and a count (``2 problems``) are failures, alone or beside others. So is what
is quoted. A failure costs a fresh sample, a wrong value costs the study: what is unclear is a failure.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from comperdial.judges.base import Form, Parsed
from comperdial.judges.thoughts import spoken

PARSER_VERSION = 4
"""Raised when a change gives other values for some answer; it stands in every signature."""

NO_RATING = "no rating"


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RATING = _set(
    "score scores scored rating ratings rated rate grade mark result evaluation assessment verdict judgment answer"
)
_FINAL, _DRAFT = _set("final revised corrected updated adjusted"), _set("initial preliminary tentative draft first")
_WHOLE = _FINAL | _DRAFT | _set("overall total")
_FILLERS = _RATING | _set(
    "the a an my your our this that its of for to in on is as it i d would give response reply level quality value numeric"
    " criterion dimension potential form"
)
_REASONS = _set("rationale explanation analysis reason reasons reasoning justification comment thoughts")
_ECHO = _set(
    "context conversation history dialogue dialog fact facts corresponding reference steps step criteria instruction"
    " instructions task persona user system speaker responses transcript scale guidelines note interesting"
)
_STEPS = _set(
    "very quite fairly highly good bad ok okay fair poor great excellent somewhat slightly partly mostly solid dull boring"
    " natural unnatural human interesting related unrelated coherent incoherent engaging fluent yes no"
)
_QUOTING = re.compile(
    r"\b(?:inject|quot|text|sa(?:ys|id)|contain|claim|prompt|ends|demand|ask|attack|include|reads)", re.IGNORECASE
)
_SUSPECT = re.compile(  # beside what may be a quote
    r"\b(?:inject|manipulat|attempt|quot(?:e|ed|ing|ation)\b|ignor|refus|trick|attack|jailbreak)|\b(?:was|is|came|comes"
    r"|appears|stands)\s(?:in|from|part\sof)\s(?:the|this)\s(?:response|text|reply)\b",
    re.IGNORECASE,
)
_NUMBER = r"\d{1,20}+(?:\.\d{1,20}+|,\d{1,2}+)?+(?![\w%‰°])(?![.,:]\d)"
_BARE = re.compile(r"\s{0,20}(\d{1,3}+(?:\.\d{1,3}+)?)\s{0,20}", re.ASCII)
_MARKS = " >|<+•·●▪◦(,'-"
_LABEL = re.compile(
    r"(?:\d{1,3}\s?[.)|]\s*)?([^\W\d][^:=|>\n.!?;]{0,79}?)\s{0,20}"
    r"([:=|>]+|->|\s-+(?=\s|\d)|-+(?=\s|\d[\d./ ]{0,9}$)|\s(?=\(?\d[\d./ ]{0,9}\)?$))\s*"
)
_VALUE = re.compile(
    r"(?:(?:(?:is|are|of|as|an?|about|around|approximately|score|rating)\b|[=:|~])\s*){0,4}+"
    r"(?:\(?\d[\d\s.+*x×·÷/()-]{2,80}[=≈]\s*)?"  # of a calculation, the result
    rf"[\s('\[]{{0,6}}(-?{_NUMBER})(?:\s?[)\]]?\s?\(?(?:/|out\sof|of)\s?(?:a\s)?({_NUMBER}))?(?:\s?(?:points?|stars?))?"
    r"(?:[\s)\]'.,;:!|<>/-]*$|\s?(?:[).,;:|'-]{1,3}\s|[(-]|(?:because|since|as|due|for)\s)(?!\s*\d)(?:[^\d?]|(?<=[a-z])\d|\b\d{4}\b)*+$)",
    re.IGNORECASE,
)
_NAMING = _set("dimension name metric criterion aspect category")
_JSON = re.compile(r"\{|\[(?=\s*\{)")
_NAMED, _ALONE, _SAID = range(3)


class _Plain(dict[int, str]):
    """Each character as ASCII where it has such a digit or mark, and a space where it is markup or unseen."""

    def __missing__(self, code: int) -> str:
        character, category = chr(code), unicodedata.category(chr(code))
        found = unicodedata.normalize("NFKC", character)
        if (digit := unicodedata.decimal(character, None)) is not None:
            found = str(digit)
        elif category in ("Pd", "Cf", "Cc", "Me", "Mn", "Zl", "Zp"):
            found = "-" if category == "Pd" else " "
        elif len(found) != 1 or found.isalnum():
            found = character
        return self.setdefault(code, found)


_PLAIN = _Plain({**dict.fromkeys(map(ord, '*_`"“”{}#\\~\t'), " "), **dict(zip(map(ord, "→⇒’٫"), ">>'.", strict=True))})


class _Pairs(list[tuple[str, Any]]):
    """An object's fields in order; a name may come twice."""


# Numbers stay text: one of a million digits is not worth a conversion.
_DECODER = json.JSONDecoder(object_pairs_hook=_Pairs, parse_float=str, parse_int=str, parse_constant=str)


class _Label(NamedTuple):
    """What a label says: what follows it, and whether that is the last word, a first one or of the whole."""

    kind: str
    dimension: str | None = None
    mood: str = ""


class _Found(NamedTuple):
    """A number that may be the rating of a dimension (None: of whatever is asked for), or why it is none."""

    rank: int
    dimension: str | None
    value: float | None
    why: str = ""
    mood: str = ""


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
    if (bare := _BARE.fullmatch(answer)) and form.low <= (number := float(bare[1])) <= form.high:
        return Parsed({form.main: number})
    if not answer.strip():
        return Parsed({}, "an empty answer")
    said = spoken(answer)
    if said.failure or not said.text.strip():
        return Parsed({}, said.failure or NO_RATING)
    parsed = _read(said.text, form)
    # Of several closing marks the last may be one that the answer quotes.
    rival = _read(said.rival, form).values.get(form.main) if said.rival.strip() and not parsed.failure else None
    if rival not in (None, parsed.values.get(form.main)):
        return Parsed({}, f"different ratings: {rival:g}; {parsed.values[form.main]:g}")
    return parsed


def _read(answer: str, form: Form) -> Parsed:
    if found := _as_asked(form.dimensions).fullmatch(answer):
        *texts, rationale = found.groups()
        numbers = [float(text) for text in texts]
        if all(form.low <= number <= form.high for number in numbers):
            return Parsed(dict(zip(form.dimensions, numbers, strict=True)), None, _clean(rationale or "") or None)
    aliases = tuple((other, name) for name, others in form.aliases.items() for other in others)
    names = _names((*((name, name) for name in form.dimensions), *aliases), form.low, form.high)
    return _Scan(names, form).run(answer)


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


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+|\d+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower())


class _Names:
    """What a form calls its dimensions and its scale."""

    def __init__(self, named: tuple[tuple[str, str], ...], low: float, high: float) -> None:
        self.of: dict[tuple[str, ...], str] = {}
        for left_out in (frozenset[str](), _FILLERS):
            for text, dimension in named:
                if words := tuple(word for word in _words(text) if word not in left_out):
                    self.of.setdefault(words, dimension)
        name = "|".join(r"[\s-]{0,3}".join(map(re.escape, words)) for words in sorted(self.of, key=len, reverse=True))
        number = rf"({_NUMBER})(?:\s?(?:/|out\sof)\s?{high:g}(?:\.0)?)?"
        gap, comment = r"[\s:=(-]{1,3}", r"(?:\s?\([^()\d]{1,40}\))?"
        known = "|".join(sorted(_FILLERS | _WHOLE))
        subject = "|".join(sorted(_RATING | _STEPS | _set("give gave deserves receives gets assign award")))
        self.name = re.compile(rf"\b(?:{name})\b", re.IGNORECASE)
        self.scale = re.compile(
            rf"[(\[]?(?:on\sa\sscale\s)?(?:of\s|from\s)?\b{low:g}\s?(?:-|to)\s?{high:g}\b[)\]]?(?=\s*[:=|-])",
            re.IGNORECASE,
        )
        self.pair = re.compile(rf"({name})\s?(?:[:=-]\s?)?{number}{comment}[\s,;.()|]{{1,5}}(?:and\s)?", re.IGNORECASE)
        self.pairs = re.compile(rf"(?:{self.pair.pattern}){{2,20}}", re.IGNORECASE)
        self.said = re.compile(
            rf"(?:(?:^|[.!?]\s|\b(?:so|and|therefore|thus|hence)\b,?\s)\s?((?:(?:{known})\b[\s']?){{0,12}}\b(?:{name}|{subject})\b"
            rf"(?:{gap}(?:{known}|{name}|{subject})\b){{0,12}}){gap}|[.!?]()\s{{1,4}}-?\s?(?=[\d./]+$))"
            rf"{number}\)?{comment}(?=\s?(?:[.;!](?!\d)|,(?!\s?\d))|\s?$|\s(?:because|since|as|for|points|stars)\b)",
            re.IGNORECASE,
        )
        self.stems = tuple(words[0][:5] for words in self.of if len(words) == 1 and len(words[0]) > 4)
        self.label = lru_cache(maxsize=4096)(self._label)

    def _label(self, text: str) -> _Label:
        words, kinds = (found := _words(text)), set(found)
        mood = "final" if kinds & _FINAL else "draft" if kinds & _DRAFT else "whole" if kinds & _WHOLE else ""
        for left_out in (frozenset[str](), _FILLERS, _FILLERS | _FINAL | _DRAFT):
            if dimension := self.of.get(tuple(word for word in words if word not in left_out)):
                return _Label("dimension", dimension, mood)
        if kinds & (_RATING | _WHOLE) and kinds <= _FILLERS | _WHOLE:
            return _Label("rating", None, mood)
        if kinds & {"response", "reply"} and kinds <= _FILLERS:
            return _Label("response")
        if len(words) < 6 and _REASONS & set(words[:4]):
            return _Label("reason")
        if kinds & _ECHO and all(word.isdecimal() or word in _ECHO | _FILLERS for word in kinds):
            return _Label("echo")
        return _Label("quote" if _QUOTING.search(text) else "other")


@lru_cache(maxsize=64)
def _names(named: tuple[tuple[str, str], ...], low: float, high: float) -> _Names:
    return _Names(named, low, high)


class _Scan:
    """Goes through an answer and notes each number that may be a rating."""

    def __init__(self, names: _Names, form: Form) -> None:
        self.names, self.form = names, form
        self.found: list[_Found] = []
        self.reasons: list[list[str]] = []
        self.explaining = False
        self.section = ""  # a dimension, "other", "echo" or "quote": what the last heading introduces
        self.pending: _Label | None = None  # the label that is the line before
        self.last: float | None = None  # the number that is the last line

    def run(self, answer: str) -> Parsed:
        """Return what an answer says."""
        outside = re.sub(r"(?m)^[ \t]*>.*", "", answer)
        answer = outside if outside.strip() else answer
        text = self._json(answer)
        if (text is not answer or "```" in text) and _SUSPECT.search(text):
            return Parsed({}, "a quoted rating")
        for line in re.split(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", re.sub(r"</[\w -]{1,40}>", "\n", text)):
            self._line(line)
        reasons = [clean for part in self.reasons if (clean := _clean("\n".join(part)))]
        ratings = {dimension: self._decide(dimension) for dimension in self.form.dimensions}
        values = {dimension: value for dimension, (value, _) in ratings.items() if value is not None}
        failure = ratings[self.form.main][1]
        if failure == NO_RATING:
            said = re.split(r"[.,:]\s+(?=(?:the|this) response\b)", text.strip(), maxsplit=1, flags=re.IGNORECASE)[0]
            if (worth := self.form.words.get(" ".join(said.strip(" .!*_\"'").lower().split()))) is not None:
                values, failure = {self.form.main: worth}, ""
        if not failure and self.last not in (None, values[self.form.main]):
            failure = f"different ratings: {values[self.form.main]:g}; {self.last:g}"
        return Parsed({} if failure else values, failure or None, "\n".join(reasons) or None)

    def _decide(self, dimension: str) -> tuple[float | None, str]:
        """Return the value of a dimension, or why there is none."""
        main = dimension == self.form.main
        unnamed = main and (len(self.form.dimensions) == 1 or all(each.dimension is None for each in self.found))
        own = [
            each
            for each in self.found
            if each.dimension == dimension or (each.dimension is None and (unnamed or (main and each.mood == "final")))
        ]
        rank = min((each.rank for each in own), default=_NAMED)
        own = [each for each in own if each.rank == rank]
        own = [each for each in own if each.mood != "draft"] or own
        # A "final score" that nobody asked for may be part of a quote: no match for a rating under its own name.
        if own and own[-1].mood == "final" and (own[-1].dimension or all(each.dimension is None for each in own)):
            own = [each for each in own if each.mood == "final"]
        said = list(dict.fromkeys(each.why or f"{each.value:g}" for each in own))
        if len(said) > 1:
            return None, f"different ratings: {said[0]}; {said[1]}"
        return (own[0].value, own[0].why) if own else (None, NO_RATING)

    def _add(self, rank: int, dimension: str | None, text: str, mood: str = "") -> bool:
        """Note the number that a text begins with, or that it is unclear; return whether there is one."""
        if (found := _VALUE.match(text)) is None:
            if unclear := re.match(r"[^\w(]{0,9}\d", text):
                why = NO_RATING if re.match(r"\d{1,2}[.)]\s+[^\W\d]", text) else f"no clear rating: {text[:40]}"
                self.found.append(_Found(rank, dimension, None, why, mood))
            return unclear is not None
        number, why = float(found[1].replace(",", ".")), ""
        if found[2] and float(found[2].replace(",", ".")) != self.form.high:
            why = f"on another scale: {number:g}/{found[2]}"
        elif "," in found[1] and "[" in text:
            why = f"several numbers: {found[1]}"
        elif not self.form.low <= number <= self.form.high:
            why = f"out of scale: {number:g}"
        self.found.append(_Found(rank, dimension, None if why else number, why, mood))
        return True

    def _line(self, raw: str) -> None:
        line = self.names.scale.sub("", raw.translate(_PLAIN))
        body = line.lstrip(f"{_MARKS}:" if len(line) < len(raw) else _MARKS).rstrip()
        if body[:1].isdigit() and line[: line.index(body)].endswith("-"):
            body = f"-{body}"
        pending, heading = self.pending, raw.lstrip().startswith("#")
        if not body:
            self._explain(raw)
            return
        self.pending = self.last = None
        self.section = "" if heading else self.section
        if self.section not in ("echo", "quote") and self.names.pairs.fullmatch(body + " "):
            self.explaining = False
            for name, number in self.names.pair.findall(body + " "):
                self._add(_NAMED, self.names.label(name).dimension, number)
            return
        found = _LABEL.match(body)
        label = self.names.label(found[1] if found else body[:80])
        rest = body[found.end() :] if found else ""
        named = not (found[2].isspace() and self._told()) if found else heading or label.kind == "dimension"
        if label.kind in ("dimension", "rating") and named:
            self._rating(label, rest)
        elif found and not found[2].isspace():
            self._other(label, body, rest, raw, pending)
        elif heading:
            self.section = "quote" if label.kind in ("echo", "response") else "other"
        else:
            self._explain(raw)
            self._number(body, pending)

    def _asked(self, section: str) -> str | None:
        return section if section in self.form.dimensions else None

    def _told(self) -> bool:
        """Return whether this is an explanation after ratings by name: it tells of ratings, and gives none."""
        return self.explaining and any(each.rank == _NAMED and each.dimension for each in self.found[:20])

    def _explain(self, raw: str) -> None:
        if self.explaining:
            self.reasons[-1].append(raw)

    def _rating(self, label: _Label, rest: str) -> None:
        """Note what stands after a dimension's name, or after "rating"."""
        self.explaining = False
        self.section = "" if self.section == "other" and label.mood else self.section
        dimension = label.dimension or self._asked(self.section)
        rank = _SAID if self.section in ("other", "echo") and dimension is None else _NAMED
        if not rest:
            self.pending, self.section = label, label.dimension or self.section
        elif self.section == "quote":
            self.found.append(_Found(rank, dimension, None, f"a quoted rating: {rest[:40]}"))
        elif self._add(rank, dimension, rest, label.mood if self.section != "echo" else ""):
            self.section = dimension or "" if self.section == dimension else ""
        else:
            self._sentences(rest)

    def _other(self, label: _Label, body: str, rest: str, raw: str, pending: _Label | None) -> None:
        """Note what stands after any other label."""
        if label.kind == "reason":
            self.explaining = True
            self.reasons.append([raw.partition(":")[2]])
            if not (pending and re.match(r"\d\.\s", rest) and self._add(_SAID, None, rest)):
                self._sentences(rest)
            return
        if label.kind == "other" and rest:
            self._explain(raw)
            if len(body) - len(rest) > 40 or self.names.said.fullmatch(body):
                self._sentences(body)
            return
        self.explaining = False
        if label.kind == "response" and re.fullmatch(r"[\d./ ]+", rest):
            self._add(_ALONE, None, rest)
        elif label.kind in ("response", "echo"):
            self.section = "quote" if raw.lstrip().startswith("#") else "echo"
            self.pending = label if label.kind == "response" and not rest else None
        else:
            self.section = label.kind

    def _number(self, body: str, pending: _Label | None) -> None:
        """Note a number that is a line, or begins one; or what a sentence says."""
        if not re.match(r"[-\[]{0,3}\d", body):
            if self.section not in ("echo", "quote"):
                self._sentences(body)
        elif pending is not None:
            dimension = pending.dimension or self._asked(self.section)
            self._add(_ALONE if pending.kind == "response" else _NAMED, dimension, body, pending.mood)
        elif self.section not in ("echo", "quote"):
            body = re.sub(r"^\d{1,2}[.)]\s+(?=\d)", "", body)
            if not (found := re.match(r"1[.)]\s+(\w{5})", body)) or found[1].lower() not in self.names.stems:
                self._add(_ALONE if self.section != "other" else _SAID, None, body)
        if re.fullmatch(r"\d{1,3}(?:\.\d+)?", body):
            self.last = float(body)

    def _sentences(self, text: str) -> None:
        """Note what sentences of known words say, unless ratings under names came before."""
        if self._told():
            return
        for said in self.names.said.finditer(text):
            dimension = self.names.name.search(said[1] or "")
            self._add(_SAID, dimension and self.names.label(dimension[0]).dimension, said[3])

    def _json(self, answer: str) -> str:
        """Note the ratings in JSON; return the answer without it."""
        parts, last = [], 0
        for start in islice(_JSON.finditer(answer), 20):
            if start.start() < last:
                continue
            before = len(self.found)
            try:
                found, end = _DECODER.raw_decode(answer, start.start())
                self._walk(found, "")
            except (ValueError, RecursionError):
                continue
            if len(self.found) > before:
                parts.append(answer[last : start.start()])
                last = end
        return "".join([*parts, answer[last:]]) if parts else answer

    def _walk(self, found: Any, section: str) -> None:  # noqa: ANN401
        """Note the ratings in a JSON value; ``section`` is what the key above it names."""
        if not isinstance(found, _Pairs):
            for each in found if isinstance(found, list) else ():
                self._walk(each, section)
            return
        for key, value in found:
            if key.lower() in _NAMING and isinstance(value, str):
                section = self.names.label(value).dimension or "other"
        for key, value in found:
            label = self.names.label(key[:120].translate(_PLAIN))
            inner = label.dimension or (section if label.kind == "rating" else "other")
            for each in value if isinstance(value, list) and not isinstance(value, _Pairs) else [value]:
                text = each[:200].translate(_PLAIN).strip() if isinstance(each, str) else ""
                if not isinstance(each, str):
                    self._walk(each, inner)
                elif label.kind == "reason":
                    self.reasons.append([each])
                elif label.kind in ("dimension", "rating"):
                    self._add(_SAID if inner == "other" else _NAMED, self._asked(inner), text, label.mood)
