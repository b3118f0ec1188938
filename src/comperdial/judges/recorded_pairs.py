"""Judges' choices between two that others recorded: replayed as if they had been asked here.

LLMBar's authors (Zeng et al. 2024) published what GPT-4 and ChatGPT answered about their pairs in both orders; LLMFAO (Ustalov
2023) what GPT-3 and GPT-4 chose on the pairs that a crowd compared, in one order.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.files import read_json
from comperdial.data import sources
from comperdial.data.catalogue import CATALOGUE, load_catalogue
from comperdial.data.preferences import read_preferences
from comperdial.data.readers.base import get
from comperdial.judges.pairs import PAIR, Choices, Pairs, agreement, combine, majority, of_votes
from comperdial.judges.requests import unfinished

DATASETS = ("llmbar_natural", "llmbar_mt_bench", "llmfao")
"""The data sets of preferences with recorded judges."""

# By data set: the judge's name, and the file of the catalogue with its answers. The second half is the authors' prompt.
_LLMBAR = {
    "llmbar_natural": {
        f"{judge}, {prompt}": f"llmbar_natural_{judge.replace('-', '')}_{prompt}"
        for judge in ("gpt-4", "chatgpt")
        for prompt in ("swap", "vanilla", "vanilla_norules")
    },
    "llmbar_mt_bench": {
        f"{judge}, vanilla_norules": f"llmbar_mt_bench_{judge.replace('-', '')}_vanilla_norules"
        for judge in ("gpt-4", "chatgpt")
    },
}
_SHOWN = {"swap = False": "first", "swap = True": "second"}
_WINNERS = {"1": "first", "2": "second"}
_HUMAN = "human"


def judged_pairs(
    dataset: str, *, catalogue: str | Path = CATALOGUE, files: Mapping[str, Path] | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what recorded judges prefer, and how well they do.

    Parameters
    ----------
    dataset
        One of :data:`DATASETS`.
    catalogue
        The catalogue's file. Files that are not here yet are fetched.
    files
        The fetched files by their names in the catalogue, where they do not lie under ``data/raw``.

    Returns
    -------
    preferences
        Table ``preferences``; ``source`` is the judge. A choice that flips with the order is a tie.
    summary
        A row for each judge and what it is compared with (``against``: ``gold``, or the crowd's ``votes`` and each pair's
        ``majority``): ``pairs``, ``unread`` pairs, ``ties``, and with the ends of 95 % intervals over pairs ``accuracy``
        (of ``n`` choices that are no ties, a judge's tie counted as half), ``same`` (the share of pairs with the same
        choice in both orders) and ``chose_first`` (how often the one shown first was chosen).

    Raises
    ------
    UnknownNameError
        When the data set has no recorded judges.
    ComperdialError
        When a file cannot be had, or breaks its format.
    """
    if dataset not in DATASETS:
        raise UnknownNameError("data set with recorded judges", dataset, DATASETS)
    known = load_catalogue(catalogue)

    def path(name: str) -> Path:
        if files is not None:
            return files[name]
        source = known.file(name)
        sources.fetch(source, sources.raw_path(source))
        return sources.raw_path(source)

    given = None if files is None else {role: files[one.name] for role, one in known.dataset(dataset).files.items()}
    votes = read_preferences(dataset, catalogue=catalogue, files=given)
    people = votes[votes["source"] == _HUMAN]
    pairs = of_votes(people)
    judges = (
        {name: _of_llmbar(name, path(file), pairs, people) for name, file in _LLMBAR[dataset].items()}
        if dataset in _LLMBAR
        else {
            str(name): _of_votes(str(name), rows) for name, rows in votes[votes["source"] != _HUMAN].groupby("source")
        }
    )
    against = {"gold": people} if dataset in _LLMBAR else {"votes": people, "majority": majority(people)}
    rows = [
        _row(dataset, name, choices, what, chosen)
        for name, choices in judges.items()
        for what, chosen in against.items()
    ]
    preferences = pd.concat([choices.preferences for choices in judges.values()], ignore_index=True)
    return preferences, pd.DataFrame(rows)


def _of_llmbar(judge: str, path: Path, pairs: Pairs, gold: pd.DataFrame) -> Choices:
    """Return a judge of LLMBar: its last answer about each pair, in either order."""
    content = read_json(path)
    if not isinstance(content, list) or len(content) != len(pairs.pairs):
        expected = f"a JSON list of {len(pairs.pairs)} items"
        raise SchemaError("not the answers about these pairs", where=str(path), expected=expected)
    rows = []
    for number, entry in enumerate(content):
        where = f"{path}, item {number}"
        # A prompt that lets the judge think again has a step more.
        steps: list[Any] = get(entry, "results", list, where) or [None]
        for name, shown in _SHOWN.items():
            answer = get(steps[-1], name, dict, where)
            # The text, and why it ended.
            completion = answer.get("completion")
            finish = completion[-1] if isinstance(completion, list) and len(completion) > 1 else None
            # It names the output as the pair has it, wherever that was shown.
            cut = isinstance(finish, str) and unfinished(finish)
            rows.append((str(number), shown, None if cut else _WINNERS.get(str(answer.get("winner")))))
    answers = pd.DataFrame(rows, columns=["pair_id", "shown", "choice"])
    return combine(pairs.dataset, pairs.pairs, answers, judge=judge, question=str(gold["question"].iloc[0]))


def _of_votes(judge: str, votes: pd.DataFrame) -> Choices:
    """Return a judge that chose once a pair."""
    pairs = of_votes(votes)
    answers = votes[["pair_id", "choice"]].assign(shown=votes["left"])
    return combine(pairs.dataset, pairs.pairs, answers, judge=judge, question=str(votes["question"].iloc[0]))


def _row(dataset: str, judge: str, choices: Choices, against: str, chosen: pd.DataFrame) -> dict[str, Any]:
    agreed = agreement(choices.preferences, chosen[[*PAIR, "choice"]])
    row = {
        "dataset": dataset,
        "judge": judge,
        "against": against,
        "pairs": choices.pairs,
        "unread": choices.unread,
        "ties": int((choices.preferences["choice"] == "tie").sum()),
        "n": agreed.n,
    }
    for name, part in (("accuracy", agreed), ("same", choices.same), ("chose_first", choices.chose_first)):
        row |= {name: part.value, f"{name}_low": part.low, f"{name}_high": part.high}
    return row
