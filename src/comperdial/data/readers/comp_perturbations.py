"""The recorded perturbations of Zhang et al. 2024 (AAAI): pairs of an original and a degraded version.

``docs/llm-evaluators.md`` documents assumptions about what the files do not state.
"""

from __future__ import annotations

from collections.abc import Iterator

from comperdial.core.files import read_json
from comperdial.data.readers import base
from comperdial.data.readers._comp import Turns, answers, chatbot_turns, labelled, read_lines
from comperdial.data.readers.base import Files, Tables
from comperdial.schema.evaluated import ORIGINAL, PERTURBED

# Each has two files with matching lines, NAME_original and NAME: context and response.
TURN = (
    "random_response", "pronouns", "entities", "contradiction", "repetition", "paraphrase", "dullness", "speaker",
    "entrainment",
)  # fmt: skip
# The same for whole dialogues; the perturbed version is longer.
PAIRED = ("self_contradiction",)
# Derived from the list of dialogues ``originals``: several consecutive lines per dialogue; for ``ROUNDS`` the whole list
# repeatedly.
MADE = (
    "order_shuffle", "utterance_replacement", "two_utterances", "three_utterances", "duplication", "repeating_others",
    "generic_utterances", "content_reduction",
)  # fmt: skip
ROUNDS = ("duplication",)


def read(dataset: str, files: Files) -> Tables:
    """Read recorded pairs as one data set without ratings.

    Files: ``NAME`` and ``NAME_original`` with matching lines for each of :data:`TURN` and :data:`PAIRED`; ``NAME`` for each of
    :data:`MADE`, and ``originals`` for all of these.
    """
    rows = [
        row
        for name in (*TURN, *PAIRED, *MADE)
        if name in files
        for number, pair in enumerate(_pairs(name, files))
        for system, turns in zip((ORIGINAL, PERTURBED), pair, strict=True)
        for row in answers(turns, base.numbered(name, number), system, f"{base.numbered(name, number)}-{system}")
    ]
    return base.tables(dataset, files, map(base.system, (ORIGINAL, PERTURBED)), rows)


def _pairs(name: str, files: Files) -> Iterator[tuple[Turns, Turns]]:
    """Yield the turns to score of both versions of each pair."""
    lines = read_lines(files[name])
    if name in MADE:
        speakers = (base.PERSON, base.CHATBOT)
        originals = [
            [(speakers[turn % 2], text.strip()) for turn, text in enumerate(texts)]
            for texts in read_json(files["originals"])
        ]
        for place, line in enumerate(lines):
            number = place % len(originals) if name in ROUNDS else place // (len(lines) // len(originals))
            yield chatbot_turns(originals[number]), chatbot_turns(labelled(line))
        return
    for original, perturbed in zip(read_lines(files[f"{name}_original"]), lines, strict=True):
        if name in TURN:
            *context, response = original.fields
            turn, history = len(context) // 2, base.as_history(base.alternating(context))
            # Some inserted entities contain a tab, which splits the response into two fields.
            yield [(turn, history, response)], [(turn, history, " ".join(perturbed.fields[len(context) :]))]
        else:
            # The last speaker of the longer version contradicts themselves, so is B.
            last = labelled(perturbed)[-1][0]
            pair = (
                [(base.CHATBOT if who == last else base.PERSON, text) for who, text in labelled(line)]
                for line in (original, perturbed)
            )
            first, second = map(chatbot_turns, pair)
            yield first, second
