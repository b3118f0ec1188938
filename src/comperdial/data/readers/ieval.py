"""iEval (Svikhnushina et al. 2022): people talked to four bots about the same thing and ranked them.

Each of 240 workers did so twice, about something positive and something negative. ``Rating`` is an inverse rank, 1 to
3 with ties: higher is better. The six pairs of a ranking are pairs of whole dialogues, judged by their interlocutor.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pandas as pd

from comperdial.challenge.pairs.dialogues import Dialogue
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json
from comperdial.data.preferences import EMPTY, PreferenceReader
from comperdial.data.readers.base import get

BOTS = ("Green", "Pink", "Purple", "Yellow")
MOODS = ("positive", "negative")
# Statements rated from 1 to 5; those of ``REVERSED`` say something bad of the bot.
STATEMENTS = ("P", "^P", "A", "^A", "EU", "ER", "L", "R", "S")
REVERSED = ("^P", "^A", "R")
PERSON, BOT = "person", "bot"


class IEval(PreferenceReader):
    """Reader of ``ratings``."""

    def preferences(self) -> pd.DataFrame:
        """Return a vote for each two bots of a ranking; which of them a worker met first is not known."""
        rows = []
        for worker, dialogue_id, where, entry in self._rankings():
            ranks = {bot: get(get(entry, bot, dict, where), "Rating", int, f"{where}, {bot}") for bot in BOTS}
            for bot, rank in ranks.items():
                if rank not in (1, 2, 3):
                    raise SchemaError(f"Rating is {rank}", where=f"{where}, {bot}", expected="1, 2 or 3")
            for first, second in combinations(BOTS, 2):
                apart = ranks[first] - ranks[second]
                rows.append(
                    {
                        "pair_id": f"{dialogue_id}-{first}-{second}",
                        "first_dialogue_id": dialogue_id,
                        "first_system_id": first,
                        "second_dialogue_id": dialogue_id,
                        "second_system_id": second,
                        "annotator_id": worker,
                        "question": "overall",
                        "choice": "first" if apart > 0 else "second" if apart < 0 else "tie",
                        "source": "human",
                    }
                )
        return self.frame("preferences", rows, self.files["ratings"])

    def dialogues(self) -> list[Dialogue]:
        """Return the dialogues, four of each conversation id: the same person with each of the bots."""
        return [
            Dialogue(dialogue_id, bot, BOT, _utterances(get(entry[bot], "chat_log", str, where), where))
            for _, dialogue_id, where, entry in self._rankings()
            for bot in BOTS
        ]

    def ratings(self) -> pd.DataFrame:
        """Return the Likert ratings beside the rankings.

        Returns
        -------
        DataFrame
            A row for each dialogue: ``annotator_id``, ``dialogue_id``, ``system_id``, a column for each of
            ``STATEMENTS`` (1 to 5), ``likert`` (their mean, reversed where a statement says something bad) and
            ``seconds``, what the worker took for all eight dialogues with their ratings and rankings.
        """
        rows = []
        for worker, dialogue_id, where, entry in self._rankings():
            for bot in BOTS:
                said = {name: get(entry[bot], name, int, f"{where}, {bot}") for name in STATEMENTS}
                total = sum(6 - value if name in REVERSED else value for name, value in said.items())
                key = {"annotator_id": worker, "dialogue_id": dialogue_id, "system_id": bot}
                rows.append({**key, **said, "likert": total / len(said), "seconds": entry["seconds"]})
        return pd.DataFrame(rows)

    def _rankings(self) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
        """Yield worker, dialogue, where it stands, and the entry with the worker's seconds."""
        path = self.files["ratings"]
        workers = read_json(path)
        if not isinstance(workers, list) or not workers:
            raise SchemaError("no list of workers", where=str(path), expected="a JSON list of two rankings each")
        for number, record in enumerate(workers, start=1):
            where = f"{path}, item {number}"
            seconds = get(record, "elapsed_sec", int, where)
            for mood in MOODS:
                entry = get(record, mood, dict, where)
                yield str(number), f"{number}-{mood}", f"{where}, {mood}", {**entry, "seconds": seconds}


def _utterances(log: str, where: str) -> tuple[tuple[str, str], ...]:
    """Split a log: each line that begins with a hyphen is an utterance, the worker's first."""
    texts: list[str] = []
    for line in log.split("\n"):
        if line.startswith("- "):
            texts.append(line.removeprefix("- ").strip())
        elif texts:
            texts[-1] = f"{texts[-1]} {line.strip()}".strip()
        else:
            raise SchemaError(f"chat_log begins with {line!r}", where=where, expected="a line that begins with '- '")
    return tuple((PERSON if at % 2 == 0 else BOT, text or EMPTY) for at, text in enumerate(texts))
