"""Dialogue Breakdown Detection Challenge 3 (Higashinaka et al. 2017): 30 people labelled whether a turn breaks the dialogue.

Labels are O (not a breakdown), T (possible) and X (a breakdown). Table ``ratings`` encodes them as 2, 1 and 0, so that higher
is better; :func:`shares` returns their shares.
"""

from __future__ import annotations

import json
from zipfile import ZipFile

import pandas as pd

from comperdial.core.errors import SchemaError
from comperdial.data.readers import base
from comperdial.data.readers.base import Files, Tables, get

LABELS = {"O": 2, "T": 1, "X": 0}
DIMENSION = "no breakdown"
SCALE = (0, 2)
_SPEAKERS = {"U": base.PERSON, "S": base.CHATBOT}


def read(dataset: str, files: Files) -> Tables:
    """Read one part of the archive; the file's role is its folder, such as ``dbdc3_revised/en/dev``.

    Unlabelled system turns appear only in the history. Each set is one system, named without its number: ``CIC_115`` is CIC,
    which stands for several bots. Annotators are numbers.
    """
    ((part, path),) = files.items()
    answers, ratings, workers = [], [], dict[str, str]()
    with ZipFile(path) as archive:
        folder = f"DBDC3/{part}/"
        members = sorted(name for name in archive.namelist() if name.startswith(folder) and name.endswith(".json"))
        for member in members:
            where, record = f"{path}, {member}", json.loads(archive.read(member))
            system = member.removeprefix(folder).partition("/")[0].partition("_")[0]
            dialogue_id = f"{dataset}-{get(record, 'dialogue-id', str, where)}"
            history: list[tuple[str, str]] = []
            count = 0
            for turn in get(record, "turns", list, where):
                speaker, text = _SPEAKERS[get(turn, "speaker", str, where)], get(turn, "utterance", str, where).strip()
                if given := get(turn, "annotations", list, where):
                    place = get(turn, "turn-index", int, where)
                    context_id, at = f"{dialogue_id}-{place:02d}", f"{where}, turn {place}"
                    past = base.as_history(history)
                    answers.append(base.answer(context_id, dialogue_id, count, past, system, text or base.EMPTY))
                    count += 1
                    for one in given:
                        label, name = (get(one, field, str, at) for field in ("breakdown", "annotator-id"))
                        if label not in LABELS:
                            problem, expected = f"the label {label!r}", f"one of {', '.join(LABELS)}"
                            raise SchemaError(problem, where=at, expected=expected)
                        who = workers.setdefault(name, str(len(workers) + 1))
                        item = ("turn", context_id, system)
                        ratings.append(base.rating(item, who, DIMENSION, LABELS[label], SCALE))
                history.append((speaker, text))
    systems = [base.system(name) for name in dict.fromkeys(one["system_id"] for one in answers)]
    return base.tables(dataset, files, systems, answers, ratings)


def shares(ratings: pd.DataFrame) -> pd.DataFrame:
    """Return the share of each label from table ``ratings``: one row per item, columns O, T and X."""
    names = {float(rating): label for label, rating in LABELS.items()}
    counts = pd.crosstab(ratings["item_id"], ratings["rating"].map(names)).reindex(columns=list(LABELS), fill_value=0)
    return counts.div(counts.sum(axis=1), axis=0)
