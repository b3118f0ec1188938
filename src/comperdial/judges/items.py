"""What is judged: the responses of a data set turn by turn, or its dialogues whole, each as a chat."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, SchemaError
from comperdial.judges.prompting import Prompt, fact_lines, history_lines, render
from comperdial.judges.requests import encode
from comperdial.judges.tasks import Judging, Task, slug

Turns = pd.DataFrame | Path
"""Table ``scores`` of the turns that a dialogue is judged after, or a file with it."""
Names = tuple[str, str, str]
"""Data set, item (a context or a dialogue) and system."""


@dataclass(frozen=True)
class Item:
    """One thing to judge, as the table ``scores`` names it.

    Attributes
    ----------
    item_id
        The context at turn level, the dialogue at dialogue level.
    messages
        The chat, encoded; None if the data set lacks what the prompt needs.
    lacks
        What that is.
    """

    dataset: str
    item_id: str
    system_id: str
    messages: str | None
    lacks: str | None = None


def items_of(judging: Judging, task: Task, folder: Path, turns: Turns | None = None) -> list[Item]:
    """Return what a task judges of a data set's tables; references are not judged.

    Parameters
    ----------
    turns
        The scores of the task's turns, which a task at dialogue level needs.
    """
    prompt, wanted = judging.prompt(task), task.judge.items
    tables = {name: schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses", "systems")}
    references = tables["systems"].loc[tables["systems"]["kind"] == "reference", "system_id"]
    responses = tables["responses"][~tables["responses"]["system_id"].isin(references)]
    rows = responses.merge(tables["contexts"], on=["dataset", "context_id"], how="left", validate="many_to_one")
    if len(unknown := rows[rows["dialogue_id"].isna()]):
        raise SchemaError(f"no context {unknown['context_id'].iloc[0]!r}", where=str(folder / "contexts.parquet"))
    if task.variant.turns is None:
        items = _dialogues(rows, prompt) if task.variant.level == "dialogue" else _responses(rows, prompt)
        return list(items) if wanted is None else sample(items, wanted)
    if turns is None:
        raise ConfigError(
            f"{task.name} needs the scores of {task.turns}", where="--turns", expected="table scores, or a file with it"
        )
    scores = _turn_scores(turns, slug(judging.variants[task.variant.turns].form.main))
    count: dict[Any, int] = tables["contexts"].groupby("dialogue_id")["turn"].nunique().to_dict()
    return list(_rated_dialogues(rows, prompt, scores, count))


def sample(items: Iterable[Item], count: int) -> list[Item]:
    """Return so many of the items that have what the prompt needs, in their order: those with the smallest hash of their names.

    It is the same sample everywhere, for each way of asking, and a larger one holds it.
    """
    ranked = (
        (hashlib.sha256("\0".join((item.item_id, item.system_id)).encode()).digest(), place, item)
        for place, item in enumerate(items)
        if item.messages is not None
    )
    chosen = heapq.nsmallest(count, ranked, key=lambda ranked: ranked[:2])
    return [item for _, _, item in sorted(chosen, key=lambda ranked: ranked[1])]


def turn_item(prompt: Prompt, names: Names, values: Mapping[str, Any], response: str) -> Item:
    """Return the item of one response, given its context's values."""
    if "reference" in prompt.fields and "reference" not in values:
        return Item(*names, None, "no reference")
    return Item(*names, message(render(prompt, {**values, "response": response})))


def context_values(
    history: Iterable[Mapping[str, str]], references: Sequence[str], facts: Iterable[str]
) -> dict[str, str]:
    """Return what a prompt is given of a context; of several references, the first."""
    values = {"history": history_lines(history), "fact": fact_lines(facts)}
    return values | ({"reference": references[0]} if len(references) else {})


def message(text: str) -> str:
    """Return a prompt as the one message that is sent."""
    return encode([{"role": "user", "content": text}])


def _responses(rows: pd.DataFrame, prompt: Prompt) -> Iterator[Item]:
    """Yield one item a response."""
    # Contexts come once for each system: their text is put together once.
    known: dict[str, dict[str, str]] = {}
    columns = ["dataset", "context_id", "system_id", "response", "history", "references", "facts"]
    for dataset, context, system, response, *given in rows[columns].itertuples(index=False, name=None):
        if context not in known:
            known[context] = context_values(*given)
        yield turn_item(prompt, (dataset, context, system), known[context], response)


def _rated_dialogues(
    rows: pd.DataFrame, prompt: Prompt, scores: Mapping[Names, float], turns: Mapping[str, int]
) -> Iterator[Item]:
    """Yield each dialogue of each system with the scores of its turns.

    A dialogue one of whose turns has no score is not judged.
    """
    for names, group in _by_dialogue(rows):
        found = [scores.get((names[0], context, names[2])) for context in group["context_id"]]
        known = [score is not None for score in found]
        # A turn has several contexts if the system answered it several times.
        scored = set(group["turn"][known]) - set(group["turn"][[not one for one in known]])
        if missing := turns[names[1]] - len(scored):
            yield Item(*names, None, f"{missing} turns without a score")
            continue
        texts = [f"{score:.2f}".rstrip("0").rstrip(".") for score in found if score is not None]
        yield Item(*names, message(render(prompt, {"turn_scores": texts, "responses": list(group["response"])})))


def _dialogues(rows: pd.DataFrame, prompt: Prompt) -> Iterator[Item]:
    """Yield each dialogue of each system as a conversation: the history of its last context, and the response there.

    If the contexts are those of one conversation with the system, that is all of it. In static contexts, whose
    histories others wrote, it is the dialogue with the system's last response.
    """
    for names, group in _by_dialogue(rows):
        history, response = list(group["history"].iloc[-1]), group["response"].iloc[-1]
        earlier = list(zip(group["history"].map(len), group["response"], strict=True))[:-1]
        lines = history_lines([*history, {"speaker": _speaker(history, earlier), "text": response}])
        yield Item(*names, message(render(prompt, {"dialogue": lines})))


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
    ordered = rows.sort_values(["turn", "context_id"], kind="stable")
    for (dataset, dialogue, system), group in ordered.groupby(columns):
        yield (str(dataset), str(dialogue), str(system)), group


def _turn_scores(turns: Turns, output: str) -> dict[Names, float]:
    """Return the scores of turns with an output, by data set, context and system."""
    name = "table scores" if isinstance(turns, pd.DataFrame) else str(turns)
    table = turns if isinstance(turns, pd.DataFrame) else schema.read(turns, "scores")
    table = table[(table["level"] == "turn") & (table["output"] == output)]
    if table.empty:
        raise SchemaError(
            f"no turn scores with output {output!r}",
            where=name,
            expected="the scores of the variant that `turns` names",
        )
    keys = list(zip(table["dataset"], table["item_id"], table["system_id"], strict=True))
    scores = dict(zip(keys, table["value"].astype(float), strict=True))
    if len(scores) < len(keys):
        raise SchemaError(f"several scores with output {output!r} for one response", where=name, expected="one")
    return scores
