"""What the readers of Zhang et al. 2024 and GRADE share: lines of utterances, the chatbot's turns, table rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from comperdial.core.errors import SchemaError
from comperdial.core.files import read_text

# As everywhere in this repository: B's turns are evaluated, A is the other.
PERSON, CHATBOT = "AB"
# What ConTurE writes where the chatbot said nothing.
EMPTY = "<EMPTY>"
GPT4 = "gpt-4"
GPT4_SCALE = (1.0, 5.0)

Utterance = tuple[str, str]
History = list[dict[str, str]]
Scale = tuple[float, float]


class Line(NamedTuple):
    """One line of a text file: its id, and the fields after it; ``where`` names it in messages."""

    name: str
    fields: tuple[str, ...]
    where: str


def read_lines(path: Path) -> list[Line]:
    """Read lines ``ID<TAB>utterance<TAB>…<TAB>utterance``; fields lose their outer white space.

    Raises
    ------
    FileError
        When the file cannot be read.
    SchemaError
        When there is no line, or a line has no id or no utterance.
    """
    # Not splitlines(): some utterances hold other characters that end a line.
    rows = read_text(path).split("\n")
    lines = []
    for number, row in enumerate(rows, start=1):
        if not row.strip() and number == len(rows):
            break
        name, *fields = (field.strip() for field in row.split("\t"))
        where = f"{path}, line {number}"
        if not name or not fields:
            raise SchemaError("no id or no utterance", where=where, expected="ID, then utterances, each after a tab")
        lines.append(Line(name, tuple(fields), where))
    if not lines:
        raise SchemaError("the file is empty", where=str(path), expected="a line an item")
    return lines


def prefix(lines: Sequence[Line], known: Iterable[str], path: Path) -> str:
    """Return what the ids of a file begin with: this says which set it is.

    Raises
    ------
    SchemaError
        When it is none of ``known``, or not the same in all lines.
    """
    first = lines[0].name.split("-")[0]
    if first not in set(known):
        raise SchemaError(f"ids begin with {first!r}", where=lines[0].where, expected="one of " + ", ".join(known))
    for line in lines:
        if line.name.split("-")[0] != first:
            raise SchemaError(f"the id is {line.name!r}", where=line.where, expected=f"an id that begins with {first}-")
    return first


def numbered(dataset: str, number: int) -> str:
    """Return the id of a set's dialogue: the line in its text file, counted from 0, in four digits."""
    return f"{dataset}-{number:04d}"


def plain(text: str) -> str:
    """Return a text for comparisons: white space of one kind, none outside."""
    return " ".join(text.split())


def labelled(line: Line, labels: Mapping[str, str]) -> list[Utterance]:
    """Take the speaker's label off each utterance of a line, once: a label inside the text stays.

    Parameters
    ----------
    line
        The line; each field is ``label: text``.
    labels
        Whose label each is: :data:`PERSON` or :data:`CHATBOT`.
    """
    found = []
    for number, field in enumerate(line.fields, start=1):
        label, colon, text = field.partition(":")
        if not colon or label.strip() not in labels:
            raise SchemaError(
                f"utterance {number} begins {field[:30]!r}",
                where=line.where,
                expected=" or ".join(f"{n}:" for n in labels),
            )
        found.append((labels[label.strip()], text.strip()))
    return found


def alternating(texts: Sequence[str], last: str) -> list[Utterance]:
    """Give texts their speakers: ``last`` said the last one, and the two take turns."""
    other = PERSON if last == CHATBOT else CHATBOT
    return [((last, other)[(len(texts) - 1 - place) % 2], text) for place, text in enumerate(texts)]


def is_said(text: str) -> bool:
    """Say whether a text is something said: not nothing, and not the mark for nothing."""
    return bool(text) and text != EMPTY


def as_history(utterances: Iterable[Utterance]) -> History:
    """Return utterances as table ``contexts`` has them, without those in which nothing is said."""
    return [{"speaker": speaker, "text": text} for speaker, text in utterances if is_said(text)]


def chatbot_turns(dialogue: Sequence[Utterance]) -> Iterator[tuple[int, History, str]]:
    """Yield the chatbot's turns that say something: the turn counted from 0, what was said before, the response.

    A turn that says nothing is counted, so that turns keep their numbers, and is neither response nor history.
    """
    turn = 0
    for place, (speaker, text) in enumerate(dialogue):
        if speaker == CHATBOT:
            if is_said(text):
                yield turn, as_history(dialogue[:place]), text
            turn += 1


def rating_row(
    annotator: str,
    position: int | None,
    dimension: str,
    value: Any,  # noqa: ANN401
    scale: Scale,
    source: str,
    where: str,
) -> dict[str, Any]:
    """Return the columns of a rating that do not say of what it is.

    Raises
    ------
    SchemaError
        When the value is no number on the scale.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not scale[0] <= value <= scale[1]:
        raise SchemaError(
            f"rating {value!r} of {dimension!r}", where=where, expected=f"a number from {scale[0]:g} to {scale[1]:g}"
        )
    return {
        "annotator_id": annotator,
        "position": position,
        "dimension": dimension,
        "rating": float(value),
        "scale_min": scale[0],
        "scale_max": scale[1],
        "source": source,
    }


def context_row(
    context_id: str,
    dialogue_id: str,
    turn: int,
    history: History,
    references: Sequence[str] = (),
    facts: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a row of table ``contexts``, without the data set's name."""
    return {
        "context_id": context_id,
        "dialogue_id": dialogue_id,
        "turn": turn,
        "history": history,
        "references": list(references),
        "facts": list(facts),
    }


def system_row(name: str, kind: str = "agent", description: str = "") -> dict[str, Any]:
    """Return a row of table ``systems``, without the data set's name."""
    return {"system_id": name, "kind": kind, "track": None, "description": description}


def trailing_number(name: str) -> int | None:
    """Return the number at the end of an id, or None."""
    found = re.search(r"\d+$", name)
    return int(found[0]) if found else None
