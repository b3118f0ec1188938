"""The recorded perturbations of Zhang et al. 2024 (AAAI): pairs of an original and a version made worse.

What the files do not say is taken as ``docs/llm-evaluators.md`` explains.
"""

from __future__ import annotations

from collections.abc import Iterator

from comperdial.core.files import read_json
from comperdial.data.readers import base
from comperdial.data.readers._comp import Line, Turns, chatbot_turns, labelled, read_lines
from comperdial.data.readers.base import Files, Tables
from comperdial.schema.evaluated import ORIGINAL, PERTURBED

# Each has two files of the same lines, NAME_original and NAME: context and response.
TURN = (
    "random_response", "pronouns", "entities", "contradiction", "repetition", "paraphrase", "dullness", "speaker",
    "entrainment",
)  # fmt: skip
# The same, but whole dialogues of which the perturbed one goes on.
PAIRED = ("self_contradiction",)
# Made of the list of dialogues ``originals``: some lines of each after another; ``ROUNDS``: each once, several times over.
MADE = (
    "order_shuffle", "utterance_replacement", "two_utterances", "three_utterances", "duplication", "repeating_others",
    "generic_utterances", "content_reduction",
)  # fmt: skip
ROUNDS = ("duplication",)
_LABELS = {"human": base.PERSON, "model": base.CHATBOT, "chatbot": base.CHATBOT}


def read(dataset: str, files: Files) -> Tables:
    """Read recorded pairs as one data set without ratings.

    Files: for each perturbation of :data:`TURN` and :data:`PAIRED` ``NAME`` and ``NAME_original``, line by line; for
    each of :data:`MADE` ``NAME``, and for all of them ``originals``.
    """
    answers = []
    for name in (name for name in (*TURN, *PAIRED, *MADE) if name in files):
        for number, pair in enumerate(_pairs(name, files)):
            dialogue_id = base.numbered(name, number)
            for system, turns in zip((ORIGINAL, PERTURBED), pair, strict=True):
                answers += [
                    base.answer(f"{dialogue_id}-{system}-{turn}", dialogue_id, turn, history, system, response)
                    for turn, history, response in turns
                ]
    return base.tables(dataset, files, map(base.system, (ORIGINAL, PERTURBED)), answers)


def _pairs(name: str, files: Files) -> Iterator[tuple[Turns, Turns]]:
    """Yield the turns to score of both versions of each pair."""
    lines = read_lines(files[name])
    if name in MADE:
        originals = [
            [((base.PERSON, base.CHATBOT)[turn % 2], text.strip()) for turn, text in enumerate(texts)]
            for texts in read_json(files["originals"])
        ]
        for place, line in enumerate(lines):
            number = place % len(originals) if name in ROUNDS else place // (len(lines) // len(originals))
            yield chatbot_turns(originals[number]), chatbot_turns(labelled(line, _LABELS))
        return
    pair = _responses if name in TURN else _extended
    for original, perturbed in zip(read_lines(files[f"{name}_original"]), lines, strict=True):
        yield pair(original, perturbed)


def _responses(original: Line, perturbed: Line) -> tuple[Turns, Turns]:
    """Return a pair of responses: the same context, another last utterance."""
    *context, response = original.fields
    turn, history = len(context) // 2, base.as_history(base.alternating(context))
    # Some inserted entities hold a tab, so that the response is in two fields.
    return [(turn, history, response)], [(turn, history, " ".join(perturbed.fields[len(context) :]))]


def _extended(original: Line, perturbed: Line) -> tuple[Turns, Turns]:
    """Return a pair of dialogues of which one goes on; who speaks last there contradicts themselves, so is B."""
    before, after = labelled(original, _LABELS), labelled(perturbed, _LABELS)
    last = after[-1][0]
    first, second = (
        [(base.CHATBOT if who == last else base.PERSON, text) for who, text in dialogue] for dialogue in (before, after)
    )
    return chatbot_turns(first), chatbot_turns(second)
