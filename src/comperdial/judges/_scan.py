"""Goes through an answer line by line and notes every number that may be a rating, and what it is said to be."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum

from comperdial.judges._labels import OTHER, Label, Labels
from comperdial.judges._numbers import Reading, plain, read
from comperdial.judges._prose import in_sentences, unquoted
from comperdial.judges._tables import Table

_MARKS = re.compile(r"[\s>|<+•·●▪◦(\[,'-]{0,40}+((?:\(?\d{1,2}[.)](?=\s*[^\W\d]|\s+[(\[]?\d))?)[\s>|+•·●(\['-]{0,10}+")
# What stands between a label and its value. A hyphen inside a word does not.
_LABEL = re.compile(
    r"([^\W\d](?:\([^()\n]{0,80}\)|\d{1,20}\s?-\s?\d{1,20}(?=\s*[:=|])|[^:=|>\n.!?;(]){0,79}?)"
    r"\s{0,20}(?:(:|=+>?|->|\||>|-+(?=\s)|\s-+(?=\d)|-(?=\d[\d.,/ ]{0,10}$))|\s(?=\d[\d.,/ ]{0,10}$))\s{0,20}+"
)
_SOFT = re.compile(
    r"(?:(?:is|are|of|as|an?|about|around|approximately|approx|score|rating|value|=|:|\|)(?:\.?\s{1,5}|(?<=[=:|])))"
    r"{0,4}+",
    re.IGNORECASE,
)
_GAP = re.compile(
    r"[\s,;|/.)\]'-]{0,10}+(?:(?:points?|stars?)\b)?(?:\([^()\n]{0,80}\))?[\s,;|/.)\]']{0,10}+(?:and\s+)?",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?;)]\s{1,4}(?=[^\W\d])")
_TAIL = re.compile(r"[.!?]\s{0,4}-?\s{1,4}(?=\d[\d.,/]{0,8}$)")
_REST = re.compile(r"[\s.,;:!)\]'|/<>-]{0,40}")
_COMMENT = re.compile(
    r"[.):,;\]'|-]{1,3}\s+\(?[^\W\d]|[:.-]?\s?\([^()\n]{1,80}\)|\s?-+\s?[^\W\d]"
    r"|\s(?:because|since|as|due|points?|stars?)\b",
    re.IGNORECASE,
)


class Kind(IntEnum):
    """How a number is said to be a rating; a lower kind counts more."""

    NAMED = 0
    ECHOED = 1
    ALONE = 2
    INLINE = 3
    PROSE = 4
    WEAK = 5


@dataclass(frozen=True, slots=True)
class Candidate:
    """A number that may be the rating of a dimension (None: of whatever is asked for)."""

    dimension: str | None
    kind: Kind
    reading: Reading
    label: Label = OTHER


@dataclass
class Scan:
    """What was noted of an answer.

    Attributes
    ----------
    candidates
        In the order of the answer.
    rationales
        Start and end of each explanation.
    """

    names: Labels
    candidates: list[Candidate] = field(default_factory=list)
    rationales: list[tuple[int, int]] = field(default_factory=list)
    _section: str = ""
    _pending: Label | None = None
    _table: Table = field(default_factory=Table)
    _numbered: list[tuple[Reading, str]] = field(default_factory=list)
    _open: int | None = None
    # What this line, and the one before, is as a heading of a section that the prompt has too: "", "plain" or "marked".
    _heads: str = ""
    _headed: str = ""
    _lines: int = 0
    _foreign: Reading | None = None
    _last: str = ""

    def run(self, answer: str) -> None:
        """Go through an answer."""
        start = 0
        for line in plain(answer).split("\n"):
            if line and not line.isspace():
                self._lines += 1
                self._line(line, answer[start : start + len(line)], start)
            start += len(line) + 1
        self._close(len(answer))
        self._finish()

    def read(self, text: str, at: int) -> Reading | None:
        """Read a number against the form's scale."""
        return read(text, at, self.names.low, self.names.high)

    def add(self, dimension: str | None, kind: Kind, reading: Reading | None, label: Label = OTHER) -> bool:
        """Note a number; return whether there is one."""
        if reading is not None:
            self.candidates.append(Candidate(dimension, kind, reading, label))
        return reading is not None

    def _line(self, line: str, raw: str, offset: int) -> None:
        pending, self._pending = self._pending, None
        self._headed, self._heads = self._heads, ""
        self._last = ""
        if line.count("|") > 1:
            cells, is_row = self._table.row(line, self.names)
            for label, reading in cells:
                self.add(label.dimension, Kind.NAMED, reading, label)
            if is_row:
                return
        marks = _MARKS.match(line)
        at = marks.end() if marks else 0
        number = marks[1] if marks else ""
        found = _LABEL.match(line, at)
        label = self.names.classify(found[1]) if found else OTHER
        # "Overall 4" is a rating of a dimension; a sentence may end in a number too.
        if found and (found[2] or label.kind in ("dimension", "rating")):
            if self._labelled(line, raw, found.end(), label, offset):
                return
        elif self._heading(line[at:], raw):
            return
        if not self._bare(line, at, number, pending) and self._section != "echo":
            self._last = unquoted(line, raw)
            self._prose(self._last, 0)

    def _labelled(self, line: str, raw: str, at: int, label: Label, offset: int) -> bool:
        empty = _REST.fullmatch(line, at) is not None
        if label.kind in ("dimension", "rating"):
            if self._headed == "marked" and not empty:
                return True
            self._close(offset)
            self._rating(line, raw, at, label, offset, empty)
        elif label.kind == "response":
            self._close(offset)
            reading = self.read(line, at)
            if reading and _REST.fullmatch(line, reading.end):
                self.add(None, Kind.ALONE, reading)
            else:
                self._section, self._pending = "echo", label if empty else None
                self._heads = _heads(raw) if empty else ""
        elif label.kind == "rationale":
            self._explain(line, raw, at, offset)
        elif label.kind == "echo":
            self._close(offset)
            self._section = "echo"
            self._heads = _heads(raw) if empty else ""
        elif empty:
            self._close(offset)
            self._section = "other" if label.words <= 4 else ""
        elif label.words <= 3:
            reading = self.read(line, at)
            if reading and _REST.fullmatch(line, reading.end) and self._section != "echo":
                self._foreign = reading
        else:
            return False
        return True

    def _rating(self, line: str, raw: str, at: int, label: Label, offset: int, empty: bool) -> None:
        dimension = label.dimension
        kind = Kind.NAMED
        if label.whole and dimension is None and self._section == "other":
            self._section = ""
        if self._headed or (dimension is None and self._section == "other"):
            kind = Kind.WEAK
            self._section = "" if self._section == "echo" else self._section
        elif dimension is None and self._section in self.names.dimensions:
            dimension = self._section
        else:
            kind = Kind.ECHOED if self._section == "echo" else kind
            self._section = dimension if dimension and self._section == dimension else ""
        if empty:
            self._pending = label
            self._section = label.dimension or self._section
            return
        soft = _SOFT.match(line, at)
        reading = self.read(line, soft.end() if soft else at)
        if reading is None:
            before = len(self.candidates)
            self._prose(unquoted(line, raw), at)
            inside = self.candidates[before:]
            del self.candidates[before:]
            for found in inside:
                if found.reading.why is None:
                    self.add(dimension if found.dimension is None else found.dimension, kind, found.reading, label)
            return
        self.add(dimension, kind, reading, label)
        self._chain(line, raw, reading.end, offset)

    def _chain(self, line: str, raw: str, at: int, offset: int) -> None:
        """Go on with what follows a rating in its line: other ratings, or the explanation."""
        while gap := _GAP.match(line, at):
            found = _LABEL.match(line, gap.end())
            if found is None:
                return
            label = self.names.classify(found[1])
            if label.kind == "rationale":
                self._explain(line, raw, found.end(), offset)
                return
            soft = _SOFT.match(line, found.end())
            reading = self.read(line, soft.end() if soft else found.end())
            if reading is None or label.kind not in ("dimension", "rating"):
                self._inline(unquoted(line, raw), at)
                return
            self.add(label.dimension, Kind.NAMED, reading, label)
            at = reading.end

    def _explain(self, line: str, raw: str, at: int, offset: int) -> None:
        self._close(offset)
        self._open = offset + at
        if self._section == "echo":
            self._section = ""
        reading = self.read(line, at)
        if reading and line[reading.end : reading.end + 2] == ". ":
            self.add(None, Kind.WEAK, reading)
        self._prose(unquoted(line, raw), at)

    def _close(self, at: int) -> None:
        if self._open is not None:
            self.rationales.append((self._open, at))
            self._open = None

    def _heading(self, body: str, raw: str) -> bool:
        body = body.strip(" '()[]<>-")
        if not body or len(body) > 60 or not body[0].isalpha() or any(mark in body for mark in ".!?,;"):
            return False
        marked = raw.lstrip().startswith(("#", "**", "__"))
        label = self.names.classify(body)
        if label.kind == "dimension" or (marked and label.kind in ("rating", "response")):
            self._pending = label
            self._section = label.dimension or ("echo" if label.kind == "response" else self._section)
        elif marked and label.kind in ("echo", "other"):
            self._section = label.kind
            self._heads = _heads(raw) if label.kind == "echo" else ""
        else:
            return False
        return True

    def _bare(self, line: str, at: int, number: str, pending: Label | None) -> bool:
        """Note a number that is a line, or begins one."""
        place = at - (len(line[:at]) - len(line[:at].rstrip(" ([")))
        reading = self.read(line, at)
        if reading is None and number:
            reading = self.read(line, line.index(number))
            if reading is not None:
                self._numbered.append((reading, line[at : at + 40]))
            return reading is not None and self._section != "echo"
        if reading is None:
            return False
        if line[place - 1 : place] == "-" and place == at and reading.value:
            reading = Reading(None, f"out of scale: {-reading.value:g}", reading.end)
        alone = _REST.fullmatch(line, reading.end) is not None
        if not alone and not _COMMENT.match(line, reading.end):
            return False
        if pending is not None and (alone or pending.kind != "response"):
            if pending.kind == "response":
                self.add(None, Kind.ALONE, reading)
            else:
                dimension = pending.dimension or (self._section if self._section in self.names.dimensions else None)
                kind = Kind.WEAK if self._section == "other" else Kind.NAMED
                self.add(dimension, kind, reading, pending)
        elif self._section != "echo":
            self.add(None, Kind.WEAK if self._section == "other" else Kind.ALONE, reading)
        return True

    def _inline(self, line: str, at: int) -> None:
        """Note ratings that are named after the end of a sentence."""
        for end in _SENTENCE_END.finditer(line, at):
            found = _LABEL.match(line, end.end())
            label = self.names.classify(found[1]) if found else OTHER
            if found and label.kind in ("dimension", "rating"):
                soft = _SOFT.match(line, found.end())
                kind = Kind.WEAK if label.dimension is None and self._section == "other" else Kind.INLINE
                self.add(label.dimension, kind, self.read(line, soft.end() if soft else found.end()), label)

    def _prose(self, line: str, at: int) -> None:
        self._inline(line, at)
        for dimension, reading in in_sentences(line, at, self.names):
            self.add(dimension, Kind.PROSE, reading)

    def _finish(self) -> None:
        numbered = [] if len(self._numbered) != 1 else self._numbered
        for reading, words in numbered:
            # "1. Natural" may be the first of a list, cut off before the rating.
            if not (reading.value == 1 and self.names.stem(words.split(" ")[0].strip(".,"))):
                self.add(None, Kind.ALONE, reading)
        if self._lines == 1 and self._foreign is not None:
            self.add(None, Kind.WEAK, self._foreign)
        elif tail := _TAIL.search(self._last.rstrip(" ."), max(0, len(self._last) - 40)):
            self.add(None, Kind.WEAK, self.read(self._last, tail.end()))


def _heads(raw: str) -> str:
    return "marked" if raw.lstrip().startswith("#") else "plain"
