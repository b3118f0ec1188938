"""Shared by the three readers of Zhang et al. 2024: lines of utterances, the chatbot's turns, GPT-4's rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from comperdial.core.files import read_json, read_text
from comperdial.data.readers import base

GPT4 = "gpt-4"
GPT4_SCALE = (1.0, 5.0)
ROUNDS = 5
# The meaning of these short names is inferred.
SHORT = {"coherence": "coh", "diversity": "div", "engagingness": "eng", "informativeness": "inf", "overall": "ovr"}
LABELS = {
    **dict.fromkeys(("A", "human_evaluator", "User", "human"), base.PERSON),
    **dict.fromkeys(("B", "model", "Chatbot", "chatbot"), base.CHATBOT),
}
"""Whose turn it is, by the labels that the files have."""

Turns = list[tuple[int, base.History, str]]
"""The turns to score: turn, history and response."""


class Line(NamedTuple):
    """A line of a text file: its id and utterances."""

    name: str
    fields: tuple[str, ...]


def read_lines(path: Path) -> list[Line]:
    """Read lines ``ID<TAB>utterance<TAB>…<TAB>utterance``, stripping each field."""
    # Not splitlines(): some utterances contain other line-ending characters.
    rows = [row.split("\t") for row in read_text(path).split("\n") if row.strip()]
    return [Line(name.strip(), tuple(field.strip() for field in fields)) for name, *fields in rows]


def set_of(lines: Sequence[Line]) -> str:
    """Return the id prefix of a file, which identifies the set."""
    return lines[0].name.split("-")[0]


def labelled(line: Line) -> list[tuple[str, str]]:
    """Split each field ``label: text`` into speaker and text."""
    parts = [field.partition(":") for field in line.fields]
    return [(LABELS[label.strip()], text.strip()) for label, _, text in parts]


def chatbot_turns(dialogue: Sequence[tuple[str, str]]) -> Turns:
    """Return the chatbot's non-empty turns: turn number from 0, history, response.

    Empty turns are counted, so that turns keep their numbers, but are neither responses nor history.
    """
    places = [place for place, (speaker, _) in enumerate(dialogue) if speaker == base.CHATBOT]
    turns = [(turn, base.as_history(dialogue[:place]), dialogue[place][1]) for turn, place in enumerate(places)]
    return [one for one in turns if base.is_said(one[2])]


def answers(turns: Turns, dialogue_id: str, system: str, prefix: str | None = None) -> list[base.Row]:
    """Return rows of table ``responses`` with their contexts, named ``<prefix or dialogue>-<turn>``."""
    return [
        base.answer(f"{prefix or dialogue_id}-{turn}", dialogue_id, turn, history, system, text)
        for turn, history, text in turns
    ]


class Rounds(NamedTuple):
    """GPT-4's ratings of whole dialogues in five rounds.

    ``lines`` are the dialogues' line numbers in the set's text file, from 0; ``numbers`` holds by dimension and round, from 0,
    one rating per dialogue in the order of ``lines``.
    """

    lines: list[int]
    numbers: Mapping[tuple[str, int], list[int | float]]


def read_rounds(path: Path) -> Rounds:
    """Read a JSON object of ``coh_1`` … ``coh_5``, ``div_1`` … ``ovr_5``, and ``indices`` if only some were rated."""
    content = read_json(path)
    numbers = {(name, n): content[f"{short}_{n + 1}"] for name, short in SHORT.items() for n in range(ROUNDS)}
    return Rounds(content.get("indices", list(range(len(numbers["coherence", 0])))), numbers)
