"""Judges' choices between two that others recorded: replayed as if they had been asked here.

LLMBar's authors (Zeng et al. 2024) published what GPT-4 and ChatGPT answered about their pairs in both orders; LLMFAO (Ustalov
2023) what GPT-3 and GPT-4 chose on the pairs that a crowd compared, in one order.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.core.errors import UnknownNameError
from comperdial.core.files import read_json
from comperdial.data import sources
from comperdial.data.catalogue import CATALOGUE, load_catalogue
from comperdial.data.preferences import read_preferences
from comperdial.judges.pairs import PAIR, Choices, Pairs, agreement, combine, majority, of_votes
from comperdial.judges.requests import Answer

# By data set of preferences: judges and the authors' names of their prompts.
_LLMBAR = {
    "llmbar_natural": [(judge, prompt) for judge in ("gpt-4", "chatgpt") for prompt in ("swap", "vanilla", "vanilla_norules")],
    "llmbar_mt_bench": [("gpt-4", "vanilla_norules"), ("chatgpt", "vanilla_norules")],
}  # fmt: skip
DATASETS = (*_LLMBAR, "llmfao")
"""The data sets of preferences with recorded judges."""
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
        The fetched files by their names in the catalogue, if they are not under ``data/raw``.

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
    """
    if dataset not in DATASETS:
        raise UnknownNameError("data set with recorded judges", dataset, DATASETS)
    known = load_catalogue(catalogue)
    given = None if files is None else {role: files[one.name] for role, one in known.dataset(dataset).files.items()}
    votes = read_preferences(dataset, catalogue=catalogue, files=given)
    people = votes[votes["source"] == _HUMAN]
    judges: dict[str, Choices] = {}
    for judge, prompt in _LLMBAR.get(dataset, ()):
        source = known.file(f"{dataset}_{judge.replace('-', '')}_{prompt}")
        if files is None:
            sources.fetch(source, sources.raw_path(source))
        path = sources.raw_path(source) if files is None else files[source.name]
        judges[f"{judge}, {prompt}"] = _of_llmbar(f"{judge}, {prompt}", path, of_votes(people), people)
    for name, chosen in votes[votes["source"] != _HUMAN].groupby("source"):
        # A judge that chose once a pair.
        answers = chosen[["pair_id", "choice"]].assign(shown=chosen["left"])
        question = str(chosen["question"].iloc[0])
        judges[str(name)] = combine(of_votes(chosen), answers, judge=str(name), question=question)
    against = {"gold": people} if dataset in _LLMBAR else {"votes": people, "majority": majority(people)}
    rows = [
        _row(dataset, name, choices, what, chosen)
        for name, choices in judges.items()
        for what, chosen in against.items()
    ]
    return pd.concat([one.preferences for one in judges.values()], ignore_index=True), pd.DataFrame(rows)


def _of_llmbar(judge: str, path: Path, pairs: Pairs, gold: pd.DataFrame) -> Choices:
    """Return a judge of LLMBar: its last answer about each pair, in either order."""
    rows = []
    for number, entry in enumerate(read_json(path)):
        for name, shown in _SHOWN.items():
            # A prompt that lets the judge think again has a step more.
            answer = entry["results"][-1][name]
            # The text, and why it ended.
            completion = answer.get("completion")
            finish = completion[-1] if isinstance(completion, list) and len(completion) > 1 else None
            cut = isinstance(finish, str) and Answer("", finish).unfinished
            # It names the output as the pair has it, wherever that was shown.
            rows.append((str(number), shown, None if cut else _WINNERS.get(str(answer.get("winner")))))
    answers = pd.DataFrame(rows, columns=["pair_id", "shown", "choice"])
    return combine(pairs, answers, judge=judge, question=str(gold["question"].iloc[0]))


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
