"""Helpers for readers: table rows, speakers and ids."""

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
Item = tuple[str, str, str]
"""Level, item (a context or a dialogue) and system."""

# As everywhere in this repository, B's turns are evaluated.
PERSON, CHATBOT = "AB"
# Stands for an empty utterance that raters saw and rated; also used in ConTurE's files.
EMPTY = "<EMPTY>"


def make_tables(dataset: str, files: Files, **rows: Iterable[Row]) -> Tables:
    """Make validated tables from rows without the column ``dataset``; messages name the first file."""
    where = next(iter(files.values()), dataset)
    made = {}
    for name, content in rows.items():
        # Drop entries that are not columns of the table.
        frame = pd.DataFrame([{"dataset": dataset, **row} for row in content], columns=schema.table(name).columns)
        made[name] = schema.validate(frame, name, where=f"{where}, as table {name!r}")
    return made


def tables(
    dataset: str,
    files: Files,
    systems: Iterable[Row],
    answers: Sequence[Row],
    ratings: Iterable[Row] = (),
    personas: Iterable[Row] = (),
    **others: Iterable[Row],
) -> Tables:
    """Make the five tables of a data set of responses, and others; use :func:`answer` for responses and contexts."""
    contexts = {row["context_id"]: row for row in answers}.values()
    rows = {"systems": systems, "contexts": contexts, "personas": personas, "responses": answers, "ratings": ratings}
    return make_tables(dataset, files, **rows, **others)


def system(name: str, kind: str = "agent", description: str = "") -> Row:
    """Return a row of table ``systems``."""
    return {"system_id": name, "kind": kind, "track": None, "description": description}


def answer(
    context_id: str, dialogue_id: str, turn: int, history: History, system: str, response: str,
    references: Sequence[str] = (), facts: Sequence[str] = (),
) -> Row:  # fmt: skip
    """Return a row of table ``responses`` together with its context's columns."""
    return {
        "context_id": context_id,
        "dialogue_id": dialogue_id,
        "turn": turn,
        "history": history,
        "references": list(references),
        "facts": list(facts),
        "system_id": system,
        "response": response,
    }


def persona(dialogue_id: str, speaker: str, sentences: Sequence[str]) -> Row:
    """Return a row of table ``personas`` with sentences of kind ``profile``."""
    kinds = ["profile"] * len(sentences)
    return {"dialogue_id": dialogue_id, "speaker": speaker, "sentences": list(sentences), "kinds": kinds}


def rating(
    item: Item, annotator: str, dimension: str, rating: float, scale: Scale,
    *, position: int | None = None, source: str = "human",
) -> Row:  # fmt: skip
    """Return a row of table ``ratings``; ``position`` is the annotator's index if annotators have no names."""
    return {
        **dict(zip(("level", "item_id", "system_id"), item, strict=True)),
        "annotator_id": annotator,
        "position": position,
        "dimension": dimension,
        "rating": float(rating),
        "scale_min": float(scale[0]),
        "scale_max": float(scale[1]),
        "source": source,
    }


def vote(
    pair: str, dialogue: str, systems: Sequence[str], annotator: str, question: str, preference: float,
    **others: Any,  # noqa: ANN401
) -> Row:  # fmt: skip
    """Return a row of table ``preferences`` on two systems in one dialogue, by people unless ``others`` has a source.

    ``preference`` is above 0 for the first system, 0 for a tie.
    """
    return {
        "pair_id": pair,
        "first_dialogue_id": dialogue,
        "first_system_id": systems[0],
        "second_dialogue_id": dialogue,
        "second_system_id": systems[1],
        "annotator_id": annotator,
        "question": question,
        "choice": "first" if preference > 0 else "second" if preference < 0 else "tie",
        "source": "human",
        **others,
    }


def numbered(dataset: str, number: int) -> str:
    """Return a dialogue id with a four-digit number."""
    return f"{dataset}-{number:04d}"


def worker_numbers(names: Iterable[str]) -> dict[str, str]:
    """Number names from 1 by first appearance, so that no table contains crowd workers' names."""
    return {name: str(number) for number, name in enumerate(dict.fromkeys(names), start=1)}


def alternating(texts: Sequence[str], last: str = PERSON) -> list[tuple[str, str]]:
    """Assign alternating speakers to texts; the last text is by ``last``."""
    other = PERSON if last == CHATBOT else CHATBOT
    return [((last, other)[(len(texts) - 1 - place) % 2], text) for place, text in enumerate(texts)]


def is_said(text: str) -> bool:
    """Return whether a text is neither empty nor marked as empty."""
    return bool(text) and text != EMPTY


def as_history(utterances: Iterable[tuple[str, str]]) -> History:
    """Return non-empty utterances in the format of table ``contexts``."""
    return [{"speaker": speaker, "text": text} for speaker, text in utterances if is_said(text)]


def get(record: Any, field: str, kind: type, where: str) -> Any:  # noqa: ANN401
    """Return a field of a user's JSON record.

    Raises
    ------
    SchemaError
        If the record is not an object, lacks the field, or the value has another type.
    """
    if not isinstance(record, dict):
        raise SchemaError(f"holds {type(record).__name__}", where=where, expected="a JSON object")
    if field not in record:
        expected = f"the fields of this format; it has {', '.join(record)}"
        raise SchemaError(f"no field {field!r}", where=where, expected=expected)
    if not isinstance(record[field], kind):
        raise SchemaError(f"field {field!r} holds {record[field]!r}", where=where, expected=f"a {kind.__name__}")
    return record[field]
