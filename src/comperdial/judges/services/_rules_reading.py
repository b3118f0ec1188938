"""What the rules read out of a prompt: its sections, the form to fill in, and the words of the texts.

A section starts where its header stands alone on a line. Texts under judgement cannot start one: they are one line
each, and what renders them keeps them from looking like a header. The first line that is not blank after the header of
a response or reference is that text; every line under the header of a history, of facts, of turn scores, of responses
or of a conversation is data (of the last, with its speaker). What the form asks for, on which scale, is read from the
remaining lines alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

_HEADERS = {
    "Context:": "history",
    "Conversation History:": "history",
    "Reference response:": "reference",
    "Corresponding Reference Response:": "reference",
    "Corresponding Fact:": "facts",
    "Response:": "response",
    "Dialogue Turn Scores:": "turn scores",
    "Responses:": "responses",
    "Output Format:": "form",
    "Evaluation Form:": "form",
    "Evaluation Form (scores ONLY):": "form",
    "After the Scores:": "",
}
_SECTIONS = {mark + header: name for header, name in _HEADERS.items() for mark in ("", "# ", "## ", "### ")}
# With a mark only: nothing keeps a text under judgement from being that word and a colon.
_SECTIONS |= {f"{mark} Conversation:": "conversation" for mark in ("#", "##", "###")}
_ONE_LINE = frozenset({"response", "reference"})
_DATA_LINE = {
    "history": re.compile(r"(?:[^:]*: ?)?(?P<text>.*)"),
    "facts": re.compile(r"(?:- ?)?(?P<text>.*)"),
    "turn scores": re.compile(r"(?:Turn ?\d+ Score - ?)?(?P<text>.*)"),
    "responses": re.compile(r"(?:Turn ?\d+: ?)?(?P<text>.*)"),
    "conversation": re.compile(r"(?P<text>.*)"),
}
_NOTHING = frozenset({"", "(none)"})
"""Lines that say that there is no history, or are no line of it."""
_FORM_LINE = re.compile(r"(?:- )?([A-Za-z][A-Za-z ]*?) ?(?:- [xX]|:)")
_SCALE = re.compile(r"(?:of |from |between |\()(\d{1,2})(?: \([^)]*\))?(?: ?[-–] ?| to | and )(\d{1,2})\b")
_TOKENS = re.compile(r"\w+|[^\w\s]")
_WORDS = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_QUESTION = re.compile(r"[?？؟]")
_STEM = 5
"""Letters that a word's forms are taken to share: a plural, an -ed or an -ing mostly lies behind them."""


class UnreadableError(Exception):
    """A prompt in which a part that the rules need was not found."""


@dataclass(frozen=True)
class Request:
    """What a prompt says, before anything is judged."""

    instructions: str
    """The prompt without the texts under judgement."""
    form: tuple[str, ...]
    """The dimensions, as the form writes them."""
    low: int
    high: int
    rationale: bool
    """Whether a rationale is asked for."""
    sections: dict[str, tuple[str, ...]]
    """The lines of the texts under judgement, without the marks before them, by section."""
    tokens: int
    """Words and marks of the whole prompt."""

    def one(self, name: str) -> str | None:
        """Return the text of a section of one line, None where the prompt has no such section."""
        lines = self.sections.get(name)
        return lines[0] if lines else None


def read(prompt: str) -> Request:
    """Find the sections of a prompt.

    Raises
    ------
    UnreadableError
        When the form, its scale or what is to be judged is missing.
    """
    frame: list[str] = []
    lines: dict[str, list[str]] = {}
    name = ""
    for line in prompt.split("\n"):
        if line.startswith("#") or line in _SECTIONS:
            name = _SECTIONS.get(line.rstrip(), "")
            lines.setdefault(name, [])
            frame.append(line)
        elif name in _DATA_LINE or (name in _ONE_LINE and line and not lines[name]):
            lines[name].append(line)
        elif line or name not in _ONE_LINE:
            frame.append(line)
    instructions = "\n".join(frame)
    form, low, high, rationale = _read_form(instructions)
    if not form:
        raise UnreadableError("it has no form that says which ratings to give")
    if not low < high:
        raise UnreadableError("it does not say on which scale to rate")
    # Part by part, as parts come again.
    blocks = {name: "\n".join(part) for name, part in lines.items() if name in _DATA_LINE or name in _ONE_LINE}
    sections = {name: _texts(name, block) for name, block in blocks.items()}
    if not any(sections.get(name) for name in ("response", "responses", "conversation")):
        raise UnreadableError("it has no response to rate")
    tokens = count_tokens(instructions) + sum(map(count_tokens, blocks.values()))
    return Request(instructions, form, low, high, rationale, sections, tokens)


@lru_cache(maxsize=1024)
def _texts(name: str, block: str) -> tuple[str, ...]:
    """Return the texts of a section without the marks before them; a response may be the empty text."""
    if name in _ONE_LINE:
        return (block,)
    matches = (_DATA_LINE[name].fullmatch(line) for line in block.split("\n") if line not in _NOTHING)
    return tuple(match["text"] for match in matches if match)


@lru_cache(maxsize=64)
def _read_form(instructions: str) -> tuple[tuple[str, ...], int, int, bool]:
    """Return the dimensions asked for, the ends of the scale (0, 0: none found), and whether a rationale is wanted."""
    form: list[str] = []
    inside = False
    rationale = "Rationale:" in instructions
    for line in instructions.split("\n"):
        if line in _SECTIONS:
            inside = _SECTIONS[line] == "form"
        elif line.startswith("#"):
            inside = False
        elif inside and (match := _FORM_LINE.fullmatch(line.strip())) and match[1] != "Rationale":
            form.append(match[1])
    scale = _SCALE.search(instructions)
    low, high = (int(scale[1]), int(scale[2])) if scale else (0, 0)
    return tuple(form), low, high, rationale


@lru_cache(maxsize=1024)
def count_tokens(text: str) -> int:
    """Return the number of words and marks of a text, the rules' measure of usage."""
    return sum(1 for _ in _TOKENS.finditer(text))


@dataclass(frozen=True)
class Text:
    """One text and what is derived from it, each when it is first asked for."""

    text: str
    common: frozenset[str] = field(repr=False, compare=False)
    """Words that say nothing about the topic."""

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Return the words in lower case."""
        return tuple(_WORDS.findall(self.text.lower().replace("’", "'")))

    @cached_property
    def content(self) -> frozenset[str]:
        """Return the stems of the words that are about something."""
        return frozenset(word[:_STEM] for word in self.words if word not in self.common and len(word) > 1)

    @cached_property
    def trigrams(self) -> tuple[tuple[str, ...], ...]:
        """Return the runs of three words."""
        return tuple(zip(self.words, self.words[1:], self.words[2:], strict=False))

    @cached_property
    def asks(self) -> bool:
        """Return whether there is a question mark."""
        return _QUESTION.search(self.text) is not None
