"""Dialogues to train on: public corpora in their own formats, our tables, and a user's own files."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from comperdial import schema
from comperdial.core.errors import FileError, SchemaError, UnknownNameError
from comperdial.core.files import read_json, read_jsonl, read_text


@dataclass(frozen=True)
class Dialogue:
    """A conversation between people, in order.

    Attributes
    ----------
    corpus, id
        Where it comes from; the two together name it.
    speakers, texts
        One entry an utterance.
    facts
        What a speaker's utterances may draw on, such as persona sentences, by speaker.
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
    """Read a corpus in one of :data:`FORMATS` from its file, or for ``tables`` from the folder of a data set's tables.

    What one speaker says in a row is one utterance, and empty ones are left out.

    Raises
    ------
    UnknownNameError
        When there is no such format.
    FileError, SchemaError
        When the file does not have this format, or has no dialogue of two utterances or more.
    """
    if format not in FORMATS:
        raise UnknownNameError("format of a corpus", format, FORMATS)
    result = []
    for number, (utterances, facts) in enumerate(FORMATS[format](path)):
        filled = [(speaker, words) for speaker, text in utterances if (words := text.split())]
        turns = [
            (who, [w for _, words in group for w in words]) for who, group in groupby(filled, key=lambda one: one[0])
        ]
        if len(turns) > 1:
            speakers, texts = tuple(who for who, _ in turns), tuple(" ".join(words) for _, words in turns)
            lines = {who: tuple(filter(None, map(str.strip, given))) for who, given in facts.items()}
            result.append(Dialogue(name, str(number), speakers, texts, lines))
    if not result:
        expected = f"dialogues in the format {format!r}"
        raise FileError("no dialogue of two utterances or more", where=str(path), expected=expected)
    return result


def _dailydialog(path: Path) -> Iterator[Record]:
    """Yield a dialogue a line, its utterances ended by ``__eou__``; two speakers take turns."""
    for line in read_text(path).splitlines():
        texts = filter(str.strip, line.split("__eou__"))
        yield [("AB"[place % 2], text) for place, text in enumerate(texts)], {}


# A person whom the generator forgot to name.
_PLACEHOLDER = re.compile(r"\[[^\]]*\]")


def _synthetic_persona_chat(path: Path) -> Iterator[Record]:
    """Yield a dialogue a record: ``User 1: …`` lines and both users' persona sentences."""
    for record in _records(path, ("user 1 personas", "user 2 personas", "Best Generated Conversation")):
        text = record["Best Generated Conversation"]
        if _PLACEHOLDER.search(text):
            continue
        # Some generated conversations name their speakers otherwise: nobody can tell whose persona is whose.
        utterances: list[tuple[str, str]] = []
        for line in filter(str.strip, text.splitlines()):
            speaker, colon, rest = line.partition(":")
            if colon and re.fullmatch(r"User \d", speaker):
                utterances.append((speaker, rest))
            elif utterances:
                # An utterance of several lines.
                utterances.append((utterances[-1][0], line))
        yield utterances, {f"User {user}": record[f"user {user} personas"].splitlines() for user in (1, 2)}


def _topical_chat(path: Path) -> Iterator[Record]:
    """Yield a conversation an entry, messages by ``agent_1`` and ``agent_2``."""
    for name, entry in read_json(path).items():
        try:
            yield [(message["agent"], message["message"]) for message in entry["content"]], {}
        except (TypeError, KeyError) as error:
            expected = "content: a list of {agent, message}"
            raise SchemaError("no conversation", where=f"{path}, {name}", expected=expected) from error


def _jsonl(path: Path) -> Iterator[Record]:
    """Yield a dialogue a line: ``{"utterances": [text or {"speaker", "text"}, …], "facts": {speaker: [text, …]}}``."""
    for number, record in read_jsonl(path):
        where = f"{path}, line {number}"
        given, facts = record.get("utterances"), record.get("facts") or {}
        pairs = [_utterance(*at) for at in enumerate(given)] if isinstance(given, list) else [None]
        utterances = [pair for pair in pairs if pair]
        if len(utterances) < len(pairs):
            expected = '"utterances": texts, or {"speaker": …, "text": …}'
            raise SchemaError("no list of utterances", where=where, expected=expected)
        if not isinstance(facts, dict) or not all(isinstance(lines, list) for lines in facts.values()):
            raise SchemaError(f"facts are {facts!r}", where=where, expected="a list of texts for each speaker")
        yield utterances, facts


def _utterance(place: int, given: object) -> tuple[str, str] | None:
    """Return speaker and text; of a text alone, the speaker is who takes turns."""
    if isinstance(given, str):
        return "AB"[place % 2], given
    speaker, text = (given.get("speaker"), given.get("text")) if isinstance(given, dict) else (None, None)
    return (speaker, text) if isinstance(speaker, str) and isinstance(text, str) else None


def _csv(path: Path) -> Iterator[Record]:
    """Yield the dialogues of a table with a row an utterance: ``dialogue_id``, ``speaker``, ``text``, in order."""
    dialogues: dict[str, list[tuple[str, str]]] = {}
    for record in _records(path, ("dialogue_id", "speaker", "text")):
        dialogues.setdefault(record["dialogue_id"], []).append((record["speaker"], record["text"]))
    yield from ((utterances, {}) for utterances in dialogues.values())


def _records(path: Path, columns: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """Yield the records of a CSV file that has these columns."""
    for number, record in enumerate(csv.DictReader(read_text(path).splitlines(keepends=True)), start=1):
        if lacking := [column for column in columns if record.get(column) is None]:
            expected = "the columns " + ", ".join(columns)
            raise SchemaError(f"no {lacking[0]!r}", where=f"{path}, record {number}", expected=expected)
        yield record


def _tables(path: Path) -> Iterator[Record]:
    """Yield the dialogues of a data set's contexts: each one's longest history, and the reference that follows it."""
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
