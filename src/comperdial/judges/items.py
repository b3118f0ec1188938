"""The items that judges rate, each as a chat: single responses or whole dialogues."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import SchemaError
from comperdial.judges.prompting import Prompt, fact_lines, history_lines
from comperdial.judges.requests import canonical
from comperdial.judges.tasks import Task, slug

COLUMN = "column "
"""What a field of a user's template begins with that is a column of the user's file."""
Names = tuple[str, str, str]
"""Data set, item (a context or a dialogue) and system."""


@dataclass(frozen=True)
class Item:
    """An item to judge, with the ids used in table ``scores``."""

    dataset: str
    item_id: str  # the context or dialogue, by level
    system_id: str
    messages: str | None  # the chat as JSON; None if the data set lacks a required field
    lacks: str | None = None  # the missing field


def items_of(task: Task, folder: Path, turns: pd.DataFrame | None = None) -> list[Item]:
    """Return the items of a data set for a task; references are not judged.

    ``turns`` is table ``scores`` of the turn scores that the prompt includes, if the task's variant has ``turns``.
    """
    tables = {name: schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses", "systems")}
    references = tables["systems"].loc[tables["systems"]["kind"] == "reference", "system_id"]
    responses = tables["responses"][~tables["responses"]["system_id"].isin(references)]
    rows = responses.merge(tables["contexts"], on=["dataset", "context_id"], how="left", validate="many_to_one")
    if len(unknown := rows[rows["dialogue_id"].isna()]):
        raise SchemaError(f"no context {unknown['context_id'].iloc[0]!r}", where=str(folder / "contexts.parquet"))
    if turns is not None:
        counts: dict[Any, int] = tables["contexts"].groupby("dialogue_id")["turn"].nunique().to_dict()
        scores = _turn_scores(turns, slug(task.turn_task.variant.form.main))
        return list(_rated_dialogues(rows, task.prompt, scores, counts))
    items = list(_dialogues(rows, task.prompt) if task.variant.level == "dialogue" else responses_of(rows, task.prompt))
    if task.judge.items is None:
        return items
    known = [item for item in items if item.messages is not None]
    return [
        known[place] for place in sampled([f"{item.item_id}\0{item.system_id}" for item in known], task.judge.items)
    ]


def sampled(names: Sequence[str], count: int | None) -> list[int]:
    """Return the sorted indices of the ``count`` names with the smallest SHA-256 hash; all if ``count`` is None.

    The sample is the same everywhere and for every variant, and larger samples include smaller ones.
    """
    places = sorted(range(len(names)), key=lambda place: hashlib.sha256(names[place].encode()).digest())
    return sorted(places[:count])


def message(text: str) -> str:
    """Return a prompt as a chat with one message."""
    return canonical([{"role": "user", "content": text}])


def responses_of(rows: pd.DataFrame, prompt: Prompt) -> Iterator[Item]:
    """Yield the item of each response; if there are several references, the prompt uses the first.

    ``rows`` has the columns ``dataset``, ``context_id``, ``system_id``, ``response``, ``history`` (utterances), ``references``,
    ``facts``, and those that the prompt names with :data:`COLUMN`.
    """
    columns = ["dataset", "context_id", "system_id", "response", "history", "references", "facts"]
    others = sorted(field for field in prompt.fields if field.startswith(COLUMN))
    for dataset, context, system, response, history, references, facts, *cells in rows[columns + others].itertuples(
        index=False, name=None
    ):
        names = (dataset, context, system)
        if "reference" in prompt.fields and not len(references):
            yield Item(*names, None, "no reference")
            continue
        values = {"response": response, "history": history_lines(history), "fact": fact_lines(facts)}
        values["reference"] = references[0] if len(references) else ""
        values |= zip(others, map(str, cells), strict=True)
        yield Item(*names, message(prompt.render(values)))


def _rated_dialogues(
    rows: pd.DataFrame, prompt: Prompt, scores: Mapping[Names, float], turns: Mapping[str, int]
) -> Iterator[Item]:
    """Yield each dialogue of each system with its turn scores, if all turns have one."""
    for names, group in _by_dialogue(rows):
        values = [scores.get((names[0], context, names[2])) for context in group["context_id"]]
        known = [score is not None for score in values]
        # A turn that a system answered several times has several contexts.
        scored = set(group["turn"][known]) - set(group["turn"][[not one for one in known]])
        if missing := turns[names[1]] - len(scored):
            yield Item(*names, None, f"{missing} turns without a score")
            continue
        texts = [f"{score:.2f}".rstrip("0").rstrip(".") for score in values if score is not None]
        yield Item(*names, message(prompt.render({"turn_scores": texts, "responses": list(group["response"])})))


def _dialogues(rows: pd.DataFrame, prompt: Prompt) -> Iterator[Item]:
    """Yield each dialogue of each system as a conversation: the history of its last context plus the response.

    If the contexts belong to one conversation with the system, this is the complete conversation. In static contexts, with
    histories by others, it is the dialogue with the system's last response.
    """
    for names, group in _by_dialogue(rows):
        history, response = list(group["history"].iloc[-1]), group["response"].iloc[-1]
        earlier = list(zip(group["history"].map(len), group["response"], strict=True))[:-1]
        lines = history_lines([*history, {"speaker": _speaker(history, earlier), "text": response}])
        yield Item(*names, message(prompt.render({"dialogue": lines})))


def _speaker(history: Sequence[Mapping[str, str]], earlier: Sequence[tuple[int, str]]) -> str:
    """Return the next speaker: the one whose utterances at these positions are the system's earlier responses.

    If there are none, as in static contexts, it is the last speaker other than the final one, or else the other of A and B.
    """
    for place, text in reversed(earlier):
        if place < len(history) and history[place]["text"] == text:
            return history[place]["speaker"]
    speakers = [utterance["speaker"] for utterance in history]
    others = [speaker for speaker in speakers if speaker != speakers[-1]]
    return others[-1] if others else "B" if speakers[-1:] == ["A"] else "A"


def _by_dialogue(rows: pd.DataFrame) -> Iterator[tuple[Names, pd.DataFrame]]:
    """Yield data set, dialogue and system with the system's rows, sorted by turn."""
    columns = ["dataset", "dialogue_id", "system_id"]
    for (dataset, dialogue, system), group in rows.sort_values(["turn", "context_id"], kind="stable").groupby(columns):
        yield (str(dataset), str(dialogue), str(system)), group


def _turn_scores(turns: pd.DataFrame, output: str) -> dict[Names, float]:
    """Return the turn scores of an output, by data set, context and system."""
    table = turns[(turns["level"] == "turn") & (turns["output"] == output)]
    keys = zip(table["dataset"], table["item_id"], table["system_id"], strict=True)
    return dict(zip(keys, table["value"].astype(float), strict=True))
