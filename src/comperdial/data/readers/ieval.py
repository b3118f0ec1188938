"""iEval (Svikhnushina et al. 2022): people discussed the same topic with four bots and ranked them.

Each of 240 workers did this twice, with a positive and a negative topic. ``Rating`` is an inverse rank, 1 to 3 with ties:
higher is better. The six pairs of a ranking are pairs of dialogues judged by their interlocutor.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pandas as pd

from comperdial.challenge.pairs import Dialogue
from comperdial.core.files import read_json
from comperdial.data.readers import base
from comperdial.data.readers.base import Files, Tables

BOTS = ("Green", "Pink", "Purple", "Yellow")
MOODS = ("positive", "negative")
# Statements rated from 1 to 5; those in ``REVERSED`` are negative.
STATEMENTS = ("P", "^P", "A", "^A", "EU", "ER", "L", "R", "S")
REVERSED = ("^P", "^A", "R")
PERSON, BOT = "person", "bot"


def read(dataset: str, files: Files) -> Tables:
    """Read ``ratings``: a vote for each pair of bots in a ranking; the order of the conversations is unknown."""
    votes = [
        base.vote(
            f"{name}-{one}-{two}", name, (one, two), worker, "overall", entry[one]["Rating"] - entry[two]["Rating"]
        )
        for worker, name, _, entry in _rankings(files)
        for one, two in combinations(BOTS, 2)
    ]
    return base.make_tables(dataset, files, preferences=votes)


def dialogues(files: Files) -> list[Dialogue]:
    """Return the dialogues, four per conversation id: the same person with each bot."""
    return [
        Dialogue(dialogue_id, bot, BOT, _utterances(entry[bot]["chat_log"]))
        for _, dialogue_id, _, entry in _rankings(files)
        for bot in BOTS
    ]


def ratings(files: Files) -> pd.DataFrame:
    """Return the Likert ratings that accompany the rankings.

    Returns
    -------
    DataFrame
        One row per dialogue: ``annotator_id``, ``dialogue_id``, ``system_id``, ``likert`` (the mean of ``STATEMENTS``, with
        negative ones reversed) and ``seconds``, the worker's total time for all eight dialogues, ratings and rankings.
    """
    rows = []
    for worker, dialogue_id, seconds, entry in _rankings(files):
        for bot in BOTS:
            given = [6 - entry[bot][name] if name in REVERSED else entry[bot][name] for name in STATEMENTS]
            key = {"annotator_id": worker, "dialogue_id": dialogue_id, "system_id": bot}
            rows.append({**key, "likert": sum(given) / len(given), "seconds": seconds})
    return pd.DataFrame(rows)


def _rankings(files: Files) -> Iterator[tuple[str, str, int, Any]]:
    """Yield worker, dialogue, the worker's seconds, and the entry with the four bots."""
    for number, record in enumerate(read_json(files["ratings"]), start=1):
        for mood in MOODS:
            yield str(number), f"{number}-{mood}", record["elapsed_sec"], record[mood]


def _utterances(log: str) -> tuple[tuple[str, str], ...]:
    """Split a log: each line that starts with a hyphen is an utterance, the worker's first; other lines continue it."""
    texts = [" ".join(part.strip() for part in text.split("\n")).strip() for text in f"\n{log}".split("\n- ")[1:]]
    return tuple((PERSON if at % 2 == 0 else BOT, text or base.EMPTY) for at, text in enumerate(texts))
