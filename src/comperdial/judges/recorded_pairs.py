"""Recorded pairwise choices of judges, evaluated like the choices of judges asked here.

LLMBar's authors (Zeng et al. 2024) published the answers of GPT-4 and ChatGPT in both orders; LLMFAO (Ustalov 2023) those of
GPT-3 and GPT-4 in one order, on pairs that a crowd compared too.
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

# By preference data set: judges and the authors' names of their prompts.
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
    """Return the preferences of recorded judges, and how accurate they are.

    Parameters
    ----------
    dataset
        One of :data:`DATASETS`.
    catalogue
        The catalogue file. Missing files are downloaded.
    files
        Downloaded files outside ``data/raw``, by their names in the catalogue.

    Returns
    -------
    preferences
        Table ``preferences``; ``source`` is the judge. A choice that changes with the order is a tie.
    summary
        A row per judge and standard (``against``: ``gold``, or the crowd's ``votes`` and each pair's ``majority``): ``pairs``,
        ``unread`` pairs, ``ties``, and with 95 % intervals over pairs ``accuracy`` (over ``n`` choices other than ties; a
        judge's tie counts half), ``same`` (share of pairs with the same choice in both orders) and ``chose_first`` (share of
        choices for the option shown first).

    Raises
    ------
    UnknownNameError
        If the data set has no recorded judges.
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
        # A judge that chose once per pair.
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
    """Return a judge's choices on LLMBar: its last answer about each pair in each order."""
    rows = []
    for number, entry in enumerate(read_json(path)):
        for name, shown in _SHOWN.items():
            # Prompts that let the judge reconsider have an extra step.
            answer = entry["results"][-1][name]
            # The text, and its finish reason.
            completion = answer.get("completion")
            finish = completion[-1] if isinstance(completion, list) and len(completion) > 1 else None
            cut = isinstance(finish, str) and Answer("", finish).unfinished
            # The winner is named by its side in the pair, wherever it was shown.
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
