"""GRADE's three sets (Huang et al. 2020): responses to two utterances, each rated for coherence by about ten people.

One file has the ratings of all three sets; each model has three matching files of contexts, responses and references.
``docs/reproduction-notes.md`` documents assumptions about what the files do not state.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict

from comperdial.core.files import read_json, read_text
from comperdial.data.readers import base
from comperdial.data.readers.base import Files, Tables

DIMENSION = "coherence"
SCALE = (1.0, 5.0)
_PARTS = ("contexts", "responses", "references")
_SEPARATOR = "|||"


def read(dataset: str, files: Files) -> Tables:
    """Read one set: ``ratings``, and for each model ``MODEL_contexts``, ``_responses`` and ``_references``."""
    sets: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for entry in read_json(files["ratings"]):
        sets[entry["Dataset"], entry["DialogModel"]].append(entry)
    models = [role.removesuffix("_responses") for role in files if role.endswith("_responses")]
    dialogues: dict[tuple[str, str], str] = {}
    answers, ratings = [], []
    for model in models:
        # Not splitlines(): a text may contain other line-ending characters.
        columns = [read_text(files[f"{model}_{part}"]).removesuffix("\n").split("\n") for part in _PARTS]
        rows = list(zip(*columns, strict=True))
        # The set's name is given nowhere else: find the set that starts with the same texts.
        records = next(
            result
            for (_, name), result in sets.items()
            if name == model and (result[0]["Context"], result[0]["Response"]) == rows[0][:2]
        )
        seen: Counter[str] = Counter()
        for record, (context, response, reference) in zip(records, rows, strict=True):
            # A context appears in several models' files, and sometimes twice in one, with new ratings.
            dialogue_id = dialogues.setdefault((context, reference), base.numbered(dataset, len(dialogues)))
            seen[dialogue_id] += 1
            context_id = dialogue_id if seen[dialogue_id] == 1 else f"{dialogue_id}-{seen[dialogue_id]}"
            history = base.as_history(base.alternating(context.split(_SEPARATOR)))
            answers.append(base.answer(context_id, dialogue_id, 0, history, model, response, [reference]))
            # A list written as a string.
            ratings += [
                base.rating(("turn", context_id, model), f"annotator-{n + 1}", DIMENSION, value, SCALE, position=n)
                for n, value in enumerate(json.loads(record["HumanScores"]))
            ]
    return base.tables(dataset, files, map(base.system, models), answers, ratings)
