"""USR-Persona and USR-Topical (Mehri and Eskenazi 2020): several responses per context, each rated by three people.

``docs/reproduction-notes.md`` documents assumptions about what the files do not state: ``annotators[i]`` gave score ``i``; the
speakers alternate and the response is by B.
"""

from __future__ import annotations

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
    """Read the file ``ratings``; a context's facts are B's persona if all are ``your persona:`` lines."""
    systems, answers, personas, ratings = {}, [], [], []
    for number, entry in enumerate(read_json(files["ratings"])):
        context_id = f"{dataset}-{number:03d}"
        texts = {answer["model"].strip(): answer["response"].strip() for answer in entry["responses"]}
        history = base.as_history(base.alternating([line.strip() for line in entry["context"].strip().split("\n")]))
        lines = [line.strip() for line in entry["fact"].strip().split("\n") if line.strip() != _NO_FACT]
        facts = [line.removeprefix(_PERSONA).strip() for line in lines]
        if lines and all(line.startswith(_PERSONA) for line in lines):
            personas.append(base.persona(context_id, "B", facts))
        for (system, text), scores in zip(texts.items(), entry["responses"], strict=True):
            systems[system] = base.system(system, {REFERENCE: "reference", HUMAN: "human"}.get(system, "agent"))
            answers.append(base.answer(context_id, context_id, 0, history, system, text, [texts[REFERENCE]], facts))
            ratings += [
                base.rating(("turn", context_id, system), annotator, dimension, value, scale, position=position)
                for dimension, scale in SCALES.items()
                for position, (annotator, value) in enumerate(zip(entry["annotators"], scores[dimension], strict=True))
            ]
    return base.tables(dataset, files, systems.values(), answers, ratings, personas)
