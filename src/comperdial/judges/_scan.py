"""Goes through an answer line by line and notes every number that may be a rating, and what it is said to be."""

from __future__ import annotations

from dataclasses import dataclass, field

from comperdial.judges._candidates import Candidate, Kind, Notes
from comperdial.judges._labels import OTHER, Label
from comperdial.judges._lines import COMMENT, GAP, LABEL, MARKS, REST, SOFT, TAIL, heads
from comperdial.judges._numbers import Reading, plain
from comperdial.judges._prose import in_sentences, unquoted
from comperdial.judges._tables import Table
from comperdial.judges._values import in_label, in_note, in_words, is_known, other_scale, whole_word


@dataclass
class Scan(Notes):
    """What was noted of an answer.

    Attributes
    ----------
    rationales
        Start and end of each explanation.
    """

    rationales: list[tuple[int, int]] = field(default_factory=list)
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
    _only: str = ""
    # Whether the heading of this paragraph says that it is a quote.
    _quoting: bool = False

    def run(self, answer: str) -> None:
        """Go through an answer."""
        start = 0
        for line in plain(answer).split("\n"):
            if line and not line.isspace():
                self._lines += 1
                self._only = line
                self._line(line, answer[start : start + len(line)], start)
            else:
                self._quoting = False
            start += len(line) + 1
        self._close(len(answer))
        self._finish()

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
        marks = MARKS.match(line)
        if self._listed(line, marks.end() if marks else 0, offset):
            return
        at = marks.end() if marks else 0
        number = marks[1] if marks else ""
        found = LABEL.match(line, at)
        label = self.names.classify(found[1]) if found else OTHER
        # "Overall 4" is a rating of a dimension; a sentence may end in a number too.
        if found and (found[2] or (label.kind in ("dimension", "rating") and not self._told())):
            if self._labelled(line, raw, found.end(), label, offset):
                return
        elif self._heading(line[at:], raw):
            return
        if not self._bare(line, at, number, pending) and self._section != "echo":
            self._last = unquoted(line, raw)
            self._prose(self._last, 0)

    def _listed(self, line: str, at: int, offset: int) -> bool:
        if self._section == "echo" or len(self.names.dimensions) == 1:
            return False
        if self.names.listing.fullmatch(line + " ", at) is None:
            return False
        self._close(offset)
        for name in self.names.pattern.finditer(line, at):
            label = self.names.classify(name[0])
            self.add(label.dimension, Kind.NAMED, self.read(line, name.end()), label)
        return True

    def _labelled(self, line: str, raw: str, at: int, label: Label, offset: int) -> bool:
        empty = REST.fullmatch(line, at) is not None
        if label.kind in ("dimension", "rating"):
            if self._headed == "marked" and not empty:
                return True
            self._close(offset)
            self._rating(line, raw, at, label, offset, empty)
        elif label.kind == "response":
            self._close(offset)
            reading = self.read(line, at)
            if reading and REST.fullmatch(line, reading.end):
                self.add(None, Kind.ALONE, reading)
            else:
                self._section, self._pending = "echo", label if empty else None
                self._heads = heads(raw) if empty else ""
        elif label.kind == "rationale":
            self._explain(line, raw, at, offset)
        elif label.kind == "echo":
            self._close(offset)
            if reading := in_note(line, at, self.read):
                return self.add(None, Kind.WEAK, reading)
            self._section = "echo"
            self._heads = heads(raw) if empty else ""
        elif empty:
            self._close(offset)
            self._section = "echo" if label.quoting else "other" if label.words <= 4 else ""
            self._quoting = label.quoting
        elif label.words <= 3:
            reading = self.read(line, at)
            if (
                is_known(line[:at], self.names)
                and reading
                and REST.fullmatch(line, reading.end)
                and self._section != "echo"
            ):
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
        soft = SOFT.match(line, at)
        value = soft.end() if soft else at
        reading = self.read(line, value) or in_words(line, value, self.read)
        reading = reading or in_label(line[:at].rstrip(" :=->|"), line, at, self.read)
        unclear = other_scale(line, at, self.names.high)
        if not unclear and (sure := self._sure(line, reading)) is not reading and sure:
            unclear = sure.why
        if reading is None or unclear:
            inside = self._elsewhere(line, raw, reading.end if reading else at)
            for found in inside:
                self.add(dimension if found.dimension is None else found.dimension, kind, found.reading, label)
            if reading and not inside:
                self.add(dimension, kind, Reading(None, unclear, reading.end), label)
            return
        if self._quoting:
            reading = Reading(None, f"a quoted rating: {line[value : reading.end]}", reading.end)
        self.add(dimension, kind, reading, label)
        self._chain(line, raw, reading.end, offset, dimension)

    def _elsewhere(self, line: str, raw: str, at: int) -> list[Candidate]:
        """Return the ratings that the rest of a line calls so."""
        before = len(self.candidates)
        self._prose(unquoted(line, raw), at)
        inside = [found for found in self.candidates[before:] if found.reading.why is None]
        del self.candidates[before:]
        return inside

    def _chain(self, line: str, raw: str, at: int, offset: int, first: str | None) -> None:
        """Go on with what follows a rating in its line: other ratings, or the explanation."""
        while gap := GAP.match(line, at):
            found = LABEL.match(line, gap.end())
            label = self.names.classify(found[1]) if found else OTHER
            if found and label.kind == "rationale":
                self._explain(line, raw, found.end(), offset)
                return
            reading = None
            if found and label.kind in ("dimension", "rating"):
                soft = SOFT.match(line, found.end())
                reading = self._sure(line, self.read(line, soft.end() if soft else found.end()))
            if reading is None:
                before = len(self.candidates)
                self._inline(unquoted(line, raw), at)
                for place, each in enumerate(self.candidates[before:], before):
                    # The same dimension twice in a line: what disagrees is no aside.
                    if each.dimension in (first, None) and each.kind == Kind.INLINE:
                        self.candidates[place] = Candidate(first, Kind.NAMED, each.reading, each.label)
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
            self._heads = heads(raw) if label.kind == "echo" else ""
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
        alone = REST.fullmatch(line, reading.end) is not None
        if not alone and not COMMENT.match(line, reading.end):
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

    def _told(self) -> bool:
        """Return whether this is an explanation after ratings by name: it tells of ratings, and gives none."""
        return self._open is not None and self.named

    def _prose(self, line: str, at: int) -> None:
        if self._told():
            return
        self._inline(line, at)
        for dimension, reading in in_sentences(line, at, self.names):
            self.add(dimension, Kind.PROSE, reading)

    def _finish(self) -> None:
        numbered = [] if len(self._numbered) != 1 else self._numbered
        for reading, words in numbered:
            # "1. Natural" may be the first of a list, cut off before the rating.
            if not (reading.value == 1 and self.names.stem(words.split(" ")[0].strip(".,"))):
                self.add(None, Kind.ALONE, reading)
        if self._lines == 1 and not self.candidates and (word := whole_word(self._only, self.read)):
            self.add(None, Kind.ALONE, word)
        if self._lines == 1 and self._foreign is not None:
            self.add(None, Kind.WEAK, self._foreign)
        elif tail := TAIL.search(self._last.rstrip(" ."), max(0, len(self._last) - 40)):
            self.add(None, Kind.WEAK, self.read(self._last, tail.end()))
