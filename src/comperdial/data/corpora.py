"""Dialogues to train on: public corpora in their own formats, our tables, and files of a user's own."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from comperdial.core.errors import FileError, SchemaError, UnknownNameError
from comperdial.core.files import parse_json, read_json, read_text


@dataclass(frozen=True)
class Dialogue:
    """A conversation between people, in the order in which it was said.

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


def read_corpus(name: str, format: str, path: Path) -> list[Dialogue]:
    """Read a corpus.

    Parameters
    ----------
    name
        What the corpus is called.
    format
        One of :data:`FORMATS`.
    path
        Its file; for ``tables`` the folder of a data set's tables.

    Raises
    ------
    UnknownNameError
        When there is no such format.
    FileError, SchemaError
        When the file is not of this format, or holds no dialogue of two utterances or more.
    """
    if format not in FORMATS:
        raise UnknownNameError("format of a corpus", format, FORMATS)
    found = [
        dialogue
        for number, (speakers, texts, facts) in enumerate(FORMATS[format](path))
        if len((dialogue := _dialogue(name, number, speakers, texts, facts)).texts) > 1
    ]
    if not found:
        raise FileError(
            "no dialogue of two utterances or more", where=str(path), expected=f"dialogues in the format {format!r}"
        )
    return found


Record = tuple[Sequence[str], Sequence[str], Mapping[str, Sequence[str]]]


def _dialogue(
    corpus: str, number: int, speakers: Sequence[str], texts: Sequence[str], facts: Mapping[str, Sequence[str]]
) -> Dialogue:
    """Make a dialogue; what one speaker says in a row is one utterance, and empty ones are left out."""
    said: list[tuple[str, str]] = []
    for speaker, text in zip(speakers, (" ".join(text.split()) for text in texts), strict=True):
        if text and said and said[-1][0] == speaker:
            said[-1] = speaker, f"{said[-1][1]} {text}"
        elif text:
            said.append((speaker, text))
    told = {speaker: tuple(filter(None, map(str.strip, lines))) for speaker, lines in facts.items()}
    return Dialogue(corpus, str(number), tuple(s for s, _ in said), tuple(t for _, t in said), told)


def _dailydialog(path: Path) -> Iterator[Record]:
    """Yield a dialogue a line, its utterances ended by ``__eou__``; two speakers take turns."""
    for line in read_text(path).splitlines():
        texts = [text for text in line.split("__eou__") if text.strip()]
        yield ["AB"[place % 2] for place in range(len(texts))], texts, {}


# A person whom the generator forgot to name.
_PLACEHOLDER = re.compile(r"\[[^\]]*\]")


def _synthetic_persona_chat(path: Path) -> Iterator[Record]:
    """Yield a dialogue a record: ``User 1: …`` lines and both users' persona sentences."""
    columns = ("user 1 personas", "user 2 personas", "Best Generated Conversation")
    reader = csv.DictReader(read_text(path).splitlines(keepends=True))
    for number, record in enumerate(reader, start=1):
        where = f"{path}, record {number}"
        if lacking := [column for column in columns if record.get(column) is None]:
            raise SchemaError(f"no {lacking[0]!r}", where=where, expected="the columns " + ", ".join(columns))
        if _PLACEHOLDER.search(record[columns[2]]):
            continue
        # Some generated conversations name their speakers otherwise: nobody can tell whose persona is whose.
        said: list[tuple[str, str]] = []
        for line in filter(str.strip, record[columns[2]].splitlines()):
            speaker, colon, text = line.partition(":")
            if colon and re.fullmatch(r"User \d", speaker):
                said.append((speaker, text))
            elif said:
                # An utterance of several lines.
                said.append((said[-1][0], line))
        facts = {f"User {user}": record[columns[user - 1]].splitlines() for user in (1, 2)}
        yield [speaker for speaker, _ in said], [text for _, text in said], facts


def _topical_chat(path: Path) -> Iterator[Record]:
    """Yield a conversation an entry, messages by ``agent_1`` and ``agent_2``."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise SchemaError(f"holds {type(content).__name__}", where=str(path), expected="conversations by id")
    for name, entry in content.items():
        try:
            messages = [(message["agent"], message["message"]) for message in entry["content"]]
        except (TypeError, KeyError) as error:
            raise SchemaError(
                "no conversation", where=f"{path}, {name}", expected="content: a list of {agent, message}"
            ) from error
        yield [agent for agent, _ in messages], [text for _, text in messages], {}


def _jsonl(path: Path) -> Iterator[Record]:
    """Yield a dialogue a line: ``{"utterances": [text or {"speaker", "text"}, …], "facts": {speaker: [text, …]}}``."""
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        record = parse_json(line, where, expected="a JSON object")
        given = record.get("utterances") if isinstance(record, dict) else None
        if not isinstance(given, list) or not all(map(_is_utterance, given)):
            raise SchemaError(
                "no list of utterances", where=where, expected='"utterances": texts, or {"speaker": …, "text": …}'
            )
        facts = record.get("facts") or {}
        if not isinstance(facts, dict) or not all(isinstance(lines, list) for lines in facts.values()):
            raise SchemaError(f"facts are {facts!r}", where=where, expected="a list of texts for each speaker")
        said = [
            ("AB"[place % 2], u) if isinstance(u, str) else (u["speaker"], u["text"]) for place, u in enumerate(given)
        ]
        yield [speaker for speaker, _ in said], [text for _, text in said], facts


def _is_utterance(given: Any) -> bool:  # noqa: ANN401
    if isinstance(given, dict):
        return isinstance(given.get("speaker"), str) and isinstance(given.get("text"), str)
    return isinstance(given, str)


def _csv(path: Path) -> Iterator[Record]:
    """Yield the dialogues of a table with a row an utterance: ``dialogue_id``, ``speaker``, ``text``, in order."""
    reader = csv.DictReader(read_text(path).splitlines(keepends=True))
    dialogues: dict[str, list[tuple[str, str]]] = {}
    for number, record in enumerate(reader, start=1):
        if lacking := [column for column in ("dialogue_id", "speaker", "text") if record.get(column) is None]:
            raise SchemaError(
                f"no {lacking[0]!r}",
                where=f"{path}, record {number}",
                expected="the columns dialogue_id, speaker, text",
            )
        dialogues.setdefault(record["dialogue_id"], []).append((record["speaker"], record["text"]))
    for said in dialogues.values():
        yield [speaker for speaker, _ in said], [text for _, text in said], {}


def _tables(path: Path) -> Iterator[Record]:
    """Yield the dialogues of a data set's contexts: each one's longest history, and the reference that follows it."""
    from comperdial import schema

    contexts = schema.read(path / "contexts.parquet", "contexts")
    last = contexts.loc[contexts.groupby("dialogue_id", sort=True)["turn"].idxmax()]
    for history, references, facts in zip(last["history"], last["references"], last["facts"], strict=True):
        speakers = [utterance["speaker"] for utterance in history]
        texts = [utterance["text"] for utterance in history]
        if texts and references:
            speakers.append(next((s for s in reversed(speakers) if s != speakers[-1]), f"{speakers[-1]}'s partner"))
            texts.append(references[0])
        yield speakers, texts, {speakers[-1]: facts} if speakers and facts else {}


FORMATS: Mapping[str, Callable[[Path], Iterable[Record]]] = {
    "dailydialog": _dailydialog,
    "synthetic_persona_chat": _synthetic_persona_chat,
    "topical_chat": _topical_chat,
    "jsonl": _jsonl,
    "csv": _csv,
    "tables": _tables,
}
"""Formats of corpora, by the name that ``training`` in ``params.yaml`` gives them."""
