"""What is judged: the responses of a data set turn by turn, or its dialogues whole, each as a chat."""

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
    """One thing to judge, as the table ``scores`` names it."""

    dataset: str
    item_id: str  # the context at turn level, the dialogue at dialogue level
    system_id: str
    messages: str | None  # the chat, as JSON; None if the data set lacks what the prompt needs
    lacks: str | None = None  # what that is


def items_of(task: Task, folder: Path, turns: pd.DataFrame | None = None) -> list[Item]:
    """Return what a task judges of a data set's tables; references are not judged.

    ``turns`` is table ``scores`` of the turns that a dialogue is judged after, if the task's variant has ``turns``.
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
    """Return the places of so many names, in their order: of those with the smallest SHA-256 hash; None: of all.

    It is the same sample everywhere and for each way of asking, and a larger one holds a smaller one.
    """
    places = sorted(range(len(names)), key=lambda place: hashlib.sha256(names[place].encode()).digest())
    return sorted(places[:count])


def message(text: str) -> str:
    """Return a prompt as the one message that is sent."""
    return canonical([{"role": "user", "content": text}])


def responses_of(rows: pd.DataFrame, prompt: Prompt) -> Iterator[Item]:
    """Yield the item of each response; of several references the prompt is given the first.

    ``rows`` has the columns ``dataset``, ``context_id``, ``system_id``, ``response``, ``history`` (utterances),
    ``references``, ``facts``, and those that the prompt names with :data:`COLUMN`.
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
    """Yield each dialogue of each system with the scores of its turns, if all of them have one."""
    for names, group in _by_dialogue(rows):
        values = [scores.get((names[0], context, names[2])) for context in group["context_id"]]
        known = [score is not None for score in values]
        # A turn has several contexts if the system answered it several times.
        scored = set(group["turn"][known]) - set(group["turn"][[not one for one in known]])
        if missing := turns[names[1]] - len(scored):
            yield Item(*names, None, f"{missing} turns without a score")
            continue
        texts = [f"{score:.2f}".rstrip("0").rstrip(".") for score in values if score is not None]
        yield Item(*names, message(prompt.render({"turn_scores": texts, "responses": list(group["response"])})))


def _dialogues(rows: pd.DataFrame, prompt: Prompt) -> Iterator[Item]:
    """Yield each dialogue of each system as a conversation: the history of its last context, and the response there.

    If the contexts are those of one conversation with the system, that is all of it. In static contexts, whose
    histories others wrote, it is the dialogue with the system's last response.
    """
    for names, group in _by_dialogue(rows):
        history, response = list(group["history"].iloc[-1]), group["response"].iloc[-1]
        earlier = list(zip(group["history"].map(len), group["response"], strict=True))[:-1]
        lines = history_lines([*history, {"speaker": _speaker(history, earlier), "text": response}])
        yield Item(*names, message(prompt.render({"dialogue": lines})))


def _speaker(history: Sequence[Mapping[str, str]], earlier: Sequence[tuple[int, str]]) -> str:
    """Return who speaks after a history: whoever gave there the system's earlier responses, at these places.

    In static contexts nobody did. It is then whoever spoke last before the last speaker, or, without one, the other of
    A and B.
    """
    for place, text in reversed(earlier):
        if place < len(history) and history[place]["text"] == text:
            return history[place]["speaker"]
    speakers = [utterance["speaker"] for utterance in history]
    others = [speaker for speaker in speakers if speaker != speakers[-1]]
    return others[-1] if others else "B" if speakers[-1:] == ["A"] else "A"


def _by_dialogue(rows: pd.DataFrame) -> Iterator[tuple[Names, pd.DataFrame]]:
    """Yield data set, dialogue and system with the system's rows, in the order of turns."""
    columns = ["dataset", "dialogue_id", "system_id"]
    for (dataset, dialogue, system), group in rows.sort_values(["turn", "context_id"], kind="stable").groupby(columns):
        yield (str(dataset), str(dialogue), str(system)), group


def _turn_scores(turns: pd.DataFrame, output: str) -> dict[Names, float]:
    """Return the scores of turns with an output, by data set, context and system."""
    table = turns[(turns["level"] == "turn") & (turns["output"] == output)]
    keys = zip(table["dataset"], table["item_id"], table["system_id"], strict=True)
    return dict(zip(keys, table["value"].astype(float), strict=True))
