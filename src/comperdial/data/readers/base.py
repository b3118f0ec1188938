"""What readers share: rows of the tables, who speaks, and ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import SchemaError

Tables = dict[str, pd.DataFrame]
Row = dict[str, Any]
Files = Mapping[str, Path]
Scale = tuple[float, float]
History = list[dict[str, str]]

# As everywhere in this repository: B's turns are evaluated, A is the other speaker.
PERSON, CHATBOT = "AB"
# Replaces an empty utterance, which raters saw and judged. ConTurE's files use it too.
EMPTY = "<EMPTY>"
_RATED = ("systems", "contexts", "personas", "responses", "ratings")


def make_tables(dataset: str, files: Files, **rows: Iterable[Row]) -> Tables:
    """Make checked tables of their rows, which lack the column ``dataset``; messages name the first file."""
    where = next(iter(files.values()), dataset)
    made = {}
    for name, content in rows.items():
        frame = pd.DataFrame([{"dataset": dataset, **row} for row in content], columns=schema.table(name).columns)
        made[name] = schema.validate(frame, name, where=f"{where}, as table {name!r}")
    return made


def tables(dataset: str, files: Files, **rows: Iterable[Row]) -> Tables:
    """Make the five tables of a data set of responses; those without rows may be left out."""
    return make_tables(dataset, files, **{name: rows.pop(name, ()) for name in _RATED}, **rows)


def system(name: str, kind: str = "agent", description: str = "") -> Row:
    """Return a row of table ``systems``."""
    return {"system_id": name, "kind": kind, "track": None, "description": description}


def context(
    context_id: str,
    dialogue_id: str,
    turn: int,
    history: History,
    references: Sequence[str] = (),
    facts: Sequence[str] = (),
) -> Row:
    """Return a row of table ``contexts``."""
    return {
        "context_id": context_id,
        "dialogue_id": dialogue_id,
        "turn": turn,
        "history": history,
        "references": list(references),
        "facts": list(facts),
    }


def persona(dialogue_id: str, speaker: str, sentences: Sequence[str]) -> Row:
    """Return a row of table ``personas`` whose sentences are all of kind ``profile``."""
    kinds = ["profile"] * len(sentences)
    return {"dialogue_id": dialogue_id, "speaker": speaker, "sentences": list(sentences), "kinds": kinds}


def response(context_id: str, system_id: str, response: str) -> Row:
    """Return a row of table ``responses``."""
    return {"context_id": context_id, "system_id": system_id, "response": response}


def rating(
    level: str,
    item_id: str,
    system_id: str,
    annotator: str,
    dimension: str,
    rating: float,
    scale: Scale,
    *,
    position: int | None = None,
    source: str = "human",
) -> Row:
    """Return a row of table ``ratings``; ``position`` is the annotator's place where annotators have no names."""
    return {
        "level": level,
        "item_id": item_id,
        "system_id": system_id,
        "annotator_id": annotator,
        "position": position,
        "dimension": dimension,
        "rating": float(rating),
        "scale_min": float(scale[0]),
        "scale_max": float(scale[1]),
        "source": source,
    }


def vote(
    pair: str,
    dialogues: Sequence[str],
    systems: Sequence[str],
    annotator: str,
    question: str,
    preference: float,
    *,
    source: str = "human",
    left: str | None = None,
    seconds: float | None = None,
) -> Row:
    """Return a row of table ``preferences``; ``preference`` is above 0 for the first of the two, 0 for a tie."""
    return {
        "pair_id": pair,
        "first_dialogue_id": dialogues[0],
        "first_system_id": systems[0],
        "second_dialogue_id": dialogues[1],
        "second_system_id": systems[1],
        "annotator_id": annotator,
        "question": question,
        "choice": "first" if preference > 0 else "second" if preference < 0 else "tie",
        "left": left,
        "seconds": seconds,
        "source": source,
    }


def numbered(dataset: str, number: int) -> str:
    """Return the id of a data set's dialogue, by its number in four digits."""
    return f"{dataset}-{number:04d}"


def worker_numbers(names: Iterable[str]) -> dict[str, str]:
    """Return a number for each name, from 1 in the order of first appearance: names of crowd workers reach no table."""
    return {name: str(number) for number, name in enumerate(dict.fromkeys(names), start=1)}


def alternating(texts: Sequence[str], last: str = PERSON) -> list[tuple[str, str]]:
    """Give texts their speakers: the last one is by ``last``, and the two take turns."""
    other = PERSON if last == CHATBOT else CHATBOT
    return [((last, other)[(len(texts) - 1 - place) % 2], text) for place, text in enumerate(texts)]


def is_said(text: str) -> bool:
    """Return whether a text is neither empty nor the mark of an empty one."""
    return bool(text) and text != EMPTY


def as_history(utterances: Iterable[tuple[str, str]]) -> History:
    """Return speakers and texts as table ``contexts`` has them, without the empty ones."""
    return [{"speaker": speaker, "text": text} for speaker, text in utterances if is_said(text)]


def get(record: Any, field: str, kind: type, where: str) -> Any:  # noqa: ANN401
    """Return a field of a JSON record that a user brings.

    Raises
    ------
    SchemaError
        When the record is no object, lacks the field or holds another kind of value there.
    """
    if not isinstance(record, dict):
        raise SchemaError(f"holds {type(record).__name__}", where=where, expected="a JSON object")
    if field not in record:
        raise SchemaError(
            f"no field {field!r}", where=where, expected=f"the fields of this format; it has {', '.join(record)}"
        )
    value = record[field]
    if not isinstance(value, kind):
        raise SchemaError(f"field {field!r} holds {value!r}", where=where, expected=f"a {kind.__name__}")
    return value
