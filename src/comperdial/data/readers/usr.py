"""USR-Persona and USR-Topical (Mehri and Eskenazi 2020): responses to one context each, rated by three people.

What the files do not say is taken as ``docs/reproduction-notes.md`` explains: ``annotators[i]`` is the rater of score
``i``; the speakers alternate and the response is by B.
"""

from __future__ import annotations

from typing import Any

from comperdial.core.files import read_json
from comperdial.data.readers import base
from comperdial.data.readers.base import Files, Tables

REFERENCE = "Original Ground Truth"
HUMAN = "New Human Generated"
SCALES = {
    "Understandable": (0, 1),
    "Natural": (1, 3),
    "Maintains Context": (1, 3),
    "Engaging": (1, 3),
    "Uses Knowledge": (0, 1),
    "Overall": (1, 5),
}
_NO_FACT = "_nofact"
_PERSONA = "your persona:"


def read(dataset: str, files: Files) -> Tables:
    """Read the file ``ratings``; the facts of a context are B's persona if all are ``your persona:`` lines."""
    systems: dict[str, dict[str, Any]] = {}
    contexts, personas, responses, ratings = [], [], [], []
    for number, item in enumerate(read_json(files["ratings"])):
        context_id = f"{dataset}-{number:03d}"
        answers = [(answer["model"].strip(), answer["response"].strip(), answer) for answer in item["responses"]]
        reference = next(text for system, text, _ in answers if system == REFERENCE)
        history = base.as_history(base.alternating([line.strip() for line in item["context"].strip().split("\n")]))
        lines = [line.strip() for line in item["fact"].strip().split("\n") if line.strip() != _NO_FACT]
        facts = [line.removeprefix(_PERSONA).strip() for line in lines]
        contexts.append(base.context(context_id, context_id, 0, history, [reference], facts))
        if lines and all(line.startswith(_PERSONA) for line in lines):
            personas.append(base.persona(context_id, "B", facts))
        for system, text, answer in answers:
            systems[system] = base.system(system, {REFERENCE: "reference", HUMAN: "human"}.get(system, "agent"))
            responses.append(base.response(context_id, system, text))
            ratings += [
                base.rating("turn", context_id, system, annotator, dimension, value, scale, position=position)
                for dimension, scale in SCALES.items()
                for position, (annotator, value) in enumerate(zip(item["annotators"], answer[dimension], strict=True))
            ]
    return base.tables(
        dataset,
        files,
        systems=systems.values(),
        contexts=contexts,
        personas=personas,
        responses=responses,
        ratings=ratings,
    )
