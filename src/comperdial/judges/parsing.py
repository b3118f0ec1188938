"""Parse ratings from a judge's answer: lenient about format, strict about values.

An answer is read line by line. Only the first kind that occurs counts, in this order:

1. a named rating: a JSON field, or a line ``- Overall: 4/5``, ``| Overall | 4 |``, ``Rating: 4``;
2. a number alone or at the start of a line: ``4``, ``4. It reads well.``, ``Response: 4``;
3. a sentence of known words that ends in a number: "The naturalness is 2.", "Somewhat coherent (2)".

Conflicting values under one name, a number outside the scale, a range, a number followed by others, and quoted text are
failures: a failure costs one more sample, a wrong value would bias the study.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

PARSER_VERSION = 4
"""Raised when a change gives another value for some answer; part of every signature."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


NO_RATING = "no rating"
_REASON = _set("rationale explanation analysis reason reasons reasoning justification comment comments thoughts")
_RATING = _set("score scores rating grade mark result evaluation assessment verdict judgment answer")
_FINAL, _DRAFT = _set("final revised updated corrected"), _set("initial preliminary first")
_FILLER = _RATING | _set(
    "the a an my your our this that its it of for to in on is as i d would here response reply potential"
)
_SENTENCE_WORDS = _FILLER | _set(
    "overall total so and therefore thus give gives gave rate rated scored assign deserves receives gets"
    " very quite somewhat slightly good bad ok poor great excellent solid related natural interesting"
    " coherent dull human"
)
_THOUGHTS = (
    r"(?:[a-z]{1,12}[:_.-]|ant)?(?:think(?:ing)?|thoughts?|reasoning|analysis|reflection|scratch[ _-]?pad)"
    r"(?:[ _-]?(?:process|content|block|trace))?"
)
_OPENS, _CLOSES = r"(?:[<◁{[]|&lt;)[\s|]{0,3}", r"[\s|]{0,3}(?:[>▷}\]]|&gt;)"
# Markers around a model's reasoning. The opening one is often part of the prompt, so that only the closing one appears.
_CLOSING = re.compile(
    rf"{_OPENS}(?:\\?/\s?{_THOUGHTS}|(?:end|close)[ _-]?(?:of[ _-]?)?{_THOUGHTS}|{_THOUGHTS}[ _-](?:end|close)){_CLOSES}"
    r"|<\|channel\|>\s{0,3}final\b[^<\n]{0,30}(?:<\|constrain\|>[^<\n]{0,30})?<\|message\|>|(?-i:assistantfinal)"
    r"|<channel\|>|<unused95>|(?m:^\.{3}\s?done thinking\.?)",
    re.IGNORECASE,
)
_OPENING = re.compile(
    rf"{_OPENS}(?:begin[ _-]?(?:of[ _-]?)?)?{_THOUGHTS}(?:[ _-](?:begin|start))?{_CLOSES}"
    r"|<\|channel\|>\s{0,3}analysis|<unused94>",
    re.IGNORECASE,
)
_WIDE = str.maketrans("＜＞｜／▁", "<>|/_")
_QUOTING = re.compile(r"\b(?:inject|quot|text|says|said|contain|prompt|attack|above|asks?\b)", re.IGNORECASE)
_NUMBER = r"-?\d{1,4}(?:\.\d{1,4}|,\d{1,2})?(?![\w%])(?![.,:]\d)"
_LABELLED = re.compile(
    r"(?:\d{1,2}\s?[.)|]\s*)?([^\W\d][^:=|>\n.!?;\d]{0,79}?)\s*"
    r"(?:->|[:=|>]+|\s-|-(?=\s|\d|$)|\s(?=\(?\d[\d./) ]*$))\s*(.*)"
)
_VALUE = re.compile(
    rf"(?:(?:is|are|of|an?|about|around|score|rating)\b\s*|[\s:=|~(\['\"]|-\s){{0,8}}({_NUMBER})"
    r"(?:\s*[)\]]?\s*\(?(?:/|out\sof|of)\s?(?:a\s)?(\d{1,4}(?:\.0)?))?(?:\s?(?:points?|stars?))?"
    # Then the end, or words without a number; a year does not count as one.
    r"(?:[^\w+]*$|\s?(?:[).,;:|'-]{1,3}\s|[(-]|(?:because|since|as|for)\s)"
    r"(?:[^\d?]|(?<=[a-z])\d|\b(?:1[89]|20)\d\d\b)*$)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(
    rf"([^\d]{{0,120}}?)(?<![\d-])({_NUMBER}(?:\s?(?:/|out\sof)\s?\d+)?(?:\s\(\w+\))?\W*"
    r"(?:(?:points|because|since|as|for)\b.*)?)",
    re.IGNORECASE,
)
_NAMING = _set("dimension name metric criterion aspect")
_NAMED, _ALONE, _IN_SENTENCE = range(3)
# Maximum characters of an answer and of a line: run time is quadratic, and answers may be hostile.
_LONGEST, _LINE = 20_000, 1_000
_OTHER = "(other)"
"""Stands for a dimension that nobody asked for."""


@dataclass(frozen=True)
class Form:
    """The expected content of an answer."""

    dimensions: tuple[str, ...]  # the requested ratings, in lower case
    main: str  # the dimension that must be present
    low: float = 1.0
    high: float = 5.0
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # other names that a model may use
    # The prompt's words for the steps of the scale (``somewhat``: 2), in lower case; an answer may consist of such a word.
    words: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def names(self) -> dict[tuple[str, ...], str]:
        """Return the dimensions by the words of their names, with and without additions such as "score"."""
        named = {other: name for name, others in self.aliases.items() for other in others}
        named |= {name: name for name in self.dimensions}
        short = {_bare(tuple(_words(text))): name for text, name in named.items()}
        return {words: name for words, name in short.items() if words} | {
            tuple(_words(text)): name for text, name in named.items()
        }

    @cached_property
    def prefix(self) -> re.Pattern[str]:
        """Return a pattern that matches an alias before a number."""
        others = "|".join(re.escape(name) for names in self.aliases.values() for name in names)
        return re.compile(rf"^\s*(?:{others})\s+(?=\d)", re.IGNORECASE)

    @cached_property
    def patterns(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        """Return patterns for the scale before a separator, and for a dimension with its rating."""
        scale = rf"\b{self.low:g}\s?(?:-|to)\s?{self.high:g}\b"
        scale = rf"[(\[]?(?:on a scale )?(?:of |from )?{scale}[)\]]?(?=\s*[:=|-])"
        names = "|".join(re.escape(name) for name in sorted(self.dimensions, key=len, reverse=True))
        pair = rf"\(?\b({names})\W{{1,4}}({_NUMBER})(?:/{self.high:g})?(?:\s\([^()\d]*\))?\)?[\s,;|]*(?:and )?"
        return re.compile(scale, re.IGNORECASE), re.compile(pair, re.IGNORECASE)


@dataclass(frozen=True)
class Parsed:
    """The ratings in an answer and its rationale, or the reason why it has no rating."""

    values: Mapping[str, float]
    failure: str | None = None
    rationale: str | None = None


@dataclass(frozen=True)
class _Note:
    """A candidate rating, or why it is invalid; ``dimension`` is None if the answer names none."""

    rank: int
    dimension: str | None
    value: float | None
    problem: str = ""
    mood: str = ""


def parse(answer: str, form: Form) -> Parsed:
    """Parse an answer; if the main rating is missing, there are no ratings and ``failure`` gives the reason."""
    if not answer.strip():
        return Parsed({}, "an empty answer")
    text, failure = without_thoughts(answer)
    if failure:
        return Parsed({}, failure)
    if not text:
        return Parsed({}, NO_RATING)
    if len(text) > _LONGEST:
        return Parsed({}, "a text too long for ratings")
    unquoted = re.sub(r"(?m)^[ \t]*>.*", "", text)
    notes, rationale = _Scan(form).read(unquoted if unquoted.strip() else text)
    values, failure = {}, None
    for dimension in form.dimensions:
        value, problem = _decide(notes, dimension, form)
        if value is not None:
            values[dimension] = value
        elif dimension == form.main:
            failure = problem
    word = re.split(r"[.,:]\s+(?=(?:the|this) response\b)", _plain(text), maxsplit=1, flags=re.IGNORECASE)[0]
    word = word.strip(" .!").lower()
    if failure == NO_RATING and word in form.words:
        values, failure = {form.main: form.words[word]}, None
    return Parsed({} if failure else values, failure, rationale)


def _decide(notes: list[_Note], dimension: str, form: Form) -> tuple[float | None, str]:
    """Return the value of a dimension, or why it has none."""
    main = dimension == form.main
    unnamed = main and (len(form.dimensions) == 1 or all(one.dimension is None for one in notes))
    own = [
        one
        for one in notes
        if one.dimension == dimension or (one.dimension is None and (unnamed or (main and one.mood == "final")))
    ]
    rank = min((one.rank for one in own), default=_NAMED)
    own = [one for one in own if one.rank == rank]
    own = [one for one in own if one.mood != "draft"] or own
    if own and own[-1].mood == "final":
        own = [one for one in own if one.mood == "final"]
    different = list(dict.fromkeys(one.problem or f"{one.value:g}" for one in own))
    if len(different) > 1:
        return None, f"different ratings: {'; '.join(different[:2])}"
    return (own[0].value, own[0].problem) if own else (None, NO_RATING)


def without_thoughts(answer: str) -> tuple[str, str | None]:
    """Return the text after the last marker that closes the model's reasoning, or why that is unclear.

    A marker quoted by the answer, for example from the judged text, does not count; an ambiguous one is a failure.
    """
    plain = answer.translate(_WIDE)
    closing = list(_CLOSING.finditer(plain))
    opening = [start for start in _OPENING.finditer(plain) if not any(_overlap(start, mark) for mark in closing)]
    for mark in closing:
        before = plain[plain.rfind("\n", 0, mark.start()) + 1 : mark.start()]
        if (
            len(re.findall('["`“]', before)) % 2
            or re.search(r"\b(?:ends|holds|has|includes)\b|:\s*$", before[-30:])
            or _QUOTING.search(before[-30:])
        ):
            return "", "a mark of thoughts that may be quoted"
    if not closing:
        return (answer.strip(), None) if not opening else ("", "thoughts without an end")
    if any(mark.start() >= closing[0].end() for mark in opening):
        return "", "thoughts after an answer"
    if len(closing) > 1 and re.search(r"\d", answer[closing[0].end() : closing[-1].start()]):
        return "", "several ends of thoughts"
    return re.sub(r"<\|[\w ]{1,40}\|>", "\n", answer[closing[-1].end() :]).strip(), None


def _overlap(one: re.Match[str], other: re.Match[str]) -> bool:
    return one.start() < other.end() and other.start() < one.end()


class _Scan:
    """Collects the candidate ratings of an answer, and the rationale."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.notes: list[_Note] = []
        self.reasons: list[list[str]] = []
        self.section: str | None = None
        """The dimension that a heading names."""

    def read(self, text: str) -> tuple[list[_Note], str | None]:
        """Return the candidates and the rationale of a text."""
        rest = self._read_json(text)
        if (rest != text or "```" in text) and _QUOTING.search(rest):
            return [_Note(_NAMED, self.form.main, None, "a quoted rating")], None
        self._read_lines(re.sub(r"</[\w ]{1,40}>", "\n", rest).splitlines())
        if not any(one.rank < _IN_SENTENCE or one.dimension in self.form.dimensions for one in self.notes):
            self._read_sentences(rest)
        reasons = ("\n".join(lines).strip(" \t\r\n*_#\"'|-") for lines in self.reasons)
        return self.notes, "\n".join(filter(None, reasons)) or None

    def _note(self, text: str, rank: int, dimension: str | None, mood: str = "") -> bool:
        """Record the number at the start of a text, or that it is unclear; return whether there is one."""
        if calculated := re.match(r".*\d[\d\s.+*x×/()]*[=≈](?=\s*[\d.]+\W*$)", text):
            text = text[calculated.end() :]
        if self.form.aliases:  # "Choice: Speaker 1"
            text = self.form.prefix.sub("", text)
        value, problem = None, ""
        if match := _VALUE.match(text):
            value = float(match[1].replace(",", "."))
            if match[2] and float(match[2]) != self.form.high:
                problem = f"on another scale: {match[1]}/{match[2]}"
            elif "," in match[1] and "[" in text:
                problem = f"several numbers: {match[1]}"
            elif not self.form.low <= value <= self.form.high:
                problem = f"out of scale: {value:g}"
        elif re.match(r"[^\w(]{0,9}\d", text):
            problem = f"no clear rating: {text[:40]}"
        if value is not None or problem:
            self.notes.append(_Note(rank, dimension, None if problem else value, problem, mood))
        return value is not None or bool(problem)

    def _dimension(self, words: Iterable[str]) -> str | None:
        words = tuple(words)
        return self.form.names.get(words) or self.form.names.get(_bare(words))

    def _read_lines(self, lines: Iterable[str]) -> None:
        scale, pair = self.form.patterns
        reason = False
        pending: tuple[int, str | None, str] | None = None  # label whose value is on the next line
        for raw in lines:
            line = scale.sub("", _plain(raw[:_LINE])).lstrip(": ")
            if not line:
                if reason:
                    self.reasons[-1].append(raw)
                continue
            if len(pairs := pair.findall(line)) > 1 and not pair.sub("", line):
                for name, number in pairs:
                    self._note(number, _NAMED, name.lower())
                continue
            match = _LABELLED.match(line)
            heading = raw.lstrip().startswith("#")
            words = set(named := _words(match[1] if match else line[:80] if heading else ""))
            rest = match[2] if match else ""
            mood = "final" if words & _FINAL else "draft" if words & _DRAFT else ""
            dimension = self._dimension(named)
            rating = words <= _FILLER | _FINAL | _DRAFT | {"overall", "total"} and words & (
                _RATING | _FINAL | {"overall"}
            )
            sentence = (
                match is not None
                and line[match.start(2) - 1].isspace()
                and line[: match.start(2)].rstrip()[-1].isalpha()
            )
            if reason and sentence and any(one.rank == _NAMED and one.dimension for one in self.notes):
                self.reasons[-1].append(raw)  # explains the ratings above
            elif dimension or rating:
                reason = False
                place = (_NAMED, dimension or (None if mood == "final" else self.section), mood)
                if self.section == "quoted":
                    self.notes.append(_Note(_NAMED, self.form.main, None, "a quoted rating"))
                    continue
                if not rest:
                    pending, self.section = place, dimension or self.section
                    continue
                self._note(rest, *place)
                self.section = None if self.section == dimension else self.section
            elif match and len(words) < 6 and set(named[:4]) & _REASON:
                reason = True
                self.reasons.append([raw.partition(":")[2]])
                if pending and re.match(r"\d\.\s", rest):  # "Rating:" followed by a line "Rationale: 3. It …"
                    self._note(rest, _IN_SENTENCE, None)
            elif words and words <= {"response", "reply", "potential"} and re.fullmatch(r"[\d./ ]+", rest):
                self._note(rest, _ALONE, None)
            elif (match or heading) and words and not rest:
                # A heading of another section, whose ratings were not requested.
                reason = False
                if words <= {"response", "reply"} and not heading:
                    pending = (_ALONE, None, "")
                    continue
                quoted = _QUOTING.search(line) or words <= {"response", "reply"}
                # Names of qualities are short; a longer line introduces the following ones.
                self.section = "quoted" if quoted else _OTHER if len(named) < 8 else None
            elif pending or (re.match(r"[-(\[]{0,3}\d", line) and self.section is None and not self._is_listed(line)):
                self._note(re.sub(r"^\d{1,2}[.)]\s+(?=\d)", "", line), *(pending or (_ALONE, None, "")))
            elif reason:
                self.reasons[-1].append(raw)
            pending = None

    def _is_listed(self, line: str) -> bool:
        """Return whether a line starts a list of qualities, such as "1. Natural"."""
        match = re.match(r"1[.)]\s+(\w{5})", line)
        return match is not None and any(name.startswith(match[1].lower()) for name in self.form.dimensions)

    def _read_sentences(self, text: str) -> None:
        """Record the numbers of sentences whose words before the number are all known."""
        if self.reasons and any(one.rank == _NAMED and one.dimension for one in self.notes):
            return  # explains the ratings above
        known = _SENTENCE_WORDS | {word for name in self.form.dimensions for word in _words(name)}
        sentences = re.split(r"[.!?]\s+(?:-\s)?|\n|, so |: (?=[A-Z])|\"", text.strip())
        for place, sentence in enumerate(sentences, 1):
            match = _SENTENCE.fullmatch(_plain(sentence[:_LINE]))
            # A lone number may belong to a list; after the last sentence it is the rating.
            if match and known.issuperset(words := _words(match[1])) and (words or place == len(sentences)):
                self._note(match[2], _IN_SENTENCE, None)

    def _read_json(self, text: str) -> str:
        """Record the ratings in JSON; return the remaining text."""
        for start in list(re.finditer(r"\{|\[(?=\s*\{)", text))[:20]:
            before = len(self.notes)
            try:
                content, end = json.JSONDecoder(object_pairs_hook=list).raw_decode(text[start.start() :])
                self._walk(content, None)
            except (ValueError, RecursionError):
                continue
            if len(self.notes) > before:
                return self._read_json(text[: start.start()] + text[start.start() + end :])
        return text

    def _walk(self, content: Any, section: str | None) -> None:  # noqa: ANN401
        """Record the ratings in a JSON value; objects are lists of pairs, since keys may repeat."""
        pairs = [entry for entry in content if isinstance(entry, tuple)] if isinstance(content, list) else []
        for key, value in pairs:
            if key.lower() in _NAMING and isinstance(value, str):
                section = self._dimension(_words(value)) or _OTHER
        for key, value in pairs:
            words = set(named := _words(key))
            dimension = self._dimension(named) or section
            if words & _REASON and isinstance(value, str):
                self.reasons.append([value])
            elif isinstance(value, list):
                self._walk(value, dimension if words & _RATING or dimension != section else _OTHER)
            elif (dimension != section or words & _RATING) and not isinstance(value, bool):
                self._note(_plain(str(value)), _NAMED, dimension)
        for entry in content if isinstance(content, list) and not pairs else ():
            self._walk(entry, section)


def _bare(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a name without additions such as "score" and "final"."""
    return tuple(word for word in words if word not in _FILLER | _FINAL | _DRAFT)


@lru_cache(maxsize=4096)
def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower())


def _plain(text: str) -> str:
    """Return a text without markup, with ASCII digits and punctuation."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(str.maketrans("–—→⇒’٫", "-->>'."))
        seen = (character for character in text if unicodedata.category(character) not in ("Cf", "Mn", "Me"))
        text = "".join(str(unicodedata.decimal(each)) if each.isdecimal() else each for each in seen)
    text = re.sub(r"[*_`\"{}#\\~\t“”]", " ", text).strip()
    return text if re.match(r"-\d", text) else text.lstrip("|>+•·-<(, ")
