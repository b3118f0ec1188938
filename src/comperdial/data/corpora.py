"""Training dialogues: public corpora in their own formats, our tables, and a user's files."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, groupby
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator

from comperdial import schema
from comperdial.challenge.records import checked
from comperdial.core.errors import FileError, SchemaError, UnknownNameError
from comperdial.core.files import read_json, read_jsonl, read_text


@dataclass(frozen=True)
class Dialogue:
    """A conversation between people.

    Attributes
    ----------
    corpus, id
        The corpus and the dialogue's id within it.
    speakers, texts
        One entry per utterance, in order.
    facts
        Facts available to each speaker, such as persona sentences.
    """

    corpus: str
    id: str
    speakers: tuple[str, ...]
    texts: tuple[str, ...]
    facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


Utterances = Sequence[tuple[str, str]]
"""Speaker and text of each utterance."""
Record = tuple[Utterances, Mapping[str, Sequence[str]]]
"""What a format yields: the utterances of a dialogue, and facts by speaker."""


def read_corpus(name: str, format: str, path: Path) -> list[Dialogue]:
    """Read a corpus in one of :data:`FORMATS` from its file, or for ``tables`` from a data set's folder.

    Consecutive utterances of a speaker are merged, and empty ones dropped.

    Raises
    ------
    UnknownNameError
        If the format does not exist.
    FileError, SchemaError
        If the file does not have this format, or has no dialogue of two or more utterances.
    """
    if format not in FORMATS:
        raise UnknownNameError("format of a corpus", format, FORMATS)
    result = []
    try:
        for number, (utterances, facts) in enumerate(FORMATS[format](path)):
            filled = [(who, " ".join(text.split())) for who, text in utterances if text.strip()]
            turns = [(who, " ".join(text for _, text in group)) for who, group in groupby(filled, lambda one: one[0])]
            if len(turns) > 1:
                speakers, texts = zip(*turns, strict=True)
                lines = {who: tuple(filter(None, map(str.strip, given))) for who, given in facts.items()}
                result.append(Dialogue(name, str(number), speakers, texts, lines))
    except (AttributeError, LookupError, TypeError) as error:
        problem = f"{type(error).__name__} ({error}) while reading"
        raise SchemaError(problem, where=str(path), expected=f"the format {format!r}") from error
    if not result:
        expected = f"dialogues in the format {format!r}"
        raise FileError("no dialogue of two utterances or more", where=str(path), expected=expected)
    return result


def _dailydialog(path: Path) -> Iterator[Record]:
    """Yield one dialogue per line; ``__eou__`` ends an utterance, and two speakers alternate."""
    for line in read_text(path).splitlines():
        yield [*zip(cycle("AB"), filter(str.strip, line.split("__eou__")), strict=False)], {}


def _synthetic_persona_chat(path: Path) -> Iterator[Record]:
    """Yield one dialogue per record: ``User 1: …`` lines and both users' persona sentences."""
    for record in csv.DictReader(read_text(path).splitlines(keepends=True)):
        text = record["Best Generated Conversation"]
        # A placeholder where the generator did not fill in a name.
        if re.search(r"\[[^\]]*\]", text):
            continue
        # Some generated conversations use other speaker names, so that their personas cannot be assigned.
        utterances: list[tuple[str, str]] = []
        for line in filter(str.strip, text.splitlines()):
            speaker, colon, rest = line.partition(":")
            if colon and re.fullmatch(r"User \d", speaker):
                utterances.append((speaker, rest))
            elif utterances:
                # A multi-line utterance.
                utterances.append((utterances[-1][0], line))
        yield utterances, {f"User {user}": record[f"user {user} personas"].splitlines() for user in (1, 2)}


def _topical_chat(path: Path) -> Iterator[Record]:
    """Yield one conversation per entry, with messages by ``agent_1`` and ``agent_2``."""
    for entry in read_json(path).values():
        yield [(message["agent"], message["message"]) for message in entry["content"]], {}


class _Utterance(BaseModel):
    speaker: str
    text: str


_TextOrUtterance = Annotated[
    _Utterance, BeforeValidator(lambda given: {"speaker": "", "text": given} if isinstance(given, str) else given)
]


class _Dialogue(BaseModel):
    utterances: list[_TextOrUtterance]
    facts: dict[str, list[str]] | None = None


def _jsonl(path: Path) -> Iterator[Record]:
    """Yield one dialogue per line: ``{"utterances": [text or {"speaker", "text"}, …], "facts": {speaker: [text, …]}}``."""
    for number, record in read_jsonl(path):
        one: _Dialogue = checked(_Dialogue, record, f"{path}, line {number}")
        # Plain texts have alternating speakers.
        utterances = zip(cycle("AB"), one.utterances, strict=False)
        yield [(given.speaker or speaker, given.text) for speaker, given in utterances], one.facts or {}


def _csv(path: Path) -> Iterator[Record]:
    """Yield the dialogues of a table with one row per utterance: ``dialogue_id``, ``speaker``, ``text``, in order."""
    dialogues: dict[str, list[tuple[str, str]]] = {}
    for number, row in enumerate(csv.DictReader(read_text(path).splitlines(keepends=True)), start=1):
        if lacking := [column for column in ("dialogue_id", "speaker", "text") if row.get(column) is None]:
            expected = "the columns dialogue_id, speaker, text"
            raise SchemaError(f"no {lacking[0]!r}", where=f"{path}, record {number}", expected=expected)
        dialogues.setdefault(row["dialogue_id"], []).append((row["speaker"], row["text"]))
    yield from ((utterances, {}) for utterances in dialogues.values())


def _tables(path: Path) -> Iterator[Record]:
    """Yield the dialogues of a data set's contexts: each one's longest history plus the following reference."""
    contexts = schema.read(path / "contexts.parquet", "contexts")
    last = contexts.loc[contexts.groupby("dialogue_id", sort=True)["turn"].idxmax()]
    for history, references, facts in zip(last["history"], last["references"], last["facts"], strict=True):
        utterances = [(utterance["speaker"], utterance["text"]) for utterance in history]
        if utterances and references:
            before = utterances[-1][0]
            others = (speaker for speaker, _ in reversed(utterances) if speaker != before)
            utterances.append((next(others, f"{before}'s partner"), references[0]))
        yield utterances, {utterances[-1][0]: facts} if utterances and facts else {}


FORMATS: Mapping[str, Callable[[Path], Iterable[Record]]] = {
    "dailydialog": _dailydialog,
    "synthetic_persona_chat": _synthetic_persona_chat,
    "topical_chat": _topical_chat,
    "jsonl": _jsonl,
    "csv": _csv,
    "tables": _tables,
}
"""Formats of corpora, by the name that ``training`` in ``params.yaml`` gives them."""
