"""Dialogues rated by GPT-4 in five rounds, FED's also by people: six sets of Zhang et al. 2024 (AAAI).

``docs/llm-evaluators.md`` documents assumptions about what the files do not state.
"""

from __future__ import annotations

import logging
from typing import Any

from comperdial.core.files import read_json
from comperdial.data.readers import _comp, base
from comperdial.data.readers.base import Files, Tables

log = logging.getLogger(__name__)

# FED's names of the rated dimensions, ours, and the scale.
FED_DIMENSIONS = {
    "Coherent": ("coherence", (0.0, 2.0)),
    "Likeable": ("engagingness", (0.0, 2.0)),
    "Diverse": ("diversity", (0.0, 2.0)),
    "Informative": ("informativeness", (0.0, 2.0)),
    "Overall": ("overall", (0.0, 4.0)),
}
UNNAMED = "chatbot"
# Line 8t + i of iEval is task t: four lines with a positive emotion, then four with a negative one, in this order.
COLOURS = ("Pink", "Purple", "Green", "Yellow")


def read(dataset: str, files: Files) -> Tables:
    """Read one of the six sets, identified by the ids in its text file.

    Files: ``texts`` (one dialogue per line, utterances with speaker labels), ``rounds`` (GPT-4's ratings), and for FED
    ``ratings`` (human ratings with model names). Only dialogues rated by GPT-4 are read.
    """
    lines, rounds = _comp.read_lines(files["texts"]), _comp.read_rounds(files["rounds"])
    people: Any = read_json(files["ratings"]) if "ratings" in files else None
    systems, responses, ratings, silent = {}, [], [], 0
    for place, number in enumerate(rounds.lines):
        dialogue_id, dialogue = base.numbered(dataset, number), _comp.labelled(lines[number])
        system = people[number]["model"] if people else UNNAMED
        if _comp.set_of(lines) == "IEVAL":
            system = COLOURS[number % len(COLOURS)]
        # Some FED dialogues are between two people, one in the chatbot's role.
        kind = "human" if system == "Human" else "agent"
        unnamed = "whichever chatbot: the files do not say which" if system == UNNAMED else ""
        systems[system] = base.system(system, kind, unnamed)
        turns = _comp.chatbot_turns(dialogue)
        silent += sum(speaker == base.CHATBOT for speaker, _ in dialogue) - len(turns)
        responses += _comp.answers(turns, dialogue_id, system)
        item = ("dialogue", dialogue_id, system)
        ratings += [
            base.rating(
                item, f"round-{n + 1}", dimension, values[place], _comp.GPT4_SCALE, position=n, source=_comp.GPT4
            )
            for (dimension, n), values in rounds.numbers.items()
        ]
        ratings += [
            base.rating(item, f"annotator-{n + 1}", dimension, value, scale, position=n)
            for theirs, (dimension, scale) in (FED_DIMENSIONS.items() if people else ())
            for n, value in enumerate(people[number]["annotations"][theirs])
        ]
    log.info(
        "%s: %d of %d dialogues are rated; %d turns of the chatbot, %d more are empty and left out",
        dataset, len(rounds.lines), len(lines), len(responses), silent,
    )  # fmt: skip
    return base.tables(dataset, files, systems.values(), responses, ratings)
